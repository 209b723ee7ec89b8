"""Offsets of followed logs in a checkpoint, losses of a log since, and the lag of a query.

A position is the absolute offset behind the last unit that was delivered, with a few units (:class:`KnownUnit`) by
which the log is recognised: the first, the newest, and some between, at growing distances. The log is the one that was
read if its newest mark is still in its place and the log ends no earlier than the position. Everything else is a loss,
described in words: a recovery cut the log, the store was made again, files were deleted unread. Behind a cut, reading
goes on at the newest mark that is still there: no new unit is skipped, and the units between that mark and the cut come
a second time. Store times cannot tell old units from new ones: a clock may have been set back, and a new master has
another clock.

:class:`Log` finds places in a log without walking it: the unit before an offset, the first unit of a time, and units by
their marks. It reads only a little of each listed file. Its methods raise :class:`~engine.errors.CannotRead` if a file
that is there cannot be read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.codec.message import Unit
from engine.codec.unit_scan import walk_file
from engine.pipeline.anchors import SplitBytes
from engine.pipeline.files import StorePlace, log_files
from engine.pipeline.log_files import LogFile
from engine.pipeline.splits import NEAR_BYTES, Split, first_in
from engine.pipeline.storage import open_path

MARK_DISTANCE_FACTOR = 4
"""How many times as far from the newest mark as its neighbour a mark lies."""
NEAREST_MARK_BYTES = 1 << 16
"""How far before the newest mark the next one lies, within one batch too: a cut log is known again near its cut."""


@dataclass(frozen=True, slots=True)
class LostRange:
    """A loss of bytes [``start``, ``stop``) of a log, absolute, that were or should have been delivered."""

    start: int
    stop: int
    why: str


@dataclass(frozen=True, slots=True)
class Position:
    """The end of the delivered part of a log. ``begin`` is where the batch that ends here begins, None: where the
    one before ended; ``lost`` is reported in that batch; ``is_missing`` says that the store, or its log, is not there.
    """

    offset: int
    marks: tuple[KnownUnit, ...] = ()
    begin: int | None = None
    lost: LostRange | None = None
    is_missing: bool = False

    @classmethod
    def from_checkpoint(cls, stored: Any) -> Position:
        """Parse a position of a checkpoint; those of earlier releases hold the offset alone."""
        if isinstance(stored, int):
            return cls(stored)
        marks = tuple(KnownUnit(*mark) for mark in stored.get("marks", ()))
        lost = LostRange(*stored["lost"]) if "lost" in stored else None
        return cls(stored["offset"], marks, stored.get("begin"), lost, stored.get("gone", False))

    def to_checkpoint(self) -> dict[str, Any]:
        """Return the position as a checkpoint holds it."""
        fields: dict[str, Any] = {"offset": self.offset}
        if self.marks:
            fields["marks"] = [[mark.offset, mark.size, mark.time, mark.digest] for mark in self.marks]
        if self.begin is not None:
            fields["begin"] = self.begin
        if self.lost is not None:
            fields["lost"] = [self.lost.start, self.lost.stop, self.lost.why]
        if self.is_missing:
            fields["gone"] = True
        return fields

    def as_missing(self, why: str) -> Position:
        """Return this position for a log that is not there: it is recognised when it is back."""
        return replace(self, begin=None, lost=LostRange(self.offset, self.offset, why), is_missing=True)


def positions(checkpoint: Mapping[str, Any]) -> dict[str, Position]:
    """Parse the positions of a checkpoint, by the path of the store."""
    return {path: Position.from_checkpoint(stored) for path, stored in checkpoint.items()}


@dataclass(frozen=True, slots=True)
class NextRange:
    """The next range of a log: bytes [``begin``, ``end``), and what was lost before them."""

    begin: int
    end: int
    lost: LostRange | None = None


def plan_step(log: Log, end: int, position: Position) -> NextRange:
    """Return the range to deliver after ``position`` in a log that now ends at ``end``."""
    if position.offset < log.first:
        return NextRange(
            log.first, max(end, log.first), deleted_range(position.offset, min(log.first, max(end, position.offset)))
        )
    newest = position.marks[-1] if position.marks else None
    is_same_log = newest is None or log.holds(newest) is not False
    if is_same_log and end >= position.offset:
        return NextRange(position.offset, end)
    same = next((mark for mark in reversed(position.marks) if mark.end <= end and log.holds(mark)), None)
    if newest is None or same is None:
        why = f"another log stands here than the one that was read up to {position.offset:,}; all of this one comes"
        return NextRange(log.first, end, LostRange(log.first, max(position.offset, log.first), why))
    why = (
        f"the log was cut back; it had been read up to {position.offset:,}, and goes on at {same.end:,}: "
        "units that stand there since before the cut come a second time"
    )
    return NextRange(same.end, end, LostRange(same.end, max(position.offset, same.end), why))


def deleted_range(start: int, stop: int) -> LostRange:
    """Return the loss of files that retention deleted before they were read."""
    return LostRange(start, stop, "the files were deleted before they were read")


def position_at(log: Log, offset: int, old_position: Position | None) -> Position:
    """Return the position ``offset`` of ``log``, with marks of its own behind those of ``old_position`` that still
    hold.
    """
    valid_marks = (
        [mark for mark in old_position.marks if mark.end <= offset and log.holds(mark) is not False]
        if old_position
        else []
    )
    first_mark = log.first_mark() if not valid_marks else None
    marks = [
        *valid_marks,
        *(mark for mark in (first_mark, log.last_before(offset)) if mark is not None and mark.end <= offset),
    ]
    start = max((mark.end for mark in valid_marks), default=log.first)
    marks += _marks_between(log, start, offset)
    return Position(offset, _thin_out(marks))


def _marks_between(log: Log, start: int, offset: int) -> Iterator[KnownUnit]:
    """Yield marks in [``start``, ``offset``), each :data:`MARK_DISTANCE_FACTOR` times as far from its end as the one
    before.
    """
    distance = NEAREST_MARK_BYTES
    while offset - distance > start:
        mark = log.last_before(offset - distance)
        if mark is not None and mark.offset >= start:
            yield mark
        distance *= MARK_DISTANCE_FACTOR


def _thin_out(marks: list[KnownUnit]) -> tuple[KnownUnit, ...]:
    """Return the first, the newest, and those between that lie :data:`MARK_DISTANCE_FACTOR` times as far from it as the
    one before.
    """
    by_place = {mark.offset: mark for mark in marks}
    if len(by_place) < 3:
        return tuple(by_place.values())
    first_mark, *between, newest = (by_place[offset] for offset in sorted(by_place))
    kept_marks, distance = [newest], 0
    for mark in reversed(between):
        if newest.offset - mark.offset >= MARK_DISTANCE_FACTOR * distance:
            kept_marks.append(mark)
            distance = newest.offset - mark.offset
    return (first_mark, *reversed(kept_marks))


def find_moved_store(log: Log, lacking: Mapping[str, Position]) -> str | None:
    """Return which of the missing stores is now at the path of ``log``."""
    for path, position in lacking.items():
        if position.marks and log.holds(position.marks[-1]) and log.holds(position.marks[0]) is not False:
            return path
    return None


def lag(progress: Any) -> dict[str, int]:
    """Return the bytes of each log, by the path of its store, that were there and not delivered at the time of
    ``progress``.

    ``progress`` is a query's ``lastProgress``, its ``json``, or what a listener gets. {} where it names no offsets:
    Spark 4.2 and later ask a source how far it could be read.
    """
    if not isinstance(progress, Mapping):
        progress = json.loads(progress if isinstance(progress, str) else progress.json)
    lag_bytes: dict[str, int] = {}
    for source in progress.get("sources", ()):
        delivered_logs, available = _read(source.get("endOffset")), _read(source.get("latestOffset"))
        for path, log in available.items():
            if isinstance(log, Mapping) and "first" in log:
                delivered = delivered_logs.get(path, {"offset": log["first"]})
                offset = delivered if isinstance(delivered, int) else delivered["offset"]
                lag_bytes[path] = lag_bytes.get(path, 0) + max(log["offset"] - offset, 0)
    return lag_bytes


def _read(offset: Any) -> dict[str, Any]:
    parsed = json.loads(offset) if isinstance(offset, str) else offset
    return dict(parsed) if isinstance(parsed, Mapping) else {}


DIGESTED_BYTES = 1 << 16
"""Bytes of a unit that its digest is made of."""


@dataclass(frozen=True, slots=True)
class KnownUnit:
    """A unit by which a log is recognised: ``offset`` and ``size`` in bytes, ``time`` of storing in ms."""

    offset: int
    size: int
    time: int
    digest: str

    @property
    def end(self) -> int:
        return self.offset + self.size


class Log:
    """The files of one store's log at the time of the listing."""

    def __init__(self, store: StorePlace) -> None:
        self.store = store
        self.files = log_files(store)

    @property
    def first(self) -> int:
        """Absolute offset of the first byte, 0 without files."""
        return self.files[0].start if self.files else 0

    def holds(self, mark: KnownUnit) -> bool | None:
        """Return True if the unit is still where it was; None if no file holds that place any more."""
        file = self._file_at(mark.offset)
        if file is None:
            return None
        return self._digest(file, mark.offset, mark.size) == mark.digest

    def first_mark(self) -> KnownUnit | None:
        """Return the first unit; None if the first file has none."""
        file = self.files[0] if self.files else None
        first_unit = next(self._units(file, 0, file.end), None) if file is not None else None
        return self._mark(file, first_unit) if file is not None and first_unit is not None else None

    def last_before(self, offset: int) -> KnownUnit | None:
        """Return the last unit that begins before ``offset``, in the file of ``offset`` or one before it."""
        for file in reversed(self.files):
            top, back = min(offset, file.end), NEAR_BYTES
            while file.start < top:
                start = max(top - file.start - back, 0)
                last_unit = None
                for unit in self._units(file, start, top):
                    last_unit = unit
                if last_unit is not None:
                    return self._mark(file, last_unit)
                if not start:
                    break
                back *= 4
        return None

    def since(self, time: int, start_offset: int, stop_offset: int) -> int:
        """Return the absolute offset of the first unit in [``start_offset``, ``stop_offset``) that was stored at
        ``time`` or later, else ``stop_offset``. Units are taken to be in the order of their times.
        """
        files = [file for file in self.files if file.end > start_offset and file.start < stop_offset]
        lower, upper = 0, len(files)
        while lower < upper:
            middle = (lower + upper) // 2
            unit = next(self._units(files[middle], max(start_offset - files[middle].start, 0), stop_offset), None)
            if unit is None or unit.store_timestamp >= time:
                upper = middle
            else:
                lower = middle + 1
        for file in files[max(lower - 1, 0) :]:
            offset = self._since_in(file, time, max(start_offset - file.start, 0), stop_offset)
            if offset is not None:
                return offset
        return stop_offset

    def _since_in(self, file: LogFile, time: int, start_position: int, stop_offset: int) -> int | None:
        lower, upper = start_position, min(stop_offset, file.end) - file.start
        while upper - lower > NEAR_BYTES:
            middle = (lower + upper) // 2
            unit = next(self._units(file, middle, file.start + upper), None)
            if unit is None or unit.store_timestamp >= time:
                upper = middle
            else:
                lower = unit.offset + unit.size - file.start
        later = (unit.offset for unit in self._units(file, lower, stop_offset) if unit.store_timestamp >= time)
        return next(later, None)

    def cut(self, offset: int, limit_offset: int) -> int:
        """Return the offset of the first item at or behind ``offset``, at most ``limit_offset``."""
        file = self._file_at(offset)
        start = -1
        if file is not None:
            start = first_in(self._split(file, offset - file.start))
        if start < 0:
            start = next((next_file.start for next_file in self.files if next_file.start > offset), limit_offset)
        return min(start, limit_offset)

    def _file_at(self, offset: int) -> LogFile | None:
        return next((file for file in self.files if file.start <= offset < file.end), None)

    def _split(self, file: LogFile, position: int) -> Split:
        followed = file is not self.files[-1]
        return Split.of_file(self.store, file, position, followed=followed)

    def _units(self, file: LogFile, position: int, stop: int) -> Iterator[Unit]:
        """Yield units that begin at ``position`` of a file or behind it, and before the absolute offset ``stop``."""
        split = self._split(file, position)
        first_offset = first_in(split) if position else file.start
        if not 0 <= first_offset < stop:
            return
        with open_path(file.path) as opened_file:
            for item in walk_file(SplitBytes(split, opened_file), first_offset, stop, crc=False, decode=split.decode):
                if isinstance(item, Unit):
                    yield item

    def _mark(self, file: LogFile, unit: Unit) -> KnownUnit:
        return KnownUnit(unit.offset, unit.size, unit.store_timestamp, self._digest(file, unit.offset, unit.size))

    def _digest(self, file: LogFile, offset: int, size: int) -> str:
        with open_path(file.path) as opened_file:
            data = opened_file.read(offset - file.start, min(size, DIGESTED_BYTES))
        return hashlib.blake2b(data, digest_size=8).hexdigest()
