"""Links from the cluster into the open store and to its requests. No widget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.query.lexer import quote
from viewer.cluster.cluster_model import ClusterModel, Selection
from viewer.look.assets import tr
from viewer.runtime import places
from viewer.runtime.places import Place

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession


def link_of(session: StoreSession | None, model: ClusterModel, chosen: Selection) -> Place | None:
    """Return the place of an item; None if the store has no such topic, or no store is open.

    A queue leads to the entry that its group reads next, if it exists.
    """
    if session is None or session.survey is None:
        return None
    if chosen.kind in {"group", "client"}:
        return Place("groups", name=chosen.group or chosen.name)
    topic = topic_of(chosen)
    if not any(topic_survey.name == topic for topic_survey in session.survey.topics):
        return None
    row = model.find_queue(chosen.queue)
    if row is None:
        return places.queue(topic, chosen.queue.queue_id if chosen.queue is not None else None)
    offset = row.next_offset if row.next_offset is not None and row.next_offset < row.ends.max_offset else None
    return places.queue(topic, row.queue.queue_id, offset)


def topic_of(chosen: Selection) -> str:
    """Return the selected topic, or that of the selected queue."""
    if chosen.queue is not None:
        return chosen.queue.topic
    return chosen.name if chosen.kind == "topic" else ""


def why_not(session: StoreSession | None, chosen: Selection) -> str:
    """Return why an item leads nowhere."""
    if session is None:
        return tr("No store is open, so nothing of the cluster can be looked up in it.")
    if chosen.kind in {"queue", "topic"}:
        return tr("The open store has no topic {topic}.", topic=topic_of(chosen))
    return tr("This leads nowhere in a store.")


def item_links(session: StoreSession | None, model: ClusterModel, chosen: Selection) -> list[tuple[str, object]]:
    """Return the labels and places that an item leads to; a sentence without a place if there is none."""
    if chosen.kind in {"", "names", "broker"}:
        return []
    return [*_in_store(session, model, chosen), _requests(model, chosen)]


def _requests(model: ClusterModel, chosen: Selection) -> tuple[str, object]:
    """Return the link to an item's requests, if the lab that serves the cluster records them."""
    if not model.of_lab:
        explanation = tr(
            "Its requests are shown live only if the lab of this window serves the cluster. For another broker of "
            "this program, run `storescope serve STORE --record FILE` and open the file."
        )
        return explanation, None
    return tr("In Requests"), Place("requests", name=places.REQUESTS_LIVE, part=term_of(model, chosen))


def term_of(model: ClusterModel, chosen: Selection) -> str:
    """Return the filter for the requests of an item."""
    if chosen.queue is not None:
        return f"topic = {quote(chosen.queue.topic)} and queueId = {chosen.queue.queue_id}"
    if chosen.kind == "topic":
        return f"topic = {quote(chosen.name)}"
    if chosen.kind == "group":
        return f"group = {quote(chosen.name)}"
    reader, sender = model.find_client(chosen.group, chosen.name), model.find_producer(chosen.name)
    row = reader or sender
    return f"peer = {quote(row.client.address)}" if row is not None else ""


def _in_store(session: StoreSession | None, model: ClusterModel, chosen: Selection) -> list[tuple[str, object]]:
    if chosen.kind == "producer":
        return []
    place = link_of(session, model, chosen)
    if place is None:
        return [(why_not(session, chosen), None)]
    if chosen.kind in {"group", "client"}:
        group, store = chosen.group or chosen.name, session.name if session is not None else ""
        return [(tr("Group {name} in the open store, {store}", name=group, store=store), place)]
    term = f'topic = "{topic_of(chosen)}"'
    if chosen.queue is not None:
        term += f" and queueId = {chosen.queue.queue_id}"
    return [
        (tr("In Queues of this store"), place),
        (tr("In the log of this store"), places.filtered("only", term)),
    ]
