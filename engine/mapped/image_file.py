"""A file of any size and content that is only read: the image of a disk, a block device, a file of another store."""

from __future__ import annotations

import os
from pathlib import Path

from engine.errors import CannotRead
from engine.mapped.reading import Reading

_SECTOR_BYTES = 4096


class ImageFile:
    """An open file or block device. Bytes that cannot be read are zeros; ``reading`` records where they are."""

    def __init__(self, path: str | Path, reading: Reading) -> None:
        """Open ``path``; raises :class:`CannotRead`."""
        self.path = str(path)
        self._reading = reading
        self._descriptor = reading.open(path, allow_device=True)
        self.size = os.lseek(self._descriptor, 0, os.SEEK_END)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    @property
    def reads_by_itself(self) -> bool:
        """True if compiled code may read through :meth:`descriptor`; what it cannot read is read again by
        :meth:`read_into`.
        """
        return self._reading.is_plain(self.path)

    def descriptor(self) -> int:
        """Return a descriptor for bulk reading, which the caller must close."""
        return os.dup(self._descriptor)

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` on; returns the number of bytes, fewer at the end of the file."""
        size = max(min(len(view), self.size - position), 0)
        try:
            return self._reading.read_into(self.path, self._descriptor, view[:size], position, self.size)
        except CannotRead:
            for start in range(0, size, _SECTOR_BYTES):
                piece = view[start : min(start + _SECTOR_BYTES, size)]
                try:
                    self._reading.read_into(self.path, self._descriptor, piece, position + start, self.size)
                except CannotRead:
                    piece[:] = bytes(len(piece))
            return size

    def read(self, position: int, size: int) -> bytes:
        """Return bytes from ``position`` on, fewer at the end of the file."""
        size = min(size, self.size - position)
        if position < 0 or size <= 0:
            return b""
        try:
            return self._reading.read(self.path, self._descriptor, size, position, self.size)
        except CannotRead:
            pass  # then as much of it as can be read
        buffer = bytearray(max(min(size, self.size - position), 0))
        return bytes(buffer[: self.read_into(memoryview(buffer), position)])

    def extents(self, start: int = 0) -> list[tuple[int, int]]:
        """Return the ranges from ``start`` on that hold data, as far as the file system says."""
        return self._reading.extents(self._descriptor, start, self.size)
