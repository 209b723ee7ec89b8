"""Files of the commit log that are of another log: a copy that went wrong, a file that was used again.

Some say so themselves: no unit of theirs is where it says it belongs. One of the same place in another store's log has
the right numbers; then the queues tell, whose entries lead to units in every file but this one. What a check finds
inside such a file is no finding of its own: the check begins again, and takes the file for lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from engine.codec.message import Unit
from engine.counted import counted
from engine.inspection.check.log import LogCheck, OtherFile
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile
from engine.rules import catalogue
from engine.rules.findings import Finding

MOST_FILES = 16
MOST_QUEUES = 64
MOST_ENTRIES = 16
"""Entries of a queue that are held against a file."""
LEAST_ENTRIES = 8
"""Fewer entries that lead nowhere can be faults of a queue."""
OF_THIS_LOG = 0.5
"""Share of the entries into a file that lead to units where the queues are this log's."""
WITNESSES = ("CQ04", "CQ05", "CQ12", "IX06")


class Seen(NamedTuple):
    """How many entries point into a file, and how many of them lead to a unit of their size."""

    entries: int
    units: int


def find(store: StoreSnapshot, found: Sequence[Finding], log: LogCheck) -> list[OtherFile]:
    """Files that are of another log, by what a check ``found``. Raises :class:`CannotRead`."""
    if store.paths is None or store.lock_state == "held" or len(store.log.files) < 2:
        return []
    others = [_by_place(store, file, units) for file, units in log.elsewhere()]
    told = {other.start for other in others}
    suspects = [file for file in _suspects(store, found) if file.start_offset not in told]
    if suspects:
        others += _by_queues(store, suspects, told)
    return sorted(others)


def _by_place(store: StoreSnapshot, file: ReadOnlyFile, units: int) -> OtherFile:
    """A file of which no unit is where it says."""
    first = next((one for one in store.units(file.start_offset, crc=False) if isinstance(one, Unit)), None)
    says = first.physical_offset if first is not None else -1
    text = f"none of its {counted(units, 'units')} is where it says, the first says {says:,}"
    there = store.log.unit_at(says, crc=False) if first is not None and says >= 0 else None
    source = store.log.sequence.find(says) if isinstance(there, Unit) else None
    if (
        first is not None
        and source is not None
        and store.log.read(says, first.size) == (store.log.read(first.offset, first.size))
    ):
        return OtherFile(file.start_offset, f"{text}: it is a copy of {source.path.rpartition('/')[2]}", says)
    return OtherFile(file.start_offset, f"{text}: it is of another log, or of another place of this one", says)


def _suspects(store: StoreSnapshot, found: Sequence[Finding]) -> list[ReadOnlyFile]:
    """Files into which entries of queues or of the index lead wrongly."""
    files: dict[int, ReadOnlyFile] = {}
    for one in found:
        points = one.evidence.get("found")
        if one.id not in WITNESSES or not isinstance(points, dict):
            continue
        at = points.get("physicalOffset", points.get("phyOffset"))
        file = store.log.sequence.find(at) if isinstance(at, int) and at >= 0 else None
        if file is not None:
            files[file.start_offset] = file
    return [files[start] for start in sorted(files)][:MOST_FILES]


def _by_queues(store: StoreSnapshot, suspects: Iterable[ReadOnlyFile], told: set[int]) -> Iterator[OtherFile]:
    """Those of ``suspects`` in which no entry of any queue finds its unit, while entries find theirs elsewhere."""
    every = chain.from_iterable(queues.values() for queues in store.topics().values())
    readers = list(islice((reader for reader in every if reader.kind == "simple"), MOST_QUEUES))
    others = []
    for file in suspects:
        seen = _held_against(store, readers, file)
        if seen.entries >= LEAST_ENTRIES and seen.units * MOST_ENTRIES <= seen.entries:
            others.append((file, seen))
    doubtful = {file.start_offset for file, _ in others} | told
    sound = [file for file in store.log.files if file.start_offset not in doubtful][:MOST_FILES]
    if not others or not any(_is_of_this_log(_held_against(store, readers, file)) for file in sound):
        return  # the queues may be the other store's
    for file, seen in others:
        share = f"{seen.units:,}" if seen.units else "none"
        text = f"{share} of {seen.entries:,} queue entries into it lead to a unit, and those into other files do"
        yield OtherFile(file.start_offset, f"{text}: it is of another log", -1)


def _is_of_this_log(seen: Seen) -> bool:
    return seen.entries >= LEAST_ENTRIES and seen.units >= seen.entries * OF_THIS_LOG


def _held_against(store: StoreSnapshot, readers: Iterable[QueueReader], file: ReadOnlyFile) -> Seen:
    entries = units = 0
    for reader in readers:
        for physical, size in _into(reader, file):
            unit = store.log.unit_at(physical, crc=False)
            entries += 1
            units += isinstance(unit, Unit) and unit.size == size
    return Seen(entries, units)


def _into(reader: QueueReader, file: ReadOnlyFile) -> Iterator[tuple[int, int]]:
    """(place, size) of the first entries of a queue that point into ``file``."""
    low, high = max(reader.sequence.min_offset, 0) // reader.unit_size, reader.valid_end // reader.unit_size
    end = high
    while low < high:
        middle = (low + high) // 2
        rows = reader.array(middle, middle + 1)
        if len(rows) and int(rows["physical_offset"][0]) >= file.start_offset:
            high = middle
        else:
            low = middle + 1
    rows = reader.array(low, min(low + MOST_ENTRIES, end))
    for physical, size in zip(rows["physical_offset"].tolist(), rows["size"].tolist(), strict=True):
        if file.start_offset <= physical < file.end_offset and size > 0:
            yield physical, size


def follow(found: Iterable[Finding], others: Sequence[tuple[int, int]]) -> Iterator[Finding]:
    """``found``, in which what a start leaves of such files (first and end byte of each), and a checkpoint that knows
    what stood there, follow from them.
    """
    for one in found:
        first, last = one.evidence.get("firstUnit", -1), one.evidence.get("lastUnit", -1)
        left = one.id == "RP01" and any(first >= start and last < end for start, end in others)
        caused = left or (one.id == "CK02" and bool(others))
        yield one.follows(catalogue.CL05.id) if caused and one.caused_by is None else one
