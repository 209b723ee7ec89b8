"""Rates and sums of what came in and went out lately, as RocketMQ's administrators see them (28, 315).

Java: ``StoreStatsService`` (a sample a second, rates over 10 s, 1 min and 10 min), ``StatsItem`` (samples each 10 s,
10 min and hour, sums over a minute, an hour and a day), ``BrokerStats`` (totals at midnight).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from engine.broker.stats import DELAY, FIFO, NORMAL, TRANSACTION, BrokerStats
from engine.callbacks import Clock

SPANS_S = (10, 60, 600)
"""Time spans (seconds) of the rates in 28."""
PERIODS = {"statsMinute": (10_000, 7), "statsHour": (600_000, 7), "statsDay": (3_600_000, 25)}
"""Periods of 315: ms between samples, and the number of samples."""
PUT_NUMS, PUT_SIZE, GET_NUMS, GET_SIZE = "TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE", "GROUP_GET_NUMS", "GROUP_GET_SIZE"
KINDS = (NORMAL, FIFO, DELAY, TRANSACTION)
SENT_BACK = "SNDBCK_PUT_NUMS"
ALL_PUT, ALL_GOT = "BROKER_PUT_NUMS", "BROKER_GET_NUMS"
_MINUTE_MS = 60_000
Key = tuple[str, str]
"""Name and subject of statistics; the subject is a topic, ``topic@group``, or the cluster."""


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
        """Totals at the last midnights; 0 where the broker did not run then."""

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

        for (topic, _), flow in self._stats.put.items():
            add(PUT_NUMS, topic, flow.messages, flow.calls)
            add(PUT_SIZE, topic, flow.size, flow.calls)
            add(ALL_PUT, self._cluster, flow.messages, 0)
        for (group, topic), count in self._stats.sent_back.items():
            add(SENT_BACK, f"{topic}@{group}", count, count)
        for (group, topic, _), flow in self._stats.got.items():
            add(GET_NUMS, f"{topic}@{group}", flow.messages, flow.calls)
            add(GET_SIZE, f"{topic}@{group}", flow.size, flow.calls)
            add(ALL_GOT, self._cluster, flow.messages, 0)
        return counts


def _day(ms: int) -> int:
    """Return a number for each day of this machine's calendar."""
    return time.localtime(ms / 1000).tm_yday
