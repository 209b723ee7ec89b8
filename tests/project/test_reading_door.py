"""Stores are read only through :mod:`engine.mapped.reading`: no other module opens, lists or stats their files.

A module that calls the system itself may take an error for an absence, which no ledger would contain.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("inspection", "store", "rules", "cli")
SYSTEM = {
    "scandir",
    "open",
    "stat",
    "lstat",
    "listdir",
    "walk",
    "access",
    "pread",
    "preadv",
    "exists",
    "isfile",
    "isdir",
}
METHODS = {
    "exists",
    "is_dir",
    "is_file",
    "is_symlink",
    "iterdir",
    "glob",
    "rglob",
    "read_bytes",
    "read_text",
    "stat",
    "lstat",
}
DOOR = {"reading", "self.reading", "store.reading", "source.reading", "cache.reading", "search"}
EXCEPTIONS = {
    "bench/data.py": "its own temporary store, and a program that it compiles",
    "inspection/samples.py": "samples that the program ships, and where they are unpacked",
    "inspection/archives.py": "an archive that is unpacked into the cache",
    "inspection/log_cache.py": "the cache beside the program, which may be lost",
    "inspection/copy_out.py": "where the copy grows",
    "bench/recover.py": "its own temporary store",
    "bench/writes.py": "its own temporary store, and what the system tells of this process",
    "cli/commands/recover.py": "the folder of what was kept",
    "cli/installation.py": "the machine and the sizes of files: no content, and an error is part of the answer",
    "client/offset_undo.py": "the undo file of offsets of running brokers",
    "inspection/salvage/searched_files.py": "the image that the user gives",
    "cli/put_plan.py": "the plan that the user gives",
    "cli/pipeline_trace.py": "the list of keys that the user gives",
    "cli/backup.py": "the folders beside the store in which earlier runs kept what they changed",
    "cli/main.py": "the null device, where a pipe was closed",
    "rebuilding.py": "the trees that it exchanges, which it holds the lock for",
    "cli/copying.py": "the copy that it closes",
    "cli/writing.py": "whether there is anything at the place of a new store; what is there is opened through the door",
    "cli/pipeline_import.py": "an export, which is no store",
    "cli/pipeline_export.py": "the export that it made",
    "cli/pipeline_jobs.py": "where a job writes",
    "cli/pipeline_rebuild.py": "where a job writes",
    "cli/pipeline_verify.py": "whether a store is on this machine; it is opened through the door",
}
"""Files that read something else than a store, and what."""


def calls_beside_the_door(source: str):
    """Return (line, call) of every direct call of the system."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id="open"):
                yield node.lineno, "open"
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in SYSTEM:
                yield node.lineno, f"os.{name}"
            case ast.Attribute(value=ast.Attribute(attr="path"), attr=name) if name in SYSTEM:
                yield node.lineno, f"os.path.{name}"
            case ast.Attribute(value=owner, attr="open") if _has_a_mode(node):
                yield node.lineno, f"{ast.unparse(owner)}.open"
            case ast.Attribute(value=owner, attr=name) if name in METHODS and not _may(owner, name):
                yield node.lineno, f"{ast.unparse(owner)}.{name}"


def _has_a_mode(call: ast.Call) -> bool:
    """Return True for ``path.open("rb")`` and ``path.open(encoding=…)``; the door and the engine's disk take a path."""
    words = {word.arg for word in call.keywords}
    first_argument = call.args[0] if call.args else None
    return bool({"mode", "encoding"} & words) or (
        isinstance(first_argument, ast.Constant) and isinstance(first_argument.value, str)
    )


def _may(owner: ast.expr, name: str) -> bool:
    """Return True for the door itself, the engine's disk, a queue's own ``read_bytes``, and a listed entry's own
    facts.
    """
    text = ast.unparse(owner)
    listed = text in {"entry", "listed_entry", "one"} and name in {"is_dir", "is_file", "is_symlink"}
    return listed or text.endswith((*DOOR, "disk", "_disk")) or (name == "read_bytes" and "path" not in text)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_reads_a_store_beside_the_door(folder):
    calls = []
    for path in sorted((ROOT / "engine" / folder).rglob("*.py")):
        name = str(path.relative_to(ROOT / "engine"))
        if name not in EXCEPTIONS:
            calls += [f"{name}:{line} {call}" for line, call in calls_beside_the_door(path.read_text(encoding="utf-8"))]
    assert calls == []


def test_every_exception_is_still_one():
    unused = [
        name
        for name in EXCEPTIONS
        if not list(calls_beside_the_door((ROOT / "engine" / name).read_text(encoding="utf-8")))
    ]
    assert unused == []


PLANTED = """
def f(path, store, folder):
    if path.exists(): pass
    os.scandir(folder)
    store.paths.config.is_dir()
    open(path)
    path.read_bytes()
    os.stat(path)
    path.open("rb")
    store.reading.exists(path)
    queue.read_bytes(0, 20)
"""


def test_a_direct_call_of_the_system_is_seen():
    assert [line for line, _ in calls_beside_the_door(PLANTED)] == [3, 4, 5, 6, 7, 8, 9]
