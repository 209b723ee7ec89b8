"""The plan of a recovery: what a broker's start would keep, cut, delete and dispatch again. Nothing is done here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from engine.rules.unit_check import Release
from engine.store.recovery_source import QueueKind

if TYPE_CHECKING:
    from engine.store.empty_log import EmptyLog


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that keeps a broker from starting; ``broker_log`` is the line it would log."""

    finding: str
    message: str
    broker_log: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class QueueState:
    """Where a queue stands at one moment of a recovery; what is in bytes counts from the queue's first byte ever.

    ``last_file`` is the start of the last file that is left (None: no file), ``end_bytes`` where the next entry goes,
    ``max_physic`` the offset up to which the log is known (spec 3.1; of a batch queue the newest unit's start).
    ``min_logic`` is in bytes, ``batch_min`` and ``batch_max`` are queue offsets. ``ext_end`` is where the next ext unit
    goes, None where the ext files are not touched.
    """

    last_file: int | None
    end_bytes: int
    max_physic: int
    min_logic: int
    batch_min: int = -1
    batch_max: int = 0
    ext_end: int | None = None


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """One queue as it will stand after recovery and dispatch; offsets count entries, ``truncate_to`` is in bytes.

    ``found`` is what dispatch goes on from, ``cut`` what the end of the log leaves of that (None where it cuts no
    queue), ``final`` how the queue stands in the end. Bytes from the end of ``found`` to ``clear_to`` say nothing any
    more and are overwritten with zeros, so that they never come back.
    """

    topic: str
    queue_id: int
    kind: QueueKind
    min_offset: int
    max_offset: int
    entries_dropped: int
    entries_added: int
    truncate_to: int | None
    files_deleted: tuple[str, ...]
    created: bool  # the queue has no folder yet
    shifted: int  # entries that will not stand at their own queue offset
    final: QueueState
    found: QueueState | None = None  # None: the queue is made by dispatch
    cut: QueueState | None = None
    clear_to: int = 0  # bytes


@dataclass(frozen=True, slots=True)
class DispatchPass:
    """Units of [start, end) whose PHYSICALOFFSET exceeds ``after`` are dispatched; all are bytes of the commit log."""

    start: int
    end: int
    after: int


@dataclass(frozen=True, slots=True)
class ExtCut:
    """The ext files of one queue that lose something; ``end_offset`` (bytes of the ext queue) is where the next unit
    of dispatch goes, ``bytes_dropped`` what stands behind it and in the deleted files. Files that lose nothing are not
    named.
    """

    topic: str
    queue_id: int
    end_offset: int
    bytes_dropped: int
    files_deleted: tuple[str, ...]  # they are among the plan's files_deleted, too


@dataclass(frozen=True, slots=True)
class GroupBeyond:
    """A group whose next offset will lie behind the queue's end: queue offsets are used again, messages are missed."""

    group: str
    topic: str
    queue_id: int
    offset: int
    max_offset: int


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """One index file; times in ms. A deleted one is built again only for units that are dispatched again."""

    name: str
    path: str
    entries: int
    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """Everything that a start would do to the files. Offsets are bytes of the commit log unless a name says else."""

    like: Release
    will_start: bool
    blockers: tuple[Blocker, ...]
    exit: Literal["normal", "abnormal"]
    start_file: str | None
    why: str
    start_offset: int
    end_offset: int
    end_reason: str
    units_kept: int
    units_dropped: int
    bytes_dropped: int
    dispatch_from: int
    units: int
    files_deleted: tuple[str, ...]
    queues: tuple[QueuePlan, ...]
    groups_beyond: tuple[GroupBeyond, ...]
    index_kept: tuple[IndexPlan, ...]
    index_deleted: tuple[IndexPlan, ...]
    bytes_to_read: int
    limit_timestamp: int | None  # ms: an abnormal exit starts at a file that is not younger
    max_physic_offset: int  # C: largest offset that the queues know
    log_min: int
    log_max: int  # end of what is readable before anything is cut
    notes: tuple[str, ...] = ()
    ext_cuts: tuple[ExtCut, ...] = ()
    confirm_offset: int = -1  # start of the last good unit, −1 without one
    log_files_deleted: tuple[str, ...] = ()  # among files_deleted: those behind the end of the log
    clear_to: int = 0  # bytes from end_offset to here lie in the last file that stays and become zeros
    first_pass: DispatchPass | None = None  # before the queues are cut by the end of the log
    second_pass: DispatchPass | None = None  # after that: 4.9, and recheckReputOffsetFromCq
    empty_log: EmptyLog | None = None  # others know what the log does not hold: not carried out without a word

    @property
    def changes_nothing(self) -> bool:
        """Whether carrying the plan out leaves every byte of the log, the queues and the index as it is."""
        return not (
            self.units
            or self.files_deleted
            or self.index_deleted
            or self.clear_to > self.end_offset
            or any(queue.found is None or queue.clear_to > queue.found.end_bytes for queue in self.queues)
        )

    def record(self) -> dict[str, Any]:
        """The ``recoveryPlan`` record of the command line."""
        return {
            "type": "recoveryPlan",
            "like": self.like,
            "emptyLog": self.empty_log.record() if self.empty_log is not None else None,
            "willStart": self.will_start,
            "blockers": [
                {"finding": b.finding, "message": b.message, "brokerLog": b.broker_log, "file": b.file}
                for b in self.blockers
            ],
            "exit": self.exit,
            "startFile": self.start_file,
            "why": self.why,
            "startOffset": self.start_offset,
            "endOffset": self.end_offset,
            "endReason": self.end_reason,
            "unitsKept": self.units_kept,
            "unitsDropped": self.units_dropped,
            "bytesDropped": self.bytes_dropped,
            "dispatchFrom": self.dispatch_from,
            "units": self.units,
            "filesDeleted": list(self.files_deleted),
            "queues": [_queue(q) for q in self.queues],
            "extCuts": [_ext_cut(e) for e in self.ext_cuts],
            "groupsBeyond": [
                {
                    "group": g.group,
                    "topic": g.topic,
                    "queueId": g.queue_id,
                    "offset": g.offset,
                    "maxOffset": g.max_offset,
                }
                for g in self.groups_beyond
            ],
            "index": {
                "kept": [_index(i) for i in self.index_kept],
                "deleted": [_index(i) for i in self.index_deleted],
            },
            "bytesToRead": self.bytes_to_read,
            "limitTimestamp": self.limit_timestamp,
            "maxPhysicOffsetOfQueues": self.max_physic_offset,
            "minOffset": self.log_min,
            "clearedTo": max(self.clear_to, self.end_offset),
            "notes": list(self.notes),
        }


def _queue(queue: QueuePlan) -> dict[str, Any]:
    return {
        "topic": queue.topic,
        "queueId": queue.queue_id,
        "minOffset": queue.min_offset,
        "maxOffset": queue.max_offset,
        "kind": queue.kind,
        "entriesDropped": queue.entries_dropped,
        "entriesAdded": queue.entries_added,
        "truncateTo": queue.truncate_to,
        "created": queue.created,
        "shifted": queue.shifted,
    }


def _ext_cut(cut: ExtCut) -> dict[str, Any]:
    return {
        "topic": cut.topic,
        "queueId": cut.queue_id,
        "endOffset": cut.end_offset,
        "bytesDropped": cut.bytes_dropped,
        "filesDeleted": list(cut.files_deleted),
    }


def _index(index: IndexPlan) -> dict[str, Any]:
    return {
        "name": index.name,
        "entries": index.entries,
        "beginTimestamp": index.begin_timestamp,
        "endTimestamp": index.end_timestamp,
        "beginPhyOffset": index.begin_phy_offset,
        "endPhyOffset": index.end_phy_offset,
    }
