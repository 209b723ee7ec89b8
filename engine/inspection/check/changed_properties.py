"""Messages whose properties changed after the index was built: its entries remember keys that they lack (CL04)
(docs/formats/index-file.md#changed).

An entry proves this if it is as it was written: no chain, slot or header of its file is wrong, the entries of the
messages before and after it fit the log, and its seconds are those of the message. An index of another store has no
such entries: those beside them do not fit either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from engine.codec import index as codec
from engine.codec.index_builder import MAX_DIFFERENCE_S, time_difference
from engine.codec.index_keys import index_keys
from engine.codec.java import index_key_hash
from engine.codec.message import Unit
from engine.inspection.check.index import BadEntry, IndexAccount, IndexCheck
from engine.inspection.snapshot import StoreSnapshot
from engine.sentences import Sentence, plural, sentence

MAX_UNKNOWN_SHARE = 0.01
"""Share of the entries of a file up to which keys of an unknown kind are taken for keys that their messages lost."""


class ChangedProperties(NamedTuple):
    """A message with entries of keys that its properties lack."""

    unit: Unit
    file: str
    entries: tuple[BadEntry, ...]
    has_other_keys: bool
    """True if the index has a key that the message has: so its topic did not change."""

    @property
    def text(self) -> Sentence:
        """The message's change in words."""
        changed = sentence("its properties were overwritten")
        if not self.has_other_keys:
            changed = sentence("its properties or its topic were overwritten")
        return plural(
            "Unit of {size:,} bytes: {changed}: {file} has a key of it that it lacks (entry {entry:,}); the next start "
            "keeps it and delivers it",
            "Unit of {size:,} bytes: {changed}: {file} has {n:,} keys of it that it lacks (the first is entry "
            "{entry:,}); the next start keeps it and delivers it",
            size=self.unit.size,
            changed=changed,
            file=self.file.rpartition("/")[2],
            n=len(self.entries),
            entry=self.entries[0].number,
        )

    @property
    def evidence(self) -> dict[str, Any]:
        """The entries and the message."""
        first_entry = self.entries[0]
        return {
            "expected": sentence("a key or tags of this hash"),
            "found": sentence("none"),
            "keyHash": first_entry.key_hash,
            "indexFile": self.file.rpartition("/")[2],
            "entry": first_entry.number,
            "keys": len(self.entries),
            "message": f"{self.unit.topic}/{self.unit.queue_id}/{self.unit.queue_offset}",
        }


def changed_properties(
    store: StoreSnapshot, index: IndexCheck, wrong: Mapping[int, Sequence[BadEntry]], torn: Collection[int]
) -> Iterator[ChangedProperties]:
    """Yield the messages that the entries ``wrong`` (by the number of their file) prove to have lost properties.
    ``torn`` are messages that are known to have.
    """
    if index.bad_count > len(index.bad):  # so many that they show no single message
        return
    bad_offsets = {bad.physical for bad in index.bad}
    for number, entries in wrong.items():
        account = index.accounts[number]
        if not _is_intact(account):
            continue
        by_unit: dict[int, list[BadEntry]] = {}
        for bad in entries:
            if bad.unit_there and bad.physical not in torn:
                by_unit.setdefault(bad.physical, []).append(bad)
        are_rare = len(by_unit) <= max(account.entries * MAX_UNKNOWN_SHARE, 1)
        for offset, of_unit in by_unit.items():
            change = _change(store, account, offset, of_unit, bad_offsets - {offset}, are_rare=are_rare)
            if change is not None:
                yield change


def _is_intact(account: IndexAccount) -> bool:
    return (
        account.trouble is None
        and account.geometry is not None
        and account.rising
        and not (account.header_faults or account.links or account.slots or account.bad_links)
    )


def _change(
    store: StoreSnapshot,
    account: IndexAccount,
    offset: int,
    bad: Sequence[BadEntry],
    other_bad_offsets: Collection[int],
    *,
    are_rare: bool,
) -> ChangedProperties | None:
    unit = store.log.unit_at(offset, crc=False)
    if not isinstance(unit, Unit) or account.header is None:
        return None
    rows = {bad[0].number: entry} if (entry := account.reader.entry(bad[0].number)) is not None else {}
    neighbours = []
    for step in (-1, 1):
        number = bad[0].number + step
        while 0 < number <= account.entries and (entry := account.reader.entry(number)) is not None:
            if entry.phy_offset != offset:
                neighbours.append(entry.phy_offset)
                break
            rows[number] = entry
            number += step
    is_alone = bool(neighbours) and not any(neighbour in other_bad_offsets for neighbour in neighbours)
    if not is_alone or not all(_is_of_time(account.header, number, row, unit) for number, row in rows.items()):
        return None
    hashes = {row.key_hash for row in rows.values()}
    expected = {index_key_hash(unit.topic, key.text) for key in index_keys(unit.properties, tags=False)}
    if expected <= hashes and unit.unique_key is not None and not are_rare:
        return None  # it has all its keys: a later release may index more
    has_other_keys = len({entry.number for entry in bad}) < len(rows)
    return ChangedProperties(unit, account.reader.path, tuple(bad), has_other_keys)


def _is_of_time(header: codec.IndexHeader, number: int, entry: codec.IndexEntry, unit: Unit) -> bool:
    """Return True if an entry has the seconds of its message; the first of a file has no own."""
    seconds = time_difference(header.begin_timestamp, unit.store_timestamp)
    return number == 1 or entry.time_diff == min(seconds, MAX_DIFFERENCE_S)
