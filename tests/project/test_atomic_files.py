"""Files are put in place by ``engine/files/atomic_file.py``, in a store by its ``Disk``, and never by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BESIDE = (".part", ".tmp", ".growing", ".draft", ".partial")
MOVES = {"replace", "rename", "renames", "move", "link"}
ALLOWED = {
    "engine/files/atomic_file.py": "the one place",
    "engine/mapped/disk.py": "the disk itself, and the one place for files of a store behind it",
    "engine/system/posix.py": "a file without a name gets one",
    "engine/mapped/backup.py": "a file that is about to go keeps a second name",
    "engine/mapped/undo.py": "what was kept gets its names and bytes back, in a store that is no open one",
    "engine/lab/shadow_disk.py": "what is on the disk and what a power loss leaves: links to one file's bytes",
    "engine/lab/lab_store.py": "a store's folder comes back as it was before the power cut",
    "engine/lab/power_cut.py": "a store's folder goes aside, what the power loss left takes its place",
    "engine/inspection/samples.py": "a folder is unpacked beside its place",
    "engine/files/zip_import.py": "files that lend their names to machine code: never run, made again",
    "engine/pipeline/rebuild.py": "a folder is built beside its place",
    "engine/pipeline/export_parquet.py": "files of a task's attempt move into the export's folder, itself staged",
    "engine/cli/pipeline_export.py": "files that Spark wrote move inside the export's folder, itself staged",
    "engine/cli/pipeline_jobs.py": "a folder is written beside its place",
    "engine/files/temporary_folders.py": "a folder is written beside its place",
    "engine/rebuilding.py": "folders of a store change places with new ones",
    "viewer/shell/open_other.py": "a folder is unpacked beside its place",
    "viewer/shell/app.py": "crash notes of an earlier run are renamed, not written",
    "viewer/shell/crash_notes.py": "as above",
}


def by_hand(tree: ast.AST) -> Iterator[int]:
    """Return the lines that rename a file, or name a temporary file beside its place."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if text.endswith(BESIDE):
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os" | "shutil"), attr=name)) if name in MOVES:
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"))):
                pass
            case ast.Call(func=ast.Attribute(attr="replace" | "rename"), args=[one], keywords=[]):
                if not isinstance(one, ast.Dict):
                    yield node.lineno


def test_each_way_by_hand_is_found() -> None:
    """The walk finds each of the ways that the code once used."""
    ways = (
        "partial.replace(file)",
        "Path(made.name).replace(self._path)",
        "os.replace(a, b)",
        "draft.rename(path)",
        "file.with_suffix('.part')",
        "name = f'.{file.name}.{os.getpid()}.part'",
        "shutil.move(a, b)",
    )
    assert [way for way in ways if not list(by_hand(ast.parse(way)))] == []
    assert not list(by_hand(ast.parse("text.replace('a', 'b'); replace(mark, made=1); when.replace(hour=1)")))


def test_no_file_is_put_in_place_by_hand() -> None:
    """Six places did it: one name for all threads, no sync, an older state that could land last."""
    results = {
        str(path.relative_to(ROOT))
        for package in ("engine", "viewer", "resources")
        for path in (ROOT / package).rglob("*.py")
        if list(by_hand(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert sorted(results - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - results) == [], "no longer needed"
