"""Makes a capsule of a store: everything but the bodies of its messages, in one file (docs/formats/capsule.md).

A body is left out where a complete unit explains it and its checksum is right. Bytes that no complete unit explains,
and bodies with a wrong checksum, are damage: they are kept up to a limit, because a report is about them.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from engine import __version__, system
from engine.capsule import dledger_columns, elided, index_columns, queue_columns, unit_columns
from engine.capsule.capsule_disk import decode_block, queue_of
from engine.capsule.container import Block, BlockKind, CapsuleFile, CapsuleWriter, Directory
from engine.capsule.elided import LeftOutBody
from engine.capsule.log_facts import MAX_UNITS, BlockFacts, LogBlock, LogFacts, decode_facts, log_offset
from engine.capsule.numbers import BadColumns
from engine.codec import filler
from engine.codec.crc import MASK, crc32
from engine.codec.dledger import FOLDER_PREFIX, HEADER_SIZE, INDEX_UNIT_SIZE
from engine.codec.dtypes import INDEX_ENTRY
from engine.codec.message import COMPRESSED, INNER_BATCH, MAGIC_BLANK, Frame, check_frame
from engine.codec.properties import REAL_TOPIC
from engine.codec.properties import decode as decode_properties
from engine.codec.stand_in_bodies import MIN_STAND_IN_BYTES, stand_ins
from engine.codec.unit_flavours import MAGIC_BYTES
from engine.errors import CannotRead, StoreError, UsageError
from engine.files.atomic_file import PRIVATE, atomic_file, check_new_file
from engine.files.layout import parse_file_name
from engine.inspection.batch_bodies import without_member_bodies
from engine.inspection.capsule_masking import CapsuleMasking
from engine.inspection.interrupted_change import find_interruption
from engine.inspection.retention import disk_use_of
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.reading import Identity, Reading
from engine.sentences import sentence
from engine.system_names import OP_TOPIC, REVIVE_PREFIX, ROCKSDB_OP_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC

WITHOUT_MASKS: Final = CapsuleMasking()
DAMAGE_MAX_BYTES: Final = 8 << 20
"""Bytes of damage that one capsule keeps."""
BLOCK_UNITS: Final = 4096
BLOCK_BYTES: Final = 8 << 20
_I32, _U32 = struct.Struct(">i"), struct.Struct(">I")
_FILLER_HEAD_BYTES = 64
"""Bytes of a body that show that it was made by a repair."""
_BLANK = MAGIC_BLANK.to_bytes(4, "big")
_SYS_FLAG = 36
"""Position of sysFlag in a unit."""
_PIECE_BYTES: Final = 1 << 20
_QUEUE_PIECE_BYTES: Final = 1_024 * queue_columns.ENTRY_BYTES
"""To find the end of a queue, a reader decodes the units of a few pieces, not those of the log."""
_SLOTS_PIECE_BYTES: Final = 1 << 20
_DLEDGER_INDEX_PIECE_BYTES: Final = 50_000 * INDEX_UNIT_SIZE
_DLEDGER_PART = re.compile(rf"(?:^|/){FOLDER_PREFIX}[^/]+/(\w+)")
"""The first name below the folder of a DLedger log, such as ``data`` or ``index``."""
_TAIL_ENTRIES: Final = 512
_MIN_TAILS: Final = 40
"""A file with fewer entries than so many tails has none: it would be a part of the capsule's size."""
_ENTRIES_PIECE_BYTES: Final = 50_000 * index_columns.ENTRY_BYTES
_MIN_ZERO_BYTES: Final = 4096
"""Fewer zero bytes in a row belong to what is beside them."""
_MAX_GAP_BYTES: Final = 64
"""Bytes between two units that belong to both: the header of a DLedger entry."""
_OWN_BODIES = (OP_TOPIC.encode(), ROCKSDB_OP_TOPIC.encode())
_DELAY_TOPICS = (SCHEDULE_TOPIC.encode(), TIMER_TOPIC.encode())
_REVIVE_PREFIX = REVIVE_PREFIX.encode()
_NOT_WRITTEN = sentence("nothing was written (--leave-out-unread leaves it out)")
_PARTS_WITH_KEYS = frozenset({"index", "rocksdbstore", "tiered_index_file"})
"""Folders with keys of messages, or with their hashes."""
_PARTS_WITHOUT_UNITS = (
    "consumequeue",
    "batchconsumequeue",
    "index",
    "config",
    "checkpoint",
    "abort",
    "lock",
    "timer",
    "rocksdb",
    "kvStore",
    "tiered_index_file",
    "epochFileCheckpoint",
)
"""Beginnings of the names, in a store's folder, of parts that never hold units."""


@dataclass(slots=True)
class CapsuleSummary:
    """What was made: counts of files and units, bytes of the store's files, of the capsule, of kept and of left-out
    damage.
    """

    files: int = 0
    units: int = 0
    store_bytes: int = 0
    capsule_bytes: int = 0
    damage_bytes: int = 0
    left_out_bytes: int = 0


def check_target(
    store: StoreSnapshot, target: Path, *, overwrite: bool, masking: CapsuleMasking = WITHOUT_MASKS
) -> None:
    """Raise :class:`UsageError` if ``target`` is inside the store, exists, or the store is none of which a capsule is
    made, or not with these masks.
    """
    if store.paths is None:
        raise UsageError(
            sentence("expected a store, found a part of one: a capsule is made of a store"), file=str(store.path)
        )
    if store.capsule is not None:
        raise UsageError(sentence("this is a capsule already"), file=str(store.path))
    outside_folders = store.folders.followed if store.folders is not None else ()
    if outside_folders:
        folders = ", ".join(folder.path for folder in outside_folders)
        raise UsageError(
            sentence("a capsule contains only the store's own folder, but the log is in {folders}", folders=folders)
        )
    if masking.changes_units and store.commit_log.dledger is not None:
        raise UsageError(
            sentence("keys and hosts cannot be masked in a DLedger log: its checksums are those of the messages"),
            file=str(store.path),
        )
    check_new_file(store.path, target, overwrite=overwrite)


def make_capsule(
    store: StoreSnapshot,
    target: Path,
    now_ms: int,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
    *,
    leave_out_unread: bool = False,
    masking: CapsuleMasking = WITHOUT_MASKS,
) -> CapsuleSummary:
    """Write the capsule of ``store`` to ``target``; ``on_progress`` gets bytes read, and all.

    Raises ``OSError``, and :class:`CannotRead` if something cannot be read, unless that is to be left out.
    """
    making = _Making(store, masking, on_progress)
    with atomic_file(target, PRIVATE) as file:
        writer = CapsuleWriter(file)
        making.write(writer, now_ms)
        if making.log_changed:
            file.seek(0)
            file.truncate()
            making, writer = _Making(store, masking, on_progress, from_units=False), CapsuleWriter(file)
            making.write(writer, now_ms)
        if not leave_out_unread:
            store.refuse_unread(_NOT_WRITTEN)
        making.summary.capsule_bytes = writer.size
    return making.summary


class _Making:
    """Writes one capsule. ``from_units``: entries of queues and index may follow from the units of the log."""

    def __init__(
        self,
        store: StoreSnapshot,
        masking: CapsuleMasking,
        on_progress: Callable[[int, int], None],
        *,
        from_units: bool = True,
    ) -> None:
        self.masking = masking
        self._store = store
        self._reading = store.reading
        self._on_progress = on_progress
        self._done = 0
        self._all_bytes = 0
        self._damage_left = DAMAGE_MAX_BYTES
        self._slots: dict[str, int] | None = None
        self._from_units = from_units
        self.source_log: _SourceLog | None = None
        self.summary = CapsuleSummary()

    def write(self, writer: CapsuleWriter, now_ms: int) -> None:
        root = self._store.path
        info = self._reading.status(root, listed=True)
        assert info is not None
        lock_state = self._store.lock_state
        directory = Directory(root.resolve().name, now_ms, __version__, lock_state, root=_entry("", info))
        directory.masked = self.masking.parts
        directory.disk_use = list(disk_use_of(self._store))
        change = find_interruption(self._store)
        if change is not None:
            directory.interrupted_command, directory.was_undone = change.command, change.is_undo
            directory.interrupted_backup = Path(change.folder).name
        directory.files += self._list(root, "", ((info.st_dev, info.st_ino),))
        self.summary.files = sum(stat.S_ISREG(entry.mode) for entry in directory.files)
        self.summary.store_bytes = sum(entry.size for entry in directory.files if stat.S_ISREG(entry.mode))
        self._all_bytes = self.summary.store_bytes
        if self._from_units:
            self._all_bytes += sum(entry.size for entry in directory.files if log_offset(entry.path) is not None)
            self.source_log = _SourceLog(self, directory.files)
        # Of a running store: what leads into the log first, the log last, so that nothing leads behind its end.
        for number, entry in sorted(enumerate(directory.files), key=lambda item: _reading_order(item[1].path)):
            if stat.S_ISREG(entry.mode):
                self._write_file(writer, number, entry)
            else:
                entry.size = 0
        writer.finish(directory)

    def _list(self, folder: Path, prefix: str, above: tuple[Identity, ...]) -> Iterator[CapsuleFile]:
        """Yield every file and folder below ``folder``; it and its parents are ``above``."""
        for listed in self._reading.entries(folder):
            path = prefix + listed.name
            try:
                info = self._reading.entry_status(listed, follow=False)
                if stat.S_ISLNK(info.st_mode):
                    info = self._reading.status(listed.path) or info
            except CannotRead as error:
                yield CapsuleFile(path, stat.S_IFREG, error=self._reason(listed.path, error))
                continue
            entry = _entry(path, info)
            yield entry
            if stat.S_ISDIR(info.st_mode):
                identity = info.st_dev, info.st_ino
                if identity in above:  # a link to a folder above it
                    continue
                try:
                    yield from self._list(Path(listed.path), f"{path}/", (*above, identity))
                except CannotRead as error:
                    entry.error = self._reason(listed.path, error)

    def _write_file(self, writer: CapsuleWriter, number: int, entry: CapsuleFile) -> None:
        path = str(self._store.path / entry.path)
        if self._is_masked(entry.path):
            self.add_bytes(writer, number, 0, entry.size, self._index_header(entry))
            return
        try:
            file = self.source(entry)
        except CannotRead as error:
            entry.error = self._reason(path, error)
            writer.add(number, BlockKind.LEFT_OUT, 0, entry.size)
            return
        try:
            slots = self._index_slots().get(path, 0)
            dledger_part = _DLEDGER_PART.search(entry.path)
            if entry.path.startswith("consumequeue/") and not file.size % queue_columns.ENTRY_BYTES:
                encode = partial(self._queue_block, entry.path)
                self.write_bytes(writer, number, file, piece_bytes=_QUEUE_PIECE_BYTES, encode=encode)
            elif slots and file.size >= index_columns.HEADER_BYTES + index_columns.SLOT_BYTES * slots:
                entry.slots = slots
                _IndexFile(self, writer, number, file, slots).write()
            elif dledger_part is not None and dledger_part[1] == "index" and not file.size % INDEX_UNIT_SIZE:
                self.write_bytes(
                    writer, number, file, piece_bytes=_DLEDGER_INDEX_PIECE_BYTES, encode=_dledger_index_block
                )
            elif entry.path.startswith(_PARTS_WITHOUT_UNITS) or (
                dledger_part is not None and dledger_part[1] != "data"
            ):
                self.write_bytes(writer, number, file)
            else:
                _LogFile(self, writer, number, file, entry.path).walk()
        finally:
            file.close()

    def _index_header(self, entry: CapsuleFile) -> bytes:
        """Return the header of an index file, which has no hash of a key: a start is planned with it. Empty if the file
        is none, or cannot be read.
        """
        if not entry.path.startswith("index/") or entry.size < index_columns.HEADER_BYTES:
            return b""
        entry.slots = self._index_slots().get(str(self._store.path / entry.path), 0)
        with contextlib.suppress(CannotRead):
            file = self.source(entry)
            try:
                return file.read(0, index_columns.HEADER_BYTES)
            finally:
                file.close()
        return b""

    def source(self, entry: CapsuleFile) -> _SourceFile:
        """Open a file of the store."""
        return _SourceFile(str(self._store.path / entry.path), entry.size, self._reading)

    def _queue_block(self, path: str, data: bytes) -> tuple[BlockKind, bytes]:
        log = self.source_log
        if log is not None and log.facts.blocks and log.unit_count <= MAX_UNITS:
            encoded = queue_columns.encode_from_units(data, log.facts, queue_of(path))
            if encoded is not None:
                return BlockKind.QUEUE_FROM_UNITS, encoded
        return BlockKind.QUEUE_ENTRIES, queue_columns.encode(data)

    @property
    def has_log_facts(self) -> bool:
        """True if entries may follow from units."""
        return self.source_log is not None and bool(self.source_log.facts.blocks)

    @property
    def log_changed(self) -> bool:
        """True if the log has lost units since entries that follow from them were written."""
        return self.source_log is not None and bool(self.source_log.unwritten)

    def _reason(self, path: str, error: CannotRead) -> str:
        """Return what the system said about the file that cannot be read."""
        return next((item.error for item in reversed(self._reading.unread) if item.file == path), error.what)

    def _is_masked(self, path: str) -> bool:
        """Return True for tables, and for files with keys or hashes of keys, if these are masked."""
        folder, *below = path.split("/")
        if self.masking.tables and folder == "config":
            return True
        return self.masking.changes_units and (folder in _PARTS_WITH_KEYS or "index" in map(str.lower, below))

    def _index_slots(self) -> dict[str, int]:
        """Return the number of slots of each index file by its path; files of which it is not known are left out."""
        if self._slots is None:
            self._slots = {}
            with contextlib.suppress(CannotRead):
                readers = self._store.index_files()
                self._slots = {reader.path: reader.geometry.slots for reader in readers if reader.geometry is not None}
        return self._slots

    def write_bytes(
        self,
        writer: CapsuleWriter,
        number: int,
        file: _SourceFile,
        start: int = 0,
        *,
        piece_bytes: int = _PIECE_BYTES,
        encode: Callable[[bytes], tuple[BlockKind, bytes]] | None = None,
    ) -> None:
        """Write the file from ``start`` on, as bytes or as what ``encode`` makes of each piece."""
        for position in range(start, file.size, piece_bytes):
            size = min(piece_bytes, file.size - position)
            is_hole = file.is_hole(position, size)
            data = b"" if is_hole else file.read(position, size)
            self.advance(size)
            if is_hole or (len(data) == size and not any(data)):
                writer.add(number, BlockKind.ZERO, position, size)
            elif encode is not None and len(data) == size:
                kind, encoded = encode(data)
                writer.add(number, kind, position, size, encoded)
            else:
                self.add_bytes(writer, number, position, size, data)

    def add_bytes(self, writer: CapsuleWriter, number: int, start: int, size: int, data: bytes) -> None:
        """Add bytes as they are; what is missing of ``size`` could not be read and is left out."""
        if data:
            writer.add(number, BlockKind.BYTES, start, len(data), data)
        if len(data) < size:
            self.summary.left_out_bytes += size - len(data)
            writer.add(number, BlockKind.LEFT_OUT, start + len(data), size - len(data))

    def take_damage(self, size: int) -> bool:
        """Return True if ``size`` bytes of damage may be kept, and count them. Damage may contain what is masked."""
        if size > self._damage_left or self.masking.changes_units:
            return False
        self._damage_left -= size
        self.summary.damage_bytes += size
        return True

    def advance(self, size: int) -> None:
        self._done += size
        self._on_progress(self._done, self._all_bytes)


class _SourceFile:
    """A file of the store that is read from its beginning to its end."""

    def __init__(self, path: str, size: int, reading: Reading) -> None:
        self.path = path
        self.size = size
        self._reading = reading
        self._descriptor = reading.open(path)
        self._extents = reading.extents(self._descriptor, 0, size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self, position: int, size: int) -> bytes:
        """Return bytes; fewer where the file ends or cannot be read, which is noted."""
        try:
            return self._reading.read(self.path, self._descriptor, min(size, self.size - position), position, self.size)
        except CannotRead:
            return b""

    def is_hole(self, start: int, size: int) -> bool:
        """Return True if the file system holds no data there."""
        return not any(begin < start + size and end > start for begin, end in self._extents)

    def next_data(self, position: int) -> int:
        """Return the position of the next data at or behind ``position``, the file's size if there is none."""
        return next((max(begin, position) for begin, end in self._extents if end > position), self.size)


class _IndexFile:
    """Writes the blocks of an index file with ``slots`` slots."""

    def __init__(self, making: _Making, writer: CapsuleWriter, number: int, file: _SourceFile, slots: int) -> None:
        self._making = making
        self._writer = writer
        self._number = number
        self._file = file
        self._slots = slots
        self._begin_timestamp = 0
        self._entries_start = index_columns.HEADER_BYTES + index_columns.SLOT_BYTES * slots

    def write(self) -> None:
        header = self._file.read(0, index_columns.HEADER_BYTES)
        self._begin_timestamp = int.from_bytes(header[:8], "big", signed=True)
        hashes, entries_stop = self._read_hashes()
        links = index_columns.links_of(hashes, self._slots)
        self._making.add_bytes(self._writer, self._number, 0, index_columns.HEADER_BYTES, header)
        for start in range(index_columns.HEADER_BYTES, self._entries_start, _SLOTS_PIECE_BYTES):
            self._write_slots(start, min(_SLOTS_PIECE_BYTES, self._entries_start - start), links.slots)
        tail_start = self._tail_start(entries_stop)
        for start in range(self._entries_start, tail_start, _ENTRIES_PIECE_BYTES):
            self._write_entries(start, min(_ENTRIES_PIECE_BYTES, tail_start - start), hashes, links.previous)
        if tail_start < entries_stop:
            size = entries_stop - tail_start
            data = _as_it_was(self._read(tail_start, size), hashes[-size // index_columns.ENTRY_BYTES :])
            self._writer.add(self._number, BlockKind.INDEX_TAIL, tail_start, size, data)
        self._making.advance(entries_stop)
        self._making.write_bytes(self._writer, self._number, self._file, entries_stop)

    def _tail_start(self, entries_stop: int) -> int:
        """Return where the entries begin that are written as they are."""
        tail_bytes = _TAIL_ENTRIES * index_columns.ENTRY_BYTES
        has_tail = entries_stop - self._entries_start >= _MIN_TAILS * tail_bytes and self._making.has_log_facts
        return entries_stop - tail_bytes if has_tail else entries_stop

    def _read(self, start: int, size: int) -> bytes:
        data = self._file.read(start, size)
        if len(data) < size:  # it could be read a moment ago
            raise CannotRead(sentence("the file changed while it was read"), file=self._file.path, offset=start)
        return data

    def _read_hashes(self) -> tuple[npt.NDArray[np.int32], int]:
        """Return the hashes of all entries up to the last one that is not zero, and where that ends."""
        pieces, stop = [], self._entries_start
        whole_entries = (self._file.size - self._entries_start) // index_columns.ENTRY_BYTES
        area_stop = self._entries_start + whole_entries * index_columns.ENTRY_BYTES
        for start in range(self._entries_start, area_stop, _ENTRIES_PIECE_BYTES):
            size = min(_ENTRIES_PIECE_BYTES, area_stop - start)
            if self._file.is_hole(start, size):
                pieces.append(np.zeros(size // index_columns.ENTRY_BYTES, np.int32))
                continue
            data = self._file.read(start, size)
            if len(data) < size:
                break
            used = -(-len(data.rstrip(b"\0")) // index_columns.ENTRY_BYTES) * index_columns.ENTRY_BYTES
            stop = start + used if used else stop
            pieces.append(np.frombuffer(data, INDEX_ENTRY)["key_hash"].astype(np.int32))
        hashes = np.concatenate(pieces) if pieces else np.zeros(0, np.int32)
        return hashes[: (stop - self._entries_start) // index_columns.ENTRY_BYTES], stop

    def _write_slots(self, start: int, size: int, slots: npt.NDArray[np.int32]) -> None:
        data = b"" if self._file.is_hole(start, size) else self._file.read(start, size)
        if not any(data) and (len(data) == size or self._file.is_hole(start, size)):
            self._writer.add(self._number, BlockKind.ZERO, start, size)
        elif len(data) < size:
            self._making.add_bytes(self._writer, self._number, start, size, data)
        else:
            first_slot = (start - index_columns.HEADER_BYTES) // index_columns.SLOT_BYTES
            expected = slots[first_slot : first_slot + size // index_columns.SLOT_BYTES]
            encoded = index_columns.encode_slots(data, expected)
            self._writer.add(self._number, BlockKind.INDEX_SLOTS, start, size, encoded)

    def _write_entries(
        self, start: int, size: int, hashes: npt.NDArray[np.int32], previous: npt.NDArray[np.int32]
    ) -> None:
        first_entry = (start - self._entries_start) // index_columns.ENTRY_BYTES
        rows = slice(first_entry, first_entry + size // index_columns.ENTRY_BYTES)
        data, log = _as_it_was(self._read(start, size), hashes[rows]), self._making.source_log
        if log is not None and log.facts.blocks:
            encoded = index_columns.encode_from_units(data, previous[rows], log.facts, self._begin_timestamp)
            if encoded is not None:
                self._writer.add(self._number, BlockKind.INDEX_FROM_UNITS, start, size, encoded)
                return
        encoded = index_columns.encode_entries(data, previous[rows])
        self._writer.add(self._number, BlockKind.INDEX_ENTRIES, start, size, encoded)


def _as_it_was(data: bytes, hashes: npt.NDArray[np.int32]) -> bytes:
    """Return entries without those that a running broker added since their ``hashes`` were read: links follow from
    these.
    """
    entries = np.frombuffer(bytearray(data), INDEX_ENTRY)
    changed = entries["key_hash"] != hashes
    if not changed.any():
        return data
    entries[changed & (hashes == 0)] = np.zeros(1, INDEX_ENTRY)
    entries["key_hash"] = hashes
    return entries.tobytes()


def _reading_order(path: str) -> int:
    """Return 0 for index files, 1 for other parts that lead into the log, 2 for the log and everything unknown."""
    return 0 if path.startswith("index/") else 1 if path.startswith(_PARTS_WITHOUT_UNITS) else 2


def _dledger_index_block(data: bytes) -> tuple[BlockKind, bytes]:
    return BlockKind.DLEDGER_INDEX, dledger_columns.encode_index(data)


class _LogWalk(ABC):
    """Cuts one file that holds units into ranges of units and what is between them."""

    def __init__(self, making: _Making, file: _SourceFile) -> None:
        self._making = making
        self._file = file
        self._max_gap_bytes = 0 if making.masking.changes_units else _MAX_GAP_BYTES

    def walk(self) -> None:
        """Go through the file and hand over each of its ranges."""
        position, size = 0, self._file.size
        window_bytes = BLOCK_BYTES
        while position < size:
            data_start = self._file.next_data(position)
            if data_start - position >= _MIN_ZERO_BYTES:
                self._add_zeros(position, data_start - position)
                position = data_start
                continue
            data = self._file.read(position, window_bytes)
            if not data:
                self._add_unread(position, size - position)
                return
            consumed = self._take(data, position, is_last=position + len(data) >= size)
            if consumed == 0:
                window_bytes *= 4  # a unit that is longer than the window
                continue
            window_bytes = BLOCK_BYTES
            position += consumed

    def _take(self, data: bytes, position: int, *, is_last: bool) -> int:
        """Write blocks for the first bytes of ``data``; returns their number, 0 if a unit needs more bytes."""
        view, end = memoryview(data), len(data)
        cursor = 0
        units: list[tuple[int, Frame]] = []
        run_start = 0
        has_gaps = False
        while cursor < end and len(units) < BLOCK_UNITS:
            frame = check_frame(view, cursor, end)
            if not isinstance(frame, str):
                units.append((cursor, frame))
                cursor += frame.size
                continue
            if not is_last and frame.startswith("cut off"):
                break
            gap_end = self._gap_end(data, cursor, is_last=is_last)
            if units and gap_end - cursor <= self._max_gap_bytes and gap_end < end:
                has_gaps = True
                cursor = gap_end
                continue
            if units:
                break
            if gap_end - cursor <= self._max_gap_bytes and gap_end < end and cursor == 0:
                has_gaps = True  # the header of the first entry
                cursor = gap_end
                continue
            self._add_gap(data[:gap_end], position)
            return gap_end
        if not units:
            return 0 if not is_last else self._gap_to_end(data, position)
        start, frame = units[-1]
        stop = start + frame.size
        self._add_run(data[run_start:stop], position, units, has_gaps=has_gaps)
        return stop

    def _gap_to_end(self, data: bytes, position: int) -> int:
        self._add_gap(data, position)
        return len(data)

    def _gap_end(self, data: bytes, start: int, *, is_last: bool) -> int:
        """Return where the next unit begins behind ``start``; without one the end, less what a unit may begin with."""
        if not isinstance(check_frame(data, start + HEADER_SIZE, len(data)), str):
            return start + HEADER_SIZE  # most gaps are headers of DLedger entries: nothing is searched for
        search = start + 1
        while True:
            hits = [hit for hit in (data.find(magic, search + 4) for magic in MAGIC_BYTES) if hit >= 0]
            if not hits:
                return len(data) if is_last else max(len(data) - 8, start + 1)
            search = min(hits) - 4
            frame = check_frame(data, search, len(data))
            if not isinstance(frame, str) or (not is_last and frame.startswith("cut off")):
                return search
            search += 1

    @abstractmethod
    def _add_zeros(self, start: int, size: int) -> None:
        """Take zero bytes."""

    @abstractmethod
    def _add_unread(self, start: int, size: int) -> None:
        """Take bytes that cannot be read."""

    @abstractmethod
    def _add_gap(self, data: bytes, start: int) -> None:
        """Take bytes that no unit explains."""

    @abstractmethod
    def _add_run(self, data: bytes, start: int, units: list[tuple[int, Frame]], *, has_gaps: bool) -> None:
        """Take units, with small gaps between them if ``has_gaps``."""


class _LogUnits(_LogWalk):
    """Collects the ranges of units of a file of the log, whose first byte is at ``offset``."""

    def __init__(self, making: _Making, number: int, file: _SourceFile, offset: int) -> None:
        super().__init__(making, file)
        self._number = number
        self._offset = offset
        self.blocks: list[LogBlock] = []
        self.unit_count = 0

    def _add_zeros(self, start: int, size: int) -> None:  # noqa: ARG002
        self._making.advance(size)

    def _add_unread(self, start: int, size: int) -> None:  # noqa: ARG002
        self._making.advance(size)

    def _add_gap(self, data: bytes, start: int) -> None:  # noqa: ARG002
        self._making.advance(len(data))

    def _add_run(self, data: bytes, start: int, units: list[tuple[int, Frame]], *, has_gaps: bool) -> None:  # noqa: ARG002
        self._making.advance(len(data))
        self.blocks.append(LogBlock(self._offset + start, len(data), self._number, start))
        self.unit_count += len(units)


class _SourceLog:
    """The units of the log, as they are before the log itself is written."""

    def __init__(self, making: _Making, files: list[CapsuleFile]) -> None:
        self._making = making
        self._files = files
        self._digests: dict[int, tuple[int, int]] = {}
        self.unit_count = 0
        blocks: list[LogBlock] = []
        for number, entry in enumerate(files):
            offset = log_offset(entry.path)
            if offset is None or not stat.S_ISREG(entry.mode):
                continue
            with contextlib.suppress(CannotRead), making.source(entry) as file:
                units = _LogUnits(making, number, file, offset)
                units.walk()
                blocks += units.blocks
                self.unit_count += units.unit_count
        self.facts = LogFacts(blocks, self._load)

    @property
    def unwritten(self) -> bool:
        """True if entries follow from units that have not been written."""
        return bool(self._digests)

    def check_written(self, offset: int, data: bytes | bytearray) -> None:
        """Compare what is written of the log with the units that entries follow from."""
        length, digest = self._digests.get(offset, (0, 0))
        if 0 < length <= len(data) and decode_facts(data[:length], offset).digest() == digest:
            del self._digests[offset]

    def _load(self, block: LogBlock) -> BlockFacts:
        with self._making.source(self._files[block.file]) as file:
            facts = decode_facts(file.read(block.position, block.length), block.offset)
        self._digests[block.offset] = block.length, facts.digest()
        return facts


class _LogFile(_LogWalk):
    """Writes the blocks of one file that holds units."""

    def __init__(self, making: _Making, writer: CapsuleWriter, number: int, file: _SourceFile, path: str) -> None:
        super().__init__(making, file)
        self._writer = writer
        self._number = number
        self._base = parse_file_name(path.rpartition("/")[2]) or 0
        self._offset = log_offset(path)

    def _add_zeros(self, start: int, size: int) -> None:
        self._writer.add(self._number, BlockKind.ZERO, start, size)
        self._making.advance(size)

    def _add_unread(self, start: int, size: int) -> None:
        self._making.add_bytes(self._writer, self._number, start, size, b"")

    def _add_gap(self, data: bytes, start: int) -> None:
        """Add bytes that no unit explains: long runs of zero bytes, and damage."""
        self._making.advance(len(data))
        for offset, size, is_zero in _zero_runs(data):
            piece = data[offset : offset + size]
            if is_zero:
                self._writer.add(self._number, BlockKind.ZERO, start + offset, size)
            elif _is_no_damage(piece) or self._making.take_damage(size):
                self._making.add_bytes(self._writer, self._number, start + offset, size, piece)
            else:
                self._making.add_bytes(self._writer, self._number, start + offset, size, b"")

    def _add_run(self, data: bytes, start: int, units: list[tuple[int, Frame]], *, has_gaps: bool) -> None:
        self._making.advance(len(data))
        self._making.summary.units += len(units)
        data = self._without_secrets(data, units)
        view = memoryview(data)
        body_places = [position + frame.body for position, frame in units]
        crcs = [
            crc32(view[place : place + frame.body_length]) for place, (_, frame) in zip(body_places, units, strict=True)
        ]
        has_body = [self._keeps_body(view, *unit, crc) for unit, crc in zip(units, crcs, strict=True)]
        bodies = [
            LeftOutBody(place, frame.body_length, crc)
            for place, (_, frame), crc, is_stored in zip(body_places, units, crcs, has_body, strict=True)
            if not is_stored
        ]
        expected = bytearray(data)
        substitutes = stand_ins([body.length for body in bodies], [body.crc for body in bodies])
        for body, substitute in zip(bodies, substitutes, strict=True):
            expected[body.position : body.position + body.length] = substitute
        is_dledger = has_gaps and _are_dledger_entries(units)
        if is_dledger or not has_gaps:
            rows = unit_columns.UnitRows(
                np.frombuffer(data, np.uint8),
                np.array([position for position, _ in units], np.int64),
                np.array(body_places, np.int64),
                np.array([frame.body_length for _, frame in units], np.int64),
                np.array(crcs, np.uint32),
                np.array(has_body, np.bool_),
            )
            kind = BlockKind.DLEDGER_ENTRIES if is_dledger else BlockKind.UNITS
            encode = dledger_columns.encode_entries if is_dledger else unit_columns.encode
            encoded = encode(rows, self._base + start)
            if self._fits(kind, start, encoded, expected):
                self._add_units(kind, start, encoded, expected)
                return
        encoded = elided.encode(data, bodies)
        if not self._fits(BlockKind.WITHOUT_BODIES, start, encoded, expected):
            raise StoreError(sentence("the units cannot be written into a capsule"), file=self._file.path, offset=start)
        self._add_units(BlockKind.WITHOUT_BODIES, start, encoded, expected)

    def _add_units(self, kind: BlockKind, start: int, encoded: bytes, expected: bytearray) -> None:
        self._writer.add(self._number, kind, start, len(expected), encoded)
        if self._offset is not None and self._making.source_log is not None:
            self._making.source_log.check_written(self._offset + start, expected)

    def _without_secrets(self, data: bytes, units: list[tuple[int, Frame]]) -> bytes:
        """Return ``data`` masked; without masks with filler in the place of the bodies inside of batches."""
        masking = self._making.masking
        if not masking.changes_units:
            return self._without_member_bodies(data, units)
        return b"".join(masking.unit(data[start : start + frame.size], frame) for start, frame in units)

    def _without_member_bodies(self, data: bytes, units: list[tuple[int, Frame]]) -> bytes:
        """Return ``data`` with filler in the place of the bodies inside of batch units, whose keys stay."""
        changed: bytearray | None = None
        for start, frame in units:
            (sys_flag,) = _I32.unpack_from(data, start + _SYS_FLAG)
            if sys_flag & INNER_BATCH and not sys_flag & COMPRESSED:
                body_place = slice(start + frame.body, start + frame.body + frame.body_length)
                body = without_member_bodies(data[body_place])
                if body is not None:
                    changed = bytearray(data) if changed is None else changed
                    changed[body_place] = body
        return data if changed is None else bytes(changed)

    def _fits(self, kind: BlockKind, start: int, encoded: bytes, expected: bytearray) -> bool:
        """Return True if the block is read as ``expected``: a capsule never holds what nobody can read."""
        try:
            return decode_block(Block(0, kind, start, len(expected)), encoded, self._base) == expected
        except BadColumns:
            return False

    def _keeps_body(self, view: memoryview, start: int, frame: Frame, crc: int) -> bool:
        """Return True if the unit's body stays: it is too short to hide, the store's own bookkeeping, or damaged."""
        if frame.body_length < MIN_STAND_IN_BYTES:
            return True
        topic = bytes(view[start + frame.topic : start + frame.topic + frame.topic_length])
        (sys_flag,) = _I32.unpack_from(view, start + _SYS_FLAG)
        body = view[start + frame.body : start + frame.body + frame.body_length]
        if filler.is_stand_in(
            sys_flag, bytes(body[:_FILLER_HEAD_BYTES]), bytes(view[start + frame.properties : start + frame.size])
        ):
            return True
        if topic in _DELAY_TOPICS:  # a pop checkpoint may wait in the timer for its revive queue
            properties = decode_properties(bytes(view[start + frame.properties : start + frame.size]))
            topic = properties.get(REAL_TOPIC, "").encode()
        if topic in _OWN_BODIES or topic.startswith(_REVIVE_PREFIX):
            return True
        if sys_flag & INNER_BATCH and not sys_flag & COMPRESSED and not self._making.masking.changes_units:
            return without_member_bodies(bytes(body)) is not None
        (stored_crc,) = _U32.unpack_from(view, start + 8)
        return stored_crc != crc & MASK and self._making.take_damage(frame.body_length)


def _are_dledger_entries(units: list[tuple[int, Frame]]) -> bool:
    """Return True if exactly the header of a DLedger entry is in front of each unit."""
    end = 0
    for start, frame in units:
        if start != end + HEADER_SIZE:
            return False
        end = start + frame.size
    return True


def _is_no_damage(data: bytes) -> bool:
    """Return True for a blank without anything behind it, and for a few zero bytes."""
    return not any(data[8:]) and (data[4:8] == _BLANK or not any(data[:8]))


def _zero_runs(data: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield offset and size of long runs of zero bytes, and of what is between them."""
    values = np.frombuffer(data, np.uint8)
    data_places = np.flatnonzero(values)
    edges = np.concatenate(([-1], data_places, [len(data)]))
    long_runs = np.flatnonzero(np.diff(edges) - 1 >= _MIN_ZERO_BYTES)
    position = 0
    for run in long_runs.tolist():
        start, stop = int(edges[run]) + 1, int(edges[run + 1])
        if start > position:
            yield position, start - position, False
        yield start, stop - start, True
        position = stop
    if position < len(data):
        yield position, len(data) - position, False


def _entry(path: str, info: os.stat_result) -> CapsuleFile:
    return CapsuleFile(
        path, info.st_mode, info.st_size, info.st_mtime_ns, system.allocated_bytes(info) // 512, info.st_nlink
    )
