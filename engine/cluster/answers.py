"""Bodies of administrators' answers, as values of a cluster (docs/protocol/name-server.md#cluster,
docs/protocol/broker.md#admin; RocketMQ's JSON).

Pure. What has not its form is left out; a body that is no object raises :class:`UnexpectedAnswer`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from engine.cluster.state import BrokerPart, Client, Group, Queue, QueueEnds
from engine.codec.config_tables import consumer_offsets, subscription_groups, topics
from engine.codec.json_dialect import ObjectKey
from engine.remoting.answers import json_object


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((str(key), one) for key, one in value.items())


def _number(value: Any, usual: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else usual


def brokers(body: bytes) -> list[BrokerPart]:
    """GET_BROKER_CLUSTER_INFO (106): each address of each broker, of which nothing is known yet."""
    found = []
    for name, row in _members(json_object(body).get("brokerAddrTable")):
        if isinstance(row, Mapping):
            for broker_id, address in _members(row.get("brokerAddrs")):
                if broker_id.isdecimal():
                    found.append(BrokerPart(name, str(row.get("cluster") or ""), int(broker_id), str(address)))
    return sorted(found, key=lambda one: (one.name, one.broker_id))


def runtime(body: bytes) -> dict[str, str]:
    """GET_BROKER_RUNTIME_INFO (28): figures as texts."""
    return {name: str(value) for name, value in _members(json_object(body).get("table"))}


def held(figures: Mapping[str, str], broker: str) -> dict[Queue, dict[str, int]] | None:
    """Of :func:`runtime`: pulls that are held, by queue and group; None where the broker does not tell."""
    rows = _read(figures.get("heldPulls"))
    if not isinstance(rows, list):
        return None
    found: dict[Queue, dict[str, int]] = {}
    for row in rows:
        match row:
            case [str(topic), int(queue_id), str(group), int(count)]:
                found.setdefault(Queue(topic, broker, queue_id), {})[group] = count
    return found


def topic_names(body: bytes) -> list[str]:
    """GET_ALL_TOPIC_CONFIG (21): the topics that a broker declares."""
    return [one.name for one in topics(json_object(body)).rows]


def group_names(body: bytes) -> list[str]:
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201): the groups that a broker declares."""
    return [one.name for one in subscription_groups(json_object(body)).rows]


def group_offsets(body: bytes, broker: str) -> dict[str, dict[Queue, int]]:
    """GET_ALL_CONSUMER_OFFSET (43): what each group reads next."""
    found: dict[str, dict[Queue, int]] = {}
    for row in consumer_offsets(json_object(body)).rows:
        if row.mode == "cluster":
            table = found.setdefault(row.group, {})
            table.update({Queue(row.topic, broker, queue_id): at for queue_id, at in row.offsets.items()})
    return found


def queue_ends(body: bytes) -> dict[Queue, QueueEnds]:
    """GET_TOPIC_STATS_INFO (202): the ends of a topic's queues."""
    found = {}
    for key, row in _queues(json_object(body).get("offsetTable")):
        found[key] = QueueEnds(
            _number(row.get("minOffset")), _number(row.get("maxOffset")), _number(row.get("lastUpdateTimestamp"))
        )
    return found


def consuming(body: bytes, name: str) -> Group:
    """GET_CONSUMER_CONNECTION_LIST (203): a group's clients and subscriptions."""
    told = json_object(body)
    subscriptions = {
        topic: str(row.get("subString") or "")
        for topic, row in _members(told.get("subscriptionTable"))
        if isinstance(row, Mapping)
    }
    return Group(
        name,
        str(told.get("consumeType") or ""),
        str(told.get("messageModel") or ""),
        str(told.get("consumeFromWhere") or ""),
        _clients(told.get("connectionSet"), "clientAddr"),
        subscriptions,
    )


def producers(body: bytes) -> dict[str, tuple[Client, ...]]:
    """GET_ALL_PRODUCER_INFO (328): who sends, by group."""
    return {name: _clients(rows, "remoteIP") for name, rows in _members(json_object(body).get("data"))}


def owned(body: bytes) -> frozenset[Queue]:
    """GET_CONSUMER_RUNNING_INFO (307): the queues that a consumer holds, those that it gives away just now left out."""
    return frozenset(queue for queue, row in _queues(json_object(body).get("mqTable")) if row.get("droped") is not True)


def _queues(table: Any) -> Iterator[tuple[Queue, Mapping[str, Any]]]:
    """Rows of a table whose keys are queues: objects, or their text."""
    for key, row in table.items() if isinstance(table, Mapping) else ():
        queue = key.value if isinstance(key, ObjectKey) else _read(key)
        if isinstance(queue, Mapping) and isinstance(row, Mapping):
            yield (
                Queue(str(queue.get("topic")), str(queue.get("brokerName")), _number(queue.get("queueId"), -1)),
                {str(name): value for name, value in row.items()},
            )


def _read(key: Any) -> Any:
    try:
        return json.loads(key)
    except (TypeError, ValueError, RecursionError):
        return None


def _clients(rows: Any, address: str) -> tuple[Client, ...]:
    found = [
        Client(
            str(row.get("clientId") or ""),
            str(row.get(address) or "").lstrip("/"),
            str(row.get("language") or ""),
            _number(row.get("version")),
        )
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping)
    ]
    return tuple(sorted(found, key=lambda one: (one.client_id, one.address)))
