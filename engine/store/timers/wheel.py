"""The timer wheel of a store that runs: which units of the timer log lie in which slot (spec 12.5; Java: TimerWheel).

Java keeps all 38 MB in memory beside the map. Here only slots that were changed since the last flush are: the others
are read from the file, which stays sparse.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codec.dtypes import TIMER_SLOT
from engine.codec.timer import NO_OFFSET, SLOT_SIZE, WHEEL_SIZE, WHEEL_SLOTS, WheelSlot, decode_slot
from engine.errors import WrongFileSize
from engine.mapped.disk import Disk, DiskFile

_NOTHING = WheelSlot(-1, NO_OFFSET, NO_OFFSET, 0)
_FEW = 64
"""Slots that are asked one by one."""


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
            raise WrongFileSize(f"expected {WHEEL_SIZE:,} bytes, found {size:,}", file=str(self._path))
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

    def put(self, due: int, first: int, last: int, count: int) -> None:
        """Set the slot of a delivery time (ms)."""
        time = due // self._precision
        self._changed[time % WHEEL_SLOTS] = WheelSlot(time, first, last, count)

    def revise(self, due: int, offset: int) -> None:
        """A unit of the timer log stands at ``offset`` and is newer than all of its slot that were seen: spec 12.7."""
        slot = self.slot(due)
        self.put(due, offset if slot.first == NO_OFFSET else slot.first, offset, slot.count)

    def beyond(self, since: int, end: int) -> int | None:
        """The first offset of the slots from ``since`` (ms) on that name one at or behind ``end``; None for none."""
        found = [slot.first for slot in self._changed.values() if _is_beyond(slot, since // self._precision, end)]
        for rows in self._unchanged():
            here = (rows["time"] >= since // self._precision) & (np.maximum(rows["first"], rows["last"]) >= end)
            found += rows["first"][here].tolist()
        return min(found, default=None)

    def next_used(self, since: int, until: int) -> int | None:
        """The first delivery time (ms) from ``since`` on and before ``until`` of which a slot holds something."""
        low, high = since // self._precision, until // self._precision
        if high - low <= _FEW:
            times = (time for time in range(low, high) if self.slot(time * self._precision).last != NO_OFFSET)
            found = next(times, None)
        else:
            found = min((slot.time for slot in self._changed.values() if low <= slot.time < high), default=None)
            for rows in self._unchanged():
                used = rows["time"][(rows["time"] >= low) & (rows["time"] < high) & (rows["last"] != NO_OFFSET)]
                if len(used):
                    found = min(int(used.min()), high if found is None else found)
        return None if found is None else found * self._precision

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
    return slot.time >= time and max(slot.first, slot.last) >= end
