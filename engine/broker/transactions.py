"""Transactions: half messages, how they end, and checks of transactions that nobody ended
(docs/protocol/broker.md#transactions, docs/protocol/behaviour.md#transactions;
docs/formats/transactions.md#transactions).

Java: ``EndTransactionProcessor``, ``TransactionalMessageBridge``, ``TransactionalMessageServiceImpl``,
``MessageQueueOpContext``, ``AbstractTransactionalMessageCheckListener``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.codec import properties
from engine.codec.encode import HOST_BITS, Message, encode_properties, encode_unit
from engine.codec.message import COMMIT, ROLLBACK, TRANSACTION_MASK, Unit
from engine.releases import Release, rules_of
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import ONE_WAY, Command, answer_to
from engine.system_names import CHECK_MAX_TOPIC, HALF_TOPIC, OP_TOPIC, TRANSACTION_GROUP

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


MAX_OP_BYTES = 4_096
INTERVAL_MS = 3_000
"""How long decisions wait for others before all become one op message."""


class OpMessages:
    """Table of decided half messages. The caller that takes a body out writes it."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[str]] = {}
        self._waiting_since_ms: dict[int, int] = {}

    def add(self, queue_id: int, queue_offset: int, now: int) -> bool:
        """Add a decided half message at ``now`` (ms). Return True if there are enough for an op message at once."""
        waiting = self._waiting.setdefault(queue_id, [])
        if not waiting:
            self._waiting_since_ms[queue_id] = now
        waiting.append(f"{queue_offset},")
        return sum(map(len, waiting)) > MAX_OP_BYTES

    def bodies(self, now: int | None) -> list[tuple[int, bytes]]:
        """Return queue ids with the bodies of op messages that are due at ``now`` (ms), None for all. They stay in the
        table until :meth:`written`.
        """
        return [
            (queue_id, "".join(waiting).encode())
            for queue_id, waiting in self._waiting.items()
            if waiting and (now is None or now - self._waiting_since_ms[queue_id] >= INTERVAL_MS or len(waiting) > 512)
        ]

    def written(self, queue_id: int, body: bytes) -> None:
        """Forget the half messages in ``body``: the log has them now."""
        count = body.count(b",")
        del self._waiting[queue_id][:count]


DECIDED_TAG = "d"
UNDECIDED = 0
IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
"""Property: seconds since its birth for which a half message is not asked about."""


_REAL_PLACE = frozenset({properties.REAL_TOPIC, properties.REAL_QUEUE_ID})


def is_half(sent_properties: dict[str, str], reconsume_times: int) -> bool:
    """Return True if a sender's properties mark a half message; one that is sent again is none."""
    if sent_properties.get(properties.TRANSACTION_PREPARED, "").lower() != "true":
        return False
    return not (reconsume_times > 0 and sent_properties.get(properties.DELAY, "0") not in {"", "0"})


def as_half(message: Message, release: Release) -> Message:
    """Return the message that is stored until its transaction is decided: in the half topic, with its real topic and
    queue as properties.
    """
    message_properties = dict(message.properties or {})
    if rules_of(release).major >= 5 and message_properties.get(properties.UNIQUE_KEY):
        message_properties[properties.TRANSACTION_ID] = message_properties[properties.UNIQUE_KEY]
    message_properties[properties.REAL_TOPIC] = message.topic
    message_properties[properties.REAL_QUEUE_ID] = str(message.queue_id)
    text = text_as_stored(message_properties, release)
    return message.changed(
        topic=HALF_TOPIC,
        queue_id=0,
        properties=message_properties,
        properties_raw=text,
        sys_flag=message.sys_flag & ~TRANSACTION_MASK,
    )


def text_as_stored(message_properties: dict[str, str], release: Release) -> bytes:
    """Return the property text that a release's broker stores: 4.9 omits the end of the last pair."""
    text = encode_properties(message_properties)
    return text if rules_of(release).closes_last_property else text[:-1]


def end_transaction(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command | None:
    """END_TRANSACTION: commit, roll back, or leave it unknown (then there is no answer)."""
    decision = int(header["commitOrRollback"])
    if decision == UNDECIDED:
        return None
    if decision not in (COMMIT, ROLLBACK):
        raise WrongRequest("commitOrRollback field wrong")
    offset = int(header["commitLogOffset"])
    half = broker.store.look_message_by_offset(offset)
    if half is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
    if _too_late(broker, header, half):
        raise Refused(ResponseCode.ILLEGAL_OPERATION, NOT_SET)
    if half.properties.get(properties.PRODUCER_GROUP) != header["producerGroup"]:
        raise Refused(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
    if half.queue_offset != int(header["tranStateTableOffset"]):
        raise Refused(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
    if half.physical_offset != offset:
        raise Refused(ResponseCode.SYSTEM_ERROR, "The commit log offset wrong")
    if decision == COMMIT:
        result = broker.store.put_message(committed(half, broker.store.release))
        if not result.ok:
            raise Refused(ResponseCode.SYSTEM_ERROR, result.status.value)
        if result.append is not None and broker.store.rules.major >= 5:
            broker.stats.count_own_put(half.properties.get(properties.REAL_TOPIC, ""), result.append.size)
        broker.dispatched()
    decide(broker, half)
    _count(broker, half, decision)
    return answer_to(request, remark=None if decision == COMMIT else NOT_SET)


def _count(broker: Broker, half: Unit, decision: int) -> None:
    """Count an ended transaction."""
    stats, topic = broker.stats, half.properties.get(properties.REAL_TOPIC, "")
    stats.half[topic] -= 1
    if decision == ROLLBACK:
        stats.rolled_back[topic] += 1
        return
    stats.committed[topic] += 1
    stats.finishing[topic].add(max(broker.now() - half.born_timestamp, 0) // 1000)


def _too_late(broker: Broker, header: Header, half: Unit) -> bool:
    """Since 5.x: a half message with its own immunity time that was checked meanwhile can only be ended by the
    answer to the check.
    """
    text = half.properties.get(IMMUNITY)
    if broker.store.rules.major < 5 or header["fromTransactionCheck"] or not text:
        return False
    return broker.now() - half.born_timestamp > immunity_ms(text, broker.config.transaction_timeout_ms)


def immunity_ms(text: str, min_ms: int) -> int:
    """Return how long (ms) after its birth a half message that sets its own time is not asked about."""
    digits = text.removeprefix("-")
    seconds = int(text) if digits.isascii() and digits.isdigit() else 0
    return max(seconds * 1000, min_ms)


def committed(half: Unit, release: Release) -> Message:
    """Return the message of a committed transaction: its property text still has those of the half message (since 5.4
    without the real topic and queue), its rules do not.
    """
    half_properties = half.properties
    stored = {name: value for name, value in half_properties.items() if name not in _REAL_PLACE}
    rules = {
        name: value
        for name, value in half_properties.items()
        if name not in _REAL_PLACE and name != properties.TRANSACTION_PREPARED
    }
    return Message(
        half_properties.get(properties.REAL_TOPIC, ""),
        half.body,
        int(half_properties.get(properties.REAL_QUEUE_ID, "0")),
        rules,
        half.properties_raw if rules_of(release).keeps_real_topic else text_as_stored(stored, release),
        flag=half.flag,
        sys_flag=half.sys_flag & ~HOST_BITS & ~TRANSACTION_MASK | COMMIT,
        born_timestamp=half.born_timestamp,
        born_host=half.born_host,
        store_host=half.store_host,
        reconsume_times=half.reconsume_times,
        prepared_transaction_offset=half.physical_offset,
    )


def decide(broker: Broker, half: Unit) -> None:
    """Mark the half message as decided, by an op message of its own (4.9) or with others."""
    if broker.store.rules.major < 5:
        _write_op(broker, half.queue_id, str(half.queue_offset).encode())
    elif broker.ops.add(half.queue_id, half.queue_offset, broker.now()):
        write_ops(broker, all_decisions=True)


def write_ops(broker: Broker, *, all_decisions: bool = False) -> None:
    """Write op messages for decisions that have waited long enough; with ``all_decisions`` for all of them."""
    for queue_id, body in broker.ops.bodies(None if all_decisions else broker.now()):
        if _write_op(broker, queue_id, body):
            broker.ops.written(queue_id, body)


def _write_op(broker: Broker, queue_id: int, body: bytes) -> bool:
    text = text_as_stored({properties.TAGS: DECIDED_TAG, properties.WAIT: "true"}, broker.store.release)
    address, now = broker.address or broker.store.parts.commit_log.store_host, broker.now()
    rules = {properties.TAGS: DECIDED_TAG, properties.WAIT: "false"}
    op = Message(OP_TOPIC, body, queue_id, rules, text, born_timestamp=now, born_host=address)
    return broker.store.put_message(op).ok


PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
"""Property of a copy that waits: queue offset of the original half message."""
MAX_PER_STEP = 10_000
"""Maximum number of half messages examined in one step."""


@dataclass(slots=True)
class OpDecisions:
    """Decisions of op messages about one half queue."""

    by_half: dict[int, int] = field(default_factory=dict)
    """Queue offset of a half message → that of the op message which names it."""
    open_ops: dict[int, set[int]] = field(default_factory=dict)
    """Queue offset of an op message → half messages it names that were not met yet."""
    done: set[int] = field(default_factory=set)
    """Op messages whose half messages were all met."""

    def take(self, half: int) -> bool:
        """Return True if the half message at a queue offset is decided, and count it as met."""
        op = self.by_half.pop(half, None)
        if op is None:
            return False
        open_halves = self.open_ops[op]
        open_halves.discard(half)
        if not open_halves:
            del self.open_ops[op]
            self.done.add(op)
        return True


def check_transactions(broker: Broker) -> None:
    """Check every half queue once: skip decided messages, and ask about those that are open for too long."""
    write_ops(broker, all_decisions=True)  # decided messages are not asked about
    broker.store.services.dispatch_now()
    topic = broker.topics.get(HALF_TOPIC)
    for queue_id in range(topic.write_queue_nums if topic is not None else 0):
        _check_queue(broker, queue_id)


def _check_queue(broker: Broker, queue_id: int) -> None:
    half_offset, op_offset = (_offset(broker, topic, queue_id) for topic in (HALF_TOPIC, OP_TOPIC))
    decided = _decided(broker, queue_id, op_offset, half_offset)
    started, next_half = broker.now(), half_offset
    for unit in _walk(broker, HALF_TOPIC, queue_id, half_offset):
        if unit.queue_offset >= half_offset + MAX_PER_STEP:
            break
        if not decided.take(unit.queue_offset) and not _open(broker, unit, decided, started):
            break
        next_half = unit.queue_offset + 1
    commit = broker.store.tables.commit_consumer_offset
    if next_half != half_offset:
        commit(TRANSACTION_GROUP, HALF_TOPIC, queue_id, next_half)
    new_op = op_offset
    while new_op in decided.done:
        new_op += 1
    if new_op != op_offset:
        commit(TRANSACTION_GROUP, OP_TOPIC, queue_id, new_op)


def _offset(broker: Broker, topic: str, queue_id: int) -> int:
    stored_offset = broker.store.tables.consumer_offset(TRANSACTION_GROUP, topic, queue_id)
    return stored_offset if stored_offset >= 0 else broker.store.min_offset_in_queue(topic, queue_id)


def _walk(broker: Broker, topic: str, queue_id: int, offset: int) -> Iterator[Unit]:
    while True:
        result = broker.store.get_message(TRANSACTION_GROUP, topic, queue_id, offset)
        if result is None:
            return
        with result:
            units = list(result.units())
            broker.stats.got[TRANSACTION_GROUP, topic, None].add(len(units), sum(map(len, result.messages)))
            following = result.next_begin_offset
        if not units:
            return
        yield from units
        offset = following


def _decided(broker: Broker, queue_id: int, op_offset: int, half_offset: int) -> OpDecisions:
    decided = OpDecisions()
    for op in _walk(broker, OP_TOPIC, queue_id, op_offset):
        halves = {int(word) for word in op.body.decode("utf-8", "replace").split(",") if word.isdecimal()}
        halves = {half for half in halves if half >= half_offset} if op.tags == DECIDED_TAG else set()
        if halves:
            decided.open_ops[op.queue_offset] = halves
            decided.by_half |= dict.fromkeys(halves, op.queue_offset)
        else:
            decided.done.add(op.queue_offset)
    return decided


def _open(broker: Broker, unit: Unit, decided: OpDecisions, started: int) -> bool:
    """Handle an undecided half message by its age. Return False if it, and all behind it, are too young."""
    config, message_properties = broker.config, unit.properties
    times = message_properties.get(properties.TRANSACTION_CHECK_TIMES, "0")
    checked = int(times) if times.isdecimal() else 0
    age = broker.now() - unit.born_timestamp
    if checked >= config.transaction_checks or age > broker.store.config.file_reserved_time * 3_600_000:
        _discard(broker, unit)
        return True
    if unit.store_timestamp >= started:
        return False
    message_properties[properties.TRANSACTION_CHECK_TIMES] = str(checked + 1)
    own_immunity = message_properties.get(IMMUNITY)
    immune_ms = (
        config.transaction_timeout_ms
        if own_immunity is None
        else immunity_ms(own_immunity, config.transaction_timeout_ms)
    )
    if own_immunity is not None and age < immune_ms:
        return _still_immune(broker, unit, message_properties, decided)
    if own_immunity is None and 0 <= age < immune_ms:
        return False
    return _ask(broker, unit, message_properties)


def _still_immune(broker: Broker, unit: Unit, message_properties: dict[str, str], decided: OpDecisions) -> bool:
    """Put a message that sets its own immunity time behind the others, with the offset at which it first stood."""
    original_offset = message_properties.get(PREPARED_QUEUE_OFFSET)
    if original_offset is not None and original_offset.isdecimal() and decided.take(int(original_offset)):
        return True
    renewed_properties = {
        **message_properties,
        properties.WAIT: "false",
        PREPARED_QUEUE_OFFSET: original_offset or str(unit.queue_offset),
    }
    return broker.store.put_message(_renewed(broker, unit, renewed_properties)).ok


def _renewed(broker: Broker, unit: Unit, message_properties: dict[str, str]) -> Message:
    text = text_as_stored(message_properties, broker.store.release)
    return Message(
        unit.topic,
        unit.body,
        unit.queue_id,
        {properties.WAIT: "false"},
        text,
        sys_flag=unit.sys_flag & ~HOST_BITS,
        born_timestamp=unit.born_timestamp,
        born_host=unit.born_host,
        store_host=unit.store_host,
    )


def _ask(broker: Broker, unit: Unit, message_properties: dict[str, str]) -> bool:
    """Put the half message again behind the others, and ask a producer of its group about that copy."""
    copy = _renewed(broker, unit, message_properties)
    result = broker.store.put_message(copy)
    if result.append is None or not result.ok:
        return False
    append = result.append
    producer = broker.clients.producer_of(message_properties.get(properties.PRODUCER_GROUP, ""))
    if producer is None:
        return True
    key = message_properties.get(properties.UNIQUE_KEY, "")
    fields = {
        "topic": unit.topic,
        "commitLogOffset": str(append.physical_offset),
        "offsetMsgId": append.msg_id,
        "msgId": key,
        "transactionId": key,
        "tranStateTableOffset": str(append.queue_offset),
    }
    if broker.store.rules.major >= 5:
        fields["bname"] = broker.config.broker_name
    real = copy.changed(
        topic=message_properties.get(properties.REAL_TOPIC, unit.topic),
        queue_id=int(message_properties.get(properties.REAL_QUEUE_ID, "0")),
        flag=unit.flag,
        properties_raw=text_as_stored({**message_properties, properties.WAIT: "false"}, broker.store.release),
    )
    body = encode_unit(
        real,
        queue_offset=append.queue_offset,
        physical_offset=append.physical_offset,
        store_timestamp=unit.store_timestamp,
    )
    producer.send(Command(RequestCode.CHECK_TRANSACTION_STATE, fields, body, flag=ONE_WAY))
    return True


def _discard(broker: Broker, unit: Unit) -> None:
    """Put a half message that nobody ended into a topic of its own."""
    topic = broker.topics.create_plain(CHECK_MAX_TOPIC, 1)
    message = Message(
        topic.name,
        unit.body,
        0,
        {properties.WAIT: "false"},
        unit.properties_raw,
        flag=unit.flag,
        sys_flag=unit.sys_flag & ~HOST_BITS,
        born_timestamp=unit.born_timestamp,
        born_host=unit.born_host,
        store_host=unit.store_host,
        reconsume_times=unit.reconsume_times,
    )
    if broker.store.put_message(message).ok:
        broker.stats.half[unit.properties.get(properties.REAL_TOPIC, "")] -= 1


HANDLERS: dict[int, Processor] = {
    RequestCode.END_TRANSACTION: end_transaction,
}
