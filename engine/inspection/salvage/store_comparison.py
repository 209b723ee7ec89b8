"""Compares bytes of an image with those that the store has at their offsets in the log."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from engine.codec.byte_compare import CHUNK_BYTES, Bytes, count_equal
from engine.codec.columns import aligned_buffer
from engine.codec.log_copies import LogBytes
from engine.errors import CannotRead
from engine.inspection.log_reader import LogReader
from engine.inspection.salvage.searched_files import Readable
from engine.inspection.salvage.store_units import Int64, StoreUnits
from engine.mapped.read_only import ReadOnlyFile

_MAX_OPEN_FILES = 64


class StoreComparison:
    """Keeps descriptors of the log's files until :meth:`close`."""

    def __init__(self, log: LogReader) -> None:
        self._log = log
        self._descriptors: dict[ReadOnlyFile, int] = {}
        self._buffer = aligned_buffer(2 * CHUNK_BYTES)
        self._file_starts = np.array([file.start_offset for file in log.files], np.int64)
        self._file_stops = np.array([file.end_offset for file in log.files], np.int64)
        self._open_files = np.full(len(log.files), -1, np.int64)

    def close(self) -> None:
        """Close the descriptors."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()
        self._open_files[:] = -1

    def log_bytes(self, units: StoreUnits) -> LogBytes:
        """Return the store's log for compiled code, which cannot read the units of a DLedger log one by one."""
        stops = self._file_starts if units.gap_bytes else self._file_stops
        return LogBytes(
            *units.ranges(),
            units.pages.first_page,
            units.pages.digests,
            self._file_starts,
            stops,
            self._open_files,
        )

    def open_file(self, offset: int) -> None:
        """Open the file of the log with the byte at ``offset`` for :meth:`log_bytes`, as far as compiled code may read
        it.
        """
        number = int(np.searchsorted(self._file_starts, offset, "right")) - 1
        file = self._log.files[number]
        if len(self._descriptors) >= _MAX_OPEN_FILES:
            self.close()
        self._file_stops[number] = self._plain_end(file, file.start_offset)
        if self._file_stops[number] > file.start_offset:
            self._open_files[number] = self._descriptor(file)

    def count_equal_ranges(self, data: Bytes, positions: Int64, offsets: Int64, sizes: Int64) -> Int64:
        """Return for each range of ``data`` how many of its bytes, from the first on, the store has at its offset."""
        equal = np.zeros(len(sizes), np.int64)
        numbers = np.arange(len(sizes))
        while len(numbers):
            file = self._log.sequence.find(int(offsets[numbers[0]]))
            if file is None:
                numbers = numbers[1:]
                continue
            is_in_file = (offsets[numbers] >= file.start_offset) & (offsets[numbers] < file.end_offset)
            in_file, numbers = numbers[is_in_file], numbers[~is_in_file]
            is_plain = (offsets + sizes)[in_file] <= self._plain_end(file, int(offsets[in_file].min()))
            plain = in_file[is_plain]
            ranges = positions[plain], offsets[plain] - file.start_offset, sizes[plain]
            counts = count_equal(data, self._descriptor(file), *ranges, self._buffer) if len(plain) else None
            if counts is not None:
                equal[plain] = counts
                in_file = in_file[~is_plain]
            for number in in_file.tolist():
                start, offset, size = int(positions[number]), int(offsets[number]), int(sizes[number])
                equal[number] = self._count_equal(_reader(data, start), offset, size)
        return equal

    def count_equal(self, image: Readable, descriptor: int, position: int, offset: int, size: int) -> int:
        """Return how many bytes from ``position`` of ``image`` on are the store's at ``offset``, ``size`` at most.

        ``descriptor`` is one of the image if compiled code may read it by itself, else −1.
        """
        file = self._log.sequence.find(offset)
        plain = min(size, self._plain_end(file, offset) - offset) if file is not None and descriptor >= 0 else 0
        equal = 0
        if file is not None and plain > 0:
            first, other, sizes = (np.array([value]) for value in (position, offset - file.start_offset, plain))
            counts = count_equal(descriptor, self._descriptor(file), first, other, sizes, self._buffer)
            equal = int(counts[0]) if counts is not None else 0
            if 0 < equal < plain:
                return equal
        return equal + self._count_equal(
            lambda view, start: image.read_into(view, position + equal + start), offset + equal, size - equal
        )

    def _count_equal(self, read_into: Callable[[memoryview, int], int], offset: int, size: int) -> int:
        equal = 0
        while equal < size:
            image_bytes = self._buffer[: min(CHUNK_BYTES, size - equal)]
            count = read_into(image_bytes.data, equal)
            stored = self._stored(offset + equal, count)
            part = equal_bytes(image_bytes[: len(stored)], stored)
            equal += part
            if not part or part < count:
                break
        return equal

    def _stored(self, offset: int, size: int) -> Bytes:
        """Return the store's bytes at ``offset``, fewer if a file ends or cannot be read; valid until the next call."""
        file, count = self._log.sequence.find(offset), 0
        store_bytes = self._buffer[CHUNK_BYTES : CHUNK_BYTES + size]
        if file is not None:
            try:
                count = file.read_into(store_bytes.data, offset - file.start_offset)
            except CannotRead:
                count = 0
        return store_bytes[:count]

    def _plain_end(self, file: ReadOnlyFile, offset: int) -> int:
        """Return the end of the bytes from ``offset`` on that compiled code may read."""
        if not file.reads_by_itself:
            return offset
        return min(file.start_offset + file.plain_end(offset - file.start_offset), file.end_offset)

    def _descriptor(self, file: ReadOnlyFile) -> int:
        if file not in self._descriptors:
            self._descriptors[file] = file.descriptor()
        return self._descriptors[file]


def equal_bytes(first: Bytes, second: Bytes) -> int:
    """Return the number of bytes up to the first difference; both have the same length."""
    if np.array_equal(first, second):
        return len(first)
    return int(np.argmax(first != second))


def _reader(data: Bytes, start: int) -> Callable[[memoryview, int], int]:
    def read_into(view: memoryview, position: int) -> int:
        part = data[start + position : start + position + len(view)]
        view[: len(part)] = part.data
        return len(part)

    return read_into
