"""A reading of a store's positions, from its files or from the engine of a lab store. No Qt.

An unknown position has no value but a reason; nothing is guessed. Offsets are bytes of the log, times are ms since
1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.inspection.positions import Position, Positions

KEYS = ("min", "wrote", "committed", "flushed", "confirm", "dispatched", "queue_max", "index_end", "checkpoint")
"""The nine positions; ``checkpoint`` is the log's time in the checkpoint as an offset."""

STORED = ("PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
"""Statuses of messages that are in the log."""


@dataclass(frozen=True, slots=True)
class Flush:
    """A flush that wrote something: ``bytes`` up to ``to_offset``; ``waiters`` puts waited for it."""

    time_ms: int
    to_offset: int
    bytes: int
    took_ms: float
    waiters: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    """A service of the engine: is it paused, and how many bytes wait for it (None: not counted)."""

    paused: bool
    waiting: int | None = None


@dataclass(frozen=True, slots=True)
class PositionReading:
    """The positions of a store at one time.

    ``files`` are (start, end, name); ``heads`` are (store time in ms, offset) of the file heads and of the end.
    ``live`` is True if a broker holds the lock, or if it is a store of the lab. ``units`` counts messages from an
    arbitrary start.
    """

    positions: Positions
    files: tuple[tuple[int, int, str], ...]
    heads: tuple[tuple[int, int], ...]
    time_ms: int
    live: bool = False
    lab: bool = False
    abort: bool = False
    units: int | None = None
    flushes: tuple[Flush, ...] = ()
    services: Mapping[str, Service] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)

    @property
    def puts(self) -> int | None:
        """Messages put so far, from an arbitrary start: the lab engine's count, else the dispatched ones."""
        if self.lab and self.statuses:
            return sum(self.statuses.get(status, 0) for status in STORED)
        return self.units

    def offset(self, key: str) -> int | None:
        """Return the offset of one of :data:`KEYS`."""
        return self.position(key).offset

    def position(self, key: str) -> Position:
        """Return one of :data:`KEYS` with its source, or with the reason why it is unknown."""
        if key != "checkpoint":
            position: Position = getattr(self.positions, key)
            return position
        return self.positions.checkpoint.get("physicMsgTimestamp") or Position(None, why="there is no checkpoint file")

    def offsets(self) -> tuple[int | None, ...]:
        """Return the offsets of all :data:`KEYS`."""
        return tuple(self.offset(key) for key in KEYS)


@dataclass(frozen=True, slots=True)
class Gaps:
    """The three gaps in bytes, None where an end of one is not known."""

    commit: int | None
    flush: int | None
    dispatch: int | None


def known_flushed(positions: Positions) -> int | None:
    """Return the offset up to which the log is known to be on disk: by the engine or a clean close, else by the
    checkpoint's time.
    """
    if positions.flushed.offset is not None:
        return positions.flushed.offset
    checkpoint = positions.checkpoint.get("physicMsgTimestamp")
    return checkpoint.offset if checkpoint is not None else None


def gaps_of(reading: PositionReading) -> Gaps:
    """To commit (wrote − committed), to flush (committed − flushed) and to dispatch (confirm − dispatched, as
    RocketMQ's dispatchBehindBytes counts it); each at least 0. From outside a pool cannot be seen: nothing is said of
    it.
    """
    positions = reading.positions
    wrote, committed = positions.wrote.offset, positions.committed.offset
    flushed = known_flushed(positions)
    confirm = positions.confirm.offset if positions.confirm.offset is not None else wrote
    return Gaps(
        _between(committed, wrote) if reading.lab or not reading.live else None,
        _between(flushed, committed if committed is not None else wrote),
        _between(positions.dispatched.offset, confirm),
    )


def _between(start_offset: int | None, end_offset: int | None) -> int | None:
    return None if start_offset is None or end_offset is None else max(0, end_offset - start_offset)
