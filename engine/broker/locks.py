"""LOCK_BATCH_MQ, UNLOCK_BATCH_MQ: queues that a client of a group reads alone (docs/protocol/broker.md#locks).

Java: ``AdminBrokerProcessor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.broker.broker import Broker, Header, Processor
from engine.broker.json_bodies import read_object, write
from engine.broker.queue_locks import QueueName
from engine.remoting.codes import WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to


def lock(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """41: of the queues that a client wants, those that it holds now."""
    granted = broker.locks.lock(*_wanted(request))
    rows = [{"brokerName": one.broker_name, "queueId": one.queue_id, "topic": one.topic} for one in granted]
    return answer_to(request, body=write({"lockOKMQSet": rows}))


def unlock(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """42: the client holds them no more."""
    broker.locks.unlock(*_wanted(request))
    return answer_to(request)


def _wanted(request: Command) -> tuple[str, str, list[QueueName]]:
    told = read_object(request.body)
    queues = told.get("mqSet", ())
    if not isinstance(told.get("consumerGroup"), str):
        raise WrongRequest("expected a consumerGroup")
    if not isinstance(queues, list | tuple) or not all(isinstance(one, Mapping) for one in queues):
        raise WrongRequest("mqSet is no list of queues")
    return str(told["consumerGroup"]), str(told.get("clientId") or ""), [_queue(one) for one in queues]


def _queue(told: Mapping[Any, Any]) -> QueueName:
    number = told.get("queueId")
    return QueueName(
        str(told.get("brokerName") or ""), str(told.get("topic") or ""), number if isinstance(number, int) else 0
    )


ANSWERS: dict[int, Processor] = {41: lock, 42: unlock}
