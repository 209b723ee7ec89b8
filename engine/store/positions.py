"""Positions: where a running store stands, as one frozen value (what the viewer draws and scripts wait for)."""

from __future__ import annotations

from dataclasses import dataclass

from engine.codec.checkpoint import Checkpoint
from engine.store.latency import Histogram


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of a store at one moment, as bytes of the commit log. They are read in an order in which
    ``dispatched <= confirm`` and ``flushed <= committed <= wrote`` hold whatever runs beside.
    """

    min: int  # start of the first file, −1 where the log has none
    wrote: int  # end of what was appended
    committed: int  # end of what was handed to the page cache; the same as wrote without a transient pool
    flushed: int  # end of what survives a power loss
    dispatched: int  # end of what queues and index know
    confirm: int  # end of what may be dispatched: what readers may see
    queue_max: int  # end of the last unit that any queue points to, −1 without queues
    index_end: int  # start of the last unit that the index knows, −1 where there is none
    checkpoint: Checkpoint  # as the next flush of the checkpoint writes it
    buffers_left: int | None  # of the transient pool; None without one
    waiting: int  # puts that wait for somebody else's flush
    put_latency: Histogram  # of put_message, put_messages and put_batch: one count a call
    flush_latency: Histogram  # of flushes of the log that moved something

    @property
    def behind(self) -> int:
        """Bytes that may be dispatched and are not yet."""
        return max(self.confirm - self.dispatched, 0)

    @property
    def unflushed(self) -> int:
        """Bytes that a power loss would take."""
        return max(self.wrote - self.flushed, 0)
