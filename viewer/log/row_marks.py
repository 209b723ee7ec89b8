"""What a person has put on rows of a log, kept for each store outside of it: marks, ignored rows, the zero of time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engine.whole_file import put_whole
from viewer.runtime.bookmarks import file_of

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


def read(file: Path) -> RowMarks:
    """What ``file`` keeps; nothing where it is not there or holds nothing of the kind. Raises ``OSError`` where it is
    there and cannot be read: what it holds is not known then, and not to be replaced.
    """
    try:
        found = json.loads(file.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return RowMarks()
    if not isinstance(found, dict):
        return RowMarks()
    reference = _offsets(found.get("reference"))
    pair = (reference[0], reference[1]) if len(reference) == 2 else None
    return RowMarks(frozenset(_offsets(found.get("marked"))), frozenset(_offsets(found.get("ignored"))), pair)


def _offsets(found: object) -> list[int]:
    return [n for n in found if type(n) is int and n >= 0][:MOST] if isinstance(found, list) else []


def write(file: Path, store: Path, marks: RowMarks) -> None:
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
