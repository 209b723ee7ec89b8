"""Consume queues over their files: of 20-byte entries (spec 3.1, 3.3, 3.4; Java: ConsumeQueue), and of 46-byte entries
for batches (spec 3.7; Java: BatchConsumeQueue).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from engine.codec.batch_consume_queue import BATCH_CQ_UNIT_SIZE, BatchCqUnit, decode
from engine.codec.consume_queue import CQ_UNIT_SIZE, is_ext_address
from engine.codec.cq_ext import CqExtUnit
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.codec.queue_placing import put, put_batch, put_run
from engine.store.consume_queue_ext import ConsumeQueueExt
from engine.store.queue_files import QueueFiles
from engine.store.queue_minimum import Span, corrected_minimum
from engine.store.recovery.plan import QueueState
from engine.store.stored_queue import Release, StoredQueue

_CHUNK = 4096 * CQ_UNIT_SIZE
_log = logging.getLogger(__name__)


class ConsumeQueue(StoredQueue):
    """One queue: entry *n* lies at byte 20·n. ``min_logic_offset`` (bytes) is the first entry that points into the
    log.
    """

    __slots__ = ("ext", "min_logic_offset")

    kind: ClassVar[Literal["simple", "batch"]] = "simple"
    unit_size: ClassVar[int] = CQ_UNIT_SIZE

    def __init__(self, topic: str, queue_id: int, files: QueueFiles, ext: ConsumeQueueExt | None = None) -> None:
        super().__init__(topic, queue_id, files)
        self.min_logic_offset = 0
        self.ext = ext

    @property
    def min_offset(self) -> int:
        return self.min_logic_offset // CQ_UNIT_SIZE

    @property
    def max_offset(self) -> int:
        return self.files.end // CQ_UNIT_SIZE

    def load(self, listed: Iterable[tuple[str, int]] | None = None) -> None:
        super().load(listed)
        if self.ext is not None:
            self.ext.load()

    def state(self) -> QueueState:
        return self._state(self.min_logic_offset)

    def restore(self, state: QueueState) -> list[str]:
        gone = super().restore(state)
        self.min_logic_offset = state.min_logic
        if self.ext is not None and state.ext_end is not None:
            gone += self.ext.cut(state.ext_end)
        return gone

    put = put
    put_run = put_run

    def note_gap(self, queue_offset: int) -> None:
        """An entry that does not follow the last one: said where somebody debugs."""
        last = self.files.end // CQ_UNIT_SIZE - 1
        _log.debug("%s/%d: entry %d follows entry %d", self.topic, self.queue_id, queue_offset, last)

    def read(self, queue_offset: int, count: int) -> npt.NDArray[np.void]:
        """Up to ``count`` entries from ``queue_offset`` on as rows of ``dtypes.CQ_UNIT``; fewer at the end or at a
        gap.
        """
        offset, stop = queue_offset * CQ_UNIT_SIZE, (queue_offset + count) * CQ_UNIT_SIZE
        pieces = []
        while offset < stop:
            piece = self.read_bytes(offset, stop - offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
        return np.frombuffer(b"".join(pieces), CQ_UNIT)

    def ext_unit(self, address: int) -> CqExtUnit | None:
        return self.ext.unit(address) if self.ext is not None else None

    # -- keeping

    def correct_min(self, log_min: int, release: Release = "5.3") -> None:
        spans = self.spans()
        if not spans:
            return
        before = self.min_logic_offset
        if release == "4.9":
            self.min_logic_offset = self._linear_minimum(Span(*spans[0]), log_min)
        else:
            last = Span(self.files.starts[-1], self.files.end)
            self.min_logic_offset = corrected_minimum(before, Span(*spans[0]), last, log_min, self.physical_at)
        if self.ext is not None and self.min_logic_offset < self.files.end:
            unit = self.read(self.min_offset, 1)
            address = int(unit["tags_code"][0]) if len(unit) else 0
            if is_ext_address(address) and (self.min_logic_offset != before or release == "4.9"):
                self.ext.forget_before(address)

    def _linear_minimum(self, first: Span, log_min: int) -> int:
        offset = first.start
        while offset < first.end:
            raw = self.files.read(offset, min(_CHUNK, first.end - offset))
            rows = np.frombuffer(raw, CQ_UNIT)
            hits = np.flatnonzero(rows["physical_offset"] >= log_min)
            if len(hits) or not len(rows):
                return offset + int(hits[0]) * CQ_UNIT_SIZE if len(hits) else self.min_logic_offset
            offset += len(raw)
        return self.min_logic_offset

    def flush(self, least_pages: int = 0) -> bool:
        done = super().flush(least_pages)
        return self.ext.flush(least_pages) and done if self.ext is not None else done

    def forget(self) -> None:
        super().forget()
        if self.ext is not None:
            self.ext.files.forget()

    def distrust(self) -> None:
        super().distrust()
        if self.ext is not None:
            self.ext.files.distrust()

    def detach(self) -> None:
        super().detach()
        self.min_logic_offset = 0
        if self.ext is not None:
            self.ext.files.detach()

    def destroy(self) -> None:
        super().destroy()
        self.min_logic_offset = 0
        if self.ext is not None:
            self.ext.destroy()


_BATCH_CHUNK = 2048 * BATCH_CQ_UNIT_SIZE
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
            raw = self.files.read(offset, min(_BATCH_CHUNK, stop - offset))
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
