"""A file of the real disk, and the limited number of descriptors that all files share.

Forty thousand queue files are written in turns, so descriptors are opened and closed. A write-back error must not
get lost with a descriptor: a file keeps the CRC of the bytes written since its last flush, and if its descriptor was
closed meanwhile, the flush reads the bytes back and compares. The kernel reports an error to the next descriptor.
Only if it has dropped the complete file would the error be lost; then the bytes on disk are the old ones, and the
CRC shows that. A flush that failed once fails forever: nobody knows which pages the kernel has dropped.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from engine import system
from engine.mapped.reading import data_extents
from engine.sentences import sentence

_POPULATE_READ, _POPULATE_WRITE = 22, 23  # Linux's MADV_POPULATE_…; Python has no name for them
MAX_OPEN_FILES = 256
"""Maximum number of open descriptors; a file in use is never closed."""
MAX_MAPS = 128
"""Maximum number of maps; a lent one lives until it is returned."""
_LARGE_WRITE_BYTES = 1 << 16
"""Size of a write from which its CRC costs too much, in bytes: such a file is flushed before its descriptor is
closed.
"""


class OpenFiles:
    """The descriptors and maps of one disk; the least recently used are closed first. Thread-safe."""

    def __init__(self, limit: int = MAX_OPEN_FILES, maps: int = MAX_MAPS) -> None:
        self.lock = threading.Lock()
        self._call_ended = threading.Condition(self.lock)
        self._name_changes = 0  # number of running calls that create, rename or remove
        self.is_shut = False
        self._limit = limit
        self._maps = maps
        self._open: OrderedDict[RealFile, None] = OrderedDict()
        self._mapped: OrderedDict[RealFile, None] = OrderedDict()

    @property
    def count(self) -> int:
        """The number of open descriptors (maps have one of their own each)."""
        return len(self._open)

    def acquire(self, file: RealFile) -> int:
        """Return a descriptor of ``file`` that stays open until :meth:`release`; the lock must be held."""
        descriptor = file.descriptor
        if descriptor < 0:
            self.refuse_if_shut(file.path)
            if len(self._open) >= self._limit:
                self._close_oldest()
            descriptor = file.descriptor = os.open(file.path, os.O_RDWR | system.OPEN_FLAGS)
            self._open[file] = None
        else:
            self._open.move_to_end(file)
        file.users += 1
        return descriptor

    def note_map(self, file: RealFile) -> None:
        """Record that ``file`` was mapped, and drop the oldest maps beyond the limit; the lock must be held."""
        self._mapped[file] = None
        while len(self._mapped) > self._maps:
            oldest, _ = self._mapped.popitem(last=False)
            oldest.map = None

    def forget(self, file: RealFile) -> None:
        """Close the descriptor and the map of ``file``; the lock must be held."""
        file.map = None
        self._mapped.pop(file, None)
        if file.descriptor >= 0 and not file.users:
            self._open.pop(file, None)
            os.close(file.descriptor)
            file.descriptor = -1

    def refuse_if_shut(self, path: str) -> None:
        """Raise ``OSError`` (EBADF) after :meth:`shut`; the lock must be held."""
        if self.is_shut:
            raise OSError(errno.EBADF, sentence("the store is closed"), path)

    @contextmanager
    def at_work(self, path: str) -> Iterator[None]:
        """Let :meth:`shut` wait while something is created, renamed or removed. Raises ``OSError`` after it."""
        with self.lock:
            self.refuse_if_shut(path)
            self._name_changes += 1
        try:
            yield
        finally:
            with self.lock:
                self._name_changes -= 1
                self.notify_shut()

    def notify_shut(self) -> None:
        """Wake :meth:`shut` after a call; the lock must be held."""
        self._call_ended.notify_all()

    def shut(self) -> None:
        """Wait for running calls, then :meth:`close`; nothing is opened, created or removed any more."""
        with self.lock:
            self.is_shut = True
            self._call_ended.wait_for(self._is_idle)
        self.close()

    def close(self) -> None:
        """Close every descriptor and drop every map. Bytes that were not flushed are in the kernel."""
        with self.lock:
            for file in list(self._mapped):
                file.map = None
            self._mapped.clear()
            for file in list(self._open):
                self.forget(file)

    def _is_idle(self) -> bool:
        return not self._name_changes and not any(file.users for file in self._open)

    def _close_oldest(self) -> None:
        for file in self._open:
            if file.users == 0:
                del self._open[file]
                file.before_close()
                os.close(file.descriptor)
                file.descriptor = -1
                return


class Unflushed:
    """A span of a file written since the last flush; ``crc`` is None if the writes were not consecutive."""

    __slots__ = ("crc", "start", "stop")

    def __init__(self, start: int, data: bytes | memoryview) -> None:
        self.start = start
        self.stop = start + len(data)
        self.crc: int | None = zlib.crc32(data) if len(data) <= _LARGE_WRITE_BYTES else None

    def add(self, position: int, data: bytes | memoryview) -> None:
        """Add a write at ``position``."""
        if position == self.stop and self.crc is not None and len(data) <= _LARGE_WRITE_BYTES:
            self.crc = zlib.crc32(data, self.crc)
            self.stop += len(data)
            return
        self.crc = None
        self.start = min(self.start, position)
        self.stop = max(self.stop, position + len(data))


class RealFile:
    """A file of fixed length (see :class:`engine.mapped.disk.DiskFile`)."""

    __slots__ = (
        "_failure",
        "_files",
        "_has_views",
        "_new_folders",
        "_unflushed",
        "_unwatched",
        "_writing",
        "descriptor",
        "map",
        "path",
        "size",
        "users",
    )

    def __init__(self, path: str, size: int, files: OpenFiles, new_folders: tuple[str, ...] = ()) -> None:
        self.path = path
        self.size = size
        self.descriptor = -1
        self.users = 0
        self.map: memoryview | None = None
        self._files = files
        self._new_folders = new_folders  # folders that do not hold the new name durably yet, the innermost first
        self._unflushed: Unflushed | None = None
        self._unwatched = False  # its descriptor was closed before a flush: the flush must compare the bytes
        self._writing = 0  # number of running writes
        self._has_views = False  # was mapped, and another thread may still write there
        self._failure: OSError | None = None

    @property
    def view(self) -> memoryview:
        """The complete file, writable; mapped at the first access. Raises ``OSError``."""
        view = self.map
        return self._map() if view is None else view

    @property
    def is_mapped(self) -> bool:
        return self.map is not None

    def read(self, position: int, size: int) -> bytes:
        """Return bytes from ``position`` on, fewer only if the file itself has been cut. Raises ``OSError``."""
        size = min(size, self.size - position)
        if size <= 0 or position < 0:
            return b""
        descriptor = self._acquire()
        try:
            data = system.pread(descriptor, size, position)
            while 0 < len(data) < size:
                further_data = system.pread(descriptor, size - len(data), position + len(data))
                if not further_data:
                    break
                data += further_data
            return data
        except OSError as error:
            raise self._with_path(error) from None
        finally:
            self._release()

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` as far as the file goes; returns the number of bytes. Raises ``OSError``."""
        descriptor = self._acquire()
        try:
            done = 0
            while done < len(view):
                count = system.read_into(descriptor, view[done:], position + done)
                if not count:
                    break
                done += count
            return done
        except OSError as error:
            raise self._with_path(error) from None
        finally:
            self._release()

    def lend(self, position: int, size: int) -> memoryview | None:
        """Return these bytes of :attr:`view`, loaded into memory with one call.

        A page that the disk cannot deliver would kill the process when it is touched. Returns None for such
        bytes, and on a kernel before 5.14: then read them.
        """
        view = self.view
        start = position // mmap.PAGESIZE * mmap.PAGESIZE
        stop = min(position + size, self.size)
        if not 0 <= position < stop:
            return None
        first_byte = ctypes.c_char.from_buffer(view, start)  # keeps the map alive
        failed = _advise()(ctypes.addressof(first_byte), stop - start, _POPULATE_READ)
        return None if failed else view[position:stop]

    def extents(self, position: int = 0) -> list[tuple[int, int]]:
        """Return spans (start, stop) from ``position`` on that hold data; one if the file system does not say."""
        descriptor = self._acquire()
        try:
            return data_extents(descriptor, position, self.size)
        finally:
            self._release()

    def overwrite(self, position: int, data: bytes | memoryview) -> None:
        """Write like :meth:`write`, within the file; the caller changes nothing but this span."""
        RealFile.write(self, position, data)

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Write all of ``data`` at ``position``; the map shows it too. Raises ``OSError``."""
        files = self._files
        with files.lock:
            descriptor = files.acquire(self)
            self._note_write(position, data)
            self._writing += 1
        is_complete = False
        try:
            written = system.pwrite(descriptor, data, position)
            while written < len(data):
                written += system.pwrite(descriptor, memoryview(data)[written:], position + written)
            is_complete = True
        except OSError as error:
            raise self._with_path(error) from None
        finally:
            with files.lock:
                self.users -= 1
                self._writing -= 1
                if files.is_shut:
                    files.notify_shut()
                if not is_complete and self._unflushed is not None:
                    self._unflushed.crc = None

    def reserve(self, start: int, stop: int, *, touch: bool = False) -> None:
        """Allocate disk blocks for [start, stop), so that writing there through the map cannot fail for lack of
        room.

        Raises ``OSError`` (ENOSPC) if there are none. Does nothing on a file system that does not support it.
        """
        descriptor = self._acquire()
        try:
            free_bytes = system.disk_space(self.path)[2]
            if free_bytes < stop - start:  # a failed attempt would use up the remaining room
                text = sentence(
                    "No space left on device: {size:,} bytes needed, {free:,} free", size=stop - start, free=free_bytes
                )
                raise OSError(errno.ENOSPC, text)
            if system.allocate(descriptor, start, stop - start) and touch and self.map is not None:
                self._touch(start, stop)
        except OSError as error:
            raise self._with_path(error) from None
        finally:
            self._release()

    def flush(self, start: int, stop: int) -> None:  # noqa: ARG002 (the complete file is flushed, which costs the same)
        """Make bytes [start, stop), and the file's name, durable. Raises ``OSError``, then at every later call."""
        files = self._files
        with files.lock:
            if self._failure is not None:
                raise OSError(self._failure.errno, self._failure.strerror, self.path)
            descriptor = files.acquire(self)
            written, unwatched = self._unflushed, self._unwatched
            if self._writing:  # bytes under way cannot be compared: the next flush does it
                written = None
            else:
                self._unflushed = None
                self._unwatched = False
        try:
            system.sync_data(descriptor)
            if unwatched and written is not None and not _is_on_disk(descriptor, written):
                self._raise_unless_overwritten(written)
            while self._new_folders:
                system.sync_folder(self._new_folders[0])
                self._new_folders = self._new_folders[1:]
        except OSError as error:
            self._failure = self._with_path(error)
            raise self._with_path(error) from None
        finally:
            self._release()

    def close(self) -> None:
        """Release descriptor and map; the file opens again when it is used. A lent view stays valid."""
        files = self._files
        with files.lock:
            if self.descriptor >= 0 and not self.users:
                self.before_close()
            files.forget(self)

    def delete(self) -> None:
        """Close the file and remove it from its folder; a missing file is no error. Raises ``OSError``."""
        with self._files.at_work(self.path):
            with self._files.lock:
                self._unflushed = None
                self._files.forget(self)
            Path(self.path).unlink(missing_ok=True)

    def before_close(self) -> None:
        """Make sure that no write error gets lost with the descriptor."""
        if self._unflushed is None:
            return
        if self._unflushed.crc is not None:
            self._unwatched = True
            return
        try:
            system.sync_data(self.descriptor)
            self._unflushed = None
        except OSError as error:
            self._failure = self._with_path(error)

    def _acquire(self) -> int:
        files = self._files
        with files.lock:
            return files.acquire(self)

    def _release(self) -> None:
        with self._files.lock:
            self.users -= 1
            if self._files.is_shut:
                self._files.notify_shut()

    def _note_write(self, position: int, data: bytes | memoryview) -> None:
        if self._unflushed is None:
            self._unflushed = Unflushed(position, data)
        else:
            self._unflushed.add(position, data)
        if self._has_views:  # bytes are also written through the map
            self._unflushed.crc = None

    def _raise_unless_overwritten(self, written: Unflushed) -> None:
        """Raise because written bytes are not on the disk, unless newer bytes were written there."""
        with self._files.lock:
            newer = self._unflushed
            if newer is None or newer.start >= written.stop or newer.stop <= written.start:
                raise OSError(
                    errno.EIO,
                    sentence(
                        "bytes {start:,} to {stop:,} were not written back", start=written.start, stop=written.stop
                    ),
                )

    def _map(self) -> memoryview:
        files = self._files
        with files.lock:
            if self.map is None:
                descriptor = files.acquire(self)
                try:
                    self.map = memoryview(mmap.mmap(descriptor, self.size))
                except OSError as error:
                    raise self._with_path(error) from None
                finally:
                    self.users -= 1
                files.note_map(self)
                self._has_views = True
                if self._unflushed is not None:
                    self._unflushed.crc = None
            return self.map

    def _touch(self, start: int, stop: int) -> None:
        """Load all pages with one call, at half the cost of single faults; does nothing on a kernel before 5.14."""
        view = self.map
        if view is not None:
            first_byte = ctypes.c_char.from_buffer(view, start)  # keeps the map alive
            _advise()(ctypes.addressof(first_byte), stop - start, _POPULATE_WRITE)

    def _with_path(self, error: OSError) -> OSError:
        """Return the same error with the file's path in it."""
        return error if error.filename else OSError(error.errno, error.strerror, self.path)


@functools.cache
def _advise() -> Callable[[int, int, int], int]:
    """Return a ``madvise`` that lets other threads run meanwhile, unlike Python's own; it returns 0 on success."""
    try:
        madvise = system.c_library().madvise
    except (OSError, AttributeError):
        return lambda _address, _size, _advice: -1
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return cast("Callable[[int, int, int], int]", madvise)


def make_file(path: Path, size: int) -> None:
    """Create a file of ``size`` zeros; an existing file stays. Raises ``OSError``.

    If the system supports it, the file gets its name last: nobody can see a shorter file under that name, not
    even after a power loss.
    """
    try:
        system.link_nameless_file(path, size)
    except FileExistsError:
        return
    except OSError:  # not supported here
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS, 0o644)
        try:
            os.ftruncate(descriptor, size)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror, str(path)) from None
        finally:
            os.close(descriptor)


def _is_on_disk(descriptor: int, written: Unflushed) -> bool:
    """Return True if the file still has the written bytes, by their CRC."""
    if written.crc is None:
        return True
    crc = 0
    position = written.start
    while position < written.stop:
        piece = system.pread(descriptor, min(1 << 20, written.stop - position), position)
        if not piece:
            break
        crc = zlib.crc32(piece, crc)
        position += len(piece)
    return position == written.stop and crc == written.crc
