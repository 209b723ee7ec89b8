"""What a consumer is asked through its broker: how it runs, to consume one message now, where it reads
(docs/protocol/broker.md#calls-to-consumers).

Java: ``AdminBrokerProcessor.callConsumer``, ``consumeMessageDirectly``, ``Broker2Client``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from engine.broker.broker import Broker, Header, Processor
from engine.broker.clients import ConsumerGroup
from engine.broker.json_bodies import write
from engine.codec.json_dialect import parse
from engine.codec.message import parse_offset_message_id
from engine.remoting.codes import Answer, Refused
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to

GET_CONSUMER_STATUS_FROM_CLIENT = 221
PATIENCE, STATUS_PATIENCE = 10.0, 5.0
"""Seconds that a consumer is waited for; of each consumer that is asked where it reads."""
_FIRST_CALLED, _FIRST_WITH_STATUS = 63, 61
"""Versions of clients that can be asked (3.1.8, 3.0.7)."""


def running_info(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """307: what a consumer tells of itself: settings, queues that it owns, rates."""
    _pass_on(broker, request, header, connection, dict(request.fields), bytes(request.body))
    return None


def consume_directly(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """309: a consumer gets one message by its offset id, whatever it has consumed, and tells what came of it."""
    place = parse_offset_message_id(str(header["msgId"] or ""))
    if place is None:
        raise Refused(Answer.SYSTEM_ERROR, f"no message id: {header['msgId']}")
    with broker.store.lend_message_by_offset(place[1]) as found:
        body = bytes(found.messages[0]) if found.messages else b""
    fields = {**request.fields, "brokerName": broker.config.broker_name}
    _pass_on(broker, request, header, connection, fields, body)
    return None


def consumer_status(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """223: the queue offsets at which a group's members read a topic, by client."""
    name = str(header["group"])
    group = broker.clients.consumers.get(name)
    if group is None:
        raise Refused(Answer.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{name}]")
    _answer_later(broker, request, connection, _statuses(request, header, group))
    return None


def _pass_on(
    broker: Broker, request: Command, header: Header, connection: Connection, fields: dict[str, Any], body: bytes
) -> None:
    """Ask the consumer that the header names. Raises :class:`Refused` where it is not there, or too old."""
    name, client_id = str(header["consumerGroup"]), "null" if header["clientId"] is None else str(header["clientId"])
    group = broker.clients.consumers.get(name)
    members = [] if group is None else list(group.members.items())
    found = next(((one, member) for one, member in members if member.client_id == client_id), None)
    if found is None:
        raise Refused(Answer.SYSTEM_ERROR, f"The Consumer <{name}> <{client_id}> not online")
    asked, member = found
    if member.version < _FIRST_CALLED:
        words = f"The Consumer <{client_id}> Version <{member.version}> too low to finish"
        raise Refused(Answer.SYSTEM_ERROR, f"{words}, please upgrade it to V3_1_8_SNAPSHOT")
    call = _call(request, Command(request.code, fields, body=body), asked, f"<{name}> <{client_id}>")
    _answer_later(broker, request, connection, call)


async def _call(request: Command, call: Command, asked: Connection, who: str) -> Command:
    try:
        told = await asked.ask(call, PATIENCE)
    except TimeoutError:
        return answer_to(request, Answer.CONSUME_MSG_TIMEOUT, remark=f"consumer {who} Timeout: {PATIENCE:.0f} s")
    except ConnectionError as error:
        return answer_to(request, Answer.SYSTEM_ERROR, remark=f"invoke consumer {who} Exception: {error}")
    return answer_to(request, told.code, fields=dict(told.fields), body=bytes(told.body), remark=told.remark)


async def _statuses(request: Command, header: Header, group: ConsumerGroup) -> Command:
    """Members that do not answer are left out, as RocketMQ leaves them out."""
    only, found = str(header["clientAddr"] or ""), {}
    fields = {"topic": str(header["topic"]), "group": group.name}
    for connection, member in list(group.members.items()):
        if member.version < _FIRST_WITH_STATUS:
            words = f"the client does not support this feature. version={member.version}"
            return answer_to(request, Answer.SYSTEM_ERROR, remark=words)
        if only and only != member.client_id:
            continue
        try:
            told = await connection.ask(Command(GET_CONSUMER_STATUS_FROM_CLIENT, fields), STATUS_PATIENCE)
        except (TimeoutError, ConnectionError):
            continue
        if told.code == Answer.SUCCESS and told.body:
            body = parse(bytes(told.body)).value
            found[member.client_id] = body.get("messageQueueTable", {}) if isinstance(body, dict) else {}
    return answer_to(request, body=write({"consumerTable": found, "messageQueueTable": {}}))


def _answer_later(
    broker: Broker, request: Command, connection: Connection, coming: Coroutine[Any, Any, Command]
) -> None:
    """Send the answer when it is there."""

    async def answered() -> None:
        answer = await coming
        if not request.is_one_way:
            connection.send(answer)

    task = asyncio.ensure_future(answered())
    broker.tasks.add(task)
    task.add_done_callback(broker.tasks.discard)


ANSWERS: dict[int, Processor] = {223: consumer_status, 307: running_info, 309: consume_directly}
