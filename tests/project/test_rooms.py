"""The rooms of the house: which files import each other in a circle, and which know no widget."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_graph import circles, graph, imported, modules

ROOT = Path(__file__).resolve().parents[2]
SUBJECTS = ("log", "queues", "index", "positions", "findings", "space", "groups", "config", "where", "lab", "pipeline",
            "compare", "keep", "cluster")  # fmt: skip


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
