"""The only way in which the read-only side opens, lists and reads files of a store.

Everything that cannot be read is recorded in the :class:`Reading` before :class:`CannotRead` is raised, so code
that catches the error cannot lose the fact: nothing may be concluded from bytes that were not read. A file that
never existed is simply absent. The system's calls are behind :class:`ReadingDisk`, so that a test can let any of
them fail.

"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from engine import system
from engine.errors import CannotRead, CorruptUnit, Undecoded
from engine.sentences import plural, sentence


def data_extents(descriptor: int, position: int, size: int) -> list[tuple[int, int]]:
    """Return spans (start, stop) from ``position`` to ``size`` that hold data, as the file system reports them; one
    span to the end if it does not.
    """
    extents: list[tuple[int, int]] = []
    try:
        while position < size:
            start = system.next_data(descriptor, position)
            position = min(system.next_hole(descriptor, start), size)
            extents.append((start, position))
    except OSError as error:
        if error.errno != errno.ENXIO:  # ENXIO means: only a hole to the end
            extents.append((position, size))
    return extents


Action = Literal["open", "list", "look", "read", "ask", "decode", "absent"]
Result = TypeVar("Result")
FAR = (1 << 63) - 1
"""A position behind the end of every file."""
Identity = tuple[int, int]
"""(device, inode): identifies a file, whatever its name and length are."""
MAX_RECORDED = 10_000
"""Maximum number of recorded failures: more are of no use, and a dying disk has millions."""
ABSENT = (errno.ENOENT, errno.ENOTDIR)
REPLACED = sentence("another file has taken its name since it was listed")


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a store that exists and could not be read.

    ``action`` is the call that failed; ``decode`` stands for a part that is recognised and not decoded, ``absent`` for
    one that must be elsewhere.

    """

    file: str
    error: str
    action: Action

    @property
    def words(self) -> str:
        """File and reason in one line."""
        return self.words_of(self.file)

    def words_of(self, file: str) -> str:
        """The reason in one line with another name of the file, a shorter one."""
        return sentence("{file}: {what}", file=file, what=self.reason)

    @property
    def reason(self) -> str:
        """The failed action and its error."""
        if self.action in {"decode", "absent"}:
            return self.error
        error = sentence(self.error)
        if self.action == "list":
            return sentence("cannot be listed: {error}", error=error)
        if self.action == "look":
            return sentence("cannot be looked at: {error}", error=error)
        return sentence("cannot be read: {error}", error=error)

    def record(self) -> dict[str, str]:
        """Return the JSON record, with the names of the contract."""
        return {"type": "unreadable", "file": self.file, "error": self.error, "action": self.action}


class ReadingDisk(Protocol):
    """The system's calls that reading needs. All may raise ``OSError``."""

    def open(self, path: str) -> int:
        """Return a descriptor with read rights only."""

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """List a folder, in no order."""

    def status(self, path: str, follow: bool) -> os.stat_result:
        """Return the system's information about ``path``; without ``follow`` that of a link itself."""

    def entry_status(self, entry: os.DirEntry[str], follow: bool) -> os.stat_result:
        """Return the same for an entry that was listed."""

    def descriptor_status(self, descriptor: int) -> os.stat_result:
        """Return the same for an open file."""

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        """Return at most ``size`` bytes from ``position`` on."""

    def read_into(self, descriptor: int, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` on, or a part of it; returns the number of bytes."""

    def read_by_path(self, path: str, descriptor: int, size: int, position: int) -> bytes:
        """Return the same as :meth:`read`; ``path`` is the one with which the descriptor was opened."""

    def extents(self, descriptor: int, position: int, size: int) -> list[tuple[int, int]]:
        """Return spans (start, stop) from ``position`` to ``size`` that hold data."""

    def next_data(self, descriptor: int, position: int, size: int) -> int:
        """Return the first position from ``position`` on that holds data; −1 if there is none before ``size``."""

    def is_plain(self, path: str) -> bool:
        """Return True if the system's calls with a descriptor of ``path`` return what this disk returns."""

    def plain_end(self, path: str, position: int) -> int:
        """Return the end of the bytes from ``position`` on that the system's calls with a descriptor of ``path`` return
        as this disk does: ``position`` if that byte differs, −1 if that is true of no byte of the file.
        """


class SystemDisk:
    """The operating system's calls."""

    def open(self, path: str) -> int:
        """Implement :meth:`ReadingDisk.open`; the file's access time is not changed if that is allowed."""
        flags = os.O_RDONLY | system.OPEN_FLAGS | system.NO_WAIT
        try:
            return os.open(path, flags | system.NO_ACCESS_TIME)
        except PermissionError:
            return os.open(path, flags)

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        with os.scandir(folder) as entries:
            return list(entries)

    def status(self, path: str, follow: bool) -> os.stat_result:
        return os.stat(path, follow_symlinks=follow)  # noqa: PTH116 (a check asks for hundreds: a Path takes as long)

    def entry_status(self, entry: os.DirEntry[str], follow: bool) -> os.stat_result:
        return entry.stat(follow_symlinks=follow)

    def descriptor_status(self, descriptor: int) -> os.stat_result:
        return os.fstat(descriptor)

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        return system.pread(descriptor, size, position)

    def read_into(self, descriptor: int, view: memoryview, position: int) -> int:
        return system.read_into(descriptor, view, position)

    def read_by_path(self, path: str, descriptor: int, size: int, position: int) -> bytes:  # noqa: ARG002
        return self.read(descriptor, size, position)

    def extents(self, descriptor: int, position: int, size: int) -> list[tuple[int, int]]:
        return data_extents(descriptor, position, size)

    def next_data(self, descriptor: int, position: int, size: int) -> int:
        try:
            start = system.next_data(descriptor, position)
        except OSError as error:
            return -1 if error.errno == errno.ENXIO else position
        return start if start < size else -1

    def is_plain(self, path: str) -> bool:  # noqa: ARG002
        return system.HAS_POSITIONED_READS and type(self) is SystemDisk  # a derived disk may return other bytes

    def plain_end(self, path: str, position: int) -> int:  # noqa: ARG002
        return FAR if self.is_plain(path) else -1


Gathered = dict[Unread, None]
_SYSTEM = SystemDisk()
_disk: ContextVar[ReadingDisk] = ContextVar("reading_disk", default=_SYSTEM)
_gathering: ContextVar[tuple[Gathered, ...]] = ContextVar("gathering_unread", default=())


@contextlib.contextmanager
def gather_unread() -> Iterator[Gathered]:
    """Collect everything that a :class:`Reading` created inside the block cannot read, in order, including later
    failures.
    """
    gathered: Gathered = {}
    token = _gathering.set((*_gathering.get(), gathered))
    try:
        yield gathered
    finally:
        _gathering.reset(token)


@contextlib.contextmanager
def read_through(disk: ReadingDisk) -> Iterator[None]:
    """Let every :class:`Reading` that is created inside the block use ``disk``."""
    token = _disk.set(disk)
    try:
        yield
    finally:
        _disk.reset(token)


class Reading:
    """Reads files of a store and records the failures in :attr:`unread`. Safe to use from several threads.

    With ``alone`` the failures are recorded only here, not by :func:`gather_unread`.

    """

    def __init__(self, *, alone: bool = False) -> None:
        self._disk = _disk.get()
        self._sinks = () if alone else _gathering.get()
        self._recorded: Gathered = {}
        self._lock = threading.Lock()

    def with_own_records(self) -> Reading:
        """Return a reading of the same disk whose failures are recorded nowhere else."""
        with read_through(self._disk):
            return Reading(alone=True)

    def is_plain(self, path: str) -> bool:
        """Return True if compiled code may read a descriptor of ``path`` by itself."""
        return self._disk.is_plain(path)

    def plain_end(self, path: str, position: int) -> int:
        """Return the end of the bytes from ``position`` on that compiled code may read by itself: see
        :meth:`ReadingDisk.plain_end`.
        """
        return self._disk.plain_end(path, position)

    def extents(self, descriptor: int, position: int, size: int) -> list[tuple[int, int]]:
        """Return spans (start, stop) from ``position`` to ``size`` that hold data, as far as the file system says."""
        return self._disk.extents(descriptor, position, size)

    def next_data(self, descriptor: int, position: int, size: int) -> int:
        """Return the first position from ``position`` on that holds data, as far as the system knows; −1 if there is
        none before ``size``.
        """
        return self._disk.next_data(descriptor, position, size)

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Everything that could not be read since :meth:`forget`, in order."""
        with self._lock:
            return tuple(item for item in self._recorded if item.action != "decode")

    @property
    def undecoded(self) -> tuple[Unread, ...]:
        """Parts that are not decoded and were needed since :meth:`forget`."""
        with self._lock:
            return tuple(item for item in self._recorded if item.action == "decode")

    def forget(self) -> None:
        """Clear the records before the store is read again: remaining failures are recorded again."""
        with self._lock:
            self._recorded.clear()

    def drop_unread(self, unread: Iterable[Unread]) -> None:
        """Remove these items from the records, also from those of :func:`gather_unread`."""
        with self._lock:
            for collection in (self._recorded, *self._sinks):
                for item in unread:
                    collection.pop(item, None)

    def has_vanished(self, item: Unread) -> bool:
        """Return True if the unreadable file no longer exists, or another file has its name."""
        if item.action in ("read", "decode", "absent"):
            return False
        if item.error == REPLACED:
            return True
        try:
            self._disk.status(item.file, False)
        except OSError as error:
            return error.errno in ABSENT
        return False

    def note(self, file: str | Path, error: OSError | str, action: Action) -> CannotRead:
        """Record that ``file`` could not be read; returns the error to raise."""
        message = error if isinstance(error, str) else _link_to_nothing(file, error) or error.strerror or str(error)
        item = Unread(str(file), message, action)
        with self._lock:
            for collection in (self._recorded, *self._sinks):
                if len(collection) < MAX_RECORDED:
                    collection[item] = None
        return CannotRead(item.reason, file=item.file)

    def note_undecoded(self, folder: str | Path, reason: str) -> Undecoded:
        """Record that a question needs the content of ``folder``, which is not decoded; returns the error to raise."""
        self.note(folder, reason, "decode")
        return Undecoded(reason, file=str(folder))

    def note_absent(self, folder: str | Path, reason: str) -> CannotRead:
        """Record that a part of the store is in a folder that is not read; returns the error to raise."""
        return self.note(folder, reason, "absent")

    def refuse(self, consequence: str) -> None:
        """Raise :class:`CannotRead` with the first file that could not be read, if there is one."""
        unread = self.unread
        if unread:
            error = sentence(unread[0].error)
            if len(unread) > 1:
                error = sentence("{error}, and {n:,} more", error=error, n=len(unread) - 1)
            message = sentence("cannot be read: {error}: {consequence}", error=error, consequence=sentence(consequence))
            raise CannotRead(message, file=unread[0].file)

    # -- the calls

    def entries(self, folder: str | Path, *, listed: bool = False) -> list[os.DirEntry[str]]:
        """List ``folder`` by name; [] if there is no such folder, which is an error for one that was ``listed``.

        Raises :class:`CannotRead`.

        """
        try:
            return sorted(self._disk.entries(str(folder)), key=lambda entry: entry.name)
        except OSError as error:
            if not listed and self._is_absent(folder, error):
                return []
            raise self.note(folder, error, "list") from error

    def status(self, path: str | Path, *, listed: bool = False, follow: bool = True) -> os.stat_result | None:
        """Return the system's information about ``path``, None if nothing is there. Raises :class:`CannotRead`."""
        try:
            return self._disk.status(str(path), follow)
        except OSError as error:
            if not listed and self._is_absent(path, error):
                return None
            raise self.note(path, error, "look") from error

    def entry_status(self, entry: os.DirEntry[str], *, follow: bool = True) -> os.stat_result:
        """Return the same for an entry that was listed.

        Raises :class:`CannotRead`, also for a link to nothing: its target may be on a disk that is not mounted.

        """
        try:
            return self._disk.entry_status(entry, follow)
        except OSError as error:
            raise self.note(entry.path, error, "look") from error

    def is_folder(self, path: str | Path) -> bool:
        """Return True if ``path`` is a folder. Raises :class:`CannotRead`."""
        info = self.status(path)
        return info is not None and stat.S_ISDIR(info.st_mode)

    def exists(self, path: str | Path) -> bool:
        """Return True if something is at ``path``. Raises :class:`CannotRead`."""
        return self.status(path) is not None

    def folders(self, folder: str | Path, *, listed: bool = False) -> list[Path]:
        """Return the folders in ``folder`` by name. Raises :class:`CannotRead`."""
        folder_paths = []
        for entry in self.entries(folder, listed=listed):
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder or (entry.is_symlink() and stat.S_ISDIR(self.entry_status(entry).st_mode)):
                folder_paths.append(Path(entry.path))
        return folder_paths

    def open(
        self, path: str | Path, *, listed: bool = True, identity: Identity | None = None, allow_device: bool = False
    ) -> int:
        """Return a read-only descriptor of a regular file, which the caller must close; −1 if a file that was not
        ``listed`` does not exist. ``allow_device``: a block device may be in the place of the file.

        Raises :class:`CannotRead`, also if another file than ``identity`` has the name, and :class:`CorruptUnit`
        if the path was not listed and is no regular file.

        """
        try:
            return self._opened(str(path), identity, allow_device=allow_device)
        except OSError as error:
            if not listed and self._is_absent(path, error):
                return -1
            raise self.note(path, error, "open") from error
        except CorruptUnit as error:
            if listed:
                raise self.note(path, error.what, "open") from error
            raise

    def _is_absent(self, path: str | Path, error: OSError) -> bool:
        """Return True if nothing has this name. A link to nothing has the name: its target may be on a disk that is
        not mounted.
        """
        if error.errno != errno.ENOENT:
            return error.errno == errno.ENOTDIR  # a file in the place of a folder: nothing is below it
        try:
            self._disk.status(str(path), False)
        except OSError as link_error:
            return link_error.errno in ABSENT
        return False

    def _opened(self, path: str, identity: Identity | None, *, allow_device: bool) -> int:
        descriptor = self._disk.open(path)
        try:
            info = self._disk.descriptor_status(descriptor)
            is_device = allow_device and stat.S_ISBLK(info.st_mode)
            if not stat.S_ISREG(info.st_mode) and not is_device:  # readable, but no regular file
                raise CorruptUnit(
                    sentence("expected a regular file, found {what}", what=_kind_of_mode(info.st_mode)), file=path
                )
            if identity is not None and identity != (info.st_dev, info.st_ino):
                raise OSError(errno.ESTALE, REPLACED, path)
        except (OSError, CorruptUnit):
            os.close(descriptor)
            raise
        return descriptor

    def read(self, path: str, descriptor: int, size: int, position: int, length: int) -> bytes:
        """Return bytes of an open file that had ``length`` bytes when it was listed.

        Returns fewer if the file ends, or has become shorter, which is recorded. Raises :class:`CannotRead`.

        """
        data = self._asked(path, position, partial(self._disk.read_by_path, path, descriptor, size, position))
        if len(data) == size or (position + len(data) == length and length):
            return data
        pieces = [data]
        read_bytes = len(data)
        while data and read_bytes < size:
            next_position = position + read_bytes
            data = self._asked(
                path,
                next_position,
                partial(self._disk.read_by_path, path, descriptor, size - read_bytes, next_position),
            )
            pieces.append(data)
            read_bytes += len(data)
        self._judge_end(path, descriptor, position + read_bytes, min(position + size, length))
        return b"".join(pieces)

    def read_into(self, path: str, descriptor: int, view: memoryview, position: int, length: int) -> int:
        """Fill ``view`` as :meth:`read` reads; returns the number of bytes."""
        read_bytes = 0
        while read_bytes < len(view):
            next_position = position + read_bytes
            count = self._asked(
                path, next_position, partial(self._disk.read_into, descriptor, view[read_bytes:], next_position)
            )
            read_bytes += count
            if count == 0 or (position + read_bytes == length and length):
                break
        if read_bytes < len(view):
            self._judge_end(path, descriptor, position + read_bytes, min(position + len(view), length))
        return read_bytes

    def small(self, path: str | Path, max_bytes: int) -> bytes | None:
        """Return the content of a small file (``max_bytes`` of it), None if there is none. Raises
        :class:`CannotRead`.
        """
        descriptor = self.open(path, listed=False)
        if descriptor < 0:
            return None
        try:
            length = os.fstat(descriptor).st_size
            return self.read(str(path), descriptor, min(length, max_bytes), 0, length) if length else b""
        finally:
            os.close(descriptor)

    def _asked(self, path: str, position: int, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except OSError as error:
            failure = self.note(path, error, "read")
            raise CannotRead(failure.what, file=path, offset=position) from error

    def _judge_end(self, path: str, descriptor: int, end: int, expected: int) -> None:
        """Check that a read that ended at ``end`` is complete: it is from ``expected`` on.

        A file that became shorter is recorded; if it did not, the read failed.

        """
        if end >= expected:
            return
        current_size = os.fstat(descriptor).st_size
        if current_size <= end:
            shorter = plural(
                "the file became shorter: {n:,} byte, {expected:,} expected",
                "the file became shorter: {n:,} bytes, {expected:,} expected",
                n=current_size,
                expected=expected,
            )
            self.note(path, shorter, "read")
            return
        cut = plural(
            "the read was cut short at {end:,}, the file has {n:,} byte",
            "the read was cut short at {end:,}, the file has {n:,} bytes",
            n=current_size,
            end=end,
        )
        failure = self.note(path, cut, "read")
        raise CannotRead(failure.what, file=path, offset=end)


def _kind_of_mode(mode: int) -> str:
    """Name the thing that is there instead of a file."""
    if stat.S_ISDIR(mode):
        return sentence("a folder")
    if stat.S_ISFIFO(mode):
        return sentence("a pipe")
    return sentence("a socket" if stat.S_ISSOCK(mode) else "a device")


def _link_to_nothing(path: str | Path, error: OSError) -> str | None:
    """Words for a link whose target is missing; None if ``path`` is something else."""
    if error.errno != errno.ENOENT:
        return None
    with contextlib.suppress(OSError):
        return sentence(
            "it is a link to {path}, where nothing is: is its disk mounted?", path=str(Path(path).readlink())
        )
    return None
