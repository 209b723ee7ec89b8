"""The four answers of an incident: what happened, what is lost already, what the next start will lose, what to do now.

Derived from the findings of a check and the recovery plans. None if something could not be read, if a broker is
running, or if nothing is wrong. Lost messages were in ranges of the log that contain no readable message any more,
between known store times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec import index as codec
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.english import capital
from engine.errors import CannotRead
from engine.inspection import undecoded
from engine.inspection.check import next_start, unfitting_queues
from engine.inspection.check.log import LogCheck
from engine.inspection.check.next_start import StartEffects
from engine.inspection.rocksdb_queue import RocksQueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.store_queues import AnyQueue
from engine.inspection.written_release import release_of
from engine.releases import name_next_start
from engine.rules import catalogue, catalogue_tables, mendable
from engine.rules.causes import what_happened, worst_first
from engine.rules.findings import PLAN, RESTORABLE, SNAPSHOT_FIRST, STORE, Finding, at_least, of_store
from engine.sentences import sentence, without_beginning
from engine.store.recovery.plan import Loss, QueueLoss, RecoveryPlan

MAX_STEPS = 3
_REPAIRED_BY_START = frozenset({catalogue.AB01.id, catalogue.CL06.id})
"""Rules whose state the next start repairs; the plan says what else it does."""
_CHUNK = 1 << 16
Json = dict[str, Any]


def of(store: StoreSnapshot, starts: StartEffects, findings: Sequence[Finding], log: LogCheck) -> Json | None:
    """The ``incident`` of a ``summary`` record. Raises :class:`CannotRead`."""
    grave = [finding for finding in findings if at_least(finding.severity, "warn")]
    if not grave or store.paths is None or store.unread or store.lock_state == "held":
        return None
    # Queue entries of another log do not show what this log lost, and what a start loses because of them is unknown.
    is_known = not undecoded.unknown_to_plans(store) and not any(map(unfitting_queues.is_about_all_queues, grave))
    is_bad_copy = any(finding.id == catalogue.DK04.id for finding in grave)
    is_tier_lost = any(finding.id == catalogue_tables.TS01.id for finding in grave)  # no queue shows its messages
    already = lost_already(store, log) if is_known else None
    lost = {
        release: _describe_start(starts.losses(release), already) if is_known else None for release in starts.releases
    }
    is_foreign = not log.units and any(finding.id == catalogue.CL01.id for finding in grave)
    for release, start in lost.items():
        if start is not None and store.log.sequence.doubles:
            start["losesNewMessages"] = True
        elif start is not None and start["starts"] and not start["messages"] and (is_bad_copy or is_foreign):
            lost[release] = None  # the plan counts readable messages, and what the original files hold is unknown
    plan = next_start.of_own_release(store, starts)
    return {
        "whatHappened": name_next_start(what_happened(grave, crashed=store.abort), release_of(store)),
        "lostAlready": _loss(already)
        if already is not None and log.units and not is_bad_copy and not is_tier_lost
        else None,
        "release": starts.releases[0],
        "releaseEvidence": starts.evidence,
        "lostByNextStart": lost,
        "firstSteps": [
            {**step, "text": name_next_start(step["text"], release_of(store))}
            for step in _steps(store, plan, grave, lost[plan.release] if plan is not None else None)
        ],
    }


def lost_already(store: StoreSnapshot, log: LogCheck) -> Loss:
    """Return messages that queues know and the log no longer contains: in broken places, in gaps, after its end."""
    lost_spans = lost_spans_of(store, log)
    losses = (
        _lost_entries(reader, lost_spans) for queues in store.queues.by_topic().values() for reader in queues.values()
    )
    rows = sorted((row for row in losses if row is not None), key=lambda row: (row.topic, row.queue_id))
    return Loss(tuple(rows))


def _lost_entries(reader: AnyQueue, lost_spans: LostSpans) -> QueueLoss | None:
    """Return the entries of one queue that point into one of the spans, or None.

    Entries are in the order of the log. One that points after the end of the log while a later one points into it is
    a wrong entry: it says nothing about a lost message.
    """
    inner_loss: QueueLoss | None = None
    tail_loss: QueueLoss | None = None
    for first_number, rows in _entries(reader):
        physical = rows["physical_offset"].astype(np.int64)
        lost_rows = lost_spans.inside(physical, rows["size"])
        is_in_tail = physical[lost_rows] >= lost_spans.log_end
        rows_of_log = np.flatnonzero((physical >= 0) & (physical < lost_spans.log_end) & (rows["size"] > 0))
        tail_rows = lost_rows[is_in_tail]
        if len(rows_of_log):
            tail_loss, tail_rows = None, tail_rows[tail_rows > rows_of_log[-1]]
        inner_loss = _add_rows(inner_loss, reader, rows, first_number, lost_rows[~is_in_tail], lost_spans)
        tail_loss = _add_rows(tail_loss, reader, rows, first_number, tail_rows, lost_spans)
    losses = [loss for loss in (inner_loss, tail_loss) if loss is not None]
    return _sum_by_queue(losses)[0] if losses else None


def _add_rows(
    loss: QueueLoss | None,
    reader: AnyQueue,
    rows: np.ndarray,
    first_number: int,
    lost_rows: NDArray[np.intp],
    lost_spans: LostSpans,
) -> QueueLoss | None:
    """Add lost entries to the loss of their queue."""
    if not len(lost_rows):
        return loss
    physical = rows["physical_offset"].astype(np.int64)
    offsets, count = _offsets(reader, rows, first_number, lost_rows)
    begin, last_offset, unit = int(offsets[0]), int(offsets[-1]), int(physical[lost_rows[0]])
    if loss is None:
        loss = QueueLoss(reader.topic, reader.queue_id, 0, begin, last_offset, unit)
        loss.first_time = _own_time(rows, lost_rows[0], lost_spans.earliest(unit))
    loss.messages += count
    loss.first_offset, loss.last_offset = min(loss.first_offset, begin), max(loss.last_offset, last_offset)
    loss.last_time = _own_time(rows, lost_rows[-1], lost_spans.latest(int(physical[lost_rows[-1]])))
    return loss


def _own_time(rows: np.ndarray, row: np.intp, default: int) -> int:
    """Store time (ms) in the entry of a batch queue; ``default`` for a simple queue, whose entries have none."""
    return int(rows["store_timestamp"][row]) if "store_timestamp" in (rows.dtype.names or ()) else default


def _offsets(
    reader: AnyQueue, rows: np.ndarray, first_number: int, chosen_rows: NDArray[np.intp]
) -> tuple[NDArray[np.int64], int]:
    """Return the queue offset of the first message of each chosen entry, and the number of messages in them."""
    if reader.kind == "simple":
        return chosen_rows + first_number, len(chosen_rows)
    return rows["msg_base_offset"][chosen_rows].astype(np.int64), int(rows["batch_size"][chosen_rows].sum())


def _entries(reader: AnyQueue) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (number of the first entry, entries) of a queue in chunks.

    Pre-filled entries point to no message.
    """
    if isinstance(reader, RocksQueueReader):
        end = reader.raw_end // reader.unit_size
        for number in range(min(reader.first_row or 0, end), end, _CHUNK):
            yield number, reader.raw_entries(number, min(_CHUNK, end - number))
        return
    kind = CQ_UNIT if reader.kind == "simple" else BATCH_CQ_UNIT
    for file in reader.files:
        for position in range(0, file.size - kind.itemsize + 1, _CHUNK * kind.itemsize):
            data = file.read(position, min(_CHUNK * kind.itemsize, file.size - position))
            rows = np.frombuffer(data, kind, len(data) // kind.itemsize)
            yield (file.start_offset + position) // kind.itemsize, rows


# -- by the next start


def _describe_start(plan: RecoveryPlan | None, already: Loss | None) -> Json | None:
    """Describe what a start of one release loses; None if that is unknown. If the log is missing (its disk may not be
    mounted), the start loses everything that the queues know, because it deletes them.
    """
    if plan is not None and plan.will_start and plan.empty_log is not None and plan.start_file is None:
        deleted = len(plan.index_deleted)
        return {"starts": True, "why": None, **_loss(already), "indexFilesDeleted": deleted} if already else None
    if plan is None or plan.undispatched is None or plan.dropped is None:
        return None
    if not plan.will_start:
        return {"starts": False, "why": plan.blockers[0].message, **_loss(Loss()), "indexFilesDeleted": 0}
    lost_queues = _sum_by_queue((*plan.undispatched.queues, *plan.dropped.queues))
    record = {"starts": True, "why": None, **_loss(Loss(lost_queues)), "indexFilesDeleted": len(plan.index_deleted)}
    return {**record, "wrongNumbers": plan.misnumbered}


def _sum_by_queue(rows: Iterable[QueueLoss]) -> tuple[QueueLoss, ...]:
    """Sum the losses of each queue."""
    totals: dict[tuple[str, int], QueueLoss] = {}
    for row in rows:
        total = totals.get((row.topic, row.queue_id))
        if total is None:
            totals[row.topic, row.queue_id] = QueueLoss(
                row.topic,
                row.queue_id,
                row.messages,
                row.first_offset,
                row.last_offset,
                row.unit,
                row.first_time,
                row.last_time,
            )
            continue
        total.messages += row.messages
        total.first_offset, total.last_offset, total.unit = (
            min(total.first_offset, row.first_offset),
            max(total.last_offset, row.last_offset),
            min(total.unit, row.unit),
        )
        total.first_time, total.last_time = min(total.first_time, row.first_time), max(total.last_time, row.last_time)
    return tuple(row for _, row in sorted(totals.items()))


def _loss(loss: Loss) -> Json:
    return {"messages": loss.messages, "queues": [row.record() for row in loss.queues]}


# -- what to do


def _steps(
    store: StoreSnapshot, plan: RecoveryPlan | None, grave: Sequence[Finding], lost: Json | None
) -> Iterator[Json]:
    """Yield at most :data:`MAX_STEPS` steps: take a snapshot, then the steps for the causes, or the plan."""
    with_store = partial(of_store, path=str(store.path), config=store.config_words)
    plan_step = _step(sentence("See what the next start would keep, drop and lose."), with_store(PLAN))
    plan_first_step = _step(sentence("Or see first what the next start would keep, drop and lose."), with_store(PLAN))
    advised = list(_advised(grave))
    loses = lost is None or not lost["starts"] or lost["messages"] > 0
    if lost is not None:
        loses = loses or lost.get("wrongNumbers", 0) > 0 or lost.get("losesNewMessages", False)
    if not loses and not advised:
        yield _step(sentence("Start the broker: it loses nothing."), None)
        yield plan_first_step
        return
    steps = []
    if loses or any(at_least(finding.severity, "error") or finding.id == "IX04" for finding in grave):
        steps.append(
            _step(
                sentence("Do not start a broker on this store yet; take a snapshot first."),
                with_store(f"storescope snapshot {STORE} COPY"),
            )
        )
    is_restorable = any(finding.evidence.get(RESTORABLE) for finding in grave)
    if (
        not is_restorable
        and plan is not None
        and plan.will_start
        and plan.dropped is not None
        and plan.dropped.messages
    ):
        if any(finding.id in mendable.LOG for finding in grave):
            text = sentence(
                "See what can be mended: then a start reads on behind the damage, and every message keeps its offsets."
            )
            steps.append(_step(text, with_store(f"storescope repair {STORE}")))
        else:
            text = sentence(
                "Copy every readable message into a new store, including those after the damage, and start the "
                "broker on that store."
            )
            steps.append(_step(text, with_store(f"storescope copy {STORE} NEW")))
    commands = {step["command"] for step in steps}
    steps += [step for step in advised if step["command"] is None or step["command"] not in commands]
    if plan_step["command"] not in [step["command"] for step in steps[:MAX_STEPS]]:
        steps.insert(min(len(steps), MAX_STEPS), plan_step)
    yield from steps[:MAX_STEPS]


def _advised(grave: Sequence[Finding]) -> Iterator[Json]:
    """Yield the steps of the findings that are not consequences of others, each once."""
    listed: set[str] = set()
    for finding in worst_first(grave):
        step = without_beginning(finding.next_step, SNAPSHOT_FIRST)
        if (
            finding.caused_by is not None
            or finding.id in _REPAIRED_BY_START
            or step.lower() in listed
            or finding.command in listed
        ):
            continue
        listed |= {step.lower(), *([finding.command] if finding.command else [])}
        yield _step(capital(step), finding.command)


def _step(text: str, command: str | None) -> Json:
    return {"text": text, "command": command}


_NO_END = 1 << 62
WITHOUT_MESSAGES = frozenset({"damage", "gap", "stale", "cut", "other", "placeholder"})
"""Kinds of places without any readable message."""


class LostSpan(NamedTuple):
    """Bytes [start, end) of the log, and the store times (ms) of the units before and after; −1 if unknown."""

    start: int
    end: int
    time_before: int
    time_after: int


class LostSpans:
    """Lost ranges in order. Adjacent ranges are merged. Everything from ``log_end`` on is lost, too."""

    def __init__(self, log: LogCheck, spans: Iterable[LostSpan], log_end: int) -> None:
        self._log = log
        self.log_end = log_end
        self._spans = _merge_spans(spans)
        self._starts = np.array([span.start for span in self._spans], np.int64)
        self._ends = np.array([span.end for span in self._spans], np.int64)

    def inside(self, physical: NDArray[np.int64], sizes: NDArray[np.int32]) -> NDArray[np.intp]:
        """Rows whose units were in one of the spans; entries of size 0 point to no unit."""
        span_index = np.searchsorted(self._starts, physical, "right") - 1
        return np.flatnonzero((span_index >= 0) & (physical < self._ends[np.maximum(span_index, 0)]) & (sizes > 0))

    def earliest(self, offset: int) -> int:
        """Return the store time (ms) of the unit that was at ``offset``, or its lower bound."""
        return self._time(offset, earliest=True)

    def latest(self, offset: int) -> int:
        """Like :meth:`earliest`, but the upper bound."""
        return self._time(offset, earliest=False)

    def _time(self, offset: int, *, earliest: bool) -> int:
        unit_time = self._log.stored(offset)
        if unit_time > 0 and self._log.spans.find(offset) is None:
            return unit_time
        span = self._spans[int(np.searchsorted(self._starts, offset, "right")) - 1]
        return span.time_before if earliest else span.time_after


def lost_spans_of(store: StoreSnapshot, log: LogCheck) -> LostSpans:
    """Return broken places, gaps, units with a wrong body CRC, and everything after the end of the log."""
    lost_ranges = (span for span in log.spans.spans if span.kind in WITHOUT_MESSAGES and not span.is_elsewhere)
    spans = [LostSpan(span.start, span.end, span.time_before, span.time_after) for span in lost_ranges]
    spans += [LostSpan(offset, offset + 1, -1, -1) for offset in log.bad_crc]
    is_replaced = store.log.remains_from is not None  # by a leader, with all that queues know behind the end
    end = _NO_END if is_replaced else log.end
    spans.append(LostSpan(end, _NO_END, log.newest_time or -1, max(_indexed(store, log.end), default=-1)))
    return LostSpans(log, spans, end)


def _merge_spans(spans: Iterable[LostSpan]) -> list[LostSpan]:
    joined: list[LostSpan] = []
    for span in sorted(spans):
        previous = joined[-1] if joined else None
        if previous is None or span.start > previous.end:
            joined.append(span)
        elif span.end > previous.end:
            joined[-1] = previous._replace(end=span.end, time_after=span.time_after)
    return joined


def _indexed(store: StoreSnapshot, end: int) -> Iterator[int]:
    """Yield the store time (ms) of the newest unit of each index file that refers to units after the end of the log."""
    for reader in store.index_files():
        try:
            data = reader.file.read(0, codec.HEADER_SIZE)
        except CannotRead:
            continue
        if len(data) == codec.HEADER_SIZE and (header := codec.decode_header(data)).end_phy_offset >= end:
            yield header.end_timestamp
