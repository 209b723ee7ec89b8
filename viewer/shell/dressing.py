"""Windows put on a new theme, and another language, part by part: the front window first, a part a turn of the loop.

A style sheet of the application dresses every widget there is, shown or not, in one go: seconds with some windows open.
So each part of a window wears the sheet by itself, and what lies in it follows the theme then: fonts, icons, heights.
What paints itself asks for colours as it paints. Another language makes a window's parts anew, in steps; those of
before are thrown away one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING
from weakref import WeakSet

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from shiboken6 import isValid

from viewer.look.theme import IN_PARTS, style_sheet, tell, theme
from viewer.pane import Pane

if TYPE_CHECKING:
    from viewer.shell.framed_window import FramedWindow

WORN = "storescope.worn"
"""Property of a part: the version of the theme that it has on."""
NOT_YET = -1
"""What a part wears that nobody has seen and nobody has dressed."""


class Dressing(QObject):
    """One a window."""

    def __init__(self, window: FramedWindow) -> None:
        super().__init__(window)
        self._window = window
        self._steps: deque[Callable[[], object]] = deque()
        window.setProperty(IN_PARTS, True)
        window.setProperty(WORN, theme.version)
        _all.add(self)
        theme.changing.connect(self._hold)
        theme.changed.connect(_turns.begin)

    def put_on(self, part: QWidget) -> None:
        """Dress ``part``, where it does not wear the theme in force."""
        worn = part.property(WORN)
        if worn == theme.version:
            return
        part.setProperty(WORN, theme.version)
        if part is self._window:
            self._window.fit_frame()
            return
        sheet = style_sheet()
        if part.styleSheet() != sheet:
            _change(part, sheet)
        tell(part)
        if worn not in {None, NOT_YET} and isinstance(part, Pane):
            part.retheme()

    def put_on_later(self, part: QWidget) -> None:
        """Dress ``part``, which is new and hidden, at a turn of its own."""
        if part.property(WORN) is None:
            part.setProperty(WORN, NOT_YET)
            _turns.begin()

    def take(self, *steps: Callable[[], object]) -> None:
        """Have ``steps`` done, a turn each, instead of those that still wait; the picture stands still meanwhile."""
        self._steps = deque(steps)
        _turns.begin()

    def step(self) -> bool:
        """Do what comes next in the window; whether there was anything."""
        if not self._steps:
            return False
        if self._window.isVisible():
            self._window.setUpdatesEnabled(False)
        self._steps.popleft()()
        return True

    def throw_away(self, old: QWidget, parts: Iterable[QWidget]) -> None:
        """Delete ``old``, the ``parts`` of it before, when all is dressed: a widget has hundreds below it."""
        old.hide()
        _turns.old += [*parts, old]
        _turns.begin()

    def added(self, child: QObject) -> None:
        """A child of the window is about to be shown: its frame, a dialog, a box over it."""
        if isinstance(child, QWidget) and child is not self._window.pages:
            self.put_on(child)

    def stale(self, *, seen: bool) -> QWidget | None:
        """A part that does not wear the theme in force, of those that are ``seen`` or of the others."""
        parts = (part for part in self._parts() if isValid(part) and part.isVisible() == seen)
        return next((part for part in parts if part.property(WORN) not in {None, theme.version}), None)

    def _hold(self) -> None:
        """What is not in front keeps its old picture until its turn: the front window must not wait for others."""
        window = self._window
        if window.isVisible() and not self.holds(QApplication.activeWindow()):
            window.setUpdatesEnabled(False)

    def painted(self) -> bool:
        """Paint the window anew, where it was held; whether it was."""
        window = self._window
        held = not window.updatesEnabled()
        if held:
            window.setUpdatesEnabled(True)
        return held

    def holds(self, widget: QWidget | None) -> bool:
        """Whether ``widget`` is the window, or belongs to it."""
        while widget is not None and widget is not self._window:
            widget = widget.parentWidget()
        return widget is not None

    def _parts(self) -> Iterator[QWidget]:
        window = self._window
        yield window
        for part in window.children():
            if isinstance(part, QWidget) and part is not window.pages:
                yield part
        yield from (window.top, window.unread, window.tied, window.rail, window.side)
        yield from window.panes.values()
        yield from (page for n in range(1, window.pages.count()) if (page := window.pages.widget(n)) is not None)


def _change(part: QWidget, sheet: str) -> None:
    """Give ``part`` the sheet. Qt gives labels the colours back that they had under the old one: they keep theirs."""
    own = Qt.WidgetAttribute.WA_SetPalette
    held = [(one, one.palette()) for one in part.findChildren(QLabel) if one.testAttribute(own)]
    part.setStyleSheet(sheet)
    for label, colours in held:
        label.setPalette(colours)


class _Turns(QObject):
    """One part at a turn of the loop, until all windows wear the theme and speak the language in force."""

    def __init__(self) -> None:
        super().__init__()
        self._timer: QTimer | None = None
        self.old: list[QWidget] = []

    @property
    def busy(self) -> bool:
        return self._timer is not None and self._timer.isActive()

    def begin(self) -> None:
        if self._timer is None:
            self._timer = QTimer(self, interval=0)
            self._timer.timeout.connect(self._next)
        self._timer.start()

    def _next(self) -> None:
        front = QApplication.activeWindow()
        order = sorted((one for one in _all if not one._window.closed), key=lambda one: not one.holds(front))  # noqa: SLF001
        for seen in (True, False):
            for dressing in order:
                part = dressing.stale(seen=seen)
                if part is not None:
                    dressing.put_on(part)
                    return
                if seen and dressing.step():
                    return
                if dressing.painted():
                    return
        if self.old:
            _delete(self.old.pop(0))
            return
        if self._timer is not None:
            self._timer.stop()


def _delete(part: QWidget) -> None:
    if isValid(part):
        part.setParent(None)
        part.deleteLater()


_all: WeakSet[Dressing] = WeakSet()
_turns = _Turns()


def windows_of_program() -> list[FramedWindow]:
    """Every window that is open."""
    return [one._window for one in _all if not one._window.closed]  # noqa: SLF001


def dressed() -> bool:
    """Whether every window wears the theme in force, and speaks the language."""
    return not _turns.busy
