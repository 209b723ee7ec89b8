"""Work of the worker process for the log: filtering, counting rows and values, exporting. No Qt.

Called as ``jobs.in_worker(title, "viewer.log.work:scan", …)``. A filter sends its hits as they are found; a limit
cuts the rest off. Row counts come from the side index in the cache. Value counts: numbers and topics by columns,
everything else unit by unit; at most :data:`MOST` values are told apart, the units of later values are counted
together. An export's file appears when it is complete, or not at all; the answer says how much of the log was
read, how many rows were written and what was cut.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.files.whole_file import whole_file, whole_text
from engine.rules.masking import Masking
from viewer.runtime.control import Control

if TYPE_CHECKING:
    from engine.codec.columns import UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.config import MessageStoreConfig
    from engine.inspection.log_reader import LogReader
    from engine.query import Filter
    from viewer.runtime.worker import WorkerControl


FIRST_HITS = 0.03
"""Seconds after which the first hits are sent; later ones go every :data:`LATER_HITS` seconds."""
LATER_HITS = 0.15


@dataclass(frozen=True, slots=True)
class Hits:
    """Offsets of units that match, in order, and how far the log has been looked at (absolute offset)."""

    offsets: tuple[int, ...]
    looked: int


@dataclass(frozen=True, slots=True)
class Scanned:
    """End of a scan: ``looked`` is where to continue; ``complete`` if nothing is left to search."""

    looked: int
    units: int
    complete: bool


def scan(
    control: WorkerControl,
    path: Path,
    config: MessageStoreConfig | None,
    text: str,
    now_ms: int,
    start: int,
    end: int,
    max_hits: int,
) -> Scanned:
    """Search units that match ``text`` from ``start`` on; stops after ``max_hits`` hits, or when cancelled.

    ``end`` is the end of the log as the window knows it, for the bar only. Emits :class:`Hits`.
    """
    from engine.codec.columns import UNIT, UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.codec.unit_scan import Stop
    from engine.inspection import open_store
    from engine.inspection.block_scan import scan_log
    from engine.query import parse

    unit_filter = parse(text, now_ms=now_ms)
    topics = TopicTable()
    sender = _Sender(control)
    units, hit_count, looked = 0, 0, start
    with open_store(path, config) as store:
        crc = "crc" in unit_filter.fields
        matcher = unit_filter.on_blocks(topics, store.log.file_name, crc=crc)
        for block in scan_log(store.log, start, crc=crc, topics=topics):
            if isinstance(block, Stop):
                sender.flush(max(looked, block.offset))
                return Scanned(max(looked, block.offset), units, True)
            if not isinstance(block, UnitColumns):
                looked = block.offset + block.size
                continue
            hits = block.offset[matcher.rows(block)].tolist()
            units += int((block["kind"] == UNIT).sum())
            looked = int(block.offset[block.count - 1]) + int(block.size[block.count - 1])
            if hit_count + len(hits) >= max_hits:
                hits = hits[: max_hits - hit_count]
                looked = _behind(block, hits[-1]) if hits else looked
                sender.add(hits)
                sender.flush(looked)
                return Scanned(looked, units, False)
            hit_count += len(hits)
            sender.add(hits)
            sender.send_now_and_then(looked)
            control.report(looked - start, max(end - start, 1))
            if control.cancelled:
                sender.flush(looked)
                return Scanned(looked, units, False)
    return Scanned(looked, units, True)


def first_look(log: LogReader, text: str, now_ms: int, start: int, stop: int) -> tuple[Hits, bool]:
    """Search from ``start`` to ``stop``, unit by unit without numba: for the first hits, before the worker is ready.

    The second value says that the log ended before ``stop``.
    """
    from engine.codec.message import Unit
    from engine.codec.unit_scan import Stop
    from engine.query import parse

    unit_filter = parse(text, now_ms=now_ms)
    test = unit_filter.compile(log.file_name)
    offsets: list[int] = []
    looked, complete = start, False
    for item in log.walk(start, stop, crc="crc" in unit_filter.fields):
        if isinstance(item, Stop):
            complete = item.kind != "limit"
            break
        looked = item.offset + item.size
        if isinstance(item, Unit) and test(item):
            offsets.append(item.offset)
    return Hits(tuple(offsets), looked), complete


def _behind(block: UnitColumns, offset: int) -> int:
    import numpy as np

    row = int(np.searchsorted(block["offset"], offset))
    return offset + int(block.size[row])


class _Sender:
    """Batches hits: the first ones at once, then a few times a second."""

    def __init__(self, control: WorkerControl) -> None:
        self._control = control
        self._held: list[int] = []
        self._due = time.monotonic() + FIRST_HITS

    def add(self, offsets: list[int]) -> None:
        self._held += offsets

    def send_now_and_then(self, looked: int) -> None:
        now = time.monotonic()
        if now >= self._due:
            self.flush(looked)
            self._due = now + LATER_HITS

    def flush(self, looked: int) -> None:
        self._control.emit(Hits(tuple(self._held), looked))
        self._held = []


def count(control: Control, path: Path, config: MessageStoreConfig | None, cache: Path) -> bool:
    """Build the side index of the store at ``path`` in ``cache``; False where it was stopped before the end."""
    from engine.inspection import open_store
    from engine.inspection.side_index import SideIndex

    with open_store(path, config) as store:
        return SideIndex(store.log, cache).build(lambda: control.cancelled, control.report)


MOST = 20_000
"""Distinct values that are told apart."""
LONGEST = 200
"""Characters of a value that count: bodies differ in their first ones."""
MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class Frequencies:
    """(value, units), most frequent first; ``others`` units beyond :data:`MOST` values; how far the log was read."""

    values: tuple[tuple[Any, int], ...]
    units: int
    others: int
    looked: int
    complete: bool


def count_values(
    control: Control,
    path: Path,
    config: MessageStoreConfig | None,
    field: str,
    where: str,
    now_ms: int,
    start: int,
    end: int,
) -> Frequencies:
    """Count the values of ``field`` (a field of the filter language) among the units that match ``where``.

    A list counts each of its items; an absent value is None. ``start`` and ``end`` are for the bar only.
    """
    from engine.codec.columns import UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.inspection import open_store
    from engine.inspection.block_scan import scan_log
    from engine.query import parse

    unit_filter, topics = parse(where, now_ms=now_ms), TopicTable()
    looked = start
    with open_store(path, config) as store:
        counter = _Counter(field, unit_filter, topics, store.log.file_name)
        for block in scan_log(store.log, start, crc=counter.crc, topics=topics):
            if isinstance(block, Stop):
                return counter.answer(max(looked, block.offset), True)
            if not isinstance(block, UnitColumns):
                looked = block.offset + block.size
                continue
            counter.add(block)
            looked = int(block.offset[block.count - 1]) + int(block.size[block.count - 1])
            control.report(looked - start, max(1, end - start))
            if control.cancelled:
                return counter.answer(looked, False)
    return counter.answer(looked, True)


class _Counter:
    """Values counted so far."""

    def __init__(
        self, field: str, unit_filter: Filter, topics: TopicTable, file_of: Callable[[int], str | None]
    ) -> None:
        from engine.query import FIELDS
        from engine.query.fields import property_getters

        self._topics, self._field, self._file_of = topics, field, file_of
        spec = FIELDS.get(field)
        self._get = spec.unit if spec is not None else property_getters(field.removeprefix("properties."))[0]
        self._column = spec.column if spec is not None else None
        self.crc = field == "crc" or "crc" in unit_filter.fields
        self._taken = unit_filter.on_blocks(topics, file_of, crc=self.crc)
        self._counts: Counter[Any] = Counter()
        self._units = self._others = 0

    def add(self, block: UnitColumns) -> None:
        """Count the units of a block."""
        import numpy as np

        rows = self._taken.rows(block)
        if self._column is not None:
            values, times = np.unique(block[self._column][rows], return_counts=True)
            for value, n in zip(values.tolist(), times.tolist(), strict=True):
                self._count(value, n)
        elif self._field == "topic":
            numbers, times = np.unique(block["topic_id"][rows], return_counts=True)
            names = self._topics.names
            for number, n in zip(numbers.tolist(), times.tolist(), strict=True):
                self._count(names[number] if number >= 0 else None, n)
        else:
            for row in rows.tolist():
                self._add_unit(block, row)

    def _add_unit(self, block: UnitColumns, row: int) -> None:
        from engine.query.vector import unit_of

        unit = unit_of(block, row, self.crc)
        value = self._file_of(unit.offset) if self._field == "file" else self._get(unit)
        if isinstance(value, list):
            self._units += 1
            for item in value:
                self._count(item, 1, units=0)
        else:
            self._count(value, 1)

    def _count(self, value: Any, times: int, units: int | None = None) -> None:
        if isinstance(value, str) and len(value) > LONGEST:
            value = value[:LONGEST]
        if value in self._counts or len(self._counts) < MOST:
            self._counts[value] += times
        else:
            self._others += times
        self._units += times if units is None else units

    def answer(self, looked: int, complete: bool) -> Frequencies:
        """Return the counts, most frequent first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0] is None, str(item[0])))
        return Frequencies(tuple(ordered), self._units, self._others, looked, complete)


FORMS = ("jsonl", "csv", "markdown", "raw")
COLUMNS = (
    "physicalOffset",
    "size",
    "file",
    "topic",
    "queueId",
    "queueOffset",
    "storeTimestamp",
    "bornTimestamp",
    "bornHost",
    "storeHost",
    "tags",
    "keys",
    "uniqueKey",
    "sysFlag",
    "flag",
    "reconsumeTimes",
    "crc",
    "bodyLength",
    "properties",
)
"""Columns of CSV and Markdown, with RocketMQ's names; ``body`` behind them where it is wanted."""
WIDEST = 80
"""Characters of a cell in Markdown; longer ones are cut, and counted."""
NONE: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What to export: units that match ``where``, or those at ``offsets`` (None: all that match)."""

    target: Path
    form: str = "jsonl"
    where: str = ""
    offsets: tuple[int, ...] | None = None
    body: bool = False
    masking: Masking = field(default_factory=Masking)


@dataclass(frozen=True, slots=True)
class Exported:
    """Rows written, spans of damage and blanks among them, cells that were cut, bytes of log read, why it ended."""

    rows: int
    odd: int
    cut: int
    looked: int
    reason: str
    complete: bool


def export(
    control: Control, path: Path, config: MessageStoreConfig | None, plan: Plan, now_ms: int, start: int, end: int
) -> Exported:
    """Write ``plan``; ``start`` and ``end`` are the log as the window knows it, for the bar only."""
    from engine.inspection import open_store

    with open_store(path, config) as store:
        if plan.form == "raw":
            with whole_file(plan.target) as raw:
                done = _raw(control, store.log, plan, now_ms, start, end, raw)
                control.check()
        else:
            with whole_text(plan.target, newline="") as out:
                done = _text(control, store.log, plan, now_ms, start, end, out)
                control.check()
    return done


Item = Unit | Blank | Damage | Stop


def _text(control: Control, log: LogReader, plan: Plan, now_ms: int, start: int, end: int, out: IO[str]) -> Exported:
    from engine.inspection import records  # not before somebody exports

    writer = _Writer(out, plan)
    rows = odd = 0
    last_stop: Stop | None = None
    for item in _items(control, log, plan, now_ms, start, end):
        if isinstance(item, Stop):
            last_stop = item
        elif isinstance(item, Unit):
            rows += 1
            writer.write(plan.masking.record(records.unit(item, log.file_name(item.offset), body=plan.body)))
        elif plan.form == "jsonl":
            odd += 1
            to_record = records.blank if isinstance(item, Blank) else records.damage
            writer.write(to_record(item, log.file_name(item.offset)))  # type: ignore[arg-type]
    ended = last_stop if last_stop is not None else Stop(end, "end", "every row was written")
    complete = ended.kind in {"end", "zero", "cut", "damage"}
    if plan.form == "jsonl" and plan.offsets is None:
        writer.write(records.end(ended, rows, complete))
    return Exported(rows, odd, writer.cut, _held(log, start, ended.offset), ended.reason, complete)


def _held(log: LogReader, start: int, end: int) -> int:
    """Bytes between two offsets that files hold: where a file is missing nothing was read."""
    return sum(max(0, min(end, file.end_offset) - max(start, file.start_offset)) for file in log.files)


def _raw(control: Control, log: LogReader, plan: Plan, now_ms: int, start: int, end: int, out: IO[bytes]) -> Exported:
    rows = 0
    last_stop: Stop | None = None
    for item in _items(control, log, plan, now_ms, start, end):
        if isinstance(item, Stop):
            last_stop = item
        elif isinstance(item, Unit):
            rows += 1
            out.write(log.read(item.offset, item.size))
    ended = last_stop if last_stop is not None else Stop(end, "end", "every row was written")
    return Exported(rows, 0, 0, _held(log, start, ended.offset), ended.reason, ended.kind != "limit")


def _items(control: Control, log: LogReader, plan: Plan, now_ms: int, start: int, end: int) -> Iterator[Item]:
    """The units that are wanted, what is no unit where all is wanted, and the stop."""
    if plan.offsets is not None:
        for number, offset in enumerate(plan.offsets):
            control.check()
            control.report(number, len(plan.offsets))
            item = log.unit_at(offset)
            if isinstance(item, Unit):
                yield item
        return
    if not plan.where.strip():
        for number, item in enumerate(log.walk()):
            if number & 63 == 0:
                control.check()
                control.report(max(0, item.offset - start), max(1, end - start))
            yield item
        return
    yield from _matches(control, log, plan.where, now_ms, start, end)


def _matches(control: Control, log: LogReader, where: str, now_ms: int, start: int, end: int) -> Iterator[Item]:
    """Units that match, as the filter line finds them."""
    from engine.codec.columns import UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.inspection.block_scan import scan_log
    from engine.query import parse

    topics = TopicTable()
    matcher = parse(where, now_ms=now_ms).on_blocks(topics, log.file_name)
    for block in scan_log(log, log.min_offset, crc=True, topics=topics):
        control.check()
        if isinstance(block, Stop):
            yield block
            return
        if not isinstance(block, UnitColumns):
            continue
        control.report(max(0, int(block.offset[0]) - start), max(1, end - start))
        yield from matcher.units(block)


class _Writer:
    """Records as lines of one form; ``cut`` counts the cells that were too long."""

    def __init__(self, out: IO[str], plan: Plan) -> None:
        self.cut = 0
        columns = (*COLUMNS, "body") if plan.body else COLUMNS
        self.write = self._begin(out, plan.form, columns)

    def _begin(self, out: IO[str], form: str, columns: tuple[str, ...]) -> Callable[[dict[str, Any]], None]:
        if form == "jsonl":
            return lambda record: print(json.dumps(record, ensure_ascii=False), file=out)
        if form == "csv":
            import csv

            table = csv.writer(out)
            table.writerow(columns)
            return lambda record: table.writerow([_cell(record.get(name)) for name in columns])
        print(f"| {' | '.join(columns)} |", file=out)
        print(f"|{' --- |' * len(columns)}", file=out)
        return lambda record: print(f"| {' | '.join(self._narrow(record.get(name)) for name in columns)} |", file=out)

    def _narrow(self, value: object) -> str:
        text = _cell(value)
        if len(text) > WIDEST:
            self.cut += 1
            text = text[: WIDEST - 1] + "…"
        return text.replace("\\", "\\\\").replace("|", "\\|").replace("\r", " ").replace("\n", " ")


def _cell(value: object) -> str:
    """A value on one line of CSV or Markdown: absent ones are empty, 64-bit numbers stay whole."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return " ".join(str(item) for item in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
