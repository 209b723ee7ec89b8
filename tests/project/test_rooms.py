"""Packages of the project: files that import each other in a circle, and files that may not know widgets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from import_graph import circles, graph, imported, modules

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("engine", "viewer", "resources", "packaging", "tests")
LAYERS = next(
    contract["layers"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    if contract.get("containers") == ["viewer"]
)
"""The floors of the viewer, as the contracts have them: the one list of its rooms."""
SUBJECTS = max((layer.split(" | ") for layer in LAYERS), key=len)


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def test_modules_of_different_folders_do_not_import_each_other_in_a_circle():
    """Within a folder modules may name each other's types."""
    crossing = [circle for circle in circles(graph(modules())) if len({name.rpartition(".")[0] for name in circle}) > 1]
    assert [sorted(circle) for circle in crossing] == []


@pytest.mark.parametrize("subject", SUBJECTS)
def test_rows_words_and_work_know_no_widget(subject):
    for path in (ROOT / "viewer" / subject).glob("*.py"):
        if path.stem in {"rows", "words", "facts", "columns"} or path.stem.endswith("work"):
            names = imported(path)
            assert not [name for name in names if name.startswith("PySide6.QtWidgets")], path
            assert f"viewer.{subject}.pane" not in {item.rpartition(".")[0] for item in names}, path


MODELS = sorted(path for room in SUBJECTS for path in (ROOT / "viewer" / room).glob("*_model.py"))


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_the_model_of_a_view_knows_no_qt(model):
    assert not [name for name in imported(model) if name.startswith("PySide6")]


def test_no_part_of_the_log_knows_its_pane():
    for path in (ROOT / "viewer" / "log").glob("*.py"):
        assert not [name for name in imported(path) if name.startswith("viewer.log.pane")], path


def test_every_subject_is_a_package():
    names = {path.name for path in (ROOT / "viewer").iterdir() if (path / "__init__.py").exists()}
    assert names == {room for layer in LAYERS for room in layer.split(" | ")} - {"__main__", "command"}


def drawing() -> str:
    """Return the picture of the layers, without the text beside it."""
    return (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("```")[1]


def test_the_drawing_has_every_package_and_no_other():
    engine = {path.stem for path in (ROOT / "engine").iterdir() if path.is_dir() or path.suffix == ".py"}
    viewer = {path.name for path in (ROOT / "viewer").iterdir() if path.is_dir()}
    words = set(re.findall(r"\w+", drawing()))
    assert sorted(engine - {"__init__", "__pycache__"} - words) == []
    assert sorted(viewer - {"__pycache__"} - words) == []
    named = set(re.findall(r"\b(?:engine|viewer)\.(\w+)", drawing()))
    assert sorted(named - engine - viewer - {"command"}) == []
    floor = drawing().partition("viewer.shell")[2].partition("viewer.pane")[0]
    barred = {*re.findall(r"(\w+) │", floor), *re.findall(r"│ (\w+)", floor)}
    assert barred == set(SUBJECTS), "the floor of the subjects, between bars"


FOLDERS = ("architecture", "contributing")
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (*ROOT.glob("*.md"), *(page for name in FOLDERS for page in ROOT.glob(f"resources/docs/{name}/*.md")))
)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page):
    named = re.findall(r"`([\w/]+\.py)`", (ROOT / page).read_text("utf-8"))
    present = [path.relative_to(ROOT).as_posix() for top in TOPS for path in (ROOT / top).rglob("*.py")]
    missing = {
        item for item in named if "NAME" not in item and not any(f"/{path}".endswith(f"/{item}") for path in present)
    }
    assert sorted(missing) == []
