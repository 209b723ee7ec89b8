"""State of a store at one moment, for the report of a simulated power cut: from the running engine, or from its
files.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.callbacks import system_clock
from engine.codec.columns import BLANK, UnitColumns, scan_block
from engine.codec.dtypes import CQ_UNIT
from engine.codec.topic_table import TopicTable
from engine.config import MessageStoreConfig
from engine.files.layout import StorePaths
from engine.lab.power_loss_report import Queue, StoreState
from engine.mapped.disk import RealDisk
from engine.mapped.read_only import ReadOnlyFile
from engine.mapped.sparse import last_byte
from engine.message_store import MessageStore
from engine.releases import Release
from engine.rules.unit_check import Request
from engine.store.recovery import load_source
from engine.store.recovery import planning as recovery
from engine.store.recovery.plan import RecoveryPlan
from engine.store.recovery.source import QueueFiles, RecoverySource
from engine.store.recovery.store_rules import dispatch_rules, unit_rules
from engine.store.recovery.walk import LogWalk

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROWS = 1 << 14


def of_running(store: MessageStore, units: int, queues: Mapping[Queue, int] | None = None) -> StoreState:
    """Return the present state of ``store``; the caller counts ``units`` from its files. With ``queues`` the store
    is asked nothing that could touch its disk.
    """
    positions, parts = store.positions(), store.parts
    index = parts.index.files if parts.index is not None else ()
    return StoreState(
        at_ms=system_clock(),
        min_offset=positions.min,
        end_offset=positions.wrote,
        units=units,
        torn=False,
        queues=queue_ends(store) if queues is None else queues,
        index_entries=sum(file.header.index_count - 1 for file in index),
        index_files=len(index),
        checkpoint=positions.checkpoint,
        log_files=len(parts.files.files),
        flushed=positions.flushed,
        committed=positions.committed,
        dispatched=positions.dispatched,
        confirm=positions.confirm,
    )


def queue_ends(store: MessageStore) -> dict[Queue, int]:
    """Return the queue offset behind the last entry of each queue."""
    return {(queue.topic, queue.queue_id): queue.max_offset for queue in store.parts.queues}


def of_files(root: Path, config: MessageStoreConfig, release: Release) -> tuple[StoreState, RecoveryPlan]:
    """Return the state of the files below ``root`` while nobody has them open, and what a start would do. Raises
    ``OSError``.
    """
    disk = RealDisk()
    try:
        source = load_source.source(StorePaths(root), config, disk)
        plan = recovery.plan(source, release)
        units, whole_to = count_units(source, release)
        end = _data_end(source, whole_to)
        heads = [head.header for head in source.index]
        state = StoreState(
            at_ms=system_clock(),
            min_offset=source.log.files[0].start_offset if source.log.files else -1,
            end_offset=max(end, 0),
            units=units,
            torn=end > whole_to,
            queues={(queue.topic, queue.queue_id): _entries_end(queue, plan) for queue in source.queues},
            index_entries=sum(max(head.index_count - 1, 0) for head in heads),
            index_files=len(source.index),
            checkpoint=source.checkpoint,
            log_files=len(source.log.files),
        )
        return state, plan
    finally:
        disk.close()


def units_of(
    root: Path, config: MessageStoreConfig, release: Release, pool_ranges: Iterable[tuple[int, int, bytes | None]] = ()
) -> int:
    """Count whole units of the log below ``root``, and after them those in ranges (start, end, bytes) that a pool
    held. A range without bytes is in the files. Raises ``OSError``.
    """
    disk = RealDisk()
    try:
        units, end = count_units(load_source.source(StorePaths(root), config, disk), release)
    finally:
        disk.close()
    for start, stop, piece in pool_ranges:
        if piece is not None:
            units += _count_in_memory(piece[max(end - start, 0) :])
        elif end < stop:
            units += units_behind(root, config, release, max(start, end), stop)
    return units


def count_units(source: RecoverySource, release: Release) -> tuple[int, int]:
    """Count the complete units of the log from its first file on. Return their number, and where they end."""
    if not source.log.files:
        return 0, 0
    walked = LogWalk(source.log.files, unit_rules(source, release), _UnitCounter()).run(0)
    return walked.units, walked.end_offset


def units_behind(root: Path, config: MessageStoreConfig, release: Release, start: int, end: int) -> int:
    """Whole units of [start, end) of the log below ``root``; ``start`` is where one begins. Raises ``OSError``."""
    disk = RealDisk()
    try:
        source = load_source.source(StorePaths(root), config, disk)
        counter = _UnitCounter()
        rules = dispatch_rules(unit_rules(source, release))
        LogWalk(source.log.files, rules, counter).run_dispatch(start, end)
        return counter.units
    finally:
        disk.close()


def _count_in_memory(piece: bytes) -> int:
    """Count the complete units in bytes of a log that begin with a unit."""
    columns, topics = UnitColumns(_ROWS), TopicTable()
    data: NDArray[np.uint8] = np.frombuffer(piece, np.uint8)
    units = position = 0
    while position < len(data):
        done = scan_block(data, len(data), 0, position, columns, topics, False, False)
        units += int(np.count_nonzero(columns.kind[: columns.count] != BLANK))
        if done.stopped != "full":
            break
        position = done.next_position
    columns.forget_buffer()
    return units


class _UnitCounter:
    """Receives units and only counts them."""

    def __init__(self) -> None:
        self.units = 0

    def take_rows(self, columns: UnitColumns, topics: TopicTable, rows: int) -> None:  # noqa: ARG002
        self.units += rows

    def take(self, place: int, request: Request) -> None:  # noqa: ARG002
        self.units += 1


def _data_end(source: RecoverySource, whole_to: int) -> int:
    """Return the end of the last byte of the log that is not zero, at least ``whole_to``."""
    for file in reversed(source.log.files):
        if file.end_offset <= whole_to:
            break
        inside = max(whole_to - file.start_offset, 0)
        end = last_byte(file, inside)
        if end > inside:
            return file.start_offset + end
    return whole_to


def _entries_end(queue: QueueFiles, plan: RecoveryPlan) -> int:
    """Return the queue offset after the last entry in the files; for batch queues as planned."""
    if queue.kind != "simple":
        planned = [
            queue_plan
            for queue_plan in plan.queues
            if (queue_plan.topic, queue_plan.queue_id) == (queue.topic, queue.queue_id)
        ]
        return planned[0].max_offset if planned else 0
    for file in reversed(queue.sequence.files):
        end = _last_entry(file)
        if end:
            return file.start_offset // CQ_UNIT.itemsize + end
    return 0


def _last_entry(file: ReadOnlyFile) -> int:
    """Return the number of entries of one queue file up to the last one that is not empty."""
    unit = CQ_UNIT.itemsize
    for start, stop in reversed(file.extents(0)):
        first_entry = start // unit
        data = file.read(first_entry * unit, stop - first_entry * unit)
        entries = np.frombuffer(data[: len(data) // unit * unit], CQ_UNIT)
        filled = np.flatnonzero(entries["size"] > 0)
        if len(filled):
            return first_entry + int(filled[-1]) + 1
    return 0
