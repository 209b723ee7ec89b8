"""The views: each a :class:`Pane` that the main window creates once, gives a session, and shows at a place.

The contract of a pane:

* It is made without a session and must be cheap: no plot library, no numpy work, no disk. Every objectName exists
  from the start.
* Reads of more than a few milliseconds wait until the pane is in front: ``show_place`` is called each time.
* ``set_session(session)`` is called when the pane is first needed, ``set_session(None)`` when the store is closed,
  both on the loop's thread.
* The disk is read through the session only. ``await session.jobs.quick(work)`` is for milliseconds.
  ``await session.jobs.run(title, work)`` is for long work, which is shown with a bar and can be cancelled:
  ``work(control)`` runs in a thread, checks ``control.cancelled`` now and then and may call ``control.report(done,
  total, note)``. ``session.jobs.start(coroutine)`` starts one from a slot. ``session.snapshot`` is the engine's
  StoreSnapshot.
* ``show_place(place)`` brings a place of the pane's kinds into view. The main window has put the pane in front already
  and keeps the history. To go anywhere, also within itself, a pane emits ``placeRequested(place)``. If the user only
  moves a selection it emits ``placeMoved(place)``: the crumbs follow, but no step of history is made.
* ``refresh()``: the store has grown or the user asked to look again. ``retheme()``: colours, fonts or zoom changed;
  code that asks ``theme.C`` while painting needs nothing. A change of language makes new panes.
* ``statusMessage(str)`` is the sentence in the status bar while the pane is in front, ``statusUpdated(str)`` the same
  sentence with newer figures.
* All views share one selection: ``session.select(unit_offset)`` and ``session.selectionChanged(object)``.
* A pane handles commands through ``commands()``: action id → method, for the ids that act on the current view
  (``copy.json``, ``copy.cli``, ``export.table``, ``find.next``, ``filter.apply``, ``list.next``, ``list.previous``, …).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from viewer.look.topic_colours import TopicColours
    from viewer.runtime.places import Place
    from viewer.runtime.settings import Settings
    from viewer.runtime.store_session import StoreSession


class Pane(QWidget):
    """Base class of the views. This module's docstring documents its contract."""

    placeRequested = Signal(object)
    """A :class:`Place` to go to; makes a step of history."""
    placeMoved = Signal(object)
    """The :class:`Place` the selection moved to; no step of history."""
    statusMessage = Signal(str)
    """One sentence, already translated."""
    statusUpdated = Signal(str)
    """The last sentence with newer figures. A sentence from another source stays."""
    operationDone = Signal(str, str, object, str)
    """For the operation log: command id, words, parameters as a dict, the equal command line ("" for none)."""
    reportRequested = Signal()
    """Ask to save the report of an incident."""
    helpRequested = Signal(str)
    """Ask for the help at the page of this rule."""
    edited = Signal(object)
    """An :class:`~viewer.runtime.edit.Edit` that was made and can be undone."""
    undoRequested = Signal()
    """Ask to undo the last edit."""

    view_id = ""
    """The name of the view (:data:`viewer.shell.views.VIEWS`). Set when the pane is made."""
    wants_tree = True
    """True if the store tree is shown beside it. False in views that need the width."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session: StoreSession | None = None
        self.lead: QWidget | None = None
        """The part that gets the view's focus. It is no focus proxy, because Tab would skip the parts before it."""

    @property
    def topic_colours(self) -> TopicColours | None:
        """The colours of the shown topics. None without a store."""
        return self.session.colours if self.session is not None else None

    def setFocus(self, *reason: Qt.FocusReason) -> None:
        """Give the focus to the leading part."""
        if self.lead is not None:
            self.lead.setFocus(*reason)
        else:
            super().setFocus(*reason)

    def use(self, settings: Settings) -> None:
        """Set the settings that are remembered between starts. Called once, before the first store."""

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        from viewer.pane.row_commands import RowCommands
        from viewer.runtime.places import filtered
        from viewer.widgets.record_menu import MarkMenu
        from viewer.widgets.record_view import RecordView

        self.session = session
        doer = RowCommands(self) if session is not None else None
        for table in self.findChildren(RecordView):
            table.filter_place, table.doer = filtered, doer
        for menu in self.findChildren(MarkMenu):
            menu.doer = doer

    def show_place(self, place: Place) -> None:
        """Bring ``place`` into view."""

    def refresh(self) -> None:
        """Read again, because the store has grown or the user asks for it."""

    def retheme(self) -> None:
        """Apply new colours, fonts or zoom."""

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the handlers of this view for commands that act on the current view, by action id."""
        return {}

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus, in order. Hidden ones are left out."""
        return () if self.lead is None else (self.lead,)

    def busy(self) -> bool:
        """Return True while the user waits for work here. Other work should wait meanwhile."""
        return False

    def reads_behind(self) -> bool:
        """Return True if the view will read more for what it shows once nothing else runs."""
        return False

    def status(self) -> str:
        """Return the sentence for the status bar when the view comes to the front. Empty keeps the last one."""
        return ""
