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
from engine.sentences import plural, sentence

Int64 = NDArray[np.int64]
ChainFault = Literal["pastCount", "loop", "skips"]
RULE_OF: dict[str, str] = {"pastCount": "IX02", "loop": "IX03", "skips": "IX09"}


class BadLink(NamedTuple):
    """An entry (or, with entry 0, a slot) with a link that does not fit its chain."""

    entry: int
    slot: int
    actual: int
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
        self._slots_since_settled: list[Int64] = []
        self.bad: list[BadLink] = []
        self.total = 0

    def settle(self) -> None:
        """The entries added from now on were being written while the slots were read: a slot may name the newest entry
        of its chain so far, or a later one.
        """
        self._settled = self._newest.copy()

    def feed(self, first_number: int, hashes: Int64, links: Int64, max_faults: int = 64) -> None:
        """Add entries ``first_number``, ``first_number + 1`` … with their hashes and ``prev`` links; keeps the first
        ``max_faults`` faults.
        """
        slots = np.abs(hashes) % self._slots
        if self._settled is not None:
            self._slots_since_settled.append(slots)
        numbers = np.arange(first_number, first_number + len(hashes), dtype=np.int32)
        expected = self._newest[slots]
        self._newest[slots] = numbers  # if a slot occurs twice, its last entry remains
        repeated_slots = slots[self._newest[slots] != numbers]
        if len(repeated_slots):
            self._several[repeated_slots] = True
            rows = np.flatnonzero(self._several[slots])
            self._several[repeated_slots] = False
            rows = rows[np.argsort(slots[rows], kind="stable")]
            follows = np.flatnonzero(slots[rows[1:]] == slots[rows[:-1]]) + 1
            expected[rows[follows]] = numbers[rows[follows - 1]]
        wrong = np.flatnonzero(expected != links)
        self.total += len(wrong)
        for row in wrong[:max_faults]:
            self.bad.append(self._fault(first_number + int(row), int(slots[row]), int(links[row]), int(expected[row])))

    def slots(self, stored: NDArray[np.int32], max_faults: int = 64) -> list[BadLink]:
        """Slots that do not name the newest entry of their chain; 0 and values out of range count as no entry."""
        wrong = self._unexplained(stored, np.flatnonzero(stored != self._newest))
        bad_slots = []
        for slot in wrong[:max_faults]:
            value, expected = int(stored[slot]), int(self._newest[slot])
            kind: ChainFault = "pastCount" if value >= self._count or value < 0 else "skips"
            bad_slots.append(BadLink(0, int(slot), value, expected, kind))
        self.total += len(wrong)
        return bad_slots

    def _unexplained(self, stored: NDArray[np.int32], wrong: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the slots of ``wrong`` that never named an entry of their chain while it grew."""
        if self._settled is None:
            return wrong
        wrong = wrong[stored[wrong] != self._settled[wrong]]
        grown = np.concatenate([*self._slots_since_settled, np.zeros(0, np.int64)])
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
    """The entry that one chain lacks and another has in excess: its own hash is wrong, not the links around it."""
    missed = {link.expected: link.slot for link in bad if link.expected}
    in_other_chain = [link.actual for link in bad if link.actual in missed and missed[link.actual] != link.slot]
    return max(in_other_chain, default=None)  # the older ones are only targets of the changed one


def link_words(bad: BadLink) -> str:
    """Describe the expected and the actual link."""
    if bad.kind == "loop":
        link = (
            sentence("entry {n:,} links to itself", n=bad.entry)
            if bad.actual == bad.entry
            else sentence("entry {n:,} links to {other:,}, which was written after it", n=bad.entry, other=bad.actual)
        )
        if not bad.expected:
            return sentence(
                "{link}: the chain is a loop, a query that comes here never ends; it should end here", link=link
            )
        return sentence(
            "{link}: the chain is a loop, a query that comes here never ends; it should continue with entry {next:,}",
            link=link,
            next=bad.expected,
        )
    should = sentence("entry {n:,}", n=bad.expected) if bad.expected else sentence("nothing")
    if not bad.entry:
        return sentence(
            "slot {slot:,} names {found:,}, its chain continues with {should}",
            slot=bad.slot,
            found=bad.actual,
            should=should,
        )
    return sentence(
        "entry {entry:,} links to {found:,}, its chain continues with {should}",
        entry=bad.entry,
        found=bad.actual,
        should=should,
    )


def header_faults(
    header: IndexHeader, used_slots: int, entries: int, first_offset: int | None, last_offset: int | None
) -> list[str]:
    """Differences between a header and its file: the counted ``entries`` and ``used_slots``, the first and last log
    offset.
    """
    faults: list[str] = []
    if header.entries != entries:
        faults.append(
            plural(
                "the header counts {n:,} entry, the file holds {found:,}",
                "the header counts {n:,} entries, the file holds {found:,}",
                n=header.entries,
                found=entries,
            )
        )
    if header.hash_slot_count not in (used_slots, entries):
        faults.append(
            plural(
                "the header counts {n:,} used slot, the file has {found:,}",
                "the header counts {n:,} used slots, the file has {found:,}",
                n=header.hash_slot_count,
                found=used_slots,
            )
        )
    if first_offset is not None and header.begin_phy_offset != first_offset:
        faults.append(
            sentence("beginPhyOffset is {a:,}, the first entry's is {b:,}", a=header.begin_phy_offset, b=first_offset)
        )
    if last_offset is not None and header.end_phy_offset != last_offset:
        faults.append(
            sentence("endPhyOffset is {a:,}, the last entry's is {b:,}", a=header.end_phy_offset, b=last_offset)
        )
    return faults


def out_of_order(offsets: Int64) -> NDArray[np.bool_]:
    """Mark log offsets that break the rising order of their neighbours: only the changed one, not all that
    follow it.
    """
    count = len(offsets)
    odd = np.zeros(count, bool)
    if count < 3:
        return odd
    for row in np.flatnonzero(offsets[1:] < offsets[:-1]):
        left_row, right_row = int(row), int(row) + 1
        if odd[left_row]:
            continue
        previous_offset = offsets[left_row - 1] if left_row else -1
        next_offset = offsets[right_row + 1] if right_row + 1 < count else None
        if previous_offset <= offsets[right_row] and (
            next_offset is None or offsets[left_row] > next_offset or previous_offset > offsets[left_row]
        ):
            odd[left_row] = True
        else:
            odd[right_row] = True
    return odd


class IndexRange(NamedTuple):
    """An index file in the order of names: the time in its name (None if it is no time) and that of its first message
    (ms), and the log offsets to which its first and last entry point.
    """

    name_ms: int | None
    begin_ms: int
    start: int
    end: int


SUMMER_TIME_MS = 3_600_000
CREATION_MS = 5_000
"""How much later than its first message an index file is created, at most, unless it was built again."""


def out_of_name_order(files: Sequence[IndexRange]) -> list[int]:
    """Numbers of the files whose names put them among files with other parts of the log.

    A start after a crash may index a part of the log again, in later files. So a file counts only if no other file has
    entries of its part.
    """
    longest, previous = [1] * len(files), [-1] * len(files)
    for number, file in enumerate(files):
        for earlier in range(number):
            if files[earlier].end <= file.start and longest[earlier] >= longest[number]:
                longest[number], previous[number] = longest[earlier] + 1, earlier
    number = max(range(len(files)), key=lambda candidate: longest[candidate], default=-1)
    in_order = set()
    while number >= 0:
        in_order.add(number)
        number = previous[number]
    return [number for number in range(len(files)) if number not in in_order and _is_alone(files, number)]


def _is_alone(files: Sequence[IndexRange], number: int) -> bool:
    file = files[number]
    return not any(
        other_file.start < file.end and file.start < other_file.end
        for index, other_file in enumerate(files)
        if index != number
    )


def usual_distance(files: Sequence[IndexRange]) -> int:
    """The usual difference (ms) between the time in a file's name and its first message: the broker's time zone,
    mostly.
    """
    distances = sorted(file.name_ms - file.begin_ms for file in files if file.name_ms is not None)
    return distances[len(distances) // 2] if distances else 0


def is_of_the_clock(file: IndexRange, ordered: Sequence[IndexRange]) -> bool:
    """Return True if the clock explains the name of ``file``: summer time ended, or the clock was set back with its
    messages. ``ordered`` are the files whose names follow their content.
    """
    if file.name_ms is None:
        return False
    off = abs(file.name_ms - file.begin_ms - usual_distance(ordered))
    if abs(off - SUMMER_TIME_MS) <= CREATION_MS:
        return True
    earlier = [other_file.begin_ms for other_file in ordered if other_file.end <= file.start]
    return off <= CREATION_MS and bool(earlier) and file.begin_ms < max(earlier)
