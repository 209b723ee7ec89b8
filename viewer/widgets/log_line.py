"""The log as one line of bytes: files, samples, marks, and the place of each offset; no Qt.

The line runs from the first byte to the end of the last valid unit. The zero tail after it has a fixed share of
the width, or a gibibyte of zeros would hide a small log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.codec.message import Unit
from engine.codec.unit_scan import Stop
from engine.errors import CannotRead
from viewer.look.broken import UnreadableRange

TAIL_SHARE = 0.04
SAMPLES = 240
UNITS_A_SAMPLE = 32


@dataclass(frozen=True, slots=True)
class LineFile:
    """A file of the log."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TopicMix:
    """The topics of the bytes around a place. ``shares`` sum to 1; they are empty if nothing there is readable."""

    start: int
    end: int
    shares: tuple[tuple[str, float], ...]
    time: int | None = None


@dataclass(frozen=True, slots=True)
class LinePin:
    """A finding, a bookmark or another place on the line. ``finding`` and ``link`` are for its menu."""

    offset: int
    kind: str
    text: str = ""
    finding: Any = field(default=None, compare=False)
    link: object = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class LogLine:
    """The extent of the log: ``low`` is its first byte, ``written`` the end of the last valid unit, ``high`` the end
    of the files.
    """

    low: int
    written: int
    high: int
    files: tuple[LineFile, ...] = ()

    def share(self, offset: int) -> float:
        """The place of ``offset`` on a line of length 1."""
        data, tail = max(1, self.written - self.low), self.high - self.written
        room = 1.0 - (TAIL_SHARE if tail > 0 else 0.0)
        if offset <= self.written:
            return max(0.0, (offset - self.low) / data * room)
        return min(1.0, room + (offset - self.written) / max(1, tail) * TAIL_SHARE)

    def offset(self, share: float) -> int:
        """The offset at ``share`` of the line."""
        data, tail = max(1, self.written - self.low), self.high - self.written
        room = 1.0 - (TAIL_SHARE if tail > 0 else 0.0)
        if share <= room or tail <= 0:
            return self.low + int(data * min(1.0, max(0.0, share) / room))
        return min(self.high, self.written + int(tail * (share - room) / TAIL_SHARE))

    def file_at(self, offset: int) -> LineFile | None:
        """The file that holds ``offset``, or None."""
        lower, upper = 0, len(self.files)
        while lower < upper:
            middle = (lower + upper) // 2
            if self.files[middle].start <= offset:
                lower = middle + 1
            else:
                upper = middle
        if lower and offset < self.files[lower - 1].end:
            return self.files[lower - 1]
        return None


def reaching(line: LogLine, broken: Iterable[UnreadableRange]) -> LogLine:
    """Extend the line to the end of the stretches that are missing after its files."""
    end = max((damage.end for damage in broken), default=0)
    return replace(line, written=end, high=end) if line.high > line.low and end > line.high else line


def line_of(log: Any) -> LogLine:
    """The line of a commit log; reads the end of the log from the disk. If that fails the line ends with the files:
    it shows what cannot be read, and does not claim that nothing was written.
    """
    files = tuple(LineFile(f"{f.start_offset:020d}", f.start_offset, f.end_offset) for f in log.files)
    start = max(log.min_offset, 0)
    try:
        end = min(log.max_offset, log.end_offset)
    except CannotRead:
        end = log.end_offset
    return LogLine(start, max(start, end), max(start, log.end_offset), files)


def sample_places(line: LogLine, count: int = SAMPLES) -> list[tuple[int, int]]:
    """Spans of equal length to sample, coarse to fine, so that the whole line fills at once."""
    length = line.written - line.low
    if length <= 0:
        return []
    count = max(1, min(count, length // 4096 or 1))
    edges = [line.low + length * n // count for n in range(count + 1)]
    spans = [(edges[n], edges[n + 1]) for n in range(count)]
    order: list[int] = []
    step = 16
    while step:
        order += [n for n in range(0, count, step) if n not in set(order)] if step > 1 else []
        step //= 2
    ordered = set(order)
    return [spans[n] for n in [*order, *(n for n in range(count) if n not in ordered)]]


def sample(log: Any, start: int, end: int) -> TopicMix:
    """Read a few units at the beginning of [start, end) from the disk."""
    sizes: Counter[str] = Counter()
    time: int | None = None
    for item in _units_from(log, start, end):
        sizes[item.topic] += item.size
        time = item.store_timestamp if time is None else time
    total = sum(sizes.values())
    shares = tuple((topic, part / total) for topic, part in sizes.most_common()) if total else ()
    return TopicMix(start, end, shares, time)


def _units_from(log: Any, span_start: int, span_end: int) -> Iterator[Unit]:
    count, unit_start = 0, -1
    if log.sequence.find(span_start) is not None:
        unit_start = log.next_unit(span_start)  # reads far less than align(), which is exact
    for item in log.walk(
        unit_start if span_start <= unit_start < span_end else log.align(span_start), span_end, crc=False
    ):
        if isinstance(item, Stop) or item.offset >= span_end:
            return
        if isinstance(item, Unit):
            yield item
            count += 1
            if count >= UNITS_A_SAMPLE:
                return


def joined(mixes: Sequence[TopicMix], least: int) -> list[TopicMix]:
    """Merge samples, in the order of the log. Neighbours that touch and together have at most ``least`` bytes become
    one, with shares weighted by bytes. A narrower sample could not be seen on the line.
    """
    merged: list[TopicMix] = []
    for mix in sorted(mixes, key=lambda sampled: sampled.start):
        previous = merged[-1] if merged else None
        if previous is None or previous.end != mix.start or mix.end - previous.start > least:
            merged.append(mix)
            continue
        weights: dict[str, float] = {}
        for sampled in (previous, mix):
            for topic, share in sampled.shares:
                weights[topic] = weights.get(topic, 0.0) + share * (sampled.end - sampled.start)
        total = sum(weights.values())
        listed = sorted(weights.items(), key=lambda pair: -pair[1])
        shares = tuple((topic, weight / total) for topic, weight in listed) if total else ()
        merged[-1] = TopicMix(previous.start, mix.end, shares, mix.time if previous.time is None else previous.time)
    return merged


def worst_pins(pins: Sequence[LinePin], places: Sequence[float], apart: float) -> list[tuple[float, LinePin]]:
    """Pins that can be drawn ``apart`` px from each other. Of pins that would overlap the worst stays."""
    rank = {"error": 0, "warn": 1, "note": 2}
    shown: list[tuple[float, LinePin]] = []
    for place, pin in sorted(zip(places, pins, strict=True), key=lambda pair: pair[0]):
        if shown and place - shown[-1][0] < apart:
            if rank.get(pin.kind, 3) < rank.get(shown[-1][1].kind, 3):
                shown[-1] = (shown[-1][0], pin)
        else:
            shown.append((place, pin))
    return shown
