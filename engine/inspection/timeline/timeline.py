"""The events of a store's past in order of time: one pass over the log, then names, tables and markers beside it.

Only what the bytes show is an event. A restart leaves no mark in the log: a time without messages is an outage only if
something was to be stored meanwhile, and a crash only if the index, the delayed messages or ``abort`` show one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from engine.callbacks import Cancelled, OffsetProgress
from engine.errors import CannotRead, StoreError
from engine.inspection.positions import epoch_positions, queue_end_position
from engine.inspection.timeline.clocks import ClockStep, find_clock_steps
from engine.inspection.timeline.delays import DelayHistogram
from engine.inspection.timeline.events import Certainty, Kind, TimelineEvent
from engine.inspection.timeline.gaps import Gap, find_gaps
from engine.inspection.timeline.index_times import LATE_MS, ZONE_STEP_MS, IndexTimes, LateIndexFile, read_index_times
from engine.inspection.timeline.sends import DuplicateRun, Duplicates, RetryStorms
from engine.inspection.timeline.traces import TraceCollector
from engine.inspection.timeline.unit_rows import (
    Chunk,
    UnitRowScan,
    broker_text,
    host_text,
    without_wrong_times,
)
from engine.inspection.timer_wheel import delivered_until
from engine.sentences import join, plural, sentence
from engine.system_names import RETRY_PREFIX, is_system_topic
from engine.times import duration_text, time_text

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

MAX_GAPS = 100_000
_STEADY_ROWS = 32
"""A store host counts as changed if this many messages on both sides have one host each."""
_RESTART_MARGIN_MS = 5000
"""An index file that is made at a start is at most this much older than the first message behind the gap."""
_MAX_UNSETTLED_GAP_MS = 120_000
"""Longest outage that is compared with an index file whose zone is not known: a longer one would fit by chance."""
_REDELIVERY_MS = 15_000
"""Delayed messages that a start delivers again come within this time."""
_LOG = "commitlog"


@dataclass(slots=True)
class Timeline:
    """All events in order of time, and what the pass over the log counted. Times are ms.

    ``state``: how the last run ended, or that it goes on; None if the files do not show it. ``unread``: bytes of the
    log that could not be read, in which events can be missing. ``trace_units``: messages of the trace topic;
    ``unknown_traces``: those that were read and not understood; ``traces_left_out``: events beyond the limit.
    """

    events: list[TimelineEvent] = field(default_factory=list)
    units: int = 0
    first_stored: int | None = None
    last_stored: int | None = None
    p50: int | None = None
    p99: int | None = None
    state: str | None = None
    zone_ms: int | None = None
    damage: int = 0
    unread: int = 0
    trace_units: int = 0
    traces_left_out: int = 0
    unknown_traces: int = 0
    is_complete: bool = False
    unknown: dict[str, str] = field(default_factory=dict)
    """Part of the store → why its events are not known."""

    @property
    def kinds(self) -> Counter[Kind]:
        return Counter(event.kind for event in self.events)


def find_timeline(
    store: StoreSnapshot,
    progress: OffsetProgress | None = None,
    cancelled: Cancelled | None = None,
    traces: TraceCollector | None = None,
) -> Timeline:
    """Return the timeline of ``store``, with the events of message traces if ``traces`` are to be collected. Raises
    :class:`CannotRead` if its log is not decoded.
    """
    store.require("log")
    finder = _Finder(store, traces or TraceCollector(is_wanted=False))
    for chunk in finder.scan.chunks(progress, cancelled):
        finder.add(chunk)
    return finder.finish()


class _Finder:
    def __init__(self, store: StoreSnapshot, traces: TraceCollector) -> None:
        self._store = store
        self.scan = UnitRowScan(store.log, traces=traces)
        self._timeline = Timeline()
        self._events = self._timeline.events
        self._gaps: list[Gap] = []
        self._duplicates = Duplicates()
        self._storms = RetryStorms()
        self._delays = DelayHistogram()
        self._seen_topics: set[int] = set()
        self._first_of_topics: list[tuple[int, int, int]] = []

    def add(self, chunk: Chunk) -> None:
        """Judge the rows of ``chunk``."""
        chunk = without_wrong_times(chunk)
        rows = chunk.rows
        if chunk.stop <= chunk.begin:
            return
        timeline = self._timeline
        if timeline.first_stored is None:
            timeline.first_stored = int(rows.stored[chunk.begin])
        timeline.last_stored = int(rows.stored[chunk.stop - 1])
        steps = find_clock_steps(chunk)
        self._events += [_clock_event(chunk, step) for step in steps]
        excluded = {row for step in steps for row in range(step.row, step.next_row)}
        if len(self._gaps) < MAX_GAPS:
            self._gaps += [gap for gap in find_gaps(chunk, excluded) if not self._is_damaged(gap)]
        self._duplicates.add(chunk)
        self._storms.add(chunk)
        self._delays.add(chunk)
        self._add_topics(chunk)
        self._add_store_hosts(chunk)

    def _is_damaged(self, gap: Gap) -> bool:
        """Return True if messages of the gap may be in bytes that are damaged or could not be read."""
        offsets = self.scan.damaged_offsets
        place = bisect_right(offsets, gap.offset_before)
        return place < len(offsets) and offsets[place] < gap.offset

    def _add_topics(self, chunk: Chunk) -> None:
        rows = chunk.rows
        topics, first_places = np.unique(rows.topic[chunk.begin : chunk.stop], return_index=True)
        for topic, place in zip(topics.tolist(), first_places.tolist(), strict=True):
            if topic >= 0 and topic not in self._seen_topics:
                self._seen_topics.add(topic)
                row = chunk.begin + place
                if rows.queue_offset[row] == 0:
                    self._first_of_topics.append((topic, int(rows.stored[row]), int(rows.offset[row])))

    def _add_store_hosts(self, chunk: Chunk) -> None:
        rows = chunk.rows
        hosts = rows.store_host
        for row in (np.flatnonzero(hosts[1:] != hosts[:-1]) + 1).tolist():
            neighbours = hosts[max(row - _STEADY_ROWS, 0) : row], hosts[row : row + _STEADY_ROWS]
            if chunk.begin <= row < chunk.stop and all((group == group[0]).all() for group in neighbours):
                self._events.append(_host_event(chunk, row))

    def finish(self) -> Timeline:
        """Add what the other files show, and return the events in order."""
        timeline, store, scan = self._timeline, self._store, self.scan
        timeline.units, timeline.damage, timeline.unread = scan.units, scan.damage, scan.unread
        timeline.is_complete = scan.is_complete
        timeline.p50, timeline.p99 = self._delays.percentile(50), self._delays.percentile(99)
        index_times = self._read_index_times()
        timeline.zone_ms = index_times.zone_ms
        crashes = self._crashes(index_times)
        self._events += [event for gap in self._gaps if gap.start not in crashes and (event := _gap_event(gap))]
        self._events += [_duplicate_event(run, scan.names) for run in self._duplicates.runs]
        self._add_storms()
        self._add_first_topics()
        self._add_deleted()
        self._add_terms()
        self._add_last_run()
        scan.traces.finish()
        self._events += scan.traces.events
        timeline.trace_units, timeline.traces_left_out = scan.traces.units, scan.traces.left_out
        timeline.unknown_traces = scan.traces.unknown
        self._events.sort(
            key=lambda event: (event.time, event.physical_offset if event.physical_offset is not None else -1)
        )
        if store.unread or store.reading.undecoded:
            timeline.is_complete = False
        return timeline

    def _read_index_times(self) -> IndexTimes:
        try:
            return read_index_times(self._store)
        except CannotRead as error:
            self._timeline.unknown["index"] = str(error)
            return IndexTimes((), None, 0)

    def _crashes(self, index_times: IndexTimes) -> set[int]:
        """Add the crashes that index files or delayed messages show, and return the beginnings of their gaps."""
        crashed: set[int] = set()
        newest = self._timeline.last_stored or 0
        is_replica = self._is_replica()
        for late_file in _restarts(index_times):
            if self._is_name_held_back(late_file):
                continue
            if is_replica:
                self._events.append(_late_index_event(late_file))
                continue
            gap = next(
                (gap for gap in self._gaps if gap.start < late_file.created_ms <= gap.end + _RESTART_MARGIN_MS), None
            )
            if gap is not None and gap.start not in crashed:
                crashed.add(gap.start)
                self._events += _crash_events(late_file, gap.start, gap.end, gap.offset)
            elif gap is None and late_file.created_ms > newest:
                self._events += _crash_events(late_file, newest, None, None)
            elif gap is None:
                self._events.append(_late_index_event(late_file))
        for unsettled in () if is_replica else index_times.unsettled:
            fitting = [(gap, time) for gap in self._gaps if (time := _time_in(unsettled, gap)) is not None]
            if len(fitting) == 1 and fitting[0][0].start not in crashed:
                gap, time = fitting[0]
                crashed.add(gap.start)
                self._events += _crash_events(replace(unsettled, created_ms=time), gap.start, gap.end, gap.offset)
        for run in self._duplicates.runs:
            gap = next((gap for gap in reversed(self._gaps) if _is_repeated_behind(run, gap)), None)
            if gap is not None and gap.start not in crashed:
                crashed.add(gap.start)
                self._events.append(_crash_by_redelivery(run, gap))
        return crashed

    def _is_name_held_back(self, late_file: LateIndexFile) -> bool:
        """Return True if the broker's clock went back before: names of index files grow all the same."""
        return any(
            event.kind == "clockStep"
            and event.evidence["clock"] != "producer"
            and event.start is not None
            and event.end is not None
            and event.end <= late_file.created_ms <= event.start + LATE_MS
            for event in self._events
        )

    def _is_replica(self) -> bool:
        """Return True if the store may have got messages that another broker stored, so that they are indexed later."""
        try:
            if self._store.commit_log.dledger is not None or epoch_positions(self._store):
                return True
            checkpoint = self._store.checkpoint()
        except StoreError:
            return True
        return checkpoint is not None and bool(checkpoint.master_flushed_offset)

    def _add_storms(self) -> None:
        for storm in self._storms.storms:
            topic = self.scan.names[storm.topic]
            self._events.append(
                TimelineEvent(
                    "retryStorm",
                    storm.start,
                    storm.end,
                    storm.offset,
                    sentence(
                        "Group {group} got {n:,} messages again within {duration}; {units:,} messages were stored "
                        "meanwhile",
                        group=topic.removeprefix(RETRY_PREFIX),
                        n=storm.count,
                        duration=duration_text(storm.end - storm.start),
                        units=storm.units,
                    ),
                    "certain",
                    _LOG,
                    {"topic": topic, "retries": storm.count, "units": storm.units},
                )
            )

    def _add_first_topics(self) -> None:
        for topic, time, offset in self._first_of_topics:
            name = self.scan.names[topic]
            if not is_system_topic(name):
                self._events.append(
                    TimelineEvent(
                        "topicAppears",
                        time,
                        time,
                        offset,
                        sentence("First message of topic {topic}", topic=name),
                        "certain",
                        _LOG,
                        {"topic": name},
                    )
                )

    def _add_deleted(self) -> None:
        min_offset, files = self._store.log.min_offset, self._store.log.files
        if min_offset <= 0 or not self.scan.units or self._store.paths is None:
            return  # one file of a log says nothing about the others
        if any(file.end_offset != later.start_offset for file, later in pairwise(files)):
            return  # files are missing in the middle, too: they may be in other folders
        time = self._timeline.first_stored
        message = sentence(
            "The log begins at offset {offset:,}: {n:,} bytes in front are gone, with everything stored before {time}",
            offset=min_offset,
            n=min_offset,
            time=time_text(time or 0),
        )
        self._events.append(
            TimelineEvent("deleted", None, time, min_offset, message, "certain", _LOG, {"bytes": min_offset})
        )

    def _add_terms(self) -> None:
        for term, position in epoch_positions(self._store).items():
            if position.offset is None:
                continue
            unit = next(iter(self._store.log.items(position.offset, 1, crc=False)), None)
            time = getattr(unit, "store_timestamp", None)
            if time is None:
                continue
            message = sentence("Term {term} of a master begins with this message", term=term)
            evidence = {"term": int(term), "how": position.source}
            source = "dledger" if self._store.commit_log.dledger is not None else "epochFileCheckpoint"
            self._events.append(
                TimelineEvent("masterTerm", time, time, position.offset, message, "certain", source, evidence)
            )

    def _add_last_run(self) -> None:
        store, timeline = self._store, self._timeline
        if store.paths is None or timeline.last_stored is None:
            return
        try:
            lock, abort, has_checkpoint = store.lock_state, store.abort, store.reading.exists(store.paths.checkpoint)
            read_time = delivered_until(store)
        except CannotRead as error:
            timeline.unknown["state"] = str(error)
            return
        if lock == "held":
            timeline.state = "running"
            return
        if not abort and store.unread:
            timeline.unknown["state"] = store.unread[0].words
            return
        if not abort and not has_checkpoint:
            return
        timeline.state = "notClosed" if abort else "closed"
        last_start = max((event.time for event in self._events if event.kind == "start"), default=0)
        ran_until = max(timeline.last_stored, read_time, last_start)
        evidence: dict[str, object] = {"newestMessage": timeline.last_stored}
        if read_time > timeline.last_stored:
            evidence["timerReadTime"] = read_time
        if not abort:
            message = sentence(
                "The last run was closed cleanly, at {time} or later: there is no abort file", time=time_text(ran_until)
            )
            self._events.append(TimelineEvent("cleanStop", ran_until, None, None, message, "likely", "abort", evidence))
            return
        lag_bytes = self._dispatch_lag()
        message = sentence(
            "The last run was not closed, it ended at {time} or later: the abort file exists and no process holds the "
            "store. A copy of a running store looks the same",
            time=time_text(ran_until),
        )
        if lag_bytes is not None:
            evidence["bytesBehindInQueues"] = lag_bytes
        self._events.append(TimelineEvent("crash", ran_until, None, None, message, "likely", "abort", evidence))

    def _dispatch_lag(self) -> int | None:
        """Bytes of the log that were not in the queues when the last run ended."""
        try:
            end = queue_end_position(self._store).offset
        except CannotRead as error:
            self._timeline.unknown["queues"] = str(error)
            return None
        return max(self.scan.end - end, 0) if end is not None else None


def _host_event(chunk: Chunk, row: int) -> TimelineEvent:
    rows = chunk.rows
    old_host, new_host = broker_text(int(rows.store_host[row - 1])), broker_text(int(rows.store_host[row]))
    message = sentence(
        "From here on {host} stored the messages, before it was {before}: another broker, or another address",
        host=new_host,
        before=old_host,
    )
    times = int(rows.stored[row - 1]), int(rows.stored[row])
    evidence = {"before": old_host, "after": new_host}
    return TimelineEvent("hostChange", *times, int(rows.offset[row]), message, "certain", _LOG, evidence)


def _time_in(unsettled: LateIndexFile, gap: Gap) -> int | None:
    """Return when the file was made if that was in a short outage; None if it was not, whatever the broker's zone."""
    if not gap.is_outage or gap.length > _MAX_UNSETTLED_GAP_MS or gap.start < unsettled.first_stored:
        return None
    quarters = max(-(-(gap.start - unsettled.created_ms) // ZONE_STEP_MS), 0)
    time = unsettled.created_ms + quarters * ZONE_STEP_MS
    return time if gap.start < time <= gap.end else None


def _is_repeated_behind(run: DuplicateRun, gap: Gap) -> bool:
    return run.is_delivery and 0 <= run.start - gap.end <= _REDELIVERY_MS and run.original < gap.offset


def _restarts(index_times: IndexTimes) -> list[LateIndexFile]:
    """Return the first of each group of files that were made one after the other."""
    late = sorted(index_times.late, key=lambda file: file.created_ms)
    return [
        file
        for number, file in enumerate(late)
        if not number or file.created_ms - late[number - 1].created_ms > _RESTART_MARGIN_MS
    ]


def _crash_events(late_file: LateIndexFile, start: int, end: int | None, offset: int | None) -> list[TimelineEvent]:
    source = f"index/{late_file.name}"
    evidence = {
        "indexFileMade": late_file.created_ms,
        "firstMessageStored": late_file.first_stored,
        "indexedFrom": late_file.offset,
    }
    why = sentence(
        "the index file {file} was made at {made} for messages stored from {first} on. A start after a crash builds "
        "the newest part of the index again; so does a rebuild",
        file=late_file.name,
        made=time_text(late_file.created_ms),
        first=time_text(late_file.first_stored),
    )
    crash = sentence(
        "The broker ended without closing the store between {start} and {end}: {why}",
        start=time_text(start),
        end=time_text(late_file.created_ms),
        why=why,
    )
    begin = sentence("The broker started and made the index file {file}", file=late_file.name)
    return [
        TimelineEvent("crash", start, late_file.created_ms, offset, crash, "likely", source, evidence),
        TimelineEvent("start", late_file.created_ms, end, offset, begin, "likely", source, evidence),
    ]


def _late_index_event(late_file: LateIndexFile) -> TimelineEvent:
    message = sentence(
        "The index file {file} was made {duration} after its first message was stored: dispatch was behind, the index "
        "was built again, or a replica got the messages later",
        duration=duration_text(late_file.created_ms - late_file.first_stored),
        file=late_file.name,
    )
    evidence = {"indexFileMade": late_file.created_ms, "firstMessageStored": late_file.first_stored}
    return TimelineEvent(
        "lateIndex",
        late_file.first_stored,
        late_file.created_ms,
        late_file.offset,
        message,
        "likely",
        f"index/{late_file.name}",
        evidence,
    )


def _crash_by_redelivery(run: DuplicateRun, gap: Gap) -> TimelineEvent:
    message = plural(
        "The broker ended without closing the store between {start} and {end}: {n:,} delayed message was delivered "
        "again afterwards, because the offset of the delay service was older than that",
        "The broker ended without closing the store between {start} and {end}: {n:,} delayed messages were delivered "
        "again afterwards, because the offset of the delay service was older than that",
        n=run.count,
        start=time_text(gap.start),
        end=time_text(gap.end),
    )
    evidence = _gap_evidence(gap) | {"deliveredAgain": run.count, "firstDelivery": run.original}
    return TimelineEvent("crash", gap.start, gap.end, run.offset, message, "likely", _LOG, evidence)


def _gap_evidence(gap: Gap) -> dict[str, object]:
    return {
        "lengthMs": gap.length,
        "usualGapMs": gap.usual,
        "waited": gap.waited,
        "longestWaitMs": gap.longest_wait,
        "firstAttemptsMeanwhile": gap.attempts,
        "madeMeanwhile": gap.keys_made,
        "delayedDueMeanwhile": gap.due,
    }


def _gap_event(gap: Gap) -> TimelineEvent | None:
    length = duration_text(gap.length)
    kind: Kind
    if gap.is_stall:
        kind = "stall"
        message = plural(
            "Nothing was stored for {length}, although {n:,} request waited; the longest wait was {wait}",
            "Nothing was stored for {length}, although {n:,} requests waited; the longest wait was {wait}",
            n=gap.waited,
            length=length,
            wait=duration_text(gap.longest_wait),
        )
    elif gap.is_outage:
        kind = "outage"
        signs = []
        if gap.attempts:
            signs.append(
                plural(
                    "{n:,} message was sent first meanwhile and stored only at a later attempt",
                    "{n:,} messages were sent first meanwhile and stored only at a later attempt",
                    n=gap.attempts,
                )
            )
        if gap.keys_made:
            signs.append(
                plural(
                    "producers made {n:,} key more than usual for a message that is not in this store",
                    "producers made {n:,} keys more than usual for messages that are not in this store",
                    n=gap.keys_made,
                )
            )
        if gap.due and gap.delivered:
            signs.append(
                plural(
                    "{n:,} delayed message was due meanwhile and came late",
                    "{n:,} delayed messages were due meanwhile and came late",
                    n=gap.due,
                )
            )
        message = sentence(
            "The broker stored nothing for {length}: {signs}. It was down or could not be reached; nothing shows "
            "whether it was stopped or crashed",
            length=length,
            signs=join("; ", signs),
        )
    elif gap.is_pause:
        kind = "pause"
        message = sentence(
            "Nothing was stored for {length}; the usual gap is {usual}. No request waited: a pause in the traffic and "
            "a restart look the same",
            length=length,
            usual=duration_text(gap.usual),
        )
    else:
        return None
    certainty: Certainty = "certain" if kind == "pause" else "likely"
    return TimelineEvent(kind, gap.start, gap.end, gap.offset, message, certainty, _LOG, _gap_evidence(gap))


def _clock_event(chunk: Chunk, step: ClockStep) -> TimelineEvent:
    rows = chunk.rows
    amount = duration_text(abs(step.amount))
    hosts = [host_text(host) for host in step.hosts]
    named = ", ".join(hosts[:5]) + (", …" if len(hosts) > 5 else "")
    if step.clock == "broker":
        template = (
            sentence("The broker's clock went forward by {amount}", amount=amount)
            if step.amount > 0
            else sentence("The broker's clock went back by {amount}", amount=amount)
        )
    elif step.clock == "producer":
        template = (
            sentence("The clock of the producer {host} went forward by {amount}", host=named, amount=amount)
            if step.amount > 0
            else sentence("The clock of the producer {host} went back by {amount}", host=named, amount=amount)
        )
    else:
        template = sentence(
            "The clocks of the broker and of the producer {host} moved apart by {amount}; nothing shows which was set",
            host=named,
            amount=amount,
        )
    return TimelineEvent(
        "clockStep",
        int(rows.stored[step.row]),
        int(rows.stored[step.next_row]),
        int(rows.offset[step.next_row]),
        template,
        "certain" if step.clock == "broker" and step.amount < 0 else "likely",
        _LOG,
        {"clock": step.clock, "stepMs": step.amount, "producers": hosts},
    )


def _duplicate_event(run: DuplicateRun, names: list[str]) -> TimelineEvent:
    topic = names[run.topic]
    if run.is_delivery:
        kind: Kind = "redelivery"
        message = plural(
            "{n:,} delayed message of topic {topic} was delivered a second time",
            "{n:,} delayed messages of topic {topic} were delivered a second time",
            n=run.count,
            topic=topic,
        )
    else:
        kind = "duplicateSend"
        message = plural(
            "{n:,} message of topic {topic} was stored again with the same unique key: a client repeated a request "
            "whose answer it did not get, or a program sent the same object twice",
            "{n:,} messages of topic {topic} were stored again with the same unique key: a client repeated requests "
            "whose answers it did not get, or a program sent the same objects twice",
            n=run.count,
            topic=topic,
        )
    evidence = {
        "topic": topic,
        "messages": run.count,
        "firstStoredAtOffset": run.original,
        "firstStored": run.original_time,
    }
    return TimelineEvent(kind, run.start, run.end, run.offset, message, "certain", _LOG, evidence)
