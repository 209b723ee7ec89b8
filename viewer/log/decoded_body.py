"""The decoded body of a unit as lines of its detail: its values as a tree, or why there are none. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from viewer.log.unit_fields import Group, Line
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import plain

if TYPE_CHECKING:
    from engine.codec.message import Unit
    from engine.decoding.bodies import DecodedBody
    from engine.decoding.guess import Guess
    from engine.decoding.rules import DecodingRule

TITLE = words("Decoded body")
MAX_LINES = 500
"""Maximum number of values that are lines of the tree."""
MAX_OPEN_LINES = 24
"""A value with more values of its own is folded at first."""
MAX_VALUE_CHARACTERS = 2000
MAX_TERM_CHARACTERS = 500


def read_decoded(rules: Sequence[DecodingRule], unit: Unit) -> tuple[Group | None, tuple[str, ...]]:
    """Return the group of a unit's decoded body, and the names of the fields in it.

    None if no rule is for it and nothing is likely. May take a second: call it in a thread.
    """
    from engine.decoding.bodies import BodyDecoders  # not before the first rows
    from engine.decoding.decoders import DECODERS
    from engine.decoding.guess import guess

    body = BodyDecoders(rules).decode_unit(unit)
    if not body.decoder:
        guessed = guess(unit.topic, unit.body, unit.sys_flag) if unit.body else None
        return (None if guessed is None else _guess_group(guessed)), ()
    if body.error:
        return Group(TITLE, tr("not decoded"), _error_lines(body)), ()
    tree = _Tree()
    lines = tree.lines_of(body.value, ())
    return Group(TITLE, tr(DECODERS[body.decoder].title), lines), tuple(tree.names)


def _guess_group(guessed: Guess) -> Group:
    text = tr("No rule says how the bodies of this topic are decoded; {why}.", why=engine_words(guessed.why))
    return Group(TITLE, tr("not decoded"), (Line("", text),), opened=False)


def _error_lines(body: DecodedBody) -> tuple[Line, ...]:
    return (Line("", plain(engine_words(body.error)), tone="error"),)  # a sentence has the full width


class _Tree:
    """Makes lines of values, at most :data:`MAX_LINES`."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._count = 0

    def lines_of(self, value: Any, path: tuple[str | int, ...]) -> tuple[Line, ...]:
        if not path and not isinstance(value, dict | list):
            return (self._line(tr("value"), value, path),)
        items: list[tuple[str | int, Any]] = list(value.items() if isinstance(value, dict) else enumerate(value))
        lines: list[Line] = []
        for step, item in items:
            if self._count >= MAX_LINES:
                hidden = len(items) - len(lines)
                lines.append(Line("", tr_plural("{n:,} further value", "{n:,} further values", n=hidden)))
                break
            lines.append(self._line(str(step) if isinstance(step, str) else f"[{step}]", item, (*path, step)))
        return tuple(lines)

    def _line(self, label: str, value: Any, path: tuple[str | int, ...]) -> Line:
        from engine.decoding.values import value_text
        from engine.query.tree import Field

        self._count += 1
        name = Field("body", path=path).label if path else ""
        if isinstance(value, dict | list) and value:
            inner = self.lines_of(value, path)
            note = (
                tr_plural("{n:,} field", "{n:,} fields", n=len(value))
                if isinstance(value, dict)
                else tr_plural("{n:,} item", "{n:,} items", n=len(value))
            )
            return Line(name, "", note, label=plain(label), lines=inner, folded=len(value) > MAX_OPEN_LINES)
        if name:
            self.names.append(name)
        text = value_text(value)
        shown = "null" if text is None else plain(text[:MAX_VALUE_CHARACTERS])
        return Line(name, shown, _kind(value), label=plain(label), term=_term(name, value))


def _term(name: str, value: Any) -> str:
    """Return the condition that a field has this value; "" for values that are too long for one."""
    from engine.query.filter import condition

    return condition(name, value) if name and len(str(value)) <= MAX_TERM_CHARACTERS else ""


def _kind(value: Any) -> str:
    """Return the kind of a value where its text does not tell it."""
    if isinstance(value, str) and (value in ("", "true", "false", "null") or value.lstrip("-").isdigit()):
        return tr("text")
    return ""
