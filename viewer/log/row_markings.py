"""Marks that a user has put on rows of the log (marked, ignored, time reference), saved outside of the store. No Qt."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.files.atomic_file import write_atomically
from viewer.log.colour_rules import TINTS
from viewer.log.rows import LogRow, UnitRow
from viewer.look.assets import tr
from viewer.look.formats import clock
from viewer.runtime.bookmarks import file_of
from viewer.runtime.file_saver import VERSION, read_saved
from viewer.widgets.columns import RowAppearance


@dataclass
class RowMarkings:
    """Offsets of rows that are marked or ignored, and the reference: the offset and store time (ms) of a row."""

    marked: set[int] = field(default_factory=set)
    ignored: set[int] = field(default_factory=set)
    reference: tuple[int, int] | None = None

    def clear(self) -> None:
        """Remove all marks, for another store."""
        self.marked.clear()
        self.ignored.clear()
        self.reference = None

    def style(self, row: LogRow, row_style: RowAppearance | None) -> RowAppearance | None:
        """Add the user's marks to ``row_style``. Marks of problems win, then the user's marks, then rules."""
        style = row_style
        if isinstance(row, UnitRow) and row.tint:
            fill = TINTS[row.tint][0]
            style = (
                replace(row_style, fill=row_style.fill or fill)
                if row_style is not None
                else RowAppearance(f"rule.{row.tint}", fill)
            )
        if row.offset in self.ignored:
            return replace(style, tone="text3", mark="out") if style is not None else RowAppearance("out", tone="text3")
        mark = "mark" if row.offset in self.marked else ""
        if self.reference is not None and self.reference[0] == row.offset:
            mark = "clock"
        if not mark or (row_style is not None and row_style.mark in {"error", "warn"}):
            return style
        return replace(style, mark=mark) if style is not None else RowAppearance(mark)

    def verdict(self, row: LogRow, row_verdict: str) -> str:
        """Return what a screen reader says first, with the marks of the row."""
        parts = [row_verdict]
        if row.offset in self.marked:
            parts.append(tr("marked"))
        if row.offset in self.ignored:
            parts.append(tr("ignored"))
        if self.reference is not None and self.reference[0] == row.offset:
            parts.append(tr("time reference"))
        if isinstance(row, UnitRow) and row.rule:
            parts.append(row.rule)
        return ", ".join(part for part in parts if part)

    def time(self, row: LogRow) -> str:
        """Return the store time, or the time before or after the reference."""
        if not isinstance(row, UnitRow):
            return ""
        return (
            clock(row.store_timestamp)
            if self.reference is None
            else time_difference(row.store_timestamp - self.reference[1])
        )


def time_difference(ms: int) -> str:
    """Format a time difference, such as ``+0.225``, ``−12.345``, ``+1:02:03.456``."""
    sign, ms = ("−" if ms < 0 else "+"), abs(ms)
    seconds, milliseconds = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{sign}{hours:,}:{minutes:02d}:{seconds:02d}.{milliseconds:03d}"
    return f"{sign}{minutes}:{seconds:02d}.{milliseconds:03d}" if minutes else f"{sign}{seconds}.{milliseconds:03d}"


MAX_SAVED_ROWS = 100_000
"""Maximum number of saved rows of a kind."""


@dataclass(frozen=True, slots=True)
class RowMarks:
    """Offsets of units that are marked and ignored; offset and store time (ms since the epoch) of the reference."""

    marked: frozenset[int] = frozenset()
    ignored: frozenset[int] = frozenset()
    reference: tuple[int, int] | None = None


def marks_file(folder: Path, store: Path) -> Path:
    """Return the file below the settings' ``folder`` that holds the marks of ``store``."""
    return folder / "marks" / file_of(folder, store).name


def read_marks(file: Path) -> RowMarks:
    """Read the marks in ``file``; raises like :func:`read_saved`."""
    saved = read_saved(file)
    reference = _offsets(saved.get("reference"))
    pair = (reference[0], reference[1]) if len(reference) == 2 else None
    return RowMarks(frozenset(_offsets(saved.get("marked"))), frozenset(_offsets(saved.get("ignored"))), pair)


def _offsets(values: object) -> list[int]:
    return [n for n in values if type(n) is int and n >= 0][:MAX_SAVED_ROWS] if isinstance(values, list) else []


def write_marks(file: Path, store: Path, marks: RowMarks) -> None:
    """Save the marks.

    The file is replaced atomically or stays as it was. Without marks it is removed. Raises OSError.
    """
    if marks == RowMarks():
        file.unlink(missing_ok=True)
        return
    document = {
        "version": VERSION,
        "store": str(store),
        "marked": sorted(marks.marked)[:MAX_SAVED_ROWS],
        "ignored": sorted(marks.ignored)[:MAX_SAVED_ROWS],
        "reference": list(marks.reference or ()),
    }
    write_atomically(file, json.dumps(document))
