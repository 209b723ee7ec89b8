"""A window with a store in it, as its parts see it: what they may ask of the window, and nothing of each other.

Parts, boxes and other windows take a :class:`StoreWindow`; who needs another part is given it. The one that stands on
the screen is :class:`viewer.shell.main_window.MainWindow`, which imports the parts.
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
    """``opened`` when a store stands in it, ``failed(str)`` when one could not be opened."""

    opened = Signal()
    failed = Signal(str)

    settings: Settings
    jobs: Jobs
    history: History
    session: StoreSession | None
    view: str
    """The view in front."""
    panes: dict[str, Pane]
    """The views that were made already, by name."""
    actions_by_id: dict[str, QAction]
    tied: StateLine
    """The line over the views that says which store this one is tied to."""
    remembers: bool
    """Whether sizes are kept for the next start and taken from the last one."""
    lender: TopicColours | None
    """The colours of the store that this window's store is tied to."""
    closed: bool

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings

    def another(self) -> Self:
        """A new window of the same kind and settings, without a store."""
        return type(self)(self.settings)

    @property
    def topic_colours(self) -> TopicColours | None:
        """The colours of the open store's topics."""
        return self.session.colours if self.session is not None else None

    # ---- stores ------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def opening(self) -> bool:
        """Whether a store was asked for that does not stand here yet."""

    @abstractmethod
    async def open(self, path: Path, at: str | None = None, config: MessageStoreConfig | None = None) -> bool:
        """Open the store at ``path`` and show ``at``; False where the error page stands instead. ``config`` belongs to
        this store alone: the next one that is opened has none.
        """

    @abstractmethod
    def ask_open(self, path: Path) -> None:
        """Open the store at ``path``; where the lab's store would be closed by that while it serves, ask first."""

    @abstractmethod
    async def open_sample(self, sample: Sample) -> None:
        """Open a sample store, unpacked to the user's cache where it is not there yet."""

    @abstractmethod
    def close_store(self) -> None:
        """Back to a window without a store; work under way is stopped."""

    @abstractmethod
    def show_welcome(self) -> None:
        """The page without a store."""

    @abstractmethod
    def show_error(self, path: Path, words: str, config: MessageStoreConfig | None = None) -> None:
        """The page that says what was found instead."""

    # ---- places and views --------------------------------------------------------------------------------------------

    @abstractmethod
    def go(self, place: Place) -> None:
        """Show ``place`` and make a step of history; in a window of its own where it says so."""

    @abstractmethod
    async def go_to_text(self, text: str, *, first: bool = False) -> bool:
        """Go where the text of the go-to box leads; says why where it leads nowhere."""

    @abstractmethod
    def show_view(self, view: str) -> None:
        """Bring a view to the front, at the place where it was."""

    @abstractmethod
    def pane(self, view: str, *, ahead: bool = False) -> Pane:
        """The pane of a view, made when it is first wanted; ``ahead`` of that it is dressed at a turn of its own."""

    @abstractmethod
    def awake(self, view: str) -> Pane:
        """The pane of a view, with the session: views that nobody has looked at yet read nothing."""

    @abstractmethod
    def pane_commands(self) -> dict[str, Callable[[], object]]:
        """What the view in front answers."""

    @property
    @abstractmethod
    def place_in_words(self) -> str:
        """The place in front, as the crumbs say it."""

    # ---- what is said, and what can be done --------------------------------------------------------------------------

    @abstractmethod
    def say(self, words: str) -> None:
        """The sentence in the status bar."""

    @abstractmethod
    def note(self, name: str, words: str, parameters: object, cli: str) -> None:
        """Something was done, for the operation log: see :attr:`viewer.pane.Pane.did`."""

    @abstractmethod
    def enable(self) -> None:
        """What can be done now has changed: grey the commands anew."""

    @abstractmethod
    def tie(self, on: bool) -> None:
        """Share the screen with another window; or have it alone again."""

    @abstractmethod
    async def settled(self, seconds: float = 10.0, *, quiet: bool = False) -> bool:
        """Wait until the rows in front are there and every pane is made; ``quiet``: and until short reads have ended.

        False where that took longer than ``seconds``.
        """
