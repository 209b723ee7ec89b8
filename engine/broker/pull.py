"""PULL_MESSAGE, LITE_PULL_MESSAGE: a queue's messages, now or when there are some (docs/protocol/broker.md#pull,
docs/protocol/behaviour.md#long-polling, #filters).

Java: ``PullMessageProcessor``, ``DefaultPullMessageResultHandler``, ``PullRequestHoldService``.
"""

from __future__ import annotations

from engine.broker.broker import Broker, Header, Processor
from engine.broker.clients import BROADCASTING
from engine.broker.held_pulls import HeldPull
from engine.broker.json_bodies import write
from engine.broker.topics import DEAD_LETTERS, READ, RETRY
from engine.broker.transactions import text_as_stored
from engine.codec import properties
from engine.codec.encode import Message
from engine.errors import BadFilter
from engine.remoting.codes import Answer, Refused, invalid, see
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.remoting.subscriptions import SQL92, TAG, Subscription
from engine.store.get_message import GetMessageResult, GetMessageStatus
from engine.store.message_filter import BloomData, MessageFilter, SqlFilter, TagFilter

COMMIT_OFFSET, SUSPEND, SUBSCRIPTION, CLASS_FILTER, LITE = 1, 2, 4, 8, 16
"""Bits of a pull's ``sysFlag``."""
LITE_PULL = 361
MOVED = "OFFSET_MOVED_EVENT"
OF_GROUP, OF_TOPIC = 2, 3
"""Who may not read, or what may not be read (Java: ``ForbiddenType``)."""
_Status = GetMessageStatus
CODES = {
    _Status.FOUND: Answer.SUCCESS,
    _Status.MESSAGE_WAS_REMOVING: Answer.PULL_RETRY_IMMEDIATELY,
    _Status.NO_MATCHED_MESSAGE: Answer.PULL_RETRY_IMMEDIATELY,
    _Status.OFFSET_FOUND_NULL: Answer.PULL_NOT_FOUND,
    _Status.OFFSET_OVERFLOW_ONE: Answer.PULL_NOT_FOUND,
    _Status.OFFSET_OVERFLOW_BADLY: Answer.PULL_OFFSET_MOVED,
    _Status.OFFSET_TOO_SMALL: Answer.PULL_OFFSET_MOVED,
    _Status.OFFSET_RESET: Answer.PULL_OFFSET_MOVED,
}
_NOTHING_THERE = {_Status.NO_MATCHED_LOGIC_QUEUE, _Status.NO_MESSAGE_IN_QUEUE}


def pull_message(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """11, 361: messages, or a hold until there are some."""
    _check(broker, request, header, connection)
    subscription = _subscription(broker, header)
    wanted = _filter(broker, header, subscription)
    flags, group, topic = int(header["sysFlag"]), str(header["consumerGroup"]), str(header["topic"])
    queue_id, offset = int(header["queueId"]), int(header["queueOffset"])
    commits = flags & COMMIT_OFFSET and not (broker.is_slave and broker.store.rules.major < 5)
    if commits and broker.resets.offset(group, topic, queue_id) is None:
        broker.store.tables.commit_consumer_offset(group, topic, queue_id, int(header["commitOffset"]))

    def get(at: int) -> Command:
        reset = broker.resets.take(group, topic, queue_id)
        if reset is not None:
            broker.pulled[group, topic, queue_id] = reset
            return _moved(broker, request, (group, topic, queue_id), reset)
        return _answer(broker, request, get_messages(broker, header, at, wanted), at, (group, topic, queue_id))

    answer = get(offset)
    if answer.code != Answer.PULL_NOT_FOUND or not flags & SUSPEND:
        return answer
    patience = (
        int(header["suspendTimeoutMillis"] or 0) if broker.config.long_polling else broker.config.short_polling_ms
    )
    pull = HeldPull(request, connection, (topic, queue_id), offset, broker.now() + patience, lambda: get(pull.offset))
    broker.held.hold(pull)
    return None


def _check(broker: Broker, request: Command, header: Header, connection: Connection) -> None:
    """Whether the group may read the queue. Raises :class:`Refused` in RocketMQ's order."""
    config, name, like = broker.config, str(header["topic"]), broker.store.release
    if not config.permission & READ:
        raise Refused(Answer.NO_PERMISSION, f"the broker[{config.broker_ip}] pulling message is forbidden")
    if request.code == LITE_PULL and not config.lite_pull:
        raise Refused(Answer.NO_PERMISSION, f"the broker[{config.broker_ip}] for lite pull consumer is forbidden")
    group = broker.topics.group(str(header["consumerGroup"]))
    if group is None:
        words = f"subscription group [{header['consumerGroup']}] does not exist, {see(like)}"
        raise Refused(Answer.SUBSCRIPTION_GROUP_NOT_EXIST, words)
    if not group.consume_enable:
        raise Refused(
            Answer.NO_PERMISSION, f"subscription group no permission, {group.name}", _forbidden(broker, OF_GROUP)
        )
    topic = broker.topics.get(name)
    if topic is None:
        raise Refused(Answer.TOPIC_NOT_EXIST, f"topic[{name}] not exist, apply first please! {see(like)}")
    if not topic.perm & READ:
        raise Refused(
            Answer.NO_PERMISSION, f"the topic[{name}] pulling message is forbidden", _forbidden(broker, OF_TOPIC)
        )
    queue_id = int(header["queueId"])
    if not 0 <= queue_id < topic.read_queue_nums:
        raise Refused(
            invalid(like),
            f"queueId[{queue_id}] is illegal, topic:[{name}] topicConfig.readQueueNums:[{topic.read_queue_nums}] "
            f"consumer:[/{connection.peer}]",
        )


def _subscription(broker: Broker, header: Header) -> Subscription:
    """What the group wants of the topic: said in the pull itself, or by heartbeats before."""
    topic, group = str(header["topic"]), str(header["consumerGroup"])
    if int(header["sysFlag"]) & SUBSCRIPTION:
        said, kind = header["subscription"] or "", header["expressionType"] or TAG
        if kind == TAG and said and not said.replace("||", ""):
            raise Refused(Answer.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")
        return Subscription.of(topic, said, int(header["subVersion"] or 0), kind)
    known = broker.clients.consumers.get(group)
    if known is None:
        raise Refused(Answer.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist{see(broker.store.release)}")
    declared = broker.topics.group(group)
    if known.model == BROADCASTING and declared is not None and not declared.consume_broadcast_enable:
        raise Refused(Answer.NO_PERMISSION, f"the consumer group[{group}] can not consume by broadcast way")
    found = known.subscriptions.get(topic)
    if found is None:
        words = f"the consumer's subscription not exist{see(broker.store.release)}"
        raise Refused(Answer.SUBSCRIPTION_NOT_EXIST, words)
    if found.version < int(header["subVersion"] or 0):
        raise Refused(Answer.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
    return found


def _filter(broker: Broker, header: Header, subscription: Subscription) -> MessageFilter | None:
    """What decides on each entry; None where all pass."""
    if subscription.kind == TAG:
        return None if subscription.is_all else TagFilter(subscription.expression, subscription.codes)
    if subscription.kind != SQL92:
        words = f"The broker does not support consumer to filter message by {subscription.kind}"
        raise Refused(Answer.SYSTEM_ERROR, words)
    bits = None
    if not int(header["sysFlag"]) & SUBSCRIPTION:
        bits = _registered(broker, header, subscription)
    if not broker.config.property_filter:
        raise Refused(
            Answer.SYSTEM_ERROR, f"The broker does not support consumer to filter message by {subscription.kind}"
        )
    if subscription.topic.startswith(RETRY) and not broker.config.filter_retry:
        return None
    try:
        return SqlFilter(subscription.expression, bits)
    except BadFilter:
        return None  # as RocketMQ: what does not compile lets all pass


def _registered(broker: Broker, header: Header, subscription: Subscription) -> BloomData:
    """The bits of a filter that heartbeats have told of. Raises :class:`Refused` where none is known, or an older."""
    found = broker.filters.get(subscription.topic, str(header["consumerGroup"]))
    if found is None:
        words = "The broker's consumer filter data is not exist!Your expression may be wrong!"
        raise Refused(Answer.FILTER_DATA_NOT_EXIST, words)
    if found.version < int(header["subVersion"] or 0):
        raise Refused(Answer.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
    return found.bloom_data()


def get_messages(broker: Broker, header: Header, offset: int, wanted: MessageFilter | None) -> GetMessageResult:
    """What the store answers. Raises :class:`Refused` where it is not readable."""
    found = broker.store.get_message(
        str(header["consumerGroup"]),
        str(header["topic"]),
        int(header["queueId"]),
        offset,
        int(header["maxMsgNums"]),
        wanted,
    )
    if found is None:
        raise Refused(Answer.SYSTEM_ERROR, "store getMessage return null")
    return found


def _answer(
    broker: Broker, request: Command, found: GetMessageResult, offset: int, where: tuple[str, str, int]
) -> Command:
    """``where`` are the group, the topic and the queue."""
    with found:
        code = CODES.get(found.status)
        if code is None:
            assert found.status in _NOTHING_THERE
            code = Answer.PULL_OFFSET_MOVED if offset != 0 else Answer.PULL_NOT_FOUND
        broker.pulled[where] = found.next_begin_offset
        suggested, body = _suggested(broker, where[0], slowly=found.suggest_pulling_from_slave), b""
        if code == Answer.PULL_OFFSET_MOVED and broker.is_slave and not broker.store.config.offset_check_in_slave:
            code = Answer.PULL_RETRY_IMMEDIATELY
        if code == Answer.PULL_OFFSET_MOVED and broker.store.rules.major < 5:
            _tell_of_move(broker, where, offset, found.next_begin_offset)
        if code == Answer.SUCCESS:
            body = b"".join(found.messages)
            if not where[1].startswith((RETRY, DEAD_LETTERS)):
                broker.stats.got[where[0], where[1], None].add(len(found.messages), len(body))
        fields = {
            "suggestWhichBrokerId": str(suggested),
            "nextBeginOffset": str(found.next_begin_offset),
            "minOffset": str(found.min_offset),
            "maxOffset": str(found.max_offset),
            **_flags(broker, where),
        }
        return answer_to(request, code, fields=fields, body=body, remark=found.status.value)


def _tell_of_move(broker: Broker, where: tuple[str, str, int], asked: int, following: int) -> None:
    """Before 5.x: a message of the broker's own tells of a group that asked for an offset which a queue does not have.
    Java: ``PullMessageProcessor.generateOffsetMovedEvent``.
    """
    group, topic, queue_id = where
    if broker.is_slave:
        return  # it puts no message
    queue = {"brokerName": broker.config.broker_name, "queueId": queue_id, "topic": topic}
    body = write({"consumerGroup": group, "messageQueue": queue, "offsetNew": following, "offsetRequest": asked})
    found = {properties.KEYS: group, properties.DELAY: "0", properties.TAGS: group}
    address = broker.address or broker.store.parts.commit_log.store_host
    text = text_as_stored(found, broker.store.release)
    event = Message(MOVED, body, 0, found, text, born_timestamp=broker.now(), born_host=address)
    broker.store.put_message(event)


def _flags(broker: Broker, where: tuple[str, str, int]) -> dict[str, str]:
    """Since 5.x: the flags of the group and of the topic."""
    if broker.store.rules.major < 5:
        return {}
    topic, row = broker.topics.get(where[1]), broker.store.tables.group_row(where[0]) or {}
    return {"groupSysFlag": str(row.get("groupSysFlag", 0)), "topicSysFlag": str(topic.topic_sys_flag if topic else 0)}


def _forbidden(broker: Broker, what: int) -> dict[str, str]:
    """Since 5.x: what it is that may not be read."""
    return {} if broker.store.rules.major < 5 else {"forbiddenType": str(what)}


def _suggested(broker: Broker, group: str, *, slowly: bool) -> int:
    """The id of the broker that the group should pull from next: 0, the master, unless ``slaveReadEnable``; the other
    one that its row names where it reads far behind the log's end.
    """
    if not broker.config.slave_read:
        return 0
    row = broker.store.tables.group_row(group) or {}
    if slowly:
        return int(row.get("whichBrokerWhenConsumeSlowly", 1))
    return int(row.get("brokerId", 0))


def _moved(broker: Broker, request: Command, where: tuple[str, str, int], offset: int) -> Command:
    """An administrator has set the group's offset: it goes on there."""
    queue = where[1:]
    fields = {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": str(offset),
        "minOffset": str(broker.store.min_offset_in_queue(*queue)),
        "maxOffset": str(broker.store.max_offset_in_queue(*queue)),
        **_flags(broker, where),
    }
    return answer_to(request, Answer.PULL_OFFSET_MOVED, fields=fields, remark=_Status.OFFSET_RESET.value)


def wake_held(broker: Broker, *, all_of_them: bool = False) -> None:
    """Answer held pulls whose queue has grown; with ``all_of_them`` also those whose time is over (4.5)."""
    now = broker.now()
    for queue in broker.held.queues:
        end = broker.store.max_offset_in_queue(*queue)
        for pull in broker.held.at(queue):
            _look_again(broker, pull, end, late=all_of_them and now >= pull.until)


def _look_again(broker: Broker, pull: HeldPull, end: int, *, late: bool) -> None:
    if (end <= pull.offset and not late) or pull.connection.is_congested:
        return
    try:
        answer = pull.again()
    except Refused as error:
        answer = answer_to(pull.request, error.code, fields=error.fields, remark=str(error))
    if answer is None:
        return
    if answer.code == Answer.PULL_RETRY_IMMEDIATELY and not late:
        # What came does not match: the pull goes on behind it, and the client is told at the latest at its time.
        pull.offset = int(answer.fields["nextBeginOffset"])
        return
    if answer.code == Answer.PULL_NOT_FOUND and not late:
        return
    broker.held.release(pull)
    pull.connection.send(answer)


ANSWERS: dict[int, Processor] = {11: pull_message, LITE_PULL: pull_message}
