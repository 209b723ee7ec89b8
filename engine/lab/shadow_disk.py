"""A file of a shadowed disk: the known part of its durable bytes, and the file that the engine writes to."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import threading
from pathlib import Path
from typing import Final

from engine import system
from engine.mapped.disk import RealDisk
from engine.mapped.power_loss import PAGE, NameChange, PageFates, PowerLoss, lose_pages, lose_rewritten
from engine.mapped.real_file import MAX_OPEN_FILES, OpenFiles, RealFile
from engine.mapped.store_lock import StoreLock

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
        """Note that the file is new: none of its bytes are durable."""
        self.mirror.write_bytes(b"")
        self.parted = True

    def part(self) -> None:
        """Save the durable bytes of a file that is about to be changed. Raises ``OSError``."""
        if self.parted or self.log_start is not None:
            return
        with contextlib.suppress(FileNotFoundError):
            copy_data(self.live, self.mirror)
        self.parted = True

    def note_write(self, start: int, stop: int) -> None:
        """Note that bytes [start, stop) were written and are not durable yet."""
        self._first, self._last = min(self._first, start), max(self._last, stop)

    def take(self, start: int, stop: int) -> None:
        """Make bytes [start, stop), and all written ones, durable. Raises ``OSError``."""
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
        """Take these bytes as the durable content of the complete file. Raises ``OSError``."""
        self.mirror.write_bytes(data)
        self.parted = True
        self._first, self._last = 1 << 62, 0

    def forget(self) -> None:
        """Drop the bytes of a deleted file."""
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


class ShadowFile(RealFile):
    """See :class:`engine.mapped.disk.DiskFile`."""

    __slots__ = ("_disk", "_shadow")

    def __init__(
        self, path: str, size: int, files: OpenFiles, new_folders: tuple[str, ...], disk: ShadowDisk, shadow: Shadow
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
    reading = os.open(source, os.O_RDONLY | system.OPEN_FLAGS)
    try:
        writing = os.open(target, os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS, 0o644)
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
            begin = system.next_data(descriptor, position)
            position = system.next_hole(descriptor, begin)
            if begin < stop:
                spans.append((begin, min(position, stop)))
    except OSError as error:
        if error.errno != errno.ENXIO and position < stop:
            spans.append((position, stop))
    return spans


def _copy(reading: int, writing: int, start: int, stop: int) -> None:
    while start < stop:
        done = system.copy_range(reading, writing, stop - start, start)
        if not done:
            done = system.pwrite(writing, system.pread(reading, min(CHUNK, stop - start), start), start)
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
    reading = os.open(live, os.O_RDONLY | system.OPEN_FLAGS)
    writing = os.open(target, os.O_RDWR | system.OPEN_FLAGS)
    try:
        size = os.fstat(writing).st_size
        spans = [*data_spans(reading, start, size), *data_spans(writing, start, size)]
        for chunk_index in sorted({chunk for begin, end in spans for chunk in range(begin // CHUNK, -(-end // CHUNK))}):
            start_position = max(chunk_index * CHUNK, start)
            length = min((chunk_index + 1) * CHUNK, size) - start_position
            new = system.pread(reading, length, start_position).ljust(length, b"\0")
            old = system.pread(writing, length, start_position)
            if new == old:
                continue
            surviving = bytearray(old)
            lose_pages(surviving, new, rng, keep, fates)
            if surviving != old:
                system.pwrite(writing, surviving, start_position)
    finally:
        os.close(reading)
        os.close(writing)


def _begins_with_zeros(path: Path, start: int) -> bool:
    with path.open("rb") as file:
        return not any(system.pread(file.fileno(), _HEAD, start))


MIN_FREE_BYTES: Final = 512 << 20
"""Bytes of room on the real disk below which a lab's disk counts as full."""


class ShadowDisk(RealDisk):
    """The files below ``root``; the durable ones go to ``durable``, which is emptied first (None: nothing is kept
    apart). What is there already counts as durable.

    ``capacity`` is how large the store's disk shall seem, in bytes (0: as large as it is). After
    :meth:`cut_power` every call that would change the disk raises :class:`PowerLoss`.
    """

    def __init__(self, root: Path, durable: Path | None, capacity: int = 0, open_files: int = MAX_OPEN_FILES) -> None:
        super().__init__(open_files)
        self.root = root
        self.durable = durable
        self.capacity = capacity
        self.guard = threading.RLock()
        self.dead = False
        self.names_now: dict[str, Shadow] = {}
        self.durable_names: dict[str, Shadow] = {}
        self.pending: list[NameChange[Shadow]] = []
        self._graves: list[Shadow] = []  # of files that were deleted, until the disk knows it
        self._number = 0
        if durable is not None:
            if durable.is_symlink():
                durable.unlink()
            elif durable.exists():
                shutil.rmtree(durable)
            durable.mkdir(parents=True)
            for path in root.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    shadow = self._shadow(path)
                    shadow.flushed = path.stat().st_size
                    self.names_now[str(path)] = self.durable_names[str(path)] = shadow

    def linked_file(self, folder: Path) -> Path | None:  # noqa: ARG002 - as its protocol asks
        """Return None: a durable file is linked into the picture of the disk and never written again."""
        return None

    # The power cut

    def cut_power(self) -> None:
        """Let nothing reach the disk from now on."""
        with self.guard:
            self.dead = True

    def set_flushed_offset(self, offset: int) -> None:
        """The log has been recovered: its durable bytes end at the absolute ``offset``, what follows is new."""
        with self.guard:
            for shadow in self.names_now.values():
                if shadow.log_start is not None:
                    shadow.flushed = max(0, offset - shadow.log_start)

    def check_alive(self) -> None:
        """Raise :class:`PowerLoss` after the power was cut."""
        if self.dead:
            raise PowerLoss

    def commit_names(self) -> None:
        """Make all changes of names so far durable. Raises ``OSError``."""
        with self.guard:
            if not self.pending:
                return
            for change in self.pending:
                change.apply(self.durable_names)
            deleted_paths = [change.path for change in self.pending if change.node is None]
            self.pending.clear()
            if deleted_paths:
                referenced = {id(shadow) for names in (self.durable_names, self.names_now) for shadow in names.values()}
                for shadow in list(self._graves):
                    if id(shadow) not in referenced:
                        self._graves.remove(shadow)
                        shadow.forget()

    # The protocol

    def open(self, path: Path, size: int) -> RealFile:
        if self.durable is not None and str(path) not in self.names_now:
            self.check_alive()
            with self.guard:
                is_new = str(path) not in self.names_now and not path.exists()
                if is_new:
                    self._change({str(path): self._shadow(path)})
            try:
                return super().open(path, size)
            except OSError:
                with self.guard:
                    if is_new and not path.exists():
                        self._change({str(path): None})
                raise
        return super().open(path, size)

    def _file(self, path: str, size: int, new_folders: tuple[str, ...] = ()) -> RealFile:
        if self.durable is None:
            return super()._file(path, size, new_folders)
        with self.guard:
            shadow = self.names_now.get(path)
            if shadow is None:
                shadow = self.names_now[path] = self.durable_names[path] = self._shadow(Path(path))
        return ShadowFile(path, size, self._files, new_folders, self, shadow)

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self.check_alive()
        if self.durable is None:
            super().write_file(path, data, sync=sync)
            return
        with self.guard:
            shadow = self.names_now.get(str(path))
            if shadow is None:
                shadow = self._shadow(path)
                shadow.begin_empty()
                self._change({str(path): shadow})
            else:
                shadow.part()
            super().write_file(path, data, sync=sync)
            if sync:
                shadow.take_all(data)
                self.commit_names()

    def replace(self, source: Path, target: Path) -> None:
        self.check_alive()
        with self.guard:
            shadow = self.names_now.get(str(source))
            old = self.names_now.get(str(target))
            if self.durable is not None and old is not None:
                self._bury(old)
            super().replace(source, target)
            if self.durable is not None and shadow is not None:
                shadow.live = target
                self._change({str(target): shadow, str(source): None})

    def move_folder(self, source: Path, target: Path) -> None:
        self.check_alive()
        with self.guard:
            super().move_folder(source, target)
            changes: dict[str, Shadow | None] = {}
            for path, shadow in self.names_now.items():
                if path.startswith(f"{source}/"):
                    shadow.live = target / path[len(str(source)) + 1 :]
                    changes[str(shadow.live)] = shadow
                    changes[path] = None
            self._change(changes)

    def delete(self, path: Path) -> None:
        self.check_alive()
        with self.guard:
            shadow = self.names_now.get(str(path))
            if shadow is not None and self.durable is not None:
                self._bury(shadow)
                self._change({str(path): None})
        super().delete(path)

    def sync_folder(self, path: Path) -> None:
        self.check_alive()
        super().sync_folder(path)
        self.commit_names()

    def usage(self, path: Path) -> float:
        """Return the usage of the disk that the store seems to have; full if the real disk has hardly any room left."""
        if not self.capacity:
            return super().usage(path)
        try:
            free = shutil.disk_usage(self.root).free
        except OSError:
            return -1.0
        if free < MIN_FREE_BYTES:
            return 1.0
        return min(1.0, -(-self._used() * 100 // self.capacity) / 100)

    def total(self, path: Path) -> int:
        return self.capacity or super().total(path)

    def lock(self, path: Path) -> StoreLock:
        store_lock = super().lock(path)
        if self.durable is not None:
            with self.guard:
                if str(path) not in self.names_now:
                    self.names_now[str(path)] = self.durable_names[str(path)] = self._shadow(path)
        return store_lock

    # Inside

    def _used(self) -> int:
        """Return the bytes that the files of the store take on the disk."""
        with self.guard:
            paths = list(self.names_now)
        used = 0
        for path in paths:
            with contextlib.suppress(OSError):
                used += system.allocated_bytes(os.stat(path))  # noqa: PTH116 (no Path for each of many)
        return used

    def _shadow(self, path: Path) -> Shadow:
        assert self.durable is not None
        self._number += 1
        inside = path.relative_to(self.root).as_posix().replace("/", "~")
        return Shadow(path, self.durable / f"{self._number:06d}~{inside}"[:200], log_start=self._log_start(path))

    def _log_start(self, path: Path) -> int | None:
        inside = path.relative_to(self.root).parts
        return int(path.name) if len(inside) == 2 and inside[0] == "commitlog" and path.name.isdigit() else None

    def _bury(self, shadow: Shadow) -> None:
        """Keep the bytes of a file whose name is about to be removed: the disk may still have them."""
        assert self.durable is not None
        self._number += 1
        grave = self.durable / f"{self._number:06d}~deleted"
        try:
            os.link(shadow.live, grave)
        except FileNotFoundError:
            return
        except OSError:  # no links here
            copy_data(shadow.live, grave)
        shadow.live = grave
        self._graves.append(shadow)

    def _change(self, changes: dict[str, Shadow | None]) -> None:
        group = self.pending[-1].group + 1 if self.pending else 0
        for path, shadow in changes.items():
            change = NameChange(path, shadow, group)
            self.pending.append(change)
            change.apply(self.names_now)
