"""Every module has its tests in the expected file: ``engine/codec/index.py`` in ``tests/engine/codec/test_index.py``.

Tests of ``engine/pipeline``, and of its commands (``engine/cli/pipeline_*.py``), are in ``tests/pipeline``, which has
one Spark session for all. The tests of a plain form test its compiled twin with the same cases (:data:`TWINS`). Modules
without functions (tables, protocols, numbers) need no tests.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TWINS = {
    "compiled": "codec/columns",
    "compiled_chains": "inspection/chain_query",
    "compiled_copies": "codec/log_copies",
    "compiled_dispatch": "codec/queue_builder",
    "compiled_put": "codec/object_put",
    "compiled_query": "codec/index_query",
    "compiled_search": "codec/block_search",
    "compiled_survey": "codec/unit_survey",
    "compiled_tally": "codec/tally",
    "compiled_texts": "codec/block_texts",
    "compiled_times": "inspection/histogram/unit_bins",
    "compiled_write": "codec/message_columns",
    "dispatch_twin": "codec/queue_builder",
}
"""Compiled module of ``engine/codec`` → the module of ``engine`` whose tests ask both."""


def place(module: Path) -> Path:
    """Return the expected path of the tests of ``module``, a path below the project."""
    if module.parent == Path("engine/codec") and module.stem in TWINS:
        plain = Path(TWINS[module.stem])
        return Path("tests/engine") / plain.parent / f"test_{plain.name}.py"
    on_spark = module.parts[:2] == ("engine", "pipeline") or module.match("engine/cli/pipeline_*.py")
    folder = Path("pipeline") if on_spark else module.parent
    return Path("tests") / folder / f"test_{module.name}"


def does_something(text: str) -> bool:
    """Return True if a module has a function with a body; protocols have none."""
    return any(
        not isinstance(statement, ast.Pass)
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
    )


def modules() -> list[Path]:
    return sorted(
        path.relative_to(ROOT)
        for top in ("engine", "viewer")
        for path in (ROOT / top).rglob("*.py")
        if path.name not in {"__init__.py", "__main__.py"} and does_something(path.read_text("utf-8"))
    )


def test_places_are_those_of_the_packages():
    assert place(Path("engine/codec/index.py")) == Path("tests/engine/codec/test_index.py")
    assert place(Path("engine/pipeline/spark_internals/java_process.py")) == Path("tests/pipeline/test_java_process.py")


def test_every_twin_is_there():
    stems = {path.stem for path in (ROOT / "engine/codec").glob("*.py")}
    assert set(TWINS) <= stems
    twins = {name for name in stems if name.startswith("compiled") or name.endswith("_twin")}
    assert twins - {"compiled_cache"} <= set(TWINS)


def test_modules_without_tests_have_no_functions():
    assert not does_something(
        'NAMES = ("a",)\nclass P(Protocol):\n    def ask(self) -> int:\n        """Say."""\n        ...\n'
    )
    assert does_something("class P:\n    def ask(self) -> int:\n        return 1\n")


def test_every_module_has_its_test_file():
    without = [module.as_posix() for module in modules() if not (ROOT / place(module)).exists()]
    assert without == [], "write the test file that is missing"
