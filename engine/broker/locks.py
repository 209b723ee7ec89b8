"""LOCK_BATCH_MQ, UNLOCK_BATCH_MQ: locks of queues for one client of a group (docs/protocol/broker.md#locks).

Java: ``AdminBrokerProcessor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.broker.broker import Broker, Header, Processor
from engine.broker.json_bodies import as_number, as_objects, as_text, read_object, write
from engine.broker.queue_locks import QueueName
from engine.releases import JsonParser
from engine.remoting.codes import RequestCode, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to


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


ANSWERS: dict[int, Processor] = {RequestCode.LOCK_BATCH_MQ: lock, RequestCode.UNLOCK_BATCH_MQ: unlock}
