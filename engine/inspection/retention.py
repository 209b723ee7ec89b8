"""What retention deletes next, and what holds it: the rules of cleaning laid over the files as they lie
(docs/formats/cleaning.md).

RocketMQ asks neither groups nor transactions before it deletes: who still reads in a file that goes is told as a risk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.codec.config_tables import delay_offsets
from engine.codec.message import SCHEDULE_TOPIC
from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.inspection.groups import group_progress
from engine.inspection.tables import read_table
from engine.mapped.disk import disk_use
from engine.rules.retention_rules import Expiry, Levels, Pressure, delete_hours, forecast, levels, pressure

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who has not read everything: ``offset`` is the physical offset of the next unit for it, the lowest of
    its queues; ``below``: in how many queues its next message is gone already. ``kind``: ``group`` or ``delay``.
    """

    name: str
    kind: str
    offset: int
    topic: str
    queue_id: int
    below: int = 0


@dataclass(frozen=True, slots=True)
class FileExpiry:
    """One file of the log, what becomes of it, and who still reads in it or before it."""

    name: str
    start_offset: int
    size: int
    modified: int
    expiry: Expiry
    readers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retention:
    """The forecast as of ``at`` (ms). ``configured``: the settings are the broker's own, not the defaults; ``running``:
    a broker holds the store, so that somebody deletes at all.
    """

    at: int
    rule: Pressure
    levels: Levels
    log_used: float
    queue_used: float
    reserved_hours: int
    delete_when: str
    hours: tuple[int, ...]
    batch_max: int
    configured: bool
    running: bool
    files: tuple[FileExpiry, ...]
    readers: tuple[Reader, ...]
    readers_unknown: str | None = None
    """Why it cannot be told who has not read everything; None where it can."""

    @property
    def next_time(self) -> int | None:
        """When the first file goes; None where none will."""
        return self.files[0].expiry.goes_at if self.files else None

    @property
    def next_files(self) -> tuple[FileExpiry, ...]:
        """The files that go together with the first one: within the hour, at the same deletion."""
        first = self.next_time
        if first is None:
            return ()
        return tuple(file for file in self.files if file.expiry.goes_at == first)


def retention(store: StoreSnapshot, now: int | None = None, used: tuple[float, float] | None = None) -> Retention:
    """Work the forecast out. ``used``: shares of the log's and the queues' disk, where they are not to be asked for.

    The disk asked is the one this directory lies on: that of a copied store says nothing about the broker's.
    """
    config = store.config or MessageStoreConfig()
    at = round(time.time() * 1000) if now is None else now
    log_used, queue_used = used if used is not None else _disk_use(store)
    limits = levels(config)
    share = None
    if config.replicas_per_disk_partition > 1:
        share = _share(store, config.replicas_per_disk_partition)
    rule = pressure(log_used, queue_used, limits, share, config.logical_disk_space_clean_forcibly_threshold)
    hours = delete_hours(config.delete_when)
    files = list(store.log.files)
    modified = [round(file.about().st_mtime * 1000) for file in files]
    expiries = forecast(
        modified,
        at,
        reserved_hours=config.file_reserved_time,
        hours=hours,
        rule=rule,
        forcibly=config.clean_file_forcibly_enable,
    )
    readers = tuple(_readers(store))
    return Retention(
        at=at,
        rule=rule,
        levels=limits,
        log_used=log_used,
        queue_used=queue_used,
        reserved_hours=config.file_reserved_time,
        delete_when=config.delete_when,
        hours=hours,
        batch_max=config.delete_file_batch_max,
        configured=store.config is not None,
        running=store.lock_state == "held",
        files=tuple(
            FileExpiry(
                file.name,
                file.start_offset,
                file.size,
                changed,
                expiry,
                tuple(one.name for one in readers if one.offset < file.end_offset),
            )
            for file, changed, expiry in zip(files, modified, expiries, strict=True)
        ),
        readers=readers,
        readers_unknown=_readers_unknown(store),
    )


def _disk_use(store: StoreSnapshot) -> tuple[float, float]:
    log = min((disk_use(folder) for folder in store.log_folders), default=-1.0)
    return log, disk_use(store.paths.consumequeue) if store.paths is not None else log


def _share(store: StoreSnapshot, stores: int) -> float:
    """Of the part of the disk that this store may take, how much the log, queues and index take."""
    try:
        found = os.statvfs(store.log_folders[0])
    except (OSError, IndexError):
        return 0.0
    total = found.f_blocks * found.f_frsize
    used = store.log.sequence.total_size
    used += sum(queue.sequence.total_size for queues in store.topics().values() for queue in queues.values())
    used += sum(reader.size for reader in store.index_files())
    return used / (total / stores) if total > 0 else 0.0


def _readers_unknown(store: StoreSnapshot) -> str | None:
    for subject in ("queues", "offsets"):
        error = store.note_undecoded(subject)
        if error is not None:
            return error.what
    return None


def _readers(store: StoreSnapshot) -> Iterator[Reader]:
    """Groups and delay levels that have not read everything, the furthest behind first."""
    found: dict[str, Reader] = {}
    try:
        for row in group_progress(store):
            if row.state in {"behind", "notBegun", "belowMin"}:
                place = _place(store, row.topic, row.queue_id, row.offset)
                if place is not None:
                    _note(
                        found, Reader(row.group, "group", place, row.topic, row.queue_id, int(row.state == "belowMin"))
                    )
    except StoreError:
        pass  # a table that cannot be read names nobody
    table = read_table(store, "delayOffset.json")
    if table is not None:
        for level, offset in delay_offsets(table.value)[0].items():
            place = _place(store, SCHEDULE_TOPIC, level - 1, offset)
            if place is not None:
                _note(found, Reader(f"delay level {level}", "delay", place, SCHEDULE_TOPIC, level - 1))
    yield from sorted(found.values(), key=lambda one: (one.offset, one.name))


def _note(found: dict[str, Reader], one: Reader) -> None:
    known = found.get(one.name)
    if known is None:
        found[one.name] = one
        return
    low = min(known, one, key=lambda reader: reader.offset)
    found[one.name] = Reader(low.name, low.kind, low.offset, low.topic, low.queue_id, known.below + one.below)


def _place(store: StoreSnapshot, topic: str, queue_id: int, offset: int) -> int | None:
    """Physical offset of the next unit to read, None where everything is read."""
    queue = store.queue(topic, queue_id)
    if queue is None:
        return None
    try:
        first = max(offset, queue.min_offset, 0)
        entry = queue.entry(first) if first < queue.max_offset else None
    except StoreError:
        return None
    return entry.physical_offset if entry is not None else None
