"""Comparison of rebuilt files with those of the store: entries that are missing, extra, or different.

Queues are compared entry by entry at the same queue offset. Index files are compared as the set of (offset, hash)
pairs, because their names and entry numbers depend on when they were made. Entries of tags may be on one side only.
Entries of units that are no longer in the log are counted separately. Only chunks of both sides are in memory.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine import system
from engine.codec.batch_consume_queue import BATCH_CQ_UNIT_SIZE
from engine.codec.columns import UnitColumns
from engine.codec.consume_queue import CQ_UNIT_SIZE, PREFILLED_SIZE
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT, INDEX_ENTRY
from engine.codec.index import HEADER_SIZE, Geometry, decode_header
from engine.codec.index_builder import key_hashes
from engine.codec.topic_table import TopicTable
from engine.files.layout import StorePaths, parse_file_name
from engine.pipeline.files import find_stores
from engine.pipeline.rebuild_parts import Key, StoreFacts
from engine.pipeline.splits import plan, read_split

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_ENTRIES = 1 << 17
"""Entries of each side that are in memory together."""
SCHEMA = (
    "store string, what string, topic string, queueId int, entries bigint, missing bigint, extra bigint, "
    "different bigint, expired bigint, firstMissing bigint, firstExtra bigint, firstDifferent bigint"
)
_NAMES = [part.split()[0] for part in SCHEMA.split(", ")]
Bools = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]


@dataclass(slots=True)
class Difference:
    """The entries of a queue or of the index in the store (``entries``), and how they differ from the rebuilt ones.

    The first places are queue offsets (of a batch queue: numbers of entries), for the index offsets into the log; None
    if there is none.
    """

    store: str
    what: str
    topic: str | None = None
    queue_id: int | None = None
    entries: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    expired: int = 0
    first_missing: int | None = None
    first_extra: int | None = None
    first_different: int | None = None

    @property
    def same(self) -> bool:
        """Return True if nothing differs."""
        return not (self.missing or self.extra or self.different)

    def count(self, name: str, matches: Bools, numbers: Int64) -> None:
        """Count the ``missing``, ``extra`` or ``different`` entries at places ``numbers``."""
        match_count = int(np.count_nonzero(matches))
        if match_count and getattr(self, f"first_{name}") is None:
            setattr(self, f"first_{name}", int(numbers[matches][0]))
        setattr(self, name, getattr(self, name) + match_count)

    def row(self) -> list[Any]:
        """Return the values of a row of :data:`SCHEMA`."""
        return [
            self.store,
            self.what,
            self.topic,
            self.queue_id,
            self.entries,
            self.missing,
            self.extra,
            self.different,
            self.expired,
            self.first_missing,
            self.first_extra,
            self.first_different,
        ]


@dataclass(frozen=True, slots=True)
class CompareTask:
    """Queues of one store (None: its index) to be compared with those below ``built``."""

    facts: StoreFacts
    built: str
    queues: tuple[Key, ...] | None


def compare_tasks(facts: StoreFacts, built: Path, cores: int) -> list[CompareTask]:
    """Return tasks for all of a store, about two a core, the index first."""
    keys = sorted({*queues_below(Path(facts.path)), *queues_below(built)})
    tasks = [CompareTask(facts, str(built), None)] if facts.config.message_index_enable else []
    keys_per_task = max(-(-len(keys) // (2 * cores)), 1)
    return tasks + [
        CompareTask(facts, str(built), tuple(keys[position : position + keys_per_task]))
        for position in range(0, len(keys), keys_per_task)
    ]


def compare(share: Sequence[CompareTask]) -> Iterator[pa.RecordBatch]:
    """Yield a row of :data:`SCHEMA` for each queue and index of the tasks. Raises ``OSError``."""
    import pyarrow as pa

    kinds = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
    schema = pa.schema([(part.split()[0], kinds[part.split()[1]]) for part in SCHEMA.split(", ")])
    for task in share:
        built = Path(task.built)
        if task.queues is None:
            rows = [compare_index(task.facts, built).row()]
        else:
            rows = [compare_queue(task.facts, built, key).row() for key in task.queues]
        if rows:
            yield pa.RecordBatch.from_pylist([dict(zip(_NAMES, row, strict=True)) for row in rows], schema)


def queues_below(root: Path) -> Iterator[Key]:
    """Yield the queues that have a folder."""
    paths = StorePaths(root)
    for tree in (paths.consumequeue, paths.batchconsumequeue):
        for topic in sorted(_names(tree)):
            for name in sorted(_names(tree / topic)):
                number = parse_file_name(name)
                if number is not None and (tree / topic / name).is_dir():
                    yield topic, number


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


# -- queues


class QueueEntries:
    """The entries of one queue's files by their numbers; zeros where there is no file."""

    def __init__(self, folder: Path, kind: np.dtype[np.void]) -> None:
        self._folder, self._kind = folder, kind
        parsed_names = ((parse_file_name(name), name) for name in _names(folder))
        names = sorted((start, name) for start, name in parsed_names if start is not None and start >= 0)
        size = kind.itemsize
        self._files = [(start, (folder / name).stat().st_size, name) for start, name in names]
        self.first = min((start // size for start, _, _ in self._files), default=0)
        self.stop = max(((start + length) // size for start, length, _ in self._files), default=0)

    def read(self, start_entry: int, stop_entry: int) -> npt.NDArray[np.void]:
        """Read the entries from ``start_entry`` up to ``stop_entry``."""
        size = self._kind.itemsize
        out = np.zeros(stop_entry - start_entry, self._kind)
        raw = out.view(np.uint8).data
        for start, length, name in self._files:
            begin, end = max(start_entry * size, start), min(stop_entry * size, start + length)
            if begin < end:
                descriptor = os.open(self._folder / name, os.O_RDONLY | system.OPEN_FLAGS | system.NO_WAIT)
                try:
                    data = system.pread(descriptor, end - begin, begin - start)
                finally:
                    os.close(descriptor)
                raw[begin - start_entry * size : begin - start_entry * size + len(data)] = data
        return out


def compare_queue(facts: StoreFacts, built: Path, key: Key) -> Difference:
    """Compare the store's queue with the one below ``built``. Raises ``OSError``."""
    if key[0] in facts.batch_topics:
        return _compare_batch(facts, built, key)
    difference = Difference(facts.path, "queue", *key)
    old = QueueEntries(StorePaths(Path(facts.path)).queue_folder(*key), CQ_UNIT)
    new = QueueEntries(StorePaths(built).queue_folder(*key), CQ_UNIT)
    first_entry = min((side.first for side in (old, new) if side.stop), default=0)
    for start_entry in range(first_entry, max(old.stop, new.stop), CHUNK_ENTRIES):
        stop_entry = min(start_entry + CHUNK_ENTRIES, max(old.stop, new.stop))
        a, b = old.read(start_entry, stop_entry), new.read(start_entry, stop_entry)
        numbers = np.arange(start_entry, stop_entry)
        is_stored, is_rebuilt = _is_written(a), _is_written(b)
        expired = is_stored & (a["physical_offset"] < facts.start_offset) & ~is_rebuilt
        differ = (a["physical_offset"] != b["physical_offset"]) | (a["size"] != b["size"])
        both_ext = (a["tags_code"] < 0) & (b["tags_code"] < 0) & facts.config.enable_consume_queue_ext
        differ |= (a["tags_code"] != b["tags_code"]) & ~both_ext
        difference.entries += int(np.count_nonzero(is_stored))
        difference.expired += int(np.count_nonzero(expired))
        difference.count("missing", is_rebuilt & ~is_stored, numbers)
        difference.count("extra", is_stored & ~is_rebuilt & ~expired, numbers)
        difference.count("different", is_stored & is_rebuilt & differ, numbers)
    return difference


def _is_written(entries: npt.NDArray[np.void]) -> Bools:
    prefilled = (entries["physical_offset"] == 0) & (entries["size"] == PREFILLED_SIZE)
    are_written: Bools = (entries["size"] > 0) & ~prefilled
    return are_written


def _compare_batch(facts: StoreFacts, built: Path, key: Key) -> Difference:
    """Compare batch entries in their order, from the first one whose unit is still in the log."""
    difference = Difference(facts.path, "queue", *key)
    old = QueueEntries(StorePaths(Path(facts.path)).batch_folder(*key), BATCH_CQ_UNIT)
    new = QueueEntries(StorePaths(built).batch_folder(*key), BATCH_CQ_UNIT)
    position = old.first
    while position < old.stop:
        rows = old.read(position, min(position + CHUNK_ENTRIES, old.stop))
        is_expired = (rows["size"] > 0) & (rows["physical_offset"] < facts.start_offset)
        leading = len(rows) if is_expired.all() else int(np.argmin(is_expired))
        difference.expired += leading
        position += leading
        if leading < len(rows):
            break
    shift = position - new.first
    for start_entry in range(new.first, max(new.stop, old.stop - shift), CHUNK_ENTRIES):
        stop_entry = min(start_entry + CHUNK_ENTRIES, max(new.stop, old.stop - shift))
        a, b = old.read(start_entry + shift, stop_entry + shift), new.read(start_entry, stop_entry)
        is_stored, is_rebuilt = a["size"] > 0, b["size"] > 0
        raw = [side.view(np.uint8).reshape(-1, BATCH_CQ_UNIT_SIZE) for side in (a, b)]
        numbers = np.arange(start_entry + shift, stop_entry + shift)
        difference.entries += int(np.count_nonzero(is_stored))
        difference.count("missing", is_rebuilt & ~is_stored, numbers)
        difference.count("extra", is_stored & ~is_rebuilt, numbers)
        difference.count("different", is_stored & is_rebuilt & (raw[0] != raw[1]).any(axis=1), numbers)
    return difference


# -- index


class _Index:
    """The entries of a folder's index files, found by the log offsets that they point to."""

    def __init__(self, folder: Path, geometry: Geometry) -> None:
        self._chunks: list[tuple[Path, int, int, int, int]] = []  # file, first entry, count, least and largest offset
        self.entries = 0
        for name in sorted(_names(folder)):
            path = folder / name
            if name.isdigit() and path.stat().st_size >= geometry.entry_position(1):
                self._add_file(path, geometry)

    def _add_file(self, path: Path, geometry: Geometry) -> None:
        with path.open("rb", buffering=0) as file:
            header = decode_header(system.pread(file.fileno(), HEADER_SIZE, 0))
        count = max(min(header.entries, (path.stat().st_size - geometry.entry_position(1)) // CQ_UNIT_SIZE), 0)
        self.entries += count
        for first_entry in range(0, count, CHUNK_ENTRIES):
            rows = min(CHUNK_ENTRIES, count - first_entry)
            position = geometry.entry_position(1 + first_entry)
            offsets = self._read(path, position, rows)["phy_offset"]
            if len(offsets):
                self._chunks.append((path, position, rows, int(offsets.min()), int(offsets.max())))

    def edges(self) -> list[int]:
        """Return log offsets that divide the entries into chunks that are read together."""
        return sorted({lowest for *_, lowest, _ in self._chunks})

    @property
    def last(self) -> int:
        """Return the largest offset."""
        return max((highest for *_, highest in self._chunks), default=-1)

    def between(self, start_offset: int, stop_offset: int) -> npt.NDArray[np.void]:
        """Return the index entries that point to offsets [start_offset, stop_offset): rows of (offset, hash), each
        once, in order.
        """
        link_arrays = [np.zeros(0, _LINK)]
        for path, position, rows, smallest, largest in self._chunks:
            if smallest < stop_offset and largest >= start_offset:
                entries = self._read(path, position, rows)
                in_range = (entries["phy_offset"] >= start_offset) & (entries["phy_offset"] < stop_offset)
                links = np.zeros(int(np.count_nonzero(in_range)), _LINK)
                links["offset"], links["hash"] = entries["phy_offset"][in_range], entries["key_hash"][in_range]
                link_arrays.append(links)
        return np.unique(np.concatenate(link_arrays))

    def _read(self, path: Path, position: int, rows: int) -> npt.NDArray[np.void]:
        with path.open("rb", buffering=0) as file:
            raw = system.pread(file.fileno(), rows * INDEX_ENTRY.itemsize, position)
        return np.frombuffer(raw[: len(raw) // INDEX_ENTRY.itemsize * INDEX_ENTRY.itemsize], INDEX_ENTRY)


_LINK = np.dtype([("offset", "<i8"), ("hash", "<i4")])
_BEYOND_LOG = (1 << 63) - 1


def compare_index(facts: StoreFacts, built: Path) -> Difference:
    """Compare the store's index with the one below ``built``. Raises ``OSError``."""
    difference = Difference(facts.path, "index")
    geometry = Geometry(facts.config.max_hash_slot_num, facts.config.max_index_num)
    old = _Index(StorePaths(Path(facts.path)).index, geometry)
    new = _Index(StorePaths(built).index, geometry)
    difference.entries = old.entries
    edges = [-_BEYOND_LOG, *sorted({*old.edges(), *new.edges()}), max(old.last, new.last) + 1]
    for start_offset, stop_offset in itertools.pairwise(edges):
        if start_offset >= stop_offset:
            continue
        a, b = old.between(start_offset, stop_offset), new.between(start_offset, stop_offset)
        expired = a["offset"] < facts.start_offset
        difference.expired += int(np.count_nonzero(expired))
        missing, extra = ~np.isin(b, a), ~np.isin(a, b) & ~expired
        if missing.any() or extra.any():
            tags = _tag_links(facts, np.concatenate([a[extra], b[missing]])["offset"])
            missing &= ~np.isin(b, tags)
            extra &= ~np.isin(a, tags)
        difference.count("missing", missing, b["offset"])
        difference.count("extra", extra, a["offset"])
    return difference


def _tag_links(facts: StoreFacts, offsets: Int64) -> npt.NDArray[np.void]:
    """Return the tag entries (offset, hash) of the units between the least and the largest of ``offsets``. They may
    be present or absent: only releases from 5.4 on write them, and a store may have been written by several releases.
    """
    start_offset, stop_offset = int(offsets.min()), int(offsets.max()) + 1
    topics, links = TopicTable(), [np.zeros(0, _LINK)]
    for split in plan(find_stores(facts.path)).splits:
        start, stop = max(split.start, start_offset - split.file_start), min(split.stop, stop_offset - split.file_start)
        if start >= stop:
            continue
        for block in read_split(replace(split, start=start, stop=stop, exact=False), crc=False, topics=topics):
            if not isinstance(block, UnitColumns):
                continue
            keys = key_hashes(block, topics)
            keys = keys.choose(keys.is_tag)
            tag_links = np.zeros(len(keys.row), _LINK)
            tag_links["offset"], tag_links["hash"] = block.offset[keys.row], keys.key_hash
            links.append(tag_links)
    return np.concatenate(links)
