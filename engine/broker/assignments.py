"""QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE: which queues a consumer reads, shared out by the broker, and whether it
pulls or pops (docs/protocol/pop.md#assignment). Java: ``QueryAssignmentProcessor``, ``MessageRequestModeManager``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from engine.broker.broker import Broker, Header, Processor
from engine.broker.clients import BROADCASTING, CLUSTERING
from engine.broker.json_bodies import as_number, as_text, read_object, write
from engine.broker.queue_locks import QueueName
from engine.broker.topics import RETRY
from engine.codec.config_tables import LMQ_PREFIX
from engine.remoting.codes import Answer, Refused, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to

PULL, POP = "PULL", "POP"
AVERAGE, BY_CIRCLE = "AVG", "AVG_BY_CIRCLE"
MODES = "messageRequestModeMap"
_MODELS = (BROADCASTING, CLUSTERING)


def query_assignment(broker: Broker, request: Command, _header: Header, connection: Connection) -> Command | None:
    """400: the queues of a topic that are a client's; nothing said where that cannot be known now."""
    told = read_object(request.body)
    parser = broker.store.rules.json_parser
    topic, group = as_text(told.get("topic"), parser), as_text(told.get("consumerGroup"), parser)
    if topic is None or group is None or told.get("messageModel") not in _MODELS:
        raise WrongRequest("expected topic, consumerGroup, and a messageModel that is BROADCASTING or CLUSTERING")

    async def answer() -> None:
        queues = await _queues_of(broker, topic)
        connection.send(answer_to(request, body=write(_assigned(broker, told, topic, group, queues))))

    task = asyncio.get_running_loop().create_task(answer())
    broker.tasks.add(task)
    task.add_done_callback(broker.tasks.discard)
    return None


async def _queues_of(broker: Broker, topic: str) -> list[QueueName] | None:
    """All queues of the topic that can be read, of every broker, in order; None where no name server knows it."""
    if topic.startswith(LMQ_PREFIX):
        return [QueueName(broker.config.broker_name, topic, 0)]
    found = await broker.route_of(topic)
    if found is None:
        return None
    return sorted(QueueName(name, topic, one) for name, count in found.items() for one in range(count))


def _assigned(
    broker: Broker, told: Mapping[str, Any], topic: str, group: str, queues: list[QueueName] | None
) -> dict[str, Any]:
    """The body of the answer: without a member where nothing is said."""
    mode = mode_of(broker, topic, group)
    mine = queues if told["messageModel"] == BROADCASTING or not broker.config.server_shares else None
    if mine is None and queues:
        mine = _shared_out(broker, told, group, queues, mode)
    if mine is None:
        return {}
    rows = [
        {
            "messageQueue": {"brokerName": one.broker_name, "queueId": one.queue_id, "topic": one.topic},
            "mode": mode["mode"],
        }
        for one in dict.fromkeys(mine)
    ]
    return {"messageQueueAssignments": rows}


def _shared_out(
    broker: Broker, told: Mapping[str, Any], group: str, queues: list[QueueName], mode: Mapping[str, Any]
) -> list[QueueName] | None:
    consuming = broker.clients.consumers.get(group)
    client, strategy = str(told.get("clientId") or ""), told.get("strategyName")
    if consuming is None or not client or strategy not in {AVERAGE, BY_CIRCLE}:
        return None
    clients = sorted(consuming.client_ids)
    by_circle = strategy == BY_CIRCLE
    if mode["mode"] != POP:
        return share_of(client, queues, clients, by_circle=by_circle)
    return popped_by(client, queues, clients, int(mode["popShareQueueNum"]), by_circle=by_circle)


def share_of(
    client: str, queues: Sequence[QueueName], clients: Sequence[str], *, by_circle: bool = False
) -> list[QueueName]:
    """A client's queues where each queue has one client (docs/protocol/clients.md#rebalance): runs of them, or
    every so manieth.
    """
    if client not in clients:
        return []
    index, (each, more) = clients.index(client), divmod(len(queues), len(clients))
    if by_circle:
        return list(queues[index :: len(clients)])
    start = index * each + min(index, more)
    return list(queues[start : start + each + (index < more)])


def popped_by(
    client: str, queues: Sequence[QueueName], clients: Sequence[str], share: int, *, by_circle: bool = False
) -> list[QueueName]:
    """A client's queues where it pops: every queue of each broker (queue id −1), or its own and those of the next
    ``share`` clients; of few queues one each.
    """
    if share <= 0 or share >= len(clients) - 1:
        return [QueueName(one.broker_name, one.topic, -1) for one in queues]
    if client not in clients:
        return []
    index = clients.index(client)
    if len(clients) > len(queues):
        return [queues[index % len(queues)]]
    found = []
    for step in range(share + 1):
        found += share_of(clients[(index + step) % len(clients)], queues, clients, by_circle=by_circle)
    return found


def mode_of(broker: Broker, topic: str, group: str) -> dict[str, Any]:
    """Whether a group pulls or pops a topic, and how queues are shared: as it was set, or as usual."""
    groups = broker.request_modes.value.get(MODES)
    row = groups.get(topic, {}).get(group) if isinstance(groups, dict) else None
    if isinstance(row, dict):
        share = row.get("popShareQueueNum")
        return {"mode": str(row.get("mode") or PULL), "popShareQueueNum": share if isinstance(share, int) else 0}
    if topic.startswith(RETRY):
        return {"mode": PULL, "popShareQueueNum": 0}
    return {"mode": broker.config.request_mode, "popShareQueueNum": broker.config.pop_share_queues}


def set_mode(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """401: a group pulls or pops a topic from now on; kept in ``messageRequestMode.json``."""
    told = read_object(request.body)
    parser, mode = broker.store.rules.json_parser, told.get("mode")
    topic, group = as_text(told.get("topic"), parser), as_text(told.get("consumerGroup"), parser)
    if topic is None or group is None or not (mode is None or isinstance(mode, str)):
        raise WrongRequest("expected topic, consumerGroup, and a mode that is PULL or POP")
    mode = mode if mode in (PULL, POP) else PULL  # a word that is no mode is none to fastjson
    if topic.startswith(RETRY):
        raise Refused(Answer.NO_PERMISSION, "retry topic is not allowed to set mode")
    if broker.topics.get(topic) is None:
        raise Refused(Answer.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    if broker.topics.group(group) is None:
        raise Refused(Answer.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist")
    share = as_number(told.get("popShareQueueNum"), "popShareQueueNum", 0, parser)
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


ANSWERS: dict[int, Processor] = {400: query_assignment, 401: set_mode}
