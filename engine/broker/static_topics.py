"""Static topics: logical queues whose messages lie in queues of several brokers (docs/protocol/static-topics.md).

Clients name logical queues and offsets. The broker that leads a logical queue translates them for its own queue, and
asks the other brokers where an older range of the queue lies with them: such requests have ``lo=false`` and are
answered as for any topic. Java: ``TopicQueueMappingManager``, and the ``rewrite…`` methods of the processors.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.broker.json_bodies import read_object_or_none
from engine.broker.query_message import store_time_at
from engine.codec.queue_mappings import (
    MAPPINGS_MEMBER,
    MappedRange,
    Ranges,
    TopicMapping,
    WrongMapping,
    check_ranges,
    merged,
    next_range,
    range_at,
    read_mapping,
    read_mappings,
)
from engine.errors import cause_of
from engine.remoting.codes import Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.config_tables import ConfigTable

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header
    from engine.callbacks import Clock

_log = logging.getLogger(__name__)
AskBroker = Callable[[str, Command], Awaitable[Command]]
"""Asks the master of a broker name. Raises ``OSError``, ``TimeoutError``."""
_COMMITS_OFFSET, _SUSPENDS = 1, 2
"""Bits of a pull's ``sysFlag`` that are not passed on to another broker."""
_SIGNATURE = ("AccessKey", "Signature", "SecurityToken")
_LAST_OFFSET = (1 << 63) - 1


class StaticTopics:
    """The mappings of a broker's static topics, as ``topicQueueMapping.json`` holds them."""

    def __init__(self, table: ConfigTable, now: Clock) -> None:
        self._table = table
        self._now = now
        self.mappings: dict[str, TopicMapping] = {}

    def load(self) -> None:
        """Read the table. Raises as :meth:`ConfigTable.load`."""
        self._table.load()
        self.mappings = read_mappings(self._table.value)

    @property
    def data_version(self) -> Mapping[str, Any]:
        """The table's version; zeros if it was never written."""
        version = self._table.value.get("dataVersion")
        return version if isinstance(version, Mapping) else {"counter": 0, "stateVersion": 0, "timestamp": self._now()}

    def put(self, mapping: TopicMapping, *, force: bool = False) -> None:
        """Store the mapping of a topic in place of its old one.

        Raises :class:`WrongMapping`; ``OSError`` if the table cannot be written, although the new mapping is in force.
        """
        for ranges in mapping.queues.values():
            check_ranges(ranges)
        old_mapping = self.mappings.get(mapping.topic)
        self.mappings[mapping.topic] = mapping if old_mapping is None else merged(old_mapping, mapping, force=force)
        self._save()

    def replace_queues(self, topic: str, queues: Mapping[int, Ranges]) -> None:
        """Store other ranges of a topic. Raises ``OSError`` as :meth:`put`."""
        self.mappings[topic] = replace(self.mappings[topic], queues=queues)
        self._save()

    def delete(self, topic: str) -> None:
        """Forget a deleted topic. Raises ``OSError`` as :meth:`put`."""
        if self.mappings.pop(topic, None) is not None:
            self._save()

    def _save(self) -> None:
        old_version = self.data_version
        version = {"counter": int(old_version.get("counter", 0)) + 1, "stateVersion": 0, "timestamp": self._now()}
        rows = {name: mapping.record() for name, mapping in self.mappings.items()}
        self._table.value = {"dataVersion": version, MAPPINGS_MEMBER: rows}
        self._table.write(*self._table.taken())


@dataclass(frozen=True, slots=True)
class LogicalQueue:
    """A logical queue that this broker leads."""

    topic: str
    queue_id: int
    broker: str
    ranges: Ranges

    @property
    def leader(self) -> MappedRange:
        """The range that takes sends."""
        return self.ranges[-1]

    def is_local(self, item: MappedRange) -> bool:
        """Return True if the range is a queue of this broker."""
        return item.broker == self.broker

    def range_at(self, logical_offset: int) -> MappedRange:
        """Return the range that holds a logical offset. Raises :class:`Refused` if none is placed yet."""
        item = range_at(self.ranges, logical_offset)
        if item is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{self.topic}-{self.queue_id} has no decided offset")
        return item

    def sent_fields(self, offset: int) -> dict[str, str]:
        """Return the position of a message that was stored at ``offset`` of the leader's queue."""
        return {"queueId": str(self.queue_id), "queueOffset": str(self.leader.logical_within(offset))}


def queue_of(
    broker: Broker,
    request: Command,
    header: Header,
    *,
    words: str = "does not exit in request process of",
    any_queue: bool = False,
) -> LogicalQueue | None:
    """Return the logical queue that a request names; None if it names a physical queue of this broker.

    ``any_queue``: a negative queue id means the first one. Raises :class:`Refused` for a queue that another broker
    leads; ``words`` are RocketMQ's.
    """
    mapping = broker.static_topics.mappings.get(str(header["topic"]))
    if mapping is None or request.fields.get("lo", "true").lower() != "true":
        return None
    queue_id = requested = -1 if header["queueId"] is None else int(header["queueId"])
    if queue_id < 0 and any_queue:
        queue_id = next(iter(mapping.queues), -1)
    if not mapping.leads(queue_id):
        text = f"{mapping.topic}-{requested} {words} current broker {mapping.broker}"
        if request.code == RequestCode.GET_MIN_OFFSET:
            text = f"{mapping.topic}-{requested} is not leader in broker {mapping.broker}, request code {request.code}"
        raise Refused(ResponseCode.NOT_LEADER_FOR_QUEUE, text)
    return LogicalQueue(mapping.topic, queue_id, mapping.broker, mapping.queues[queue_id])


# -- pull


def pulled_queue(broker: Broker, request: Command, header: Header) -> LogicalQueue | None:
    """Return the logical queue that a pull reads, as :func:`queue_of`."""
    return queue_of(broker, request, header, words="cannot find mapping item in request process of")


def physical_pull(item: MappedRange, header: Header) -> dict[str, Any]:
    """Return the header of a pull as the broker of its range reads it."""
    limit = int(header["maxMsgNums"])
    return {
        **header,
        "queueId": item.queue_id,
        "queueOffset": item.physical(int(header["queueOffset"])),
        "maxMsgNums": min(item.end_offset - item.start_offset, limit) if item.has_end else limit,
    }


def pull_elsewhere(
    broker: Broker, request: Command, header: Header, connection: Connection, queue: LogicalQueue, item: MappedRange
) -> None:
    """Answer a pull from an older range with the answer of its broker, which is asked not to hold the request."""
    physical = physical_pull(item, header)
    sys_flag = int(header["sysFlag"]) & ~(_COMMITS_OFFSET | _SUSPENDS)
    changes = {
        "queueId": physical["queueId"],
        "queueOffset": physical["queueOffset"],
        "maxMsgNums": physical["maxMsgNums"],
        "sysFlag": sys_flag,
    }

    async def answer() -> Command:
        response = await _ask(broker, RequestCode.PULL_MESSAGE, request, item, changes)
        answer = logical_pull_answer(queue, item, int(physical["queueOffset"]), response)
        return replace(answer, remark="") if answer.code == ResponseCode.SUCCESS else answer

    answer_later(broker, request, connection, answer())


def logical_pull_answer(queue: LogicalQueue, current: MappedRange, requested: int, answer: Command) -> Command:
    """Return the answer to a pull with logical offsets; ``requested`` is the physical offset that was asked for.

    At the end of an older range the client goes on with the next one.
    """
    names = "nextBeginOffset", "minOffset", "maxOffset"
    if any(name not in answer.fields for name in names):
        return answer  # a refusal
    next_offset, min_offset, max_offset = (int(answer.fields[name]) for name in names)
    code: int = answer.code
    if code != ResponseCode.SUCCESS:
        is_leading = queue.leader.generation == current.generation
        is_earliest = queue.range_at(0).generation == current.generation
        if is_leading and requested > max_offset and code == ResponseCode.PULL_OFFSET_MOVED:
            next_offset = max_offset
        elif is_leading and requested < min_offset:
            next_offset, code = min_offset, ResponseCode.PULL_RETRY_IMMEDIATELY
        if is_earliest and requested < min_offset:
            next_offset, code = min_offset, ResponseCode.PULL_OFFSET_MOVED
        elif not is_earliest and not is_leading and requested < min_offset:
            next_offset, code = min_offset, ResponseCode.PULL_RETRY_IMMEDIATELY
        elif (is_earliest or not is_leading) and requested >= max_offset:
            following = next_range(queue.ranges, current)
            code = ResponseCode.PULL_NOT_FOUND
            if following is not None:
                current, code = following, ResponseCode.PULL_RETRY_IMMEDIATELY
                next_offset = min_offset = max_offset = current.start_offset
    if current.has_end:
        next_offset = min(next_offset, current.end_offset)
    fields = {
        **answer.fields,
        "nextBeginOffset": str(current.logical(next_offset)),
        "minOffset": str(current.logical(max(min_offset, current.start_offset))),
        "maxOffset": str(max(current.logical(max_offset), queue.leader.logical_end)),
        "offsetDelta": str(current.delta),
    }
    has_messages = answer.code == ResponseCode.SUCCESS
    return replace(answer, code=code, fields=fields, remark=answer.remark if has_messages else None)


# -- other requests about a queue
#
# Some answers of RocketMQ are for another queue, or for no message. This broker gives the same answers: administrators
# compare brokers, and a cluster may have both kinds.


async def _max_offset(broker: Broker, request: Command, _header: Header, queue: LogicalQueue) -> dict[str, str]:
    """While the leader's range is not placed, RocketMQ asks the older broker for the queue id of the leader."""
    item = queue.range_at(_LAST_OFFSET)
    queue_id = queue.leader.queue_id
    if queue.is_local(item):
        broker.store.services.dispatch_now()
        offset = broker.store.max_offset_in_queue(queue.topic, queue_id)
    else:
        offset = await _ask_offset(broker, request, replace(item, queue_id=queue_id))
    return {"offset": str(item.logical(offset))}


async def _min_offset(broker: Broker, request: Command, _header: Header, queue: LogicalQueue) -> dict[str, str]:
    item = queue.range_at(0)
    if queue.is_local(item):
        offset = broker.store.min_offset_in_queue(queue.topic, item.queue_id)
    else:
        offset = await _ask_offset(broker, request, item)
    return {"offset": str(item.logical_within(offset))}


async def _search_offset(broker: Broker, request: Command, header: Header, queue: LogicalQueue) -> dict[str, str]:
    """A local range counts if its offset is above 0, and then ends the search; else 0 is the answer, unless a later
    range has one.
    """
    offset, boundary = -1, "upper" if str(header["boundaryType"] or "").lower() == "upper" else "lower"
    for item in queue.ranges:
        if not item.is_placed:
            continue
        if queue.is_local(item):
            physical = broker.store.offset_in_queue_by_time(
                queue.topic, item.queue_id, int(header["timestamp"]), boundary
            )
            if physical > 0:
                offset = item.logical(physical)
                break
            offset = physical
            continue
        physical = await _ask_offset(broker, request, item)
        if physical >= 0 and not (item.has_end and physical >= item.end_offset):
            offset = item.logical(physical)
    return {"offset": str(offset)}


async def _earliest_time(broker: Broker, request: Command, _header: Header, queue: LogicalQueue) -> dict[str, str]:
    """RocketMQ asks for the queue that has the logical queue's number."""
    item = replace(queue.range_at(0), queue_id=queue.queue_id)
    if not queue.is_local(item):
        answer = await _ask(broker, RequestCode.GET_EARLIEST_MSG_STORETIME, request, item)
        return {"timestamp": answer.fields.get("timestamp", "-1")}
    offset = broker.store.min_offset_in_queue(queue.topic, item.queue_id)
    time = store_time_at(broker, queue.topic, item.queue_id, offset) if offset >= 0 else -1
    return {"timestamp": str(time)}


async def _committed_offset(broker: Broker, request: Command, header: Header, queue: LogicalQueue) -> dict[str, str]:
    """The offset that a group reads next: the first one that a range has, from the newest one on."""
    group = str(header["consumerGroup"])
    for item in reversed(queue.ranges):
        if queue.is_local(item):
            offset = broker.store.tables.consumer_offset(group, queue.topic, item.queue_id)
        else:
            answer = await _ask(broker, request.code, request, item, {"setZeroIfNotFound": "false"})
            if answer.code not in {ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND}:
                raise Refused(ResponseCode.SYSTEM_ERROR, f"Unknown response code {answer.code}")
            offset = int(answer.fields.get("offset", -1)) if answer.code == ResponseCode.SUCCESS else -1
        if offset >= 0:
            return {"offset": str(item.logical(offset))}
    raise Refused(ResponseCode.QUERY_NOT_FOUND, "Not found, maybe this group consumer boot first")


async def _commit_elsewhere(broker: Broker, request: Command, header: Header, item: MappedRange) -> Command:
    offset = item.physical(int(header["commitOffset"]))
    answer = await _ask(broker, request.code, request, item, {"commitOffset": offset})
    return replace(answer, remark=answer.remark or "")


_AnswerFields = Callable[["Broker", Command, "Header", LogicalQueue], Coroutine[Any, Any, dict[str, str]]]
_OFFSETS: dict[int, _AnswerFields] = {
    RequestCode.GET_MAX_OFFSET: _max_offset,
    RequestCode.GET_MIN_OFFSET: _min_offset,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _search_offset,
    RequestCode.GET_EARLIEST_MSG_STORETIME: _earliest_time,
}
TRANSLATED = frozenset({*_OFFSETS, RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.UPDATE_CONSUMER_OFFSET})
"""Requests about one queue that :func:`translate` answers for a static topic."""


def translate(broker: Broker, request: Command, header: Header, connection: Connection) -> Header | None:
    """Return the header of a request about a queue with physical values; None if the answer comes later, because the
    logical queue has several ranges. Raises :class:`Refused` for a queue that another broker leads.
    """
    queue = queue_of(broker, request, header)
    if queue is None:
        return header
    if request.code == RequestCode.UPDATE_CONSUMER_OFFSET:
        if header["commitOffset"] is None:
            words = 'Cannot invoke "java.lang.Long.longValue()" because "globalOffset" is null'
            raise Refused(ResponseCode.SYSTEM_ERROR, words)
        item = queue.range_at(int(header["commitOffset"]))
        if queue.is_local(item):
            physical = item.physical(int(header["commitOffset"]))
            return {**header, "queueId": item.queue_id, "commitOffset": physical}
        answer_later(broker, request, connection, _commit_elsewhere(broker, request, header, item))
        return None
    if len(queue.ranges) == 1 and queue.leader.delta == 0 and request.code != RequestCode.GET_EARLIEST_MSG_STORETIME:
        return {**header, "queueId": queue.leader.queue_id}  # physical offsets are the logical ones
    fields = _OFFSETS.get(request.code, _committed_offset)

    async def answer() -> Command:
        remark = "" if request.code == RequestCode.GET_MIN_OFFSET else None
        return answer_to(request, fields=await fields(broker, request, header, queue), remark=remark)

    answer_later(broker, request, connection, answer())
    return None


def answer_later(
    broker: Broker, request: Command, connection: Connection, answering: Coroutine[Any, Any, Command]
) -> None:
    """Send the answer that ``answering`` returns, or its error, in a task of its own."""

    async def answer() -> None:
        try:
            response = await answering
        except Refused as error:
            response = answer_to(request, error.code, fields=error.fields, remark=str(error))
        except (OSError, TimeoutError, ValueError) as error:
            response = answer_to(request, ResponseCode.SYSTEM_ERROR, remark=cause_of(error, type(error).__name__))
        if not request.is_one_way:
            connection.send(_as_answer(request, response))

    task = asyncio.get_running_loop().create_task(answer())
    broker.tasks.add(task)
    task.add_done_callback(broker.tasks.discard)


def _as_answer(request: Command, response: Command) -> Command:
    return answer_to(request, response.code, fields=response.fields, body=bytes(response.body), remark=response.remark)


def _physical_request(
    code: int, request: Command, item: MappedRange, changes: Mapping[str, object] | None = None
) -> Command:
    """Return a request for the physical queue of a range, for its broker."""
    fields = {name: value for name, value in request.fields.items() if name not in _SIGNATURE}
    fields |= {"queueId": str(item.queue_id), "bname": item.broker, "lo": "false"}
    fields |= {name: str(value) for name, value in (changes or {}).items()}
    return Command(code, fields)


async def _ask(
    broker: Broker, code: int, request: Command, item: MappedRange, changes: Mapping[str, object] | None = None
) -> Command:
    return await broker.ask_broker(item.broker, _physical_request(code, request, item, changes))


async def _ask_offset(broker: Broker, request: Command, item: MappedRange) -> int:
    answer = await _ask(broker, request.code, request, item)
    if answer.code != ResponseCode.SUCCESS:
        raise Refused(answer.code, answer.remark or "")
    if "offset" not in answer.fields:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"{item.broker} answers without an offset")
    return int(answer.fields["offset"])


# -- administration


def put_mapping(broker: Broker, request: Command, *, force: bool) -> None:
    """Store the mapping in the body of a request; without one nothing changes. Raises :class:`Refused`."""
    mapping = read_mapping(read_object_or_none(request.body)) if bytes(request.body).strip() else None
    if mapping is None or not mapping.topic:
        return
    try:
        broker.static_topics.put(mapping, force=force)
    except WrongMapping as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
    except OSError as error:
        _log.warning("a mapping is changed and not saved yet: %s", error)
