"""What a person has put on rows of the log: marks, ignored rows, the time that counts as zero; and how that is
kept, for each store outside of it. No Qt.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.whole_file import put_whole
from viewer.log.colour_rules import TINTS
from viewer.log.rows import LogRow, UnitRow
from viewer.look.assets import tr
from viewer.look.formats import clock
from viewer.runtime.bookmarks import file_of
from viewer.runtime.kept_files import read_kept
from viewer.widgets.columns import RowLook


@dataclass
class RowDress:
    """Offsets of rows that are marked or ignored, and the reference: the offset and store time (ms) of a row."""

    marked: set[int] = field(default_factory=set)
    ignored: set[int] = field(default_factory=set)
    reference: tuple[int, int] | None = None

    def clear(self) -> None:
        """Another store."""
        self.marked.clear()
        self.ignored.clear()
        self.reference = None

    def look(self, row: LogRow, own: RowLook | None) -> RowLook | None:
        """``own`` with what was put on the row: trouble keeps its mark, then comes what a person did, then rules."""
        made = own
        if isinstance(row, UnitRow) and row.tint:
            fill = TINTS[row.tint][0]
            made = replace(own, fill=own.fill or fill) if own is not None else RowLook(f"rule.{row.tint}", fill)
        if row.offset in self.ignored:
            return replace(made, tone="text3", mark="out") if made is not None else RowLook("out", tone="text3")
        mark = "mark" if row.offset in self.marked else ""
        if self.reference is not None and self.reference[0] == row.offset:
            mark = "clock"
        if not mark or (own is not None and own.mark in {"error", "warn"}):
            return made
        return replace(made, mark=mark) if made is not None else RowLook(mark)

    def verdict(self, row: LogRow, own: str) -> str:
        """What a screen reader says first, with what was put on the row."""
        said = [own]
        if row.offset in self.marked:
            said.append(tr("marked"))
        if row.offset in self.ignored:
            said.append(tr("ignored"))
        if self.reference is not None and self.reference[0] == row.offset:
            said.append(tr("time reference"))
        if isinstance(row, UnitRow) and row.rule:
            said.append(row.rule)
        return ", ".join(part for part in said if part)

    def time(self, row: LogRow) -> str:
        """The store time, or how long before or after the reference."""
        if not isinstance(row, UnitRow):
            return ""
        return clock(row.store_timestamp) if self.reference is None else since(row.store_timestamp - self.reference[1])


def since(ms: int) -> str:
    """``+0.225``, ``−12.345``, ``+1:02:03.456``: seconds with a sign, minutes and hours where there are any."""
    sign, ms = ("−" if ms < 0 else "+"), abs(ms)
    seconds, rest = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{sign}{hours:,}:{minutes:02d}:{seconds:02d}.{rest:03d}"
    return f"{sign}{minutes}:{seconds:02d}.{rest:03d}" if minutes else f"{sign}{seconds}.{rest:03d}"


MOST = 100_000
"""Rows of a kind that are kept."""


@dataclass(frozen=True, slots=True)
class RowMarks:
    """Offsets of units that are marked and ignored; offset and store time (ms since the epoch) of the reference."""

    marked: frozenset[int] = frozenset()
    ignored: frozenset[int] = frozenset()
    reference: tuple[int, int] | None = None


def marks_file(folder: Path, store: Path) -> Path:
    """Where the marks of ``store`` are kept below the settings' ``folder``."""
    return folder / "marks" / file_of(folder, store).name


def read_marks(file: Path) -> RowMarks:
    """What ``file`` keeps; raises as :func:`read_kept`."""
    found = read_kept(file)
    reference = _offsets(found.get("reference"))
    pair = (reference[0], reference[1]) if len(reference) == 2 else None
    return RowMarks(frozenset(_offsets(found.get("marked"))), frozenset(_offsets(found.get("ignored"))), pair)


def _offsets(found: object) -> list[int]:
    return [n for n in found if type(n) is int and n >= 0][:MOST] if isinstance(found, list) else []


def write_marks(file: Path, store: Path, marks: RowMarks) -> None:
    """Keep them; the file is replaced at once, or stays as it was, and goes with the last mark. Raises OSError."""
    if marks == RowMarks():
        file.unlink(missing_ok=True)
        return
    said = {
        "store": str(store),
        "marked": sorted(marks.marked)[:MOST],
        "ignored": sorted(marks.ignored)[:MOST],
        "reference": list(marks.reference or ()),
    }
    put_whole(file, json.dumps(said))
