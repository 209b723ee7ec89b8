"""A queue and a log in memory for getMessage; borrowed bytes are counted."""

from __future__ import annotations

import struct

from engine.codec.cq_ext import CqExtUnit

CQ = struct.Struct(">qiq")
BATCH = struct.Struct(">qiqqqhii")


class BorrowedBytes:
    """Bytes of a :class:`MemoryLog`."""

    def __init__(self, log, start_offset, view):
        self.start_offset = start_offset
        self.view = view
        self._log = log

    def release(self):
        self._log.lent -= 1


class MemoryLog:
    """A log of ``data`` from ``min_offset`` on, cut into files; ``gone`` files hold nothing any more."""

    def __init__(self, data, file_size=1 << 30, min_offset=0):
        self.file_size = file_size
        self.min_offset = min_offset
        self._data = bytes(data)
        self.lent = 0
        self.gone = set()

    @property
    def max_offset(self):
        return self.min_offset + len(self._data)

    def read(self, offset, size):
        if not self.min_offset <= offset < self.max_offset:
            return b""
        return self._data[offset - self.min_offset : offset - self.min_offset + size]

    def lend(self, offset, size):
        start = offset - offset % self.file_size
        end = min(start + self.file_size, self.max_offset)
        if start in self.gone or not self.min_offset <= offset < self.max_offset or offset + size > end:
            return None
        self.lent += 1
        return BorrowedBytes(self, offset, memoryview(self._data)[offset - self.min_offset : end - self.min_offset])

    def lend_unit(self, offset):
        lent = self.lend(offset, 4)
        if lent is not None:
            size = int.from_bytes(lent.view[:4], "big", signed=True)
            if 4 < size <= len(lent.view):
                return lent.view[:size], lent
            lent.release()
        return None


class MemoryQueue:
    """A simple queue of (physical offset, size, tags code), or a batch queue of ``BATCH`` fields."""

    def __init__(self, entries, min_offset=0, per_file=1000, kind="simple", ext=()):
        self.kind = kind
        layout = CQ if kind == "simple" else BATCH
        self.unit_size = layout.size
        self.file_size = per_file * layout.size
        self.min_offset = min_offset
        self._data = b"".join(layout.pack(*entry) for entry in entries)
        self._ext = dict(ext)
        last_entry = entries[-1] if entries else None
        self.max_offset = len(entries) if kind == "simple" else last_entry[4] + last_entry[5] if last_entry else 0

    def read_bytes(self, offset, size):
        return self._data[offset : min(offset + size, offset - offset % self.file_size + self.file_size)]

    lend_bytes = read_bytes

    def spans(self):
        end = len(self._data)
        return [(position, min(position + self.file_size, end)) for position in range(0, end, self.file_size)]

    def ext_unit(self, address):
        return self._ext.get(address)


def ext_unit(tags_code, store_timestamp=5000, bit_map=b""):
    """Return an ext unit without a place of its own."""
    return CqExtUnit(0, 20 + len(bit_map), tags_code, store_timestamp, bit_map)
