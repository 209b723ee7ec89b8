"""Turn a table cell into a condition of the filter language, and combine conditions; no Qt.

The filter language filters units. A cell of another table (an entry, a step of a trace, a group's progress) gives
the condition that finds the unit it belongs to.
"""

from __future__ import annotations

from typing import Any

from engine.codec.message import Unit
from engine.codec.unit_fields import INSTEAD
from engine.errors import BadFilter
from viewer.look.assets import words
from viewer.widgets.columns import Column, Record, field_of

CONDITION_KINDS = (
    ("only", words("Only {term}")),
    ("not", words("All but {term}")),
    ("and", words("… and {term}")),
    ("andNot", words("… and not {term}")),
    ("or", words("… or {term}")),
    ("prepare", words("Write {term} into the filter")),
    ("copy", words("Copy {term}")),
)
"""How a filter uses a term, in the order of the menu; ``colour`` is a command of its own beside the bookmark."""

CELL_COMMANDS = {
    "filter.cell": "only",
    "filter.exclude": "not",
    "filter.and": "and",
    "filter.or": "or",
    "filter.prepare": "prepare",
    "filter.copy": "copy",
}
"""Command that filters by the chosen cell → how it uses the condition."""

LETTERS = {
    "T": '(transaction is not null or properties.TRAN_MSG is not null or topic startswith "RMQ_SYS_TRANS_")',
    "Z": "compressed",
    "B": "batch",
    "D": "(delayed or properties.DELAY is not null)",
    "R": "(retry or reconsumeTimes > 0)",
    "M": "properties.INNER_MULTI_DISPATCH is not null",
}
"""Letter of the Marks → its condition. Tests compare it with :func:`viewer.log.rows.letters`."""
NAMES = {**INSTEAD, "phyOffset": "physicalOffset", "key": "keys", "realTopic": "topic"}
PLAIN = frozenset(("physicalOffset", "size", "topic", "tags", "keys", "storeTimestamp", "crc", "bornHost", "storeHost"))
"""Fields that mean the same in every table."""
BODY = 80
"""Characters of the body in a condition on its beginning."""


def cell_term(kind: str, column: Column, record: Record) -> str | None:
    """The condition that this cell's value makes in the filter language, or None."""
    if column.term is not None:
        return column.term(record)
    if kind == "unit":
        return column.filter_text(record)
    name = NAMES.get(column.key, column.key)
    value = column.value(record)
    if value in (None, "", []):
        return None
    topic, queue = field_of("topic")(record), field_of("queueId")(record)
    try:
        if name in PLAIN:
            return term(name, value)
        if name == "queueId" and topic:
            return f"{term('topic', topic)} and {term(name, value)}"
        if name == "queueOffset" and topic and queue is not None:
            return f"{term('topic', topic)} and {term('queueId', queue)} and {term(name, value)}"
    except (BadFilter, TypeError, ValueError):
        return None
    return None


def line_term(name: str, shown: str, unit: Unit | None) -> str | None:
    """The condition that a field of the decoded unit makes, or None. ``shown`` is the displayed value."""
    from engine.query import FIELDS

    try:
        if name.startswith("properties."):
            value = unit.properties.get(name.removeprefix("properties.")) if unit is not None else None
            return term(name, shown if value is None else value)
        name = INSTEAD.get(name, name)
        if name == "physicalOffset" and unit is not None and unit.stale:
            name = "physicalOffsetField"
        spec = FIELDS.get(name)
        if spec is None or unit is None or name == "body":
            return None
        return term(name, spec.unit(unit))
    except (BadFilter, TypeError, ValueError):
        return None


def term(name: str, value: Any) -> str:
    """The condition that field ``name`` has ``value``. Raises BadFilter if there is no such field."""
    from engine.query import condition

    return condition(name, value)


def letters_term(letters: str) -> str | None:
    """The condition that a row has these Marks; None without letters."""
    return " and ".join(LETTERS[letter] for letter in letters if letter in LETTERS) or None


def body_term(preview: bytes | None) -> str | None:
    """The condition that a body begins like this one; None if the body is not text."""
    if not preview:
        return None
    text = preview.decode("utf-8", "ignore")[:BODY]
    if "\x00" in text or len(text.encode()) < min(len(preview), BODY) // 2:
        return None
    from engine.query import quote

    return f"body startswith {quote(text)}"


def combined(current: str, action_name: str, added: str) -> str:
    """Return the filter ``current`` after the action adds the condition ``added``. Raises BadFilter if one of them is
    invalid.
    """
    from engine.query import and_, negate, or_

    match action_name:
        case "not":
            return negate(added)
        case "and":
            return and_(current, added)
        case "andNot":
            return and_(current, negate(added))
        case "or":
            return or_(current, added)
        case "prepare" if current.strip():
            return and_(current, added)
        case _:
            return added
