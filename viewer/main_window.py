"""The main window: menu strip, top bar, rail, store tree, the views, status bar; it wires them and decides nothing.

The pane in front is made first and shows its rows; the others follow at once, so that every name is there from the
first rows on, whatever view is in front.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from engine.config import MessageStoreConfig
from engine.errors import StoreError
from viewer.assets import tr
from viewer.bridge import places
from viewer.bridge.garbage import take_back
from viewer.bridge.history import History
from viewer.bridge.jobs import Cancelled, Jobs
from viewer.bridge.places import Place, Search, UnknownPlace
from viewer.bridge.resolve import NothingFound
from viewer.bridge.samples import unpacked
from viewer.bridge.store_session import StoreSession
from viewer.crumbs import crumbs_of
from viewer.deeds import wire
from viewer.desk.desk import Desk
from viewer.lab_room import LabRoom
from viewer.layout import SMALLEST, Layout
from viewer.menus import MenuStrip, draw_icons, enable_actions, make_actions, retranslate_actions
from viewer.models.formats import zone_text
from viewer.news import News
from viewer.pages import DropFilter, ZoomFilter, error_page, welcome_page
from viewer.panes import Pane
from viewer.panes.store_tree import StoreTreePane
from viewer.settings import Settings, default_cache
from viewer.stages import Stages
from viewer.theme import theme
from viewer.views import FOOT, RAIL, VIEWS, make_pane
from viewer.widgets.rail import Rail
from viewer.widgets.record_state import StateLine
from viewer.widgets.status_strip import StatusStrip
from viewer.widgets.top_bar import TopBar
from viewer.widgets.view_stack import ViewStack

if TYPE_CHECKING:
    from engine.inspection.samples import Sample
    from viewer.widgets.palette_box import PaletteBox

T = TypeVar("T", bound=QObject)
ANYWHERE = Qt.FindChildOption.FindChildrenRecursively


class MainWindow(QMainWindow):
    """The window. ``opened`` when a store stands in it, ``failed(str)`` when one could not be opened."""

    opened = Signal()
    failed = Signal(str)

    def __init__(self, settings: Settings, config: MessageStoreConfig | None = None) -> None:
        super().__init__()
        self.settings, self.config = settings, config
        self.jobs = Jobs()
        self.session: StoreSession | None = None
        self.history = History()
        self.view = "log"
        self.panes: dict[str, Pane] = {}
        self.remembers = True
        """Whether sizes are kept for the next start and taken from the last one."""
        self.layouts = Layout(self)
        self.error_words = ""
        """Why the last store could not be opened."""
        self.desk = Desk(self)
        self.stages, self.news, self.lab = Stages(self), News(self), LabRoom(self)
        self._palette: PaletteBox | None = None
        self.closed = False
        self._opening: Path | None = None
        self.setObjectName("mainWindow")
        self.setWindowTitle("Storescope")
        self.setAccessibleName("Storescope")
        self._drops, self._zooms = DropFilter(self), ZoomFilter(self)
        self.setMinimumSize(*SMALLEST)
        self.jobs.changed.connect(self.news.jobs)
        self.jobs.failed.connect(lambda error: self.say(str(error)))
        theme.changed.connect(self._retheme)
        self._retheming = QTimer(self, interval=0, singleShot=True)
        self._retheming.timeout.connect(lambda: [pane.retheme() for pane in self.panes.values()])
        self.actions_by_id = make_actions(self)
        self._build()

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        """Make everything that shows words; again after a change of language."""
        self.strip = MenuStrip(self.actions_by_id)
        self.setMenuWidget(self.strip)
        self.top = TopBar()
        self.unread = StateLine()
        self.rail = Rail(
            [(view, icon, tr(text), keys) for view, icon, text, keys in RAIL],
            [(view, icon, tr(text), keys) for view, icon, text, keys in FOOT],
        )
        self.side = StoreTreePane()
        self.stack = ViewStack()
        self.panes = {}
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self.split.setObjectName("split.side")
        self.split.setHandleWidth(1)
        self.split.setChildrenCollapsible(False)
        self.split.addWidget(self.side)
        self.split.addWidget(self.stack)
        self.split.setStretchFactor(1, 1)
        self.status = StatusStrip()
        self.setStatusBar(self.status)
        self.pages = QStackedWidget()
        self.pages.setObjectName("pages")
        self.pages.addWidget(self._store_page())
        self.setCentralWidget(self.pages)
        wire(self)
        self._zooms.watch(self.side)
        self.layouts.fit()
        self.status.zone.setText(f"UTC{zone_text()}")
        self.say(tr("Ready"))

    def pane(self, view: str) -> Pane:
        """The pane of a view, made when it is first wanted."""
        found = self.panes.get(view)
        if found is None:
            found = self.panes[view] = make_pane(view)
            self.stack.addWidget(found)
            self.lab.made(found)
            found.use(self.settings)
            self.desk.made(found)
            self._zooms.watch(found)
            self.layouts.restore_pane(view, found)
            found.placeRequested.connect(self.go)
            found.placeMoved.connect(lambda place: self._moved(view, place))
            found.statusMessage.connect(lambda words: self.say(words) if view == self.view else None)
        return found

    def findChild(self, kind: type[T], name: str = "", options: Qt.FindChildOption = ANYWHERE) -> T | None:
        """As in Qt; the parts of a view that nobody has looked at yet are made when they are looked for."""
        found = super().findChild(kind, name, options)
        while found is None and self.session is not None and (view := self.stages.missing()) is not None:
            self.pane(view)
            found = super().findChild(kind, name, options)
        return found

    def findChildren(self, kind: type[T], *what: Any) -> list[T]:
        """As in Qt, with the parts of every view."""
        if self.session is not None:
            self.stages.make_all()
        return super().findChildren(kind, *what)

    def _store_page(self) -> QWidget:
        page, body = QWidget(), QWidget()
        line = QVBoxLayout(page)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        line.addWidget(self.top)
        line.addWidget(self.unread)
        line.addWidget(body, 1)
        beside = QHBoxLayout(body)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.setSpacing(0)
        beside.addWidget(self.rail)
        beside.addWidget(self.split, 1)
        return page

    # ---- a store -----------------------------------------------------------------------------------------------------

    async def open(self, path: Path, at: str | None = None) -> bool:
        """Open the store at ``path`` and show ``at``; False where the error page stands instead."""
        self.close_store()
        self._opening = path
        self.say(tr("Opening {path}", path=str(path)))
        try:
            taken = await self.desk.taken(path)
            session = await StoreSession.open(taken.store, self.jobs, taken.config or self.config)
        except (StoreError, OSError) as error:
            if self._opening == path:
                self._opening = None
                self.show_error(path, str(error))
            return False
        if self._opening != path:
            session.close()
            return False
        self.jobs.worker.hold()
        session.hold()
        self._begin(session)
        self.say("")
        await self.go_to_text(at or self.desk.first_place(), first=True)
        self.pane(self.view).setFocus()
        await self.stages.first_rows_painted()
        if session is not self.session:
            return False
        self.stages.go_on(session)
        self.opened.emit()
        return True

    def _begin(self, session: StoreSession) -> None:
        self.session = session
        self.news.listen(session)
        session.followingChanged.connect(self.actions_by_id["view.follow"].setChecked)
        session.followingChanged.connect(self.top.follow.setChecked)
        self.desk.began(session)
        self._attach()

    @property
    def opening(self) -> bool:
        """Whether a store was asked for that does not stand here yet."""
        return self._opening is not None

    def _attach(self) -> None:
        """Give the session to everything that shows it."""
        session = self.session
        self.side.set_session(session)
        self.strip.show_store(str(session.path) if session else "")
        self.setWindowTitle(f"{session.path} – Storescope" if session else "Storescope")
        self.news.unread()
        self.pages.setCurrentIndex(0)
        self._enable()

    def let_go(self) -> None:
        """No view shows the store any more; the session stays."""
        for pane in self.panes.values():
            pane.set_session(None)
        self.side.set_session(None)

    def take_up(self, place: Place | None) -> None:
        """The views show the store again, at ``place``."""
        self._attach()
        self._show(place or places.log())

    def close_store(self) -> None:
        """Back to a window without a store; work under way is stopped."""
        self.lab.leaving()
        self._opening = None
        if self.session is None:
            return
        self.stages.stop_waiting()
        self.jobs.cancel_all(staying=True)
        self.let_go()
        self.session.close()
        self.session = None
        self.history.clear()
        self.status.counters.set_counts({})
        self.news.unread()
        self.rail.set_mark("findings", "")
        self.status.format.setText("")
        self.strip.show_store("")
        self._enable()

    def show_welcome(self) -> None:
        """The page without a store."""
        self._show_page(welcome_page(self))
        self.setWindowTitle("Storescope")
        self.say(tr("Ready"))

    def show_error(self, path: Path, words: str) -> None:
        """The page that says what was found instead."""
        self.error_words = words
        self._show_page(error_page(self, path, words))
        self.say(tr("Not opened: {path}", path=str(path)))
        self.failed.emit(words)

    def _show_page(self, page: QWidget) -> None:
        self.stages.draw_icons_soon()
        while self.pages.count() > 1:
            old = self.pages.widget(1)
            if old is not None:
                self.pages.removeWidget(old)
                old.deleteLater()
        self.pages.addWidget(page)
        self.pages.setCurrentWidget(page)
        self.strip.show_store("")
        self._enable()

    async def open_sample(self, sample: Sample) -> None:
        """Open a sample store, unpacked to the user's cache where it is not there yet."""
        folder = await self.jobs.run(tr("Unpacking the sample"), lambda _control: unpacked(sample, default_cache()))
        await self.open(folder)

    # ---- places ------------------------------------------------------------------------------------------------------

    def go(self, place: Place) -> None:
        """Show ``place`` and make a step of history; in a window of its own where it says so."""
        if self.desk.shown_beside(place):
            return
        self.history.visit(place)
        self._show(place)
        self.desk.jumps.jumped(place)

    def step(self, place: Place | None) -> None:
        """Show a place of the history."""
        if place is not None:
            self._show(place)

    def show_view(self, view: str) -> None:
        """Bring a view to the front, at the place where it was."""
        if self.session is None or view == self.view:
            return
        kind = "log" if view == "log" else view
        self.history.visit(Place(kind))  # type: ignore[arg-type]
        self._front(view)
        if view in {"groups", "config", "where"}:
            self.panes[view].show_place(Place(kind))  # type: ignore[arg-type]
        self._told(Place(kind))  # type: ignore[arg-type]

    async def go_to_text(self, text: str, *, first: bool = False) -> bool:
        """Go where the text of the go-to box leads; says why where it leads nowhere."""
        session = self.session
        if session is None:
            return False
        try:
            meant = places.parse(text)
            place = await session.resolve(meant) if isinstance(meant, Search) else meant
        except (UnknownPlace, NothingFound, StoreError, OSError) as error:
            if first:
                self.go(places.log())
            self.top.goto.set_fault(str(error))
            self.say(str(error))
            return False
        except Cancelled:
            return False
        if session is not self.session:
            return False
        self.go(place)
        self.top.goto.clear()
        self.top.goto.set_fault("")
        return True

    def _show(self, place: Place) -> None:
        view = place.view if place.view in VIEWS else "log"
        self._front(view)
        self.panes[view].show_place(place)
        self._told(place)

    def _front(self, view: str) -> None:
        changed, self.view = view != self.view, view
        pane = self.awake(view)
        self.stack.setCurrentWidget(pane)
        self.side.setVisible(pane.wants_tree and self.settings.tree_shown)
        self.rail.set_current(view)
        if changed or pane.status():
            self.say(pane.status())

    def awake(self, view: str) -> Pane:
        """The pane of a view, with the session: views that nobody has looked at yet read nothing."""
        pane = self.pane(view)
        if pane.session is not self.session:
            pane.set_session(self.session)
        return pane

    def _moved(self, view: str, place: Place) -> None:
        if view == self.view:
            self.history.move(place)
            self._told(place)

    def _told(self, place: Place) -> None:
        """Crumbs, tree and buttons follow."""
        self.top.crumbs.set_parts(crumbs_of(place, self.session))
        self.side.choose(place)
        self._enable()

    # ---- words and commands ------------------------------------------------------------------------------------------

    def say(self, words: str) -> None:
        """The sentence in the status bar."""
        self.status.say(words)

    def pane_commands(self) -> dict[str, Callable[[], object]]:
        """What the view in front answers."""
        pane = self.panes.get(self.view)
        return pane.commands() if pane is not None and self.session is not None else {}

    @property
    def palette_box(self) -> PaletteBox:
        """The box of commands and places, made when it is first wanted."""
        if self._palette is None:
            from viewer.palette_source import entries
            from viewer.widgets.palette_box import PaletteBox

            self._palette = PaletteBox(self, lambda text: list(entries(self, text)))
        return self._palette

    def _enable(self) -> None:
        enable_actions(self)

    # ---- looks and sizes ---------------------------------------------------------------------------------------------

    def _retheme(self) -> None:
        self.layouts.fit()
        self._retheming.start()

    def rebuild(self) -> None:
        """Make everything that shows words anew, in another language or in the first layout; the place stays."""
        place = self.history.current
        session, shown = self.session, self.pages.currentIndex() == 0
        take_back()
        self.let_go()
        retranslate_actions(self.actions_by_id)
        draw_icons(self.actions_by_id)
        if self._palette is not None:
            self._palette.deleteLater()
            self._palette = None
        self._build()
        if session is not None:
            self.take_up(place)
            self.layouts.restore_side()
            self.stages.go_on_again(session)
        elif not shown:
            self.show_welcome()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Narrow windows leave some things out."""
        super().resizeEvent(event)
        self.layouts.resized(event.oldSize().width())

    def zoom(self, percent: int) -> None:
        """Scale and remember."""
        theme.set_zoom(percent)
        self.settings.zoom = theme.zoom
        self.say(tr("{n} %", n=theme.zoom))

    # ---- the end -----------------------------------------------------------------------------------------------------

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the layout, stop the work, let go of the store."""
        self.desk.keep_all()
        self.closed = True
        self.close_store()
        self.jobs.close()
        self.settings.sync()
        super().closeEvent(event)

    async def settled(self, seconds: float = 10.0, *, quiet: bool = False) -> bool:
        """Wait until the rows in front are there and every pane is made; ``quiet``: and until short reads have ended.

        False where that took longer than ``seconds``.
        """
        return await self.stages.settled(seconds, quiet)
