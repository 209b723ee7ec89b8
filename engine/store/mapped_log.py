"""The commit log as readers need it: bytes lent, never copied, never before they are written
(docs/formats/files.md#mapped-files, docs/formats/reading.md#other-reads).
"""

from __future__ import annotations

from typing import Protocol

from engine.mapped.mapped_file import MappedFile
from engine.mapped.mapped_file_queue import MappedFileQueue


class Releasable(Protocol):
    """Something that stays valid until :meth:`release`."""

    def release(self) -> None:
        """Give it back."""


class LentBytes(Releasable, Protocol):
    """Bytes lent until :meth:`release`; ``start_offset`` is the absolute offset of the first."""

    @property
    def view(self) -> memoryview: ...
    @property
    def start_offset(self) -> int: ...


class ReadableLog(Protocol):
    """A commit log's bytes by absolute offset."""

    @property
    def file_size(self) -> int: ...

    @property
    def min_offset(self) -> int:
        """Start of the first file, −1 if there is none."""

    @property
    def max_offset(self) -> int:
        """End of what may be read."""

    def read(self, offset: int, size: int) -> bytes:
        """A copy of up to ``size`` bytes, never beyond the end of one file."""

    def lend(self, offset: int, size: int) -> LentBytes | None:
        """At least ``size`` bytes from ``offset``, or more of the same file; None if they are not all there."""


class QueryableLog(ReadableLog, Protocol):
    """A commit log that gives a single unit without detours."""

    def lend_unit(self, offset: int) -> tuple[memoryview, Releasable] | None:
        """The bytes of the unit at ``offset``, by the size that it begins with, and what holds them; None if none
        is there whole.
        """


class MappedLog:
    """:class:`QueryableLog` over the mapped files of a live store. What is lent is the file from ``offset`` on."""

    __slots__ = ("_files", "_pooled", "file_size")

    def __init__(self, files: MappedFileQueue) -> None:
        self._files = files
        self._pooled = files.pooled
        self.file_size = files.file_size

    @property
    def min_offset(self) -> int:
        """Start of the first file that has not been shut down."""
        return self._files.readable_min

    @property
    def max_offset(self) -> int:
        return self._files.max_offset

    def read(self, offset: int, size: int) -> bytes:
        file = self._file_of(offset)
        return b"" if file is None else file.read(offset - file.start_offset, size)

    def lend(self, offset: int, size: int) -> LentBytes | None:
        file = self._file_of(offset)
        if file is None:
            return None
        position = offset - file.start_offset
        return file.select(position) if position + size <= file.readable else None

    def lend_unit(self, offset: int) -> tuple[memoryview, Releasable] | None:
        file = self._file_of(offset)
        if file is None:
            return None
        view = file.hold_unit(offset - file.start_offset)
        return (view, file) if view is not None else None

    def _file_of(self, offset: int) -> MappedFile | None:
        """The file that holds ``offset``, where something may be read there.

        Where the transient pool ran dry a file was written without one: its bytes can be read before those of the files
        in front of it are committed, and are not lent until then.
        """
        if self._pooled and offset >= self._files.max_offset:
            return None
        files = self._files.files
        if not files:
            return None
        number = (offset - files[0].start_offset) // self.file_size
        file = files[number] if 0 <= number < len(files) else None
        if file is None or not 0 <= offset - file.start_offset < self.file_size:
            return self._files.find(offset)  # there is a gap, or nothing
        return file
