"""Access to a store's files: on a disk that this machine sees, or in an object storage (``s3://`` and its like).

Everything is opened with read rights, read by position and closed again; nothing is mapped, cached or written. Object
storage goes through pyarrow's file systems, in every process that reads: driver and executors each take what they need
from their own environment (``spark.executorEnv.NAME`` gives it to executors). For S3 that is AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY (or a role), AWS_REGION, and AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL for a server other than
Amazon's; ``s3a://`` is another name for ``s3://``.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from engine import system
from engine.errors import CannotRead
from engine.sentences import sentence

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://")


_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""Errors after which a path, or the target of a link, is known to be absent; after others nothing is known about it."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A file or folder: its name, its complete path, and its length in bytes, −1 for a folder.

    ``problem`` is the reason if it could not be examined; then :attr:`size` raises.
    """

    name: str
    path: str
    length: int
    problem: str = ""

    @property
    def size(self) -> int:
        """Length in bytes, −1 for a folder; raises :class:`CannotRead` if it is unknown."""
        if self.problem:
            raise CannotRead(self.problem, file=self.path)
        return self.length

    @property
    def may_be_folder(self) -> bool:
        """True if it is a folder, or of unknown kind."""
        return bool(self.problem) or self.length < 0


class OpenFile(Protocol):
    """A file that is open for reading. ``descriptor`` is −1 if only :meth:`read` can read it."""

    @property
    def descriptor(self) -> int: ...

    def read(self, position: int, size: int) -> bytes:
        """Return bytes from ``position`` on, fewer at the end of the file. Raises :class:`CannotRead`."""

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` on and return the number of bytes. Raises :class:`CannotRead`."""

    def next_data(self, position: int) -> int:
        """Return the first position from ``position`` on that may hold a byte other than zero, −1 for none."""

    def close(self) -> None: ...


class Storage(Protocol):
    """Folders and files by path, links followed."""

    def listing(self, folder: str) -> list[FolderEntry]:
        """Return the entries of ``folder`` by name; [] if it is absent. Raises :class:`CannotRead`."""

    def is_folder(self, path: str) -> bool:
        """Return True if ``path`` is a folder. Raises :class:`CannotRead` if that is unknown."""

    def open(self, path: str) -> OpenFile:
        """Open a file. Raises :class:`CannotRead`."""


def storage_of(path: str) -> tuple[Storage, str]:
    """Return the storage that holds ``path``, and the path's name there."""
    if path.startswith("file:/"):  # Spark's own tables have file:/PATH, others file:///PATH
        return LocalStorage(), f"/{path.removeprefix('file:').lstrip('/')}"
    if _SCHEME.match(path):
        return ObjectStorage(path[: path.index("://") + 3]), path
    return LocalStorage(), path


def join(folder: str, *names: str) -> str:
    """Return the path of ``names`` below ``folder``."""
    return "/".join((folder.rstrip("/") or "", *names))


@contextlib.contextmanager
def open_path(path: str) -> Iterator[OpenFile]:
    """Open the file at ``path`` for a block. Raises :class:`CannotRead`."""
    storage, local = storage_of(path)
    file = storage.open(local)
    try:
        yield file
    finally:
        file.close()


class LocalStorage:
    """The disks of this machine."""

    def listing(self, folder: str) -> list[FolderEntry]:
        """Return the entries of ``folder``, by name; files and folders only."""
        try:
            with os.scandir(folder) as entries:
                files = [listed for entry in entries if (listed := _entry_of(entry)) is not None]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise CannotRead(
                sentence("cannot be listed: {error}", error=sentence(error.strerror or str(error))), file=folder
            ) from error
        return sorted(files, key=lambda listed: listed.name)

    def is_folder(self, path: str) -> bool:
        """Return True if ``path`` is a folder."""
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116  paths are text here, as in the other storage
        except OSError as error:
            if error.errno in _ABSENT:
                return False
            raise CannotRead(
                sentence("cannot be looked at: {error}", error=sentence(error.strerror or str(error))), file=path
            ) from error
        except ValueError:  # a path that no disk can have
            return False

    def open(self, path: str) -> LocalFile:
        """Open ``path`` with read rights; raises :class:`CannotRead`."""
        try:
            descriptor = os.open(path, os.O_RDONLY | system.OPEN_FLAGS | system.NO_WAIT)
            try:
                is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            except OSError:
                os.close(descriptor)
                raise
        except OSError as error:
            raise CannotRead(
                sentence("cannot be read: {error}", error=sentence(error.strerror or str(error))), file=path
            ) from error
        if is_regular:
            return LocalFile(path, descriptor)
        os.close(descriptor)
        raise CannotRead(sentence("expected a regular file"), file=path)


def _entry_of(entry: os.DirEntry[str]) -> FolderEntry | None:
    try:
        info = entry.stat()
    except OSError as error:
        if error.errno in _ABSENT:
            return None  # a link to nothing, or gone since it was listed
        return FolderEntry(
            entry.name,
            entry.path,
            0,
            sentence("cannot be looked at: {error}", error=sentence(error.strerror or str(error))),
        )
    if stat.S_ISDIR(info.st_mode):
        return FolderEntry(entry.name, entry.path, -1)
    return FolderEntry(entry.name, entry.path, info.st_size) if stat.S_ISREG(info.st_mode) else None


@dataclass(frozen=True, slots=True)
class LocalFile:
    """An open file of this machine."""

    path: str
    descriptor: int

    def read(self, position: int, size: int) -> bytes:
        """Return bytes from ``position`` on, fewer at the end of the file."""
        try:
            pieces = [system.pread(self.descriptor, size, position)]
            read_bytes = len(pieces[0])
            while len(pieces[-1]) > 0 and read_bytes < size:
                pieces.append(system.pread(self.descriptor, size - read_bytes, position + read_bytes))
                read_bytes += len(pieces[-1])
        except OSError as error:
            raise CannotRead(
                sentence("cannot be read: {error}", error=sentence(error.strerror or str(error))),
                file=self.path,
                offset=position,
            ) from error
        return b"".join(pieces)

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` and return the number of bytes; may stop before the end of the file."""
        try:
            return system.read_into(self.descriptor, view, position)
        except OSError as error:
            raise CannotRead(
                sentence("cannot be read: {error}", error=sentence(error.strerror or str(error))),
                file=self.path,
                offset=position,
            ) from error

    def next_data(self, position: int) -> int:
        """Return the next data by the file system's map of holes, which read as zero bytes."""
        try:
            return system.next_data(self.descriptor, position)
        except OSError as error:
            return -1 if error.errno == errno.ENXIO else position

    def close(self) -> None:
        """Close the file; to be called once."""
        os.close(self.descriptor)


class ObjectStorage:
    """A storage that pyarrow reaches by a URI; settings come from the environment (see above)."""

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme

    def listing(self, folder: str) -> list[FolderEntry]:
        """Return the objects and prefixes right below ``folder``, by name."""
        from pyarrow import fs

        system, path = _arrow_system(folder)
        try:
            infos = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        except OSError as error:
            raise CannotRead(sentence("cannot be listed: {error}", error=_first_line(error)), file=folder) from error
        entries = [FolderEntry(i.base_name, join(folder, i.base_name), -1 if i.size is None else i.size) for i in infos]
        return sorted(entries, key=lambda listed: listed.name)

    def is_folder(self, path: str) -> bool:
        """Return True if an object is below ``path``."""
        from pyarrow import fs

        system, object_path = _arrow_system(path)
        try:
            return bool(system.get_file_info(object_path).type == fs.FileType.Directory)
        except OSError as error:
            raise CannotRead(sentence("cannot be listed: {error}", error=_first_line(error)), file=path) from error

    def open(self, path: str) -> ObjectFile:
        """Open the object for ranged reads; raises :class:`CannotRead`."""
        system, object_path = _arrow_system(path)
        try:
            return ObjectFile(path, system.open_input_file(object_path))
        except OSError as error:
            raise CannotRead(sentence("cannot be read: {error}", error=_first_line(error)), file=path) from error


def _arrow_system(uri: str) -> tuple[Any, str]:
    head, _, object_path = uri.partition("://")
    bucket = object_path.partition("/")[0]
    return _arrow_root(f"{head}://{bucket}"), object_path


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


@functools.cache
def _arrow_root(root: str) -> Any:
    from pyarrow import ArrowException, fs

    scheme, _, bucket = root.partition("://")
    try:
        if scheme not in ("s3", "s3a"):
            raise CannotRead(sentence("{scheme}: is not read here", scheme=scheme), file=root)
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if not endpoint:
            return fs.FileSystem.from_uri(f"s3://{bucket}")[0]
        endpoint_scheme, _, server = endpoint.rpartition("://")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        return fs.S3FileSystem(endpoint_override=server.rstrip("/"), scheme=endpoint_scheme or "https", region=region)
    except (OSError, ValueError, ArrowException) as error:
        raise CannotRead(
            sentence("cannot be reached: {first_line}", first_line=_first_line(error)), file=root
        ) from error


class ObjectFile:
    """An object, read by ranges."""

    descriptor = -1

    def __init__(self, path: str, file: Any) -> None:
        self.path = path
        self._file = file

    def read(self, position: int, size: int) -> bytes:
        """Return bytes from ``position`` on, fewer at the end of the object."""
        try:
            size = min(size, self._file.size() - position)
            return bytes(self._file.read_at(size, position)) if size > 0 else b""
        except OSError as error:
            raise CannotRead(
                sentence("cannot be read: {error}", error=_first_line(error)), file=self.path, offset=position
            ) from error

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` with one ranged read."""
        data = self.read(position, len(view))
        view[: len(data)] = data
        return len(data)

    def next_data(self, position: int) -> int:
        """Return ``position``: objects have no holes."""
        return position

    def close(self) -> None:
        """Close the object."""
        self._file.close()
