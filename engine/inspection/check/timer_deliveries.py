"""Finds timer messages that the timer passed over: they were due, the timer has read on, and they were not delivered.

A delivered message has the ``UNIQ_KEY`` of the unit that waited, and ``TIMER_OUT_MS`` remains among its properties
(docs/formats/delays.md#timer-service). The walk over the log collects hashes of both sorts of units; what has no
counterpart was not delivered. A message that was recalled counts as delivered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import block_texts, timer
from engine.codec import properties as props
from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.errors import CannotRead, CorruptUnit
from engine.inspection.snapshot import StoreSnapshot
from engine.system_names import TIMER_TOPIC

Int64 = npt.NDArray[np.int64]

_MAX_ROWS = 1 << 20
"""Units whose hashes are collected before those that were delivered are removed."""
_NO_LIMIT = 1 << 62
_PENDING = np.dtype([("key", np.int64), ("offset", np.int64), ("due", np.int64)])


class TimerDeliveries:
    """Timer messages and their deliveries, block by block in the order of the log.

    Nothing is collected while a broker runs, or if no timer message has left the wheel yet; ``of_all``: messages that
    the timer has not read, or that are not due, are collected too. Those without a unique key are then in ``keyless``,
    with their due times.
    """

    def __init__(self, store: StoreSnapshot, topics: TopicTable, *, of_all: bool = False) -> None:
        self._topics = topics
        self._pending: list[np.ndarray] = []
        self._delivered: list[Int64] = []
        self._rows = 0
        self._check = _Progress(_NO_LIMIT, _NO_LIMIT) if of_all else _read_progress(store)
        self.is_active = self._check is not None and store.lock_state != "held"
        self.keyless: list[tuple[int, int]] = []
        self.is_damaged = False

    def block(self, columns: UnitColumns, good: npt.NDArray[np.bool_]) -> None:
        """Collect a block of units; ``good`` marks the units that are at their own offset."""
        if not good.all():
            self.damage()
        timer_topic = self._topics.find(TIMER_TOPIC) if self.is_active else -1
        if timer_topic < 0:
            return
        in_timer = columns.topic_id[: len(good)] == timer_topic
        self._collect_waiting(columns, np.flatnonzero(good & in_timer))
        if self._pending:
            self._collect_delivered(columns, np.flatnonzero(good & ~in_timer))
        if self._rows > _MAX_ROWS:
            self._remove_delivered()

    def damage(self) -> None:
        """Forget what waited in front of bytes that cannot be read: it may have been delivered there."""
        self._pending, self._delivered, self._rows = [], [], 0
        self.is_damaged = True

    def passed_over(self, newest: int) -> np.ndarray:
        """Return ``offset`` and ``due`` (ms) of each message that was due at or before ``newest`` (ms), in the order of
        their due times.
        """
        self._remove_delivered()
        if not self._pending:
            return np.zeros(0, _PENDING)
        rows = self._pending[0]
        rows = rows[rows["due"] <= newest]
        _, newest_rows = np.unique(rows["key"][::-1], return_index=True)  # a message that was rolled has several units
        rows = rows[len(rows) - 1 - newest_rows]
        return rows[np.lexsort((rows["offset"], rows["due"]))]

    def _collect_waiting(self, columns: UnitColumns, rows: npt.NDArray[np.intp]) -> None:
        assert self._check is not None
        rows = rows[columns.queue_offset[rows] < self._check.queue_offset]
        if not len(rows):
            return
        dues = block_texts.property_values(columns, rows, props.TIMER_OUT_MS.encode()).to_list()
        keys = block_texts.property_values(columns, rows, props.UNIQUE_KEY.encode()).to_list()
        recalls = block_texts.property_values(columns, rows, props.TIMER_DEL_UNIQUE_KEY.encode()).to_list()
        pending = []
        for row, due_text, key, recalled in zip(rows.tolist(), dues, keys, recalls, strict=True):
            if recalled is not None:
                self._add_delivered([recalled, recalled.rpartition(b"+")[2], key])
            elif due_text is not None and due_text.isdigit() and len(due_text) < 19:
                due = int(due_text)
                if key is None:
                    self.keyless.append((int(columns.offset[row]), due))
                elif due < self._check.last_read_time:
                    pending.append((hash(key), int(columns.offset[row]), due))
        if pending:
            self._pending.append(np.array(pending, _PENDING))
            self._rows += len(pending)

    def _collect_delivered(self, columns: UnitColumns, rows: npt.NDArray[np.intp]) -> None:
        dues = block_texts.property_values(columns, rows, props.TIMER_OUT_MS.encode())
        rows = rows[dues.starts >= 0]
        if len(rows):
            self._add_delivered(block_texts.property_values(columns, rows, props.UNIQUE_KEY.encode()).to_list())

    def _add_delivered(self, keys: Iterable[bytes | None]) -> None:
        hashes = [hash(key) for key in keys if key is not None]
        self._delivered.append(np.array(hashes, np.int64))
        self._rows += len(hashes)

    def _remove_delivered(self) -> None:
        """Keep only what was not delivered so far: a delivery is behind the unit that waited."""
        if self._pending and self._delivered:
            rows = np.concatenate(self._pending)
            self._pending = [rows[~np.isin(rows["key"], np.concatenate(self._delivered))]]
            self._delivered = []
        elif len(self._pending) > 1:
            self._pending = [np.concatenate(self._pending)]
        self._rows = sum(map(len, self._pending)) // 2


class _Progress(NamedTuple):
    """Queue offset behind the last message that the timer has read, and the time (ms) up to which it delivered."""

    queue_offset: int
    last_read_time: int


def _read_progress(store: StoreSnapshot) -> _Progress | None:
    """The progress of the timer, in a RocksDB or in ``timercheck``, if it may have delivered a message."""
    try:
        if store.rocksdb_rows.has_timers:
            progress = store.rocksdb_rows.timer_progress()
            return _Progress(progress.scanned or 0, progress.timeline or 0) if progress.scanned else None
        data = store.small_file(store.paths.timercheck) if store.paths is not None else None
        check = timer.decode_check(data) if data else None
    except (CannotRead, CorruptUnit):
        return None
    return _Progress(check.queue_offset, check.last_read_time) if check is not None and check.queue_offset > 0 else None
