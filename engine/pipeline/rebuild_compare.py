"""What was rebuilt held against what is there: entries that are missing, that nothing asks for, or that differ.

Queues are compared entry by entry at the same queue offset, index files as the set of what leads to which place of the
log: their names and the numbers of their entries depend on when they were made. Entries of tags may be on one side
only. Entries of units that the log has no more are counted apart. Nothing is read but chunks of both sides.
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

from engine.codec.batch_consume_queue import BATCH_CQ_UNIT_SIZE
from engine.codec.columns import UnitColumns
from engine.codec.consume_queue import CQ_UNIT_SIZE, PREFILLED_SIZE
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT, INDEX_ENTRY
from engine.codec.index import HEADER_SIZE, Geometry, decode_header
from engine.codec.index_builder import key_hashes
from engine.codec.topic_table import TopicTable
from engine.layout import StorePaths, parse_file_name
from engine.pipeline.files import find_stores
from engine.pipeline.rebuild_parts import Key, StoreFacts
from engine.pipeline.splits import plan, read_split

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 1 << 17
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
    """What a queue, or the index, has in the store (``entries``) and how that differs from what was rebuilt.

    The first places are queue offsets (of a batch queue: numbers of entries), for the index offsets into the log; None
    where there is none.
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
        """Whether nothing differs."""
        return not (self.missing or self.extra or self.different)

    def count(self, name: str, found: Bools, numbers: Int64) -> None:
        """Count what was found of ``missing``, ``extra`` or ``different`` at places ``numbers``."""
        many = int(np.count_nonzero(found))
        if many and getattr(self, f"first_{name}") is None:
            setattr(self, f"first_{name}", int(numbers[found][0]))
        setattr(self, name, getattr(self, name) + many)

    def row(self) -> list[Any]:
        """The values of a row of :data:`SCHEMA`."""
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
    """All of a store in about two tasks a core, the index first."""
    keys = sorted({*queues_below(Path(facts.path)), *queues_below(built)})
    found = [CompareTask(facts, str(built), None)] if facts.config.message_index_enable else []
    each = max(-(-len(keys) // (2 * cores)), 1)
    return found + [CompareTask(facts, str(built), tuple(keys[at : at + each])) for at in range(0, len(keys), each)]


def compare(share: Sequence[CompareTask]) -> Iterator[pa.RecordBatch]:
    """A row of :data:`SCHEMA` for each queue and index of the tasks. Raises ``OSError``."""
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
    """The queues that have a folder."""
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
    """The entries of one queue's files by their numbers; empty ones where no file is."""

    def __init__(self, folder: Path, kind: np.dtype[np.void]) -> None:
        self._folder, self._kind = folder, kind
        found = ((parse_file_name(name), name) for name in _names(folder))
        names = sorted((start, name) for start, name in found if start is not None and start >= 0)
        size = kind.itemsize
        self._files = [(start, (folder / name).stat().st_size, name) for start, name in names]
        self.first = min((start // size for start, _, _ in self._files), default=0)
        self.stop = max(((start + length) // size for start, length, _ in self._files), default=0)

    def read(self, low: int, high: int) -> npt.NDArray[np.void]:
        """Entries ``low`` to ``high``."""
        size = self._kind.itemsize
        out = np.zeros(high - low, self._kind)
        raw = out.view(np.uint8).data
        for start, length, name in self._files:
            begin, end = max(low * size, start), min(high * size, start + length)
            if begin < end:
                descriptor = os.open(self._folder / name, os.O_RDONLY | os.O_NONBLOCK)
                try:
                    got = os.pread(descriptor, end - begin, begin - start)
                finally:
                    os.close(descriptor)
                raw[begin - low * size : begin - low * size + len(got)] = got
        return out


def compare_queue(facts: StoreFacts, built: Path, key: Key) -> Difference:
    """How the store's queue differs from the one below ``built``. Raises ``OSError``."""
    if key[0] in facts.batch_topics:
        return _compare_batch(facts, built, key)
    found = Difference(facts.path, "queue", *key)
    old = QueueEntries(StorePaths(Path(facts.path)).queue_folder(*key), CQ_UNIT)
    new = QueueEntries(StorePaths(built).queue_folder(*key), CQ_UNIT)
    first = min((side.first for side in (old, new) if side.stop), default=0)
    for low in range(first, max(old.stop, new.stop), CHUNK):
        high = min(low + CHUNK, max(old.stop, new.stop))
        a, b = old.read(low, high), new.read(low, high)
        numbers = np.arange(low, high)
        there, made = _written(a), _written(b)
        expired = there & (a["physical_offset"] < facts.first) & ~made
        differ = (a["physical_offset"] != b["physical_offset"]) | (a["size"] != b["size"])
        both_ext = (a["tags_code"] < 0) & (b["tags_code"] < 0) & facts.config.enable_consume_queue_ext
        differ |= (a["tags_code"] != b["tags_code"]) & ~both_ext
        found.entries += int(np.count_nonzero(there))
        found.expired += int(np.count_nonzero(expired))
        found.count("missing", made & ~there, numbers)
        found.count("extra", there & ~made & ~expired, numbers)
        found.count("different", there & made & differ, numbers)
    return found


def _written(entries: npt.NDArray[np.void]) -> Bools:
    prefilled = (entries["physical_offset"] == 0) & (entries["size"] == PREFILLED_SIZE)
    found: Bools = (entries["size"] > 0) & ~prefilled
    return found


def _compare_batch(facts: StoreFacts, built: Path, key: Key) -> Difference:
    """Batch entries in their order, from the first one on whose unit the log still has."""
    found = Difference(facts.path, "queue", *key)
    old = QueueEntries(StorePaths(Path(facts.path)).batch_folder(*key), BATCH_CQ_UNIT)
    new = QueueEntries(StorePaths(built).batch_folder(*key), BATCH_CQ_UNIT)
    at = old.first
    while at < old.stop:
        rows = old.read(at, min(at + CHUNK, old.stop))
        gone = (rows["size"] > 0) & (rows["physical_offset"] < facts.first)
        leading = len(rows) if gone.all() else int(np.argmin(gone))
        found.expired += leading
        at += leading
        if leading < len(rows):
            break
    shift = at - new.first
    for low in range(new.first, max(new.stop, old.stop - shift), CHUNK):
        high = min(low + CHUNK, max(new.stop, old.stop - shift))
        a, b = old.read(low + shift, high + shift), new.read(low, high)
        there, made = a["size"] > 0, b["size"] > 0
        raw = [side.view(np.uint8).reshape(-1, BATCH_CQ_UNIT_SIZE) for side in (a, b)]
        numbers = np.arange(low + shift, high + shift)
        found.entries += int(np.count_nonzero(there))
        found.count("missing", made & ~there, numbers)
        found.count("extra", there & ~made, numbers)
        found.count("different", there & made & (raw[0] != raw[1]).any(axis=1), numbers)
    return found


# -- index


class _Index:
    """The entries of a folder's index files, reached by where they lead to."""

    def __init__(self, folder: Path, geometry: Geometry) -> None:
        self._chunks: list[tuple[Path, int, int, int, int]] = []  # file, first entry, count, least and largest offset
        self.entries = 0
        for name in sorted(_names(folder)):
            path = folder / name
            if name.isdigit() and path.stat().st_size >= geometry.entry_position(1):
                self._look_at(path, geometry)

    def _look_at(self, path: Path, geometry: Geometry) -> None:
        with path.open("rb", buffering=0) as file:
            header = decode_header(os.pread(file.fileno(), HEADER_SIZE, 0))
        count = max(min(header.entries, (path.stat().st_size - geometry.entry_position(1)) // CQ_UNIT_SIZE), 0)
        self.entries += count
        for first in range(0, count, CHUNK):
            rows = min(CHUNK, count - first)
            position = geometry.entry_position(1 + first)
            offsets = self._read(path, position, rows)["phy_offset"]
            if len(offsets):
                self._chunks.append((path, position, rows, int(offsets.min()), int(offsets.max())))

    def edges(self) -> list[int]:
        """Offsets into the log between which lie about as many entries as are read together."""
        return sorted({low for *_, low, _ in self._chunks})

    @property
    def last(self) -> int:
        """The largest offset."""
        return max((high for *_, high in self._chunks), default=-1)

    def between(self, low: int, high: int) -> npt.NDArray[np.void]:
        """What leads to offsets [low, high): rows of (offset, hash), each once, in order."""
        kept = [np.zeros(0, _LINK)]
        for path, position, rows, least, largest in self._chunks:
            if least < high and largest >= low:
                entries = self._read(path, position, rows)
                wanted = (entries["phy_offset"] >= low) & (entries["phy_offset"] < high)
                links = np.zeros(int(np.count_nonzero(wanted)), _LINK)
                links["offset"], links["hash"] = entries["phy_offset"][wanted], entries["key_hash"][wanted]
                kept.append(links)
        return np.unique(np.concatenate(kept))

    def _read(self, path: Path, position: int, rows: int) -> npt.NDArray[np.void]:
        with path.open("rb", buffering=0) as file:
            raw = os.pread(file.fileno(), rows * INDEX_ENTRY.itemsize, position)
        return np.frombuffer(raw[: len(raw) // INDEX_ENTRY.itemsize * INDEX_ENTRY.itemsize], INDEX_ENTRY)


_LINK = np.dtype([("offset", "<i8"), ("hash", "<i4")])
_BEYOND = (1 << 63) - 1


def compare_index(facts: StoreFacts, built: Path) -> Difference:
    """How the store's index differs from the one below ``built``. Raises ``OSError``."""
    found = Difference(facts.path, "index")
    geometry = Geometry(facts.config.max_hash_slot_num, facts.config.max_index_num)
    old = _Index(StorePaths(Path(facts.path)).index, geometry)
    new = _Index(StorePaths(built).index, geometry)
    found.entries = old.entries
    edges = [-_BEYOND, *sorted({*old.edges(), *new.edges()}), max(old.last, new.last) + 1]
    for low, high in itertools.pairwise(edges):
        if low >= high:
            continue
        a, b = old.between(low, high), new.between(low, high)
        expired = a["offset"] < facts.first
        found.expired += int(np.count_nonzero(expired))
        missing, extra = ~np.isin(b, a), ~np.isin(a, b) & ~expired
        if missing.any() or extra.any():
            tags = _tag_links(facts, np.concatenate([a[extra], b[missing]])["offset"])
            missing &= ~np.isin(b, tags)
            extra &= ~np.isin(a, tags)
        found.count("missing", missing, b["offset"])
        found.count("extra", extra, a["offset"])
    return found


def _tag_links(facts: StoreFacts, offsets: Int64) -> npt.NDArray[np.void]:
    """The tag entries (offset, hash) of the units between the least and the largest of ``offsets``. They are right
    where they are and where they are not: releases from 5.4 on write them, and stores change hands.
    """
    low, high = int(offsets.min()), int(offsets.max()) + 1
    topics, links = TopicTable(), [np.zeros(0, _LINK)]
    for split in plan(find_stores(facts.path)).splits:
        start, stop = max(split.start, low - split.file_start), min(split.stop, high - split.file_start)
        if start >= stop:
            continue
        for block in read_split(replace(split, start=start, stop=stop, exact=False), crc=False, topics=topics):
            if not isinstance(block, UnitColumns):
                continue
            keys = key_hashes(block, topics)
            keys = keys.choose(keys.is_tag)
            found = np.zeros(len(keys.row), _LINK)
            found["offset"], found["hash"] = block.offset[keys.row], keys.key_hash
            links.append(found)
    return np.concatenate(links)
