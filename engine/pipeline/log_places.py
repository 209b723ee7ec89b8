"""Places in a log that is not walked whole: the unit before an offset, the first of a time, and units known again.

Only the listed files are looked at, a little of each; what is told of a unit is a :class:`Mark`, small enough to be
kept. All raise :class:`~engine.errors.CannotRead` where a file that is there cannot be read.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from engine.codec.file_walk import walk_file
from engine.codec.message import Unit
from engine.pipeline.anchors import SplitBytes
from engine.pipeline.files import LogFile, StorePlace, log_files
from engine.pipeline.splits import NEAR, Split, first_in
from engine.pipeline.storage import opened

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
