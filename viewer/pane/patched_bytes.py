"""The bytes that patches change, for the hex view while the store is shown as patched. No Qt."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path

from engine.files.layout import parse_file_name
from engine.patching.patches import MoveFile, Patch, RemoveFile, WriteBytes, WriteFile
from viewer.pane.finding_facts import is_in_log

Changes = Mapping[int, int | None]
"""The old value of each changed byte by its offset; None for a byte that was not there before."""


def log_changes(patches: tuple[Patch, ...], start: int, end: int) -> Changes:
    """Return the changed bytes of [start, end) of the commit log."""
    changes: dict[int, int | None] = {}
    for file in _log_files(patches):
        near = file.near(start - file.start, end - file.start)
        found = file_changes(near, file.name, start - file.start, end - file.start) if near else {}
        changes |= {file.start + position: old for position, old in found.items()}
    return changes


class _LogFile:
    """The patches of one file of the log, which begins at ``start``."""

    def __init__(self, name: str, start: int) -> None:
        self.name = name
        self.start = start
        self._anywhere: list[tuple[int, Patch]] = []
        self._by_offset: list[tuple[int, int, WriteBytes]] = []
        self._longest = 0
        self._is_sorted = True

    def add(self, number: int, patch: Patch) -> None:
        """Add the patch with this number."""
        if isinstance(patch, WriteBytes):
            self._by_offset.append((patch.offset, number, patch))
            self._longest = max(self._longest, len(patch.new))
            self._is_sorted = False
        else:
            self._anywhere.append((number, patch))

    def near(self, start: int, end: int) -> list[Patch]:
        """Return, in their order, the patches that may write into [start, end) of the file: of 10,000 each frame looks
        only at a few.
        """
        if not self._is_sorted:
            self._by_offset.sort(key=itemgetter(0, 1))
            self._is_sorted = True
        first = bisect_left(self._by_offset, start - self._longest, key=itemgetter(0))
        last = bisect_left(self._by_offset, end, lo=first, key=itemgetter(0))
        written: list[tuple[int, Patch]] = [(number, patch) for _, number, patch in self._by_offset[first:last]]
        return [patch for _, patch in sorted([*self._anywhere, *written], key=itemgetter(0))]


_newest: tuple[tuple[Patch, ...], list[_LogFile]] = ((), [])


def _log_files(patches: tuple[Patch, ...]) -> list[_LogFile]:
    """Return the patched files of the log; those of the same tuple are found once."""
    global _newest  # noqa: PLW0603 (a cache by identity: to hash 10,000 patches takes longer than a frame)
    if _newest[0] is not patches:
        files: dict[str, _LogFile | None] = {}
        for number, patch in enumerate(patches):
            if patch.file not in files:
                path = Path(patch.file)
                start = parse_file_name(path.name) if is_in_log(path) else None
                files[patch.file] = None if start is None else _LogFile(patch.file, start)
            file = files[patch.file]
            if file is not None:
                file.add(number, patch)
        _newest = patches, [file for file in files.values() if file is not None]
    return _newest[1]


def file_changes(patches: Iterable[Patch], file: str, start: int, end: int) -> Changes:
    """Return the changed bytes of [start, end) of one file, named as patches name it."""
    first_values: dict[int, int | None] = {}
    values: dict[int, int] = {}
    for patch in patches:
        if patch.file != file:
            continue
        if isinstance(patch, RemoveFile | MoveFile):
            first_values, values = {}, {}
            continue
        for position, old, new in _bytes_of(patch, max(start, 0), end):
            first_values.setdefault(position, old)
            values[position] = new
    return {position: old for position, old in first_values.items() if old != values[position]}


def _bytes_of(patch: Patch, start: int, end: int) -> Iterator[tuple[int, int | None, int]]:
    """Yield (position, old byte, new byte) of what a patch writes into [start, end)."""
    match patch:
        case WriteBytes(offset=offset, old=old, new=new):
            for position in range(max(start, offset), min(end, offset + len(new))):
                yield position, old[position - offset], new[position - offset]
        case WriteFile(old=old, new=new):
            size = len(old) if old is not None else 0
            for position in range(start, min(end, len(new))):
                yield position, old[position] if old is not None and position < size else None, new[position]
        case _:
            return
