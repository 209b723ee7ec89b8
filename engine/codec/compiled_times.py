"""Compiled twin of :mod:`engine.inspection.histogram.unit_bins`: adds the units of a block to bins of store time.

Imported late and only through :func:`engine.codec.machine_code_build.twins`.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint64

_MIX = np.uint64(0x9E3779B97F4A7C15)
_STEPS = 16
BINS, STEPS_BACK, LARGEST_STEP, LAST_STORED, HAS_LAST, SLOW_COUNT = range(6)
"""Places in ``state``."""


@njit(cache=True, nogil=True)
def add_units(
    rows,
    row_count,
    has_rows,
    start,
    offset,
    size,
    stored,
    born,
    topic_id,
    reconsume_times,
    prepared,
    sys_flag,
    columns,
    is_sent,
    width,
    slow_ms,
    max_skew_ms,
    transaction_mask,
    slots,
    numbers,
    messages,
    sizes,
    delays,
    first,
    end,
    slow,
    state,
):
    """Add units from the ``start``-th of ``rows`` on (without ``has_rows`` these are all rows) to their bins.

    Returns the first one whose bin has no room, else ``row_count``. Units that took ``slow_ms`` from born to stored are
    listed in ``slow``; the others are counted in ``delays``, unless clocks differ by more than ``max_skew_ms``.
    """
    mask, room = int64(slots.shape[0] - 1), numbers.shape[0]
    column_count = messages.shape[0] // max(room, 1)
    bucket_count = delays.shape[0] // max(room, 1)
    bins, steps_back, largest_step = state[BINS], state[STEPS_BACK], state[LARGEST_STEP]
    last_stored, slow_count = state[LAST_STORED], state[SLOW_COUNT]
    if state[HAS_LAST] == 0 and row_count > 0:
        last_stored = stored[int64(rows[0]) if has_rows else int64(0)]
    place, low, high = int64(-1), int64(0), int64(0)
    cells = delay_cells = int64(0)
    n = start
    while n < row_count:
        row = int64(rows[n]) if has_rows else int64(n)
        time, offset_end = stored[row], offset[row] + int64(size[row])
        if time < low or time >= high:
            number = time // width
            slot = int64((uint64(number) * _MIX) >> uint64(32)) & mask
            place = int64(slots[slot]) - 1
            while place >= 0 and numbers[place] != number:
                slot = (slot + 1) & mask
                place = int64(slots[slot]) - 1
            if place < 0:
                if bins >= room:
                    break
                place = bins
                bins += 1
                slots[slot], numbers[place] = bins, number
                first[place] = offset[row]
            first[place] = min(first[place], offset[row])
            low = number * width
            high = low + width
            cells, delay_cells = place * column_count, place * bucket_count
        if time < last_stored:
            steps_back += 1
            largest_step = max(largest_step, last_stored - time)
        last_stored = time
        end[place] = offset_end
        topic = int64(topic_id[row])
        if topic < 0:
            topic = columns.shape[0] - 1
        cell = cells + columns[topic]
        messages[cell] += 1
        sizes[cell] += int64(size[row])
        if is_sent[topic] and (reconsume_times[row] | prepared[row] | (sys_flag[row] & transaction_mask)) == 0:
            delay = time - born[row]
            if delay >= slow_ms:
                slow[slow_count] = row
                slow_count += 1
            elif delay >= -max_skew_ms:
                delay = max(delay, int64(0))
                doublings = int64(0)
                while (delay >> doublings) >= 2 * _STEPS:
                    doublings += 1
                delays[delay_cells + _STEPS * doublings + (delay >> doublings)] += 1
        n += 1
    state[BINS], state[STEPS_BACK], state[LARGEST_STEP] = bins, steps_back, largest_step
    state[LAST_STORED], state[HAS_LAST], state[SLOW_COUNT] = last_stored, 1, slow_count
    return n
