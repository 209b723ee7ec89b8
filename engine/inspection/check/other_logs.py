"""Finds files of the commit log that belong to another log: a copy that went wrong, a file that was reused.

Some show it themselves: none of their units is at its own offset. A file from the same place in another store's log has
the right offsets; then the queues show it: their entries point to units in every file but this one. Findings inside
such a file are meaningless: the check starts again and treats the file as lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from engine.codec.message import Unit
from engine.english import counted
from engine.inspection.check.log import LogCheck, OtherFile
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile
from engine.rules import catalogue
from engine.rules.findings import Finding

MOST_FILES = 16
MOST_QUEUES = 64
MOST_ENTRIES = 16
"""Number of a queue's entries that are compared with a file."""
LEAST_ENTRIES = 8
"""Fewer entries that point nowhere may be faults of a queue."""
OF_THIS_LOG = 0.5
"""Share of the entries into a file that point to units if the queues belong to this log."""
WITNESSES = ("CQ04", "CQ05", "CQ12", "IX06")


class EntryCount(NamedTuple):
    """Number of entries that point into a file, and how many of them point to a unit of their size."""

    entries: int
    units: int


def find(store: StoreSnapshot, findings: Sequence[Finding], log: LogCheck) -> list[OtherFile]:
    """Find files of another log from the ``findings`` of a check. Raises :class:`CannotRead`."""
    if store.paths is None or store.lock_state == "held" or len(store.log.files) < 2:
        return []
    elsewhere = list(log.elsewhere())
    misplaced = {file.start_offset for file, _ in elsewhere}
    other_files = [_describe_foreign(store, file, units, misplaced) for file, units in elsewhere]
    known_starts = {other_file.start for other_file in other_files}
    suspects = [file for file in _suspects(store, findings) if file.start_offset not in known_starts]
    if suspects:
        other_files += _by_queues(store, suspects, known_starts)
    return sorted(other_files)


def _describe_foreign(store: StoreSnapshot, file: ReadOnlyFile, units: int, misplaced: set[int]) -> OtherFile:
    """Describe a file in which no unit is at its own offset. ``misplaced``: where all such files begin."""
    first_unit = next((item for item in store.units(file.start_offset, crc=False) if isinstance(item, Unit)), None)
    own_offset = first_unit.physical_offset if first_unit is not None else -1
    text = (
        f"none of its {counted(units, 'units')} is at the offset that it contains (the first contains {own_offset:,})"
    )
    unit_at_own_offset = (
        store.log.unit_at(own_offset, crc=False) if first_unit is not None and own_offset >= 0 else None
    )
    source = store.log.sequence.find(own_offset) if isinstance(unit_at_own_offset, Unit) else None
    if (
        first_unit is not None
        and source is not None
        and store.log.read(own_offset, first_unit.size) == (store.log.read(first_unit.offset, first_unit.size))
    ):
        return OtherFile(
            file.start_offset, f"{text}: the file is a copy of {source.path.rpartition('/')[2]}", own_offset
        )
    if first_unit is not None and _is_renamed(store, file, first_unit, misplaced):
        return OtherFile(file.start_offset, f"{text}: the file was renamed", own_offset, is_renamed=True)
    return OtherFile(
        file.start_offset, f"{text}: the file belongs to another log, or to another place of this log", own_offset
    )


def _is_renamed(store: StoreSnapshot, file: ReadOnlyFile, first_unit: Unit, misplaced: set[int]) -> bool:
    """Return True if the file is of this log and only its name is wrong: it begins with its first unit, nothing else
    holds the place that this names, and queue entries lead to that place.
    """
    own_offset = first_unit.physical_offset
    if first_unit.offset != file.start_offset or own_offset % max(file.size, 1):
        return False
    holder = store.log.sequence.find(own_offset)
    if holder is not None and holder.start_offset not in misplaced:
        return False
    queue = store.queue(first_unit.topic, first_unit.queue_id)
    entry = queue.entry(first_unit.queue_offset) if queue is not None and queue.kind == "simple" else None
    return entry is not None and (entry.physical_offset, entry.size) == (own_offset, first_unit.size)


def _suspects(store: StoreSnapshot, findings: Sequence[Finding]) -> list[ReadOnlyFile]:
    """Files into which entries of queues or of the index point wrongly."""
    files: dict[int, ReadOnlyFile] = {}
    for finding in findings:
        points = finding.evidence.get("found")
        if finding.id not in WITNESSES or not isinstance(points, dict):
            continue
        offset = points.get("physicalOffset", points.get("phyOffset"))
        file = store.log.sequence.find(offset) if isinstance(offset, int) and offset >= 0 else None
        if file is not None:
            files[file.start_offset] = file
    return [files[start] for start in sorted(files)][:MOST_FILES]


def _by_queues(store: StoreSnapshot, suspects: Iterable[ReadOnlyFile], known_starts: set[int]) -> Iterator[OtherFile]:
    """Those of ``suspects`` in which no queue entry finds its unit, while entries into other files find theirs."""
    every = chain.from_iterable(queues.values() for queues in store.topics().values())
    readers = list(islice((reader for reader in every if reader.kind == "simple"), MOST_QUEUES))
    candidates = []
    for file in suspects:
        entry_count = _count_entries(store, readers, file)
        if entry_count.entries >= LEAST_ENTRIES and entry_count.units * MOST_ENTRIES <= entry_count.entries:
            candidates.append((file, entry_count))
    doubtful = {file.start_offset for file, _ in candidates} | known_starts
    sound = [file for file in store.log.files if file.start_offset not in doubtful][:MOST_FILES]
    if not candidates or not any(_is_of_this_log(_count_entries(store, readers, file)) for file in sound):
        return  # the queues may be the other store's
    for file, entry_count in candidates:
        share = f"{entry_count.units:,}" if entry_count.units else "none"
        text = (
            f"{share} of {entry_count.entries:,} queue entries for this file lead to a unit, but those for other "
            "files do"
        )
        yield OtherFile(file.start_offset, f"{text}: the file belongs to another log", -1)


def _is_of_this_log(entry_count: EntryCount) -> bool:
    return entry_count.entries >= LEAST_ENTRIES and entry_count.units >= entry_count.entries * OF_THIS_LOG


def _count_entries(store: StoreSnapshot, readers: Iterable[QueueReader], file: ReadOnlyFile) -> EntryCount:
    entries = units = 0
    for reader in readers:
        for physical, size in _entries_into(reader, file):
            unit = store.log.unit_at(physical, crc=False)
            entries += 1
            units += isinstance(unit, Unit) and unit.size == size
    return EntryCount(entries, units)


def _entries_into(reader: QueueReader, file: ReadOnlyFile) -> Iterator[tuple[int, int]]:
    """(place, size) of the first entries of a queue that point into ``file``."""
    lower, upper = max(reader.sequence.min_offset, 0) // reader.unit_size, reader.valid_end // reader.unit_size
    end = upper
    while lower < upper:
        middle = (lower + upper) // 2
        rows = reader.array(middle, middle + 1)
        if len(rows) and int(rows["physical_offset"][0]) >= file.start_offset:
            upper = middle
        else:
            lower = middle + 1
    rows = reader.array(lower, min(lower + MOST_ENTRIES, end))
    for physical, size in zip(rows["physical_offset"].tolist(), rows["size"].tolist(), strict=True):
        if file.start_offset <= physical < file.end_offset and size > 0:
            yield physical, size


def follow(findings: Iterable[Finding], foreign_ranges: Sequence[tuple[int, int]]) -> Iterator[Finding]:
    """Yield ``findings``; what a start leaves out of such files (first and end byte of each), and a checkpoint that
    knows their former content, follow from CL05.
    """
    for finding in findings:
        first_unit, last_unit = finding.evidence.get("firstUnit", -1), finding.evidence.get("lastUnit", -1)
        is_left_out = finding.id == "RP01" and any(
            first_unit >= start and last_unit < end for start, end in foreign_ranges
        )
        caused = is_left_out or (finding.id == "CK02" and bool(foreign_ranges))
        yield finding.follows(catalogue.CL05.id) if caused and finding.caused_by is None else finding
