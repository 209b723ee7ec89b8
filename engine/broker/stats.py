"""What went through a broker since it started: messages and bytes that came in and went out (Java:
``BrokerMetricsManager``, ``BrokerStatsManager``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from engine.codec import properties

NORMAL, FIFO, DELAY, TRANSACTION = "normal", "fifo", "delay", "transaction"
_DELAYS = (properties.DELAY, properties.TIMER_DELIVER_MS, properties.TIMER_DELAY_SEC, properties.TIMER_DELAY_MS)
_SHARDING_KEY = "__SHARDINGKEY"


@dataclass(slots=True)
class Flow:
    """Messages, and their bytes in the log."""

    messages: int = 0
    size: int = 0

    def add(self, messages: int, size: int) -> None:
        """Count more of them."""
        self.messages += messages
        self.size += size


@dataclass(slots=True)
class BrokerStats:
    """``put`` by topic and kind of message, ``got`` by group and topic."""

    put: defaultdict[tuple[str, str], Flow] = field(default_factory=lambda: defaultdict(Flow))
    got: defaultdict[tuple[str, str], Flow] = field(default_factory=lambda: defaultdict(Flow))


def kind_of(found: dict[str, str]) -> str:
    """The kind of a message that was sent with these properties (Java: ``BrokerMetricsManager.getMessageType``)."""
    if found.get(properties.TRANSACTION_PREPARED, "").lower() == "true":
        return TRANSACTION
    if _SHARDING_KEY in found:
        return FIFO
    return DELAY if any(name in found for name in _DELAYS) else NORMAL
