"""The files of timers in a store that runs: the log, a unit of 52 bytes for each waiting message
(docs/formats/delays.md#timer-log; Java: TimerLog), and the wheel, which units of the log lie in which slot
(docs/formats/delays.md#wheel; Java: TimerWheel).

Java keeps all 38 MB of the wheel in memory beside the map. Here only slots that were changed since the last flush are:
the others are read from the file, which stays sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codec import timer
from engine.codec.dtypes import TIMER_SLOT
from engine.codec.timer import (
    BLANK_BYTES,
    NO_OFFSET,
    SLOT_SIZE,
    UNIT_SIZE,
    WHEEL_SIZE,
    WHEEL_SLOTS,
    TimerLogStop,
    TimerLogUnit,
    WheelSlot,
    decode_slot,
)
from engine.errors import StoreError, WrongFileSize
from engine.mapped.disk import Disk, DiskFile
from engine.mapped.mapped_file import MappedFile
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.sentences import sentence

_NOTHING = WheelSlot(-1, NO_OFFSET, NO_OFFSET, 0)
_FEW_SLOTS = 64
"""Up to this number slots are read one by one."""


class TimerWheel:
    """The wheel in the file ``path``, which is made by the first flush of a slot. ``precision`` is ms a slot."""

    def __init__(self, path: Path, disk: Disk, precision: int) -> None:
        self._path = path
        self._disk = disk
        self._precision = precision
        self._file: DiskFile | None = None
        self._changed: dict[int, WheelSlot] = {}

    def load(self) -> None:
        """Open the file where there is one; raises :class:`WrongFileSize` for another length, ``OSError``."""
        size = next((size for name, size in self._disk.names(self._path.parent) if name == self._path.name), 0)
        if size not in (0, WHEEL_SIZE):
            raise WrongFileSize(
                sentence("expected {expected:,} bytes, found {found:,}", expected=WHEEL_SIZE, found=size),
                file=str(self._path),
            )
        if size:
            self._file = self._disk.open(self._path, WHEEL_SIZE)

    def slot(self, due: int) -> WheelSlot:
        """The slot of a delivery time (ms), with no offsets where it holds nothing of that time."""
        time = due // self._precision
        number = time % WHEEL_SLOTS
        slot = self._changed.get(number)
        if slot is None and self._file is not None:
            slot = decode_slot(self._file.read(number * SLOT_SIZE, SLOT_SIZE))
        return slot if slot is not None and slot.time == time else _NOTHING

    def put(self, due: int, first_offset: int, last_offset: int, count: int) -> None:
        """Set the slot of a delivery time (ms)."""
        time = due // self._precision
        self._changed[time % WHEEL_SLOTS] = WheelSlot(time, first_offset, last_offset, count)

    def revise(self, due: int, offset: int) -> None:
        """Enter the unit of the timer log at ``offset``, which is newer than all others of its slot so far:
        docs/formats/delays.md#timer-service.
        """
        slot = self.slot(due)
        self.put(due, offset if slot.first_offset == NO_OFFSET else slot.first_offset, offset, slot.count)

    def beyond(self, start_ms: int, end: int) -> int | None:
        """The first offset of the slots from ``start_ms`` (ms) on that name one at or behind ``end``; None for none."""
        start_slot = start_ms // self._precision
        offsets = [slot.first_offset for slot in self._changed.values() if _is_beyond(slot, start_slot, end)]
        for rows in self._unchanged():
            is_beyond = (rows["time"] >= start_ms // self._precision) & (np.maximum(rows["first"], rows["last"]) >= end)
            offsets += rows["first"][is_beyond].tolist()
        return min(offsets, default=None)

    def next_used(self, start_ms: int, stop_ms: int) -> int | None:
        """The first delivery time (ms) from ``start_ms`` on and before ``stop_ms`` of which a slot holds something."""
        start_time, stop_time = start_ms // self._precision, stop_ms // self._precision
        if stop_time - start_time <= _FEW_SLOTS:
            times = (
                time
                for time in range(start_time, stop_time)
                if self.slot(time * self._precision).last_offset != NO_OFFSET
            )
            next_time = next(times, None)
        else:
            next_time = min(
                (slot.time for slot in self._changed.values() if start_time <= slot.time < stop_time), default=None
            )
            for rows in self._unchanged():
                used = rows["time"][
                    (rows["time"] >= start_time) & (rows["time"] < stop_time) & (rows["last"] != NO_OFFSET)
                ]
                if len(used):
                    next_time = min(int(used.min()), stop_time if next_time is None else next_time)
        return None if next_time is None else next_time * self._precision

    def count(self, start_ms: int, stop_ms: int) -> int:
        """Return the messages in the slots of [``start_ms``, ``stop_ms``), without those that delete others."""
        start_time, stop_time = start_ms // self._precision, stop_ms // self._precision
        total = sum(slot.count for slot in self._changed.values() if start_time <= slot.time < stop_time)
        for rows in self._unchanged():
            total += int(rows["count"][(rows["time"] >= start_time) & (rows["time"] < stop_time)].sum())
        return total

    def _unchanged(self) -> Iterator[NDArray[Any]]:
        """The slots that the file holds and nobody has changed since, as arrays; holes of the file are left out."""
        if self._file is None:
            return
        changed = np.fromiter(self._changed, np.int64, len(self._changed))
        for start, stop in self._file.extents():
            begin = start // SLOT_SIZE
            rows = np.frombuffer(self._file.read(begin * SLOT_SIZE, stop - begin * SLOT_SIZE), TIMER_SLOT)
            yield rows[~np.isin(np.arange(begin, begin + len(rows)), changed)]

    def flush(self) -> None:
        """Write the changed slots and make them durable; raises ``OSError``, and they stay to be written then."""
        if not self._changed:
            return
        if self._file is None:
            self._file = self._disk.open(self._path, WHEEL_SIZE)
        numbers = sorted(self._changed)
        for number in numbers:
            self._file.write(number * SLOT_SIZE, self._changed[number].encoded())
        self._file.flush(numbers[0] * SLOT_SIZE, (numbers[-1] + 1) * SLOT_SIZE)
        self._changed.clear()


def _is_beyond(slot: WheelSlot, time: int, end: int) -> bool:
    return slot.time >= time and max(slot.first_offset, slot.last_offset) >= end


_HELD_MS = 120_000


class TimerLog:
    """The files in ``folder``, which is made by the first unit. Offsets are the timer log's own."""

    def __init__(self, folder: Path, disk: Disk, file_size: int) -> None:
        self.files = MappedFileQueue(disk, (folder,), file_size)

    def load(self) -> None:
        """Find the files; raises :class:`engine.errors.WrongFileSize`, ``OSError``."""
        self.files.load()

    def append(self, unit: TimerLogUnit) -> int:
        """Append a unit (its ``offset`` is ignored); returns the offset it has now. Raises ``OSError``."""
        file = self._room()
        offset = file.start_offset + file.wrote
        file.append(unit.encoded())
        return offset

    def _room(self) -> MappedFile:
        file = self.files.last_or_create()
        if file is not None and file.size - file.wrote < UNIT_SIZE + BLANK_BYTES:
            file.append(timer.blank(file.size - file.wrote))
            file.advance(file.size - file.wrote)
            file = self.files.last_or_create()
        if file is None:
            raise OSError(sentence("no file of the timer log could be made in {value}", value=self.files.folders[0]))
        return file

    def unit(self, offset: int) -> TimerLogUnit | None:
        """Return the unit at ``offset``; None if none stands there."""
        decoded = timer.decode_unit(self.files.read(offset, UNIT_SIZE), 0, offset)
        return decoded if isinstance(decoded, TimerLogUnit) else None

    def walk(self, start: int) -> Iterator[TimerLogUnit]:
        """Yield every unit from ``start`` on, over blanks, to the first place where none stands. Raises
        :class:`StoreError` if that is damage and files follow: a broker would delete them.
        """
        for file in self.files.files:
            if file.start_offset + file.size <= start:
                continue
            position = max(start - file.start_offset, 0)
            with file.select(position) or memoryview(b"") as view:
                for unit in timer.walk(view, file.start_offset + position):
                    if isinstance(unit, TimerLogStop):
                        if unit.kind == "blank":
                            break
                        if unit.kind == "damage" and file is not self.files.last:
                            raise StoreError(
                                sentence(
                                    "{reason}; files follow, and a broker would delete them: put the file back, or "
                                    "start with timerWheelEnable=false",
                                    reason=unit.reason,
                                ),
                                file=file.path,
                                offset=unit.offset - file.start_offset,
                            )
                        return
                    yield unit

    def delete_expired(self, least: int, now: int) -> int:
        """Delete the oldest files whose last unit leads below ``least``, where the commit log begins; returns how
        many.
        """
        return len(self.files.delete_oldest(self._is_before(least), force_after_ms=_HELD_MS, now=now))

    def _is_before(self, least: int) -> Callable[[MappedFile], bool]:
        size = self.files.file_size
        last_position = size - (size - BLANK_BYTES) % UNIT_SIZE - BLANK_BYTES - UNIT_SIZE

        def is_before(file: MappedFile) -> bool:
            unit = self.unit(file.start_offset + last_position)
            return unit is not None and unit.physical_offset < least

        return is_before

    def flush(self) -> int:
        """Make every unit durable; returns the flushed offset. Raises ``OSError``."""
        while not self.files.flush(0):
            pass
        return self.files.flushed_where
