"""The window with its frame, as the parts of the shell see it: strips, rail, tree and the views between them."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from viewer.pane.store_window import StoreWindow

if TYPE_CHECKING:
    from PySide6.QtWidgets import QStackedWidget

    from viewer.runtime.places import Place
    from viewer.shell.menu_strip import MenuStrip
    from viewer.shell.rail import Rail
    from viewer.shell.status_bar import StatusStrip
    from viewer.shell.store_tree import StoreTreePane
    from viewer.shell.top_bar import TopBar
    from viewer.shell.view_stack import SideSplit, ViewStack
    from viewer.widgets.record_state import StateLine


class FramedWindow(StoreWindow):
    """A :class:`StoreWindow` with the widgets around its views. They are made again when the language changes."""

    pages: QStackedWidget
    """The store's page, and the page that replaces it without a store."""
    strip: MenuStrip
    top: TopBar
    unread: StateLine
    rail: Rail
    side: StoreTreePane
    split: SideSplit
    stack: ViewStack
    status: StatusStrip

    @property
    @abstractmethod
    def alone(self) -> bool:
        """True if a view that needs no store is shown while no store is open."""

    @abstractmethod
    def step(self, place: Place | None) -> None:
        """Show a place of the history."""

    @abstractmethod
    def let_go(self) -> None:
        """Take the store away from every view. The session stays open."""

    @abstractmethod
    def take_up(self, place: Place | None) -> None:
        """Show the store in the views again, at ``place``."""

    @abstractmethod
    def fit_frame(self) -> None:
        """Leave some widgets out if the window is narrow, and show them again if it is wide."""

    @abstractmethod
    def fit_side(self) -> None:
        """Show the tree if it is wanted and has room."""

    @abstractmethod
    def rebuild(self) -> None:
        """Make every widget with words again, for another language or the default layout. The place stays."""

    @abstractmethod
    def speak_anew(self) -> None:
        """Rebuild in several turns of the loop, for another language. The layout is saved first."""

    @abstractmethod
    def zoom(self, percent: int) -> None:
        """Set the scale and remember it."""

    @abstractmethod
    def ask_close(self) -> None:
        """Close the window. If pipeline jobs run, ask first."""

    @abstractmethod
    def command_in_words(self, command: str) -> str:
        """Return a command's words and key as the help writes them."""

    @abstractmethod
    def open_palette(self) -> None:
        """Open the box of commands and places."""
