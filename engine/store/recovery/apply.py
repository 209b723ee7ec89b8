"""Recovery carried out: exactly what stands in a plan is cut, deleted and dispatched again (docs/formats/recovery.md).

The preview and its execution are one code: :mod:`.planning` decides, this module does. After an abnormal exit a plan
is carried out while it is made, so that the log is walked once; otherwise it is made first. What dispatch leaves
is held against the plan at the end.

A crash on the way is recovered from: after an abnormal exit the file ``abort`` is still there, and the next start does
the same again. After a normal exit that file is made before the first change, and the checkpoint's times are set to
zero until all is done: the next start goes through the whole log then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.codec.checkpoint import Checkpoint, encode
from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.errors import StoreError
from engine.layout import StorePaths
from engine.mapped.abort_file import AbortFile
from engine.mapped.disk import Disk
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.releases import NEWEST, Release
from engine.rules.unit_check import Request
from engine.store.consume_queue_store import ConsumeQueueStore, Listing
from engine.store.dispatcher import Dispatcher
from engine.store.index_service import IndexService
from engine.store.recovery import blockers as recovery_blockers
from engine.store.recovery import planning as recovery
from engine.store.recovery.empty_log import LogIsEmpty
from engine.store.recovery.plan import DispatchPass, EmptyLog, IndexPlan, QueuePlan, QueueState, RecoveryPlan
from engine.store.recovery.queues import RecoveredQueue
from engine.store.recovery.source import NO_CHECKPOINT, RecoverySource
from engine.store.recovery.walk import LogWalk
from engine.store.store_checkpoint import StoreCheckpoint

_ZEROS = bytes(1 << 20)


class WouldNotStart(StoreError):
    """A broker would not start on the store; :attr:`plan` names what keeps it from it. Nothing was changed."""

    def __init__(self, plan: RecoveryPlan) -> None:
        first = plan.blockers[0]
        super().__init__(first.message, file=first.file)
        self.plan = plan


class Targets(Protocol):
    """What recovery writes to (StoreParts), nothing of it loaded yet; whoever recovers holds the store's lock."""

    @property
    def disk(self) -> Disk: ...
    @property
    def paths(self) -> StorePaths: ...
    @property
    def files(self) -> MappedFileQueue: ...
    @property
    def queues(self) -> ConsumeQueueStore: ...
    @property
    def index(self) -> IndexService | None: ...
    @property
    def dispatcher(self) -> Dispatcher: ...
    @property
    def checkpoint(self) -> StoreCheckpoint: ...


class Bulk(Protocol):
    """Dispatches long stretches of a log quicker than a :class:`Dispatcher` (:mod:`engine.services.rebuild`)."""

    def take(
        self, columns: UnitColumns, topics: TopicTable, chosen: NDArray[np.int64] | None = None, *, queued: bool = False
    ) -> None:
        """The units of one block, or of its rows ``chosen``; with ``queued`` the queues know all of them already."""

    def take_one(self, request: Request) -> None:
        """One unit."""

    def finish(self) -> None:
        """Return when everything taken is in the files."""

    @property
    def last_store_timestamp(self) -> int:
        """Store time (ms) of the newest unit."""

    @property
    def last_physical_offset(self) -> int:
        """Its offset into the log."""


MakeBulk = Callable[[], AbstractContextManager[Bulk]]
Progress = Callable[[int], None]
"""Told the place in the log of the newest unit that was taken."""
BULK_BYTES = 64 << 20
"""Log bytes from which on a bulk dispatch pays."""


def recover(
    source: RecoverySource,
    targets: Targets,
    like: Release = NEWEST,
    bulk: MakeBulk | None = None,
    *,
    empty_log: bool = False,
    progress: Progress | None = None,
) -> RecoveryPlan:
    """Plan and carry out: log, queues and index are loaded and stand as the plan says that is given back.

    ``bulk`` is used where much is to be dispatched; ``progress`` is told how far the log is read, then what is taken.
    Raises :class:`LogIsEmpty` (but with ``empty_log``) and :class:`WouldNotStart` before anything is changed,
    ``OSError`` as it comes.
    """
    if bulk is None or source.log.total_size < BULK_BYTES:
        return _recover(source, targets, like, None, empty_log, progress)
    with bulk() as quick:
        return _recover(source, targets, like, quick, empty_log, progress)


def _recover(
    source: RecoverySource,
    targets: Targets,
    like: Release,
    bulk: Bulk | None,
    empty_log: bool,
    progress: Progress | None,
) -> RecoveryPlan:
    if progress is not None:
        source = replace(source, watch=lambda _start, place, _end: progress(place))
    if not (source.abort and source.heal) or recovery_blockers.load(source, like).blockers:
        plan = recovery.plan(source, like)
        apply(plan, source, targets, bulk, empty_log=empty_log, progress=progress)
        return plan
    execution = _Execution(targets, like, bulk, source.listing, empty_log, progress)
    plan = recovery.plan(source, like, execution)
    if not execution.begun:
        execution.start(plan)
    execution.finish(plan)
    return plan


def apply(
    plan: RecoveryPlan,
    source: RecoverySource,
    targets: Targets,
    bulk: Bulk | None = None,
    *,
    empty_log: bool = False,
    progress: Progress | None = None,
) -> None:
    """Carry ``plan`` out on the store that ``source`` was taken from.

    Raises :class:`LogIsEmpty` (but with ``empty_log``) and :class:`WouldNotStart` before anything is changed,
    ``OSError`` as it comes.
    """
    execution = _Execution(targets, plan.like, bulk, source.listing, empty_log, progress)
    execution.refuse_empty(plan.empty_log)
    if not plan.will_start:
        raise WouldNotStart(plan)
    execution.start(plan)
    files = [file for file in source.log.files if file.path not in plan.files_deleted]
    rules = recovery.dispatch_rules(recovery.rules_of(source, plan.like))
    passes = (recovery.walk_rules(rules, source), rules)
    for number, span in enumerate((plan.first_pass, plan.second_pass)):
        if span is not None:
            LogWalk(files, passes[number], _Behind(execution, span)).run_dispatch(span.start, span.end)
        if number == 0:
            execution.cut_as(plan.queues)
    execution.finish(plan)


class _Execution:
    """The steps of one recovery, in the order in which RocketMQ takes them."""

    def __init__(
        self,
        targets: Targets,
        like: Release,
        bulk: Bulk | None,
        listing: Listing,
        empty_log: bool,
        progress: Progress | None,
    ) -> None:
        self._to = targets
        self._listing = listing
        self._bulk = bulk
        self._like = like
        self._may_be_empty = empty_log
        self._progress = progress
        self._before: Checkpoint | None = None  # the checkpoint as it was, where it was set to zero
        self.begun = False

    # -- before the walk

    def refuse_empty(self, found: EmptyLog | None) -> None:
        """Raise where the log is gone beside others that know it, and nobody said that it may be."""
        if found is not None and not self._may_be_empty:
            raise LogIsEmpty(found)

    def start(self, plan: RecoveryPlan) -> None:
        """Everything that comes before the walk, from a finished plan."""
        self.refuse_empty(plan.empty_log)
        if plan.exit == "normal" and plan.units:
            self._expect_a_crash()
        self._load(plan.index_deleted)
        for queue in plan.queues:
            if queue.found is not None:
                self._restore(queue.topic, queue.queue_id, queue.found)

    def begin(self, prepared: recovery.Prepared) -> None:
        """The same while the plan is being made."""
        self.refuse_empty(prepared.empty_log)
        self.begun = True
        self._load(prepared.index_deleted)
        for queue in prepared.queues:
            assert queue.found is not None
            self._restore(queue.topic, queue.queue_id, queue.found)

    def _load(self, index_deleted: Iterable[IndexPlan]) -> None:
        to = self._to
        for index in index_deleted:
            to.disk.delete(Path(index.path))
        if index_deleted:
            to.disk.sync_folder(to.paths.index)
        to.files.load()
        to.queues.load(self._listing)
        if to.index is not None:
            to.index.load()

    def _expect_a_crash(self) -> None:
        """Let a start after a crash from here on go through the whole log."""
        to = self._to
        self._before = to.checkpoint.load()
        zero = replace(self._before, physic_msg_timestamp=0, logics_msg_timestamp=0)
        to.disk.write_file(to.paths.checkpoint, encode(zero), sync=True)
        to.checkpoint.load()
        AbortFile(to.disk, to.paths, self._like).create()

    # -- units

    def take_rows(
        self, columns: UnitColumns, topics: TopicTable, rows: NDArray[np.int64], *, queued: bool = False
    ) -> None:
        """Dispatch the rows with these numbers."""
        if self._bulk is not None:
            self._bulk.take(columns, topics, rows, queued=queued)
        else:
            self._to.dispatcher.dispatch_block(columns, topics, rows)
        if self._progress is not None and len(rows):
            self._progress(int(columns.physical_offset[rows[-1]]))

    def take(self, place: int, request: Request) -> None:  # noqa: ARG002 (a queue entry points where the unit says)
        """Dispatch one unit."""
        if self._bulk is not None:
            self._bulk.take_one(request)
        else:
            self._to.dispatcher.dispatch(request)
        if self._progress is not None:
            self._progress(request.physical_offset)

    def _dispatched(self) -> tuple[int, int]:
        """Everything taken is in the files; gives the store time of the newest unit, and its offset into the log."""
        if self._bulk is None:
            return self._to.dispatcher.last_store_timestamp, self._to.dispatcher.last_physical_offset
        self._bulk.finish()
        return self._bulk.last_store_timestamp, self._bulk.last_physical_offset

    # -- cutting

    def cut(self, queues: Iterable[RecoveredQueue]) -> None:
        """Cut the queues by the end of the log."""
        self._dispatched()
        for queue in queues:
            if queue.cut is not None:
                self._cut(queue.topic, queue.queue_id, queue.cut)

    def cut_as(self, queues: Iterable[QueuePlan]) -> None:
        """The same from a finished plan."""
        self._dispatched()
        for queue in queues:
            if queue.cut is not None:
                self._cut(queue.topic, queue.queue_id, queue.cut)

    def _cut(self, topic: str, queue_id: int, state: QueueState) -> None:
        queue = self._to.queues.find_or_create(topic, queue_id)
        before = queue.state()
        stop = before.end_bytes
        if state.last_file is not None and before.last_file != state.last_file:
            stop = state.last_file + queue.files.file_size
        self._restore(topic, queue_id, state, stop)

    def _restore(self, topic: str, queue_id: int, state: QueueState, clear_to: int = 0) -> None:
        """Let the queue stand at ``state``. Bytes behind its end stay until the end of the recovery unless ``clear_to``
        says otherwise: entries that are dispatched again may join them, and the cut by the log's end keeps them then.
        """
        queue = self._to.queues.find_or_create(topic, queue_id)
        gone = queue.restore(state)
        if state.last_file is not None and clear_to > state.end_bytes:
            queue.clear(clear_to)
        for folder in dict.fromkeys(Path(path).parent for path in gone):
            self._to.disk.sync_folder(folder)

    # -- at the end

    def finish(self, plan: RecoveryPlan) -> None:
        """Cut the log, correct the minimums, and hold what is there against the plan."""
        to = self._to
        newest, newest_offset = self._dispatched()
        if _empties(plan):
            self._forget_the_log()
        if plan.start_file is None:
            to.queues.destroy_all()
        self._cut_log(plan)
        for queue in plan.queues:
            self._settle_queue(queue, plan)
        checkpoint = to.checkpoint
        checkpoint.confirm = max(plan.confirm_offset, 0)
        checkpoint.logics = max(checkpoint.logics, newest)
        if checkpoint.logics_offset >= plan.end_offset:
            checkpoint.cut_logics_offset(max(plan.confirm_offset, 0))
        checkpoint.logics_offset = max(checkpoint.logics_offset, newest_offset)
        if self._before is not None:
            self._crash_is_over(self._before)

    def _forget_the_log(self) -> None:
        """The next start is not to ask whether the log may be empty: the checkpoint knows of nothing from here on. That
        comes before the last bytes of the log go, so that a crash in between is not asked about either.
        """
        self._to.disk.write_file(self._to.paths.checkpoint, encode(NO_CHECKPOINT), sync=True)
        self._to.checkpoint.load()

    def _cut_log(self, plan: RecoveryPlan) -> None:
        log, disk = self._to.files, self._to.disk
        end = plan.end_offset
        log.truncate(plan.log_cut)
        log.flushed_where = log.committed_where = end
        for folder in dict.fromkeys(Path(path).parent for path in plan.log_files_deleted):
            disk.sync_folder(folder)
        last = log.last
        if last is None or plan.clear_to <= end:
            return
        file = disk.open(Path(last.path), last.size)
        at, stop = end - last.start_offset, plan.clear_to - last.start_offset
        begin = at
        while at < stop:
            count = min(len(_ZEROS), stop - at)
            file.write(at, memoryview(_ZEROS)[:count])
            at += count
        file.flush(begin, stop)
        file.close()

    def _settle_queue(self, wanted: QueuePlan, plan: RecoveryPlan) -> None:
        queue = self._to.queues.find_or_create(wanted.topic, wanted.queue_id)
        stands, final = queue.state(), wanted.final
        if stands.last_file == stands.end_bytes and stands.last_file != final.last_file:  # an empty one, deleted
            self._restore(wanted.topic, wanted.queue_id, final)
            stands = queue.state()
        if (stands.last_file, stands.end_bytes, stands.max_physic) != (
            final.last_file,
            final.end_bytes,
            final.max_physic,
        ):
            raise StoreError(
                f"queue {wanted.topic}/{wanted.queue_id} was to stand at {final}, it stands at {stands}: "
                "the plan and what was done differ",
                file=str(self._to.paths.root),
            )
        if plan.start_file is not None and wanted.found is not None and wanted.found.ext_end is not None:
            queue.correct_min(plan.log_min, plan.like)  # deletes ext files, too
        if queue.state() != final:
            queue.restore(final)
        in_place = wanted.found is not None and wanted.found.last_file == final.last_file
        if in_place and wanted.clear_to > final.end_bytes:
            queue.clear(wanted.clear_to)

    def _crash_is_over(self, before: Checkpoint) -> None:
        to = self._to
        to.queues.flush()
        checkpoint = to.checkpoint
        checkpoint.physic = before.physic_msg_timestamp
        checkpoint.logics = max(before.logics_msg_timestamp, checkpoint.logics)
        checkpoint.settle_logics(checkpoint.logics, checkpoint.logics_offset)
        checkpoint.flush()


def _empties(plan: RecoveryPlan) -> bool:
    """Whether recovery leaves nothing of a log that somebody knows of: the word for it was said, or the walk ended at
    the log's first byte and what stands there is cleared (one blank unit; a first unit that is damaged).
    """
    if plan.start_file is not None and plan.end_offset > plan.log_min:
        return False
    return plan.empty_log is not None or plan.clear_to > plan.end_offset


class _Behind:
    """Lets through the units of one pass: those whose PHYSICALOFFSET lies behind ``span.after``."""

    def __init__(self, execution: _Execution, span: DispatchPass) -> None:
        self._execution = execution
        self._after = span.after

    def take_rows(self, columns: UnitColumns, topics: TopicTable, rows: int) -> None:
        wanted = np.flatnonzero(columns.physical_offset[:rows] > self._after)
        if len(wanted):
            self._execution.take_rows(columns, topics, wanted)

    def take(self, place: int, request: Request) -> None:
        if request.physical_offset > self._after:
            self._execution.take(place, request)
