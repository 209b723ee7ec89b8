"""Counters of a broker since it started: messages and bytes that came in and went out (Java:
``BrokerMetricsManager``, ``BrokerStatsManager``), and, if they are observed, durations of requests (Java:
``RemotingMetricsManager``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from engine.codec import properties
from engine.codec.config_tables import metrics
from engine.codec.json_writer import render_line
from engine.codec.table_files import BACKUP, load_table
from engine.mapped.disk import Disk, put_file
from engine.remoting.codes import answer_name, request_name
from engine.remoting.exchanges import CAME, CLOSED, HOLDING, LATER, WENT, FrameEvent

NORMAL, FIFO, DELAY, TRANSACTION = "normal", "fifo", "delay", "transaction"
TIMERS = frozenset({properties.TIMER_DELIVER_MS, properties.TIMER_DELAY_SEC, properties.TIMER_DELAY_MS})
"""Properties that ask for a time of delivery."""
_SHARDING_KEY = "__SHARDINGKEY"
HALF_COUNTS = "transactionMetrics"
"""File of a broker of 5.x that keeps :class:`HalfMessages`."""


@dataclass(slots=True)
class Flow:
    """Messages, their bytes in the log, and the number of calls that they came or went in."""

    messages: int = 0
    size: int = 0
    calls: int = 0

    def add(self, messages: int, size: int) -> None:
        """Count messages of one call."""
        self.messages += messages
        self.size += size
        self.calls += 1


class Spread:
    """A histogram: how many values lie up to each of ``ends``, above the end before; how many behind the last; and
    their sum.
    """

    __slots__ = ("counts", "ends", "total")

    def __init__(self, ends: Sequence[int]) -> None:
        self.ends = ends
        self.counts = [0] * (len(ends) + 1)
        self.total = 0

    def add(self, value: int) -> None:
        """Count one more value."""
        self.counts[bisect_left(self.ends, value)] += 1
        self.total += value


RPC_BUCKETS = (1, 3, 5, 7, 10, 100, 1000, 2000, 3000)
"""Upper bounds in ms, as in RocketMQ's exporter (also below); longer durations are counted behind the last one."""
SIZE_BUCKETS = (1 << 10, 4 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20)
"""Bytes of a message."""
FINISH_BUCKETS = (5, 60, 600, 3_600, 43_200, 86_400)
"""Seconds from the birth of a half message to its commit."""
CREATE_BUCKETS = (10, 100, 1_000, 3_000, 5_000)
"""Milliseconds to declare a topic or a group."""
DELAY_BUCKETS = (60, 600, 3_600, 43_200, 86_400, 259_200)
"""Seconds from the birth of a timer message to its time."""


def _spreads(ends: Sequence[int]) -> Callable[[], Spread]:
    return lambda: Spread(ends)


class HalfMessages(Counter[str]):
    """Half messages less those that were decided, by the topic that they are for: a balance over all starts, which may
    be negative (docs/formats/config-tables.md, ``transactionMetrics``; Java: ``TransactionMetrics``,
    ``TransactionMetricsFlushService``).
    """

    def __init__(self) -> None:
        super().__init__()
        self._times: dict[str, int] = {}
        self._kept: dict[str, int] = {}
        self._version = 0

    def load(self, disk: Disk, path: Path) -> None:
        """Load the counts from the file, else its ``.bak``; start empty where neither can be read. Raises
        ``OSError``.
        """
        table = load_table(path.name, lambda name: disk.read_file(path.with_name(name))).value
        version = table.get("dataVersion")
        counter = version.get("counter") if isinstance(version, dict) else 0
        self._version = counter if isinstance(counter, int) else 0
        for topic, (count, time) in metrics(table).items():
            self[topic], self._times[topic] = count, time
        self._kept = dict(self)

    def save(self, disk: Disk, path: Path, now: int) -> None:
        """Write the file if a count has changed, and the old file to ``.bak``. Raises ``OSError``."""
        counts = dict(self)
        changed = [topic for topic, count in counts.items() if count != self._kept.get(topic)]
        if not changed:
            return
        self._times.update(dict.fromkeys(changed, now))
        self._version += len(changed)
        rows = {topic: {"count": count, "timeStamp": self._times.get(topic, now)} for topic, count in counts.items()}
        version = {"counter": self._version, "stateVersion": 0, "timestamp": now}
        old = disk.read_file(path)
        if old:
            put_file(disk, path.with_name(path.name + BACKUP), old)
        put_file(disk, path, render_line({"dataVersion": version, "transactionCount": rows}).encode())
        self._kept = counts


class BrokerStats:
    """``put`` and ``sizes`` by topic and kind of message; ``got`` by group, topic, and of pops by whether the messages
    come again (None: a pull).
    """

    def __init__(self) -> None:
        self.put: defaultdict[tuple[str, str], Flow] = defaultdict(Flow)
        self.got: defaultdict[tuple[str, str, bool | None], Flow] = defaultdict(Flow)
        self.sizes: defaultdict[tuple[str, str], Spread] = defaultdict(_spreads(SIZE_BUCKETS))
        self.dead: Counter[tuple[str, str]] = Counter()
        """Dead letters by group and topic."""
        self.sent_back: Counter[tuple[str, str]] = Counter()
        """Messages that consumers sent back by 36, by group and topic, dead letters among them."""
        self.half = HalfMessages()
        self.committed: Counter[str] = Counter()
        self.rolled_back: Counter[str] = Counter()
        self.finishing: defaultdict[str, Spread] = defaultdict(_spreads(FINISH_BUCKETS))
        """By topic."""
        self.declaring: defaultdict[tuple[bool, bool | None], Spread] = defaultdict(_spreads(CREATE_BUCKETS))
        """By success, and by whether the topic is the broker's own (None: a group)."""
        self.revive_in: Counter[tuple[str, str, str, str]] = Counter()
        """Records that were put into the revive topic, by group, topic, ``CK`` or ``ACK``, and status of the put."""
        self.revive_out: Counter[tuple[str, str, int, str]] = Counter()
        """Records that were read of it, by group, topic, revive queue, and ``CK`` or ``ACK``."""
        self.revived: Counter[tuple[str, str, str]] = Counter()
        """Messages that came again, by group, topic, and status of the put."""
        self.timers_in: Counter[str] = Counter()
        """Timer messages that reached the wheel, by the topic that they are for; ``timers_out``: that left it."""
        self.timers_out: Counter[str] = Counter()
        self.delays: defaultdict[str, Spread] = defaultdict(_spreads(DELAY_BUCKETS))
        """By topic."""
        self.rpc: RpcLatency | None = None
        """None while frames are not observed."""

    def timer_came(self, topic: str, seconds: int) -> None:
        """Count a timer message that reached the wheel; ``seconds`` are those from its birth to its time."""
        self.timers_in[topic] += 1
        self.delays[topic].add(seconds)

    def timer_left(self, topic: str) -> None:
        """Count a timer message that left the wheel."""
        self.timers_out[topic] += 1


class RpcKind(NamedTuple):
    """Labels of an answered request, with the names of RocketMQ's exporter."""

    request: str
    response: str
    is_long_polling: bool
    result: str


MOST_ASKED = 10_000
"""Maximum number of open requests remembered per connection."""


class RpcLatency:
    """Milliseconds from a client's request to its answer: :meth:`take` gets the frames of a tap. A one-way request
    counts with 0, and a pull that was held as long polling.
    """

    def __init__(self) -> None:
        self.spreads: defaultdict[RpcKind, Spread] = defaultdict(lambda: Spread(RPC_BUCKETS))
        self._asked: dict[int, dict[int, tuple[int, int]]] = {}

    def take(self, frame: FrameEvent) -> None:
        """Count one frame."""
        command = frame.command
        if frame.kind == CLOSED:
            self._asked.pop(frame.connection, None)
        elif command is None or command.is_answer == (frame.kind == CAME):
            return  # requests of the server, and their answers
        elif frame.kind == CAME and command.is_one_way:
            self._count(RpcKind(request_name(command.code).lower(), "success", False, "oneway"), 0)
        elif frame.kind == CAME:
            requests = self._asked.setdefault(frame.connection, {})
            requests[command.opaque] = frame.time, command.code
            if len(requests) > MOST_ASKED:
                del requests[next(iter(requests))]
        elif frame.kind in {WENT, LATER}:
            request = self._asked.get(frame.connection, {}).pop(command.opaque, None)
            if request is not None:
                time, code = request
                was_held = frame.kind == LATER and code in HOLDING
                names = request_name(code).lower(), answer_name(command.code).lower()
                self._count(RpcKind(*names, was_held, "success"), max(0, frame.time - time) // 1000)

    def _count(self, kind: RpcKind, ms: int) -> None:
        self.spreads[kind].add(ms)


def kind_of(sent_properties: dict[str, str]) -> str:
    """Return the kind of a message that was sent with these properties (Java:
    ``BrokerMetricsManager.getMessageType``).
    """
    if sent_properties.get(properties.TRANSACTION_PREPARED, "").lower() == "true":
        return TRANSACTION
    if _SHARDING_KEY in sent_properties:
        return FIFO
    return DELAY if properties.DELAY in sent_properties or not TIMERS.isdisjoint(sent_properties) else NORMAL
