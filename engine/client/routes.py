"""Where a topic's queues are: a name server's answer as a value (docs/protocol/name-server.md#route,
docs/protocol/clients.md#queue-choice, #rebalance). Pure.

Java: ``TopicRouteData``, ``TopicPublishInfo``, ``MQClientInstance.topicRouteData2TopicPublishInfo`` and
``topicRouteData2TopicSubscribeInfo``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from engine.remoting.answers import json_object, member_object, member_objects

MASTER = 0
"""``brokerId`` of a master."""
READ, WRITE = 4, 2
"""Bits of a topic's permission."""


class MessageQueue(NamedTuple):
    """A queue of a topic on a broker; they sort as in Java."""

    topic: str
    broker: str
    queue_id: int

    def record(self) -> dict[str, Any]:
        """As RocketMQ writes it."""
        return {"brokerName": self.broker, "queueId": self.queue_id, "topic": self.topic}


def queue_order(queue: MessageQueue) -> tuple[bytes, bytes, int]:
    """What queues are sorted by (Java compares UTF-16 units)."""
    return java_order(queue.topic), java_order(queue.broker), queue.queue_id


def java_order(text: str) -> bytes:
    """What texts are sorted by where Java's ``String.compareTo`` sorts them."""
    return text.encode("utf-16-be", "surrogatepass")


@dataclass(frozen=True, slots=True)
class QueueData:
    """What one broker holds of a topic."""

    broker: str
    read: int
    write: int
    permission: int


@dataclass(frozen=True)
class TopicRoute:
    """A topic's brokers and queues. ``brokers`` has the addresses of each broker by broker id, 0 is its master."""

    topic: str
    queues: tuple[QueueData, ...] = ()
    brokers: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    order: str = ""
    """``orderTopicConf``: ``broker-a:4;broker-b:4``, which is what is sent to where it stands."""

    @cached_property
    def publish_queues(self) -> tuple[MessageQueue, ...]:
        """The queues that may be sent to: of brokers with a master and write permission, by broker name."""
        if self.order:
            return tuple(
                MessageQueue(self.topic, name, number)
                for part in self.order.split(";")
                for name, _, many in [part.partition(":")]
                if many.isdecimal()
                for number in range(int(many))
            )
        return tuple(
            MessageQueue(self.topic, one.broker, number)
            for one in sorted(self.queues, key=lambda one: java_order(one.broker))
            if one.permission & WRITE and MASTER in self.brokers.get(one.broker, {})
            for number in range(one.write)
        )

    @cached_property
    def subscribe_queues(self) -> tuple[MessageQueue, ...]:
        """The queues that are read: of all brokers with read permission, sorted as every client sorts them."""
        found = {
            MessageQueue(self.topic, one.broker, number)
            for one in self.queues
            if one.permission & READ
            for number in range(one.read)
        }
        return tuple(sorted(found, key=queue_order))

    def address(self, broker: str, broker_id: int = MASTER) -> str | None:
        """Where a broker is found: that id, else (for reading) any; None where the route has no such broker."""
        known = self.brokers.get(broker) or {}
        return known.get(broker_id) or (next(iter(known.values()), None) if broker_id != MASTER else None)

    def for_new_topic(self, topic: str, queues: int) -> TopicRoute:
        """The route of a topic that is not there yet, from that of the topic whose copy it will be: at most ``queues``
        queues a broker (docs/protocol/behaviour.md#topics).
        """
        few = tuple(
            QueueData(one.broker, min(queues, one.read), min(queues, one.write), one.permission) for one in self.queues
        )
        return TopicRoute(topic, few, self.brokers)


def read_route(topic: str, body: bytes) -> TopicRoute:
    """Read the body of GET_ROUTEINFO_BY_TOPIC's answer, in a block of :func:`engine.remoting.answers.reading`."""
    told = json_object(body)
    brokers = {}
    for row in member_objects(told, "brokerDatas"):
        addresses = {int(number): str(address) for number, address in member_object(row, "brokerAddrs").items()}
        brokers[str(row["brokerName"])] = dict(sorted(addresses.items()))
    queues = tuple(
        QueueData(
            str(row["brokerName"]),
            int(row.get("readQueueNums") or 0),
            int(row.get("writeQueueNums") or 0),
            int(row.get("perm") or 0),
        )
        for row in member_objects(told, "queueDatas")
    )
    return TopicRoute(topic, queues, brokers, str(told.get("orderTopicConf") or ""))
