"""Apply a new theme or language to the windows part by part, one part a turn of the loop, the front window first.

An application-wide style sheet restyles every widget at once, shown or not. With some windows open this takes
seconds. So each part of a window has its own sheet, and fonts, icons and heights inside it follow the theme then.
Widgets that paint themselves look up colours at paint time. Another language rebuilds a window's parts in steps;
the old parts are deleted one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING
from weakref import WeakSet

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QWidget
from shiboken6 import isValid

from viewer.look.theme import IN_PARTS, apply_theme_in, style_sheet, theme
from viewer.pane import Pane
from viewer.widgets.file_dialog import theme_file_dialog

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow

SHOWN_VERSION = "storescope.appliedTheme"
"""Property of a part: the version of the theme that it shows."""
NOT_YET = -1
"""Theme version of a new part that no theme was applied to yet."""


class WindowTheme(QObject):
    """Keeps the parts of one window in the current theme and language."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._steps: deque[Callable[[], object]] = deque()
        window.setProperty(IN_PARTS, True)
        window.setProperty(SHOWN_VERSION, theme.version)
        _all.add(self)
        theme.changing.connect(self._hold)
        theme.changed.connect(_turns.begin)

    def apply_to(self, part: QWidget) -> None:
        """Apply the current theme to ``part`` unless it has it already."""
        part_version = part.property(SHOWN_VERSION)
        if part_version == theme.version:
            return
        part.setProperty(SHOWN_VERSION, theme.version)
        if part is self._window:
            self._window.fit_frame()
            return
        sheet = style_sheet()
        if part.styleSheet() != sheet:
            _change(part, sheet)
        apply_theme_in(part)
        if part_version not in {None, NOT_YET} and isinstance(part, Pane):
            part.retheme()

    def apply_later(self, part: QWidget) -> None:
        """Apply the theme to ``part``, which is new and hidden, in a later turn of the loop."""
        if part.property(SHOWN_VERSION) is None:
            part.setProperty(SHOWN_VERSION, NOT_YET)
            _turns.begin()

    def take(self, *steps: Callable[[], object]) -> None:
        """Run ``steps``, one a turn, instead of those that still wait. The window is not repainted meanwhile."""
        self._steps = deque(steps)
        _turns.begin()

    def step(self) -> bool:
        """Run the next step of the window. Return False if there is none."""
        if not self._steps:
            return False
        if self._window.isVisible():
            self._window.setUpdatesEnabled(False)
        self._steps.popleft()()
        return True

    def throw_away(self, old: QWidget, parts: Iterable[QWidget]) -> None:
        """Delete ``old`` and its ``parts`` one by one after all parts have the theme: each has hundreds of children."""
        old.hide()
        _turns.old += [*parts, old]
        _turns.begin()

    def added(self, child: QObject) -> None:
        """Apply the theme to a child of the window that is about to be shown: its frame, a dialog, a box over it."""
        if isinstance(child, QWidget) and child is not self._window.pages:
            self.apply_to(child)
            if isinstance(child, QFileDialog):
                theme_file_dialog(child)

    def stale(self, *, visible: bool) -> QWidget | None:
        """Return a part without the current theme, among the visible or among the hidden ones."""
        parts = (part for part in self._parts() if isValid(part) and part.isVisible() == visible)
        return next((part for part in parts if part.property(SHOWN_VERSION) not in {None, theme.version}), None)

    def _hold(self) -> None:
        """Stop repainting a window that is not in front until its turn, so that the front window is quicker."""
        window = self._window
        if window.isVisible() and not self.holds(QApplication.activeWindow()):
            window.setUpdatesEnabled(False)

    def painted(self) -> bool:
        """Repaint the window if it was held back. Return True if it was."""
        window = self._window
        was_held = not window.updatesEnabled()
        if was_held:
            window.setUpdatesEnabled(True)
        return was_held

    def holds(self, widget: QWidget | None) -> bool:
        """Return True if ``widget`` is the window or is inside it, or is the window of tabs that shows it; False for a
        closed window.
        """
        if self._window.closed:
            return False
        if widget is not None and widget is self._window.window():
            return self._window.isVisible()
        while widget is not None and widget is not self._window:
            widget = widget.parentWidget()
        return widget is not None

    def _parts(self) -> Iterator[QWidget]:
        window = self._window
        yield window
        for part in window.children():
            if isinstance(part, QWidget) and part is not window.pages:
                yield part
        yield from (window.top, window.unread, window.patched, window.tied, window.rail, window.side)
        yield from window.panes.values()
        yield from (page for n in range(1, window.pages.count()) if (page := window.pages.widget(n)) is not None)


def _change(part: QWidget, sheet: str) -> None:
    """Set the style sheet of ``part``. Qt then resets the colours of labels, so they are put back afterwards."""
    own_palette = Qt.WidgetAttribute.WA_SetPalette
    palettes = [(child, child.palette()) for child in part.findChildren(QLabel) if child.testAttribute(own_palette)]
    part.setStyleSheet(sheet)
    for label, colours in palettes:
        label.setPalette(colours)


class _Turns(QObject):
    """Applies the theme to one part a turn of the loop until all windows have the current theme and language."""

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
        open_windows = (window_theme for window_theme in _all if not window_theme._window.closed)  # noqa: SLF001
        order = sorted(open_windows, key=lambda window_theme: not window_theme.holds(front))
        for visible in (True, False):
            for window_theme in order:
                part = window_theme.stale(visible=visible)
                if part is not None:
                    window_theme.apply_to(part)
                    return
                if visible and window_theme.step():
                    return
                if window_theme.painted():
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


_all: WeakSet[WindowTheme] = WeakSet()
_turns = _Turns()


def windows_of_program() -> list[MainWindow]:
    """Return all open windows."""
    return [window_theme._window for window_theme in _all if not window_theme._window.closed]  # noqa: SLF001


def all_windows_themed() -> bool:
    """Return True if every window has the current theme and language."""
    return not _turns.busy
