"""Units of the log that are in no queue: which they are, and what the next start does about them.

A queue that lost its tail or its folder is one fault of the store, reported once, with the units that a start would
dispatch again. This comes from the recovery plan, so that both agree.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.files.layout import is_folder_name
from engine.inspection.broker_traces import is_of_a_broker
from engine.inspection.check.log import LogCheck
from engine.inspection.check.next_start import StartEffects, of_own_release
from engine.inspection.check.places import between
from engine.inspection.check.queue_walk import QueueWalk
from engine.inspection.check.queues import QueueCheck, QueueWithoutFolder
from engine.inspection.deleted_topics import is_listed, topics_known
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import read_table
from engine.releases import compared_with, rules_of
from engine.rules import catalogue
from engine.rules.findings import HAPPENED, LEFT_OUT, Finding, Severity
from engine.rules.queue_sides import writes_both
from engine.sentences import plural, sentence
from engine.store.recovery.plan import RecoveryPlan, file_limit_words
from engine.system_names import HALF_TOPIC, LMQ_PREFIX, OP_TOPIC, SCHEDULE_TOPIC, SYSTEM_PREFIX

MAX_LISTED = 20
MAX_NAMED = 3
DEFAULT_QUEUES = 16
"""Number of queues of a topic whose row in topics.json does not say it (Java: ``TopicConfig``)."""
SYSTEM_TOPICS = frozenset({HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC})
"""Topics that nobody can delete, besides those with the prefix."""
NO_END = sentence("a broker takes such a queue for empty, and numbers its next messages from 0 on")
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ShortQueue:
    """A queue that lacks units: its end, the end that it should have, and the first missing unit."""

    key: Key
    end: int
    units: int
    first_missing: int
    path: str | None
    place: int | None

    @property
    def name(self) -> str:
        return f"{self.key[0]}/{self.key[1]}"


class UndispatchedUnits:
    """Units that :class:`QueueCheck` did not find in the queues; afterwards :attr:`short` holds the length that each of
    these queues would have.
    """

    def __init__(self, store: StoreSnapshot, log: LogCheck, queues: QueueCheck, starts: StartEffects) -> None:
        self._store = store
        self._log = log
        self._queues = queues
        self._starts = starts
        self._live = store.lock_state == "held"
        self._in_rocksdb = store.queues.rocksdb is not None
        self._beside_files = self._in_rocksdb and writes_both(store.config)
        self.short: dict[Key, int] = {}

    def _queue_folder(self) -> Path:
        """The folder of all queues."""
        assert self._store.paths is not None
        queues = self._store.queues.rocksdb
        return queues.folder if queues is not None else self._store.paths.consumequeue

    def all_gone(self) -> Finding:
        """The store has units and no queue at all."""
        homes = self._queues.queues_without_folder
        units = sum(home.units for home in homes.values())
        first_unit = min(home.first_offset for home in homes.values())
        text = plural(
            "The store has no consume queues; the log has {n:,} unit for {queues:,} of them",
            "The store has no consume queues; the log has {n:,} units for {queues:,} of them",
            n=units,
            queues=len(homes),
        )
        happened = sentence("the store lost all its consume queues")
        if self._beside_files:
            text = plural(
                "The RocksDB that consumers read has no consume queues; the log has {n:,} unit for {queues:,} of them",
                "The RocksDB that consumers read has no consume queues; the log has {n:,} units for {queues:,} of them",
                n=units,
                queues=len(homes),
            )
            happened = sentence("the RocksDB that consumers read has no consume queues")
        assert self._store.paths is not None
        folder = str(self._queue_folder())
        fate, severity, left_out = self._describe_next_start({key: home.units for key, home in homes.items()})
        evidence = {
            "units": units,
            "firstUnit": first_unit,
            HAPPENED: happened,
        }
        evidence |= self._left_out(left_out)
        kind = "gone" if severity is None else "again"
        return catalogue.CQ10.finding(text + fate, folder, None, evidence, severity and "warn", kind=kind)

    # -- queues that end too early

    def findings(
        self, faulty: Collection[Key], odd_units: Collection[int], early: Collection[Key] = ()
    ) -> Iterator[Finding]:
        """CQ10 and CQ08.

        Leaves out queues that are ``faulty`` (already reported), units that are odd themselves, and for queues that
        lack one entry (``early``) the unit behind their end.
        """
        yield from self._undispatched_units(faulty, early)
        yield from self._queues_without_folder(odd_units)

    def _undispatched_units(self, faulty: Collection[Key], early: Collection[Key]) -> Iterator[Finding]:
        walk_by_queue = self._queues.walks
        walks = [walk for key, walk in walk_by_queue.items() if walk.units_behind > (1 if key in early else 0)]
        if not walks:
            return
        first_unit = min(walk.first_offset_behind for walk in walks)
        units = sum(walk.units_behind for walk in walks)
        if self._queues.last_matched < first_unit or self._store.abort:
            if self._left_behind(first_unit, units):
                return
        else:
            walks = [w for w in walks if (w.reader.topic, w.reader.queue_id) not in faulty and not w.wrong_count]
        if walks:
            yield self._report_short_queues(
                [_short_queue(walk) for walk in sorted(walks, key=lambda walk: walk.first_offset_behind)]
            )

    def _report_short_queues(self, short_queues: list[ShortQueue]) -> Finding:
        units, first_unit = (
            sum(queue.units for queue in short_queues),
            min(queue.first_missing for queue in short_queues),
        )
        self.short |= {queue.key: queue.end + queue.units for queue in short_queues}
        fate, severity, left_out = self._describe_next_start({queue.key: queue.units for queue in short_queues})
        queues = [{"queue": queue.name, "end": queue.end, "units": queue.units} for queue in short_queues[:MAX_LISTED]]
        evidence: dict[str, Any] = {"units": units, "queues": queues, "firstUnit": first_unit}
        evidence |= self._left_out(left_out)
        evidence[HAPPENED] = plural(
            "{n:,} queue lacks {units} of the log, from {first:,} on",
            "{n:,} queues lack {units} of the log, from {first:,} on",
            n=len(short_queues),
            units=_units(units),
            first=first_unit,
        )
        evidence |= between(*[self._log.stored(first_unit)] * 2)
        came_back = self._cut_once(first_unit)
        severity = None if came_back and severity == "warn" else severity
        kind = "" if severity in (None, "error") else "again"
        if len(short_queues) == 1:
            queue = short_queues[0]
            evidence |= {"expected": queue.end + queue.units, "found": queue.end}
            text = sentence(
                "Queue {name} ends at {end:,}; {units} of the log are after that",
                name=queue.name,
                end=queue.end,
                units=_units(queue.units),
            )
            text += came_back + fate
            return catalogue.CQ10.finding(text, queue.path, queue.place, evidence, severity, kind=kind)
        longest = max(short_queues, key=lambda queue: queue.units)
        text = sentence(
            "{n:,} units from here on are not in their {queues:,} queues: {name} ends at {end:,} and lacks {lacks:,}",
            n=units,
            queues=len(short_queues),
            name=longest.name,
            end=longest.end,
            lacks=longest.units,
        )
        text += came_back + fate
        return catalogue.CQ10.finding(text, self._file(first_unit), first_unit, evidence, severity, kind=kind)

    def _describe_next_start(self, units: dict[Key, int]) -> tuple[str, Severity | None, dict[Key, int]]:
        """Describe what the next start does about these units: a text, its severity, and the units of each queue that
        the start leaves out for good (as far as that is known).
        """
        if self._live:
            return "", "note", {}
        plan = of_own_release(self._store, self._starts)
        if plan is None:
            return "", "note" if self._store.abort else None, {}
        out = _left_out_by(plan, units)
        lost = sum(out.values())
        dispatched_count = sum(units.values()) - lost
        count = lost + dispatched_count
        if not lost:
            other_release = compared_with(plan.release)
            reads_files = self._beside_files and not rules_of(other_release).chooses_queue_side
            other_plan = None if reads_files else self._starts.plan(other_release)
            leaves = (
                sum(_left_out_by(other_plan, units).values()) if other_plan is not None and other_plan.will_start else 0
            )
            if other_plan is not None and leaves:
                fate = plural(
                    "RocketMQ {own} dispatches it again when it starts, {other} leaves {leaves:,} out",
                    "RocketMQ {own} dispatches them again when it starts, {other} leaves {leaves:,} out",
                    n=count,
                    own=plan.release,
                    other=other_plan.release,
                    leaves=leaves,
                )
                return " · " + fate, "note" if self._store.abort else None, {}
            fate = plural("the next start dispatches it again", "the next start dispatches them again", n=count)
            return " · " + fate, "note" if self._store.abort else "warn", {}
        limit = file_limit_words(plan)
        limit = " · " + limit if limit else ""
        if not dispatched_count:
            fate = plural("no start dispatches it again", "no start dispatches them again", n=count)
            return " · " + fate + limit, None, out
        fate = sentence(
            "the next start dispatches {again:,} of them again and leaves {lost:,} out for good",
            again=dispatched_count,
            lost=lost,
        )
        return " · " + fate + limit, None, out

    def _left_out(self, units: dict[Key, int]) -> dict[str, Any]:
        """Evidence on units that are left out for good; the rule about starts does not report them again."""
        self._starts.left_out |= units
        return {LEFT_OUT: sum(units.values())} if units else {}

    def _cut_once(self, first_unit: int) -> str:
        """Return a note if the broker that closed the store knew a log that ended earlier: these bytes were cut, and
        came back.

        Not if a queue knows bytes behind them.
        """
        if first_unit < self._queues.last_matched or self._in_rocksdb:
            return ""
        checkpoint = self._starts.checkpoint
        unit = self._log.stored(first_unit)
        if self._store.abort or checkpoint is None or not 0 < checkpoint.physic_msg_timestamp < unit:
            return ""
        return " · " + sentence(
            "the checkpoint of the last close ends before them: a recovery or a slave cut the log there, and the bytes "
            "came back"
        )

    def _left_behind(self, first_unit: int, units: int) -> bool:
        """Report units behind a broken unit at which the log was cut once: one finding for all of them."""
        if self._store.abort:
            return False
        spans = self._log.spans
        damaged_spans = [span for span in spans.spans if span.kind == "damage" and span.end == first_unit]
        if not damaged_spans and first_unit not in self._log.bad_crc:
            return False
        start = damaged_spans[0].start if damaged_spans else first_unit
        if damaged_spans:
            spans.spans.remove(damaged_spans[0])
        self._log.drop(catalogue.CL03, start)
        reason = sentence("a recovery cut the log at the unit that is broken here")
        spans.add(start, max(self._log.end, first_unit), "left", reason, units)
        spans.arrange()
        return True

    # -- queues without a folder

    def _queues_without_folder(self, odd_units: Collection[int]) -> Iterator[Finding]:
        lost: dict[Key, QueueWithoutFolder] = {}
        shown = 0
        declared = self._declared_queues()
        firsts = self._first_offsets()
        for key, home in self._queues.queues_without_folder.items():
            if home.units == 1 and home.first_offset in odd_units:
                continue
            if self._was_lost(key, home, declared, firsts):
                lost[key] = home
            elif shown < MAX_LISTED:
                shown += 1
                topic, number = key
                text = sentence(
                    "Topic {topic} has no queue {queue}; the log still has {units} of it",
                    topic=topic,
                    queue=number,
                    units=_units(home.units),
                )
                yield catalogue.CQ08.finding(
                    text, self._file(home.first_offset), home.first_offset, _evidence(key, home)
                )
        if lost:
            yield self._report_lost_queues(lost)
            yield from self.files_instead_of_folders(lost)

    def files_instead_of_folders(self, keys: Iterable[Key]) -> Iterator[Finding]:
        """DK01: a file has the name of a folder that these queues need. A broker cannot make their files then, and does
        not serve the queue.
        """
        paths = self._store.paths
        if paths is None or self._in_rocksdb:
            return
        folders = {paths.consumequeue: ""}
        for topic, number in keys:
            if is_folder_name(topic):
                folder = paths.queue_folder(topic, number)
                folders |= {folder.parent: topic, folder: f"{topic}/{number}"}
        for folder, name in folders.items():
            if self._is_file(folder):
                text = (
                    sentence(
                        "A file stands where the folder of {queue} belongs: a broker cannot write there", queue=name
                    )
                    if name
                    else sentence("A file stands where the folder of all queues belongs: a broker cannot write there")
                )
                evidence = {"expected": sentence("a folder"), "found": sentence("a file")}
                yield catalogue.DK01.finding(text, str(folder), None, evidence, "error")

    def _is_file_instead_of_folder(self, topic: str) -> bool:
        paths = self._store.paths
        return paths is not None and is_folder_name(topic) and self._is_file(paths.consumequeue / topic)

    def _is_file(self, path: Path) -> bool:
        info = self._store.reading.status(path)
        return info is not None and stat.S_ISREG(info.st_mode)

    def _first_offsets(self) -> dict[str, int]:
        """For each topic that has entries, the first place in the log that they know."""
        first_offsets: dict[str, int] = {}
        for (topic, _), walk in self._queues.walks.items():
            if walk.end_number > walk.first_number:
                first_offset = walk.entry(walk.first_number).physical
                first_offsets[topic] = min(first_offsets.get(topic, first_offset), first_offset)
        return first_offsets

    def _declared_queues(self) -> dict[str, int] | None:
        """Topics of the topics table with their number of queues; empty without a table.

        None if the store crashed without a table or lost it: then it says nothing about deleted topics.
        """
        table_file = read_table(self._store, "topics.json")
        table = table_file.value.get("topicConfigTable") if table_file else None
        if not isinstance(table, dict):
            return {} if topics_known(self._store).are_known else None
        return {name: _queues(row) for name, row in table.items() if isinstance(row, dict)}

    def _was_lost(
        self, key: Key, home: QueueWithoutFolder, declared: dict[str, int] | None, firsts: dict[str, int]
    ) -> bool:
        """Return True if the queue had a folder in this life of its topic.

        Nobody deletes a single queue or a system topic. Units older than the first entry of the topic's other queues
        belong to a former life, in which the topic was deleted.
        """
        topic, number = key
        if self._is_file_instead_of_folder(topic):
            return True
        if topic in firsts:
            return home.last_offset > firsts[topic]
        if not declared and self._twin(topic) is not None:
            return True
        if topic in SYSTEM_TOPICS or topic.startswith((SYSTEM_PREFIX, LMQ_PREFIX)):
            return True
        return declared is None or number < declared.get(topic, 0)

    def _twin(self, topic: str) -> str | None:
        """A topic with queues whose name differs from this one only in case; None if the topic has queues itself."""
        topics = self._store.queues.by_topic()
        if topic in topics or self._in_rocksdb:
            return None
        return next((name for name in topics if name.lower() == topic.lower()), None)

    def _report_lost_queues(self, lost: dict[Key, QueueWithoutFolder]) -> Finding:
        fate, severity, left_out = self._describe_next_start({key: home.units for key, home in lost.items()})
        fate_is_again = severity not in (None, "error")
        kind = "again" if fate_is_again else ""
        (topic, number), home = min(lost.items(), key=lambda item: item[1].first_offset)
        if len(lost) == 1:
            text: str = sentence(
                "Queue {queue} has no end in the RocksDB; the log has {units} of it"
                if self._in_rocksdb
                else "Queue {queue} has no folder; the log has {units} of it",
                queue=f"{topic}/{number}",
                units=_units(home.units),
            )
            evidence = _evidence((topic, number), home)
        else:
            units = sum(item.units for item in lost.values())
            names = [f"{key[0]}/{key[1]}" for key in lost]
            text = sentence(
                "{n:,} queues have no end in the RocksDB ({names}); the log has {units} of them"
                if self._in_rocksdb
                else "{n:,} queues have no folder ({names}); the log has {units} of them",
                n=len(lost),
                names=", ".join(names[:3]) + (" …" if len(names) > 3 else ""),
                units=_units(units),
            )
            evidence = {"units": units, "queues": names[:MAX_LISTED], "firstUnit": home.first_offset}
        evidence |= self._left_out(left_out)
        names = [f"{key[0]}/{key[1]}" for key in lost][: MAX_NAMED + 1]
        named = ", ".join(names[:MAX_NAMED]) + (" …" if len(names) > MAX_NAMED else "")
        if self._in_rocksdb:
            fate = " · " + NO_END + fate
            evidence[HAPPENED] = plural(
                "{n:,} queue has no end in the RocksDB ({names})",
                "{n:,} queues have no end in the RocksDB ({names})",
                n=len(lost),
                names=named,
            )
        else:
            evidence[HAPPENED] = plural(
                "{n:,} queue has no folder ({names})", "{n:,} queues have no folder ({names})", n=len(lost), names=named
            )
        evidence |= between(*[self._log.stored(home.first_offset)] * 2)
        topics = {key[0] for key in lost}
        if (
            not self._store.abort
            and not fate_is_again
            and len(topics) == 1
            and not topics & self._store.queues.by_topic().keys()
            and self._twin(topic) is None
        ):
            fate += " · " + sentence(
                "if {topic} was deleted and created again, these messages are from before", topic=topic
            )
        twins = [(name, twin) for name in sorted(topics) if (twin := self._twin(name)) is not None]
        if twins:
            name, twin = twins[0]
            fate += " · " + sentence(
                "{topic} and {twin} differ only in case: a file system that ignores case makes one folder of both; "
                "build the queues on one that tells cases apart",
                topic=name,
                twin=twin,
            )
        cause = None if self._store.abort else self._cause_of_doubt()
        if cause is not None:
            fate += " · " + sentence("only topics.json could tell whether their topics were deleted")
        return catalogue.CQ10.finding(
            text + fate,
            self._file(home.first_offset),
            home.first_offset,
            evidence,
            severity,
            kind=kind,
            caused_by=cause,
        )

    def _cause_of_doubt(self) -> str | None:
        """The rule that reports the lost topics table; None if there is a table, or never was one."""
        if is_listed(self._store) or not is_of_a_broker(self._store):
            return None
        table = read_table(self._store, "topics.json")
        return "CF01" if table is not None and table.used == "nothing" else "CF03"

    def _file(self, offset: int) -> str | None:
        file = self._store.log.sequence.find(offset)
        return file.path if file else None


def _left_out_by(plan: RecoveryPlan, units: Mapping[Key, int]) -> dict[Key, int]:
    """For each queue, how many of these units the start leaves out."""
    added = {(queue.topic, queue.queue_id): queue.entries_added for queue in plan.queues}
    return {key: lost_count for key, count in units.items() if (lost_count := count - added.get(key, 0)) > 0}


def _short_queue(walk: QueueWalk) -> ShortQueue:
    key = (walk.reader.topic, walk.reader.queue_id)
    path, place = walk.place_of(walk.end_number)
    if place is None and not walk.in_rocksdb and walk.reader.files:
        place = walk.end_number * walk.unit_size - walk.reader.files[-1].start_offset
    return ShortQueue(key, walk.end_number, walk.units_behind, walk.first_offset_behind, path, place)


def _evidence(key: Key, home: QueueWithoutFolder) -> dict[str, Any]:
    return {"topic": key[0], "queueId": key[1], "units": home.units, "lastUnit": home.last_offset}


def _queues(row: dict[str, Any]) -> int:
    """Number of queues that a row of the topics table gives its topic."""
    counts = (row.get("writeQueueNums", DEFAULT_QUEUES), row.get("readQueueNums", DEFAULT_QUEUES))
    return max((count for count in counts if isinstance(count, int)), default=0)


def _units(count: int) -> str:
    return plural("{n:,} unit", "{n:,} units", n=count)
