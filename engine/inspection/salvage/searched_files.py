"""Lists the bytes that are searched: ranges of the store's own files, and images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.errors import CannotRead
from engine.inspection.salvage.store_units import StoreUnits
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.mapped.image_file import ImageFile
from engine.mapped.reading import Reading


class Readable(Protocol):
    """A file whose bytes are searched."""

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def reads_by_itself(self) -> bool: ...

    def descriptor(self) -> int: ...

    def read(self, position: int, size: int) -> bytes: ...

    def read_into(self, view: memoryview, position: int) -> int: ...

    def extents(self, position: int) -> list[tuple[int, int]]: ...


@dataclass(slots=True)
class Source:
    """A file and the ranges of it to search. ``start_offset`` is the offset of its first byte in the log; None for an
    image.
    """

    file: Readable
    ranges: list[tuple[int, int]]
    start_offset: int | None = None

    @property
    def bytes_to_search(self) -> int:
        """Bytes in the ranges."""
        return sum(stop - start for start, stop in self.ranges)


def own_sources(store: StoreSnapshot, units: StoreUnits) -> list[Source]:
    """Return the files of the log with the ranges in which the walk found no whole units: damage, units with a wrong
    CRC, the bytes behind a blank and behind the log's end.
    """
    ranges = [(damage.offset, damage.offset + damage.size) for damage in units.damage if not damage.unread]
    ranges += [(offset, offset + size) for offset, size in [*units.bad, *units.doubtful]]
    sources = []
    for file in store.log.files:
        file_ranges = [(max(start, file.start_offset), min(stop, file.end_offset)) for start, stop in ranges]
        file_ranges += [(offset, file.end_offset) for offset, _ in units.blanks if file.start_offset <= offset]
        file_ranges.append((max(units.end_offset, file.start_offset), file.end_offset))
        merged = _merged(
            [(start - file.start_offset, stop - file.start_offset) for start, stop in file_ranges if start < stop]
        )
        sources.append(Source(file, list(_with_data(file, merged)), file.start_offset))
    return sources


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], stop)
        else:
            merged.append((start, stop))
    return merged


def _with_data(file: Readable, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of ``ranges`` for which the file system holds data: holes read as zeros."""
    if not ranges:
        return
    try:
        extents = file.extents(ranges[0][0])
    except CannotRead:
        extents = [(0, file.size)]
    for start, stop in ranges:
        for data_start, data_stop in extents:
            if max(start, data_start) < min(stop, data_stop):
                yield max(start, data_start), min(stop, data_stop)


def image_source(image: ImageFile) -> Source:
    """Return all of an image that holds data."""
    return Source(image, _merged(image.extents()))


def files_of(path: str | Path) -> list[str]:
    """Return the files to search in ``path``: the log files if it is a store or its log's folder, else ``path``."""
    if not Path(path).is_dir():
        return [str(path)]
    with open_store(path) as store:
        return [file.path for file in store.log.files]


@contextmanager
def open_images(paths: Iterable[str | Path]) -> Iterator[list[ImageFile]]:
    """Open everything that :func:`files_of` the paths names, until the end of the block. Raises :class:`CannotRead`."""
    reading = Reading()
    images: list[ImageFile] = []
    try:
        for path in paths:
            for file in files_of(path):
                images.append(ImageFile(file, reading))
        yield images
    finally:
        for image in images:
            image.close()
