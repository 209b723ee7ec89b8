"""Mend the chains of index files: slots, links and counts follow from the hashes of the entries
(docs/formats/repair.md#index).

An entry of an index file holds the hash of its key, the offset of its message, and a link to the older entry of the
same slot. RocketMQ appends entries, so the links follow from the hashes alone::

    entry n: slot = hash % slots; link = newest entry before n in that slot; the slot holds its newest entry

Nothing is done in a file whose entries themselves are in doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.codec.dtypes import INDEX_ENTRY, INDEX_SLOT
from engine.codec.index import ENTRY_SIZE, HEADER_SIZE, Geometry
from engine.inspection.index_reader import IndexReader
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import WriteBytes
from engine.repair.queue_entries import differences
from engine.repair.repair import Repair
from engine.rules import mendable
from engine.rules.findings import Finding
from engine.sentences import plural, sentence

NAME = "index"
MAX_FILE_BYTES = 1 << 30
_DOUBTED_BY = frozenset({"IX06", "IX07", "IX08", "IX10", "IX11"})
"""Rules that report entries, files or an index of another store: hashes there prove nothing."""
_COUNTS_AT, _COUNTS_END = 32, 40
"""Position of the two counts in the header."""


def repair_index(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of the index files whose chains ``findings`` report; None if there is none.

    Raises :class:`engine.errors.CannotRead` if a file cannot be read.
    """
    reported = {finding.file for finding in findings if finding.id in mendable.INDEX}
    doubted = {finding.file for finding in findings if finding.id in _DOUBTED_BY}
    geometry = store.geometry.index
    if store.paths is None or geometry is None or not reported:
        return None
    patches: list[WriteBytes] = []
    mended = 0
    for reader in store.index_files():
        path = Path(reader.path)
        is_sure = reader.path in reported and not doubted & {reader.path, str(path.parent)}
        if not is_sure or reader.size != geometry.file_size or not path.is_relative_to(store.path):
            continue
        of_file = list(_patches(reader, geometry, path.relative_to(store.path).as_posix()))
        patches += of_file
        mended += bool(of_file)
    if not patches:
        return None
    gains = plural(
        "the chains of {n:,} index file are whole: queries by key find its messages again",
        "the chains of {n:,} index files are whole: queries by key find their messages again",
        n=mended,
    )
    return Repair(NAME, mendable.INDEX, sentence("Mend the chains of index files"), tuple(patches), gains)


def _patches(reader: IndexReader, geometry: Geometry, name: str) -> Iterator[WriteBytes]:
    old = reader.file.read(0, min(geometry.file_size, MAX_FILE_BYTES))
    if len(old) != geometry.file_size:
        return
    slots_end = geometry.entry_position(0)
    entries = np.frombuffer(old, INDEX_ENTRY, offset=slots_end).copy()
    is_written = (entries["phy_offset"] != 0) | (entries["key_hash"] != 0)
    is_written[0] = False
    count = int(np.flatnonzero(is_written)[-1]) if is_written.any() else 0
    if not is_written[1 : count + 1].all():
        return  # an entry of zeros between others: its key is unknown
    slot_of, newest = _chains(entries["key_hash"][1 : count + 1].astype(np.int64), geometry.slots)
    entries["prev"][1 : count + 1] = newest
    slots = np.zeros(geometry.slots, INDEX_SLOT)
    slots[slot_of] = np.arange(1, count + 1)  # of several entries in a slot the last one stays
    used = len(np.unique(slot_of))
    new = b"".join(
        (
            old[:_COUNTS_AT],
            used.to_bytes(4, "big"),
            (count + 1).to_bytes(4, "big"),
            old[_COUNTS_END:HEADER_SIZE],
            slots.tobytes(),
            entries.tobytes(),
            old[slots_end + ENTRY_SIZE * len(entries) :],
        )
    )
    why = sentence("slots and links of {file} as the hashes of its entries say them", file=reader.name)
    yield from differences(name, old, new, why, NAME)


def _chains(hashes: NDArray[np.int64], slots: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each entry's slot, and the number of the newest entry before it in that slot (0: none)."""
    slot_of = hashes % slots
    order = np.argsort(slot_of, kind="stable")
    numbers = order + 1
    previous = np.zeros(len(hashes), np.int64)
    same = slot_of[order][1:] == slot_of[order][:-1]
    previous[order[1:][same]] = numbers[:-1][same]
    return slot_of, previous
