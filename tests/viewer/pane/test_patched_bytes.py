"""The bytes that patches change are known with their old values."""

from __future__ import annotations

from engine.patching.patches import RemoveFile, WriteBytes, WriteFile
from viewer.pane import patched_bytes
from viewer.pane.patched_bytes import file_changes, log_changes

LOG = "commitlog/00000000000000001024"


def test_the_first_old_value_is_kept_and_equal_bytes_are_not_changed() -> None:
    patches = (
        WriteBytes(file=LOG, offset=16, old=b"abcd", new=b"abXY", why=""),
        WriteBytes(file=LOG, offset=18, old=b"XY", new=b"cZ", why=""),
        WriteBytes(file="consumequeue/T/0/00000000000000000000", offset=0, old=b"a", new=b"b", why=""),
    )
    assert log_changes(patches, 0, 1 << 40) == {1024 + 19: ord("d")}
    assert log_changes(patches, 0, 1024 + 19) == {}
    assert file_changes(patches, patches[2].file, 0, 100) == {0: ord("a")}


def test_a_new_byte_has_no_old_value() -> None:
    grown = WriteFile(file="config/topics.json", old=b"{}", new=b"{ }!", why="")
    assert file_changes([grown], grown.file, 0, 100) == {1: ord("}"), 2: None, 3: None}
    gone = RemoveFile(file=grown.file, size=4, sample="", why="")
    assert file_changes([grown, gone], grown.file, 0, 100) == {}


def test_a_frame_looks_only_at_the_patches_near_it(monkeypatch):
    """With 10,000 patches each frame hashed and looked at all of them, which took 4 ms."""
    name = f"commitlog/{0:020d}"
    patches = tuple(WriteBytes(file=name, offset=n * 100, old=b"old", new=b"new", why="") for n in range(10_000))
    later = WriteBytes(file=name, offset=1, old=b"ew", new=b"ld", why="back again, but for the first byte")
    looked_at = []
    monkeypatch.setattr(
        patched_bytes,
        "file_changes",
        lambda patches, *place: looked_at.extend(patches) or file_changes(patches, *place),
    )
    assert log_changes((*patches, later), 0, 150) == {0: ord("o"), 100: ord("o"), 101: ord("l"), 102: ord("d")}
    assert looked_at == [patches[0], patches[1], later]
