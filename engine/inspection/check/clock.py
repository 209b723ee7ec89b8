"""Checks the clocks behind a store's times: backward steps of the broker's clock (CL08), and producers with another
clock (CL13).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec.message import Unit
from engine.errors import CannotRead
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, STORED_FROM, STORED_TO, Finding
from engine.rules.log_rules import CLOCK_STEP, ClockStepBack
from engine.rules.proofs import Proof
from engine.sentences import sentence
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX, is_system_topic
from engine.times import duration_text, time_text

DAY_MS = 86_400_000
MAX_TIME_MS = 253_402_300_800_000
"""Start of the year 10000: no clock shows a later time."""
TOLERANCE_MS = 5 * 60_000
"""ms by which the clocks of two machines may differ without a finding."""
STEADY_MS = 60_000
"""ms within which the differences between birth and store time lie if only the clocks differ."""
MAX_JUMPS = 1000
MAX_REPORTED = 20
MAX_CLOCK_OFFSET_MS = 30 * DAY_MS
"""Largest clock difference of a producer, in ms; older messages were born elsewhere and copied."""
SAMPLED_FILES, SAMPLED_UNITS = 8, 200
MIN_UNITS = 10
Int64 = NDArray[np.int64]


def latest_credible(store: StoreSnapshot, now: int | None) -> int:
    """Latest credible store time (ms): now, or the last write of a log file if this machine's clock is behind the
    broker's; plus the tolerance between clocks.
    """
    latest = round(time.time() * 1000) if now is None else now
    with contextlib.suppress(CannotRead, OSError):
        latest = max([latest, *(round(file.status().st_mtime * 1000) for file in store.log.files)])
    return latest + TOLERANCE_MS


class TimeJump(NamedTuple):
    """A jump of a day or more between consecutive store times: ``offset`` is the later unit's."""

    offset: int
    time_before: int
    time_after: int


@dataclass(slots=True)
class ClockRange:
    """Units between two leaps: its start, its newest time, and its newest credible time (ms; −1 for none)."""

    offset: int
    newest: int = -1
    credible: int = -1


class WrongTime(NamedTuple):
    """Units [start, end) that a wrong clock dated ``by`` ms ahead or behind; ``end`` is the first correct one."""

    start: int
    end: int
    first_time: int
    last_time: int
    by: int
    right: int  # the store time of the unit behind them


class Clock:
    """Fed with the store times of good units in the order of the log."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._last = -1
        self._time_jumps: list[TimeJump] = []
        self._clock_ranges: list[ClockRange] = [ClockRange(0)]
        self._ahead: tuple[int, int] | None = None  # (offset, time) of the first unit with a time in the future
        self._steps = 0
        self._longest = 0
        self._first_step: tuple[int, int, int] | None = None

    def block(self, offsets: Int64, times: Int64, steps: list[ClockStepBack]) -> None:
        """More units; ``steps`` are their steps back by their place in ``times``."""
        if not len(times):
            return
        previous_times = np.concatenate([[self._last if self._last >= 0 else times[0]], times[:-1]])
        for step in steps:
            if int(previous_times[step.row]) - int(times[step.row]) < DAY_MS:
                self._step(int(offsets[step.row]), int(times[step.row]), step.milliseconds)
        edges = np.flatnonzero(np.abs(times - previous_times) >= DAY_MS)
        for row in edges[: MAX_JUMPS - len(self._time_jumps)]:
            self._time_jumps.append(TimeJump(int(offsets[row]), int(previous_times[row]), int(times[row])))
        cuts = [0, *edges.tolist(), len(times)]
        for number, (start_row, end_row) in enumerate(pairwise(cuts)):
            if number and len(self._clock_ranges) <= MAX_JUMPS:
                self._clock_ranges.append(ClockRange(int(offsets[start_row])))
            self._add_range(offsets[start_row:end_row], times[start_row:end_row])
        self._last = int(times[-1])

    def _step(self, offset: int, stored: int, milliseconds: int) -> None:
        self._steps += 1
        self._longest = max(self._longest, milliseconds)
        if self._first_step is None or milliseconds >= CLOCK_STEP > self._first_step[2]:
            self._first_step = (offset, stored, milliseconds)

    def _add_range(self, offsets: Int64, times: Int64) -> None:
        if not len(times):
            return
        clock_range = self._clock_ranges[-1]
        clock_range.newest = max(clock_range.newest, int(times.max()))
        late = times > self._limit
        if late.any():
            row = int(np.argmax(late))
            self._ahead = self._ahead or (int(offsets[row]), int(times[row]))
        credible = times[~late]
        if len(credible):
            clock_range.credible = max(clock_range.credible, int(credible.max()))

    def accepts(self, proof: Proof) -> bool:
        """Return True if a proven range has no leaps and only credible times."""
        start = self._last if self._last >= 0 else proof.first_time
        return proof.last_time <= self._limit and start <= proof.first_time and proof.last_time - start < DAY_MS

    def skip(self, proof: Proof) -> None:
        """Account for a proven range as if its units had been walked."""
        clock_range = self._clock_ranges[-1]
        clock_range.newest, clock_range.credible = (
            max(clock_range.newest, proof.last_time),
            max(clock_range.credible, proof.last_time),
        )
        self._last = proof.last_time

    @property
    def newest(self) -> int:
        """The newest store time (ms) not known to be wrong; if all are wrong, the newest of them; 0 if there is
        none.
        """
        wrong = self.wrong_times()
        right = [
            clock_range.credible
            for clock_range in self._clock_ranges
            if not any(span.by > 0 and span.start <= clock_range.offset < span.end for span in wrong)
        ]
        newest_right = max(right, default=-1)
        return (
            newest_right if newest_right >= 0 else max(0, *(clock_range.newest for clock_range in self._clock_ranges))
        )

    def wrong_times(self) -> list[WrongTime]:
        """Stretches between a leap and the one that takes it back."""
        spans: list[WrongTime] = []
        opened: TimeJump | None = None
        for time_jump in self._time_jumps:
            step = time_jump.time_after - time_jump.time_before
            if opened is None or (opened.time_after > opened.time_before) == (step > 0):
                opened = time_jump
                if step < 0 and not spans:
                    spans.append(WrongTime(0, time_jump.offset, -1, time_jump.time_before, -step, time_jump.time_after))
                continue
            by = opened.time_after - opened.time_before
            if by < 0:  # the time fell and rose again: the clock was behind, not ahead before
                spans = [span for span in spans if span.end != opened.offset]
            spans.append(
                WrongTime(
                    opened.offset, time_jump.offset, opened.time_after, time_jump.time_before, by, time_jump.time_after
                )
            )
            opened = None
        return spans

    def findings(self, file_of: Callable[[int], str | None]) -> Iterator[Finding]:
        """CL08; ``file_of`` names the file that holds an offset."""
        wrong_times = self.wrong_times()[:MAX_REPORTED]
        for wrong in wrong_times:
            yield _wrong_time(wrong, file_of)
        if self._ahead is not None and not any(span.start <= self._ahead[0] < span.end for span in wrong_times):
            yield self._dated_ahead(self._ahead, file_of)
        if self._first_step is not None:
            offset, stored, milliseconds = self._first_step
            text = sentence(
                "Stored {time}, {span} before an earlier unit; such steps: {n:,}, the longest {span_longest}",
                time=time_text(stored),
                span=duration_text(milliseconds),
                n=self._steps,
                span_longest=duration_text(self._longest),
            )
            evidence: dict[str, Any] = {"steps": self._steps, "longestMs": self._longest}
            evidence |= {"expected": time_text(stored + milliseconds), "found": time_text(stored)}
            evidence[HAPPENED] = sentence(
                "the broker's clock was set back by {span}, at {at:,} of the log",
                span=duration_text(milliseconds),
                at=offset,
            )
            evidence |= dict.fromkeys((STORED_FROM, STORED_TO), stored)
            grave = self._longest >= CLOCK_STEP
            yield catalogue.CL08.finding(text, file_of(offset), offset, evidence, "warn" if grave else "note")

    def _dated_ahead(self, first_ahead: tuple[int, int], file_of: Callable[[int], str | None]) -> Finding:
        offset, stored = first_ahead
        newest = max(clock_range.newest for clock_range in self._clock_ranges)
        now = self._limit - TOLERANCE_MS
        text = sentence(
            "Units from {start:,} on are dated {first} to {last}, up to {span} later than now: the "
            "broker's clock runs ahead",
            start=offset,
            first=time_text(stored),
            last=time_text(newest),
            span=duration_text(newest - now),
        )
        evidence: dict[str, Any] = {
            "expected": sentence("up to {time}", time=time_text(now)),
            "found": time_text(newest),
            "from": offset,
        }
        evidence[HAPPENED] = sentence(
            "the broker's clock ran ahead by {span}, from {at:,} of the log on",
            span=duration_text(newest - now),
            at=offset,
        )
        evidence |= {STORED_FROM: stored, STORED_TO: newest}
        return catalogue.CL08.finding(text, file_of(offset), offset, evidence, kind="ahead")


def _overwritten_time(wrong: WrongTime, file_of: Callable[[int], str | None]) -> Finding:
    """CL08 of store times that no clock can have: their bytes were overwritten."""
    text = sentence(
        "The store time of units up to {end:,} is {time}, which no clock can have: these bytes were overwritten; the "
        "next unit is dated {next}",
        end=wrong.end,
        time=wrong.last_time,
        next=time_text(wrong.right),
    )
    evidence: dict[str, Any] = {
        "expected": time_text(wrong.right),
        "found": wrong.last_time,
        "from": wrong.start,
        "to": wrong.end,
        HAPPENED: sentence("the store time of a unit was overwritten, at {offset:,} of the log", offset=wrong.end),
        "byMs": wrong.by,
    }
    return catalogue.CL08.finding(text, file_of(wrong.end), wrong.end, evidence, kind="overwritten")


def _wrong_time(wrong: WrongTime, file_of: Callable[[int], str | None]) -> Finding:
    if not 0 <= wrong.last_time < MAX_TIME_MS:
        return _overwritten_time(wrong, file_of)
    way = "ahead" if wrong.by > 0 else "behind"
    text = sentence(
        {
            (
                True,
                True,
            ): "The broker's clock ran {span} ahead: units {start:,} to {end:,} are dated {first} to {last}, "
            "the next one {next}",
            (True, False): "The broker's clock ran {span} behind: units {start:,} to {end:,} are dated {first} to "
            "{last}, the next one {next}",
            (False, True): "The broker's clock ran {span} ahead: units up to {end:,} are dated until {last}, the next "
            "one {next}",
            (False, False): "The broker's clock ran {span} behind: units up to {end:,} are dated until {last}, the "
            "next one {next}",
        }[wrong.first_time >= 0, wrong.by > 0],
        span=duration_text(abs(wrong.by)),
        start=wrong.start,
        end=wrong.end,
        first=time_text(wrong.first_time),
        last=time_text(wrong.last_time),
        next=time_text(wrong.right),
    )
    evidence: dict[str, Any] = {
        "expected": time_text(wrong.right),
        "found": time_text(wrong.last_time),
        "from": wrong.start,
        "to": wrong.end,
    }
    offset = wrong.start if wrong.first_time >= 0 else wrong.end
    evidence[HAPPENED] = sentence(
        "the broker's clock ran ahead by {span}, from {at:,} of the log on"
        if way == "ahead"
        else "the broker's clock was behind by {span}, from {at:,} of the log on",
        span=duration_text(abs(wrong.by)),
        at=wrong.start,
    )
    if wrong.first_time >= 0:
        evidence |= {STORED_FROM: wrong.first_time, STORED_TO: wrong.last_time}
    return catalogue.CL08.finding(text, file_of(offset), offset, {**evidence, "byMs": wrong.by}, kind=way)


def producers(store: StoreSnapshot) -> Iterator[Finding]:
    """CL13: hosts whose messages all have the same difference between birth and store time; based on a sample.

    A message that waited, or was sent again, keeps its birth time: topics with such messages are left out.
    """
    between: dict[str, list[int]] = {}
    first_offsets: dict[str, int] = {}
    for unit in _sample(store):
        if is_system_topic(unit.topic) or unit.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)) or unit.reconsume_times:
            continue
        host = unit.born_host.rsplit(":", 1)[0]
        between.setdefault(host, []).append(unit.store_timestamp - unit.born_timestamp)
        first_offsets.setdefault(host, unit.offset)
    for host, spans in sorted(between.items()):
        shortest, longest = min(spans), max(spans)
        ahead = longest < -TOLERANCE_MS
        apart = ahead or TOLERANCE_MS < shortest < MAX_CLOCK_OFFSET_MS
        if len(spans) < MIN_UNITS or not apart or longest - shortest > STEADY_MS:
            continue
        by = duration_text(min(abs(shortest), abs(longest)))
        text = sentence(
            "Messages of {host} are stored {span} before they were created, in all of a sample of {n:,}: its clock "
            "differs from the broker's"
            if ahead
            else "Messages of {host} are stored {span} after they were created, in all of a sample of {n:,}: its clock "
            "differs from the broker's",
            host=host,
            span=by,
            n=len(spans),
        )
        file = store.log.sequence.find(first_offsets[host])
        evidence = {
            "host": host,
            "units": len(spans),
            "expected": duration_text(0),
            "found": duration_text(shortest),
            "ms": [shortest, longest],
        }
        yield rules.CL13.finding(text, file.path if file else None, first_offsets[host], evidence)


def _sample(store: StoreSnapshot) -> Iterator[Unit]:
    """The first units of some files of the log, from the first to the last."""
    files = store.log.files
    for file in files[:: max(len(files) // SAMPLED_FILES, 1)]:
        for item in islice(store.units(file.start_offset, crc=False), SAMPLED_UNITS):
            if not isinstance(item, Unit):
                break
            yield item
