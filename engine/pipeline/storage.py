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

from engine.errors import CannotRead
from engine.sentences import sentence

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://")


_NOWHERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""What it says of a path, or of where a link leads, that nothing is there; all else says that nothing is known."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """Something in a folder: its name, its whole path, and its length in bytes, −1 for a folder.

    If it could not be examined, ``why`` says why, and :attr:`size` raises that.
    """

    name: str
    path: str
    length: int
    why: str = ""

    @property
    def size(self) -> int:
        """Length in bytes, −1 for a folder; raises :class:`CannotRead` where that is not known."""
        if self.why:
            raise CannotRead(self.why, file=self.path)
        return self.length

    @property
    def may_be_folder(self) -> bool:
        """Return whether it is a folder, or of unknown kind."""
        return bool(self.why) or self.length < 0


class OpenFile(Protocol):
    """A file that is open for reading. ``descriptor`` is −1 where only calls can read."""

    @property
    def descriptor(self) -> int: ...

    def read(self, position: int, size: int) -> bytes:
        """Bytes from ``position`` on, short where the file ends; raises :class:`CannotRead`."""

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` on; gives the number of bytes; raises :class:`CannotRead`."""

    def next_data(self, position: int) -> int:
        """The first position at or behind ``position`` that may hold other than zero bytes, −1 for none."""

    def close(self) -> None: ...


class Storage(Protocol):
    """Folders and files by path, links followed."""

    def listing(self, folder: str) -> list[FolderEntry]:
        """Return the entries of ``folder``, by name; [] without it; raises :class:`CannotRead` where it cannot be
        listed.
        """

    def is_folder(self, path: str) -> bool:
        """Return whether ``path`` is a folder; raises :class:`CannotRead` where that cannot be known."""

    def open(self, path: str) -> OpenFile:
        """Raises :class:`CannotRead`."""


def storage_of(path: str) -> tuple[Storage, str]:
    """The storage that holds ``path``, and how the path is called there."""
    if path.startswith("file:/"):  # Spark's own tables say file:/PATH, others file:///PATH
        return LocalStorage(), f"/{path.removeprefix('file:').lstrip('/')}"
    if _SCHEME.match(path):
        return ObjectStorage(path[: path.index("://") + 3]), path
    return LocalStorage(), path


def join(folder: str, *names: str) -> str:
    """Path of ``names`` below ``folder``."""
    return "/".join((folder.rstrip("/") or "", *names))


@contextlib.contextmanager
def opened(path: str) -> Iterator[OpenFile]:
    """The file at ``path``, closed again at the end of the block; raises :class:`CannotRead`."""
    storage, local = storage_of(path)
    file = storage.open(local)
    try:
        yield file
    finally:
        file.close()


class LocalStorage:
    """Disks of this machine."""

    def listing(self, folder: str) -> list[FolderEntry]:
        """Return the entries of ``folder``, by name; files and folders only."""
        try:
            with os.scandir(folder) as entries:
                files = [listed for entry in entries if (listed := _listed(entry)) is not None]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise CannotRead(
                sentence("cannot be listed: {error}", error=sentence(error.strerror or str(error))), file=folder
            ) from error
        return sorted(files, key=lambda listed: listed.name)

    def is_folder(self, path: str) -> bool:
        """Return whether ``path`` is a folder."""
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116  paths are text here, as in the other storage
        except OSError as error:
            if error.errno in _NOWHERE:
                return False
            raise CannotRead(
                sentence("cannot be looked at: {error}", error=sentence(error.strerror or str(error))), file=path
            ) from error
        except ValueError:  # a path that no disk can have
            return False

    def open(self, path: str) -> LocalFile:
        """Open ``path`` with read rights; raises :class:`CannotRead`."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            except OSError:
                os.close(descriptor)
                raise
        except OSError as error:
            raise CannotRead(
                sentence("cannot be read: {error}", error=sentence(error.strerror or str(error))), file=path
            ) from error
        if regular:
            return LocalFile(path, descriptor)
        os.close(descriptor)
        raise CannotRead(sentence("expected a regular file"), file=path)


def _listed(entry: os.DirEntry[str]) -> FolderEntry | None:
    try:
        info = entry.stat()
    except OSError as error:
        if error.errno in _NOWHERE:
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
        """Bytes from ``position`` on, short where the file ends."""
        try:
            pieces = [os.pread(self.descriptor, size, position)]
            done = len(pieces[0])
            while len(pieces[-1]) > 0 and done < size:
                pieces.append(os.pread(self.descriptor, size - done, position + done))
                done += len(pieces[-1])
        except OSError as error:
            raise CannotRead(
                sentence("cannot be read: {error}", error=sentence(error.strerror or str(error))),
                file=self.path,
                offset=position,
            ) from error
        return b"".join(pieces)

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view``; may stop short of it before the file ends."""
        try:
            return os.preadv(self.descriptor, [view], position)
        except OSError as error:
            raise CannotRead(
                sentence("cannot be read: {error}", error=sentence(error.strerror or str(error))),
                file=self.path,
                offset=position,
            ) from error

    def next_data(self, position: int) -> int:
        """Find the next data as the file system knows it: holes read as zero bytes."""
        try:
            return os.lseek(self.descriptor, position, os.SEEK_DATA)
        except OSError as error:
            return -1 if error.errno == errno.ENXIO else position

    def close(self) -> None:
        """Close it; once."""
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
        """Return whether anything lies below ``path``."""
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
        """Bytes from ``position`` on, short where the object ends."""
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
        """Objects have no holes."""
        return position

    def close(self) -> None:
        """Close it."""
        self._file.close()
