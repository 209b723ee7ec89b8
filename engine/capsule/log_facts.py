"""Facts about the units of a log, from which entries of queues and of the index follow
(docs/formats/capsule.md#from-units).

A block of the log is decoded when its facts are needed, and they stay in memory. The writer and the reader of a capsule
see the same units in the same order, wherever a block begins.
"""

from __future__ import annotations

import re
import threading
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.capsule.numbers import BadColumns, ColumnReader, ColumnWriter
from engine.codec.columns import UNIT, UnitColumns, scan_block
from engine.codec.dledger import FOLDER_PREFIX
from engine.codec.index_builder import key_hashes
from engine.codec.message import ROLLBACK, TRANSACTION_MASK
from engine.codec.topic_table import TopicTable
from engine.files.layout import parse_file_name

Bool = npt.NDArray[np.bool_]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
MAX_UNITS: Final = 1 << 23
"""Units whose facts stay in memory, some 50 bytes each."""
_ROWS: Final = 4096
_LOG_FILE = re.compile(rf"(?:^commitlog|(?:^|/){FOLDER_PREFIX}[^/]+/data)/(\d{{20}})")
_OUTER_QUANTILE = 0.01
_MARGIN = 16
"""The range of units is the one that holds 98 % of the entries, plus a sixteenth of it at both ends."""

QueueName = tuple[bytes, int]


def log_offset(path: str) -> int | None:
    """Return the physical offset of the first byte of a log file, None for another file."""
    match = _LOG_FILE.fullmatch(path)
    return None if match is None else parse_file_name(match[1])


class LogBlock(NamedTuple):
    """Some bytes of the log: physical offset, length, number of the file, position in the file."""

    offset: int
    length: int
    file: int
    position: int


class Units(NamedTuple):
    """The contents of a queue's entries."""

    place: Int64
    size: Int64
    tags_code: Int64


class Keys(NamedTuple):
    """The contents of the index entries."""

    place: Int64
    key_hash: Int64
    store_time: Int64


class IndexStream(NamedTuple):
    """Keys of all units in the order of the log, with or without their tags."""

    with_tags: bool


class QueueStream(NamedTuple):
    """Units of a queue in the order of the log; ``queue`` is None for all units."""

    queue: QueueName | None


@dataclass(slots=True)
class BlockFacts:
    """Facts about the units of a block.

    Places count from the block's first byte. ``queue_rows`` are the rows in the order of the queues, and ``queues`` has
    the range of each queue in them.
    """

    offset: int
    place: npt.NDArray[np.uint32]
    size: Int32
    tags_code: Int64
    store_time: Int64
    key_row: npt.NDArray[np.uint32]
    key_hash: Int32
    key_is_tag: Bool
    queues: dict[QueueName, tuple[int, int]]
    queue_rows: npt.NDArray[np.uint32]

    def units(self, stream: QueueStream) -> Units:
        rows: npt.NDArray[np.uint32] | slice = slice(None)
        if stream.queue is not None:
            rows = self.queue_rows[slice(*self.queues.get(stream.queue, (0, 0)))]
        return Units(
            self.place[rows].astype(np.int64) + self.offset, self.size[rows].astype(np.int64), self.tags_code[rows]
        )

    def keys(self, stream: IndexStream) -> Keys:
        chosen = slice(None) if stream.with_tags else ~self.key_is_tag
        rows = self.key_row[chosen]
        return Keys(
            self.place[rows].astype(np.int64) + self.offset,
            self.key_hash[chosen].astype(np.int64),
            self.store_time[rows],
        )

    def digest(self) -> int:
        """Return a checksum of all facts."""
        crc = zlib.crc32(repr(sorted(self.queues.items())).encode())
        for array in (self.place, self.size, self.tags_code, self.store_time, self.queue_rows):
            crc = zlib.crc32(array.tobytes(), crc)
        for key_array in (self.key_row, self.key_hash, self.key_is_tag):
            crc = zlib.crc32(key_array.tobytes(), crc)
        return crc


def decode_facts(data: bytes | bytearray, offset: int) -> BlockFacts:
    """Return the facts about the units at the beginning of ``data``, which lies at ``offset`` of the log."""
    topics, out = TopicTable(), UnitColumns(_ROWS)
    position, parts = 0, []
    keys: list[tuple[Int64, Int32, Bool]] = []
    unit_count = 0
    while True:
        result = scan_block(data, len(data), offset, position, out, topics, crc=False, has_entries=True)
        rows = out["kind"] == UNIT
        block_keys = key_hashes(out, topics)
        is_indexed = out.sys_flag[block_keys.row] & TRANSACTION_MASK != ROLLBACK
        block_keys = block_keys.choose(is_indexed)
        keys.append((block_keys.row.astype(np.int64) + unit_count, block_keys.key_hash, block_keys.is_tag))
        columns = ("offset", "size", "tags_code", "store_timestamp", "topic_id", "queue_id")
        parts.append([out[name][rows].copy() for name in columns])
        unit_count += int(rows.sum())
        position = result.next_position
        if result.stopped != "full":
            break
    place, size, tags_code, store_time, topic, queue = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((queue, topic))
    topic, queue = topic[order], queue[order]
    edges = np.flatnonzero((np.diff(topic, prepend=-2) != 0) | (np.diff(queue, prepend=0) != 0))
    ranges = zip(edges.tolist(), [*edges[1:].tolist(), len(order)], strict=False)
    names = zip(topic[edges].tolist(), queue[edges].tolist(), strict=True)
    queues = {(topics.raw(number), queue_id): rows for (number, queue_id), rows in zip(names, ranges, strict=True)}
    return BlockFacts(
        offset,
        (place - offset).astype(np.uint32),
        size.astype(np.int32),
        tags_code.astype(np.int64),
        store_time.astype(np.int64),
        np.concatenate([row for row, _, _ in keys]).astype(np.uint32),
        np.concatenate([key_hash for _, key_hash, _ in keys]),
        np.concatenate([is_tag for _, _, is_tag in keys]),
        queues,
        order.astype(np.uint32),
    )


class LogFacts:
    """Facts about the units of ``blocks``, which ``load`` returns for one block.

    A block that overlaps the previous one is left out.
    """

    def __init__(self, blocks: Iterable[LogBlock], load: Callable[[LogBlock], BlockFacts]) -> None:
        self.blocks: list[LogBlock] = []
        for block in sorted(blocks):
            if not self.blocks or block.offset >= self.blocks[-1].offset + self.blocks[-1].length:
                self.blocks.append(block)
        self._load = load
        self._lock = threading.RLock()
        self._facts: OrderedDict[int, BlockFacts] = OrderedDict()
        self._unit_count = 0

    def facts(self, number: int) -> BlockFacts:
        """Return the facts about a block."""
        with self._lock:
            facts = self._facts.get(number)
            if facts is not None:
                self._facts.move_to_end(number)
                return facts
            facts = self._load(self.blocks[number])
            self._facts[number] = facts
            self._unit_count += len(facts.place)
            while self._unit_count > MAX_UNITS and len(self._facts) > 1:
                _, oldest = self._facts.popitem(last=False)
                self._unit_count -= len(oldest.place)
            return facts

    def _part(self, number: int, stream: QueueStream | IndexStream) -> Units | Keys:
        facts = self.facts(number)
        return facts.units(stream) if isinstance(stream, QueueStream) else facts.keys(stream)

    def _block_of(self, offset: int) -> int:
        return max(bisect_right(self.blocks, offset, key=lambda block: block.offset) - 1, 0)

    def rows_around(self, offsets: Int64, stream: QueueStream | IndexStream) -> Sequence[Int64]:
        """Return the columns of all rows of ``stream`` in the range of the log that holds most of the ``offsets``."""
        inside = offsets[
            (offsets >= self.blocks[0].offset) & (offsets < self.blocks[-1].offset + self.blocks[-1].length)
        ]
        if not len(inside):
            return [np.zeros(0, np.int64)] * 3
        start, stop = np.quantile(inside, (_OUTER_QUANTILE, 1 - _OUTER_QUANTILE), method="nearest").tolist()
        margin = (stop - start) // _MARGIN
        numbers = range(self._block_of(start - margin), self._block_of(stop + margin) + 1)
        parts = [self._part(number, stream) for number in numbers]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def rows(self, stream: QueueStream | IndexStream, start: int, count: int) -> Sequence[Int64]:
        """Return the columns of ``count`` rows of ``stream`` from the unit at ``start`` on. Raises
        :class:`BadColumns` if there are fewer.
        """
        if not self.blocks:
            raise BadColumns
        number, missing = self._block_of(start), count
        parts: list[list[Int64]] = []
        while missing > 0:
            if number == len(self.blocks):
                raise BadColumns
            part = self._part(number, stream)
            first_row = int(np.searchsorted(part.place, start)) if not parts else 0
            parts.append([column[first_row : first_row + missing] for column in part])
            missing -= len(parts[-1][0])
            number += 1
        return [np.concatenate(column) for column in zip(*parts, strict=True)]


def write_matches(out: ColumnWriter, places: Int64, matches: Int64) -> Int64:
    """Write from which row of a stream each entry follows. ``matches`` are indexes of ``places``, −1 for no row.

    Returns the numbers of the entries that follow from no row.
    """
    is_matched = matches >= 0
    chosen = matches[is_matched]
    start = int(places[chosen.min()])
    first_row = int(np.searchsorted(places, start))
    out.long(start)
    out.number(int(chosen.max()) - first_row + 1)
    unmatched = np.flatnonzero(~is_matched)
    out.number(len(unmatched))
    out.numbers(unmatched)
    out.numbers(np.diff(chosen - first_row, prepend=-1) - 1)
    return unmatched


class EntryMatches(NamedTuple):
    """The columns of the rows from which entries follow, the numbers of these entries, and those of the others."""

    columns: Sequence[Int64]
    matched: Int64
    unmatched: Int64


def read_matches(columns: ColumnReader, facts: LogFacts, stream: QueueStream | IndexStream, count: int) -> EntryMatches:
    """Read the columns of :func:`write_matches` for ``count`` entries. Raises :class:`BadColumns`."""
    start, row_count, unmatched_count = columns.long(), columns.number(), columns.number()
    if unmatched_count > count:
        raise BadColumns
    unmatched = columns.numbers(unmatched_count)
    steps = columns.numbers(count - unmatched_count)
    is_matched = np.ones(count, np.bool_)
    is_matched[unmatched] = False
    numbers = np.cumsum(steps + 1) - 1
    rows = facts.rows(stream, start, row_count)
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < row_count:
        raise BadColumns
    return EntryMatches([column[numbers] for column in rows], np.flatnonzero(is_matched), unmatched)
