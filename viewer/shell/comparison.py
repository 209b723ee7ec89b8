"""Two store windows that move together through their logs, and the way to the next difference between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from engine.errors import StoreError
from viewer.compare.first_difference import Difference, end_of_shown_unit, first_difference, sentence
from viewer.look.assets import tr
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.places import Place
from viewer.shell.windows import open_beside
from viewer.widgets.record_state import State

if TYPE_CHECKING:
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

    def table(self) -> DifferencesBox | None:
        """Show all differences as a table; ask for the other store if none is open beside this one."""
        window, other_window = self._window, self.other_window
        if window.session is None or other_window is None or other_window.session is None or other_window.closed:
            self.ask(self._table_when_open)
            return None
        return _show_differences(window, window.session, other_window, other_window.session)

    def _table_when_open(self, other_window: MainWindow) -> None:
        other_window.opened.connect(self.table, Qt.ConnectionType.SingleShotConnection)

    def ask(self, on_window: Callable[[MainWindow], object] | None = None) -> None:
        """Ask for the other store and open it beside this one; call ``on_window`` with its window."""
        window = self._window
        if window.session is None:
            return
        dialog = QFileDialog(window, tr("Compare with another store"), str(window.session.path.parent))
        dialog.setObjectName("compare.dialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self._chosen(Path(path), on_window))
        dialog.open()

    def _chosen(self, store: Path, on_window: Callable[[MainWindow], object] | None) -> None:
        other_window = self.begin(store)
        if other_window is not None and on_window is not None:
            on_window(other_window)

    def begin(self, store: Path) -> MainWindow | None:
        """Open ``store`` beside this window and tie both windows."""
        window = self._window
        other_window = open_beside(self._window, store, "log", tied=True)
        if other_window is None:
            return None
        self._untie_previous()
        self.other_window = other_window
        other_window.workspace.comparison.other_window = window
        other_window.destroyed.connect(lambda: self._on_destroyed(other_window))
        other_window.opened.connect(lambda: self._on_opened(other_window))
        self.show_tie()
        other_window.opened.connect(other_window.workspace.comparison.show_tie)
        return other_window

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
            self.next(0)

    def show_tie(self) -> None:
        """Show above the views which store this window is tied to."""
        other_window, window = self.other_window, self._window
        if other_window is None or other_window.closed:
            window.tied.show_state(None)
            return
        path = other_window.session.shown_path if other_window.session is not None else ""
        text = tr("Linked to {path}: both windows go to the same place of the log.", path=path)
        text = text if path else tr("Linked to another store: it is being opened.")
        steps = ((tr("Next difference"), lambda: self.next()), (tr("Unlink"), self.untie))  # noqa: PLW0108
        window.tied.show_state(State("note", text, steps=steps))

    def untie(self) -> None:
        """Untie both windows; they stay open."""
        for window in (self._window, self.other_window):
            if window is not None and not window.closed:
                window.workspace.comparison.other_window = None
                window.tied.show_state(None)
                window.tie(False)

    def next(self, start: int | None = None) -> None:
        """Go to the next byte that differs, from ``start`` or from behind the place in front."""
        self._window.jobs.start(self.find(start))

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
        store_window.raise_()

    box = DifferencesBox(window, session, other_session, window.say)
    box.placeRequested.connect(lambda place: show_in(window, place))
    box.otherPlaceRequested.connect(lambda place: show_in(other_window, place))
    box.show()
    box.begin()
    box.table.setFocus()
    return box
