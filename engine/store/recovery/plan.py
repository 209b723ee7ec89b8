"""The plan of a recovery: what a broker's start would keep, cut, delete and dispatch again. Nothing is done here.

The plan is also put into words for people; this module reads no store, so that a command line can import it
quickly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, Protocol

from engine.older_names import renamed_attribute
from engine.releases import Release, rules_of
from engine.sentences import plural, sentence, with_text
from engine.store.recovery.source import QueueKind
from engine.times import time_text


@dataclass(frozen=True, slots=True)
class EmptyLog:
    """Evidence of messages that the log does not hold: entries of queues and of the index, positions of consumer
    groups, the checkpoint. ``folder`` is where the log's files are missing; ``part`` says that it is one of
    several.
    """

    folder: str
    part: bool
    entries: int
    index_entries: int = 0
    groups: int = 0
    checkpoint: bool = False
    dledger: bool = False

    @property
    def message(self) -> str:
        """A sentence that begins with the likely cause."""
        return sentence(
            "a folder of the log has no file, but {who} to missing bytes: {cause}"
            if self.part
            else "the log is empty, but {who} to it: {cause}",
            who=self._subject,
            cause=self._cause,
        )

    @property
    def _subject(self) -> str:
        if self.entries:
            return plural("{n:,} entry refers", "{n:,} entries refer", n=self.entries)
        if self.index_entries:
            return plural("{n:,} index entry refers", "{n:,} index entries refer", n=self.index_entries)
        if self.groups:
            return plural("{n:,} consumer offset refers", "{n:,} consumer offsets refer", n=self.groups)
        return sentence("the checkpoint refers")

    @property
    def _cause(self) -> str:
        if self.dledger:
            return sentence("it is a DLedger log, which is not read here")
        return sentence("is its disk mounted?")

    @property
    def note(self) -> bytes:
        """The evidence that the user overruled, to be kept in the store (``StorePaths.confirmed_empty_log``)."""
        evidence = [self.folder, self.part, self.entries, self.index_entries, self.groups]
        return json.dumps({"emptyLog": evidence}).encode() + b"\n"

    def record(self) -> dict[str, Any]:
        """The ``emptyLog`` of a ``recoveryPlan`` record."""
        return {
            "message": self.message,
            "folder": self.folder,
            "part": self.part,
            "entries": self.entries,
            "indexEntries": self.index_entries,
            "consumerPositions": self.groups,
            "checkpoint": self.checkpoint,
        }


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that keeps a broker from starting; ``broker_log`` is the line it would log."""

    finding: str
    message: str
    broker_log: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class FailedDispatch:
    """The unit at which a broker's dispatch fails: it names the further queue ``queue_name`` and has no number as its
    offset there (``offset_text``).
    """

    topic: str
    queue_id: int
    queue_offset: int
    offset: int  # of the log
    queue_name: str
    offset_text: str

    @property
    def place(self) -> str:
        """The unit's topic, queue and queue offset in one word."""
        return f"{self.topic}/{self.queue_id}/{self.queue_offset}"

    def record(self) -> dict[str, Any]:
        """The ``dispatchStopsAt`` of a ``recoveryPlan`` record."""
        return {
            "topic": self.topic,
            "queueId": self.queue_id,
            "queueOffset": self.queue_offset,
            "unit": self.offset,
            "furtherQueue": self.queue_name,
        }


@dataclass(frozen=True, slots=True)
class QueueState:
    """State of a queue at one moment of a recovery; what is in bytes counts from the queue's first byte ever.

    ``last_file`` is the start of the last file that is left (None: no file), ``end_bytes`` where the next entry goes,
    ``max_physic`` the offset up to which the log is known (docs/formats/consume-queue.md#entry; of a batch queue the
    newest unit's start). ``min_logic`` is in bytes, ``batch_min`` and ``batch_max`` are queue offsets. ``ext_end`` is
    where the next ext unit goes, None if the ext files are not touched.
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
    """A queue as it will stand after recovery and dispatch; offsets count entries, ``truncate_to`` is in bytes.

    ``current_state`` is the state that dispatch continues from, ``cut`` that state after the cut at the end of the log
    (None if nothing is cut), ``final`` the state in the end. Bytes from the end of ``current_state`` to ``clear_to``
    are obsolete and are overwritten with zeros, so that they never come back.
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
    current_state: QueueState | None = None  # None: the queue is made by dispatch
    cut: QueueState | None = None
    clear_to: int = 0  # bytes


@dataclass(frozen=True, slots=True)
class DispatchPass:
    """Units of [start, end) whose PHYSICALOFFSET exceeds ``after_offset`` are dispatched; bytes of the commit log."""

    start: int
    end: int
    after_offset: int


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
class GroupBeyondEnd:
    """A group whose next offset will lie behind the queue's end: queue offsets are used again, so it misses
    messages.
    """

    group: str
    topic: str
    queue_id: int
    offset: int
    max_offset: int


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """An index file as recovery finds it; times in ms. A deleted one is built again only for units that are
    dispatched again.
    """

    name: str
    path: str
    entries: int
    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int


@dataclass(slots=True)
class QueueLoss:
    """Messages of one queue that are lost.

    ``first_offset`` and ``last_offset`` are queue offsets, ``unit`` the offset of the first one in the log, times are
    in ms. For messages that cannot be read, the times are those of the units around. −1 means unknown.
    """

    topic: str
    queue_id: int
    messages: int
    first_offset: int
    last_offset: int
    unit: int = -1
    first_time: int = -1
    last_time: int = -1
    units: int = 0
    """Units of the log that hold them: a batch unit holds many."""

    def record(self) -> dict[str, Any]:
        """The row of ``queues`` in a record."""
        return {
            "topic": self.topic,
            "queueId": self.queue_id,
            "messages": self.messages,
            "firstQueueOffset": self.first_offset,
            "lastQueueOffset": self.last_offset,
            "firstUnit": _known(self.unit),
            "firstTimestamp": _known(self.first_time),
            "lastTimestamp": _known(self.last_time),
        }


def _known(value: int) -> int | None:
    return value if value >= 0 else None


@dataclass(frozen=True, slots=True)
class Loss:
    """Messages by queue; nothing before ``examined_from`` (bytes of the log) was examined."""

    queues: tuple[QueueLoss, ...] = ()
    examined_from: int = 0
    first_unit: int = -1
    last_unit: int = -1

    @property
    def messages(self) -> int:
        return sum(queue.messages for queue in self.queues)

    def record(self) -> dict[str, Any]:
        """``undispatched`` and ``dropped`` of a ``recoveryPlan`` record."""
        return {
            "messages": self.messages,
            "lookedFrom": self.examined_from,
            "firstUnit": _known(self.first_unit),
            "lastUnit": _known(self.last_unit),
            "queues": [queue.record() for queue in self.queues],
        }


@dataclass(frozen=True, slots=True)
class DLedgerPlan:
    """What a start does with a DLedger log: the newest entry that it keeps (−1 for none), the entry from which on it
    writes the index again (None: nowhere), and the offset by which the queues are cut.

    Behind ``committed_index`` a leader decides: in a group of one member it commits these entries, in a larger one it
    keeps them or writes its own in their place. ``undecided_offset`` is the first of their units (None: no such entry).
    ``queues_undecided``: the start puts them into queues before that.
    """

    last_index: int
    last_term: int
    committed_index: int | None  # as the checkpoint says
    index_rebuilt_from: int | None
    queues_cut_at: int | None
    undecided_offset: int | None = None
    queues_undecided: bool = False
    has_other_members: bool = False

    def record(self) -> dict[str, Any]:
        """The ``dledger`` of a ``recoveryPlan`` record."""
        return {
            "lastIndex": self.last_index,
            "lastTerm": self.last_term,
            "committedIndex": self.committed_index,
            "indexRebuiltFrom": self.index_rebuilt_from,
            "queuesCutAt": self.queues_cut_at,
            "undecidedOffset": self.undecided_offset,
            "queuesUndecided": self.queues_undecided,
            "hasOtherMembers": self.has_other_members,
        }


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """Everything that a start would do to the files. Offsets are bytes of the commit log unless a name says else."""

    release: Release
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
    groups_beyond: tuple[GroupBeyondEnd, ...]
    index_kept: tuple[IndexPlan, ...]
    index_deleted: tuple[IndexPlan, ...]
    bytes_to_read: int
    limit_timestamp: int | None  # ms: an abnormal exit starts at a file that is not younger; None: not by time
    max_physic_offset: int  # C: largest offset that the queues know
    log_min: int
    log_max: int  # end of what is readable before anything is cut
    log_files: int = 0
    file_limit: int | None = None  # commitLogRecoverMaxNum, where it ended the search for the start file
    notes: tuple[str, ...] = ()
    ext_cuts: tuple[ExtCut, ...] = ()
    confirm_offset: int = -1  # start of the last good unit, −1 without one
    log_files_deleted: tuple[str, ...] = ()  # among files_deleted: those behind the end of the log
    clear_to: int = 0  # bytes from end_offset to here lie in the last file that stays and become zeros
    log_cut: int = 0  # where the log is cut: not end_offset where the last file's name is no multiple of its length
    first_pass: DispatchPass | None = None  # before the queues are cut by the end of the log
    second_pass: DispatchPass | None = None  # after that: 4.9, and recheckReputOffsetFromCq
    undispatched: Loss | None = None  # units of the log that no start brings into their queues; None: not looked for
    dropped: Loss | None = None  # units that can be read behind end_offset; None: not looked for
    queues_known: bool = True  # false: the queues' entries, and so the units dispatched again, are unknown
    empty_log: EmptyLog | None = None  # evidence of lost messages: the plan is carried out only with empty_log
    dledger: DLedgerPlan | None = None  # the log is a DLedger log
    dispatch_stops_at: FailedDispatch | None = None  # no message behind this unit is dispatched
    loses_new_messages: bool = False  # two log files begin at one offset: a broker writes to one and reads the other

    like = renamed_attribute("like", "release")

    @property
    def changes_nothing(self) -> bool:
        """True if the plan leaves every byte of the log, the queues and the index as it is."""
        return not (
            self.units
            or self.files_deleted
            or self.index_deleted
            or self.clear_to > self.end_offset
            or any(
                queue.current_state is None or queue.clear_to > queue.current_state.end_bytes for queue in self.queues
            )
        )

    @property
    def loses_nothing(self) -> bool:
        """True if everything that the plan removes is made again from the log, which stays as it is. Files that are
        deleted hold nothing then.
        """
        return not (
            self.units_dropped
            or self.bytes_dropped
            or any(cut.bytes_dropped for cut in self.ext_cuts)
            or any(queue.entries_dropped for queue in self.queues)
            or any(index.begin_phy_offset < self.dispatch_from for index in self.index_deleted)
        )

    @property
    def misnumbered(self) -> int:
        """Number of units that get an entry that is not at their own queue offset."""
        return sum(queue.shifted for queue in self.queues)

    def record(self) -> dict[str, Any]:
        """The ``recoveryPlan`` record of the command line."""
        return {
            "type": "recoveryPlan",
            "like": self.release,
            "release": self.release,
            "emptyLog": self.empty_log.record() if self.empty_log is not None else None,
            "willStart": self.will_start,
            "blockers": _blockers(self.blockers),
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
            "logFiles": self.log_files,
            "fileLimit": self.file_limit,
            "maxPhysicOffsetOfQueues": self.max_physic_offset,
            "minOffset": self.log_min,
            "clearedTo": max(self.clear_to, self.end_offset),
            "notes": list(self.notes),
            "queuesKnown": self.queues_known,
            "wrongNumbers": self.misnumbered,
            "losesNewMessages": self.loses_new_messages,
            "dispatchStopsAt": self.dispatch_stops_at.record() if self.dispatch_stops_at is not None else None,
            "dledger": self.dledger.record() if self.dledger is not None else None,
            "undispatched": self.undispatched.record() if self.undispatched is not None else None,
            "dropped": self.dropped.record() if self.dropped is not None else None,
        }


class Start(Protocol):
    """A start by one release; a plan is one."""

    @property
    def release(self) -> Release:
        """The release."""

    @property
    def will_start(self) -> bool:
        """True if the broker would start."""

    @property
    def blockers(self) -> tuple[Blocker, ...]:
        """The reasons why it would not start."""


def recovery_record(
    plan: RecoveryPlan, other_starts: Sequence[Start], written: tuple[Release, str] | None
) -> dict[str, Any]:
    """Return the ``recoveryPlan`` record, with ``other_starts`` (of the releases that the plan does not speak for)
    and the release that seems to have ``written`` the store, with the reason.
    """
    releases = [
        {"release": start.release, "willStart": start.will_start, "blockers": _blockers(start.blockers)}
        for start in (plan, *other_starts)
    ]
    written_by = {"release": written[0], "why": written[1], "guess": True} if written is not None else None
    return {**plan.record(), "releases": releases, "writtenBy": written_by}


def _blockers(blockers: Sequence[Blocker]) -> list[dict[str, Any]]:
    return [{"finding": b.finding, "message": b.message, "brokerLog": b.broker_log, "file": b.file} for b in blockers]


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


def group_blockers(blockers: Sequence[Blocker]) -> Iterator[list[Blocker]]:
    """Group blockers that say the same of several files."""
    yield from (list(same) for _, same in groupby(blockers, key=blocker_text))


def blocker_text(blocker: Blocker) -> tuple[str, str]:
    """Return a blocker's rule, and its message without the file's name."""
    return blocker.finding, with_text(blocker.message, lambda text: text.replace(f"{blocker.file}: ", ""))


def file_limit_words(plan: RecoveryPlan) -> str:
    """Return a hint at how to make a start look at every log file, where commitLogRecoverMaxNum ended its search; ""
    elsewhere.
    """
    if plan.file_limit is None:
        return ""
    title, file_limit, files = rules_of(plan.release).title, plan.file_limit, plan.log_files
    return plural(
        "{release} looks back at {count:,} of {n:,} log file: with commitLogRecoverMaxNum={most} it looks at all",
        "{release} looks back at {count:,} of {n:,} log files: with commitLogRecoverMaxNum={most} it looks at all",
        release=title,
        count=file_limit,
        n=files,
        most=files,
    )


def dledger_cut_words(plan: RecoveryPlan) -> str:
    """Return a sentence on where a start after a crash cuts the queues of a DLedger log, and why; "" elsewhere."""
    cut = plan.dledger.queues_cut_at if plan.dledger is not None and plan.exit == "abnormal" else None
    if cut is None or not rules_of(plan.release).walks_dledger_after_crash:
        return ""
    return sentence(
        "After a crash {release} counts the messages of a DLedger log without the headers of their entries, so it cuts "
        "the queues at {n:,}",
        release=rules_of(plan.release).title,
        n=cut,
    )


def undispatched_words(loss: Loss) -> str:
    """Return a sentence on the messages that no start dispatches: how many, of how many queues, between which units,
    from when.
    """
    queues = plural("{n:,} queue", "{n:,} queues", n=len(loss.queues))
    times = [row.first_time for row in loss.queues if row.first_time > 0]
    ends = [row.last_time for row in loss.queues if row.last_time > 0]
    text = plural(
        "{n:,} message of {queues} will be in no queue after the next start, and no later start will dispatch it: "
        "units {first:,} to {last:,}",
        "{n:,} messages of {queues} will be in no queue after the next start, and no later start will dispatch them: "
        "units {first:,} to {last:,}",
        n=loss.messages,
        queues=queues,
        first=loss.first_unit,
        last=loss.last_unit,
    )
    if not (times and ends):
        return text
    return text + ", " + sentence("stored {first} to {last}", first=time_text(min(times)), last=time_text(max(ends)))
