"""The crumbs over a place: from the store down to the thing itself; each part but the last leads somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewer.look.assets import tr
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.shell.views import BY_KIND

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession

BESIDE_THE_LOG: tuple[places.Kind, ...] = ("log", "queue", "index", "positions", "findings", "groups", "config")


def _whole(kind: places.Kind) -> tuple[str, Place]:
    """The crumb of a view as a whole, or of a kind of place that a view shows."""
    view = BY_KIND[Place(kind).view]
    return tr(view.crumb or view.title), Place(kind)


def crumbs_of(place: Place, session: StoreSession | None) -> list[tuple[str, object]]:
    """(words, place) from the store on."""
    name = session.name if session else ""
    parts: list[tuple[str, object]] = [(name, places.log())] if name else []
    match place.kind:
        case "log":
            parts.append(_whole("log"))
            file = session.snapshot.log.sequence.find(place.offset) if session and place.offset is not None else None
            if file is not None:
                parts.append((file.name, places.log(file.start_offset)))
            if place.offset is not None:
                parts.append((f"{place.offset:,}", place))
        case "queue":
            parts.append((place.topic or tr("Queues"), places.queue(place.topic)))
            if place.queue_id is not None:
                parts.append((tr("Queue {number}", number=place.queue_id), places.queue(place.topic, place.queue_id)))
            if place.queue_offset is not None:
                parts.append((f"{place.queue_offset:,}", place))
        case "trace":
            parts += [_whole("index"), (tr("Trace"), places.index()), (place.key, place)]
        case "filter":
            parts += [_whole("log"), (place.name, place)]
        case "index":
            parts.append(_whole("index"))
            if place.name:
                parts.append((place.name, places.index(place.name)))
            if place.part:
                parts.append((f"{tr(place.part)} {place.offset:,}", place))
        case _:
            parts.append(_whole(place.kind))
            if place.name:
                parts.append((place.name, Place(place.kind, name=place.name)))
            if place.kind == "cluster" and place.part:
                parts.append((place.part, place))
            if place.kind == "requests" and place.key:
                parts.append((place.key, place))
    return parts


def beside(number: int, place: object, session: StoreSession | None) -> list[tuple[str, object]]:
    """(words, place) of what lies beside crumb ``number``: files, topics, queues, index files, tables, rules."""
    survey = session.survey if session is not None else None
    if session is None or not isinstance(place, Place):
        return []
    match place.kind:
        case "log" | "filter" if number == 1:
            return [_whole(kind) for kind in BESIDE_THE_LOG]
        case "log":
            return [(file.name, places.log(file.start_offset)) for file in session.snapshot.log.files]
        case "queue" if number == 1 and survey is not None:
            return [(topic.name, places.queue(topic.name)) for topic in survey.topics]
        case "queue" if survey is not None:
            queues = next((topic.queues for topic in survey.topics if topic.name == place.topic), ())
            return [(tr("Queue {number}", number=queue.queue_id), places.queue(place.topic, queue.queue_id))
                    for queue in queues]  # fmt: skip
        case "index" | "trace" if survey is not None:
            return [(file.name, places.index(file.name)) for file in survey.index]
        case "config" if survey is not None:
            return [(name, Place("config", name=name)) for name in survey.tables]
        case "findings":
            return [(name, Place("findings", name=name)) for name in sorted({f.id for f in session.findings})]
    return []
