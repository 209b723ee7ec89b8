"""Parse the bodies of answers to administration requests (docs/protocol/name-server.md#cluster,
docs/protocol/broker.md#admin; RocketMQ's JSON).

Pure. Members of an unexpected form are left out; a body that is no object raises :class:`UnexpectedAnswer`.
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
        yield from ((str(key), member) for key, member in value.items())


def _number(value: Any, default: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def brokers(body: bytes) -> list[BrokerPart]:
    """GET_BROKER_CLUSTER_INFO (106): each address of each broker; all other fields are filled later."""
    parts = []
    for name, row in _members(json_object(body).get("brokerAddrTable")):
        if isinstance(row, Mapping):
            for broker_id, address in _members(row.get("brokerAddrs")):
                if broker_id.isdecimal():
                    parts.append(BrokerPart(name, str(row.get("cluster") or ""), int(broker_id), str(address)))
    return sorted(parts, key=lambda part: (part.name, part.broker_id))


def runtime(body: bytes) -> dict[str, str]:
    """GET_BROKER_RUNTIME_INFO (28): figures as text."""
    return {name: str(value) for name, value in _members(json_object(body).get("table"))}


def held_pulls(figures: Mapping[str, str], broker: str) -> dict[Queue, dict[str, int]] | None:
    """Held pulls in the result of :func:`runtime`, by queue and group; None if the broker does not report them."""
    rows = _parse_json(figures.get("heldPulls"))
    if not isinstance(rows, list):
        return None
    pulls: dict[Queue, dict[str, int]] = {}
    for row in rows:
        match row:
            case [str(topic), int(queue_id), str(group), int(count)]:
                pulls.setdefault(Queue(topic, broker, queue_id), {})[group] = count
    return pulls


def topic_names(body: bytes) -> list[str]:
    """GET_ALL_TOPIC_CONFIG (21): the topics that a broker declares."""
    return [topic.name for topic in topics(json_object(body)).rows]


def group_names(body: bytes) -> list[str]:
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201): the groups that a broker declares."""
    return [group.name for group in subscription_groups(json_object(body)).rows]


def group_offsets(body: bytes, broker: str) -> dict[str, dict[Queue, int]]:
    """GET_ALL_CONSUMER_OFFSET (43): the next offset of each group in each queue."""
    offsets_by_group: dict[str, dict[Queue, int]] = {}
    for row in consumer_offsets(json_object(body)).rows:
        if row.mode == "cluster":
            table = offsets_by_group.setdefault(row.group, {})
            table.update({Queue(row.topic, broker, queue_id): offset for queue_id, offset in row.offsets.items()})
    return offsets_by_group


def queue_ends(body: bytes) -> dict[Queue, QueueEnds]:
    """GET_TOPIC_STATS_INFO (202): the ends of a topic's queues."""
    ends = {}
    for key, row in _queues(json_object(body).get("offsetTable")):
        ends[key] = QueueEnds(
            _number(row.get("minOffset")), _number(row.get("maxOffset")), _number(row.get("lastUpdateTimestamp"))
        )
    return ends


def consumer_group(body: bytes, name: str) -> Group:
    """GET_CONSUMER_CONNECTION_LIST (203): a group's clients and subscriptions."""
    document = json_object(body)
    subscriptions = {
        topic: str(row.get("subString") or "")
        for topic, row in _members(document.get("subscriptionTable"))
        if isinstance(row, Mapping)
    }
    return Group(
        name,
        str(document.get("consumeType") or ""),
        str(document.get("messageModel") or ""),
        str(document.get("consumeFromWhere") or ""),
        _clients(document.get("connectionSet"), "clientAddr"),
        subscriptions,
    )


def producers(body: bytes) -> dict[str, tuple[Client, ...]]:
    """GET_ALL_PRODUCER_INFO (328): producers by group."""
    return {name: _clients(rows, "remoteIP") for name, rows in _members(json_object(body).get("data"))}


def owned_queues(body: bytes) -> frozenset[Queue]:
    """GET_CONSUMER_RUNNING_INFO (307): the queues that a consumer owns, without those that it is releasing."""
    return frozenset(queue for queue, row in _queues(json_object(body).get("mqTable")) if row.get("droped") is not True)


def _queues(table: Any) -> Iterator[tuple[Queue, Mapping[str, Any]]]:
    """Yield the rows of a table whose keys are queues, as objects or as JSON text."""
    for key, row in table.items() if isinstance(table, Mapping) else ():
        queue = key.value if isinstance(key, ObjectKey) else _parse_json(key)
        if isinstance(queue, Mapping) and isinstance(row, Mapping):
            yield (
                Queue(str(queue.get("topic")), str(queue.get("brokerName")), _number(queue.get("queueId"), -1)),
                {str(name): value for name, value in row.items()},
            )


def _parse_json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _clients(rows: Any, address: str) -> tuple[Client, ...]:
    clients = [
        Client(
            str(row.get("clientId") or ""),
            str(row.get(address) or "").lstrip("/"),
            str(row.get("language") or ""),
            _number(row.get("version")),
        )
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping)
    ]
    return tuple(sorted(clients, key=lambda client: (client.client_id, client.address)))
