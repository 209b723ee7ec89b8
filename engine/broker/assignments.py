"""Queues that the broker assigns to consumers, and the request mode of groups: pull or pop
(docs/protocol/pop.md#assignment).

Java: ``QueryAssignmentProcessor``, ``MessageRequestModeManager``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.broker.clients import BROADCASTING, CLUSTERING
from engine.broker.json_bodies import as_number, as_text, read_object, write
from engine.broker.queue_locks import QueueName
from engine.remoting.codes import Refused, RequestCode, ResponseCode, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.system_names import LMQ_PREFIX, RETRY_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


PULL, POP = "PULL", "POP"
AVERAGE, BY_CIRCLE = "AVG", "AVG_BY_CIRCLE"
MODES = "messageRequestModeMap"
_MODELS = (BROADCASTING, CLUSTERING)


def query_assignment(broker: Broker, request: Command, _header: Header, connection: Connection) -> Command | None:
    """QUERY_ASSIGNMENT: the queues of a topic that are assigned to a client; an empty answer if they are unknown."""
    body = read_object(request.body)
    parser = broker.store.rules.json_parser
    topic, group = as_text(body.get("topic"), parser), as_text(body.get("consumerGroup"), parser)
    if topic is None or group is None or body.get("messageModel") not in _MODELS:
        raise WrongRequest("expected topic, consumerGroup, and a messageModel that is BROADCASTING or CLUSTERING")

    async def answer() -> None:
        queues = await _queues_of(broker, topic)
        connection.send(answer_to(request, body=write(_assigned(broker, body, topic, group, queues))))

    task = asyncio.get_running_loop().create_task(answer())
    broker.tasks.add(task)
    task.add_done_callback(broker.tasks.discard)
    return None


async def _queues_of(broker: Broker, topic: str) -> list[QueueName] | None:
    """Return all readable queues of the topic on every broker, in order; None if no name server knows it."""
    if topic.startswith(LMQ_PREFIX):
        return [QueueName(broker.config.broker_name, topic, 0)]
    queue_counts = await broker.route_of(topic)
    if queue_counts is None:
        return None
    return sorted(QueueName(name, topic, queue_id) for name, count in queue_counts.items() for queue_id in range(count))


def _assigned(
    broker: Broker, body: Mapping[str, Any], topic: str, group: str, queues: list[QueueName] | None
) -> dict[str, Any]:
    """Return the body of the answer; empty if the queues are unknown."""
    mode = request_mode_of(broker, topic, group)
    assigned = queues if body["messageModel"] == BROADCASTING or not broker.config.server_shares else None
    if assigned is None and queues:
        assigned = _allocate(broker, body, group, queues, mode)
    if assigned is None:
        return {}
    rows = [
        {
            "messageQueue": {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic},
            "mode": mode["mode"],
        }
        for queue in dict.fromkeys(assigned)
    ]
    return {"messageQueueAssignments": rows}


def _allocate(
    broker: Broker, body: Mapping[str, Any], group: str, queues: list[QueueName], mode: Mapping[str, Any]
) -> list[QueueName] | None:
    consumer_group = broker.clients.consumers.get(group)
    client, strategy = str(body.get("clientId") or ""), body.get("strategyName")
    if consumer_group is None or not client or strategy not in {AVERAGE, BY_CIRCLE}:
        return None
    clients = sorted(consumer_group.client_ids)
    by_circle = strategy == BY_CIRCLE
    if mode["mode"] != POP:
        return allocated_queues(client, queues, clients, by_circle=by_circle)
    return pop_queues_of(client, queues, clients, int(mode["popShareQueueNum"]), by_circle=by_circle)


def allocated_queues(
    client: str, queues: Sequence[QueueName], clients: Sequence[str], *, by_circle: bool = False
) -> list[QueueName]:
    """Return a client's queues if each queue has one client: consecutive queues, or with ``by_circle`` every n-th
    (docs/protocol/clients.md#rebalance).
    """
    if client not in clients:
        return []
    index, (per_client, remainder) = clients.index(client), divmod(len(queues), len(clients))
    if by_circle:
        return list(queues[index :: len(clients)])
    start = index * per_client + min(index, remainder)
    return list(queues[start : start + per_client + (index < remainder)])


def pop_queues_of(
    client: str, queues: Sequence[QueueName], clients: Sequence[str], share: int, *, by_circle: bool = False
) -> list[QueueName]:
    """Return a client's queues if its group pops: all queues of each broker (queue id −1), or its own and those of
    the next ``share`` clients; one queue for each client if there are fewer queues than clients.
    """
    if share <= 0 or share >= len(clients) - 1:
        return [QueueName(queue.broker_name, queue.topic, -1) for queue in queues]
    if client not in clients:
        return []
    index = clients.index(client)
    if len(clients) > len(queues):
        return [queues[index % len(queues)]]
    assigned = []
    for step in range(share + 1):
        assigned += allocated_queues(clients[(index + step) % len(clients)], queues, clients, by_circle=by_circle)
    return assigned


def request_mode_of(broker: Broker, topic: str, group: str) -> dict[str, Any]:
    """Return a group's request mode for a topic, PULL or POP, and the number of clients that share a queue: as set by
    an administrator, else the default.
    """
    groups = broker.request_modes.value.get(MODES)
    row = groups.get(topic, {}).get(group) if isinstance(groups, dict) else None
    if isinstance(row, dict):
        share = row.get("popShareQueueNum")
        return {"mode": str(row.get("mode") or PULL), "popShareQueueNum": share if isinstance(share, int) else 0}
    if topic.startswith(RETRY_PREFIX):
        return {"mode": PULL, "popShareQueueNum": 0}
    return {"mode": broker.config.request_mode, "popShareQueueNum": broker.config.pop_share_queues}


def set_mode(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """SET_MESSAGE_REQUEST_MODE: let a group pull or pop a topic; stored in ``messageRequestMode.json``."""
    body = read_object(request.body)
    parser, mode = broker.store.rules.json_parser, body.get("mode")
    topic, group = as_text(body.get("topic"), parser), as_text(body.get("consumerGroup"), parser)
    if topic is None or group is None or not (mode is None or isinstance(mode, str)):
        raise WrongRequest("expected topic, consumerGroup, and a mode that is PULL or POP")
    mode = mode if mode in (PULL, POP) else PULL  # fastjson reads an unknown mode as none
    if topic.startswith(RETRY_PREFIX):
        raise Refused(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
    if broker.topics.get(topic) is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    if broker.topics.group(group) is None:
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist")
    share = as_number(body.get("popShareQueueNum"), "popShareQueueNum", 0, parser)
    row = {
        "consumerGroup": group,
        "mode": mode,
        "popShareQueueNum": share,
        "topic": topic,
    }
    table = broker.request_modes
    groups = table.value.setdefault(MODES, {})
    groups.setdefault(topic, {})[group] = row
    table.write(*table.taken())
    return answer_to(request)


HANDLERS: dict[int, Processor] = {
    RequestCode.QUERY_ASSIGNMENT: query_assignment,
    RequestCode.SET_MESSAGE_REQUEST_MODE: set_mode,
}
