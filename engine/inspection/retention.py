"""Forecast which files retention deletes next, and what prevents it, by applying the rules of cleaning to the files
(docs/formats/cleaning.md).

RocketMQ deletes files whether or not groups or transactions still need them; those that do are shown as a risk.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine import system
from engine.codec.config_tables import delay_offsets
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, StoreError
from engine.inspection.groups import group_progress
from engine.inspection.tables import broken_offsets, read_table
from engine.mapped.disk import used_share
from engine.rules.retention_rules import DiskLevels, DiskPressure, Expiry, delete_hours, forecast, levels, pressure
from engine.rules.undecoded import Subject
from engine.system_names import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class Reader:
    """A group or delay level with unread messages.

    ``offset`` is the physical offset of its next unit, the lowest of all its queues. ``below`` is the number of queues
    in which its next message is deleted already. ``kind`` is ``group`` or ``delay``.
    """

    name: str
    kind: str
    offset: int
    topic: str
    queue_id: int
    below: int = 0


@dataclass(frozen=True, slots=True)
class FileExpiry:
    """A file of the log with its expiry, and the readers that are still in it or before it."""

    name: str
    start_offset: int
    size: int
    modified: int
    expiry: Expiry
    readers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retention:
    """The forecast as of ``at`` (ms).

    ``configured``: the settings are the broker's own, not the defaults; ``running``: a broker holds the store, so files
    are really deleted.
    """

    at: int
    rule: DiskPressure
    levels: DiskLevels
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
    """Reason why the readers are unknown; None if they are known."""

    @property
    def next_time(self) -> int | None:
        """Time (ms) at which the first file is deleted; None if none will be."""
        return self.files[0].expiry.goes_at if self.files else None

    @property
    def next_files(self) -> tuple[FileExpiry, ...]:
        """The files that are deleted together with the first one, within the same hour."""
        deletion_time = self.next_time
        if deletion_time is None:
            return ()
        return tuple(file for file in self.files if file.expiry.goes_at == deletion_time)


def retention(store: StoreSnapshot, now: int | None = None, used: tuple[float, float] | None = None) -> Retention:
    """Compute the forecast. ``used``: shares of the log's and the queues' disk; by default those of the disk with this
    directory, which say nothing about the broker's disk if the store is a copy.
    """
    config = store.config or MessageStoreConfig()
    now_ms = round(time.time() * 1000) if now is None else now
    log_used, queue_used = used if used is not None else disk_use_of(store)
    limits = levels(config)
    share = None
    if config.replicas_per_disk_partition > 1:
        share = _share(store, config.replicas_per_disk_partition)
    rule = pressure(log_used, queue_used, limits, share, config.logical_disk_space_clean_forcibly_threshold)
    hours = delete_hours(config.delete_when)
    files = list(store.log.files)
    modified = [round(file.status().st_mtime * 1000) for file in files]
    expiries = forecast(
        modified,
        now_ms,
        reserved_hours=config.file_reserved_time,
        hours=hours,
        rule=rule,
        forcibly=config.clean_file_forcibly_enable,
    )
    readers = tuple(_readers(store))
    return Retention(
        at=now_ms,
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
                tuple(reader.name for reader in readers if reader.offset < file.end_offset),
            )
            for file, changed, expiry in zip(files, modified, expiries, strict=True)
        ),
        readers=readers,
        readers_unknown=_readers_unknown(store),
    )


def disk_use_of(store: StoreSnapshot) -> tuple[float, float]:
    """Return the used shares of the disks of log and queues, −1 if unknown; of a capsule those when it was made."""
    if store.capsule is not None:
        log, queues = store.capsule.directory.disk_use
        return log, queues
    log = min((_disk_use(store, folder) for folder in store.commit_log.folders), default=-1.0)
    return log, _disk_use(store, store.paths.consumequeue) if store.paths is not None else log


def _disk_space(store: StoreSnapshot, folder: Path) -> tuple[int, int, int]:
    return system.disk_space(folder) if store.remote_disk is None else store.remote_disk.space(folder)


def _disk_use(store: StoreSnapshot, folder: Path) -> float:
    try:
        return used_share(*_disk_space(store, folder))
    except OSError:
        return -1.0


def _share(store: StoreSnapshot, stores: int) -> float:
    """Return the share of this store's part of the disk that log, queues and index use."""
    try:
        total, _, _ = _disk_space(store, store.commit_log.folders[0])
    except (OSError, IndexError):
        return 0.0
    used = store.log.sequence.total_size
    used += sum(
        queue.sequence.total_size
        for queues in store.queues.used_files(note_unread=True).values()
        for queue in queues.values()
    )
    used += sum(reader.size for reader in store.index_files())
    return used / (total / stores) if total > 0 else 0.0


def _readers_unknown(store: StoreSnapshot) -> str | None:
    subjects: tuple[Subject, ...] = ("log", "queues", "offsets")
    for subject in subjects:
        reason = store.why_unknown(subject)
        if reason is None:
            continue
        part = store.undecoded_part(subject)
        if part is not None and reason == part.reason(subject):
            store.note_undecoded(subject)  # else it is decoded, and cannot be read: the reading has noted that
        return reason
    try:
        broken = broken_offsets(store)
    except CannotRead as error:
        broken = error
    return broken.what if broken is not None else None


def _readers(store: StoreSnapshot) -> Iterator[Reader]:
    """Yield groups and delay levels with unread messages, those with the lowest offset first."""
    readers: dict[str, Reader] = {}
    try:
        for row in group_progress(store):
            if row.state in {"behind", "notBegun", "belowMin"}:
                unit_offset = _next_unit_offset(store, row.topic, row.queue_id, row.offset)
                if unit_offset is not None:
                    _add_reader(
                        readers,
                        Reader(row.group, "group", unit_offset, row.topic, row.queue_id, int(row.state == "belowMin")),
                    )
    except StoreError:
        pass  # an unreadable table names no readers
    table = read_table(store, "delayOffset.json")
    if table is not None:
        for level, offset in delay_offsets(table.value)[0].items():
            unit_offset = _next_unit_offset(store, SCHEDULE_TOPIC, level - 1, offset)
            if unit_offset is not None:
                _add_reader(readers, Reader(f"delay level {level}", "delay", unit_offset, SCHEDULE_TOPIC, level - 1))
    yield from sorted(readers.values(), key=lambda reader: (reader.offset, reader.name))


def _add_reader(readers: dict[str, Reader], new_reader: Reader) -> None:
    earlier_reader = readers.get(new_reader.name)
    if earlier_reader is None:
        readers[new_reader.name] = new_reader
        return
    earliest = min(earlier_reader, new_reader, key=lambda reader: reader.offset)
    readers[new_reader.name] = Reader(
        earliest.name,
        earliest.kind,
        earliest.offset,
        earliest.topic,
        earliest.queue_id,
        earlier_reader.below + new_reader.below,
    )


def _next_unit_offset(store: StoreSnapshot, topic: str, queue_id: int, offset: int) -> int | None:
    """Return the physical offset of the next unit to read; None if everything is read."""
    queue = store.queues.find(topic, queue_id)
    if queue is None:
        return None
    try:
        next_offset = max(offset, queue.min_offset, 0)
        entry = queue.entry(next_offset) if next_offset < queue.max_offset else None
    except StoreError:
        return None
    return entry.physical_offset if entry is not None else None
