"""Compiled twins of dispatch: group rows by queue, chain index entries (docs/formats/consume-queue.md#entry,
docs/formats/index-file.md#insert).

Imported late and only through :func:`engine.codec.dispatch_twin.twin`. Raw addresses have no bounds check: the
callers in ``queue_builder`` and ``index_builder`` check lengths; numbers that come out of a file are checked
here.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, uint64

from engine.codec.intrinsics import be32, prefetch, put_be32, put_be64

_MIX = np.uint64(0x9E3779B97F4A7C15)
_HEADER = 40


@njit(cache=True, nogil=True)
def group_rows(
    sys_flag,
    topic_id,
    queue_id,
    queue_offset,
    physical,
    size,
    start_row,
    stop,
    table,
    group,
    topic_of,
    queue_of,
    start,
    is_consecutive,
    last_offset,
    last_end,
):
    """Write the number of the queue's group for each row (−1 for none) and count rows in ``start[group + 1]``;
    returns (groups, rows).
    """
    mask, groups, kept_rows = int64(table.shape[0] - 1), 0, 0
    for row in range(start_row, stop):
        kind = sys_flag[row] & 12
        if kind == 4 or kind == 12:  # noqa: PLR1714 (numba builds no set here)
            group[row - start_row] = -1
            continue
        topic, queue = topic_id[row], queue_id[row]
        h = (uint64(topic) * _MIX) ^ uint64(queue)
        h = (h ^ (h >> uint64(29))) * _MIX
        slot = int64(h >> uint64(32)) & mask
        number = table[slot] - 1
        while number >= 0 and (topic_of[number] != topic or queue_of[number] != queue):
            slot = (slot + 1) & mask
            number = table[slot] - 1
        offset, end = queue_offset[row], physical[row] + int64(size[row])
        if number < 0:
            number = groups
            groups += 1
            table[slot] = groups
            topic_of[number], queue_of[number], is_consecutive[number] = topic, queue, True
            start[number + 1] = 0
        elif offset != last_offset[number] + 1 or end <= last_end[number]:
            is_consecutive[number] = False
        last_offset[number], last_end[number] = offset, end
        start[number + 1] += 1
        group[row - start_row] = number
        kept_rows += 1
    return groups, kept_rows


@njit(cache=True, nogil=True)
def scatter_rows(
    queue_offset,
    physical,
    size,
    tags_code,
    start_row,
    stop,
    group,
    start,
    groups,
    out_row,
    out_end,
    out_offset,
    entries,
):
    """Write rows, ends, queue offsets and 20-byte entries to their groups' places; ``start`` becomes the begin of
    each.
    """
    total = int64(0)
    for number in range(groups):
        count = start[number + 1]
        start[number + 1] = total
        total += count
    for row in range(start_row, stop):
        number = group[row - start_row]
        if number < 0:
            continue
        target_row = start[number + 1]
        start[number + 1] = target_row + 1
        out_row[target_row], out_offset[target_row] = row, queue_offset[row]
        out_end[target_row] = physical[row] + int64(size[row])
        p = entries + target_row * 20
        put_be64(p, physical[row])
        put_be32(p + 8, size[row])
        put_be64(p + 12, tags_code[row])


@njit(cache=True, nogil=True)
def chain_entries(file, first_begin, begin, number, slots, key_hash, phy_offset, store_timestamp):
    """Write entries from ``number`` on into the file at address ``file``; returns how many slots were empty before."""
    count, new_slots = key_hash.shape[0], 0
    table, entries = file + _HEADER, file + _HEADER + 4 * slots
    base_time = first_begin
    for i in range(count):
        if i + 8 < count:
            prefetch(table + 4 * (int64(key_hash[i + 8]) % slots))
        value = key_hash[i]
        slot = table + 4 * (int64(value) % slots)
        previous_entry = int64(int32(be32(slot)))
        if previous_entry <= 0 or previous_entry > number:
            previous_entry = 0
            new_slots += 1
        seconds = int64(0)
        if base_time > 0:
            elapsed_ms = store_timestamp[i] - base_time
            if elapsed_ms > 0:
                seconds = min(elapsed_ms // 1000, int64(2147483647))
        base_time = begin
        p = entries + 20 * number
        put_be32(p, value)
        put_be64(p + 4, phy_offset[i])
        put_be32(p + 12, int32(seconds))
        put_be32(p + 16, int32(previous_entry))
        put_be32(slot, int32(number))
        number += 1
    return new_slots
