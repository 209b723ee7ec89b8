"""Messages put by compiled code, as objects (:mod:`engine.codec.object_put`): what the log tells it, and many at once.

Compiled code writes what is plain; whatever it refuses goes the longer way, message by message, with the same bytes.
All of it happens under the append lock.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.codec import object_put
from engine.codec.encode import Message
from engine.codec.object_put import ObjectPut
from engine.errors import NotWriteable
from engine.store.put.log import MOST_QUEUES
from engine.store.put.message import PutMessageResult, PutMessageResults

if TYPE_CHECKING:
    from engine.mapped.mapped_file import MappedFile
    from engine.store.put.log import PutLog

FEWEST = 8
"""Messages of one call from which on compiled code is worth loading."""
_ZERO = array("q", [0])


def learn(log: PutLog, put: ObjectPut, message: Message, why: int) -> bool:
    """Tell compiled code what it lacked for ``message``, to be known under the append lock; False where that is not for
    it. ``why`` is its refusal, 0 where the file or the numbers are others than those that it knows.
    """
    if put.numbers is not log.queue_offsets.numbers:
        put.learn_numbers(log.queue_offsets.numbers)
    if why in (0, object_put.NO_ROOM):
        file = log.files.last
        if file is None or file.is_full:
            return False
        return put.learn_file(file, file.target(0), file.start_offset, file.backed, log.max_message_size)
    if why == object_put.OTHER_MAP:
        return put.learn_map(message.properties or {})
    if why == object_put.UNKNOWN_TOPIC_OR_HOST:
        return _learn_names(log, put, message)
    return why == object_put.NO_PLACE and _learn_queue(log, put, message)


def learn_after(log: PutLog, put: ObjectPut, message: Message, why: int) -> None:
    """:func:`learn` for the next one, when ``message`` is in the log: nothing that goes wrong here is its sender's. A
    log that takes nothing any more may be closed, and opens no file again.
    """
    with log.lock:
        if log.refuses is None:
            try:
                learn(log, put, message, why)
            except OSError:
                put.release_file()


def _learn_names(log: PutLog, put: ObjectPut, message: Message) -> bool:
    topic = log.topic(message.topic)
    if not topic.legal:
        return False
    try:
        put.learn_host(message.born_host)
    except ValueError:
        return False
    put.learn_topic(message.topic, topic.row)
    return True


def _learn_queue(log: PutLog, put: ObjectPut, message: Message) -> bool:
    if message.queue_id >= MOST_QUEUES:
        return False
    topic = log.topic(message.topic)
    place = log.place(topic, message.queue_id)
    if put.numbers is not log.queue_offsets.numbers:
        put.learn_numbers(log.queue_offsets.numbers)
    topic.row.set_place(message.queue_id, place)
    put.learn_topic(message.topic, topic.row)
    return True


def put_messages(log: PutLog, messages: Sequence[Message]) -> PutMessageResults:
    """Put ``messages`` in order, by compiled code where it is to be had and nothing forbids it."""
    waits = log.flushes_at_once and any(message.waits for message in messages)
    put = log.compiled_put() if len(messages) >= FEWEST else None
    if put is None:
        return PutMessageResults.of([log.put_message(message) for message in messages], waits=waits)
    return _Many(log, put, messages if type(messages) is list else list(messages)).results(waits)


class _Many:
    """Messages on their way into the log."""

    def __init__(self, log: PutLog, put: ObjectPut, messages: list[Message]) -> None:
        self._log = log
        self._put = put
        self._messages = messages
        self._rows = len(messages)
        self._row = 0
        self._out = _ZERO * (3 * len(messages))
        self._answers: dict[int, PutMessageResult] = {}
        self._times: list[tuple[int, int]] = []

    def results(self, waits: bool) -> PutMessageResults:
        """Put all of them; the answers, each made when somebody looks."""
        log, answers = self._log, self._answers
        if log.refuses is not None:
            return PutMessageResults.refused(self._rows, log.refuses)
        while self._row < self._rows:
            if log.is_busy or not self._put_some():
                answers[self._row] = log.put_otherwise(self._messages[self._row])
                self._row += 1
        return PutMessageResults.of_rows(self._out, answers, self._times, lambda _row: log.store_host_raw, waits=waits)

    def _put_some(self) -> bool:
        """Append messages under one hold of the lock; False where the next one has to go the longer way."""
        log, put, messages = self._log, self._put, self._messages
        try:
            with log.appending as now:
                self._times.append((self._row, now))
                stuck = -1, 1
                while self._row < self._rows:
                    file = log.files.last
                    known = file is not None and put.is_current(file, log.queue_offsets.numbers)
                    why = self._put_run(file, now) if file is not None and known else 0
                    if self._row == self._rows:
                        return True
                    if stuck == (self._row, why) or not learn(log, put, messages[self._row], why):
                        return False
                    stuck = self._row, why
                return True
        except NotWriteable:
            self._answer_rest(PutMessageResult(log.refused))
        except OSError as error:
            self._answer_rest(log.failed(error))
        return True

    def _put_run(self, file: MappedFile, now: int) -> int:
        """Messages as far as nothing changes between them; why it stopped."""
        put = self._put
        position = file.wrote
        put.start(now, position)
        try:
            self._row, why = put.put_many(self._messages, self._row, self._out)
        finally:  # what was written has its numbers, whatever interrupted
            file.advance(put.position - position, now)
        return why

    def _answer_rest(self, answer: PutMessageResult) -> None:
        for row in range(self._row, self._rows):
            self._answers[row] = answer
        self._row = self._rows
