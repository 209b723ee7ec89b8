"""The store as patches would leave it, for every reader; the store itself is only read.

All reading of a store goes through :class:`engine.mapped.reading.Reading`, and that through a
:class:`~engine.mapped.reading.ReadingDisk`. :class:`PatchedDisk` is such a disk::

    reader ── Reading ── PatchedDisk ─┬─ file without patches: the system's own descriptor, as without the layer
                                      ├─ small or new file:    its new content, in a file in memory
                                      └─ large file:           the system's descriptor; patched spans are laid over
                                                               what is read; compiled code reads what lies between
                                                               them by itself

A patched file has another time of change than the file below it: caches that know files by their time do not mix
them up.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from engine import system
from engine.mapped.file_in_memory import file_in_memory
from engine.mapped.reading import FAR, SystemDisk
from engine.patching.patches import (
    SAMPLE_BYTES,
    BadPatch,
    MoveFile,
    Patch,
    RemoveFile,
    ResizeFile,
    WriteBytes,
    WriteFile,
    sample_digest,
)
from engine.sentences import plural, sentence

MAX_IN_MEMORY_BYTES = 1 << 20
"""Larger files are not copied into memory: patched spans are laid over them."""


@dataclass(slots=True)
class _PatchedFile:
    """A file as the patches so far leave it: bytes of ``base`` under ``spans``, or ``content``; absent without both."""

    base: str | None = None
    content: bytes | None = None
    zeros: int = 0
    """Zero bytes behind ``content``."""
    length: int | None = None
    """Length of a file over ``base`` that was made longer or shorter, in bytes."""
    base_end: int = 0
    """Bytes of ``base`` that such a file still has; zeros follow."""
    spans: list[tuple[int, bytes]] = field(default_factory=list)
    """In the order of their offsets, and disjoint: of 10,000 patches a read looks only at those that it meets."""
    changes: int = 0
    """A checksum of the patches: part of the time of change."""
    descriptor: int = -1
    """Of a file in memory; while the patches are laid, of ``base`` too."""
    modified_ns: int = 0
    """Time of change of the file below it; of a new file that of the store's folder."""

    @property
    def is_absent(self) -> bool:
        return self.base is None and self.content is None

    def fitted(self, data: bytes, size: int, position: int) -> bytes:
        """Return ``data``, read from ``base`` at ``position``, with the zeros behind its end or without what is cut."""
        if self.length is None:
            return data
        fitted_size = min(size, max(self.length - position, 0))
        return data[: min(fitted_size, max(self.base_end - position, 0))].ljust(fitted_size, b"\0")


class PatchedDisk(SystemDisk):
    """The system's files with ``patches`` over those of the store at ``root``. :meth:`close` frees its memory.

    Raises :class:`BadPatch` if a patch does not fit to what is in the store, ``OSError`` if that cannot be read.
    """

    def __init__(self, root: str | Path, patches: Iterable[Patch]) -> None:
        self._root = _absolute(root)
        self._files: dict[str, _PatchedFile] = {}
        self._by_name: dict[str, _PatchedFile] = {}
        self._by_identity: dict[tuple[int, int], _PatchedFile] = {}
        try:
            for patch in patches:
                self._add(patch)
        finally:
            self.close()
        for file in self._files.values():
            if file.content is not None:
                file.descriptor = file_in_memory(file.content, file.zeros)
                self._by_identity[_identity(os.fstat(file.descriptor))] = file
            elif file.base is not None:
                self._by_identity[_identity(Path(file.base).stat())] = file

    def close(self) -> None:
        """Free the files in memory."""
        for file in self._files.values():
            if file.descriptor >= 0:
                os.close(file.descriptor)
                file.descriptor = -1

    # -- patches

    def _add(self, patch: Patch) -> None:
        file = self._file_for_change(patch.file)
        match patch:
            case WriteBytes():
                file.changes = zlib.crc32(patch.new, zlib.crc32(b"%d" % patch.offset, file.changes))
            case _:
                file.changes = zlib.crc32(repr(sorted(patch.record().items())).encode(), file.changes)
        match patch:
            case WriteBytes():
                self._expect(patch, patch.offset, patch.old, self._read(file, len(patch.old), patch.offset))
                if file.content is not None:
                    end = patch.offset + len(patch.new)
                    missing = max(end - len(file.content), 0)
                    file.content, file.zeros = file.content + bytes(missing), file.zeros - missing
                    file.content = file.content[: patch.offset] + patch.new + file.content[end:]
                else:
                    _lay(file.spans, patch.offset, patch.new)
            case WriteFile():
                if patch.old is None and not file.is_absent:
                    raise BadPatch(sentence("expected no such file, found one"), file=patch.file)
                if patch.old is not None and file.is_absent:
                    raise BadPatch(sentence("the patch does not fit: there is no such file"), file=patch.file)
                if patch.old is not None:
                    size = self._size(file)
                    self._expect(patch, 0, patch.old, self._read(file, size, 0) if size <= len(patch.old) else b"")
                file.base, file.content, file.zeros, file.spans = None, patch.new, patch.zeros, []
                file.length = None
            case RemoveFile():
                self._expect_sample(patch, file)
                file.base, file.content, file.spans = None, None, []
            case ResizeFile():
                self._expect_sample(patch, file)
                _resize(file, patch.new_size)
            case MoveFile():
                self._expect_sample(patch, file)
                target = self._file_for_change(patch.target)
                if not target.is_absent:
                    raise BadPatch(sentence("expected no such file, found one"), file=patch.target)
                target.base, target.content, target.spans = file.base, file.content, file.spans
                target.zeros, target.length, target.base_end = file.zeros, file.length, file.base_end
                target.changes, target.modified_ns = file.changes, file.modified_ns
                target.descriptor, file.descriptor = file.descriptor, -1
                file.base, file.content, file.spans = None, None, []

    def _file_for_change(self, name: str) -> _PatchedFile:
        file = self._by_name.get(name)
        if file is None:
            file = self._by_name[name] = self._listed_file(name)
        return file

    def _listed_file(self, name: str) -> _PatchedFile:
        path = str(Path(self._root, *name.split("/")))
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = _PatchedFile(modified_ns=Path(self._root).stat().st_mtime_ns)
            with suppress(FileNotFoundError, NotADirectoryError):
                info = os.lstat(path)
                if not stat.S_ISREG(info.st_mode):
                    raise BadPatch(sentence("expected a regular file"), file=name)
                file.modified_ns = info.st_mtime_ns
                if info.st_size <= MAX_IN_MEMORY_BYTES:
                    file.content = _read_path(path, info.st_size, 0)
                else:
                    file.base = path
        return file

    def _size(self, file: _PatchedFile) -> int:
        if file.content is not None:
            return len(file.content) + file.zeros
        if file.length is not None:
            return file.length
        return Path(file.base).stat().st_size if file.base is not None else 0

    def _read(self, file: _PatchedFile, size: int, position: int) -> bytes:
        if file.content is not None:
            data = file.content[position : position + size]
            return data + bytes(min(size - len(data), max(len(file.content) + file.zeros - position - len(data), 0)))
        if file.base is None:
            return b""
        if file.descriptor < 0:
            file.descriptor = super().open(file.base)
        data = system.pread(file.descriptor, size, position)
        return _laid_over(file.fitted(data, size, position), position, file.spans)

    def _expect(self, patch: Patch, offset: int, expected: bytes, actual: bytes) -> None:
        if actual == expected:
            return
        pairs = enumerate(zip(expected, actual, strict=False))
        place = next((n for n, (byte, actual_byte) in pairs if byte != actual_byte), min(len(expected), len(actual)))
        message = sentence(
            "the patch does not fit: expected {expected}, found {actual}",
            expected=expected[place : place + 8].hex(" ") or sentence("the end of the file"),
            actual=actual[place : place + 8].hex(" ") or sentence("the end of the file"),
        )
        raise BadPatch(message, file=patch.file, offset=offset + place)

    def _expect_sample(self, patch: RemoveFile | MoveFile | ResizeFile, file: _PatchedFile) -> None:
        size = self._size(file)
        if file.is_absent:
            raise BadPatch(sentence("the patch does not fit: there is no such file"), file=patch.file)
        if size != patch.size:
            message = plural(
                "the patch does not fit: expected {expected:,} bytes, found {n:,} byte",
                "the patch does not fit: expected {expected:,} bytes, found {n:,} bytes",
                n=size,
                expected=patch.size,
            )
            raise BadPatch(message, file=patch.file)
        tail = max(size - SAMPLE_BYTES, 0)
        digest = sample_digest(self._read(file, SAMPLE_BYTES, 0), self._read(file, SAMPLE_BYTES, tail))
        if digest != patch.sample:
            raise BadPatch(sentence("the patch does not fit: the file has another content"), file=patch.file)

    # -- the system's calls

    def open(self, path: str) -> int:
        file = self._files.get(_absolute(path))
        if file is None:
            return super().open(path)
        if file.is_absent:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return os.dup(file.descriptor) if file.base is None else super().open(file.base)

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        prefix = _absolute(folder) + os.sep
        below = {path: file for path, file in self._files.items() if path.startswith(prefix)}
        try:
            listed = super().entries(folder)
        except (FileNotFoundError, NotADirectoryError):  # a file may have been moved out of the folder's way
            if all(file.is_absent for file in below.values()):
                raise
            listed = []
        kept_entries: list[os.DirEntry[str]] = [
            entry for entry in listed if (file := below.get(prefix + entry.name)) is None or not file.is_absent
        ]
        names = {entry.name for entry in kept_entries}
        below_names = {
            path.removeprefix(prefix).partition(os.sep)[0] for path, file in below.items() if not file.is_absent
        }
        for name in sorted(below_names - names):
            is_file = (file := below.get(prefix + name)) is not None and not file.is_absent
            kept_entries.append(cast("os.DirEntry[str]", _NewEntry(Path(folder, name), is_file, self)))
        return kept_entries

    def status(self, path: str, follow: bool) -> os.stat_result:
        absolute = _absolute(path)
        file = self._files.get(absolute)
        if file is None:
            try:
                return super().status(path, follow)
            except FileNotFoundError:
                if self._has_new_files_below(absolute):
                    return Path(self._root).stat()
                raise
        if file.is_absent:
            if self._has_new_files_below(absolute):
                return Path(self._root).stat()
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._changed_stat(file, os.fstat(file.descriptor) if file.base is None else Path(file.base).stat())

    def entry_status(self, entry: os.DirEntry[str] | _NewEntry, follow: bool) -> os.stat_result:
        if isinstance(entry, os.DirEntry) and _absolute(entry.path) not in self._files:
            return super().entry_status(entry, follow)
        return self.status(entry.path, follow)

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        data = super().read(descriptor, size, position)
        file = self._by_identity.get(_identity(os.fstat(descriptor)))
        return data if file is None else _laid_over(file.fitted(data, size, position), position, file.spans)

    def read_by_path(self, path: str, descriptor: int, size: int, position: int) -> bytes:
        """Implement :meth:`ReadingDisk.read_by_path`: a file is found by its path without asking the system."""
        data = super().read(descriptor, size, position)
        file = self._files.get(path) or self._files.get(_absolute(path))
        return data if file is None else _laid_over(file.fitted(data, size, position), position, file.spans)

    def read_into(self, descriptor: int, view: memoryview, position: int) -> int:
        count = super().read_into(descriptor, view, position)
        file = self._by_identity.get(_identity(os.fstat(descriptor)))
        if file is not None and file.length is not None:
            data = file.fitted(bytes(view[:count]), len(view), position)
            count = len(data)
            view[:count] = data
        if file is not None and file.spans:
            for start, part in _parts(count, position, file.spans):
                view[start : start + len(part)] = part
        return count

    def extents(self, descriptor: int, position: int, size: int) -> list[tuple[int, int]]:
        """Implement :meth:`ReadingDisk.extents`: a patched span is data, also in a hole."""
        extents = super().extents(descriptor, position, size)
        file = self._by_identity.get(_identity(os.fstat(descriptor)))
        if file is None or not file.spans:
            return extents
        spans = [(max(start, position), min(start + len(data), size)) for start, data in file.spans]
        merged: list[tuple[int, int]] = []
        for start, stop in sorted([*extents, *(span for span in spans if span[0] < span[1])]):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return merged

    def next_data(self, descriptor: int, position: int, size: int) -> int:
        """Implement :meth:`ReadingDisk.next_data`: a patched span is data, also in a hole."""
        file = self._by_identity.get(_identity(os.fstat(descriptor)))
        if file is None:
            return super().next_data(descriptor, position, size)
        start = super().next_data(descriptor, position, size if file.length is None else min(file.base_end, size))
        number = bisect_right(file.spans, position, key=_start_of)
        if number and position < file.spans[number - 1][0] + len(file.spans[number - 1][1]):
            return position
        if number < len(file.spans) and file.spans[number][0] < size:
            return file.spans[number][0] if start < 0 else min(start, file.spans[number][0])
        return start

    def is_plain(self, path: str) -> bool:
        """Implement :meth:`ReadingDisk.is_plain`: compiled code reads files without patches by itself."""
        file = self._files.get(_absolute(path))
        return file is None or (not file.spans and file.length is None)

    def plain_end(self, path: str, position: int) -> int:
        """Implement :meth:`ReadingDisk.plain_end`: compiled code reads up to the next patched span."""
        file = self._files.get(_absolute(path))
        if file is None:
            return FAR
        number = bisect_right(file.spans, position, key=_start_of)
        end = FAR if file.length is None else file.base_end
        if number < len(file.spans):
            end = min(end, file.spans[number][0])
        if number and position < file.spans[number - 1][0] + len(file.spans[number - 1][1]):
            return position
        return max(end, position)

    def _has_new_files_below(self, folder: str) -> bool:
        return any(path.startswith(folder + os.sep) and not file.is_absent for path, file in self._files.items())

    @staticmethod
    def _changed_stat(file: _PatchedFile, info: os.stat_result) -> os.stat_result:
        modified_ns = file.modified_ns + (file.changes | 1)
        values = list(info)[:10]
        values[8] = modified_ns // 10**9
        if file.length is not None:
            values[stat.ST_SIZE] = file.length
        names = ("st_atime", "st_ctime", "st_atime_ns", "st_ctime_ns", "st_blksize", "st_blocks", "st_rdev")
        other_fields = {name: getattr(info, name) for name in names if hasattr(info, name)}
        return os.stat_result(values, {**other_fields, "st_mtime": modified_ns / 10**9, "st_mtime_ns": modified_ns})


class _NewEntry:
    """A file or folder that a patch creates, as a folder lists it."""

    def __init__(self, path: Path, is_file: bool, disk: PatchedDisk) -> None:
        self.path = str(path)
        self.name = path.name
        self._is_file = is_file
        self._disk = disk

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002
        return not self._is_file

    def is_file(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002
        return self._is_file

    def is_symlink(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return self._disk.status(self.path, follow_symlinks)


def _resize(file: _PatchedFile, size: int) -> None:
    """Cut ``file`` at ``size``, or add zeros to it."""
    if file.content is not None:
        file.content = file.content[:size]
        file.zeros = size - len(file.content)
    else:
        file.spans = [(start, data[: size - start]) for start, data in file.spans if start < size]
        file.base_end = size if file.length is None else min(file.base_end, size)
        file.length = size


def _absolute(path: str | Path) -> str:
    text = os.fspath(path)
    return _normal(text) if text.startswith(os.sep) else os.path.abspath(text)  # noqa: PTH100 (a link is not followed)


@functools.lru_cache(4096)
def _normal(path: str) -> str:
    return os.path.normpath(path)


def _identity(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _lay(spans: list[tuple[int, bytes]], offset: int, new: bytes) -> None:
    """Lay ``new`` over ``spans`` at ``offset``; what it covers of earlier ones goes."""
    end = offset + len(new)
    number = bisect_right(spans, offset, key=_start_of) - 1
    if number < 0 or spans[number][0] + len(spans[number][1]) <= offset:
        number += 1
    stop_number = bisect_left(spans, end, lo=number, key=_start_of)
    for start, covered in spans[number:stop_number][:1]:
        new = covered[: max(offset - start, 0)] + new
        offset = min(offset, start)
    for start, covered in spans[number:stop_number][-1:]:
        new += covered[max(end - start, 0) :]
    spans[number:stop_number] = [(offset, new)]


def _start_of(span: tuple[int, bytes]) -> int:
    return span[0]


def _laid_over(data: bytes, position: int, spans: list[tuple[int, bytes]]) -> bytes:
    """Return ``data``, which begins at ``position``, with ``spans`` over it."""
    pieces: list[bytes | memoryview] = []
    view, end = memoryview(data), 0
    for start, part in _parts(len(data), position, spans):
        pieces += (view[end:start], part)
        end = start + len(part)
    return b"".join((*pieces, view[end:])) if pieces else data


def _parts(size: int, position: int, spans: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield what of ``spans`` lies in the ``size`` bytes from ``position`` on, and where in them it begins."""
    end = position + size
    start_number = max(bisect_right(spans, position, key=_start_of) - 1, 0)
    for number in range(start_number, bisect_left(spans, end, lo=start_number, key=_start_of)):
        offset, new = spans[number]
        start, stop = max(offset, position), min(offset + len(new), end)
        if start < stop:
            yield start - position, new[start - offset : stop - offset]


def _read_path(path: str, size: int, position: int) -> bytes:
    descriptor = SystemDisk().open(path)
    try:
        return system.pread(descriptor, size, position)
    finally:
        os.close(descriptor)
