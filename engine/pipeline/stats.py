"""Statistics of logs: messages and bytes by topic, queue, tag, producer and hour, sizes, keys, and bytes that are no
message.

Each task walks its splits and adds up in machine code (:mod:`engine.codec.tally`). It returns one row a group, so a
petabyte becomes a few thousand rows before anything is sent. :func:`merge` adds such rows up, in the tasks of a second
stage or in the driver. Sums are exact: the bytes of units, blanks, damage and zeros make up every file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.codec import tally
from engine.codec.columns import BAD, BLANK, UnitColumns
from engine.codec.tally import REGISTERS, Groups, UnitTexts
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.pipeline import tasks
from engine.pipeline.spark_internals.worker_process import settling

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from engine.pipeline.progress import Counter
    from engine.pipeline.splits import Split

HOUR_MS = 3_600_000
GROUPS = ("queue", "tag", "producer", "hour", "time", "size", "key")
"""What can be asked for beside the topics; ``queue`` gives the topics too, ``time`` spans shorter than an hour."""
SPANS_MS = (1_000, 10_000, 60_000, 600_000)
"""Lengths of spans; each divides the next, and all divide an hour."""
MAX_SPANS = 240
"""Maximum number of spans of a job, and of each task; with more the next length is used, at last only hours."""
OTHERS = "\x00others"
"""Stands for the names beyond :data:`MAX_TOPICS`."""
MAX_TOPICS = 60_000
MAX_TAGS = 1 << 18
MAX_SINGLE_STAGE_TASKS = 256
"""Tasks whose rows the driver takes as they are; those of more meet in a second stage, and count hours only."""
_BIAS = 1 << 42
_QUEUES = 1 << 31


@dataclass(slots=True)
class Sum:
    """Totals of a group: messages, bytes, the smallest and the largest unit (bytes)."""

    messages: int = 0
    bytes: int = 0
    smallest: int = 0
    largest: int = 0

    def add(self, messages: int, size: int, smallest: int, largest: int) -> None:
        self.smallest = min(self.smallest, smallest) if self.messages else smallest
        self.largest = max(self.largest, largest)
        self.messages += messages
        self.bytes += size


Key = tuple[str, str | None, str, str | None, int | None, str | None]
"""store, broker, kind, topic, number (queue, hour, bucket), text (tag, producer, path)."""


@dataclass(slots=True)
class Sums:
    """Groups of all kinds, and sketches of keys: what one task, or all together, have added up.

    Kinds: ``topic``, ``queue``, ``tag``, ``producer``, ``hour``, ``time`` (number: begin of the span, text: its length
    in ms), ``size`` (number: bucket), ``crc`` (wrong body CRCs),
    and of files ``units``, ``stale``, ``blank``, ``damage``, ``missing`` (bytes behind a file that none holds; text:
    path, messages: spans). Sketches have the kinds
    ``uniqueKey`` and ``key``.
    """

    groups: dict[Key, Sum] = field(default_factory=dict)
    sketches: dict[Key, npt.NDArray[np.uint8]] = field(default_factory=dict)

    def add(self, key: Key, messages: int, size: int, smallest: int = 0, largest: int = 0) -> None:
        """Add rows of one group."""
        total = self.groups.get(key)
        if total is None:
            total = self.groups[key] = Sum()
        total.add(messages, size, smallest, largest)

    def note(self, key: Key, registers: npt.NDArray[np.uint8]) -> None:
        """Add a sketch's registers; the sketch of both is the larger rank of each."""
        sketch = self.sketches.get(key)
        self.sketches[key] = registers.copy() if sketch is None else np.maximum(sketch, registers)

    def take(self, other_sums: Sums) -> None:
        """Add all of ``other_sums``."""
        for key, total in other_sums.groups.items():
            self.add(key, total.messages, total.bytes, total.smallest, total.largest)
        for key, registers in other_sums.sketches.items():
            self.note(key, registers)


def sum_splits(splits: Iterable[Split], groups: Sequence[str] = GROUPS, crc: bool = True) -> Sums:
    """Walk ``splits`` and add up their units; without ``crc`` no body is read.

    A file that is gone or may not be read is damage.
    """
    from engine.pipeline.splits import read_split

    sums = Sums()
    stores: dict[tuple[str, str | None], _Store] = {}
    for split in tasks.join_splits(splits):
        name = (split.store, split.broker)
        store = stores.get(name)
        if store is None:
            store = stores[name] = _Store(*name, frozenset(groups))
        for block in read_split(split, topics=store.topics, crc=crc):
            if isinstance(block, UnitColumns):
                store.block(block, split, sums)
            elif isinstance(block, Damage):
                lost = block.offset >= split.file_start + split.file_size
                sums.add(store.key("missing" if lost else "damage", None, None, split.path), 1, block.size)
    for store in stores.values():
        store.close(sums)
    return sums


class _Store:
    """The sums of one store while its splits are walked."""

    def __init__(self, store: str, broker: str | None, groups_by: frozenset[str]) -> None:
        self._store, self._broker, self._groups_by = store, broker, groups_by
        self.topics = TopicTable(MAX_TOPICS)
        self._texts = UnitTexts(MAX_TAGS) if groups_by & {"tag", "producer", "key"} else None
        self._kinds = {kind: Groups() for kind in ("topic", "queue", "tag", "producer", "hour", "size", "crc")}
        self._spans = _Spans() if "time" in groups_by else None
        self._wide: dict[tuple[bytes, int], Sum] = {}

    def key(self, kind: str, topic: str | None, number: int | None, text: str | None) -> Key:
        """Return the key of a group of this store."""
        return (self._store, self._broker, kind, topic, number, text)

    def block(self, block: UnitColumns, split: Split, sums: Sums) -> None:
        """Add the rows of one block, whose arrays the next block reuses. A blank reaches to the end of its file."""
        rows, path = block.count, split.path
        if rows and block.kind[rows - 1] == BLANK:
            rows -= 1
            size = split.file_start + split.file_size - int(block.offset[rows])
            sums.add(self.key("blank", None, None, path), 1, size)
        if not rows:
            return
        if self._texts is not None:
            self._texts.read(block, rows, self.topics)
        sizes = block.size[:rows]
        stale = block.physical_offset[:rows] != block.offset[:rows]
        keep: npt.NDArray[np.bool_] | None = None
        if stale.any():
            keep = ~stale
            sums.add(self.key("stale", None, None, path), int(stale.sum()), int(sizes[stale].sum(dtype=np.int64)))
            sizes = sizes[keep]
        if len(sizes):
            total_size = int(sizes.sum(dtype=np.int64))
            sums.add(self.key("units", None, None, path), len(sizes), total_size, int(sizes.min()), int(sizes.max()))
            self._rows(block, rows, keep, sizes)

    def _rows(
        self, block: UnitColumns, rows: int, keep: npt.NDArray[np.bool_] | None, sizes: npt.NDArray[np.int32]
    ) -> None:
        def kept(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return column[:rows] if keep is None else column[:rows][keep]

        topics = kept(block.topic_id).astype(np.int64) + 1
        kinds, groups_by = self._kinds, self._groups_by
        if "queue" in groups_by:
            kinds["queue"].add(topics << 32 | (kept(block.queue_id).astype(np.int64) + _QUEUES), sizes)
        else:
            kinds["topic"].add(topics, sizes)
        if "hour" in groups_by:
            kinds["hour"].add(topics << 43 | (_hours(kept(block.store_timestamp)) + _BIAS), sizes)
        if self._spans is not None:
            self._spans.add(topics, kept(block.store_timestamp), sizes)
        if "size" in groups_by:
            kinds["size"].add(topics << 16 | tally.size_buckets(sizes), sizes)
        if self._texts is not None and "tag" in groups_by:
            kinds["tag"].add(topics << 32 | (kept(self._texts.tag).astype(np.int64) + 1), sizes)
        if self._texts is not None and "producer" in groups_by:
            hosts = kept(self._texts.host)
            if (hosts < 0).any():
                self._note_wide(block, rows, keep)
                narrow = hosts >= 0
                kinds["producer"].add((hosts[narrow] << 17) | topics[narrow], sizes[narrow])
            else:
                kinds["producer"].add((hosts << 17) | topics, sizes)
        bad = kept(block.crc) == BAD
        if bad.any():
            kinds["crc"].add(topics[bad], sizes[bad])

    def _note_wide(self, block: UnitColumns, rows: int, keep: npt.NDArray[np.bool_] | None) -> None:
        assert self._texts is not None
        for row in np.flatnonzero(self._texts.host[:rows] < 0).tolist():
            if keep is None or keep[row]:
                size = int(block.size[row])
                key = (tally.ipv6_host(block, row), int(block.topic_id[row]) + 1)
                self._wide.setdefault(key, Sum()).add(1, size, size, size)

    def close(self, sums: Sums) -> None:
        """Add the totals under the names of topics instead of their numbers."""
        names = [OTHERS, *self.topics.names]
        for total in self._kinds["topic"]:
            sums.add(self.key("topic", names[total.key], None, None), *total[1:])
        for total in self._kinds["queue"]:
            topic, queue = names[total.key >> 32], (total.key & 0xFFFFFFFF) - _QUEUES
            sums.add(self.key("queue", topic, queue, None), *total[1:])
            sums.add(self.key("topic", topic, None, None), *total[1:])
        for total in self._kinds["hour"]:
            hour = (total.key & ((1 << 43) - 1)) - _BIAS
            sums.add(self.key("hour", names[total.key >> 43], hour * HOUR_MS, None), *total[1:])
        if self._spans is not None:
            for number, begin, group in self._spans:
                sums.add(self.key("time", names[number], begin, str(self._spans.length_ms)), *group[1:])
        for total in self._kinds["size"]:
            sums.add(self.key("size", names[total.key >> 16], total.key & 0xFFFF, None), *total[1:])
        for total in self._kinds["crc"]:
            sums.add(self.key("crc", names[total.key], None, None), *total[1:])
        if self._texts is not None:
            self._close_texts(sums, names)

    def _close_texts(self, sums: Sums, names: list[str]) -> None:
        assert self._texts is not None
        tags: list[str | None] = [OTHERS, None, *self._texts.tags.names]
        for total in self._kinds["tag"]:
            sums.add(self.key("tag", names[total.key >> 32], None, tags[total.key & 0xFFFFFFFF]), *total[1:])
        for total in self._kinds["producer"]:
            host = str(IPv4Address(total.key >> 17))
            sums.add(self.key("producer", names[total.key & 0x1FFFF], None, host), *total[1:])
        for (raw, topic), wide in self._wide.items():
            key = self.key("producer", names[topic], None, str(IPv6Address(raw)))
            sums.add(key, wide.messages, wide.bytes, wide.smallest, wide.largest)
        if "key" in self._groups_by:
            for number, registers in enumerate(self._texts.registers):
                for kind, name in enumerate(("uniqueKey", "key")):
                    if number < len(names) and registers[kind].any():
                        sums.note(self.key(name, names[number], None, None), registers[kind])


class _Spans:
    """Sums by topic and span, which grow longer as the times that come lie further apart."""

    def __init__(self) -> None:
        self._groups: dict[int, Groups] = {SPANS_MS[0]: Groups()}
        self._first = self._last = 0
        self._is_empty = True

    @property
    def length_ms(self) -> int:
        """The length of a span; 0 if only hours give few enough spans."""
        return max(self._groups, default=0)

    def add(self, topics: npt.NDArray[np.int64], times: npt.NDArray[np.int64], sizes: npt.NDArray[np.int32]) -> None:
        """Add the rows of one block: number of the topic, time in ms, size."""
        if not self._groups:
            return
        earliest, latest = int(times.min()), int(times.max())
        self._first, self._last = (
            (earliest, latest) if self._is_empty else (min(self._first, earliest), max(self._last, latest))
        )
        self._is_empty = False
        length = span_ms(self._first, self._last, self.length_ms)
        if length is None or not -_BIAS <= earliest // length <= latest // length < _BIAS:  # damaged times
            self._groups.clear()
        else:
            groups = self._groups.setdefault(length, Groups())
            groups.add(topics << 43 | (times // length + _BIAS), sizes)

    def __iter__(self) -> Iterator[tuple[int, int, tally.Group]]:
        """Yield the topic's number, the start of a span in ms, and its sums; a span may come several times."""
        for length, groups in self._groups.items():
            for group in groups:
                begin = ((group.key & ((1 << 43) - 1)) - _BIAS) * length
                yield group.key >> 43, begin // self.length_ms * self.length_ms, group


def span_ms(earliest: int, latest: int, shortest_ms: int = 0) -> int | None:
    """Return the shortest span, at least ``shortest_ms`` long, of which :data:`MAX_SPANS` reach from ``earliest``
    to ``latest`` (ms); None if none is long enough.
    """
    return next(
        (length for length in SPANS_MS if length >= shortest_ms and latest // length - earliest // length < MAX_SPANS),
        None,
    )


def _hours(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the hour (since the epoch) of each time in ms; one division for a block within an hour."""
    earliest, latest = int(times.min()), int(times.max())
    if earliest // HOUR_MS == latest // HOUR_MS:
        return np.full(len(times), earliest // HOUR_MS, np.int64)
    hours: npt.NDArray[np.int64] = times // HOUR_MS
    return hours


# -- rows between stages


def schema() -> pa.Schema:
    """Return the columns of the rows of tasks: the key, the sums, and a sketch's registers."""
    import pyarrow as pa

    return pa.schema(
        [
            *((name, pa.string()) for name in ("store", "broker", "kind", "topic")),
            ("number", pa.int64()),
            ("text", pa.string()),
            *((name, pa.int64()) for name in ("messages", "bytes", "smallest", "largest")),
            ("sketch", pa.binary()),
        ]
    )


SPARK_SCHEMA = (
    "store string, broker string, kind string, topic string, number bigint, text string, messages bigint, bytes bigint,"
    " smallest bigint, largest bigint, sketch binary"
)
"""The same for Spark."""


def to_batches(sums: Sums, rows: int = 8192) -> Iterator[pa.RecordBatch]:
    """Convert ``sums`` to rows; :func:`from_batches` is the inverse."""
    import pyarrow as pa

    groups = [(*_text(key), s.messages, s.bytes, s.smallest, s.largest, None) for key, s in sums.groups.items()]
    sketches = [(*_text(key), 0, 0, 0, 0, registers.tobytes()) for key, registers in sums.sketches.items()]
    listed: list[tuple[Any, ...]] = [*groups, *sketches]
    names = schema()
    for start in range(0, len(listed), rows):
        columns = list(zip(*listed[start : start + rows], strict=True))
        arrays = [pa.array(column, kind.type) for column, kind in zip(columns, names, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=names)


def from_batches(batches: Iterable[pa.RecordBatch]) -> Sums:
    """Add up the rows of any number of tasks."""
    sums = Sums()
    for batch in batches:
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        for store, broker, kind, topic, number, text, messages, size, smallest, largest, sketch in rows:
            key = (store, broker, kind, topic, number, text)
            if sketch is None:
                sums.add(key, messages, size, smallest, largest)
            else:
                sums.note(key, np.frombuffer(sketch, np.uint8, REGISTERS))
    return sums


def merge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add rows up to fewer rows: the work of a stage between tasks and driver."""
    yield from to_batches(from_batches(settling(batches)))


def _text(key: Key) -> Key:
    """Write halves of surrogate pairs in names of malformed bytes as U+FFFD, because UTF-8 cannot hold them."""
    store, broker, kind, topic, number, text = key
    return (store, broker, kind, _utf8(topic), number, _utf8(text))


def _utf8(text: str | None) -> str | None:
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode("utf-8", "replace")


# -- on Spark


def stats(
    spark: SparkSession,
    splits: Sequence[Split],
    groups: Sequence[str] = GROUPS,
    counter: Counter | None = None,
    cores: int | None = None,
) -> Sums:
    """The sums of all ``splits``, added up by tasks; the driver gets one row a group of each task.

    Rows of many tasks meet in a second stage first, so that the driver's memory holds groups, not tasks.
    """
    shares = tasks.share_out(splits, cores or spark.sparkContext.defaultParallelism)
    if not shares:
        return Sums()
    if len(shares) > MAX_SINGLE_STAGE_TASKS:
        groups = [group for group in groups if group != "time"]
    frame = tasks.run_tasks(spark, shares, partial(_task, tuple(groups), counter), SPARK_SCHEMA)
    if len(shares) > MAX_SINGLE_STAGE_TASKS:
        meeting = frame.repartition(
            max(len(shares) // MAX_SINGLE_STAGE_TASKS, 1), "store", "kind", "topic", "number", "text"
        )
        frame = meeting.mapInArrow(merge, SPARK_SCHEMA)
    return from_batches(frame.toArrow().to_batches())


def _task(groups: tuple[str, ...], counter: Counter | None, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    sums = sum_splits(splits, groups)
    tasks.count_splits(counter, splits, sum(s.messages for key, s in sums.groups.items() if key[2] == "units"))
    yield from to_batches(sums)
