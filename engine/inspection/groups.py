"""Progress of each consumer group in each queue: the offset tables compared with the queues
(docs/formats/config-tables.md#tables).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.codec.config_tables import ConsumerOffset, client_offsets, consumer_offsets
from engine.codec.json_dialect import parse
from engine.errors import CannotRead, StoreError, Undecoded
from engine.inspection.get_message import store_time
from engine.inspection.tables import read_table

if TYPE_CHECKING:
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.snapshot import StoreSnapshot


State = Literal["behind", "notBegun", "caughtUp", "beyondMax", "belowMin", "gone"]
Mode = Literal["cluster", "broadcast"]


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """A group's progress in one queue.

    ``offset`` is the next message it reads, ``behind`` the number of messages it has not read. ``belowMin``: the log
    has deleted some of these, whatever minimum a start would count from. ``notBegun``: the offset is below zero, as
    JavaScript clients write it; a broker treats it as no offset, so all that the queue holds is unread. ``waiting``:
    messages in retry topics, or popped and not acknowledged (:mod:`engine.inspection.group_waits`); None if not
    counted.
    """

    group: str
    topic: str
    queue_id: int
    offset: int
    max_offset: int
    behind: int
    oldest_unread_timestamp: int | None
    state: State
    mode: Mode
    waiting: int | None = None


def group_progress(store: StoreSnapshot, client_file: str | Path | None = None) -> Iterator[GroupProgress]:
    """Progress of every group in the store's tables, or of the client whose own ``offsets.json`` is given.

    Unreadable queues and tables are left out. Raises :class:`StoreError` if the given file cannot be read.
    """
    if client_file is not None:
        yield from _of_client(store, Path(client_file))
        return
    for row in _rows(store):
        for queue_id, offset in sorted(row.offsets.items()):
            with contextlib.suppress(CannotRead):
                yield _progress(store, row.group, row.topic, queue_id, offset, _mode(row))


@dataclass(frozen=True, slots=True)
class UnknownProgress:
    """A group in a queue that is not decoded, so its lag is unknown; ``why`` gives the reason."""

    group: str
    topic: str
    queue_id: int
    offset: int
    mode: Mode
    why: str


def unknown_progress(store: StoreSnapshot) -> Iterator[UnknownProgress]:
    """Offsets of the store's tables in queues that are not decoded."""
    for row in _rows(store):
        for queue_id, offset in sorted(row.offsets.items()):
            try:
                store.queue(row.topic, queue_id)
            except Undecoded as error:
                yield UnknownProgress(row.group, row.topic, queue_id, offset, _mode(row), error.what)
            except CannotRead:
                continue


def queue_progress(store: StoreSnapshot, topic: str, queue_id: int) -> Iterator[GroupProgress]:
    """Progress of every group that has an offset in one queue."""
    for row in _rows(store):
        if row.topic == topic and queue_id in row.offsets:
            yield _progress(store, row.group, topic, queue_id, row.offsets[queue_id], _mode(row))


def _rows(store: StoreSnapshot) -> Iterator[ConsumerOffset]:
    for name in ("consumerOffset.json", "lmqConsumerOffset.json"):
        table = None
        with contextlib.suppress(CannotRead):
            table = read_table(store, name)
        if table is not None:
            yield from consumer_offsets(table.value).rows


def _mode(row: ConsumerOffset) -> Mode:
    return "broadcast" if row.mode == "broadcast" else "cluster"


def _of_client(store: StoreSnapshot, file: Path) -> Iterator[GroupProgress]:
    raw = store.small_file(file)
    if raw is None:
        raise StoreError("expected a client's offsets.json, found nothing of this name", file=str(file))
    parsed = parse(raw)
    if parsed.complaint or not isinstance(parsed.value, dict):
        raise StoreError(f"expected a client's offsets.json: {parsed.complaint or 'found no object'}", file=str(file))
    group = file.resolve().parent.name
    for row in sorted(client_offsets(parsed.value).rows, key=lambda r: (r.topic, r.queue_id)):
        with contextlib.suppress(CannotRead):
            yield _progress(store, group, row.topic, row.queue_id, row.offset, "broadcast")


def _progress(store: StoreSnapshot, group: str, topic: str, queue_id: int, offset: int, mode: Mode) -> GroupProgress:
    queue = store.queue(topic, queue_id)
    if queue is None:
        state: State = "gone" if offset > 0 else "notBegun" if offset < 0 else "caughtUp"
        return GroupProgress(group, topic, queue_id, offset, 0, 0, None, state, mode)
    first_in_log, max_offset = queue.first_in_log, queue.max_offset
    if offset < 0:
        state = "notBegun"
    elif offset > max_offset:
        state = "beyondMax"
    elif offset == max_offset:
        state = "caughtUp"
    else:
        state = "belowMin" if offset < first_in_log else "behind"
    oldest = _oldest_unread(store, queue, max(offset, first_in_log))
    unread_count = max_offset - (first_in_log if offset < 0 else offset)
    return GroupProgress(group, topic, queue_id, offset, max_offset, max(unread_count, 0), oldest, state, mode)


def _oldest_unread(store: StoreSnapshot, queue: QueueReader, next_offset: int) -> int | None:
    """Store time (ms) of the message at ``next_offset``, the next one in the log that the group reads."""
    if next_offset >= queue.max_offset:
        return None
    entry = queue.entry(next_offset)
    time = store_time(store, entry) if entry is not None else -1
    return time if time >= 0 else None
