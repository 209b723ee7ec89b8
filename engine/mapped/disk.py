"""The disk behind a small protocol, so that a test can pull the plug between any two calls.

:class:`RealDisk` is the operating system's; ``tests/support/simulated_disk.py`` takes its place in
tests of power loss. Everything that the engine writes goes through here.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from engine.mapped.real_file import OPEN_FILES, OpenFiles, RealFile, make_file, sync_folder
from engine.mapped.store_lock import StoreLock


class DiskFile(Protocol):
    """A file of fixed length ``size`` (bytes) that is read and written in place. All calls may raise ``OSError``."""

    path: str
    size: int

    @property
    def view(self) -> memoryview:
        """The whole file, writable; mapped when first asked for."""

    @property
    def is_mapped(self) -> bool:
        """Whether :attr:`view` has been asked for and is kept."""

    def read(self, position: int, size: int) -> bytes:
        """Bytes from ``position`` on, never beyond the file's end."""

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` as far as the file goes; gives the number of bytes read."""

    def lend(self, position: int, size: int) -> memoryview | None:
        """These bytes of :attr:`view`, in memory; None where not all of them came: reading them says why."""

    def extents(self, position: int = 0) -> list[tuple[int, int]]:
        """Spans (start, stop) from ``position`` on that the file system holds data for; between them are zeros."""

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Write all of ``data`` at ``position``; :attr:`view` shows it too."""

    def reserve(self, start: int, stop: int, *, touch: bool = False) -> None:
        """Give [start, stop) room on the disk: writing there through :attr:`view` cannot fail for lack of it then.

        With ``touch`` the pages of the map are there too, so that writing does not stop at each of them.
        """

    def flush(self, start: int, stop: int) -> None:
        """Bytes [start, stop) and the file's name survive a power loss afterwards. Once failed it fails for ever."""

    def close(self) -> None:
        """Give back descriptor and map; the file opens again when it is used."""

    def delete(self) -> None:
        """Close the file and remove it; gone already is as good."""


class DiskLock(Protocol):
    """A lock on a store, taken."""

    def release(self) -> None:
        """Let others have the store; a second time does nothing."""


class Disk(Protocol):
    """Files and folders as the engine needs them. Paths are absolute; all calls may raise ``OSError``.

    Absent is only what nobody has listed and the system does not know: what is there and cannot be listed, looked at
    or read raises.
    """

    def open(self, path: Path, size: int) -> DiskFile:
        """The file at ``path``, made with its parents where it is missing and grown to ``size`` with zeros."""

    def names(self, folder: Path) -> list[tuple[str, int]]:
        """Names and lengths of what is in ``folder``, folders left out, in the order of names; [] without folder."""

    def entries(self, folder: Path) -> list[tuple[str, int, bool]]:
        """Name, length (0 for a folder) and whether it is a folder, of all that is in ``folder`` in the order of names;
        [] without it.
        """

    def folders(self, path: Path) -> list[str]:
        """Names of the folders in ``path`` in their order; [] without it."""

    def read_file(self, path: Path) -> bytes | None:
        """All of a small file, None where there is none."""

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        """Cut the file and write it anew (parents made); with ``sync`` bytes and name survive a power loss."""

    def replace(self, source: Path, target: Path) -> None:
        """Rename ``source`` over ``target`` at once."""

    def move_folder(self, source: Path, target: Path) -> None:
        """Rename a folder with all that is in it at once (``target``'s parents are made, itself is not there yet)."""

    def delete(self, path: Path) -> None:
        """Remove a file; gone already is as good."""

    def remove_folder(self, path: Path) -> bool:
        """Remove a folder if it is empty; whether it is gone."""

    def exists(self, path: Path) -> bool:
        """Whether there is a file or folder at ``path``."""

    def linked_file(self, folder: Path) -> Path | None:
        """The first file below ``folder`` that has a second name (a hard link): writing it changes both. None without
        one, and on a disk that makes such links itself.
        """

    def modified(self, path: Path) -> int:
        """When a file was last written, in ms since 1970."""

    def set_modified(self, path: Path, ms: int) -> None:
        """Say that a file was last written at ``ms``."""

    def usage(self, path: Path) -> float:
        """Share of the file system of ``path`` that is used, full percents upwards (docs/formats/cleaning.md); −1
        where unknown.
        """

    def total(self, path: Path) -> int:
        """Bytes of the file system of ``path``; 0 where unknown."""

    def sync_folder(self, path: Path) -> None:
        """Names made, renamed and removed in ``path`` survive a power loss afterwards."""

    def lock(self, path: Path) -> DiskLock:
        """Take the store's lock at ``path``; raises :class:`engine.errors.StoreLocked` where somebody else has it."""

    def close(self) -> None:
        """Give back every descriptor and map."""


def put_file(disk: Disk, path: Path, data: bytes) -> None:
    """Have ``data`` stand in ``path`` whole and safe on ``disk``, or leave it as it was. Raises ``OSError``.

    What grows beside it is named as a broker names it, so one at a time may do this to a file.
    """
    beside = path.with_name(f"{path.name}.tmp")
    try:
        disk.write_file(beside, data, sync=True)
        disk.replace(beside, path)
    except OSError:
        with suppress(OSError):
            disk.delete(beside)
        raise
    disk.sync_folder(path.parent)


def disk_use(path: Path) -> float:
    """Share of ``path``'s file system that is used, full percents upwards as RocketMQ counts; −1 where unknown."""
    try:
        found = os.statvfs(path)
    except OSError:
        return -1.0
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    entire = used + found.f_bavail * found.f_frsize
    return -(-used * 100 // entire) / 100 if entire > 0 else -1.0


class RealDisk:
    """The operating system's files. At most ``open_files`` descriptors stay open, however many files there are.

    After :meth:`shut` it refuses whatever opens or changes a file (EBADF): no part of a store that is closed, and whose
    lock somebody else may have, reaches its files any more, whoever still holds that part.
    """

    def __init__(self, open_files: int = OPEN_FILES) -> None:
        self._files = OpenFiles(open_files)

    @property
    def open_files(self) -> int:
        """Descriptors that are open now."""
        return self._files.count

    def open(self, path: Path, size: int) -> RealFile:
        """See :meth:`Disk.open`. A file that has its length already costs one look and no descriptor."""
        text = str(path)
        with self._files.at_work(text):
            try:
                found = path.stat()
            except FileNotFoundError:
                _refuse_link(path)
                return self._file(text, size, self._create(path, size))
            if not stat.S_ISREG(found.st_mode):
                raise OSError(22, "expected a regular file", text)
            if found.st_size < size:
                os.truncate(text, size)
            return self._file(text, size)

    def _file(self, path: str, size: int, new_folders: tuple[str, ...] = ()) -> RealFile:
        return RealFile(path, size, self._files, new_folders)

    def _create(self, path: Path, size: int) -> tuple[str, ...]:
        """Make the file; gives the folders that hold a new name by it, the innermost first."""
        touched = [path.parent]
        while not touched[-1].exists():
            touched.append(touched[-1].parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        make_file(path, size)
        return tuple(str(folder) for folder in touched)

    def names(self, folder: Path) -> list[tuple[str, int]]:
        return [(name, size) for name, size, is_folder in self.entries(folder) if not is_folder]

    def entries(self, folder: Path) -> list[tuple[str, int, bool]]:
        return sorted(_as_entry(entry) for entry in _listed(folder))

    def folders(self, path: Path) -> list[str]:
        return sorted(entry.name for entry in _listed(path) if _as_entry(entry)[2])

    def read_file(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            _refuse_link(path)
            return None

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        with self._files.at_work(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.write(data)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            if sync:
                sync_folder(str(path.parent))

    def replace(self, source: Path, target: Path) -> None:
        with self._files.at_work(str(target)):
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
                with suppress(FileNotFoundError):  # whoever holds the store may remove it meanwhile
                    status = os.lstat(os.path.join(place, name))  # noqa: PTH118 - a store has many files
                    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                        return Path(place, name)
        return None

    def modified(self, path: Path) -> int:
        return path.stat().st_mtime_ns // 1_000_000

    def set_modified(self, path: Path, ms: int) -> None:
        with self._files.at_work(str(path)):
            os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def usage(self, path: Path) -> float:
        return disk_use(path)

    def total(self, path: Path) -> int:
        try:
            found = os.statvfs(path)
        except OSError:
            return 0
        return found.f_blocks * found.f_frsize

    def sync_folder(self, path: Path) -> None:
        sync_folder(str(path))

    def lock(self, path: Path) -> StoreLock:
        return StoreLock(path)

    def close(self) -> None:
        self._files.close()

    def shut(self) -> None:
        """Close for good, once the calls under way are through: nothing is opened, made or removed any more."""
        self._files.shut()


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """What is in ``folder``; nothing where there is no such folder. Raises ``OSError`` where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        _refuse_link(folder)
        return []


def _as_entry(entry: os.DirEntry[str]) -> tuple[str, int, bool]:
    """Name, length and whether it is a folder. What was listed and cannot be looked at is an ``OSError``: it is not
    missing, and a link to nothing may lead to a disk that is not mounted.
    """
    if entry.is_dir(follow_symlinks=False):
        return entry.name, 0, True
    info = entry.stat()
    is_folder = stat.S_ISDIR(info.st_mode)
    return entry.name, 0 if is_folder else info.st_size, is_folder


def _refuse_link(path: Path) -> None:
    """Raise where ``path`` is a link to nothing: it is not absent, its disk may not be mounted."""
    if path.is_symlink():
        raise FileNotFoundError(errno.ENOENT, "a link to nothing: is its disk mounted?", str(path))
