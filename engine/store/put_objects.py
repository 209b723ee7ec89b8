"""Puts of message objects by compiled code (:mod:`engine.codec.object_put`,
docs/formats/consume-queue.md#queue-offsets).

Compiled code knows one file, and the topics, hosts and queues that were registered with it. It puts plain messages and
refuses all others, which are put one by one in their turn. The bytes are the same as of single puts. Everything happens
under the append lock.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.codec import object_put
from engine.codec.encode import Message
from engine.codec.object_put import ObjectPut
from engine.errors import NotWriteable
from engine.store.put_message import PutMessageResult, PutMessageResults
from engine.store.queue_offsets import MAX_QUEUES

if TYPE_CHECKING:
    from engine.mapped.mapped_file import MappedFile
    from engine.store.commit_log import CommitLog


MIN_MESSAGES_TO_COMPILE = 8
"""Minimum number of messages in one call for which compiled code is loaded."""
_ZERO = array("q", [0])


def put_messages(log: CommitLog, messages: Sequence[Message]) -> PutMessageResults:
    """Put ``messages`` in order, by compiled code if it is available and allowed."""
    waits = log.flushes_at_once and any(message.waits for message in messages)
    compiled = log.compiled_put() if len(messages) >= MIN_MESSAGES_TO_COMPILE else None
    if compiled is None:
        return PutMessageResults.of([log.put_message(message) for message in messages], waits=waits)
    return _MultiPut(log, compiled, messages if type(messages) is list else list(messages)).results(waits)


class _MultiPut:
    """A put of many messages by compiled code.

    Compiled code puts messages until it lacks something: another file, a topic, a host, a queue. :func:`learn`
    registers that, and compiled code goes on; a message that it cannot put is put by itself.
    """

    def __init__(self, log: CommitLog, compiled: ObjectPut, messages: list[Message]) -> None:
        self._log = log
        self._put = compiled
        self._messages = messages
        self._rows = len(messages)
        self._row = 0
        self._result_rows = _ZERO * (3 * len(messages))
        self._answers: dict[int, PutMessageResult] = {}
        self._times: list[tuple[int, int]] = []

    def results(self, waits: bool) -> PutMessageResults:
        """Put all messages. Return the results; each is created when it is first read."""
        log, answers = self._log, self._answers
        if log.refuses is not None:
            return PutMessageResults.refused(self._rows, log.refuses)
        while self._row < self._rows:
            if log.is_busy or not self._put_under_lock():
                answers[self._row] = log.put_in_python(self._messages[self._row])
                self._row += 1
        return PutMessageResults.of_rows(
            self._result_rows, answers, self._times, lambda _row: log.store_host_raw, waits=waits
        )

    def _put_under_lock(self) -> bool:
        """Append messages under one hold of the lock. Return False if the next one must be put by itself."""
        log, compiled, messages = self._log, self._put, self._messages
        try:
            with log.appending as now:
                self._times.append((self._row, now))
                last_stop = -1, 1
                while self._row < self._rows:
                    file = log.files.last
                    is_known = file is not None and compiled.is_current(file, log.queue_offsets.numbers)
                    refusal = self._put_run(file, now) if file is not None and is_known else 0
                    if self._row == self._rows:
                        return True
                    if last_stop == (self._row, refusal) or not learn(log, compiled, messages[self._row], refusal):
                        return False
                    last_stop = self._row, refusal
                return True
        except NotWriteable:
            self._answer_remaining(PutMessageResult(log.refused))
        except OSError as error:
            self._answer_remaining(log.failed(error))
        return True

    def _put_run(self, file: MappedFile, now: int) -> int:
        """Put messages until something must be registered. Return why it stopped."""
        compiled = self._put
        position = file.wrote
        compiled.start(now, position)
        try:
            self._row, refusal = compiled.put_many(self._messages, self._row, self._result_rows)
        finally:  # after an interrupt, too, written units have their numbers
            file.advance(compiled.position - position, now)
        return refusal

    def _answer_remaining(self, answer: PutMessageResult) -> None:
        for row in range(self._row, self._rows):
            self._answers[row] = answer
        self._row = self._rows


# -- registering with compiled code


def learn(log: CommitLog, compiled: ObjectPut, message: Message, refusal: int) -> bool:
    """Register with compiled code what it lacked for ``message``. Return False if it cannot put the message.

    Call it under the append lock. ``refusal`` is the code of compiled code; 0 if it has another file or other offsets.
    """
    if compiled.numbers is not log.queue_offsets.numbers:
        compiled.learn_numbers(log.queue_offsets.numbers)
    if refusal in (0, object_put.NO_ROOM):
        file = log.files.last
        if file is None or file.is_full:
            return False
        return compiled.learn_file(file, file.target(0), file.start_offset, file.backed, log.max_message_size)
    if refusal == object_put.OTHER_MAP:
        return compiled.learn_map(message.properties or {})
    if refusal == object_put.UNKNOWN_TOPIC_OR_HOST:
        return _learn_names(log, compiled, message)
    return refusal == object_put.NO_PLACE and _learn_queue(log, compiled, message)


def learn_after(log: CommitLog, compiled: ObjectPut, message: Message, refusal: int) -> None:
    """Call :func:`learn` for the next message, after ``message`` is in the log; errors do not concern its sender.

    A log that refuses puts may be closed, so no file is opened again.
    """
    with log.lock:
        if log.refuses is None:
            try:
                learn(log, compiled, message, refusal)
            except OSError:
                compiled.release_file()


def _learn_names(log: CommitLog, compiled: ObjectPut, message: Message) -> bool:
    topic = log.topic(message.topic)
    if not topic.legal:
        return False
    try:
        compiled.learn_host(message.born_host)
    except ValueError:
        return False
    compiled.learn_topic(message.topic, topic.row)
    return True


def _learn_queue(log: CommitLog, compiled: ObjectPut, message: Message) -> bool:
    if message.queue_id >= MAX_QUEUES:
        return False
    topic = log.topic(message.topic)
    place = log.place(topic, message.queue_id)
    if compiled.numbers is not log.queue_offsets.numbers:
        compiled.learn_numbers(log.queue_offsets.numbers)
    topic.row.set_place(message.queue_id, place)
    compiled.learn_topic(message.topic, topic.row)
    return True
