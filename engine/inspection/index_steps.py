"""The entries of two sets of index files in step: what only one of them has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from engine.inspection.index_reader import IndexReader

BLOCK_ENTRIES = 8192
"""Entries that are compared at once."""
MAX_COUNTED_ENTRIES = 1 << 21
"""Entries of each index whose key hashes are in memory at once."""


class IndexEntries:
    """Reads the entries of several index files in sequence, skipping those that point below ``min_offset``."""

    def __init__(self, files: list[IndexReader], min_offset: int) -> None:
        self._files, self._least = files, min_offset
        self._file, self._next = 0, 1
        self.number = 1
        self.block: np.ndarray | None = None

    @property
    def name(self) -> str:
        """Name of the file of the entry in front."""
        return self._files[min(self._file, len(self._files) - 1)].name if self._files else ""

    def fill(self) -> bool:
        """Load a block so that an entry is in front; return False at the end."""
        import numpy as np

        from engine.codec.dtypes import INDEX_ENTRY

        while self.block is None or not len(self.block):
            if self._file >= len(self._files):
                return False
            file = self._files[self._file]
            geometry = file.geometry
            count = min(BLOCK_ENTRIES, file.last_entry + 1 - self._next) if geometry is not None else 0
            if geometry is None or count <= 0:
                if self._file + 1 >= len(self._files):
                    return False
                self._file, self._next = self._file + 1, 1
                continue
            data = file.file.read(geometry.entry_position(self._next), count * INDEX_ENTRY.itemsize)
            block = np.frombuffer(data[: len(data) // INDEX_ENTRY.itemsize * INDEX_ENTRY.itemsize], INDEX_ENTRY)
            self.number, self._next = self._next, self._next + count
            valid_entries = np.flatnonzero(block["phy_offset"] >= self._least)
            skipped = int(valid_entries[0]) if len(valid_entries) else len(block)
            self.block, self.number = block[skipped:], self.number + skipped
        return True

    def skip(self, count: int = 1) -> None:
        """Advance past ``count`` entries."""
        assert self.block is not None
        self.block, self.number = self.block[count:], self.number + count


def skip_equal(store_entries: IndexEntries, built_entries: IndexEntries) -> tuple[int, bool]:
    """Skip the entries that are equal; return their number, and whether the two in front then differ."""
    import numpy as np

    store_block, built_block = store_entries.block, built_entries.block
    assert store_block is not None
    assert built_block is not None
    count = min(len(store_block), len(built_block))
    differing = np.flatnonzero(
        (store_block["phy_offset"][:count] != built_block["phy_offset"][:count])
        | (store_block["key_hash"][:count] != built_block["key_hash"][:count])
    )
    equal_count = int(differing[0]) if len(differing) else count
    store_entries.skip(equal_count)
    built_entries.skip(equal_count)
    return equal_count, bool(len(differing))


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an index file by its number, and the physical offset it points at."""

    file: str
    number: int
    offset: int


def step_index(
    check: Callable[[], None], files: list[IndexReader], other_files: list[IndexReader], min_offset: int
) -> Iterator[tuple[Entry | None, Entry | None]]:
    """Yield the entries that only one of two sets of index files has, from ``min_offset`` on, in their order.

    The file an entry is in does not matter: entries are equal if key hash and physical offset are. ``check`` may raise
    to stop.
    """
    first_entries, second_entries = IndexEntries(files, min_offset), IndexEntries(other_files, min_offset)
    while True:
        check()
        in_first, in_second = first_entries.fill(), second_entries.fill()
        if not in_first and not in_second:
            return
        if in_first and in_second:
            if not skip_equal(first_entries, second_entries)[1]:
                continue
            in_first, in_second = (
                front_offset(first_entries) <= front_offset(second_entries),
                front_offset(second_entries) <= front_offset(first_entries),
            )
        yield (_take_entry(first_entries) if in_first else None), (_take_entry(second_entries) if in_second else None)


def _take_entry(entries: IndexEntries) -> Entry:
    entry = Entry(entries.name, entries.number, front_offset(entries))
    entries.skip()
    return entry


def front_offset(entries: IndexEntries) -> int:
    """Return the physical offset of the entry in front."""
    assert entries.block is not None
    return int(entries.block["phy_offset"][0])


def sum_key_hashes(check: Callable[[], None], files: list[IndexReader]) -> tuple[int, int]:
    """Return the number of entries in all files, and a sum over their key hashes that does not depend on their order.
    ``check`` may raise to stop.
    """
    import numpy as np

    entries, count, total = IndexEntries(files, 0), 0, 0
    while entries.fill():
        check()
        assert entries.block is not None
        hashes = entries.block["key_hash"].astype(np.uint64) + np.uint64(1)
        count += len(hashes)
        # cubes: two other hashes with the same sum of values rarely have the same sum of cubes
        total = (total + int((hashes * hashes * hashes).sum())) & 0xFFFF_FFFF_FFFF_FFFF
        entries.skip(len(entries.block))
    return count, total


def count_key_hashes(
    check: Callable[[], None], files: list[IndexReader], part: int, parts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the key hashes of number ``part`` modulo ``parts``, sorted, and how many entries each has."""
    import numpy as np

    entries = IndexEntries(files, 0)
    blocks = [np.zeros(0, np.uint32)]
    while entries.fill():
        check()
        assert entries.block is not None
        hashes = entries.block["key_hash"].astype(np.uint32)
        blocks.append(hashes[hashes % np.uint32(parts) == part] if parts > 1 else hashes)
        entries.skip(len(entries.block))
    return np.unique(np.concatenate(blocks), return_counts=True)
