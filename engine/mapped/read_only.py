"""Files opened with read rights only: nothing is created, locked, mapped or touched.

Reading goes by ``pread``, never through a memory map: a file that shrinks under a map kills the process, a short
``pread`` is a value. Descriptors are opened when first needed and a bounded number of them stays open.
"""

from __future__ import annotations

import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import CannotRead
from engine.layout import parse_file_name
from engine.mapped.extents import data_extents

OPEN_FILES = 128


class DescriptorCache:
    """At most ``limit`` open descriptors, the longest unused closed first. Safe to use from several threads."""

    def __init__(self, limit: int = OPEN_FILES) -> None:
        self._limit = limit
        self._open: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def pread(self, path: str, size: int, position: int) -> bytes:
        """Up to ``size`` bytes from ``position``; raises ``OSError`` as it comes."""
        with self._lock:
            descriptor = self._descriptor(path)
            if size <= 1 << 16:
                return os.pread(descriptor, size, position)
            own = os.dup(descriptor)
        try:
            return _pread_all(own, size, position)
        finally:
            os.close(own)

    def pread_into(self, path: str, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` as far as the file goes; gives the number of bytes read."""
        with self._lock:
            own = os.dup(self._descriptor(path))
        try:
            done = 0
            while done < len(view):
                n = os.preadv(own, [view[done:]], position + done)
                if n == 0:
                    break
                done += n
            return done
        finally:
            os.close(own)

    def duplicate(self, path: str) -> int:
        """A descriptor of the caller's own, to be closed by the caller."""
        with self._lock:
            return os.dup(self._descriptor(path))

    def forget(self, path: str) -> None:
        """Close what is open of ``path``: the next read opens it anew."""
        with self._lock:
            descriptor = self._open.pop(path, None)
            if descriptor is not None:
                os.close(descriptor)

    def close(self) -> None:
        with self._lock:
            for descriptor in self._open.values():
                os.close(descriptor)
            self._open.clear()

    def _descriptor(self, path: str) -> int:
        descriptor = self._open.get(path)
        if descriptor is None:
            descriptor = open_read_only(path)
            while len(self._open) >= self._limit:
                _, oldest = self._open.popitem(last=False)
                os.close(oldest)
            self._open[path] = descriptor
        else:
            self._open.move_to_end(path)
        return descriptor


def open_read_only(path: str) -> int:
    """A descriptor of a regular file with read rights only; the file's access time is left alone where that is
    allowed.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NOATIME", 0))
    except PermissionError:
        descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(22, "expected a regular file", path)
    return descriptor


def _pread_all(descriptor: int, size: int, position: int) -> bytes:
    first = os.pread(descriptor, size, position)
    if len(first) == size or not first:
        return first
    pieces = [first]
    done = len(first)
    while done < size:
        piece = os.pread(descriptor, size - done, position + done)
        if not piece:
            break
        pieces.append(piece)
        done += len(piece)
    return b"".join(pieces)


LARGEST_OFFSET = (1 << 63) - 1


class ReadOnlyFile:
    """One file of a file queue; ``start_offset`` is the absolute offset (bytes) of its first byte, ``size`` its length
    when last looked at.
    """

    __slots__ = ("_cache", "name", "path", "size", "start_offset")

    def __init__(self, path: str, start_offset: int, size: int, cache: DescriptorCache) -> None:
        self.path = path
        self.name = path.rpartition(os.sep)[2]
        self.start_offset = start_offset
        self.size = size
        self._cache = cache

    @property
    def end_offset(self) -> int:
        return self.start_offset + self.size

    def read(self, position: int, size: int) -> bytes:
        """Bytes from ``position`` (in the file) on: fewer than ``size`` where the file ends, or has shrunk.

        Raises :class:`CannotRead` where the file is gone or cannot be read.
        """
        if size <= 0 or position < 0:
            return b""
        try:
            return self._cache.pread(self.path, size, position)
        except OSError as error:
            raise CannotRead(f"cannot be read: {error.strerror}", file=self.path, offset=position) from error

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` on; gives the number of bytes, short where the file ends or has shrunk."""
        try:
            return self._cache.pread_into(self.path, view, position)
        except OSError as error:
            raise CannotRead(f"cannot be read: {error.strerror}", file=self.path, offset=position) from error

    def lend(self, position: int, size: int) -> memoryview | None:  # noqa: ARG002 (a file that may shrink is never mapped)
        """The bytes themselves where somebody has made sure that the file cannot shrink, else None: read them then."""
        return None

    def extents(self, position: int) -> list[tuple[int, int]]:
        """Spans (start, stop) from ``position`` on that the file system holds data for; one where it does not tell.

        Raises :class:`CannotRead`.
        """
        descriptor = self.descriptor()
        try:
            return data_extents(descriptor, position, self.size)
        finally:
            os.close(descriptor)

    def descriptor(self) -> int:
        """A descriptor of the caller's own for bulk reading, to be closed by the caller."""
        try:
            return self._cache.duplicate(self.path)
        except OSError as error:
            raise CannotRead(f"cannot be read: {error.strerror}", file=self.path) from error


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something in a queue's folder that is not as RocketMQ makes it: ``kind`` is ``name``, ``empty``, ``size``,
    ``gap``, ``folder``, ``double`` or ``link``.
    """

    kind: str
    path: str
    what: str
    offset: int | None = None


class FileSequence:
    """The files of one file queue in the order of their names, over one folder or several (multi-path commit logs).

    The reading face of MappedFileQueue (spec 1, 6.3). Files that do not fit are kept out and named in ``oddities``.
    """

    def __init__(self, folders: Iterable[Path], cache: DescriptorCache, file_size: int | None = None) -> None:
        self.folders = tuple(folders)
        self._cache = cache
        self._given_size = file_size
        self.files: list[ReadOnlyFile] = []
        self.oddities: list[Oddity] = []
        self.refresh()

    def refresh(self) -> bool:
        """List the folders again; True where files came, went or changed their length."""
        before = [(f.path, f.size) for f in self.files]
        known = {f.path: f for f in self.files}
        found: list[ReadOnlyFile] = []
        odd: list[Oddity] = []
        for folder in self.folders:
            for path, start, size in _list_folder(folder, odd):
                file = known.get(path)
                if file is None or size < file.size:
                    self._cache.forget(path)
                    file = ReadOnlyFile(path, start, size, self._cache)
                file.size = size
                found.append(file)
        found.sort(key=lambda f: (f.name, f.path))
        self.files = _without_doubles(found, odd)
        self.oddities = odd
        return before != [(f.path, f.size) for f in self.files]

    @property
    def file_size(self) -> int:
        """Bytes of one file: as given, else the commonest length (0 for no files)."""
        if self._given_size:
            return self._given_size
        counts: dict[int, int] = {}
        for file in self.files:
            counts[file.size] = counts.get(file.size, 0) + 1
        return max(counts, key=lambda size: (counts[size], size)) if counts else 0

    @property
    def min_offset(self) -> int:
        """Start of the first file, −1 where there is none."""
        return self.files[0].start_offset if self.files else -1

    @property
    def end_offset(self) -> int:
        """End of the last file's bytes, 0 where there is none."""
        return self.files[-1].end_offset if self.files else 0

    @property
    def total_size(self) -> int:
        return sum(f.size for f in self.files)

    def position_of(self, offset: int) -> int:
        """Number of the last file that begins at or before ``offset``, −1 where there is none."""
        low, high = 0, len(self.files)
        while low < high:
            middle = (low + high) // 2
            if self.files[middle].start_offset <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def behind(self, file: ReadOnlyFile) -> int:
        """Where the sequence goes on behind ``file``: its end, or the next file's start where ``file`` is too long."""
        number = self.position_of(file.start_offset) + 1
        return min(file.end_offset, self.files[number].start_offset) if number < len(self.files) else file.end_offset

    def find(self, offset: int) -> ReadOnlyFile | None:
        """The file that holds the byte at ``offset``, or None."""
        at = self.position_of(offset)
        if at < 0 or offset >= self.files[at].end_offset:
            return None
        return self.files[at]

    def read(self, offset: int, size: int) -> bytes:
        """Bytes from the absolute ``offset`` on, never over the end of a file; b"" where no file holds it."""
        file = self.find(offset)
        return file.read(offset - file.start_offset, size) if file else b""


def _list_folder(folder: Path, odd: list[Oddity]) -> list[tuple[str, int, int]]:
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda e: e.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        odd.append(Oddity("folder", str(folder), f"cannot be listed: {error.strerror}"))
        return []
    found = []
    for entry in listed:
        try:
            info = entry.stat()
            if stat.S_ISDIR(info.st_mode):
                continue
            start = parse_file_name(entry.name)
            if start is None or start < 0:
                odd.append(Oddity("name", entry.path, "the name is no number: a broker does not start with it"))
            elif not stat.S_ISREG(info.st_mode):
                odd.append(Oddity("name", entry.path, "expected a regular file"))
            elif start > LARGEST_OFFSET - info.st_size:
                odd.append(Oddity("name", entry.path, "the file would end beyond the offsets that 64 bits hold"))
            else:
                found.append((entry.path, start, info.st_size))
        except OSError as error:
            odd.append(Oddity("link", entry.path, f"cannot be read: {error.strerror}"))
    return found


def _without_doubles(files: list[ReadOnlyFile], odd: list[Oddity]) -> list[ReadOnlyFile]:
    kept: list[ReadOnlyFile] = []
    for file in sorted(files, key=lambda f: f.start_offset):
        if kept and kept[-1].start_offset == file.start_offset:
            odd.append(Oddity("double", file.path, f"begins at the same offset as {kept[-1].path}", file.start_offset))
        else:
            kept.append(file)
    return kept


class LoneFile(FileSequence):
    """A file queue of one file that was opened by itself, its start offset given by the caller."""

    def __init__(self, path: Path, start_offset: int, cache: DescriptorCache) -> None:
        self._path = str(path)
        self._start = start_offset
        super().__init__((path.parent,), cache)

    def refresh(self) -> bool:
        """Look at the file's length again; True where it changed."""
        before = [(f.path, f.size) for f in self.files]
        self.oddities = []
        try:
            size = Path(self._path).stat().st_size
        except OSError as error:
            self.oddities.append(Oddity("link", self._path, f"cannot be read: {error.strerror}"))
            self.files = []
            return bool(before)
        if self.files and size >= self.files[0].size:
            self.files[0].size = size
        else:
            self._cache.forget(self._path)
            self.files = [ReadOnlyFile(self._path, self._start, size, self._cache)]
        return before != [(f.path, f.size) for f in self.files]
