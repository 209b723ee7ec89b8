"""Every difference of two stores: units, queue entries, index entries, tables, checkpoint, state. No Qt.

Both logs are walked in step at the same physical offsets: what is equal goes by in blocks, undecoded; around bytes
that differ both are walked unit by unit until they meet again. What only one of them has is one row a run. Memory is
two blocks and the rows, of which there are at most :data:`MOST`; what is beyond is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from engine.codec.message import Unit, parts
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.errors import StoreError
from viewer.compare.rebuild_work import BLOCK, span, step_index
from viewer.look.assets import tr
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.tree_values import changes

if TYPE_CHECKING:
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.runtime.control import Control

Kind = Literal["unit", "queue", "index", "config", "checkpoint", "state"]
Side = Literal["here", "there", "differs"]
KINDS: tuple[Kind, ...] = ("unit", "queue", "index", "config", "checkpoint", "state")
LOG_BLOCK = 1 << 20
MOST = 100_000
AT_A_CHECK = 256


@dataclass(frozen=True, slots=True)
class Row:
    """One difference: ``side`` says which store has it; ``subject`` what it is about, ``count`` how many units or
    entries of ``size`` bytes it is, ``here`` and ``there`` what stands in each, and where either can be seen.
    """

    kind: Kind
    side: Side
    subject: str
    count: int = 1
    size: int | None = None
    fields: str = ""
    here: str = ""
    there: str = ""
    place_here: Place | None = None
    place_there: Place | None = None


@dataclass(slots=True)
class Differences:
    """What was found: at most :data:`MOST` rows; how many there are of each kind and side, those not kept too."""

    rows: list[Row] = field(default_factory=list)
    counts: dict[tuple[Kind, Side], int] = field(default_factory=dict)
    compared: int = 0
    """Bytes of log that both stores have."""

    def add(self, row: Row) -> None:
        key = (row.kind, row.side)
        self.counts[key] = self.counts.get(key, 0) + row.count
        if len(self.rows) < MOST:
            self.rows.append(row)

    @property
    def total(self) -> int:
        """All differences: units and entries, not rows."""
        return sum(self.counts.values())

    @property
    def cut(self) -> bool:
        """Whether there are more rows than are kept."""
        return len(self.rows) >= MOST


def compare(control: Control, one: StoreSnapshot, other: StoreSnapshot, found: Differences) -> Differences:
    """Everything in which ``other`` differs from ``one``, into ``found``, which holds the part seen so far where it is
    stopped. Raises StoreError, OSError, and what ``control.check`` raises.
    """
    compare_logs(control, one, other, found.add)
    found.compared = max(0, min(one.log.max_offset, other.log.max_offset) - _low(one, other))
    _queues(control, one, other, found.add)
    _index(control, one, other, found.add)
    _tables(control, one, other, found.add)
    _checkpoint(one, other, found.add)
    _state(one, other, found.add)
    return found


# ---- units -----------------------------------------------------------------------------------------------------------

Item = Unit | Blank | Damage | Stop
Add = Callable[[Row], None]


def _low(one: StoreSnapshot, other: StoreSnapshot) -> int:
    return max(one.log.min_offset, other.log.min_offset, 0)


def compare_logs(control: Control, one: StoreSnapshot, other: StoreSnapshot, add: Add) -> None:
    """The units of both logs."""
    low, ends = _low(one, other), (one.log.max_offset, other.log.max_offset)
    high = min(ends)
    for store, side in ((one, "here"), (other, "there")):
        _alone(control, store, max(store.log.min_offset, 0), min(low, store.log.max_offset), side, add)
    at = low
    while at < high:
        control.check()
        control.report(at - low, max(1, high - low))
        size = min(LOG_BLOCK, high - at)
        mine, theirs = one.log.read(at, size), other.log.read(at, size)
        if mine != theirs:
            at = _apart(control, one, other, at + first_apart(mine, theirs), low, high, add)
        elif mine:
            at += len(mine)
        else:  # no file of either holds these bytes
            at = max(at + 1, min(one.log.align(at), other.log.align(at)))
    for store, side, end in ((one, "here", ends[0]), (other, "there", ends[1])):
        _alone(control, store, _behind(store, max(high, low)), end, side, add)


def _behind(store: StoreSnapshot, offset: int) -> int:
    """Where the first item begins that does not hold a byte before ``offset``."""
    if offset >= store.log.max_offset:
        return offset
    item = store.log.unit_at(store.log.align(offset), crc=False)
    return item.end if isinstance(item, Unit) and item.offset < offset else offset


def first_apart(mine: bytes, theirs: bytes) -> int:
    """Position of the first byte that differs, or of the end of the shorter one."""
    low, high = 0, min(len(mine), len(theirs))
    while low < high:
        middle = (low + high) // 2
        if mine[low : middle + 1] == theirs[low : middle + 1]:
            low = middle + 1
        else:
            high = middle
    return low


def _apart(
    control: Control, one: StoreSnapshot, other: StoreSnapshot, offset: int, floor: int, high: int, add: Add
) -> int:
    """Walk both from the items that hold ``offset`` until they hold the same item again; gives where that is."""
    start = max(floor, min(one.log.align(offset), other.log.align(offset), offset))
    ours, theirs = one.log.walk(start, high, crc=False), other.log.walk(start, high, crc=False)
    mine, their = next(ours), next(theirs)
    run = _Run(one, other, add)
    steps = 0
    while not (isinstance(mine, Stop) and isinstance(their, Stop)):
        steps += 1
        if steps % AT_A_CHECK == 0:
            control.check()
            control.report(min(mine.offset, their.offset) - floor, max(1, high - floor))
        if isinstance(mine, Stop):
            run.one(their, "there")  # type: ignore[arg-type]  # not both have ended
            their = next(theirs)
        elif isinstance(their, Stop) or mine.offset < their.offset:
            run.one(mine, "here")
            mine = next(ours)
        elif their.offset < mine.offset:
            run.one(their, "there")
            their = next(theirs)
        else:
            alike = type(mine) is type(their) and mine.size == their.size
            if not (alike and _equal(one, other, mine.offset, mine.size)):
                run.both(mine, their)
            elif mine.offset >= offset:
                run.end()
                return mine.offset
            mine, their = next(ours), next(theirs)
    run.end()
    return high


def _equal(one: StoreSnapshot, other: StoreSnapshot, offset: int, size: int) -> bool:
    return one.log.read(offset, min(size, LOG_BLOCK)) == other.log.read(offset, min(size, LOG_BLOCK))


class _Run:
    """Rows of what differs; neighbours that only one store has become one row."""

    def __init__(self, one: StoreSnapshot, other: StoreSnapshot, add: Add) -> None:
        self._one, self._other, self._add = one, other, add
        self._side: Literal["here", "there"] = "here"
        self._first: Unit | Blank | Damage | None = None
        self._count = self._end = 0

    def one(self, item: Unit | Blank | Damage, side: Literal["here", "there"]) -> None:
        """Only one of them has ``item``."""
        if self._first is None or side != self._side or not isinstance(item, Unit) or item.offset != self._end:
            self.end()
            self._first, self._side, self._count = item, side, 0
        self._count, self._end = self._count + 1, item.offset + item.size
        if not isinstance(item, Unit):
            self.end()

    def end(self) -> None:
        """What was gathered is a row."""
        first, self._first = self._first, None
        if first is None:
            return
        place, words = places.log(first.offset), _words(first)
        if self._count > 1:
            words = f"{first.offset:,} … {self._end:,}"
        here = self._side == "here"
        self._add(
            Row(
                "unit",
                self._side,
                _subject(first),
                self._count,
                self._end - first.offset,
                "",
                words if here else "",
                "" if here else words,
                place,
                place,
            )
        )

    def both(self, mine: Unit | Blank | Damage, their: Unit | Blank | Damage) -> None:
        """Both have something here, not the same."""
        self.end()
        place, named = places.log(mine.offset), ""
        if isinstance(mine, Unit) and isinstance(their, Unit):
            first, second = self._one.log.read(mine.offset, mine.size), self._other.log.read(their.offset, their.size)
            names = list(_fields(first, second))
            named = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
            if names:
                place = places.log(mine.offset, names[0])
        elif type(mine) is type(their) and mine.size == their.size and not isinstance(mine, Damage):
            return  # what stands in the padding of a blank is nobody's
        subject = _subject(mine if isinstance(mine, Unit) else their)
        self._add(Row("unit", "differs", subject, 1, mine.size, named, _words(mine), _words(their), place, place))


def _fields(mine: bytes, theirs: bytes) -> Iterator[str]:
    """Names of the fields of two units that are not the same."""
    a, b = (
        {part.name: data[part.position : part.position + part.length] for part in parts(data)}
        for data in (mine, theirs)
    )
    yield from (name for name, value in a.items() if b.get(name) != value)
    yield from (name for name in b if name not in a)


def _subject(item: Unit | Blank | Damage) -> str:
    return f"{item.topic}/{item.queue_id}/{item.queue_offset:,}" if isinstance(item, Unit) else ""


def _words(item: Unit | Blank | Damage) -> str:
    """What stands there, with its place and size."""
    kind = {Unit: tr("unit"), Blank: tr("blank"), Damage: tr("damage")}[type(item)]
    return f"{kind} {item.offset:,} + {item.size:,}"


def _alone(control: Control, store: StoreSnapshot, start: int, stop: int, side: str, add: Add) -> None:
    """Units that lie where the other log has nothing: one row, counted in bulk."""
    if start >= stop:
        return
    from engine.codec.columns import UNIT, UnitColumns
    from engine.inspection.block_scan import scan_log

    first, count, at = None, 0, start
    for block in scan_log(store.log, start, stop, crc=False, want_tags=False):
        control.check()
        control.report(at - start, stop - start)
        if isinstance(block, UnitColumns):
            count += int((block["kind"] == UNIT).sum())
            if first is None and len(block):
                first = store.log.unit_at(int(block.offset[0]), crc=False)
            at = int(block.offset[-1]) if len(block) else at
    where = places.log(start)
    words = f"{start:,} … {stop:,}"
    subject = _subject(first) if isinstance(first, Unit) else ""
    here = side == "here"
    add(
        Row(
            "unit",
            "here" if here else "there",
            subject,
            max(count, 1),
            stop - start,
            "",
            words if here else "",
            "" if here else words,
            where if here else None,
            None if here else where,
        )
    )


# ---- queues and index ------------------------------------------------------------------------------------------------


def _queues(control: Control, one: StoreSnapshot, other: StoreSnapshot, add: Add) -> None:
    here, there = (
        {(topic, number): queue for topic, queues in store.topics().items() for number, queue in queues.items()}
        for store in (one, other)
    )
    names = sorted(here.keys() | there.keys())
    for done, name in enumerate(names):
        control.check()
        control.report(done, len(names))
        _queue(control, name, here.get(name), there.get(name), add)


def _queue(
    control: Control, name: tuple[str, int], mine: QueueReader | None, theirs: QueueReader | None, add: Add
) -> None:
    ours, their = span(mine), span(theirs)

    def only(first: int, end: int, side: Literal["here", "there"]) -> None:
        if first < end:
            words, place = f"{first:,} … {end - 1:,}", places.queue(*name, first)
            on_here = side == "here"
            add(
                Row(
                    "queue",
                    side,
                    f"{name[0]}/{name[1]}",
                    end - first,
                    None,
                    "",
                    words if on_here else "",
                    "" if on_here else words,
                    place if on_here else None,
                    None if on_here else place,
                )
            )

    low, high = max(ours[0], their[0]), min(ours[1], their[1])
    if low >= high:
        only(*ours, "here")
        only(*their, "there")
        return
    only(ours[0], low, "here")
    only(their[0], low, "there")
    assert mine is not None
    assert theirs is not None
    _entries(control, name, mine, theirs, low, high, add)
    only(high, ours[1], "here")
    only(high, their[1], "there")


def _entries(
    control: Control, name: tuple[str, int], mine: QueueReader, theirs: QueueReader, low: int, high: int, add: Add
) -> None:
    """Entries that both queues have: one row for each run of neighbours that are not the same."""
    import numpy as np

    for at in range(low, high, BLOCK):
        control.check()
        until = min(high, at + BLOCK)
        first, second = mine.array(at, until), theirs.array(at, until)
        count = min(len(first), len(second))
        if first.dtype != second.dtype:
            add(Row("queue", "differs", f"{name[0]}/{name[1]}", high - low, None, "", mine.kind, theirs.kind))
            return
        if first.tobytes() == second.tobytes():
            continue
        apart = np.flatnonzero(first[:count] != second[:count])
        for run in np.split(apart, np.flatnonzero(np.diff(apart) > 1) + 1) if len(apart) else ():
            begin, end = int(run[0]), int(run[-1]) + 1
            names = [str(key) for key in first.dtype.names or () if (first[key][run] != second[key][run]).any()]
            here, there = (f"{int(array['physical_offset'][begin]):,}" for array in (first, second))
            place = places.queue(*name, at + begin)
            add(
                Row(
                    "queue",
                    "differs",
                    f"{name[0]}/{name[1]}/{at + begin:,}",
                    end - begin,
                    None,
                    ", ".join(names),
                    here,
                    there,
                    place,
                    place,
                )
            )


def _index(control: Control, one: StoreSnapshot, other: StoreSnapshot, add: Add) -> None:
    """Keys of all index files one behind the other: their files have other names in each store."""
    first, second = one.index_files(), other.index_files()
    for mine, theirs in step_index(control, first, second, _low(one, other)):
        entry = mine or theirs
        assert entry is not None
        here = places.index(mine.file, "entry", mine.number) if mine is not None else None
        there = places.index(theirs.file, "entry", theirs.number) if theirs is not None else None
        side: Side = "there" if mine is None else "here"
        add(
            Row(
                "index",
                side,
                f"{entry.file}/{entry.number:,}",
                1,
                None,
                "",
                f"{mine.offset:,}" if mine else "",
                f"{theirs.offset:,}" if theirs else "",
                here,
                there,
            )
        )


# ---- tables, checkpoint, state ---------------------------------------------------------------------------------------


def _tables(control: Control, one: StoreSnapshot, other: StoreSnapshot, add: Add) -> None:
    from engine.inspection.tables import read_tables

    here, there = ({table.name: table for table in read_tables(store)} for store in (one, other))
    for name in sorted(here.keys() | there.keys()):
        control.check()
        place = Place("config", name=name)
        mine, theirs = here.get(name), there.get(name)
        at = (place if mine is not None else None, place if theirs is not None else None)
        if mine is None or theirs is None:
            add(Row("config", "here" if theirs is None else "there", name, place_here=at[0], place_there=at[1]))
            continue
        if mine.file != theirs.file:
            add(Row("config", "differs", name, 1, None, "", mine.file or mine.used, theirs.file or theirs.used, *at))
        for change in changes(mine.value, theirs.value):
            add(
                Row(
                    "config", "differs", f"{name} {change.path}", 1, None, "", change.one or "", change.other or "", *at
                )
            )


def _checkpoint(one: StoreSnapshot, other: StoreSnapshot, add: Add) -> None:
    here, there = _page(one), _page(other)
    place = Place("checkpoint")
    for name in here | there:
        mine, theirs = here.get(name), there.get(name)
        if mine != theirs:
            side: Side = "differs" if mine is not None and theirs is not None else "here" if theirs is None else "there"
            add(Row("checkpoint", side, name, 1, None, "", _plain(mine), _plain(theirs), place, place))


def _page(store: StoreSnapshot) -> dict[str, int | str]:
    """The fields of the checkpoint; of one that is none, what is wrong with it."""
    from engine.inspection.records import checkpoint

    try:
        page = store.checkpoint()
    except StoreError as error:
        return {"checkpoint": str(error)}
    return checkpoint(page) if page is not None else {}


def _plain(value: int | str | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else value


def _state(one: StoreSnapshot, other: StoreSnapshot, add: Add) -> None:
    here, there = one.abort, other.abort
    if here != there:
        place = Place("abort")
        add(
            Row(
                "state",
                "here" if here else "there",
                "abort",
                1,
                None,
                "",
                "abort" if here else "",
                "abort" if there else "",
                place if here else None,
                place if there else None,
            )
        )
    mine, theirs = one.geometry, other.geometry
    for name in type(mine).__dataclass_fields__:
        a, b = getattr(mine, name), getattr(theirs, name)
        if isinstance(a, int) and isinstance(b, int) and a != b:
            add(Row("state", "differs", name, 1, None, "", f"{a:,}", f"{b:,}"))
