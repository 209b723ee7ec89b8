"""A sequence of files of one length, addressed by absolute offsets (docs/formats/files.md#folders, #sequences).

Java: MappedFileQueue, MultiPathMappedFileQueue. ``files`` is replaced, never changed in place: a reader takes the
list as it is and needs no lock.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from engine.errors import StoreError, WrongFileSize
from engine.files.layout import parse_file_name, queue_file_name
from engine.mapped.disk import Disk, DiskFile
from engine.mapped.mapped_file import BorrowedBytes, MappedFile
from engine.mapped.memory import advise
from engine.mapped.transient_pool import BorrowedBuffer
from engine.sentences import sentence

_log = logging.getLogger(__name__)
DESTROY_INTERVAL_MS = 1000
"""Time for which a file that :meth:`MappedFileQueue.truncate` removes may still be in use."""

Allocate = Callable[[int], MappedFile | None]
"""Returns the file that begins at an absolute offset, created ahead of need; None if there was no time to create it."""


class MappedFileQueue:
    """The files of ``folders`` (several: a multi-path commit log), each ``file_size`` bytes long.

    ``mapped`` is False for consume queues: their files are written and read by position. ``allocate`` creates new
    files instead of the queue. ``is_full`` returns True for a folder on a disk that is too full for new files.
    ``borrow`` returns a buffer of the transient pool for each new file. ``prepare`` warms a new file up. ``ahead`` is
    called for a file that fills up quickly (:attr:`MappedFile.ahead`).
    """

    __slots__ = (
        "_ahead",
        "_allocate",
        "_borrow",
        "_disk",
        "_folders",
        "_is_full",
        "_lock",
        "_mapped",
        "_prepare",
        "_read_only",
        "committed_where",
        "file_size",
        "files",
        "flushed_where",
        "store_timestamp",
    )

    def __init__(
        self,
        disk: Disk,
        folders: Sequence[Path],
        file_size: int,
        *,
        read_only_folders: Sequence[Path] = (),
        allocate: Allocate | None = None,
        mapped: bool = True,
        is_full: Callable[[Path], bool] | None = None,
        borrow: Callable[[], BorrowedBuffer | None] | None = None,
        prepare: Callable[[DiskFile], None] | None = None,
        ahead: Callable[[MappedFile], None] | None = None,
    ) -> None:
        self._disk = disk
        self._folders = tuple(folders)
        self._read_only = tuple(read_only_folders)
        self._allocate = allocate
        self._mapped = mapped
        self._is_full = is_full
        self._borrow = borrow
        self._prepare = prepare
        self._ahead = ahead
        self._lock = threading.Lock()
        self.file_size = file_size
        self.files: list[MappedFile] = []
        self.flushed_where = 0  # absolute offset up to which all bytes survive a power loss
        self.committed_where = 0
        self.store_timestamp = 0  # of the last message that a complete flush (least_pages 0) has reached, ms

    def __repr__(self) -> str:
        return f"MappedFileQueue({self._folders[0]}, {len(self.files)} files)"

    @property
    def folders(self) -> tuple[Path, ...]:
        return self._folders

    @property
    def pooled(self) -> bool:
        """True if files may be in buffers of a transient pool until they are committed."""
        return self._borrow is not None

    # Loading

    def load(self) -> None:
        """Find the files of all folders; their positions are their ends until recovery lowers them
        (docs/formats/files.md#folders).

        Deletes the last file if its length is 0. Raises :class:`WrongFileSize` for any other wrong length,
        :class:`StoreError` for a name that is no number, and ``OSError``.
        """
        folders = dict.fromkeys((*self._folders, *self._read_only))
        listed = sorted(
            ((name, folder, size) for folder in folders for name, size in self._disk.names(folder)), key=lambda f: f[0]
        )
        files: list[MappedFile] = []
        for number, (name, folder, size) in enumerate(listed):
            path = folder / name
            if size == 0 and number == len(listed) - 1:
                _log.warning("%s has no length and is the last one: deleted", path)
                self._disk.delete(path)
                continue
            if size != self.file_size:
                raise WrongFileSize(
                    sentence("expected {expected:,} bytes, found {found:,}", expected=self.file_size, found=size),
                    file=str(path),
                )
            start = parse_file_name(name)
            if start is None:
                raise StoreError(sentence("the name is no number"), file=str(path))
            file = MappedFile(self._disk.open(path, self.file_size), start, mapped=self._mapped)
            file.set_positions(self.file_size)
            file.ahead = self._ahead
            files.append(file)
        self.files = files

    # Finding

    @property
    def first(self) -> MappedFile | None:
        """The file with the lowest offsets, None for none."""
        files = self.files
        return files[0] if files else None

    @property
    def last(self) -> MappedFile | None:
        """The file that is appended to, None for none."""
        files = self.files
        return files[-1] if files else None

    @property
    def min_offset(self) -> int:
        """Start of the first file, −1 for none."""
        files = self.files
        return files[0].start_offset if files else -1

    @property
    def readable_min(self) -> int:
        """The start of the first readable file, after files that are being deleted; −1 for none.

        If every file has been shut down, as at the end of a store, the start of the first.
        """
        files = self.files
        for file in files:
            if file.available:
                return file.start_offset
        return files[0].start_offset if files else -1

    @property
    def max_offset(self) -> int:
        """The end of readable bytes without a gap, 0 for no file.

        Files of a transient pool may be followed by others before they are committed: bytes behind the first file
        that is not fully committed do not count. (RocketMQ checks only the last file, and dispatch may skip the
        bytes in between.)
        """
        files = self.files
        if not files:
            return 0
        last_file = files[-1]
        if self.pooled:
            for file in files[self._number_of(self.committed_where) :]:
                if file.readable < file.size:
                    return file.start_offset + file.readable
        return last_file.start_offset + last_file.readable

    @property
    def wrote_offset(self) -> int:
        """The end of appended bytes, 0 for no file."""
        files = self.files
        return files[-1].start_offset + files[-1].wrote if files else 0

    @property
    def total_size(self) -> int:
        """Bytes of all files that are not shut down."""
        return sum(file.size for file in self.files if file.available)

    def _number_of(self, offset: int) -> int:
        """Return the index in the list of the last file that begins at or before ``offset``, 0 if there is none."""
        return max(bisect_right(self.files, offset, key=_start_of) - 1, 0)

    def find(self, offset: int, first_if_outside: bool = False) -> MappedFile | None:
        """Return the file that holds ``offset``; None (or the first file) if no file does."""
        files = self.files
        if not files:
            return None
        size = self.file_size
        first_offset = files[0].start_offset
        if not first_offset <= offset < files[-1].start_offset + size:
            return files[0] if first_if_outside else None
        number = (offset - first_offset) // size
        if number < len(files) and files[number].start_offset == first_offset + number * size:
            return files[number]
        for file in files:  # a file is missing in between
            if file.start_offset <= offset < file.start_offset + size:
                return file
        return files[0] if first_if_outside else None

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` readable bytes from ``offset``, never beyond the end of one file."""
        file = self.find(offset)
        return b"" if file is None else file.read(offset - file.start_offset, size)

    def lend(self, offset: int, size: int | None = None) -> BorrowedBytes | None:
        """Lend ``size`` bytes from ``offset`` of one file, or all readable bytes in it; None if they are not there."""
        file = self.find(offset)
        return None if file is None else file.select(offset - file.start_offset, size)

    # Growing

    def last_or_create(self, start_offset: int = 0) -> MappedFile | None:
        """Return the file for the next append: the last one, or a new one if there is none or it is full.

        The first file of all begins at the file boundary at or below ``start_offset``. Returns None if no file
        could be allocated in time. Raises ``OSError``.
        """
        files = self.files
        if files:
            last_file = files[-1]
            if last_file.wrote < last_file.size:
                return last_file
            last_file.note_rolled()
            start = last_file.start_offset + self.file_size
        else:
            start = start_offset - start_offset % self.file_size
        new_file = self._allocate(start) if self._allocate is not None else self.create(start)
        if new_file is None:
            return None
        with self._lock:
            new_file.first_in_queue = not self.files
            self.files = [*self.files, new_file]
        return new_file

    def path_of(self, start_offset: int) -> Path:
        """Return the path for a new file that begins at ``start_offset``; folders take turns
        (docs/formats/files.md#folders).
        """
        folders: Sequence[Path] = self._folders
        if len(folders) > 1:
            writable = [folder for folder in folders if folder not in self._read_only]
            not_full = [folder for folder in writable if self._is_full is None or not self._is_full(folder)]
            folders = sorted(not_full or writable or folders, key=str)
        return folders[start_offset // self.file_size % len(folders)] / queue_file_name(start_offset)

    def create(self, start_offset: int) -> MappedFile:
        """Create a file that is not in the list yet: an allocation service does so ahead of need. Raises
        ``OSError``.
        """
        file = self._disk.open(self.path_of(start_offset), self.file_size)
        if self._prepare is not None:
            self._prepare(file)
        buffer = self._borrow() if self._borrow is not None else None
        new_file = MappedFile(file, start_offset, pool_buffer=buffer, mapped=self._mapped)
        new_file.ahead = self._ahead
        return new_file

    # Flushing

    def flush(self, least_pages: int) -> bool:
        """Flush the file at ``flushed_where``; returns True if that stayed the same. Raises ``OSError``."""
        self.flushed_where = max(self.flushed_where, self.min_offset)  # files deleted before their flush need none
        file = self.find(self.flushed_where, self.flushed_where == 0)
        if file is None:
            return True
        stamp = file.store_timestamp
        new_offset = file.start_offset + file.flush(least_pages)
        is_unchanged = new_offset == self.flushed_where
        self.flushed_where = new_offset
        if least_pages == 0:
            self.store_timestamp = stamp
        return is_unchanged

    def commit(self, least_pages: int) -> bool:
        """Commit the file at ``committed_where``; returns True if that stayed the same. Raises ``OSError``."""
        self.committed_where = max(self.committed_where, self.min_offset)
        file = self.find(self.committed_where, self.committed_where == 0)
        if file is None:
            return True
        new_offset = file.start_offset + file.commit(least_pages)
        is_unchanged = new_offset == self.committed_where
        self.committed_where = new_offset
        return is_unchanged

    # Shrinking

    def truncate(self, offset: int, now: int = 0) -> None:
        """Cut at ``offset``: destroy files behind it, and set the positions of the file that holds it
        (docs/formats/files.md#sequences).

        Bytes behind ``offset`` are not cleared. If ``offset`` is a file's end, that file stays full.
        """
        destroyed = []
        for file in self.files:
            if file.start_offset + self.file_size > offset:
                if offset >= file.start_offset:
                    file.set_positions(offset % self.file_size)
                else:
                    file.destroy(DESTROY_INTERVAL_MS, now)
                    destroyed.append(file)
        self.remove(destroyed)

    def remove(self, files: Iterable[MappedFile]) -> None:
        """Remove ``files`` from the list; the caller disposes of the files themselves."""
        removed_ids = set(map(id, files))
        if removed_ids:
            with self._lock:
                self.files = [file for file in self.files if id(file) not in removed_ids]

    def delete_oldest(
        self,
        is_due: Callable[[MappedFile], bool],
        *,
        force_after_ms: int,
        now: int,
        max_count: int = 1 << 31,
        pause: Callable[[], None] | None = None,
    ) -> list[MappedFile]:
        """Destroy files from the first on while ``is_due``, never the last one; returns the deleted files.

        Stops at the first file that is not due or that is still held (forced ``force_after_ms`` after the first
        attempt). ``pause`` runs between two deletions.
        """
        deleted: list[MappedFile] = []
        for file in self.files[:-1]:
            if len(deleted) >= max_count or not is_due(file):
                break
            if deleted and pause is not None:
                pause()
            if not file.destroy(force_after_ms, now):
                break
            deleted.append(file)
        self.remove(deleted)
        return deleted

    def retry_hanged(self, force_after_ms: int, now: int) -> bool:
        """Try again to destroy the first file if it was shut down while in use; returns True if it is gone now."""
        first_file = self.first
        if first_file is None or first_file.available or not first_file.destroy(force_after_ms, now):
            return False
        self.remove([first_file])
        return True

    def modified(self, file: MappedFile) -> int:
        """Return the time of the last write of ``file`` (ms), for cleaning by age."""
        return self._disk.modified(Path(file.path))

    def advise(self, advice: int) -> None:
        """Give the system ``madvise`` advice about how the mapped files will be read."""
        for file in self.files:
            view = file.map_at_hand()
            if view is not None:
                advise(view, advice, file.path)

    def shutdown(self, interval_ms: int, now: int) -> None:
        """Stop lending bytes of the files."""
        for file in self.files:
            file.shutdown(interval_ms, now)

    def close(self) -> None:
        """Release descriptors, maps and pool buffers."""
        for file in self.files:
            file.close()

    def destroy(self, now: int = 0) -> None:
        """Delete every file, and the folders if they are empty then."""
        for file in self.files:
            file.destroy(DESTROY_INTERVAL_MS, now)
        self.files = []
        self.flushed_where = self.committed_where = 0
        for folder in self._folders:
            self._disk.remove_folder(folder)


def _start_of(file: MappedFile) -> int:
    return file.start_offset
