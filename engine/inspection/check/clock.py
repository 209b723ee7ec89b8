"""The clocks that a store's times came from: steps of the broker's (CL08), and producers' that differ (CL13)."""

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
from engine.codec.words import duration_text, time_text
from engine.errors import CannotRead
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, STORED_FROM, STORED_TO, Finding
from engine.rules.log_rules import CLOCK_STEP, StepBack
from engine.rules.proofs import Proof
from engine.rules.system_names import DLQ, RETRY, is_system_topic

DAY = 86_400_000
TOLERANCE = 5 * 60_000
"""ms that clocks of two machines may differ without a word."""
STEADY = 60_000
"""ms within which the times between born and stored lie where the clocks differ, and nothing else."""
MOST_LEAPS = 1000
MOST_TOLD = 20
MOST_APART = 30 * DAY
"""ms that a producer's clock is taken to be behind; messages that are older were born elsewhere, and copied."""
SAMPLED_FILES, SAMPLED_UNITS = 8, 200
LEAST_UNITS = 10
Int64 = NDArray[np.int64]


def latest_credible(store: StoreSnapshot, now: int | None) -> int:
    """The latest time (ms) that a unit can have been stored: now, or when a file of the log was last written if this
    machine's clock is behind the broker's; and what clocks may differ.
    """
    latest = round(time.time() * 1000) if now is None else now
    with contextlib.suppress(CannotRead, OSError):
        latest = max([latest, *(round(file.about().st_mtime * 1000) for file in store.log.files)])
    return latest + TOLERANCE


class Leap(NamedTuple):
    """Store times of a day apart, one behind the other: ``offset`` is the later unit's."""

    offset: int
    before: int
    after: int


@dataclass(slots=True)
class Stretch:
    """Units between two leaps: where it begins, its newest time, and the newest that is credible (ms; −1 for none)."""

    offset: int
    newest: int = -1
    credible: int = -1


class WrongTime(NamedTuple):
    """Units [start, end) that a clock dated wrong by ``by`` ms, ahead or behind; ``end`` is the first right one's."""

    start: int
    end: int
    first: int
    last: int
    by: int
    right: int  # the store time of the unit behind them


class Clock:
    """Fed with the store times of good units in the order of the log."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._last = -1
        self._leaps: list[Leap] = []
        self._stretches: list[Stretch] = [Stretch(0)]
        self._ahead: tuple[int, int] | None = None  # (offset, time) of the first unit that is dated later than now
        self._steps = 0
        self._longest = 0
        self._first_step: tuple[int, int, int] | None = None

    def block(self, offsets: Int64, times: Int64, steps: list[StepBack]) -> None:
        """More units; ``steps`` are their steps back by their place in ``times``."""
        if not len(times):
            return
        before = np.concatenate([[self._last if self._last >= 0 else times[0]], times[:-1]])
        for step in steps:
            if int(before[step.row]) - int(times[step.row]) < DAY:
                self._step(int(offsets[step.row]), int(times[step.row]), step.milliseconds)
        edges = np.flatnonzero(np.abs(times - before) >= DAY)
        for at in edges[: MOST_LEAPS - len(self._leaps)]:
            self._leaps.append(Leap(int(offsets[at]), int(before[at]), int(times[at])))
        cuts = [0, *edges.tolist(), len(times)]
        for number, (low, high) in enumerate(pairwise(cuts)):
            if number and len(self._stretches) <= MOST_LEAPS:
                self._stretches.append(Stretch(int(offsets[low])))
            self._stretch(offsets[low:high], times[low:high])
        self._last = int(times[-1])

    def _step(self, offset: int, stored: int, milliseconds: int) -> None:
        self._steps += 1
        self._longest = max(self._longest, milliseconds)
        if self._first_step is None or milliseconds >= CLOCK_STEP > self._first_step[2]:
            self._first_step = (offset, stored, milliseconds)

    def _stretch(self, offsets: Int64, times: Int64) -> None:
        if not len(times):
            return
        one = self._stretches[-1]
        one.newest = max(one.newest, int(times.max()))
        late = times > self._limit
        if late.any():
            at = int(np.argmax(late))
            self._ahead = self._ahead or (int(offsets[at]), int(times[at]))
        credible = times[~late]
        if len(credible):
            one.credible = max(one.credible, int(credible.max()))

    def accepts(self, proof: Proof) -> bool:
        """Whether a proven stretch has neither leaps nor times that are not credible."""
        start = self._last if self._last >= 0 else proof.first_time
        return proof.last_time <= self._limit and start <= proof.first_time and proof.last_time - start < DAY

    def pass_over(self, proof: Proof) -> None:
        """As if the units of a proven stretch had gone by."""
        one = self._stretches[-1]
        one.newest, one.credible = max(one.newest, proof.last_time), max(one.credible, proof.last_time)
        self._last = proof.last_time

    @property
    def newest(self) -> int:
        """The newest store time (ms) not known to be wrong, the newest of all where each one is; 0 for none."""
        wrong = self.wrong_times()
        right = [
            one.credible
            for one in self._stretches
            if not any(span.by > 0 and span.start <= one.offset < span.end for span in wrong)
        ]
        known = max(right, default=-1)
        return known if known >= 0 else max(0, *(one.newest for one in self._stretches))

    def wrong_times(self) -> list[WrongTime]:
        """Stretches between a leap and the one that takes it back."""
        found: list[WrongTime] = []
        opened: Leap | None = None
        for leap in self._leaps:
            step = leap.after - leap.before
            if opened is None or (opened.after > opened.before) == (step > 0):
                opened = leap
                if step < 0 and not found:
                    found.append(WrongTime(0, leap.offset, -1, leap.before, -step, leap.after))
                continue
            by = opened.after - opened.before
            if by < 0:  # it fell and rose again: it was behind, not ahead before
                found = [one for one in found if one.end != opened.offset]
            found.append(WrongTime(opened.offset, leap.offset, opened.after, leap.before, by, leap.after))
            opened = None
        return found

    def findings(self, file_of: Callable[[int], str | None]) -> Iterator[Finding]:
        """CL08; ``file_of`` names the file that holds an offset."""
        told = self.wrong_times()[:MOST_TOLD]
        for wrong in told:
            yield _wrong_time(wrong, file_of)
        if self._ahead is not None and not any(one.start <= self._ahead[0] < one.end for one in told):
            yield self._dated_ahead(self._ahead, file_of)
        if self._first_step is not None:
            at, stored, milliseconds = self._first_step
            text = (
                f"Stored {time_text(stored)}, {duration_text(milliseconds)} before an earlier unit; "
                f"such steps: {self._steps:,}, the longest {duration_text(self._longest)}"
            )
            evidence: dict[str, Any] = {"steps": self._steps, "longestMs": self._longest}
            evidence |= {"expected": time_text(stored + milliseconds), "found": time_text(stored)}
            evidence[HAPPENED] = (
                f"the broker's clock was set back by {duration_text(milliseconds)}, at {at:,} of the log"
            )
            evidence |= dict.fromkeys((STORED_FROM, STORED_TO), stored)
            grave = self._longest >= CLOCK_STEP
            yield catalogue.CL08.found(text, file_of(at), at, evidence, "warn" if grave else "note")

    def _dated_ahead(self, first: tuple[int, int], file_of: Callable[[int], str | None]) -> Finding:
        at, stored = first
        newest = max(one.newest for one in self._stretches)
        now = self._limit - TOLERANCE
        text = (
            f"Units from {at:,} on are dated {time_text(stored)} to {time_text(newest)}, "
            f"up to {duration_text(newest - now)} later than now: the broker's clock runs ahead"
        )
        evidence: dict[str, Any] = {"expected": f"up to {time_text(now)}", "found": time_text(newest), "from": at}
        evidence[HAPPENED] = f"the broker's clock ran ahead by {duration_text(newest - now)}, from {at:,} of the log on"
        evidence |= {STORED_FROM: stored, STORED_TO: newest}
        return catalogue.CL08.found(text, file_of(at), at, evidence, kind="ahead")


def _wrong_time(wrong: WrongTime, file_of: Callable[[int], str | None]) -> Finding:
    way = "ahead" if wrong.by > 0 else "behind"
    first = f"{time_text(wrong.first)} to " if wrong.first >= 0 else "until "
    units = f"units {wrong.start:,} to {wrong.end:,}" if wrong.first >= 0 else f"units up to {wrong.end:,}"
    text = (
        f"The broker's clock ran {duration_text(abs(wrong.by))} {way}: "
        f"{units} are dated {first}{time_text(wrong.last)}, the next one {time_text(wrong.right)}"
    )
    evidence: dict[str, Any] = {
        "expected": time_text(wrong.right),
        "found": time_text(wrong.last),
        "from": wrong.start,
        "to": wrong.end,
    }
    at = wrong.start if wrong.first >= 0 else wrong.end
    ran = "ran ahead" if way == "ahead" else "was behind"
    evidence[HAPPENED] = (
        f"the broker's clock {ran} by {duration_text(abs(wrong.by))}, from {wrong.start:,} of the log on"
    )
    if wrong.first >= 0:
        evidence |= {STORED_FROM: wrong.first, STORED_TO: wrong.last}
    return catalogue.CL08.found(text, file_of(at), at, {**evidence, "byMs": wrong.by}, kind=way)


def producers(store: StoreSnapshot) -> Iterator[Finding]:
    """CL13: hosts whose messages are born at another time than they are stored, all by the same; told of a sample.

    A message that waited, or was sent again, keeps when it was born: such topics are left out.
    """
    between: dict[str, list[int]] = {}
    first: dict[str, int] = {}
    for unit in _sample(store):
        if is_system_topic(unit.topic) or unit.topic.startswith((RETRY, DLQ)) or unit.reconsume_times:
            continue
        host = unit.born_host.rsplit(":", 1)[0]
        between.setdefault(host, []).append(unit.store_timestamp - unit.born_timestamp)
        first.setdefault(host, unit.offset)
    for host, spans in sorted(between.items()):
        low, high = min(spans), max(spans)
        ahead = high < -TOLERANCE
        apart = ahead or TOLERANCE < low < MOST_APART
        if len(spans) < LEAST_UNITS or not apart or high - low > STEADY:
            continue
        by = duration_text(min(abs(low), abs(high)))
        way = f"{by} before they were born" if ahead else f"{by} after they were born"
        text = f"Messages of {host} are stored {way}, all of a sample of {len(spans):,}: its clock is not the broker's"
        file = store.log.sequence.find(first[host])
        evidence = {
            "host": host,
            "units": len(spans),
            "expected": duration_text(0),
            "found": duration_text(low),
            "ms": [low, high],
        }
        yield rules.CL13.found(text, file.path if file else None, first[host], evidence)


def _sample(store: StoreSnapshot) -> Iterator[Unit]:
    """The first units of some files of the log, from the first to the last."""
    files = store.log.files
    for file in files[:: max(len(files) // SAMPLED_FILES, 1)]:
        for item in islice(store.units(file.start_offset, crc=False), SAMPLED_UNITS):
            if not isinstance(item, Unit):
                break
            yield item
