"""Compare the messages of two logs that have other physical offsets: by topic, queue, queue offset and unique key.

1. Both logs are scanned in bulk. Each queue gets its number of units and the sum of their digests; the digest of a unit
   covers all its bytes except its physical offset. Queues with the same number and sum are equal.
2. Only units of the other queues are read again, at most :data:`MAX_PASS_UNITS` of each log at once. They are paired
   first by place and content, then by place and unique key, by unique key, and by place.

A sum of 64-bit digests does not depend on the order of the units, so nothing has to be sorted or stored for queues
that are equal.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UNIT, UnitColumns
from engine.codec.message import list_fields
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.inspection.block_scan import scan_log
from engine.inspection.difference_rows import Control, Differences, Row
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader

MAX_PASS_UNITS = 1 << 20
"""Maximum number of units of each log whose columns are in memory at once."""
MAX_FIELD_NAMES = 6
MAX_DECODED_PAIRS = 20_000
"""Pairs of units of which the differing fields are named; the others are one row a run."""
_PHYSICAL_OFFSET = 28
_PHYSICAL_OFFSET_END = 36
_KEY = b"UNIQ_KEY\x01"
_SELECTED = np.dtype(
    [("queue", "i8"), ("queue_offset", "i8"), ("offset", "i8"), ("size", "i8"), ("crc", "u8"), ("key", "u8")]
)
OneSide = Literal["here", "there"]
End = Literal["", "head", "tail"]
Selected = npt.NDArray[np.void]
Numbers = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class LogRange:
    """The units of ``log`` from ``start`` to ``stop``, which is exclusive; ``queues`` of the store by topic and id."""

    log: LogReader
    start: int
    stop: int
    queues: frozenset[tuple[str, int]] = frozenset()


@dataclass(slots=True)
class _QueueSum:
    """Number of units of a queue, the sum of their digests, their queue offsets and bytes."""

    count: int = 0
    total: int = 0
    min_offset: int = 1 << 62
    max_offset: int = -1
    size: int = 0
    first_position: int = 0


@dataclass(frozen=True, slots=True)
class _Pass:
    """Queues that are compared at once; of one that is too long, the units in a range of queue offsets."""

    queues: Numbers
    start: int = -(1 << 62)
    stop: int = 1 << 62


def compare_messages(
    control: Control,
    own_range: LogRange,
    other_range: LogRange,
    differences: Differences,
    *,
    is_from_start: bool = True,
    is_to_end: bool = True,
) -> None:
    """Add every difference between the messages of two ranges to ``differences``.

    ``is_from_start``: the ranges begin where the logs begin; ``is_to_end``: they end where the logs end.
    """
    _MessageComparison(control, own_range, other_range, differences, is_from_start, is_to_end).run()


class _MessageComparison:
    """The names, sums and totals of one comparison."""

    def __init__(
        self,
        control: Control,
        own_range: LogRange,
        other_range: LogRange,
        differences: Differences,
        is_from_start: bool,
        is_to_end: bool,
    ) -> None:
        self._control = control
        self._is_from_start, self._is_to_end = is_from_start, is_to_end
        self._own_range, self._other_range = own_range, other_range
        self._differences = differences
        self._names = TopicTable()
        self._decoded_count = 0

    def run(self) -> None:
        sums, other_sums = self._sum_queues(self._own_range, "here"), self._sum_queues(self._other_range, "there")
        differing: list[int] = []
        for queue in sorted(sums.keys() | other_sums.keys()):
            queue_sum, other_sum = sums.get(queue), other_sums.get(queue)
            if queue_sum is None or other_sum is None:
                self._add_queue(queue, queue_sum or other_sum or _QueueSum(), "here" if other_sum is None else "there")
            elif (queue_sum.count, queue_sum.total) != (other_sum.count, other_sum.total):
                differing.append(queue)
        for one_pass in _plan_passes(differing, sums, other_sums):
            self._compare_pass(one_pass, sums, other_sums)

    def _sum_queues(self, log_range: LogRange, side: OneSide) -> dict[int, _QueueSum]:
        sums: dict[int, _QueueSum] = {}
        for block, rows in self._blocks(log_range, side):
            queues, numbers = np.unique(_queue_numbers(block, rows), return_inverse=True)
            queue_offsets = block.queue_offset[rows]
            digests = _digests(queue_offsets, block.size[rows], _content_crcs(block, rows))
            order = np.argsort(numbers, kind="stable")
            starts = np.searchsorted(numbers[order], np.arange(len(queues)))
            totals = np.add.reduceat(digests[order], starts)
            sizes = np.add.reduceat(block.size[rows][order].astype(np.int64), starts)
            lowest = np.minimum.reduceat(queue_offsets[order], starts)
            highest = np.maximum.reduceat(queue_offsets[order], starts)
            counts = np.bincount(numbers)
            first_positions = block.offset[rows][order][starts]
            for i, queue in enumerate(queues.tolist()):
                queue_sum = sums.get(queue)
                if queue_sum is None:
                    queue_sum = sums[queue] = _QueueSum(first_position=int(first_positions[i]))
                queue_sum.count += int(counts[i])
                queue_sum.total = (queue_sum.total + int(totals[i])) & 0xFFFF_FFFF_FFFF_FFFF
                queue_sum.size += int(sizes[i])
                queue_sum.min_offset = min(queue_sum.min_offset, int(lowest[i]))
                queue_sum.max_offset = max(queue_sum.max_offset, int(highest[i]))
        return sums

    def _blocks(self, log_range: LogRange, side: OneSide | None = None) -> Iterator[tuple[UnitColumns, Numbers]]:
        """Yield each block with the numbers of its rows that are units; with ``side``, damage becomes a row."""
        for block in scan_log(log_range.log, log_range.start, log_range.stop, crc=False, topics=self._names):
            self._control.check()
            if isinstance(block, Damage) and side is not None:
                self._add_damage(block, side)
            if not isinstance(block, UnitColumns):
                continue
            rows = np.flatnonzero(block["kind"] == UNIT)
            if len(rows):
                done = int(block.offset[int(rows[-1])]) - log_range.start
                self._control.report(done, max(done, log_range.stop - log_range.start, 1))
                yield block, rows

    def _add_damage(self, damage: Damage, side: OneSide) -> None:
        text = sentence("damage {offset:,} + {size:,}", offset=damage.offset, size=damage.size)
        texts = _by_side(side, text)
        self._differences.add(Row("unit", side, "", 1, damage.size, "", *texts, damage.offset, is_beyond=True))

    def _place(self, queue: int, queue_offset: int) -> tuple[str, int, int]:
        topic_number = queue >> 32
        topic = self._names.names[topic_number] if topic_number >= 0 else "?"
        queue_id = queue & 0xFFFF_FFFF
        return topic, queue_id - (1 << 32) if queue_id >= 1 << 31 else queue_id, queue_offset

    def _add_queue(self, queue: int, queue_sum: _QueueSum, side: OneSide) -> None:
        """Add one row for all units of a queue that only one log has."""
        first_offset, last_offset = queue_sum.min_offset, queue_sum.max_offset
        place = self._place(queue, first_offset)
        self._differences.count_units(side, place[0], place[1], queue_sum.count, first_offset, last_offset)
        texts = _by_side(side, f"{first_offset:,} … {last_offset:,}")
        subject = f"{place[0]}/{place[1]}"
        row = Row("unit", side, subject, queue_sum.count, queue_sum.size, "", *texts, queue_sum.first_position, place)
        other_range = self._other_range if side == "here" else self._own_range
        is_continued = self._is_to_end and not self._is_from_start and place[:2] in other_range.queues
        end: End = "tail" if is_continued else ""
        if end:
            self._differences.count_end(side, end, None, queue_sum.count, queue_sum.size)
        self._differences.add(_without_counterpart(row, end))

    # -- queues that differ

    def _compare_pass(self, one_pass: _Pass, sums: dict[int, _QueueSum], other_sums: dict[int, _QueueSum]) -> None:
        units, other_units = self._select(self._own_range, one_pass), self._select(self._other_range, one_pass)
        pairs: list[tuple[Selected, Selected]] = []
        for number, columns in enumerate(_PAIRED_BY):
            self._control.check()
            indexes, other_indexes = _pair(units, other_units, columns)
            if number:  # the first pairs are equal
                pairs.append((units[indexes], other_units[other_indexes]))
            units, other_units = np.delete(units, indexes), np.delete(other_units, other_indexes)
        if pairs:
            self._add_pairs(*(np.concatenate(side_units) for side_units in zip(*pairs, strict=True)))
        self._add_one_sided(units, "here", other_sums)
        self._add_one_sided(other_units, "there", sums)

    def _select(self, log_range: LogRange, one_pass: _Pass) -> Selected:
        blocks: list[Selected] = []
        for block, rows in self._blocks(log_range):
            queues, queue_offsets = _queue_numbers(block, rows), block.queue_offset[rows]
            is_selected = np.isin(queues, one_pass.queues)
            is_selected &= (queue_offsets >= one_pass.start) & (queue_offsets < one_pass.stop)
            chosen = rows[is_selected]
            if len(chosen):
                blocks.append(_columns_of(block, chosen))
        return np.concatenate(blocks) if blocks else np.empty(0, _SELECTED)

    def select_all(self, log_range: LogRange, max_units: int) -> Selected | None:
        """Return all units of a range in the order of the log; None if there are more than ``max_units``."""
        blocks: list[Selected] = []
        count = 0
        for block, rows in self._blocks(log_range):
            count += len(rows)
            if count > max_units:
                return None
            blocks.append(_columns_of(block, rows))
        return np.concatenate(blocks) if blocks else np.empty(0, _SELECTED)

    def _add_pairs(self, units: Selected, other_units: Selected) -> None:
        """Add a row for each run of neighbouring pairs with the same differing fields."""
        order = np.lexsort((units["queue_offset"], units["queue"]))
        run: list[int] = []
        run_fields = ""
        for i in order.tolist():
            fields = self._differing_fields(units[i], other_units[i])
            if run and not (fields == run_fields and _is_next(units[run[-1]], units[i])):
                self._add_pair_run(units, other_units, run, run_fields)
                run = []
            run.append(i)
            run_fields = fields
        if run:
            self._add_pair_run(units, other_units, run, run_fields)

    def _add_pair_run(self, units: Selected, other_units: Selected, run: list[int], fields: str) -> None:
        first_unit, other_first_unit, last_unit = units[run[0]], other_units[run[0]], units[run[-1]]
        place = self._place(int(first_unit["queue"]), int(first_unit["queue_offset"]))
        size = int(units["size"][run].sum())
        self._differences.count_units("differs", place[0], place[1], len(run), place[2], int(last_unit["queue_offset"]))
        self._differences.add(
            Row(
                "unit",
                "differs",
                f"{place[0]}/{place[1]}/{place[2]:,}",
                len(run),
                size,
                fields,
                _unit_text(first_unit),
                _unit_text(other_first_unit),
                int(first_unit["offset"]),
                place,
                offset_there=int(other_first_unit["offset"]),
            )
        )

    def _differing_fields(self, unit: np.void, other_unit: np.void) -> str:
        self._decoded_count += 1
        if self._decoded_count > MAX_DECODED_PAIRS:
            return "…"
        data = self._own_range.log.read(int(unit["offset"]), int(unit["size"]))
        other_data = self._other_range.log.read(int(other_unit["offset"]), int(other_unit["size"]))
        return field_list(name for name in differing_fields(data, other_data) if name != "physicalOffset")

    def _add_one_sided(self, units: Selected, side: OneSide, other_sums: dict[int, _QueueSum]) -> None:
        """Add a row for each run of neighbouring units that only one log has."""
        if not len(units):
            return
        units = units[np.lexsort((units["queue_offset"], units["queue"]))]
        ends = np.zeros(len(units), np.int8)
        for queue in np.unique(units["queue"]).tolist():
            other_sum, is_queue = other_sums[queue], units["queue"] == queue
            if self._is_to_end:
                ends[is_queue & (units["queue_offset"] > other_sum.max_offset)] = 1
            if self._is_from_start:
                ends[is_queue & (units["queue_offset"] < other_sum.min_offset)] = 2
        is_new_run = (np.diff(units["queue"]) != 0) | (np.diff(units["queue_offset"]) != 1) | (np.diff(ends) != 0)
        for run in np.split(np.arange(len(units)), np.flatnonzero(is_new_run) + 1):
            self._add_run(units[run], side, ("", "tail", "head")[int(ends[run[0]])])

    def _add_run(self, units: Selected, side: OneSide, end: End) -> None:
        first_unit, last_unit, size = units[0], units[-1], int(units["size"].sum())
        place = self._place(int(first_unit["queue"]), int(first_unit["queue_offset"]))
        self._differences.count_units(side, place[0], place[1], len(units), place[2], int(last_unit["queue_offset"]))
        if end:
            self._differences.count_end(side, end, None, len(units), size)
        text = _unit_text(first_unit) if len(units) == 1 else f"{place[2]:,} … {int(last_unit['queue_offset']):,}"
        subject = f"{place[0]}/{place[1]}/{place[2]:,}"
        texts = _by_side(side, text)
        row = Row("unit", side, subject, len(units), size, "", *texts, int(first_unit["offset"]), place)
        self._differences.add(_without_counterpart(row, end))


_PAIRED_BY: tuple[Callable[[Selected], tuple[npt.NDArray[np.generic], ...] | None], ...] = (
    lambda units: (units["queue"], units["queue_offset"], units["size"], units["crc"]),
    lambda units: (units["queue"], units["queue_offset"], units["key"]),
    lambda units: (units["queue"] >> 32, units["key"]),
    lambda units: (units["queue"], units["queue_offset"]),
)
"""What a pair has in common: place and content; place and unique key; topic and unique key; place."""
_BY_KEY_ALONE = 2


@dataclass(frozen=True, slots=True)
class MessagePairs:
    """The units of two ranges in the order of their logs, and which of them are the same message.

    Unit ``indexes[i]`` of the one range is the message ``other_indexes[i]`` of the other one; ``is_equal[i]`` if all
    their bytes but the physical offset are equal.
    """

    units: Selected
    other_units: Selected
    indexes: Numbers
    other_indexes: Numbers
    is_equal: npt.NDArray[np.bool_]


def pair_messages(control: Control, own_range: LogRange, other_range: LogRange, max_units: int) -> MessagePairs | None:
    """Pair all messages of two ranges as :func:`compare_messages` does; None if a range has over ``max_units``."""
    comparison = _MessageComparison(control, own_range, other_range, Differences(), False, False)
    sides: list[Selected] = []
    for log_range in (own_range, other_range):
        units = comparison.select_all(log_range, max_units)
        if units is None:
            return None
        sides.append(units)
    units, other_units = sides
    remaining, other_remaining = np.arange(len(units)), np.arange(len(other_units))
    paired: list[tuple[Numbers, Numbers]] = []
    for columns in _PAIRED_BY:
        control.check()
        indexes, other_indexes = _pair(units[remaining], other_units[other_remaining], columns)
        paired.append((remaining[indexes], other_remaining[other_indexes]))
        remaining, other_remaining = np.delete(remaining, indexes), np.delete(other_remaining, other_indexes)
    is_equal = np.zeros(sum(len(indexes) for indexes, _ in paired), bool)
    is_equal[: len(paired[0][0])] = True
    return MessagePairs(
        units,
        other_units,
        np.concatenate([indexes for indexes, _ in paired]),
        np.concatenate([other_indexes for _, other_indexes in paired]),
        is_equal,
    )


def _pair(
    units: Selected,
    other_units: Selected,
    columns: Callable[[Selected], tuple[npt.NDArray[np.generic], ...] | None],
) -> tuple[Numbers, Numbers]:
    """Return the indexes of the units of both sides that have the same values, each unit at most once."""
    sides = [np.arange(len(side_units)) for side_units in (units, other_units)]
    if columns is _PAIRED_BY[_BY_KEY_ALONE]:
        sides = [np.flatnonzero(side_units["key"]) for side_units in (units, other_units)]
    numbered = []
    for rows, side_units in zip(sides, (units, other_units), strict=True):
        values = np.zeros(len(rows), np.uint64)
        for column in columns(side_units[rows]) or ():
            values = _mix(values ^ column.astype(np.uint64))
        numbered.append(_mix(values + _rank_equal(values)))
    _, indexes, other_indexes = np.intersect1d(numbered[0], numbered[1], return_indices=True)
    return sides[0][indexes], sides[1][other_indexes]


def _rank_equal(values: Digests) -> Digests:
    """Number equal values 0, 1, 2 … in their order."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    is_first = np.ones(len(values), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_first)
    ranks = np.empty(len(values), np.uint64)
    ranks[order] = np.arange(len(values)) - np.repeat(starts, np.diff(np.append(starts, len(values))))
    return ranks


def _plan_passes(queues: list[int], sums: dict[int, _QueueSum], other_sums: dict[int, _QueueSum]) -> Iterator[_Pass]:
    """Yield sets of queues of at most :data:`MAX_PASS_UNITS` units of each log; a longer queue is cut."""
    chosen: list[int] = []
    counts = [0, 0]
    for queue in queues:
        queue_sum, other_sum = sums[queue], other_sums[queue]
        longest = max(queue_sum.count, other_sum.count)
        if longest > MAX_PASS_UNITS:
            start = min(queue_sum.min_offset, other_sum.min_offset)
            stop = max(queue_sum.max_offset, other_sum.max_offset) + 1
            step = max(1, -(-(stop - start) * MAX_PASS_UNITS // longest) // 2)
            for low in range(start, stop, step):
                yield _Pass(np.array([queue]), low, min(low + step, stop))
            continue
        if chosen and max(counts[0] + queue_sum.count, counts[1] + other_sum.count) > MAX_PASS_UNITS:
            yield _Pass(np.array(chosen))
            chosen, counts = [], [0, 0]
        chosen.append(queue)
        counts = [counts[0] + queue_sum.count, counts[1] + other_sum.count]
    if chosen:
        yield _Pass(np.array(chosen))


def _queue_numbers(block: UnitColumns, rows: Numbers) -> Numbers:
    """Topic number and queue id of each row in one number."""
    queue_ids = block.queue_id[rows].astype(np.int64) & 0xFFFF_FFFF
    return (block.topic_id[rows].astype(np.int64) << 32) | queue_ids


def _columns_of(block: UnitColumns, rows: Numbers) -> Selected:
    """Return the keys by which these rows of a block are paired."""
    selected = np.empty(len(rows), _SELECTED)
    selected["queue"], selected["queue_offset"] = _queue_numbers(block, rows), block.queue_offset[rows]
    selected["offset"], selected["size"] = block.offset[rows], block.size[rows]
    selected["crc"], selected["key"] = _content_crcs(block, rows), _key_hashes(block, rows)
    return selected


def _content_crcs(block: UnitColumns, rows: Numbers) -> Digests:
    """CRC32 of each unit without its physical offset."""
    view = block.buffer.data
    crc32 = zlib.crc32
    starts = (block.offset[rows] - block.base).tolist()
    sizes = block.size[rows].tolist()
    crcs = [
        crc32(view[start + _PHYSICAL_OFFSET_END : start + size], crc32(view[start : start + _PHYSICAL_OFFSET]))
        for start, size in zip(starts, sizes, strict=True)
    ]
    return np.array(crcs, np.uint64)


def _key_hashes(block: UnitColumns, rows: Numbers) -> Digests:
    """Hash of the unique key of each unit, 0 without one."""
    hashes = []
    for row in rows.tolist():
        raw = block.raw_properties(row)
        start = 0 if raw.startswith(_KEY) else raw.find(b"\x02" + _KEY) + 1
        key = raw[start + len(_KEY) :].partition(b"\x02")[0] if start or raw.startswith(_KEY) else b""
        hashes.append((hash(key) & 0xFFFF_FFFF_FFFF_FFFF) | 1 if key else 0)
    return np.array(hashes, np.uint64)


def _digests(queue_offsets: Numbers, sizes: npt.NDArray[np.int32], crcs: Digests) -> Digests:
    values = crcs ^ (sizes.astype(np.uint64) << np.uint64(32))
    return _mix(values ^ _mix(queue_offsets.astype(np.uint64)))


def _mix(values: Digests) -> Digests:
    """Spread the bits of each value (the finalizer of splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _is_next(unit: np.void, next_unit: np.void) -> bool:
    is_same_queue = unit["queue"] == next_unit["queue"]
    return bool(is_same_queue and unit["queue_offset"] + 1 == next_unit["queue_offset"])


def _by_side(side: OneSide, text: str) -> tuple[str, str]:
    return (text, "") if side == "here" else ("", text)


def _without_counterpart(row: Row, end: End) -> Row:
    return replace(row, is_beyond=True, end=end)


def _unit_text(unit: np.void) -> str:
    return sentence("unit {offset:,} + {size:,}", offset=int(unit["offset"]), size=int(unit["size"]))


def differing_fields(data: bytes, other_data: bytes) -> Iterator[str]:
    """Yield the names of the fields in which two units differ."""
    fields, other_fields = (
        {part.name: unit[part.position : part.position + part.length] for part in list_fields(unit)}
        for unit in (data, other_data)
    )
    yield from (name for name, value in fields.items() if other_fields.get(name) != value)
    yield from (name for name in other_fields if name not in fields)


def field_list(names: Iterator[str]) -> str:
    """Return the first names of fields as text."""
    listed = list(names)
    return ", ".join(listed[:MAX_FIELD_NAMES]) + (" …" if len(listed) > MAX_FIELD_NAMES else "")
