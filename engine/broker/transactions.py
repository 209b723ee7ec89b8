"""Transactions: half messages, and how they end (docs/protocol/broker.md#transactions,
docs/protocol/behaviour.md#transactions; docs/formats/transactions.md#transactions).

Java: ``EndTransactionProcessor``, ``TransactionalMessageBridge``, ``TransactionalMessageServiceImpl``.
"""

from __future__ import annotations

from engine.broker.broker import Broker, Header, Processor
from engine.codec import properties
from engine.codec.encode import HOST_BITS, Message, encode_properties
from engine.codec.message import COMMIT, ROLLBACK, TRANSACTION_MASK, Unit
from engine.releases import Release, of
from engine.remoting.codes import Refused, RequestCode, ResponseCode, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.system_names import HALF_TOPIC, OP_TOPIC

DECIDED_TAG = "d"
UNDECIDED = 0
IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
"""Property: seconds since its birth for which a half message is not asked about."""


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
    if of(release).major >= 5 and message_properties.get(properties.UNIQUE_KEY):
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
    return text if of(release).closes_last_property else text[:-1]


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
        raise Refused(ResponseCode.ILLEGAL_OPERATION, "")
    if half.properties.get(properties.PRODUCER_GROUP) != header["producerGroup"]:
        raise Refused(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
    if half.queue_offset != int(header["tranStateTableOffset"]):
        raise Refused(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
    if half.physical_offset != offset:
        raise Refused(ResponseCode.SYSTEM_ERROR, "The commit log offset wrong")
    if decision == COMMIT:
        result = broker.store.put_message(committed(half))
        if not result.ok:
            raise Refused(ResponseCode.SYSTEM_ERROR, result.status.value)
        broker.dispatched()
    decide(broker, half)
    _count(broker, half, decision)
    return answer_to(request)


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


def committed(half: Unit) -> Message:
    """Return the message of a committed transaction: its property text still has those of the half message, its
    rules do not.
    """
    half_properties = half.properties
    rules = {
        name: value
        for name, value in half_properties.items()
        if name not in {properties.REAL_TOPIC, properties.REAL_QUEUE_ID, properties.TRANSACTION_PREPARED}
    }
    return Message(
        half_properties.get(properties.REAL_TOPIC, ""),
        half.body,
        int(half_properties.get(properties.REAL_QUEUE_ID, "0")),
        rules,
        half.properties_raw,
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


ANSWERS: dict[int, Processor] = {RequestCode.END_TRANSACTION: end_transaction}
