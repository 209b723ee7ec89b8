"""A module is tested where one looks for it: ``engine/codec/index.py`` by ``tests/engine/codec/test_index.py``.

Those of ``engine/pipeline`` are tested in ``tests/pipeline``, which has one Spark session for all. Modules without such
a file stand in ``tests/project/without_a_test_file.txt``; most of them are asked through their neighbours, a journey or
a store of a real broker. The list only shrinks.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("without_a_test_file.txt")


def place(module: Path) -> Path:
    """Where the tests of ``module``, a path below the project, are looked for."""
    folder = Path("pipeline") if module.parts[:2] == ("engine", "pipeline") else module.parent
    return Path("tests") / folder / f"test_{module.name}"


def modules() -> list[Path]:
    return sorted(
        path.relative_to(ROOT)
        for top in ("engine", "viewer")
        for path in (ROOT / top).rglob("*.py")
        if path.name not in {"__init__.py", "__main__.py"}
    )


def listed() -> set[str]:
    return {line for line in LIST.read_text("utf-8").splitlines() if line and not line.startswith("#")}


def test_places_are_those_of_the_packages():
    assert place(Path("engine/codec/index.py")) == Path("tests/engine/codec/test_index.py")
    assert place(Path("engine/pipeline/insides/java_process.py")) == Path("tests/pipeline/test_java_process.py")


def test_every_module_has_a_test_file_where_one_looks_for_it_or_is_listed():
    without = {module.as_posix() for module in modules() if not (ROOT / place(module)).exists()}
    assert sorted(without - listed()) == [], "write the test file that is missing"
    assert sorted(listed() - without) == [], "these have one now: take them off the list"
