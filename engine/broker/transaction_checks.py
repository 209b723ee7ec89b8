"""Producers are asked about transactions that nobody ended (docs/protocol/broker.md#transactions,
docs/protocol/behaviour.md#transactions; docs/formats/transactions.md#transactions).

Java: ``TransactionalMessageServiceImpl.check``, ``AbstractTransactionalMessageCheckListener``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.broker.broker import Broker
from engine.broker.topics import HALF, OP_HALF, TOO_OFTEN_CHECKED
from engine.broker.transactions import DECIDED_TAG, IMMUNITY, immunity_ms, text_as_stored, write_ops
from engine.codec import properties
from engine.codec.encode import HOST_BITS, Message, encode_unit
from engine.codec.message import Unit
from engine.remoting.frame import ONE_WAY, Command

GROUP = "CID_RMQ_SYS_TRANS"
"""The group that owns the offsets of both topics."""
CHECK_TRANSACTION_STATE = 39
PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
"""Property of a copy that was made to wait: queue offset of the half message as it came."""
MOST_AT_ONCE = 10_000
"""Half messages that one step looks at."""


@dataclass(slots=True)
class Decided:
    """What op messages say of one half queue."""

    by_half: dict[int, int] = field(default_factory=dict)
    """Queue offset of a half message → that of the op message which names it."""
    open_ops: dict[int, set[int]] = field(default_factory=dict)
    """Queue offset of an op message → half messages it names that were not met yet."""
    done: set[int] = field(default_factory=set)
    """Op messages that are of no use any more."""

    def take(self, half: int) -> bool:
        """Whether the half message at a queue offset is decided; it is met then."""
        op = self.by_half.pop(half, None)
        if op is None:
            return False
        left = self.open_ops[op]
        left.discard(half)
        if not left:
            del self.open_ops[op]
            self.done.add(op)
        return True


def check_transactions(broker: Broker) -> None:
    """Every half queue once: what is decided is passed, what is open for too long is asked about."""
    write_ops(broker, every=True)  # what is decided already is not asked about
    broker.store.dispatch_now()
    topic = broker.topics.get(HALF)
    for queue_id in range(topic.write_queue_nums if topic is not None else 0):
        _check_queue(broker, queue_id)


def _check_queue(broker: Broker, queue_id: int) -> None:
    half_offset, op_offset = (_offset(broker, topic, queue_id) for topic in (HALF, OP_HALF))
    decided = _decided(broker, queue_id, op_offset, half_offset)
    started, at = broker.now(), half_offset
    for unit in _walk(broker, HALF, queue_id, half_offset):
        if unit.queue_offset >= half_offset + MOST_AT_ONCE:
            break
        if not decided.take(unit.queue_offset) and not _open(broker, unit, decided, started):
            break
        at = unit.queue_offset + 1
    commit = broker.store.tables.commit_consumer_offset
    if at != half_offset:
        commit(GROUP, HALF, queue_id, at)
    new_op = op_offset
    while new_op in decided.done:
        new_op += 1
    if new_op != op_offset:
        commit(GROUP, OP_HALF, queue_id, new_op)


def _offset(broker: Broker, topic: str, queue_id: int) -> int:
    known = broker.store.tables.consumer_offset(GROUP, topic, queue_id)
    return known if known >= 0 else broker.store.min_offset_in_queue(topic, queue_id)


def _walk(broker: Broker, topic: str, queue_id: int, offset: int) -> Iterator[Unit]:
    while True:
        found = broker.store.get_message(GROUP, topic, queue_id, offset)
        if found is None:
            return
        with found:
            units = list(found.units())
            broker.stats.got[GROUP, topic, None].add(len(units), sum(map(len, found.messages)))
            following = found.next_begin_offset
        if not units:
            return
        yield from units
        offset = following


def _decided(broker: Broker, queue_id: int, op_offset: int, half_offset: int) -> Decided:
    found = Decided()
    for op in _walk(broker, OP_HALF, queue_id, op_offset):
        named = {int(word) for word in op.body.decode("utf-8", "replace").split(",") if word.isdecimal()}
        named = {half for half in named if half >= half_offset} if op.tags == DECIDED_TAG else set()
        if named:
            found.open_ops[op.queue_offset] = named
            found.by_half |= dict.fromkeys(named, op.queue_offset)
        else:
            found.done.add(op.queue_offset)
    return found


def _open(broker: Broker, unit: Unit, decided: Decided, started: int) -> bool:
    """Do with an undecided half message what its age asks for; False where it, and all behind it, are too young."""
    config, found = broker.config, unit.properties
    times = found.get(properties.TRANSACTION_CHECK_TIMES, "0")
    checked = int(times) if times.isdecimal() else 0
    age = broker.now() - unit.born_timestamp
    if checked >= config.transaction_checks or age > broker.store.config.file_reserved_time * 3_600_000:
        _discard(broker, unit)
        return True
    if unit.store_timestamp >= started:
        return False
    found[properties.TRANSACTION_CHECK_TIMES] = str(checked + 1)
    own = found.get(IMMUNITY)
    patience = config.transaction_timeout_ms if own is None else immunity_ms(own, config.transaction_timeout_ms)
    if own is not None and age < patience:
        return _still_immune(broker, unit, found, decided)
    if own is None and 0 <= age < patience:
        return False
    return _ask(broker, unit, found)


def _still_immune(broker: Broker, unit: Unit, found: dict[str, str], decided: Decided) -> bool:
    """A message that set its own time waits behind the others, and remembers where it stood first."""
    first = found.get(PREPARED_QUEUE_OFFSET)
    if first is not None and first.isdecimal() and decided.take(int(first)):
        return True
    again = {**found, properties.WAIT: "false", PREPARED_QUEUE_OFFSET: first or str(unit.queue_offset)}
    return broker.store.put_message(_renewed(broker, unit, again)).ok


def _renewed(broker: Broker, unit: Unit, found: dict[str, str]) -> Message:
    text = text_as_stored(found, broker.store.release)
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


def _ask(broker: Broker, unit: Unit, found: dict[str, str]) -> bool:
    """Put the half message in again behind the others, and ask a producer of its group about that copy."""
    copy = _renewed(broker, unit, found)
    result = broker.store.put_message(copy)
    if result.append is None or not result.ok:
        return False
    at = result.append
    producer = broker.clients.producer_of(found.get(properties.PRODUCER_GROUP, ""))
    if producer is None:
        return True
    key = found.get(properties.UNIQUE_KEY, "")
    fields = {
        "topic": unit.topic,
        "commitLogOffset": str(at.physical_offset),
        "offsetMsgId": at.msg_id,
        "msgId": key,
        "transactionId": key,
        "tranStateTableOffset": str(at.queue_offset),
    }
    if broker.store.rules.major >= 5:
        fields["bname"] = broker.config.broker_name
    real = copy.changed(
        topic=found.get(properties.REAL_TOPIC, unit.topic),
        queue_id=int(found.get(properties.REAL_QUEUE_ID, "0")),
        flag=unit.flag,
        properties_raw=text_as_stored({**found, properties.WAIT: "false"}, broker.store.release),
    )
    body = encode_unit(
        real, queue_offset=at.queue_offset, physical_offset=at.physical_offset, store_timestamp=unit.store_timestamp
    )
    producer.send(Command(CHECK_TRANSACTION_STATE, fields, body, flag=ONE_WAY))
    return True


def _discard(broker: Broker, unit: Unit) -> None:
    """Nobody said how it ends: it lies in a topic of its own."""
    topic = broker.topics.create_plain(TOO_OFTEN_CHECKED, 1)
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
