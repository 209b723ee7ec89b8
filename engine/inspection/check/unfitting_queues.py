"""CL14: queues and a commit log that do not fit together (docs/formats/consume-queue.md#entry).

Entries of a queue point to units of their topic, queue and offset. Where next to none of them does, log and queues are
of different stores, or of different times of one store: the files do not say which of the two is the wrong one. An
index that leads to units of this log, or to the places that the queues know, is a hint. Single queues that do not fit
are folders of another store, or copies that somebody made.

The faults of single entries follow from this and are no causes of their own.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from engine.codec.java import index_key_hash
from engine.codec.message import Unit
from engine.codec.properties import INNER_MULTI_DISPATCH
from engine.errors import CorruptUnit
from engine.inspection.check.log import LogCheck
from engine.inspection.check.queue_walk import QueueWalk
from engine.inspection.check.queues import QueueCheck
from engine.inspection.key_trace import indexed_keys
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue
from engine.rules.findings import HAPPENED, RESTORABLE, STORE, Finding
from engine.sentences import join, plural, sentence
from engine.system_names import LMQ_PREFIX

MAX_QUEUES = 256
MAX_ENTRIES = 16
"""Number of a queue's entries that are looked up, evenly spread over those that point into the log."""
MIN_ENTRIES = 8
"""Fewer entries that lead nowhere may be faults of a queue."""
FITTING_SHARE = 16
"""If fewer than one in this many entries leads to its unit, queues and log do not fit together."""
MAX_UNREADABLE_SHARE = 4
"""If more than one in this many bytes of the log is no unit, its damage explains the entries."""
MAX_INDEX_FILES = 16
MAX_INDEX_ENTRIES = 4
MAX_NAMED = 20
WITNESSES = frozenset({"CQ03", "CQ04", "CQ05", "CQ12", "CL09"})
"""Findings without which every queue fits."""
FOLLOWERS = frozenset(
    {
        *("CL06", "CL09", "CL11"),
        *("CQ03", "CQ04", "CQ05", "CQ08", "CQ09", "CQ10", "CQ12", "CQ13", "CQ15"),
        *("RP01", "RP03", "CK02", "CK03", "CK04"),
        *("CF02", "CF06", "CF08", "CF09", "CF12", "CF13", "CQ14", "TM01", "TM02", "TM03", "TM05"),
    }
)
"""Rules whose findings follow from queues that are not of this log."""
INDEX_FOLLOWERS = frozenset({"IX05", "IX06", "IX07"})
"""The same for an index that does not fit this log either."""
_OF_QUEUES = frozenset({"CQ03", "CQ04", "CQ05", "CQ09", "CQ12", "CQ13", "CQ14", "CF02", "CF07"})
"""Rules whose findings follow if they are about a queue that is not of this log."""

Fit = Literal["log", "queues", ""]
"""What the index fits: this log, the places that the queues know, or neither (or there is none)."""


class QueueSample(NamedTuple):
    """Entries of one queue that were looked up, how many of them lead to their units, and the queue whose entries these
    are if they are another one's ("" if they are not).
    """

    walk: QueueWalk
    entries: int
    fitting: int
    owner: str


def explained(store: StoreSnapshot, findings: Sequence[Finding], log: LogCheck, queues: QueueCheck) -> list[Finding]:
    """Return ``findings``; if queues do not fit the log, CL14 comes first and what it explains follows from it.

    Raises :class:`CannotRead`.
    """
    if store.paths is None or store.lock_state == "held" or not log.units or log.other_ranges:
        return list(findings)
    if not any(finding.id in WITNESSES and finding.caused_by is None for finding in findings):
        return list(findings)
    if _is_mostly_unreadable(log, max(store.log.min_offset, 0)):
        return list(findings)
    walks = (walk for walk in queues.walks.values() if _counts(walk))
    samples = [sample for walk in islice(walks, MAX_QUEUES) if (sample := _look_up(store, log, walk)).entries]
    strays = [sample for sample in samples if not sample.owner]
    entries, fitting = sum(sample.entries for sample in strays), sum(sample.fitting for sample in strays)
    if entries >= MIN_ENTRIES and fitting * FITTING_SHARE <= entries:
        fit = _fit_of_index(store, log, [sample.walk for sample in samples])
        cause = _whole(store, log, samples, fit)
        rules = FOLLOWERS if fit == "log" else FOLLOWERS | INDEX_FOLLOWERS
        return [cause, *_following(findings, rules)]
    foreign = [sample for sample in samples if not sample.fitting and not sample.walk.units]
    if not foreign:
        return list(findings)
    if all(_is_in_other_case(sample) for sample in foreign):
        return [_in_other_case(foreign), *_following(findings, FOLLOWERS | {"CF07"})]
    return [_some(foreign, len(samples)), *_of_queues(findings, foreign)]


def _is_mostly_unreadable(log: LogCheck, start: int) -> bool:
    """Return True if damage is so widespread that entries into the log say nothing of their queues."""
    unreadable = sum(min(span.end, log.end) - span.start for span in log.spans.spans if span.start < log.end)
    return unreadable * MAX_UNREADABLE_SHARE > log.end - start


def is_about_all_queues(finding: Finding) -> bool:
    """Return True for a CL14 about the whole log: then nothing is known of what was lost."""
    return finding.id == catalogue.CL14.id and "fits" in finding.evidence


def _counts(walk: QueueWalk) -> bool:
    return walk.reader.kind == "simple" and not walk.reader.topic.startswith(LMQ_PREFIX)


# -- entries


def _look_up(store: StoreSnapshot, log: LogCheck, walk: QueueWalk) -> QueueSample:
    """Look up entries of one queue that point into the log, without those that point to broken places."""
    start, end = _position_of(walk, max(store.log.min_offset, 0)), _position_of(walk, log.end)
    step = max((end - start) // MAX_ENTRIES, 1)
    entries = fitting = 0
    owners: set[str] = set()
    for number in islice(range(start, end, step), MAX_ENTRIES):
        entry = walk.entry(number)
        if entry.size <= 0 or not store.log.min_offset <= entry.physical < log.end or log.spans.find(entry.physical):
            continue
        unit = store.log.unit_at(entry.physical, crc=False)
        entries += 1
        if not isinstance(unit, Unit) or unit.size != entry.size:
            owners.add("")
        elif _is_of(unit, walk, number):
            fitting += 1
        else:
            owners.add(f"{unit.topic}/{unit.queue_id}" if unit.queue_offset == number else "")
    return QueueSample(walk, entries, fitting, owners.pop() if len(owners) == 1 else "")


def _position_of(walk: QueueWalk, physical: int) -> int:
    """Number of the first entry that points to ``physical`` or behind it."""
    lower, upper = walk.first_number, walk.end_number
    while lower < upper:
        middle = (lower + upper) // 2
        if walk.entry(middle).physical < physical:
            lower = middle + 1
        else:
            upper = middle
    return lower


def _is_of(unit: Unit, walk: QueueWalk, number: int) -> bool:
    if (unit.topic, unit.queue_id) == (walk.reader.topic, walk.reader.queue_id):
        return unit.queue_offset == number
    return walk.reader.topic in unit.properties.get(INNER_MULTI_DISPATCH, "").split(",")


# -- the index


def _fit_of_index(store: StoreSnapshot, log: LogCheck, walks: Sequence[QueueWalk]) -> Fit:
    """Look up some entries of the index in the log and in the queues."""
    looked = in_log = in_queues = 0
    for physical, key_hash in _index_entries(store):
        if not store.log.min_offset <= physical < log.end:
            continue
        looked += 1
        unit = store.log.unit_at(physical, crc=False)
        in_log += isinstance(unit, Unit) and key_hash in _hashes(unit)
        in_queues += any(_points_to(walk, physical) for walk in walks)
    if looked < MIN_ENTRIES:
        return ""
    return "log" if in_log * 2 > looked else "queues" if in_queues * 2 > looked else ""


def _index_entries(store: StoreSnapshot) -> Iterator[tuple[int, int]]:
    """(offset, key hash) of a few entries of each index file."""
    for reader in store.index_files()[:MAX_INDEX_FILES]:
        try:
            last_entry = reader.last_entry
            step = max(last_entry // MAX_INDEX_ENTRIES, 1)
            for number in islice(range(1, last_entry + 1, step), MAX_INDEX_ENTRIES):
                entry = reader.entry(number)
                if entry is not None:
                    yield entry.phy_offset, entry.key_hash
        except CorruptUnit:
            continue


def _hashes(unit: Unit) -> set[int]:
    return {index_key_hash(unit.topic, key) for key in indexed_keys(unit)}


def _points_to(walk: QueueWalk, physical: int) -> bool:
    number = _position_of(walk, physical)
    return number < walk.end_number and walk.entry(number).physical == physical


# -- the findings


def _whole(store: StoreSnapshot, log: LogCheck, samples: Sequence[QueueSample], fit: Fit) -> Finding:
    entries, fitting = sum(sample.entries for sample in samples), sum(sample.fitting for sample in samples)
    unfitting = [sample for sample in samples if sample.fitting < sample.entries]
    text = plural(
        "Queues and commit log do not fit together: entries of {count:,} of {n:,} queue name places "
        "at which no unit with their topic, queue and offset begins ({wrong:,} of {entries:,} that "
        "were looked up)",
        "Queues and commit log do not fit together: entries of {count:,} of {n:,} queues name places "
        "at which no unit with their topic, queue and offset begins ({wrong:,} of {entries:,} that "
        "were looked up)",
        count=len(unfitting),
        n=len(samples),
        wrong=entries - fitting,
        entries=entries,
    )
    if fit == "queues":
        text += "; " + sentence("the index leads to the places that the queues name, and not to units of this log")
    elif fit == "log":
        text += "; " + sentence("the index leads to units of this log")
    evidence: dict[str, Any] = {
        "expected": sentence("units of the queues' entries"),
        "found": fitting,
        "entries": entries,
        "fits": fit or "unknown",
        "queues": [sample.walk.name for sample in unfitting[:MAX_NAMED]],
        "logUnits": log.units,
        RESTORABLE: True,
    }
    evidence[HAPPENED] = plural(
        "queues and commit log do not fit together ({count:,} of {n:,} queue): one of the two is of "
        "another store, or of another time of this one",
        "queues and commit log do not fit together ({count:,} of {n:,} queues): one of the two is of "
        "another store, or of another time of this one",
        count=len(unfitting),
        n=len(samples),
    )
    folder = store.commit_log.folders[0] if fit != "log" or store.paths is None else store.paths.consumequeue
    return catalogue.CL14.finding(
        text, str(folder), None, evidence, kind={"log": "queues", "queues": "log", "": ""}[fit]
    )


def _some(foreign: Sequence[QueueSample], queue_count: int) -> Finding:
    names = [sample.walk.name for sample in foreign]
    named = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    text = plural(
        "The log has no unit of {count:,} of {n:,} queue whose entries point into it ({names}): "
        "these folders are copies, or of another store",
        "The log has no unit of {count:,} of {n:,} queues whose entries point into it ({names}): "
        "these folders are copies, or of another store",
        count=len(foreign),
        n=queue_count,
        names=named,
    )
    owners = {sample.walk.name: sample.owner for sample in foreign if sample.owner}
    if owners:
        named_owners = list(owners.items())[:3]
        text += "; " + join(
            ", ",
            [sentence("{queue} has the entries of {owner}", queue=name, owner=owner) for name, owner in named_owners],
        )
    evidence: dict[str, Any] = {"expected": sentence("units of these queues"), "found": 0, "queues": names[:MAX_NAMED]}
    evidence["entriesOf"] = dict(list(owners.items())[:MAX_NAMED])
    evidence[HAPPENED] = plural(
        "the commit log has no unit of {n:,} queue ({names})",
        "the commit log has no unit of {n:,} queues ({names})",
        n=len(foreign),
        names=named,
    )
    folder = foreign[0].walk.reader.sequence.folders[0]
    return catalogue.CL14.finding(text, str(folder), None, evidence, kind="some")


def _is_in_other_case(sample: QueueSample) -> bool:
    name = sample.walk.name
    return sample.owner != name and sample.owner.lower() == name.lower()


def _in_other_case(foreign: Sequence[QueueSample]) -> Finding:
    names = {sample.walk.name.rpartition("/")[0]: sample.owner.rpartition("/")[0] for sample in foreign}
    folder, topic = next(iter(names.items()))
    text = plural(
        "{n:,} folder of a topic has its name in another case ({folder} for {topic}): the entries "
        "are those of the topic",
        "{n:,} folders of topics have their names in another case ({folder} for {topic}): the "
        "entries are those of their topics",
        n=len(names),
        folder=folder,
        topic=topic,
    )
    evidence: dict[str, Any] = {"expected": list(names.values())[:MAX_NAMED], "found": list(names)[:MAX_NAMED]}
    evidence[HAPPENED] = sentence(
        "folders of topics have their names in another case than their topics ({folder} for {topic})",
        folder=folder,
        topic=topic,
    )
    path = foreign[0].walk.reader.sequence.folders[0].parent
    command = f"cd {STORE}/consumequeue"
    for name, own_name in list(names.items())[:MAX_NAMED]:
        command += f" && mv {shlex.quote(name)} {shlex.quote(own_name)}"
    return catalogue.CL14.finding(text, str(path), None, evidence, kind="case", command=command)


def _following(findings: Iterable[Finding], rules: Collection[str]) -> Iterator[Finding]:
    for finding in findings:
        follows = finding.id in rules and (finding.caused_by is None or finding.caused_by in rules)
        yield finding.follows(catalogue.CL14.id) if follows else finding


def _of_queues(findings: Iterable[Finding], foreign: Sequence[QueueSample]) -> Iterator[Finding]:
    """Yield ``findings``; those on a queue, or on a topic all of whose queues are foreign, follow from CL14."""
    queues = {sample.walk.name for sample in foreign}
    topics = {sample.walk.reader.topic for sample in foreign}
    for finding in findings:
        is_of_queue = finding.evidence.get("queue") in queues or finding.evidence.get("topic") in topics
        follows = finding.id in _OF_QUEUES and is_of_queue and finding.caused_by is None
        yield finding.follows(catalogue.CL14.id) if follows else finding
