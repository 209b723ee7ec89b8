"""Reads messages of a topic at its brokers by offset and time, and leaves nothing there: no heartbeat, no offset, no
subscription (docs/protocol/broker.md#pull).

It pulls as the group TOOLS_CONSUMER, which each broker has from its start. A pull of an unknown group would make the
broker create that group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from engine.client import broker_api
from engine.client.errors import AnswerNotUnderstood, NoRoute
from engine.client.events import EventStream
from engine.client.instance import ClientInstance
from engine.client.routes import MASTER, READ, MessageQueue
from engine.codec import message as codec
from engine.codec import properties as props
from engine.codec.message import INNER_BATCH, Unit
from engine.remoting.answers import reading
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.subscriptions import Subscription
from engine.sentences import sentence

TOOLS_GROUP = "TOOLS_CONSUMER"
"""The group that mqadmin reads messages with."""
MAX_PULLED = 32
"""Messages that a pull asks for: brokers hand out at most 32 by default."""
MAX_PAGE_BYTES = 8 << 20
"""Bytes of units after which a page ends early."""
PULL_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class QueueRange:
    """A queue with the offsets of its first message and behind its last one, and its broker's address."""

    queue: MessageQueue
    address: str
    min_offset: int
    max_offset: int


@dataclass(frozen=True, slots=True)
class PulledUnit:
    """A unit as its broker stores it. ``queue_offset`` is that in the queue that was asked; of a static topic it is not
    the unit's. ``unit.offset`` is the place in the broker's commit log, which the broker wrote into the unit.
    """

    queue_offset: int
    unit: Unit
    data: bytes

    @property
    def next_offset(self) -> int:
        """Queue offset behind the message, or behind the messages of an inner batch."""
        count = self.unit.properties.get(props.INNER_NUM, "1") if self.unit.sys_flag & INNER_BATCH else "1"
        return self.queue_offset + (int(count) if count.isdecimal() else 1)


@dataclass(frozen=True, slots=True)
class UnitPage:
    """Units in order. The next page begins at ``next_offset``; the queue ends at ``max_offset``."""

    units: tuple[PulledUnit, ...]
    next_offset: int
    min_offset: int
    max_offset: int


class TopicReader:
    """Reads the queues of topics: ``async with``, or :meth:`start` and :meth:`stop`.

    All calls raise :class:`BrokerRefused`, :class:`NoRoute`, :class:`AnswerNotUnderstood`, ``OSError`` or
    ``TimeoutError``.
    """

    def __init__(self, instance: ClientInstance, group: str = TOOLS_GROUP) -> None:
        self.instance = instance
        self._group = group

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def client_id(self) -> str:
        """The id of this client. It is in no request."""
        return self.instance.client_id

    @property
    def events(self) -> EventStream:
        """Events of the client, as they happen."""
        return self.instance.events

    async def start(self) -> None:
        """Connections are made with the first requests."""

    async def stop(self) -> None:
        """Close the connections."""
        await self.instance.kill()

    async def queues(self, topic: str) -> list[QueueRange]:
        """Return the readable queues of a topic with their ends. Raises :class:`NoRoute` if there are none."""
        route = await self.instance.fresh_route(topic)
        if route is None or not route.queues:
            raise NoRoute(sentence("no broker serves the topic {topic}", topic=topic))
        unreadable = [data for data in route.queues if not data.permission & READ]
        if not route.subscribe_queues:
            raise NoRoute(
                sentence(
                    "the topic {topic} may not be read on {broker}: its permission is {permission}. "
                    "mqadmin updateTopicPerm -p 6 allows it",
                    topic=topic,
                    broker=unreadable[0].broker,
                    permission=unreadable[0].permission,
                )
                if unreadable
                else sentence("the topic {topic} has no queue", topic=topic)
            )
        return [await self.ends(queue) for queue in route.subscribe_queues if MASTER in self._addresses(queue)]

    def _addresses(self, queue: MessageQueue) -> dict[int, str]:
        route = self.instance.known_route(queue.topic)
        return dict(route.brokers.get(self.instance.broker_of(queue), {})) if route is not None else {}

    async def ends(self, queue: MessageQueue) -> QueueRange:
        """Return the present ends of a queue."""
        min_offset = await broker_api.min_offset(self.instance, queue)
        max_offset = await broker_api.max_offset(self.instance, queue)
        return QueueRange(queue, self.instance.queue_address(queue), min_offset, max_offset)

    async def offset_at(self, queue: MessageQueue, timestamp: int) -> int:
        """Return the offset of the first message stored at ``timestamp`` (ms) or later, as the broker searches it."""
        await self.instance.route(queue.topic)
        return await broker_api.search_offset(self.instance, queue, timestamp)

    async def read(self, queue: MessageQueue, offset: int, count: int) -> UnitPage:
        """Return up to ``count`` units from ``offset`` on, with more than one pull where one brings too few.

        A page ends early after :data:`MAX_PAGE_BYTES`. An offset out of the queue's range gives no units.
        """
        await self.instance.route(queue.topic)
        units: list[PulledUnit] = []
        byte_count = 0
        while True:
            page = await self._pull(queue, offset, min(count - len(units), MAX_PULLED))
            units += page.units
            byte_count += sum(len(item.data) for item in page.units)
            is_behind = page.next_offset <= offset or page.next_offset >= page.max_offset
            if not page.units or is_behind or len(units) >= count or byte_count >= MAX_PAGE_BYTES:
                return UnitPage(tuple(units), page.next_offset, page.min_offset, page.max_offset)
            offset = page.next_offset

    async def _pull(self, queue: MessageQueue, offset: int, count: int) -> UnitPage:
        address = self.instance.queue_address(queue)
        answer = await broker_api.pull_answer(
            self.instance,
            address,
            self._group,
            queue,
            Subscription.of(queue.topic, "*", 0),
            offset,
            max_messages=count,
            timeout_s=PULL_TIMEOUT_S,
        )
        fields = answer.fields
        with reading(RequestCode.PULL_MESSAGE, address, AnswerNotUnderstood):
            next_offset = int(fields.get("nextBeginOffset", offset))
            ends = int(fields.get("minOffset", 0)), int(fields.get("maxOffset", 0))
            delta = int(fields.get(broker_api.OFFSET_DELTA, 0))
            body = bytes(answer.body) if answer.code == ResponseCode.SUCCESS else b""
            units = tuple(PulledUnit(unit.queue_offset + delta, unit, data) for unit, data in units_in(body))
        return UnitPage(units, next_offset, *ends)


def units_in(body: bytes) -> Iterator[tuple[Unit, bytes]]:
    """Yield the units in the body of a pull's answer, with their bytes. Each is at the place that its broker wrote into
    it.

    Raises :class:`engine.errors.CorruptUnit` where the bytes are invalid.
    """
    position = 0
    while position < len(body):
        frame = codec.decode(body, position, crc=False)
        data = body[position : position + frame.size]
        yield codec.decode(data, 0, base=frame.physical_offset), data
        position += frame.size
