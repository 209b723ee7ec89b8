"""Sizes of the window and its parts: as on the first day, as they were left, and what narrow windows leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QSplitter

from viewer.panes import Pane
from viewer.theme import px

if TYPE_CHECKING:
    from viewer.main_window import MainWindow

FIRST_SIZE = (1600, 1000)
SMALLEST = (900, 600)
SLIM_BELOW = 1400
TREE, SLIM_TREE = 264, 216
SIDE = "side"


class Layout:
    """Where the splitters of a window stand. Kept in the settings only where the window ``remembers``."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._states: dict[str, QByteArray] = {}
        self._laid_out = False

    def first_size(self, size: tuple[int, int] | None) -> None:
        """The window's size: as asked, as it was left, or as on the first day."""
        window = self._window
        if size is not None:
            window.resize(*size)
        elif not window.remembers or not window.restoreGeometry(window.settings.geometry):
            window.resize(*FIRST_SIZE)

    def resized(self, before: int) -> None:
        """The window was ``before`` px wide and has another size now."""
        self.fit()
        if not self._laid_out:
            self._laid_out = True
            self.restore_side()
        elif before > 0 and (before < px(SLIM_BELOW)) != (self._window.width() < px(SLIM_BELOW)):
            self._default_side()

    def fit(self) -> None:
        """Narrow windows have a slim rail, a short go-to box and no path."""
        window = self._window
        slim = window.width() < px(SLIM_BELOW)
        for part in (window.rail, window.top, window.strip):
            part.set_slim(slim)
        window.side.setMinimumWidth(px(SLIM_TREE))

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
