"""Mend compacted queues from the commit log, as far as it still has their messages (docs/formats/repair.md#compacted).

A compacted queue may lack messages, and its files may be filled in part. So each damaged file is laid out again: its
whole messages, and those of the commit log that damage has destroyed, one behind the other, with an entry for each.
What the commit log does not have any more is left out: consumers then go on behind it. Messages that are missing at the
end of the queue are appended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from engine.codec.batch_consume_queue import BATCH_CQ_UNIT_SIZE, BatchCqUnit, encode
from engine.codec.message import Unit, tags_code_of
from engine.codec.unit_scan import Damage
from engine.files.layout import queue_file_name
from engine.inspection.compaction import is_unwritten
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.store_queues import AnyQueue
from engine.mapped.read_only import ReadOnlyFile
from engine.patching.patches import Patch, RemoveFile, WriteFile
from engine.repair.queue_entries import differences
from engine.repair.repair import Repair, sample_of
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import join, plural, sentence
from engine.store.queue_entry import CqEntry, batch_entry

NAME = "compacted"
MAX_FILE_BYTES = 512 << 20
"""A longer file of a compacted log is left alone: its messages are held in memory."""
_MAX_NAMED = 20
_PHYSICAL_OFFSET = slice(28, 36)
LOG, QUEUE = "compactionLog", "compactionCq"


@dataclass(slots=True)
class _Done:
    """The effects of all queues' patches, in words."""

    patches: list[Patch] = field(default_factory=list)
    restored: int = 0
    lost: list[str] = field(default_factory=list)


def repair_compacted(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of the compacted queues that findings name; None if there is nothing to mend.

    Raises :class:`engine.errors.CannotRead`.
    """
    names = {
        str(finding.evidence.get("queue"))
        for finding in findings
        if finding.id in mendable.COMPACTED and at_least(finding.severity, "warn")
    }
    if not names or store.paths is None or store.kind != "store" or store.commit_log.dledger is not None:
        return None
    done = _Done()
    for name in sorted(names):
        topic, _, number = name.rpartition("/")
        queue = store.queues.find(topic, int(number)) if number.isdigit() else None
        if queue is not None:
            _QueueFiles(store, queue, done).mend()
    if not done.patches:
        return None
    gains = sentence("a broker starts, and consumers go on behind damage")
    if done.restored:
        gains = plural(
            "consumers get {n:,} message of compacted topics more, and go on behind damage",
            "consumers get {n:,} messages of compacted topics more, and go on behind damage",
            n=done.restored,
        )
    names_of_lost = [*done.lost[:_MAX_NAMED], *(["…"] if len(done.lost) > _MAX_NAMED else [])]
    costs = sentence("the commit log does not have these any more: {names}", names=join(", ", names_of_lost))
    title = sentence("Mend compacted queues from the commit log")
    return Repair(NAME, mendable.COMPACTED, title, tuple(done.patches), gains, costs if done.lost else "")


@dataclass(slots=True)
class _Pair:
    """A file of the compacted log with its queue file: both have the name of the offset at which they begin."""

    start: int
    log_bytes: int
    queue_bytes: int
    log: bytearray = field(default_factory=bytearray)
    entries: bytearray = field(default_factory=bytearray)

    def add(self, raw: bytes, unit: Unit) -> bool:
        """Append a message and its entry; return False if there is no room."""
        has_room = len(self.entries) + BATCH_CQ_UNIT_SIZE <= self.queue_bytes
        if len(self.log) + len(raw) > self.log_bytes or not has_room:
            return False
        offset = self.start + len(self.log)
        moved = bytearray(raw)
        moved[_PHYSICAL_OFFSET] = offset.to_bytes(8, "big")
        self.log += moved
        code = tags_code_of(unit.topic, unit.properties, unit.store_timestamp)
        self.entries += encode(BatchCqUnit(offset, unit.size, code, unit.store_timestamp, unit.queue_offset, 1))
        return True


class _QueueFiles:
    """The files of one compacted queue, as they shall be."""

    def __init__(self, store: StoreSnapshot, queue: AnyQueue, done: _Done) -> None:
        self._store, self._queue, self._done = store, queue, done
        compacted = store.compacted_files(queue.topic, queue.queue_id)
        self._log = compacted.log
        self._log_files = list(compacted.log.files)
        self._queue_files = {file.start_offset: file for file in compacted.queue.files}
        self._next_offset = 0

    def mend(self) -> None:
        """Add the patches of this queue."""
        pairs: list[_Pair] = []
        logs = {file.start_offset: file for file in self._log_files}
        for start in sorted({*logs, *self._queue_files}):
            if start not in logs:
                restored = self._of_queue_file(start)
                pairs += [restored] if restored is not None else []
                continue
            pair = self._laid_out(logs[start]) if logs[start].size <= MAX_FILE_BYTES else None
            if pair is None:
                return
            pairs.append(pair)
        pairs += self._appended(pairs[-1] if pairs else None)
        starts = {pair.start for pair in pairs}
        patches = [patch for pair in pairs for patch in self._patches(pair)]
        for start, file in self._queue_files.items():
            if start not in starts:
                size, sample = sample_of(self._store, Path(file.path))
                why = sentence("the compacted log has no file of this name")
                patches.append(RemoveFile(file=self._name(QUEUE, start), size=size, sample=sample, why=why, name=NAME))
        self._done.patches += patches

    def _laid_out(self, file: ReadOnlyFile) -> _Pair | None:
        """Return a file with its whole messages, and those lost ones that the commit log still has; None if they do
        not fit into it.
        """
        messages = dict(self._whole_messages(file))
        self._put_right(file, messages)
        offsets = {unit.offset for _, unit in messages.values()}
        following = self._first_of_next(file)
        named = [
            entry.queue_offset
            for entry in self._entries(file.start_offset)
            if entry.physical_offset not in offsets and self._next_offset <= entry.queue_offset < following
        ]
        for number in named:
            if number not in messages:
                self._restore(messages, number)
        queue_file = self._queue_files.get(file.start_offset)
        queue_bytes = queue_file.size if queue_file is not None and queue_file.size else self._sizes()[1]
        pair = _Pair(file.start_offset, file.size, queue_bytes)
        for number, (raw, unit) in sorted(messages.items()):
            if not pair.add(raw, unit):
                return None
            self._next_offset = number + 1
        return pair

    def _whole_messages(self, file: ReadOnlyFile) -> Iterator[tuple[int, tuple[bytes, Unit]]]:
        """Yield the messages of a file by queue offset, which its entries do not contradict, and which rises."""
        numbers = {entry.physical_offset: entry.queue_offset for entry in self._entries(file.start_offset)}
        last_number = -1
        for item in self._log.walk(file.start_offset, file.end_offset, crc=True):
            if isinstance(item, Damage) and is_unwritten(file, item):
                return
            is_of_queue = isinstance(item, Unit) and (item.topic, item.queue_id) == (
                self._queue.topic,
                self._queue.queue_id,
            )
            if not isinstance(item, Unit) or not is_of_queue or item.crc == "bad":
                continue
            is_numbered = numbers.get(item.offset, item.queue_offset) == item.queue_offset or self._is_stored(item)
            if is_numbered and item.queue_offset > last_number:
                yield item.queue_offset, (self._log.read(item.offset, item.size), item)
                last_number = item.queue_offset

    def _put_right(self, file: ReadOnlyFile, messages: dict[int, tuple[bytes, Unit]]) -> None:
        """Take a message in front of damage as the commit log has it, if both differ: no CRC covers its properties, and
        the damage may begin in them.
        """
        walk = self._log.walk(file.start_offset, file.end_offset, crc=True)
        starts = {item.offset for item in walk if isinstance(item, Damage) and not is_unwritten(file, item)}
        for number, (_, unit) in list(messages.items()):
            entry = self._queue.entry(number) if unit.end in starts else None
            stored = self._store.log.seen_at(entry.physical_offset) if entry is not None else None
            same = ("topic", "queue_id", "queue_offset", "size", "store_timestamp", "body_crc")
            if (
                isinstance(stored, Unit)
                and stored.crc != "bad"
                and all(getattr(stored, name) == getattr(unit, name) for name in same)
                and stored.properties_raw != unit.properties_raw
            ):
                messages[number] = self._store.log.read(stored.offset, stored.size), stored
                self._done.restored += 1

    def _of_queue_file(self, start: int) -> _Pair | None:
        """Return a file of the log that is lost, with the messages that the entries of its queue file name; None if the
        commit log has none of them.
        """
        messages: dict[int, tuple[bytes, Unit]] = {}
        log_bytes, queue_bytes = self._sizes()
        if not log_bytes or not queue_bytes:
            return None
        for entry in self._entries(start):
            if entry.queue_offset >= self._next_offset:
                self._restore(messages, entry.queue_offset)
        pair = _Pair(start, log_bytes, queue_bytes)
        for number, (raw, unit) in sorted(messages.items()):
            if not pair.add(raw, unit):
                return None
            self._next_offset = number + 1
        return pair if messages else None

    def _is_stored(self, unit: Unit) -> bool:
        """Return True if the commit log has this very message at the queue offset that the unit says."""
        entry = self._queue.entry(unit.queue_offset)
        stored = self._store.log.seen_at(entry.physical_offset, crc=False) if entry is not None else None
        same = ("store_timestamp", "born_timestamp", "body_crc", "size", "properties_raw")
        return isinstance(stored, Unit) and all(getattr(stored, name) == getattr(unit, name) for name in same)

    def _first_of_next(self, file: ReadOnlyFile) -> int:
        """Queue offset of the first whole message behind a file; the end of the queue behind the last file."""
        for later in self._log_files:
            if later.start_offset > file.start_offset:
                first = next(self._whole_messages(later), None)
                if first is not None:
                    return first[0]
        return self._queue.max_offset

    def _restore(self, messages: dict[int, tuple[bytes, Unit]], number: int) -> None:
        """Add the message with a queue offset as the commit log has it."""
        entry = self._queue.entry(number)
        unit = self._store.log.seen_at(entry.physical_offset) if entry is not None else None
        is_it = isinstance(unit, Unit) and (unit.topic, unit.queue_id, unit.queue_offset) == (
            self._queue.topic,
            self._queue.queue_id,
            number,
        )
        if isinstance(unit, Unit) and is_it and unit.crc != "bad":
            messages[number] = self._store.log.read(unit.offset, unit.size), unit
            self._done.restored += 1
        else:
            self._done.lost.append(f"{self._queue.topic}/{self._queue.queue_id}/{number}")

    def _appended(self, last: _Pair | None) -> list[_Pair]:
        """Append the messages that are missing at the end to the last file; return the new files behind it."""
        messages: dict[int, tuple[bytes, Unit]] = {}
        if last is None and not all(self._sizes()):
            return []
        for number in range(max(self._next_offset, self._queue.first_in_log), self._queue.max_offset):
            self._restore(messages, number)
        new_pairs: list[_Pair] = []
        log_bytes, queue_bytes = self._sizes()
        for raw, unit in messages.values():
            pair = new_pairs[-1] if new_pairs else last
            if pair is None or not pair.add(raw, unit):
                if not log_bytes or not queue_bytes:
                    return []
                start = pair.start + pair.log_bytes if pair is not None else 0
                new_pairs.append(_Pair(start, log_bytes, queue_bytes))
                new_pairs[-1].add(raw, unit)
        return new_pairs

    def _patches(self, pair: _Pair) -> Iterator[Patch]:
        log_file = next((file for file in self._log_files if file.start_offset == pair.start), None)
        why = sentence("the whole messages, and those of the commit log")
        yield from _content(self._name(LOG, pair.start), log_file, bytes(pair.log), pair.log_bytes, why)
        why = sentence("an entry for each message of the compacted log")
        queue_file = self._queue_files.get(pair.start)
        yield from _content(self._name(QUEUE, pair.start), queue_file, bytes(pair.entries), pair.queue_bytes, why)

    def _entries(self, start: int) -> Iterator[CqEntry]:
        file = self._queue_files.get(start)
        if file is None:
            return
        data = file.read(0, file.size - file.size % BATCH_CQ_UNIT_SIZE)
        for position in range(0, len(data), BATCH_CQ_UNIT_SIZE):
            entry = batch_entry(data, position)
            if not any(data[position : position + BATCH_CQ_UNIT_SIZE]):
                return
            if entry.state == "entry":
                yield entry

    def _name(self, part: str, start: int) -> str:
        return f"compaction/{part}/{self._queue.topic}/{self._queue.queue_id}/{queue_file_name(start)}"

    def _sizes(self) -> tuple[int, int]:
        """The bytes of the files of other compacted queues; without them those of the configuration, if it is given. A
        broker does not start with files of another length.
        """
        log_bytes = queue_bytes = 0
        if self._store.config is not None:
            config = self._store.config
            queue_bytes = config.compaction_cq_mapped_file_size // BATCH_CQ_UNIT_SIZE * BATCH_CQ_UNIT_SIZE
            log_bytes = _log_file_bytes(config.compaction_mapped_file_size, queue_bytes)
        for queue in self._store.compacted_queues():
            log_bytes = next((file.size for file in queue.log.files if file.size), log_bytes)
            queue_bytes = next((file.size for file in queue.queue.files if file.size), queue_bytes)
        return log_bytes, queue_bytes


def _log_file_bytes(configured: int, queue_bytes: int) -> int:
    """Return the bytes of a log file: a multiple of those of a queue file (CompactionLog.getCompactionLogSize)."""
    count, rest = divmod(configured, queue_bytes)
    if count < 5:
        return queue_bytes * 5
    return queue_bytes * (count if 0 < rest < queue_bytes // 2 else count + 1)


def _content(name: str, file: ReadOnlyFile | None, new: bytes, size: int, why: str) -> Iterator[Patch]:
    """Yield the patches after which a file has the content ``new``, then zeros; ``size`` is that of a new file."""
    if file is None:
        if new:
            yield WriteFile(file=name, old=None, new=new, zeros=size - len(new), why=why, name=NAME)
        return
    old = file.read(0, file.size)
    used = max(len(old.rstrip(b"\0")), len(new))
    yield from differences(name, old[:used].ljust(used, b"\0"), new.ljust(used, b"\0"), why, NAME)
