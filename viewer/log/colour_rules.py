"""Colouring rules: filters that tint the rows they match, the first that matches wins; no Qt.

A tint is a ground, a shape in the gutter and the rule's name as a word: colour is never alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engine.codec.message import Unit
from engine.errors import BadFilter
from viewer.look.assets import words

TINTS = {
    "blue": ("noteFill", words("blue, square")),
    "green": ("okFill", words("green, bar")),
    "amber": ("warnFill", words("amber, plus")),
    "red": ("errorFill", words("red, cross")),
    "yellow": ("glow", words("yellow, star")),
    "grey": ("sunken", words("grey, ring")),
}
"""Name of a tint → colour role of the ground, and what it looks like in words."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Rows that match ``text`` get ``tint``; ``on`` where it is in force."""

    name: str
    text: str
    tint: str = "blue"
    on: bool = True

    @property
    def fault(self) -> str:
        """Why the filter cannot be understood; "" where it can."""
        if not self.text.strip():
            from viewer.look.assets import tr

            return tr("The filter is empty.")
        from engine.query import parse

        try:
            parse(self.text)
        except BadFilter as wrong:
            return wrong.what
        return ""


@dataclass(frozen=True, slots=True)
class RowStyle:
    """Style that a rule gives a row: its name and its tint; both empty if no rule matches."""

    rule: str = ""
    tint: str = ""


PLAIN = RowStyle()
FileOf = Callable[[int], str | None]


def row_style_function(rules: Sequence[Rule], file_of: FileOf | None = None) -> Callable[[Unit], RowStyle] | None:
    """Return a function from a unit to its style; None if no rule is in force. Unreadable rules are left out."""
    active_rules = [rule for rule in rules if rule.on and not rule.fault]
    if not active_rules:  # the first rows need not wait for the language of filters
        return None
    from engine.decoding.bodies import decoding_by
    from engine.query import parse

    now = time.time_ns() // 1_000_000
    tests = []
    for rule in active_rules:
        with decoding_by(()):  # whoever reads rows has the rules in force
            tests.append((parse(rule.text, now_ms=now).compile(file_of), RowStyle(rule.name, rule.tint)))

    def row_style(unit: Unit) -> RowStyle:
        return next((style for test, style in tests if test(unit)), PLAIN)

    return row_style


def kept(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """The rules as settings keep them."""
    return [asdict(rule) for rule in rules]


def read(items: Iterable[dict[str, Any]]) -> list[Rule]:
    """Read the rules from settings; damaged ones are left out."""
    rules = []
    for item in items:
        name, text, tint = item.get("name"), item.get("text"), item.get("tint")
        if isinstance(name, str) and isinstance(text, str) and tint in TINTS:
            rules.append(Rule(name, text, str(tint), item.get("on") is not False))
    return rules
