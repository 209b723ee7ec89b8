"""All consume queues of a store: loaded, found, put into, deleted (docs/formats/consume-queue.md; Java:
ConsumeQueueStore).

The folders of a deleted topic disappear at once and are removed later (docs/formats/cleaning.md). A topic has a folder
for each kind of queue and many files in it. If they were removed one by one, a disk error would leave half a topic, and
a power loss queues with holes. So the folders are renamed first: that happens, or it does not. No broker takes what a
crash leaves there for a queue, because the names are no numbers.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from engine.codec.batch_consume_queue import BatchCqUnit
from engine.codec.java import i32
from engine.codec.queue_builder import EntryColumns, QueueRuns
from engine.codec.queue_placing import NO_ADDRESS
from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.files.layout import StorePaths, is_folder_name, parse_file_name
from engine.mapped.disk import Disk
from engine.releases import NEWEST, Release
from engine.rules.unit_check import Request
from engine.sentences import sentence
from engine.store.consume_queue import BatchConsumeQueue, ConsumeQueue, ConsumeQueueExt
from engine.store.pending_entries import PendingEntries
from engine.store.queue_files import QueueFiles
from engine.store.recovery.source import Entry

_log = logging.getLogger(__name__)
ASIDE = ".deleted"
"""The folder beside those of the topics."""


def set_aside(disk: Disk, kind_folders: Sequence[Path], topic: str) -> None:
    """Rename the topic's folder in each of ``kind_folders`` that has one. If the first cannot be renamed,
    ``OSError`` is raised and nothing has changed; later folders that cannot be renamed stay, with a warning. A
    topic whose name cannot be a folder's name has no folders, and the name may lead out of the store.
    """
    if not is_folder_name(topic):
        return
    decided = False
    for kind_folder in kind_folders:
        source, target = kind_folder / topic, kind_folder / ASIDE / f"topic-{zlib.crc32(topic.encode()):08x}"
        try:
            if disk.exists(source):
                _remove(disk, target)
                disk.move_folder(source, target)
                decided = True
                disk.sync_folder(kind_folder)
        except OSError as error:
            if not decided:
                raise
            _log.warning("of a deleted topic %s may come back: %s", source, error)


def remove_aside(disk: Disk, kind_folders: Sequence[Path]) -> None:
    """Remove the folders that were set aside, now or before a crash. A folder that cannot be removed stays for the next
    time.
    """
    for kind_folder in kind_folders:
        try:
            if disk.exists(kind_folder / ASIDE):
                _remove(disk, kind_folder / ASIDE)
        except OSError as error:
            _log.warning("queue files of a deleted topic stay in %s: %s", kind_folder / ASIDE, error)


def _remove(disk: Disk, folder: Path) -> None:
    for name, _, is_folder in disk.entries(folder):
        if is_folder:
            _remove(disk, folder / name)
        else:
            disk.delete(folder / name)
    disk.remove_folder(folder)


Queue = ConsumeQueue | BatchConsumeQueue
Listing = Callable[[Path], Iterable[Entry]]
BitMap = Callable[[Request], bytes]
_I32_HIGH: Final = (1 << 31) - 1


class ConsumeQueueStore:
    """The queues by topic and id. Puts come from one thread; ``lock`` guards the table and the making of files.

    ``is_batch_topic(topic)`` says which topics have batch queues.
    """

    def __init__(
        self,
        paths: StorePaths,
        config: MessageStoreConfig,
        disk: Disk,
        is_batch_topic: Callable[[str], bool] = lambda _topic: False,
    ) -> None:
        self._paths = paths
        self._config = config
        self._disk = disk
        self._is_batch_topic = is_batch_topic
        self.lock = threading.Lock()
        self._topics: dict[str, dict[int, Queue]] = {}
        self._dirty: set[Queue] = set()
        self._refused: set[str] = set()  # topics whose names cannot be folder names
        self._deleted: dict[str, int] = {}  # topic → offset in the log, before which its units get no entry any more
        self._kinds = (paths.consumequeue, paths.batchconsumequeue, paths.consumequeue_ext)
        self.pending = PendingEntries(self._put_group)
        self._plain_names: tuple[Sequence[str], int] = ((), 0)  # how many of them make plain entries
        self._file_size = config.consume_queue_file_size
        size = config.mapper_file_size_batch_consume_queue
        self._batch_file_size = size

    def __iter__(self) -> Iterator[Queue]:
        self.pending.settle()
        yield from self._all()

    def _all(self) -> list[Queue]:
        with self.lock:
            return [queue for queues in self._topics.values() for queue in queues.values()]

    def __len__(self) -> int:
        with self.lock:
            return sum(len(queues) for queues in self._topics.values())

    def topics(self) -> list[str]:
        """Names of the topics that have queues."""
        self.pending.settle()
        with self.lock:
            return list(self._topics)

    def queues_of(self, topic: str) -> dict[int, Queue]:
        """The queues of a topic by id; empty if it has none."""
        self.pending.settle()
        with self.lock:
            return dict(self._topics.get(topic, {}))

    def queue(self, topic: str, queue_id: int) -> Queue | None:
        """The queue, None if there is none (getConsumeQueue)."""
        if self.pending.count:
            self.pending.settle_queue(topic, queue_id)
        queues = self._topics.get(topic)
        return None if queues is None else queues.get(queue_id)

    def find_or_create(self, topic: str, queue_id: int) -> Queue:
        """The queue; made where it is missing, without touching the disk (findOrCreateConsumeQueue)."""
        if self.pending.count:
            self.pending.settle_queue(topic, queue_id)
        return self._find(topic, queue_id)

    def _find(self, topic: str, queue_id: int) -> Queue:
        queues = self._topics.get(topic)
        queue = None if queues is None else queues.get(queue_id)
        if queue is not None:
            return queue
        with self.lock:
            return self._get_or_make(topic, queue_id, batch=self._is_batch_topic(topic))

    def has_plain_entries(self, topic: str) -> bool:
        """Return True if a unit of the topic makes 20 bytes in its queue and nothing else."""
        return not self._config.enable_consume_queue_ext and not self._is_batch_topic(topic)

    def load(self, listing: Listing | None = None) -> None:
        """List the queues and their files; nothing is read (docs/formats/consume-queue.md#entry). Raises
        :class:`StoreError`.

        ``listing`` gives the contents of a folder, where they have been listed already.
        """
        listed = listing or self._list
        self._topics, self._dirty, self.pending = {}, set(), PendingEntries(self._put_group)
        for folder, batch in ((self._paths.consumequeue, False), (self._paths.batchconsumequeue, True)):
            for topic in _folders(listed(folder)):
                place = folder / topic
                for name in _folders(listed(place)):
                    number = parse_file_name(name)
                    if number is None or not -_I32_HIGH - 1 <= number <= _I32_HIGH:
                        continue
                    if self._is_batch_topic(topic) != batch:
                        kinds = ("batch queues", "plain queues")
                        raise StoreError(
                            sentence(
                                "expected {expected} by the topic's attributes, found {found}",
                                expected=kinds[batch],
                                found=kinds[not batch],
                            ),
                            file=str(folder / topic),
                        )
                    queue = self._get_or_make(topic, number, batch=batch)
                    queue.load((entry.name, entry.size) for entry in listed(place / str(number)) if not entry.folder)

    def _list(self, folder: Path) -> list[Entry]:
        return [Entry(f"{folder}/{name}", name, size, inside) for name, size, inside in self._disk.entries(folder)]

    def _get_or_make(self, topic: str, queue_id: int, *, batch: bool) -> Queue:
        queues = self._topics.setdefault(topic, {})
        queue = queues.get(queue_id)
        if queue is None:
            queue = queues[queue_id] = self._make(topic, queue_id, batch=batch)
        return queue

    def _make(self, topic: str, queue_id: int, *, batch: bool) -> Queue:
        paths, config = self._paths, self._config
        if batch:
            return BatchConsumeQueue(
                topic, queue_id, self._files(paths.batch_folder(topic, queue_id), self._batch_file_size)
            )
        ext = None
        if config.enable_consume_queue_ext:
            size = config.mapped_file_size_consume_queue_ext
            ext = ConsumeQueueExt(self._files(paths.ext_folder(topic, queue_id), size))
        return ConsumeQueue(topic, queue_id, self._files(paths.queue_folder(topic, queue_id), self._file_size), ext)

    def _files(self, folder: Path, size: int) -> QueueFiles:
        return QueueFiles(self._disk, str(folder), size, self.lock)

    # -- puts

    def put(self, request: Request, bit_map: bytes = b"") -> None:
        """Put the entry of one dispatched unit (docs/formats/consume-queue.md#append, #batch-queues), with an ext
        unit where those are on. Raises ``OSError``.
        """
        if self._deleted and request.physical_offset < self._deleted.get(request.topic, 0):
            return
        if self.pending.count and self.has_plain_entries(request.topic):
            if self.pending.add_one(request):
                return
            self.pending.settle()
        queue = self._queue_for_unit(request.topic, request.queue_id)
        if queue is None:
            return
        self._dirty.add(queue)
        if isinstance(queue, BatchConsumeQueue):
            queue.put(
                BatchCqUnit(
                    request.physical_offset,
                    request.size,
                    request.tags_code,
                    request.store_timestamp,
                    request.base_offset,
                    request.batch_size,
                )
            )
            return
        code = request.tags_code
        if queue.ext is not None:
            address = queue.ext.put(code, request.store_timestamp, bit_map)
            code = code if address == NO_ADDRESS else address
        queue.put(request.physical_offset, request.size, code, request.queue_offset)

    def _find_for_unit(self, topic: str, queue_id: int) -> Queue | None:
        """Return the queue that a unit of the log names, with or without its pending entries; None if no folder
        can have the topic's name (a torn unit, or one that was made up): its message stays in the log.
        """
        if topic not in self._topics and (topic == ASIDE or not is_folder_name(topic)):
            if topic not in self._refused:
                self._refused.add(topic)
                _log.warning("units of topic %.100r get no queue: no folder can have that name", topic)
            return None
        return self._find(topic, queue_id)

    def _queue_for_unit(self, topic: str, queue_id: int) -> Queue | None:
        """Like :meth:`_find_for_unit`, with all entries of the queue written."""
        if self.pending.count:
            self.pending.settle_queue(topic, queue_id)
        return self._find_for_unit(topic, queue_id)

    def put_light(self, request: Request, name: str, queue_id: int, queue_offset: int) -> None:
        """Put a further entry of a unit into the queue ``name`` (docs/formats/consume-queue.md#light-queues); it
        never has an ext unit. Raises ``OSError``.
        """
        if request.physical_offset < self._deleted.get(name, 0):
            return
        queue = self._queue_for_unit(name, queue_id)
        if isinstance(queue, ConsumeQueue):
            self._dirty.add(queue)
            queue.put(request.physical_offset, request.size, request.tags_code, queue_offset)

    def put_runs(self, runs: QueueRuns, names: Sequence[str]) -> list[int]:
        """Put the entries of a block, queue by queue; returns the numbers of the groups that need :meth:`put` for
        each row.

        Those are batch queues and queues with ext units. ``names`` are the topics' by number. Raises ``OSError``.
        """
        singly = []
        ids, numbers = runs.topic_id.tolist(), runs.queue_id.tolist()
        for group in range(len(ids)):
            name, queue_id = names[ids[group]], i32(numbers[group])
            if self.has_plain_entries(name):
                self._put_group(name, queue_id, runs, group)
            else:
                singly.append(group)
        return singly

    def put_late(
        self, columns: EntryColumns, rows: range, runs: QueueRuns, names: Sequence[str], timestamp: int
    ) -> bool:
        """Let the rows of a block wait for others where that pays (see :class:`PendingEntries`); False if they go
        into their queues now. ``runs`` are theirs, ``timestamp`` is the first one's store time. Raises
        ``OSError``.
        """
        if not self.pending.should_wait(runs):
            return False
        if not self._all_plain(names):
            self.pending.settle()
            return False
        self.pending.add(columns, rows.start, rows.stop, names, timestamp)
        return True

    def _all_plain(self, names: Sequence[str]) -> bool:
        names_before, plain_count = self._plain_names
        plain_count = plain_count if names_before is names else 0
        while plain_count < len(names) and self.has_plain_entries(names[plain_count]):
            plain_count += 1
        self._plain_names = (names, plain_count)
        return plain_count == len(names)

    def _put_group(self, topic: str, queue_id: int, runs: QueueRuns, group: int) -> None:
        """The entries of one queue, which has plain ones."""
        begin, stop = int(runs.start[group]), int(runs.start[group + 1])
        end = self._deleted.get(topic)
        if end is not None:
            begin += int(np.count_nonzero(runs.entries["physical_offset"][begin:stop] < end))
            if begin == stop:
                return
        queue = self._find_for_unit(topic, queue_id)
        if not isinstance(queue, ConsumeQueue):
            return
        self._dirty.add(queue)
        if runs.follows[group]:
            queue.put_run(runs.end[begin:stop], runs.queue_offset[begin:stop], runs.entries[begin:stop])
            return
        rows = runs.entries[begin:stop].tolist()
        for (physical, size, tags_code), queue_offset in zip(rows, runs.queue_offset[begin:stop].tolist(), strict=True):
            queue.put(physical, size, tags_code, queue_offset)

    # -- keeping

    @property
    def max_physic_offset(self) -> int:
        """Largest offset into the log that any queue knows, −1 without queues (C of docs/formats/recovery.md#order)."""
        return max((queue.max_physic_offset for queue in self), default=-1)

    def offsets(self) -> dict[tuple[str, int], int]:
        """Return (topic, queue id) → queue offset of the next message, to rebuild the table of offsets."""
        return {(queue.topic, queue.queue_id): queue.max_offset for queue in self}

    def correct_min(self, log_min: int, release: Release = NEWEST) -> None:
        """Correct every queue's minimum to the log's."""
        for queue in self:
            queue.correct_min(log_min, release)

    def flush(self, least_pages: int = 0) -> bool:
        """Flush the queues that were written since they were last clean; True if nothing waits. Raises
        ``OSError``.
        """
        if least_pages == 0:
            self.pending.settle()
        waiting = [queue for queue in self.dirty() if not self.flush_queue(queue, least_pages)]
        return not waiting

    def settle(self) -> Iterator[None]:
        """Write pending entries in small pieces (see :class:`PendingEntries`). Raises ``OSError``."""
        return self.pending.pieces()

    @property
    def dirty_count(self) -> int:
        """Number of queues that have something to flush."""
        return len(self._dirty)

    def dirty(self) -> list[Queue]:
        """The queues that were written since they were last clean."""
        self.pending.settle_idle()
        return list(self._dirty.copy())  # copied in one step: another thread may add to it

    def flush_queue(self, queue: Queue, least_pages: int = 0) -> bool:
        """Flush one queue that is worth it; True if nothing of it waits. Raises ``OSError``."""
        self._dirty.discard(queue)  # a put meanwhile adds it again
        clean = queue.flush(least_pages)
        if not clean:
            self._dirty.add(queue)
        return clean

    def delete_expired(
        self, log_min: int, release: Release = NEWEST, after_deletion: Callable[[], None] | None = None
    ) -> list[str]:
        """Delete the files of all queues that hold nothing the log still has; gives their paths.

        ``after_deletion`` is called after each queue that lost a file: RocketMQ pauses there.
        """
        deleted_paths = []
        for queue in self:
            deleted = queue.delete_expired(log_min, release)
            deleted_paths += deleted
            if deleted and after_deletion is not None:
                after_deletion()
        return deleted_paths

    def distrust(self) -> None:
        """Count all queues as not flushed, before the checkpoint confirms later entries."""
        for queue in self._all():
            queue.distrust()
            self._dirty.add(queue)

    def delete_topic(self, topic: str) -> bool:
        """Delete every queue of a topic with its folders; returns True if there was any (docs/formats/cleaning.md).
        No other thread may put meanwhile.

        Raises ``OSError``; the topic has all its queues then.
        """
        if self.pending.count:
            self.pending.settle_queue(topic, None)
        if topic not in self._topics:
            return False
        set_aside(self._disk, self._kinds, topic)
        with self.lock:
            queues = self._topics.pop(topic)
        for queue in queues.values():
            self._dirty.discard(queue)
            queue.detach()
        self.remove_deleted()
        return True

    def pass_over(self, topic: str, end: int, dispatched: int) -> None:
        """Skip units of a deleted topic that lie before ``end`` in the log: they get no entry, because its queues
        begin at 0 again. Everything before ``dispatched`` is dispatched already, except for pending entries.
        """
        waiting = self.pending.count
        self._deleted = {name: stop for name, stop in self._deleted.items() if waiting or stop > dispatched}
        self._deleted[topic] = end

    def remove_deleted(self) -> None:
        """Remove files of deleted topics that are still there, from before a crash for instance."""
        remove_aside(self._disk, self._kinds)

    def destroy_all(self) -> None:
        """Delete the files of every queue, as RocketMQ does where the log is empty; the queues stay known."""
        for queue in self:
            queue.destroy()
        self._dirty.clear()

    def close(self) -> None:
        """Close open files; pending entries are not written."""
        for queue in self._all():
            queue.forget()


def _folders(entries: Iterable[Entry]) -> list[str]:
    return sorted(entry.name for entry in entries if entry.folder)
