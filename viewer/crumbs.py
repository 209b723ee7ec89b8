"""The crumbs over a place: from the store down to the thing itself; each part but the last leads somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewer.assets import tr
from viewer.bridge import places
from viewer.bridge.places import Place

if TYPE_CHECKING:
    from viewer.bridge.store_session import StoreSession

VIEWS = {
    "positions": "Positions", "findings": "Findings", "groups": "Consumer groups", "config": "Config",
    "space": "Space", "checkpoint": "Positions", "abort": "Findings", "lab": "Lab", "where": "Where is my message",
    "bookmarks": "Bookmarks",
}  # fmt: skip


def crumbs_of(place: Place, session: StoreSession | None) -> list[tuple[str, object]]:
    """(words, place) from the store on."""
    name = session.survey.name if session and session.survey else session.path.name if session else ""
    parts: list[tuple[str, object]] = [(name, places.log())] if name else []
    match place.kind:
        case "log":
            parts.append((tr("Commit log"), places.log()))
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
            parts += [(tr("Index"), places.index()), (tr("Trace"), places.index()), (place.key, place)]
        case "filter":
            parts += [(tr("Commit log"), places.log()), (place.name, place)]
        case "index":
            parts.append((tr("Index"), places.index()))
            if place.name:
                parts.append((place.name, places.index(place.name)))
            if place.part:
                parts.append((f"{tr(place.part)} {place.offset:,}", place))
        case _:
            parts.append((tr(VIEWS[place.kind]), Place(place.kind)))
            if place.name:
                parts.append((place.name, place))
    return parts
