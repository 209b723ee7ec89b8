"""The way from one difference of two logs to the next or the previous one, and to the same message in the other log.

No Qt.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.codec.message import Unit
from engine.inspection.difference_rows import Differences, Row
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.runtime.jobs import Control

NO_END = 1 << 62
SIDE_WORDS = {
    "here": words("only in this store"),
    "there": words("only in the other store"),
    "differs": words("differs"),
}


@dataclass
class DifferenceSteps:
    """The differences of two logs in the order of this log; what only the other log has elsewhere comes last."""

    rows: list[Row] = field(default_factory=list)
    apart: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of the log in which a message has another offset in the other log."""
    is_cut: bool = False
    """True if there are more differences than rows."""
    _current: int | None = None

    @classmethod
    def of(cls, differences: Differences) -> DifferenceSteps:
        """Order the differences of units."""
        rows = sorted((row for row in differences.rows if row.kind == "unit"), key=_order)
        return cls(rows, list(differences.apart), differences.is_truncated)

    def step(self, direction: int, offset: int | None) -> Row | None:
        """Return the next (1) or previous (−1) difference from ``offset``, the unit in front; None behind the last."""
        index = self._index_from(direction, offset)
        if not 0 <= index < len(self.rows):
            return None
        self._current = index
        return self.rows[index]

    def _index_from(self, direction: int, offset: int | None) -> int:
        if self._current is not None and (offset is None or self.rows[self._current].offset == offset):
            return self._current + direction
        key = (False, -1 if offset is None else offset)
        keys = [_order(row) for row in self.rows]
        return bisect_right(keys, key) if direction > 0 else bisect_left(keys, key) - 1

    def words(self) -> str:
        """Describe the difference in front."""
        if self._current is None:
            return ""
        row = self.rows[self._current]
        parts = (tr(SIDE_WORDS[row.side]), row.subject, row.fields, engine_words(row.text_here or row.text_there))
        count = f"{len(self.rows):,}+" if self.is_cut else f"{len(self.rows):,}"
        text = " · ".join(part for part in parts if part)
        return tr("Difference {n:,} of {count}: {what}", n=self._current + 1, count=count, what=text)

    def is_apart(self, offset: int) -> bool:
        """Return True if the other log has other messages at ``offset``."""
        return any(start <= offset < stop for start, stop in self.apart)


def _order(row: Row) -> tuple[bool, int]:
    return row.side == "there" and row.is_beyond, row.offset or 0


def read_steps(control: Control, store: StoreSnapshot, other_store: StoreSnapshot) -> DifferenceSteps:
    """Compare two logs. Raises StoreError, OSError, and what ``control.check`` raises."""
    from engine.inspection.store_differences import compare_logs  # numpy: not before the first rows

    differences = Differences()
    compare_logs(control, store, other_store, differences)
    return DifferenceSteps.of(differences)


def steps_at_opening(store: StoreSnapshot, other_store: StoreSnapshot) -> DifferenceSteps:
    """Return whether the offsets of two logs agree, without a difference yet."""
    from engine.inspection.store_differences import share_offsets  # numpy: not before the first rows

    return DifferenceSteps(apart=[] if share_offsets(store, other_store) else [(0, NO_END)])


def find_counterpart(store: StoreSnapshot, other_store: StoreSnapshot, offset: int) -> int | None:
    """Return the offset at which ``other_store`` has the message at ``offset``; None if it does not have it."""
    from engine.inspection.store_differences import is_same_message  # numpy: not before the first rows

    unit = store.log.unit_at(offset, crc=False)
    if not isinstance(unit, Unit):
        return None
    if is_same_message(unit, other_store.log.unit_at(offset, crc=False)):
        return offset
    queue = other_store.queues.find(unit.topic, unit.queue_id)
    entry = queue.entry(unit.queue_offset) if queue is not None else None
    if entry is None or entry.state != "entry":
        return None
    other_unit = other_store.log.unit_at(entry.physical_offset, crc=False)
    return entry.physical_offset if is_same_message(unit, other_unit) else None
