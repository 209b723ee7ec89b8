"""The main window: menu strip, top bar, rail, store tree, views, status bar. It connects them and decides nothing.

The front pane is made first and shows its rows. The others follow at once, so that all object names exist soon
after the first rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from PySide6.QtCore import QChildEvent, QEvent, QObject, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDropEvent, QKeyEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from engine.config import MessageStoreConfig
from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.formats import zone_text
from viewer.look.theme import follow, theme
from viewer.pane import Pane
from viewer.runtime import places
from viewer.runtime.garbage import take_back_later
from viewer.runtime.jobs import Cancelled, Jobs
from viewer.runtime.place_search import NothingFound
from viewer.runtime.places import History, Place, Search, UnknownPlace
from viewer.runtime.settings import Settings, default_cache
from viewer.runtime.store_session import StoreSession, straight_path
from viewer.shell.command_handlers import Parts, open_dropped, tick, wire
from viewer.shell.commands import (
    draw_icons,
    enable_actions,
    in_words,
    make_actions,
    menus_of,
    need_of_key,
    retranslate_actions,
)
from viewer.shell.crumbs import crumbs_of, siblings
from viewer.shell.error_page import error_page
from viewer.shell.lab_stores import WindowLab
from viewer.shell.layout import MIN_WINDOW_SIZE, Layout
from viewer.shell.menu_strip import MenuStrip
from viewer.shell.opening_stages import Stages
from viewer.shell.rail import Rail
from viewer.shell.status_bar import StatusStrip
from viewer.shell.store_changes import StoreChanges
from viewer.shell.store_tree import StoreTreePane
from viewer.shell.top_bar import TopBar
from viewer.shell.view_stack import SideSplit, ViewStack
from viewer.shell.views import AT_FOOT, BY_KIND, LISTENING, ON_RAIL, make_pane
from viewer.shell.welcome import WelcomePage, unpacked, welcome_page
from viewer.shell.window_theme import WindowTheme
from viewer.shell.workspace import Workspace
from viewer.widgets.focus import in_reading_order, set_reading_order
from viewer.widgets.record_state import StateLine

if TYPE_CHECKING:
    from engine.inspection.samples import Sample
    from viewer.look.topic_colours import TopicColours
    from viewer.shell.palette_box import PaletteBox

T = TypeVar("T", bound=QObject)
ANYWHERE = Qt.FindChildOption.FindChildrenRecursively


class MainWindow(QMainWindow):
    """``opened`` when a store is shown, ``failed(str)`` when one could not be opened, ``storeNamed`` when the path or
    the language changed. It is a window of its own or the page of a tab (:class:`TabWindow`).
    """

    opened = Signal()
    storeNamed = Signal()
    failed = Signal(str)

    jobs: Jobs
    history: History
    strip: MenuStrip
    top: TopBar

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.jobs = Jobs()
        self.session: StoreSession | None = None
        self.history = History(self._lead_other_window)
        self.view = "log"
        """The current view."""
        self.panes: dict[str, Pane] = {}
        """The views that exist already, by name."""
        self.remembers = True
        """True if sizes are stored for the next start and restored from the last."""
        self.lender: TopicColours | None = None
        """The colours of the store in the window that this one was opened from."""
        self.closed = False
        self.error_words = ""
        """Why the last store could not be opened."""
        self.layouts = Layout(self)
        self.keep_columns = self.layouts.remember_columns
        self.window_theme = WindowTheme(self)
        self.changes, self.lab = StoreChanges(self), WindowLab(self)
        self.workspace = Workspace(self, self.layouts, self.lab)
        self.stages = Stages(self, self.changes)
        self.parts = Parts(self, self.workspace, self.lab, self.layouts, self.changes)
        self._palette: PaletteBox | None = None
        self._opening: Path | None = None
        self._failed_path = ""
        self.setObjectName("mainWindow")
        self.setWindowTitle("Storescope")
        self.setAccessibleName("Storescope")
        self._drops, self._zooms = _DropFilter(self), _ZoomFilter(self)
        self.setMinimumSize(*MIN_WINDOW_SIZE)
        self.jobs.changed.connect(self.changes.jobs)
        self._jumps_begun = 0
        self.jobs.failed.connect(lambda error: self.say(str(error)))
        self.actions_by_id = make_actions(self.parts)
        self._build()

    def another(self) -> Self:
        """Return a new window of the same kind and settings, without a store."""
        return type(self)(self.settings)

    @property
    def topic_colours(self) -> TopicColours | None:
        """The colours of the open store's topics."""
        return self.session.colours if self.session is not None else None

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        """Make every widget with words. Runs again after a change of language."""
        self.pages = QStackedWidget()
        self.pages.setObjectName("pages")
        self.strip = MenuStrip(menus_of(self.actions_by_id), lambda: self.settings.recent)
        follow(self.strip, lambda: draw_icons(self.actions_by_id))
        self.strip.statusText.connect(self._say_need)
        self.setMenuWidget(self.strip)
        self.top = TopBar(lambda number, place: siblings(number, place, self.session))
        self.unread, self.patched, self.tied = StateLine(), StateLine(), StateLine()
        self.patched.setObjectName("patched.line")
        self.tied.setObjectName("tied.line")
        self.rail = Rail(
            [(view.kind, view.icon, tr(view.title), view.keys) for view in ON_RAIL],
            [(view.kind, view.icon, tr(view.title), view.keys) for view in AT_FOOT],
            [(view.kind, view.icon, tr(view.title), view.keys) for view in LISTENING],
        )
        self.side = StoreTreePane()
        self.stack = ViewStack()
        self.panes = {}
        self.split = SideSplit("split.side")
        self.split.addWidget(self.side)
        self.split.addWidget(self.stack)
        self.split.setStretchFactor(1, 1)
        self.status = StatusStrip()
        self.setStatusBar(self.status)
        self.pages.addWidget(self._store_page())
        self.setCentralWidget(self.pages)
        wire(self.parts)
        for part in (self.top, self.unread, self.patched, self.tied, self.rail, self.side):
            self.window_theme.apply_to(part)
        self._zooms.watch(self.side)
        self.layouts.fit()
        self.status.zone.setText(f"UTC{zone_text()}")
        self.say(tr("Ready"))
        self.storeNamed.emit()

    def pane(self, view: str, *, ahead: bool = False) -> Pane:
        """Return the pane of a view, making it if needed. With ``ahead`` it is dressed in a later turn of the loop."""
        pane = self.panes.get(view)
        if pane is None:
            pane = self.panes[view] = make_pane(view)
            self.stack.addWidget(pane)
            self.lab.connect_pane(pane)
            pane.use(self.settings)
            self.workspace.made(pane)
            self._zooms.watch(pane)
            self.layouts.restore_pane(view, pane)
            pane.placeRequested.connect(self.go)
            pane.placeMoved.connect(lambda place: self._moved(view, place))
            pane.statusMessage.connect(lambda words: self.say(words) if view == self.view else None)
        if ahead:
            self.window_theme.apply_later(pane)
        else:
            self.window_theme.apply_to(pane)
        return pane

    def findChild(self, kind: type[T], name: str = "", options: Qt.FindChildOption = ANYWHERE) -> T | None:
        """Find a child as Qt does. Views that nobody has opened yet are made to look inside them.

        This is for scripts and tests, which know object names. The window's own code uses attributes.
        """
        child = super().findChild(kind, name, options)
        while child is None and self.session is not None and (view := self.stages.missing()) is not None:
            self.pane(view)
            child = super().findChild(kind, name, options)
        return child

    def findChildren(self, kind: type[T], *arguments: Any) -> list[T]:
        """Find children as Qt does, in the parts of every view."""
        if self.session is not None:
            self.stages.make_all()
        return super().findChildren(kind, *arguments)

    def _store_page(self) -> QWidget:
        page, body = QWidget(), QWidget()
        line = QVBoxLayout(page)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        line.addWidget(self.top)
        line.addWidget(self.unread)
        line.addWidget(self.patched)
        line.addWidget(self.tied)
        line.addWidget(body, 1)
        beside = QHBoxLayout(body)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.setSpacing(0)
        beside.addWidget(self.rail)
        beside.addWidget(self.split, 1)
        return page

    # ---- a store -----------------------------------------------------------------------------------------------------

    async def open(self, path: Path, place_text: str | None = None, config: MessageStoreConfig | None = None) -> bool:
        """Open the store at ``path`` and show the place ``place_text``.

        Returns False if the error page is shown instead. ``config`` applies to this store only. The next store is
        opened without it.
        """
        self.close_store()
        path = self._opening = straight_path(path)
        self._failed_path = ""
        self.storeNamed.emit()
        self.say(tr("Opening {path}", path=str(path)))
        try:
            source = await self.workspace.taken(path)
            session = await StoreSession.open(source.store, self.jobs, config or source.config, source.archive)
        except (StoreError, OSError) as error:
            if self._opening == path:
                self._opening = None
                self.show_error(path, engine_words(str(error)), config)
            return False
        if self._opening != path:
            session.close()
            return False
        self.jobs.worker.hold()
        session.hold()
        self._begin(session)
        self.say("")
        await self.go_to_text(place_text or self.workspace.first_place(), at_opening=True)
        self.pane(self.view).setFocus()
        await self.stages.first_rows_painted()
        if session is not self.session:
            return False
        self.stages.go_on(session)
        self.opened.emit()
        return True

    def ask_open(self, path: Path) -> None:
        """Open the store at ``path``. If this would close a lab store that serves clients, ask first."""
        self.lab.ask_leave(lambda: self.jobs.start(self.open(path)))

    def _recolour(self) -> None:
        for part in super().findChildren(QWidget):
            part.update()

    def _begin(self, session: StoreSession) -> None:
        self.session = session
        session.colours.changed.connect(self._recolour)
        if self.lender is not None:
            session.colours.follow(self.lender)
        self.changes.listen(session)
        session.followingChanged.connect(self.actions_by_id["view.follow"].setChecked)
        session.followingChanged.connect(self.top.follow.setChecked)
        self.workspace.began(session)
        self._attach()

    @property
    def opening(self) -> bool:
        """True while a store is being opened and is not shown yet."""
        return self._opening is not None

    @property
    def store_path(self) -> str:
        """The path of the store that is open, being opened, or could not be opened. Empty on the first page."""
        if self.session is not None:
            return self.session.shown_path
        return str(self._opening) if self._opening is not None else self._failed_path

    def _attach(self) -> None:
        """Give the session to every widget that shows it."""
        session = self.session
        self.side.set_session(session)
        self.strip.show_store(session.shown_path if session else "")
        self.setWindowTitle(f"{session.title} – Storescope" if session else "Storescope")
        file = session.config_file if session else ""
        self.status.set_config(tr("broker.conf: {name} ×", name=Path(file).name) if file else "", file)
        self.changes.unread()
        self.changes.show_patches()
        self.pages.setCurrentIndex(0)
        self.enable()
        self.storeNamed.emit()

    def let_go(self) -> None:
        """Take the store away from every view. The session stays open."""
        for pane in self.panes.values():
            if pane.session is not None:
                pane.set_session(None)
        self.side.set_session(None)

    def take_up(self, place: Place | None) -> None:
        """Show the store in the views again, at ``place``."""
        self._attach()
        self._show(place or places.log())

    def close_store(self) -> None:
        """Close the store and stop all work on it."""
        self.lab.close_in_background()
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
        self.changes.unread()
        self.changes.show_patches()
        self.rail.set_mark("findings", "")
        self.status.format.setText("")
        self.status.format.setToolTip("")
        self.status.set_config("")
        self.strip.show_store("")
        self.enable()

    def show_welcome(self) -> None:
        """Show the page without a store."""
        self._failed_path = ""
        self._show_page(welcome_page(self))
        self.say(tr("Ready"))

    def show_error(self, path: Path, words: str, config: MessageStoreConfig | None = None) -> None:
        """Show the page that says what was found instead of a store."""
        self.error_words, self._failed_path = words, str(path)
        self._show_page(error_page(self, path, words, config))
        self.say(tr("Not opened: {path}", path=str(path)))
        self.failed.emit(words)

    def _show_page(self, page: QWidget) -> None:
        self.stages.draw_icons_soon()
        while self.pages.count() > 1:
            old = self.pages.widget(1)
            if old is not None:
                self.pages.removeWidget(old)
                old.deleteLater()
        self.window_theme.apply_to(page)
        self.pages.addWidget(page)
        self.pages.setCurrentWidget(page)
        set_reading_order(page)
        first_part = next(in_reading_order(page), None)
        if first_part is not None:
            first_part.setFocus()
        self.strip.show_store("")
        self.setWindowTitle("Storescope")
        self.storeNamed.emit()
        self.enable()

    async def open_sample(self, sample: Sample) -> None:
        """Open a sample store. It is unpacked to the user's cache if it is not there yet."""
        folder = await self.jobs.run(tr("Unpacking the sample"), lambda _control: unpacked(sample, default_cache()))
        await self.open(folder)

    # ---- places ------------------------------------------------------------------------------------------------------

    def go(self, place: Place) -> None:
        """Show ``place`` and add it to the history; in a new window if the place asks for one."""
        if self.workspace.shown_beside(place):
            return
        self.history.visit(place)
        self._jump(place)
        self.workspace.jumps.jumped(place)

    def _lead_other_window(self, place: Place) -> None:
        self.workspace.comparison.lead(place)

    def step(self, place: Place | None) -> None:
        """Show a place of the history. Before the first place of a window without a store comes the welcome page."""
        if place is not None:
            self._jump(place)
        elif self.alone:
            self.show_welcome()

    @property
    def alone(self) -> bool:
        """True if a view that needs no store is shown while no store is open."""
        return self.session is None and self.pages.currentIndex() == 0 and BY_KIND[self.view].alone

    def show_view(self, view: str) -> None:
        """Bring a view to the front, at its last place."""
        if self.session is None and not BY_KIND[view].alone:
            return
        if view == self.view and (self.session is not None or self.alone):
            return
        view_place = Place(BY_KIND[view].kind)
        self.history.visit(view_place)
        self._front(view)
        if BY_KIND[view].begins:
            self.panes[view].show_place(view_place)
        self._told(view_place)

    async def go_to_text(self, text: str, *, at_opening: bool = False) -> bool:
        """Go to the place that the text of the go-to box names. If it names none, say why.

        A jump that begins later wins: if one did while this place was looked up, the view stays where that one went.
        """
        session = self.session
        self._jumps_begun += 1
        jump_number = self._jumps_begun
        try:
            target = places.parse(text)
            if session is None and not (isinstance(target, Place) and BY_KIND[target.view].alone):
                return False
            place, note = target, ""
            if session is not None and (isinstance(target, Search) or target.may_be_missing):
                place, note = await session.resolve(target)
        except (UnknownPlace, NothingFound, StoreError, OSError) as error:
            if jump_number != self._jumps_begun:
                return False
            if at_opening:
                self.go(places.log())
            self.top.goto.set_fault(engine_words(str(error)))
            return False
        except Cancelled:
            return False
        if session is not self.session or jump_number != self._jumps_begun or not isinstance(place, Place):
            return False
        self.go(place)
        self.top.goto.clear()
        self.top.goto.set_fault("")
        if note:
            self.say(note)
        return True

    def _jump(self, place: Place) -> None:
        """Show ``place``. A place of one row ends Follow, which would scroll away from it."""
        ends = self.session is not None and self.session.following and place.names_row
        if ends and self.session is not None:
            self.session.follow(False)
        self._show(place)
        if ends:
            self.say(tr("Follow has ended: the row you went to stays in view."))

    def _show(self, place: Place) -> None:
        view = place.view if place.view in BY_KIND else "log"
        self._front(view)
        self.panes[view].show_place(place)
        self._told(place)

    def _front(self, view: str) -> None:
        self._jumps_begun += 1
        if self.session is None:
            self.pages.setCurrentIndex(0)
        changed, self.view = view != self.view, view
        pane = self.awake(view)
        focused, never_focused = self.focusWidget(), pane.focusWidget() is None
        self.stack.setCurrentWidget(pane)
        if changed and never_focused and pane.lead is not None and self.stack.isAncestorOf(focused):
            pane.setFocus()  # after a change of view the keys go to its leading part
        self.fit_side()
        self.rail.set_current(BY_KIND[view].within or view)
        if changed:
            self.top.goto.set_fault("")
        if changed or pane.status():
            self.say(pane.status())

    def fit_side(self) -> None:
        """Show the tree if it is wanted and has room."""
        pane = self.panes.get(self.view)
        tree_wanted = pane is None or pane.wants_tree
        self.side.setVisible(tree_wanted and self.settings.tree_shown and self.layouts.tree_fits)

    def awake(self, view: str) -> Pane:
        """Return the pane of a view, with the session. Views that nobody has opened yet read nothing."""
        pane = self.pane(view)
        if pane.session is not self.session:
            pane.set_session(self.session)
        return pane

    def _moved(self, view: str, place: Place) -> None:
        if view == self.view:
            self.history.move(place)
            self._told(place)

    def _told(self, place: Place) -> None:
        """Update crumbs, tree and buttons."""
        self.top.crumbs.set_parts(crumbs_of(place, self.session))
        self.side.choose(place)
        self.enable()

    # ---- words and commands ------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Say what a command needs if the key of a disabled one is pressed. Escape goes back into the view."""
        need = need_of_key(self.actions_by_id, event)
        if need:
            self.say(need)
        elif event.key() == Qt.Key.Key_Escape and event.modifiers() == Qt.KeyboardModifier.NoModifier:
            self.focus_view()
        else:
            super().keyPressEvent(event)

    def focus_view(self) -> None:
        """Give the focus to the leading part of the view in front, with its mark."""
        if self.pages.currentIndex() == 0 and (self.session is not None or self.alone):
            self.pane(self.view).setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _say_need(self, need: str) -> None:
        """Show what the highlighted command of a menu needs, then the view's own sentence again."""
        pane = self.panes.get(self.view)
        self.say(need or (pane.status() if pane is not None and (self.session is not None or self.alone) else ""))

    def say(self, words: str) -> None:
        """Show a sentence in the status bar."""
        self.status.say(engine_words(words))

    def pane_commands(self) -> dict[str, Callable[[], object]]:
        """Return the handlers of the current view by command."""
        pane = self.panes.get(self.view)
        return pane.commands() if pane is not None and (self.session is not None or self.alone) else {}

    def note(self, name: str, words: str, parameters: object, cli: str) -> None:
        """Add an entry to the operation log."""
        self.changes.operations.note(name, words, parameters, cli)

    @property
    def place_in_words(self) -> str:
        """Return the current place in the words of the crumbs."""
        return self.top.crumbs.accessibleName()

    def command_in_words(self, command: str) -> str:
        """Return a command's words and key as the help writes them."""
        return in_words(command)

    def open_palette(self) -> None:
        """Open the box of commands and places. It is made again when the language changes."""
        self.palette_box.open()

    @property
    def palette_box(self) -> PaletteBox:
        """Return the box of commands and places, making it if needed."""
        if self._palette is None:
            from viewer.shell.palette_box import PaletteBox
            from viewer.shell.palette_source import entries

            self._palette = PaletteBox(self, lambda text: list(entries(self, text)))
        return self._palette

    def enable(self) -> None:
        """Grey the commands that cannot run now."""
        enable_actions(self.parts)

    # ---- looks and sizes ---------------------------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Make every widget with words again, for another language or the default layout. The place stays."""
        for step in self.rebuilding():
            step()

    def speak_anew(self) -> None:
        """Rebuild in several turns of the loop, for another language. The layout is saved first."""
        self.window_theme.take(self.layouts.keep, *self.rebuilding(), lambda: tick(self))

    def rebuilding(self) -> tuple[Callable[[], object], ...]:
        """Return the steps of :meth:`rebuild`, each for its own turn: frame, front view, the view's content."""
        return self.let_go, self._build_anew, self._front_anew, self._show_anew

    def _build_anew(self) -> None:
        take_back_later()
        self.workspace.repairs.close()
        self.let_go()
        old, shown = self.takeCentralWidget(), self.pages.currentIndex() == 0
        if old is not None:
            self.window_theme.throw_away(old, self.panes.values())
        retranslate_actions(self.actions_by_id)
        draw_icons(self.actions_by_id)
        if self._palette is not None:
            self._palette.deleteLater()
            self._palette = None
        self._build()
        if self.session is not None:
            self._attach()
        elif not shown:
            self.show_welcome()

    def _front_anew(self) -> None:
        if self.session is not None or self.alone:
            self.pane(self.view)

    def _show_anew(self) -> None:
        if self.session is not None:
            self._show(self.history.current or places.log())
            self.layouts.restore_side()
            self.stages.go_on_again(self.session)
            self.workspace.comparison.show_tie()
        elif self.alone:
            self._show(self.history.current or Place(BY_KIND[self.view].kind))

    def childEvent(self, event: QChildEvent) -> None:
        """Dress a child that is shown over or beside the window like the window itself."""
        super().childEvent(event)
        if event.polished():
            self.window_theme.added(event.child())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave some widgets out if the window is narrow."""
        super().resizeEvent(event)
        self.layouts.resized(event.oldSize().width())

    def fit_frame(self) -> None:
        """Leave some widgets out if the window is narrow, and show them again if it is wide."""
        self.layouts.fit()

    def came_to_front(self) -> None:
        """Show what was appended to the store while another tab was in front."""
        if self.session is not None:
            self.changes.tailed()
        self.enable()

    def tie(self, on: bool) -> None:
        """Share the screen with another window, or use it alone again."""
        self.layouts.tie(on)

    def zoom(self, percent: int) -> None:
        """Set the scale and remember it."""
        theme.request_zoom(percent)
        self.settings.zoom = theme.target_zoom
        self.say(tr("{n} %", n=theme.target_zoom))

    # ---- the end -----------------------------------------------------------------------------------------------------

    def ask_close(self) -> None:
        """Close the window. If pipeline jobs run, ask first."""
        self.workspace.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Save the layout, stop the work, close the store."""
        if self.closed:  # the page of a tab gets the event again at the end of the program
            super().closeEvent(event)
            return
        self.workspace.keep_all()
        self.closed = True
        self.workspace.comparison.untie()
        self.close_store()
        self.jobs.close()
        self.settings.sync()
        super().closeEvent(event)

    async def settled(self, seconds: float = 30.0, *, quiet: bool = False) -> bool:
        """Wait until the front rows are loaded and every pane is made.

        With ``quiet`` also wait until short reads have ended. Returns False if this takes longer than ``seconds``.
        """
        return await self.stages.settled(seconds, quiet)


class _ZoomFilter(QObject):
    """Zooms on Ctrl and wheel, also over widgets that scroll."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def watch(self, part: QWidget) -> None:
        """Watch every scrolling widget below ``part``."""
        for area in part.findChildren(QAbstractScrollArea):
            area.viewport().installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Watch for the wheel only."""
        if not isinstance(event, QWheelEvent) or not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            return False
        self._window.zoom(theme.target_zoom + (10 if event.angleDelta().y() > 0 else -10))
        return True


class _DropFilter(QObject):
    """Opens files or directories that are dropped anywhere on the window."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Watch for dragging and dropping only."""
        if isinstance(event, QDropEvent) and event.type() in {QEvent.Type.DragEnter, QEvent.Type.Drop}:
            urls = event.mimeData().urls()
            if not urls or not all(url.isLocalFile() for url in urls):
                return False
            event.acceptProposedAction()
            self._hot(event.type() == QEvent.Type.DragEnter)
            if event.type() == QEvent.Type.Drop:
                open_dropped(self._window, [Path(url.toLocalFile()) for url in urls])
            return True
        if event.type() == QEvent.Type.DragLeave:
            self._hot(False)
        return False

    def _hot(self, hot: bool) -> None:

        page = self._window.pages.findChild(WelcomePage, "welcome")
        if page is not None:
            page.drop.set_hot(hot)
