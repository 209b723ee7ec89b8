"""Worker function of the Where view, and the place where each piece of evidence can be seen. No Qt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec.index_keys import TAG_PREFIX
from engine.rules.where import BEGINS_WITH
from engine.sentences import Sentence
from viewer.runtime import places
from viewer.runtime.control import Control
from viewer.runtime.places import Place

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.where.evidence import Evidence, WhereResult
    from engine.rules.where import Route

MAX_MESSAGES = 200
"""Maximum number of messages of one key: a key of a whole log would take hours."""
_QUEUE = re.compile(r"(?P<topic>\S.*)/(?P<queue>\d+)(?:/(?P<offset>-?\d+))?(?=[: ]|$)")
_ENTRY = re.compile(r"entry ([\d,]+) (?:points|is )")
_TRACE = re.compile(r"(?:no entry for |an entry for )?(?P<topic>[^#]+)#(?P<key>.+?) (?:leads to it|points )")


@dataclass(frozen=True, slots=True)
class WhereQuery:
    """Search input: an id, key, ``T#`` and tags, offset or ``topic/queue/offset``, with optional topic and group."""

    text: str
    topic: str = ""
    group: str = ""

    @property
    def tags(self) -> str:
        """Return the tags to search in the index; "" if the input names a single message or a key."""
        return self.text.removeprefix(TAG_PREFIX) if self.text.startswith(TAG_PREFIX) else ""


@dataclass(frozen=True, slots=True)
class WhereAnswer:
    """Results, one for each message; ``is_truncated`` if there were more than :data:`MAX_MESSAGES`."""

    results: tuple[WhereResult, ...]
    is_truncated: bool


class _Stopped(Exception):
    """The search was stopped while it walked the log."""


def where_of(control: Control, path: Path, config: MessageStoreConfig | None, question: WhereQuery) -> WhereAnswer:
    """Search the store at ``path``; runs in the worker process."""
    from engine.inspection import open_store
    from engine.inspection.where.evidence import where, where_tagged

    find, text = (where_tagged, question.tags) if question.tags else (where, question.text)
    results: list[WhereResult] = []
    with open_store(path, config) as store:
        store.commit_log.settle_end()
        total = max(1, store.log.sequence.total_size)

        def progress(done_bytes: int) -> None:
            if control.cancelled:
                raise _Stopped
            control.report(min(done_bytes, total), total)

        try:
            for result in find(store, text, question.topic or None, question.group or None, progress):
                if len(results) == MAX_MESSAGES or control.cancelled:
                    return WhereAnswer(tuple(results), True)
                results.append(result)
        except _Stopped:
            return WhereAnswer(tuple(results), True)
    return WhereAnswer(tuple(results), False)


def place_of_result(result: WhereResult) -> Place | None:
    """Return the unit that a result is about."""
    if result.physical_offset is not None:
        return places.log(result.physical_offset)
    return places.queue(result.topic, result.queue_id, result.queue_offset) if result.topic is not None else None


def place_of(evidence: Evidence, result: WhereResult) -> Place | None:
    """Return the best place to see a piece of evidence; None if no view shows it."""
    match evidence.what:
        case "queue entry" | "queue":
            return _queue_place(evidence, result)
        case "index":
            return _index_place(evidence)
        case "group":
            return Place("groups", name=evidence.holds.partition(" ")[0])
        case "beginning":
            statement = evidence.holds
            if isinstance(statement, Sentence) and statement.id == BEGINS_WITH:
                return Place("where", key=str(statement.params["name"]))
            return None
        case "filter":
            return Place("config", name="consumerFilter.json")
        case "permission" if evidence.file:
            return Place("config", name=Path(evidence.file).name)
        case "checkpoint":
            return Place("checkpoint")
        case "abort" | "abort.bak" | "lock":
            return Place("abort")
        case _ if evidence.offset is not None:
            return places.log(max(0, evidence.offset))
    return None


def place_of_route(route: Route, result: WhereResult) -> Place | None:
    """Return the place that a route leads through: the log, a queue, the trace of a key, a group."""
    queue_entry = next(
        (queue_route.value.rsplit("/", 2) for queue_route in result.routes if queue_route.by == "queue"), None
    )
    if route.by == "offset":
        return place_of_result(result)
    if route.by == "group":
        return Place("groups", name=route.value)
    if queue_entry is None:
        return None
    topic, queue_id, offset = queue_entry
    return places.queue(topic, int(queue_id), int(offset)) if route.by == "queue" else places.trace(topic, route.value)


def _queue_place(evidence: Evidence, result: WhereResult) -> Place | None:
    queue_match = _QUEUE.match(evidence.holds)
    folder = Path(evidence.file) if evidence.file else None
    if queue_match is not None:
        topic, queue_id = queue_match["topic"], int(queue_match["queue"])
    elif folder is not None and folder.name.isdecimal():
        topic, queue_id = folder.parent.name, int(folder.name)
    elif result.topic is not None and result.queue_id is not None:
        topic, queue_id = result.topic, result.queue_id
    else:
        return None
    entry_match = _ENTRY.match(evidence.holds)
    if entry_match is not None:
        return places.queue(topic, queue_id, int(entry_match[1].replace(",", "")))
    is_own_queue = (topic, queue_id) == (result.topic, result.queue_id)
    return places.queue(topic, queue_id, result.queue_offset if is_own_queue else None)


def _index_place(evidence: Evidence) -> Place | None:
    trace_match = _TRACE.match(evidence.holds)
    if trace_match is not None:
        return places.trace(trace_match["topic"], trace_match["key"])
    return places.index(Path(evidence.file).name) if evidence.file else None


def place_words(evidence: Evidence, place: Place | None) -> str:
    """Return the place as the table shows it: an offset, an entry, the name of a file."""
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
        case "where":
            return place.key
        case _:
            return place.name


def log_offsets(results: Sequence[WhereResult]) -> list[int]:
    """Return the log offsets that evidence names, for the Line."""
    offsets = {result.physical_offset for result in results if result.physical_offset is not None}
    offsets |= {
        evidence.offset
        for result in results
        for evidence in result.evidence
        if evidence.what == "unit" and evidence.offset is not None
    }
    return sorted(offsets)
