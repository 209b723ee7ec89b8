"""Many messages in one call: columns of them encoded straight into the file (docs/formats/commit-log.md#append,
docs/formats/consume-queue.md#queue-offsets).

What :class:`engine.store.commit_log.CommitLog` offers as ``append_columns``. Rows that rules apply
to go the long way, each in its turn; the bytes are those of single puts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.codec import write_job
from engine.codec.message_columns import MessageColumns, Run
from engine.errors import NotWriteable
from engine.store.put.log import MOST_QUEUES
from engine.store.put.message import (
    BLANK_SIZE,
    PutMessageResult,
    PutMessageResults,
    PutMessageStatus,
)

if TYPE_CHECKING:
    from engine.store.put.log import PutLog


MOST_ROOM = 8 << 20
"""Bytes of room on the disk that are asked for at a time."""


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
            run.rebuild_table()
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
        limit = min(last.size, position + run.max_remaining_bytes() + BLANK_SIZE)
        if limit - position > MOST_ROOM:
            limit = position + max(MOST_ROOM, run.unit_size() + BLANK_SIZE)
        why, end = log.encoder.encode(
            run,
            last.target(limit - position),
            position,
            limit,
            last.start_offset,
            now,
            log.queue_offsets.numbers,
            log.max_message_size,
        )
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
