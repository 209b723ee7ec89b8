"""The rooms of the house: which files import each other in a circle, and which know no widget."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUBJECTS = ("log", "queues", "index", "positions", "findings", "space", "groups", "config", "where", "lab", "pipeline",
            "compare", "keep", "cluster")  # fmt: skip


def modules() -> dict[str, Path]:
    found = {}
    for package in ("engine", "viewer"):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path) -> set[str]:
    """Whatever the file imports, as dotted names: for types, and late in a function, too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def graph(files: dict[str, Path]) -> dict[str, set[str]]:
    return {
        name: {one if one in files else one.rpartition(".")[0] for one in imported(path)} & files.keys() - {name}
        for name, path in files.items()
    }


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Sets of files each of which leads to each other."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        seen, waiting = set(), [start]
        while waiting:
            for one in edges[waiting.pop()] - seen:
                seen.add(one)
                waiting.append(one)
        reached[start] = seen
    found = {frozenset(one for one in reached[name] if name in reached[one]) for name in edges if name in reached[name]}
    return [set(one) for one in found]


def test_a_circle_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def test_no_two_files_import_each_other_round_about():
    """Imports for types are counted: a part that names the whole is given what it needs instead (a ``Protocol``)."""
    assert [sorted(circle) for circle in circles(graph(modules()))] == []


@pytest.mark.parametrize("subject", SUBJECTS)
def test_rows_words_and_work_know_no_widget(subject):
    for path in (ROOT / "viewer" / subject).glob("*.py"):
        if path.stem in {"rows", "words", "facts", "columns"} or path.stem.endswith("work"):
            names = imported(path)
            assert not [one for one in names if one.startswith("PySide6.QtWidgets")], path
            assert f"viewer.{subject}.pane" not in {one.rpartition(".")[0] for one in names}, path


def test_the_model_of_the_log_knows_no_qt_and_none_of_its_parts_the_pane():
    room = ROOT / "viewer" / "log"
    assert not [one for one in imported(room / "log_model.py") if one.startswith("PySide6")]
    for path in room.glob("*.py"):
        assert not [one for one in imported(path) if one.startswith("viewer.log.pane")], path


def test_every_subject_is_a_room():
    there = {path.name for path in (ROOT / "viewer").iterdir() if (path / "__init__.py").exists()}
    assert there == {*SUBJECTS, "look", "pane", "runtime", "shell", "widgets"}
