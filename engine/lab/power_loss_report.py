"""The report of a power cut: the store before it, what the disk kept, and the store after recovery. Values only.

Offsets and sizes are bytes of the commit log, times are ms since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.codec.checkpoint import Checkpoint
from engine.store.recovery.plan import RecoveryPlan

Queue = tuple[str, int]


@dataclass(frozen=True, slots=True)
class StoreState:
    """A store at one moment. ``end_offset`` is the end of the last byte that is not zero; before the power cut it is
    the place of the next message, the pool included.

    ``units`` are whole messages of the log, ``torn`` says whether bytes follow that are none. ``queues`` has the queue
    offset behind each queue's last entry, ``index_entries`` those of all index files. The three positions are −1 where
    nobody can know them from files.
    """

    at_ms: int
    min_offset: int
    end_offset: int
    units: int
    torn: bool
    queues: Mapping[Queue, int]
    index_entries: int
    index_files: int
    checkpoint: Checkpoint | None
    log_files: int
    flushed: int = -1
    committed: int = -1
    dispatched: int = -1
    confirm: int = -1


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the recovery plan beside the real one."""

    name: str
    planned: int
    done: int

    @property
    def equal(self) -> bool:
        return self.planned == self.done


@dataclass(frozen=True, slots=True)
class Loss:
    """Acknowledged messages that are lost.

    ``below_flushed`` of them lay below the flushed offset: more than none is a fault of the engine. ``allowed`` says
    whether the flush mode permits the loss (ASYNC_FLUSH: whatever was not flushed). ``exact`` is False if there were so
    many messages that they were only counted in groups.
    """

    messages: int = 0
    below_flushed: int = 0
    allowed: bool = True
    exact: bool = True


@dataclass(frozen=True, slots=True)
class RepeatedRecovery:
    """A further recovery of the same disk, number ``round`` (from 2). It took ``took_ms``. ``figures`` compare it with
    the first recovery.
    """

    round: int
    took_ms: float
    figures: tuple[Figure, ...]

    @property
    def same(self) -> bool:
        """True if this recovery gave the same store as the first."""
        return all(figure.equal for figure in self.figures)


@dataclass(frozen=True, slots=True)
class PowerLossReport:
    """Report of a simulated power cut. ``state_after``, ``loss`` and ``figures`` are set once the store has been
    recovered.

    ``plan`` is the recovery plan of what the disk kept. ``keep`` is the probability with which an unflushed page
    reached the disk; of ``dirty_pages`` of 4 KiB ``kept_pages`` were, ``torn_pages`` of them in part; ``lost_names``
    are files whose creation, change or removal had not reached the disk.
    """

    seed: int
    keep: float
    flush_mode: str
    transient_pool: bool
    state_before: StoreState
    state_on_disk: StoreState
    plan: RecoveryPlan
    dirty_pages: int = 0
    kept_pages: int = 0
    torn_pages: int = 0
    lost_names: int = 0
    state_after: StoreState | None = None
    recovered_ms: float = 0.0
    loss: Loss = field(default_factory=Loss)
    figures: tuple[Figure, ...] = ()
    repeated_recovery: RepeatedRecovery | None = None

    @property
    def as_planned(self) -> bool:
        """True if recovery did what its plan said, in every figure."""
        return all(figure.equal for figure in self.figures)
