"""One open file of a simulated disk, and its store lock."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Protocol

from engine.mapped.simulated_node import Node


class Host(Protocol):
    """What a file needs of its disk."""

    guard: threading.RLock

    def wait(self, kind: str) -> None:
        """Take the time that a call of ``kind`` takes."""

    def refuse(self, kind: str, path: str) -> None:
        """Raise the error that this call meets, if it is to meet one."""

    def call(self, kind: str, path: str) -> None:
        """Count a call; the plug may be pulled here."""

    def flush(self, path: str, node: Node) -> None:
        """Bytes and name survive a power loss."""

    def now(self) -> int:
        """The disk's clock, ms."""

    def delete(self, path: Path) -> None:
        """Remove a file."""


class SimulatedFile:
    """See :class:`engine.mapped.disk.DiskFile`; its map is the very memory that programs see."""

    __slots__ = ("_disk", "_failure", "_node", "path", "size")

    def __init__(self, disk: Host, path: str, size: int, node: Node) -> None:
        self._disk = disk
        self.path = path
        self.size = size
        self._node = node
        self._failure: OSError | None = None

    @property
    def view(self) -> memoryview:
        return memoryview(self._node.live)[: self.size]

    @property
    def is_mapped(self) -> bool:
        return False

    def read(self, position: int, size: int) -> bytes:
        with self._disk.guard:
            self._disk.refuse("read", self.path)
            return bytes(self._node.live[position : position + size]) if position >= 0 < size else b""

    def lend(self, position: int, size: int) -> memoryview | None:
        return self.view[position : position + size]

    def read_into(self, view: memoryview, position: int) -> int:
        data = self.read(position, len(view))
        view[: len(data)] = data
        return len(data)

    def extents(self, position: int = 0) -> list[tuple[int, int]]:
        return [(position, self.size)] if position < self.size else []

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Where it fails, the first half may have been written: that is what a full disk leaves."""
        self._disk.wait("write")
        with self._disk.guard:
            try:
                self._disk.refuse("write", self.path)
            except OSError:
                half = bytes(data)[: len(data) // 2]
                self._node.live[position : position + len(half)] = half
                raise
            self._node.live[position : position + len(data)] = data
            self._node.modified = self._disk.now()
            self._disk.call("write", self.path)

    def reserve(self, start: int, stop: int, *, touch: bool = False) -> None:  # noqa: ARG002 (how much matters not)
        with self._disk.guard:
            self._disk.refuse("reserve", self.path)
            self._disk.call("reserve", self.path)

    def flush(self, start: int, stop: int) -> None:  # noqa: ARG002 (the whole file is flushed, as on a real disk)
        self._disk.wait("flush")
        with self._disk.guard:
            if self._failure is not None:
                raise OSError(self._failure.errno, self._failure.strerror, self.path)
            try:
                self._disk.flush(self.path, self._node)
            except OSError as error:
                self._failure = error
                raise

    def close(self) -> None:
        """Nothing is held."""

    def delete(self) -> None:
        self._disk.delete(Path(self.path))


class SimulatedLock:
    """The store lock of a simulated disk, taken."""

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)
