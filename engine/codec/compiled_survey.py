"""Compiled part of :mod:`engine.codec.unit_survey`: searches an image and groups its units in one call.

Imported only to be compiled (:mod:`engine.codec.machine_code_build`). What it knows from one unit to the next is in an
array of the caller, ``state``: compiled code may not allocate memory.
"""

from __future__ import annotations

from numba import int32, int64, njit, types, uint32, uint64

from engine.codec.block_search import DONE, HEAD
from engine.codec.columns import BAD, CACHE_LINE_BYTES
from engine.codec.compiled import BODY_CRC
from engine.codec.compiled_copies import find_first, follow_copy, read_log
from engine.codec.compiled_search import copy_bytes_up, find_border, judge_unit, search
from engine.codec.dledger import HEADER_SIZE, MAGIC
from engine.codec.intrinsics import be32, be64, le32, le64, u8
from engine.codec.log_copies import DIFFERENT, NOT_OPEN, PAGE_BYTES, SAME, UNREADABLE
from engine.codec.machine_code import FULL
from engine.codec.message import MIN_UNIT_SIZE
from engine.codec.proven_ends import OTHER_BYTES
from engine.codec.unit_fields import COLUMNS
from engine.codec.unit_search import STORE_HOST_END_BYTES
from engine.codec.unit_survey import (
    AHEAD_BYTES,
    CLOSED_FILE,
    COPY,
    COPY_OFFSET,
    CURSOR,
    DAMAGED_UNIT,
    FIRST_START,
    HEAD_COUNT,
    HEAD_WIDTH,
    JOIN_COUNT,
    JOIN_WIDTH,
    JOINED_BYTES,
    LAST_POSITION,
    LAST_SIZE,
    NEXT_START,
    OPEN_END,
    OTHER_POSITION,
    OTHER_UNIT,
    PAUSED,
    PROBE_BYTES,
    READ_FROM,
    READ_TO,
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
_memcmp = types.ExternalFunction("memcmp", types.int32(types.uintp, types.uintp, types.uintp))
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
    first_page,
    digests,
    file_starts,
    file_stops,
    descriptors,
    stop,
    runs,
    heads,
    joins,
    state,
    scratch,
):
    """Fill ``runs``, ``heads`` and ``joins``; returns (next position, filled, file position, base, reason).

    Few rows are searched at a time, so that they are still in the nearest cache when they are grouped: only one behind
    a copy of the store's units, because another copy may begin there.
    """
    reason, row_limit = int64(0), int64(1)
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
            row_limit,
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
            file_starts,
            file_stops,
            descriptors,
            stop,
            runs,
            heads,
            joins,
            state,
            scratch,
        )
        row_limit = min(2 * row_limit, row_capacity)
        if reason == COPY:
            offset, row_limit = state[COPY_OFFSET], int64(1)
            unit, unit_count, filled, file_position, base, valid_from, reason = follow_copy(
                descriptor,
                file_position,
                buffer,
                filled,
                capacity_bytes,
                state[CURSOR] - base,
                base,
                offset,
                stop,
                live_stops[find_first(live_starts, offset + 1) - 1],
                first_page,
                digests,
                file_starts,
                file_stops,
                descriptors,
                scratch + JOINED_BYTES,
            )
            position, state[VALID_FROM] = unit - base, max(valid_from, state[VALID_FROM])
            if unit_count > 0:
                _add_copy(state, runs, unit, offset, unit_count)
                state[READ_TO] = 0
            elif reason == SAME:
                state[OTHER_POSITION] = unit
            state[COPY_OFFSET] = offset + unit - state[CURSOR]
            if reason != SAME:
                reason = int64(CLOSED_FILE) if reason == NOT_OPEN else int64(OTHER_UNIT)
                break
            continue
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
    file_starts,
    file_stops,
    descriptors,
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
        is_bad = u8(columns[_CRC] + i) == BAD and le32(columns[_BODY_CRC] + 4 * i) != 0
        is_copy, is_other = False, offset < 0
        if not is_bad and not is_other and position != state[OTHER_POSITION]:
            number = find_first(live_starts, offset + 1) - 1
            if number >= 0 and offset + size <= live_stops[number]:
                sameness = _probe(
                    buffer + position - base, offset, size, file_starts, file_stops, descriptors, state, scratch
                )
                if sameness == NOT_OPEN:
                    state[COPY_OFFSET] = offset
                    return int64(CLOSED_FILE)
                is_copy, is_other = sameness == SAME, sameness == UNREADABLE
        end = state[LAST_POSITION] + state[LAST_SIZE]
        is_open, gap = state[UNIT_COUNT] > 0, position - end
        goes_on = is_open and gap == 0 and offset == state[RUN_OFFSET] + end - state[RUN_POSITION]
        if goes_on and not is_other and not is_bad and not is_copy:
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
        if is_copy:
            state[COPY_OFFSET] = offset
            return int64(COPY)
        _join(buffer, filled, base, position, offset, joins, state, scratch)
        state[UNIT_COUNT], state[RUN_POSITION], state[RUN_OFFSET] = 1, position, offset
        state[LAST_POSITION], state[LAST_SIZE] = position, size
    return int64(0)


@njit(cache=True, nogil=True)
def _probe(unit, offset, size, file_starts, file_stops, descriptors, state, scratch):
    """Return whether the store has the first bytes of the unit at the address ``unit``: SAME, DIFFERENT, or why not.

    The bytes around are read, too, where one probe follows the other: many units of another log may lie at offsets of
    the store.
    """
    size, log_bytes = min(size, PROBE_BYTES), scratch + JOINED_BYTES + PAGE_BYTES
    if offset < state[READ_FROM] or offset + size > state[READ_TO]:
        is_next = 0 <= offset - state[READ_FROM] < 2 * AHEAD_BYTES and state[READ_TO] > 0
        count = read_log(
            offset, int64(AHEAD_BYTES) if is_next else size, file_starts, file_stops, descriptors, log_bytes
        )
        if count < 0:
            return count
        state[READ_FROM], state[READ_TO] = offset, offset + count
        if count < size:
            return int64(UNREADABLE)
    is_same = _memcmp(unit, log_bytes + offset - state[READ_FROM], uint64(size)) == 0
    return int64(SAME) if is_same else int64(DIFFERENT)


@njit(cache=True, nogil=True)
def _add_copy(state, runs, end, offset, unit_count):
    """Add a live run from the cursor up to ``end``; it lengthens the run before if that goes on there."""
    position = state[CURSOR]
    last = (state[RUN_COUNT] - 1) * RUN_WIDTH
    if (
        last >= 0
        and runs[last + 4] != 0
        and runs[last] + runs[last + 2] == position
        and runs[last + 1] + runs[last + 2] == offset
    ):
        runs[last + 2] += end - position
        runs[last + 3] += unit_count
        return
    place = state[RUN_COUNT] * RUN_WIDTH
    runs[place], runs[place + 1], runs[place + 2] = position, offset, end - position
    runs[place + 3], runs[place + 4] = unit_count, 1
    state[RUN_COUNT] += 1


@njit(cache=True, nogil=True)
def _end_run(state, runs, unit_count, end):
    """Add the open run up to ``end``, if it has units, and close it."""
    if unit_count > 0:
        place = state[RUN_COUNT] * RUN_WIDTH
        runs[place], runs[place + 1] = state[RUN_POSITION], state[RUN_OFFSET]
        runs[place + 2], runs[place + 3], runs[place + 4] = end - state[RUN_POSITION], unit_count, 0
        state[RUN_COUNT] += 1
    state[UNIT_COUNT] = 0


@njit(cache=True, nogil=True)
def _end_judged_run(buffer, filled, base, runs, heads, state):
    """Add the open run if its end is simple to judge; returns whether it is."""
    last, size = state[LAST_POSITION], state[LAST_SIZE]
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
