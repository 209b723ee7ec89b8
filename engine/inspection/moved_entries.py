"""Entries of a queue of which some live on only in tiered storage (docs/formats/tiered.md#reading).

A message is moved if tiered storage has it, and the store's own queue or log does not have it any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import CannotRead
from engine.inspection.entry_verdict import Resolved, compare
from engine.sentences import sentence
from engine.store.queue_entry import CqEntry

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.store_queues import AnyQueue
    from engine.store.tiered import TieredEntry, TieredQueue


@dataclass(frozen=True, slots=True)
class MovedEntry:
    """An entry whose message is only in tiered storage. ``entry`` is the one in the store's own queue, if it still has
    one; ``tiered`` is None if the files of tiered storage could not be read, and ``why`` says the reason.
    """

    queue_offset: int
    entry: CqEntry | None
    tiered: TieredEntry | None
    why: str = ""


class MovedMessages:
    """The messages of one queue that are only in tiered storage, by its files or, without them, by its table."""

    def __init__(self, tiered: TieredQueue, min_log_offset: int) -> None:
        self.tiered = tiered
        self._min_log_offset = min_log_offset

    def has(self, entry: CqEntry) -> bool:
        """Return True if the message of an entry of the store's own queue is moved. Raises :class:`CannotRead`."""
        return entry.physical_offset < self._min_log_offset and self.tiered.holds(entry.queue_offset)

    def entry(self, queue_offset: int, own_entry: CqEntry | None = None) -> MovedEntry:
        """The entry of a moved message."""
        try:
            return MovedEntry(queue_offset, own_entry, self.tiered.entry(queue_offset))
        except CannotRead as error:
            why = error.what if self.tiered.store.folder is None else str(error)
            return MovedEntry(queue_offset, own_entry, None, why)

    def resolve(self, moved: MovedEntry) -> Resolved:
        """Compare the entry with its message in tiered storage. The entry's offset and size are those there."""
        tiered = moved.tiered
        if tiered is None:
            entry = moved.entry or CqEntry(moved.queue_offset, -1, 0, 0, "empty")
            return Resolved(entry, None, None, moved.why)
        entry = CqEntry(moved.queue_offset, tiered.offset, tiered.size, tiered.tags_code, "entry")
        try:
            unit = self.tiered.unit(moved.queue_offset)
        except CannotRead as error:
            return Resolved(entry, None, None, str(error))
        if unit is None:
            return Resolved(entry, "missing", None, sentence("tiered storage has no message there"))
        verdict, difference = compare(self.tiered.topic, self.tiered.queue_id, entry, unit)
        return Resolved(entry, verdict, unit, difference)


def find_moved_messages(store: StoreSnapshot, topic: str, queue_id: int) -> MovedMessages | None:
    """Return the entries that tiered storage has of a queue; None if it has nothing, or if it is not known where the
    log begins.
    """
    try:
        tiered = store.tiered.queue(topic, queue_id) if store.tiered is not None else None
        if tiered is None or tiered.max_offset <= tiered.min_offset:
            return None
        store.require("log")
        return MovedMessages(tiered, store.log.min_offset)
    except CannotRead:
        return None


def entries(
    queue: AnyQueue | None, moved: MovedMessages | None, start: int | None = None, stop: int | None = None
) -> Iterator[CqEntry | MovedEntry]:
    """The entries of a queue from ``start`` to ``stop`` (exclusive), those in front of its files and behind them that
    only tiered storage has included. Raises :class:`CannotRead`.
    """
    if moved is None or (queue is not None and queue.kind == "batch"):
        yield from queue.entries(start, stop) if queue is not None else ()
        return
    next_offset = max(start or 0, moved.tiered.min_offset)
    end = moved.tiered.max_offset if stop is None else min(stop, moved.tiered.max_offset)
    for entry in queue.entries(start, stop) if queue is not None else ():
        for queue_offset in range(next_offset, min(entry.queue_offset, end)):
            yield moved.entry(queue_offset)
        yield moved.entry(entry.queue_offset, entry) if moved.has(entry) else entry
        next_offset = max(next_offset, entry.queue_offset + 1)
    for queue_offset in range(next_offset, end):
        yield moved.entry(queue_offset)
