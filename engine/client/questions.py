"""Requests of clients to brokers, one function a request (docs/protocol/broker.md).

Each raises :class:`BrokerRefused`, :class:`NoRoute`, :class:`AnswerNotUnderstood`, ``OSError`` or
``TimeoutError``. Java: ``MQClientAPIImpl``,
``MQAdminImpl``.
"""

from __future__ import annotations

import json
import logging
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from engine.client.errors import AnswerNotUnderstood, BrokerRefused, ClientError, NoRoute
from engine.client.instance import ClientInstance, fields_as_text
from engine.client.messages import MAX_OFFSET, MIN_OFFSET, ReceivedMessage, read_messages
from engine.client.repeated_warnings import warn
from engine.client.routes import MASTER, MessageQueue
from engine.codec import message as codec
from engine.remoting.answers import json_object, member_objects, reading
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.frame import Command
from engine.remoting.subscriptions import SQL92, TAG, Subscription

COMMIT_OFFSET, SUSPEND, SUBSCRIPTION, LITE_PULL = 1, 2, 4, 16
"""Bits of a pull's sysFlag (docs/protocol/broker.md#pull)."""
FIRST_WITH_LITE_PULL = 413
"""Ordinal of 5.0.0."""
FIRST_WITH_SQL = 233
"""Ordinal of 4.1.0."""
OFFSET_PATIENCE, PULL_PATIENCE, LOCK_PATIENCE = 5.0, 30.0, 1.0
"""Seconds to wait for an answer."""
_log = logging.getLogger(__name__)
STATUSES = {
    ResponseCode.SUCCESS: "FOUND",
    ResponseCode.PULL_NOT_FOUND: "NO_NEW_MSG",
    ResponseCode.PULL_RETRY_IMMEDIATELY: "NO_MATCHED_MSG",
    ResponseCode.PULL_OFFSET_MOVED: "OFFSET_ILLEGAL",
}


@dataclass(frozen=True, slots=True)
class PullResult:
    """The answer to a pull. ``status`` is FOUND, NO_NEW_MSG, NO_MATCHED_MSG or OFFSET_ILLEGAL; ``from_broker`` is the
    id of the broker that the next pull should ask.
    """

    status: str
    messages: list[ReceivedMessage]
    next_offset: int
    min_offset: int
    max_offset: int
    from_broker: int = MASTER


async def pull(
    instance: ClientInstance,
    group: str,
    queue: MessageQueue,
    subscription: Subscription,
    offset: int,
    *,
    max_messages: int = 32,
    sys_flag: int = SUBSCRIPTION,
    commit: int = 0,
    hold: float = 0.0,
    patience: float = PULL_PATIENCE,
    broker_id: int = MASTER,
) -> PullResult:
    """Pull messages of a queue from ``offset`` on, at most ``max_messages``; the broker may hold the request
    ``hold`` seconds.

    ``commit`` is the group's offset where ``sys_flag`` says so. Tags are compared here once more; SQL92 is not.
    """
    address = instance.address(queue.broker, broker_id)
    if subscription.kind == SQL92 and instance.versions.get(address, FIRST_WITH_SQL) < FIRST_WITH_SQL:
        raise ClientError(f"The broker[{queue.broker}] is too old to filter by SQL92 (4.1.0 does)")
    lite = sys_flag & LITE_PULL and instance.versions.get(address, 0) >= FIRST_WITH_LITE_PULL
    if broker_id != MASTER:
        sys_flag &= ~COMMIT_OFFSET
    fields = {
        "consumerGroup": group,
        "topic": queue.topic,
        "queueId": queue.queue_id,
        "queueOffset": offset,
        "maxMsgNums": max_messages,
        "sysFlag": sys_flag,
        "commitOffset": commit,
        "suspendTimeoutMillis": int(hold * 1000),
        "subVersion": subscription.version,
        "expressionType": subscription.kind,
        "bname": queue.broker,
    }
    if sys_flag & SUBSCRIPTION:
        fields["subscription"] = subscription.expression
    request = Command(RequestCode.LITE_PULL_MESSAGE if lite else RequestCode.PULL_MESSAGE, fields_as_text(fields))
    answer = await instance.ask(address, request, patience)
    status = STATUSES.get(ResponseCode(answer.code)) if answer.code in STATUSES else None
    if status is None:
        raise BrokerRefused(answer.code, answer.remark, address)
    response_fields = answer.fields
    with reading(request.code, address, AnswerNotUnderstood):
        min_offset, max_offset = int(response_fields.get("minOffset", 0)), int(response_fields.get("maxOffset", 0))
        next_offset = int(response_fields.get("nextBeginOffset", offset))
        from_broker = int(response_fields.get("suggestWhichBrokerId", MASTER))
        messages = read_messages(answer.body, queue) if status == "FOUND" else []
    if subscription.tags and subscription.kind == TAG:
        messages = [message for message in messages if message.tags in subscription.tags]
    ends = {MIN_OFFSET: str(min_offset), MAX_OFFSET: str(max_offset)}
    for message in messages:
        message.note(ends)
    return PullResult(status, messages, next_offset, min_offset, max_offset, from_broker)


async def _number(
    instance: ClientInstance, code: int, queue: MessageQueue, name: str = "offset", **extra_fields: object
) -> int:
    fields = {"topic": queue.topic, "queueId": queue.queue_id, "bname": queue.broker, **extra_fields}
    address = instance.address(queue.broker)
    answer = await instance.call(address, code, fields, patience=OFFSET_PATIENCE)
    with reading(code, address, AnswerNotUnderstood):
        return int(answer.fields[name])


async def max_offset(instance: ClientInstance, queue: MessageQueue) -> int:
    """GET_MAX_OFFSET: the offset behind the last message."""
    return await _number(instance, RequestCode.GET_MAX_OFFSET, queue)


async def min_offset(instance: ClientInstance, queue: MessageQueue) -> int:
    """GET_MIN_OFFSET: the offset of the first message that is still there."""
    return await _number(instance, RequestCode.GET_MIN_OFFSET, queue)


async def search_offset(instance: ClientInstance, queue: MessageQueue, timestamp: int) -> int:
    """SEARCH_OFFSET_BY_TIMESTAMP: the offset of the first message stored at ``timestamp`` (ms) or later."""
    return await _number(instance, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, queue, timestamp=timestamp)


async def query_offset(instance: ClientInstance, group: str, queue: MessageQueue) -> int | None:
    """QUERY_CONSUMER_OFFSET: the offset that a group reads next; None if it never committed."""
    try:
        return await _number(instance, RequestCode.QUERY_CONSUMER_OFFSET, queue, consumerGroup=group)
    except BrokerRefused as error:
        if error.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        raise


async def commit_offset(
    instance: ClientInstance, group: str, queue: MessageQueue, offset: int, *, one_way: bool = True
) -> None:
    """UPDATE_CONSUMER_OFFSET: commit the offset that a group reads next; without ``one_way`` wait for the broker's
    answer.
    """
    fields = {
        "consumerGroup": group,
        "topic": queue.topic,
        "queueId": queue.queue_id,
        "commitOffset": offset,
        "bname": queue.broker,
    }
    address = instance.address(queue.broker)
    if one_way:
        await instance.tell(address, RequestCode.UPDATE_CONSUMER_OFFSET, fields)
    else:
        await instance.call(address, RequestCode.UPDATE_CONSUMER_OFFSET, fields, patience=OFFSET_PATIENCE)


async def consumer_ids(instance: ClientInstance, group: str, topic: str) -> list[str]:
    """GET_CONSUMER_LIST_BY_GROUP: client ids of a group's consumers, as a broker of the topic knows them; empty where
    it knows none.
    """
    route = await instance.route(topic)
    addresses = [
        address
        for broker_addresses in (route.brokers if route else {}).values()
        for address in broker_addresses.values()
    ]
    if not addresses:
        raise NoRoute(f"no broker serves the topic {topic}")
    fields = {"consumerGroup": group}
    address = random.choice(addresses)
    answer = await instance.ask(address, Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields))
    if answer.code != ResponseCode.SUCCESS:
        return []
    with reading(RequestCode.GET_CONSUMER_LIST_BY_GROUP, address, AnswerNotUnderstood):
        client_ids = json_object(answer.body).get("consumerIdList") or []
        if not isinstance(client_ids, list):
            raise TypeError("consumerIdList is no list")
        return [str(client_id) for client_id in client_ids]


async def send_back(
    instance: ClientInstance, group: str, message: ReceivedMessage, delay_level: int, max_reconsume: int
) -> None:
    """CONSUMER_SEND_MSG_BACK: send back a message that was not consumed; it comes again, or becomes a dead letter."""
    fields = {
        "offset": message.physical_offset,
        "group": group,
        "delayLevel": delay_level,
        "originMsgId": message.msg_id,
        "originTopic": message.topic,
        "unitMode": False,
        "maxReconsumeTimes": max_reconsume,
        "bname": message.queue.broker,
    }
    await instance.call(
        instance.address(message.queue.broker), RequestCode.CONSUMER_SEND_MSG_BACK, fields, patience=OFFSET_PATIENCE
    )


async def view_message(instance: ClientInstance, queue: MessageQueue, offset_msg_id: str) -> ReceivedMessage:
    """VIEW_MESSAGE_BY_ID: one message by its offset id."""
    parts = codec.parse_offset_message_id(offset_msg_id)
    if parts is None:
        raise ClientError(f"{offset_msg_id!r} is not an offset message id")
    fields = {"offset": parts[1], "topic": queue.topic}
    address = instance.address(queue.broker)
    answer = await instance.call(address, RequestCode.VIEW_MESSAGE_BY_ID, fields, patience=OFFSET_PATIENCE)
    with reading(RequestCode.VIEW_MESSAGE_BY_ID, address, AnswerNotUnderstood):
        (message,) = read_messages(answer.body, queue)
    return message


async def lock(instance: ClientInstance, group: str, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
    """LOCK_BATCH_MQ: lock queues for a group's orderly consumption. Return those that this client holds now. Brokers
    that do not answer, or not as RocketMQ does, give none.
    """
    locked_queues: set[MessageQueue] = set()
    for broker, broker_queues in _by_broker(queues).items():
        try:
            body = _lock_body(instance, group, broker_queues)
            address = instance.address(broker)
            answer = await instance.call(address, RequestCode.LOCK_BATCH_MQ, {}, body, LOCK_PATIENCE)
            with reading(RequestCode.LOCK_BATCH_MQ, address, AnswerNotUnderstood):
                rows = member_objects(json_object(answer.body), "lockOKMQSet")
                locked_queues |= {
                    MessageQueue(str(row["topic"]), str(row["brokerName"]), int(row["queueId"])) for row in rows
                }
        except (BrokerRefused, NoRoute, OSError, TimeoutError):
            continue
        except AnswerNotUnderstood as error:
            warn(_log, str(error), "%s", error)
    return locked_queues


async def unlock(instance: ClientInstance, group: str, queues: Iterable[MessageQueue]) -> None:
    """UNLOCK_BATCH_MQ: release the locks of queues; one-way."""
    for broker, broker_queues in _by_broker(queues).items():
        await instance.tell(
            instance.address(broker), RequestCode.UNLOCK_BATCH_MQ, {}, _lock_body(instance, group, broker_queues)
        )


def _by_broker(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    by_broker: dict[str, list[MessageQueue]] = defaultdict(list)
    for queue in queues:
        by_broker[queue.broker].append(queue)
    return by_broker


def _lock_body(instance: ClientInstance, group: str, queues: Iterable[MessageQueue]) -> bytes:
    fields = {
        "clientId": instance.client_id,
        "consumerGroup": group,
        "mqSet": [queue.record() for queue in queues],
        "onlyThisBroker": False,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


async def check_subscription(instance: ClientInstance, group: str, subscription: Subscription) -> None:
    """CHECK_CLIENT_CONFIG: check that a broker accepts a subscription that is no list of tags."""
    route = await instance.route(subscription.topic)
    addresses = [
        address
        for broker_addresses in (route.brokers if route else {}).values()
        for address in broker_addresses.values()
    ]
    if addresses:
        fields = {
            "clientId": instance.client_id,
            "group": group,
            "namespace": None,
            "subscriptionData": subscription.record(),
        }
        await instance.call(random.choice(addresses), RequestCode.CHECK_CLIENT_CONFIG, {}, json.dumps(fields).encode())
