"""PULL_MESSAGE, LITE_PULL_MESSAGE: a queue's messages, now or when there are some; pulls that wait are held by queue
(docs/protocol/broker.md#pull, docs/protocol/behaviour.md#long-polling, #filters).

Java: ``PullMessageProcessor``, ``DefaultPullMessageResultHandler``, ``PullRequestHoldService``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.broker.clients import BROADCASTING
from engine.broker.json_bodies import write
from engine.broker.static_topics import logical_pull_answer, physical_pull, pull_elsewhere, pulled_queue
from engine.broker.stats import ms_since
from engine.broker.topics import READ
from engine.broker.transactions import text_as_stored
from engine.codec import properties
from engine.codec.config_tables import TopicConfig
from engine.codec.encode import Message
from engine.errors import BadFilter
from engine.remoting.codes import Refused, RequestCode, ResponseCode, invalid, see
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.remoting.subscriptions import SQL92, TAG, Subscription
from engine.store.get_message import GetMessageResult, GetMessageStatus
from engine.store.message_filter import BloomData, MessageFilter, SqlFilter, TagFilter
from engine.system_names import DLQ_PREFIX, OFFSET_MOVED_TOPIC, RETRY_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


Queue = tuple[str, int]
"""Topic and queue id."""


@dataclass(slots=True, eq=False)
class HeldPull:
    """A pull that found nothing behind ``offset``; ``retry`` answers it, at the latest at ``until`` (ms)."""

    request: Command
    connection: Connection
    queue: Queue
    offset: int
    until: int
    retry: Callable[[], Command | None]
    matches: Callable[[int, int], bool] | None = None
    """Returns True if an entry between two queue offsets matches; None: every entry matches."""
    is_logical: bool = False
    """True for a queue of a static topic: its answers have logical offsets."""


class HeldPulls:
    """The table of waiting pulls."""

    def __init__(self) -> None:
        self._by_queue: dict[Queue, list[HeldPull]] = {}
        self._by_connection: dict[Connection, set[HeldPull]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_queue.values()))

    def __iter__(self) -> Iterator[HeldPull]:
        for pulls in self._by_queue.values():
            yield from pulls

    @property
    def queues(self) -> list[Queue]:
        """Return the queues at which pulls wait."""
        return list(self._by_queue)

    def at(self, queue: Queue) -> list[HeldPull]:
        """Return the pulls that wait at a queue."""
        return list(self._by_queue.get(queue, ()))

    def by_group(self) -> dict[Queue, dict[str, int]]:
        """Count the waiting pulls of each consumer group at each queue."""
        counts: dict[Queue, dict[str, int]] = {}
        for queue, waiting in self._by_queue.items():
            groups = counts.setdefault(queue, {})
            for pull in waiting:
                name = pull.request.fields.get("consumerGroup", "")
                groups[name] = groups.get(name, 0) + 1
        return counts

    def hold(self, pull: HeldPull) -> None:
        """Add a waiting pull."""
        self._by_queue.setdefault(pull.queue, []).append(pull)
        self._by_connection.setdefault(pull.connection, set()).add(pull)

    def release(self, pull: HeldPull) -> None:
        """Remove an answered pull."""
        waiting = self._by_queue.get(pull.queue)
        if waiting is None or pull not in waiting:
            return
        waiting.remove(pull)
        if not waiting:
            del self._by_queue[pull.queue]
        of_connection = self._by_connection.get(pull.connection)
        if of_connection is not None:
            of_connection.discard(pull)
            if not of_connection:
                del self._by_connection[pull.connection]

    def forget(self, connection: Connection) -> None:
        """Remove the pulls of a closed connection."""
        for pull in list(self._by_connection.get(connection, ())):
            self.release(pull)


COMMIT_OFFSET, SUSPEND, SUBSCRIPTION, CLASS_FILTER, LITE = 1, 2, 4, 8, 16
"""Bits of a pull's ``sysFlag``."""
OF_GROUP, OF_TOPIC = 2, 3
"""Values of Java's ``ForbiddenType``: the group or the topic may not be read."""
_Status = GetMessageStatus
CODES = {
    _Status.FOUND: ResponseCode.SUCCESS,
    _Status.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    _Status.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    _Status.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    _Status.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    _Status.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    _Status.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    _Status.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}
_EMPTY_STATUSES = {_Status.NO_MATCHED_LOGIC_QUEUE, _Status.NO_MESSAGE_IN_QUEUE}


def pull_message(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """PULL_MESSAGE, LITE_PULL_MESSAGE: return messages, or hold the request until there are some."""
    topic_config = _check(broker, request, header)
    logical = current = None
    if broker.static_topics.mappings:
        logical = pulled_queue(broker, request, header)
    if logical is not None:
        current = logical.range_at(int(header["queueOffset"]))
        if not logical.is_local(current):
            pull_elsewhere(broker, request, header, connection, logical, current)
            return None
        logical_header, header = header, physical_pull(current, header)
    _check_queue(broker, header, topic_config, connection)
    subscription = _subscription(broker, header)
    message_filter = _filter(broker, header, subscription)
    flags, group, topic = int(header["sysFlag"]), str(header["consumerGroup"]), str(header["topic"])
    queue_id = int(header["queueId"])
    commits = flags & COMMIT_OFFSET and not (broker.is_slave and broker.store.rules.major < 5)
    if commits and broker.resets.offset(group, topic, queue_id) is None:
        commit_offset = int(header["commitOffset"])
        committed = current if logical is None else logical.range_at(commit_offset)
        if committed is None:
            broker.store.tables.commit_consumer_offset(group, topic, queue_id, commit_offset)
        elif committed is current:  # the other ranges' offsets are those of other queues
            broker.store.tables.commit_consumer_offset(group, topic, queue_id, committed.physical(commit_offset))

    def get(start_offset: int) -> Command:
        reset = broker.resets.take(group, topic, queue_id)
        if reset is not None:
            broker.pulled[group, topic, queue_id] = reset
            return _moved(broker, request, (group, topic, queue_id), reset)
        start_ns = time.perf_counter_ns()
        answer = _answer(
            broker,
            request,
            get_messages(broker, header, start_offset, message_filter),
            start_offset,
            (group, topic, queue_id),
        )
        if answer.code == ResponseCode.SUCCESS:
            broker.stats.got_ms[group, topic, queue_id].add(0, ms_since(start_ns))
        return answer

    def get_logical(start_offset: int) -> Command:
        """:func:`get` for a queue of a static topic. Raises :class:`Refused` once another broker leads it."""
        assert logical is not None
        assert current is not None
        pulled_queue(broker, request, logical_header)
        return logical_pull_answer(logical, current, start_offset, get(start_offset))

    if logical is not None:
        return _answer_or_hold(broker, connection, request, header, get_logical, is_logical=True)
    return _answer_or_hold(broker, connection, request, header, get)


def _answer_or_hold(
    broker: Broker,
    connection: Connection,
    request: Command,
    header: Header,
    get: Callable[[int], Command],
    *,
    is_logical: bool = False,
) -> Command | None:
    flags, offset = int(header["sysFlag"]), int(header["queueOffset"])
    queue = str(header["topic"]), int(header["queueId"])
    answer = get(offset)
    if answer.code != ResponseCode.PULL_NOT_FOUND or not flags & SUSPEND:
        return answer
    hold_ms = int(header["suspendTimeoutMillis"] or 0) if broker.config.long_polling else broker.config.short_polling_ms
    pull = HeldPull(request, connection, queue, offset, broker.now() + hold_ms, lambda: get(pull.offset))
    pull.is_logical = is_logical
    broker.held.hold(pull)
    return None


def _check(broker: Broker, request: Command, header: Header) -> TopicConfig:
    """Return the topic, if the group may read it. Raises :class:`Refused` in RocketMQ's order."""
    config, name, release = broker.config, str(header["topic"]), broker.store.release
    if not config.permission & READ:
        raise Refused(ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip}] pulling message is forbidden")
    if request.code == RequestCode.LITE_PULL_MESSAGE and not config.lite_pull:
        raise Refused(ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip}] for lite pull consumer is forbidden")
    group = broker.topics.group(str(header["consumerGroup"]))
    if group is None:
        words = f"subscription group [{header['consumerGroup']}] does not exist, {see(release)}"
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, words)
    if not group.consume_enable:
        raise Refused(
            ResponseCode.NO_PERMISSION, f"subscription group no permission, {group.name}", _forbidden(broker, OF_GROUP)
        )
    topic = broker.topics.get(name)
    if topic is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist, apply first please! {see(release)}")
    if not topic.perm & READ:
        raise Refused(
            ResponseCode.NO_PERMISSION, f"the topic[{name}] pulling message is forbidden", _forbidden(broker, OF_TOPIC)
        )
    return topic


def _check_queue(broker: Broker, header: Header, topic: TopicConfig, connection: Connection) -> None:
    """Check the number of the queue. Raises :class:`Refused`."""
    queue_id = int(header["queueId"])
    if not 0 <= queue_id < topic.read_queue_nums:
        raise Refused(
            invalid(broker.store.release),
            f"queueId[{queue_id}] is illegal, topic:[{topic.name}] topicConfig.readQueueNums:[{topic.read_queue_nums}] "
            f"consumer:[/{connection.peer}]",
        )


def _subscription(broker: Broker, header: Header) -> Subscription:
    """Return the group's subscription to the topic: from the pull itself, or from earlier heartbeats."""
    topic, group = str(header["topic"]), str(header["consumerGroup"])
    if int(header["sysFlag"]) & SUBSCRIPTION:
        expression, kind = header["subscription"] or "", header["expressionType"] or TAG
        if kind == TAG and expression and not expression.replace("||", ""):
            raise Refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")
        return Subscription.of(topic, expression, int(header["subVersion"] or 0), kind)
    consumer_group = broker.clients.consumers.get(group)
    if consumer_group is None:
        raise Refused(
            ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist{see(broker.store.release)}"
        )
    declared = broker.topics.group(group)
    if consumer_group.model == BROADCASTING and declared is not None and not declared.consume_broadcast_enable:
        raise Refused(ResponseCode.NO_PERMISSION, f"the consumer group[{group}] can not consume by broadcast way")
    subscription = consumer_group.subscriptions.get(topic)
    if subscription is None:
        words = f"the consumer's subscription not exist{see(broker.store.release)}"
        raise Refused(ResponseCode.SUBSCRIPTION_NOT_EXIST, words)
    if subscription.version < int(header["subVersion"] or 0):
        raise Refused(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
    return subscription


def _filter(broker: Broker, header: Header, subscription: Subscription) -> MessageFilter | None:
    """Return the filter of entries; None if all pass."""
    if subscription.kind == TAG:
        return None if subscription.is_all else TagFilter(subscription.expression, subscription.codes)
    if subscription.kind != SQL92:
        words = f"The broker does not support consumer to filter message by {subscription.kind}"
        raise Refused(ResponseCode.SYSTEM_ERROR, words)
    bits = None
    if not int(header["sysFlag"]) & SUBSCRIPTION:
        bits = _registered(broker, header, subscription)
    if not broker.config.property_filter:
        raise Refused(
            ResponseCode.SYSTEM_ERROR, f"The broker does not support consumer to filter message by {subscription.kind}"
        )
    if subscription.topic.startswith(RETRY_PREFIX) and not broker.config.filter_retry:
        return None
    try:
        return SqlFilter(subscription.expression, bits)
    except BadFilter:
        return None  # as in RocketMQ: an expression that does not compile lets all pass


def _registered(broker: Broker, header: Header, subscription: Subscription) -> BloomData:
    """Return the bits of a filter that heartbeats registered. Raises :class:`Refused` if none is known, or only
    an older one.
    """
    consumer_filter = broker.filters.get(subscription.topic, str(header["consumerGroup"]))
    if consumer_filter is None:
        words = "The broker's consumer filter data is not exist!Your expression may be wrong!"
        raise Refused(ResponseCode.FILTER_DATA_NOT_EXIST, words)
    if consumer_filter.version < int(header["subVersion"] or 0):
        raise Refused(ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
    return consumer_filter.bloom_data()


def get_messages(broker: Broker, header: Header, offset: int, message_filter: MessageFilter | None) -> GetMessageResult:
    """Read messages from the store. Raises :class:`Refused` if it is not readable."""
    result = broker.store.get_message(
        str(header["consumerGroup"]),
        str(header["topic"]),
        int(header["queueId"]),
        offset,
        int(header["maxMsgNums"]),
        message_filter,
    )
    if result is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, "store getMessage return null")
    return result


def _answer(
    broker: Broker, request: Command, result: GetMessageResult, offset: int, queue_key: tuple[str, str, int]
) -> Command:
    """Return the answer for a read. ``queue_key`` are the group, the topic and the queue."""
    with result:
        code = CODES.get(result.status)
        if code is None:
            assert result.status in _EMPTY_STATUSES
            code = ResponseCode.PULL_OFFSET_MOVED if offset != 0 else ResponseCode.PULL_NOT_FOUND
        broker.pulled[queue_key] = result.next_begin_offset
        suggested, body = _suggested(broker, queue_key[0], slowly=result.suggest_pulling_from_slave), b""
        if code == ResponseCode.PULL_OFFSET_MOVED and broker.is_slave and not broker.store.config.offset_check_in_slave:
            code = ResponseCode.PULL_RETRY_IMMEDIATELY
        if code == ResponseCode.PULL_OFFSET_MOVED and broker.store.rules.major < 5:
            _tell_of_move(broker, queue_key, offset, result.next_begin_offset)
        if code == ResponseCode.SUCCESS:
            body = b"".join(result.messages)
            if not queue_key[1].startswith((RETRY_PREFIX, DLQ_PREFIX)):
                broker.stats.got[queue_key[0], queue_key[1], None].add(len(result.messages), len(body))
        fields = {
            "suggestWhichBrokerId": str(suggested),
            "nextBeginOffset": str(result.next_begin_offset),
            "minOffset": str(result.min_offset),
            "maxOffset": str(result.max_offset),
            **_flags(broker, queue_key),
        }
        return answer_to(request, code, fields=fields, body=body, remark=result.status.value)


def _tell_of_move(broker: Broker, queue_key: tuple[str, str, int], requested_offset: int, next_offset: int) -> None:
    """Before 5.x: put a message about a group that asked for an offset which a queue does not have. Java:
    ``PullMessageProcessor.generateOffsetMovedEvent``.
    """
    group, topic, queue_id = queue_key
    if broker.is_slave:
        return  # a slave puts no message
    queue = {"brokerName": broker.config.broker_name, "queueId": queue_id, "topic": topic}
    body = write(
        {"consumerGroup": group, "messageQueue": queue, "offsetNew": next_offset, "offsetRequest": requested_offset}
    )
    event_properties = {properties.KEYS: group, properties.DELAY: "0", properties.TAGS: group}
    address = broker.address or broker.store.parts.commit_log.store_host
    text = text_as_stored(event_properties, broker.store.release)
    event = Message(OFFSET_MOVED_TOPIC, body, 0, event_properties, text, born_timestamp=broker.now(), born_host=address)
    broker.store.put_message(event)


def _flags(broker: Broker, queue_key: tuple[str, str, int]) -> dict[str, str]:
    """Since 5.x: the flags of the group and of the topic."""
    if broker.store.rules.major < 5:
        return {}
    topic, row = broker.topics.get(queue_key[1]), broker.store.tables.group_row(queue_key[0]) or {}
    return {"groupSysFlag": str(row.get("groupSysFlag", 0)), "topicSysFlag": str(topic.topic_sys_flag if topic else 0)}


def _forbidden(broker: Broker, forbidden_type: int) -> dict[str, str]:
    """Since 5.x: the field that names what may not be read."""
    return {} if broker.store.rules.major < 5 else {"forbiddenType": str(forbidden_type)}


def _suggested(broker: Broker, group: str, *, slowly: bool) -> int:
    """Return the id of the broker that the group should pull from next: 0, the master, unless ``slaveReadEnable``;
    then the id that the group's row names, or its other id where the group reads far behind the log's end.
    """
    if not broker.config.slave_read:
        return 0
    row = broker.store.tables.group_row(group) or {}
    if slowly:
        return int(row.get("whichBrokerWhenConsumeSlowly", 1))
    return int(row.get("brokerId", 0))


def _moved(broker: Broker, request: Command, queue_key: tuple[str, str, int], offset: int) -> Command:
    """Return the answer after an administrator has set the group's offset."""
    queue = queue_key[1:]
    fields = {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": str(offset),
        "minOffset": str(broker.store.min_offset_in_queue(*queue)),
        "maxOffset": str(broker.store.max_offset_in_queue(*queue)),
        **_flags(broker, queue_key),
    }
    return answer_to(request, ResponseCode.PULL_OFFSET_MOVED, fields=fields, remark=_Status.OFFSET_RESET.value)


def wake_held(broker: Broker, *, all_of_them: bool = False) -> None:
    """Answer held pulls whose queue has grown; with ``all_of_them`` also those whose time is over (4.5)."""
    now = broker.now()
    for queue in broker.held.queues:
        end = broker.store.max_offset_in_queue(*queue)
        for pull in broker.held.at(queue):
            _retry(broker, pull, end, is_late=all_of_them and now >= pull.until)


def _retry(broker: Broker, pull: HeldPull, end: int, *, is_late: bool) -> None:
    if (end <= pull.offset and not is_late) or pull.connection.is_congested:
        return
    try:
        answer = pull.retry()
    except Refused as error:
        answer = answer_to(pull.request, error.code, fields=error.fields, remark=str(error))
    if answer is None:
        return
    if answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY and not is_late and not pull.is_logical:
        # The new entries do not match: the pull waits behind them, at the latest until its deadline.
        pull.offset = int(answer.fields["nextBeginOffset"])
        return
    if answer.code == ResponseCode.PULL_NOT_FOUND and not is_late:
        return
    broker.held.release(pull)
    pull.connection.send(answer)


HANDLERS: dict[int, Processor] = {
    RequestCode.PULL_MESSAGE: pull_message,
    RequestCode.LITE_PULL_MESSAGE: pull_message,
}
