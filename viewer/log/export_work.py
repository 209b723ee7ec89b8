"""Write rows of the log to a file, in the worker process. No Qt.

The file appears when it is complete, or not at all. The result says how much of the log was read, how many rows were
written and what was cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.files.atomic_file import atomic_file, atomic_text
from engine.rules.masking import Masking
from viewer.runtime.control import Control

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.log_reader import LogReader


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
"""Columns of CSV and Markdown, named as in RocketMQ; ``body`` follows on request."""
MAX_CELL_CHARACTERS = 80
"""Characters of a cell in Markdown; longer ones are cut, and counted."""


@dataclass(frozen=True)
class ExportPlan:
    """The units to export: those that match ``where``, or those at ``offsets`` (None: all that match)."""

    target: Path
    form: str = "jsonl"
    where: str = ""
    offsets: tuple[int, ...] | None = None
    body: bool = False
    masking: Masking = field(default_factory=Masking)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Rows written, spans of damage and blanks among them, cells that were cut, bytes of log read, why it ended."""

    rows: int
    odd: int
    cut: int
    looked: int
    reason: str
    complete: bool


def export(
    control: Control, path: Path, config: MessageStoreConfig | None, plan: ExportPlan, now_ms: int, start: int, end: int
) -> ExportResult:
    """Write ``plan``; ``start`` and ``end`` are the log as the window knows it, for the bar only."""
    from engine.inspection import open_store

    with open_store(path, config) as store:
        if store.capsule is not None and plan.form == "raw":
            store.require_bodies()
        if store.capsule is not None:
            plan = replace(plan, masking=replace(plan.masking, bodies=True))
        if plan.form == "raw":
            with atomic_file(plan.target) as raw:
                done = _raw(control, store.log, plan, now_ms, start, end, raw)
                control.check()
        else:
            with atomic_text(plan.target, newline="") as out:
                done = _text(control, store.log, plan, now_ms, start, end, out)
                control.check()
    return done


Item = Unit | Blank | Damage | Stop


def _text(
    control: Control, log: LogReader, plan: ExportPlan, now_ms: int, start: int, end: int, out: IO[str]
) -> ExportResult:
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
    return ExportResult(rows, odd, writer.cut, _held(log, start, ended.offset), ended.reason, complete)


def _held(log: LogReader, start: int, end: int) -> int:
    """Return the bytes between two offsets that files contain. Missing files count as not read."""
    return sum(max(0, min(end, file.end_offset) - max(start, file.start_offset)) for file in log.files)


def _raw(
    control: Control, log: LogReader, plan: ExportPlan, now_ms: int, start: int, end: int, out: IO[bytes]
) -> ExportResult:
    rows = 0
    last_stop: Stop | None = None
    for item in _items(control, log, plan, now_ms, start, end):
        if isinstance(item, Stop):
            last_stop = item
        elif isinstance(item, Unit):
            rows += 1
            out.write(log.read(item.offset, item.size))
    ended = last_stop if last_stop is not None else Stop(end, "end", "every row was written")
    return ExportResult(rows, 0, 0, _held(log, start, ended.offset), ended.reason, ended.kind != "limit")


def _items(control: Control, log: LogReader, plan: ExportPlan, now_ms: int, start: int, end: int) -> Iterator[Item]:
    """Yield the chosen units, for a complete export also other items, and the stop."""
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

    def __init__(self, out: IO[str], plan: ExportPlan) -> None:
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
        if len(text) > MAX_CELL_CHARACTERS:
            self.cut += 1
            text = text[: MAX_CELL_CHARACTERS - 1] + "…"
        return text.replace("\\", "\\\\").replace("|", "\\|").replace("\r", " ").replace("\n", " ")


def _cell(value: object) -> str:
    """Return a value as one line of CSV or Markdown. Absent values are empty, 64-bit numbers keep all digits."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return " ".join(str(item) for item in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
