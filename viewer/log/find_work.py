"""Finding in the commit log: the next unit, or span of damage, that holds what is looked for. No Qt.

Stored bytes are searched a block at a time; only compressed bodies are unpacked one by one. It begins at the cursor,
goes to the end, then on from the other end to where it began. Runs in the worker process through ``jobs.in_worker``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec.message import COMPRESSED, Unit, parts
from engine.codec.unit_fields import FIELDS
from engine.codec.unit_scan import Damage, Stop
from viewer.widgets.search_term import Sought, Span

if TYPE_CHECKING:
    from engine.codec.columns import UnitColumns
    from engine.config import MessageStoreConfig
    from engine.inspection.log_reader import LogReader
    from viewer.runtime.control import Control

STEP_BACK = 4 << 20
"""Bytes that a search backwards looks at before the ones in front of them."""
DAMAGE_PIECE = 1 << 20
NEAR_ROWS = 256
MOST_HITS = 100_000
"""Hits in the chosen rows that are counted."""
BODY = "body"
MOST_SPANS = 64
NUMBERS = tuple(field.attribute for field in FIELDS if field.column in {"i4", "i8"})
"""Columns of a scan in which numbers are looked for."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to: ``offset`` of the row that holds it (None: nothing), bytes looked at, whether it went
    round, and whether it looked everywhere it was asked to.
    """

    offset: int | None
    looked: int
    wrapped: bool
    complete: bool


def find(
    control: Control,
    path: Path,
    config: MessageStoreConfig | None,
    sought: Sought | None,
    within: str,
    now_ms: int,
    at: int,
    start: int,
    end: int,
    forward: bool,
) -> Found:
    """The next row behind (or before) ``at`` that holds ``sought`` (None: any), among units that match ``within``.

    ``start`` and ``end`` bound the log as the window knows it. A forward search begins at ``at`` itself, a backward
    one in front of it.
    """
    from engine.inspection import open_store

    with open_store(path, config) as store:
        at = _boundary(store.log, at)
        search = _Search(control, store.log, sought, within, now_ms, max(end - start, 1))
        spans = ((at, end), (start, at)) if forward else ((start, at), (at, end))
        for number, (low, high) in enumerate(spans):
            offset = search.first(low, high) if forward else search.last(low, high)
            if offset is not None or control.cancelled:
                return Found(offset, search.looked, bool(number), not control.cancelled)
        return Found(None, search.looked, True, True)


@dataclass(frozen=True, slots=True)
class Hits:
    """All rows of a stretch that hold what was sought, and whether these are all: at most :data:`MOST_HITS`."""

    offsets: tuple[int, ...]
    complete: bool


def hits(
    control: Control,
    path: Path,
    config: MessageStoreConfig | None,
    sought: Sought,
    within: str,
    now_ms: int,
    first: int,
    last: int,
) -> Hits:
    """Every row that holds ``sought`` from the one at ``first`` to the one at ``last``, both included."""
    from engine.inspection import open_store

    with open_store(path, config) as store:
        item = store.log.unit_at(last, crc=False)
        high = last + 1 if isinstance(item, Stop) else item.offset + item.size
        search = _Search(control, store.log, sought, within, now_ms, max(high - first, 1))
        found: list[int] = []
        for offset in search.rows(first, high):
            if len(found) == MOST_HITS:
                return Hits(tuple(found), False)
            found.append(offset)
        return Hits(tuple(found), not control.cancelled)


def _boundary(log: LogReader, at: int) -> int:
    """``at``, or the end of the unit that it lies inside of."""
    begin = log.align(at)
    if begin >= at:
        return at
    item = log.unit_at(begin, crc=False)
    return begin + item.size if isinstance(item, Unit) else at


def find_near(log: LogReader, sought: Sought | None, within: str, now_ms: int, at: int, stop: int) -> Found:
    """The first row from ``at`` to ``stop`` that holds ``sought``, unit by unit without numba: an answer at once."""
    wanted = _filter(log, within, now_ms)
    looked = at
    for item in log.walk(at, stop, crc=False):
        if isinstance(item, Stop):
            break
        looked = item.offset + item.size
        if item.offset < at:
            continue
        if isinstance(item, Unit) and (wanted is None or wanted(item)) and unit_holds(log, sought, item):
            return Found(item.offset, looked - at, False, True)
        damaged = isinstance(item, Damage) and wanted is None and sought is not None
        if damaged and sought is not None and sought.find(log.read(item.offset, item.size)) is not None:
            return Found(item.offset, looked - at, False, True)
    return Found(None, looked - at, False, False)


def find_near_back(log: LogReader, sought: Sought | None, within: str, now_ms: int, at: int) -> Found:
    """The last row in front of ``at`` that holds ``sought``, among the :data:`NEAR_ROWS` before it."""
    wanted = _filter(log, within, now_ms)
    looked = at
    for item in reversed(log.items_before(at, NEAR_ROWS, crc=False)):
        looked = item.offset
        if isinstance(item, Unit) and (wanted is None or wanted(item)) and unit_holds(log, sought, item):
            return Found(item.offset, at - looked, False, True)
        if isinstance(item, Damage) and wanted is None:
            break
    return Found(None, at - looked, False, False)


def unit_holds(log: LogReader, sought: Sought | None, unit: Unit) -> bool:
    """Whether a unit holds it in its bytes, its unpacked body, or, for numbers, its fields; every unit holds None."""
    if sought is None:
        return True
    if sought.kind == "number":
        low, high = sought.range
        return any(low <= getattr(unit, name) <= high for name in NUMBERS if name != "body_length") or (
            low <= len(unit.body) <= high
        )
    raw = log.read(unit.offset, unit.size)
    return sought.find(raw) is not None or (
        sought.bodies and bool(unit.sys_flag & COMPRESSED) and _in_body(sought, unit)
    )


def spans_in(log: LogReader, sought: Sought, offset: int, size: int) -> tuple[list[Span], str]:
    """Where the row at ``offset`` holds it, as absolute spans, and the name of the field that holds the first; for
    numbers the fields, for a hit that only the unpacked body has ``("", "body")``.
    """
    raw = log.read(offset, size)
    item = log.unit_at(offset, crc=False)
    if not isinstance(item, Unit):
        return [(offset + low, offset + high) for low, high in sought.find_all(raw)], ""
    fields = parts(raw)
    if sought.kind == "number":
        named = [(name, at, count) for name, at, count in fields if _holds_number(sought, raw, at, count)]
        return [(offset + at, offset + at + count) for _, at, count in named], named[0][0] if named else ""
    found = [(offset + low, offset + high) for low, high in sought.find_all(raw, MOST_SPANS)]
    if not found:
        return [], BODY
    first = found[0][0] - offset
    return found, next((name for name, at, count in fields if at <= first < at + count), "")


def _holds_number(sought: Sought, raw: bytes, at: int, count: int) -> bool:
    low, high = sought.range
    if count not in {1, 2, 4, 8}:
        return False
    piece = raw[at : at + count]
    return any(low <= int.from_bytes(piece, "big", signed=signed) <= high for signed in (True, False))


def _in_body(sought: Sought, unit: Unit) -> bool:
    from engine.codec.compression import unpack

    return sought.find(unpack(unit.body, unit.sys_flag).data) is not None


def _filter(log: LogReader, text: str, now_ms: int) -> Callable[[Unit], bool] | None:
    if not text:
        return None
    from engine.query import parse

    return parse(text, now_ms=now_ms).compile(log.file_name)


class _Search:
    """One search through blocks of columns."""

    def __init__(
        self, control: Control, log: LogReader, sought: Sought | None, within: str, now_ms: int, total: int
    ) -> None:
        from engine.codec.topic_table import TopicTable  # numpy is not on the way to the first rows

        self._control, self._log, self._sought, self._total = control, log, sought, total
        from engine.query import parse

        wanted = parse(within, now_ms=now_ms)
        self._all = wanted.takes_all
        self._crc = "crc" in wanted.fields
        self._topics = TopicTable()
        self._taken = wanted.on_blocks(self._topics, log.file_name, crc=self._crc)
        self.looked = 0

    def first(self, low: int, high: int) -> int | None:
        """Offset of the first row in [low, high)."""
        return next(self.rows(low, high), None)

    def last(self, low: int, high: int) -> int | None:
        """Offset of the last row in [low, high): piece by piece from the end."""
        while high > low and not self._control.cancelled:
            piece = max(low, self._log.align(max(low, high - STEP_BACK)))
            piece = piece if piece < high else low
            found = None
            for offset in self.rows(piece, high):
                found = offset
            if found is not None:
                return found
            high = piece
        return None

    def rows(self, low: int, high: int) -> Iterator[int]:
        """Offsets of all rows in [low, high) that hold it, in order."""
        from engine.codec.columns import UnitColumns
        from engine.inspection.block_scan import scan_log

        if low >= high:
            return
        before, base = low, self.looked
        for block in scan_log(self._log, low, high, crc=self._crc, topics=self._topics):
            if self._control.cancelled:
                return
            if isinstance(block, UnitColumns):
                for offset in self._in_block(block):
                    self.looked = base + offset - low
                    yield offset
                last = block.count - 1
                after = int(block.offset[last]) + int(block.size[last])
            elif isinstance(block, Damage):
                if self._all and self._sought is not None and self._in_damage(block, self._sought):
                    yield block.offset
                after = block.offset + block.size
            else:
                after = min(block.offset, high)
            before = max(before, after)
            self.looked = base + before - low
            self._control.report(self.looked, self._total)

    def _in_block(self, block: UnitColumns) -> Iterator[int]:
        import numpy as np

        sought = self._sought
        if sought is None:
            rows = None
        else:
            found = self._numbers(block, sought) if sought.kind == "number" else self._bytes(block, sought)
            rows = np.array(found, np.intp)
        for offset in block.offset[self._taken.rows(block, rows)].tolist():
            yield int(offset)

    def _numbers(self, block: UnitColumns, sought: Sought) -> list[int]:
        import numpy as np

        from engine.codec.columns import UNIT

        low, high = sought.range
        low, high = max(low, -(1 << 63)), min(high, (1 << 63) - 1)
        found = np.zeros(block.count, np.bool_)
        for name in NUMBERS:
            values = block[name].astype(np.int64)
            found |= (values >= low) & (values <= high)
        found &= block["kind"] == UNIT
        return [int(row) for row in np.flatnonzero(found)]

    def _bytes(self, block: UnitColumns, sought: Sought) -> list[int]:
        """Rows with an occurrence in their stored bytes, and those whose unpacked body has one."""
        import numpy as np

        from engine.codec.columns import UNIT

        offsets = block["offset"].astype(np.int64)
        begin = int(offsets[0]) - block.base
        end = int(offsets[-1]) + int(block.size[block.count - 1]) - block.base
        data = block.buffer[begin:end].tobytes()
        hay, exact = sought.folded(data)
        rows: set[int] = set()
        at = 0
        while (span := exact.find(hay, at)) is not None:
            row = int(np.searchsorted(offsets, int(offsets[0]) + span[0], side="right")) - 1
            row_end = int(offsets[row]) + int(block.size[row]) - int(offsets[0])
            if span[1] <= row_end and block.kind[row] == UNIT:
                rows.add(row)
                at = row_end
            else:
                at = span[0] + 1
        if sought.bodies:
            packed = np.flatnonzero((block["sys_flag"].astype(np.int64) & COMPRESSED != 0) & (block["kind"] == UNIT))
            rows |= {int(row) for row in packed if int(row) not in rows and self._body_holds(block, int(row), sought)}
        return sorted(rows)

    def _body_holds(self, block: UnitColumns, row: int, sought: Sought) -> bool:
        from engine.query.vector import unit_of

        return _in_body(sought, unit_of(block, row, crc=False))

    def _in_damage(self, damage: Damage, sought: Sought) -> bool:
        """Whether bytes that are no unit hold it; occurrences over the border of two pieces are seen too."""
        overlap = 4096
        for at in range(damage.offset, damage.offset + damage.size, DAMAGE_PIECE):
            size = min(DAMAGE_PIECE + overlap, damage.offset + damage.size - at)
            if sought.find(self._log.read(at, size)) is not None:
                return True
        return False
