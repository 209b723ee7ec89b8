"""How the source is written, where a walk over it can tell: docstrings as they were wrapped, state with a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 120
PACKAGES = ("engine", "viewer", "resources", "tests", "packaging")


def sources(*packages: str) -> Iterator[tuple[str, str]]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def broken_wraps(text: str) -> Iterator[int]:
    """Lines of docstrings that hold one word or two in the middle of a paragraph, though the next one had room."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as said):
                for at in range(said.lineno, said.end_lineno or said.lineno):
                    here, after = lines[at - 1].rstrip(), lines[at].split()
                    words = here.strip().strip('"').split()
                    begins = not after or after[0] in ("*", "-") or after == ['"""']
                    short = 1 <= len(words) <= 2 and not here.endswith(":")
                    if short and not begins and len(here) + 1 + len(after[0]) <= WIDTH - 20:
                        yield at


def boxes(text: str) -> Iterator[str]:
    """Names at the top of a module that are lists of one thing which somebody puts in or exchanges."""
    tree = ast.parse(text)
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[_])) if name != "__all__":
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.List(elts=elements)):
                if len(elements) == 1 or f"{name}[0]" in text:
                    yield name


def test_what_is_looked_for_is_seen() -> None:
    assert list(broken_wraps('"""One line of some length that goes on\nbroken\nhere in the middle."""')) == [2]
    assert not list(broken_wraps('"""A summary.\n\nWords:\nand more\n* a list\n* of lines\n"""'))
    kept = "_zone: list[str | None] = [None]\n_twin: list[int] = []\n_asked = [0]\nx = _twin[0]\n"
    assert list(boxes(kept)) == ["_zone", "_twin", "_asked"]
    assert not list(boxes("NAMES = ['a', 'b']\n_open: list[int] = []\n__all__ = ['x']\n"))


def test_docstrings_are_wrapped_as_paragraphs() -> None:
    """Sixteen were broken by a re-flow: a word alone on a line in the middle of a sentence."""
    assert [f"{name}:{line}" for name, text in sources(*PACKAGES) for line in broken_wraps(text)] == []


def test_state_of_a_module_is_an_attribute_of_something_with_a_name() -> None:
    """Lists of one thing are globals without the word, and harder to see."""
    found = [f"{name}: {box}" for name, text in sources("engine", "viewer", "resources") for box in boxes(text)]
    assert found == []
