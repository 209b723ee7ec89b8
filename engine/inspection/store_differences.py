"""All differences of two stores: units, queue entries, index entries, tables, checkpoint, state.

Both logs are walked in step at the same physical offsets. Equal bytes are skipped in blocks, undecoded; around bytes
that differ both logs are walked unit by unit until they hold the same unit again. A run of units that only one store
has is one row. Logs that never hold the same message at the same offset (a store made by ``copy``), and logs from the
offset on from which they do not, are compared by :mod:`engine.inspection.message_differences`.

Memory is two blocks, at most :data:`MAX_ROWS` rows, and the columns of a bounded number of units; further differences
are only counted.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.errors import StoreError, UsageError
from engine.inspection.difference_rows import Control, Differences, Kind, Row, Side
from engine.inspection.index_steps import (
    BLOCK_ENTRIES,
    MAX_COUNTED_ENTRIES,
    Entry,
    count_key_hashes,
    step_index,
    sum_key_hashes,
)
from engine.inspection.message_alignment import AlignedMessages, align_messages
from engine.inspection.message_differences import LogRange, OneSide, compare_messages, differing_fields, field_list
from engine.inspection.tree_values import changes
from engine.sentences import sentence

if TYPE_CHECKING:
    import numpy as np

    from engine.inspection.index_reader import IndexReader
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.store_queues import AnyQueue

LOG_BLOCK_BYTES = 1 << 20
STEPS_PER_CHECK = 256
MAX_STEPS_APART = 4096
"""Items that are walked in search of one that both logs have at one offset; then the messages are compared."""
NO_END = 1 << 62
DATA_VERSION = "dataVersion"
MAX_HASHES = 4
MAX_CHANGED_IN_PLACE = 16
"""Items at the end of both logs that differ at the same offsets; more of them are other messages."""
PROBE_COUNT = 16
"""Offsets at which both logs are read to see whether they hold the same messages at the same offsets."""


def compare(
    control: Control, store: StoreSnapshot, other_store: StoreSnapshot, differences: Differences
) -> Differences:
    """Add every difference of ``other_store`` from ``store`` to ``differences`` and return it.

    After a stop, ``differences`` holds what was compared so far. Raises StoreError, OSError, and what
    ``control.check`` raises.
    """
    compare_logs(control, store, other_store, differences)
    differences.compared_bytes = max(
        0, min(store.log.max_offset, other_store.log.max_offset) - _common_start(store, other_store)
    )
    if differences.alignment == "messages":
        differences.compared_bytes = min(
            log.max_offset - max(log.min_offset, 0) for log in (store.log, other_store.log)
        )
    _queues(control, store, other_store, differences)
    _index(control, store, other_store, differences)
    _tables(control, store, other_store, differences.add)
    _checkpoint(store, other_store, differences.add)
    _state(store, other_store, differences.add)
    return differences


# ---- units -----------------------------------------------------------------------------------------------------------

Item = Unit | Blank | Damage | Stop
Pairs = list[tuple[Item | None, Item | None]]
AddRow = Callable[[Row], None]


def _common_start(store: StoreSnapshot, other_store: StoreSnapshot) -> int:
    return max(store.log.min_offset, other_store.log.min_offset, 0)


def _refuse_unlike(store: StoreSnapshot, other_store: StoreSnapshot) -> None:
    """Raise :class:`UsageError` if units of equal messages would differ: a capsule has no bodies."""
    capsules = [side.capsule for side in (store, other_store) if side.capsule is not None]
    if len(capsules) == 1:
        raise UsageError(
            sentence("a capsule has no bodies: it is compared with another capsule, not with a store"),
            file=str(store.path if store.capsule is not None else other_store.path),
        )
    if any(capsule.masks_units for capsule in capsules):
        raise UsageError(sentence("keys or hosts are masked here: capsules are compared without masks"))


def compare_logs(control: Control, store: StoreSnapshot, other_store: StoreSnapshot, differences: Differences) -> None:
    """Add the differences between the units of both logs. Raises :class:`UsageError` for a capsule and a store."""
    _refuse_unlike(store, other_store)
    if not share_offsets(store, other_store):
        differences.alignment = "messages"
        differences.shared_until = 0
        differences.apart.append((0, NO_END))
        starts = (max(store.log.min_offset, 0), max(other_store.log.min_offset, 0))
        log_range, other_range = _ranges_from(store, other_store, *starts)
        compare_messages(control, log_range, other_range, differences)
        return
    start_offset = _common_start(store, other_store)
    sides: tuple[tuple[StoreSnapshot, OneSide], ...] = ((store, "here"), (other_store, "there"))
    for side_store, side in sides:
        head_start, head_end = max(side_store.log.min_offset, 0), min(start_offset, side_store.log.max_offset)
        _add_one_sided_range(control, side_store, head_start, head_end, side, "head", differences)
    heads = copy.deepcopy(differences)
    first_position = _compare_at_offsets(control, store, other_store, differences)
    if first_position is not None and _may_have_moved(differences, heads):
        start = min(store.log.align(first_position), other_store.log.align(first_position), first_position)
        differences.take(heads)
        differences.alignment, differences.shared_until = "both", start
        differences.apart.append((start, NO_END))
        starts = (_first_item_from(store, start), _first_item_from(other_store, start))
        log_range, other_range = _ranges_from(store, other_store, *starts)
        compare_messages(control, log_range, other_range, differences, is_from_start=False)


def _may_have_moved(differences: Differences, heads: Differences) -> bool:
    """Return True if each log has units of a queue that the other one lacks: they may be the same messages, too far
    from each other to have been paired.
    """
    new_rows = differences.rows[len(heads.rows) :]
    if len(new_rows) < 2 or (len(differences.apart) == 1 and differences.apart[0][1] == NO_END):
        return False
    return any("here" in sides and "there" in sides for sides in differences.queues.values())


def _compare_at_offsets(
    control: Control, store: StoreSnapshot, other_store: StoreSnapshot, differences: Differences
) -> int | None:
    """Compare the range that both logs have, and what one has behind it. Return the first position that differs."""
    start_offset, end_offset = _common_start(store, other_store), min(store.log.max_offset, other_store.log.max_offset)
    offset, first_position = start_offset, None
    block_offset, block, other_block = start_offset, b"", b""
    while offset < end_offset:
        control.check()
        control.report(offset - start_offset, max(1, end_offset - start_offset))
        data, other_data = block[offset - block_offset :], other_block[offset - block_offset :]
        if not data and not other_data:
            length = min(LOG_BLOCK_BYTES, end_offset - offset)
            data, other_data = store.log.read(offset, length), other_store.log.read(offset, length)
            block_offset, block, other_block = offset, data, other_data
        if data != other_data:
            position = offset + first_difference_position(data, other_data)
            first_position = position if first_position is None else first_position
            offset, is_apart = _compare_units(
                control, store, other_store, position, start_offset, end_offset, differences
            )
            if is_apart:
                meeting = _compare_apart(control, store, other_store, offset, differences)
                if meeting is None:
                    return first_position
                offset = meeting
        elif data:
            offset += len(data)
        else:  # no file of either store holds these bytes
            offset = max(offset + 1, min(store.log.align(offset), other_store.log.align(offset)))
    sides: tuple[tuple[StoreSnapshot, OneSide], ...] = ((store, "here"), (other_store, "there"))
    for side_store, side in sides:
        tail_start = _first_item_from(side_store, max(end_offset, start_offset))
        _add_one_sided_range(control, side_store, tail_start, side_store.log.max_offset, side, "tail", differences)
    return first_position


def share_offsets(store: StoreSnapshot, other_store: StoreSnapshot) -> bool:
    """Return False if both logs have messages, and at none of some offsets the same one."""
    start, end = _common_start(store, other_store), min(store.log.max_offset, other_store.log.max_offset)
    if start >= end:
        return not all(
            side_store.log.max_offset > max(side_store.log.min_offset, 0) for side_store in (store, other_store)
        )
    has_units = False
    for number in range(PROBE_COUNT):
        offset = store.log.align(start + (end - start) * number // PROBE_COUNT)
        item, other_item = store.log.unit_at(offset, crc=False), other_store.log.unit_at(offset, crc=False)
        if is_same_message(item, other_item):
            return True
        has_units = has_units or isinstance(item, Unit)
    return not has_units


def is_same_message(item: Item, other_item: Item) -> bool:
    """Return True for two units of the same message, even if some of their bytes differ."""
    if not isinstance(item, Unit) or not isinstance(other_item, Unit):
        return False
    names = ("size", "topic", "queue_id", "queue_offset", "unique_key")
    return all(getattr(item, name) == getattr(other_item, name) for name in names)


def _compare_apart(
    control: Control, store: StoreSnapshot, other_store: StoreSnapshot, start: int, differences: Differences
) -> int | None:
    """Compare the messages from ``start`` on, up to the next offset at which both logs have the same one again. Return
    that offset; None if there is none, and everything up to both ends was compared.
    """
    differences.alignment = "both"
    if differences.shared_until is None:
        differences.shared_until = start
    meeting = _meeting_offset(store, other_store, start)
    differences.apart.append((start, NO_END if meeting is None else meeting))
    starts = (_first_item_from(store, start), _first_item_from(other_store, start))
    log_range, other_range = _ranges_from(store, other_store, *starts, stop=meeting)
    compare_messages(control, log_range, other_range, differences, is_from_start=False, is_to_end=meeting is None)
    return meeting


def align_from(
    control: Control, store: StoreSnapshot, other_store: StoreSnapshot, start: int
) -> AlignedMessages | None:
    """Put the messages of both logs from ``start`` on side by side, for logs whose offsets do not agree from there.

    None if they are too many.
    """
    starts = (
        _first_item_from(store, max(start, store.log.min_offset)),
        _first_item_from(other_store, max(start, other_store.log.min_offset)),
    )
    return align_messages(control, *_ranges_from(store, other_store, *starts))


def _ranges_from(
    store: StoreSnapshot, other_store: StoreSnapshot, start: int, other_start: int, stop: int | None = None
) -> tuple[LogRange, LogRange]:
    ends = (store.log.max_offset, other_store.log.max_offset) if stop is None else (stop, stop)
    queues, other_queues = (
        frozenset((topic, queue_id) for topic, by_id in side_store.queues.by_topic().items() for queue_id in by_id)
        for side_store in (store, other_store)
    )
    log_range = LogRange(store.log, start, ends[0], queues)
    return log_range, LogRange(other_store.log, other_start, ends[1], other_queues)


def _meeting_offset(store: StoreSnapshot, other_store: StoreSnapshot, offset: int) -> int | None:
    """Find an offset behind ``offset`` at which both logs have the same message: at a start of a file or in between."""
    end = min(store.log.max_offset, other_store.log.max_offset)
    probes = {file.start_offset for side_store in (store, other_store) for file in side_store.log.files}
    probes |= {offset + (end - offset) * number // PROBE_COUNT for number in range(1, PROBE_COUNT)}
    for probe in sorted(probe for probe in probes if offset < probe < end):
        aligned = store.log.align(probe)
        item, other_item = store.log.unit_at(aligned, crc=False), other_store.log.unit_at(aligned, crc=False)
        if is_same_message(item, other_item):
            return aligned
    return None


def _first_item_from(store: StoreSnapshot, offset: int) -> int:
    """Return the offset of the first item that holds no byte before ``offset``."""
    if offset >= store.log.max_offset:
        return offset
    item = store.log.unit_at(store.log.align(offset), crc=False)
    return item.end if isinstance(item, Unit) and item.offset < offset else offset


def first_difference_position(data: bytes, other_data: bytes) -> int:
    """Find by bisection the position of the first byte that differs, or the end of the shorter one."""
    equal_length, differing_length = 0, min(len(data), len(other_data))
    while equal_length < differing_length:
        middle = (equal_length + differing_length) // 2
        if data[equal_length : middle + 1] == other_data[equal_length : middle + 1]:
            equal_length = middle + 1
        else:
            differing_length = middle
    return equal_length


def _compare_units(
    control: Control,
    store: StoreSnapshot,
    other_store: StoreSnapshot,
    offset: int,
    min_offset: int,
    end_offset: int,
    differences: Differences,
) -> tuple[int, bool]:
    """Walk both logs from the items around ``offset`` until they hold the same item again. Return its offset and False.

    Return True, and the offset up to which they were compared, if they have no message at the same offset within
    :data:`MAX_STEPS_APART` items.
    """
    start = max(min_offset, min(store.log.align(offset), other_store.log.align(offset), offset))
    walk, other_walk = store.log.walk(start, end_offset, crc=False), other_store.log.walk(start, end_offset, crc=False)
    item, other_item = next(walk), next(other_walk)
    rows = _UnitRows(control, store, other_store, differences)
    apart: Pairs = []  # read since both logs had the same message
    apart_offset, steps = start, 0
    while not (isinstance(item, Stop) and isinstance(other_item, Stop)):
        steps += 1
        if steps % STEPS_PER_CHECK == 0:
            control.check()
            control.report(min(item.offset, other_item.offset) - min_offset, max(1, end_offset - min_offset))
        if len(apart) > MAX_STEPS_APART:
            return apart_offset, True
        if isinstance(item, Stop):
            apart.append((None, other_item))
            other_item = next(other_walk)
        elif isinstance(other_item, Stop) or item.offset < other_item.offset:
            apart.append((item, None))
            item = next(walk)
        elif other_item.offset < item.offset:
            apart.append((None, other_item))
            other_item = next(other_walk)
        else:
            is_equal = _is_equal(store, other_store, item, other_item)
            if is_equal and item.offset >= offset and (isinstance(item, Unit) or not apart):
                rows.add(apart, item.offset)
                return item.offset, False
            if is_same_message(item, other_item):
                rows.add(apart, item.offset)
                apart, apart_offset = [], item.offset + _size(item)
                if not is_equal:
                    rows.add_differing(item, other_item)
            elif not is_equal:
                apart.append((item, other_item))
            item, other_item = next(walk), next(other_walk)
    is_continued = any(isinstance(item, Unit) for item, _ in apart) and other_store.log.max_offset > end_offset
    is_continued |= any(isinstance(item, Unit) for _, item in apart) and store.log.max_offset > end_offset
    if _are_shifted(apart) or is_continued or len(apart) > MAX_CHANGED_IN_PLACE:
        return apart_offset, True
    rows.add(apart, end_offset)
    return end_offset, False


def _are_two_messages(item: Item, other_item: Item) -> bool:
    """Return True if units at the same offset are two messages, and not one that was changed."""
    if {type(item), type(other_item)} == {Unit, Blank}:
        return True  # the blank only fills its file
    if not isinstance(item, Unit) or not isinstance(other_item, Unit):
        return False
    names = ("store_timestamp", "topic", "queue_id", "queue_offset")
    equal_count = sum(bool(getattr(item, name) == getattr(other_item, name)) for name in names)
    if item.unique_key is None or other_item.unique_key is None:
        return equal_count < len(names) - 1
    # If all else is the same, a byte of the key was changed.
    return bool(item.unique_key != other_item.unique_key) and equal_count < len(names)


def _are_shifted(pairs: Pairs) -> bool:
    """Return True if both logs have units among the items, and not all of them at the same offsets."""
    have_units = all(any(isinstance(pair[side], Unit) for pair in pairs) for side in (0, 1))
    return have_units and any(None in pair for pair in pairs)


def _is_equal(store: StoreSnapshot, other_store: StoreSnapshot, item: Item, other_item: Item) -> bool:
    """Compare two items at the same offset, of a long blank only the first bytes."""
    if type(item) is not type(other_item) or isinstance(item, Stop) or isinstance(other_item, Stop):
        return False
    size = min(item.size, LOG_BLOCK_BYTES)
    return item.size == other_item.size and store.log.read(item.offset, size) == other_store.log.read(item.offset, size)


class _UnitRows:
    """Makes rows of items that differ; neighbouring units that only one store has become one row."""

    def __init__(
        self, control: Control, store: StoreSnapshot, other_store: StoreSnapshot, differences: Differences
    ) -> None:
        self._control = control
        self._store, self._other_store, self._differences = store, other_store, differences
        self._side: OneSide = "here"
        self._first: Item | None = None
        self._count = self._end = 0

    def add(self, items: Pairs, end_offset: int) -> None:
        """Add pairs of items, or items without a partner, up to ``end_offset``, where both logs agree again."""
        if _are_shifted(items):
            self._add_messages(items, end_offset)
            return
        for item, other_item in items:
            if item is not None and other_item is not None and not _are_two_messages(item, other_item):
                self.add_differing(item, other_item)
                continue
            if item is not None:
                self._add_one_sided(item, "here")
            if other_item is not None:
                self._add_one_sided(other_item, "there")
        self._flush()

    def _add_one_sided(self, item: Item, side: OneSide) -> None:
        if isinstance(item, Blank):
            return
        if self._first is None or side != self._side or not isinstance(item, Unit) or item.offset != self._end:
            self._flush()
            self._first, self._side, self._count = item, side, 0
        if isinstance(item, Unit):
            place = item.topic, item.queue_id
            self._differences.count_units(side, *place, 1, item.queue_offset, item.queue_offset)
        self._count, self._end = self._count + 1, item.offset + _size(item)
        if not isinstance(item, Unit):
            self._flush()

    def _flush(self) -> None:
        """Add a row for the units collected so far."""
        first_item, self._first = self._first, None
        if first_item is None:
            return
        words = _item_text(first_item)
        if self._count > 1:
            words = f"{first_item.offset:,} … {self._end:,}"
        texts = (words, "") if self._side == "here" else ("", words)
        size = self._end - first_item.offset
        place = (first_item.offset, _queue_place(first_item))
        self._differences.add(Row("unit", self._side, _subject(first_item), self._count, size, "", *texts, *place))

    def _add_messages(self, items: Pairs, end_offset: int) -> None:
        """Both logs have units that are not at the same offsets: compare what they say."""
        starts = [min(pair[side].offset for pair in items if pair[side] is not None) for side in (0, 1)]  # type: ignore[union-attr]
        self._differences.apart.append((min(starts), end_offset))
        log_range = LogRange(self._store.log, starts[0], end_offset)
        other_range = LogRange(self._other_store.log, starts[1], end_offset)
        compare_messages(self._control, log_range, other_range, self._differences, is_from_start=False, is_to_end=False)

    def add_differing(self, item: Item, other_item: Item) -> None:
        """Add a row for two items at the same offset that differ."""
        self._flush()
        fields = ""
        if isinstance(item, Unit) and isinstance(other_item, Unit):
            data, other_data = (
                self._store.log.read(item.offset, item.size),
                self._other_store.log.read(other_item.offset, other_item.size),
            )
            fields = field_list(differing_fields(data, other_data))
        elif type(item) is type(other_item) and _size(item) == _size(other_item) and not isinstance(item, Damage):
            return  # the padding of a blank has no meaning
        named_item = item if isinstance(item, Unit) else other_item
        if isinstance(named_item, Unit):
            place, number = (named_item.topic, named_item.queue_id), named_item.queue_offset
            self._differences.count_units("differs", *place, 1, number, number)
        texts = (_item_text(item), _item_text(other_item))
        row_place = (item.offset, _queue_place(named_item))
        self._differences.add(Row("unit", "differs", _subject(named_item), 1, _size(item), fields, *texts, *row_place))


def _size(item: Item) -> int:
    return 0 if isinstance(item, Stop) else item.size


def _queue_place(item: Item) -> tuple[str, int, int] | None:
    return (item.topic, item.queue_id, item.queue_offset) if isinstance(item, Unit) else None


def _subject(item: Item) -> str:
    return f"{item.topic}/{item.queue_id}/{item.queue_offset:,}" if isinstance(item, Unit) else ""


def _item_text(item: Item) -> str:
    """Describe an item with its offset and size."""
    if isinstance(item, Unit):
        return sentence("unit {offset:,} + {size:,}", offset=item.offset, size=item.size)
    if isinstance(item, Blank):
        return sentence("blank {offset:,} + {size:,}", offset=item.offset, size=item.size)
    return sentence("damage {offset:,} + {size:,}", offset=item.offset, size=_size(item))


def _add_one_sided_range(
    control: Control,
    store: StoreSnapshot,
    start: int,
    stop: int,
    side: OneSide,
    end: Literal["head", "tail"],
    differences: Differences,
) -> None:
    """Add one row for the units of a range where the other log has nothing, counted in bulk."""
    if start >= stop:
        return
    import numpy as np

    from engine.codec.columns import UNIT, UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.inspection.block_scan import scan_log

    first_item, count, offset = None, 0, start
    topics = TopicTable()
    for block in scan_log(store.log, start, stop, crc=False, topics=topics):
        control.check()
        control.report(offset - start, stop - start)
        if not isinstance(block, UnitColumns) or not len(block):
            continue
        if first_item is None:
            first_item = store.log.unit_at(int(block.offset[0]), crc=False)
        offset = int(block.offset[-1])
        rows = np.flatnonzero(block["kind"] == UNIT)
        count += len(rows)
        queues = np.stack([block.topic_id[rows], block.queue_id[rows]])
        places, numbers = np.unique(queues, axis=1, return_inverse=True)
        for i, (topic, queue_id) in enumerate(places.T.tolist()):
            queue_offsets = block.queue_offset[rows][numbers.reshape(-1) == i]
            name = topics.names[topic] if topic >= 0 else "?"
            offsets = int(queue_offsets.min()), int(queue_offsets.max())
            differences.count_units(side, name, queue_id, len(queue_offsets), *offsets)
    words = f"{start:,} … {stop:,}"
    texts = (words, "") if side == "here" else ("", words)
    subject = _subject(first_item) if isinstance(first_item, Unit) else ""
    place = _queue_place(first_item) if isinstance(first_item, Unit) else None
    differences.count_end(side, end, stop if end == "head" else start, count, stop - start)
    differences.add(
        Row(
            "unit",
            side,
            subject,
            max(count, 1),
            stop - start,
            "",
            *texts,
            offset=start,
            queue=place,
            is_beyond=True,
            end=end,
        )
    )


# ---- queues and index ------------------------------------------------------------------------------------------------


def served_span(queue: AnyQueue | None) -> tuple[int, int]:
    """Return [first, end) of the entries that a broker would serve; for a batch queue, of its units by number."""
    if queue is None:
        return 0, 0
    if queue.kind == "batch":
        first_entry = queue.first_number
        return first_entry, max(first_entry, queue.valid_end // queue.unit_size)
    first_entry = max(queue.min_offset, 0)
    return first_entry, max(first_entry, queue.max_offset)


def _queues(control: Control, store: StoreSnapshot, other_store: StoreSnapshot, differences: Differences) -> None:
    queues_here, queues_there = (
        {
            (topic, number): queue
            for topic, queues in side_store.queues.by_topic().items()
            for number, queue in queues.items()
        }
        for side_store in (store, other_store)
    )
    names = sorted(queues_here.keys() | queues_there.keys())
    for done_count, name in enumerate(names):
        control.check()
        control.report(done_count, len(names))
        _queue(control, name, queues_here.get(name), queues_there.get(name), differences)


def _queue(
    control: Control,
    name: tuple[str, int],
    queue: AnyQueue | None,
    other_queue: AnyQueue | None,
    differences: Differences,
) -> None:
    entries, other_entries = served_span(queue), served_span(other_queue)

    def add_one_sided(start: int, end: int, side: OneSide, fields: str) -> None:
        if start < end:
            words = f"{start:,} … {end - 1:,}"
            texts = (words, "") if side == "here" else ("", words)
            subject = f"{name[0]}/{name[1]}"
            differences.add(Row("queue", side, subject, end - start, None, fields, *texts, queue=(*name, start)))

    common_start, common_end = max(entries[0], other_entries[0]), min(entries[1], other_entries[1])
    if common_start >= common_end:
        add_one_sided(*entries, "here", "")
        add_one_sided(*other_entries, "there", "")
        return
    add_one_sided(entries[0], common_start, "here", "minOffset")
    add_one_sided(other_entries[0], common_start, "there", "minOffset")
    assert queue is not None
    assert other_queue is not None
    _entries(control, name, queue, other_queue, common_start, common_end, differences)
    add_one_sided(common_end, entries[1], "here", "maxOffset")
    add_one_sided(common_end, other_entries[1], "there", "maxOffset")


def _entries(
    control: Control,
    name: tuple[str, int],
    queue: AnyQueue,
    other_queue: AnyQueue,
    start: int,
    end: int,
    differences: Differences,
) -> None:
    """Add a row for each run of neighbouring entries in which two queues differ."""
    add, apart = differences.add, differences.apart
    import numpy as np

    for block_start in range(start, end, BLOCK_ENTRIES):
        control.check()
        block_end = min(end, block_start + BLOCK_ENTRIES)
        entries, other_entries = queue.array(block_start, block_end), other_queue.array(block_start, block_end)
        count = min(len(entries), len(other_entries))
        if entries.dtype != other_entries.dtype:
            add(Row("queue", "differs", f"{name[0]}/{name[1]}", end - start, None, "", queue.kind, other_queue.kind))
            return
        if entries.tobytes() == other_entries.tobytes():
            continue
        differing = np.flatnonzero(_are_different(entries[:count], other_entries[:count], apart))
        for run in np.split(differing, np.flatnonzero(np.diff(differing) > 1) + 1) if len(differing) else ():
            run_start, run_end = int(run[0]), int(run[-1]) + 1
            names = [
                str(key) for key in entries.dtype.names or () if (entries[key][run] != other_entries[key][run]).any()
            ]
            offset_here, offset_there = (
                f"{int(array['physical_offset'][run_start]):,}" for array in (entries, other_entries)
            )
            add(
                Row(
                    "queue",
                    "differs",
                    f"{name[0]}/{name[1]}/{block_start + run_start:,}",
                    run_end - run_start,
                    None,
                    ", ".join(names),
                    offset_here,
                    offset_there,
                    queue=(*name, block_start + run_start),
                )
            )


def _are_different(entries: np.ndarray, other_entries: np.ndarray, apart: list[tuple[int, int]]) -> np.ndarray:
    """Return which entries differ. In the ranges ``apart`` of both logs a message has another physical offset."""
    if not apart:
        return entries != other_entries  # type: ignore[no-any-return]
    offsets, other_offsets = entries["physical_offset"], other_entries["physical_offset"]
    differs: np.ndarray = (offsets != other_offsets) & ~(_is_within(offsets, apart) & _is_within(other_offsets, apart))
    for name in entries.dtype.names or ():
        if name != "physical_offset":
            differs |= entries[name] != other_entries[name]
    return differs


def _is_within(offsets: np.ndarray, ranges: list[tuple[int, int]]) -> np.ndarray:
    import numpy as np

    starts, stops = (np.array(column) for column in zip(*ranges, strict=True))
    numbers = np.searchsorted(starts, offsets, side="right") - 1
    return (numbers >= 0) & (offsets < stops[np.maximum(numbers, 0)])


def _index(control: Control, store: StoreSnapshot, other_store: StoreSnapshot, differences: Differences) -> None:
    """Compare the entries of all index files in sequence: the file names differ between stores."""
    files, other_files = store.index_files(), other_store.index_files()
    if differences.alignment != "offsets":
        _index_keys(control, files, other_files, differences.add)
        return
    run: _IndexRun | None = None
    for entry_here, entry_there in step_index(control.check, files, other_files, _common_start(store, other_store)):
        if run is not None and run.takes(entry_here, entry_there):
            run.last_here, run.last_there, run.count = entry_here, entry_there, run.count + 1
            continue
        if run is not None:
            differences.add(run.row())
        run = _IndexRun(entry_here, entry_there, entry_here, entry_there)
    if run is not None:
        differences.add(run.row())


@dataclass(slots=True)
class _IndexRun:
    """Neighbouring entries that only one store has, or that differ at the same offset."""

    here: Entry | None
    there: Entry | None
    last_here: Entry | None
    last_there: Entry | None
    count: int = 1

    def takes(self, entry_here: Entry | None, entry_there: Entry | None) -> bool:
        """Return True if a pair of entries continues the run."""
        return _follows(self.last_here, entry_here) and _follows(self.last_there, entry_there)

    def row(self) -> Row:
        entry = self.here or self.there
        assert entry is not None
        texts = _offsets_text(self.here, self.last_here), _offsets_text(self.there, self.last_there)
        side: Side = "there" if self.here is None else "here"
        subject = f"{entry.file}/{entry.number:,}"
        return Row("index", side, subject, self.count, None, "", *texts, index_here=self.here, index_there=self.there)


def _follows(entry: Entry | None, next_entry: Entry | None) -> bool:
    if entry is None or next_entry is None:
        return entry is next_entry
    is_same_file = entry.file == next_entry.file
    return next_entry.number == (entry.number + 1 if is_same_file else 1)


def _offsets_text(first: Entry | None, last: Entry | None) -> str:
    if first is None or last is None:
        return ""
    return f"{first.offset:,}" if first is last else f"{first.offset:,} … {last.offset:,}"


def _index_keys(control: Control, files: list[IndexReader], other_files: list[IndexReader], add: AddRow) -> None:
    """Compare how often each key hash is in the indexes of two stores whose physical offsets differ."""
    import numpy as np

    sums, other_sums = sum_key_hashes(control.check, files), sum_key_hashes(control.check, other_files)
    if sums == other_sums:
        return
    parts = max(1, -(-max(sums[0], other_sums[0]) // MAX_COUNTED_ENTRIES))
    totals: dict[OneSide, int] = {"here": 0, "there": 0}
    examples: dict[OneSide, list[int]] = {"here": [], "there": []}
    for part in range(parts):
        hashes, counts = count_key_hashes(control.check, files, part, parts)
        other_hashes, other_counts = count_key_hashes(control.check, other_files, part, parts)
        all_hashes = np.union1d(hashes, other_hashes)
        surplus = np.zeros(len(all_hashes), np.int64)
        surplus[np.searchsorted(all_hashes, hashes)] += counts
        surplus[np.searchsorted(all_hashes, other_hashes)] -= other_counts
        for side, side_surplus in (("here", np.maximum(surplus, 0)), ("there", np.maximum(-surplus, 0))):
            totals[side] += int(side_surplus.sum())  # type: ignore[index]
            examples[side] += all_hashes[side_surplus > 0][:MAX_HASHES].tolist()  # type: ignore[index]
    for side, count in totals.items():
        if count:
            listed = examples[side]
            words = ", ".join(map(str, listed[:MAX_HASHES])) + (" …" if len(listed) > MAX_HASHES else "")
            texts = (words, "") if side == "here" else ("", words)
            add(Row("index", side, sentence("entries by key hash"), count, None, "keyHash", *texts))


# ---- tables, checkpoint, state ---------------------------------------------------------------------------------------


def _tables(control: Control, store: StoreSnapshot, other_store: StoreSnapshot, add: AddRow) -> None:
    from engine.inspection.tables import read_tables

    tables, other_tables = (
        {listed_table.name: listed_table for listed_table in read_tables(side_store)}
        for side_store in (store, other_store)
    )
    for name in sorted(tables.keys() | other_tables.keys()):
        control.check()
        table, other_table = tables.get(name), other_tables.get(name)
        if table is None or other_table is None:
            add(Row("config", "here" if other_table is None else "there", name, table=name))
            continue
        if table.file != other_table.file:
            files = (table.file or table.used, other_table.file or other_table.used)
            add(Row("config", "differs", name, 1, None, "", *files, table=name))
        for change in changes(table.value, other_table.value):
            texts = (change.first_text or "", change.second_text or "")
            kind: Kind = "dataVersion" if change.path.startswith(DATA_VERSION) else "config"
            add(Row(kind, "differs", f"{name} {change.path}", 1, None, "", *texts, table=name))


def _checkpoint(store: StoreSnapshot, other_store: StoreSnapshot, add: AddRow) -> None:
    fields, other_fields = _checkpoint_fields(store), _checkpoint_fields(other_store)
    for name in fields | other_fields:
        value, other_value = fields.get(name), other_fields.get(name)
        if value != other_value:
            side: Side = (
                "differs"
                if value is not None and other_value is not None
                else "here"
                if other_value is None
                else "there"
            )
            add(Row("checkpoint", side, name, 1, None, "", _value_text(value), _value_text(other_value)))


def _checkpoint_fields(store: StoreSnapshot) -> dict[str, int | str]:
    """Return the fields of the checkpoint; if it cannot be read, the reason as its only field."""
    from engine.inspection.records import checkpoint

    try:
        page = store.checkpoint()
    except StoreError as error:
        return {"checkpoint": str(error)}
    return checkpoint(page) if page is not None else {}


def _value_text(value: int | str | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else value


def _state(store: StoreSnapshot, other_store: StoreSnapshot, add: AddRow) -> None:
    has_abort, other_has_abort = store.abort, other_store.abort
    if has_abort != other_has_abort:
        add(
            Row(
                "state",
                "here" if has_abort else "there",
                "abort",
                1,
                None,
                "",
                "abort" if has_abort else "",
                "abort" if other_has_abort else "",
            )
        )
    geometry, other_geometry = store.geometry, other_store.geometry
    for name in type(geometry).__dataclass_fields__:
        value, other_value = getattr(geometry, name), getattr(other_geometry, name)
        if isinstance(value, int) and isinstance(other_value, int) and value != other_value:
            add(Row("state", "differs", name, 1, None, "", f"{value:,}", f"{other_value:,}"))
