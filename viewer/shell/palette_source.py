"""The entries of the palette: commands, places of the open store, and filters used before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from viewer.log.filter_line import FIRST, LAST_MINUTES
from viewer.look.assets import tr, tr_plural
from viewer.runtime import places
from viewer.runtime.places import Search, UnknownPlace
from viewer.shell.commands import COMMANDS, key_caps
from viewer.shell.palette_box import Entry, rank
from viewer.shell.workspace import apply_filter
from viewer.widgets.store_tree_rows import short_count

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow

MAX_PLACES = 5


def entries(window: MainWindow, text: str) -> Iterator[Entry]:
    """Yield every entry that matches ``text``, best first."""
    sign, query = (text[0], text[1:].strip()) if text[:1] in {">", "@", "#", ":"} else ("", text.strip())
    if text[:1] == "?":
        keys = window.actions_by_id["help.keys"]
        yield Entry(tr("Commands"), "", tr("All keys"), "help.keys", "?", keys.trigger)
        return
    if sign in {"", ">"}:
        yield from _commands(window, query)
    if sign in {"", "@", "#"} and query:
        yield from _places(window, query)
    if sign in {"", ":"} and (query or sign):
        yield from _filters(window, query)
    if not sign and query:
        yield from _stores(window, query)


def _commands(window: MainWindow, query: str) -> Iterator[Entry]:
    ranked = []
    for number, command in enumerate(COMMANDS):
        if not command.palette:
            continue
        words = tr(command.text)
        best_rank = min(
            (r for r in (rank(words, query), rank(command.text, query), rank(command.id, query)) if r is not None),
            default=None,
        )
        if best_rank is not None:
            action = window.actions_by_id[command.id]
            enabled, need = action.isEnabled(), action.toolTip()
            ranked.append(
                (
                    not enabled,
                    best_rank,
                    number,
                    Entry(
                        tr("Commands"),
                        command.icon,
                        words,
                        command.id if enabled else need,
                        key_caps(command.keys[0]) if command.keys else "",
                        action.trigger if enabled else partial(window.say, need),
                        enabled,
                    ),
                )
            )
    for *_, entry in sorted(ranked, key=lambda item: item[:3]):
        yield entry


def _places(window: MainWindow, query: str) -> Iterator[Entry]:
    session = window.session
    if session is None:
        return
    section = tr("Places")
    try:
        target = places.parse(query)
    except UnknownPlace:
        return
    words = {
        "time": tr("the first unit stored at or after this time"),
        "id": tr("the message with this id"),
        "key": tr("the newest message with this key"),
    }
    note = words[target.kind] if isinstance(target, Search) else places.text_of(target)
    yield Entry(
        section, "go-to", tr("Go to {text}", text=query), note, "↵", lambda: window.jobs.start(window.go_to_text(query))
    )
    if isinstance(target, Search) and target.kind in {"id", "key"}:
        where_place = places.Place("where", key=target.text)
        yield Entry(
            section,
            "search",
            tr("Where is {text}?", text=query),
            tr("a verdict with its evidence"),
            "",
            partial(window.go, where_place),
        )
    topics = session.survey.topics if session.survey else ()
    ranked = sorted(
        ((topic_rank, t.name, t) for t in topics if (topic_rank := rank(t.name, query)) is not None),
        key=lambda item: item[:2],
    )
    for _, _, topic in ranked[:MAX_PLACES]:
        amount = short_count(topic.count)
        queues = tr_plural("{n:,} queue", "{n:,} queues", n=len(topic.queues))
        note = f"{queues}, {tr_plural('{amount} message', '{amount} messages', n=topic.count, amount=amount)}"
        place = places.queue(topic.name)
        yield Entry(section, "queue", topic.name, note, "", partial(window.go, place))
    for finding in session.findings:
        if rank(f"{finding.id} {finding.message}", query) in {0, 1, 2}:
            place = places.Place("findings", name=finding.id)
            yield Entry(section, "findings", finding.message, finding.id, "", partial(window.go, place))
            break


def _stores(window: MainWindow, query: str) -> Iterator[Entry]:
    """Yield the stores that were opened before."""
    for store in window.settings.recent:
        if rank(store.name, query) is not None or rank(store.path, query) in {0, 1, 2}:
            yield Entry(
                tr("Stores opened before"), "open", store.name, store.path, "", partial(_open, window, store.path)
            )


def _open(window: MainWindow, path: str) -> None:
    window.ask_open(Path(path))


def _filters(window: MainWindow, query: str) -> Iterator[Entry]:
    if window.session is None:
        return
    saved = window.settings.saved_filters
    for name, text in saved if saved is not None else [(tr(name), text) for name, text in FIRST]:
        if text != LAST_MINUTES and (rank(name, query) is not None or rank(text, query) is not None):
            yield Entry(
                tr("Filters"), "filter", text, tr("saved as {name}", name=name), "", partial(apply_filter, window, text)
            )
    used = [text for text in window.settings.filters if rank(text, query) is not None]
    for text in [*([query] if query and query not in used and _looks_like_filter(query) else []), *used[:MAX_PLACES]]:
        yield Entry(tr("Filters"), "filter", text, tr("in the log"), "", partial(apply_filter, window, text))


def _looks_like_filter(text: str) -> bool:
    return any(sign in text for sign in ("=", "<", ">", " matches ", " contains ", " in "))
