"""SEND_REPLY_MESSAGE: an answer to a message, handed to the producer that waits for it (docs/protocol/broker.md#send).

Java: ``ReplyMessageProcessor``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.broker.send_message import answer_of, check, waits_for_slaves, when_slaves_have_it
from engine.codec import properties
from engine.codec.encode import Message, encode_properties
from engine.remoting.codes import SHORT_NAMES, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


REPLY_TO_CLIENT, PUSH_REPLY_TIME = "REPLY_TO_CLIENT", "PUSH_REPLY_TIME"
TIMEOUT_S = 10.0
"""Seconds to wait for the producer."""
_NOT_PASSED_ON = frozenset({"properties", "maxReconsumeTimes", "batch"})
"""Fields of a send that are not passed on unchanged."""


def send_reply(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """SEND_REPLY_MESSAGE, SEND_REPLY_MESSAGE_V2: send the reply to the client that its properties name, and put it into
    the store.
    """
    topic, queue_id = check(broker, header, connection)
    text = (header["properties"] or "").encode()
    message = Message(
        topic.name,
        bytes(request.body),
        queue_id,
        properties.decode(text),
        text,
        flag=int(header["flag"]),
        sys_flag=int(header["sysFlag"]),
        born_timestamp=int(header["bornTimestamp"]),
        born_host=connection.peer,
        reconsume_times=int(header["reconsumeTimes"] or 0),
    )
    task = asyncio.ensure_future(_reply(broker, request, header, message, connection))
    broker.tasks.add(task)
    task.add_done_callback(broker.tasks.discard)
    return None


async def _reply(broker: Broker, request: Command, fields: Header, message: Message, connection: Connection) -> None:
    config = broker.config
    region_fields = {"MSG_REGION": config.region_id, "TRACE_ON": "true" if config.trace_on else "false"}
    refusal = await _push(broker, fields, message)
    if refusal is None:
        message_fields = {"msgId": "0", "queueId": str(message.queue_id), "queueOffset": "0"}
        answer = answer_to(request, fields={**region_fields, **message_fields})
    else:
        answer = answer_to(request, ResponseCode.SYSTEM_ERROR, fields=region_fields, remark=refusal)
    if config.store_replies:
        result = broker.store.put_message(message)
        broker.dispatched()
        if waits_for_slaves(broker, message, result):
            slaves_have_it = asyncio.Event()
            when_slaves_have_it(broker, result, slaves_have_it.set)
            await slaves_have_it.wait()
        if result.ok:
            answer.fields.update(answer_of(broker, request, result, message.queue_id, region_fields).fields)
    if not request.is_one_way:
        connection.send(answer)


async def _push(broker: Broker, fields: Header, message: Message) -> str | None:
    """Pass the reply to the client that waits. Return None if it accepted the reply, else the reason."""
    message_properties = dict(message.properties or {})
    client_id = message_properties.get(REPLY_TO_CLIENT)
    if client_id is None:
        return f"reply message properties[{REPLY_TO_CLIENT}] is null"
    waiting = broker.clients.producer(client_id)
    if waiting is None:
        return f"push reply message fail, channel of <{client_id}> not found."
    if waiting.is_congested:
        return f"push reply message to {client_id} fail."
    message_properties[PUSH_REPLY_TIME] = str(broker.now())
    sent = {
        name: _spelled(fields[name])
        for name in SHORT_NAMES.values()
        if name not in _NOT_PASSED_ON and fields[name] is not None
    }
    header = {
        **sent,
        "bornHost": message.born_host,
        "storeHost": broker.address,
        "storeTimestamp": str(broker.now()),
        "properties": encode_properties(message_properties).decode("utf-8", "replace"),
    }
    try:
        answer = await waiting.ask(
            Command(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, header, body=message.body), TIMEOUT_S
        )
    except (TimeoutError, ConnectionError):
        return f"push reply message to {client_id} fail."
    return None if answer.code == ResponseCode.SUCCESS else f"push reply message to {client_id} fail."


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


HANDLERS: dict[int, Processor] = {
    RequestCode.SEND_REPLY_MESSAGE: send_reply,
    RequestCode.SEND_REPLY_MESSAGE_V2: send_reply,
}
