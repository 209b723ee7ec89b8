"""Patches are values that are saved as JSON; a list from elsewhere cannot lead out of the store."""

from __future__ import annotations

import json

import pytest

from engine.patching.patches import (
    BadPatch,
    MoveFile,
    Patch,
    PatchList,
    RemoveFile,
    ResizeFile,
    WriteBytes,
    WriteFile,
    loads,
    sample_digest,
)

PATCHES: list[Patch] = [
    WriteBytes(file="checkpoint", offset=8, old=b"\0" * 8, new=b"\1" * 8, why="set the time", costs="2 s of log"),
    WriteFile(file="config/a.json", old=None, new=b"{}", why="create the table"),
    WriteFile(file="config/a.json", old=b"{}", new=b"{ }", why="change it"),
    RemoveFile(file="index/20260101", size=3, sample=sample_digest(b"abc", b"abc"), why="build it again"),
    MoveFile(file="abort", target="abort.old", size=0, sample=sample_digest(b"", b""), why="keep it"),
    ResizeFile(file="commitlog/0", size=3, new_size=9, sample=sample_digest(b"abc", b"abc"), why="it was cut"),
]


def test_a_saved_list_is_read_as_it_was():
    patches = PatchList(PATCHES)
    assert list(loads(patches.dumps())) == PATCHES


def test_undo_and_redo_keep_the_order():
    patches = PatchList(PATCHES)
    assert patches.undo() == PATCHES[-1]
    assert patches.undo() == PATCHES[-2]
    assert patches.redo() == PATCHES[-2]
    assert list(patches) == PATCHES[:-1]
    patches.add(PATCHES[0])
    assert patches.redo() is None, "a new patch forgets those that were undone"
    assert len(patches) == len(PATCHES)
    assert PatchList().undo() is None


def test_new_bytes_have_the_length_of_the_old_ones():
    with pytest.raises(ValueError, match="as many new bytes"):
        WriteBytes(file="checkpoint", offset=0, old=b"", new=b"1", why="")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "[]",
        "{}",
        '{"storescopePatches": 2, "patches": []}',
        '{"storescopePatches": 1}',
        '{"storescopePatches": 1, "patches": [1]}',
        '{"storescopePatches": 1, "patches": [{"action": "writeBytes"}]}',
    ],
)
def test_other_texts_are_refused(text):
    with pytest.raises(BadPatch):
        loads(text)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../other", "config/../../x", "config//x", "./x", "a\0b"])
def test_names_outside_the_store_are_refused(name):
    for field in ("file", "target"):
        row = PATCHES[-1].record() | {field: name}
        with pytest.raises(BadPatch, match="patch 1"):
            loads(json.dumps({"storescopePatches": 1, "patches": [row]}))


@pytest.mark.parametrize(
    ("patch", "field", "value"),
    [
        (0, "offset", -1),
        (0, "offset", "0"),
        (0, "old", "zz"),
        (0, "new", "00"),
        (0, "why", 1),
        (0, "other", 1),
        (1, "new", None),
        (3, "size", "3"),
    ],
)
def test_fields_of_another_type_are_refused(patch, field, value):
    row = PATCHES[patch].record() | {field: value}
    with pytest.raises(BadPatch, match="patch 1"):
        loads(json.dumps({"storescopePatches": 1, "patches": [row]}))
