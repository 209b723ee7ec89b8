"""A mended copy appears when it is complete; after a failure nothing is left of it."""

from __future__ import annotations

import golden_stores
import pytest
from handmade_stores import healthy

from engine.patching.patches import BadPatch, WriteFile
from engine.repair.mended_copy import copy_mended


def test_the_copy_has_the_patches_and_the_store_stays(tmp_path):
    root = healthy().write(tmp_path / "store")
    before = golden_stores.fingerprint(root)
    patch = WriteFile(file="config/topics.json", old=None, new=b"{}", why="a table")
    seen = []
    copy = copy_mended(root, tmp_path / "new", [patch], lambda done, total: seen.append((done, total)))
    assert (copy / "config" / "topics.json").read_bytes() == b"{}"
    assert seen[-1][0] == seen[-1][1]
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []


def test_nothing_is_left_of_a_copy_that_fails(tmp_path):
    """The command left a whole copy without its patches, which looked like a mended one."""
    root = healthy().write(tmp_path / "store")
    patch = WriteFile(file="checkpoint", old=b"other", new=b"{}", why="does not fit")
    with pytest.raises(BadPatch):
        copy_mended(root, tmp_path / "new", [patch], lambda _done, _total: None)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
