"""A look at a running store: its positions and counters, taken from structures and services at once."""

from __future__ import annotations

from collections.abc import Mapping

from engine.services.store_services import StoreServices
from engine.store.latency import Latencies
from engine.store.positions import Positions
from engine.store.put_message import PutMessageStatus
from engine.store.store_parts import StoreParts


def take_positions(parts: StoreParts, services: StoreServices, puts: Latencies) -> Positions:
    """Where the store stands. What can only follow is read before what it follows, so no two values contradict."""
    files, index, group = parts.files, parts.index, services.group
    dispatched = services.reput.reput_from
    confirm = parts.confirm_offset()
    flushed = files.flushed_where
    committed = files.max_offset
    return Positions(
        min=files.readable_min,
        wrote=files.wrote_offset,
        committed=committed,
        flushed=flushed,
        dispatched=dispatched,
        confirm=confirm,
        queue_max=services.reput.queue_end,
        index_end=index.end_phy_offset if index is not None and index.files else -1,
        checkpoint=parts.checkpoint.value,
        buffers_left=parts.pool.available if parts.pool is not None else None,
        waiting=group.waiting if group is not None else 0,
        put_latency=puts.snapshot(),
        flush_latency=services.log.latencies.snapshot(),
    )


def count(services: StoreServices, puts: Latencies, refused: Mapping[PutMessageStatus, int]) -> dict[str, int]:
    """What happened since the store was opened."""
    return {
        "put.calls": sum(puts.counts),
        **{f"put.{status.name}": number for status, number in dict(refused).items()},
        "dispatch.units": services.reput.units,
        "dispatch.skippedBytes": services.reput.skipped_bytes,
        "flush.log": sum(services.log.latencies.counts),
        "clean.logFiles": services.clean.deleted_files,
    }
