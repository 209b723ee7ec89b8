"""Messages by key, by many keys at once, by unique key, by offset id and by offset
(docs/formats/commit-log.md#message-ids, docs/formats/index-file.md#query, docs/formats/reading.md#other-reads; Java:
queryMessage, lookMessageByOffset).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.codec.index_query import Span, place_units
from engine.codec.message import Unit, decode, parse_offset_message_id
from engine.errors import CorruptUnit
from engine.store.get_message import LentMessages
from engine.store.mapped_log import LentBytes, QueryableLog, ReadableLog, Releasable
from engine.store.offset_by_time import store_time

if TYPE_CHECKING:
    from engine.store.index_service import IndexService


MAX_TIME_MS = (1 << 63) - 1
MAX_ROUNDS = 3
_SIZE = struct.Struct(">i")
SIZE_BYTES = 4
_EARLIEST_SIZE = 64


class QueryMessageResult(LentMessages):
    """Messages that the index leads to, in the order of the log; collisions of the hash are among them.

    ``index_last_update_timestamp`` (ms) and ``index_last_update_offset`` tell how far the index goes; both are 0 where
    it knows nothing under the key, in every release.
    """

    __slots__ = ("index_last_update_offset", "index_last_update_timestamp")

    def __init__(
        self,
        messages: list[memoryview],
        offsets: list[int],
        lent: Sequence[Releasable],
        last_update_timestamp: int = 0,
        last_update_offset: int = 0,
    ) -> None:
        self._messages = messages
        self.offsets = offsets
        self._lent = lent
        self.index_last_update_timestamp = last_update_timestamp
        self.index_last_update_offset = last_update_offset


def query_message(
    index: IndexService | None,
    log: QueryableLog,
    topic: str,
    key: str,
    max_count: int = 32,
    begin: int = 0,
    end: int = MAX_TIME_MS,
) -> QueryMessageResult:
    """Messages stored in [begin, end] ms under ``topic`` and ``key``, as the index has them.

    Where none of those that were found can be read any more, older ones are asked for, up to three rounds.
    """
    if index is None:
        return QueryMessageResult([], [], ())
    messages: list[memoryview] = []
    places: list[int] = []
    lent: Sequence[Releasable] = ()
    last_timestamp = last_offset = 0
    for _ in range(MAX_ROUNDS):
        offsets, timestamp, offset = index.query_offset(topic, key, max_count, begin, end)
        if not offsets:
            break
        last_timestamp, last_offset = timestamp, offset
        if len(offsets) == 1:
            unit = log.lend_unit(offsets[0])
            if unit is not None:
                return QueryMessageResult([unit[0]], offsets, (unit[1],), last_timestamp, last_offset)
        else:
            offsets.sort()
        messages, places, lent = _units(log, offsets)
        if messages:
            break
        end = store_time(log, offsets[0], _EARLIEST_SIZE)
        if end < begin:
            break
    return QueryMessageResult(messages, places, lent, last_timestamp, last_offset)


def _units(log: ReadableLog, offsets: list[int]) -> tuple[list[memoryview], list[int], list[Releasable]]:
    """Return the units that begin at ``offsets`` (ascending), as long as their first four bytes say, where the log
    has them; their offsets; and what holds their bytes.
    """
    messages: list[memoryview] = []
    unit_offsets: list[int] = []
    lent: list[Releasable] = []
    start, room = 0, -1
    for offset in offsets:
        position = offset - start
        if position + SIZE_BYTES > room:
            lent_bytes = log.lend(offset, SIZE_BYTES)
            if lent_bytes is None:
                continue
            lent.append(lent_bytes)
            view, start = lent_bytes.view, lent_bytes.start_offset
            position, room = offset - start, len(view)
        end = position + _SIZE.unpack_from(view, position)[0]
        if position + SIZE_BYTES < end <= room:
            messages.append(view[position:end])
            unit_offsets.append(offset)
    return messages, unit_offsets, lent


def by_unique_key(index: IndexService | None, log: QueryableLog, topic: str, unique_key: str) -> Unit | None:
    """Return the newest message of ``topic`` with this unique key, None if the index leads to none."""
    with query_message(index, log, topic, unique_key) as result:
        for offset, message in sorted(zip(result.offsets, result.messages, strict=True), reverse=True):
            unit = _decoded(message, offset)
            if unit is not None and unit.topic == topic and unit.unique_key == unique_key:
                return unit
    return None


def by_offset_id(log: ReadableLog, text: str) -> Unit | None:
    """Return the unit whose offset message id is ``text``; None if there is no unit with that id at its offset."""
    parsed = parse_offset_message_id(text)
    unit = look_message_by_offset(log, parsed[1]) if parsed is not None else None
    return unit if unit is not None and unit.offset_msg_id == text.upper() else None


def look_message_by_offset(log: ReadableLog, offset: int) -> Unit | None:
    """The unit that begins at ``offset``, its body as stored; None if there is none that can be read."""
    with lend_message_by_offset(log, offset) as result:
        return _decoded(result.messages[0], offset) if result.messages else None


def lend_message_by_offset(log: ReadableLog, offset: int) -> QueryMessageResult:
    """The bytes that begin at ``offset``, as long as their first four say, lent; none where they cannot be read."""
    if not log.min_offset <= offset:
        return QueryMessageResult([], [], ())
    return QueryMessageResult(*_units(log, [offset]))


def earliest_message_time(log: ReadableLog) -> int:
    """Store time (ms) of the oldest message of the log, −1 without one."""
    return store_time(log, log.min_offset, _EARLIEST_SIZE) if log.min_offset >= 0 else -1


def _decoded(message: memoryview, offset: int) -> Unit | None:
    try:
        return decode(message, 0, offset, crc=False)
    except CorruptUnit:
        return None


class QueryMessagesResult(LentMessages):
    """Messages of all keys, key after key; :meth:`of` gives those of one key. Those of a key are in the order of the
    log, collisions of the hash among them.
    """

    __slots__ = ("_ends",)

    def __init__(self, messages: list[memoryview], offsets: list[int], ends: list[int], lent: list[LentBytes]) -> None:
        super().__init__(messages, offsets, (), lent)
        self._ends = ends

    def of(self, key: int) -> list[memoryview]:
        """The messages of the key with this number in the query."""
        return self.messages[self._ends[key - 1] if key else 0 : self._ends[key]]


def query_messages(
    index: IndexService | None,
    log: ReadableLog,
    topic: str,
    keys: list[str],
    max_count: int = 32,
    begin: int = 0,
    end: int = MAX_TIME_MS,
) -> QueryMessagesResult:
    """Return messages stored in [begin, end] ms under ``topic`` and each of ``keys``, as the index has them.

    Like :func:`engine.store.query_message.query_message` for each key, without its further rounds: messages that
    the log no longer has are left out.
    """
    if index is None or not keys:
        return QueryMessagesResult([], [], [0] * len(keys), [])
    answers = index.query_offsets(topic, keys, max_count, begin, end)
    lent: list[LentBytes] = []
    views: list[memoryview] = []

    def span_at(offset: int) -> Span:
        span, lent_bytes = _span(log, offset)
        views.append(span.view or memoryview(b""))
        if lent_bytes is not None:
            lent.append(lent_bytes)
        return span

    units = place_units(answers.ends, answers.offsets, span_at)
    if len(views) == 1:
        view = views[0]
        messages = [view[unit_start:unit_stop] for unit_start, unit_stop in zip(units.begins, units.stops, strict=True)]
    else:
        places = zip(units.spans, units.begins, units.stops, strict=True)
        messages = [views[span][unit_start:unit_stop] for span, unit_start, unit_stop in places]
    return QueryMessagesResult(messages, units.offsets, units.ends, lent)


def _span(log: ReadableLog, offset: int) -> tuple[Span, LentBytes | None]:
    """Return the part of the log's file that holds ``offset``, as far as it can be read, and what holds its bytes."""
    start = offset - offset % log.file_size
    stop = start + log.file_size
    for place in (start, offset):
        lent_bytes = log.lend(place, SIZE_BYTES)
        if lent_bytes is not None:
            return Span(lent_bytes.start_offset, stop, lent_bytes.view), lent_bytes
    return Span(offset, stop, None), None
