"""The timer log of a store that runs: a unit of 52 bytes for each waiting message (spec 12.6; Java: TimerLog)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from engine.codec import timer
from engine.codec.timer import KEPT_FREE, UNIT_SIZE, TimerLogStop, TimerLogUnit
from engine.errors import StoreError
from engine.mapped.disk import Disk
from engine.mapped.mapped_file import MappedFile
from engine.mapped.mapped_file_queue import MappedFileQueue

_HELD_MS = 120_000


class TimerLog:
    """The files in ``folder``, which is made by the first unit. Offsets are the timer log's own."""

    def __init__(self, folder: Path, disk: Disk, file_size: int) -> None:
        self.files = MappedFileQueue(disk, (folder,), file_size)

    def load(self) -> None:
        """Find the files; raises :class:`engine.errors.WrongFileSize`, ``OSError``."""
        self.files.load()

    def append(self, unit: TimerLogUnit) -> int:
        """Append a unit (its ``offset`` is not looked at); the offset it has now. Raises ``OSError``."""
        file = self._room()
        at = file.start_offset + file.wrote
        file.append(unit.encoded())
        return at

    def _room(self) -> MappedFile:
        file = self.files.last_or_create()
        if file is not None and file.size - file.wrote < UNIT_SIZE + KEPT_FREE:
            file.append(timer.blank(file.size - file.wrote))
            file.advance(file.size - file.wrote)
            file = self.files.last_or_create()
        if file is None:
            raise OSError(f"no file of the timer log could be made in {self.files.folders[0]}")
        return file

    def unit(self, offset: int) -> TimerLogUnit | None:
        """The unit at ``offset``; None where none stands there."""
        found = timer.decode_unit(self.files.read(offset, UNIT_SIZE), 0, offset)
        return found if isinstance(found, TimerLogUnit) else None

    def walk(self, start: int) -> Iterator[TimerLogUnit]:
        """Every unit from ``start`` on, over blanks, to the first place where none stands. Raises :class:`StoreError`
        where that is damage and files follow: a broker would delete them.
        """
        for file in self.files.files:
            if file.start_offset + file.size <= start:
                continue
            at = max(start - file.start_offset, 0)
            with file.select(at) or memoryview(b"") as view:
                for seen in timer.walk(view, file.start_offset + at):
                    if isinstance(seen, TimerLogStop):
                        if seen.kind == "blank":
                            break
                        if seen.kind == "damage" and file is not self.files.last:
                            raise StoreError(
                                f"{seen.reason}; files follow, and a broker would delete them: put the file back, or "
                                f"start with timerWheelEnable=false",
                                file=file.path, offset=seen.offset - file.start_offset,
                            )  # fmt: skip
                        return
                    yield seen

    def delete_expired(self, least: int, now: int) -> int:
        """Delete the oldest files whose last unit leads below ``least``, where the commit log begins; how many."""
        return len(self.files.delete_oldest(self._is_before(least), force_after_ms=_HELD_MS, now=now))

    def _is_before(self, least: int) -> Callable[[MappedFile], bool]:
        size = self.files.file_size
        last = size - (size - KEPT_FREE) % UNIT_SIZE - KEPT_FREE - UNIT_SIZE

        def is_before(file: MappedFile) -> bool:
            unit = self.unit(file.start_offset + last)
            return unit is not None and unit.physical_offset < least

        return is_before

    def flush(self) -> int:
        """Make every unit durable; the flushed offset. Raises ``OSError``."""
        while not self.files.flush(0):
            pass
        return self.files.flushed_where
