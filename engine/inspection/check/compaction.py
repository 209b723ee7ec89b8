"""Checks compacted topics: their own logs and queues, and whether these have every message (CM01–CM03;
docs/formats/compaction.md).

A real 5.5.1 does not look at these bytes when it starts: it hands out damaged ones, and consumers of a lost queue find
it empty. Nothing is built again from the commit log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.inspection.compaction import CompactedQueue
from engine.inspection.get_message import compacted_topics
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue_tables as rules
from engine.rules.findings import Finding
from engine.sentences import plural, sentence
from engine.store.queue_entry import CqEntry


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """CM01–CM03. Raises :class:`CannotRead`. A running broker changes these files: then only CM01."""
    if store.paths is None:
        return
    queues = store.compacted_queues()
    part = next((part for part in store.undecoded if part.compacted), None)
    if part is not None:
        yield rules.CM01.finding(part.words, str(store.path / part.folder), None, {"found": list(part.compacted)})
    if store.lock_state == "held":
        return
    for queue in queues:
        yield from _damage(queue)
    yield from _missing(store, {queue.name: queue for queue in queues})


class _Fault(NamedTuple):
    """Something that a consumer does not get as it was stored; ``offset`` is in the compacted log."""

    offset: int
    words: str


def _damage(queue: CompactedQueue) -> Iterator[Finding]:
    units: dict[int, Unit] = {}
    faults: list[_Fault] = []
    for item in queue.items():
        if isinstance(item, Damage):
            faults.append(_Fault(item.offset, item.reason))
        elif item.crc == "bad":
            faults.append(_Fault(item.offset, sentence("the body is not what was stored")))
        else:
            units[item.offset] = item
    faults += filter(None, (_entry_fault(entry, units) for entry in queue.entries()))
    faults += [
        _Fault(start, sentence("the log and the queue of {queue} have not the same files", queue=queue.name))
        for start in queue.unpaired_files()
    ]
    if not faults:
        return
    faults.sort(key=lambda fault: fault.offset)
    first_fault, offsets = faults[0], list(dict.fromkeys(fault.offset for fault in faults))
    file = queue.log.sequence.find(first_fault.offset)
    text = plural(
        "The compacted queue {queue} has {n:,} damaged place, at {offset:,} of its log: {why}",
        "The compacted queue {queue} has {n:,} damaged places, the first at {offset:,} of its log: {why}",
        n=len(offsets),
        queue=queue.name,
        offset=first_fault.offset,
        why=first_fault.words,
    )
    evidence = {
        "queue": queue.name,
        "expected": sentence("whole messages, and an entry for each"),
        "found": first_fault.words,
        "offsets": offsets[:20],
    }
    path, position = (
        (file.path, first_fault.offset - file.start_offset) if file is not None else (str(queue.folder), None)
    )
    yield rules.CM02.finding(text, path, position, evidence)


def _entry_fault(entry: CqEntry, units: dict[int, Unit]) -> _Fault | None:
    unit = units.get(entry.physical_offset)
    if unit is not None and (unit.queue_offset, unit.size) == (entry.queue_offset, entry.size):
        return None
    if unit is None:
        words = sentence("entry {n:,} leads to no intact message", n=entry.queue_offset)
    else:
        words = sentence("entry {n:,} leads to message {other:,}", n=entry.queue_offset, other=unit.queue_offset)
    return _Fault(entry.physical_offset, words)


def _missing(store: StoreSnapshot, compacted: dict[str, CompactedQueue]) -> Iterator[Finding]:
    """CM03: queues whose newest messages are not in the compacted queue, although dispatch writes both."""
    all_queues = store.queues.by_topic()
    for topic in sorted(compacted_topics(store)):
        for queue_id, queue in all_queues.get(topic, {}).items():
            name = f"{topic}/{queue_id}"
            end = compacted[name].max_offset if name in compacted else 0
            if queue.max_offset <= end or (store.abort and end):  # a start after a crash may append the newest ones
                continue
            text = sentence(
                "The compacted queue {queue} ends at {end:,}, and the queue at {expected:,}: consumers do not get "
                "the messages in between",
                queue=name,
                end=end,
                expected=queue.max_offset,
            )
            folder = store.path / "compaction" / "compactionCq" / topic / str(queue_id)
            evidence = {"queue": name, "expected": queue.max_offset, "found": end}
            yield rules.CM03.finding(text, str(folder), None, evidence, "warn" if end else None)
