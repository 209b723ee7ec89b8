"""Compiled twins of dispatch: rows grouped by queue, index entries chained (docs/formats/consume-queue.md#entry,
docs/formats/index-file.md#insert).

Imported late and only through :func:`engine.codec.dispatch_twin.twin`. Raw addresses know no bounds: the callers in
``queue_builder`` and ``index_builder`` prove lengths, numbers that come out of a file are proven here.
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
    first,
    stop,
    table,
    group,
    topic_of,
    queue_of,
    start,
    follows,
    last_offset,
    last_end,
):
    """Number of the queue's group for each row (−1 for none), rows counted in ``start[group + 1]``; (groups, rows)."""
    mask, groups, kept = int64(table.shape[0] - 1), 0, 0
    for row in range(first, stop):
        kind = sys_flag[row] & 12
        if kind == 4 or kind == 12:  # noqa: PLR1714 (numba builds no set here)
            group[row - first] = -1
            continue
        topic, queue = topic_id[row], queue_id[row]
        h = (uint64(topic) * _MIX) ^ uint64(queue)
        h = (h ^ (h >> uint64(29))) * _MIX
        at = int64(h >> uint64(32)) & mask
        number = table[at] - 1
        while number >= 0 and (topic_of[number] != topic or queue_of[number] != queue):
            at = (at + 1) & mask
            number = table[at] - 1
        offset, end = queue_offset[row], physical[row] + int64(size[row])
        if number < 0:
            number = groups
            groups += 1
            table[at] = groups
            topic_of[number], queue_of[number], follows[number] = topic, queue, True
            start[number + 1] = 0
        elif offset != last_offset[number] + 1 or end <= last_end[number]:
            follows[number] = False
        last_offset[number], last_end[number] = offset, end
        start[number + 1] += 1
        group[row - first] = number
        kept += 1
    return groups, kept


@njit(cache=True, nogil=True)
def scatter_rows(
    queue_offset, physical, size, tags_code, first, stop, group, start, groups, out_row, out_end, out_offset, entries
):
    """Rows, ends, queue offsets and 20-byte entries into their groups' places; ``start`` becomes where each begins."""
    total = int64(0)
    for number in range(groups):
        count = start[number + 1]
        start[number + 1] = total
        total += count
    for row in range(first, stop):
        number = group[row - first]
        if number < 0:
            continue
        to = start[number + 1]
        start[number + 1] = to + 1
        out_row[to], out_offset[to] = row, queue_offset[row]
        out_end[to] = physical[row] + int64(size[row])
        p = entries + to * 20
        put_be64(p, physical[row])
        put_be32(p + 8, size[row])
        put_be64(p + 12, tags_code[row])


@njit(cache=True, nogil=True)
def chain_entries(file, first_begin, begin, number, slots, key_hash, phy_offset, store_timestamp):
    """Entries from ``number`` on into the file at address ``file``; gives how many slots were empty before."""
    count, fresh = key_hash.shape[0], 0
    table, entries = file + _HEADER, file + _HEADER + 4 * slots
    from_time = first_begin
    for i in range(count):
        if i + 8 < count:
            prefetch(table + 4 * (int64(key_hash[i + 8]) % slots))
        value = key_hash[i]
        slot = table + 4 * (int64(value) % slots)
        old = int64(int32(be32(slot)))
        if old <= 0 or old > number:
            old = 0
            fresh += 1
        seconds = int64(0)
        if from_time > 0:
            passed = store_timestamp[i] - from_time
            if passed > 0:
                seconds = min(passed // 1000, int64(2147483647))
        from_time = begin
        p = entries + 20 * number
        put_be32(p, value)
        put_be64(p + 4, phy_offset[i])
        put_be32(p + 12, int32(seconds))
        put_be32(p + 16, int32(old))
        put_be32(slot, int32(number))
        number += 1
    return fresh
