"""Rules over the bytes of an index file: header counts, slots and chains (docs/formats/index-file.md#layout, #insert).

Entries were written in the order of their numbers, so every link is known beforehand: an entry's ``prev`` is the newest
older entry of its slot. One pass over entries and slots proves the whole file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec.index import IndexHeader

Int64 = NDArray[np.int64]
ChainFault = Literal["pastCount", "loop", "skips"]
RULE_OF: dict[str, str] = {"pastCount": "IX02", "loop": "IX03", "skips": "IX09"}


class BadLink(NamedTuple):
    """An entry (or, with entry 0, a slot) whose link is not the one that its chain needs."""

    entry: int
    slot: int
    found: int
    expected: int
    kind: ChainFault


class Chains:
    """Follows all chains of one file at once: feed entries in order, then compare the slots."""

    def __init__(self, slots: int, count: int) -> None:
        self._slots = slots
        self._count = count  # number of the entry behind the newest
        self._newest = np.zeros(slots, np.int32)
        self._several = np.zeros(slots, bool)
        self._settled: NDArray[np.int32] | None = None
        self._since: list[Int64] = []
        self.bad: list[BadLink] = []
        self.total = 0

    def settle(self) -> None:
        """The entries that are fed from now on were being written while the slots were read: a slot may name the newest
        of its chain so far, or any of its chain that follow.
        """
        self._settled = self._newest.copy()

    def feed(self, first: int, hashes: Int64, links: Int64, most: int = 64) -> None:
        """Entries ``first``, ``first + 1`` … with their hashes and ``prev`` links; keeps the first ``most`` faults."""
        slots = np.abs(hashes) % self._slots
        if self._settled is not None:
            self._since.append(slots)
        numbers = np.arange(first, first + len(hashes), dtype=np.int32)
        expected = self._newest[slots]
        self._newest[slots] = numbers  # where a slot comes twice, its last entry stays
        again = slots[self._newest[slots] != numbers]
        if len(again):
            self._several[again] = True
            rows = np.flatnonzero(self._several[slots])
            self._several[again] = False
            rows = rows[np.argsort(slots[rows], kind="stable")]
            follows = np.flatnonzero(slots[rows[1:]] == slots[rows[:-1]]) + 1
            expected[rows[follows]] = numbers[rows[follows - 1]]
        wrong = np.flatnonzero(expected != links)
        self.total += len(wrong)
        for at in wrong[:most]:
            self.bad.append(self._fault(first + int(at), int(slots[at]), int(links[at]), int(expected[at])))

    def slots(self, stored: NDArray[np.int32], most: int = 64) -> list[BadLink]:
        """Slots that do not name the newest entry of their chain; 0 and values out of range count as none."""
        wrong = self._unexplained(stored, np.flatnonzero(stored != self._newest))
        found = []
        for slot in wrong[:most]:
            value, expected = int(stored[slot]), int(self._newest[slot])
            kind: ChainFault = "pastCount" if value >= self._count or value < 0 else "skips"
            found.append(BadLink(0, int(slot), value, expected, kind))
        self.total += len(wrong)
        return found

    def _unexplained(self, stored: NDArray[np.int32], wrong: NDArray[np.intp]) -> NDArray[np.intp]:
        """Of the slots ``wrong`` those that named no entry of their chain while it grew."""
        if self._settled is None:
            return wrong
        wrong = wrong[stored[wrong] != self._settled[wrong]]
        grown = np.concatenate([*self._since, np.zeros(0, np.int64)])
        nth = stored[wrong].astype(np.int64) - (self._count - len(grown))
        inside = (nth >= 0) & (nth < len(grown))
        named = np.full(len(wrong), -1, np.int64)
        named[inside] = grown[nth[inside]]
        unexplained: NDArray[np.intp] = wrong[named != wrong]
        return unexplained

    @property
    def used_slots(self) -> int:
        """Slots with at least one entry."""
        return int(np.count_nonzero(self._newest))

    def _fault(self, entry: int, slot: int, link: int, expected: int) -> BadLink:
        if entry <= link < self._count:
            kind: ChainFault = "loop"
        else:
            kind = "pastCount" if link >= self._count or link < 0 else "skips"
        return BadLink(entry, slot, link, expected, kind)


def with_changed_hash(bad: Sequence[BadLink]) -> int | None:
    """The entry that one chain misses and another has too much: its own hash is wrong, not the links around it."""
    missed = {link.expected: link.slot for link in bad if link.expected}
    both = [link.found for link in bad if link.found in missed and missed[link.found] != link.slot]
    return max(both, default=None)  # the older ones are only what the changed one links to


def link_words(bad: BadLink) -> str:
    """What was expected and what was found."""
    if bad.kind == "loop":
        goes_on = f"with entry {bad.expected:,}" if bad.expected else "nowhere"
        link = f"entry {bad.entry:,} links to itself" if bad.found == bad.entry else _loop(bad)
        return f"{link}: the chain is a loop, a query that comes here never ends; it should go on {goes_on}"
    what = f"slot {bad.slot:,} names" if not bad.entry else f"entry {bad.entry:,} links to"
    should = f"entry {bad.expected:,}" if bad.expected else "nothing"
    return f"{what} {bad.found:,}, its chain goes on with {should}"


def _loop(bad: BadLink) -> str:
    return f"entry {bad.entry:,} links to {bad.found:,}, which was written after it"


def header_faults(header: IndexHeader, used_slots: int, entries: int, first: int | None, last: int | None) -> list[str]:
    """What a header says otherwise than the file: ``entries`` and ``used_slots`` counted, first and last log offset."""
    faults = []
    if header.entries != entries:
        faults.append(f"the header counts {header.entries:,} entries, the file holds {entries:,}")
    if header.hash_slot_count not in (used_slots, entries):
        faults.append(f"the header counts {header.hash_slot_count:,} used slots, the file has {used_slots:,}")
    if first is not None and header.begin_phy_offset != first:
        faults.append(f"beginPhyOffset is {header.begin_phy_offset:,}, the first entry's is {first:,}")
    if last is not None and header.end_phy_offset != last:
        faults.append(f"endPhyOffset is {header.end_phy_offset:,}, the last entry's is {last:,}")
    return faults


def out_of_order(offsets: Int64) -> NDArray[np.bool_]:
    """Which log offsets break the rising order of their neighbours: a changed one, not all that follow it."""
    count = len(offsets)
    odd = np.zeros(count, bool)
    if count < 3:
        return odd
    for at in np.flatnonzero(offsets[1:] < offsets[:-1]):
        left, right = int(at), int(at) + 1
        if odd[left]:
            continue
        before = offsets[left - 1] if left else -1
        after = offsets[right + 1] if right + 1 < count else None
        if before <= offsets[right] and (after is None or offsets[left] > after or before > offsets[left]):
            odd[left] = True
        else:
            odd[right] = True
    return odd
