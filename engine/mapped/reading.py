"""The one door through which a store is read: every open, list, look and read of the side that only looks.

Whatever cannot be read is noted in the door itself before anybody is told, so whoever catches :class:`CannotRead`
cannot make it forgotten: nothing may be concluded from bytes that were not seen. What was never there is simply
absent. The system's calls stand behind :class:`ReadingDisk`, so that a test can let any of them fail.

Which spans of a file hold data, as the file system tells.
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

from engine.errors import CannotRead, CorruptUnit, Undecoded


def data_extents(descriptor: int, position: int, size: int) -> list[tuple[int, int]]:
    """Spans (start, stop) from ``position`` to ``size`` that hold data; one to the end where nobody can tell."""
    found: list[tuple[int, int]] = []
    try:
        while position < size:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
            position = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
            found.append((start, position))
    except OSError as error:
        if error.errno != errno.ENXIO:  # that one says: nothing but a hole to the end
            found.append((position, size))
    return found


Action = Literal["open", "list", "look", "read", "ask", "decode"]
Answer = TypeVar("Answer")
Identity = tuple[int, int]
"""(device, inode): what makes a file the same file, whatever its name and length are."""
MOST_NOTED = 10_000
"""Unread files that are named one by one; there is no use in more, and a disk that dies has millions."""
ABSENT = (errno.ENOENT, errno.ENOTDIR)
ANOTHER = "another file has taken its name since it was listed"


@dataclass(frozen=True, slots=True)
class Unread:
    """Something of a store that is there and could not be read: ``action`` is what was tried; ``decode`` for a part
    that is recognised and not decoded.
    """

    file: str
    error: str
    action: Action

    @property
    def words(self) -> str:
        """In one line."""
        return f"{self.file}: {self.reason}"

    @property
    def reason(self) -> str:
        """What could not be done with the file, and why."""
        if self.action == "decode":
            return self.error
        word = {"list": "cannot be listed", "look": "cannot be looked at"}.get(self.action, "cannot be read")
        return f"{word}: {self.error}"

    def record(self) -> dict[str, str]:
        """As the contract names it."""
        return {"type": "unreadable", "file": self.file, "error": self.error, "action": self.action}


class ReadingDisk(Protocol):
    """The system's calls that reading needs. All may raise ``OSError``."""

    def open(self, path: str) -> int:
        """A descriptor with read rights only."""

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """What is in a folder, in no order."""

    def look(self, path: str, follow: bool) -> os.stat_result:
        """What the system knows of ``path``; of a link itself without ``follow``."""

    def look_at(self, entry: os.DirEntry[str], follow: bool) -> os.stat_result:
        """The same of something that was listed."""

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        """At most ``size`` bytes from ``position`` on."""

    def read_into(self, descriptor: int, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` on, or a part of it; gives the number of bytes."""


class SystemDisk:
    """The operating system's calls."""

    def open(self, path: str) -> int:
        """See :meth:`ReadingDisk.open`; the file's access time is left alone where that is allowed."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            return os.open(path, flags | getattr(os, "O_NOATIME", 0))
        except PermissionError:
            return os.open(path, flags)

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        with os.scandir(folder) as entries:
            return list(entries)

    def look(self, path: str, follow: bool) -> os.stat_result:
        return Path(path).stat(follow_symlinks=follow)

    def look_at(self, entry: os.DirEntry[str], follow: bool) -> os.stat_result:
        return entry.stat(follow_symlinks=follow)

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        return os.pread(descriptor, size, position)

    def read_into(self, descriptor: int, view: memoryview, position: int) -> int:
        return os.preadv(descriptor, [view], position)


Gathered = dict[Unread, None]
_SYSTEM = SystemDisk()
_disk: ContextVar[ReadingDisk] = ContextVar("reading_disk", default=_SYSTEM)
_gathering: ContextVar[tuple[Gathered, ...]] = ContextVar("gathering_unread", default=())


@contextlib.contextmanager
def gather_unread() -> Iterator[Gathered]:
    """What doors that are made inside could not read, in the order in which it was met; also what they meet later."""
    found: Gathered = {}
    token = _gathering.set((*_gathering.get(), found))
    try:
        yield found
    finally:
        _gathering.reset(token)


@contextlib.contextmanager
def read_through(disk: ReadingDisk) -> Iterator[None]:
    """Doors that are made inside read through ``disk``."""
    token = _disk.set(disk)
    try:
        yield
    finally:
        _disk.reset(token)


class Reading:
    """One door with its ledger :attr:`unread`. Safe to use from several threads.

    ``alone``: what it cannot read is nobody else's matter; it is in its own ledger only.
    """

    def __init__(self, *, alone: bool = False) -> None:
        self._disk = _disk.get()
        self._sinks = () if alone else _gathering.get()
        self._noted: Gathered = {}
        self._lock = threading.Lock()

    @property
    def is_system(self) -> bool:
        """Whether the calls go to the operating system itself."""
        return self._disk is _SYSTEM

    @property
    def unread(self) -> tuple[Unread, ...]:
        """What could not be read since :meth:`forget`, in the order in which it was met."""
        with self._lock:
            return tuple(one for one in self._noted if one.action != "decode")

    @property
    def undecoded(self) -> tuple[Unread, ...]:
        """Parts that are not decoded and were asked for since :meth:`forget`."""
        with self._lock:
            return tuple(one for one in self._noted if one.action == "decode")

    def forget(self) -> None:
        """The store is looked at anew: what still cannot be read is noted again when it is asked for."""
        with self._lock:
            self._noted.clear()

    def forgive(self, unread: Iterable[Unread]) -> None:
        """Take these out of the ledger, and out of all that gather what could not be read."""
        with self._lock:
            for noted in (self._noted, *self._sinks):
                for one in unread:
                    noted.pop(one, None)

    def went_away(self, one: Unread) -> bool:
        """Whether what could not be read is not there any more, or another file has its name."""
        if one.action in ("read", "decode"):
            return False
        if one.error == ANOTHER:
            return True
        try:
            self._disk.look(one.file, False)
        except OSError as error:
            return error.errno in ABSENT
        return False

    def note(self, file: str | Path, error: OSError | str, action: Action) -> CannotRead:
        """Write into the ledger that ``file`` could not be read; gives the error to raise."""
        said = error if isinstance(error, str) else error.strerror or str(error)
        found = Unread(str(file), said, action)
        with self._lock:
            for noted in (self._noted, *self._sinks):
                if len(noted) < MOST_NOTED:
                    noted[found] = None
        return CannotRead(found.reason, file=found.file)

    def note_undecoded(self, folder: str | Path, reason: str) -> Undecoded:
        """Write into the ledger that a question needs what ``folder`` holds, which is not decoded; gives the error to
        raise.
        """
        self.note(folder, reason, "decode")
        return Undecoded(reason, file=str(folder))

    def refuse(self, why: str) -> None:
        """Raise :class:`CannotRead` with the first file that could not be read, where there is one."""
        unread = self.unread
        if unread:
            more = f", and {len(unread) - 1:,} more" if len(unread) > 1 else ""
            raise CannotRead(f"cannot be read: {unread[0].error}{more}: {why}", file=unread[0].file)

    # -- the calls

    def entries(self, folder: str | Path, *, listed: bool = False) -> list[os.DirEntry[str]]:
        """What is in ``folder`` by name; [] where there is no such folder, which for one that was ``listed`` is an
        error, too. Raises :class:`CannotRead`.
        """
        try:
            return sorted(self._disk.entries(str(folder)), key=lambda entry: entry.name)
        except OSError as error:
            if not listed and self._is_absent(folder, error):
                return []
            raise self.note(folder, error, "list") from error

    def look(self, path: str | Path, *, listed: bool = False, follow: bool = True) -> os.stat_result | None:
        """What the system knows of ``path``, None where nothing is there. Raises :class:`CannotRead`."""
        try:
            return self._disk.look(str(path), follow)
        except OSError as error:
            if not listed and self._is_absent(path, error):
                return None
            raise self.note(path, error, "look") from error

    def look_at(self, entry: os.DirEntry[str], *, follow: bool = True) -> os.stat_result:
        """The same of something that was listed. Raises :class:`CannotRead`, also for a link to nothing: what it names
        may be on a disk that is not mounted.
        """
        try:
            return self._disk.look_at(entry, follow)
        except OSError as error:
            raise self.note(entry.path, error, "look") from error

    def is_folder(self, path: str | Path) -> bool:
        """Whether ``path`` is a folder. Raises :class:`CannotRead`."""
        found = self.look(path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def exists(self, path: str | Path) -> bool:
        """Whether something is at ``path``. Raises :class:`CannotRead`."""
        return self.look(path) is not None

    def folders(self, folder: str | Path, *, listed: bool = False) -> list[Path]:
        """The folders in ``folder`` by name. Raises :class:`CannotRead`."""
        found = []
        for entry in self.entries(folder, listed=listed):
            plain = entry.is_dir(follow_symlinks=False)
            if plain or (entry.is_symlink() and stat.S_ISDIR(self.look_at(entry).st_mode)):
                found.append(Path(entry.path))
        return found

    def open(self, path: str | Path, *, listed: bool = True, identity: Identity | None = None) -> int:
        """A descriptor of a regular file with read rights only, to be closed by the caller; −1 where a file that was
        not ``listed`` is not there. Raises :class:`CannotRead`, also where another file than ``identity`` has the name,
        and :class:`CorruptUnit` for what was not listed and is no regular file.
        """
        try:
            return self._opened(str(path), identity)
        except OSError as error:
            if not listed and self._is_absent(path, error):
                return -1
            raise self.note(path, error, "open") from error
        except CorruptUnit as error:
            if listed:
                raise self.note(path, error.what, "open") from error
            raise

    def _is_absent(self, path: str | Path, error: OSError) -> bool:
        """Nothing has this name; a link to nothing has it, and what it names may be on a disk that is not mounted."""
        if error.errno != errno.ENOENT:
            return error.errno == errno.ENOTDIR  # a file where a folder belongs: nothing is below it
        try:
            self._disk.look(str(path), False)
        except OSError as other:
            return other.errno in ABSENT
        return False

    def _opened(self, path: str, identity: Identity | None) -> int:
        descriptor = self._disk.open(path)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):  # it was read, and is none
                raise CorruptUnit(f"expected a regular file, found {_kind(found.st_mode)}", file=path)
            if identity is not None and identity != (found.st_dev, found.st_ino):
                raise OSError(errno.ESTALE, ANOTHER, path)
        except (OSError, CorruptUnit):
            os.close(descriptor)
            raise
        return descriptor

    def read(self, path: str, descriptor: int, size: int, position: int, length: int) -> bytes:
        """Bytes of an open file that had ``length`` bytes when it was listed; fewer than asked for where it ends, or
        has become shorter, which is noted. Raises :class:`CannotRead`.
        """
        data = self._asked(path, position, partial(self._disk.read, descriptor, size, position))
        if len(data) == size or (position + len(data) == length and length):
            return data
        pieces = [data]
        done = len(data)
        while data and done < size:
            at = position + done
            data = self._asked(path, at, partial(self._disk.read, descriptor, size - done, at))
            pieces.append(data)
            done += len(data)
        self._judge_end(path, descriptor, position + done, min(position + size, length))
        return b"".join(pieces)

    def read_into(self, path: str, descriptor: int, view: memoryview, position: int, length: int) -> int:
        """Fill ``view`` as :meth:`read` reads; gives the number of bytes."""
        done = 0
        while done < len(view):
            at = position + done
            n = self._asked(path, at, partial(self._disk.read_into, descriptor, view[done:], at))
            done += n
            if n == 0 or (position + done == length and length):
                break
        if done < len(view):
            self._judge_end(path, descriptor, position + done, min(position + len(view), length))
        return done

    def small(self, path: str | Path, most: int) -> bytes | None:
        """All of a small file (``most`` bytes of it), None where there is none. Raises :class:`CannotRead`."""
        descriptor = self.open(path, listed=False)
        if descriptor < 0:
            return None
        try:
            length = os.fstat(descriptor).st_size
            return self.read(str(path), descriptor, min(length, most), 0, length) if length else b""
        finally:
            os.close(descriptor)

    def _asked(self, path: str, position: int, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except OSError as error:
            found = self.note(path, error, "read")
            raise CannotRead(found.what, file=path, offset=position) from error

    def _judge_end(self, path: str, descriptor: int, end: int, expected: int) -> None:
        """Reading ended at ``end``: fine from ``expected`` on; a file that became shorter is noted, one that did not
        has not been read.
        """
        if end >= expected:
            return
        now = os.fstat(descriptor).st_size
        if now <= end:
            self.note(path, f"the file became shorter: {now:,} bytes, {expected:,} expected", "read")
            return
        found = self.note(path, f"the read was cut short at {end:,}, the file has {now:,} bytes", "read")
        raise CannotRead(found.what, file=path, offset=end)


def _kind(mode: int) -> str:
    """What stands there instead of a file."""
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
