"""What went through a broker since it started: messages and bytes that came in and went out (Java:
``BrokerMetricsManager``, ``BrokerStatsManager``), and where somebody asks for it how long requests took (Java:
``RemotingMetricsManager``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.codec import properties
from engine.remoting.exchanges import CAME, CLOSED, HOLDING, LATER, WENT, Seen, answer_name, request_name

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
    rpc: RpcLatency | None = None
    """None as long as nobody looks at the frames."""


class RpcKind(NamedTuple):
    """What is told apart of requests that were answered: names as RocketMQ's exporter writes them."""

    request: str
    response: str
    is_long_polling: bool
    result: str


RPC_BUCKETS = (1, 3, 5, 7, 10, 100, 1000, 2000, 3000)
"""Upper ends in ms, as RocketMQ's exporter has them; what took longer is counted behind the last."""
MOST_ASKED = 10_000
"""Requests of one connection whose answer is waited for."""


@dataclass(slots=True)
class Spread:
    """How many requests fell into each of :data:`RPC_BUCKETS` and behind them, and their ms in all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(RPC_BUCKETS) + 1))
    total: int = 0


class RpcLatency:
    """Ms from a client's request to its answer: :meth:`take` sees frames as a tap tells them. A one-way request counts
    with 0, and a pull that was held as long polling.
    """

    def __init__(self) -> None:
        self.spreads: defaultdict[RpcKind, Spread] = defaultdict(Spread)
        self._asked: dict[int, dict[int, tuple[int, int]]] = {}

    def take(self, seen: Seen) -> None:
        """One more frame."""
        command = seen.command
        if seen.kind == CLOSED:
            self._asked.pop(seen.connection, None)
        elif command is None or command.is_answer == (seen.kind == CAME):
            return  # what the server asks, and what it is answered
        elif seen.kind == CAME and command.is_one_way:
            self._count(RpcKind(request_name(command.code).lower(), "success", False, "oneway"), 0)
        elif seen.kind == CAME:
            asked = self._asked.setdefault(seen.connection, {})
            asked[command.opaque] = seen.time, command.code
            if len(asked) > MOST_ASKED:
                del asked[next(iter(asked))]
        elif seen.kind in {WENT, LATER}:
            found = self._asked.get(seen.connection, {}).pop(command.opaque, None)
            if found is not None:
                time, code = found
                held = seen.kind == LATER and code in HOLDING
                names = request_name(code).lower(), answer_name(command.code).lower()
                self._count(RpcKind(*names, held, "success"), max(0, seen.time - time) // 1000)

    def _count(self, kind: RpcKind, ms: int) -> None:
        spread = self.spreads[kind]
        spread.counts[bisect_left(RPC_BUCKETS, ms)] += 1
        spread.total += ms


def kind_of(found: dict[str, str]) -> str:
    """The kind of a message that was sent with these properties (Java: ``BrokerMetricsManager.getMessageType``)."""
    if found.get(properties.TRANSACTION_PREPARED, "").lower() == "true":
        return TRANSACTION
    if _SHARDING_KEY in found:
        return FIFO
    return DELAY if any(name in found for name in _DELAYS) else NORMAL
