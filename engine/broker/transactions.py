"""Transactions: half messages, and how they end (protocol 3.7, 4.9; spec 13.1).

Java: ``TransactionalMessageBridge``.
"""

from __future__ import annotations

from engine.broker.topics import HALF
from engine.codec import properties
from engine.codec.encode import Message
from engine.codec.message import TRANSACTION_MASK


def is_half(found: dict[str, str]) -> bool:
    """Whether a sender's properties say that the message is one of a transaction."""
    return found.get(properties.TRANSACTION_PREPARED, "").lower() == "true"


def as_half(message: Message) -> Message:
    """The message that is stored until its transaction is decided: of the half topic, its own place kept beside."""
    found = dict(message.properties or {})
    found.pop(properties.DELAY, None)
    found[properties.REAL_TOPIC] = message.topic
    found[properties.REAL_QUEUE_ID] = str(message.queue_id)
    return message.changed(
        topic=HALF, queue_id=0, properties=found, properties_raw=None, sys_flag=message.sys_flag & ~TRANSACTION_MASK
    )
