"""Where a file holds data, and where it is a hole."""

from __future__ import annotations

import errno
import os

from engine.mapped import extents

MIB = 1 << 20


def test_data_lies_inside_the_spans_and_a_hole_is_in_none(tmp_path):
    with (tmp_path / "file").open("w+b") as file:
        os.ftruncate(file.fileno(), 8 * MIB)
        os.pwrite(file.fileno(), b"x" * 4096, 4 * MIB)
        os.fsync(file.fileno())
        found = extents.data_extents(file.fileno(), 0, 8 * MIB)
        assert any(start <= 4 * MIB and stop >= 4 * MIB + 4096 for start, stop in found)
        assert all(0 <= start < stop <= 8 * MIB for start, stop in found)
        assert extents.data_extents(file.fileno(), 8 * MIB, 8 * MIB) == []


def test_where_nobody_can_tell_everything_counts_as_data(tmp_path, monkeypatch):
    def refused(*_call: object) -> int:
        raise OSError(errno.EINVAL, "no such thing here")

    monkeypatch.setattr(extents.os, "lseek", refused)
    assert extents.data_extents(0, 10, 500) == [(10, 500)]
