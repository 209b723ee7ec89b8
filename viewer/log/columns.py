"""Columns and looks of the commit log's table; no Qt.

Columns that a person makes of a field of the decoded unit; no Qt.

The names are those of the tree (RocketMQ's, ``properties.NAME`` for a property) and of the filter language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from engine.codec.dledger import REMAINS
from engine.codec.message import Unit
from engine.codec.unit_fields import BY_NAME, INSTEAD, Field
from engine.errors import BadFilter
from viewer.log.row_markings import RowMarkings
from viewer.log.rows import LogRow, NonUnitRow, UnitRow
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import full_moment, hexadecimal, moment, number, plain, size
from viewer.widgets.cell_filter import body_term, letters_term
from viewer.widgets.columns import (
    Chip,
    Column,
    Record,
    RecordKind,
    RowAppearance,
    chip_column,
    gutter,
    number_column,
    text_column,
    time_column,
    topic_column,
)

MARKS = {
    "T": words("transaction"),
    "Z": words("compressed body"),
    "B": words("batch in one unit"),
    "D": words("delayed"),
    "R": words("retried"),
    "M": words("dispatched to several queues"),
}
ToEntry = Callable[[str, int, int], object]
"""Makes the place of a queue entry: topic, queue id, queue offset."""


def unit_kind(
    to_entry: ToEntry, style_of: RowMarkings | None = None, *, rules: bool = False, added_fields: Sequence[str] = ()
) -> RecordKind:
    """The table of the commit log; ``to_entry`` makes the link from a unit to its queue entry.

    ``style_of`` holds the user's marks; with ``rules`` a column names the colouring rule of a row; ``added_fields`` are
    fields that the user added as columns.
    """
    style = style_of if style_of is not None else RowMarkings()
    stored = time_column("storeTimestamp", words("Stored") if style.reference is None else words("Since reference"))

    def entry_of(row: LogRow) -> object | None:
        return to_entry(row.topic, row.queue_id, row.queue_offset) if isinstance(row, UnitRow) else None

    columns: tuple[Column, ...] = (
        gutter(),
        Column(
            "physicalOffset",
            words("Physical offset"),
            124,
            _offset,
            lambda row: row.offset,
            right=True,
            mono=True,
            elide="never",
        ),
        Column("size", words("Size"), 84, _size, lambda row: row.size, right=True, mono=True, tone=lambda _: "text2"),
        topic_column(tone=_topic_tone),
        number_column("queueId", words("Queue"), 62),
        number_column("queueOffset", words("Queue offset"), 104, jump=entry_of),
        replace(stored, text=style.time, right=style.reference is not None),
        text_column("tags", words("Tag"), 76, tone=lambda _: "text2", leaves=True),
        Column("keys", words("Keys"), 168, _keys, _key_list, mono=True, elide="middle"),
        chip_column("crc", words("CRC"), 78, _crc),
        Column(
            "",
            words("Marks"),
            62,
            _letters,
            _letters,
            paint="letters",
            tip=_letter_words,
            filterable=False,
            term=lambda row: letters_term(_letters(row)),
        ),
        Column(
            "body",
            words("Body"),
            120,
            _body,
            _preview,
            mono=True,
            tone=lambda _: "text3",
            slim=True,
            filterable=False,
            term=lambda row: body_term(_preview(row)),
        ),
    )
    shown_fields = [
        field for shown_column in columns if (field := BY_NAME.get(shown_column.key)) is not None and field.always
    ]
    if rules:
        rule = text_column("rule", words("Rule"), 92, filterable=False)
        columns = (*columns[:-1], replace(rule, term=lambda _row: None), columns[-1])
    fresh = tuple(column for name in added_fields if (column := made_column(name)) is not None)
    columns = (*columns[:-1], *fresh, columns[-1])
    return RecordKind(
        "unit",
        columns,
        lambda row: style.style(row, look(row)),
        lambda row: style.verdict(row, verdict(row)),
        lambda row: record(row, shown_fields),
        command,
    )


def look(row: LogRow) -> RowAppearance | None:
    """Return the style of a row: blanks, damage and edges stand out; doubtful units get a mark."""
    if isinstance(row, UnitRow):
        if row.crc == "bad":
            return RowAppearance(mark="error")
        return RowAppearance(mark="warn") if row.stale else None
    if row.kind == "blank":
        if row.next_file:
            text = tr("End of file · the next message did not fit · the log continues in {file}", file=row.next_file)
        else:
            text = tr("End of file · the next message did not fit · no file follows")
        return RowAppearance("chat", "sunken", "text3", text)
    if row.kind == "zero" and row.reason == REMAINS:
        text = tr("End of the log · {reason}", reason=engine_words(row.reason))
        return RowAppearance("out", "", "text3", text)
    if row.kind == "zero":
        return RowAppearance(
            "out", "", "text3", tr("Zero tail · end of the log · nothing was written after this place")
        )
    if row.kind == "hole":
        return RowAppearance(
            "error", "errorFill", "error", tr("Missing · no file of the log has these bytes"), strong=True
        )
    if row.kind == "error":
        text = tr("Cannot be read · {reason}", reason=engine_words(row.reason))
        return RowAppearance("unread", "sunken", "text2", text, strong=True)
    reason = engine_words(row.reason)
    if row.was and row.more:
        text = tr(
            "Damaged · was {message} and {count:,} more · {reason}",
            message=plain(row.was),
            count=row.more,
            reason=reason,
        )
    elif row.was:
        text = tr("Damaged · was {message} · {reason}", message=plain(row.was), reason=reason)
    else:
        text = tr_plural(
            "Damaged · {reason} · {n:,} byte", "Damaged · {reason} · {n:,} bytes", n=row.size, reason=reason
        )
    return RowAppearance("error", "errorFill", "error", text, strong=True)


def verdict(row: LogRow) -> str:
    """Return the words that a screen reader says first."""
    if isinstance(row, UnitRow):
        if row.crc == "bad":
            return tr("body CRC bad")
        return tr("stale unit") if row.stale else tr("CRC ok") if row.crc == "ok" else ""
    return {"blank": tr("blank"), "zero": tr("zero tail"), "error": tr("cannot be read")}.get(row.kind, tr("damage"))


def record(row: LogRow, shown: Sequence[Field]) -> dict[str, Any]:
    """Return the row as far as it is known without reading its unit again: the fields that are ``shown``."""
    if isinstance(row, NonUnitRow):
        document: dict[str, Any] = {
            "type": "blank" if row.kind == "blank" else "damage",
            "physicalOffset": row.offset,
            "size": row.size,
        }
        return document | ({"reason": row.reason} if row.reason else {})
    return {"type": "unit", **{field.name: getattr(row, field.attribute) for field in shown}}


def command(row: LogRow) -> list[str]:
    """The command that prints this row; the store's path is put in place of ``STORE`` by the pane."""
    return ["storescope", "units", "STORE", "--from", str(row.offset), "--limit", "1", "--json"]


def _offset(row: LogRow) -> str:
    return number(row.offset)


def _size(row: LogRow) -> str:
    return number(row.size) if row.size < 1 << 27 else size(row.size)


def _topic_tone(row: LogRow) -> str:
    return _tone_of(row.topic) if isinstance(row, UnitRow) else "text"


@lru_cache(maxsize=4096)
def _tone_of(topic: str) -> str:
    from viewer.look.topic_kinds import is_system_topic

    return "text2" if is_system_topic(topic) else "text"


def _key_list(row: LogRow) -> list[str] | None:
    return row.keys if isinstance(row, UnitRow) else None


def _keys(row: LogRow) -> str:
    return plain(" ".join(row.keys)) if isinstance(row, UnitRow) else ""


def _crc(row: LogRow) -> Chip | None:
    if not isinstance(row, UnitRow):
        return None
    if row.crc == "bad":
        return Chip("error", tr("bad"))
    return Chip("ok") if row.crc == "ok" else Chip("out")


def _letters(row: LogRow) -> str:
    return row.marks if isinstance(row, UnitRow) else ""


def _letter_words(row: LogRow) -> str:
    return ", ".join(tr(MARKS[letter]) for letter in _letters(row))


def _preview(row: LogRow) -> bytes | None:
    return row.preview if isinstance(row, UnitRow) else None


def _body(row: LogRow) -> str:
    if not isinstance(row, UnitRow) or not row.preview:
        return ""
    text = row.preview.decode("utf-8", "replace")
    if text.count("�") > len(text) // 4:
        return row.preview[:48].hex(" ")
    return plain(text.rstrip("�"))


Getter = Callable[[Unit], Any]
PROPERTY = "properties."
BODY_FIELDS = ("body.", "body[")
LENGTHS: dict[str, Getter] = {
    "topicLength": lambda unit: len(unit.topic.encode("utf-8", "replace")),
    "propertiesLength": lambda unit: len(unit.properties_raw),
}
HEX = {"bodyCRC": 8, "sysFlag": 1}
"""Numbers that are read in hex, and their digits at least."""


def field_name(line: str) -> str:
    """Return the column name of a line of the tree; "" if no column can be made of it."""
    name = INSTEAD.get(line, line)
    return name if name and reader(name) is not None else ""


def reader(name: str) -> Getter | None:
    """Return the function that reads the field from a unit; None if there is no such field."""
    from engine.query import FIELDS
    from engine.query.fields import property_getters

    if name.startswith(BODY_FIELDS):
        return _body_field(name)
    if name.startswith(PROPERTY):
        return property_getters(name.removeprefix(PROPERTY))[0]
    if name in LENGTHS:
        return LENGTHS[name]
    spec = FIELDS.get(name)
    return spec.unit if spec is not None else None


def _body_field(name: str) -> Getter | None:
    """Return the function that reads a field of the decoded body, as text."""
    from engine.decoding.bodies import UNDECODED, field_of
    from engine.decoding.values import value_text
    from engine.query.lexer import words as words_of

    try:
        path = words_of(name)[0].path
    except BadFilter:
        return None

    def read(unit: Unit) -> str | None:
        value = field_of(unit, path)
        return None if value is UNDECODED else value_text(value)

    return read if path else None


def readers(names: Sequence[str]) -> tuple[tuple[str, Getter], ...]:
    """The fields that rows are to carry, each with how it is read; names that are none are left out."""
    return tuple((name, read) for name in names if (read := reader(name)) is not None)


def made_column(name: str) -> Column | None:
    """Return the column of a field; None if there is no such field."""
    from engine.query import FIELDS

    if reader(name) is None:
        return None
    kind = "number" if name in LENGTHS else FIELDS[name].kind if name in FIELDS else "text"
    write = _hex_digits(HEX[name]) if name in HEX else _WRITE.get(kind, _text)

    def value(row: Record) -> Any:
        return next((field_value for extra_name, field_value in getattr(row, "extra", ()) if extra_name == name), None)

    return Column(
        name,
        words("Priority") if name == "priority" else name.removeprefix(PROPERTY),
        70 if name == "priority" else 110,
        lambda row: write(value(row)),
        value,
        right=kind == "number" and name not in HEX,
        mono=True,
        elide="middle" if kind in {"text", "property", "list"} else "never",
        tip=(lambda row: full_moment(value(row))) if kind == "time" else None,
        filterable=name not in LENGTHS,
    )


def _hex_digits(least: int) -> Callable[[Any], str]:
    return lambda value: "" if value is None else hexadecimal(value, 8) if least == 8 else f"0x{value & 0xFFFFFFFF:X}"


def _text(value: Any) -> str:
    if value is None or value is False:
        return ""
    return plain(" ".join(value)) if isinstance(value, list) else plain(str(value))


_WRITE: dict[str, Callable[[Any], str]] = {"number": number, "time": moment}
