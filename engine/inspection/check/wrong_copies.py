"""Files that a wrong copy left: files without content or with carriage returns in front of all line feeds (DK04), and
files of the commit log that belong to another log.

Files of another log may also have been reused. Some show it themselves: none of their units is at its own offset. A
file from the same place in another store's log has the right offsets; then the queues show it: their entries point to
units in every file but this one. Findings inside such a file are meaningless: the check starts again and treats the
file as lost. Findings on what is in changed files have no causes of their own: another copy takes them all away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from engine.codec.message import Unit
from engine.inspection.check.log import LogCheck
from engine.inspection.check.log_files import OtherFile
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile
from engine.rules import catalogue
from engine.rules.findings import HAPPENED, RESTORABLE, Finding
from engine.sentences import plural, sentence

MIN_EMPTY_FILES = 4
EMPTY_SHARE = 0.25
"""Share of a store's files that have no byte if a copy made names only; a broker that dies leaves a single one."""
MIN_LINE_FEEDS = 64
"""Number of line feeds that must all have a carriage return in front of them."""
SAMPLE_BYTES = 4 << 20
MAX_NAMED = 20
_BROKEN_LOG = frozenset({"CL01", "CL05", "CL06", "CL07"})
_NEVER_TEXT = frozenset({"CF01", "CF03", "CF04", "CF05", "CF10", "AB01"})
"""Rules that do not follow from a copy in text mode: tables are text."""
_OF_EMPTY = frozenset({"CQ10", "RP01", "RP03", "CL11", "CK01", "CK05", "IX05", "IX08", "IX10", "CF02", "CQ06"})
"""Rules that follow from empty files although they name another place."""


def explained(store: StoreSnapshot, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``; if a copy changed the files, DK04 comes first and what it explains follows from it.

    Raises :class:`CannotRead`.
    """
    if store.paths is None or store.lock_state == "held":
        return findings
    is_broken = any(finding.id in _BROKEN_LOG for finding in findings)
    text_files = list(_in_text_mode(store)) if is_broken else []
    if text_files:
        return [_text_mode(text_files), *(_following_text(finding) for finding in findings)]
    files = [path for path, _ in _every_file(store)]
    empty = {path for path, size in _every_file(store) if not size}
    if len(empty) < MIN_EMPTY_FILES or len(empty) < EMPTY_SHARE * len(files):
        return findings
    return [_empty(store, sorted(empty), len(files)), *(_following_empty(finding, empty) for finding in findings)]


# -- names without content


def _every_file(store: StoreSnapshot) -> Iterator[tuple[str, int]]:
    """(path, bytes) of the files of log, queues and index, and of the tables."""
    assert store.paths is not None
    queues = [queue for queues in store.queues.used_files().values() for queue in queues.values()]
    for file in (*store.log.files, *(file for queue in queues for file in queue.files)):
        yield file.path, file.size
    for reader in store.index_files():
        yield reader.path, reader.size
    if store.reading.exists(store.paths.config):
        for entry in store.reading.entries(store.paths.config):
            if entry.name.endswith((".json", ".json.bak")):
                yield entry.path, store.reading.entry_status(entry).st_size


def _empty(store: StoreSnapshot, empty: Sequence[str], file_count: int) -> Finding:
    parts = sorted({Path(path).relative_to(store.path).parts[0] for path in empty if path.startswith(str(store.path))})
    text = plural(
        "{count:,} of {n:,} file of the store is empty, in {parts}",
        "{count:,} of {n:,} files of the store are empty, in {parts}",
        count=len(empty),
        n=file_count,
        parts=", ".join(parts),
    )
    evidence: dict[str, Any] = {
        "expected": sentence("files with content"),
        "found": len(empty),
        "files": empty[:MAX_NAMED],
        RESTORABLE: True,
    }
    evidence[HAPPENED] = plural(
        "{count:,} of {n:,} file of the store is empty, as after a copy that was stopped or that filled its disk",
        "{count:,} of {n:,} files of the store are empty, as after a copy that was stopped or that filled its disk",
        count=len(empty),
        n=file_count,
    )
    return catalogue.DK04.finding(text, str(store.path), None, evidence)


def _following_empty(finding: Finding, empty: set[str]) -> Finding:
    is_explained = finding.file in empty or finding.id in _OF_EMPTY
    return finding.follows("DK04") if is_explained and finding.caused_by is None else finding


# -- text mode


def _in_text_mode(store: StoreSnapshot) -> Iterator[ReadOnlyFile]:
    """Files of the log in which each line feed has a carriage return in front of it."""
    for file in store.log.files:
        data = file.read(0, min(file.size, SAMPLE_BYTES))
        line_feeds = data.count(b"\n")
        if line_feeds >= MIN_LINE_FEEDS and data.count(b"\r\n") == line_feeds:
            yield file


def _text_mode(files: Sequence[ReadOnlyFile]) -> Finding:
    text = plural(
        "{n:,} file of the log has a carriage return in front of every line feed: it was transferred in text mode",
        "{n:,} files of the log have a carriage return in front of every line feed: they were transferred in text mode",
        n=len(files),
    )
    evidence: dict[str, Any] = {
        "expected": sentence("bytes as a broker wrote them"),
        "found": sentence("0D 0A for each 0A"),
        RESTORABLE: True,
    }
    evidence["files"] = [file.name for file in files[:MAX_NAMED]]
    evidence[HAPPENED] = sentence(
        "the files of the commit log were transferred in text mode: every line feed became two bytes"
    )
    return catalogue.DK04.finding(text, files[0].path, 0, evidence, kind="text")


def _following_text(finding: Finding) -> Finding:
    is_explained = finding.id not in _NEVER_TEXT and finding.caused_by is None
    return finding.follows("DK04") if is_explained else finding


MAX_FILES = 16
MAX_QUEUES = 64
MAX_ENTRIES = 16
"""Number of a queue's entries that are compared with a file."""
MIN_ENTRIES = 8
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
    text = plural(
        "none of its {n:,} unit is at its own offset (the first is of {at:,})",
        "none of its {n:,} units is at its own offset (the first is of {at:,})",
        n=units,
        at=own_offset,
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
        text += ": " + sentence("the file is a copy of {file}", file=source.path.rpartition("/")[2])
        return OtherFile(file.start_offset, text, own_offset)
    if first_unit is not None and _is_renamed(store, file, first_unit, misplaced):
        text += ": " + sentence("the file was renamed")
        return OtherFile(file.start_offset, text, own_offset, is_renamed=True)
    text += ": " + sentence("the file belongs to another log, or to another place of this log")
    return OtherFile(file.start_offset, text, own_offset)


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
    return [files[start] for start in sorted(files)][:MAX_FILES]


def _by_queues(store: StoreSnapshot, suspects: Iterable[ReadOnlyFile], known_starts: set[int]) -> Iterator[OtherFile]:
    """Those of ``suspects`` in which no queue entry finds its unit, while entries into other files find theirs."""
    all_readers = chain.from_iterable(queues.values() for queues in store.queues.used_files().values())
    readers = list(islice((reader for reader in all_readers if reader.kind == "simple"), MAX_QUEUES))
    candidates = []
    for file in suspects:
        entry_count = _count_entries(store, readers, file)
        if entry_count.entries >= MIN_ENTRIES and entry_count.units * MAX_ENTRIES <= entry_count.entries:
            candidates.append((file, entry_count))
    doubtful = {file.start_offset for file, _ in candidates} | known_starts
    sound = [file for file in store.log.files if file.start_offset not in doubtful][:MAX_FILES]
    if not candidates or not any(_is_of_this_log(_count_entries(store, readers, file)) for file in sound):
        return  # the queues may be the other store's
    for file, entry_count in candidates:
        text = sentence(
            "{units:,} of {n:,} queue entries for this file lead to a unit, but those for other files do: the file "
            "belongs to another log"
            if entry_count.units
            else "none of {n:,} queue entries for this file lead to a unit, but those for other files do: the file "
            "belongs to another log",
            units=entry_count.units,
            n=entry_count.entries,
        )
        yield OtherFile(file.start_offset, text, -1)


def _is_of_this_log(entry_count: EntryCount) -> bool:
    return entry_count.entries >= MIN_ENTRIES and entry_count.units >= entry_count.entries * OF_THIS_LOG


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
    rows = reader.array(lower, min(lower + MAX_ENTRIES, end))
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
