"""Queues in files and in a RocksDB of the same store that differ (CQ19; docs/formats/consume-queue.md#both).

A file queue with findings of its own is left out while consumers read the files: these findings are about the same
entries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from engine.inspection.entry_verdict import resolve
from engine.inspection.queue_sides import BothSides, QueueOnBothSides, compare_sides, find_both_sides
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.store_queues import AnyQueue
from engine.inspection.tables import topics
from engine.rules import catalogue
from engine.rules.findings import Finding, at_least
from engine.sentences import plural, sentence
from engine.system_names import LMQ_PREFIX

_MAX_LISTED = 20


def findings(store: StoreSnapshot, other_findings: Iterable[Finding]) -> Iterator[Finding]:
    """CQ19, once for each kind. Raises :class:`CannotRead`."""
    both_sides = find_both_sides(store)
    if both_sides is None:
        return
    judge = _Judge(store, both_sides, _faulty_queues(other_findings))
    by_kind: dict[str, list[QueueOnBothSides]] = {}
    for queue in compare_sides(store):
        kind = judge.kind_of(queue)
        if kind is not None:
            by_kind.setdefault(kind, []).append(queue)
    for kind in _KINDS:
        if kind in by_kind:
            yield _finding(store, both_sides, kind, by_kind[kind])


_KINDS = ("refused", "read", "", "files", "late", "unused")


def _faulty_queues(other_findings: Iterable[Finding]) -> frozenset[str]:
    grave = (finding for finding in other_findings if at_least(finding.severity, "warn"))
    return frozenset(str(finding.evidence["queue"]) for finding in grave if "queue" in finding.evidence)


class _Judge:
    """Says of which kind a difference is."""

    def __init__(self, store: StoreSnapshot, both: BothSides, faulty: Collection[str]) -> None:
        self._both = both
        self._faulty = faulty
        self._is_running = store.lock_state == "held"
        self._is_closed = not store.abort
        beside, config = store.queues.rocksdb_beside_files, store.config
        self._dispatched = 0 if beside is None else beside.written_offset()
        self._store = store
        self._are_light_in_rocksdb = config is None or config.combine_cq_use_rocksdb_for_lmq
        self._partly: frozenset[str] | None = None
        if config is not None and config.rocksdb_cq_selective_double_write_enable:
            rows = (topics(store) or {}).items()
            self._partly = frozenset(name for name, row in rows if row.attributes.get("message.type") == "LITE")

    def kind_of(self, queue: QueueOnBothSides) -> str | None:
        """The kind of CQ19; None if the queue is as it should be."""
        if queue.first_difference is None or self._is_meant(queue):
            return None
        if self._both.are_written is False:
            return "unused"
        if self._both.counting == "files":
            if f"{queue.topic}/{queue.queue_id}" in self._faulty:
                return None
            if queue.first_unequal is not None:
                return ""
            return "late" if self._ends_differ(queue) and not self._is_running else None
        if self._ends_stay_different(queue):
            return "refused" if _end(queue.rocksdb) else "read"
        if queue.first_unequal is not None and self._is_file_entry_wrong(queue, queue.first_unequal):
            return "files"
        if queue.first_unequal is not None or _begin(queue.rocksdb) > _begin(queue.files):
            return "read"
        return "late" if self._ends_differ(queue) and not self._is_running else None

    def _is_file_entry_wrong(self, queue: QueueOnBothSides, number: int) -> bool:
        """Return True if the entry in the RocksDB leads to its message, and the one in files does not."""
        in_files, in_rocksdb = _readers(self._store, queue)
        entries = [None if reader is None else reader.entry(number) for reader in (in_files, in_rocksdb)]
        verdicts = [
            None if entry is None else resolve(self._store.log, queue.topic, queue.queue_id, entry).verdict
            for entry in entries
        ]
        return verdicts[1] == "ok" and verdicts[0] != "ok"

    def _is_meant(self, queue: QueueOnBothSides) -> bool:
        """Return True if a broker writes the queue into one of the two only, or is not known to write both."""
        if queue.topic.startswith(LMQ_PREFIX) and self._are_light_in_rocksdb:
            return True
        if self._partly is not None and queue.topic not in self._partly:
            return True
        return queue.rocksdb is None and self._both.are_written is None

    @staticmethod
    def _ends_differ(queue: QueueOnBothSides) -> bool:
        return _end(queue.files) != _end(queue.rocksdb)

    def _ends_stay_different(self, queue: QueueOnBothSides) -> bool:
        """Return True if the ends of the queue still differ after the dispatch of the next start: its broker then
        refuses to read from the RocksDB, or begins an empty queue there again. A start after a crash dispatches
        everything again.
        """
        is_compared = self._both.numbering == "files" and queue.files is not None
        if not is_compared or not self._is_closed or self._is_running or not self._ends_differ(queue):
            return False
        if _end(queue.files) < _end(queue.rocksdb):
            return True
        newest = self._store.queue_folders.by_topic()[queue.topic][queue.queue_id].newest()
        return newest is not None and newest[0] <= self._dispatched


def _begin(bounds: tuple[int, int] | None) -> int:
    return 0 if bounds is None else bounds[0]


def _end(bounds: tuple[int, int] | None) -> int:
    return 0 if bounds is None else bounds[1]


class _Entry(NamedTuple):
    """An entry as evidence shows it."""

    physical_offset: int
    size: int

    @property
    def words(self) -> str:
        return sentence("{offset:,}, {size:,} bytes", offset=self.physical_offset, size=self.size)


def _finding(store: StoreSnapshot, both: BothSides, kind: str, queues: list[QueueOnBothSides]) -> Finding:
    first = queues[0]
    number = first.first_unequal if first.first_unequal is not None else first.first_difference
    assert number is not None
    name = f"{first.topic}/{first.queue_id}"
    text = plural(
        "{n:,} queue in files and in the RocksDB {folder} differs: {queue}, first at queue offset {first:,}. {next}",
        "{n:,} queues in files and in the RocksDB {folder} differ: {queue} is one, first at queue offset {first:,}. "
        "{next}",
        n=len(queues),
        folder=both.folder,
        queue=name,
        first=number,
        next=both.next_start,
    )
    in_files, in_rocksdb = _entries(store, first, number)
    absent = sentence("no entry")
    evidence: dict[str, Any] = {
        "queue": name,
        "queueOffset": number,
        "expected": absent if in_files is None else in_files.words,
        "found": absent if in_rocksdb is None else in_rocksdb.words,
        "counting": both.counting,
        "queues": [
            f"{queue.topic}/{queue.queue_id}: {_bounds_text(queue.files)}, {_bounds_text(queue.rocksdb)}"
            for queue in queues[:_MAX_LISTED]
        ],
    }
    return catalogue.CQ19.finding(text, str(store.path / both.folder), None, evidence, kind=kind)


def _bounds_text(bounds: tuple[int, int] | None) -> str:
    return "–" if bounds is None else f"{bounds[0]}–{bounds[1]}"


def _entries(store: StoreSnapshot, queue: QueueOnBothSides, number: int) -> tuple[_Entry | None, _Entry | None]:
    """The entry with ``number`` in files and in the RocksDB; None if there is none."""
    entries = [None if reader is None else reader.entry(number) for reader in _readers(store, queue)]
    found_entries = [None if entry is None else _Entry(entry.physical_offset, entry.size) for entry in entries]
    return found_entries[0], found_entries[1]


def _readers(store: StoreSnapshot, queue: QueueOnBothSides) -> tuple[AnyQueue | None, AnyQueue | None]:
    """The queue in files and in the RocksDB; None if there is none."""
    beside = store.queues.rocksdb_beside_files
    in_rocksdb = {} if beside is None else beside.by_topic()
    file_queue = store.queue_folders.by_topic().get(queue.topic, {}).get(queue.queue_id)
    return file_queue, in_rocksdb.get(queue.topic, {}).get(queue.queue_id)
