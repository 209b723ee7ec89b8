"""Calls to consumers through their broker: how a consumer runs, consuming one message now, where it reads
(docs/protocol/broker.md#calls-to-consumers).

Java: ``AdminBrokerProcessor.callConsumer``, ``consumeMessageDirectly``, ``Broker2Client``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from engine.broker.clients import ConsumerGroup
from engine.broker.json_bodies import write
from engine.codec.json_dialect import parse
from engine.codec.message import parse_offset_message_id
from engine.remoting.codes import Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.query_message import lend_message_by_offset

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


PATIENCE, STATUS_PATIENCE = 10.0, 5.0
"""Seconds to wait for a consumer; and for each consumer of request 223."""
_FIRST_CALLED, _FIRST_WITH_STATUS = 63, 61
"""First client versions that answer such calls (3.1.8, 3.0.7)."""


def running_info(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """GET_CONSUMER_RUNNING_INFO: a consumer's own report: settings, queues that it owns, rates."""
    _pass_on(broker, request, header, connection, dict(request.fields), bytes(request.body))
    return None


def consume_directly(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """CONSUME_MESSAGE_DIRECTLY: have a consumer consume one message, named by its offset id, and pass on the result."""
    host_and_offset = parse_offset_message_id(str(header["msgId"] or ""))
    if host_and_offset is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"no message id: {header['msgId']}")
    with lend_message_by_offset(broker.store.parts.log, host_and_offset[1]) as result:
        body = bytes(result.messages[0]) if result.messages else b""
    fields = {**request.fields, "brokerName": broker.config.broker_name}
    _pass_on(broker, request, header, connection, fields, body)
    return None


def consumer_status(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """INVOKE_BROKER_TO_GET_CONSUMER_STATUS: the queue offsets at which a group's members read a topic, by client."""
    name = str(header["group"])
    group = broker.clients.consumers.get(name)
    if group is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{name}]")
    _answer_later(broker, request, connection, _statuses(request, header, group))
    return None


def _pass_on(
    broker: Broker, request: Command, header: Header, connection: Connection, fields: dict[str, Any], body: bytes
) -> None:
    """Pass the request to the consumer that the header names. Raises :class:`Refused` where it is not connected, or
    too old.
    """
    name, client_id = str(header["consumerGroup"]), "null" if header["clientId"] is None else str(header["clientId"])
    group = broker.clients.consumers.get(name)
    members = [] if group is None else list(group.members.items())
    match = next(
        ((member_connection, member) for member_connection, member in members if member.client_id == client_id), None
    )
    if match is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"The Consumer <{name}> <{client_id}> not online")
    consumer_connection, member = match
    if member.version < _FIRST_CALLED:
        words = f"The Consumer <{client_id}> Version <{member.version}> too low to finish"
        raise Refused(ResponseCode.SYSTEM_ERROR, f"{words}, please upgrade it to V3_1_8_SNAPSHOT")
    call = _call(request, Command(request.code, fields, body=body), consumer_connection, f"<{name}> <{client_id}>")
    _answer_later(broker, request, connection, call)


async def _call(request: Command, call: Command, consumer_connection: Connection, consumer_name: str) -> Command:
    try:
        response = await consumer_connection.ask(call, PATIENCE)
    except TimeoutError:
        return answer_to(
            request, ResponseCode.CONSUME_MSG_TIMEOUT, remark=f"consumer {consumer_name} Timeout: {PATIENCE:.0f} s"
        )
    except ConnectionError as error:
        return answer_to(
            request, ResponseCode.SYSTEM_ERROR, remark=f"invoke consumer {consumer_name} Exception: {error}"
        )
    return answer_to(
        request, response.code, fields=dict(response.fields), body=bytes(response.body), remark=response.remark
    )


async def _statuses(request: Command, header: Header, group: ConsumerGroup) -> Command:
    """Ask every member. Members that do not answer are left out, as in RocketMQ."""
    only_client_id, offset_tables = str(header["clientAddr"] or ""), {}
    fields = {"topic": str(header["topic"]), "group": group.name}
    for connection, member in list(group.members.items()):
        if member.version < _FIRST_WITH_STATUS:
            words = f"the client does not support this feature. version={member.version}"
            return answer_to(request, ResponseCode.SYSTEM_ERROR, remark=words)
        if only_client_id and only_client_id != member.client_id:
            continue
        try:
            response = await connection.ask(
                Command(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, fields), STATUS_PATIENCE
            )
        except (TimeoutError, ConnectionError):
            continue
        if response.code == ResponseCode.SUCCESS and response.body:
            body = parse(bytes(response.body)).value
            offset_tables[member.client_id] = body.get("messageQueueTable", {}) if isinstance(body, dict) else {}
    return answer_to(request, body=write({"consumerTable": offset_tables, "messageQueueTable": {}}))


def _answer_later(
    broker: Broker, request: Command, connection: Connection, answer_task: Coroutine[Any, Any, Command]
) -> None:
    """Send the answer when it arrives."""

    async def answered() -> None:
        answer = await answer_task
        if not request.is_one_way:
            connection.send(answer)

    task = asyncio.ensure_future(answered())
    broker.tasks.add(task)
    task.add_done_callback(broker.tasks.discard)


ANSWERS: dict[int, Processor] = {
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: consumer_status,
    RequestCode.GET_CONSUMER_RUNNING_INFO: running_info,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: consume_directly,
}
