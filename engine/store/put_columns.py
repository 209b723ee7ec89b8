"""Puts of many messages as columns, encoded directly into the file (docs/formats/commit-log.md#append).

:class:`engine.store.commit_log.CommitLog` offers this as ``append_columns``. Compiled code writes plain messages.
Messages that it refuses, and those that need further rules, are put one by one in their turn. The bytes are the same as
of single puts. Everything happens under the append lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.codec import write_job
from engine.codec.message_columns import MessageColumns, Run
from engine.errors import NotWriteable
from engine.store.put_message import BLANK_SIZE, PutMessageResult, PutMessageResults, PutMessageStatus
from engine.store.queue_offsets import MAX_QUEUES

if TYPE_CHECKING:
    from engine.store.commit_log import CommitLog


MAX_RESERVED_BYTES = 8 << 20
"""Disk space that is reserved at a time."""


def append_columns(log: CommitLog, columns: MessageColumns) -> PutMessageResults:
    """Append every row of ``columns``, in order."""
    if log.refuses is not None:
        return PutMessageResults.refused(len(columns), log.refuses)
    run = Run(columns, [log.topic(name).row for name in columns.topics], log.store_host_raw)
    answers: dict[int, PutMessageResult] = {}
    times: list[tuple[int, int]] = []
    while run.row < run.rows:
        stop_reason = write_job.RULED if log.property_crc or log.is_busy else _append_rows(log, run, answers, times)
        if stop_reason == write_job.RULED:
            answers[run.row] = _put_one(log, run)
            run.skip()
    return PutMessageResults.of_rows(run.out, answers, times, lambda row: run.row_hosts(row)[1])


def _put_one(log: CommitLog, run: Run) -> PutMessageResult:
    try:
        return log.put_message(run.message())
    except IndexError:  # a topic or host that is not in its table
        return PutMessageResult(PutMessageStatus.MESSAGE_ILLEGAL)


def _append_rows(log: CommitLog, run: Run, answers: dict[int, PutMessageResult], times: list[tuple[int, int]]) -> int:
    """Append rows under one hold of the lock, until all are done or the next one needs further rules."""
    try:
        with log.appending as now:
            times.append((run.row, now))
            run.rebuild_table()
            while run.row < run.rows:
                stop_reason = _fill_file(log, run, now)
                if stop_reason in (write_job.DONE, write_job.RULED):
                    return stop_reason
                if stop_reason == write_job.NO_PLACE:
                    if not _enter_queue(log, run):
                        return write_job.RULED
                    continue
                file_or_result = log.room_for(run.unit_size(), now)
                if isinstance(file_or_result, PutMessageResult):
                    answers[run.row] = file_or_result
                    run.skip()
    except NotWriteable:
        _answer_remaining(run, answers, PutMessageResult(log.refused))
    except OSError as error:
        _answer_remaining(run, answers, log.failed(error))
    return write_job.DONE


def _answer_remaining(run: Run, answers: dict[int, PutMessageResult], answer: PutMessageResult) -> None:
    while run.row < run.rows:
        answers[run.row] = answer
        run.skip()


def _fill_file(log: CommitLog, run: Run, now: int) -> int:
    """Append rows to the last file while they fit. Return NO_ROOM if the next one needs another file."""
    while True:
        file = log.files.last
        if file is None or file.is_full:
            return write_job.NO_ROOM
        position = file.wrote
        limit = min(file.size, position + run.max_remaining_bytes() + BLANK_SIZE)
        if limit - position > MAX_RESERVED_BYTES:
            limit = position + max(MAX_RESERVED_BYTES, run.unit_size() + BLANK_SIZE)
        stop_reason, end = log.encoder.encode(
            run,
            file.target(limit - position),
            position,
            limit,
            file.start_offset,
            now,
            log.queue_offsets.numbers,
            log.max_message_size,
        )
        if end > position:
            file.advance(end - position, now)
        if stop_reason != write_job.NO_ROOM or limit == file.size:
            return stop_reason


def _enter_queue(log: CommitLog, run: Run) -> bool:
    """Add the next row's queue to the table of queue offsets. Return False if its id is too large."""
    topic = log.topic(run.columns.topics[run.topic_id])
    if run.queue_id >= MAX_QUEUES:
        return False
    run.set_place(log.place(topic, run.queue_id))
    return True
