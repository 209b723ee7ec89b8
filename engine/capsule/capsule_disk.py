"""A capsule as a disk that every reader of a store reads: its folders and files are below the capsule's own path.

Like :class:`engine.patching.patched_disk.PatchedDisk` it is below :class:`engine.mapped.reading.Reading`. Bodies read
as stand-ins with the same length and checksum (:mod:`engine.codec.stand_in_bodies`); what was left out of the capsule
cannot be read, so nothing is concluded from it.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from engine import system
from engine.capsule import dledger_columns, elided, index_columns, queue_columns, unit_columns
from engine.capsule.container import BadCapsule, Block, BlockKind, CapsuleFile, CapsuleReader, Directory
from engine.capsule.log_facts import BlockFacts, LogBlock, LogFacts, QueueName, decode_facts, log_offset
from engine.capsule.numbers import BadColumns
from engine.capsule.recognition import LEFT_OUT
from engine.files.layout import parse_file_name
from engine.mapped.stand_in_disk import ListedEntry, StandInDisk
from engine.sentences import sentence
from engine.times import time_text

_MAX_SLOTS = 1 << 26
_INT_DIGITS = 10
_INDEX_ENTRIES = (BlockKind.INDEX_ENTRIES, BlockKind.INDEX_FROM_UNITS, BlockKind.INDEX_TAIL)
_WITH_UNITS = (BlockKind.UNITS, BlockKind.WITHOUT_BODIES, BlockKind.DLEDGER_ENTRIES)
CACHE_BYTES = 64 << 20
"""Decoded bytes that stay in memory."""


class CapsuleDisk(StandInDisk[int]):
    """The files of the capsule at ``path``, each by its number in the directory; everything else is the system's.

    Raises :class:`BadCapsule` if the capsule is damaged, ``OSError`` if it cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.root = _absolute(path)
        self._capsule = CapsuleReader(self.root)
        self.directory: Directory = self._capsule.directory
        info = os.fstat(self._capsule.descriptor)
        self._device = info.st_dev
        self._first_inode = zlib.crc32(repr((info.st_ino, info.st_size, info.st_mtime_ns)).encode()) << 24
        self._numbers = {entry.path: number for number, entry in enumerate(self.directory.files)}
        self._children: dict[str, list[str]] = {"": []}
        for entry in self.directory.files:
            self._children.setdefault(entry.path.rpartition("/")[0], []).append(entry.path)
        self._cache: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._cached_bytes = 0
        self._lock = threading.Lock()
        self._links: tuple[int, index_columns.Links] | None = None
        self._links_lock = threading.Lock()
        self._facts = LogFacts(self._log_blocks(), self._block_facts)

    def close(self) -> None:
        """Close the capsule; nothing can be read afterwards."""
        self._capsule.close()
        self._cache.clear()
        self.close_stand_ins()

    @property
    def lock_state(self) -> Literal["free", "held", "absent", "unknown"]:
        """State of the store's lock when the capsule was made."""
        return self.directory.lock_state

    @property
    def masks_units(self) -> bool:
        """True if keys or hosts of messages are masked: batches and index files behind their headers are left out."""
        return bool({"keys", "hosts"} & set(self.directory.masked))

    @property
    def index_slots(self) -> int:
        """The number of slots of the index files; 0 if it was not known when the capsule was made."""
        return max((file.slots for file in self.directory.files), default=0)

    @property
    def note(self) -> str:
        """A sentence about what is read here."""
        text = sentence(
            "A capsule of the store {store}, made {time} with storescope {version}: bodies are not in it",
            store=self.directory.store,
            time=time_text(self.directory.made_ms),
            version=self.directory.program,
        )
        if not self.directory.masked:
            return text
        return sentence("{text}; masked: {parts}", text=text, parts=", ".join(self.directory.masked))

    # -- the system's calls

    def open(self, path: str) -> int:
        relative = self._relative(path)
        if relative is None:
            return super().open(path)
        number, entry = self._entry(relative, path, follow=True)
        if entry.error:
            raise OSError(errno.EIO, sentence(entry.error), path)
        if number < 0 or stat.S_ISDIR(entry.mode):
            return super().open(os.sep)  # a folder, which the caller refuses
        return self.stand_in(number, number, entry.size)

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        relative = self._relative(folder)
        if relative is None:
            return super().entries(folder)
        _, entry = self._entry(relative, folder, follow=True)
        if entry.error:
            raise OSError(errno.EIO, sentence(entry.error), folder)
        if not stat.S_ISDIR(entry.mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        children = self._children.get(entry.path, [])
        listed = [_CapsuleEntry(folder, child.rpartition("/")[2], self) for child in children]
        return [cast("os.DirEntry[str]", item) for item in listed]

    def status(self, path: str, follow: bool) -> os.stat_result:
        relative = self._relative(path)
        if relative is None:
            return super().status(path, follow)
        number, entry = self._entry(relative, path, follow=follow)
        if entry.error and follow and not entry.modified_ns:
            raise OSError(errno.EIO, sentence(entry.error), path)  # it could not even be looked at
        return self._stat(number, entry)

    def entry_status(self, entry: os.DirEntry[str], follow: bool) -> os.stat_result:
        return self.status(entry.path, follow)

    def is_plain(self, path: str) -> bool:
        """Implement :meth:`ReadingDisk.is_plain`: compiled code cannot read a file of the capsule by itself."""
        return self._relative(path) is None

    # -- the files of the capsule

    def file_status(self, file: int) -> os.stat_result:
        return self._stat(file, self.directory.files[file])

    def file_bytes(self, file: int, size: int, position: int) -> bytes:
        blocks = self._capsule.blocks[file]
        end = min(position + size, self.directory.files[file].size)
        pieces = []
        index = bisect_right(blocks, position, key=lambda block: block.start) - 1
        while position < end:
            block = blocks[index]
            stop = min(block.stop, end)
            pieces.append(self._piece(file, block, position - block.start, stop - block.start))
            position, index = stop, index + 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def file_extents(self, file: int, position: int, size: int) -> list[tuple[int, int]]:
        """Implement :meth:`StandInDisk.file_extents`: zero bytes are holes."""
        spans: list[tuple[int, int]] = []
        for block in self._capsule.blocks[file]:
            start, stop = max(block.start, position), min(block.stop, size)
            if block.kind == BlockKind.ZERO or start >= stop:
                continue
            if spans and spans[-1][1] == start:
                spans[-1] = (spans[-1][0], stop)
            else:
                spans.append((start, stop))
        return spans

    def file_next_data(self, file: int, position: int, size: int) -> int:
        """Implement :meth:`StandInDisk.file_next_data`: zero bytes are holes."""
        return next((start for start, _stop in self.file_extents(file, position, size)), -1)

    # -- the capsule

    def _relative(self, path: str) -> str | None:
        """Return the path below the store with ``/``, "" for the store; None for a file outside of the capsule."""
        absolute = _absolute(path)
        if absolute == self.root:
            return ""
        prefix = self.root + os.sep
        return absolute.removeprefix(prefix) if absolute.startswith(prefix) else None

    def _entry(self, relative: str, path: str, *, follow: bool) -> tuple[int, CapsuleFile]:
        """Return a file's number and entry, −1 for the store's folder. Raises ``FileNotFoundError``."""
        if not relative:
            return -1, self.directory.root
        number = self._numbers.get(relative)
        if number is None or (follow and stat.S_ISLNK(self.directory.files[number].mode)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return number, self.directory.files[number]

    def _stat(self, number: int, entry: CapsuleFile) -> os.stat_result:
        seconds = entry.modified_ns // 10**9
        values = (
            entry.mode,
            self._first_inode + number + 1,
            self._device,
            entry.links,
            system.user_id() or 0,
            system.group_id() or 0,
            entry.size,
            seconds,
            seconds,
            seconds,
        )
        exact = entry.modified_ns / 10**9
        times = {f"st_{name}time": exact for name in "amc"} | {f"st_{name}time_ns": entry.modified_ns for name in "amc"}
        return os.stat_result(values, {**times, "st_blksize": 4096, "st_blocks": entry.allocated_blocks, "st_rdev": 0})

    def _piece(self, number: int, block: Block, start: int, stop: int) -> bytes:
        if block.kind == BlockKind.ZERO:
            return bytes(stop - start)
        if block.kind == BlockKind.LEFT_OUT:
            raise OSError(errno.EIO, LEFT_OUT, self.directory.files[number].path)
        try:
            if block.kind == BlockKind.INDEX_SLOTS and stop - start == index_columns.SLOT_BYTES:
                slot = self._slot_of_tail(number, block, start)
                if slot is not None:
                    return slot
            return self._decoded(number, block)[start:stop]
        except BadCapsule as error:
            raise OSError(errno.EIO, str(error), self.directory.files[number].path) from error

    def _decoded(self, number: int, block: Block) -> bytes:
        key = (number, block.start)
        with self._lock:
            data = self._cache.get(key)
            if data is not None:
                self._cache.move_to_end(key)
                return data
        try:
            unpacked = self._capsule.unpacked(block)
            if block.kind in {BlockKind.INDEX_SLOTS, BlockKind.INDEX_ENTRIES, BlockKind.INDEX_FROM_UNITS}:
                data = self._decoded_index(number, block, unpacked)
            elif block.kind == BlockKind.QUEUE_FROM_UNITS:
                queue = queue_of(self.directory.files[number].path)
                data = queue_columns.decode_from_units(unpacked, block.length, self._facts, queue)
            else:
                data = decode_block(block, unpacked, _base(self.directory.files[number]))
        except BadColumns as error:
            problem = sentence("expected {n:,} bytes of a file in the block, found other data", n=block.length)
            raise self._capsule.bad(block.offset, problem) from error
        with self._lock:
            if key not in self._cache:
                self._cache[key] = data
                self._cached_bytes += len(data)
            while self._cached_bytes > CACHE_BYTES and len(self._cache) > 1:
                _, oldest = self._cache.popitem(last=False)
                self._cached_bytes -= len(oldest)
        return data

    def _decoded_index(self, number: int, block: Block, unpacked: bytes) -> bytes:
        """Return slots or entries of an index file: they follow from all hashes of the file."""
        links = self._links_of(number)
        area_start, item_bytes = index_columns.HEADER_BYTES, index_columns.SLOT_BYTES
        if block.kind in _INDEX_ENTRIES:
            area_start += item_bytes * self.directory.files[number].slots
            item_bytes = index_columns.ENTRY_BYTES
        first, remainder = divmod(block.start - area_start, item_bytes)
        count = block.length // item_bytes
        expected = links.slots if block.kind == BlockKind.INDEX_SLOTS else links.previous
        if remainder or not 0 <= first <= first + count <= len(expected) or count * item_bytes != block.length:
            raise BadColumns
        if block.kind == BlockKind.INDEX_FROM_UNITS:
            return index_columns.decode_from_units(unpacked, expected[first : first + count], self._facts)
        decode = index_columns.decode_slots if block.kind == BlockKind.INDEX_SLOTS else index_columns.decode_entries
        return decode(unpacked, expected[first : first + count])

    def _links_of(self, number: int) -> index_columns.Links:
        """Return the links of an index file. Those of the file that was needed last stay in memory."""
        with self._links_lock:
            if self._links is None or self._links[0] != number:
                slots = self.directory.files[number].slots
                start = index_columns.HEADER_BYTES + index_columns.SLOT_BYTES * slots
                hashes = []
                for block in self._capsule.blocks[number]:
                    if block.kind in _INDEX_ENTRIES and block.start >= start:
                        hashes.append(self._hashes_of(block))
                    elif block.start >= start and block.kind == BlockKind.ZERO:
                        break  # behind the entries; there is none between them
                if not 0 < slots <= _MAX_SLOTS:
                    raise BadColumns
                links = index_columns.links_of(np.concatenate(hashes or [np.zeros(0, np.int32)]), slots)
                self._links = number, links
            return self._links[1]

    def _slot_of_tail(self, number: int, block: Block, position: int) -> bytes | None:
        """Return the slot at ``position`` of ``block`` if it leads to one of the last entries: they need no others."""
        tail = next((b for b in reversed(self._capsule.blocks[number]) if b.kind == BlockKind.INDEX_TAIL), None)
        slots = self.directory.files[number].slots
        slot, remainder = divmod(block.start + position - index_columns.HEADER_BYTES, index_columns.SLOT_BYTES)
        if tail is None or remainder or not 0 <= slot < slots:
            return None
        try:
            hashes = index_columns.tail_hashes(self._decoded(number, tail))
            if index_columns.has_other_value(self._capsule.unpacked(block), position // index_columns.SLOT_BYTES):
                return None
        except BadColumns:
            return None
        entries_start = index_columns.HEADER_BYTES + index_columns.SLOT_BYTES * slots
        rows = np.flatnonzero((hashes >= 0) & (hashes % slots == slot))
        first = (tail.start - entries_start) // index_columns.ENTRY_BYTES
        return (first + int(rows[-1])).to_bytes(index_columns.SLOT_BYTES, "big") if len(rows) else None

    def _hashes_of(self, block: Block) -> npt.NDArray[np.int32]:
        unpacked, count = self._capsule.unpacked(block), block.length // index_columns.ENTRY_BYTES
        if block.kind == BlockKind.INDEX_TAIL:
            return index_columns.tail_hashes(unpacked)
        if block.kind == BlockKind.INDEX_FROM_UNITS:
            return index_columns.hashes_from_units(unpacked, count, self._facts)
        return index_columns.hashes_of(unpacked, count)

    def _log_blocks(self) -> Iterator[LogBlock]:
        """Yield the blocks of the log with units."""
        for number, entry in enumerate(self.directory.files):
            file_offset = log_offset(entry.path)
            if file_offset is None:
                continue
            for block in self._capsule.blocks[number]:
                if block.kind in _WITH_UNITS:
                    yield LogBlock(file_offset + block.start, block.length, number, block.start)

    def _block_facts(self, block: LogBlock) -> BlockFacts:
        return decode_facts(self.file_bytes(block.file, block.length, block.position), block.offset)


def queue_of(path: str) -> QueueName:
    """Return topic and number of the queue that a file below ``consumequeue`` belongs to."""
    _, topic, queue, *_ = (*path.split("/"), "", "")
    return os.fsencode(topic), int(queue) if queue.isascii() and queue.isdecimal() and len(queue) < _INT_DIGITS else -1


def decode_block(block: Block, data: bytes, base: int) -> bytes:
    """Return the bytes of a file that the unpacked ``data`` of ``block`` stands for; ``base`` is the physical offset of
    the file's first byte. Raises :class:`BadColumns`.
    """
    match block.kind:
        case BlockKind.WITHOUT_BODIES:
            data = elided.decode(data, block.length)
        case BlockKind.QUEUE_ENTRIES:
            data = queue_columns.decode(data, block.length)
        case BlockKind.UNITS:
            data = unit_columns.decode(data, block.length, base + block.start)
        case BlockKind.DLEDGER_ENTRIES:
            data = dledger_columns.decode_entries(data, block.length, base + block.start)
        case BlockKind.DLEDGER_INDEX:
            data = dledger_columns.decode_index(data, block.length)
        case _:
            pass
    if len(data) != block.length:
        raise BadColumns
    return data


def _base(entry: CapsuleFile) -> int:
    return parse_file_name(entry.path.rpartition("/")[2]) or 0


class _CapsuleEntry(ListedEntry):
    """A file or folder of the capsule."""

    def __init__(self, folder: str, name: str, disk: CapsuleDisk) -> None:
        super().__init__(folder, name)
        self._disk = disk

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return self._disk.status(self.path, follow_symlinks)


def _absolute(path: str | Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 (a link is a name of its own: it is not followed)
