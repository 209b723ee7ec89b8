"""The entries that one split of a log gives to the queues and the index: a part, written beside the others of its
store (docs/formats/writing.md#dispatch).

A part has three files: ``entries`` (what goes into queues, a chunk of rows at a time, each chunk's groups in the order
of topic and queue), ``keys`` (what goes into the index) and, written last, a directory in JSON. A part whose directory
is there is whole: a run that goes on where another was killed keeps it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from engine import system
from engine.codec.columns import UnitColumns
from engine.codec.dtypes import CQ_UNIT
from engine.codec.index_builder import build_keys
from engine.codec.message import COMMIT, TRANSACTION_MASK
from engine.codec.queue_builder import EntryRows, build_runs
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.config import MessageStoreConfig
from engine.files.atomic_file import write_atomically
from engine.files.layout import is_folder_name
from engine.pipeline.splits import SplitEnd
from engine.rules import unit_check
from engine.rules.dispatch_rules import KnownTopics, light_entries, names_light_queues, units_of
from engine.rules.unit_check import Request, Rules

ROWS = 1 << 17
"""Rows of a chunk: few enough to stay in the processor's cache while they are grouped."""
RUN, ROWS_OF, ITEMS = 0, 1, 2
"""Shapes of a group: entries whose queue offsets grow by one; entries, then their queue offsets; :data:`ITEM` rows."""
PLAIN, LIGHT, EXT, BATCH = 0, 1, 2, 3
ITEM = np.dtype(
    [
        ("kind", "<i4"),
        ("size", "<i4"),
        ("physical_offset", "<i8"),
        ("tags_code", "<i8"),
        ("queue_offset", "<i8"),
        ("store_timestamp", "<i8"),
        ("base_offset", "<i8"),
        ("batch_size", "<i8"),
    ]
)
"""One entry that is more than 20 bytes at its queue offset; the batch's fields count for :data:`BATCH` only."""
KEY = np.dtype([("phy_offset", "<i8"), ("store_timestamp", "<i8"), ("key_hash", "<i4")])
Key = tuple[str, int]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """Facts of a store's files and tables, collected before its log is read.

    The log is read from ``start_offset`` to ``stop`` (None: to its end). ``label`` is the store's folder below the
    output, "" for the only store.
    """

    path: str
    label: str
    start_offset: int
    stop: int | None
    config: MessageStoreConfig
    batch_topics: frozenset[str]
    topics: KnownTopics
    tag_entries: bool  # whether the store's release puts tags into the index


class Group(NamedTuple):
    """Entries of one queue in a chunk: ``size`` bytes at ``position`` of the part's entries. ``first_entry`` is the
    queue offset of a :data:`RUN`'s first entry, ``physical`` the physical offset that the group's first entry has.
    """

    topic: str
    queue_id: int
    shape: int
    rows: int
    first_entry: int
    position: int
    size: int
    physical: int

    @property
    def key(self) -> Key:
        """The queue."""
        return (self.topic, self.queue_id)


@dataclass(slots=True)
class Part:
    """The directory of a part.

    ``later_units`` is True if units follow the one that has the last key. ``first_offset`` and ``next_offset`` are the
    offsets of the first unit, blank or damage of the split and of the next split. ``ends`` is True if the log ends in
    this split.
    """

    units: int = 0
    keys: int = 0
    later_units: bool = False
    damaged: int = 0
    damaged_bytes: int = 0
    stale: int = 0
    bytes: int = 0
    first_offset: int = -1
    next_offset: int = -1
    ends: bool = False
    chunks: list[list[Group]] = field(default_factory=list)


def path_of(folder: Path, number: int, kind: str) -> Path:
    """Return the path of the file ``kind`` (``entries``, ``keys``, ``json``) of part ``number``."""
    return folder / f"{number:08d}.{kind}"


def read_part(folder: Path, number: int) -> Part:
    """Return the directory of a complete part. Raises ``OSError``."""
    raw = json.loads(path_of(folder, number, "json").read_text(encoding="ascii"))
    topics = raw.pop("topics")
    chunks = [[Group(topics[row[0]], *row[1:]) for row in chunk] for chunk in raw.pop("chunks")]
    return Part(**raw, chunks=chunks)


class PartWriter:
    """Writes the blocks of one split, added in their order, as part ``number`` into ``folder``. A context manager.

    Memory is a chunk of rows. All of it may raise ``OSError``.
    """

    def __init__(self, folder: Path, number: int, facts: StoreFacts, topics: TopicTable) -> None:
        self._folder, self._number, self._facts, self._topics = folder, number, facts, topics
        config = facts.config
        self._ext = config.enable_consume_queue_ext
        self._index = config.message_index_enable
        self._rules = Rules(delay_levels=config.delay_levels())
        self._rows = EntryRows(ROWS)
        self._items: dict[Key, list[tuple[int, ...]]] = defaultdict(list)
        self._waiting = 0
        self._batch_ids: tuple[int, Int64] = 0, np.zeros(0, np.int64)
        self.part = Part()

    def __enter__(self) -> PartWriter:  # noqa: PYI034 (private, and never a subclass)
        self._entries: IO[bytes] = path_of(self._folder, self._number, "entries").open("wb", buffering=0)
        self._keys: IO[bytes] = path_of(self._folder, self._number, "keys").open("wb", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        self._entries.close()
        self._keys.close()

    def damage(self, damage: Damage) -> None:
        """Count a damaged range of the log."""
        if self._facts.stop is None or damage.offset < self._facts.stop:
            self.part.damaged += 1
            self.part.damaged_bytes += damage.size

    def end(self, split_end: SplitEnd) -> None:
        """Record where the split ends, after its last block."""
        self.part.first_offset, self.part.next_offset, self.part.ends = (
            split_end.first_offset,
            split_end.next_offset,
            bool(split_end.why),
        )

    def take(self, columns: UnitColumns) -> None:
        """Add the units of one block; its arrays may be reused afterwards."""
        rows = self._true_rows(columns)
        if not len(rows):
            return
        self.part.units += len(rows)
        if self._index:
            self._take_keys(columns, rows)
        light = self._facts.config.enable_multi_dispatch and names_light_queues(columns, rows)
        special = self._special(columns, rows)
        plain = rows if special is None else rows[~special]
        for row in rows.tolist() if light else () if special is None else rows[special].tolist():
            self._take_one(columns, row, light=light)
        if len(plain):
            first_row, stop = int(plain[0]), int(plain[-1]) + 1
            for begin, end in [(first_row, stop)] if stop - first_row == len(plain) else _spans(plain):
                self._take_rows(columns, begin, end)
        if self._waiting >= ROWS:
            self._flush()

    def finish(self) -> Part:
        """Write the rows in memory and, last of all, the directory."""
        self._flush()
        part = self.part
        topics: dict[str, int] = {}
        chunks = [[(topics.setdefault(g.topic, len(topics)), *g[1:]) for g in chunk] for chunk in part.chunks]
        record = {**{k: v for k, v in asdict(part).items() if k != "chunks"}, "topics": list(topics), "chunks": chunks}
        write_atomically(path_of(self._folder, self._number, "json"), json.dumps(record))
        return part

    def _true_rows(self, columns: UnitColumns) -> Int64:
        """Return the rows of units in the store's range whose physical offset is their position."""
        facts = self._facts
        units = len(units_of(columns))
        offset = columns.offset[:units]
        lower = int(np.searchsorted(offset, facts.start_offset))
        upper = units if facts.stop is None else int(np.searchsorted(offset, facts.stop))
        is_true = columns.physical_offset[lower:upper] == offset[lower:upper]
        rows = np.arange(lower, upper)
        if not is_true.all():
            self.part.stale += int(np.count_nonzero(~is_true))
            rows = rows[is_true]
        return rows

    def _take_keys(self, columns: UnitColumns, rows: Int64) -> None:
        key_hashes = build_keys(columns, self._topics.prefixes(), rows, tags=self._facts.tag_entries)
        count = len(key_hashes.key_hash)
        if not count:
            self.part.later_units = True
            return
        packed = np.empty(count, KEY)
        packed["key_hash"], packed["phy_offset"] = key_hashes.key_hash, key_hashes.phy_offset
        packed["store_timestamp"] = key_hashes.store_timestamp
        self._keys.write(packed.view(np.uint8).data)
        self.part.keys += count
        self.part.later_units = key_hashes.later_units

    def _special(self, columns: UnitColumns, rows: Int64) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the rows whose queue entry is not a plain one of 20 bytes; None if all are plain."""
        if self._ext:
            return np.ones(len(rows), np.bool_)
        known_count, batch_numbers = self._batch_ids
        names = self._topics.names
        if known_count < len(names):
            new_numbers = [
                number for number in range(known_count, len(names)) if names[number] in self._facts.batch_topics
            ]
            batch_numbers = np.concatenate([batch_numbers, np.array(new_numbers, np.int64)])
            self._batch_ids = len(names), batch_numbers
        topic = columns.topic_id[rows]
        is_special: npt.NDArray[np.bool_] = topic < 0
        if len(batch_numbers):
            is_special |= np.isin(topic, batch_numbers)
        return is_special if is_special.any() else None

    def _take_one(self, columns: UnitColumns, row: int, *, light: bool) -> None:
        """Add one unit that must be decoded: its own entry if it is not plain, and its entries in light queues."""
        position, size = int(columns.offset[row]) - columns.base, int(columns.size[row])
        request = unit_check.check(columns.buffer.data[position : position + size], 0, size, self._rules, body=False)
        if not isinstance(request, Request) or request.sys_flag & TRANSACTION_MASK not in (0, COMMIT):
            return
        batch = request.topic in self._facts.batch_topics
        if batch or self._ext or int(columns.topic_id[row]) < 0:
            self._add(BATCH if batch else EXT if self._ext else PLAIN, request.topic, request.queue_id, request)
        for name, queue_id, queue_offset in (
            light_entries(request.properties, request.topic, request.queue_id) if light else ()
        ):
            if name not in self._facts.batch_topics:
                self._add(LIGHT, name, queue_id, request, queue_offset)

    def _add(self, kind: int, topic: str, queue_id: int, request: Request, queue_offset: int | None = None) -> None:
        if not is_folder_name(topic):
            return
        offset = request.queue_offset if queue_offset is None else queue_offset
        self._items[topic, queue_id].append(
            (
                kind,
                request.size,
                request.physical_offset,
                request.tags_code,
                offset,
                request.store_timestamp,
                request.base_offset,
                request.batch_size,
            )
        )
        self._waiting += 1

    def _take_rows(self, columns: UnitColumns, next_row: int, stop: int) -> None:
        while next_row < stop:
            room = self._rows.capacity - self._rows.count
            end = min(stop, next_row + room)
            self._rows.add(columns, next_row, end)
            self._waiting += end - next_row
            next_row = end
            if self._rows.count == self._rows.capacity:
                self._flush()

    def _flush(self) -> None:
        """Write a chunk of the waiting entries, queue by queue."""
        rows = self._rows
        runs = build_runs(rows, 0, rows.count)
        names, starts = self._topics.names, runs.start.tolist()
        groups_of_queue: dict[Key, list[tuple[int, int]]] = defaultdict(list)
        for group, (topic, queue_id) in enumerate(zip(runs.topic_id.tolist(), runs.queue_id.tolist(), strict=True)):
            if is_folder_name(names[topic]):
                groups_of_queue[names[topic], queue_id].append((group, starts[group]))
        chunk: list[Group] = []
        for key in sorted({*groups_of_queue, *self._items}):
            groups = [group for group, _ in groups_of_queue.get(key, ())]
            if len(groups) == 1 and key not in self._items:
                group = groups[0]
                span = slice(starts[group], starts[group + 1])
                chunk.append(
                    self._write_group(key, runs.entries[span], runs.queue_offset[span], bool(runs.follows[group]))
                )
                continue
            pieces = [
                _as_items(runs.entries[s], runs.queue_offset[s])
                for s in (slice(starts[g], starts[g + 1]) for g in groups)
            ]
            pieces.append(np.array(self._items.get(key, []), ITEM))
            chunk.append(self._write_items(key, np.concatenate(pieces)))
        if chunk:
            self.part.chunks.append(chunk)
        rows.count, self._waiting = 0, 0
        self._items.clear()

    def _write_group(self, key: Key, entries: npt.NDArray[np.void], queue_offset: Int64, follows: bool) -> Group:
        data = entries.view(np.uint8).data
        physical, first_offset, position = int(entries["physical_offset"][0]), int(queue_offset[0]), self.part.bytes
        self._entries.write(data)
        size = data.nbytes
        if not follows:
            size += self._entries.write(np.ascontiguousarray(queue_offset).view(np.uint8).data)
        self.part.bytes += size
        return Group(*key, RUN if follows else ROWS_OF, len(entries), first_offset, position, size, physical)

    def _write_items(self, key: Key, items: npt.NDArray[np.void]) -> Group:
        """Write entries of all kinds in the order of the log; a unit's own entry comes before its light ones."""
        ordered = items[np.argsort(items["physical_offset"], kind="stable")]
        data, position = ordered.view(np.uint8).data, self.part.bytes
        self._entries.write(data)
        self.part.bytes += data.nbytes
        first_offset = int(ordered["queue_offset"][0])
        return Group(*key, ITEMS, len(ordered), first_offset, position, data.nbytes, int(ordered["physical_offset"][0]))


def _as_items(entries: npt.NDArray[np.void], queue_offset: Int64) -> npt.NDArray[np.void]:
    items = np.zeros(len(entries), ITEM)
    for name in ("physical_offset", "size", "tags_code"):
        items[name] = entries[name]
    items["kind"], items["queue_offset"] = PLAIN, queue_offset
    return items


def _spans(rows: Int64) -> Iterable[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(rows) != 1) + 1
    return [(int(piece[0]), int(piece[-1]) + 1) for piece in np.split(rows, edges)]


def groups_between(part: Part, start_key: Key, stop_key: Key | None) -> list[list[Group]]:
    """Return the groups of each chunk whose queues are at or behind ``start_key`` and before ``stop_key`` (None: to the
    end).
    """
    return [
        [g for g in chunk if g.key >= start_key and (stop_key is None or g.key < stop_key)] for chunk in part.chunks
    ]


def read_entries(descriptor: int, groups: list[Group]) -> memoryview:
    """The bytes of neighbouring groups of a chunk, from the first one's position on. Raises ``OSError``."""
    size = groups[-1].position + groups[-1].size - groups[0].position
    return memoryview(system.pread(descriptor, size, groups[0].position))


def decode_group(group: Group, data: memoryview) -> tuple[npt.NDArray[np.void], Int64]:
    """(entries as rows of ``dtypes.CQ_UNIT``, queue offsets) of a :data:`RUN` or :data:`ROWS_OF` from its bytes."""
    entries = np.frombuffer(data, CQ_UNIT, group.rows)
    if group.shape == RUN:
        return entries, np.arange(group.first_entry, group.first_entry + group.rows)
    return entries, np.frombuffer(data, np.int64, group.rows, group.rows * CQ_UNIT.itemsize)
