"""Batch consume queue of 46-byte entries over its files (spec 3.7; Java: BatchConsumeQueue)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from engine.codec.batch_consume_queue import BATCH_CQ_UNIT_SIZE, BatchCqUnit, decode
from engine.codec.dtypes import BATCH_CQ_UNIT
from engine.codec.queue_placing import put_batch
from engine.store.queue_files import QueueFiles
from engine.store.recovery.plan import QueueState
from engine.store.stored_queue import Release, StoredQueue

_CHUNK = 2048 * BATCH_CQ_UNIT_SIZE
_BASE_AT = 28


class BatchConsumeQueue(StoredQueue):
    """One queue: entries stand back to back from byte 0, each tells the queue offset of its batch's first message."""

    __slots__ = ("_max_offset", "_min_offset")

    kind: ClassVar[Literal["simple", "batch"]] = "batch"
    unit_size: ClassVar[int] = BATCH_CQ_UNIT_SIZE

    def __init__(self, topic: str, queue_id: int, files: QueueFiles) -> None:
        super().__init__(topic, queue_id, files)
        self._min_offset = -1
        self._max_offset = 0

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message that the log still holds, −1 in an empty queue."""
        return self._min_offset

    @property
    def max_offset(self) -> int:
        return self._max_offset

    def state(self) -> QueueState:
        return self._state(0, self._min_offset, self._max_offset)

    def restore(self, state: QueueState) -> list[str]:
        gone = super().restore(state)
        self._min_offset, self._max_offset = state.batch_min, state.batch_max
        return gone

    def put(self, unit: BatchCqUnit) -> None:
        """One entry; dropped where the queue knows its unit already, or none can be made of it. Raises ``OSError``."""
        if not put_batch(self, unit):
            return
        self._max_offset = unit.next_offset
        if self._min_offset == -1 and self.files.starts[-1] == self.files.first_created:
            self._min_offset = self._first_base()

    # -- keeping

    def correct_min(self, log_min: int, release: Release = "5.3") -> None:  # noqa: ARG002 (batch queues came with 5.0)
        spans = self.spans()
        if not spans:
            self._min_offset, self._max_offset = -1, 0
            return
        found, (offset, stop) = self._first_base(), spans[0]
        while offset < stop:
            raw = self.files.read(offset, min(_CHUNK, stop - offset))
            rows = np.frombuffer(raw, BATCH_CQ_UNIT)
            kept = np.flatnonzero(rows["physical_offset"] >= log_min)
            gone = int(kept[0]) if len(kept) else len(rows)
            if gone:
                found = int(rows["msg_base_offset"][gone - 1]) + int(rows["batch_size"][gone - 1])
            if len(kept) or not len(rows):
                break
            offset += len(raw)
        self._min_offset = found

    def detach(self) -> None:
        super().detach()
        self._min_offset, self._max_offset = -1, 0

    def destroy(self) -> None:
        super().destroy()
        self._min_offset, self._max_offset = -1, 0

    def _first_base(self) -> int:
        starts = self.files.starts
        raw = self.read_bytes(starts[0] + _BASE_AT, 8) if starts else b""
        return int.from_bytes(raw, "big", signed=True) if len(raw) == 8 else -1

    def _revise(self) -> None:
        """Bounds by the first entry and the last one (reviseMaxAndMinOffsetInQueue)."""
        self._min_offset, self._max_offset = self._first_base(), 0
        spans = self.spans()
        if spans and spans[-1][1] - spans[-1][0] >= BATCH_CQ_UNIT_SIZE:
            last = decode(self.files.read(spans[-1][1] - BATCH_CQ_UNIT_SIZE, BATCH_CQ_UNIT_SIZE))
            self._max_offset = last.next_offset
