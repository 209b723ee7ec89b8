"""A window with a store, as its parts see it: the calls that they may make.

Parts, boxes and other windows take a :class:`StoreWindow`. A part that needs another part is given it. The real
window is :class:`viewer.shell.main_window.MainWindow`, which imports the parts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMainWindow

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

    from engine.config import MessageStoreConfig
    from engine.inspection.samples import Sample
    from viewer.look.topic_colours import TopicColours
    from viewer.pane import Pane
    from viewer.runtime.jobs import Jobs
    from viewer.runtime.places import History, Place
    from viewer.runtime.settings import Settings
    from viewer.runtime.store_session import StoreSession
    from viewer.widgets.record_state import StateLine


class StoreWindow(QMainWindow):
    """``opened`` when a store is shown, ``failed(str)`` when one could not be opened."""

    opened = Signal()
    failed = Signal(str)

    settings: Settings
    jobs: Jobs
    history: History
    session: StoreSession | None
    view: str
    """The current view."""
    panes: dict[str, Pane]
    """The views that exist already, by name."""
    actions_by_id: dict[str, QAction]
    tied: StateLine
    """The line over the views that names the tied store."""
    remembers: bool
    """True if sizes are stored for the next start and restored from the last."""
    lender: TopicColours | None
    """The colours of the store in the window that this one was opened from."""
    closed: bool

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings

    def another(self) -> Self:
        """Return a new window of the same kind and settings, without a store."""
        return type(self)(self.settings)

    @property
    def topic_colours(self) -> TopicColours | None:
        """The colours of the open store's topics."""
        return self.session.colours if self.session is not None else None

    # ---- stores ------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def opening(self) -> bool:
        """True while a store is being opened and is not shown yet."""

    @abstractmethod
    async def open(self, path: Path, place_text: str | None = None, config: MessageStoreConfig | None = None) -> bool:
        """Open the store at ``path`` and show the place ``place_text``.

        Returns False if the error page is shown instead. ``config`` applies to this store only. The next store is
        opened without it.
        """

    @abstractmethod
    def ask_open(self, path: Path) -> None:
        """Open the store at ``path``. If this would close a lab store that serves clients, ask first."""

    @abstractmethod
    async def open_sample(self, sample: Sample) -> None:
        """Open a sample store. It is unpacked to the user's cache if it is not there yet."""

    @abstractmethod
    def close_store(self) -> None:
        """Close the store and stop all work on it."""

    @abstractmethod
    def show_welcome(self) -> None:
        """Show the page without a store."""

    @abstractmethod
    def show_error(self, path: Path, words: str, config: MessageStoreConfig | None = None) -> None:
        """Show the page that says what was found instead of a store."""

    # ---- places and views --------------------------------------------------------------------------------------------

    @abstractmethod
    def go(self, place: Place) -> None:
        """Show ``place`` and add it to the history; in a new window if the place asks for one."""

    @abstractmethod
    async def go_to_text(self, text: str, *, at_opening: bool = False) -> bool:
        """Go to the place that the text of the go-to box names. If it names none, say why."""

    @abstractmethod
    def show_view(self, view: str) -> None:
        """Bring a view to the front, at its last place."""

    @abstractmethod
    def pane(self, view: str, *, ahead: bool = False) -> Pane:
        """Return the pane of a view, making it if needed. With ``ahead`` it is dressed in a later turn of the loop."""

    @abstractmethod
    def awake(self, view: str) -> Pane:
        """Return the pane of a view, with the session. Views that nobody has opened yet read nothing."""

    @abstractmethod
    def pane_commands(self) -> dict[str, Callable[[], object]]:
        """Return the handlers of the current view by command."""

    @property
    @abstractmethod
    def place_in_words(self) -> str:
        """Return the current place in the words of the crumbs."""

    # ---- what is said, and what can be done --------------------------------------------------------------------------

    @abstractmethod
    def say(self, words: str) -> None:
        """Show a sentence in the status bar."""

    @abstractmethod
    def note(self, name: str, words: str, parameters: object, cli: str) -> None:
        """Add an entry to the operation log: see :attr:`viewer.pane.Pane.did`."""

    @abstractmethod
    def enable(self) -> None:
        """Update which commands are greyed."""

    @abstractmethod
    def tie(self, on: bool) -> None:
        """Share the screen with another window, or use it alone again."""

    @abstractmethod
    async def settled(self, seconds: float = 10.0, *, quiet: bool = False) -> bool:
        """Wait until the front rows are loaded and every pane is made.

        With ``quiet`` also wait until short reads have ended. Returns False if this takes longer than
        ``seconds``.
        """
