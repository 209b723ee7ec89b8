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
    """A :class:`StoreWindow` and what stands around its views; made anew with the language."""

    pages: QStackedWidget
    """The store's page, and over it the page that stands instead of one."""
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
        """Whether a view that needs no store stands in a window without one."""

    @abstractmethod
    def step(self, place: Place | None) -> None:
        """Show a place of the history."""

    @abstractmethod
    def let_go(self) -> None:
        """No view shows the store any more; the session stays."""

    @abstractmethod
    def take_up(self, place: Place | None) -> None:
        """The views show the store again, at ``place``."""

    @abstractmethod
    def fit_frame(self) -> None:
        """Narrow windows leave some things out, wide ones have them again."""

    @abstractmethod
    def fit_side(self) -> None:
        """The tree stands where it is wanted and has room."""

    @abstractmethod
    def rebuild(self) -> None:
        """Make everything that shows words anew, in another language or in the first layout; the place stays."""

    @abstractmethod
    def speak_anew(self) -> None:
        """The same at turns of their own, for another language; what stands where is kept first."""

    @abstractmethod
    def zoom(self, percent: int) -> None:
        """Scale and remember."""

    @abstractmethod
    def ask_close(self) -> None:
        """Close the window; where jobs of the pipeline run, it is asked first."""

    @abstractmethod
    def command_in_words(self, command: str) -> str:
        """The words of a command and its key, as the help writes them."""

    @abstractmethod
    def open_palette(self) -> None:
        """Open the box of commands and places."""
