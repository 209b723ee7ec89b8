"""What stands in the product is used by it: a function that only tests call belongs to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from import_graph import graph, modules

ROOT = Path(__file__).resolve().parents[2]
KEPT = {
    # The door for whoever writes a store from Python: what RocketMQ's own store is asked.
    "MessageStore.query_by_unique_key",
    "MessageStore.query_by_offset_id",
    "CommitLog.set_max_message_size",
    # A value that tells of itself what it means.
    "RunningFlags.queue_writeable",
    "MappedFile.is_lent",
    "PowerLossReport.as_planned",
    "Trial.as_expected",
    "Outcome.in_front",
    "HexView.cursor_offset",
    # How a test says where it is, or how it reads.
    "set_zone",
    "read_through",
    # asyncio calls these.
    "Connection.connection_made",
    "Connection.data_received",
    "Connection.connection_lost",
    "Connection.pause_writing",
    "Connection.resume_writing",
    # Test suites use this; the README shows it.
    "serving_beside",
    # The doors of the clients, for whoever sends and consumes from Python.
    "QueueConsumer.reset_to",
    "LitePullConsumer.seek_to_begin",
    "LitePullConsumer.seek_to_end",
    # Python's import asks this.
    "_Code.get_filename",
}
"""Public functions that nothing of the product names, and why each is there all the same."""
_OVERRIDE = re.compile(r"[a-z]+[A-Z]")  # Qt and Spark call these by their names


def named(tree: ast.AST) -> Iterator[str]:
    """Every name that the code uses, words of short texts (lazy names) included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
            yield from re.findall(r"[A-Za-z_]\w+", node.value)


def functions(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, name with its class) of each public function."""
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        for one in inner:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and not one.name.startswith("_"):
                yield one.name, f"{node.name}.{one.name}" if isinstance(node, ast.ClassDef) else one.name


def unused(sources: list[str]) -> set[str]:
    """Public functions that no source names; by name alone, so one that shares its name with another's is not seen."""
    trees = [ast.parse(source) for source in sources]
    names = {name for tree in trees for name in named(tree)}
    found = (one for tree in trees for one in functions(tree))
    return {whole for name, whole in found if name not in names and not _OVERRIDE.match(name)}


def test_what_nobody_calls_is_seen():
    product = [
        "class A:\n    def asked(self): ...\n    def left(self): ...\n    def paintEvent(self): ...\n",
        "A().asked()",
    ]
    assert unused(product) == {"A.left"}


def test_no_function_of_the_product_is_there_for_tests_alone():
    product = [path.read_text("utf-8") for room in ("engine", "viewer") for path in (ROOT / room).rglob("*.py")]
    assert unused(product) == KEPT


KEPT_MODULES = {
    "engine.client.blocking": "programs without an event loop import it themselves",
}
"""Modules that nothing of the product imports or names whole, and who does."""


def loaded_by_name(tree: ast.AST) -> Iterator[str]:
    """Dotted names in texts (``viewer.log.pane:LogPane``), and the beginnings of those that are put together, with a
    star: ``engine.cli.commands.*``.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and isinstance(first := node.values[0], ast.Constant):
            yield f"{first.value}*"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\b(?:engine|viewer)(?:\.\w+)+", node.value)


def alone(files: dict[str, Path]) -> set[str]:
    """Modules that no other imports or names; a command counts where the list of commands has it."""
    edges = graph(files)
    trees = [ast.parse(path.read_text("utf-8")) for path in files.values()]
    named_whole = {name for tree in trees for name in loaded_by_name(tree)}
    beginnings = tuple(name[:-1] for name in named_whole if name.startswith("engine.") and name.endswith("*"))
    words = {name for tree in trees for name in named(tree)}
    imported = set().union(*edges.values())
    return {
        name
        for name, path in files.items()
        if name not in imported | named_whole
        and path.name not in {"__init__.py", "__main__.py"}
        and not any(name.startswith(one) and name[len(one) :] in words for one in beginnings)
    }


def test_no_module_of_the_product_is_there_for_tests_alone():
    """Two were: a codec that nothing asked any more, and the disk in memory of the crash tests."""
    assert alone(modules()) == KEPT_MODULES.keys()
