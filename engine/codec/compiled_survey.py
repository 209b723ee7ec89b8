"""Compiled part of :mod:`engine.codec.unit_survey`: searches an image and groups its units in one call.

Imported only to be compiled (:mod:`engine.codec.machine_code_build`). What it knows from one unit to the next is in an
array of the caller, ``state``: compiled code may not allocate memory.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, types, uint32, uint64

from engine.codec.block_search import DONE, HEAD
from engine.codec.columns import BAD, CACHE_LINE_BYTES
from engine.codec.compiled import BODY_CRC
from engine.codec.compiled_search import copy_bytes_up, find_border, judge_unit, search
from engine.codec.dledger import HEADER_SIZE, MAGIC
from engine.codec.intrinsics import be32, be64, le32, le64, prefetch, u8
from engine.codec.machine_code import FULL
from engine.codec.message import MIN_UNIT_SIZE
from engine.codec.proven_ends import OTHER_BYTES
from engine.codec.unit_fields import COLUMNS
from engine.codec.unit_search import PAGE_BYTES, STORE_HOST_END_BYTES
from engine.codec.unit_survey import (
    CURSOR,
    DAMAGED_UNIT,
    FIRST_START,
    HEAD_COUNT,
    HEAD_WIDTH,
    IS_LIVE,
    JOIN_COUNT,
    JOIN_WIDTH,
    JOINED_BYTES,
    LAST_POSITION,
    LAST_SIZE,
    NEXT_KNOWN,
    NEXT_START,
    OPEN_END,
    OTHER_UNIT,
    PAUSED,
    RUN_COUNT,
    RUN_OFFSET,
    RUN_POSITION,
    RUN_WIDTH,
    START_COUNT,
    UNIT_COUNT,
    VALID_FROM,
)

_AT = {name: number for number, (name, _) in enumerate(COLUMNS)}
_OFFSET, _SIZE, _KIND, _CRC = _AT["offset"], _AT["size"], _AT["kind"], _AT["crc"]
_PHYSICAL, _BODY_CRC = _AT["physical_offset"], _AT["body_crc"]
_BODY_POSITION, _BODY_LENGTH = _AT["body_position"], _AT["body_length"]
_ROWS_AHEAD = 6
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_memmove = types.ExternalFunction("memmove", types.uintp(types.uintp, types.uintp, types.uintp))


@njit(cache=True, nogil=True)
def survey(
    descriptor,
    file_position,
    chunk,
    buffer,
    filled,
    capacity_bytes,
    position,
    base,
    columns,
    row_capacity,
    table,
    levels,
    live_starts,
    live_stops,
    known_offsets,
    known_digests,
    known_end,
    stop,
    runs,
    heads,
    joins,
    state,
    scratch,
):
    """Fill ``runs``, ``heads`` and ``joins``; returns (next position, filled, file position, base, reason).

    Few rows are searched at a time, so that they are still in the nearest cache when they are grouped.
    """
    reason = int64(0)
    while True:
        position, rows, outcome, filled, file_position = search(
            descriptor,
            file_position,
            chunk,
            buffer,
            filled,
            capacity_bytes,
            position,
            base,
            columns,
            row_capacity,
            table,
            levels,
            int64(BODY_CRC),
            stop - base,
            int64(0),
        )
        reason = _add_rows(
            buffer,
            filled,
            base,
            columns,
            rows,
            live_starts,
            live_stops,
            known_offsets,
            known_digests,
            known_end,
            stop,
            runs,
            heads,
            joins,
            state,
            scratch,
        )
        if reason != 0:
            position = state[CURSOR] - base
            break
        if outcome == FULL:
            continue
        is_run_over = base + position > state[LAST_POSITION] + state[LAST_SIZE]
        if state[UNIT_COUNT] > 0 and is_run_over and not _end_judged_run(buffer, filled, base, runs, heads, state):
            reason = int64(OPEN_END)
            break
        first = _first_needed(state, base + position)
        if outcome == DONE:
            reason = int64(PAUSED)
            break
        if filled + chunk <= capacity_bytes or first - base < chunk + CACHE_LINE_BYTES:
            reason = int64(OTHER_UNIT)
            break
        kept = filled - (first - base)
        start = -kept & int64(CACHE_LINE_BYTES - 1)
        _memmove(buffer + start, buffer + first - base, uint64(kept))
        position -= first - base - start
        base, filled = first - start, start + kept
        state[VALID_FROM] = first
    if state[UNIT_COUNT] > 0:  # the caller judges the end of the last unit
        position = state[LAST_POSITION] - base
        _end_run(state, runs, state[UNIT_COUNT] - 1, state[LAST_POSITION])
    return position, filled, file_position, base, reason


@njit(cache=True, nogil=True)
def _first_needed(state, cursor):
    """Return the first position of the file whose bytes are needed still."""
    first = cursor
    if state[UNIT_COUNT] > 0:
        first = min(first, state[LAST_POSITION])
    for number in range(START_COUNT):
        start = state[FIRST_START + 3 * number]
        if start >= state[VALID_FROM] and cursor - start < JOINED_BYTES:
            first = min(first, start)
    return first


@njit(cache=True, nogil=True)
def _add_rows(
    buffer,
    filled,
    base,
    columns,
    rows,
    live_starts,
    live_stops,
    known_offsets,
    known_digests,
    known_end,
    stop,
    runs,
    heads,
    joins,
    state,
    scratch,
):
    """Add the rows of a search; returns the reason why the row at ``state[CURSOR]`` was not added, or 0."""
    for i in range(rows):
        position = int64(le64(columns[_OFFSET] + 8 * i))
        state[CURSOR] = position
        if (
            (state[RUN_COUNT] + 2) * RUN_WIDTH > len(runs)
            or (state[HEAD_COUNT] + 2) * HEAD_WIDTH > len(heads)
            or (state[JOIN_COUNT] + START_COUNT) * JOIN_WIDTH > len(joins)
            or position >= stop
        ):
            return int64(PAUSED)
        size, offset = int64(int32(le32(columns[_SIZE] + 4 * i))), int64(le64(columns[_PHYSICAL] + 8 * i))
        if u8(columns[_KIND] + i) == HEAD:
            if state[UNIT_COUNT] > 0 and not _end_judged_run(buffer, filled, base, runs, heads, state):
                return int64(OPEN_END)
            _add_head(state, heads, buffer + position - base, position)
            _add_start(state, position, offset, size)
            continue
        is_live, is_other = _is_live(buffer, base, columns, i, known_offsets, known_digests, state), offset < 0
        if not is_live and _is_in_store(offset, size, live_starts, live_stops):
            is_other = is_other or offset >= known_end
            state[NEXT_KNOWN] = _find_first(known_offsets, offset)
            is_live = _is_live(buffer, base, columns, i, known_offsets, known_digests, state)
        is_bad = u8(columns[_CRC] + i) == BAD and le32(columns[_BODY_CRC] + 4 * i) != 0
        end = state[LAST_POSITION] + state[LAST_SIZE]
        is_open, gap = state[UNIT_COUNT] > 0, position - end
        goes_on = is_open and gap == 0 and offset == state[RUN_OFFSET] + end - state[RUN_POSITION]
        if goes_on and not is_other and not is_bad and is_live == (state[IS_LIVE] != 0):
            state[UNIT_COUNT] += 1
            state[LAST_POSITION], state[LAST_SIZE] = position, size
            continue
        if is_open and gap == HEADER_SIZE and be32(buffer + end - base) == uint32(MAGIC):
            return int64(OTHER_UNIT)
        if goes_on:
            _end_run(state, runs, state[UNIT_COUNT], end)
        elif is_open and not _end_judged_run(buffer, filled, base, runs, heads, state):
            return int64(OPEN_END)
        if is_other:
            return int64(OTHER_UNIT)
        if is_bad:
            return int64(DAMAGED_UNIT)
        if not is_live:
            _join(buffer, filled, base, position, offset, joins, state, scratch)
        state[UNIT_COUNT], state[RUN_POSITION], state[RUN_OFFSET], state[IS_LIVE] = 1, position, offset, is_live
        state[LAST_POSITION], state[LAST_SIZE] = position, size
    return int64(0)


@njit(cache=True, nogil=True)
def _is_live(buffer, base, columns, row, known_offsets, known_digests, state):
    """Return True if the next known unit is the one of the row; then the one behind it is the next."""
    number = state[NEXT_KNOWN]
    if number >= len(known_offsets) or known_offsets[number] != int64(le64(columns[_PHYSICAL] + 8 * row)):
        return False
    state[NEXT_KNOWN] = number + 1
    if u8(columns[_CRC] + row) == BAD and le32(columns[_BODY_CRC] + 4 * row) != 0:
        return False
    return known_digests[number] == _digest_unit(buffer, base, columns, row)


@njit(cache=True, nogil=True)
def _is_in_store(offset, size, starts, stops):
    """Return True if a byte of the unit belongs to a live unit of the store (``StoreUnits.overlap``)."""
    number = _find_first(starts, offset + size)
    return number > 0 and stops[number - 1] > offset


@njit(cache=True, nogil=True)
def _find_first(numbers, number):
    """Return the index of the first of the ascending ``numbers`` that is not below ``number``."""
    low, high = int64(0), int64(len(numbers))
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def digest_units(buffer, base, columns, count, digests):
    """Write the digest of each row (``unit_survey.digest_units``)."""
    for row in range(count):
        if row + _ROWS_AHEAD < count:
            _prefetch_ends(buffer, base, columns, row + _ROWS_AHEAD)
        digests[row] = _digest_unit(buffer, base, columns, row)


@njit(cache=True, nogil=True, forceinline=True)
def _prefetch_ends(buffer, base, columns, row):
    """Prefetch what is in front of a body and behind it: the walk of a block has left the nearest cache."""
    start = buffer + int64(le64(columns[_OFFSET] + 8 * row)) - base
    end = start + int64(int32(le32(columns[_SIZE] + 4 * row)))
    prefetch(start)
    prefetch(start + 64)
    prefetch(end - 192)
    prefetch(end - 128)
    prefetch(end - 64)


@njit(cache=True, nogil=True)
def _digest_unit(buffer, base, columns, row):
    """Return a number for all bytes of a unit except those of its body, which its body CRC stands for.

    Without a body CRC the body counts, too.
    """
    start = buffer + int64(le64(columns[_OFFSET] + 8 * row)) - base
    end = start + int64(int32(le32(columns[_SIZE] + 4 * row)))
    if le32(columns[_BODY_CRC] + 4 * row) == 0:
        return int64(_digest_bytes(start, end, _FACTOR))
    body = buffer + int64(le64(columns[_BODY_POSITION] + 8 * row))
    body_end = body + int64(int32(le32(columns[_BODY_LENGTH] + 4 * row)))
    return int64(_digest_bytes(body_end, end, _digest_bytes(start, body, _FACTOR)))


@njit(cache=True, nogil=True, forceinline=True)
def _mix(lane, word):
    lane = (lane ^ word) * _FACTOR
    return lane ^ (lane >> uint64(32))


@njit(cache=True, nogil=True)
def _digest_bytes(start, end, seed):
    """Return a digest of the bytes of a unit up to ``end``, in four lanes; the eight bytes before ``end`` are its own,
    too.
    """
    first, second, third, fourth = seed, seed ^ uint64(1), seed ^ uint64(2), seed ^ uint64(3)
    p = start
    while end - p >= 32:
        first, second = _mix(first, le64(p)), _mix(second, le64(p + 8))
        third, fourth = _mix(third, le64(p + 16)), _mix(fourth, le64(p + 24))
        p += 32
    while end - p >= 8:
        first = _mix(first, le64(p))
        p += 8
    if p < end:
        second = _mix(second, le64(end - 8))
    return _mix(_mix(_mix(first, second), third), fourth)


@njit(cache=True, nogil=True)
def _end_run(state, runs, unit_count, end):
    """Add the open run up to ``end``, if it has units, and close it."""
    if unit_count > 0:
        place = state[RUN_COUNT] * RUN_WIDTH
        runs[place], runs[place + 1] = state[RUN_POSITION], state[RUN_OFFSET]
        runs[place + 2], runs[place + 3], runs[place + 4] = end - state[RUN_POSITION], unit_count, state[IS_LIVE]
        state[RUN_COUNT] += 1
    state[UNIT_COUNT] = 0


@njit(cache=True, nogil=True)
def _end_judged_run(buffer, filled, base, runs, heads, state):
    """Add the open run if its end is simple to judge; returns whether it is."""
    last, size = state[LAST_POSITION], state[LAST_SIZE]
    if state[IS_LIVE] != 0:
        _end_run(state, runs, state[UNIT_COUNT], last + size)
        return True
    end, offset = last + size, state[RUN_OFFSET] + last - state[RUN_POSITION]
    unit = buffer + last - base
    verdict = judge_unit(unit, size, offset, base + filled - end)
    if verdict == 0:
        return False
    if verdict == OTHER_BYTES:
        _add_head(state, heads, unit, last)
        _add_start(state, last, offset, size)
        _end_run(state, runs, state[UNIT_COUNT] - 1, last)
    else:
        _add_start(state, end, offset + size, int64(0))
        _end_run(state, runs, state[UNIT_COUNT], end)
    return True


@njit(cache=True, nogil=True)
def _add_head(state, heads, unit, position):
    """Add the beginning of a unit at the address ``unit``."""
    place = state[HEAD_COUNT] * HEAD_WIDTH
    stored = unit + (int64(68) if be32(unit + 36) & uint32(16) else int64(56))
    heads[place], heads[place + 1] = position, int64(int32(be32(unit)))
    heads[place + 2], heads[place + 3] = int64(be64(unit + 28)), int64(int32(be32(unit + 12)))
    heads[place + 4], heads[place + 5] = int64(be64(unit + 20)), int64(be64(stored))
    state[HEAD_COUNT] += 1


@njit(cache=True, nogil=True)
def _add_start(state, position, offset, size):
    """Note a place where a unit begins whose other bytes may follow later; ``size`` is 0 if it is not known."""
    last_place = FIRST_START + 3 * ((state[NEXT_START] + START_COUNT - 1) % START_COUNT)
    if state[last_place] == position:
        return
    place = FIRST_START + 3 * state[NEXT_START]
    state[place], state[place + 1], state[place + 2] = position, offset, size
    state[NEXT_START] = (state[NEXT_START] + 1) % START_COUNT


@njit(cache=True, nogil=True)
def _join(buffer, filled, base, position, offset, joins, state, scratch):
    """Join the units that begin at a noted place and end at ``position``, where the unit at ``offset`` begins."""
    for number in range(START_COUNT):
        place = FIRST_START + 3 * number
        start, start_offset, head_size = state[place], state[place + 1], state[place + 2]
        size, valid_from = offset - start_offset, state[VALID_FROM]
        moved_by = position - size - start
        if (
            start < valid_from
            or position - size < valid_from
            or size < MIN_UNIT_SIZE
            or size + STORE_HOST_END_BYTES > JOINED_BYTES
            or (head_size != 0 and head_size != size)
            or moved_by == 0
            or moved_by & int64(PAGE_BYTES - 1)
            or max(start + size, position + STORE_HOST_END_BYTES) > base + filled
        ):
            continue
        copy_bytes_up(scratch, buffer + position - size - base, size + STORE_HOST_END_BYTES)
        border = find_border(buffer + start - base, scratch, size, start_offset)
        if border >= 0:
            row = state[JOIN_COUNT] * JOIN_WIDTH
            joins[row], joins[row + 1], joins[row + 2] = start, position, start_offset
            joins[row + 3], joins[row + 4] = size, border
            state[JOIN_COUNT] += 1
            state[place] = -1
