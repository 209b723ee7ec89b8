"""A disk with files that the system does not have: an empty file in memory stands for each of them.

Readers get a descriptor of the file in memory, so that they can hold, copy and close it as any other. What they read
through it comes from the disk.
"""

from __future__ import annotations

import os
import stat
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from engine.mapped.file_in_memory import file_in_memory
from engine.mapped.reading import SystemDisk

MAX_STAND_INS = 128
"""Descriptors of files in memory that stay open for the next reader of the same file."""

File = TypeVar("File")


class StandInDisk(SystemDisk, ABC, Generic[File]):
    """The system's files, and others that a derived class reads: it returns :meth:`stand_in` from ``open`` and
    implements the four methods that begin with ``file_``. All may raise ``OSError``.
    """

    def __init__(self) -> None:
        self._stand_ins: OrderedDict[Hashable, int] = OrderedDict()
        """Descriptors by what was opened, the one that was used last at the end."""
        self._files: dict[tuple[int, int], File] = {}
        """The file of the disk, by the identity of the file in memory that stands for it."""
        self._stand_in_lock = threading.Lock()

    def close_stand_ins(self) -> None:
        """Close the descriptors that are kept for the next reader."""
        with self._stand_in_lock:
            while self._stand_ins:
                os.close(self._stand_ins.popitem()[1])

    def stand_in(self, key: Hashable, file: File, size: int) -> int:
        """Return a descriptor that stands for ``file`` of ``size`` bytes. The same key gets the same file in memory, or
        a reader that opens a file again and again would take ever more memory.
        """
        with self._stand_in_lock:
            descriptor = self._stand_ins.pop(key, -1)
            if descriptor < 0:
                descriptor = file_in_memory(b"", size)
            self._files[_identity(descriptor)] = file
            self._stand_ins[key] = descriptor
            if len(self._stand_ins) > MAX_STAND_INS:
                os.close(self._stand_ins.popitem(last=False)[1])
            return os.dup(descriptor)

    def file_of_key(self, key: Hashable) -> File | None:
        """Return the file that was opened with the same key and is still kept."""
        with self._stand_in_lock:
            descriptor = self._stand_ins.get(key)
            return None if descriptor is None else self._files[_identity(descriptor)]

    # -- what a derived class reads

    @abstractmethod
    def file_status(self, file: File) -> os.stat_result:
        """Return what the system would say about the file."""

    @abstractmethod
    def file_bytes(self, file: File, size: int, position: int) -> bytes:
        """Return at most ``size`` bytes from ``position`` on."""

    @abstractmethod
    def file_extents(self, file: File, position: int, size: int) -> list[tuple[int, int]]:
        """Return spans (start, stop) from ``position`` to ``size`` that hold data."""

    @abstractmethod
    def file_next_data(self, file: File, position: int, size: int) -> int:
        """Return the first position from ``position`` on that holds data; −1 if there is none before ``size``."""

    # -- the system's calls

    def descriptor_status(self, descriptor: int) -> os.stat_result:
        """Implement :meth:`ReadingDisk.descriptor_status`: of the disk's file, not of the one that stands for it."""
        file = self._file_of(descriptor)
        return super().descriptor_status(descriptor) if file is None else self.file_status(file)

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        file = self._file_of(descriptor)
        return super().read(descriptor, size, position) if file is None else self.file_bytes(file, size, position)

    def read_into(self, descriptor: int, view: memoryview, position: int) -> int:
        file = self._file_of(descriptor)
        if file is None:
            return super().read_into(descriptor, view, position)
        data = self.file_bytes(file, len(view), position)
        view[: len(data)] = data
        return len(data)

    def extents(self, descriptor: int, position: int, size: int) -> list[tuple[int, int]]:
        file = self._file_of(descriptor)
        return super().extents(descriptor, position, size) if file is None else self.file_extents(file, position, size)

    def next_data(self, descriptor: int, position: int, size: int) -> int:
        file = self._file_of(descriptor)
        if file is None:
            return super().next_data(descriptor, position, size)
        return self.file_next_data(file, position, size)

    def _file_of(self, descriptor: int) -> File | None:
        return self._files.get(_identity(descriptor))


class ListedEntry(ABC):
    """A file or folder as a folder of such a disk lists it: an ``os.DirEntry``, which cannot be made."""

    def __init__(self, folder: str, name: str) -> None:
        self.path = os.path.join(folder, name)  # noqa: PTH118 (as os.scandir spells it)
        self.name = name

    @abstractmethod
    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return what the disk says about the entry. Raises ``OSError``."""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISREG(self._mode(follow_symlinks))

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._mode(False))

    def _mode(self, follow: bool) -> int:
        try:
            return self.stat(follow_symlinks=follow).st_mode
        except FileNotFoundError:
            return 0


def _identity(descriptor: int) -> tuple[int, int]:
    info = os.fstat(descriptor)
    return info.st_dev, info.st_ino
