"""Reads one index file of a store, without writing.

RocketMQ does not store the numbers of slots and entries in the file (docs/formats/index-file.md#layout): they come from
the configuration, or are derived (:mod:`engine.codec.index`).

Also counts how full the hash slots are: chain lengths slot by slot (docs/formats/index-file.md#layout, #insert). The
count reads the whole entry table once, in pieces, and assigns every entry to its slot (keyHash mod number of slots). It
follows no links, so a loop cannot stop it. numpy is imported when the count begins.
"""

from __future__ import annotations

import contextlib
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.callbacks import Cancelled
from engine.codec import index as codec
from engine.codec.index import ENTRY_SIZE, Geometry, IndexHeader, derive_geometry
from engine.errors import CannotRead, CorruptUnit
from engine.files.layout import parse_file_name
from engine.mapped.read_only import DescriptorCache, ReadOnlyFile
from engine.sentences import sentence

if TYPE_CHECKING:
    import numpy as np

_CHUNK = 4096
_I32 = struct.Struct(">i")


def list_index(folder: Path, cache: DescriptorCache) -> tuple[list[ReadOnlyFile], CannotRead | None]:
    """Index files by name, and why there may be more; names that are not numbers are left out, as RocketMQ does."""
    files: list[ReadOnlyFile] = []
    trouble: CannotRead | None = None
    try:
        listed = cache.reading.entries(folder)
    except CannotRead as error:
        return files, error
    for entry in listed:
        if parse_file_name(entry.name) is not None:
            try:
                info = cache.reading.entry_status(entry)
            except CannotRead as error:
                trouble = error
                continue
            if stat.S_ISREG(info.st_mode):
                files.append(ReadOnlyFile(entry.path, 0, info.st_size, cache, (info.st_dev, info.st_ino)))
    return files, trouble


def misnamed(folder: Path, cache: DescriptorCache, size: int) -> list[str]:
    """Files of an index file's ``size`` (bytes) whose name is not a number: RocketMQ skips them."""
    paths = []
    with contextlib.suppress(CannotRead):
        for entry in cache.reading.entries(folder):
            if parse_file_name(entry.name) is None:
                info = cache.reading.entry_status(entry)
                if stat.S_ISREG(info.st_mode) and info.st_size == size:
                    paths.append(entry.path)
    return paths


def stored_count(file: ReadOnlyFile) -> int:
    """Number of entries in the header; 0 if it cannot be read."""
    try:
        head = file.read(0, codec.HEADER_SIZE)
    except CannotRead:
        return 0
    return codec.decode_header(head).entries if len(head) == codec.HEADER_SIZE else 0


def index_geometry(file: ReadOnlyFile) -> tuple[codec.Geometry | None, str]:
    """Slots and entries of a file and how they are known; None and the reason if it cannot be read.

    ``reading`` has noted the error, and the other files can still be used.
    """
    try:
        return derive_geometry(file)
    except CannotRead as error:
        return None, error.what


MAX_IN_MEMORY_BYTES = 1 << 18


class _FileInMemory(ReadOnlyFile):
    """The bytes of a small file at one moment."""

    __slots__ = ("_data",)

    def __init__(self, file: ReadOnlyFile) -> None:
        super().__init__(file.path, file.start_offset, file.size, DescriptorCache(1), file.identity)
        self._data = file.read(0, file.size)

    def read(self, position: int, size: int) -> bytes:
        return self._data[position : position + size] if size > 0 and position >= 0 else b""


class IndexReader:
    """Reads one index file; every access reads the header again, because a broker may be writing it."""

    def __init__(self, file: ReadOnlyFile, geometry: codec.Geometry | None, geometry_source: str) -> None:
        self.file = file
        self.geometry = geometry
        self.geometry_source = geometry_source

    def in_memory(self) -> IndexReader:
        """Return a reader of the bytes that a small file has now, read at once; for a larger file this one.

        Raises :class:`CannotRead`.
        """
        if self.file.size > MAX_IN_MEMORY_BYTES:
            return self
        return IndexReader(_FileInMemory(self.file), self.geometry, self.geometry_source)

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def header(self) -> codec.IndexHeader:
        """The header; raises :class:`CorruptUnit` if the file is shorter than one."""
        data = self.file.read(0, codec.HEADER_SIZE)
        if len(data) < codec.HEADER_SIZE:
            raise CorruptUnit(
                sentence("expected a header of {size} bytes, found {found:,}", size=codec.HEADER_SIZE, found=len(data)),
                file=self.file.path,
                offset=0,
            )
        return codec.decode_header(data)

    @property
    def slots(self) -> int:
        """Number of hash slots; raises :class:`CorruptUnit` if it could not be determined."""
        return self._known().slots

    @property
    def last_entry(self) -> int:
        """Number of the newest entry: the header's count, limited to the capacity of the file."""
        return min(self.header.entries, self._known().entries - 1)

    def slot(self, number: int) -> int:
        """Newest entry of a slot's chain, 0 for none."""
        data = self.file.read(self._known().slot_position(number), codec.SLOT_SIZE)
        return int(_I32.unpack(data)[0]) if len(data) == codec.SLOT_SIZE else 0

    def entry(self, number: int) -> codec.IndexEntry | None:
        """An entry by its number (from 1), or None if the file does not hold it."""
        geometry = self._known()
        if not 0 < number < geometry.entries:
            return None
        data = self.file.read(geometry.entry_position(number), codec.ENTRY_SIZE)
        return codec.decode_entry(data) if len(data) == codec.ENTRY_SIZE else None

    def entries(self, start: int = 1, stop: int | None = None) -> Iterator[tuple[int, codec.IndexEntry]]:
        """(number, entry) from ``start`` to ``stop`` (exclusive; default: behind the newest)."""
        end = self.last_entry + 1 if stop is None else min(stop, self._known().entries)
        number = max(start, 1)
        while number < end:
            count = min(_CHUNK, end - number)
            data = self.file.read(self._known().entry_position(number), count * codec.ENTRY_SIZE)
            if len(data) < codec.ENTRY_SIZE:
                return
            for position in range(0, len(data) - codec.ENTRY_SIZE + 1, codec.ENTRY_SIZE):
                yield number, codec.decode_entry(data, position)
                number += 1

    def array(self, start: int, stop: int) -> np.ndarray:
        """Entries [start, stop) as rows of ``dtypes.INDEX_ENTRY``; shorter at the end of the file."""
        import numpy as np

        from engine.codec.dtypes import INDEX_ENTRY

        stop = min(stop, self._known().entries)
        data = self.file.read(self._known().entry_position(start), max(stop - start, 0) * codec.ENTRY_SIZE)
        return np.frombuffer(data[: len(data) - len(data) % codec.ENTRY_SIZE], INDEX_ENTRY)

    def _known(self) -> codec.Geometry:
        if self.geometry is None:
            raise CorruptUnit(
                sentence("the numbers of slots and entries are not known: {why}", why=self.geometry_source),
                file=self.file.path,
                offset=0,
            )
        return self.geometry


PIECE = 1 << 20
MAX_BAR_LENGTH = 10


@dataclass(frozen=True, slots=True)
class SlotLoad:
    """Result of a slot count.

    ``cells``: mean chain length of equal ranges of slots; ``histogram``: slots with 0, 1, … entries, the last bar
    counts all longer ones; ``longest``: the longest chain and its slot; ``bad``: entries whose hash is below zero.
    """

    slots: int
    entries: int
    used: int
    cells: tuple[float, ...]
    histogram: tuple[int, ...]
    longest: int
    longest_slot: int
    bad: int
    complete: bool


def count_slots(
    read: Callable[[int, int], bytes],
    header: IndexHeader,
    geometry: Geometry,
    cells: int = 896,
    cancelled: Cancelled = lambda: False,
    progress: Callable[[int, int], None] | None = None,
) -> SlotLoad:
    """Count the entries of every slot.

    ``read(position, size)`` returns bytes of the file, fewer at its end. ``cells`` is the number of ranges (at most
    one per slot). ``progress(done, total)`` receives entries. ``cancelled`` ends the count early; ``complete`` is then
    False.
    """
    import numpy as np

    from engine.codec.dtypes import INDEX_ENTRY

    slots = max(1, geometry.slots)
    lengths = np.zeros(slots, dtype=np.int64)
    total = min(header.entries, max(0, geometry.entries - 1))
    done = bad = 0
    complete = True
    while done < total:
        if cancelled():
            complete = False
            break
        entry_count = min(PIECE, total - done)
        raw = read(geometry.entry_position(1 + done), entry_count * ENTRY_SIZE)
        got = len(raw) // ENTRY_SIZE
        if got == 0:
            complete = False
            break
        hashes = np.frombuffer(raw, INDEX_ENTRY, got)["key_hash"].astype(np.int64)
        real = hashes[hashes >= 0]
        bad += got - len(real)
        lengths += np.bincount(real % slots, minlength=slots)
        done += got
        if progress is not None:
            progress(done, total)
    bars = np.bincount(np.minimum(lengths, MAX_BAR_LENGTH), minlength=MAX_BAR_LENGTH + 1)
    count = max(1, min(cells, slots))
    edges = np.linspace(0, slots, count + 1).astype(np.int64)
    means = np.add.reduceat(lengths, edges[:-1]) / np.maximum(np.diff(edges), 1)
    longest = int(lengths.argmax())
    return SlotLoad(
        slots=slots,
        entries=done,
        used=int(np.count_nonzero(lengths)),
        cells=tuple(float(mean) for mean in means),
        histogram=tuple(int(bar) for bar in bars),
        longest=int(lengths[longest]),
        longest_slot=longest,
        bad=bad,
        complete=complete,
    )


def cell_of(slot: int, slots: int, cells: int) -> int:
    """Number of the range that contains ``slot``, as divided by :func:`count_slots`."""
    return min(cells - 1, max(0, ((slot + 1) * cells - 1) // max(1, slots)))
