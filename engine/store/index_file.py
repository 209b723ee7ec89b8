"""An index file of a store that is written: header, slots and entries in a mapped file
(docs/formats/index-file.md#layout, #insert; Java: IndexFile).

One thread puts, any thread queries. An entry is written before the slot that leads to it, and readers take their
bounds from a frozen header: they never see an entry that is not there, and never wait.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from engine.codec import index as codec
from engine.codec.index_builder import put_entries, put_entry, remaining_entries
from engine.codec.index_query import MappedIndex, mapped_index
from engine.mapped.disk import DiskFile
from engine.mapped.mapped_file import RESERVE_STEP_BYTES

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


class IndexFile:
    """The file ``name``; ``end_phy_offset`` and ``end_timestamp`` (ms) are those of the newest entry.

    With ``previous`` it is a new file behind that one: its header begins with the end of the older one
    (docs/formats/index-file.md#insert). Raises ``OSError`` if it cannot be mapped.
    """

    def __init__(self, file: DiskFile, name: str, geometry: codec.Geometry, previous: IndexFile | None = None) -> None:
        self.name = name
        self.geometry = geometry
        self._file = file
        self._reserved = 0
        self._view = file.view
        raw_header = file.read(0, codec.HEADER_SIZE)  # a map of a file without blocks cannot be read on a full tmpfs
        self._is_new = not any(raw_header)
        self._raw: npt.NDArray[np.uint8] = np.frombuffer(self._view, np.uint8)
        self._address = self._raw.ctypes.data
        self.header = self._first_header(raw_header, previous)
        self.mapped: MappedIndex
        """Where keys are looked up, with the header that readers go by: entries of a block under way count."""
        self._show(self.header)

    def _show(self, header: codec.IndexHeader) -> None:
        """Let readers go by ``header`` from now on."""
        self.mapped = mapped_index(self._view, self._address, self.geometry, header)

    def _first_header(self, raw: bytes, previous: IndexFile | None) -> codec.IndexHeader:
        stored = codec.decode_header(raw)
        if previous is None:
            count = stored.index_count if stored.index_count > 0 else 1
            return codec.IndexHeader(
                stored.begin_timestamp,
                stored.end_timestamp,
                stored.begin_phy_offset,
                stored.end_phy_offset,
                stored.hash_slot_count,
                min(count, self.geometry.entries),
            )
        return codec.next_header(previous.header)

    def begin(self) -> None:
        """Write the header of a new file; room for its slots is made on the disk. Raises ``OSError``.

        A power loss may have kept slots and entries of a file whose header it took: they go, for they would come back
        as links of chains.
        """
        for start, stop in self._file.extents(codec.HEADER_SIZE):
            if self._raw[start:stop].any():
                self._raw[start:stop] = 0
        self._reserve(1)
        self._write_header()

    @property
    def is_full(self) -> bool:
        """True if the next key needs a new file."""
        return self.room == 0

    @property
    def room(self) -> int:
        """Keys that the file still takes."""
        return remaining_entries(self.header, self.geometry)

    @property
    def end_phy_offset(self) -> int:
        return self.header.end_phy_offset

    @property
    def end_timestamp(self) -> int:
        return self.header.end_timestamp

    def put_keys(self, key_hash: Int32, phy_offset: Int64, store_timestamp: Int64) -> None:
        """Add entries for all keys of the arrays, at most :attr:`room`. Raises ``OSError``, nothing is put then."""
        count = len(key_hash)
        if not count:
            return
        header = self.header
        self._reserve(header.index_count + count)
        self._show(
            codec.IndexHeader(
                header.begin_timestamp if header.index_count > 1 else int(store_timestamp[0]),
                int(store_timestamp[-1]),
                header.begin_phy_offset,
                int(phy_offset[-1]),
                header.hash_slot_count,
                header.index_count + count,
            )
        )
        self.header = put_entries(self._raw, header, self.geometry, key_hash, phy_offset, store_timestamp)
        self._write_header()

    def put_key(self, key_hash: int, phy_offset: int, store_timestamp: int) -> None:
        """Add one entry; the file must not be full. Raises ``OSError``."""
        self._reserve(self.header.index_count + 1)
        self.header = put_entry(self._view, self.header, self.geometry, key_hash, phy_offset, store_timestamp)
        self._write_header()

    def _write_header(self) -> None:
        self._view[: codec.HEADER_SIZE] = codec.encode_header(self.header)
        self._show(self.header)

    def _reserve(self, entries: int) -> None:
        """Reserve blocks on the disk up to the entry ``entries``: a full disk is an error here, and no fault in the
        map later.
        """
        stop = min(self.geometry.entry_position(entries), self.geometry.file_size)
        if stop > self._reserved:
            ahead = min(-(-stop // RESERVE_STEP_BYTES) * RESERVE_STEP_BYTES, self.geometry.file_size)
            start = self._reserved
            self._file.reserve(start, ahead, touch=self._is_new)
            self._reserved = ahead

    # -- keeping

    def cut(self, log_end: int) -> None:
        """Forget entries from ``log_end`` on, where the log ends now and will grow again: those units are not indexed
        yet. The header keeps that for good. Raises ``OSError``.
        """
        if self.header.end_phy_offset > log_end:
            self.header = replace(self.header, end_phy_offset=log_end)
            self._write_header()
            self.flush()

    def flush(self) -> None:
        """Flush header and entries to the disk. Raises ``OSError``."""
        self._file.flush(0, self.geometry.file_size)

    def delete(self) -> None:
        """Remove the file; a reader that is using it still gets answers."""
        self._file.delete()

    def close(self) -> None:
        """Close descriptor and map; no put and no query may follow."""
        self._file.close()
