"""Images of disks: read as they are, whatever their size."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import CannotRead
from engine.mapped.image_file import ImageFile
from engine.mapped.reading import Reading


def test_bytes_are_read_up_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(b"0123456789")
    image = ImageFile(path, Reading(alone=True))
    buffer = bytearray(8)
    assert (image.size, image.read_into(memoryview(buffer), 6), bytes(buffer[:4])) == (10, 4, b"6789")
    assert [image.read(2, 3), image.read(8, 9), image.read(-1, 3), image.read(20, 3)] == [b"234", b"89", b"", b""]
    assert image.extents() == [(0, 10)]
    image.close()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotRead):
        ImageFile(tmp_path / "none", Reading(alone=True))
    with pytest.raises(CannotRead):
        ImageFile("/dev/null", Reading(alone=True))


class _DyingReading(Reading):
    """Pages from the second one on cannot be read."""

    def read_into(self, path: str, descriptor: int, view: memoryview, position: int, length: int) -> int:
        if position + len(view) > 4096:
            raise CannotRead("input/output error", file=path)
        return super().read_into(path, descriptor, view, position, length)

    def read(self, path: str, descriptor: int, size: int, position: int, length: int) -> bytes:
        buffer = bytearray(size)
        return bytes(buffer[: self.read_into(path, descriptor, memoryview(buffer), position, length)])


def test_bytes_that_cannot_be_read_are_zeros(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(b"x" * 10_000)
    image = ImageFile(path, _DyingReading(alone=True))
    assert image.read(0, 10_000) == b"x" * 4096 + bytes(5904)
    image.close()
