"""Files opened with read rights only: nothing is created, locked, mapped or touched.

Reading uses ``pread``, never a memory map: a file that shrinks under a map kills the process, while a short
``pread`` is a value. Descriptors are opened at the first need and a bounded number of them stays open. Every call
goes through :mod:`engine.mapped.reading`, which records everything that could not be read.
"""

from __future__ import annotations

import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from engine.errors import CannotRead
from engine.files.layout import parse_file_name
from engine.mapped.reading import Identity, Reading
from engine.sentences import sentence

MAX_OPEN_FILES = 128


class DescriptorCache:
    """At most ``limit`` open descriptors; the least recently used one is closed first.

    A descriptor belongs to a path and, if known, to the (device, inode) that was listed there: a file that was renamed
    over another one is never read in its place. Safe to use from several threads.
    """

    def __init__(self, limit: int = MAX_OPEN_FILES, reading: Reading | None = None) -> None:
        self.reading = reading or Reading()
        self._limit = limit
        self._open: OrderedDict[tuple[str, Identity | None], int] = OrderedDict()
        self._lock = threading.Lock()

    def pread(self, file: ReadOnlyFile, size: int, position: int) -> bytes:
        """Return up to ``size`` bytes from ``position``; raises :class:`CannotRead`."""
        if size <= 1 << 16:
            with self._lock:
                return self.reading.read(file.path, self._descriptor(file), size, position, file.size)
        duplicate = self.duplicate(file)
        try:
            return self.reading.read(file.path, duplicate, size, position, file.size)
        finally:
            os.close(duplicate)

    def pread_into(self, file: ReadOnlyFile, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` as far as the file goes; returns the number of bytes read."""
        duplicate = self.duplicate(file)
        try:
            return self.reading.read_into(file.path, duplicate, view, position, file.size)
        finally:
            os.close(duplicate)

    def duplicate(self, file: ReadOnlyFile) -> int:
        """Return a descriptor that the caller must close."""
        with self._lock:
            return os.dup(self._descriptor(file))

    def forget(self, path: str) -> None:
        """Close the descriptors of ``path``: the next read opens it again."""
        with self._lock:
            for key in [key for key in self._open if key[0] == path]:
                os.close(self._open.pop(key))

    def close(self) -> None:
        with self._lock:
            for descriptor in self._open.values():
                os.close(descriptor)
            self._open.clear()

    def _descriptor(self, file: ReadOnlyFile) -> int:
        key = (file.path, file.identity)
        descriptor = self._open.get(key)
        if descriptor is None:
            descriptor = self.reading.open(file.path, identity=file.identity)
            while len(self._open) >= self._limit and self._open:
                _, oldest = self._open.popitem(last=False)
                os.close(oldest)
            self._open[key] = descriptor
        else:
            self._open.move_to_end(key)
        return descriptor


MAX_OFFSET = (1 << 63) - 1


class ReadOnlyFile:
    """A file of a file queue.

    ``start_offset`` is the absolute offset (bytes) of its first byte, ``size`` its length when last examined,
    ``identity`` its (device, inode), None if unknown.
    """

    __slots__ = ("_cache", "identity", "name", "path", "size", "start_offset")

    def __init__(
        self, path: str, start_offset: int, size: int, cache: DescriptorCache, identity: Identity | None = None
    ) -> None:
        self.path = path
        self.name = path.rpartition(os.sep)[2]
        self.start_offset = start_offset
        self.size = size
        self.identity = identity
        self._cache = cache

    @property
    def end_offset(self) -> int:
        return self.start_offset + self.size

    def read(self, position: int, size: int) -> bytes:
        """Return bytes from ``position`` (in the file) on: fewer than ``size`` if the file ends, or has shrunk.

        Raises :class:`CannotRead` if the file is gone, is another one, or cannot be read.
        """
        if size <= 0 or position < 0:
            return b""
        return self._cache.pread(self, size, position)

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` on; returns the number of bytes, fewer if the file ends or has shrunk."""
        return self._cache.pread_into(self, view, position)

    def lend(self, position: int, size: int) -> memoryview | None:  # noqa: ARG002 (a file that may shrink is never mapped)
        """Return the bytes themselves if the file cannot shrink, else None: then read them."""
        return None

    def extents(self, position: int) -> list[tuple[int, int]]:
        """Return spans (start, stop) from ``position`` on for which the file system holds data; one span if it does
        not say.

        Raises :class:`CannotRead`.
        """
        descriptor = self.descriptor()
        try:
            return self._cache.reading.extents(descriptor, position, self.size)
        finally:
            os.close(descriptor)

    def next_data(self, position: int) -> int:
        """Return the first position from ``position`` on for which the file system holds data; −1 if there is none.

        Raises :class:`CannotRead`.
        """
        descriptor = self.descriptor()
        try:
            return self._cache.reading.next_data(descriptor, position, self.size)
        finally:
            os.close(descriptor)

    def status(self) -> os.stat_result:
        """Return the system's present information about the file. Raises :class:`CannotRead`."""
        info = self._cache.reading.status(self.path, listed=True)
        assert info is not None
        return info

    @property
    def reads_by_itself(self) -> bool:
        """True if compiled code may read through :meth:`descriptor`; what it cannot read is read again by
        :meth:`read`.
        """
        return self._cache.reading.is_plain(self.path)

    def plain_end(self, position: int) -> int:
        """Return the end of the bytes from ``position`` on that compiled code may read: see
        :meth:`engine.mapped.reading.ReadingDisk.plain_end`.
        """
        return self._cache.reading.plain_end(self.path, position)

    def descriptor(self) -> int:
        """Return a descriptor for bulk reading, which the caller must close."""
        return self._cache.duplicate(self)


STRAY_HEAD_BYTES = 64


@dataclass(frozen=True, slots=True)
class UnexpectedEntry:
    """Something in a queue's folder that RocketMQ does not create.

    ``kind`` is ``name``, ``empty``, ``size``, ``gap``, ``folder``, ``double``, ``stray`` or ``link``.
    """

    kind: str
    path: str
    description: str
    offset: int | None = None


class FileSequence:
    """The files of one file queue in the order of their names, from one folder or several (multi-path commit logs).

    The read-only counterpart of MappedFileQueue (docs/formats/files.md#folders, #sequences). Files that do not
    fit are excluded and listed in ``oddities``. ``trouble`` is set if a folder or file could not be examined:
    then missing files may exist.

    ``may_be_ours`` gets the first bytes of a file that has neither the length nor the offset of a file of the queue: if
    it returns False, the file is excluded, too. Without this function no such file is.
    """

    def __init__(
        self,
        folders: Iterable[Path],
        cache: DescriptorCache,
        file_size: int | None = None,
        may_be_ours: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.folders = tuple(folders)
        self._may_be_ours = may_be_ours
        self._cache = cache
        self._given_size = file_size
        self.last_folder: Path | None = None
        """The folder with the newest files. Files of other folders at or behind its first one are left out."""
        self.files: list[ReadOnlyFile] = []
        self.oddities: list[UnexpectedEntry] = []
        self.doubles: list[tuple[ReadOnlyFile, ReadOnlyFile]] = []
        """Files that begin at the same offset, in several folders: the one that is read, and the one that is not."""
        self.trouble: CannotRead | None = None
        self.is_partial = False
        """True if files of the log are in folders that are not read."""
        self.refresh()

    def refresh(self) -> bool:
        """List the folders again; returns True if files came, went, changed their length or were replaced under the
        same name.
        """
        old_state = self._state()
        old_files = {f.path: f for f in self.files}
        new_files: list[ReadOnlyFile] = []
        oddities: list[UnexpectedEntry] = []
        self.trouble = None
        for folder in self.folders:
            for path, start, info in self._list_folder(folder, oddities):
                new_files.append(self._refreshed(old_files.pop(path, None), path, start, info))
        for vanished_path in old_files:
            self._cache.forget(vanished_path)
        new_files.sort(key=lambda f: (f.name, f.path))
        new_files = self._without_outdated(new_files, oddities)
        self.files, self.doubles = _split_doubles(new_files, oddities)
        self._exclude_strays(oddities)
        self.oddities = oddities
        return old_state != self._state()

    def _without_outdated(self, files: list[ReadOnlyFile], oddities: list[UnexpectedEntry]) -> list[ReadOnlyFile]:
        """Leave out files of other folders that begin at or behind the first file of :attr:`last_folder`."""
        prefix = f"{self.last_folder}{os.sep}"
        start = min((f.start_offset for f in files if f.path.startswith(prefix)), default=None)
        if self.last_folder is None or start is None:
            return files
        kept_files = []
        for file in files:
            if file.start_offset < start or file.path.startswith(prefix):
                kept_files.append(file)
            else:
                text = sentence("the files of {folder} begin before it: a broker does not read it", folder=prefix)
                oddities.append(UnexpectedEntry("stray", file.path, text, file.start_offset))
        return kept_files

    def _exclude_strays(self, oddities: list[UnexpectedEntry]) -> None:
        """Exclude files of another length, at an offset where no file of the queue begins, unless they may be ours."""
        size = self.file_size
        first_offset = next((file.start_offset for file in self.files if file.size == size), 0)
        misfits = [
            file for file in self.files if file.size not in {size, 0} and (file.start_offset - first_offset) % size
        ]
        for file in misfits if self._may_be_ours is not None else ():
            try:
                if self._may_be_ours is None or self._may_be_ours(file.read(0, STRAY_HEAD_BYTES)):
                    continue
            except CannotRead:
                continue
            self.files.remove(file)
            text = sentence("its length and its name do not fit to the files beside it, and it holds no messages")
            oddities.append(UnexpectedEntry("stray", file.path, text, file.start_offset))

    def require_complete(self) -> None:
        """Raise :class:`CannotRead` if a folder or a file could not be examined: then no file is known to be absent."""
        if self.trouble is not None:
            raise self.trouble

    def _state(self) -> list[tuple[str, int, Identity | None]]:
        return [(f.path, f.size, f.identity) for f in self.files]

    def _refreshed(self, file: ReadOnlyFile | None, path: str, start: int, info: os.stat_result) -> ReadOnlyFile:
        """Return ``file`` with its present length; a new one if another file has its name now, or it became shorter."""
        identity = (info.st_dev, info.st_ino)
        if file is None or file.identity != identity or info.st_size < file.size:
            self._cache.forget(path)
            return ReadOnlyFile(path, start, info.st_size, self._cache, identity)
        file.size = info.st_size
        return file

    def _list_folder(self, folder: Path, oddities: list[UnexpectedEntry]) -> list[tuple[str, int, os.stat_result]]:
        reading = self._cache.reading
        listed_files = []
        try:
            listed = reading.entries(folder)
        except CannotRead as error:
            self.trouble = error
            oddities.append(UnexpectedEntry("folder", str(folder), error.what))
            return []
        for entry in listed:
            try:
                info = reading.entry_status(entry)
            except CannotRead as error:
                self.trouble = error
                oddities.append(UnexpectedEntry("link", entry.path, error.what))
                continue
            start = parse_file_name(entry.name)
            if stat.S_ISDIR(info.st_mode):
                continue
            if start is None or start < 0:
                oddities.append(
                    UnexpectedEntry(
                        "name", entry.path, sentence("the name is not a number: a broker does not start with it")
                    )
                )
            elif not stat.S_ISREG(info.st_mode):
                oddities.append(UnexpectedEntry("name", entry.path, sentence("expected a regular file")))
            elif start > MAX_OFFSET - info.st_size:
                oddities.append(
                    UnexpectedEntry(
                        "name", entry.path, sentence("the file would end beyond the offsets that 64 bits hold")
                    )
                )
            else:
                listed_files.append((entry.path, start, info))
        return listed_files

    @property
    def file_size(self) -> int:
        """Bytes of one file: as given, else the most frequent length (0 for no files)."""
        if self._given_size:
            return self._given_size
        counts: dict[int, int] = {}
        for file in self.files:
            counts[file.size] = counts.get(file.size, 0) + 1
        return max(counts, key=lambda size: (counts[size], size)) if counts else 0

    @property
    def min_offset(self) -> int:
        """The start of the first file, −1 if there is none."""
        return self.files[0].start_offset if self.files else -1

    @property
    def end_offset(self) -> int:
        """The end of the last file's bytes, 0 if there is none."""
        return self.files[-1].end_offset if self.files else 0

    @property
    def total_size(self) -> int:
        return sum(f.size for f in self.files)

    def position_of(self, offset: int) -> int:
        """Return the index of the last file that begins at or before ``offset``, −1 if there is none."""
        start, end = 0, len(self.files)
        while start < end:
            middle = (start + end) // 2
            if self.files[middle].start_offset <= offset:
                start = middle + 1
            else:
                end = middle
        return start - 1

    def end_of(self, file: ReadOnlyFile) -> int:
        """Return the offset at which the sequence continues after ``file``: its end, or the next file's start if
        ``file`` is too long.
        """
        number = self.position_of(file.start_offset) + 1
        return min(file.end_offset, self.files[number].start_offset) if number < len(self.files) else file.end_offset

    def find(self, offset: int) -> ReadOnlyFile | None:
        """Return the file that holds the byte at ``offset``, or None."""
        index = self.position_of(offset)
        if index < 0 or offset >= self.files[index].end_offset:
            return None
        return self.files[index]

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes from the absolute ``offset`` on, never beyond the end of a file; b"" if no file holds it."""
        file = self.find(offset)
        return file.read(offset - file.start_offset, size) if file else b""


def _split_doubles(
    files: list[ReadOnlyFile], oddities: list[UnexpectedEntry]
) -> tuple[list[ReadOnlyFile], list[tuple[ReadOnlyFile, ReadOnlyFile]]]:
    unique: list[ReadOnlyFile] = []
    doubles: list[tuple[ReadOnlyFile, ReadOnlyFile]] = []
    for file in sorted(files, key=lambda f: f.start_offset):
        if unique and unique[-1].start_offset == file.start_offset:
            oddities.append(
                UnexpectedEntry(
                    "double",
                    file.path,
                    sentence("begins at the same offset as {path}", path=unique[-1].path),
                    file.start_offset,
                )
            )
            doubles.append((unique[-1], file))
        else:
            unique.append(file)
    return unique, doubles


class LogFiles(FileSequence):
    """The files of a commit log. If they are only one folder of a log in several folders, :attr:`trouble` is set: then
    no file is known to be absent.
    """

    def refresh(self) -> bool:
        """List the folders again; returns True if files came, went, changed their length or were replaced."""
        changed = super().refresh()
        missing = self._other_folders() if self.trouble is None and len(self.folders) == 1 else None
        self.is_partial = missing is not None
        self.trouble = self.trouble or missing
        return changed

    def _other_folders(self) -> CannotRead | None:
        """Record that the log has further folders, and return the error; None if the files are contiguous."""
        count = stripe_count([file.start_offset for file in self.files], self.file_size)
        if count < _MIN_FOLDERS or len(self.files) < _MIN_STRIPED_FILES:
            return None
        reason = sentence(
            "of {n:,} files of the log only one is here, again and again, as in one folder of a log in several "
            "folders: name the broker's configuration with --config (storePathCommitLog)",
            n=count,
        )
        return self._cache.reading.note_absent(self.folders[0], reason)


_MIN_FOLDERS = 2
_MIN_STRIPED_FILES = 3
"""With two files the file between them may have been lost."""


def stripe_count(starts: list[int], file_size: int) -> int:
    """Return the step from file to file, in file lengths: 1 if they are contiguous, *n* if every *n*-th is there; 0 if
    the steps differ.

    A broker with several folders in ``storePathCommitLog`` puts each *n*-th file into one of *n* folders.
    """
    steps = {start - previous_start for previous_start, start in pairwise(starts)}
    if len(steps) != 1 or not file_size:
        return 0
    count, remainder = divmod(steps.pop(), file_size)
    return 0 if remainder else count


class LoneFile(FileSequence):
    """A file queue of a single file that was opened alone, with a start offset given by the caller."""

    def __init__(self, path: Path, start_offset: int, cache: DescriptorCache) -> None:
        self._path = str(path)
        self._start = start_offset
        super().__init__((path.parent,), cache)

    def refresh(self) -> bool:
        """Examine the file again; returns True if its length changed, or if another file has its name."""
        old_state = self._state()
        self.oddities = []
        self.trouble = None
        try:
            info = self._cache.reading.status(self._path, listed=True)
        except CannotRead as error:
            self.trouble = error
            self.oddities.append(UnexpectedEntry("link", self._path, error.what))
            info = None
        old_file = self.files[0] if self.files else None
        self.files = [self._refreshed(old_file, self._path, self._start, info)] if info is not None else []
        return old_state != self._state()
