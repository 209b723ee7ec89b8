"""``rocketmq-consumequeue``: one row for each entry of the queues of one store, or of many
(docs/formats/consume-queue.md#entry, #ext, #batch-queues).

The rows are those of ``storescope queue`` for each queue, with ``topic``, ``queueId`` and ``file``: up to the last
entry that points in front of the end of the log. A store, a folder or a file that cannot be read is one row of the type
``damage``. If it is needed to find the end of the log, or of a queue, each queue ends at its last readable entry. With
``unreadable`` = ``fail`` the read fails instead. Options: ``path``, ``broker``, ``columns``, ``unreadable``. Conditions
on topic, queueId, queueOffset, store and broker leave files, and parts of them, unread; Spark's log reports how much.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from engine.codec.consume_queue import MAX_EXT_ADDRESS, PREFILLED_SIZE, ext_offset
from engine.codec.cq_ext import CqExtStop
from engine.codec.cq_ext import decode as decode_ext
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.errors import CannotRead
from engine.pipeline import filters, schema
from engine.pipeline.defaults import PART_BYTES
from engine.pipeline.files import StorePlace, Unread
from engine.pipeline.filters import QueryLimits
from engine.pipeline.log_files import LogFile
from engine.pipeline.part_source import BATCH_ROWS, PartReader, PartSource, batch_of, whole
from engine.pipeline.queue_files import Queue, files_of, queues_with_ends
from engine.pipeline.splits import SkippedRange
from engine.pipeline.storage import join, open_path
from engine.pipeline.undecoded import rocksdb_queues

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_EXT_BYTES = 1 << 15
_EXT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class QueuePart:
    """Bytes [``start``, ``stop``) of one queue file; ``file_start`` is the queue's byte offset of its first."""

    store: str
    broker: str | None
    topic: str
    queue_id: int
    batch: bool
    path: str
    file_start: int
    start: int
    stop: int


class PlainQueueReader(PartReader):
    """Plans and reads parts of queue files."""

    NAME = "rocketmq-consumequeue"
    COLUMNS = schema.CQ

    def parts_of(
        self, store: StorePlace, limits: QueryLimits, skipped: list[SkippedRange]
    ) -> Iterator[QueuePart | Unread]:
        """Return the parts of the store's queues, in the order of their files."""
        left_out: list[int] = []
        if store.unread is not None:
            raise store.unread
        undecoded = rocksdb_queues(store)
        if undecoded is not None:
            yield Unread.of(store, undecoded)
            return
        yield from _parts(store, limits, left_out)
        if any(left_out):
            why = "nothing of the topic, queue or offset asked for lies there"
            skipped.append(SkippedRange(join(store.path, "consumequeue"), sum(left_out), why))

    def rows_of(self, part: QueuePart) -> Iterator[pa.RecordBatch]:
        """See :func:`rows_of`."""
        return rows_of(part, self.columns, self.read_options.fails)


class QueueReader(filters.PushdownReader, PlainQueueReader):
    """A reader that also gets the query's conditions."""


class QueueSource(PartSource):
    """The format ``rocketmq-consumequeue``."""

    READER: ClassVar[type[PartReader]] = QueueReader


class PlainQueueSource(QueueSource):
    """The format for a Spark that does not support :mod:`engine.pipeline.spark_internals.one_read_each`."""

    READER = PlainQueueReader


def _parts(store: StorePlace, limits: QueryLimits, left_out: list[int]) -> Iterator[QueuePart | Unread]:
    """Yield the parts that can hold what the query asks for; the bytes of other parts are put into ``left_out``."""
    unread: list[CannotRead] = []

    def wanted(queue: Queue) -> bool:
        is_wanted = _wanted(queue, limits)
        if not is_wanted:
            left_out.append(sum(file.size for file in queue.files))
        return is_wanted

    for queue in queues_with_ends(store, wanted, unread):
        stopped = False
        for file in queue.files:
            start, stop = _range(queue, file, limits)
            left_out.append(_range(queue, file, QueryLimits())[1] - (stop - start))
            if queue.batch:  # its rows end at the first unit that is none
                stop, stopped = (start, True) if stopped else _batch_stop(queue, file, stop)
            for position in range(start, stop, PART_BYTES // queue.unit_size * queue.unit_size):
                end = min(position + PART_BYTES // queue.unit_size * queue.unit_size, stop)
                yield QueuePart(
                    store.path,
                    store.broker,
                    queue.topic,
                    queue.queue_id,
                    queue.batch,
                    file.path,
                    file.start,
                    position,
                    end,
                )
    yield from (Unread.of(store, error) for error in unread)


def _wanted(queue: Queue, limits: QueryLimits) -> bool:
    of_topic = limits.topics is None or queue.topic in limits.topics
    return of_topic and (limits.queue_ids is None or queue.queue_id in limits.queue_ids)


def _range(queue: Queue, file: LogFile, limits: QueryLimits) -> tuple[int, int]:
    size = queue.unit_size
    start, stop = 0, min(file.size, max(queue.end - file.start, 0)) // size * size
    if not queue.batch:
        first_offset = file.start // size
        start = min(max(limits.queue_offsets[0] - first_offset, 0) * size, stop)
        stop = max(min(stop, (limits.queue_offsets[1] - first_offset + 1) * size), start)
    return start, stop


def _batch_stop(queue: Queue, file: LogFile, stop: int) -> tuple[int, bool]:
    """Return where the rows of a batch queue's file end, and whether an invalid unit ends them. Its reader reports
    errors.
    """
    with contextlib.suppress(CannotRead), open_path(file.path) as opened_file:
        for position in range(0, stop, BATCH_ROWS * queue.unit_size):
            data = opened_file.read(position, min(BATCH_ROWS * queue.unit_size, stop - position))
            bad_units = np.flatnonzero(~_is_batch(np.frombuffer(data[: len(data) // 46 * 46], BATCH_CQ_UNIT)))
            if len(bad_units):
                return position + int(bad_units[0]) * queue.unit_size, True
    return stop, False


def _is_batch(units: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    places = (units["physical_offset"] >= 0) & (units["size"] > 0)
    are_valid: npt.NDArray[np.bool_] = places & (units["msg_base_offset"] >= 0) & (units["batch_size"] > 0)
    return are_valid


def rows_of(part: QueuePart, columns: schema.Columns, fail: bool = False) -> Iterator[pa.RecordBatch]:
    """The entries of a part in batches; a row of the type ``damage`` where the file is gone or shorter than it was."""
    named = {
        "topic": part.topic,
        "queueId": part.queue_id,
        "file": part.path.rpartition("/")[2],
        "store": part.store,
        "broker": part.broker,
    }
    entry = (BATCH_CQ_UNIT if part.batch else CQ_UNIT).itemsize
    return whole(part, _entries(part, columns), columns, entry, named, fail)


def _entries(part: QueuePart, columns: schema.Columns) -> Iterator[pa.RecordBatch]:

    kind = BATCH_CQ_UNIT if part.batch else CQ_UNIT
    with open_path(part.path) as opened_file:
        for position in range(part.start, part.stop, BATCH_ROWS * kind.itemsize):
            data = opened_file.read(position, min(BATCH_ROWS * kind.itemsize, part.stop - position))
            units = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
            if not len(units):
                return
            values = _values(part, units, (part.file_start + position) // kind.itemsize, "ext" in columns)
            yield batch_of(columns, values, len(units))


def _values(part: QueuePart, units: npt.NDArray[Any], first_offset: int, with_ext: bool) -> dict[str, Any]:
    place, size, tags = (
        units[name].astype(f"i{width}") for name, width in (("physical_offset", 8), ("size", 4), ("tags_code", 8))
    )
    values: dict[str, Any] = {
        "type": "cq",
        "topic": part.topic,
        "queueId": part.queue_id,
        "physicalOffset": place,
        "size": size,
        "tagsCode": tags,
        "file": part.path.rpartition("/")[2],
        "store": part.store,
        "broker": part.broker,
    }
    if part.batch:
        values["queueOffset"] = units["msg_base_offset"].astype("i8")
        values["batchSize"] = units["batch_size"].astype("i4")
        values["storeTimestamp"] = units["store_timestamp"].astype("i8")
        values["storeTime"] = schema.time_array(values["storeTimestamp"])
        values["state"] = "entry"
        return values
    values["queueOffset"] = np.arange(first_offset, first_offset + len(units))
    state = np.full(len(units), "entry", object)
    state[(size == PREFILLED_SIZE) & (place == 0)] = "prefilled"
    state[(place < 0) | (size <= 0)] = "empty"
    values["state"] = state
    if with_ext and bool((tags <= MAX_EXT_ADDRESS).any()):
        values["ext"] = _ext_units(part, tags.tolist())
    return values


def _ext_units(part: QueuePart, tags: list[int]) -> list[dict[str, Any] | None]:
    """Read the ext units at the addresses among ``tags``."""
    ext = _ExtFiles(files_of(join(part.store, "consumequeue_ext", part.topic, str(part.queue_id))))
    return [ext.unit(tag) if tag <= MAX_EXT_ADDRESS else None for tag in tags]


class _ExtFiles:
    """The ext files of a queue, read in pieces of :data:`_EXT_BYTES`: the addresses of a queue's entries ascend."""

    def __init__(self, files: Sequence[LogFile]) -> None:
        self._files = files
        self._start, self._end, self._data = 0, 0, b""

    def unit(self, address: int) -> dict[str, Any] | None:
        """Return the unit at ``address``, None if none can be read there."""
        offset = ext_offset(address)
        file = next((file for file in self._files if file.start <= offset < file.end), None)
        if file is None:
            return None
        if not self._start <= offset < self._end or min(offset + _MAX_EXT_BYTES, file.end) > self._end:
            with open_path(file.path) as opened_file:
                self._data = opened_file.read(offset - file.start, _EXT_BYTES)
            self._start, self._end = offset, offset + len(self._data)
        position = offset - self._start
        ext_unit = decode_ext(self._data[position : position + _MAX_EXT_BYTES], 0, offset)
        if isinstance(ext_unit, CqExtStop):
            return None
        return {
            "address": address,
            "size": ext_unit.size,
            "tagsCode": ext_unit.tags_code,
            "storeTimestamp": ext_unit.store_timestamp,
            "bitMap": ext_unit.bit_map.hex(),
        }
