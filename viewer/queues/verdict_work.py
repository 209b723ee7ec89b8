"""Counting the verdicts of a queue's entries in the worker: whether each agrees with the unit it points at.

Runs as ``jobs.in_worker(title, "viewer.queues.verdict_work:count", …)``. No Qt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.inspection.entry_verdict import resolve
from engine.inspection.moved_entries import MovedEntry, entries
from viewer.queues.rows import PROBLEMS, batches, entry_range, in_other_queue, shown_verdict

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.log_reader import LogReader
    from engine.inspection.moved_entries import MovedMessages
    from engine.inspection.store_queues import AnyQueue
    from viewer.runtime.control import Control
    from viewer.runtime.worker import WorkerControl

MAX_PROBLEMS = 10_000
"""Maximum number of problems that are remembered for stepping from one to the next."""
PIECE = 4_096
Queue = tuple[str, int]
"""Topic and queue id."""


@dataclass(slots=True)
class Verdicts:
    """Verdict counts of a queue for the entries [first, reached) of ``total``."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[tuple[int, str]] = field(default_factory=list)
    reached: int = 0
    total: int = 0

    @property
    def complete(self) -> bool:
        return self.reached >= self.total


def count(
    control: WorkerControl,
    path: Path,
    config: MessageStoreConfig | None,
    tasks: Sequence[tuple[Queue, Verdicts]],
    max_entries: int,
) -> None:
    """Resolve up to ``max_entries`` more entries, queue by queue, in the store at ``path``.

    Each queue continues where its counts end. Emits (queue, verdicts); leaves out queues that do not exist any more.
    """
    from engine.inspection import open_store
    from engine.inspection.moved_entries import find_moved_messages

    with open_store(path, config) as store:
        for key, so_far in tasks:
            queue = store.queues.find_with_moved(*key)
            if queue is None:
                continue
            moved = find_moved_messages(store, *key)
            verdicts = count_verdicts(control, store.log, queue, so_far, max_entries, moved)
            control.emit((key, verdicts))
            max_entries -= verdicts.counts.total() - so_far.counts.total()
            if max_entries <= 0 or control.cancelled:
                return


def count_verdicts(
    control: Control,
    log: LogReader,
    queue: AnyQueue,
    so_far: Verdicts,
    max_entries: int,
    moved: MovedMessages | None = None,
) -> Verdicts:
    """Resolve up to ``max_entries`` more entries of a queue that is open."""
    simple = queue.kind == "simple"
    first_number, end = entry_range(queue, moved if simple else None)
    verdicts = Verdicts(Counter(so_far.counts), list(so_far.problems), max(so_far.reached, first_number), end)
    stop = min(end, verdicts.reached + max_entries)
    begun = verdicts.reached
    while verdicts.reached < stop and not control.cancelled:
        piece = min(stop, verdicts.reached + PIECE)
        listed = entries(queue, moved, verdicts.reached, piece) if simple else batches(queue, verdicts.reached, piece)
        for number, entry in enumerate(listed):
            if isinstance(entry, MovedEntry):
                assert moved is not None
                resolved, state = moved.resolve(entry), "moved"
            else:
                resolved, state = resolve(log, queue.topic, queue.queue_id, entry), entry.state
            verdict = shown_verdict(resolved.verdict, state, other_queue=in_other_queue(queue.topic, resolved))
            verdicts.counts[verdict] += 1
            if verdict in PROBLEMS and len(verdicts.problems) < MAX_PROBLEMS:
                verdicts.problems.append((entry.queue_offset, verdict))
            if simple and not number % 64 and _stopped(control):
                verdicts.reached = entry.queue_offset + 1
                return verdicts
        verdicts.reached = piece
        control.report(verdicts.reached - begun, stop - begun, f"{queue.topic}/{queue.queue_id}")
    return verdicts


def _stopped(control: Control) -> bool:
    return control.cancelled
