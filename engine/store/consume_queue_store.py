"""All consume queues of a store: loaded, found, put into, deleted (docs/formats/consume-queue.md; Java:
ConsumeQueueStore).

The folders of a deleted topic disappear at once and are removed later (docs/formats/cleaning.md). A topic has a
folder for each kind of queue and many files in it. If they were removed one by one, a disk error would leave half
a topic, and a power loss queues with holes. So the folders are renamed first: that happens, or it does not. No
broker takes what a crash leaves there for a queue, because the names are no numbers.

:class:`PendingEntries` are entries of very many queues that wait to be written together
(docs/formats/consume-queue.md#append). With forty thousand queues in turns every entry goes into another file,
and opening files costs more than all the rest. So such entries wait in memory as rows, and each queue is written
once for many. No reader sees the difference: a queue that is asked for is written first. Entries that a crash
loses are dispatched again, because :attr:`PendingEntries.oldest_timestamp` keeps the checkpoint from going beyond
them.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.codec.batch_consume_queue import BatchCqUnit
from engine.codec.java import i32
from engine.codec.message import PREPARED, TRANSACTION_MASK
from engine.codec.queue_builder import EntryColumns, EntryRows, QueueRuns, build_runs
from engine.codec.queue_placing import NO_ADDRESS
from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.files.layout import StorePaths, is_folder_name, parse_file_name
from engine.mapped.disk import Disk
from engine.releases import NEWEST, Release
from engine.rules.unit_check import Request
from engine.store.consume_queue import BatchConsumeQueue, ConsumeQueue, ConsumeQueueExt
from engine.store.queue_files import QueueFiles
from engine.store.recovery.source import Entry

LEAST_QUEUES = 256
SPARSE_ROWS_PER_QUEUE = 8
"""A block with fewer rows per queue than this waits."""
SMALLEST, LARGEST = 1 << 16, 1 << 19
WANTED_ROWS_PER_QUEUE = 12
"""Rows per queue to wait for, as long as memory (20 MB at most) allows."""
_PIECE = 64
PutGroup = Callable[[str, int, QueueRuns, int], None]


class PendingEntries:
    """Rows not yet in their queues. ``put_group(topic, queue_id, runs, group)`` writes those of one queue.

    The dispatching thread adds rows; any thread may have queues written. All methods may raise ``OSError``; rows
    that could not be written stay pending.
    """

    def __init__(self, put_group: PutGroup) -> None:
        self._put_group = put_group
        self._lock = threading.RLock()
        self._rows: EntryRows | None = None
        self._runs: QueueRuns | None = None  # rows on their way into the queues, before those in _rows
        self._written = np.zeros(0, np.bool_)
        self._next = 0
        self._names: Sequence[str] = ()
        self._ids: dict[str, tuple[int, ...]] = {}  # one number but for names that only malformed bytes tell apart
        self._known = 0
        self._capacity = SMALLEST
        self._timestamps = [0, 0]  # of the oldest row in _runs, in _rows
        self._offsets = [0, 0]  # of the same rows, into the log
        self._added = self._seen = 0
        self.count = 0
        """Rows that wait; 0 is the usual case and costs nothing."""

    @property
    def oldest_timestamp(self) -> int:
        """Store time (ms) of the oldest pending unit, 0 without one."""
        return self._timestamps[0] or self._timestamps[1]

    @property
    def oldest_offset(self) -> int:
        """Offset into the log of the oldest pending unit; meaningless without one."""
        return self._offsets[0] if self._timestamps[0] else self._offsets[1]

    def wants(self, runs: QueueRuns) -> bool:
        """Return True if the rows of a block should wait: some already do, or the block has very few for each of
        many queues.
        """
        return self.count > 0 or (len(runs) >= LEAST_QUEUES and len(runs.row) < SPARSE_ROWS_PER_QUEUE * len(runs))

    def add(self, columns: EntryColumns, start: int, stop: int, names: Sequence[str], timestamp: int) -> None:
        """Add rows ``start`` to ``stop``, stored at ``timestamp`` (ms) and later; ``names`` are the topics' by
        number.
        """
        if (
            self._rows is not None and self._rows.count + stop - start > self._rows.capacity
        ) or names is not self._names:
            self.settle()
        with self._lock:
            if self._rows is None:
                self._rows = EntryRows(max(self._capacity, stop - start))
            if names is not self._names:
                self._names, self._ids, self._known = names, {}, 0
            for number in range(self._known, len(names)):
                self._ids[names[number]] = (*self._ids.get(names[number], ()), number)
            self._known = len(names)
            self._rows.add(columns, start, stop)
            self._note(stop - start, timestamp, int(columns.physical_offset[start]))

    def add_one(self, request: Request) -> bool:
        """Add one unit behind the others; returns False where its topic is not known here."""
        with self._lock:
            numbers, rows = self._ids.get(request.topic), self._rows
            if numbers is None or rows is None or rows.count == rows.capacity:
                return False
            rows.add_one(
                request.sys_flag,
                numbers[0],
                request.queue_id,
                request.queue_offset,
                request.physical_offset,
                request.size,
                request.tags_code,
            )
            self._note(1, request.store_timestamp, request.physical_offset)
            return True

    def _note(self, rows: int, timestamp: int, offset: int) -> None:
        if not self._timestamps[1]:
            self._offsets[1] = offset
        self._timestamps[1] = self._timestamps[1] or timestamp
        self.count += rows
        self._added += rows

    def settle_queue(self, topic: str, queue_id: int | None) -> None:
        """Write the pending entries of one queue, or of all queues of a topic."""
        with self._lock:
            numbers, runs, rows = self._ids.get(topic), self._runs, self._rows
            if numbers is None:
                return
            if runs is not None:
                is_chosen_run = _is_one_of(runs.topic_id, numbers)
                if queue_id is not None:
                    is_chosen_run &= runs.queue_id == queue_id
                for group in np.flatnonzero(is_chosen_run).tolist():
                    self._write(runs, group)
            if rows is None or not rows.count:
                return
            is_chosen_row = _is_one_of(rows.topic_id[: rows.count], numbers)
            if queue_id is not None:
                is_chosen_row &= rows.queue_id[: rows.count] == queue_id
            chosen_rows = np.flatnonzero(is_chosen_row)
            if len(chosen_rows):
                queue_runs = build_runs(rows.select(chosen_rows), 0, len(chosen_rows))
                for group in range(len(queue_runs)):
                    self._put_group(
                        self._names[int(queue_runs.topic_id[group])],
                        i32(int(queue_runs.queue_id[group])),
                        queue_runs,
                        group,
                    )
                # These rows are written now: mark them as units that go into no queue.
                rows.sys_flag[chosen_rows] = PREPARED & TRANSACTION_MASK

    def settle(self) -> None:
        """Write all pending entries."""
        for _ in self.pieces():
            pass

    def pieces(self) -> Iterator[None]:
        """:meth:`settle` in small pieces, between which another thread may ask for a queue."""
        while self.count:
            with self._lock:
                if self._runs is None and not self._begin():
                    return
                self._go_on()
            yield

    def settle_idle(self) -> None:
        """:meth:`settle` where nothing was added since the last call."""
        idle, self._seen = self._seen == self._added, self._added
        if idle and self.count:
            self.settle()

    def _begin(self) -> bool:
        """Make runs of the rows; False where there are none."""
        rows, self._rows = self._rows, None
        if rows is None or not rows.count:
            self.count = 0
            return False
        runs = build_runs(rows, 0, rows.count)
        self._capacity = min(max(SMALLEST, WANTED_ROWS_PER_QUEUE * len(runs)), LARGEST)
        self._runs, self._written, self._next = runs, np.zeros(len(runs), np.bool_), 0
        self._timestamps, self._offsets = [self._timestamps[1], 0], [self._offsets[1], 0]
        self.count = max(rows.count, 1)
        return True

    def _go_on(self) -> None:
        runs = self._runs
        if runs is None:
            return
        stop = min(self._next + _PIECE, len(runs))
        while self._next < stop:
            self._write(runs, self._next)
            self._next += 1
        if self._next >= len(runs):
            self._runs, self._timestamps[0] = None, 0
            self.count = self._rows.count if self._rows is not None else 0

    def _write(self, runs: QueueRuns, group: int) -> None:
        if not self._written[group]:
            self._put_group(self._names[int(runs.topic_id[group])], i32(int(runs.queue_id[group])), runs, group)
            self._written[group] = True


def _is_one_of(topic_id: npt.NDArray[np.int32], numbers: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    is_member: npt.NDArray[np.bool_] = topic_id == numbers[0] if len(numbers) == 1 else np.isin(topic_id, numbers)
    return is_member


Queue = ConsumeQueue | BatchConsumeQueue
Listing = Callable[[Path], Iterable[Entry]]
BitMap = Callable[[Request], bytes]
_I32_HIGH: Final = (1 << 31) - 1
_log = logging.getLogger(__name__)


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
        """The queues of a topic by id; empty where it has none."""
        self.pending.settle()
        with self.lock:
            return dict(self._topics.get(topic, {}))

    def queue(self, topic: str, queue_id: int) -> Queue | None:
        """The queue, None where there is none (getConsumeQueue)."""
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
                            f"expected {kinds[batch]} by the topic's attributes, found {kinds[not batch]}",
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
        """Return the queue that a unit of the log names, with or without its pending entries; None where no folder
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
        """Let the rows of a block wait for others where that pays (see :class:`PendingEntries`); False where they go
        into their queues now. ``runs`` are theirs, ``timestamp`` is the first one's store time. Raises
        ``OSError``.
        """
        if not self.pending.wants(runs):
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
        """Flush the queues that were written since they were last clean; True where nothing waits. Raises
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
        """Flush one queue that is worth it; True where nothing of it waits. Raises ``OSError``."""
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
        """Count all queues as not flushed, before the checkpoint vouches for what comes behind them."""
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
    """Remove what was set aside, now or before a crash; what cannot be removed stays for the next time."""
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
