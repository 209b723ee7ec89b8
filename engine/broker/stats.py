"""Statistics of a broker: counters since it started, rates and sums of what came in and went out lately as
administrators see them (28, 315), and, if they are observed, durations of requests.

Java: ``BrokerMetricsManager``, ``BrokerStatsManager``, ``RemotingMetricsManager``; ``StoreStatsService`` (a sample a
second, rates over 10 s, 1 min and 10 min), ``StatsItem`` (samples each 10 s, 10 min and hour, sums over a minute, an
hour and a day), ``BrokerStats`` (totals at midnight).
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from engine.callbacks import Clock
from engine.codec import properties
from engine.codec.config_tables import BACKUP, load_table, metrics
from engine.codec.json_dialect import render_line
from engine.mapped.disk import Disk, put_file
from engine.remoting.codes import answer_name, request_name
from engine.remoting.exchanges import CAME, CLOSED, HOLDING, LATER, WENT, FrameEvent
from engine.system_names import is_system_topic

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


class ValueHistogram:
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


def _spreads(ends: Sequence[int]) -> Callable[[], ValueHistogram]:
    return lambda: ValueHistogram(ends)


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
        for topic, (count, time_ms) in metrics(table).items():
            self[topic], self._times[topic] = count, time_ms
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
        self.own_puts: defaultdict[str, Flow] = defaultdict(Flow)
        """Committed messages and timer messages that were due, by topic: the statistics of 5.x count them when the
        broker puts them, its metrics do not.
        """
        self.sizes: defaultdict[tuple[str, str], ValueHistogram] = defaultdict(_spreads(SIZE_BUCKETS))
        self.dead: Counter[tuple[str, str]] = Counter()
        """Dead letters by group and topic."""
        self.sent_back: Counter[tuple[str, str]] = Counter()
        """Messages that consumers sent back by 36, by group and topic, dead letters among them."""
        self.half = HalfMessages()
        self.committed: Counter[str] = Counter()
        self.rolled_back: Counter[str] = Counter()
        self.finishing: defaultdict[str, ValueHistogram] = defaultdict(_spreads(FINISH_BUCKETS))
        """By topic."""
        self.declaring: defaultdict[tuple[bool, bool | None], ValueHistogram] = defaultdict(_spreads(CREATE_BUCKETS))
        """By success, and by whether the topic is the broker's own (None: a group)."""
        self.put_ms: defaultdict[tuple[str, int], Flow] = defaultdict(Flow)
        """Whole milliseconds from a send to its answer (``size``), by the topic and queue that it is stored in."""
        self.got_ms: defaultdict[tuple[str, str, int], Flow] = defaultdict(Flow)
        """Whole milliseconds that reading of messages took (``size``), by group, topic and requested queue."""
        self.checkpoints: defaultdict[tuple[str, str], Flow] = defaultdict(Flow)
        """Checkpoints of pops, by group and topic."""
        self.acknowledged: defaultdict[tuple[str, str], Flow] = defaultdict(Flow)
        """Acknowledged messages of pops, those whose invisible time was changed among them, by group and topic. Of
        in-order pops none, as in RocketMQ.
        """
        self.revive_in: Counter[tuple[str, str, str, str]] = Counter()
        """Records that were put into the revive topic, by group, topic, ``CK`` or ``ACK``, and status of the put."""
        self.revive_out: Counter[tuple[str, str, int, str]] = Counter()
        """Records that were read of it, by group, topic, revive queue, and ``CK`` or ``ACK``."""
        self.revived: Counter[tuple[str, str, str]] = Counter()
        """Messages that came again, by group, topic, and status of the put."""
        self.timers_in: Counter[str] = Counter()
        """Timer messages that reached the wheel, by the topic that they are for; ``timers_out``: that left it."""
        self.timers_out: Counter[str] = Counter()
        self.delays: defaultdict[str, ValueHistogram] = defaultdict(_spreads(DELAY_BUCKETS))
        """By topic."""
        self.rpc: RpcLatency | None = None
        """None while frames are not observed."""

    def count_own_put(self, topic: str, size: int) -> None:
        """Count a message of ``size`` bytes that the broker puts for a client that sent it before."""
        self.own_puts[topic].add(1, size)

    def count_timer_in(self, topic: str, seconds: int) -> None:
        """Count a timer message that reached the wheel; ``seconds`` are those from its birth to its time."""
        self.timers_in[topic] += 1
        self.delays[topic].add(seconds)

    def count_timer_out(self, topic: str) -> None:
        """Count a timer message that left the wheel."""
        self.timers_out[topic] += 1


class RpcKind(NamedTuple):
    """Labels of an answered request, with the names of RocketMQ's exporter."""

    request: str
    response: str
    is_long_polling: bool
    result: str


MAX_OPEN_REQUESTS = 10_000
"""Maximum number of open requests remembered per connection."""


class RpcLatency:
    """Milliseconds from a client's request to its answer: :meth:`take` gets the frames of a tap. A one-way request
    counts with 0, and a pull that was held as long polling.
    """

    def __init__(self) -> None:
        self.spreads: defaultdict[RpcKind, ValueHistogram] = defaultdict(lambda: ValueHistogram(RPC_BUCKETS))
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
            if len(requests) > MAX_OPEN_REQUESTS:
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


SPANS_S = (10, 60, 600)
"""Time spans (seconds) of the rates in 28."""
PERIODS = {"statsMinute": (10_000, 7), "statsHour": (600_000, 7), "statsDay": (3_600_000, 25)}
"""Periods of 315: ms between samples, and the number of samples."""
PUT_NUMS, PUT_SIZE, GET_NUMS, GET_SIZE = "TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE", "GROUP_GET_NUMS", "GROUP_GET_SIZE"
KINDS = (NORMAL, FIFO, DELAY, TRANSACTION)
SENT_BACK = "SNDBCK_PUT_NUMS"
ALL_PUT, ALL_GOT = "BROKER_PUT_NUMS", "BROKER_GET_NUMS"
NOT_SYSTEM = "_WITHOUT_SYSTEM_TOPIC"
"""Suffix of sums that leave topics of the broker's own out."""
PUT_LATENCY, GET_LATENCY = "TOPIC_PUT_LATENCY", "GROUP_GET_LATENCY"
CHECK_POINTS, ACKS = "GROUP_CK_NUMS", "GROUP_ACK_NUMS"
ALL_CHECK_POINTS, ALL_ACKS = "BROKER_CK_NUMS", "BROKER_ACK_NUMS"
_MINUTE_MS = 60_000
Key = tuple[str, str]
"""Name and subject of statistics; the subject is a topic, ``topic@group``, ``queue@topic``, ``queue@topic@group``, or
the cluster.
"""


class Count(NamedTuple):
    """A sum, and the number of calls that it was counted in."""

    value: int
    calls: int


class Totals(NamedTuple):
    """Counters since the start: messages put and got, reads of the store that found messages and that found none,
    timer messages that reached the wheel and that left it.
    """

    put: int
    got: int
    found: int = 0
    missed: int = 0
    timers_in: int = 0
    timers_out: int = 0


@dataclass(frozen=True, slots=True)
class PerSecond:
    """Rates over each of :data:`SPANS_S`, or since the start where that is shorter."""

    put: tuple[float, ...]
    got: tuple[float, ...]
    found: tuple[float, ...]
    missed: tuple[float, ...]
    timers_in: tuple[float, ...]
    timers_out: tuple[float, ...]


Sample = tuple[int, dict[Key, Count]]
"""Time (ms), and the counts until then."""


class Rates:
    """Samples of the counters; ``step`` is called once a second, ``now`` returns ms. ``counters`` are those of the
    store, ``put_times`` how many puts took how long (:meth:`engine.message_store.MessageStore.put_times`),
    ``sent`` how many bytes of the log went to each slave, by its address.
    """

    def __init__(
        self,
        stats: BrokerStats,
        counters: Callable[[], Mapping[str, int]],
        now: Clock,
        cluster: str,
        put_times: Callable[[], tuple[int, ...]] = tuple,
        sent: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._stats = stats
        self._counters = counters
        self._put_times = put_times
        self._sent = sent
        self._now = now
        self._cluster = cluster
        self._seconds: deque[tuple[int, Totals]] = deque([(now(), self.totals())], SPANS_S[-1] + 1)
        self._samples: dict[str, deque[Sample]] = {
            name: deque([(now(), {})], count) for name, (_, count) in PERIODS.items()
        }
        self._day = _day(now())
        self._minute = now(), put_times()
        self.last_minute: tuple[int, ...] | None = None
        """Spread of put times in the last complete minute; None before there is one."""
        self._sent_before: Mapping[str, int] = {}
        self.sent_last_second: dict[str, int] = {}
        """Bytes of the log that went to each slave in the last second, by its address."""
        self.yesterday_morning = self.today_morning = Totals(0, 0)
        """Totals at the last midnights; 0 if the broker did not run then."""

    def totals(self) -> Totals:
        """Return the counters since the start."""
        counters, stats = self._counters(), self._stats
        return Totals(
            counters["dispatch.units"],
            sum(flow.messages for flow in stats.got.values()),
            counters.get("get.found", 0),
            counters.get("get.missed", 0),
            stats.timers_in.total(),
            stats.timers_out.total(),
        )

    def step(self) -> None:
        """Take the samples that are due."""
        now, totals = self._now(), self.totals()
        self._seconds.append((now, totals))
        if _day(now) != self._day:
            self._day = _day(now)
            self.yesterday_morning, self.today_morning = self.today_morning, totals
        due = [name for name, (pause, _) in PERIODS.items() if now - self._samples[name][-1][0] >= pause]
        if due:
            sample = now, self._counts()
            for name in due:
                self._samples[name].append(sample)
        if now - self._minute[0] > _MINUTE_MS:
            times = self._put_times()
            self.last_minute = tuple(new - old for new, old in zip(times, self._minute[1], strict=True))
            self._minute = now, times
        sent = dict(self._sent())
        self.sent_last_second = {
            peer: max(size - self._sent_before[peer], 0) for peer, size in sent.items() if peer in self._sent_before
        }
        self._sent_before = sent

    def per_second(self) -> PerSecond:
        """Return the rates a second."""
        now, totals = self._now(), self.totals()
        rates = []
        for span in SPANS_S:
            sample_time, old_totals = self._seconds[max(len(self._seconds) - span - 1, 0)]
            seconds = max(now - sample_time, 1) / 1000
            rates.append([(new - old) / seconds for new, old in zip(totals, old_totals, strict=True)])
        return PerSecond(*zip(*rates, strict=True))

    def put_tps(self, topic: str) -> float:
        """Return a topic's messages a second, in the last minute."""
        count = sum(self._stats.put[topic, kind].messages for kind in KINDS if (topic, kind) in self._stats.put)
        count += self._stats.own_puts[topic].messages if topic in self._stats.own_puts else 0
        return self._tps_of_minute((PUT_NUMS, topic), count)

    def got_tps(self, group: str, topic: str) -> float:
        """Return the messages of a topic that a group got a second, in the last minute."""
        flows = [self._stats.got.get((group, topic, is_retry)) for is_retry in (None, False, True)]
        count = sum(flow.messages for flow in flows if flow is not None)
        return self._tps_of_minute((GET_NUMS, f"{topic}@{group}"), count)

    def _tps_of_minute(self, key: Key, count: int) -> float:
        """Look at one key only: every topic of a cluster may be asked about, one by one."""
        sample_time, counts = self._samples["statsMinute"][0]
        old_count = counts.get(key)
        return (count - (old_count.value if old_count is not None else 0)) * 1000 / max(self._now() - sample_time, 1)

    def of(self, name: str, key: str) -> dict[str, dict[str, float]] | None:
        """Return sums and rates of one key as 315 shows them; None if it was never counted."""
        current = self._counts().get((name, key))
        if current is None:
            return None
        now, none = self._now(), Count(0, 0)
        periods = {}
        for period, samples in self._samples.items():
            sample_time, counts = samples[0]
            old_count = counts.get((name, key), none)
            total, calls = current.value - old_count.value, current.calls - old_count.calls
            rate = total * 1000 / max(now - sample_time, 1)
            periods[period] = {"avgpt": total / calls if calls else 0.0, "sum": total, "tps": rate}
        return periods

    def _counts(self) -> dict[Key, Count]:
        counts: dict[Key, Count] = {}

        def add(name: str, key: str, value: int, calls: int) -> None:
            old_count = counts.get((name, key), Count(0, 0))
            counts[name, key] = Count(old_count.value + value, old_count.calls + calls)

        own_puts = (((topic, ""), flow) for topic, flow in self._stats.own_puts.items())
        for (topic, _), flow in (*self._stats.put.items(), *own_puts):
            add(PUT_NUMS, topic, flow.messages, flow.calls)
            add(PUT_SIZE, topic, flow.size, flow.calls)
            add(ALL_PUT, self._cluster, flow.messages, 0)
            if not is_system_topic(topic):
                add(ALL_PUT + NOT_SYSTEM, self._cluster, flow.messages, 0)
        for (group, topic), count in self._stats.sent_back.items():
            add(SENT_BACK, f"{topic}@{group}", count, count)
        for (group, topic, _), flow in self._stats.got.items():
            add(GET_NUMS, f"{topic}@{group}", flow.messages, flow.calls)
            add(GET_SIZE, f"{topic}@{group}", flow.size, flow.calls)
            add(ALL_GOT, self._cluster, flow.messages, 0)
            if not is_system_topic(topic):
                add(ALL_GOT + NOT_SYSTEM, self._cluster, flow.messages, 0)
        for (topic, queue_id), flow in self._stats.put_ms.items():
            add(PUT_LATENCY, f"{queue_id}@{topic}", flow.size, flow.calls)
        for (group, topic, queue_id), flow in self._stats.got_ms.items():
            add(GET_LATENCY, f"{queue_id}@{topic}@{group}", flow.size, flow.calls)
        for name, broker_name, flows in (
            (CHECK_POINTS, ALL_CHECK_POINTS, self._stats.checkpoints),
            (ACKS, ALL_ACKS, self._stats.acknowledged),
        ):
            for (group, topic), flow in flows.items():
                add(name, f"{topic}@{group}", flow.messages, flow.calls)
                add(broker_name, self._cluster, flow.messages, 0)
        return counts


def ms_since(start_ns: int) -> int:
    """Return the whole milliseconds since a time of ``perf_counter_ns``."""
    return (time.perf_counter_ns() - start_ns) // 1_000_000


def _day(ms: int) -> int:
    """Return a number for each day of this machine's calendar."""
    return time.localtime(ms / 1000).tm_yday
