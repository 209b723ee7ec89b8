"""The bytes that patches change, for the hex view while the store is shown as patched. No Qt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from engine.files.layout import parse_file_name
from engine.patching.patches import MoveFile, Patch, RemoveFile, WriteBytes, WriteFile
from viewer.pane.finding_facts import is_in_log

Changes = Mapping[int, int | None]
"""The old value of each changed byte by its offset; None for a byte that was not there before."""


def log_changes(patches: tuple[Patch, ...], start: int, end: int) -> Changes:
    """Return the changed bytes of [start, end) of the commit log."""
    changes: dict[int, int | None] = {}
    for file, (file_start, file_patches) in _log_patches(patches).items():
        near = [patch for patch in file_patches if _may_write(patch, start - file_start, end - file_start)]
        found = file_changes(near, file, start - file_start, end - file_start) if near else {}
        changes |= {file_start + position: old for position, old in found.items()}
    return changes


@lru_cache(maxsize=1)
def _log_patches(patches: tuple[Patch, ...]) -> Mapping[str, tuple[int, list[Patch]]]:
    """Return the patches of each log file, with the offset at which the file begins."""
    by_file: dict[str, tuple[int, list[Patch]]] = {}
    starts: dict[str, int | None] = {}
    for patch in patches:
        if patch.file not in starts:
            file = Path(patch.file)
            starts[patch.file] = parse_file_name(file.name) if is_in_log(file) else None
        start = starts[patch.file]
        if start is not None:
            by_file.setdefault(patch.file, (start, []))[1].append(patch)
    return by_file


def _may_write(patch: Patch, start: int, end: int) -> bool:
    """Return False if the patch writes bytes, and none of them into [start, end) of its file."""
    return not isinstance(patch, WriteBytes) or (patch.offset < end and patch.offset + len(patch.new) > start)


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
