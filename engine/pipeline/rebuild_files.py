"""Queue files and index files built from the parts of a store's log (docs/formats/consume-queue.md#append, #ext,
#batch-queues; docs/formats/index-file.md#insert, #files).

Queues are built a range at a time. Parts come in the order of the log, so each queue gets its entries in that order.
:mod:`engine.codec.queue_placing` decides where an entry goes, as in a live store. Memory is a few megabytes of entries,
whatever a queue's length.

Each index file is built by one task. All files of a store are one sequence: the number of keys before a file decides
which keys it takes, and its header begins with the end of the file before it. Both follow from the counts of keys, so
files need not wait for each other.
"""

from __future__ import annotations

import mmap
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from engine import system
from engine.codec.batch_consume_queue import BATCH_CQ_UNIT_SIZE, BatchCqUnit
from engine.codec.consume_queue import CQ_UNIT_SIZE, decode, ext_offset, is_ext_address
from engine.codec.cq_ext import CqExtStop
from engine.codec.cq_ext import decode as decode_ext
from engine.codec.dtypes import CQ_UNIT
from engine.codec.index import HEADER_SIZE, Geometry, IndexHeader, encode_header, next_header
from engine.codec.index_builder import put_entries
from engine.codec.queue_placing import MAX_EXT_UNIT_BYTES, NO_ADDRESS, put, put_batch, put_ext, put_run
from engine.config import MessageStoreConfig
from engine.files.layout import StorePaths, index_file_name, queue_file_name
from engine.pipeline.rebuild_parts import (
    BATCH,
    EXT,
    ITEM,
    ITEMS,
    KEY,
    RUN,
    Group,
    Key,
    StoreFacts,
    decode_group,
    groups_between,
    path_of,
    read_entries,
    read_part,
)

GROUP_BYTES_AT_ONCE = 16 << 20
"""Bytes of entries that are in memory together."""
MAX_OPEN_QUEUES = 128
Int64 = npt.NDArray[np.int64]


class QueueSink:
    """The files of one queue that is built: :class:`engine.codec.queue_placing.Files` over files of their own."""

    def __init__(self, folder: Path, file_size: int) -> None:
        self.folder, self.file_size = folder, file_size
        self.starts: tuple[int, ...] = ()
        self.end = self.flushed = 0
        self.first_created = -1
        self._open: tuple[int, int] | None = None  # start of the file, descriptor

    @property
    def last_is_full(self) -> bool:
        """Return True if the next entry needs a new file."""
        return not self.starts or self.end - self.starts[-1] >= self.file_size

    def create(self, start: int) -> None:
        """Make the next file. Raises ``OSError``."""
        if not self.starts:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.first_created = start
        self._descriptor(start, os.O_CREAT | os.O_TRUNC)
        self.starts, self.end = (*self.starts, start), start

    def append(self, data: bytes | memoryview) -> None:
        """Write whole entries at the end, into further files where the last one is full. Raises ``OSError``."""
        view, done = memoryview(data), 0
        while done < len(view):
            if self.last_is_full:
                self.create(self.starts[-1] + self.file_size if self.starts else 0)
            start = self.starts[-1]
            count = min(len(view) - done, start + self.file_size - self.end)
            self.write(self.end, view[done : done + count])
            self.end += count
            done += count

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write inside the last file. Raises ``OSError``."""
        start, view = self.starts[-1], memoryview(data)
        descriptor, done = self._descriptor(start), 0
        while done < len(view):
            done += system.pwrite(descriptor, view[done:], offset - start + done)

    def rest(self) -> None:
        """Close the descriptor; the file opens again when it is needed."""
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def finish(self) -> None:
        """Bring every file to the disk. Raises ``OSError``."""
        for start in self.starts:
            os.fsync(self._descriptor(start))
        self.rest()

    def _descriptor(self, start: int, flags: int = 0) -> int:
        if self._open is not None and self._open[0] == start:
            return self._open[1]
        self.rest()
        descriptor = os.open(self.folder / queue_file_name(start), os.O_RDWR | system.OPEN_FLAGS | flags, 0o644)
        self._open = start, descriptor
        if flags:
            os.ftruncate(descriptor, self.file_size)
        return descriptor


class _Ext:
    def __init__(self, files: QueueSink) -> None:
        self.files = files


class BuiltQueue:
    """A queue that is being written into ``files``."""

    def __init__(self, kind: Literal["simple", "batch"], files: QueueSink, ext: QueueSink | None) -> None:
        self.kind, self.files = kind, files
        self.ext = _Ext(ext) if ext is not None else None
        self.max_physic_offset = -1
        self.min_logic_offset = 0

    def note_gap(self, queue_offset: int) -> None:
        """Accept an entry that does not follow the last one; the comparison reports it."""

    @property
    def entries(self) -> int:
        """Entries that point into the log."""
        if self.kind == "batch":
            return self.files.end // BATCH_CQ_UNIT_SIZE
        return (self.files.end - self.min_logic_offset) // CQ_UNIT_SIZE

    def take(self, groups: Sequence[tuple[Group, memoryview]], bit_maps: BitMaps | None) -> None:
        """Put what the groups hold, in their order. Raises ``OSError``."""
        runs: list[tuple[npt.NDArray[np.void], Int64]] = []
        for group, data in groups:
            if group.shape != RUN or (runs and not _continues(runs[-1], group)):
                self._put_runs(runs)
            if group.shape == RUN:
                runs.append(decode_group(group, data))
            elif group.shape == ITEMS:
                self._put_items(group, np.frombuffer(data, ITEM, group.rows), bit_maps)
            else:
                entries, offsets = decode_group(group, data)
                for (physical, size, code), offset in zip(entries.tolist(), offsets.tolist(), strict=True):
                    put(self, physical, size, code, offset)
        self._put_runs(runs)

    def _put_runs(self, runs: list[tuple[npt.NDArray[np.void], Int64]]) -> None:
        if not runs:
            return
        entries = runs[0][0]
        if len(runs) > 1:  # concatenated as bytes: numpy would turn the fields into the machine's own order
            entries = np.concatenate([piece.view(np.uint8) for piece, _ in runs]).view(CQ_UNIT)
        offsets = np.concatenate([offsets for _, offsets in runs]) if len(runs) > 1 else runs[0][1]
        end = entries["physical_offset"].astype(np.int64) + entries["size"]
        put_run(self, end, offsets, entries)
        runs.clear()

    def _put_items(self, group: Group, items: npt.NDArray[np.void], bit_maps: BitMaps | None) -> None:
        for kind, size, physical, code, offset, stored, base, count in items.tolist():
            if kind == BATCH:
                put_batch(self, BatchCqUnit(physical, size, code, stored, base, count))
                continue
            stored_code = code
            if kind == EXT and self.ext is not None:
                bit_map = bit_maps.of(group.key, offset) if bit_maps is not None else b""
                address = put_ext(self.ext, code, stored, bit_map)
                stored_code = code if address == NO_ADDRESS else address
            put(self, physical, size, stored_code, offset)

    def finish(self) -> None:
        """Everything is on the disk afterwards. Raises ``OSError``."""
        self.files.finish()
        if self.ext is not None:
            self.ext.files.finish()

    def rest(self) -> None:
        """Close descriptors; files open again when they are needed."""
        self.files.rest()
        if self.ext is not None:
            self.ext.files.rest()


def _continues(previous_run: tuple[npt.NDArray[np.void], Int64], group: Group) -> bool:
    """Return True if a run continues the one before it, in its queue and in the log."""
    entries, offsets = previous_run
    return int(offsets[-1]) + 1 == group.first_entry and int(entries["physical_offset"][-1]) < group.physical


class BitMaps:
    """Filter bit maps from the store's own ext queues, because the log does not hold them
    (docs/formats/consume-queue.md#ext).
    """

    def __init__(self, root: Path, config: MessageStoreConfig) -> None:
        self._paths, self._config = StorePaths(root), config

    def of(self, key: Key, queue_offset: int) -> bytes:
        """Return the bit map of the entry at ``queue_offset``, empty if there is none."""
        raw = _read(
            self._paths.queue_folder(*key),
            self._config.consume_queue_file_size,
            queue_offset * CQ_UNIT_SIZE,
            CQ_UNIT_SIZE,
        )
        code = decode(raw).tags_code if len(raw) == CQ_UNIT_SIZE else 0
        if not is_ext_address(code):
            return b""
        offset, size = ext_offset(code), self._config.mapped_file_size_consume_queue_ext
        ext_unit = decode_ext(_read(self._paths.ext_folder(*key), size, offset, MAX_EXT_UNIT_BYTES), 0, offset)
        return b"" if isinstance(ext_unit, CqExtStop) else ext_unit.bit_map


def _read(folder: Path, file_size: int, offset: int, size: int) -> bytes:
    """Bytes of one file of a queue; none where it is not there."""
    start = offset - offset % file_size
    try:
        descriptor = os.open(folder / queue_file_name(start), os.O_RDONLY | system.OPEN_FLAGS)
    except OSError:
        return b""
    try:
        return system.pread(descriptor, min(size, start + file_size - offset), offset - start)
    finally:
        os.close(descriptor)


def build_queues(
    facts: StoreFacts,
    root: Path,
    folder: Path,
    parts: int,
    start_key: Key,
    stop_key: Key | None,
    left_out: frozenset[str],
) -> Iterator[tuple[Key, int]]:
    """Build the queues from ``start_key`` up to ``stop_key`` (None: to the last) below ``root`` out of the first
    ``parts`` parts in ``folder``, except topics ``left_out``. Yields each queue and its number of entries; all is on
    the disk then.

    Raises ``OSError``.
    """
    queues: dict[Key, BuiltQueue] = {}
    bit_maps = BitMaps(Path(facts.path), facts.config) if facts.config.enable_consume_queue_ext else None
    for waiting in _iter_queue_groups(parts, folder, start_key, stop_key, left_out):
        for key, groups in waiting.items():
            queue = queues.get(key)
            if queue is None:
                queue = queues[key] = _create_queue(facts, root, key)
            queue.take(groups, bit_maps)
            if len(queues) > MAX_OPEN_QUEUES:
                queue.rest()
    for key, queue in queues.items():
        queue.finish()
        yield key, queue.entries


def _create_queue(facts: StoreFacts, root: Path, key: Key) -> BuiltQueue:
    paths, config = StorePaths(root), facts.config
    if key[0] in facts.batch_topics:
        files = QueueSink(paths.batch_folder(*key), config.mapper_file_size_batch_consume_queue)
        return BuiltQueue("batch", files, None)
    ext = None
    if config.enable_consume_queue_ext:
        ext = QueueSink(paths.ext_folder(*key), config.mapped_file_size_consume_queue_ext)
    return BuiltQueue("simple", QueueSink(paths.queue_folder(*key), config.consume_queue_file_size), ext)


def _iter_queue_groups(
    parts: int, folder: Path, start_key: Key, stop_key: Key | None, left_out: frozenset[str]
) -> Iterator[dict[Key, list[tuple[Group, memoryview]]]]:
    """Yield the groups of the range, queue by queue, as many parts at a time as :data:`GROUP_BYTES_AT_ONCE` allows."""
    waiting: dict[Key, list[tuple[Group, memoryview]]] = defaultdict(list)
    size = 0
    for number in range(parts):
        chunks = [chunk for chunk in groups_between(read_part(folder, number), start_key, stop_key) if chunk]
        if not chunks:
            continue
        descriptor = os.open(path_of(folder, number, "entries"), os.O_RDONLY | system.OPEN_FLAGS)
        try:
            for chunk in chunks:
                for piece in _pieces(chunk):
                    data = read_entries(descriptor, piece)
                    base = piece[0].position
                    for group in piece:
                        if group.topic not in left_out:
                            position = group.position - base
                            waiting[group.key].append((group, data[position : position + group.size]))
                    size += len(data)
                    if size >= GROUP_BYTES_AT_ONCE:
                        yield waiting
                        waiting, size = defaultdict(list), 0
        finally:
            os.close(descriptor)
    if waiting:
        yield waiting


def _pieces(chunk: list[Group]) -> Iterator[list[Group]]:
    """Yield neighbouring groups of about :data:`GROUP_BYTES_AT_ONCE` bytes."""
    piece: list[Group] = []
    size = 0
    for group in chunk:
        piece.append(group)
        size += group.size
        if size >= GROUP_BYTES_AT_ONCE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


KEYS_AT_ONCE = 1 << 18
"""Keys that are in memory together."""


class PartCounts(Protocol):
    """Facts of a part: its units, its keys, and whether units follow the one with the last key."""

    units: int
    keys: int
    later_units: bool


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """An index file: the keys ``first`` to ``stop`` of the store, counted from its first."""

    name: str
    first: int
    stop: int


def plan_index(parts: Sequence[PartCounts], geometry: Geometry, now: int) -> list[IndexPlan]:
    """The files that a dispatch of these parts makes, named from ``now`` (ms) on.

    A file is made for the first unit, and whenever a key, or a unit behind the last key, finds the last one full.
    """
    keys = sum(part.keys for part in parts)
    if not any(part.units for part in parts):
        return []
    each = max(geometry.entries - 1, 1)
    files = max(-(-keys // each), 1)
    if keys and keys % each == 0 and _units_behind_the_last_key(parts):
        files += 1
    plans: list[IndexPlan] = []
    for number in range(files):
        name = index_file_name(now, plans[-1].name if plans else "")
        plans.append(IndexPlan(name, min(number * each, keys), min((number + 1) * each, keys)))
    return plans


def _units_behind_the_last_key(parts: Sequence[PartCounts]) -> bool:
    for part in reversed(parts):
        if part.keys:
            return part.later_units
        if part.units:
            return True
    return False


def build_index(plan: IndexPlan, geometry: Geometry, path: Path, folder: Path, counts: Sequence[int]) -> IndexHeader:
    """Write the file at ``path`` out of the keys of the parts in ``folder``, of which there are ``counts``; it is on
    the disk afterwards. Gives its header. Raises ``OSError``.
    """
    header = IndexHeader(0, 0, 0, 0, 0, 1)
    if plan.first:
        last_key = next(_keys(folder, counts, plan.first - 1, plan.first))
        stored, offset = int(last_key["store_timestamp"][0]), int(last_key["phy_offset"][0])
        header = next_header(IndexHeader(0, stored, 0, offset, 0, 1))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | system.OPEN_FLAGS, 0o644)
    try:
        os.ftruncate(descriptor, geometry.file_size)
        stop = geometry.entry_position(1 + plan.stop - plan.first)
        system.allocate(descriptor, 0, min(stop, geometry.file_size))  # a full disk is an error here, no fault below
        with mmap.mmap(descriptor, geometry.file_size) as mapped:
            header = _fill(
                np.frombuffer(mapped, np.uint8), header, geometry, _keys(folder, counts, plan.first, plan.stop)
            )
            mapped[:HEADER_SIZE] = encode_header(header)
            mapped.flush()
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return header


def _fill(
    raw: npt.NDArray[np.uint8], header: IndexHeader, geometry: Geometry, pieces: Iterator[npt.NDArray[np.void]]
) -> IndexHeader:
    for keys in pieces:
        columns = [np.ascontiguousarray(keys[name]) for name in ("key_hash", "phy_offset", "store_timestamp")]
        header = put_entries(raw, header, geometry, *columns)
    return header


def _keys(folder: Path, counts: Sequence[int], first_key: int, stop: int) -> Iterator[npt.NDArray[np.void]]:
    """Yield the keys from ``first_key`` up to ``stop`` of the store, in pieces."""
    previous_count = 0
    for number, count in enumerate(counts):
        lower, upper = max(first_key - previous_count, 0), min(stop - previous_count, count)
        previous_count += count
        if lower >= upper:
            continue
        with path_of(folder, number, "keys").open("rb", buffering=0) as file:
            for position in range(lower, upper, KEYS_AT_ONCE):
                size = min(KEYS_AT_ONCE, upper - position) * KEY.itemsize
                yield np.frombuffer(system.pread(file.fileno(), size, position * KEY.itemsize), KEY)
