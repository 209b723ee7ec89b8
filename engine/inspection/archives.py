"""Unpacks archives into a folder: tar (plain or compressed) and zip. All unpacking goes through this module.

An archive comes from outside and may be hostile. Python checks names only from 3.11.4 on, and later versions use other
rules. So this module checks names, links and kinds itself, and every Python version unpacks the same files. It refuses
absolute names, names with ``..``, links that lead out, devices and pipes. Links are created last, so that nothing is
written through one.
"""

from __future__ import annotations

import contextlib
import lzma
import os
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, Literal, NoReturn, Self

from engine.errors import BadArchive
from engine.sentences import sentence

Step = Callable[[int, int | None], None]
"""Called after every piece with the bytes so far, and the total if known. An exception from it ends the work."""
_PIECE = 1 << 20
_ZEROS = bytes(_PIECE)
_ZIP_BEGINS = (b"PK\3\4", b"PK\5\6")
_NOTES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_MAX_METADATA_BYTES = 1 << 20  # bytes of metadata on the next member, which Python reads at once
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    ValueError,  # an impossible offset or number
    RuntimeError,  # encrypted, or compressed in a way that Python does not support
)
_Kind = Literal["file", "folder", "symbolic link", "hard link", "device"]
_Name = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Member:
    """Member of an archive. ``size`` in bytes, ``modified`` in seconds since 1970, ``target`` of a link."""

    name: str
    kind: _Kind
    size: int
    mode: int
    modified: float
    target: str
    has_holes: bool
    open: Callable[[], IO[bytes]]


def unpack(packed: BinaryIO, folder: Path, largest: int, step: Step | None = None) -> dict[str, int]:
    """Unpack ``packed`` into the existing empty folder ``folder``; returns names and lengths of the files.

    Files keep their times, but not their owners, rights of others to write, or set-user bits. Raises
    :class:`BadArchive` if the archive is damaged, cut short, hostile, or larger than ``largest`` bytes; ``OSError`` if
    the folder cannot be written. Files unpacked before the error stay: the caller removes ``folder``.
    """
    try:
        begin = packed.read(4)
        packed.seek(0)
        if begin in _ZIP_BEGINS:
            with zipfile.ZipFile(packed) as zipped:
                total = sum(each.file_size for each in zipped.infolist())
                return _Extraction(folder, largest, step, total).extract(_of_zip(zipped))
        with tarfile.open(fileobj=packed, mode="r:*", tarinfo=_StrictTarInfo) as tar:
            return _Extraction(folder, largest, step, None).extract(_of_tar(tar))
    except _DAMAGE as error:
        raise BadArchive(_unreadable_words(error)) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise BadArchive(_unreadable_words(error)) from error  # gzip and bz2 report damage this way


def _unreadable_words(why: object) -> str:
    first_line = (str(why).splitlines() or [type(why).__name__])[0].rstrip(":")
    return sentence("expected an archive, found one that cannot be read: {first_line}", first_line=first_line)


class _StrictTarInfo(tarfile.TarInfo):
    """Reports a header that is cut short or damaged; Python treats such a header as the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.size < 0 or (member.type in _NOTES and member.size > _MAX_METADATA_BYTES):
            raise tarfile.HeaderError(f"a length of {member.size:,} bytes")
        return member

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        position = tarfile_.offset
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # the block of zeros that ends every tar file
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(
                sentence("{error}, {position:,} bytes behind its beginning", error=error, position=position)
            ) from error


def _of_tar(tar: tarfile.TarFile) -> Iterator[_Member]:
    for each in tar:
        kind: _Kind = "device"
        if each.isreg():
            kind = "file"
        elif each.isdir():
            kind = "folder"
        elif each.issym():
            kind = "symbolic link"
        elif each.islnk():
            kind = "hard link"
        size = each.size if kind == "file" else 0
        opened = partial(_opened, tar, each)
        yield _Member(each.name, kind, size, each.mode, each.mtime, each.linkname, each.issparse(), opened)


def _opened(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    assert file is not None, "files are opened, nothing else"
    return file


def _of_zip(zipped: zipfile.ZipFile) -> Iterator[_Member]:
    for each in zipped.infolist():
        mode = each.external_attr >> 16
        kind: _Kind = "device"
        target = ""
        if each.filename.endswith("/"):
            kind = "folder"
        elif stat.S_IFMT(mode) in {0, stat.S_IFREG}:
            kind = "file"
        elif stat.S_ISLNK(mode):
            kind = "symbolic link"
            with zipped.open(each) as file:
                target = os.fsdecode(file.read(4096))
        modified = time.mktime((*each.date_time, 0, 0, -1))
        size = each.file_size if kind == "file" else 0
        yield _Member(each.filename, kind, size, mode or 0o644, modified, target, False, partial(zipped.open, each))


class _Extraction:
    """Unpacks the members of one archive into ``folder``; ``largest`` is the limit for their sum, ``total`` their
    expected sum (bytes).
    """

    def __init__(self, folder: Path, largest: int, step: Step | None, total: int | None) -> None:
        self._folder = folder
        self._largest = largest
        self._step = step
        self._total = total
        self._done = 0
        self._files: dict[_Name, int] = {}
        self._links: dict[_Name, str] = {}
        self._folders: dict[_Name, float] = {}

    def extract(self, members: Iterable[_Member]) -> dict[str, int]:
        """All members, links last; names and lengths of the files."""
        self._fits(self._total or 0)
        for member in members:
            name = _names(member, member.name)
            if name:
                self._extract_member(member, name)
        for name, target in self._links.items():
            self._folder.joinpath(*name).symlink_to(target)
        for name, modified in self._folders.items():
            _set_time(self._folder.joinpath(*name), modified)
        return {"/".join(name): size for name, size in self._files.items()}

    def _extract_member(self, member: _Member, name: _Name) -> None:
        match member.kind:
            case "device":
                _refuse(member, "is neither a file nor a folder nor a link")
            case "folder":
                self._make_folder(member, name)
                self._folders[name] = member.modified
            case "symbolic link":
                self._make_way(member, name)
                self._links[name] = _safe_link_target(member, name)
            case "hard link":
                target = _names(member, member.target)
                if target == name or target not in self._files:
                    _refuse(member, sentence("is a link to {target}, which is no file before it", target=member.target))
                self._make_way(member, name).hardlink_to(self._folder.joinpath(*target))
                self._files[name] = self._files[target]
            case "file":
                self._fits(self._done + member.size)
                self._write(member, self._make_way(member, name))
                self._files[name] = member.size

    def _fits(self, size: int) -> None:
        if size > self._largest:
            allowed = sentence("expected at most {largest:,} bytes in it", largest=self._largest)
            raise BadArchive(
                sentence("{allowed}, found {size:,} bytes or more: unpack it yourself", allowed=allowed, size=size)
            )

    def _make_folder(self, member: _Member, name: _Name) -> None:
        """Folders down to ``name``; all of them are folders: links are not there yet."""
        if any(name[:depth] in self._links for depth in range(1, len(name) + 1)):
            _refuse(member, "leads through a link")
        try:
            self._folder.joinpath(*name).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            _refuse(member, "is a folder where a file stands")

    def _make_way(self, member: _Member, name: _Name) -> Path:
        """Return the path for ``name`` and clear it: if two members have the same name, the later one wins."""
        self._make_folder(member, name[:-1])
        path = self._folder.joinpath(*name)
        if path.is_dir():
            _refuse(member, "is a file where a folder stands")
        path.unlink(missing_ok=True)
        self._files.pop(name, None)
        self._links.pop(name, None)
        return path

    def _write(self, member: _Member, path: Path) -> None:
        with member.open() as source, path.open("xb") as file:
            while piece := source.read(_PIECE):
                if member.has_holes and piece == _ZEROS[: len(piece)]:
                    file.seek(len(piece), os.SEEK_CUR)
                else:
                    file.write(piece)
                self._done += len(piece)
                if self._step is not None:
                    self._step(self._done, self._total)
            file.truncate()
        if path.stat().st_size != member.size:
            raise EOFError(
                sentence(
                    "{file} ends after {found:,} of {expected:,} bytes",
                    file=member.name,
                    found=path.stat().st_size,
                    expected=member.size,
                )
            )
        runs = member.mode & stat.S_IXUSR
        path.chmod(stat.S_IRUSR | stat.S_IWUSR | member.mode & (0o755 if runs else 0o644))
        _set_time(path, member.modified)


def _names(member: _Member, path: str) -> _Name:
    """The parts of a path as an archive writes it, from the archive's own folder on."""
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    if path.startswith("/") or ".." in parts or "\0" in path:
        _refuse(member, "leads out of the archive's folder")
    return parts


def _safe_link_target(member: _Member, name: _Name) -> str:
    """Return the target of a symbolic link that cannot lead out, whatever the other links are: first up, at most to the
    top, then only down.
    """
    parts = [part for part in member.target.split("/") if part not in {"", "."}]
    up = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    out = up >= len(name) or ".." in parts[up:]
    if not parts or member.target.startswith("/") or "\0" in member.target or out:
        _refuse(
            member,
            sentence("is a link to {target}, which leads out of the archive's folder", target=repr(member.target)),
        )
    return member.target


def _set_time(path: Path, modified: float) -> None:
    with contextlib.suppress(OverflowError, ValueError):  # a time that no file can have: keep the current one
        os.utime(path, (modified, modified))


def _refuse(member: _Member, why: str) -> NoReturn:
    raise BadArchive(_unreadable_words(f"{member.name!r} {why}"))
