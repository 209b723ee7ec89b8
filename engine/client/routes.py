"""Routes of topics: a name server's answer as a value (docs/protocol/name-server.md#route,
docs/protocol/clients.md#queue-choice, #rebalance). Pure.

Java: ``TopicRouteData``, ``TopicPublishInfo``, ``MQClientInstance.topicRouteData2TopicPublishInfo`` and
``topicRouteData2TopicSubscribeInfo``; of a static topic ``ClientMetadata.topicRouteData2EndpointsForStaticTopic``.
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
LOGICAL_BROKER = "__syslo__"
"""Beginning of the broker name in the logical queues of a static topic; the mapping's scope follows."""
GLOBAL_SCOPE = "__global__"
NO_BROKER = "__syslo__none__"
"""Broker of a logical queue that no broker leads."""


class MessageQueue(NamedTuple):
    """A queue of a topic on a broker; sorted as in Java."""

    topic: str
    broker: str
    queue_id: int

    def record(self) -> dict[str, Any]:
        """Return the queue as RocketMQ writes it."""
        return {"brokerName": self.broker, "queueId": self.queue_id, "topic": self.topic}


def queue_order(queue: MessageQueue) -> tuple[bytes, bytes, int]:
    """Return the sort key of a queue (Java compares UTF-16 units)."""
    return java_order(queue.topic), java_order(queue.broker), queue.queue_id


def java_order(text: str) -> bytes:
    """Return the sort key of a text, as Java's ``String.compareTo`` orders texts."""
    return text.encode("utf-16-be", "surrogatepass")


@dataclass(frozen=True, slots=True)
class QueueData:
    """A topic's queues on one broker."""

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
    """``orderTopicConf``: ``broker-a:4;broker-b:4``; if set, only these queues are sent to."""
    leaders: Mapping[MessageQueue, str] = field(default_factory=dict)
    """The logical queues of a static topic, and the broker that leads each."""

    @cached_property
    def publish_queues(self) -> tuple[MessageQueue, ...]:
        """The queues that may be sent to: of brokers with a master and write permission, by broker name; of a static
        topic its logical queues.
        """
        if self.order:
            return tuple(
                MessageQueue(self.topic, name, number)
                for part in self.order.split(";")
                for name, _, count in [part.partition(":")]
                if count.isdecimal()
                for number in range(int(count))
            )
        if self.leaders:
            return tuple(sorted(self.leaders, key=lambda queue: queue.queue_id))
        return tuple(
            MessageQueue(self.topic, queue_data.broker, number)
            for queue_data in sorted(self.queues, key=lambda queue_data: java_order(queue_data.broker))
            if queue_data.permission & WRITE and MASTER in self.brokers.get(queue_data.broker, {})
            for number in range(queue_data.write)
        )

    @cached_property
    def subscribe_queues(self) -> tuple[MessageQueue, ...]:
        """The queues that are read: of all brokers with read permission, sorted as every client sorts them; of a static
        topic its logical queues.
        """
        queues = set(self.leaders) or {
            MessageQueue(self.topic, queue_data.broker, number)
            for queue_data in self.queues
            if queue_data.permission & READ
            for number in range(queue_data.read)
        }
        return tuple(sorted(queues, key=queue_order))

    def address(self, broker: str, broker_id: int = MASTER) -> str | None:
        """Return a broker's address: of that id, else (for reading) any; None if the route has no such broker."""
        addresses = self.brokers.get(broker) or {}
        return addresses.get(broker_id) or (next(iter(addresses.values()), None) if broker_id != MASTER else None)

    def for_new_topic(self, topic: str, queues: int) -> TopicRoute:
        """Return the route of a topic that is not there yet, from that of the topic whose copy it will be: at most
        ``queues`` queues a broker (docs/protocol/behaviour.md#topics).
        """
        new_queues = tuple(
            QueueData(
                queue_data.broker, min(queues, queue_data.read), min(queues, queue_data.write), queue_data.permission
            )
            for queue_data in self.queues
        )
        return TopicRoute(topic, new_queues, self.brokers)


def _read_leaders(topic: str, mappings: Mapping[str, Any]) -> dict[MessageQueue, str]:
    """Return the logical queues of a static topic and the broker that leads each: of several that say so the one with
    the newest mapping.
    """
    rows = [row for name in mappings if (row := member_object(mappings, name)).get("scope")]
    rows.sort(key=lambda row: -int(row.get("epoch") or 0))
    leaders: dict[MessageQueue, str] = {}
    for row in rows:
        scope = str(row["scope"])
        broker = LOGICAL_BROKER + (scope.removeprefix("__") if scope == GLOBAL_SCOPE else scope)
        for number in range(int(row.get("totalQueues") or 0)):
            leaders.setdefault(MessageQueue(topic, broker, number), NO_BROKER)
        for number in map(int, member_object(row, "currIdMap")):
            queue = MessageQueue(topic, broker, number)
            if leaders.get(queue, NO_BROKER) == NO_BROKER:
                leaders[queue] = str(row["bname"])
    return leaders


def read_route(topic: str, body: bytes) -> TopicRoute:
    """Read the body of GET_ROUTEINFO_BY_TOPIC's answer, in a block of :func:`engine.remoting.answers.reading`."""
    record = json_object(body)
    brokers = {}
    for row in member_objects(record, "brokerDatas"):
        addresses = {int(number): str(address) for number, address in member_object(row, "brokerAddrs").items()}
        brokers[str(row["brokerName"])] = dict(sorted(addresses.items()))
    queues = tuple(
        QueueData(
            str(row["brokerName"]),
            int(row.get("readQueueNums") or 0),
            int(row.get("writeQueueNums") or 0),
            int(row.get("perm") or 0),
        )
        for row in member_objects(record, "queueDatas")
    )
    has_mappings = bool(record.get("topicQueueMappingByBroker"))
    leaders = _read_leaders(topic, member_object(record, "topicQueueMappingByBroker")) if has_mappings else {}
    return TopicRoute(topic, queues, brokers, str(record.get("orderTopicConf") or ""), leaders)
