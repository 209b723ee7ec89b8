"""Parsed tables as rows: every value with its path, and the differences between two tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 32
"""Depth from which a nested value is one row."""
MAX_VALUES = 200_000


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a table with its path."""

    path: str
    value: Any


@dataclass(frozen=True, slots=True)
class Change:
    """A value that differs between two tables: both as text, None if a table has no such value."""

    path: str
    first_text: str | None
    second_text: str | None

    @property
    def kind(self) -> str:
        """``here``: only the first table has it, ``there``: only the second, ``differs``."""
        return "there" if self.first_text is None else "here" if self.second_text is None else "differs"


def values(tree: Any, path: str = "", depth: int = 0) -> Iterator[Value]:
    """Yield every leaf of a parsed table, in order, with its path."""
    if isinstance(tree, dict) and tree and depth < MAX_DEPTH:
        for key, value in tree.items():
            yield from values(value, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(tree, list) and tree and depth < MAX_DEPTH:
        for number, value in enumerate(tree):
            yield from values(value, f"{path}[{number}]", depth + 1)
    else:
        yield Value(path, tree)


def value_text(value: Any) -> str:
    """Return a value on one line; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def changes(table: Any, other_table: Any, max_values: int = MAX_VALUES) -> list[Change]:
    """Return the differences in the order of the first table, then the values that only the second has.

    At most ``max_values`` values of each table are compared.
    """
    texts, other_texts = (
        {value.path: value_text(value.value) for value, _ in zip(values(tree), range(max_values), strict=False)}
        for tree in (table, other_table)
    )
    differences = [
        Change(path, text, other_texts.get(path)) for path, text in texts.items() if other_texts.get(path) != text
    ]
    return differences + [Change(path, None, text) for path, text in other_texts.items() if path not in texts]
