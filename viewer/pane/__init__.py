"""The views: each a :class:`Pane` that the main window creates once, gives a session, and shows at a place.

What a pane may rely on:

* It is made without a session, cheaply (no plot library, no numpy work, no disk), with every objectName in place.
* What costs more than a few milliseconds of reading waits until the pane is in front: ``show_place`` is called each
  time.
* ``set_session(session)`` comes when the pane is first wanted, ``set_session(None)`` when the store is closed, both on
  the loop's thread.
* The disk is asked through the session only: ``await session.jobs.quick(work)`` for a read of milliseconds,
  ``await session.jobs.run(title, work)`` for long work, which is shown with a bar and can be cancelled;
  ``work(control)`` runs in a thread, asks ``control.cancelled`` now and then and may call ``control.report(done,
  total, note)``. ``session.jobs.start(coroutine)`` begins one from a slot. ``session.snapshot`` is the engine's
  StoreSnapshot.
* ``show_place(place)`` brings a place of the pane's kinds into view; the main window has put the pane in front already
  and keeps the history. To go anywhere, also within itself, a pane emits ``placeRequested(place)``; where the user
  only moves a selection it emits ``placeMoved(place)``: the crumbs follow, no step of history is made.
* ``refresh()``: the store has grown or "look again" was asked. ``retheme()``: colours, fonts or zoom changed; what
  paints with ``theme.C`` at paint time needs nothing. A change of language makes new panes: nothing to do for it.
* ``statusMessage(str)`` is the sentence in the status bar while the pane is in front, ``statusGrew(str)`` the same
  sentence with newer figures.
* Several places share one selection: ``session.select(unit_offset)`` and ``session.selectionChanged(object)``.
* A pane answers commands through ``commands()``: action id → method, for the ids that act on what is in front
  (``copy.json``, ``copy.cli``, ``export.table``, ``find.next``, ``filter.apply``, ``list.next``, ``list.previous``, …).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from viewer.look.topic_colours import TopicColours
    from viewer.runtime.places import Place
    from viewer.runtime.settings import Settings
    from viewer.runtime.store_session import StoreSession


class Pane(QWidget):
    """Base of the views; what it promises stands at the top of this module."""

    placeRequested = Signal(object)
    """A :class:`Place` to go to; makes a step of history."""
    placeMoved = Signal(object)
    """The :class:`Place` the selection moved to; no step of history."""
    statusMessage = Signal(str)
    """One sentence, already translated."""
    statusGrew = Signal(str)
    """The sentence that stands there with newer figures; what somebody else has said meanwhile stays."""
    did = Signal(str, str, object, str)
    """For the operation log: command id, words, parameters as a dict, the equal command line ("" for none)."""
    reportAsked = Signal()
    """The report of an incident is to be saved."""
    helpAsked = Signal(str)
    """The help is wanted, at the page of this rule."""
    edited = Signal(object)
    """An :class:`~viewer.runtime.edit.Edit` that was made and can be taken back."""

    view_id = ""
    """Which of the views it is (:data:`viewer.shell.views.VIEWS`); set as it is made."""
    wants_tree = True
    """Whether the store tree stands beside it; views that need the width say False."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session: StoreSession | None = None
        self.lead: QWidget | None = None
        """The part that has the focus when the view gets it. No focus proxy: Tab would skip what stands before it."""

    @property
    def topic_colours(self) -> TopicColours | None:
        """The colours of the topics that are shown; None without a store."""
        return self.session.colours if self.session is not None else None

    def setFocus(self, *reason: Qt.FocusReason) -> None:
        """Give the focus to the leading part."""
        if self.lead is not None:
            self.lead.setFocus(*reason)
        else:
            super().setFocus(*reason)

    def use(self, settings: Settings) -> None:
        """Take what is remembered between starts; called once, before the first store."""

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
        """The store has grown, or the user asks to look again."""

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""

    def commands(self) -> dict[str, Callable[[], object]]:
        """What this view does for the commands that act on what is in front: action id → what does it."""
        return {}

    def busy(self) -> bool:
        """Whether something runs here that the user waits for; what can wait is done behind it."""
        return False

    def status(self) -> str:
        """The sentence for the status bar when the view comes to the front; empty keeps the last one."""
        return ""
