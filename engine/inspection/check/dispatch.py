"""Units of the log that are in no queue: which they are, what the next start does about them, and who waits for them.

A queue that lost its tail or its folder is one fault of the store, told once, with what a start would dispatch again:
the plan of recovery is asked, so the two never differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.codec.message import SCHEDULE_TOPIC
from engine.codec.words import HALF_TOPIC, OP_TOPIC
from engine.inspection.broker_traces import is_of_a_broker
from engine.inspection.check.entries import QueueWalk
from engine.inspection.check.log import LogCheck
from engine.inspection.check.losses import of_own_release
from engine.inspection.check.places import between
from engine.inspection.check.queues import Homeless, QueueCheck
from engine.inspection.check.start import Starts
from engine.inspection.deleted_topics import is_listed, topics_known
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import read_table
from engine.releases import compared_with
from engine.rules import catalogue
from engine.rules.findings import HAPPENED, LEFT_OUT, Finding, Severity
from engine.rules.system_names import LMQ
from engine.store.recovery.plan import RecoveryPlan, file_limit_words

MOST = 20
MOST_NAMED = 3
SYSTEM_PREFIX = "rmq_sys_"
SYSTEM_TOPICS = frozenset({HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC})
"""Besides those with the prefix: topics that nobody can delete."""
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Short:
    """A queue that has not all of its units: where it ends, where it would, and the first unit that it lacks."""

    key: Key
    end: int
    units: int
    first: int
    path: str | None
    place: int | None

    @property
    def name(self) -> str:
        return f"{self.key[0]}/{self.key[1]}"


class Undispatched:
    """What :class:`QueueCheck` did not find in the queues; afterwards :attr:`short` says how long each of these queues
    would be.
    """

    def __init__(self, store: StoreSnapshot, log: LogCheck, queues: QueueCheck, starts: Starts) -> None:
        self._store = store
        self._log = log
        self._queues = queues
        self._starts = starts
        self._live = store.lock_state == "held"
        self.short: dict[Key, int] = {}

    def all_gone(self) -> Finding:
        """The store has units and no queue at all."""
        homes = self._queues.homeless
        units = sum(home.units for home in homes.values())
        first = min(home.first for home in homes.values())
        text = f"The store has no consume queues; the log has {units:,} units for {len(homes):,} of them"
        assert self._store.paths is not None
        folder = str(self._store.paths.consumequeue)
        fate, severity, left_out = self._fate({key: home.units for key, home in homes.items()})
        evidence = {"units": units, "firstUnit": first, HAPPENED: "the store lost all its consume queues"}
        evidence |= self._left_out(left_out)
        kind = "gone" if severity is None else "again"
        return catalogue.CQ10.found(text + fate, folder, None, evidence, severity and "warn", kind=kind)

    # -- queues that end too early

    def findings(
        self, faulty: Collection[Key], odd_units: Collection[int], early: Collection[Key] = ()
    ) -> Iterator[Finding]:
        """CQ10 and CQ08; queues that are ``faulty`` have been told, units that are odd themselves too, and of queues
        that lack one entry (``early``) the one unit behind their end.
        """
        yield from self._behind(faulty, early)
        yield from self._homeless(odd_units)

    def _behind(self, faulty: Collection[Key], early: Collection[Key]) -> Iterator[Finding]:
        every = self._queues.walks
        walks = [walk for key, walk in every.items() if walk.behind > (1 if key in early else 0)]
        if not walks:
            return
        first = min(walk.first_behind for walk in walks)
        units = sum(walk.behind for walk in walks)
        if self._queues.last_matched < first or self._store.abort:
            if self._left_behind(first, units):
                return
        else:
            walks = [w for w in walks if (w.reader.topic, w.reader.queue_id) not in faulty and not w.wrong]
        if walks:
            yield self._told([_short(walk) for walk in sorted(walks, key=lambda walk: walk.first_behind)])

    def _told(self, short: list[Short]) -> Finding:
        units, first = sum(one.units for one in short), min(one.first for one in short)
        self.short |= {one.key: one.end + one.units for one in short}
        fate, severity, left_out = self._fate({one.key: one.units for one in short})
        queues = [{"queue": one.name, "end": one.end, "units": one.units} for one in short[:MOST]]
        evidence: dict[str, Any] = {"units": units, "queues": queues, "firstUnit": first}
        evidence |= self._left_out(left_out)
        evidence[HAPPENED] = f"{len(short):,} queues lack {units:,} units of the log, from {first:,} on"
        evidence |= between(*[self._log.stored(first)] * 2)
        came_back = self._cut_once(first)
        severity = None if came_back and severity == "warn" else severity
        kind = "" if severity in (None, "error") else "again"
        if len(short) == 1:
            one = short[0]
            evidence |= {"expected": one.end + one.units, "found": one.end}
            text = f"Queue {one.name} ends at {one.end:,}; {_units(one.units)} of the log are behind that"
            text += came_back + fate
            return catalogue.CQ10.found(text, one.path, one.place, evidence, severity, kind=kind)
        most = max(short, key=lambda one: one.units)
        text = f"{units:,} units from here on are not in their {len(short):,} queues: "
        text += f"{most.name} ends at {most.end:,} and lacks {most.units:,}" + came_back + fate
        return catalogue.CQ10.found(text, self._file(first), first, evidence, severity, kind=kind)

    def _fate(self, units: dict[Key, int]) -> tuple[str, Severity | None, dict[Key, int]]:
        """What the next start does about so many units of these queues, how grave that is, and how many of each it
        leaves out for good as far as that is known.
        """
        if self._live:
            return "", "note", {}
        plan = of_own_release(self._store, self._starts)
        if plan is None:
            return "", "note" if self._store.abort else None, {}
        out = _left_out_by(plan, units)
        lost = sum(out.values())
        again = sum(units.values()) - lost
        them = "it" if lost + again == 1 else "them"
        if not lost:
            other = self._starts.plan(compared_with(plan.like))
            leaves = sum(_left_out_by(other, units).values()) if other is not None and other.will_start else 0
            if other is not None and leaves:
                fate = f" · RocketMQ {plan.like} dispatches {them} again when it starts, {other.like} leaves {leaves:,} out"  # noqa: E501
                return fate, "note" if self._store.abort else None, {}
            return f" · the next start dispatches {them} again", "note" if self._store.abort else "warn", {}
        limit = file_limit_words(plan)
        limit = f" · {limit}" if limit else ""
        if not again:
            return f" · no start dispatches {them} again{limit}", None, out
        fate = f" · the next start dispatches {again:,} of them again and leaves {lost:,} out for good"
        return fate + limit, None, out

    def _left_out(self, units: dict[Key, int]) -> dict[str, Any]:
        """The evidence of what is left out for good; the rule about starts tells it no second time."""
        self._starts.left_out |= units
        return {LEFT_OUT: sum(units.values())} if units else {}

    def _cut_once(self, first: int) -> str:
        """The broker that closed the store knew a log that ended before: these bytes were cut, and came back. Not where
        a queue knows bytes behind them.
        """
        if first < self._queues.last_matched:
            return ""
        checkpoint = self._starts.checkpoint
        unit = self._log.stored(first)
        if self._store.abort or checkpoint is None or not 0 < checkpoint.physic_msg_timestamp < unit:
            return ""
        return " · the checkpoint of the last close ends in front of them: a recovery or a slave cut the log there, and the bytes came back"  # noqa: E501

    def _left_behind(self, first: int, units: int) -> bool:
        """The log was cut at a broken unit, and what lay behind it is still there: one finding for all of it."""
        if self._store.abort:
            return False
        spans = self._log.spans
        before = [span for span in spans.spans if span.kind == "damage" and span.end == first]
        if not before and first not in self._log.bad_crc:
            return False
        start = before[0].start if before else first
        if before:
            spans.spans.remove(before[0])
        self._log.drop(catalogue.CL03, start)
        reason = "a recovery cut the log at the unit that is broken here"
        spans.add(start, max(self._log.end, first), "left", reason, units)
        spans.arrange()
        return True

    # -- queues without a folder

    def _homeless(self, odd_units: Collection[int]) -> Iterator[Finding]:
        lost: dict[Key, Homeless] = {}
        shown = 0
        declared = self._declared()
        firsts = self._firsts()
        for key, home in self._queues.homeless.items():
            if home.units == 1 and home.first in odd_units:
                continue
            if self._was_lost(key, home, declared, firsts):
                lost[key] = home
            elif shown < MOST:
                shown += 1
                topic, number = key
                text = f"Topic {topic} has no queue {number}; the log still has {_units(home.units)} of it"
                yield catalogue.CQ08.found(text, self._file(home.first), home.first, _evidence(key, home))
        if lost:
            yield self._told_lost(lost)

    def _firsts(self) -> dict[str, int]:
        """For each topic that has entries, the first place in the log that they know."""
        known: dict[str, int] = {}
        for (topic, _), walk in self._queues.walks.items():
            if walk.end > walk.first:
                first = walk.entry(walk.first).physical
                known[topic] = min(known.get(topic, first), first)
        return known

    def _declared(self) -> dict[str, int] | None:
        """Topics of the topics table with their number of queues; none where there is no table, and None where a store
        crashed without one, or lost its own: that names no topic that was deleted.
        """
        found = read_table(self._store, "topics.json")
        table = found.value.get("topicConfigTable") if found else None
        if not isinstance(table, dict):
            return {} if topics_known(self._store).told else None
        return {name: _queues(row) for name, row in table.items() if isinstance(row, dict)}

    def _was_lost(self, key: Key, home: Homeless, declared: dict[str, int] | None, firsts: dict[str, int]) -> bool:
        """Whether the queue had a folder in this life of its topic: nobody deletes one queue, nor a system topic. What
        is older than the first entry of the topic's other queues is of a former life, in which it was deleted.
        """
        topic, number = key
        if topic in firsts:
            return home.last > firsts[topic]
        if topic in SYSTEM_TOPICS or topic.startswith((SYSTEM_PREFIX, LMQ)):
            return True
        return declared is None or number < declared.get(topic, 0)

    def _told_lost(self, lost: dict[Key, Homeless]) -> Finding:
        fate, severity, left_out = self._fate({key: home.units for key, home in lost.items()})
        kind = "" if severity in (None, "error") else "again"
        (topic, number), home = min(lost.items(), key=lambda one: one[1].first)
        if len(lost) == 1:
            text = f"Queue {topic}/{number} has no folder; the log has {_units(home.units)} of it"
            evidence = _evidence((topic, number), home)
        else:
            units = sum(one.units for one in lost.values())
            names = [f"{key[0]}/{key[1]}" for key in lost]
            text = f"{len(lost):,} queues have no folder ({', '.join(names[:3])}"
            text += f"{' …' if len(names) > 3 else ''}); the log has {_units(units)} of them"
            evidence = {"units": units, "queues": names[:MOST], "firstUnit": home.first}
        evidence |= self._left_out(left_out)
        names = [f"{key[0]}/{key[1]}" for key in lost][: MOST_NAMED + 1]
        named = ", ".join(names[:MOST_NAMED]) + (" …" if len(names) > MOST_NAMED else "")
        evidence[HAPPENED] = f"{len(lost):,} queues have no folder ({named})"
        evidence |= between(*[self._log.stored(home.first)] * 2)
        cause = None if self._store.abort else self._why_untold()
        if cause is not None:
            fate += " · only topics.json could tell whether their topics were deleted"
        return catalogue.CQ10.found(
            text + fate, self._file(home.first), home.first, evidence, severity, kind=kind, caused_by=cause
        )

    def _why_untold(self) -> str | None:
        """The rule that tells of the topics table that was lost; None where there is one, or never was."""
        if is_listed(self._store) or not is_of_a_broker(self._store):
            return None
        table = read_table(self._store, "topics.json")
        return "CF01" if table is not None and table.used == "nothing" else "CF03"

    def _file(self, offset: int) -> str | None:
        file = self._store.log.sequence.find(offset)
        return file.path if file else None


def _left_out_by(plan: RecoveryPlan, units: Mapping[Key, int]) -> dict[Key, int]:
    """Of so many units of these queues how many of each the start leaves out."""
    added = {(queue.topic, queue.queue_id): queue.entries_added for queue in plan.queues}
    return {key: left for key, count in units.items() if (left := count - added.get(key, 0)) > 0}


def _short(walk: QueueWalk) -> Short:
    last = walk.reader.sequence.find(walk.end * walk.unit_size) or (
        walk.reader.files[-1] if walk.reader.files else None
    )
    place = walk.end * walk.unit_size - last.start_offset if last else None
    key = (walk.reader.topic, walk.reader.queue_id)
    return Short(key, walk.end, walk.behind, walk.first_behind, last.path if last else None, place)


def _evidence(key: Key, home: Homeless) -> dict[str, Any]:
    return {"topic": key[0], "queueId": key[1], "units": home.units, "lastUnit": home.last}


def _queues(row: dict[str, Any]) -> int:
    """How many queues a row of the topics table gives its topic."""
    counts = (row.get("writeQueueNums"), row.get("readQueueNums"))
    return max((count for count in counts if isinstance(count, int)), default=0)


def _units(count: int) -> str:
    return "1 unit" if count == 1 else f"{count:,} units"
