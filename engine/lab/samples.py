"""Samples of a running store, taken several times a second: frozen values, picklable, no link back to the store; and
the settings for serving it.

Offsets and sizes are bytes of the commit log, times ``*_ms`` are ms since 1970, durations say so in their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.store.latency import Histogram
from engine.store.positions import Positions


@dataclass(frozen=True, slots=True)
class FlushMark:
    """A flush of the log that wrote something, up to ``to_offset``; ``waiters`` puts waited for it. ``number``
    counts the flushes since the store was opened, so that a gap shows what a sample missed.
    """

    number: int
    at_ms: int
    to_offset: int
    bytes: int
    took_ms: float
    waiters: int


@dataclass(frozen=True, slots=True)
class ServiceState:
    """State of a service: ``waiting_bytes`` of work are waiting for it (None if its work is not counted in bytes).

    ``last_ms`` is the time of its last work (None: not yet), ``moved`` the amount in ``unit``s: ``bytes``, ``units``
    (messages), ``queues``, ``files``, or ``rounds`` if only its rounds are counted. ``waiting`` is the waiting amount
    in the same unit, None if unknown.
    """

    paused: bool
    waiting_bytes: int | None
    last_ms: int | None
    moved: int = 0
    unit: str = "rounds"
    waiting: int | None = None


@dataclass(frozen=True, slots=True)
class Rates:
    """Amounts per second since the previous sample: messages answered PUT_OK, and the progress of each position."""

    messages: float = 0.0
    wrote: float = 0.0  # bytes
    committed: float = 0.0  # bytes
    flushed: float = 0.0  # bytes
    dispatched: float = 0.0  # units
    flushes: float = 0.0


@dataclass(frozen=True, slots=True)
class PositionSample:
    """A sample of a store. ``statuses`` count messages by put status since the store was opened.

    ``flushes`` are those since the sample before; ``files`` is the start offset of the log's last file (−1 without
    one), so that a roll shows. ``trouble`` is the reason why the store refuses messages, "" if it accepts them.
    """

    at_ms: int
    positions: Positions
    rates: Rates = Rates()
    statuses: Mapping[str, int] = field(default_factory=dict)
    flushes: tuple[FlushMark, ...] = ()
    services: Mapping[str, ServiceState] = field(default_factory=dict)
    last_file: int = -1
    file_size: int = 0
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class TopicPutCounts:
    """Entries of each queue of a topic, by queue number."""

    topic: str
    queues: tuple[tuple[int, int], ...]

    @property
    def entries(self) -> int:
        """The entries of all queues together."""
        return sum(count for _, count in self.queues)


@dataclass(frozen=True, slots=True)
class PutAnswer:
    """Result of one message: ``unit`` is its bytes in the log, b"" if it is not there. ``took_ms`` includes the wait
    for a flush.
    """

    status: str
    offset: int = -1
    size: int = 0
    queue_offset: int = -1
    store_timestamp: int = 0
    message_id: str = ""
    unit: bytes = b""
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class LoadCounts:
    """The work of a load since its start. ``latency`` covers all put calls, ``bytes`` are those of the
    bodies, ``stopped`` says why it ended by itself, "" while it runs.
    """

    running: bool = False
    messages: int = 0
    bytes: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    latency: Histogram = field(default_factory=Histogram)
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """Result of one round of a service by hand: the positions before and after, and when the next round is due."""

    positions_before: Positions
    positions_after: Positions
    next_ms: float


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Settings for serving a store: ports (0: a free one; None: as ``config`` says, a ``broker.conf``, else the
    usual one), and whether RocketMQ's VIP port, two below the broker's, answers too.
    """

    port: int | None = None
    namesrv_port: int | None = None
    ha_port: int | None = None
    vip: bool = True
    config: Path | None = None
