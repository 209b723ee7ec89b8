"""Sizes and positions of windows and their parts, kept in the settings.

Each part has a default size and returns to its last one. Narrow windows leave some parts out. Windows are placed inside
the screen, and beside each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QMargins, QRect, QTimer
from PySide6.QtWidgets import QSplitter, QWidget

from viewer.look.theme import px
from viewer.pane import Pane
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow


MIN_WINDOW_SIZE = (900, 600)
MIN_TIED_WINDOW_SIZE = (600, 480)
"""Minimum size of tied windows, which fit side by side on any screen."""
WINDOW_SHIFT_PX = 32
"""Shift (px) to the right and down of a window that has no room beside the first."""


def inside(frame: QRect, room: QRect) -> QRect:
    """Return ``frame``, shrunk to fit into ``room`` and moved inside it."""
    fitted = QRect(frame)
    fitted.setSize(frame.size().boundedTo(room.size()))
    fitted.moveLeft(min(max(fitted.left(), room.left()), room.right() + 1 - fitted.width()))
    fitted.moveTop(min(max(fitted.top(), room.top()), room.bottom() + 1 - fitted.height()))
    return fitted


def margins_of(window: QWidget) -> QMargins:
    """Return how far a window's frame extends around it."""
    frame, inner = window.frameGeometry(), window.geometry()
    return QMargins(
        inner.left() - frame.left(),
        inner.top() - frame.top(),
        frame.right() - inner.right(),
        frame.bottom() - inner.bottom(),
    )


def beside(frame: QRect, room: QRect, *, tied: bool) -> tuple[QRect, QRect]:
    """Return the frames of a window and of a second one beside it.

    Tied windows share the screen: side by side, or one above the other if the screen is higher than wide.
    Otherwise the first window stays, and the second takes the free side. If that is too narrow, it is shifted a
    step, inside the screen.
    """
    frame = inside(frame, room)
    if tied and room.width() >= 2 * MIN_TIED_WINDOW_SIZE[0]:
        half = room.width() // 2
        left_half = QRect(room.left(), room.top(), half, room.height())
        return left_half, left_half.translated(half, 0)
    if tied and room.height() >= 2 * MIN_TIED_WINDOW_SIZE[1]:
        half = room.height() // 2
        upper_half = QRect(room.left(), room.top(), room.width(), half)
        return upper_half, upper_half.translated(0, half)
    space_right = room.right() - frame.right()
    space_left = frame.left() - room.left()
    if max(space_right, space_left) >= MIN_WINDOW_SIZE[0]:
        width = min(max(space_right, space_left), frame.width())
        left_edge = frame.right() + 1 if space_right >= space_left else frame.left() - width
        return frame, QRect(left_edge, frame.top(), width, frame.height())
    second = QRect(frame.topLeft(), frame.size()).translated(WINDOW_SHIFT_PX, WINDOW_SHIFT_PX)
    shrunk = second.intersected(room)
    if shrunk.width() >= MIN_WINDOW_SIZE[0] and shrunk.height() >= MIN_WINDOW_SIZE[1]:
        return frame, shrunk
    return frame, inside(second, room)


FIRST_SIZE = (1600, 1000)
SLIM_BELOW = 1400
TREE, SLIM_TREE = 264, 216
SIDE = "side"
FRAME_MS = (0, 300, 1500)
"""Delays after which a new window's position is checked. A window manager adds its frame some time after the window
is shown, and does not always report it.
"""


class Layout:
    """Positions of a window's splitters. They are stored in the settings only if the window ``remembers``."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._states: dict[str, QByteArray] = {}
        self._laid_out = False
        self.tied = False
        """True if the window shares the screen with another one that shows the same places."""

    def tie(self, on: bool) -> None:
        """Share the screen with another window, so that a narrow half is enough; or use the whole screen again."""
        self.tied = on
        self._window.window().setMinimumSize(*(MIN_TIED_WINDOW_SIZE if on else MIN_WINDOW_SIZE))
        self.fit()
        if not on:
            QTimer.singleShot(0, self._window, self.keep_inside)

    @property
    def tree_fits(self) -> bool:
        """True if there is room for the tree beside the views."""
        return not self.tied or self._window.width() >= MIN_WINDOW_SIZE[0]

    def first_size(self, size: tuple[int, int] | None) -> None:
        """Set the window's size: the requested one, the last one, or the default."""
        window, top = self._window, self._window.window()
        if size is not None:
            top.resize(*size)
        elif not window.remembers or not top.restoreGeometry(window.settings.geometry):
            top.resize(*FIRST_SIZE)
        if window.remembers:
            for wait in FRAME_MS:
                QTimer.singleShot(wait, window, self.keep_inside)

    def keep_inside(self) -> None:
        """Move the window, with its frame, inside the screen. Do nothing if the screen is too small."""
        top = self._window.window()
        room, frame = top.screen().availableGeometry(), top.frameGeometry()
        fits = room.width() >= MIN_WINDOW_SIZE[0] and room.height() >= MIN_WINDOW_SIZE[1]
        if fits and not top.isMaximized() and not room.contains(frame):
            top.setGeometry(inside(frame, room).marginsRemoved(margins_of(top)))

    def resized(self, old_width: int) -> None:
        """Fit the window after a change of size. It was ``old_width`` px wide."""
        self.fit()
        if not self._laid_out:
            self._laid_out = True
            self.restore_side()
        elif old_width > 0 and (old_width < px(SLIM_BELOW)) != (self._window.width() < px(SLIM_BELOW)):
            self._default_side()

    def fit(self) -> None:
        """Use a slim rail, a short go-to box and no path in a narrow window, and no tree in half a screen."""
        window = self._window
        slim = window.width() < px(SLIM_BELOW)
        for part in (window.rail, window.top, window.strip):
            part.set_slim(slim)
        window.top.set_folded(window.width() < MIN_WINDOW_SIZE[0])
        window.status.set_folded(window.width() < MIN_WINDOW_SIZE[0])
        window.side.setMinimumWidth(px(SLIM_TREE))
        window.fit_side()

    def restore_side(self) -> None:
        """Restore the width of the tree."""
        state = self._state(SIDE)
        if state.isEmpty() or not self._window.split.restoreState(state):
            self._default_side()

    def restore_pane(self, view: str, pane: Pane) -> None:
        """Restore the splitters and columns of a view."""
        for number, splitter in enumerate(pane.findChildren(QSplitter)):
            state = self._state(f"{view}.{number}")
            if not state.isEmpty():
                splitter.restoreState(state)
        for table in pane.findChildren(RecordView):
            self.remember_columns(table)

    def remember_columns(self, table: RecordView) -> None:
        """Restore the columns of a table and save each change. They belong to the view, not to the window."""
        if table.fitting.remembered:
            return
        settings, name, table.fitting.remembered = self._window.settings, table.objectName(), True
        columns = settings.columns(name)
        if columns is not None:
            table.fitting.take(columns)
        table.fitting.changed.connect(lambda: settings.set_columns(name, table.fitting.kept.record()))

    def keep(self) -> None:
        """Note the position of every splitter that the user has seen."""
        window = self._window
        if window.session is None:
            return
        self._states[SIDE] = window.split.saveState()
        for view, pane in window.panes.items():
            if pane.session is not None and pane.width() > px(SLIM_TREE):
                for number, splitter in enumerate(pane.findChildren(QSplitter)):
                    self._states[f"{view}.{number}"] = splitter.saveState()

    def write(self) -> None:
        """Write the noted positions into the settings."""
        if self._window.remembers:
            self._window.settings.geometry = self._window.window().saveGeometry()
            for name, state in self._states.items():
                self._window.settings.set_splitter(name, state)

    def states(self) -> dict[str, bytes]:
        """Return the current position of every splitter, to be stored elsewhere."""
        self.keep()
        return {name: bytes(state.data()) for name, state in self._states.items()}

    def take(self, states: Mapping[str, bytes]) -> None:
        """Restore the positions that :meth:`states` returned."""
        if not states:
            return
        self._states |= {name: QByteArray(state) for name, state in states.items()}
        self.restore_side()
        for view, pane in self._window.panes.items():
            self.restore_pane(view, pane)

    def reset(self) -> None:
        """Restore the default layout."""
        window = self._window
        self._states.clear()
        window.settings.reset_layout()
        window.window().resize(*FIRST_SIZE)
        window.rebuild()
        self._default_side()

    def _default_side(self) -> None:
        width = px(SLIM_TREE if self._window.width() < px(SLIM_BELOW) else TREE)
        self._window.split.setSizes([width, max(px(400), self._window.width() - width)])

    def _state(self, name: str) -> QByteArray:
        state = self._states.get(name)
        if state is not None:
            return state
        return self._window.settings.splitter(name) if self._window.remembers else QByteArray()
