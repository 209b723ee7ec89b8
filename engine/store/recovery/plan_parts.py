"""Parts of a plan that every kind of start has: the queues, the index, the groups."""

from __future__ import annotations

from collections.abc import Iterable

from engine.releases import Release
from engine.sentences import sentence
from engine.store.recovery.dispatch import QueueTable
from engine.store.recovery.plan import Blocker, ExtCut, GroupBeyondEnd, IndexPlan, QueuePlan
from engine.store.recovery.queues import EmptyLastFile, RecoveredQueue
from engine.store.recovery.source import IndexHead, RecoverySource


def correct_minimums(table: QueueTable, log_min: int, release: Release) -> list[Blocker]:
    """Correct the minimum offset of every queue; returns a blocker for each where that fails."""
    blockers = []
    for queue in table:
        try:
            queue.correct_min(log_min, release)
        except EmptyLastFile:
            last_file = queue.data.files[-1]
            path = last_file.disk.path if last_file.disk else last_file.name
            blockers.append(
                Blocker(
                    "CQ06",
                    sentence(
                        "The last file of {queue} is empty and does not begin at 0: the correction of the minimum "
                        "offset fails",
                        queue=f"{queue.topic}/{queue.queue_id}",
                    ),
                    "load exception java.lang.IllegalArgumentException: newPosition < 0: (-20 < 0)",
                    path,
                )
            )
    return blockers


def queue_plans(table: QueueTable) -> tuple[QueuePlan, ...]:
    """Return what happens to each queue, by topic and number."""
    return tuple(_queue_plan(queue) for _, queue in sorted(table.queues.items()))


def _queue_plan(queue: RecoveredQueue) -> QueuePlan:
    return QueuePlan(
        queue.topic,
        queue.queue_id,
        queue.kind,
        queue.min_offset,
        queue.max_offset,
        queue.dropped,
        queue.added,
        queue.cut_to,
        tuple(queue.deleted),
        not queue.existed,
        queue.shifted,
        queue.state,
        queue.recovered_state,
        queue.cut,
        queue.clear_to,
    )


def ext_cuts_of(table: QueueTable) -> tuple[ExtCut, ...]:
    """Return where the ext queues are cut."""
    cuts = (queue.ext.cut(queue.topic, queue.queue_id) for _, queue in sorted(table.queues.items()) if queue.ext)
    return tuple(cut for cut in cuts if cut is not None)


def deleted_files(table: QueueTable, ext_cuts: Iterable[ExtCut]) -> list[str]:
    """Return the files of queues and ext queues that a start deletes."""
    files = [path for queue in table for path in queue.deleted]
    return files + [path for cut in ext_cuts for path in cut.files_deleted]


def groups_beyond_end(source: RecoverySource, table: QueueTable) -> tuple[GroupBeyondEnd, ...]:
    """Return the offsets of groups that lie behind the end of their queue."""
    groups_beyond = []
    for group in source.group_offsets:
        queue = table.queues.get((group.topic, group.queue_id))
        if queue is not None and group.offset > queue.max_offset:
            groups_beyond.append(
                GroupBeyondEnd(group.group, group.topic, group.queue_id, group.offset, queue.max_offset)
            )
    return tuple(groups_beyond)


def index_plans(
    heads: Iterable[IndexHead], source: RecoverySource
) -> tuple[tuple[IndexPlan, ...], tuple[IndexPlan, ...]]:
    kept_index: list[IndexPlan] = []
    deleted_index: list[IndexPlan] = []
    for head in heads:
        header = head.header
        index_plan = IndexPlan(
            head.name,
            head.path,
            header.entries,
            header.begin_timestamp,
            header.end_timestamp,
            header.begin_phy_offset,
            header.end_phy_offset,
        )
        is_deleted = source.abort and header.end_timestamp > source.checkpoint.index_msg_timestamp
        (deleted_index if is_deleted else kept_index).append(index_plan)
    return tuple(kept_index), tuple(deleted_index)
