"""Each module of the product is used by the product, or the documentation tells users to import it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from import_graph import graph, modules

ROOT = Path(__file__).resolve().parents[2]
_DOTTED = re.compile(r"\b(?:engine|viewer)(?:\.\w+)+")


def words_of(tree: ast.AST) -> Iterator[str]:
    """Yield every name that the code uses, and the words of its short texts: commands are loaded by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
            yield from re.findall(r"[A-Za-z_]\w+", node.value)


def loaded_by_name(tree: ast.AST) -> Iterator[str]:
    """Yield dotted names in texts (``viewer.log.pane:LogPane``), and the beginnings of composed ones with a star:
    ``engine.cli.commands.*``.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and isinstance(head := node.values[0], ast.Constant):
            yield f"{head.value}*"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _DOTTED.findall(node.value)


def documented() -> set[str]:
    """Return the modules that the README and the pages of the documentation name."""
    pages = [ROOT / "README.md", *(ROOT / "resources" / "docs").rglob("*.md")]
    return {name for page in pages for name in _DOTTED.findall(page.read_text("utf-8"))}


def unused(files: dict[str, Path]) -> set[str]:
    """Return the modules that no other module imports or names."""
    edges = graph(files)
    trees = [ast.parse(path.read_text("utf-8")) for path in files.values()]
    by_name = {name for tree in trees for name in loaded_by_name(tree)}
    beginnings = tuple(name[:-1] for name in by_name if name.startswith("engine.") and name.endswith("*"))
    words = {word for tree in trees for word in words_of(tree)}
    imported = set().union(*edges.values())
    return {
        name
        for name, path in files.items()
        if name not in imported | by_name
        and path.name not in {"__init__.py", "__main__.py"}
        and not any(name.startswith(start) and name[len(start) :] in words for start in beginnings)
    }


def test_no_module_of_the_product_is_there_for_tests_alone():
    """Two were: a codec that was not used any more, and the disk in memory of the crash tests."""
    assert unused(modules()) - documented() == set()
