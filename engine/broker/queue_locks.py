"""Locks of queues for orderly consumption by one client of a group, and the requests LOCK_BATCH_MQ and UNLOCK_BATCH_MQ
(docs/protocol/broker.md#locks, docs/protocol/behaviour.md#locks).

Java: ``RebalanceLockManager``; the requests: ``AdminBrokerProcessor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.broker.json_bodies import as_number, as_objects, as_text, read_object, write
from engine.callbacks import Clock
from engine.releases import JsonParser
from engine.remoting.codes import RequestCode, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


LOCK_DURATION_MS = 60_000


class QueueName(NamedTuple):
    """A queue as clients name it."""

    broker_name: str
    topic: str
    queue_id: int


@dataclass(slots=True)
class _Lock:
    client_id: str
    locked_ms: int


class QueueLocks:
    """Locks of queues by group: the client that holds each queue; in memory only."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._locks: dict[str, dict[QueueName, _Lock]] = {}

    def lock(self, group: str, client_id: str, queues: Iterable[QueueName]) -> list[QueueName]:
        """Lock ``queues`` for a client. Return those that it holds now: free ones, its own, and those whose lock
        expired.
        """
        now, locks = self._now(), self._locks.setdefault(group, {})
        granted = []
        for queue in queues:
            lock = locks.get(queue)
            if lock is None or lock.client_id == client_id or now - lock.locked_ms > LOCK_DURATION_MS:
                locks[queue] = _Lock(client_id, now)
                granted.append(queue)
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[QueueName]) -> None:
        """Release the client's locks; those of other clients stay."""
        locks = self._locks.get(group, {})
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]

    def is_held(self, group: str) -> bool:
        """Return True if any client of the group holds the queue: its retries go to the dead letters then (5.x)."""
        now = self._now()
        return any(now - lock.locked_ms <= LOCK_DURATION_MS for lock in self._locks.get(group, {}).values())


def lock(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """LOCK_BATCH_MQ: lock queues for a client, and return those that it holds now."""
    granted = broker.locks.lock(*_wanted(broker, request))
    rows = [{"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic} for queue in granted]
    return answer_to(request, body=write({"lockOKMQSet": rows}))


def unlock(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """UNLOCK_BATCH_MQ: release the client's locks."""
    broker.locks.unlock(*_wanted(broker, request))
    return answer_to(request)


def _wanted(broker: Broker, request: Command) -> tuple[str, str, list[QueueName]]:
    """Return group, client and queues of a request. Without a queue to lock RocketMQ never checks the group."""
    body, parser = read_object(request.body), broker.store.rules.json_parser
    queues = [_queue(row, parser) for row in as_objects(body.get("mqSet", []), "mqSet")]
    group = as_text(body.get("consumerGroup"), parser)
    if group is None and (queues or request.code == RequestCode.UNLOCK_BATCH_MQ):
        raise WrongRequest("expected a consumerGroup")
    return group or "", as_text(body.get("clientId"), parser) or "", queues


def _queue(row: Mapping[Any, Any], parser: JsonParser) -> QueueName:
    return QueueName(
        as_text(row.get("brokerName"), parser) or "",
        as_text(row.get("topic"), parser) or "",
        as_number(row.get("queueId"), "queueId", 0, parser),
    )


HANDLERS: dict[int, Processor] = {
    RequestCode.LOCK_BATCH_MQ: lock,
    RequestCode.UNLOCK_BATCH_MQ: unlock,
}
