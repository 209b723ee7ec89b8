"""The log as one line of bytes: its files, what was sampled of them, marks, and where an offset lies; no Qt.

The line runs from the first byte to the end of the last valid unit; the zero tail behind it keeps a fixed share of the
width, or a gibibyte of nothing would hide a small log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.codec.message import Unit
from engine.codec.unit_scan import Stop
from engine.errors import CannotRead
from viewer.look.broken import Broken

TAIL_SHARE = 0.04
SAMPLES = 240
UNITS_A_SAMPLE = 32


@dataclass(frozen=True, slots=True)
class LineFile:
    """One file of the log."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Mix:
    """Which topics share the bytes around a place: ``shares`` sum to 1. Empty shares: nothing readable there."""

    start: int
    end: int
    shares: tuple[tuple[str, float], ...]
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Pin:
    """A finding on the line, a bookmark, or another place; ``finding`` and ``link`` are for its menu."""

    offset: int
    kind: str
    text: str = ""
    finding: Any = field(default=None, compare=False)
    link: object = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class LogLine:
    """The extent: ``low`` first byte, ``written`` end of the last valid unit, ``high`` end of the files."""

    low: int
    written: int
    high: int
    files: tuple[LineFile, ...] = ()

    def share(self, offset: int) -> float:
        """Where ``offset`` lies on a line of length 1."""
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
        """The file that holds ``offset``."""
        low, high = 0, len(self.files)
        while low < high:
            middle = (low + high) // 2
            if self.files[middle].start <= offset:
                low = middle + 1
            else:
                high = middle
        if low and offset < self.files[low - 1].end:
            return self.files[low - 1]
        return None


def reaching(line: LogLine, broken: Iterable[Broken]) -> LogLine:
    """The line as far as something is missing behind its files."""
    end = max((one.end for one in broken), default=0)
    return replace(line, written=end, high=end) if line.high > line.low and end > line.high else line


def line_of(log: Any) -> LogLine:
    """The line of a commit log; reads its end from the disk. Where that cannot be read the files' end stands for it:
    the line says what cannot be read, not that nothing was written.
    """
    files = tuple(LineFile(f"{f.start_offset:020d}", f.start_offset, f.end_offset) for f in log.files)
    low = max(log.min_offset, 0)
    try:
        end = min(log.max_offset, log.end_offset)
    except CannotRead:
        end = log.end_offset
    return LogLine(low, max(low, end), max(low, log.end_offset), files)


def sample_places(line: LogLine, count: int = SAMPLES) -> list[tuple[int, int]]:
    """Spans of equal length that are looked at, coarse to fine, so that the whole line fills at once."""
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
    seen = set(order)
    return [spans[n] for n in [*order, *(n for n in range(count) if n not in seen)]]


def sample(log: Any, low: int, high: int) -> Mix:
    """Look at a few units at the beginning of [low, high); reads the disk."""
    sizes: Counter[str] = Counter()
    time: int | None = None
    for item in _units_from(log, low, high):
        sizes[item.topic] += item.size
        time = item.store_timestamp if time is None else time
    total = sum(sizes.values())
    shares = tuple((topic, part / total) for topic, part in sizes.most_common()) if total else ()
    return Mix(low, high, shares, time)


def _units_from(log: Any, low: int, high: int) -> Iterator[Unit]:
    count, start = 0, -1
    if log.sequence.find(low) is not None:
        start = log.next_unit(low)  # reads far less than the exact place does
    for item in log.walk(start if low <= start < high else log.align(low), high, crc=False):
        if isinstance(item, Stop) or item.offset >= high:
            return
        if isinstance(item, Unit):
            yield item
            count += 1
            if count >= UNITS_A_SAMPLE:
                return


def joined(mixes: Sequence[Mix], least: int) -> list[Mix]:
    """The samples in the order of the log; neighbours that touch and are together no longer than ``least`` bytes are
    one, their shares weighed by their bytes: what is narrower than a line can show need not be kept apart.
    """
    found: list[Mix] = []
    for mix in sorted(mixes, key=lambda one: one.start):
        last = found[-1] if found else None
        if last is None or last.end != mix.start or mix.end - last.start > least:
            found.append(mix)
            continue
        weights: dict[str, float] = {}
        for one in (last, mix):
            for topic, share in one.shares:
                weights[topic] = weights.get(topic, 0.0) + share * (one.end - one.start)
        total = sum(weights.values())
        listed = sorted(weights.items(), key=lambda one: -one[1])
        shares = tuple((topic, part / total) for topic, part in listed) if total else ()
        found[-1] = Mix(last.start, mix.end, shares, mix.time if last.time is None else last.time)
    return found


def worst_pins(pins: Sequence[Pin], places: Sequence[float], apart: float) -> list[tuple[float, Pin]]:
    """Pins that can be drawn ``apart`` px from each other: the worst of those that would overlap."""
    rank = {"error": 0, "warn": 1, "note": 2}
    found: list[tuple[float, Pin]] = []
    for place, pin in sorted(zip(places, pins, strict=True), key=lambda pair: pair[0]):
        if found and place - found[-1][0] < apart:
            if rank.get(pin.kind, 3) < rank.get(found[-1][1].kind, 3):
                found[-1] = (found[-1][0], pin)
        else:
            found.append((place, pin))
    return found
