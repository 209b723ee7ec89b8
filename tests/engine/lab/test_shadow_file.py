"""One file of a shadowed disk: bytes are copied with their holes."""

from __future__ import annotations

import os

from engine.lab.shadow_file import CHUNK, copy_data, data_spans


def test_data_is_copied_to_its_place_and_holes_stay_holes(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        file.truncate(8 * CHUNK)
        file.seek(5 * CHUNK)
        file.write(b"x" * 100)
    copy_data(source, target)
    readable = os.open(source, os.O_RDONLY)
    try:
        spans = data_spans(readable, 0, 8 * CHUNK)
    finally:
        os.close(readable)
    assert any(start <= 5 * CHUNK < end for start, end in spans)
    copied = target.read_bytes()
    assert copied[5 * CHUNK : 5 * CHUNK + 100] == b"x" * 100
    assert not any(copied[: 5 * CHUNK])
    assert target.stat().st_blocks * 512 <= 2 * CHUNK
