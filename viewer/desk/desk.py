"""What the window keeps for a person beside the store: bookmarks now, session and report where they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from viewer.assets import tr
from viewer.bridge import bookmarks, places
from viewer.bridge.bookmarks import Bookmark, bookmarks_of
from viewer.bridge.places import Place
from viewer.bridge.store_session import StoreSession
from viewer.crumbs import crumbs_of
from viewer.menus import enable_actions

if TYPE_CHECKING:
    from viewer.main_window import MainWindow


class Desk:
    """One a window."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window

    def began(self, session: StoreSession) -> None:
        """A store was opened: its bookmarks are read, and kept from now on."""
        marks = bookmarks_of(session)
        file = bookmarks.file_of(self._window.settings.folder, session.path)

        def keep(found: Sequence[Bookmark]) -> None:
            listed = tuple(found)
            session.jobs.read(lambda: bookmarks.write(file, session.path, listed), lambda _none: None, self._failed)

        def known(found: list[Bookmark]) -> None:
            marks.fill([*found, *(one for one in marks.list if all(one.place != old.place for old in found))])
            marks.keep = keep

        session.jobs.read(lambda: bookmarks.read(file), known, self._failed)
        marks.changed.connect(lambda: enable_actions(self._window))

    def _failed(self, error: Exception) -> None:
        self._window.say(str(error))

    def deeds(self) -> dict[str, Callable[..., object]]:
        """Command id → what it does."""
        return {
            "bookmark.here": self.bookmark,
            "finding.next": lambda: self.next_finding(1),
            "finding.previous": lambda: self.next_finding(-1),
        }

    # ---- bookmarks ---------------------------------------------------------------------------------------------------

    def here(self) -> str:
        """The place in front, as bookmarks write it; empty without a store."""
        place = self._window.history.current
        return places.text_of(place) if place is not None and self._window.session is not None else ""

    def bookmark(self, place: str = "") -> None:
        """Ask for the name of a bookmark at ``place``, by default here; one that is there already is changed."""
        from viewer.panes.bookmarks import ask_bookmark

        window, text = self._window, place or self.here()
        if window.session is not None and text:
            ask_bookmark(window, window.session, text, self._name_of(text))

    def _name_of(self, text: str) -> str:
        found = places.parse(text)
        if not isinstance(found, Place):
            return text
        parts = [words for words, _ in crumbs_of(found, self._window.session)][1:]
        return " ".join(parts[-2:]) or text

    # ---- problems ----------------------------------------------------------------------------------------------------

    def next_finding(self, step: int) -> None:
        """Go to the next finding from here, in the order of the log and then of the other files; from anywhere."""
        from viewer.panes.finding_facts import place_of, title

        window = self._window
        session = window.session
        if session is None:
            return
        if not session.findings:
            window.say(tr("No finding.") if session.findings_complete else tr("This store has not been checked."))
            return
        goals = [(place, one) for one in session.findings if (place := place_of(one)) is not None]
        goals.sort(key=lambda goal: _order(goal[0]))
        here = window.history.current
        at = next((n for n, (place, _) in enumerate(goals) if place == here), None)
        if at is None:
            key = _order(here) if here is not None else (0, 0, "")
            behind = sum(_order(place) <= key for place, _ in goals)
            at = behind - 1 if step > 0 else behind
        place, one = goals[(at + step) % len(goals)]
        window.go(place)
        window.say(f"{one.id} {title(one)}")


def _order(place: Place) -> tuple[int, int, str]:
    """Places of the log first, by offset; then every other place by its words."""
    if place.kind == "log":
        return (0, place.offset or 0, "")
    return (1, 0, places.text_of(place))
