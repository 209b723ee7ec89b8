"""The disk as a small protocol, so that a test can cut the power between any two calls.

:class:`RealDisk` is the operating system's. ``tests/support/simulated_disk.py`` replaces it in tests of power loss.
Everything that the engine writes goes through here.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from engine import system
from engine.files.atomic_file import errors_of
from engine.mapped.real_file import MAX_OPEN_FILES, OpenFiles, RealFile, make_file
from engine.mapped.store_lock import StoreLock
from engine.sentences import sentence


class DiskFile(Protocol):
    """A file of fixed length ``size`` (bytes), read and written in place. All calls may raise ``OSError``."""

    path: str
    size: int

    @property
    def view(self) -> memoryview:
        """The complete file, writable; mapped at the first access."""

    @property
    def is_mapped(self) -> bool:
        """True if :attr:`view` has been used and the map still exists."""

    def read(self, position: int, size: int) -> bytes:
        """Return bytes from ``position`` on, never beyond the file's end."""

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` as far as the file goes; returns the number of bytes read."""

    def lend(self, position: int, size: int) -> memoryview | None:
        """Return these bytes of :attr:`view`, in memory; None if not all could be loaded: read them to get the
        error.
        """

    def extents(self, position: int = 0) -> list[tuple[int, int]]:
        """Return spans (start, stop) from ``position`` on for which the file system holds data; between them are
        zeros.
        """

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Write all of ``data`` at ``position``; :attr:`view` shows it too."""

    def overwrite(self, position: int, data: bytes | memoryview) -> None:
        """Write like :meth:`write`, within the file; the caller changes nothing but this span."""

    def reserve(self, start: int, stop: int, *, touch: bool = False) -> None:
        """Allocate disk blocks for [start, stop): writing there through :attr:`view` cannot fail for lack of room
        then.

        With ``touch`` the pages of the map are loaded too, so that writing does not stop at each of them.

        """

    def flush(self, start: int, stop: int) -> None:
        """Make bytes [start, stop) and the file's name survive a power loss. After one failure it fails forever."""

    def close(self) -> None:
        """Release descriptor and map; the file opens again when it is used."""

    def delete(self) -> None:
        """Close the file and remove it; a missing file is no error."""


class DiskLock(Protocol):
    """A lock on a store that is held."""

    def release(self) -> None:
        """Release the store for others; a second call does nothing."""


class Disk(Protocol):
    """Files and folders as the engine needs them. Paths are absolute; all calls may raise ``OSError``.

    A file or folder is absent only if the system says that it does not exist. One that exists but cannot be listed
    or read raises.

    """

    def open(self, path: Path, size: int) -> DiskFile:
        """Open the file at ``path``; create it and its parents if missing, and extend it to ``size`` with zeros."""

    def names(self, folder: Path) -> list[tuple[str, int]]:
        """Return names and lengths of the files in ``folder`` in the order of names; [] if there is no folder."""

    def entries(self, folder: Path) -> list[tuple[str, int, bool]]:
        """Return name, length (0 for a folder) and whether it is a folder, for everything in ``folder`` in the order
        of names; [] if there is no folder.
        """

    def folders(self, path: Path) -> list[str]:
        """Return names of the folders in ``path`` in their order; [] if it does not exist."""

    def read_file(self, path: Path) -> bytes | None:
        """Return the content of a small file, None if there is none."""

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        """Truncate the file and write it (creating parents); with ``sync`` bytes and name survive a power loss."""

    def replace(self, source: Path, target: Path) -> None:
        """Rename ``source`` over ``target`` atomically; parents of ``target`` are created."""

    def move_folder(self, source: Path, target: Path) -> None:
        """Rename a folder with its content atomically (parents of ``target`` are created; ``target`` must not
        exist).
        """

    def delete(self, path: Path) -> None:
        """Remove a file; a missing file is no error."""

    def remove_folder(self, path: Path) -> bool:
        """Remove a folder if it is empty; returns True if it is gone."""

    def exists(self, path: Path) -> bool:
        """Return True if there is a file or folder at ``path``."""

    def linked_file(self, folder: Path) -> Path | None:
        """Return the first file below ``folder`` with a second name (a hard link), because a write changes both; None
        if there is none, and on a disk that makes such links itself.
        """

    def modified(self, path: Path) -> int:
        """Return the time of a file's last write, in ms since 1970."""

    def set_modified(self, path: Path, ms: int) -> None:
        """Set the time of a file's last write to ``ms``."""

    def set_size(self, path: Path, size: int) -> None:
        """Cut an existing file at ``size`` bytes, or add zeros to it; the new length survives a power loss."""

    def usage(self, path: Path) -> float:
        """Return the used share of the file system of ``path``, full percents rounded up (docs/formats/cleaning.md);
        −1 if unknown.
        """

    def total(self, path: Path) -> int:
        """Return the bytes of the file system of ``path``; 0 if unknown."""

    def sync_folder(self, path: Path) -> None:
        """Make names that were created, renamed and removed in ``path`` survive a power loss."""

    def lock(self, path: Path) -> DiskLock:
        """Take the store's lock at ``path``; raises :class:`engine.errors.StoreLocked` if another process has it."""

    def close(self) -> None:
        """Release every descriptor and map."""


def put_file(disk: Disk, path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` completely and durably, or leave the file as it was. Raises ``OSError``.

    The temporary file beside it has the name that a broker uses, so only one caller at a time may do this to a
    file.

    """
    temporary_path = path.with_name(f"{path.name}.tmp")
    try:
        disk.write_file(temporary_path, data, sync=True)
        disk.replace(temporary_path, path)
    except OSError:
        with suppress(OSError):
            disk.delete(temporary_path)
        raise
    disk.sync_folder(path.parent)


def disk_use(path: Path) -> float:
    """Return the used share of ``path``'s file system, full percents rounded up as RocketMQ counts; −1 if unknown."""
    try:
        return used_share(*system.disk_space(path))
    except OSError:
        return -1.0


def used_share(total: int, free: int, available: int) -> float:
    """Return :func:`disk_use` from the numbers of :func:`engine.system.disk_space`."""
    used = total - free
    return -(-used * 100 // (used + available)) / 100 if used + available > 0 else -1.0


class RealDisk:
    """The operating system's files. At most ``open_files`` descriptors stay open, however many files there are.

    After :meth:`shut` every call that opens or changes a file fails (EBADF): no part of a closed store can reach
    its files any more, because another process may have the store's lock.

    """

    def __init__(self, open_files: int = MAX_OPEN_FILES) -> None:
        self._files = OpenFiles(open_files)

    @property
    def open_files(self) -> int:
        """The number of open descriptors."""
        return self._files.count

    def open(self, path: Path, size: int) -> RealFile:
        """Implement :meth:`Disk.open`. A file that has its length already costs one ``stat`` and no descriptor."""
        text = str(path)
        with self._files.at_work(text):
            try:
                info = path.stat()
            except FileNotFoundError:
                _refuse_link(path)
                return self._file(text, size, self._create(path, size))
            if not stat.S_ISREG(info.st_mode):
                raise OSError(errno.EINVAL, sentence("expected a regular file"), text)
            if info.st_size < size:
                os.truncate(text, size)
            return self._file(text, size)

    def _file(self, path: str, size: int, new_folders: tuple[str, ...] = ()) -> RealFile:
        return RealFile(path, size, self._files, new_folders)

    def _create(self, path: Path, size: int) -> tuple[str, ...]:
        """Create the file; returns the folders that got a new name by it, the innermost first."""
        new_folders = [path.parent]
        while not new_folders[-1].exists():
            new_folders.append(new_folders[-1].parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        make_file(path, size)
        return tuple(str(folder) for folder in new_folders)

    def names(self, folder: Path) -> list[tuple[str, int]]:
        return [(name, size) for name, size, is_folder in self.entries(folder) if not is_folder]

    def entries(self, folder: Path) -> list[tuple[str, int, bool]]:
        return sorted(_entry_of(entry) for entry in _listed(folder))

    def folders(self, path: Path) -> list[str]:
        return sorted(entry.name for entry in _listed(path) if _entry_of(entry)[2])

    def read_file(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            _refuse_link(path)
            return None

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        with self._files.at_work(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            with errors_of(path), path.open("wb") as file:
                file.write(data)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            if sync:
                system.sync_folder(str(path.parent))

    def replace(self, source: Path, target: Path) -> None:
        with self._files.at_work(str(target)):
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)

    def move_folder(self, source: Path, target: Path) -> None:
        with self._files.at_work(str(source)):
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)

    def delete(self, path: Path) -> None:
        with self._files.at_work(str(path)):
            path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> bool:
        try:
            with self._files.at_work(str(path)):
                path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def exists(self, path: Path) -> bool:
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            _refuse_link(path)
            return False
        return True

    def linked_file(self, folder: Path) -> Path | None:
        for place, folders, names in os.walk(folder):
            folders.sort()
            if "CURRENT" in names:  # a RocksDB links its own files, and nothing here writes them
                continue
            for name in sorted(names):
                with suppress(FileNotFoundError):  # a broker that runs may remove it meanwhile
                    status = os.lstat(os.path.join(place, name))  # noqa: PTH118 - a store has many files
                    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                        return Path(place, name)
        return None

    def modified(self, path: Path) -> int:
        return path.stat().st_mtime_ns // 1_000_000

    def set_modified(self, path: Path, ms: int) -> None:
        with self._files.at_work(str(path)):
            os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def set_size(self, path: Path, size: int) -> None:
        with self._files.at_work(str(path)), errors_of(path), path.open("r+b") as file:
            os.ftruncate(file.fileno(), size)
            os.fsync(file.fileno())

    def usage(self, path: Path) -> float:
        return disk_use(path)

    def total(self, path: Path) -> int:
        try:
            return system.disk_space(path)[0]
        except OSError:
            return 0

    def sync_folder(self, path: Path) -> None:
        system.sync_folder(str(path))

    def lock(self, path: Path) -> StoreLock:
        return StoreLock(path)

    def close(self) -> None:
        self._files.close()

    def shut(self) -> None:
        """Close for good after the calls under way: nothing is opened, created or removed any more."""
        self._files.shut()


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """List ``folder``; [] if there is no such folder. Raises ``OSError`` if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        _refuse_link(folder)
        return []


def _entry_of(entry: os.DirEntry[str]) -> tuple[str, int, bool]:
    """Return name, length and whether it is a folder.

    An entry that was listed and cannot be examined is an ``OSError``: it is not missing, and a link to nothing
    may lead to a disk that is not mounted.

    """
    if entry.is_dir(follow_symlinks=False):
        return entry.name, 0, True
    info = entry.stat()
    is_folder = stat.S_ISDIR(info.st_mode)
    return entry.name, 0 if is_folder else info.st_size, is_folder


def _refuse_link(path: Path) -> None:
    """Raise if ``path`` is a link to nothing: it is not absent, its disk may not be mounted."""
    if path.is_symlink():
        raise FileNotFoundError(errno.ENOENT, sentence("a link to nothing: is its disk mounted?"), str(path))
