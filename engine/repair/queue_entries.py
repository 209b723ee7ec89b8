"""Mend queue files: every entry as the messages of the log say it (docs/formats/repair.md#queues).

A message names its topic, queue and queue offset, so the log tells each entry: where it stands and what it holds.
Only bytes that differ are changed. Entries of messages that the log does not hold stay as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec.columns import BLANK, UnitColumns
from engine.codec.consume_queue import CQ_UNIT_SIZE, PREFILLED_SIZE, CqUnit, encode
from engine.codec.dtypes import CQ_UNIT
from engine.codec.message import DEFAULT_DELAY_LEVELS, Unit, tags_code_of
from engine.codec.queue_builder import EntryRows, build_runs
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.errors import CannotRead
from engine.inspection.block_scan import scan_log
from engine.inspection.deleted_topics import deleted_topics
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import fills_light_queues, read_table
from engine.mapped.read_only import DescriptorCache, FileSequence, ReadOnlyFile
from engine.patching.patches import Patch, WriteBytes, WriteFile
from engine.repair.ext_addresses import stored_entries, with_addresses
from engine.repair.repair import Repair
from engine.rules import mendable
from engine.rules.dispatch_rules import light_entries, names_light_queues, units_of
from engine.rules.findings import Finding, at_least
from engine.sentences import plural, sentence
from engine.system_names import LMQ_PREFIX

NAME = "queues"
MAX_FILE_BYTES = 64 << 20
"""A new queue file that would be longer is not made: it is held in memory."""
_JOINED_BYTES = 64
"""Differing bytes with fewer equal ones between them make one patch."""
_PREFILLED_ENTRY = np.frombuffer(encode(CqUnit(0, PREFILLED_SIZE, 0)), CQ_UNIT)[0]
Key = tuple[str, int]


@dataclass(slots=True)
class _Entries:
    """The entries of one queue as the log tells them: their numbers, and their 20 bytes each."""

    numbers: list[NDArray[np.int64]] = field(default_factory=list)
    rows: list[NDArray[np.void]] = field(default_factory=list)
    times: list[NDArray[np.int64]] = field(default_factory=list)
    """Store times (ms) of the messages."""
    is_light: bool = False
    """True if messages of other queues have entries here."""

    @property
    def first_offset(self) -> int:
        """The offset in the log of the queue's first message."""
        return int(self.rows[0]["physical_offset"][0])

    def joined(self) -> tuple[NDArray[np.int64], NDArray[np.void], NDArray[np.int64]]:
        """Return all numbers, entries and store times."""
        numbers, times = np.concatenate(self.numbers), np.concatenate(self.times)
        rows: NDArray[np.void] = np.concatenate(self.rows).astype(CQ_UNIT)
        if not self.is_light:
            return numbers, rows, times
        order = np.argsort(numbers, kind="stable")
        return numbers[order], rows[order], times[order]


def repair_queues(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of the queues that ``findings`` name; None if nothing of them can be mended.

    Raises :class:`engine.errors.CannotRead` if the log or a queue cannot be read.
    """
    reported = [finding for finding in findings if finding.id in mendable.QUEUES and at_least(finding.severity, "warn")]
    if store.kind != "store" or store.queues.rocksdb is not None or not reported:
        return None
    named = {name for finding in reported for name in queues_of(store, finding)}
    tags_named = {name for finding in reported if finding.id == "CQ09" for name in queues_of(store, finding)}
    queues = {queue.key: queue for queue in plain_queues(store)}
    chosen = {key: queue for key, queue in queues.items() if f"{key[0]}/{key[1]}" in named}
    are_all = any(finding.id in ("CQ10", "RP01", "RP03") for finding in reported)
    if are_all:  # such a finding covers many queues, and names only some of them
        chosen = queues
    patches, mended = _queue_patches(store, chosen, tags_named, adds_lost=are_all)
    if not patches:
        return None
    gains = plural(
        "{n:,} queue has the entries that the messages of the log say; consumers get them at their queue offsets",
        "{n:,} queues have the entries that the messages of the log say; consumers get them at their queue offsets",
        n=mended,
    )
    title = sentence("Mend the entries of the queues from the commit log")
    return Repair(NAME, mendable.QUEUES, title, tuple(patches), gains)


def queue_patches(store: StoreSnapshot) -> list[Patch]:
    """Return the patches of all queues of plain entries whose entries differ from what the log says, and of those that
    have lost their folder.

    Raises :class:`engine.errors.CannotRead` if the log or a queue cannot be read.
    """
    queues = {queue.key: queue for queue in plain_queues(store)}
    return _queue_patches(store, queues, frozenset(), adds_lost=True)[0]


def _queue_patches(
    store: StoreSnapshot, queues: Mapping[Key, PlainQueue], tags_named: Collection[str], *, adds_lost: bool
) -> tuple[list[Patch], int]:
    """Return the patches of ``queues``, and the number of queues that have any. ``tags_named`` are the names of those
    whose tag codes are mended as well. With ``adds_lost`` also of queues that have lost their folder.
    """
    levels = store.config.delay_levels() if store.config is not None else DEFAULT_DELAY_LEVELS
    expected, is_whole = entries_of_log(store, None if adds_lost else queues, levels)
    if adds_lost:
        queues = {**_lost_queues(store, expected), **queues}
        expected = {key: entries for key, entries in expected.items() if key in queues}
    patches: list[Patch] = []
    mended = 0
    for key, entries in sorted(expected.items()):
        numbers, rows, times = entries.joined()
        if len(numbers) > 1 and int(np.diff(numbers).min()) < 1:
            continue  # two messages claim one queue offset: which of them is right cannot be told from the log
        if entries.is_light and not _are_numbered(queues[key], numbers, rows, has_first=store.log.min_offset <= 0):
            continue
        keeps_tags = f"{key[0]}/{key[1]}" not in tags_named
        reader = queues[key].reader
        if reader is not None and reader.ext is not None:
            rows, keeps_tags = with_addresses(reader, numbers, rows, times, keeps_tags=keeps_tags), False
        of_queue = list(entry_patches(store, queues[key], numbers, rows, keeps_tags=keeps_tags, is_whole=is_whole))
        patches += of_queue
        mended += bool(of_queue)
    return patches, mended


def _are_numbered(queue: PlainQueue, numbers: NDArray[np.int64], rows: NDArray[np.void], *, has_first: bool) -> bool:
    """Return True if the entries of a light queue are at the numbers that the messages say. A broker appends them one
    behind the other, whatever the messages say; both are the same if the log ``has_first``, its first message, and the
    messages count from 0 without a gap.
    """
    is_gapless = len(numbers) < 2 or int(np.diff(numbers).max()) == 1
    if not queue.files or queue.reader is None or (is_gapless and has_first and int(numbers[0]) == 0):
        return is_gapless
    stored = stored_entries(queue.reader, np.arange(queue.reader.raw_end // CQ_UNIT_SIZE))
    is_used = (stored["size"] > 0) & np.isin(stored["physical_offset"], rows["physical_offset"])
    places = np.searchsorted(rows["physical_offset"], stored["physical_offset"][is_used])
    shifts, counts = np.unique(np.flatnonzero(is_used) - numbers[places], return_counts=True)
    of_shift: dict[int, int] = dict(zip(shifts.tolist(), counts.tolist(), strict=True))
    in_place: int = of_shift.pop(0, 0)
    if is_gapless:  # a broker's own entries all have one shift, those of another queue many
        return max([0, *of_shift.values()]) <= int((stored["size"] > 0).sum()) // 2
    return in_place >= sum(of_shift.values())


class PlainQueue(NamedTuple):
    """A queue of plain entries: its folder and its files."""

    topic: str
    queue_id: int
    folder: Path
    files: Sequence[ReadOnlyFile] = ()
    reader: QueueReader | None = None

    @property
    def key(self) -> Key:
        return self.topic, self.queue_id


def plain_queues(store: StoreSnapshot) -> Iterator[PlainQueue]:
    """Yield the queues of entries of 20 bytes."""
    for by_id in store.queues.used_files().values():
        for queue in by_id.values():
            if queue.kind == "simple":
                yield PlainQueue(queue.topic, queue.queue_id, queue.folder, queue.files, queue)


def _lost_queues(store: StoreSnapshot, expected: Mapping[Key, _Entries]) -> dict[Key, PlainQueue]:
    """Return the queues of the log's messages that have lost their folder, of topics with plain queues. A deleted topic
    has none. Light queues are made only where the broker has some: else its configuration turns them off.
    """
    by_topic = store.queues.used_files()
    if store.paths is None:
        return {}
    has_light = has_light_queues(store)
    table = read_table(store, "topics.json")
    declared = table.value.get("topicConfigTable") if table is not None else None
    first_of: dict[str, int] = {}
    for (topic, _), entries in expected.items():
        first_of[topic] = min(entries.first_offset, first_of.get(topic, entries.first_offset))
    excluded = set(deleted_topics(store, first_of))
    for topic in first_of.keys() - excluded:
        attributes = (declared.get(topic) or {}).get("attributes") if isinstance(declared, dict) else None
        has_batches = any(queue.kind == "batch" for queue in by_topic.get(topic, {}).values())
        if (topic.startswith(LMQ_PREFIX) and not has_light) or has_batches or "BatchCQ" in str(attributes):
            excluded.add(topic)
    return {
        key: PlainQueue(*key, store.paths.queue_folder(*key), (), _reader_of_lost(store, key))
        for key in expected
        if key[0] not in excluded and key[1] >= 0 and key[1] not in by_topic.get(key[0], {})
    }


def _reader_of_lost(store: StoreSnapshot, key: Key) -> QueueReader | None:
    """Return a reader of a queue whose files are lost, if it has ext files."""
    assert store.paths is not None
    cache = DescriptorCache(reading=store.reading)
    ext = FileSequence((store.paths.ext_folder(*key),), cache)
    if not ext.files:
        return None
    return QueueReader(*key, "simple", FileSequence((store.paths.queue_folder(*key),), cache), store.log, ext)


def queues_of(store: StoreSnapshot, finding: Finding) -> Iterator[str]:
    """Yield the names (topic/queue) of the queues that a finding names, or whose file it names."""
    folders = {str(queue.folder): queue for by_id in store.queues.used_files().values() for queue in by_id.values()}
    queue_of_file = folders.get(str(Path(finding.file).parent)) if finding.file else None
    if queue_of_file is not None:
        yield f"{queue_of_file.topic}/{queue_of_file.queue_id}"
    queue = finding.evidence.get("queue")
    if isinstance(queue, str):
        yield queue
    if "topic" in finding.evidence and "queueId" in finding.evidence:
        yield f"{finding.evidence['topic']}/{finding.evidence['queueId']}"
    for row in finding.evidence.get("queues") or ():
        if isinstance(row, dict):
            yield str(row.get("queue") or f"{row.get('topic')}/{row.get('queueId')}")
        else:
            yield str(row)


def entries_of_log(
    store: StoreSnapshot, chosen: Collection[Key] | None, levels: tuple[int, ...]
) -> tuple[dict[Key, _Entries], bool]:
    """Return the entries of the chosen queues (None: of all), and whether all of the log could be read."""
    topics = TopicTable()
    has_light = has_light_queues(store)
    expected: dict[Key, _Entries] = {}
    is_whole = True
    for block in scan_log(store.log, crc=False, topics=topics, levels=levels):
        if isinstance(block, Damage) or (isinstance(block, Stop) and block.kind not in ("zero", "end", "limit")):
            is_whole = False
        if not isinstance(block, UnitColumns):
            continue
        units = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
        in_place = np.flatnonzero(block.physical_offset[:units] == block.offset[:units])
        rows = EntryRows(units)
        rows.add(block, 0, units)
        rows = rows.select(in_place)
        store_times = block.store_timestamp[in_place]
        runs = build_runs(rows, 0, rows.count)
        for group in range(len(runs)):
            key = (topics.names[int(runs.topic_id[group])], int(runs.queue_id[group]))
            if chosen is not None and key not in chosen:
                continue
            start, stop = int(runs.start[group]), int(runs.start[group + 1])
            entries = expected.setdefault(key, _Entries())
            entries.numbers.append(rows.queue_offset[runs.row[start:stop]].copy())
            entries.rows.append(runs.entries[start:stop].copy())
            entries.times.append(store_times[runs.row[start:stop]].copy())
        unit_rows = np.intersect1d(units_of(block), in_place) if has_light else in_place[:0]
        if len(unit_rows) and names_light_queues(block, unit_rows):
            _add_light_entries(store, block, unit_rows, chosen, expected, levels)
    return expected, is_whole


def _add_light_entries(
    store: StoreSnapshot,
    block: UnitColumns,
    unit_rows: NDArray[np.int64],
    chosen: Collection[Key] | None,
    expected: dict[Key, _Entries],
    levels: tuple[int, ...],
) -> None:
    """Add the entries of queues that units name besides their own."""
    for row in unit_rows.tolist():
        unit = store.log.unit_at(int(block.offset[row]), crc=False)
        if not isinstance(unit, Unit):
            continue
        code = tags_code_of(unit.topic, unit.properties, unit.store_timestamp, levels)
        for name, queue_id, number in light_entries(unit.properties, unit.topic, unit.queue_id):
            key = (name, queue_id)
            if chosen is None or key in chosen:
                entries = expected.setdefault(key, _Entries())
                entries.is_light = True
                entries.numbers.append(np.array([number], np.int64))
                entries.rows.append(np.array([(unit.offset, unit.size, code)], CQ_UNIT))
                entries.times.append(np.array([unit.store_timestamp], np.int64))


def has_light_queues(store: StoreSnapshot) -> bool:
    """Return True if the broker of the store fills the queues that messages name besides their own."""
    if any(topic.startswith(LMQ_PREFIX) for topic in store.queues.used_files()):
        return True
    with contextlib.suppress(CannotRead):
        return fills_light_queues(store)
    return False


def entry_patches(
    store: StoreSnapshot,
    queue: PlainQueue,
    numbers: NDArray[np.int64],
    rows: NDArray[np.void],
    *,
    keeps_tags: bool,
    is_whole: bool,
) -> Iterator[Patch]:
    """Yield the patches of one queue, a file at a time."""
    file_size = queue_file_size(store)
    if not queue.folder.is_relative_to(store.path) or not 0 < file_size <= MAX_FILE_BYTES or file_size % CQ_UNIT_SIZE:
        return
    in_file = file_size // CQ_UNIT_SIZE
    existing = {file.start_offset: file for file in queue.files}
    last_number = int(numbers[-1])
    files_end = max((file.end_offset for file in queue.files), default=0) // CQ_UNIT_SIZE if is_whole else 0
    first_file = int(numbers[0]) // in_file
    is_cut_in_front = store.log.min_offset > 0
    if is_cut_in_front:
        first_file = min([first_file, *(start // file_size for start in existing)])
    name = f"{queue.topic}/{queue.queue_id}"
    why = sentence("entries of queue {queue} as the messages of the log say them", queue=name)
    folder = queue.folder.relative_to(store.path).as_posix()
    for number in range(first_file, max(last_number, files_end - 1) // in_file + 1):
        begin = number * in_file
        file = existing.get(begin * CQ_UNIT_SIZE)
        raw = file.read(0, file.size) if file is not None else b""
        old = np.frombuffer(bytearray(raw[:file_size].ljust(file_size, b"\0")), CQ_UNIT)
        new = old.copy()
        part = slice(*np.searchsorted(numbers, (begin, begin + in_file)).tolist())
        places = numbers[part] - begin
        fresh = rows[part].copy()
        if keeps_tags:
            same = (old["physical_offset"][places] == fresh["physical_offset"]) & (old["size"][places] == fresh["size"])
            fresh["tags_code"][same] = old["tags_code"][places][same]
        new[places] = fresh
        if is_whole:
            new[max(last_number + 1 - begin, 0) :] = np.zeros((), CQ_UNIT)
        if is_cut_in_front and file is not None:  # a start would end the queue at an empty entry
            in_front = new[: max(min(int(numbers[0]) - begin, in_file), 0)]
            in_front[(in_front["size"] <= 0) | (in_front["physical_offset"] < 0)] = _PREFILLED_ENTRY
        if number == first_file and file is None and len(places) and min(existing, default=begin) >= begin:
            new[: int(places[0])] = _PREFILLED_ENTRY
        path = f"{folder}/{begin * CQ_UNIT_SIZE:020d}"
        content = new.tobytes()
        if file is not None and file.size == file_size:
            yield from differences(path, raw, content, why, NAME)
        elif file is not None:
            yield WriteFile(file=path, old=raw, new=content, why=why, name=NAME)
        elif used := content.rstrip(b"\0"):
            yield WriteFile(file=path, old=None, new=used, zeros=file_size - len(used), why=why, name=NAME)


def queue_file_size(store: StoreSnapshot) -> int:
    """Return the length of the store's queue files in bytes; 0 if neither its files nor its configuration tell it.

    A broker does not start with queue files of another length than its own.
    """
    return _common_file_size(store) or store.geometry.consume_queue_file_size


def _common_file_size(store: StoreSnapshot) -> int:
    queues = [queue for by_id in store.queues.used_files().values() for queue in by_id.values()]
    sizes = [queue.file_size for queue in queues if queue.kind == "simple" and queue.file_size]
    return max(set(sizes), key=sizes.count) if sizes else 0


def differences(path: str, old: bytes, new: bytes, why: str, name: str) -> Iterator[WriteBytes]:
    """Yield a patch for each place at which ``new`` differs from ``old``, which are equally long."""
    differing = np.flatnonzero(np.frombuffer(old, np.uint8) != np.frombuffer(new, np.uint8))
    if not len(differing):
        return
    ends = np.flatnonzero(np.diff(differing) > _JOINED_BYTES)
    starts = differing[np.concatenate(([0], ends + 1))]
    stops = differing[np.concatenate((ends, [len(differing) - 1]))] + 1
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        yield WriteBytes(file=path, offset=start, old=old[start:stop], new=new[start:stop], why=why, name=name)
