"""Parsed tables as rows: every value by its path, and what differs between two of them. No Qt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

DEEPEST = 32
MOST_VALUES = 200_000


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a table by its path."""

    path: str
    value: Any


@dataclass(frozen=True, slots=True)
class Change:
    """A value that two tables do not share: ``one`` and ``other`` as text, None where a table has no such value."""

    path: str
    one: str | None
    other: str | None

    @property
    def kind(self) -> str:
        """``here``: only the first has it, ``there``: only the second, ``differs``."""
        return "there" if self.one is None else "here" if self.other is None else "differs"


def values(tree: Any, path: str = "", depth: int = 0) -> Iterator[Value]:
    """Every leaf of a parsed table, in its order, with its path."""
    if isinstance(tree, dict) and tree and depth < DEEPEST:
        for key, value in tree.items():
            yield from values(value, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(tree, list) and tree and depth < DEEPEST:
        for number, value in enumerate(tree):
            yield from values(value, f"{path}[{number}]", depth + 1)
    else:
        yield Value(path, tree)


def value_text(value: Any) -> str:
    """A value on one line; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def changes(one: Any, other: Any, most: int = MOST_VALUES) -> list[Change]:
    """What differs, in the order of the first table, then what only the second has; at most ``most`` values of each
    are looked at.
    """
    mine, theirs = (
        {value.path: value_text(value.value) for value, _ in zip(values(tree), range(most), strict=False)}
        for tree in (one, other)
    )
    found = [Change(path, text, theirs.get(path)) for path, text in mine.items() if theirs.get(path) != text]
    return found + [Change(path, None, text) for path, text in theirs.items() if path not in mine]
