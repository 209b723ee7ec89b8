"""Administration of a cluster from Python: create, list and delete topics, and report the lag of a group.

Java: ``DefaultMQAdminExt`` (docs/protocol/mqadmin.md).

>>> async with Admin("127.0.0.1:9876") as admin:
...     await admin.create_topic("Orders", queues=4)
...     print(sum(queue.lag for queue in await admin.lag("readers")))
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

from engine.client.errors import AnswerNotUnderstood, BrokerRefused, NoRoute, NotRunning, WrongMessage
from engine.client.events import EventStream
from engine.client.instance import FAILURES, ClientInstance
from engine.client.messages import check_group, check_topic
from engine.client.routes import MASTER, READ, WRITE, MessageQueue, queue_order
from engine.codec.json_dialect import ObjectKey, parse
from engine.remoting.answers import UnexpectedAnswer, json_object, member_object, reading
from engine.remoting.codes import RequestCode
from engine.remoting.frame import Command
from engine.sentences import sentence
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX, TEMPLATE_TOPIC, is_system_topic

QUEUES = 8
"""Default number of queues of a topic on each broker, as of ``mqadmin updateTopic``."""
MESSAGE_TYPES = ("NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "PRIORITY", "LITE")
"""Types of a topic's messages, an attribute of topics of 5.x."""
_TIMEOUT_S = 5.0
_ROUTE_TIMEOUT_S = 30.0
"""A name server knows a topic after the broker's next registration, at the latest."""
_ROUTE_RETRY_S = 0.1
_REPLY_SUFFIX = "_REPLY_TOPIC"


@dataclass(frozen=True, slots=True)
class QueueLag:
    """Progress of a group in one queue.

    ``committed`` is the offset that the group reads next, 0 if it committed none; ``end`` is the offset behind the last
    message; ``consumed_at`` is the store time (ms) of the last consumed message, 0 if the broker does not know it.
    """

    queue: MessageQueue
    committed: int
    end: int
    consumed_at: int

    @property
    def lag(self) -> int:
        """Messages that the group has not consumed."""
        return self.end - self.committed


@dataclass(frozen=True, slots=True)
class _Broker:
    name: str
    cluster: str
    master: str | None


class Admin:
    """Administrates the brokers that the name servers know: ``async with``, or :meth:`start` and :meth:`stop`.

    ``instance`` shares connections, account and TLS with other clients; without it the admin has connections of its
    own to ``namesrv``. All calls raise :class:`BrokerRefused`, :class:`NoRoute`, :class:`AnswerNotUnderstood`,
    ``OSError`` or ``TimeoutError``.
    """

    def __init__(self, namesrv: str = "", *, instance: ClientInstance | None = None) -> None:
        self._owns_instance = instance is None
        self.instance = instance or ClientInstance(namesrv)
        self._running = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def client_id(self) -> str:
        """The id under which brokers know this client."""
        return self.instance.client_id

    @property
    def events(self) -> EventStream:
        """Events of the client, as they happen."""
        return self.instance.events

    async def start(self) -> None:
        """Allow requests. Connections are made with the first ones."""
        self._running = True

    async def stop(self) -> None:
        """Close the connections, unless they are shared."""
        if self._running and self._owns_instance:
            await self.instance.kill()
        self._running = False

    # Topics

    async def create_topic(
        self,
        topic: str,
        queues: int = QUEUES,
        *,
        readable: bool = True,
        writable: bool = True,
        message_type: str = "",
        brokers: Collection[str] = (),
    ) -> None:
        """Create a topic with ``queues`` queues on each broker, or change it, and wait until name servers know it.

        ``brokers`` are names; none: all brokers. ``message_type`` is one of :data:`MESSAGE_TYPES`, for brokers of 5.x.
        """
        check_topic(topic)
        if queues < 1:
            raise WrongMessage(f"queues is {queues}, expected 1 or more")
        if message_type and message_type not in MESSAGE_TYPES:
            raise WrongMessage(f"message_type is {message_type!r}; known are {', '.join(MESSAGE_TYPES)}")
        fields = {
            "topic": topic,
            "defaultTopic": TEMPLATE_TOPIC,
            "readQueueNums": queues,
            "writeQueueNums": queues,
            "perm": (READ if readable else 0) | (WRITE if writable else 0),
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": False,
            "attributes": f"+message.type={message_type}" if message_type else None,
        }
        masters = await self._masters(brokers)
        for address in masters.values():
            await self.instance.call(address, RequestCode.UPDATE_AND_CREATE_TOPIC, fields, timeout_s=_TIMEOUT_S)
        end = time.monotonic() + _ROUTE_TIMEOUT_S
        while True:
            route = await self.instance.fresh_route(topic)
            if route is not None and masters.keys() <= route.brokers.keys():
                return
            if time.monotonic() > end:
                raise NoRoute(
                    sentence(
                        "the name servers do not know the topic {topic} of {brokers}",
                        topic=topic,
                        brokers=", ".join(masters),
                    )
                )
            await asyncio.sleep(_ROUTE_RETRY_S)

    async def topics(self, *, include_system: bool = False) -> list[str]:
        """Return the names of all topics.

        Topics of RocketMQ itself, and retry and dead-letter topics of groups are left out without ``include_system``.
        """
        answer = await self._ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        with reading(answer.code, "", AnswerNotUnderstood):
            listed = json_object(answer.body).get("topicList") or []
            names = sorted({str(name) for name in listed})
        if include_system:
            return names
        brokers = await self._brokers()
        own_names = {broker.name for broker in brokers} | {broker.cluster for broker in brokers}
        own_names |= {name + _REPLY_SUFFIX for name in own_names}
        return [
            name
            for name in names
            if not (name in own_names or is_system_topic(name) or name.startswith((RETRY_PREFIX, DLQ_PREFIX)))
        ]

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the readable queues of a topic; none if there is no such topic."""
        route = await self.instance.fresh_route(topic)
        return () if route is None else route.subscribe_queues

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic, with its messages, from all brokers and name servers.

        Deleting a topic that is not there is no error.
        """
        check_topic(topic)
        for address in (await self._masters()).values():
            await self.instance.call(
                address, RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic}, timeout_s=_TIMEOUT_S
            )
        for address in self.instance.name_servers:
            await self.instance.call(
                address, RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic}, timeout_s=_TIMEOUT_S
            )

    # Groups

    async def lag(self, group: str, topic: str = "") -> list[QueueLag]:
        """Return the progress of a group in each queue.

        These are the queues of ``topic``, or of all topics that the group subscribes to or has offsets of, its retry
        topic included. Broadcast consumers store no offsets on brokers.
        """
        check_group(group)
        rows: list[QueueLag] = []
        for address in (await self._masters()).values():
            fields = {"consumerGroup": group, "topic": topic or None}
            answer = await self.instance.call(address, RequestCode.GET_CONSUME_STATS, fields, timeout_s=_TIMEOUT_S)
            with reading(RequestCode.GET_CONSUME_STATS, address, AnswerNotUnderstood):
                table = member_object(json_object(answer.body), "offsetTable")
                rows += [_queue_lag(key, row) for key, row in table.items()]
        return sorted(rows, key=lambda row: queue_order(row.queue))

    # Brokers

    async def _masters(self, names: Collection[str] = ()) -> dict[str, str]:
        """Return the addresses of masters by broker name.

        Raises :class:`NoRoute` where a named one, or any, is missing.
        """
        masters = {broker.name: broker.master for broker in await self._brokers() if broker.master is not None}
        missing = sorted(set(names) - masters.keys())
        if missing or not masters:
            if not missing:
                raise NoRoute(sentence("the name servers know no master of any broker"))
            raise NoRoute(sentence("the name servers know no master of {brokers}", brokers=", ".join(missing)))
        return {name: address for name, address in sorted(masters.items()) if not names or name in names}

    async def _brokers(self) -> list[_Broker]:
        answer = await self._ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO)
        brokers = []
        with reading(RequestCode.GET_BROKER_CLUSTER_INFO, "", AnswerNotUnderstood):
            for name, row in (json_object(answer.body).get("brokerAddrTable") or {}).items():
                addresses = {int(broker_id): str(address) for broker_id, address in row["brokerAddrs"].items()}
                brokers.append(_Broker(str(name), str(row.get("cluster") or ""), addresses.get(MASTER)))
        return brokers

    async def _ask_name_server(self, code: int) -> Command:
        """Return the answer of the first name server that gives one."""
        if not self._running:
            raise NotRunning("the admin is not started, or has stopped")
        last_error: Exception = NoRoute(sentence("no name server is configured"))
        for address in self.instance.name_servers:
            try:
                return await self.instance.call(address, code, {}, timeout_s=_TIMEOUT_S)
            except BrokerRefused:
                raise
            except FAILURES as error:
                last_error = error
        raise last_error


def _queue_lag(key: Any, row: Mapping[Any, Any]) -> QueueLag:
    """Read one row of a table whose keys are queues: objects, or their text."""
    queue = key.value if isinstance(key, ObjectKey) else parse(str(key).encode()).value
    if not isinstance(queue, Mapping):
        raise UnexpectedAnswer(f"the key {key!r} is no queue")
    return QueueLag(
        MessageQueue(str(queue["topic"]), str(queue["brokerName"]), int(queue["queueId"])),
        max(int(row["consumerOffset"]), 0),
        int(row["brokerOffset"]),
        int(row.get("lastTimestamp") or 0),
    )
