"""Priority of a message, and whether it is a priority message (docs/protocol/broker.md#priority).

Java: ``Message.getPriority``, ``TopicMessageType.parseFromMessageProperty``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.codec import properties

_NUMBER = re.compile(r"[+-]?[0-9]+")
_OF_OTHER_KINDS = (
    properties.DELAY,
    properties.TIMER_DELIVER_MS,
    properties.TIMER_DELAY_SEC,
    properties.TIMER_DELAY_MS,
    properties.SHARDING_KEY,
)


def priority_of(message_properties: Mapping[str, str]) -> int:
    """Return the priority, 0 or more; −1 for a message without one, or whose priority is not a number of 32 bits."""
    text = message_properties.get(properties.PRIORITY, "")
    value = int(text) if _NUMBER.fullmatch(text) else -1
    return value if 0 <= value < 1 << 31 else -1


def counting_priority(message_properties: Mapping[str, str]) -> int | None:
    """Return the priority by which a broker chooses the queue; None if there is none that counts."""
    value = priority_of(message_properties)
    return value if value >= 0 and is_priority_message(message_properties) else None


def is_priority_message(message_properties: Mapping[str, str]) -> bool:
    """Return True if the priority counts: not for transactions, delayed messages, and messages of an ordered group."""
    if message_properties.get(properties.TRANSACTION_PREPARED, "").lower() == "true":
        return False
    return not any(name in message_properties for name in _OF_OTHER_KINDS)
