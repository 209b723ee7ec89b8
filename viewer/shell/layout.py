"""Sizes of the window and its parts: as on the first day, as they were left, and what narrow windows leave out;
and where windows stand: beside each other and inside the screen.
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
    from viewer.shell.framed_window import FramedWindow


FIRST_SIZE = (1600, 1000)
SLIM_BELOW = 1400
TREE, SLIM_TREE = 264, 216
SIDE = "side"
FRAME_MS = (0, 300, 1500)
"""When it is looked where a new window stands: a window manager puts its frame around it some time after it is shown,
and does not always say so.
"""


class Layout:
    """Where the splitters of a window stand. Kept in the settings only where the window ``remembers``."""

    def __init__(self, window: FramedWindow) -> None:
        self._window = window
        self._states: dict[str, QByteArray] = {}
        self._laid_out = False
        self.tied = False
        """Whether the window shares the screen with another one that goes where it goes."""

    def tie(self, on: bool) -> None:
        """Share the screen with another window: a narrow half is enough then; or have it alone again."""
        self.tied = on
        self._window.setMinimumSize(*(TIED_SMALLEST if on else SMALLEST))
        self.fit()
        if not on:
            QTimer.singleShot(0, self._window, self.keep_inside)

    @property
    def tree_fits(self) -> bool:
        """Whether there is room for the tree beside the views."""
        return not self.tied or self._window.width() >= SMALLEST[0]

    def first_size(self, size: tuple[int, int] | None) -> None:
        """The window's size: as asked, as it was left, or as on the first day."""
        window = self._window
        if size is not None:
            window.resize(*size)
        elif not window.remembers or not window.restoreGeometry(window.settings.geometry):
            window.resize(*FIRST_SIZE)
        if window.remembers:
            for wait in FRAME_MS:
                QTimer.singleShot(wait, window, self.keep_inside)

    def keep_inside(self) -> None:
        """No edge of the window lies outside the screen, its frame included; a screen too small is left alone."""
        window = self._window
        room, frame = window.screen().availableGeometry(), window.frameGeometry()
        fits = room.width() >= SMALLEST[0] and room.height() >= SMALLEST[1]
        if fits and not window.isMaximized() and not room.contains(frame):
            window.setGeometry(inside(frame, room).marginsRemoved(margins_of(window)))

    def resized(self, before: int) -> None:
        """The window was ``before`` px wide and has another size now."""
        self.fit()
        if not self._laid_out:
            self._laid_out = True
            self.restore_side()
        elif before > 0 and (before < px(SLIM_BELOW)) != (self._window.width() < px(SLIM_BELOW)):
            self._default_side()

    def fit(self) -> None:
        """Narrow windows have a slim rail, a short go-to box and no path; half a screen has no tree."""
        window = self._window
        slim = window.width() < px(SLIM_BELOW)
        for part in (window.rail, window.top, window.strip):
            part.set_slim(slim)
        window.top.set_folded(window.width() < SMALLEST[0])
        window.side.setMinimumWidth(px(SLIM_TREE))
        window.fit_side()

    def restore_side(self) -> None:
        """The tree as wide as it was left."""
        state = self._state(SIDE)
        if state.isEmpty() or not self._window.split.restoreState(state):
            self._default_side()

    def restore_pane(self, view: str, pane: Pane) -> None:
        """The parts of a view as they were left."""
        for number, splitter in enumerate(pane.findChildren(QSplitter)):
            state = self._state(f"{view}.{number}")
            if not state.isEmpty():
                splitter.restoreState(state)
        for table in pane.findChildren(RecordView):
            self.remember_columns(table)

    def remember_columns(self, table: RecordView) -> None:
        """Columns as they were left, and from now on kept as they are changed: they are a view's, not a window's."""
        if table.fitting.remembered:
            return
        settings, name, table.fitting.remembered = self._window.settings, table.objectName(), True
        kept = settings.columns(name)
        if kept is not None:
            table.fitting.take(kept)
        table.fitting.changed.connect(lambda: settings.set_columns(name, table.fitting.kept.record()))

    def keep(self) -> None:
        """Note where everything stands that somebody has seen."""
        window = self._window
        if window.session is None:
            return
        self._states[SIDE] = window.split.saveState()
        for view, pane in window.panes.items():
            if pane.session is not None and pane.width() > px(SLIM_TREE):
                for number, splitter in enumerate(pane.findChildren(QSplitter)):
                    self._states[f"{view}.{number}"] = splitter.saveState()

    def write(self) -> None:
        """Put what was noted into the settings."""
        if self._window.remembers:
            self._window.settings.geometry = self._window.saveGeometry()
            for name, state in self._states.items():
                self._window.settings.set_splitter(name, state)

    def states(self) -> dict[str, bytes]:
        """Where everything stands now, to be kept elsewhere."""
        self.keep()
        return {name: bytes(state.data()) for name, state in self._states.items()}

    def take(self, states: Mapping[str, bytes]) -> None:
        """Put everything where :meth:`states` said it stood."""
        if not states:
            return
        self._states |= {name: QByteArray(state) for name, state in states.items()}
        self.restore_side()
        for view, pane in self._window.panes.items():
            self.restore_pane(view, pane)

    def reset(self) -> None:
        """Everything as on the first day."""
        window = self._window
        self._states.clear()
        window.settings.reset_layout()
        window.resize(*FIRST_SIZE)
        window.rebuild()
        self._default_side()

    def _default_side(self) -> None:
        width = px(SLIM_TREE if self._window.width() < px(SLIM_BELOW) else TREE)
        self._window.split.setSizes([width, max(px(400), self._window.width() - width)])

    def _state(self, name: str) -> QByteArray:
        kept = self._states.get(name)
        if kept is not None:
            return kept
        return self._window.settings.splitter(name) if self._window.remembers else QByteArray()


SMALLEST = (900, 600)
TIED_SMALLEST = (600, 480)
"""Of two windows that are tied: they stand side by side on any screen."""
STEP = 32
"""Px by which a window that has no room beside the first stands right of and below it."""


def inside(frame: QRect, room: QRect) -> QRect:
    """``frame`` no larger than ``room``, and moved into it."""
    made = QRect(frame)
    made.setSize(frame.size().boundedTo(room.size()))
    made.moveLeft(min(max(made.left(), room.left()), room.right() + 1 - made.width()))
    made.moveTop(min(max(made.top(), room.top()), room.bottom() + 1 - made.height()))
    return made


def margins_of(window: QWidget) -> QMargins:
    """What the frame of a window takes around it."""
    frame, own = window.frameGeometry(), window.geometry()
    return QMargins(
        own.left() - frame.left(), own.top() - frame.top(), frame.right() - own.right(), frame.bottom() - own.bottom()
    )


def beside(first: QRect, room: QRect, *, tied: bool) -> tuple[QRect, QRect]:
    """The frames of the first window and of one beside it. Tied windows share the screen: side by side, or one over
    the other where it is higher than wide. Else the first stays, and the second takes the free side, or stands a step
    further, inside the screen.
    """
    first = inside(first, room)
    if tied and room.width() >= 2 * TIED_SMALLEST[0]:
        half = room.width() // 2
        left = QRect(room.left(), room.top(), half, room.height())
        return left, left.translated(half, 0)
    if tied and room.height() >= 2 * TIED_SMALLEST[1]:
        half = room.height() // 2
        upper = QRect(room.left(), room.top(), room.width(), half)
        return upper, upper.translated(0, half)
    after = room.right() - first.right()
    before = first.left() - room.left()
    if max(after, before) >= SMALLEST[0]:
        wide = min(max(after, before), first.width())
        left_edge = first.right() + 1 if after >= before else first.left() - wide
        return first, QRect(left_edge, first.top(), wide, first.height())
    second = QRect(first.topLeft(), first.size()).translated(STEP, STEP)
    shrunk = second.intersected(room)
    if shrunk.width() >= SMALLEST[0] and shrunk.height() >= SMALLEST[1]:
        return first, shrunk
    return first, inside(second, room)
