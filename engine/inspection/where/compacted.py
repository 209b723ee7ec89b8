"""Settles the verdict on a message of a compacted topic: consumers read it from the compaction log, and only if no
later message has its key (docs/formats/compaction.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.errors import CannotRead
from engine.inspection.compaction import CompactedQueue, newer_with_key
from engine.inspection.get_message import is_compacted
from engine.inspection.where.facts import Evidence
from engine.inspection.where.lost import WhereResult
from engine.rules import where as rules
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

_LOST: frozenset[rules.Verdict] = frozenset({"expired", "neverSeen"})
_MAX_EVIDENCE = 8
_IN_LOG: frozenset[rules.Verdict] = frozenset({"found", "notInIndex", "consumed", "notConsumed"})


def settle_compacted(store: StoreSnapshot, text: str, result: WhereResult, topic: str | None) -> WhereResult:
    """Return ``result`` as the compaction log of its topic changes it; ``text`` and ``topic`` are the question's.

    A message that the commit log has deleted may live on; one that it still has may be replaced for consumers.
    """
    if result.verdict not in _LOST | _IN_LOG:
        return result
    try:
        queues = store.compacted_queues()
        if not queues:
            return result
        if result.verdict in _IN_LOG:
            return _unless_replaced(store, result)
        return _unless_it_lives_on(text, result, list(_named_queues(queues, result, topic)))
    except CannotRead:
        return replace(result, verdict="unknown")  # the evidence names the unreadable file


def _named_queues(queues: list[CompactedQueue], result: WhereResult, topic: str | None) -> Iterator[CompactedQueue]:
    topic = result.topic or next((item.topic for item in result.evidence if item.topic is not None), topic)
    for queue in queues:
        if topic in {None, queue.topic} and result.queue_id in {None, queue.queue_id}:
            yield queue


def _unless_it_lives_on(text: str, result: WhereResult, queues: list[CompactedQueue]) -> WhereResult:
    damage: list[Evidence] = []
    for queue in queues:
        for item in queue.items():
            if isinstance(item, Damage):
                damage.append(_evidence(queue, _damage_words(queue, item.offset)))
            elif not _is_named(item, text, result):
                continue
            elif item.crc == "bad":
                damage.append(_evidence(queue, _damage_words(queue, item.offset)))
            else:
                return _living_on(result, queue, item)
    if damage:
        evidence = [*result.evidence, *damage[:_MAX_EVIDENCE]]
        return replace(result, verdict="unknown", evidence=evidence, next_step=rules.COMPACTED_STEP)
    absent = [_evidence(queue, _absent_words(queue)) for queue in queues if result.verdict == "expired"]
    return replace(result, evidence=[*result.evidence, *absent[:_MAX_EVIDENCE]])


def _is_named(unit: Unit, text: str, result: WhereResult) -> bool:
    if result.queue_offset is not None and result.queue_id is not None:
        return unit.queue_offset == result.queue_offset
    return text in {unit.unique_key, rules.own_key(unit), *unit.keys}


def _living_on(result: WhereResult, queue: CompactedQueue, unit: Unit) -> WhereResult:
    statement = sentence(
        "lives on in {folder}: consumers get it from there, at queue offset {offset:,}",
        folder=_place(queue),
        offset=unit.queue_offset,
    )
    route = rules.Route("queue", f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}", "found", statement)
    return replace(
        result,
        verdict="found",
        topic=unit.topic,
        queue_id=unit.queue_id,
        queue_offset=unit.queue_offset,
        evidence=[*result.evidence, _evidence(queue, statement)],
        next_step=rules.NEXT_STEPS["found"],
        routes=(*result.routes, route),
    )


def _unless_replaced(store: StoreSnapshot, result: WhereResult) -> WhereResult:
    topic, queue_id, queue_offset = result.topic, result.queue_id, result.queue_offset
    if topic is None or queue_id is None or queue_offset is None or not is_compacted(store, topic):
        return result
    queue = store.compacted_queue(topic, queue_id)
    if queue is None or queue.entry(queue_offset) is not None:
        return result
    if queue_offset >= queue.max_offset and (store.abort or store.lock_state == "held"):
        return result  # dispatch may not have reached it yet
    physical = result.physical_offset
    unit = store.log.seen_at(physical, crc=False) if physical is not None else None
    newer = newer_with_key(queue, unit) if isinstance(unit, Unit) else None
    if newer is None:
        statement = sentence("{folder} does not have it: consumers do not get it", folder=_place(queue))
        evidence = [*result.evidence, _evidence(queue, statement)]
        return replace(result, verdict="notInQueue", evidence=evidence, next_step=rules.NOT_COMPACTED_STEP)
    statement = sentence(
        "{folder} has a later message with the same key, at queue offset {offset:,}: consumers get only that one",
        folder=_place(queue),
        offset=newer.queue_offset,
    )
    evidence = [*result.evidence, _evidence(queue, statement)]
    return replace(result, verdict="replaced", evidence=evidence, next_step=rules.NEXT_STEPS["replaced"])


def _place(queue: CompactedQueue) -> str:
    return f"compaction/compactionLog/{queue.name}"


def _evidence(queue: CompactedQueue, statement: str) -> Evidence:
    """Evidence without an offset: one in the compaction log would be taken for one in the commit log."""
    return Evidence("compaction", str(queue.folder), None, statement)


def _damage_words(queue: CompactedQueue, offset: int) -> str:
    return sentence("may live on in {folder}, in damaged bytes at {offset:,}", folder=_place(queue), offset=offset)


def _absent_words(queue: CompactedQueue) -> str:
    return sentence("{folder} does not have it: a later message with its key has replaced it", folder=_place(queue))
