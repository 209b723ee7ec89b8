"""Where records go: JSON lines as they come, or tables that fit the terminal (Markdown with ``--markdown``).

Messages and progress go to standard error; progress only on a terminal and never with ``--quiet``.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, TextIO

_MEASURED_ROWS = 200
_TICK = 0.2


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its head, the record's field, and how a value is written (``number``, ``time``,
    ``text`` …).
    """

    title: str
    field: str
    kind: str = "text"

    @property
    def right(self) -> bool:
        return self.kind in ("number", "plain", "bytes")


def iso(ms: int | None) -> str:
    """Local time with zone, milliseconds kept: ``2026-11-20 09:41:07.220+08:00``; empty for None, the number where
    out of range.
    """
    if ms is None:
        return ""
    try:
        return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(ms)


def size_text(size: int) -> str:
    """Bytes in the unit that people read: ``38.0 GiB``."""
    value, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{size:,} B" if unit == "B" else f"{value:,.1f} {unit}"


def plain(text: str) -> str:
    """``text`` with control characters made visible, so that a store's bytes cannot steer a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in text)


def cell(value: Any, kind: str) -> str:
    """One value as a table shows it."""
    if value is None:
        return ""
    if kind == "time":
        return iso(value)
    if kind == "number" and isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if kind == "bytes":
        return size_text(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return plain(" ".join(str(v) for v in value))
    if isinstance(value, dict):
        return plain(json.dumps(value, ensure_ascii=False))
    return plain(str(value))


class Output:
    """The standard output of one command."""

    def __init__(
        self, *, as_json: bool, markdown: bool = False, quiet: bool = False, stream: TextIO | None = None
    ) -> None:
        self.as_json = as_json
        self.markdown = markdown
        self.quiet = quiet
        self._stream = stream or sys.stdout
        self._table: _Table | None = None

    def record(self, record: dict[str, Any], columns: Sequence[Column] | None = None) -> None:
        """One record: a JSON line, or a row of the table with ``columns`` (a new table where they change)."""
        if self.as_json:
            self._stream.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
            return
        if columns is None:
            return
        if self._table is None or self._table.columns is not columns:
            self.flush()
            self._table = _Table(columns, self._stream, self.markdown)
        self._table.row(record)

    def line(self, text: str = "") -> None:
        """A line for people; nothing with ``--json``."""
        if not self.as_json:
            self.flush()
            self._stream.write(text + "\n")

    def fields(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Name and value, one pair a line, for people."""
        if self.as_json:
            return
        listed = list(pairs)
        width = max((len(name) for name, _ in listed), default=0)
        for name, value in listed:
            self.line(f"- **{name}**: {value}" if self.markdown else f"{name:<{width}}  {value}".rstrip())

    def flush(self) -> None:
        """Write what is still held for measuring columns."""
        if self._table is not None:
            self._table.close()
            self._table = None
        self._stream.flush()

    def say(self, text: str) -> None:
        """A message on standard error."""
        if not self.quiet:
            sys.stderr.write(f"storescope: {text}\n")


class _Table:
    """A table whose column widths come from its first rows; later rows stream."""

    def __init__(self, columns: Sequence[Column], stream: TextIO, markdown: bool) -> None:
        self.columns = columns
        self._stream = stream
        self._markdown = markdown
        self._held: list[list[str]] | None = []
        self._widths = [len(c.title) for c in columns]

    def row(self, record: dict[str, Any]) -> None:
        cells = [cell(record.get(c.field), c.kind) for c in self.columns]
        if self._held is None:
            self._write(cells)
            return
        self._held.append(cells)
        if len(self._held) >= _MEASURED_ROWS:
            self._release()

    def close(self) -> None:
        if self._held is not None:
            self._release()

    def _release(self) -> None:
        held, self._held = self._held or [], None
        if not held:
            return
        for cells in held:
            self._widths = [max(w, len(text)) for w, text in zip(self._widths, cells, strict=True)]
        if not self._markdown:
            self._fit(shutil.get_terminal_size((140, 40)).columns)
        self._write([c.title for c in self.columns])
        if self._markdown:
            self._stream.write("|" + "|".join("--:" if c.right else "---" for c in self.columns) + "|\n")
        for cells in held:
            self._write(cells)

    def _fit(self, room: int) -> None:
        """Narrow the widest text columns until the row fits; numbers and times are never shortened."""
        texts = [i for i, c in enumerate(self.columns) if c.kind == "text"]
        while texts and sum(self._widths) + 2 * (len(self._widths) - 1) > room:
            widest = max(texts, key=lambda i: self._widths[i])
            if self._widths[widest] <= 8:
                return
            self._widths[widest] -= 1

    def _write(self, cells: list[str]) -> None:
        if self._markdown:
            self._stream.write("| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |\n")
            return
        shown = []
        for column, width, text in zip(self.columns, self._widths, cells, strict=True):
            if len(text) > width and column.kind == "text":
                text = text[: width - 1] + "…"  # noqa: PLW2901 - the shortened cell
            shown.append(text.rjust(width) if column.right else text.ljust(width))
        self._stream.write("  ".join(shown).rstrip() + "\n")


class Progress:
    """A bar on standard error: share, rate and time left; silent where that is no terminal."""

    def __init__(self, what: str, total: int, quiet: bool = False) -> None:
        self._what, self._total = what, max(total, 1)
        self._on = not quiet and sys.stderr.isatty()
        self._begun = self._last = time.monotonic()
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def at(self, done: int) -> None:
        """``done`` of the total bytes are behind us."""
        if not self._on:
            return
        now = time.monotonic()
        if now - self._last < _TICK:
            return
        self._last, self._drawn = now, True
        share = min(max(done / self._total, 0.0), 1.0)
        seconds = max(now - self._begun, 1e-6)
        rate = done / seconds
        left = (self._total - done) / rate if rate > 0 else 0.0
        bar = "█" * int(share * 24)
        sys.stderr.write(f"\r\x1b[K{self._what} {bar:<24} {share:4.0%}  {size_text(int(rate))}/s  {left:.0f} s left")
        sys.stderr.flush()
