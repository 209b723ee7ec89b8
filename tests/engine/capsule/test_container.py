"""The file of a capsule: what is written returns, and damage is refused with its place."""

from __future__ import annotations

import io

import pytest

from engine.capsule.container import (
    HEADER_BYTES,
    BadCapsule,
    BlockKind,
    CapsuleFile,
    CapsuleReader,
    CapsuleWriter,
    Directory,
)


def make(path, directory: Directory | None = None) -> bytes:
    file = io.BytesIO()
    writer = CapsuleWriter(file)
    writer.add(0, BlockKind.BYTES, 0, 5, b"hello")
    writer.add(0, BlockKind.ZERO, 5, 1000)
    writer.add(0, BlockKind.ZERO, 1005, 1000)
    writer.add(0, BlockKind.LEFT_OUT, 2005, 10)
    writer.finish(directory or Directory("store", 1, "1.0", "free", files=[CapsuleFile("checkpoint", 0o100644, 2015)]))
    path.write_bytes(file.getvalue())
    return file.getvalue()


def test_blocks_and_directory_return(tmp_path):
    make(tmp_path / "x")
    reader = CapsuleReader(str(tmp_path / "x"))
    first, zero, left_out = reader.blocks[0]
    assert reader.unpacked(first) == b"hello"
    assert (zero.kind, zero.start, zero.stop) == (BlockKind.ZERO, 5, 2005)
    assert (left_out.kind, left_out.stop) == (BlockKind.LEFT_OUT, 2015)
    assert reader.directory.files[0].path == "checkpoint"
    reader.close()


def test_every_changed_or_missing_byte_of_the_directory_is_noticed(tmp_path):
    whole = make(tmp_path / "x")
    for position in [*range(22), *range(HEADER_BYTES + 10, len(whole), 5)]:
        changed = bytearray(whole)
        changed[position] ^= 1
        (tmp_path / "x").write_bytes(changed)
        with pytest.raises(BadCapsule):
            CapsuleReader(str(tmp_path / "x"))
    for length in range(0, len(whole), 9):
        (tmp_path / "x").write_bytes(whole[:length])
        with pytest.raises(BadCapsule):
            CapsuleReader(str(tmp_path / "x"))


def test_a_later_version_is_refused(tmp_path):
    changed = bytearray(make(tmp_path / "x"))
    changed[21] = 9
    (tmp_path / "x").write_bytes(changed)
    with pytest.raises(BadCapsule, match="expected a capsule of version 1 to 2, found version 9"):
        CapsuleReader(str(tmp_path / "x"))


@pytest.mark.parametrize("name", ["../etc/passwd", "/x", "a//b", "."])
def test_names_that_lead_out_of_the_store_are_refused(tmp_path, name):
    make(tmp_path / "x", Directory("store", 1, "1.0", "free", files=[CapsuleFile(name, 0o100644, 2015)]))
    with pytest.raises(BadCapsule):
        CapsuleReader(str(tmp_path / "x"))
