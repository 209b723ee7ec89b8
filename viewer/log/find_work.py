"""Search in the commit log for the next unit or damage that contains a text or number. No Qt.

Stored bytes are searched block by block; only compressed bodies are unpacked one by one. The search begins at the
cursor, goes to the end, and continues at the other end up to where it began. It runs in the worker through
``jobs.in_worker``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec.message import COMPRESSED, Unit, list_fields
from engine.codec.unit_fields import FIELDS
from engine.codec.unit_scan import Damage, Stop
from viewer.widgets.search_term import SearchTerm, Span

if TYPE_CHECKING:
    from engine.codec.columns import UnitColumns
    from engine.config import MessageStoreConfig
    from engine.inspection.log_reader import LogReader
    from viewer.runtime.control import Control

STEP_BACK = 4 << 20
"""Bytes that a search backwards looks at before the ones in front of them."""
DAMAGE_PIECE = 1 << 20
NEAR_ROWS = 256
MAX_HITS = 100_000
"""Hits in the chosen rows that are counted."""
BODY = "body"
MAX_SPANS = 64
NUMBERS = tuple(field.attribute for field in FIELDS if field.column in {"i4", "i8"})
"""Columns of a scan that are searched for numbers."""


@dataclass(frozen=True, slots=True)
class FindResult:
    """Result of a search: ``offset`` of the row with a hit (None without one), bytes searched, whether it wrapped
    around, and whether it searched everything.
    """

    offset: int | None
    looked: int
    wrapped: bool
    complete: bool


def find(
    control: Control,
    path: Path,
    config: MessageStoreConfig | None,
    sought: SearchTerm | None,
    within: str,
    now_ms: int,
    start_offset: int,
    start: int,
    end: int,
    forward: bool,
) -> FindResult:
    """Find the next row after (or before) ``start_offset`` with ``sought`` (None: any), in units that match ``within``.

    ``start`` and ``end`` bound the log as the window knows it. A forward search begins at ``start_offset`` itself, a
    backward one before it.
    """
    from engine.inspection import open_store

    with open_store(path, config) as store:
        start_offset = _boundary(store.log, start_offset)
        search = _Search(control, store.log, sought, within, now_ms, max(end - start, 1))
        spans = (
            ((start_offset, end), (start, start_offset)) if forward else ((start, start_offset), (start_offset, end))
        )
        for number, (span_start, span_end) in enumerate(spans):
            offset = search.first(span_start, span_end) if forward else search.last(span_start, span_end)
            if offset is not None or control.cancelled:
                return FindResult(offset, search.looked, bool(number), not control.cancelled)
        return FindResult(None, search.looked, True, True)


@dataclass(frozen=True, slots=True)
class Hits:
    """The rows of a range that match, at most :data:`MAX_HITS`, and whether these are all."""

    offsets: tuple[int, ...]
    complete: bool


def hits(
    control: Control,
    path: Path,
    config: MessageStoreConfig | None,
    sought: SearchTerm,
    within: str,
    now_ms: int,
    first_offset: int,
    last_offset: int,
) -> Hits:
    """Find every row that contains ``sought`` from ``first_offset`` to ``last_offset``, both included."""
    from engine.inspection import open_store

    with open_store(path, config) as store:
        item = store.log.unit_at(last_offset, crc=False)
        end_offset = last_offset + 1 if isinstance(item, Stop) else item.offset + item.size
        search = _Search(control, store.log, sought, within, now_ms, max(end_offset - first_offset, 1))
        offsets: list[int] = []
        for offset in search.rows(first_offset, end_offset):
            if len(offsets) == MAX_HITS:
                return Hits(tuple(offsets), False)
            offsets.append(offset)
        return Hits(tuple(offsets), not control.cancelled)


def _boundary(log: LogReader, offset: int) -> int:
    """Return ``offset``, or the end of the unit around it."""
    begin = log.align(offset)
    if begin >= offset:
        return offset
    item = log.unit_at(begin, crc=False)
    return begin + item.size if isinstance(item, Unit) else offset


def find_near(log: LogReader, sought: SearchTerm | None, within: str, now_ms: int, start: int, stop: int) -> FindResult:
    """Return the first row in [start, stop) that contains ``sought``. It goes unit by unit without numba, to answer at
    once.
    """
    matches_filter = _filter(log, within, now_ms)
    looked = start
    for item in log.walk(start, stop, crc=False):
        if isinstance(item, Stop):
            break
        looked = item.offset + item.size
        if item.offset < start:
            continue
        if (
            isinstance(item, Unit)
            and (matches_filter is None or matches_filter(item))
            and unit_holds(log, sought, item)
        ):
            return FindResult(item.offset, looked - start, False, True)
        damaged = isinstance(item, Damage) and matches_filter is None and sought is not None
        if damaged and sought is not None and sought.find(log.read(item.offset, item.size)) is not None:
            return FindResult(item.offset, looked - start, False, True)
    return FindResult(None, looked - start, False, False)


def find_near_back(log: LogReader, sought: SearchTerm | None, within: str, now_ms: int, end: int) -> FindResult:
    """Return the last row before ``end`` that contains ``sought``, among the :data:`NEAR_ROWS` before it."""
    matches_filter = _filter(log, within, now_ms)
    looked = end
    for item in reversed(log.items_before(end, NEAR_ROWS, crc=False)):
        looked = item.offset
        if (
            isinstance(item, Unit)
            and (matches_filter is None or matches_filter(item))
            and unit_holds(log, sought, item)
        ):
            return FindResult(item.offset, end - looked, False, True)
        if isinstance(item, Damage) and matches_filter is None:
            break
    return FindResult(None, end - looked, False, False)


def unit_holds(log: LogReader, sought: SearchTerm | None, unit: Unit) -> bool:
    """Return True if a unit contains ``sought`` in its bytes, in its unpacked body or, for numbers, in its fields.
    Every unit contains None.
    """
    if sought is None:
        return True
    if sought.kind == "number":
        minimum, maximum = sought.range
        return any(minimum <= getattr(unit, name) <= maximum for name in NUMBERS if name != "body_length") or (
            minimum <= len(unit.body) <= maximum
        )
    raw = log.read(unit.offset, unit.size)
    return sought.find(raw) is not None or (
        sought.bodies and bool(unit.sys_flag & COMPRESSED) and _in_body(sought, unit)
    )


def spans_in(log: LogReader, sought: SearchTerm, offset: int, size: int) -> tuple[list[Span], str]:
    """Return the spans of the row at ``offset`` that contain ``sought``, and the field of the first one.

    For numbers the spans are fields. A hit only in the unpacked body gives ``("", "body")``.
    """
    raw = log.read(offset, size)
    item = log.unit_at(offset, crc=False)
    if not isinstance(item, Unit):
        return [(offset + start, offset + end) for start, end in sought.find_all(raw)], ""
    fields = list_fields(raw)
    if sought.kind == "number":
        named = [
            (name, position, count) for name, position, count in fields if _holds_number(sought, raw, position, count)
        ]
        return [(offset + position, offset + position + count) for _, position, count in named], named[0][
            0
        ] if named else ""
    spans = [(offset + start, offset + end) for start, end in sought.find_all(raw, MAX_SPANS)]
    if not spans:
        return [], BODY
    first_position = spans[0][0] - offset
    return spans, next((name for name, position, count in fields if position <= first_position < position + count), "")


def _holds_number(sought: SearchTerm, raw: bytes, position: int, count: int) -> bool:
    minimum, maximum = sought.range
    if count not in {1, 2, 4, 8}:
        return False
    piece = raw[position : position + count]
    return any(minimum <= int.from_bytes(piece, "big", signed=signed) <= maximum for signed in (True, False))


def _in_body(sought: SearchTerm, unit: Unit) -> bool:
    from engine.codec.compression import unpack

    return sought.find(unpack(unit.body, unit.sys_flag).data) is not None


def _filter(log: LogReader, text: str, now_ms: int) -> Callable[[Unit], bool] | None:
    if not text:
        return None
    from engine.query import parse

    return parse(text, now_ms=now_ms).compile(log.file_name)


class _Search:
    """A search through blocks of columns."""

    def __init__(
        self, control: Control, log: LogReader, sought: SearchTerm | None, within: str, now_ms: int, total: int
    ) -> None:
        from engine.codec.topic_table import TopicTable  # numpy is not on the way to the first rows

        self._control, self._log, self._sought, self._total = control, log, sought, total
        from engine.query import parse

        unit_filter = parse(within, now_ms=now_ms)
        self._all = unit_filter.takes_all
        self._crc = "crc" in unit_filter.fields
        self._topics = TopicTable()
        self._taken = unit_filter.on_blocks(self._topics, log.file_name, crc=self._crc)
        self.looked = 0

    def first(self, start: int, end: int) -> int | None:
        """Offset of the first row in [low, high)."""
        return next(self.rows(start, end), None)

    def last(self, start: int, end: int) -> int | None:
        """Offset of the last row in [low, high): piece by piece from the end."""
        while end > start and not self._control.cancelled:
            piece = max(start, self._log.align(max(start, end - STEP_BACK)))
            piece = piece if piece < end else start
            last_hit = None
            for offset in self.rows(piece, end):
                last_hit = offset
            if last_hit is not None:
                return last_hit
            end = piece
        return None

    def rows(self, start: int, end: int) -> Iterator[int]:
        """Offsets of all rows in [low, high) that hold it, in order."""
        from engine.codec.columns import UnitColumns
        from engine.inspection.block_scan import scan_log

        if start >= end:
            return
        searched_to, base = start, self.looked
        for block in scan_log(self._log, start, end, crc=self._crc, topics=self._topics):
            if self._control.cancelled:
                return
            if isinstance(block, UnitColumns):
                for offset in self._in_block(block):
                    self.looked = base + offset - start
                    yield offset
                last_row = block.count - 1
                item_end = int(block.offset[last_row]) + int(block.size[last_row])
            elif isinstance(block, Damage):
                if self._all and self._sought is not None and self._in_damage(block, self._sought):
                    yield block.offset
                item_end = block.offset + block.size
            else:
                item_end = min(block.offset, end)
            searched_to = max(searched_to, item_end)
            self.looked = base + searched_to - start
            self._control.report(self.looked, self._total)

    def _in_block(self, block: UnitColumns) -> Iterator[int]:
        import numpy as np

        sought = self._sought
        if sought is None:
            rows = None
        else:
            hit_rows = self._numbers(block, sought) if sought.kind == "number" else self._bytes(block, sought)
            rows = np.array(hit_rows, np.intp)
        for offset in block.offset[self._taken.rows(block, rows)].tolist():
            yield int(offset)

    def _numbers(self, block: UnitColumns, sought: SearchTerm) -> list[int]:
        import numpy as np

        from engine.codec.columns import UNIT

        minimum, maximum = sought.range
        minimum, maximum = max(minimum, -(1 << 63)), min(maximum, (1 << 63) - 1)
        is_hit = np.zeros(block.count, np.bool_)
        for name in NUMBERS:
            values = block[name].astype(np.int64)
            is_hit |= (values >= minimum) & (values <= maximum)
        is_hit &= block["kind"] == UNIT
        return [int(row) for row in np.flatnonzero(is_hit)]

    def _bytes(self, block: UnitColumns, sought: SearchTerm) -> list[int]:
        """Return the rows with a hit in their stored bytes, and those with a hit only in the unpacked body."""
        import numpy as np

        from engine.codec.columns import UNIT

        offsets = block["offset"].astype(np.int64)
        begin = int(offsets[0]) - block.base
        end = int(offsets[-1]) + int(block.size[block.count - 1]) - block.base
        data = block.buffer[begin:end].tobytes()
        hay, exact = sought.folded(data)
        rows: set[int] = set()
        position = 0
        while (span := exact.find(hay, position)) is not None:
            row = int(np.searchsorted(offsets, int(offsets[0]) + span[0], side="right")) - 1
            row_end = int(offsets[row]) + int(block.size[row]) - int(offsets[0])
            if span[1] <= row_end and block.kind[row] == UNIT:
                rows.add(row)
                position = row_end
            else:
                position = span[0] + 1
        if sought.bodies:
            packed = np.flatnonzero((block["sys_flag"].astype(np.int64) & COMPRESSED != 0) & (block["kind"] == UNIT))
            rows |= {int(row) for row in packed if int(row) not in rows and self._body_holds(block, int(row), sought)}
        return sorted(rows)

    def _body_holds(self, block: UnitColumns, row: int, sought: SearchTerm) -> bool:
        from engine.query.vector import unit_of

        return _in_body(sought, unit_of(block, row, crc=False))

    def _in_damage(self, damage: Damage, sought: SearchTerm) -> bool:
        """Return True if invalid bytes contain it. They are read in overlapping pieces, so hits across a border are
        found.
        """
        overlap = 4096
        for offset in range(damage.offset, damage.offset + damage.size, DAMAGE_PIECE):
            size = min(DAMAGE_PIECE + overlap, damage.offset + damage.size - offset)
            if sought.find(self._log.read(offset, size)) is not None:
                return True
        return False
