"""Differences of two stores as rows, with their totals by kind, and by topic and queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from engine.inspection.index_steps import Entry

Kind = Literal["unit", "queue", "index", "config", "dataVersion", "checkpoint", "state"]
Side = Literal["here", "there", "differs"]
KINDS: tuple[Kind, ...] = ("unit", "queue", "index", "config", "dataVersion", "checkpoint", "state")
Alignment = Literal["offsets", "messages", "both"]
"""How units were paired: by physical offset, by what they say, or by offset up to a fork and by what they say from it.
"""
MAX_ROWS = 100_000


class Control(Protocol):
    """Tells the comparison when to stop, and takes its progress."""

    def check(self) -> None:
        """Raise if the comparison must stop."""

    def report(self, done: float, total: float | None = None) -> None:
        """Take the progress: bytes of log, or queues."""


@dataclass(frozen=True, slots=True)
class Row:
    """A difference between the stores.

    ``side`` says which store has it, ``subject`` names it, ``count`` is its number of units or entries, ``size`` their
    bytes. ``text_here`` and ``text_there`` describe what each store holds. Further fields follow the kind: ``offset``
    in the log, topic, queue id and queue offset of a unit or entry, an index entry of each side, the name of the table.
    """

    kind: Kind
    side: Side
    subject: str
    count: int = 1
    size: int | None = None
    fields: str = ""
    text_here: str = ""
    text_there: str = ""
    offset: int | None = None
    queue: tuple[str, int, int] | None = None
    index_here: Entry | None = None
    index_there: Entry | None = None
    table: str = ""
    is_beyond: bool = False
    """True for units where the other log has no bytes, or has other ones."""
    end: Literal["", "head", "tail"] = ""
    """``tail``: behind the end of the other store's log or queue; ``head``: before its beginning."""
    offset_there: int | None = None
    """Physical offset in the other log, if that is not ``offset``."""


@dataclass(slots=True)
class UnitRange:
    """Units of one queue on one side: their number, and the lowest and highest queue offset."""

    count: int
    min_offset: int
    max_offset: int

    def add(self, count: int, min_offset: int, max_offset: int) -> None:
        self.count += count
        self.min_offset, self.max_offset = min(self.min_offset, min_offset), max(self.max_offset, max_offset)


@dataclass(slots=True)
class MissingEnd:
    """Units of ``side`` behind the end (``tail``) or before the beginning (``head``) of the other store.

    ``offset`` is that end or beginning in the log; None where the ends of the queues were compared.
    """

    side: Side
    end: Literal["head", "tail"]
    offset: int | None
    units: int = 0
    size: int = 0


@dataclass(slots=True)
class Differences:
    """At most :data:`MAX_ROWS` rows, and the number of differences of each kind and side."""

    rows: list[Row] = field(default_factory=list)
    counts: dict[tuple[Kind, Side], int] = field(default_factory=dict)
    compared_bytes: int = 0
    """Bytes of log that both stores have."""
    alignment: Alignment = "offsets"
    shared_until: int | None = None
    """Physical offset from which the logs hold other bytes at the same offsets; None if they never do."""
    apart: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of the log, in order, in which messages were paired by what they say."""
    first_row: Row | None = None
    """The difference with the lowest physical offset in the log, except units before the other log's beginning."""
    queues: dict[tuple[str, int], dict[Side, UnitRange]] = field(default_factory=dict)
    """Units that differ, by topic and queue."""
    ends: dict[tuple[Side, str], MissingEnd] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Count a difference, and keep its row while there is space."""
        key = (row.kind, row.side)
        self.counts[key] = self.counts.get(key, 0) + row.count
        if len(self.rows) < MAX_ROWS:
            self.rows.append(row)
        if (
            row.kind == "unit"
            and row.end != "head"
            and (self.first_row is None or _log_order(row) < _log_order(self.first_row))
        ):
            self.first_row = row

    def take(self, differences: Differences) -> None:
        """Take everything from other differences in place of what is here."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(differences, name))

    def count_units(self, side: Side, topic: str, queue_id: int, count: int, min_offset: int, max_offset: int) -> None:
        """Add units of a queue to the totals, with their lowest and highest queue offset."""
        sides = self.queues.setdefault((topic, queue_id), {})
        if side in sides:
            sides[side].add(count, min_offset, max_offset)
        else:
            sides[side] = UnitRange(count, min_offset, max_offset)

    def count_end(self, side: Side, end: Literal["head", "tail"], offset: int | None, units: int, size: int) -> None:
        """Add units that only one store has because the other one ends earlier or begins later."""
        missing = self.ends.setdefault((side, end), MissingEnd(side, end, offset))
        missing.units += units
        missing.size += size

    @property
    def total(self) -> int:
        """Number of differences in units and entries, not in rows."""
        return sum(self.counts.values())

    @property
    def is_truncated(self) -> bool:
        """Return True if the row limit is reached."""
        return len(self.rows) >= MAX_ROWS


def _log_order(row: Row) -> tuple[bool, int]:
    """Offsets of the two logs cannot be compared: what this log has comes first."""
    return row.side == "there" and row.is_beyond, row.offset if row.offset is not None else 1 << 63
