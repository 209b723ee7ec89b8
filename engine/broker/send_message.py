"""SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE, and CONSUMER_SEND_MSG_BACK: a message that a consumer could not
consume comes again later, or becomes a dead letter (docs/protocol/broker.md#send, #send-back;
docs/formats/transactions.md#retry).

Sends of one turn of the loop are one call of the engine. Under SYNC_FLUSH that call waits for the disk in a thread of
its own, and what comes meanwhile is the next one: a group commit without a thread a request. Java:
``SendMessageProcessor``, ``AbstractSendMessageProcessor``.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from engine.broker.recall_message import handle_of
from engine.broker.static_topics import LogicalQueue, queue_of
from engine.broker.stats import NORMAL, TIMERS, TRANSACTION, kind_of, ms_since
from engine.broker.topics import INHERIT, READ, WRITE, wrong_name
from engine.broker.transactions import as_half, is_half, text_as_stored
from engine.codec import properties
from engine.codec.config_tables import SubscriptionGroup, TopicConfig
from engine.codec.encode import Message
from engine.codec.lite_topics import lite_queue_name
from engine.codec.message import Unit
from engine.codec.priority import is_priority_message, priority_of
from engine.releases import Release, rules_of
from engine.remoting.codes import Refused, RequestCode, ResponseCode, WrongRequest, invalid, see
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.remoting.unique_ids import unique_id
from engine.store.put_message import AppendMessageResult, PutMessageResult, PutMessageResults, PutMessageStatus
from engine.system_names import DLQ_PREFIX, HALF_TOPIC, NOT_SENT_TO, RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


@dataclass(slots=True)
class Pending:
    """A message to put, with the connection and the answer's fields."""

    request: Command
    connection: Connection
    message: Message
    queue_id: int
    """The requested queue; a delayed message goes to another one."""
    answer_fields: dict[str, str]
    """Fields of the answer besides those of the message's position."""
    answer: Callable[[PutMessageResult], Command | None] | None = None
    """Returns the answer if this is no send of a client; None for no answer (yet)."""
    received_ns: int = field(default_factory=time.perf_counter_ns)
    logical: LogicalQueue | None = None
    """The queue of a static topic that the send names."""


@dataclass(slots=True)
class PendingSends:
    """Sends that wait. ``putter`` is the thread that waits for the disk where the loop must not; ``busy`` is True
    while it does.
    """

    waiting: list[Pending] = field(default_factory=list)
    putter: ThreadPoolExecutor | None = None
    busy: bool = False
    is_scheduled: bool = False

    def longest_wait_ms(self) -> int:
        """Return how long the first send has waited; 0 if none waits."""
        return ms_since(self.waiting[0].received_ns) if self.waiting else 0


_log = logging.getLogger(__name__)
MSG_REGION, TRACE_ON, CLUSTER = "MSG_REGION", "TRACE_ON", "CLUSTER"
POP_CHECK_POINT = "POP_CK"
_ILLEGAL = (
    "the message is illegal, maybe msg body or properties length not matched. msg body length limit {}B, "
    "msg properties length limit 32KB."
)
_TIMER_ILLEGAL = (
    "timer message illegal, the delay time should not be bigger than the max delay {}ms; or if set del msg, the delay "
    "time should be bigger than the current time"
)
_NOT_AVAILABLE = (
    "service not available now. It may be caused by one of the following reasons: the broker's disk is full "
    "[CL: {:5.2f} CQ: {:5.2f} INDEX: {:5.2f}], messages are put to the slave, message store has been shut down, etc."
)
_DELAY = re.compile(r"[+-]?\d*")
_Status = PutMessageStatus
REFUSALS: dict[PutMessageStatus, tuple[ResponseCode, str]] = {
    _Status.CREATE_MAPPED_FILE_FAILED: (
        ResponseCode.SYSTEM_ERROR,
        "create mapped file failed, server is busy or broken.",
    ),
    _Status.OS_PAGE_CACHE_BUSY: (
        ResponseCode.SYSTEM_BUSY,
        "[PC_SYNCHRONIZED]broker busy, start flow control for a while",
    ),
    _Status.IN_SYNC_REPLICAS_NOT_ENOUGH: (ResponseCode.SYSTEM_ERROR, "in-sync replicas not enough"),
    _Status.WHEEL_TIMER_FLOW_CONTROL: (ResponseCode.SYSTEM_ERROR, "timer message is under flow control"),
    _Status.WHEEL_TIMER_NOT_ENABLE: (ResponseCode.SYSTEM_ERROR, "accurate timer message is not enabled"),
}
STORED_CODES = {
    _Status.PUT_OK: ResponseCode.SUCCESS,
    _Status.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    _Status.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    _Status.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}
"""Statuses with which the message is stored."""


def send_message(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE: put one message, or a batch: the header's ``batch`` decides
    which, not the code.
    """
    logical = queue_of(broker, request, header, any_queue=True) if broker.static_topics.mappings else None
    if logical is not None:
        header = {**header, "queueId": logical.leader.queue_id}
    if header["batch"]:
        return _send_batch(broker, request, header, connection, logical)
    topic, queue_id = check(broker, header, connection)
    message_properties = with_broker_properties(broker, properties.decode((header["properties"] or "").encode()))
    if properties.UNIQUE_KEY not in message_properties and broker.store.rules.major >= 5:
        message_properties[properties.UNIQUE_KEY] = unique_id(broker.now())
    if not request.body and broker.store.rules.major >= 5:
        raise Refused(ResponseCode.SYSTEM_ERROR, "java.lang.NullPointerException: null")
    name, reconsumed = topic.name, int(header["reconsumeTimes"] or 0)
    if name.startswith(RETRY_PREFIX):
        name, queue_id = retry_target(broker, request, header, name, queue_id, reconsumed)
    if broker.store.rules.lite_topics and (lite_topic := message_properties.get(properties.LITE_TOPIC)):
        message_properties[properties.INNER_MULTI_DISPATCH] = lite_queue_name(str(header["topic"]), lite_topic)
    queue_id = _queue_of_priority(broker, message_properties, topic, queue_id)
    if not _DELAY.fullmatch(message_properties.get(properties.DELAY, "0")):
        raise WrongRequest(f"{properties.DELAY}: expected a number, found {message_properties[properties.DELAY]}")
    message = Message(
        name,
        bytes(request.body),
        queue_id,
        message_properties,
        _stored_text(broker, message_properties),
        flag=int(header["flag"]),
        sys_flag=int(header["sysFlag"]),
        born_timestamp=int(header["bornTimestamp"]),
        born_host=connection.peer,
        reconsume_times=reconsumed,
    )
    if is_half(message_properties, reconsumed):
        if broker.config.reject_transactions:
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"the broker[{broker.config.broker_ip}] sending transaction message is forbidden",
            )
        message = as_half(message, broker.store.release)
    answer_fields = _answer_fields(broker, message_properties)
    put_later(broker, Pending(request, connection, message, queue_id, answer_fields, logical=logical))
    return None


def _queue_of_priority(broker: Broker, message_properties: dict[str, str], topic: TopicConfig, queue_id: int) -> int:
    """Return the queue of a message: since 5.4 the one of its priority, in topics of every type. A priority that does
    not count is taken out of the properties.
    """
    priority = priority_of(message_properties)
    if not broker.store.rules.priorities or priority < 0:
        return queue_id
    if is_priority_message(message_properties):
        return min(priority, topic.write_queue_nums - 1)
    del message_properties[properties.PRIORITY]
    return queue_id


def check(broker: Broker, fields: Header, connection: Connection) -> tuple[TopicConfig, int]:
    """Return the topic and the queue that a send names; create the topic where that is allowed. Raises
    :class:`Refused` in RocketMQ's order.
    """
    try:
        return _checked(broker, fields, connection)
    except Refused as error:
        error.fields = _region(broker)
        raise


def _region(broker: Broker) -> dict[str, str]:
    return {MSG_REGION: broker.config.region_id, TRACE_ON: "true" if broker.config.trace_on else "false"}


def _checked(broker: Broker, fields: Header, connection: Connection) -> tuple[TopicConfig, int]:
    config, name, release = broker.config, str(fields["topic"]), broker.store.release
    if broker.now() < config.accept_sends_from:
        raise Refused(
            ResponseCode.SYSTEM_ERROR, "broker unable to service, until then: " + str(config.accept_sends_from)
        )
    if (wrong := wrong_name(name, release)) is not None:
        raise Refused(invalid(release), wrong)
    if name in NOT_SENT_TO:
        raise Refused(ResponseCode.NO_PERMISSION, f"Sending message to topic[{name}] is forbidden.")
    topic = broker.topics.get(name)
    if topic is None:
        template, queues = fields["defaultTopic"], fields["defaultTopicQueueNums"]
        if template is None or queues is None:
            raise WrongRequest("a topic that is not there needs defaultTopic and defaultTopicQueueNums")
        topic = broker.topics.create_by_send(name, str(template), int(queues), 1 if fields["unitMode"] else 0)
    if topic is None and name.startswith(RETRY_PREFIX):
        topic = broker.topics.create_plain(name, 1)
    if topic is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist, apply first please!{see(release)}")
    queue_id = int(fields["queueId"])
    queue_count = max(topic.read_queue_nums, topic.write_queue_nums)
    if queue_id >= queue_count:
        words = f"request queueId[{queue_id}] is illegal, {_spelled(topic, release)} Producer: {connection.peer}"
        raise Refused(invalid(release), words)
    if queue_id < 0:
        queue_id = random.randrange(max(topic.write_queue_nums, 1))
    return topic, queue_id


def _spelled(topic: TopicConfig, release: Release) -> str:
    perm = "".join(letter if topic.perm & bit else "-" for letter, bit in (("R", READ), ("W", WRITE), ("X", INHERIT)))
    attributes = ", ".join(f"{key}={value}" for key, value in topic.attributes.items())
    attributes_text = "" if rules_of(release).major < 5 else f", attributes={{{attributes}}}"
    return (
        f"TopicConfig [topicName={topic.name}, readQueueNums={topic.read_queue_nums}, "
        f"writeQueueNums={topic.write_queue_nums}, perm={perm}, topicFilterType={topic.topic_filter_type}, "
        f"topicSysFlag={topic.topic_sys_flag}, order={str(topic.order).lower()}{attributes_text}]"
    )


def retry_target(
    broker: Broker, request: Command, fields: Header, name: str, queue_id: int, reconsumed: int
) -> tuple[str, int]:
    """Return the topic and queue of a message that a consumer sends to its retry topic by itself: the retry topic,
    or the dead letters.
    """
    group = name.removeprefix(RETRY_PREFIX)
    declared = broker.topics.group(group)
    if declared is None:
        raise Refused(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group not exist, {group} {see(broker.store.release)}",
        )
    if reconsumed > max_retries(request, fields, declared) or broker.locks.is_held(group):
        broker.stats.dead[str(fields["producerGroup"]), name] += 1
        dead = broker.topics.create_plain(DLQ_PREFIX + group, 1, READ | WRITE)
        return dead.name, 0
    return name, queue_id


def with_broker_properties(broker: Broker, message_properties: dict[str, str]) -> dict[str, str]:
    """Add the broker's properties to those of a message: before 5.x only the cluster's name."""
    config = broker.config
    message_properties[CLUSTER] = config.cluster
    if broker.store.rules.major >= 5:
        message_properties[MSG_REGION] = config.region_id
        message_properties[TRACE_ON] = "true" if config.trace_on else "false"
        message_properties.pop(POP_CHECK_POINT, None)
    return message_properties


def _stored_text(broker: Broker, message_properties: dict[str, str]) -> bytes:
    """Return the property text of a single message: 4.9 leaves WAIT out of it."""
    release = broker.store.release
    stored_properties = (
        {name: value for name, value in message_properties.items() if name != properties.WAIT}
        if rules_of(release).major < 5
        else message_properties
    )
    return text_as_stored(stored_properties, release)


def _answer_fields(broker: Broker, message_properties: dict[str, str]) -> dict[str, str]:
    unique = None if broker.store.rules.major < 5 else message_properties.get(properties.UNIQUE_KEY)
    key = {} if unique is None else {"transactionId": unique}
    return {**key, **_region(broker)}


def _send_batch(
    broker: Broker, request: Command, header: Header, connection: Connection, logical: LogicalQueue | None
) -> Command | None:
    """Put messages of one topic and queue, which follow each other in the body."""
    topic, queue_id = check(broker, header, connection)
    if topic.name.startswith(RETRY_PREFIX):
        words = f"batch request does not support retry group {topic.name}"
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, words, _region(broker))
    shared = with_broker_properties(broker, properties.decode((header["properties"] or "").encode()))
    batch = Message(
        topic.name,
        bytes(request.body),
        queue_id,
        shared,
        text_as_stored(shared, broker.store.release),
        sys_flag=int(header["sysFlag"]),
        born_timestamp=int(header["bornTimestamp"]),
        born_host=connection.peer,
        reconsume_times=int(header["reconsumeTimes"] or 0),
    )
    broker.topics.save_created()
    received_ns = time.perf_counter_ns()
    result = broker.store.put_encoded_batch(batch)
    broker.dispatched()
    answer_fields = _answer_fields(broker, shared)
    if topic.batch and properties.UNIQUE_KEY in shared:
        answer_fields["batchUniqId"] = shared[
            properties.UNIQUE_KEY
        ]  # its members are one unit, and have no ids of their own

    def answer() -> Command:
        return answer_of(broker, request, result, queue_id, answer_fields, received_ns=received_ns, logical=logical)

    if not waits_for_slaves(broker, batch, result):
        return answer()
    when_slaves_have_it(broker, result, lambda: _send(connection, request, answer()))
    return None


def waits_for_slaves(broker: Broker, message: Message, result: PutMessageResult) -> bool:
    """Return True if the sender of a stored message is answered only when slaves have it."""
    return broker.slaves.are_asked_for and result.status in STORED_CODES and result.append is not None and message.waits


def when_slaves_have_it(broker: Broker, result: PutMessageResult, on_done: Callable[[], None]) -> None:
    """Call ``on_done`` once slaves have the message, or do not have it in time; ``result`` gets the status
    (docs/protocol/behaviour.md#waits).
    """
    assert result.append is not None

    def on_status(status: PutMessageStatus) -> None:
        if status is not _Status.PUT_OK:
            result.status = status
        on_done()

    broker.slaves.wait(result.append.end_offset, on_status)


def _send(connection: Connection, request: Command, answer: Command | None) -> None:
    if answer is not None and not request.is_one_way:
        connection.send(answer)


def put_later(broker: Broker, pending: Pending) -> None:
    """Put the message in this turn of the loop, with the sends of all connections."""
    sends = broker.sends
    sends.waiting.append(pending)
    if not sends.is_scheduled and not sends.busy:
        sends.is_scheduled = True
        asyncio.get_running_loop().call_soon(put_pending, broker)


def put_pending(broker: Broker) -> None:
    """Put all waiting sends, and answer them."""
    sends = broker.sends
    sends.is_scheduled = False
    waiting, sends.waiting = sends.waiting, []
    if not waiting:
        return
    broker.topics.save_created()
    messages = [pending.message for pending in waiting]
    if sends.putter is None:
        try:
            results = broker.store.put_messages(messages)
        except Exception as error:  # noqa: BLE001  as with any request: its text is the answer
            _answer_failed(broker, waiting, error)
        else:
            _answer_all(broker, waiting, results)
        return
    sends.busy = True
    loop = asyncio.get_running_loop()
    put = loop.run_in_executor(sends.putter, broker.store.put_messages, messages)
    task = asyncio.ensure_future(_when_put(broker, waiting, put))
    broker.tasks.add(task)
    task.add_done_callback(broker.tasks.discard)


async def _when_put(broker: Broker, waiting: list[Pending], put: asyncio.Future[PutMessageResults]) -> None:
    try:
        results = await put
    except Exception as error:  # noqa: BLE001  as above
        _answer_failed(broker, waiting, error)
        return
    finally:
        broker.sends.busy = False
        if broker.sends.waiting:
            put_later_again(broker)
    _answer_all(broker, waiting, results)


def _answer_failed(broker: Broker, waiting: list[Pending], error: Exception) -> None:
    """The store failed on these sends: answer their senders, so that none waits until it times out."""
    _log.error("%d sends", len(waiting), exc_info=error)
    for pending in waiting:
        words = f"{type(error).__name__}: {error}"
        answer = answer_to(pending.request, ResponseCode.SYSTEM_ERROR, fields=_region(broker), remark=words)
        _send(pending.connection, pending.request, answer)


async def finish_sends(broker: Broker) -> None:
    """Wait until all sends are put, at the end of a broker: the sender of a one-way message would not learn that it
    was lost.
    """
    sends = broker.sends
    while sends.waiting or sends.busy:
        if sends.busy and broker.tasks:
            await asyncio.wait(broker.tasks, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(0)


def put_later_again(broker: Broker) -> None:
    """Put the sends that arrived while the disk was busy."""
    broker.sends.is_scheduled = True
    asyncio.get_running_loop().call_soon(put_pending, broker)


def _answer_all(broker: Broker, waiting: list[Pending], results: PutMessageResults) -> None:
    by_connection: dict[Connection, list[Command]] = {}
    for pending, result in zip(waiting, results, strict=True):
        if waits_for_slaves(broker, pending.message, result):
            when_slaves_have_it(broker, result, partial(_answer_late, broker, pending, result))
            continue
        answer = _answer_to(broker, pending, result)
        if answer is not None and not pending.request.is_one_way:
            by_connection.setdefault(pending.connection, []).append(answer)
    for connection, answers in by_connection.items():
        connection.send_many(answers)
    broker.dispatched()


def _answer_to(broker: Broker, pending: Pending, result: PutMessageResult) -> Command | None:
    if pending.answer is not None:
        return pending.answer(result)
    return answer_of(
        broker,
        pending.request,
        result,
        pending.queue_id,
        pending.answer_fields,
        pending.message.properties,
        received_ns=pending.received_ns,
        logical=pending.logical,
    )


def _answer_late(broker: Broker, pending: Pending, result: PutMessageResult) -> None:
    _send(pending.connection, pending.request, _answer_to(broker, pending, result))


def answer_of(
    broker: Broker,
    request: Command,
    result: PutMessageResult,
    queue_id: int,
    answer_fields: dict[str, str],
    recallable: dict[str, str] | None = None,
    *,
    received_ns: int | None = None,
    logical: LogicalQueue | None = None,
) -> Command:
    """Return the answer to the sender for the result of a put (docs/protocol/broker.md#send); ``recallable`` are the
    properties of a single message, ``received_ns`` when it came (``perf_counter_ns``; None: it is no send of a client),
    ``logical`` the queue of a static topic, whose offset the answer names.
    """
    code, append = STORED_CODES.get(result.status), result.append
    if code is None or append is None:
        config = broker.store.config
        refused = REFUSALS.get(result.status)
        if refused is None and result.status in {_Status.MESSAGE_ILLEGAL, _Status.PROPERTIES_SIZE_EXCEEDED}:
            refused = ResponseCode.MESSAGE_ILLEGAL, _ILLEGAL.format(config.max_message_size)
        if result.status is _Status.WHEEL_TIMER_MSG_ILLEGAL:
            refused = ResponseCode.MESSAGE_ILLEGAL, _TIMER_ILLEGAL.format(config.timer_max_delay_sec * 1000)
        if result.status is _Status.SERVICE_NOT_AVAILABLE:
            refused = ResponseCode.SERVICE_NOT_AVAILABLE, _NOT_AVAILABLE.format(*_disk_usage(broker))
        answered, words = refused or (ResponseCode.SYSTEM_ERROR, result.status.value)
        fields = {name: answer_fields[name] for name in (MSG_REGION, TRACE_ON)}
        return answer_to(request, answered, fields=fields, remark=words)
    sent_to = request.fields.get("topic" if request.code == RequestCode.SEND_MESSAGE else "b", "")
    topic = _count(broker, sent_to, recallable or {}, append)
    if received_ns is not None:
        broker.stats.put_ms[topic, queue_id].add(append.message_count, ms_since(received_ns))
    fields = {
        "msgId": append.msg_id,
        "queueId": str(queue_id),
        "queueOffset": str(append.queue_offset),
        **(logical.sent_fields(append.queue_offset) if logical is not None else {}),
        **answer_fields,
    }
    if recallable is not None and (handle := handle_of(broker, recallable, result)) is not None:
        fields["recallHandle"] = handle
    return answer_to(request, code, fields=fields)


def _count(broker: Broker, sent_to: str, message_properties: dict[str, str], append: AppendMessageResult) -> str:
    """Count what is stored of a send under the topic that it is stored in; retries and dead letters are not counted,
    as in RocketMQ. Return that topic.
    """
    kind, topic = kind_of(message_properties), sent_to
    if kind == TRANSACTION:
        broker.stats.half[sent_to] += 1
        topic = HALF_TOPIC
    elif kind != NORMAL and broker.timers is not None and not TIMERS.isdisjoint(message_properties):
        topic = TIMER_TOPIC
    elif kind != NORMAL and message_properties.get(properties.DELAY, "0") not in {"", "0"}:
        topic = SCHEDULE_TOPIC
    if not topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        broker.stats.put[topic, kind].add(append.message_count, append.size)
        broker.stats.sizes[topic, kind].add(append.size // max(append.message_count, 1))
    return topic


def _disk_usage(broker: Broker) -> tuple[float, float, float]:
    """Disk usage of log, queues and index."""
    parts = broker.store.parts
    folders = parts.paths.commitlog, parts.queue_folder, parts.paths.index
    log, queues, index = (parts.disk.usage(folder) for folder in folders)
    return log, queues, index


FIRST_RETRY_LEVEL = 3
MAX_RECONSUME_SINCE = 121
"""Version of a client (3.4.9) from which ``maxReconsumeTimes`` counts."""
_UNIT_RETRY = 2
"""Bit of a topic's sysFlag: its messages come back to a unit."""


def send_back(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """CONSUMER_SEND_MSG_BACK: put the message at an offset of the log again. Raises :class:`Refused` in RocketMQ's
    order.
    """
    config, group_name = broker.config, str(header["group"])
    group = broker.topics.group(group_name)
    if group is None:
        words = f"subscription group not exist, {group_name} {see(broker.store.release)}"
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, words)
    if not config.permission & WRITE:
        raise Refused(ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip}] sending message is forbidden")
    if group.retry_queue_nums <= 0:
        return answer_to(request)
    retry = RETRY_PREFIX + group_name
    topic = broker.topics.create_plain(
        retry, group.retry_queue_nums, READ | WRITE, _UNIT_RETRY if header["unitMode"] else 0
    )
    if not topic.perm & WRITE:
        raise Refused(ResponseCode.NO_PERMISSION, f"the topic[{retry}] sending message is forbidden")
    unit = _looked_up(broker, header)
    level, retry_limit = int(header["delayLevel"]), max_retries(request, header, group)
    if unit.reconsume_times >= retry_limit or level < 0:
        broker.stats.dead[group_name, str(header["originTopic"] or "")] += 1
        dead = broker.topics.create_plain(DLQ_PREFIX + group_name, 1)
        message = copy_for_retry(unit, dead.name, 0, 0)
    else:
        level = level or FIRST_RETRY_LEVEL + unit.reconsume_times
        message = copy_for_retry(unit, retry, random.randrange(group.retry_queue_nums), level)
    result = broker.store.put_message(message)
    if not result.ok:
        raise Refused(ResponseCode.SYSTEM_ERROR, result.status.value)
    broker.stats.sent_back[group_name, unit.properties.get(properties.RETRY_TOPIC) or unit.topic] += 1
    broker.dispatched()
    return answer_to(request)


def max_retries(request: Command, header: Header, group: SubscriptionGroup) -> int:
    """Return how often a group retries a message before it becomes a dead letter."""
    if request.version >= MAX_RECONSUME_SINCE and header["maxReconsumeTimes"] is not None:
        return int(header["maxReconsumeTimes"])
    return group.retry_max_times


def _looked_up(broker: Broker, header: Header) -> Unit:
    offset = int(header["offset"])
    unit = broker.store.look_message_by_offset(offset)
    if unit is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {offset}")
    return unit


def copy_for_retry(unit: Unit, topic: str, queue_id: int, level: int) -> Message:
    """Return a stored message as it is put again, for a topic, at a delay level (0: at once)."""
    unit_properties = unit.properties
    unit_properties.setdefault(properties.RETRY_TOPIC, unit.topic)
    unit_properties[properties.WAIT] = "false"
    unit_properties[properties.DELAY] = str(level)
    if not unit_properties.get(properties.ORIGIN_MESSAGE_ID, "").strip():
        unit_properties[properties.ORIGIN_MESSAGE_ID] = unit.offset_msg_id
    return Message(
        topic,
        unit.body,
        queue_id,
        unit_properties,
        flag=unit.flag,
        sys_flag=unit.sys_flag,
        born_timestamp=unit.born_timestamp,
        born_host=unit.born_host,
        reconsume_times=unit.reconsume_times + 1,
    )


HANDLERS: dict[int, Processor] = {
    RequestCode.SEND_MESSAGE: send_message,
    RequestCode.SEND_MESSAGE_V2: send_message,
    RequestCode.SEND_BATCH_MESSAGE: send_message,
    RequestCode.CONSUMER_SEND_MSG_BACK: send_back,
}
