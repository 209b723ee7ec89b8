"""Where is my message: the engine's question asked for the window, and where each piece of evidence is seen. No Qt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from viewer.runtime import places
from viewer.runtime.control import Control
from viewer.runtime.places import Place

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.where.evidence import Evidence, WhereResult
    from engine.rules.where import Route

MOST = 200
"""Messages of one key that are judged; a key of a whole log would go on for hours."""
_QUEUE = re.compile(r"(?P<topic>\S.*)/(?P<queue>\d+)(?:/(?P<offset>-?\d+))?(?=[: ]|$)")
_ENTRY = re.compile(r"entry ([\d,]+) (?:points|is )")
_TRACED = re.compile(r"(?:no entry for |an entry for )?(?P<topic>[^#]+)#(?P<key>.+?) (?:leads to it|points )")


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked: an id, key, offset or ``topic/queue/offset``; a topic and a group where they matter."""

    text: str
    topic: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One result a message; ``cut`` where there were more than :data:`MOST`."""

    results: tuple[WhereResult, ...]
    cut: bool


class _Stopped(Exception):
    """The search was told to stop while it walked."""


def where_of(control: Control, path: Path, config: MessageStoreConfig | None, question: Question) -> Answer:
    """Ask the store at ``path``; in the worker process."""
    from engine.inspection import open_store
    from engine.inspection.where.evidence import where

    found: list[WhereResult] = []
    with open_store(path, config) as store:
        store.settle_log_end()
        total = max(1, store.log.sequence.total_size)

        def progress(done: int) -> None:
            if control.cancelled:
                raise _Stopped
            control.report(min(done, total), total)

        try:
            for one in where(store, question.text, question.topic or None, question.group or None, progress):
                if len(found) == MOST or control.cancelled:
                    return Answer(tuple(found), True)
                found.append(one)
        except _Stopped:
            return Answer(tuple(found), True)
    return Answer(tuple(found), False)


def place_of_result(result: WhereResult) -> Place | None:
    """The unit that a result speaks of."""
    if result.physical_offset is not None:
        return places.log(result.physical_offset)
    return places.queue(result.topic, result.queue_id, result.queue_offset) if result.topic is not None else None


def place_of(evidence: Evidence, result: WhereResult) -> Place | None:
    """Where this piece of evidence is seen best; None where it is nothing that a view shows."""
    match evidence.what:
        case "queue entry" | "queue":
            return _queue_place(evidence, result)
        case "index":
            return _index_place(evidence)
        case "group":
            return Place("groups", name=evidence.holds.partition(" ")[0])
        case "filter":
            return Place("config", name="consumerFilter.json")
        case "checkpoint":
            return Place("checkpoint")
        case "abort" | "abort.bak" | "lock":
            return Place("abort")
        case _ if evidence.offset is not None:
            return places.log(max(0, evidence.offset))
    return None


def place_of_route(route: Route, result: WhereResult) -> Place | None:
    """What a way to a message is walked on: the log, a queue, the trace of a key, a group."""
    listed = next((one.value.rsplit("/", 2) for one in result.routes if one.by == "queue"), None)
    if route.by == "offset":
        return place_of_result(result)
    if route.by == "group":
        return Place("groups", name=route.value)
    if listed is None:
        return None
    topic, queue_id, offset = listed
    return places.queue(topic, int(queue_id), int(offset)) if route.by == "queue" else places.trace(topic, route.value)


def _queue_place(evidence: Evidence, result: WhereResult) -> Place | None:
    named = _QUEUE.match(evidence.holds)
    folder = Path(evidence.file) if evidence.file else None
    if named is not None:
        topic, queue_id = named["topic"], int(named["queue"])
    elif folder is not None and folder.name.isdecimal():
        topic, queue_id = folder.parent.name, int(folder.name)
    elif result.topic is not None and result.queue_id is not None:
        topic, queue_id = result.topic, result.queue_id
    else:
        return None
    entry = _ENTRY.match(evidence.holds)
    if entry is not None:
        return places.queue(topic, queue_id, int(entry[1].replace(",", "")))
    same = (topic, queue_id) == (result.topic, result.queue_id)
    return places.queue(topic, queue_id, result.queue_offset if same else None)


def _index_place(evidence: Evidence) -> Place | None:
    traced = _TRACED.match(evidence.holds)
    if traced is not None:
        return places.trace(traced["topic"], traced["key"])
    return places.index(Path(evidence.file).name) if evidence.file else None


def place_words(evidence: Evidence, place: Place | None) -> str:
    """The place as the table shows it: an offset, an entry, a file's name."""
    if place is None:
        return Path(evidence.file).name if evidence.file else ""
    match place.kind:
        case "log":
            return f"{place.offset:,}"
        case "queue":
            tail = "" if place.queue_offset is None else f"/{place.queue_offset:,}"
            return f"{place.topic}/{place.queue_id}{tail}"
        case "trace":
            return f"{place.topic}#{place.key}"
        case "checkpoint" | "abort":
            return evidence.what
        case _:
            return place.name


def log_offsets(results: Sequence[WhereResult]) -> list[int]:
    """Places in the log that evidence names, for the Line."""
    found = {one.physical_offset for one in results if one.physical_offset is not None}
    found |= {e.offset for one in results for e in one.evidence if e.what == "unit" and e.offset is not None}
    return sorted(found)
