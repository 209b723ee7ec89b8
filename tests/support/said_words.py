"""Every text of the viewer that goes through translation, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MARKERS = ("tr", "words")
HEADS = ("number_column", "text_column", "topic_column", "time_column", "moment_column", "chip_column", "Column")


def said_in(source: Path) -> Iterator[str]:
    """Texts given to ``tr`` or ``words`` as they stand, in one file."""
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
            continue
        if node.func.id in MARKERS:
            yield from _texts(node.args[0])
        elif node.func.id in HEADS and len(node.args) > 1:
            yield from _texts(node.args[1])


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if node.value:
            yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _texts(value)


def said(root: Path) -> dict[str, str]:
    """Text → the file that says it, for every module below ``root``; commands' words and views' titles too."""
    found: dict[str, str] = {}
    for source in sorted(root.rglob("*.py")):
        for text in said_in(source):
            found.setdefault(text, source.name)
    return found
