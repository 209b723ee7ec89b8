"""What a checkpoint keeps of each followed log, what has become of a log since, and how far a query is behind.

A position is the absolute offset behind the last unit that was delivered, with a few units (:class:`Mark`) by which the
log is known again: the first, the newest, and some between, ever farther apart. A log whose newest mark stands where it
stood, and that ends no earlier than the position, is the one that was read. All else is a loss, put in words: what a
recovery cut off, a store made anew, files that were deleted unread. Behind a cut, reading goes on at the newest mark
that still stands: no new unit is skipped, and the units between that mark and the cut come a second time. Store times
do not tell old units from new ones: a clock may have been set back, and a new master has another clock.

Places in a log that is not walked whole: the unit before an offset, the first of a time, and units known again.

Only the listed files are looked at, a little of each; what is told of a unit is a :class:`Mark`, small enough to be
kept. All raise :class:`~engine.errors.CannotRead` where a file that is there cannot be read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.codec.message import Unit
from engine.codec.unit_scan import walk_file
from engine.pipeline.anchors import SplitBytes
from engine.pipeline.files import LogFile, StorePlace, log_files
from engine.pipeline.splits import NEAR, Split, first_in
from engine.pipeline.storage import opened

APART = 4
"""How many times as far from the newest mark as its neighbour a mark lies."""
NEAREST_MARK_BYTES = 1 << 16
"""How far before the newest mark the next one lies, within one batch too: a cut log is known again near its cut."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What happened to bytes [``start``, ``stop``) of a log, absolute, that were or should have been delivered."""

    start: int
    stop: int
    why: str


@dataclass(frozen=True, slots=True)
class Position:
    """How far a log is delivered. ``begin`` is where the batch that ends here begins, None: where the one before ended;
    ``lost`` is told in that batch; ``gone`` says that the store, or its log, is not there.
    """

    offset: int
    marks: tuple[Mark, ...] = ()
    begin: int | None = None
    lost: Lost | None = None
    gone: bool = False

    @classmethod
    def of(cls, kept: Any) -> Position:
        """What a checkpoint holds; those of earlier releases hold the offset alone."""
        if isinstance(kept, int):
            return cls(kept)
        marks = tuple(Mark(*one) for one in kept.get("marks", ()))
        lost = Lost(*kept["lost"]) if "lost" in kept else None
        return cls(kept["offset"], marks, kept.get("begin"), lost, kept.get("gone", False))

    def kept(self) -> dict[str, Any]:
        """As a checkpoint holds it."""
        made: dict[str, Any] = {"offset": self.offset}
        if self.marks:
            made["marks"] = [[one.offset, one.size, one.time, one.digest] for one in self.marks]
        if self.begin is not None:
            made["begin"] = self.begin
        if self.lost is not None:
            made["lost"] = [self.lost.start, self.lost.stop, self.lost.why]
        if self.gone:
            made["gone"] = True
        return made

    def missing(self, why: str) -> Position:
        """The same where nothing of the log is there: known again when it is back."""
        return replace(self, begin=None, lost=Lost(self.offset, self.offset, why), gone=True)


def positions(kept: Mapping[str, Any]) -> dict[str, Position]:
    """The positions in what a checkpoint holds, by the path of the store."""
    return {path: Position.of(one) for path, one in kept.items()}


@dataclass(frozen=True, slots=True)
class Step:
    """What comes next of a log: bytes [``begin``, ``end``), and what was lost before them."""

    begin: int
    end: int
    lost: Lost | None = None


def step(log: Log, end: int, before: Position) -> Step:
    """What comes behind ``before`` in a log that now ends at ``end``."""
    if before.offset < log.first:
        return Step(log.first, max(end, log.first), deleted(before.offset, min(log.first, max(end, before.offset))))
    newest = before.marks[-1] if before.marks else None
    known = newest is None or log.holds(newest) is not False
    if known and end >= before.offset:
        return Step(before.offset, end)
    same = next((mark for mark in reversed(before.marks) if mark.end <= end and log.holds(mark)), None)
    if newest is None or same is None:
        why = f"another log stands here than the one that was read up to {before.offset:,}; all of this one comes"
        return Step(log.first, end, Lost(log.first, max(before.offset, log.first), why))
    why = (
        f"the log was cut back; it had been read up to {before.offset:,}, and goes on at {same.end:,}: "
        "units that stand there since before the cut come a second time"
    )
    return Step(same.end, end, Lost(same.end, max(before.offset, same.end), why))


def deleted(start: int, stop: int) -> Lost:
    """Of files that retention took before they were read."""
    return Lost(start, stop, "the files were deleted before they were read")


def reached(log: Log, offset: int, before: Position | None) -> Position:
    """The position ``offset`` of ``log``, with marks of its own behind those of ``before`` that still hold."""
    kept = [mark for mark in before.marks if mark.end <= offset and log.holds(mark) is not False] if before else []
    first = log.first_mark() if not kept else None
    marks = [*kept, *(mark for mark in (first, log.last_before(offset)) if mark is not None and mark.end <= offset)]
    start = max((mark.end for mark in kept), default=log.first)
    marks += _marks_between(log, start, offset)
    return Position(offset, _thinned(marks))


def _marks_between(log: Log, start: int, offset: int) -> Iterator[Mark]:
    """Marks in [``start``, ``offset``), each :data:`APART` times as far from its end as the one before."""
    distance = NEAREST_MARK_BYTES
    while offset - distance > start:
        mark = log.last_before(offset - distance)
        if mark is not None and mark.offset >= start:
            yield mark
        distance *= APART


def _thinned(marks: list[Mark]) -> tuple[Mark, ...]:
    """The first, the newest, and those between that lie :data:`APART` times as far from it as the one before."""
    by_place = {mark.offset: mark for mark in marks}
    if len(by_place) < 3:
        return tuple(by_place.values())
    first, *between, newest = (by_place[offset] for offset in sorted(by_place))
    kept, far = [newest], 0
    for mark in reversed(between):
        if newest.offset - mark.offset >= APART * far:
            kept.append(mark)
            far = newest.offset - mark.offset
    return (first, *reversed(kept))


def moved(log: Log, lacking: Mapping[str, Position]) -> str | None:
    """Which of the stores that are not at their paths any more has come to stand where ``log`` does."""
    for path, position in lacking.items():
        if position.marks and log.holds(position.marks[-1]) and log.holds(position.marks[0]) is not False:
            return path
    return None


def lag(progress: Any) -> dict[str, int]:
    """Bytes of each log, by the path of its store, that were there and not delivered when ``progress`` was told.

    ``progress`` is a query's ``lastProgress``, its ``json``, or what a listener gets. {} where it names no offsets:
    Spark 4.2 and later ask a source how far it could be read.
    """
    if not isinstance(progress, Mapping):
        progress = json.loads(progress if isinstance(progress, str) else progress.json)
    behind: dict[str, int] = {}
    for source in progress.get("sources", ()):
        done, there = _read(source.get("endOffset")), _read(source.get("latestOffset"))
        for path, log in there.items():
            if isinstance(log, Mapping) and "first" in log:
                kept = done.get(path, {"offset": log["first"]})
                offset = kept if isinstance(kept, int) else kept["offset"]
                behind[path] = behind.get(path, 0) + max(log["offset"] - offset, 0)
    return behind


def _read(offset: Any) -> dict[str, Any]:
    found = json.loads(offset) if isinstance(offset, str) else offset
    return dict(found) if isinstance(found, Mapping) else {}


DIGESTED = 1 << 16
"""Bytes of a unit that its digest is made of."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A unit of a log by which the log is known again: ``offset`` and ``size`` in bytes, ``time`` of storing in ms."""

    offset: int
    size: int
    time: int
    digest: str

    @property
    def end(self) -> int:
        return self.offset + self.size


class Log:
    """The files of one store's log as they were listed."""

    def __init__(self, store: StorePlace) -> None:
        self.store = store
        self.files = log_files(store)

    @property
    def first(self) -> int:
        """Absolute offset of the first byte, 0 without files."""
        return self.files[0].start if self.files else 0

    def holds(self, mark: Mark) -> bool | None:
        """Whether the unit stands where it stood; None where no file holds that place any more."""
        file = self._file_at(mark.offset)
        if file is None:
            return None
        return self._digest(file, mark.offset, mark.size) == mark.digest

    def first_mark(self) -> Mark | None:
        """The first unit; None where the first file has none."""
        file = self.files[0] if self.files else None
        found = next(self._units(file, 0, file.end), None) if file is not None else None
        return self._mark(file, found) if file is not None and found is not None else None

    def last_before(self, offset: int) -> Mark | None:
        """The last unit that begins before ``offset``, in the file of ``offset`` or one before it."""
        for file in reversed(self.files):
            top, back = min(offset, file.end), NEAR
            while file.start < top:
                low = max(top - file.start - back, 0)
                last = None
                for unit in self._units(file, low, top):
                    last = unit
                if last is not None:
                    return self._mark(file, last)
                if not low:
                    break
                back *= 4
        return None

    def since(self, time: int, low: int, high: int) -> int:
        """Absolute offset of the first unit in [``low``, ``high``) that was stored at ``time`` or later, else
        ``high``. Units are taken to be in the order of their times.
        """
        files = [file for file in self.files if file.end > low and file.start < high]
        left, right = 0, len(files)
        while left < right:
            middle = (left + right) // 2
            unit = next(self._units(files[middle], max(low - files[middle].start, 0), high), None)
            if unit is None or unit.store_timestamp >= time:
                right = middle
            else:
                left = middle + 1
        for file in files[max(left - 1, 0) :]:
            found = self._since_in(file, time, max(low - file.start, 0), high)
            if found is not None:
                return found
        return high

    def _since_in(self, file: LogFile, time: int, low: int, high: int) -> int | None:
        left, right = low, min(high, file.end) - file.start
        while right - left > NEAR:
            middle = (left + right) // 2
            unit = next(self._units(file, middle, file.start + right), None)
            if unit is None or unit.store_timestamp >= time:
                right = middle
            else:
                left = unit.offset + unit.size - file.start
        later = (unit.offset for unit in self._units(file, left, high) if unit.store_timestamp >= time)
        return next(later, None)

    def cut(self, offset: int, high: int) -> int:
        """Where something begins at or behind ``offset``, at most ``high``."""
        file = self._file_at(offset)
        found = -1
        if file is not None:
            found = first_in(self._split(file, offset - file.start))
        if found < 0:
            found = next((one.start for one in self.files if one.start > offset), high)
        return min(found, high)

    def _file_at(self, offset: int) -> LogFile | None:
        return next((file for file in self.files if file.start <= offset < file.end), None)

    def _split(self, file: LogFile, position: int) -> Split:
        followed = file is not self.files[-1]
        whole = Split(self.store.path, self.store.broker, file.path, file.start, 0, file.size, file.size, followed)
        return dataclasses.replace(whole, start=position)

    def _units(self, file: LogFile, position: int, stop: int) -> Iterator[Unit]:
        """Units that begin at ``position`` of a file or behind it, and before the absolute offset ``stop``."""
        split = self._split(file, position)
        first = first_in(split) if position else file.start
        if not 0 <= first < stop:
            return
        with opened(file.path) as lent:
            for item in walk_file(SplitBytes(split, lent), first, stop, crc=False):
                if isinstance(item, Unit):
                    yield item

    def _mark(self, file: LogFile, unit: Unit) -> Mark:
        return Mark(unit.offset, unit.size, unit.store_timestamp, self._digest(file, unit.offset, unit.size))

    def _digest(self, file: LogFile, offset: int, size: int) -> str:
        with opened(file.path) as lent:
            data = lent.read(offset - file.start, min(size, DIGESTED))
        return hashlib.blake2b(data, digest_size=8).hexdigest()
