"""The status of a running store: its positions and counters, read from structures and services at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.services.flush import FlushRecord
from engine.services.store_services import StoreServices
from engine.store.latency import Latencies
from engine.store.positions import Positions
from engine.store.put_message import PutMessageStatus
from engine.store.running_flags import NAMES, NOT_READABLE
from engine.store.store_parts import StoreParts


def read_positions(parts: StoreParts, services: StoreServices, puts: Latencies) -> Positions:
    """Return the positions of the store. Each value is read before those that it follows, so no two values
    contradict.
    """
    files, index, group = parts.files, parts.index, services.group
    dispatched = services.reput.reput_from
    confirm_offset = parts.confirm_offset()
    flushed = files.flushed_where
    committed = files.max_offset
    return Positions(
        min=files.readable_min,
        wrote=files.wrote_offset,
        committed=committed,
        flushed=flushed,
        dispatched=dispatched,
        confirm=confirm_offset,
        queue_max=services.reput.queue_end,
        index_end=index.end_phy_offset if index is not None and index.files else -1,
        checkpoint=parts.checkpoint.value,
        buffers_left=parts.pool.available if parts.pool is not None else None,
        waiting=group.waiting if group is not None else 0,
        put_latency=puts.snapshot(),
        flush_latency=services.log.latencies.snapshot(),
    )


def read_counts(services: StoreServices, puts: Latencies, refused: Mapping[PutMessageStatus, int]) -> dict[str, int]:
    """Return counts of events since the store was opened."""
    return {
        "put.calls": sum(puts.counts),
        **{f"put.{status.name}": number for status, number in dict(refused).items()},
        "dispatch.units": services.reput.units,
        "dispatch.bytes": services.reput.bytes,
        "dispatch.skippedBytes": services.reput.skipped_bytes,
        "flush.log": sum(services.log.latencies.counts),
        "clean.logFiles": services.clean.deleted_files,
    }


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The status of a service: is it paused, and its rounds since the store was opened."""

    paused: bool
    rounds: int


@dataclass(frozen=True, slots=True)
class Activity:
    """The work of the services. Offsets and sizes are bytes of the log, ``committed`` is (ns since 1970, bytes).

    ``flushes`` are the newest of the log's, oldest first. ``pending_entries`` are queue entries not yet written
    to their files, ``dirty_queues`` the number of queues to flush; ``last_file`` is −1 in an empty log.

    """

    services: dict[str, ServiceStatus]
    flushes: tuple[FlushRecord, ...]
    committed: tuple[int, int]
    dispatched_units: int
    deleted_files: int
    pending_entries: int
    dirty_queues: int
    last_file: int
    file_size: int


def read_activity(parts: StoreParts, services: StoreServices) -> Activity:
    """Return the work of the services up to now, and the work that waits for them."""
    last_file = parts.files.last
    service_statuses = {}
    for name in services.names:
        thread = services.thread(name)
        service_statuses[name] = ServiceStatus(thread.paused, thread.rounds)
    return Activity(
        services=service_statuses,
        flushes=tuple(services.log.marks.copy()),
        committed=services.log.committed,
        dispatched_units=services.reput.units,
        deleted_files=services.clean.deleted_files,
        pending_entries=parts.queues.pending.count,
        dirty_queues=parts.queues.dirty_count,
        last_file=last_file.start_offset if last_file is not None else -1,
        file_size=parts.files.file_size,
    )


@dataclass(frozen=True, slots=True)
class ServiceFailure:
    """A function of a store that fails now: ``what`` is the same as long as it lasts, ``why`` may change."""

    what: str
    why: str


def read_troubles(parts: StoreParts, services: StoreServices) -> tuple[ServiceFailure, ...]:
    """Return everything that fails now and why: first what stops messages, then what is retried."""
    flags = parts.flags
    raised = [
        ServiceFailure(f"messages are {'refused' if flag != NOT_READABLE else 'not given'}, {NAMES[flag]}", reason)
        for flag, reason in sorted(flags.reasons.copy().items())
    ]
    further_reasons = {
        "messages cannot be stored": parts.commit_log.not_appended,
        "the log cannot grow": services.allocate.failure,
        "the pool's buffers are not written": services.commit.failure if services.commit is not None else None,
        "dispatch waits": services.reput.delayed,
        "queues are not flushed": services.flush_queues.delayed,
        "the checkpoint is not written": services.flush_checkpoint.failure,
        "tables are not saved": services.persist.failure,
        "old files are not deleted": services.clean.failure,
    }
    return (*raised, *(ServiceFailure(problem, reason) for problem, reason in further_reasons.items() if reason))
