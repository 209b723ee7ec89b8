"""All differences of two stores: units, queue entries, index entries, tables, checkpoint, state.

Both logs are walked in step at the same physical offsets. Equal bytes are skipped in blocks, undecoded; around bytes
that differ both logs are walked unit by unit until they hold the same unit again. A run of units that only one store
has is one row. Memory is two blocks and at most :data:`MAX_ROWS` rows; further differences are only counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from engine.codec.message import Unit, list_fields
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.errors import StoreError
from engine.inspection.index_steps import BLOCK_ENTRIES, Entry, step_index
from engine.inspection.tree_values import changes
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import AnyQueue, StoreSnapshot

Kind = Literal["unit", "queue", "index", "config", "checkpoint", "state"]
Side = Literal["here", "there", "differs"]
KINDS: tuple[Kind, ...] = ("unit", "queue", "index", "config", "checkpoint", "state")
LOG_BLOCK_BYTES = 1 << 20
MAX_ROWS = 100_000
STEPS_PER_CHECK = 256


@dataclass(frozen=True, slots=True)
class Row:
    """A difference between the stores.

    ``side`` says which store has it, ``subject`` names it, ``count`` is its number of units or entries, ``size`` their
    bytes. ``here`` and ``there`` describe what each store holds. Of the rest each kind has its own: ``offset`` in the
    log, topic, queue id and queue offset of a unit or entry, an index entry of each side, the name of the table.
    """

    kind: Kind
    side: Side
    subject: str
    count: int = 1
    size: int | None = None
    fields: str = ""
    here: str = ""
    there: str = ""
    offset: int | None = None
    queue: tuple[str, int, int] | None = None
    index_here: Entry | None = None
    index_there: Entry | None = None
    table: str = ""
    is_beyond: bool = False
    """True for units where the other log has no bytes."""


class Control(Protocol):
    """Tells the comparison when to stop, and takes its progress."""

    def check(self) -> None:
        """Raise if the comparison must stop."""

    def report(self, done: float, total: float | None = None) -> None:
        """Take the progress: bytes of log, or queues."""


@dataclass(slots=True)
class Differences:
    """At most :data:`MAX_ROWS` rows, and the number of differences of each kind and side."""

    rows: list[Row] = field(default_factory=list)
    counts: dict[tuple[Kind, Side], int] = field(default_factory=dict)
    compared_bytes: int = 0
    """Bytes of log that both stores have."""

    def add(self, row: Row) -> None:
        key = (row.kind, row.side)
        self.counts[key] = self.counts.get(key, 0) + row.count
        if len(self.rows) < MAX_ROWS:
            self.rows.append(row)

    @property
    def total(self) -> int:
        """Number of differences in units and entries, not in rows."""
        return sum(self.counts.values())

    @property
    def is_truncated(self) -> bool:
        """Return True if the row limit is reached."""
        return len(self.rows) >= MAX_ROWS


def compare(
    control: Control, store: StoreSnapshot, other_store: StoreSnapshot, differences: Differences
) -> Differences:
    """Add every difference of ``other_store`` from ``store`` to ``differences`` and return it.

    After a stop, ``differences`` holds what was compared so far. Raises StoreError, OSError, and what
    ``control.check`` raises.
    """
    compare_logs(control, store, other_store, differences.add)
    differences.compared_bytes = max(
        0, min(store.log.max_offset, other_store.log.max_offset) - _common_start(store, other_store)
    )
    _queues(control, store, other_store, differences.add)
    _index(control, store, other_store, differences.add)
    _tables(control, store, other_store, differences.add)
    _checkpoint(store, other_store, differences.add)
    _state(store, other_store, differences.add)
    return differences


# ---- units -----------------------------------------------------------------------------------------------------------

Item = Unit | Blank | Damage | Stop
AddRow = Callable[[Row], None]


def _common_start(store: StoreSnapshot, other_store: StoreSnapshot) -> int:
    return max(store.log.min_offset, other_store.log.min_offset, 0)


def compare_logs(control: Control, store: StoreSnapshot, other_store: StoreSnapshot, add: AddRow) -> None:
    """Report the differences between the units of both logs."""
    start_offset, log_ends = _common_start(store, other_store), (store.log.max_offset, other_store.log.max_offset)
    end_offset = min(log_ends)
    for side_store, side in ((store, "here"), (other_store, "there")):
        _add_one_sided_range(
            control,
            side_store,
            max(side_store.log.min_offset, 0),
            min(start_offset, side_store.log.max_offset),
            side,
            add,
        )
    offset = start_offset
    while offset < end_offset:
        control.check()
        control.report(offset - start_offset, max(1, end_offset - start_offset))
        length = min(LOG_BLOCK_BYTES, end_offset - offset)
        data, other_data = store.log.read(offset, length), other_store.log.read(offset, length)
        if data != other_data:
            offset = _compare_units(
                control,
                store,
                other_store,
                offset + first_difference_position(data, other_data),
                start_offset,
                end_offset,
                add,
            )
        elif data:
            offset += len(data)
        else:  # no file of either store holds these bytes
            offset = max(offset + 1, min(store.log.align(offset), other_store.log.align(offset)))
    for side_store, side, end in ((store, "here", log_ends[0]), (other_store, "there", log_ends[1])):
        _add_one_sided_range(
            control, side_store, _first_item_from(side_store, max(end_offset, start_offset)), end, side, add
        )


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
    add: AddRow,
) -> int:
    """Walk both logs from the items around ``offset`` until they hold the same item again; return its offset."""
    start = max(min_offset, min(store.log.align(offset), other_store.log.align(offset), offset))
    walk, other_walk = store.log.walk(start, end_offset, crc=False), other_store.log.walk(start, end_offset, crc=False)
    item, other_item = next(walk), next(other_walk)
    rows = _UnitRows(store, other_store, add)
    steps = 0
    while not (isinstance(item, Stop) and isinstance(other_item, Stop)):
        steps += 1
        if steps % STEPS_PER_CHECK == 0:
            control.check()
            control.report(min(item.offset, other_item.offset) - min_offset, max(1, end_offset - min_offset))
        if isinstance(item, Stop):
            rows.add_one_sided(other_item, "there")  # type: ignore[arg-type]  # not both have ended
            other_item = next(other_walk)
        elif isinstance(other_item, Stop) or item.offset < other_item.offset:
            rows.add_one_sided(item, "here")
            item = next(walk)
        elif other_item.offset < item.offset:
            rows.add_one_sided(other_item, "there")
            other_item = next(other_walk)
        else:
            same_shape = type(item) is type(other_item) and item.size == other_item.size
            if not (same_shape and _equal(store, other_store, item.offset, item.size)):
                rows.add_differing(item, other_item)
            elif item.offset >= offset:
                rows.flush()
                return item.offset
            item, other_item = next(walk), next(other_walk)
    rows.flush()
    return end_offset


def _equal(store: StoreSnapshot, other_store: StoreSnapshot, offset: int, size: int) -> bool:
    return store.log.read(offset, min(size, LOG_BLOCK_BYTES)) == other_store.log.read(
        offset, min(size, LOG_BLOCK_BYTES)
    )


class _UnitRows:
    """Collects rows of what differs; neighbouring units that only one store has become one row."""

    def __init__(self, store: StoreSnapshot, other_store: StoreSnapshot, add: AddRow) -> None:
        self._store, self._other_store, self._add = store, other_store, add
        self._side: Literal["here", "there"] = "here"
        self._first: Unit | Blank | Damage | None = None
        self._count = self._end = 0

    def add_one_sided(self, item: Unit | Blank | Damage, side: Literal["here", "there"]) -> None:
        """Add an item that only one store has."""
        if self._first is None or side != self._side or not isinstance(item, Unit) or item.offset != self._end:
            self.flush()
            self._first, self._side, self._count = item, side, 0
        self._count, self._end = self._count + 1, item.offset + item.size
        if not isinstance(item, Unit):
            self.flush()

    def flush(self) -> None:
        """Add a row for the units collected so far."""
        first_item, self._first = self._first, None
        if first_item is None:
            return
        words = _item_text(first_item)
        if self._count > 1:
            words = f"{first_item.offset:,} … {self._end:,}"
        is_here = self._side == "here"
        self._add(
            Row(
                "unit",
                self._side,
                _subject(first_item),
                self._count,
                self._end - first_item.offset,
                "",
                words if is_here else "",
                "" if is_here else words,
                first_item.offset,
                _queue_place(first_item),
            )
        )

    def add_differing(self, item: Unit | Blank | Damage, other_item: Unit | Blank | Damage) -> None:
        """Add a row for two items at the same offset that differ."""
        self.flush()
        fields = ""
        if isinstance(item, Unit) and isinstance(other_item, Unit):
            data, other_data = (
                self._store.log.read(item.offset, item.size),
                self._other_store.log.read(other_item.offset, other_item.size),
            )
            names = list(_fields(data, other_data))
            fields = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
        elif type(item) is type(other_item) and item.size == other_item.size and not isinstance(item, Damage):
            return  # the padding of a blank has no meaning
        named_item = item if isinstance(item, Unit) else other_item
        texts = (_item_text(item), _item_text(other_item))
        place = (item.offset, _queue_place(named_item))
        self._add(Row("unit", "differs", _subject(named_item), 1, item.size, fields, *texts, *place))


def _fields(data_here: bytes, data_there: bytes) -> Iterator[str]:
    """Yield the names of the fields in which two units differ."""
    fields, other_fields = (
        {part.name: data[part.position : part.position + part.length] for part in list_fields(data)}
        for data in (data_here, data_there)
    )
    yield from (name for name, value in fields.items() if other_fields.get(name) != value)
    yield from (name for name in other_fields if name not in fields)


def _queue_place(item: Unit | Blank | Damage) -> tuple[str, int, int] | None:
    return (item.topic, item.queue_id, item.queue_offset) if isinstance(item, Unit) else None


def _subject(item: Unit | Blank | Damage) -> str:
    return f"{item.topic}/{item.queue_id}/{item.queue_offset:,}" if isinstance(item, Unit) else ""


def _item_text(item: Unit | Blank | Damage) -> str:
    """Describe an item with its offset and size."""
    if isinstance(item, Unit):
        return sentence("unit {offset:,} + {size:,}", offset=item.offset, size=item.size)
    if isinstance(item, Blank):
        return sentence("blank {offset:,} + {size:,}", offset=item.offset, size=item.size)
    return sentence("damage {offset:,} + {size:,}", offset=item.offset, size=item.size)


def _add_one_sided_range(control: Control, store: StoreSnapshot, start: int, stop: int, side: str, add: AddRow) -> None:
    """Add one row for the units of a range where the other log has nothing, counted in bulk."""
    if start >= stop:
        return
    from engine.codec.columns import UNIT, UnitColumns
    from engine.inspection.block_scan import scan_log

    first_item, count, offset = None, 0, start
    for block in scan_log(store.log, start, stop, crc=False, with_tags=False):
        control.check()
        control.report(offset - start, stop - start)
        if isinstance(block, UnitColumns):
            count += int((block["kind"] == UNIT).sum())
            if first_item is None and len(block):
                first_item = store.log.unit_at(int(block.offset[0]), crc=False)
            offset = int(block.offset[-1]) if len(block) else offset
    words = f"{start:,} … {stop:,}"
    subject = _subject(first_item) if isinstance(first_item, Unit) else ""
    is_here = side == "here"
    add(
        Row(
            "unit",
            "here" if is_here else "there",
            subject,
            max(count, 1),
            stop - start,
            "",
            words if is_here else "",
            "" if is_here else words,
            start,
            _queue_place(first_item) if isinstance(first_item, Unit) else None,
            is_beyond=True,
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


def _queues(control: Control, store: StoreSnapshot, other_store: StoreSnapshot, add: AddRow) -> None:
    queues_here, queues_there = (
        {
            (topic, number): queue
            for topic, queues in side_store.queues_by_topic().items()
            for number, queue in queues.items()
        }
        for side_store in (store, other_store)
    )
    names = sorted(queues_here.keys() | queues_there.keys())
    for done_count, name in enumerate(names):
        control.check()
        control.report(done_count, len(names))
        _queue(control, name, queues_here.get(name), queues_there.get(name), add)


def _queue(
    control: Control, name: tuple[str, int], queue: AnyQueue | None, other_queue: AnyQueue | None, add: AddRow
) -> None:
    entries, other_entries = served_span(queue), served_span(other_queue)

    def only(start: int, end: int, side: Literal["here", "there"]) -> None:
        if start < end:
            words = f"{start:,} … {end - 1:,}"
            on_here = side == "here"
            add(
                Row(
                    "queue",
                    side,
                    f"{name[0]}/{name[1]}",
                    end - start,
                    None,
                    "",
                    words if on_here else "",
                    "" if on_here else words,
                    queue=(*name, start),
                )
            )

    common_start, common_end = max(entries[0], other_entries[0]), min(entries[1], other_entries[1])
    if common_start >= common_end:
        only(*entries, "here")
        only(*other_entries, "there")
        return
    only(entries[0], common_start, "here")
    only(other_entries[0], common_start, "there")
    assert queue is not None
    assert other_queue is not None
    _entries(control, name, queue, other_queue, common_start, common_end, add)
    only(common_end, entries[1], "here")
    only(common_end, other_entries[1], "there")


def _entries(
    control: Control,
    name: tuple[str, int],
    queue: AnyQueue,
    other_queue: AnyQueue,
    start: int,
    end: int,
    add: AddRow,
) -> None:
    """Add a row for each run of neighbouring entries in which two queues differ."""
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
        differing = np.flatnonzero(entries[:count] != other_entries[:count])
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


def _index(control: Control, store: StoreSnapshot, other_store: StoreSnapshot, add: AddRow) -> None:
    """Compare the entries of all index files in sequence: the file names differ between stores."""
    files, other_files = store.index_files(), other_store.index_files()
    for entry_here, entry_there in step_index(control.check, files, other_files, _common_start(store, other_store)):
        entry = entry_here or entry_there
        assert entry is not None
        side: Side = "there" if entry_here is None else "here"
        add(
            Row(
                "index",
                side,
                f"{entry.file}/{entry.number:,}",
                1,
                None,
                "",
                f"{entry_here.offset:,}" if entry_here else "",
                f"{entry_there.offset:,}" if entry_there else "",
                index_here=entry_here,
                index_there=entry_there,
            )
        )


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
            add(Row("config", "differs", f"{name} {change.path}", 1, None, "", *texts, table=name))


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
