"""Examples of the README and the documentation: blocks of Python, expressions in a sentence, lines for a shell."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

import docs

README = "\n\n".join(page.read_text("utf-8") for page in (docs.ROOT / "README.md", *docs.written_pages()))
"""The README and every page of the documentation that a person wrote."""
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_ENGINE = re.compile(r"`(engine(?:\.\w+)+(?:\([^`]*\))?)`")


def python_blocks(*, spark: bool = False) -> list[str]:
    """Return the blocks of Python in order: those that use a session of Spark, or the others."""
    blocks = dict.fromkeys(text for kind, text in _FENCED.findall(README) if kind == "python")
    return [text for text in blocks if bool(re.search(r"\bspark\b", text)) == spark]


def run_block(block: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a block in the working directory, with ``names`` defined (``spark``, if it uses that); return its names."""
    known_values = dict(names)
    exec(compile(block, "README.md", "exec"), known_values)
    return known_values


def expressions(*, spark: bool = False) -> list[str]:
    """Return the texts in sentences that begin with ``engine.``: names and calls."""
    return [text for text in _ENGINE.findall(README) if bool(re.search(r"\bspark\b", text)) == spark]


def value_of(expression: str, names: dict[str, Any]) -> object:
    """Return the value of the expression, after importing its module."""
    module = expression.partition("(")[0]
    while module:
        module = module.rpartition(".")[0]
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        break
    return eval(expression, {"engine": importlib.import_module("engine"), **names})


def commands() -> Iterator[str]:
    """Return every shell line that begins with our own commands, without the comment after it: two blanks part them, or
    the column at which most lines of the block have it.
    """
    for kind, text in _FENCED.findall(README):
        lines = [] if kind else text.splitlines()
        columns = [match.end() for line in lines if (match := re.match(r"\S.*?\s{2,}(?=\S)", line))]
        output = max(set(columns), key=columns.count) if columns else 0
        for line in lines:
            parts = re.split(r"\s{2,}", line, maxsplit=1)
            command = line[:output] if len(parts) == 1 and line[:output].endswith(" ") else parts[0]
            if command.startswith(("storescope ", "bash ")):
                yield command.strip()
