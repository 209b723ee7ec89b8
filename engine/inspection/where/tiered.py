"""Settles the verdict on a message that the log does not have any more and that is in tiered storage
(docs/formats/tiered.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import CannotRead
from engine.inspection.where.facts import Evidence
from engine.inspection.where.lost import WhereResult
from engine.rules import where as rules
from engine.sentences import sentence
from engine.store.tiered import TABLE

if TYPE_CHECKING:
    from engine.codec.message import Unit
    from engine.inspection.snapshot import StoreSnapshot
    from engine.store.tiered import TieredQueue, TieredStore

_LOST: frozenset[rules.Verdict] = frozenset({"expired", "neverSeen"})


def settle_tiered(store: StoreSnapshot, text: str, result: WhereResult, topic: str | None) -> WhereResult:
    """Return ``result`` as tiered storage changes it; ``text`` and ``topic`` are the question's."""
    if result.verdict not in _LOST:
        return result
    try:
        tiered = store.tiered
        if tiered is None:
            return _without_table(store, result, topic)
        if tiered.folder is None:
            return _without_files(tiered, result)
        unit = next(_named_units(tiered, text, result, topic), None)
    except CannotRead:
        return replace(result, verdict="unknown")  # the evidence names the unreadable file
    return result if unit is None else _moved(tiered, result, unit)


def _named_units(tiered: TieredStore, text: str, result: WhereResult, topic: str | None) -> Iterator[Unit]:
    queue = _named_queue(tiered, result)
    if queue is not None and result.queue_offset is not None:
        unit = queue.unit(result.queue_offset)
        if unit is not None:
            yield unit
        return
    yield from tiered.by_key(text, result.topic or topic)


def _named_queue(tiered: TieredStore, result: WhereResult) -> TieredQueue | None:
    if result.topic is None or result.queue_id is None:
        return None
    return tiered.queue(result.topic, result.queue_id)


def _moved(tiered: TieredStore, result: WhereResult, unit: Unit) -> WhereResult:
    statement = sentence(
        "moved to tiered storage: consumers get it from there, at queue offset {offset:,}", offset=unit.queue_offset
    )
    place = f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"
    queue = tiered.queue(unit.topic, unit.queue_id)
    file = str(tiered.folder / queue.path) if tiered.folder is not None and queue is not None else None
    return replace(
        result,
        verdict="found",
        topic=unit.topic,
        queue_id=unit.queue_id,
        queue_offset=unit.queue_offset,
        evidence=[*result.evidence, Evidence("tiered", file, None, statement)],
        next_step=rules.NEXT_STEPS["found"],
        routes=(*result.routes, rules.Route("queue", place, "found", statement)),
    )


def _without_table(store: StoreSnapshot, result: WhereResult, topic: str | None) -> WhereResult:
    """Tiered storage may have the message if it has files of its topic, and nothing leads to them."""
    folder = store.tiered_folder_without_table
    named = result.topic or topic
    if folder is None or not _has_files_of(store, folder, named, result.queue_id):
        return result
    statement = sentence(
        "may be in tiered storage: {folder} has files, and {table}, which would lead to them, is gone or cannot be "
        "parsed",
        folder=folder.name,
        table=TABLE,
    )
    return replace(
        result,
        verdict="unknown",
        evidence=[*result.evidence, Evidence("tiered", str(folder), None, statement)],
        next_step=rules.TIERED_TABLE_STEP,
        routes=tuple(replace(route, verdict="unknown") for route in result.routes),
    )


def _has_files_of(store: StoreSnapshot, folder: Path, topic: str | None, queue_id: int | None) -> bool:
    """Return True if a broker's part of tiered storage has a folder of the topic and queue; None stands for any."""
    if topic is None:
        return True
    parts = [topic] if queue_id is None else [topic, str(queue_id)]
    return any(store.reading.is_folder(broker.joinpath(*parts)) for broker in store.reading.folders(folder))


def _without_files(tiered: TieredStore, result: WhereResult) -> WhereResult:
    """The table of segments says whether the message was copied; a key cannot be looked up in it."""
    queue = _named_queue(tiered, result)
    verdict = result.verdict
    if queue is None or result.queue_offset is None:
        statement = sentence("its topic may be in tiered storage, whose files are not here")
        verdict = "unknown"
    elif queue.holds(result.queue_offset):
        statement = sentence("moved to tiered storage, whose files are not here: consumers get it from there")
    else:
        return result
    step = sentence("Name the broker's configuration: --config FILE.conf, with tieredStoreFilePath in it.")
    evidence = [*result.evidence, Evidence("tiered", None, None, statement)]
    return replace(result, verdict=verdict, evidence=evidence, next_step=step)
