"""The columns of a table over its records, and the look of a whole row; no Qt.

A table is a :class:`RecordKind`: a tuple of :class:`Column` plus, for rows that are more than a record (a blank,
damage, the edge of what was looked at), a :class:`RowAppearance`. Columns are named after RocketMQ's fields; the head
says it in words. Records are dataclasses with ``snake_case`` attributes or dictionaries with RocketMQ's spelling:
:func:`field_of` reads both.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, Unpack

from engine.errors import BadFilter
from viewer.look.assets import tr
from viewer.look.formats import clock, number, plain
from viewer.look.topic_kinds import kind_words

Record = Any
"""A row: any object that the columns can read."""


@dataclass(frozen=True, slots=True)
class Chip:
    """A state as a shape and a word: ``kind`` is error, warn, note, ok, chat, out, loop or live; no word, only the
    shape.
    """

    kind: str
    word: str = ""


@dataclass(frozen=True, slots=True)
class RowAppearance:
    """The look of a row that differs from the others.

    ``mark`` stands in the gutter. ``fill`` and ``tone`` are colour roles of the row's background and text.
    ``words`` run over all columns from number ``words_from`` on, ``strong`` in a heavier font.
    """

    mark: str = ""
    fill: str = ""
    tone: str = ""
    words: str = ""
    words_from: int = 3
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column: RocketMQ's field name, the title, and how a cell reads its record.

    ``text`` is what is shown and copied, ``value`` the raw Python value. ``jump`` gives the place a cell leads to.
    ``paint`` is ``text``, ``topic`` (a colour bar before the name), ``letters`` (small boxes), ``line`` (the numbers in
    ``value``; ``text`` says them), or ``chip`` (with ``chip``). ``width`` is in px at 100 %, the last column takes what
    is left; ``slim`` columns leave first where the window is narrow.
    """

    key: str
    title: str
    width: int
    text: Callable[[Record], str]
    value: Callable[[Record], object]
    right: bool = False
    mono: bool = False
    jump: Callable[[Record], object] | None = None
    paint: str = "text"
    chip: Callable[[Record], Chip | None] | None = None
    tone: Callable[[Record], str] | None = None
    tip: Callable[[Record], str] | None = None
    elide: str = "right"
    wrap: bool = False
    """Long text wraps into more lines. All rows of the table are then as high as the highest."""
    slim: bool = False
    leaves: bool = False
    """The column is hidden when the table has only half a screen."""
    grows: bool = False
    """The column takes a part of the remaining room, in place of the last column with words."""
    hides: bool = False
    """The column is hidden, not just folded, while none of its values is visible."""
    filterable: bool = True
    is_literal: bool = False
    """The title is a name of the user's data: it is shown as it is."""
    term: Callable[[Record], str | None] | None = None
    """The condition that a cell makes if it is not simply "this field has this value"."""

    @property
    def head(self) -> str:
        """The title as it is shown."""
        return self.title if self.is_literal or not self.title else tr(self.title)

    def in_words(self, record: Record) -> str:
        """The full cell, with the meaning of its mark."""
        text, kind = self.text(record), kind_words(str(self.value(record) or "")) if self.paint == "topic" else ""
        return f"{text}, {kind}" if kind else text

    def filter_text(self, record: Record, exclude: bool = False) -> str | None:
        """This cell as a condition of the filter language; None if its field cannot be filtered."""
        from engine.query import condition, negate

        if not self.filterable or not self.key:
            return None
        try:
            term = condition(self.key, self.value(record))
        except (BadFilter, ValueError, TypeError):
            return None
        return negate(term) if exclude else term


@dataclass(frozen=True, slots=True)
class RecordKind:
    """A kind of row: its columns and looks, and the texts for copying and for screen readers."""

    name: str
    columns: tuple[Column, ...]
    look: Callable[[Record], RowAppearance | None] = field(default=lambda _: None)
    verdict: Callable[[Record], str] = field(default=lambda _: "")
    record: Callable[[Record], dict[str, object]] | None = None
    command: Callable[[Record], list[str]] | None = None

    def as_record(self, row: Record) -> dict[str, object]:
        """The row as the record that the command line prints."""
        if self.record is not None:
            return self.record(row)
        return {column.key: column.value(row) for column in self.columns if column.key}

    def as_text(self, row: Record, separator: str = "\t") -> str:
        """The displayed texts of the row's cells."""
        look = self.look(row)
        cells = [column.text(row) for column in self.columns if column.key]
        return separator.join([*cells, look.words] if look is not None and look.words else cells)

    def speak(self, row: Record) -> str:
        """The row for a screen reader: the verdict first, then every cell with its title."""
        look = self.look(row)
        parts = [self.verdict(row)]
        if look is not None and look.words:
            parts.append(look.words)
        cells = ((column.title, column.in_words(row)) for column in self.columns if column.title)
        parts += [f"{title} {text}" for title, text in cells if text]
        return ". ".join(part for part in parts if part)


_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class ColumnOptions(TypedDict, total=False):
    """Options that most columns leave at their default; see :class:`Column`."""

    tone: Callable[[Record], str]
    slim: bool
    leaves: bool
    hides: bool
    filterable: bool


class Options(ColumnOptions, total=False):
    """More options, for columns that may set their tool tip and where they are shortened."""

    tip: Callable[[Record], str]
    elide: str


def field_of(key: str) -> Callable[[Record], Any]:
    """Return a function that reads RocketMQ's field ``key`` from a dictionary or, in snake_case, from an object. It
    returns None if the field is absent.
    """
    attribute = _BORDER.sub("_", key).lower()

    def read(record: Record) -> Any:
        if isinstance(record, dict):
            return record.get(key)
        return getattr(record, attribute, None)

    return read


Jump = Callable[[Record], object]


def number_column(key: str, title: str, width: int, *, jump: Jump | None = None, **options: Unpack[Options]) -> Column:
    """A 64-bit number, right-aligned, with separators."""
    read = field_of(key)
    return Column(key, title, width, lambda row: number(read(row)), read, right=True, mono=True, jump=jump, **options)


def text_column(
    key: str, title: str, width: int, *, mono: bool = False, jump: Jump | None = None, **options: Unpack[Options]
) -> Column:
    """Text on one line."""
    read = field_of(key)

    def text(row: Record) -> str:
        value = read(row)
        return "" if value is None else plain(value if isinstance(value, str) else str(value))

    return Column(key, title, width, text, read, mono=mono, jump=jump, **options)


def topic_column(
    key: str = "topic", title: str = "Topic", width: int = 186, *, jump: Jump | None = None, **options: Unpack[Options]
) -> Column:
    """A topic, with its colour as a bar before the name."""
    return replace(text_column(key, title, width, jump=jump, **options), paint="topic", elide="middle")


def time_column(key: str, title: str, width: int = 112, **options: Unpack[ColumnOptions]) -> Column:
    """A time of day. The tool tip shows the date too."""
    from viewer.look.formats import full_moment

    read = field_of(key)
    return Column(
        key,
        title,
        width,
        lambda row: clock(read(row)),
        read,
        mono=True,
        tip=lambda row: full_moment(read(row)),
        elide="never",
        **options,
    )


def moment_column(key: str, title: str, width: int = 186, **options: Unpack[ColumnOptions]) -> Column:
    """A date with the time."""
    from viewer.look.formats import full_moment, moment

    read = field_of(key)
    return Column(
        key,
        title,
        width,
        lambda row: moment(read(row)),
        read,
        mono=True,
        tip=lambda row: full_moment(read(row)),
        elide="never",
        **options,
    )


def chip_column(
    key: str, title: str, width: int, chip: Callable[[Record], Chip | None], **options: Unpack[Options]
) -> Column:
    """A status as mark and word."""
    read = field_of(key)

    def text(row: Record) -> str:
        state = chip(row)
        return "" if state is None else state.word or state.kind

    return Column(key, title, width, text, read, paint="chip", chip=chip, **options)


def gutter(width: int = 26) -> Column:
    """The narrow first column with the row's mark."""
    return Column("", "", width, lambda _: "", lambda _: None, filterable=False)


def elsewhere(place: object) -> object:
    """Return the same place, marked to open in its own window; unchanged if it cannot be marked."""
    if dataclasses.is_dataclass(place) and not isinstance(place, type) and hasattr(place, "new_window"):
        return dataclasses.replace(place, new_window=True)
    return place
