"""The files of one queue, kept small: a store may have forty thousand queues (docs/formats/consume-queue.md#entry,
docs/formats/files.md#sequences).

Positions are absolute bytes of the queue. Files are written and read by position and never mapped; a file is opened
when it is first needed, and the disk keeps a bounded number of descriptors. One thread appends; files are made and
removed under the lock that the queues of a store share, and :attr:`starts` is replaced then, never changed.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from engine.errors import StoreError, WrongFileSize
from engine.files.layout import parse_file_name, queue_file_name
from engine.mapped.disk import Disk, DiskFile
from engine.sentences import sentence

PAGE = 4096
HOT_FILES = 32
"""Queue files, of all stores, that are mapped for reading at most."""
HOT_READS = 64
"""Reads of one queue after which its file is mapped for further ones."""
_hot: list[QueueFiles] = []
_hot_lock = threading.Lock()


class QueueFiles:
    """Files of ``file_size`` bytes in ``folder``; ``end`` is where the next entry goes, ``flushed`` is on the disk.

    As long as nothing was restored every file counts as full, as after RocketMQ's load.
    """

    __slots__ = (
        "_disk",
        "_hot",
        "_last",
        "_lock",
        "_other_file",
        "_reads",
        "_waiting",
        "end",
        "file_size",
        "first_created",
        "flushed",
        "folder",
        "starts",
    )

    def __init__(self, disk: Disk, folder: str, file_size: int, lock: threading.Lock) -> None:
        self._disk = disk
        self._lock = lock
        self.folder = folder
        self.file_size = file_size
        self.starts: tuple[int, ...] = ()
        self.end = 0
        self.flushed = 0
        self.first_created = -1
        """Start of the file that was made while the queue had none, −1 if there is no such file."""
        self._last: DiskFile | None = None
        self._other_file: tuple[int, DiskFile] | None = None
        self._hot: tuple[int, memoryview] | None = None  # start of the file that is mapped, and the map
        self._reads = 0
        self._waiting: dict[int, DiskFile] | None = None  # full files that were written and not flushed

    @property
    def last_start(self) -> int:
        """Start offset of the last file, −1 without files."""
        return self.starts[-1] if self.starts else -1

    @property
    def min_offset(self) -> int:
        """Start offset of the first file, −1 without files."""
        return self.starts[0] if self.starts else -1

    @property
    def last_is_full(self) -> bool:
        """True if the next entry needs a new file."""
        return not self.starts or self.end - self.starts[-1] >= self.file_size

    def load(self, listed: Iterable[tuple[str, int]] | None = None) -> None:
        """Load the files ``listed`` (name, length), or list the folder (docs/formats/files.md#folders). An empty
        last one is deleted; raises :class:`StoreError` for any other wrong length.
        """
        files = self._disk.names(Path(self.folder)) if listed is None else sorted(listed)
        if files and files[-1][1] == 0:
            self._disk.delete(Path(self.folder, files.pop()[0]))
        starts = []
        for name, size in files:
            start = parse_file_name(name)
            if start is None:
                problem = sentence("expected a file name of {n} digits", n=len(queue_file_name(0)))
                raise StoreError(problem, file=str(Path(self.folder, name)))
            if size != self.file_size:
                problem = sentence("expected {expected:,} bytes, found {found:,}", expected=self.file_size, found=size)
                raise WrongFileSize(problem, file=str(Path(self.folder, name)))
            starts.append(start)
        self.starts = tuple(starts)
        self.end = self.flushed = starts[-1] + self.file_size if starts else 0
        self._last = self._other_file = None

    def append(self, data: bytes | memoryview) -> None:
        """Write whole entries at :attr:`end`, into further files where the last one is full. Raises ``OSError``."""
        view = memoryview(data)
        done = 0
        while done < len(view):
            if self.last_is_full:
                self.create(self.starts[-1] + self.file_size if self.starts else 0)
            file, start = self._last_file(), self.starts[-1]
            count = min(len(view) - done, start + self.file_size - self.end)
            file.write(self.end - start, view[done : done + count])
            self.end += count
            done += count

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write inside the last file without moving :attr:`end`. Raises ``OSError``."""
        self._last_file().write(offset - self.starts[-1], data)

    def create(self, start: int) -> None:
        """Make the next file, which begins at ``start``. Raises ``OSError``."""
        with self._lock:
            file = self._open(start)
            if not self.starts:
                self.first_created = start
            if self._last is not None and self.flushed < self.end:
                self._waiting = {**(self._waiting or {}), self.starts[-1]: self._last}
            self.starts, self._last, self.end = (*self.starts, start), file, start
            if len(self.starts) == 1:
                self.flushed = start

    def read(self, offset: int, size: int) -> bytes:
        """Read bytes from ``offset`` on, of one file only; none outside the files. Bytes behind :attr:`end` can be
        read too.
        """
        starts = self.starts
        index = bisect_right(starts, offset) - 1
        if index < 0 or offset >= starts[index] + self.file_size:
            return b""
        start = starts[index]
        try:
            return self._file(start).read(offset - start, min(size, start + self.file_size - offset))
        except FileNotFoundError:
            return b""  # deleted meanwhile

    def lend(self, offset: int, size: int) -> bytes | memoryview:
        """Like :meth:`read`, but returns a view of a mapped file where the queue is read over and over."""
        hot = self._hot
        if hot is not None and 0 <= offset - hot[0] < self.file_size:
            return hot[1][offset - hot[0] : offset - hot[0] + size]
        self._reads += 1
        if self._reads >= HOT_READS:
            self._map(offset)
        return self.read(offset, size)

    def _map(self, offset: int) -> None:
        """Map the file that holds ``offset``; the queue that has had a map longest may lose it for that."""
        self._reads = 0
        starts = self.starts
        index = bisect_right(starts, offset) - 1
        if index < 0:
            return
        try:
            view = self._file(starts[index]).view
        except OSError:
            return  # a plain read reports the error
        with _hot_lock, self._lock:
            if starts is not self.starts:
                return
            self._hot = (starts[index], view)
            if self not in _hot:
                _hot.append(self)
            if len(_hot) > HOT_FILES:
                _hot.pop(0).cool()

    def cool(self) -> None:
        """Release the map."""
        self._hot = None

    def distrust(self) -> None:
        """Count what was found as not flushed: after a crash of the process it may be in the page cache only."""
        self.flushed = min([self.flushed, *self.starts[-2:]])

    def detach(self) -> None:
        """Give up all files: they lie elsewhere now, or are about to be deleted."""
        with self._lock:
            self._replace(())
            self.end = self.flushed = 0

    def cut(self, last_start: int | None, end: int) -> list[str]:
        """Keep the files up to the one that begins at ``last_start`` (None: no file) and append at ``end`` from now on.

        Gives the paths of the files that were deleted.
        """
        with self._lock:
            kept_starts = tuple(start for start in self.starts if last_start is not None and start <= last_start)
            dropped_starts = [start for start in self.starts if start not in kept_starts]
            self._replace(kept_starts)
            self.end = end if kept_starts else 0
            self.flushed = min(self.flushed, self.end)
        return [self._delete(start) for start in reversed(dropped_starts)]

    def drop_first(self, starts: Iterable[int]) -> list[str]:
        """Delete the files that begin at ``starts``; gives their paths. The last file stays whatever is asked."""
        with self._lock:
            dropped_starts = [start for start in starts if start in self.starts[:-1]]
            self._replace(tuple(start for start in self.starts if start not in dropped_starts))
        return [self._delete(start) for start in dropped_starts]

    def flush(self, least_pages: int = 0) -> bool:
        """Flush what was appended, where at least so many pages of a file wait (0: any byte;
        docs/formats/files.md#mapped-files).

        True if nothing is left to do. Raises ``OSError``; :attr:`flushed` does not move then.
        """
        end = self.end
        while self.flushed < end:
            starts = self.starts
            index = max(bisect_right(starts, self.flushed) - 1, 0)
            if not starts:
                return True
            start = starts[index]
            stop = min(end, start + self.file_size)
            begin = max(self.flushed - start, 0)
            full = stop == start + self.file_size
            if least_pages and not full and (stop - start) // PAGE - begin // PAGE < least_pages:
                return False
            waiting = self._waiting
            file = waiting[start] if waiting and start in waiting else self._file(start)
            file.flush(begin, stop - start)
            if waiting and full:
                with self._lock:  # the appending thread may have added another one meanwhile
                    self._waiting = {
                        waiting_start: opened
                        for waiting_start, opened in (self._waiting or {}).items()
                        if waiting_start != start
                    } or None
            following = starts[index + 1] if index + 1 < len(starts) else stop
            self.flushed = max(stop, following) if full else stop
        return True

    def flush_written(self, begin: int, stop: int) -> None:
        """Flush bytes that :meth:`write` wrote into the last file. Raises ``OSError``."""
        start = self.starts[-1]
        self._last_file().flush(begin - start, stop - start)

    def destroy(self) -> None:
        """Delete every file, and the folder where it is empty then."""
        self.cut(None, 0)
        self._disk.remove_folder(Path(self.folder))

    def forget(self) -> None:
        """Close open files: they open again when they are used."""
        waiting_files = list((self._waiting or {}).values())
        for file in (self._last, self._other_file[1] if self._other_file else None, *waiting_files):
            if file is not None:
                file.close()
        self._last = self._other_file = self._waiting = self._hot = None

    def modified(self, start: int) -> int:
        """Time (ms) at which the file that begins at ``start`` was last written."""
        return self._disk.modified(self.path(start))

    def path(self, start: int) -> Path:
        """Path of the file that begins at ``start``."""
        return Path(self.folder, queue_file_name(start))

    def _replace(self, starts: tuple[int, ...]) -> None:
        self._hot = None
        if self._last is not None and (not starts or starts[-1] != self.starts[-1]):
            self._last.close()
            self._last = None
        if self._other_file is not None:
            self._other_file[1].close()
            self._other_file = None
        if self._waiting:
            self._waiting = {start: file for start, file in self._waiting.items() if start in starts} or None
        self.starts = starts
        if self.first_created not in starts:
            self.first_created = -1

    def _delete(self, start: int) -> str:
        path = self.path(start)
        self._disk.delete(path)
        return str(path)

    def _last_file(self) -> DiskFile:
        file = self._last
        if file is None:
            with self._lock:
                file = self._last
                if file is None:
                    if not self.starts:
                        raise FileNotFoundError(2, "deleted meanwhile", self.folder)
                    file = self._last = self._open(self.starts[-1])
        return file

    def _file(self, start: int) -> DiskFile:
        starts = self.starts
        if starts and start == starts[-1]:
            return self._last_file()
        other_file = self._other_file
        if other_file is None or other_file[0] != start:
            with self._lock:
                if start not in self.starts:
                    raise FileNotFoundError(2, "deleted meanwhile", str(self.path(start)))
                other_file = self._other_file = (start, self._open(start))
        return other_file[1]

    def _open(self, start: int) -> DiskFile:
        return self._disk.open(self.path(start), self.file_size)
