"""One file of a shadowed disk: what is known of its durable bytes, and the file that the engine writes to."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import threading
from pathlib import Path
from typing import Final, Protocol

from engine.mapped.power_loss import PAGE, PageFates, lose_pages, lose_rewritten
from engine.mapped.real_file import OpenFiles, RealFile

CHUNK: Final = 1 << 20
_HEAD: Final = 64
_ZEROS: Final = bytes(CHUNK)


class Shadow:
    """The durable content of one file. ``live`` is where the bytes are that programs see.

    Of a log file (``log_start`` is its first offset) the first ``flushed`` bytes are durable and zeros follow; of any
    other one the copy at ``mirror`` is, or, while there is none, the file itself: it has not been changed.
    """

    __slots__ = ("_first", "_last", "flushed", "live", "log_start", "mirror", "parted")

    def __init__(self, live: Path, mirror: Path, log_start: int | None) -> None:
        self.live = live
        self.mirror = mirror
        self.log_start = log_start
        self.flushed = 0
        self.parted = False  # the durable bytes are a copy of their own
        self._first = 1 << 62
        self._last = 0

    def begin_empty(self) -> None:
        """A new file: nothing of it is durable."""
        self.mirror.write_bytes(b"")
        self.parted = True

    def part(self) -> None:
        """The file is about to be changed: keep what is durable. Raises ``OSError``."""
        if self.parted or self.log_start is not None:
            return
        with contextlib.suppress(FileNotFoundError):
            copy_data(self.live, self.mirror)
        self.parted = True

    def note_write(self, start: int, stop: int) -> None:
        """Bytes [start, stop) have been written and are not durable yet."""
        self._first, self._last = min(self._first, start), max(self._last, stop)

    def take(self, start: int, stop: int) -> None:
        """Bytes [start, stop), and all that were written, are durable now. Raises ``OSError``."""
        if self.log_start is not None:
            if _begins_with_zeros(self.live, start):  # a new file that is warmed up: its zeros are durable as they were
                return
            self.flushed = stop
            return
        if not self.parted:
            return
        start, stop = min(start, self._first), max(stop, self._last)
        self._first, self._last = 1 << 62, 0
        copy_data(self.live, self.mirror, start, stop)

    def take_all(self, data: bytes) -> None:
        """The whole file is durable, and these are its bytes. Raises ``OSError``."""
        self.mirror.write_bytes(data)
        self.parted = True
        self._first, self._last = 1 << 62, 0

    def forget(self) -> None:
        """Nobody needs the bytes any more: a deleted file's."""
        self.live.unlink(missing_ok=True)
        self.mirror.unlink(missing_ok=True)

    def found_after(self, target: Path, rng: random.Random, keep: float, fates: PageFates) -> None:
        """Write to ``target`` what a power loss leaves. Raises ``OSError``."""
        target.parent.mkdir(parents=True, exist_ok=True)
        size = self.live.stat().st_size
        if self.log_start is not None:
            if self.flushed >= size:
                _link(self.live, target)
                return
            copy_data(self.live, target, 0, self.flushed, size)
            _lose(self.live, target, self.flushed // PAGE * PAGE, rng, keep, fates)
        elif not self.parted:
            copy_data(self.live, target)
        elif (durable := self.mirror.stat().st_size) != size and max(durable, size) <= CHUNK:
            target.write_bytes(lose_rewritten(self.live.read_bytes(), self.mirror.read_bytes(), rng, keep))
        else:
            copy_data(self.mirror, target, 0, None, size)
            _lose(self.live, target, 0, rng, keep, fates)
        stamp = self.live.stat().st_mtime_ns
        os.utime(target, ns=(stamp, stamp))


class _Disk(Protocol):
    """The part of a disk that a file needs."""

    guard: threading.RLock

    def check_alive(self) -> None: ...
    def commit_names(self) -> None: ...
    def delete(self, path: Path) -> None: ...


class ShadowFile(RealFile):
    """See :class:`engine.mapped.disk.DiskFile`."""

    __slots__ = ("_disk", "_shadow")

    def __init__(
        self, path: str, size: int, files: OpenFiles, new_folders: tuple[str, ...], disk: _Disk, shadow: Shadow
    ) -> None:
        super().__init__(path, size, files, new_folders)
        self._disk = disk
        self._shadow = shadow

    def write(self, position: int, data: bytes | memoryview) -> None:
        disk, shadow = self._disk, self._shadow
        disk.check_alive()
        if not shadow.parted:
            with disk.guard:
                shadow.part()
        super().write(position, data)
        with disk.guard:
            shadow.note_write(position, position + len(data))

    def flush(self, start: int, stop: int) -> None:
        self._disk.check_alive()
        super().flush(start, stop)
        with self._disk.guard:
            self._disk.check_alive()
            self._shadow.take(start, stop)
            self._disk.commit_names()

    def delete(self) -> None:
        self._disk.check_alive()
        self._disk.delete(Path(self.path))
        super().delete()

    def _map(self) -> memoryview:
        if not self._shadow.parted:
            with self._disk.guard:
                self._shadow.part()
        return super()._map()


def copy_data(source: Path, target: Path, start: int = 0, stop: int | None = None, size: int | None = None) -> None:
    """Copy bytes [start, stop) of ``source`` to the same place in ``target``, holes left holes; ``target`` gets the
    length ``size``, or at least the source's. Raises ``OSError``.
    """
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            length = os.fstat(reading).st_size
            if os.fstat(writing).st_size != (size or length):
                os.ftruncate(writing, size or length)
            stop = length if stop is None else min(stop, length)
            for begin, end in data_spans(reading, start, stop):
                _copy(reading, writing, begin, end)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def data_spans(descriptor: int, start: int, stop: int) -> list[tuple[int, int]]:
    """Return the spans within [start, stop) for which the file system holds data; one span if it cannot tell."""
    spans = []
    position = start
    try:
        while position < stop:
            begin = os.lseek(descriptor, position, os.SEEK_DATA)
            position = os.lseek(descriptor, begin, os.SEEK_HOLE)
            if begin < stop:
                spans.append((begin, min(position, stop)))
    except OSError as error:
        if error.errno != errno.ENXIO and position < stop:
            spans.append((position, stop))
    return spans


def _copy(reading: int, writing: int, start: int, stop: int) -> None:
    while start < stop:
        try:
            done = os.copy_file_range(reading, writing, stop - start, start, start)
        except OSError:  # not between these two file systems
            done = os.pwrite(writing, os.pread(reading, min(CHUNK, stop - start), start), start)
        if done <= 0:
            return
        start += done


def _link(source: Path, target: Path) -> None:
    """A file that is all durable is the same before and after; recovery never writes to it again."""
    try:
        os.link(source, target)
    except OSError:
        copy_data(source, target)


def _lose(live: Path, target: Path, start: int, rng: random.Random, keep: float, fates: PageFates) -> None:
    """Let dirty pages of ``live`` from ``start`` on arrive in ``target``, which holds what is durable."""
    reading = os.open(live, os.O_RDONLY | os.O_CLOEXEC)
    writing = os.open(target, os.O_RDWR | os.O_CLOEXEC)
    try:
        size = os.fstat(writing).st_size
        spans = [*data_spans(reading, start, size), *data_spans(writing, start, size)]
        for at in sorted({chunk for begin, end in spans for chunk in range(begin // CHUNK, -(-end // CHUNK))}):
            first = max(at * CHUNK, start)
            length = min((at + 1) * CHUNK, size) - first
            new = os.pread(reading, length, first).ljust(length, b"\0")
            old = os.pread(writing, length, first)
            if new == old:
                continue
            found = bytearray(old)
            lose_pages(found, new, rng, keep, fates)
            if found != old:
                os.pwrite(writing, found, first)
    finally:
        os.close(reading)
        os.close(writing)


def _begins_with_zeros(path: Path, start: int) -> bool:
    with path.open("rb") as file:
        return not any(os.pread(file.fileno(), _HEAD, start))
