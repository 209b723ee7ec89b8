"""The columns of an answer's table, and the places to which its cells lead. No Qt.

A cell leads to a place because of its column's name: ``physicalOffset`` of whatever relation is an offset in the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from viewer.look.formats import full_moment, moment, number, plain
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.sql.answers import Answer, ResultColumn, SqlRow, as_record, cell_text
from viewer.widgets.columns import Column, RecordKind

MAX_CELL_CHARACTERS = 400
"""Characters of a text in a cell; all of it is in the tool tip and in copies as JSON."""
_ONE_OF = re.compile(r'(?:min|max|any_value|first|last)\((?:"?\w+"?\.)?"?(\w+)"?\)')
"""A function that returns one of the values of a column."""
_AGAIN = re.compile(r"(?<=[A-Za-z])_\d+$")
"""What makes the name of a second column of the same name unique."""
PLAIN_TEXT = frozenset(("topic", "consumerGroup", "state", "mode", "reason", "message", "nextStep", "severity"))
"""Columns of words; other texts are data of the store, in the font of data."""
WHOLE_TEXT = frozenset(("file", "bornHost", "storeHost", "offsetMsgId", "uniqueKey"))
"""Columns of texts that are alike in their middle: they are never shortened."""
Jump = Callable[[SqlRow], Place | None]


def result_kind(answer: Answer) -> RecordKind:
    """Return the columns for an answer."""
    names = {meaning_of(column.name): column.name for column in reversed(answer.columns)}
    columns = tuple(_column(column, names) for column in answer.columns)
    command = answer.question.command
    return RecordKind(
        "sqlRow", columns, record=lambda row: as_record(row, answer.columns), command=lambda _row: list(command)
    )


def meaning_of(name: str) -> str:
    """Return the column of a relation whose value a column shows, as far as its name says it."""
    match = _ONE_OF.fullmatch(name)
    return match[1] if match is not None else _AGAIN.sub("", name)


def _column(column: ResultColumn, names: dict[str, str]) -> Column:
    name, kind = column.name, column.kind
    meaning = meaning_of(name)
    result = Column(
        name, plain(name), 120, lambda row: _text(row, name), lambda row: row.get(name), elide="never", is_literal=True
    )
    match kind:
        case "integer":
            result = replace(result, right=True, mono=True, text=lambda row: number(row[name]))
        case "number":
            result = replace(result, right=True, mono=True, text=lambda row: _decimal(row[name]))
        case "time":
            result = replace(
                result,
                mono=True,
                width=186,
                text=lambda row: moment(_ms(row[name])),
                tip=lambda row: full_moment(_ms(row[name])),
            )
        case "boolean":
            result = replace(result, text=lambda row: "" if row[name] is None else str(row[name]).lower())
        case "bytes":
            result = replace(result, mono=True, width=200, text=lambda row: _hex(row[name]), elide="right")
        case _:
            elide = "never" if meaning in WHOLE_TEXT else "middle"
            result = replace(result, width=200, mono=meaning not in PLAIN_TEXT, elide=elide, tip=_tip(name))
    if meaning == "topic" and name == "topic":
        result = replace(result, paint="topic")
    jump = _jump(name, meaning, names)
    return result if jump is None else replace(result, jump=jump)


def _text(row: SqlRow, name: str) -> str:
    value = row[name]
    if value is None:
        return ""
    text = value if isinstance(value, str) else cell_text(value) if isinstance(value, list | dict) else str(value)
    return plain(text if len(text) <= MAX_CELL_CHARACTERS else f"{text[:MAX_CELL_CHARACTERS]}…")


def _tip(name: str) -> Callable[[SqlRow], str]:
    return lambda row: "" if row[name] is None else _text(row, name)


def _ms(value: int | None) -> int | None:
    return None if value is None else value // 1000


def _decimal(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:,.6g}"


def _hex(value: bytes | None) -> str:
    if value is None:
        return ""
    shown = value[:64]
    return shown.hex(" ") + (" …" if len(value) > len(shown) else "")


def _jump(name: str, meaning: str, names: dict[str, str]) -> Jump | None:
    """Return where the cells of a column lead; ``names`` are the columns of the answer, by their meaning."""
    value = _whole(name)
    topic, queue_id = _string(names.get("topic")), _whole(names.get("queueId"))
    file = _string(names.get("file"))
    match meaning:
        case "physicalOffset" | "phyOffset" | "beginPhyOffset" | "endPhyOffset":
            return lambda row: places.log(offset) if (offset := value(row)) is not None and offset >= 0 else None
        case "queueOffset" | "minOffset" | "maxOffset" | "consumerOffset" if "topic" in names and "queueId" in names:
            return lambda row: _entry(topic(row), queue_id(row), value(row))
        case "queueId" if "topic" in names:
            return lambda row: _entry(topic(row), value(row), None)
        case "topic":
            text = _string(name)
            return lambda row: places.queue(found) if (found := text(row)) else None
        case "entry" if "file" in names:
            return lambda row: _in_index(file(row), "entry", value(row))
        case "slot" if "file" in names:
            return lambda row: _in_index(file(row), "slot", value(row))
        case "file" if "entry" in names or "hashSlotCount" in names or "keyHash" in names:
            text = _string(name)
            return lambda row: places.index(found) if (found := text(row)) else None
        case "consumerGroup":
            text = _string(name)
            return lambda row: Place("groups", name=found) if (found := text(row)) else None
        case "id" if "severity" in names or "nextStep" in names:
            text = _string(name)
            return lambda row: Place("findings", name=found) if (found := text(row)) else None
    return None


def _entry(topic: str, queue_id: int | None, queue_offset: int | None) -> Place | None:
    if not topic or queue_id is None or queue_id < 0:
        return None
    return places.queue(topic, queue_id, queue_offset if queue_offset is None or queue_offset >= 0 else None)


def _in_index(file: str, part: str, number_in_file: int | None) -> Place | None:
    if not file or number_in_file is None or number_in_file < 0:
        return None
    return places.index(file, part, number_in_file)


def _whole(name: str | None) -> Callable[[SqlRow], int | None]:
    def read(row: SqlRow) -> int | None:
        value: Any = row.get(name) if name is not None else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return read


def _string(name: str | None) -> Callable[[SqlRow], str]:
    def read(row: SqlRow) -> str:
        value: Any = row.get(name) if name is not None else None
        return value if isinstance(value, str) else ""

    return read
