"""Output of records: JSON lines as they come, or tables that fit the terminal (Markdown with ``--markdown``).

Messages and progress go to standard error; progress only on a terminal and never with ``--quiet``.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TextIO
from unicodedata import combining, east_asian_width

from engine.sentences import TEMPLATES_IN_JSON, to_json
from engine.times import local_time_text, with_local_times

if TYPE_CHECKING:
    from engine.callbacks import Cancel
    from engine.rules.masking import Masking

_MEASURED_ROWS = 200
_COMFORTABLE_WIDTHS = {"text": 16, "path": 20, "prose": 32}
_MIN_WIDTHS = {"text": 8, "path": 12, "prose": 14}
"""Cells below which columns of words are not narrowed: while others can be left out, and at last."""
_REDRAW_INTERVAL_S = 0.2


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its head, the record's field, and how a value is written (``number``, ``time``, ``text``
    …). Where a terminal is too narrow, columns with the highest ``spare`` above 0 are left out first.
    """

    title: str
    field: str
    kind: str = "text"  # text loses its end, path its beginning, prose goes on in the next line
    spare: int = 0

    @property
    def right(self) -> bool:
        return self.kind in {"number", "plain", "bytes"}


def iso_time(ms: int | None) -> str:
    """Return a time (ms) as :func:`local_time_text` does; empty for None."""
    return "" if ms is None else local_time_text(ms)


def size_text(size: int) -> str:
    """Return bytes in the largest suitable unit: ``38.0 GiB``."""
    value, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{size:,} B" if unit == "B" else f"{value:,.1f} {unit}"


def escape_controls(text: str) -> str:
    """Return ``text`` with control characters made visible, so that a store's bytes cannot control a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in text)


def cell_width(text: str) -> int:
    """Return the number of terminal cells that ``text`` takes: Chinese characters and the like take two."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(c) in {"W", "F"} else 0 if combining(c) else 1 for c in text)


def shorten(text: str, width: int) -> str:
    """Shorten ``text`` to ``width`` cells, the last one a "…" where something is left out."""
    if cell_width(text) <= width:
        return text
    beginning, room = "", width - 1
    for c in text:
        room -= cell_width(c)
        if room < 0:
            break
        beginning += c
    return beginning + "…"


def format_cell(value: Any, kind: str) -> str:
    """Return a value as a table shows it."""
    if value is None:
        return ""
    if kind == "time":
        return iso_time(value)
    if kind == "number" and isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if kind == "bytes":
        return size_text(value)
    if kind == "prose" and isinstance(value, str):
        return escape_controls(with_local_times(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return escape_controls(" ".join(str(v) for v in value))
    if isinstance(value, dict):
        return escape_controls(json.dumps(value, ensure_ascii=False))
    return escape_controls(str(value))


class Output:
    """The standard output of one command."""

    def __init__(
        self,
        *,
        as_json: bool,
        markdown: bool = False,
        quiet: bool = False,
        stream: TextIO | None = None,
        mask: Masking | None = None,
        unread: Collection[object] = (),
    ) -> None:
        self.mask = mask
        self.has_bodies = True
        """False if the store is a capsule: records have no body then, and no digest of one."""
        self._unread = unread
        self.as_json = as_json
        self._with_templates = TEMPLATES_IN_JSON in os.environ
        self.markdown = markdown
        self.quiet = quiet
        self._stream = stream or sys.stdout
        self._table: _Table | None = None
        _replace_unencodable(self._stream, as_json)

    def record(self, record: dict[str, Any], columns: Sequence[Column] | None = None) -> None:
        """Write one record: a JSON line, or a row of the table with ``columns`` (a new table where they change)."""
        if self.mask is not None:
            record = self.mask.record(record)
        if not self.has_bodies:
            record |= {name: None for name in ("body", "bodySha256") if name in record}
        if self.as_json:
            record = to_json(record) if self._with_templates else record
            self._stream.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
            return
        if columns is None:
            return
        if self._table is None or self._table.columns is not columns:
            self.flush()
            self._table = _Table(columns, self._stream, self.markdown)
        self._table.row(record)

    def rows(self, fields: Mapping[str, Any], columns: Sequence[Column]) -> None:
        """Write many records at once, as :meth:`record` writes each. A field is an array of whole numbers, or a value
        that all records have.
        """
        from engine.cli import number_rows

        is_plain = self.mask is None and not self._with_templates
        if self.as_json and is_plain:
            self._stream.write(number_rows.json_lines(fields))
            return
        count, row = number_rows.row_count(fields), 0
        while row < count:
            table = self._table if is_plain else None
            if table is not None and table.columns is columns and table.write_rows(number_rows.rows_from(fields, row)):
                return
            self.record(number_rows.record_at(fields, row), columns)
            row += 1

    def json_lines(self, text: str) -> None:
        """Write finished lines of JSON, from a caller that makes many at once and masks nothing."""
        self._stream.write(text)

    def line(self, text: str = "", *, is_data: bool = False) -> None:
        """Write a line for people (or several), its control characters made visible; nothing with ``--json``.

        Times of the engine's sentences are shown in the machine's zone. ``is_data``: the text has bytes of a store,
        such as a message's body, which are shown as they are.
        """
        if not self.as_json:
            self.flush()
            text = text if is_data else with_local_times(text)
            self._stream.write("\n".join(escape_controls(line) for line in text.split("\n")) + "\n")

    def fields(self, pairs: Iterable[tuple[str, str]], *, are_data: bool = False) -> None:
        """Write names and values, one pair a line; nothing with ``--json``."""
        if self.as_json:
            return
        listed = list(pairs)
        width = max((len(name) for name, _ in listed), default=0)
        for name, value in listed:
            text = f"- **{name}**: {value}" if self.markdown else f"{name:<{width}}  {value}".rstrip()
            self.line(text, is_data=are_data)

    def flush(self) -> None:
        """Write the rows that wait until their columns are measured."""
        if self._table is not None:
            self._table.close()
            self._table = None
        self._stream.flush()

    def nothing(self, text: str) -> None:
        """Write a line that something is absent; nothing if a part of the store could not be read."""
        if not self._unread:
            self.line(text)

    def say_nothing(self, text: str) -> None:
        """Write the same on standard error."""
        if not self._unread:
            self.say(text)

    def say(self, text: str) -> None:
        """Write a message on standard error."""
        if not self.quiet:
            sys.stderr.write(f"storescope: {escape_controls(text)}\n")


def _replace_unencodable(stream: TextIO, as_json: bool) -> None:
    """Let the stream accept every name in a store: characters that its encoding lacks are written as escapes.

    JSON is UTF-8 whatever the locale; a file name that is none holds halves of surrogate pairs, escaped as JSON does.
    """
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8" if as_json else stream.encoding, errors="backslashreplace")


class _Table:
    """A table whose column widths come from its first rows; later rows stream."""

    def __init__(self, columns: Sequence[Column], stream: TextIO, markdown: bool) -> None:
        self.columns = columns
        self._shown = list(range(len(columns)))
        self._stream = stream
        self._markdown = markdown
        self._held: list[list[str]] | None = []
        self._widths = [0 for _ in columns]
        self._left_out: list[str] = []

    def row(self, record: dict[str, Any]) -> None:
        cells = [format_cell(record.get(c.field), c.kind) for c in self.columns]
        if self._held is None:
            self._write(cells)
            return
        self._held.append(cells)
        if len(self._held) >= _MEASURED_ROWS:
            self._release(rows_follow=True)

    def write_rows(self, fields: Mapping[str, Any]) -> bool:
        """Write many rows at once; False, and nothing is written, if they must be written one by one."""
        from engine.cli import number_rows

        if self._held is not None or self._markdown:
            return False
        parts: list[str | number_rows.NumberCells] = []
        for i in self._shown:
            column, width, value = self.columns[i], self._widths[i], fields.get(self.columns[i].field)
            separator = "  " if parts else ""
            if value is not None and hasattr(value, "dtype"):
                if column.kind != "number":
                    return False
                parts += [separator, number_rows.NumberCells(value, width)]
                continue
            text = format_cell(value, column.kind)
            if column.kind in {"prose", "path"} or not text.isascii() or len(text) > width:
                return False
            parts.append(separator + (text.rjust(width) if column.right else text.ljust(width)))
        while isinstance(parts[-1], str) and not parts[-1].strip():
            parts.pop()
        if isinstance(parts[-1], str):
            parts[-1] = parts[-1].rstrip()
        text_of_rows = number_rows.rows_text([*parts, "\n"])
        if text_of_rows is None:
            return False
        self._stream.write(text_of_rows)
        return True

    def close(self) -> None:
        if self._held is not None:
            self._release(rows_follow=False)
        if self._left_out:
            self._stream.write(f"-- left out for want of room: {', '.join(self._left_out)}\n")

    def _release(self, rows_follow: bool) -> None:
        rows, self._held = self._held or [], None
        if not rows:
            return
        for cells in rows:
            self._widths = [max(w, cell_width(text)) for w, text in zip(self._widths, cells, strict=True)]
        if self._markdown:
            self._write([c.title for c in self.columns])
            self._stream.write("|" + "|".join("--:" if c.right else "---" for c in self.columns) + "|\n")
        else:
            self._leave_room(rows, rows_follow)
            for line in self._fit(shutil.get_terminal_size((140, 40)).columns):
                self._write(line)
        for cells in rows:
            self._write(cells)

    def _leave_room(self, rows: list[list[str]], rows_follow: bool) -> None:
        """Widen columns of numbers by a digit where rows follow; those that grow from row to row, by three."""
        for i, column in enumerate(self.columns):
            if rows_follow and column.kind == "number" and self._widths[i] > 2:
                self._widths[i] += 4 if len(rows[-1][i]) > len(rows[0][i]) else 2

    def _fit(self, room: int) -> list[list[str]]:
        """Make the row fit: heads on two lines, texts shortened, spare columns left out. Returns the lines of the
        head.

        Numbers and times are never shortened.
        """
        heads = [[c.title] for c in self.columns]
        cells = list(self._widths)
        self._widths = natural = [max(w, cell_width(c.title)) for w, c in zip(cells, self.columns, strict=True)]
        if not self._fits(room):
            heads = [[c.title] if c.kind in _MIN_WIDTHS else _split_title(c.title) for c in self.columns]
            natural = [max(w, *map(cell_width, head)) for w, head in zip(cells, heads, strict=True)]
        while not self._narrowed(natural, room, _COMFORTABLE_WIDTHS):
            spare = [i for i in self._shown if self.columns[i].spare]
            if not spare:
                self._narrowed(natural, room, _MIN_WIDTHS)
                break
            least = max(spare, key=lambda i: self.columns[i].spare)
            self._shown.remove(least)
            self._left_out.append(self.columns[least].title)
        head_lines = max(len(heads[i]) for i in self._shown)
        return [[head[line] if line < len(head) else "" for head in heads] for line in range(head_lines)]

    def _fits(self, room: int) -> bool:
        return sum(self._widths[i] for i in self._shown) + 2 * (len(self._shown) - 1) <= room

    def _narrowed(self, natural: list[int], room: int, least: dict[str, int]) -> bool:
        """Take room from the widest columns that hold words, none below ``least``; says whether the row fits now."""
        self._widths = list(natural)
        while not self._fits(room):
            wide = [i for i in self._shown if self._widths[i] > least.get(self.columns[i].kind, self._widths[i])]
            if not wide:
                return False
            self._widths[max(wide, key=lambda i: self._widths[i])] -= 1
        return True

    def _write(self, cells: list[str]) -> None:
        if self._markdown:
            self._stream.write("| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |\n")
            return
        prose = {i: _wrap(cells[i], self._widths[i]) for i in self._shown if self.columns[i].kind == "prose"}
        for line in range(max(map(len, prose.values()), default=1)):
            shown = []
            for i in self._shown:
                column, width = self.columns[i], self._widths[i]
                text = cells[i] if line == 0 else ""
                if i in prose:
                    text = prose[i][line] if line < len(prose[i]) else ""
                elif column.kind == "text":
                    text = shorten(text, width)
                elif column.kind == "path":
                    text = shorten(text[::-1], width)[::-1]
                padding = " " * (width - cell_width(text))
                shown.append(padding + text if column.right else text + padding)
            self._stream.write("  ".join(shown).rstrip() + "\n")


def _wrap(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` cells, at least one."""
    if cell_width(text) <= width:
        return [text]
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_width(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return [piece for line in lines for piece in _split_word(line, width)]


def _split_word(word: str, width: int) -> list[str]:
    pieces = [""]
    for c in word:
        if cell_width(pieces[-1] + c) > width:
            pieces.append("")
        pieces[-1] += c
    return pieces


def _split_title(title: str) -> list[str]:
    upper, _, lower = title.partition(" ")
    return [upper, lower] if lower else [title]


def time_left(seconds: float) -> str:
    """``12 s left``, ``about 2 min left``, ``about 1 h 20 min left``."""
    if seconds < 100:
        return f"{seconds:.0f} s left"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"about {f'{hours} h ' if hours else ''}{minutes} min left"


class CommandStopped(Exception):
    """The caller of a command has stopped it, see :func:`stopped_by`."""


_stop: ContextVar[Cancel | None] = ContextVar("stop", default=None)


@contextmanager
def stopped_by(flag: Cancel) -> Iterator[None]:
    """Let every :class:`Progress` that begins inside the block raise :class:`CommandStopped` when ``flag`` is set."""
    token = _stop.set(flag)
    try:
        yield
    finally:
        _stop.reset(token)


class Progress:
    """A bar on standard error: share, rate and time left; nothing if that is no terminal."""

    def __init__(self, label: str, total: int, quiet: bool = False) -> None:
        self._label, self._total = label, max(total, 1)
        self._on = not quiet and sys.stderr.isatty()
        self._begun = self._last = time.monotonic()
        self._drawn = False
        self._done = 0
        self._stop = _stop.get()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def update(self, done: int, total: int | None = None) -> None:
        """Show that ``done`` of the total bytes are processed; ``total`` where that is known only now."""
        if self._stop is not None and self._stop.is_set():
            raise CommandStopped
        self._total = max(total, 1) if total is not None else self._total
        if not self._on:
            return
        now = time.monotonic()
        if done < self._done:  # another pass over the same bytes
            self._begun = now
        self._done = done
        if now - self._last < _REDRAW_INTERVAL_S:
            return
        self._last, self._drawn = now, True
        share = min(max(done / self._total, 0.0), 1.0)
        seconds = max(now - self._begun, 1e-6)
        rate = done / seconds
        remaining_s = (self._total - done) / rate if rate > 0 else 0.0
        bar = "█" * int(share * 24)
        sys.stderr.write(
            f"\r\x1b[K{self._label} {bar:<24} {share:4.0%}  {size_text(int(rate))}/s  {time_left(remaining_s)}"
        )
        sys.stderr.flush()
