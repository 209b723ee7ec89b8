"""The release whose rules apply to an opened store: the one that the user names, else a guess from its traces.

The guess is :mod:`engine.store.written_release`'s, and always reported as a guess.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec.index_keys import TAG, index_keys, key_text
from engine.codec.java import index_key_hash
from engine.codec.message import Unit
from engine.errors import CannotRead, CorruptUnit
from engine.releases import NEWEST, Release
from engine.store import written_release
from engine.store.written_release import TagEntries, WrittenRelease

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


MAX_SAMPLED_ENTRIES = 256
"""Number of newest entries of an index file that are searched for tag entries."""


def require_release(store: StoreSnapshot) -> Release:
    """Return the release that the user names, else the one that probably wrote the store, else the newest.

    Raises :class:`CannotRead`.
    """
    if store.release is not None:
        return store.release
    written = guess(store)
    return NEWEST if written is None else written[0]


def release_of(store: StoreSnapshot) -> Release:
    """Return what :func:`require_release` returns, or the newest release if a file cannot be read."""
    with contextlib.suppress(CannotRead):
        return require_release(store)
    return NEWEST


class _SnapshotFiles:
    """A snapshot's files as :class:`engine.store.written_release.StoreFiles`."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store

    def exists(self, path: Path) -> bool:
        return self._store.reading.exists(path)

    def read(self, path: Path) -> bytes | None:
        return self._store.small_file(path)

    def names(self, folder: Path) -> list[str]:
        return [entry.name for entry in self._store.reading.entries(folder)]


def guess(store: StoreSnapshot) -> WrittenRelease | None:
    """Return the release that probably wrote the store, with the evidence; None without evidence.

    The guess is kept until the store is refreshed: a check asks for the release some fifteen times, and each guess
    looks at a dozen files. Raises :class:`CannotRead`.
    """
    if store.paths is None:
        return None
    kept = store.guessed_release  # another thread may refresh meanwhile
    if kept is None:
        files = _SnapshotFiles(store)
        kept = store.guessed_release = (written_release.guess(store.paths, files, lambda: sample_tag_entries(store)),)
    return kept[0]


def sample_tag_entries(store: StoreSnapshot) -> TagEntries | None:
    """Count how many of the newest indexed units with tags have an entry for their tags; None without an index, and of
    a capsule that masks keys.

    Raises :class:`CannotRead`.
    """
    if store.capsule is not None and store.capsule.masks_units:
        return None
    for reader in reversed(store.index.files(note_undecoded=False)):
        try:
            entry_count = reader.header.entries
            numbers = range(max(entry_count - MAX_SAMPLED_ENTRIES, 0) + 1, entry_count + 1)
            entries = [entry for number in numbers if (entry := reader.entry(number))]
        except CorruptUnit:
            continue
        if entries and entry_count > MAX_SAMPLED_ENTRIES:  # the first unit may have only some of its entries here
            entries = [entry for entry in entries if entry.phy_offset != entries[0].phy_offset]
        hashes: dict[int, set[int]] = {}
        for entry in entries:
            hashes.setdefault(entry.phy_offset, set()).add(entry.key_hash)
        units = with_entry = 0
        for offset, key_hashes in hashes.items():
            unit = store.log.unit_at(offset, crc=False)
            if not isinstance(unit, Unit) or not unit.tags:
                continue
            if any(index_key_hash(unit.topic, key.text) in key_hashes for key in index_keys(unit.properties)):
                units += 1  # an index of another store has entries that point here, but with none of the unit's keys
                with_entry += index_key_hash(unit.topic, key_text(unit.tags, TAG)) in key_hashes
        if units:
            return TagEntries(units, with_entry)
    return None
