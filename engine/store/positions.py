"""Positions of a running store: how far it was written, flushed and dispatched, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass

from engine.codec.checkpoint import Checkpoint
from engine.store.latency import Histogram


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of a store at one moment, as bytes of the commit log.

    They are read in an order that guarantees ``dispatched <= confirm`` and ``flushed <= committed <= wrote`` while
    other threads write.
    """

    min: int  # start of the first file, −1 without files
    wrote: int  # end of the appended bytes
    committed: int  # end of the bytes in the page cache; equal to wrote without a transient pool
    flushed: int  # end of the bytes that survive a power loss
    dispatched: int  # end of the units that queues and index have
    confirm: int  # end of the bytes that may be dispatched, so of those that readers see
    queue_max: int  # end of the last unit that any queue points to, −1 without queues
    index_end: int  # start of the last indexed unit, −1 without one
    checkpoint: Checkpoint  # as the next flush will write it
    buffers_left: int | None  # free buffers of the transient pool; None without a pool
    waiting: int  # puts that wait for another put's flush
    put_latency: Histogram  # of put_message, put_messages and put_batch, one count a call
    flush_latency: Histogram  # of flushes of the log that wrote something

    @property
    def behind(self) -> int:
        """Bytes that may be dispatched but are not dispatched yet."""
        return max(self.confirm - self.dispatched, 0)

    @property
    def unflushed(self) -> int:
        """Bytes that a power loss would destroy."""
        return max(self.wrote - self.flushed, 0)
