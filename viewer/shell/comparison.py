"""Two store windows that move together through their logs, and the way to the next difference between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from engine.errors import StoreError
from viewer.compare.difference_steps import DifferenceSteps, find_counterpart, read_steps, steps_at_opening
from viewer.compare.differences_model import place_of
from viewer.compare.first_difference import Difference, end_of_shown_unit, first_difference, sentence
from viewer.look.assets import tr
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.places import Place
from viewer.shell.tab_window import move_to_own_window, tab_window_of
from viewer.shell.windows import open_beside, put_beside
from viewer.widgets.record_state import State

if TYPE_CHECKING:
    from engine.inspection.difference_rows import Row
    from viewer.compare.differences import DifferencesBox
    from viewer.runtime.store_session import StoreSession
    from viewer.shell.main_window import MainWindow

SETTLE_TIMEOUT_S = 5.0
"""Wait this long for the rows of a jump, so that its status message does not cover the difference."""


class Comparison:
    """Ties a window to a second one: when either moves in the log, the other follows."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self.other_window: MainWindow | None = None
        self.is_following = False
        """True while the other window leads."""
        self._led_place: Place | None = None
        """The last place whose message is looked for in the other log."""
        self._steps: DifferenceSteps | None = None
        self._compared: tuple[object, ...] = ()
        """The sessions and ends of the logs that were compared."""

    def _on_page(self, command: str) -> bool:
        """Let the view of two stores run ``command`` if it is in front. Return False if another view is."""
        if self._window.view != "compare":
            return False
        self._window.pane_commands()[command]()
        return True

    def table(self) -> DifferencesBox | None:
        """Show all differences as a table; ask for the other store if none is open beside this one."""
        if self._on_page("compare.table"):
            return None
        window, other_window = self._window, self.other_window
        if window.session is None or other_window is None or other_window.session is None or other_window.closed:
            self.ask(self._table_when_open)
            return None
        return _show_differences(window, window.session, other_window, other_window.session)

    def _table_when_open(self, other_window: MainWindow) -> None:
        other_window.opened.connect(self.table, Qt.ConnectionType.SingleShotConnection)

    def ask(self, on_window: Callable[[MainWindow], object] | None = None) -> None:
        """Ask for the other store and open it beside this one; call ``on_window`` with its window."""
        self._ask_store(lambda store: self._chosen(store, on_window))

    def ask_on_one_page(self) -> None:
        """Ask for the other store and show both side by side in this window."""
        self._ask_store(self.show_on_one_page)

    def show_on_one_page(self, store: Path) -> None:
        """Show ``store`` beside the store of this window, on one page."""
        self._window.go(Place("compare", name=str(store)))

    def show_other(self, store: str, place_text: str) -> None:
        """Show a place of the other store in a window beside this one."""
        open_beside(self._window, Path(store), place_text, lends=True)

    def _ask_store(self, on_store: Callable[[Path], object]) -> None:
        window = self._window
        if window.session is None:
            return
        dialog = QFileDialog(window, tr("Compare with another store"), str(window.session.path.parent))
        dialog.setObjectName("compare.dialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: on_store(Path(path)))
        dialog.open()

    def _chosen(self, store: Path, on_window: Callable[[MainWindow], object] | None) -> None:
        other_window = self.begin(store)
        if other_window is not None and on_window is not None:
            on_window(other_window)

    def begin(self, store: Path) -> MainWindow | None:
        """Open ``store`` beside this window and tie both windows."""
        other_window = open_beside(self._window, store, "log", tied=True)
        if other_window is None:
            return None
        self._tie(other_window)
        return other_window

    def _tie(self, other_window: MainWindow) -> None:
        self._untie_previous()
        self.other_window = other_window
        other_window.workspace.comparison.other_window = self._window
        other_window.destroyed.connect(lambda: self._on_destroyed(other_window))
        other_window.opened.connect(lambda: self._on_opened(other_window))
        self.show_tie()
        other_window.opened.connect(other_window.workspace.comparison.show_tie)

    def link(self, other_window: MainWindow) -> None:
        """Move the tab of ``other_window`` to a window beside this one, and tie both."""
        if other_window.session is None or move_to_own_window(other_window) is None:
            return
        other_window.workspace.comparison.untie()
        put_beside(self._window, other_window, tied=True)
        self._tie(other_window)
        other_window.workspace.comparison.show_tie()
        self._on_opened(other_window)

    def link_last_tab(self) -> None:
        """Link with the tab that was in front before this one."""
        tabs = tab_window_of(self._window)
        other_window = tabs.last_other(self._window) if tabs is not None else None
        if other_window is not None:
            self.link(other_window)

    def show_last_tab_on_one_page(self) -> None:
        """Show the store of the tab that was in front before this one beside the store of this window, on one page."""
        tabs = tab_window_of(self._window)
        other_window = tabs.last_other(self._window) if tabs is not None else None
        if other_window is not None:
            self.show_on_one_page(Path(other_window.store_path))

    def _untie_previous(self) -> None:
        """Untie the window that was tied before; it stays open."""
        previous = self.other_window
        if previous is not None and not previous.closed:
            previous.workspace.comparison.other_window = None
            previous.tied.show_state(None)
            previous.tie(False)

    def _on_destroyed(self, other_window: MainWindow) -> None:
        if self.other_window is other_window:  # a window that was tied since then stays
            self.other_window = None

    def _on_opened(self, other_window: MainWindow) -> None:
        """Go to the first difference once ``other_window`` has its store, unless it was untied meanwhile."""
        if self.other_window is other_window:
            self.show_tie()
            self._window.jobs.start(self._begin_at_first())

    async def _begin_at_first(self) -> None:
        """Go to the first difference: of bytes if the offsets of both logs agree, else of messages."""
        sessions = self._sessions()
        if sessions is None:
            return
        store, other_store = sessions[0].snapshot, sessions[1].snapshot
        try:
            self._steps = await self._window.jobs.quick(lambda: steps_at_opening(store, other_store))
        except (StoreError, OSError) as error:
            self._window.say(str(error))
            return
        self._compared = ()
        self._share_ranges()
        if self._steps.apart:
            await self.step(1)
        else:
            await self.find(0)

    def _share_ranges(self) -> None:
        """Let the other window know where the offsets of the logs do not agree."""
        if self._steps is not None and self.other_window is not None:
            self.other_window.workspace.comparison.take_ranges(self._steps.apart)

    def take_ranges(self, apart: list[tuple[int, int]]) -> None:
        """Take the ranges in which a message has another offset in the other log."""
        self._steps, self._compared = DifferenceSteps(apart=list(apart)), ()

    def _sessions(self) -> tuple[StoreSession, StoreSession] | None:
        window, other_window = self._window, self.other_window
        if window.session is None or other_window is None or other_window.session is None or other_window.closed:
            return None
        return window.session, other_window.session

    def show_tie(self) -> None:
        """Show above the views which store this window is tied to."""
        other_window, window = self.other_window, self._window
        if other_window is None or other_window.closed:
            window.tied.show_state(None)
            return
        path = other_window.session.shown_path if other_window.session is not None else ""
        text = tr("Linked to {path}: both windows go to the same place of the log.", path=path)
        text = text if path else tr("Linked to another store: it is being opened.")
        steps = (
            (tr("Next difference"), lambda: self.next()),  # noqa: PLW0108
            (tr("Previous difference"), self.previous),
            (tr("All differences"), lambda: self.table()),  # noqa: PLW0108
            (tr("Unlink"), self.untie),
        )
        window.tied.show_state(State("note", text, steps=steps))

    def untie(self) -> None:
        """Untie both windows; they stay open."""
        for window in (self._window, self.other_window):
            if window is not None and not window.closed:
                window.workspace.comparison.other_window = None
                window.tied.show_state(None)
                window.tie(False)

    def next(self) -> None:
        """Go to the next difference of the logs, from the place in front."""
        if not self._on_page("compare.next"):
            self._window.jobs.start(self.step(1))

    def previous(self) -> None:
        """Go to the previous difference of the logs, from the place in front."""
        if not self._on_page("compare.previous"):
            self._window.jobs.start(self.step(-1))

    async def step(self, direction: int) -> Row | None:
        """Go to the next (1) or previous (−1) difference and return it. The logs are compared if they changed."""
        window, sessions = self._window, self._sessions()
        if sessions is None:
            window.say(tr("Nothing to compare with: open another store beside this one."))
            return None
        store, other_store = sessions[0].snapshot, sessions[1].snapshot
        compared = (*sessions, store.log.max_offset, other_store.log.max_offset)
        if self._steps is None or compared != self._compared:
            try:
                self._steps = await window.jobs.run(
                    tr("Comparing two logs"), lambda control: read_steps(control, store, other_store)
                )
            except (Cancelled, StoreError, OSError) as error:
                window.say(str(error))
                return None
            self._compared = compared
            self._share_ranges()
        place = window.history.current
        offset = place.offset if place is not None and place.kind == "log" else None
        row = self._steps.step(direction, offset)
        if row is None:
            text = tr("No further difference.") if direction > 0 else tr("No earlier difference.")
            for store_window in (window, self.other_window):
                if store_window is not None:
                    store_window.say(text)
            return None
        await self._show(row, self._steps.words())
        return row

    async def _show(self, row: Row, text: str) -> None:
        """Show a difference in the windows whose store has it."""
        window, other_window = self._window, self.other_window
        place, other_place = place_of(row, "here"), place_of(row, "there")
        if other_window is None:
            return
        for store_window, store_place in ((window, place), (other_window, other_place)):
            if store_place is None:
                continue
            comparison = store_window.workspace.comparison
            comparison.is_following = True
            try:
                store_window.go(store_place)
            finally:
                comparison.is_following = False
        await window.settled(SETTLE_TIMEOUT_S)
        for store_window in (window, other_window):
            store_window.say(text)

    async def find(self, start: int | None = None) -> Difference | None:
        """Find the next byte that differs, go to it and return it."""
        window, other_window = self._window, self.other_window
        if window.session is None or other_window is None or other_window.session is None:
            window.say(tr("Nothing to compare with: open another store beside this one."))
            return None
        store, other_store, place = window.session.snapshot, other_window.session.snapshot, window.history.current

        def work(control: Control) -> Difference | None:
            return first_difference(
                control, store, other_store, end_of_shown_unit(store, place) if start is None else start
            )

        try:
            difference = await window.jobs.run(tr("Comparing two logs"), work)
        except (Cancelled, StoreError, OSError) as error:
            window.say(str(error))
            return None
        if difference is not None:
            window.go(
                places.log(difference.unit if difference.unit is not None else difference.offset, difference.field)
            )
            await window.settled(SETTLE_TIMEOUT_S)
        for store_window in (window, other_window):
            store_window.say(sentence(difference))
        return difference

    def lead(self, place: Place) -> None:
        """Move the other window to the place that this window went to."""
        other_window = self.other_window
        if (
            self.is_following
            or other_window is None
            or other_window.closed
            or other_window.session is None
            or place.kind != "log"
        ):
            return
        steps, offset, session = self._steps, place.offset, self._window.session
        if steps is None or offset is None or session is None or not steps.is_apart(offset):
            self._move_other(other_window, place)
            return
        store, other_store = session.snapshot, other_window.session.snapshot

        self._led_place = place

        def move(counterpart: int | None) -> None:
            if other_window is not self.other_window or other_window.closed or self._led_place != place:
                return
            if counterpart is None:
                other_window.say(
                    tr("This store does not have the message at {offset:,} of the other one.", offset=offset)
                )
            else:
                self._move_other(other_window, places.log(counterpart, place.field))

        self._window.jobs.read(lambda: find_counterpart(store, other_store, offset), move, lambda _error: None)

    def lead_scroll(self, offset: int) -> None:
        """Bring ``offset`` to the top of the other window's log, too, if the user scrolls in this window."""
        window, other_window = self._window, self.other_window
        if other_window is None or other_window.closed or not window.isActiveWindow() or other_window.view != "log":
            return
        pane = other_window.panes.get("log")
        if pane is not None and (self._steps is None or not self._steps.is_apart(offset)):
            pane.scroll_to(offset)  # type: ignore[attr-defined]  # the pane of the log has it

    def _move_other(self, other_window: MainWindow, place: Place) -> None:
        comparison = other_window.workspace.comparison
        comparison.is_following = True
        try:
            other_window.go(place)
        finally:
            comparison.is_following = False


def _show_differences(
    window: MainWindow, session: StoreSession, other_window: MainWindow, other_session: StoreSession
) -> DifferencesBox:
    """Open the table over ``window`` and start to compare."""
    from viewer.compare.differences import DifferencesBox

    def show_in(store_window: MainWindow, place: Place) -> None:
        store_window.go(place)
        tabs = tab_window_of(store_window)
        if tabs is not None:
            tabs.show_page(store_window)
        store_window.window().raise_()

    box = DifferencesBox(window, session, other_session, window.say)
    box.placeRequested.connect(lambda place: show_in(window, place))
    box.otherPlaceRequested.connect(lambda place: show_in(other_window, place))
    box.show()
    box.begin()
    box.table.setFocus()
    return box
