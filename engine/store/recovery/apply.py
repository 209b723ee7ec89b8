"""Apply a recovery plan: cut, delete and dispatch again exactly what the plan says (docs/formats/recovery.md).

Preview and execution share their code: :mod:`.planning` decides, this module acts. After an abnormal exit the plan is
applied while it is made, so that the log is walked once; otherwise the plan is made first. At the end, the result of
the dispatch is compared with the plan.

A crash during recovery does no damage. After an abnormal exit the file ``abort`` is still there, and the next start
does the same again. After a normal exit this module creates ``abort`` before the first change and sets the
checkpoint's times to zero until everything is done, so that the next start walks the whole log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.callbacks import OffsetProgress
from engine.codec.checkpoint import Checkpoint, encode
from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.errors import StoreError
from engine.mapped.abort_file import AbortFile
from engine.releases import NEWEST, Release
from engine.rules.unit_check import Request
from engine.sentences import sentence
from engine.store.consume_queue_store import Listing
from engine.store.recovery import blockers as recovery_blockers
from engine.store.recovery import planning as recovery
from engine.store.recovery.empty_log import LogIsEmpty
from engine.store.recovery.plan import DispatchPass, EmptyLog, IndexPlan, QueuePlan, QueueState, RecoveryPlan
from engine.store.recovery.queues import RecoveredQueue
from engine.store.recovery.source import NO_CHECKPOINT, RecoverySource
from engine.store.recovery.store_rules import dispatch_rules, unit_rules, walk_rules
from engine.store.recovery.walk import LogWalk

if TYPE_CHECKING:
    from engine.store.store_parts import StoreParts


_ZEROS = bytes(1 << 20)


class WouldNotStart(StoreError):
    """A broker would not start on the store; :attr:`plan` names the reasons. Nothing was changed."""

    def __init__(self, plan: RecoveryPlan) -> None:
        blocker = plan.blockers[0]
        super().__init__(blocker.message, file=blocker.file)
        self.plan = plan


class BulkDispatcher(Protocol):
    """Dispatches long ranges of a log quicker than a :class:`Dispatcher` (:mod:`engine.services.rebuild`)."""

    def take(
        self, columns: UnitColumns, topics: TopicTable, chosen: NDArray[np.int64] | None = None, *, queued: bool = False
    ) -> None:
        """Dispatch the units of one block, or of its rows ``chosen``; with ``queued`` the queues know all of them
        already.
        """

    def take_one(self, request: Request) -> None:
        """Dispatch one unit."""

    def finish(self) -> None:
        """Return when everything taken is in the files."""

    @property
    def last_store_timestamp(self) -> int:
        """Store time (ms) of the newest unit."""

    @property
    def last_physical_offset(self) -> int:
        """Offset of the newest unit in the log."""


MakeBulk = Callable[[], AbstractContextManager[BulkDispatcher]]
BULK_BYTES = 64 << 20
"""Minimum bytes of the log for which a bulk dispatch is worth its start."""


def recover(
    source: RecoverySource,
    targets: StoreParts,
    release: Release = NEWEST,
    bulk: MakeBulk | None = None,
    *,
    empty_log: bool = False,
    progress: OffsetProgress | None = None,
) -> RecoveryPlan:
    """Make a plan, carry it out, and return it. Afterwards log, queues and index are loaded, in the state that the plan
    describes.

    ``bulk`` is used where much is to be dispatched; ``progress`` gets the offset up to which the log is read,
    then that of the units dispatched. Raises :class:`LogIsEmpty` (unless ``empty_log``) and
    :class:`WouldNotStart` before anything is changed, ``OSError`` as it comes.
    """
    if bulk is None or source.log.total_size < BULK_BYTES:
        return _recover(source, targets, release, None, empty_log, progress)
    with bulk() as bulk_dispatch:
        return _recover(source, targets, release, bulk_dispatch, empty_log, progress)


def _recover(
    source: RecoverySource,
    targets: StoreParts,
    release: Release,
    bulk: BulkDispatcher | None,
    empty_log: bool,
    progress: OffsetProgress | None,
) -> RecoveryPlan:
    if progress is not None:
        source = replace(source, watch=lambda _start, place, _end: progress(place))
    if not (source.abort and source.heal) or recovery_blockers.load(source, release).blockers:
        plan = recovery.plan(source, release)
        apply(plan, source, targets, bulk, empty_log=empty_log, progress=progress)
        return plan
    execution = _Execution(targets, release, bulk, source.listing, empty_log, progress)
    plan = recovery.plan(source, release, execution)
    if not execution.begun:
        execution.start(plan)
    execution.finish(plan)
    return plan


def apply(
    plan: RecoveryPlan,
    source: RecoverySource,
    targets: StoreParts,
    bulk: BulkDispatcher | None = None,
    *,
    empty_log: bool = False,
    progress: OffsetProgress | None = None,
) -> None:
    """Carry ``plan`` out on the store that ``source`` was taken from.

    Raises :class:`LogIsEmpty` (unless ``empty_log``) and :class:`WouldNotStart` before anything is changed,
    ``OSError`` as it comes.
    """
    execution = _Execution(targets, plan.release, bulk, source.listing, empty_log, progress)
    execution.refuse_empty(plan.empty_log)
    if not plan.will_start:
        raise WouldNotStart(plan)
    execution.start(plan)
    files = [file for file in source.log.files if file.path not in plan.files_deleted]
    rules = dispatch_rules(unit_rules(source, plan.release))
    passes = (walk_rules(rules, source), rules)
    for number, span in enumerate((plan.first_pass, plan.second_pass)):
        if span is not None:
            LogWalk(files, passes[number], _PassFilter(execution, span)).run_dispatch(span.start, span.end)
        if number == 0:
            execution.cut_as(plan.queues)
    execution.finish(plan)


class _Execution:
    """The steps of one recovery, in the order in which RocketMQ takes them."""

    def __init__(
        self,
        targets: StoreParts,
        release: Release,
        bulk: BulkDispatcher | None,
        listing: Listing,
        empty_log: bool,
        progress: OffsetProgress | None,
    ) -> None:
        self._to = targets
        self._listing = listing
        self._bulk = bulk
        self._release = release
        self._may_be_empty = empty_log
        self._progress = progress
        self._before: Checkpoint | None = None  # the earlier checkpoint, if it was set to zeros
        self.begun = False

    # -- before the walk

    def refuse_empty(self, empty_log: EmptyLog | None) -> None:
        """Raise :class:`LogIsEmpty` if the log is empty but other files refer to it, unless the caller allowed that."""
        if empty_log is not None and not self._may_be_empty:
            raise LogIsEmpty(empty_log)

    def start(self, plan: RecoveryPlan) -> None:
        """Do everything that comes before the walk, from a finished plan."""
        self.refuse_empty(plan.empty_log)
        if plan.exit == "normal" and plan.units:
            self._prepare_for_crash()
        self._load(plan.index_deleted)
        for queue in plan.queues:
            if queue.current_state is not None:
                self._restore(queue.topic, queue.queue_id, queue.current_state)

    def begin(self, prepared: recovery.WalkPreparation) -> None:
        """Like :meth:`start`, while the plan is being made."""
        self.refuse_empty(prepared.empty_log)
        self.begun = True
        self._load(prepared.index_deleted)
        for queue in prepared.queues:
            assert queue.recovered_state is not None
            self._restore(queue.topic, queue.queue_id, queue.recovered_state)

    def _load(self, index_deleted: Iterable[IndexPlan]) -> None:
        targets = self._to
        for index in index_deleted:
            targets.disk.delete(Path(index.path))
        if index_deleted:
            targets.disk.sync_folder(targets.paths.index)
        targets.files.load()
        targets.queues.load(self._listing)
        if targets.index is not None:
            targets.index.load()

    def _prepare_for_crash(self) -> None:
        """Prepare for a crash from here on: the next start then reads the complete log."""
        targets = self._to
        self._before = targets.checkpoint.load()
        zero = replace(self._before, physic_msg_timestamp=0, logics_msg_timestamp=0)
        targets.disk.write_file(targets.paths.checkpoint, encode(zero), sync=True)
        targets.checkpoint.load()
        AbortFile(targets.disk, targets.paths, self._release).create()

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
        """Wait until everything taken is in the files; returns the newest unit's store time and its offset into the
        log.
        """
        if self._bulk is None:
            return self._to.dispatcher.last_store_timestamp, self._to.dispatcher.last_physical_offset
        self._bulk.finish()
        return self._bulk.last_store_timestamp, self._bulk.last_physical_offset

    # -- cutting

    def cut(self, queues: Iterable[RecoveredQueue]) -> None:
        """Cut the queues at the end of the log."""
        self._dispatched()
        for queue in queues:
            if queue.cut is not None:
                self._cut(queue.topic, queue.queue_id, queue.cut)

    def cut_as(self, queues: Iterable[QueuePlan]) -> None:
        """Like :meth:`cut`, from a finished plan."""
        self._dispatched()
        for queue in queues:
            if queue.cut is not None:
                self._cut(queue.topic, queue.queue_id, queue.cut)

    def _cut(self, topic: str, queue_id: int, state: QueueState) -> None:
        queue = self._to.queues.find_or_create(topic, queue_id)
        old_state = queue.state()
        stop = old_state.end_bytes
        if state.last_file is not None and old_state.last_file != state.last_file:
            stop = state.last_file + queue.files.file_size
        self._restore(topic, queue_id, state, stop)

    def _restore(self, topic: str, queue_id: int, state: QueueState, clear_to: int = 0) -> None:
        """Set the queue to ``state``. Bytes behind its end stay until the end of the recovery unless ``clear_to``
        says otherwise: entries that are dispatched again may join them, and the cut by the log's end keeps them
        then.
        """
        queue = self._to.queues.find_or_create(topic, queue_id)
        deleted_paths = queue.restore(state)
        if state.last_file is not None and clear_to > state.end_bytes:
            queue.clear(clear_to)
        for folder in dict.fromkeys(Path(path).parent for path in deleted_paths):
            self._to.disk.sync_folder(folder)

    # -- at the end

    def finish(self, plan: RecoveryPlan) -> None:
        """Cut the log, correct the minimums, and compare the result with the plan."""
        targets = self._to
        newest, newest_offset = self._dispatched()
        if _leaves_log_empty(plan):
            self._clear_checkpoint()
        if plan.start_file is None:
            targets.queues.destroy_all()
        self._cut_log(plan)
        for queue in plan.queues:
            self._settle_queue(queue, plan)
        checkpoint = targets.checkpoint
        checkpoint.confirm = max(plan.confirm_offset, 0)
        checkpoint.logics = max(checkpoint.logics, newest)
        if checkpoint.logics_offset >= plan.end_offset:
            checkpoint.cut_logics_offset(max(plan.confirm_offset, 0))
        checkpoint.logics_offset = max(checkpoint.logics_offset, newest_offset)
        if self._before is not None:
            self._restore_checkpoint(self._before)

    def _clear_checkpoint(self) -> None:
        """Set the checkpoint to zeros, so that the next start does not ask again if the log may be empty. That comes
        before the last bytes of the log go: a start after a crash in between does not ask either.
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
        last_file = log.last
        if last_file is None or plan.clear_to <= end:
            return
        file = disk.open(Path(last_file.path), last_file.size)
        position, stop = end - last_file.start_offset, plan.clear_to - last_file.start_offset
        begin = position
        while position < stop:
            count = min(len(_ZEROS), stop - position)
            file.write(position, memoryview(_ZEROS)[:count])
            position += count
        file.flush(begin, stop)
        file.close()

    def _settle_queue(self, queue_plan: QueuePlan, plan: RecoveryPlan) -> None:
        queue = self._to.queues.find_or_create(queue_plan.topic, queue_plan.queue_id)
        state, final = queue.state(), queue_plan.final
        if state.last_file == state.end_bytes and state.last_file != final.last_file:  # an empty one, deleted
            self._restore(queue_plan.topic, queue_plan.queue_id, final)
            state = queue.state()
        if (state.last_file, state.end_bytes, state.max_physic) != (
            final.last_file,
            final.end_bytes,
            final.max_physic,
        ):
            raise StoreError(
                sentence(
                    "queue {topic}/{queue_id} was planned to end at {final}, but ends at {state}: the result "
                    "differs from the plan",
                    topic=queue_plan.topic,
                    queue_id=queue_plan.queue_id,
                    final=final,
                    state=state,
                ),
                file=str(self._to.paths.root),
            )
        if (
            plan.start_file is not None
            and queue_plan.current_state is not None
            and queue_plan.current_state.ext_end is not None
        ):
            queue.correct_min(plan.log_min, plan.release)  # deletes ext files, too
        if queue.state() != final:
            queue.restore(final)
        in_place = queue_plan.current_state is not None and queue_plan.current_state.last_file == final.last_file
        if in_place and queue_plan.clear_to > final.end_bytes:
            queue.clear(queue_plan.clear_to)

    def _restore_checkpoint(self, old_checkpoint: Checkpoint) -> None:
        targets = self._to
        targets.queues.flush()
        checkpoint = targets.checkpoint
        checkpoint.physic = old_checkpoint.physic_msg_timestamp
        checkpoint.logics = max(old_checkpoint.logics_msg_timestamp, checkpoint.logics)
        checkpoint.settle_logics(checkpoint.logics, checkpoint.logics_offset)
        checkpoint.flush()


def _leaves_log_empty(plan: RecoveryPlan) -> bool:
    """Return True if recovery leaves the log empty although other files refer to it.

    This happens if the caller allowed it, or if the walk ended at the log's first byte and that place is cleared (the
    first unit is blank or damaged).
    """
    if plan.start_file is not None and plan.end_offset > plan.log_min:
        return False
    return plan.empty_log is not None or plan.clear_to > plan.end_offset


class _PassFilter:
    """Lets through the units of one pass: those whose PHYSICALOFFSET is greater than ``span.after``."""

    def __init__(self, execution: _Execution, span: DispatchPass) -> None:
        self._execution = execution
        self._after = span.after_offset

    def take_rows(self, columns: UnitColumns, topics: TopicTable, rows: int) -> None:
        new_rows = np.flatnonzero(columns.physical_offset[:rows] > self._after)
        if len(new_rows):
            self._execution.take_rows(columns, topics, new_rows)

    def take(self, place: int, request: Request) -> None:
        if request.physical_offset > self._after:
            self._execution.take(place, request)
