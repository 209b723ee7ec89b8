"""How much came in and went out lately: rates and sums as RocketMQ's administrators see them (28, 315).

Java: ``StoreStatsService`` (a sample a second, rates over 10 s, 1 min and 10 min), ``StatsItem`` (samples each 10 s,
10 min and hour, sums over a minute, an hour and a day), ``BrokerStats`` (totals at midnight).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from engine.broker.stats import BrokerStats

SPANS_S = (10, 60, 600)
"""Seconds over which the rates of 28 are told."""
PERIODS = {"statsMinute": (10_000, 7), "statsHour": (600_000, 7), "statsDay": (3_600_000, 25)}
"""Of each period of 315 the ms between samples, and how many are kept."""
PUT_NUMS, PUT_SIZE, GET_NUMS, GET_SIZE = "TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE", "GROUP_GET_NUMS", "GROUP_GET_SIZE"
ALL_PUT, ALL_GOT = "BROKER_PUT_NUMS", "BROKER_GET_NUMS"
Key = tuple[str, str]
"""A name of statistics, and what they are of: a topic, ``topic@group``, or the cluster."""


class Count(NamedTuple):
    """A sum, and how many calls it was counted in."""

    value: int
    calls: int


class Totals(NamedTuple):
    """Messages since the start."""

    put: int
    got: int


Sample = tuple[int, dict[Key, Count]]
"""When (ms), and what was counted until then."""


class Rates:
    """``step`` is called once a second; ``now`` gives ms. ``put`` counts what the store took."""

    def __init__(self, stats: BrokerStats, put: Callable[[], int], now: Callable[[], int], cluster: str) -> None:
        self._stats = stats
        self._put = put
        self._now = now
        self._cluster = cluster
        self._seconds: deque[tuple[int, Totals]] = deque([(now(), self.totals())], SPANS_S[-1] + 1)
        self._samples: dict[str, deque[Sample]] = {
            name: deque([(now(), {})], count) for name, (_, count) in PERIODS.items()
        }
        self._day = _day(now())
        self.yesterday_morning = self.today_morning = Totals(0, 0)
        """Totals at the last midnights; 0 where the broker did not run then."""

    def totals(self) -> Totals:
        """Messages since the start."""
        return Totals(self._put(), sum(flow.messages for flow in self._stats.got.values()))

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

    def per_second(self) -> tuple[list[float], list[float]]:
        """Messages put and got a second, over each of :data:`SPANS_S`, or since the start where that is shorter."""
        now, totals = self._now(), self.totals()
        put, got = [], []
        for span in SPANS_S:
            before, then = self._seconds[max(len(self._seconds) - span - 1, 0)]
            seconds = max(now - before, 1) / 1000
            put.append((totals.put - then.put) / seconds)
            got.append((totals.got - then.got) / seconds)
        return put, got

    def of(self, name: str, key: str) -> dict[str, dict[str, float]] | None:
        """Sums and rates of one key as 315 tells them; None where nothing of it was ever counted."""
        last = self._counts().get((name, key))
        if last is None:
            return None
        now, none = self._now(), Count(0, 0)
        found = {}
        for period, samples in self._samples.items():
            before, counts = samples[0]
            first = counts.get((name, key), none)
            total, calls = last.value - first.value, last.calls - first.calls
            rate = total * 1000 / max(now - before, 1)
            found[period] = {"avgpt": total / calls if calls else 0.0, "sum": total, "tps": rate}
        return found

    def _counts(self) -> dict[Key, Count]:
        found: dict[Key, Count] = {}

        def add(name: str, key: str, value: int, calls: int) -> None:
            before = found.get((name, key), Count(0, 0))
            found[name, key] = Count(before.value + value, before.calls + calls)

        for (topic, _), flow in self._stats.put.items():
            add(PUT_NUMS, topic, flow.messages, flow.calls)
            add(PUT_SIZE, topic, flow.size, flow.calls)
            add(ALL_PUT, self._cluster, flow.messages, 0)
        for (group, topic, _), flow in self._stats.got.items():
            add(GET_NUMS, f"{topic}@{group}", flow.messages, flow.calls)
            add(GET_SIZE, f"{topic}@{group}", flow.size, flow.calls)
            add(ALL_GOT, self._cluster, flow.messages, 0)
        return found


def _day(ms: int) -> int:
    """A number for each day of this machine's calendar."""
    return time.localtime(ms / 1000).tm_yday
