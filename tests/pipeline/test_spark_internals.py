"""Code that depends on Spark's internals is in one package, and a Spark without such a place still works."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pyspark
import pytest

import engine
from engine.pipeline.spark_internals import RELEASES, WORKAROUNDS

ROOT = Path(engine.__file__).parent
PACKAGE = ROOT / "pipeline" / "spark_internals"
SPARKS_OWN = {
    "_accumulatorServer",
    "_active_spark_context",
    "_conf",
    "_gateway",
    "_instantiatedSession",
    "_jconf",
    "_jdf",
    "_jsc",
    "_jsparkSession",
    "_jvm",
    "_sc",
}
"""Names that pyspark keeps to itself."""


def internals_used(source: str) -> list[str]:
    attrs = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in SPARKS_OWN and not is_instance_name(node.value):
            attrs.append(node.attr)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [f"{getattr(node, 'module', '') or ''}.{name.name}".strip(".") for name in node.names]
            attrs += [item for item in names if "java_gateway" in item and not item.endswith("launch_gateway")]
            attrs += [name_ for name_ in names if name_.startswith("py4j")]
    return attrs


def is_instance_name(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in {"self", "cls"}


def test_a_use_of_the_internals_is_seen():
    assert internals_used("spark._jvm.java") == ["_jvm"]
    assert internals_used("from pyspark import java_gateway") == ["pyspark.java_gateway"]
    assert internals_used("from py4j.protocol import Py4JError") == ["py4j.protocol.Py4JError"]
    assert internals_used("self._conf = 1; from pyspark.java_gateway import launch_gateway") == []


def test_no_module_outside_the_package_uses_sparks_internals():
    outside = [path for path in (ROOT / "pipeline").rglob("*.py") if path.parent != PACKAGE]
    assert len(outside) > 30
    assert {path.name: used for path in outside if (used := internals_used(path.read_text("utf-8")))} == {}


@pytest.mark.parametrize("workaround", WORKAROUNDS, ids=lambda workaround: workaround.place.rpartition(".")[2])
def test_each_workaround_is_where_the_table_says(workaround):
    module, _, name = workaround.place.rpartition(".")
    assert hasattr(importlib.import_module(module), name)
    assert all((workaround.rests_on, workaround.why, workaround.elsewhere))


def test_every_public_function_of_the_package_has_a_row():
    """A public function of the package without a row would have no stated reason, and nobody would know where to
    look.
    """
    helping = {"forget_java": "restore_py4j_logging", "own_interrupts": "restore_py4j_logging", "inject": "NoPlace"}
    named = {workaround.place for workaround in WORKAROUNDS} | {f"{PACKAGE.name}.{item}" for item in helping.values()}
    public = [
        (path.stem, node.name)
        for path in PACKAGE.glob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    assert len(public) >= 8
    missing = [
        name
        for module, name in public
        if f"engine.pipeline.spark_internals.{module}.{name}" not in named and name not in helping.values()
    ]
    assert missing == []


def test_the_releases_are_those_that_the_documentation_names():
    page = (ROOT.parent / "resources/docs/reference/spark.md").read_text("utf-8")
    assert f"Tried with Spark {', '.join(RELEASES[:-1])} and {RELEASES[-1]}." in page
    assert pyspark.__version__.rpartition(".")[0] in {release.rpartition(".")[0] for release in RELEASES}
