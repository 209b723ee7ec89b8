"""What a table shows: columns over records, and how a whole row looks; no Qt.

A table is a :class:`RecordKind`: a tuple of :class:`Column` plus, for rows that are more than a record (a blank,
damage, the edge of what was looked at), a :class:`RowLook`. Columns are named after RocketMQ's fields; the head says
it in words. Records are dataclasses with ``snake_case`` attributes or dictionaries with RocketMQ's spelling:
:func:`field_of` reads both.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, Unpack

from engine.errors import BadFilter
from viewer.look.formats import clock, number, plain
from viewer.look.topic_kinds import kind_words

Record = Any
"""A row: any object whose columns know how to read it."""


@dataclass(frozen=True, slots=True)
class Chip:
    """A state as a shape and a word: ``kind`` is error, warn, note, ok, chat, out, loop or live; no word, only the
    shape.
    """

    kind: str
    word: str = ""


@dataclass(frozen=True, slots=True)
class RowLook:
    """How a row as a whole differs from the others.

    ``mark`` stands in the gutter; ``fill`` and ``tone`` are colour roles for the row's ground and text; ``words`` run
    over all columns from number ``words_from`` on; ``dim`` shows values that are known to be out of date.
    """

    mark: str = ""
    fill: str = ""
    tone: str = ""
    words: str = ""
    words_from: int = 3
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One column: RocketMQ's field name, the head in words, and how a cell reads its record.

    ``text`` is what is shown and copied, ``value`` the raw Python value. ``jump`` gives the place a cell leads to.
    ``paint`` is ``text``, ``topic`` (a colour bar before the name), ``letters`` (small boxes), or ``chip`` (with
    ``chip``). ``width`` is in px at 100 %, the last column takes what is left; ``slim`` columns leave first where the
    window is narrow.
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
    """Whether what does not fit runs on in further lines: all rows of the table are then as high as the highest."""
    slim: bool = False
    leaves: bool = False
    """Whether it leaves too where a table has but half a screen."""
    hides: bool = False
    """Whether it goes wholly while no value of it is in sight: a few rows need no strip that stands for it."""
    filterable: bool = True
    term: Callable[[Record], str | None] | None = None
    """The condition that a cell makes where it is more than "this field has this value"."""

    def in_words(self, record: Record) -> str:
        """The cell in full, with what its mark says."""
        said, kind = self.text(record), kind_words(str(self.value(record) or "")) if self.paint == "topic" else ""
        return f"{said}, {kind}" if kind else said

    def filter_text(self, record: Record, exclude: bool = False) -> str | None:
        """This cell as a term of the filter language; None where its field cannot be asked for."""
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
    """One kind of row: its columns, looks, and what copying and a screen reader get."""

    name: str
    columns: tuple[Column, ...]
    look: Callable[[Record], RowLook | None] = field(default=lambda _: None)
    verdict: Callable[[Record], str] = field(default=lambda _: "")
    record: Callable[[Record], dict[str, object]] | None = None
    command: Callable[[Record], list[str]] | None = None

    def as_record(self, row: Record) -> dict[str, object]:
        """The row as the record that the command line prints for it."""
        if self.record is not None:
            return self.record(row)
        return {column.key: column.value(row) for column in self.columns if column.key}

    def as_text(self, row: Record, separator: str = "\t") -> str:
        """The row as it is shown, cell by cell."""
        look = self.look(row)
        cells = [column.text(row) for column in self.columns if column.key]
        return separator.join([*cells, look.words] if look is not None and look.words else cells)

    def speak(self, row: Record) -> str:
        """The row for a screen reader: the verdict first, then every cell with its head."""
        look = self.look(row)
        parts = [self.verdict(row)]
        if look is not None and look.words:
            parts.append(look.words)
        said = ((column.title, column.in_words(row)) for column in self.columns if column.title)
        parts += [f"{title} {text}" for title, text in said if text]
        return ". ".join(part for part in parts if part)


_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class FewOptions(TypedDict, total=False):
    """What most columns leave as it is; see :class:`Column`."""

    tone: Callable[[Record], str]
    slim: bool
    leaves: bool
    hides: bool
    filterable: bool


class Options(FewOptions, total=False):
    """The same for columns whose tool tip and shortening are open."""

    tip: Callable[[Record], str]
    elide: str


def field_of(key: str) -> Callable[[Record], Any]:
    """A reader of RocketMQ's field ``key`` in a dictionary or, in snake_case, in an object; None where it is absent."""
    attribute = _BORDER.sub("_", key).lower()

    def read(record: Record) -> Any:
        if isinstance(record, dict):
            return record.get(key)
        return getattr(record, attribute, None)

    return read


Jump = Callable[[Record], object]


def number_column(key: str, title: str, width: int, *, jump: Jump | None = None, **more: Unpack[Options]) -> Column:
    """A 64-bit number, right-aligned, with separators."""
    read = field_of(key)
    return Column(key, title, width, lambda row: number(read(row)), read, right=True, mono=True, jump=jump, **more)


def text_column(
    key: str, title: str, width: int, *, mono: bool = False, jump: Jump | None = None, **more: Unpack[Options]
) -> Column:
    """Text on one line."""
    read = field_of(key)

    def text(row: Record) -> str:
        value = read(row)
        return "" if value is None else plain(value if isinstance(value, str) else str(value))

    return Column(key, title, width, text, read, mono=mono, jump=jump, **more)


def topic_column(
    key: str = "topic", title: str = "Topic", width: int = 186, *, jump: Jump | None = None, **more: Unpack[Options]
) -> Column:
    """A topic: its colour as a bar before the name."""
    return replace(text_column(key, title, width, jump=jump, **more), paint="topic", elide="middle")


def time_column(key: str, title: str, width: int = 112, **more: Unpack[FewOptions]) -> Column:
    """A time of day; the day stands in the tool tip."""
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
        **more,
    )


def moment_column(key: str, title: str, width: int = 186, **more: Unpack[FewOptions]) -> Column:
    """A time with its day."""
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
        **more,
    )


def chip_column(
    key: str, title: str, width: int, chip: Callable[[Record], Chip | None], **more: Unpack[Options]
) -> Column:
    """A state as mark and word."""
    read = field_of(key)

    def text(row: Record) -> str:
        state = chip(row)
        return "" if state is None else state.word or state.kind

    return Column(key, title, width, text, read, paint="chip", chip=chip, **more)


def gutter(width: int = 26) -> Column:
    """The narrow first column that holds the row's mark."""
    return Column("", "", width, lambda _: "", lambda _: None, filterable=False)


def elsewhere(place: object) -> object:
    """The same place, marked to be shown in a window of its own; unchanged where it cannot be marked."""
    if dataclasses.is_dataclass(place) and not isinstance(place, type) and hasattr(place, "new_window"):
        return dataclasses.replace(place, new_window=True)
    return place
