"""Many messages in one call: columns of them encoded straight into the file (spec 2.8, 3.2).

What :class:`engine.store.commit_log.CommitLog` offers as ``append_columns``. Rows that rules apply
to go the long way, each in its turn; the bytes are those of single puts.

The log as the ways to put into it see it (spec 8.2), and what it keeps of a topic for them.

Whole units stored again, many at once: what a copy does (spec 2.1, 2.8); one by one it is ``append_raw``.
And a master's log as its HA port gives it, appended as it is (spec 15).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from engine.codec import write_job
from engine.codec.encode import Message, TopicField
from engine.codec.message_columns import Encoder, MessageColumns, Run, TopicRow
from engine.errors import NotWriteable, StoreError, UsageError
from engine.store.put.message import (
    BLANK_SIZE,
    PutMessageResult,
    PutMessageResults,
    PutMessageStatus,
)

if TYPE_CHECKING:
    from engine.codec.object_put import ObjectPut
    from engine.config import MessageStoreConfig
    from engine.mapped.mapped_file import MappedFile
    from engine.mapped.mapped_file_queue import MappedFileQueue
    from engine.store.put.message import Clock, Like
    from engine.store.queue_offsets import QueueOffsetTable


class Topic:
    """What the log keeps of a topic: its field, and where its queues' offsets stand."""

    __slots__ = ("field", "fixed", "legal", "magic", "name", "places", "raw", "row")

    def __init__(self, name: str, legal: bool, auto_version: bool) -> None:
        self.name = name
        try:
            self.field = TopicField(name, auto_version) if legal else None
        except ValueError:
            self.field = None
        self.legal = self.field is not None
        self.magic, self.raw, self.fixed = (
            (self.field.magic, self.field.raw, self.field.fixed) if self.field is not None else (0, b"", 0)
        )
        self.places: dict[int, int] = {}
        self.row = TopicRow(self.raw, self.magic)
        """The same for a run over columns."""


class PutLog(Protocol):
    """What a put needs of the log; :class:`engine.store.commit_log.CommitLog` says what each is."""

    config: MessageStoreConfig
    files: MappedFileQueue
    queue_offsets: QueueOffsetTable
    clock: Clock
    like: Like
    is_batch_topic: Callable[[str], bool]
    lock: threading.Lock
    refuses: PutMessageStatus | None
    store_host: str
    store_host_raw: bytes
    max_message_size: int
    auto_version: bool
    property_crc: bool
    flushes_at_once: bool
    encoder: Encoder

    @property
    def appending(self) -> AbstractContextManager[int]: ...
    @property
    def copying(self) -> AbstractContextManager[int]: ...
    @property
    def wrote(self) -> int: ...
    @property
    def is_busy(self) -> bool: ...
    @property
    def refused(self) -> PutMessageStatus: ...
    def put_message(self, message: Message) -> PutMessageResult: ...
    def put_otherwise(self, message: Message) -> PutMessageResult: ...
    def compiled_put(self) -> ObjectPut | None: ...
    def topic(self, name: str) -> Topic: ...
    def place(self, topic: Topic, queue_id: int) -> int: ...
    def room_for(self, size: int, now: int) -> MappedFile | PutMessageResult: ...
    def failed(self, error: OSError) -> PutMessageResult: ...


MOST_ROOM = 8 << 20
"""Bytes of room on the disk that are asked for at a time."""
MOST_QUEUES = 1 << 16
"""Queue ids from here on go the long way: no table is made for them."""


def append_columns(log: PutLog, what: MessageColumns) -> PutMessageResults:
    """Append every row of ``what``, in order."""
    if log.refuses is not None:
        return PutMessageResults.refused(len(what), log.refuses)
    run = Run(what, [log.topic(name).row for name in what.topics], log.store_host_raw)
    answers: dict[int, PutMessageResult] = {}
    times: list[tuple[int, int]] = []
    while run.row < run.rows:
        why = write_job.RULED if log.property_crc or log.is_busy else _append_some(log, run, answers, times)
        if why == write_job.RULED:
            answers[run.row] = _put_one(log, run)
            run.skip()
    return PutMessageResults.of_rows(run.out, answers, times, lambda row: run.row_hosts(row)[1])


def _put_one(log: PutLog, run: Run) -> PutMessageResult:
    try:
        return log.put_message(run.message())
    except IndexError:  # a topic or host that is not in its table
        return PutMessageResult(PutMessageStatus.MESSAGE_ILLEGAL)


def _append_some(log: PutLog, run: Run, answers: dict[int, PutMessageResult], times: list[tuple[int, int]]) -> int:
    """Append rows under one hold of the lock, until all are done or the next one is ruled."""
    try:
        with log.appending as now:
            times.append((run.row, now))
            run.describe()
            while run.row < run.rows:
                why = _fill_file(log, run, now)
                if why in (write_job.DONE, write_job.RULED):
                    return why
                if why == write_job.NO_PLACE:
                    if not _enter_queue(log, run):
                        return write_job.RULED
                    continue
                found = log.room_for(run.unit_size(), now)
                if isinstance(found, PutMessageResult):
                    answers[run.row] = found
                    run.skip()
    except NotWriteable:
        _answer_rest(run, answers, PutMessageResult(log.refused))
    except OSError as error:
        _answer_rest(run, answers, log.failed(error))
    return write_job.DONE


def _answer_rest(run: Run, answers: dict[int, PutMessageResult], answer: PutMessageResult) -> None:
    while run.row < run.rows:
        answers[run.row] = answer
        run.skip()


def _fill_file(log: PutLog, run: Run, now: int) -> int:
    """As many rows as the last file takes; NO_ROOM where the next one needs another file."""
    while True:
        last = log.files.last
        if last is None or last.is_full:
            return write_job.NO_ROOM
        position = last.wrote
        limit = min(last.size, position + run.most_bytes() + BLANK_SIZE)
        if limit - position > MOST_ROOM:
            limit = position + max(MOST_ROOM, run.unit_size() + BLANK_SIZE)
        why, end = log.encoder.encode(
            run, last.target(limit - position), position, limit, last.start_offset, now, log.queue_offsets.numbers,
            log.max_message_size,
        )  # fmt: skip
        if end > position:
            last.advance(end - position, now)
        if why != write_job.NO_ROOM or limit == last.size:
            return why


def _enter_queue(log: PutLog, run: Run) -> bool:
    """Give the next row's queue a place among the numbers; False where its id is too large for a table."""
    topic = log.topic(run.columns.topics[run.topic_id])
    if run.queue_id >= MOST_QUEUES:
        return False
    run.set_place(log.place(topic, run.queue_id))
    return True


PHYSICAL_OFFSET = np.arange(28, 36)
_CRC_TAIL = 20
_CRC_NAME = np.frombuffer(b"__CRC32#\x01", np.uint8)
Int64 = npt.NDArray[np.int64]


def append_units(log: PutLog, data: npt.NDArray[np.uint8], sizes: Int64, stored: Int64) -> int:
    """Store the units that stand back to back in ``data``, ``stored`` at these times (ms); gives the end of the log.

    PHYSICALOFFSETs are written anew, files roll as for any put; everything else stays as it is. Units with a property
    CRC keep it, so they must stand at the place that they name. Raises :class:`UsageError` where no file is long
    enough or none can be made, :class:`engine.errors.NotWriteable`, ``OSError``.
    """
    ends = np.cumsum(sizes)
    starts = ends - sizes
    longest = int(sizes.max(initial=0))
    if longest + BLANK_SIZE > log.files.file_size:
        raise UsageError(f"a unit of {longest:,} bytes does not fit into files of {log.files.file_size:,}")
    row = 0
    with log.appending:
        while row < len(sizes):
            file = log.room_for(int(sizes[row]), int(stored[row]))
            if isinstance(file, PutMessageResult):
                raise UsageError("no new file of the commit log can be made")
            first = int(starts[row])
            room = file.size - file.wrote - BLANK_SIZE
            stop = int(np.searchsorted(ends, first + room, "right"))
            piece = data[first : int(ends[stop - 1])].copy()
            at = starts[row:stop] - first
            places = (at + (file.start_offset + file.wrote)).astype(">i8")
            piece[at[:, None] + PHYSICAL_OFFSET] = places.view(np.uint8).reshape(-1, 8)
            file.append(piece.data, int(stored[stop - 1]))
            row = stop
        return log.wrote


def with_property_crc(data: npt.NDArray[np.uint8], sizes: Int64) -> npt.NDArray[np.bool_]:
    """Which of the units that stand back to back in ``data`` end with a property CRC (spec 2.5), right or wrong."""
    tails = np.cumsum(sizes) - _CRC_TAIL
    found: npt.NDArray[np.bool_] = (data[tails[:, None] + np.arange(len(_CRC_NAME))] == _CRC_NAME).all(axis=1)
    return found


def append_replicated(log: PutLog, offset: int, data: bytes | memoryview, stored: int) -> int:
    """Append whole units, blanks with their tails among them, that stand at ``offset`` of the master's log; gives the
    log's end. ``stored`` is the store time (ms) of the last message among them, 0 without one. An empty log begins
    there, which must be a file's first byte then.

    Raises :class:`StoreError` where ``offset`` is not the log's end or bytes go over a file's end,
    :class:`engine.errors.NotWriteable`, ``OSError``.
    """
    with log.copying:
        empty = log.files.last is None
        at = 0
        while at < len(data):
            file = log.files.last_or_create(offset)
            if file is None:
                raise StoreError("no new file of the commit log can be made", file=str(log.files.folders[0]))
            end = file.start_offset + file.wrote
            if end != offset + at:
                where = "begins at" if empty else "ends at"
                raise StoreError(f"expected bytes of offset {end:,}, where the log {where}, found {offset + at:,}")
            piece = data[at : at + file.size - file.wrote]
            file.append(piece, stored)
            at += len(piece)
        return log.wrote
