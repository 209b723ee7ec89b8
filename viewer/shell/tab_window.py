"""A window with a tab for each open store. Each page is a :class:`MainWindow` with its own menus, session and worker.

The page of the current tab is the only one that is visible, so its commands are the only ones that have keys. With
one tab the bar is hidden, and the window looks as if the page were the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QContextMenuEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QMenu, QTabBar, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.formats import store_name
from viewer.look.theme import IN_PARTS, C, apply_theme_in, follow, px, style_sheet, theme, ui
from viewer.shell.end_question import ask_end
from viewer.shell.view_stack import ViewStack
from viewer.widgets.basics import ThemedPanel, ToolButton

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from viewer.shell.main_window import MainWindow

MAX_TAB_WIDTH_PX = 280
MAX_REOPENED = 20
"""Number of closed tabs that can be opened again."""


@dataclass(frozen=True, slots=True)
class ClosedTab:
    """A tab that was closed: its store, the place that it showed, and the configuration that it was opened with."""

    store: Path
    place_text: str
    config: MessageStoreConfig | None


def tab_titles(paths: Sequence[str]) -> list[str]:
    """Return a short title for each path. Equal names get as many of their parent folders as tell them apart.

    The same path twice is numbered.
    """
    titles = [store_name(path) if path else "" for path in paths]
    for title in {title for title in titles if title and titles.count(title) > 1}:
        rows = [n for n, other in enumerate(titles) if other == title]
        for row, text in zip(rows, _told_apart([paths[row] for row in rows], title), strict=True):
            titles[row] = text
    return titles


def _told_apart(paths: Sequence[str], name: str) -> list[str]:
    """Return titles of stores that all have this ``name``, in the order of their ``paths``."""
    parents = []
    for path in paths:
        parts = [part for part in path.split("/") if part]
        position = max((n for n, part in enumerate(parts) if part == name), default=len(parts))
        parents.append(parts[:position][::-1])
    depth = next((n for n in range(20) if len({tuple(parent[:n]) for parent in parents}) == len(set(paths))), 0)
    titles = ["/".join([*parent[:depth][::-1], name]) for parent in parents]
    counts: dict[str, int] = {}
    for n, title in enumerate(titles):
        counts[title] = counts.get(title, 0) + 1
        if counts[title] > 1:
            titles[n] = f"{title} ({counts[title]})"
    return titles


class TabBar(QTabBar):
    """The tabs. ``menuRequested(number, position)`` on a right click, ``middleClicked(number)``."""

    menuRequested = Signal(object, QPoint)
    middleClicked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("tabs")
        self.setMovable(True)
        self.setExpanding(False)
        self.setDrawBase(False)
        self.setDocumentMode(True)
        self.setUsesScrollButtons(True)
        self.setElideMode(Qt.TextElideMode.ElideMiddle)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAcceptDrops(True)
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        self.setFont(ui(12))
        role = {name: C(name).name() for name in ("window", "text", "text2", "hair", "accent", "pane", "sunken")}
        self.setStyleSheet(
            f"QTabBar {{ background: {role['window']}; outline: 0; }}"
            f"QTabBar::tab {{ background: {role['window']}; color: {role['text2']}; border: 0;"
            f" border-right: 1px solid {role['hair']}; border-top: 2px solid {role['window']};"
            f" padding: 0 {px(10)}px; height: {px(28)}px; max-width: {px(MAX_TAB_WIDTH_PX)}px; }}"
            f"QTabBar::tab:hover {{ background: {role['sunken']}; }}"
            f"QTabBar::tab:selected {{ background: {role['pane']}; color: {role['text']};"
            f" border-top: 2px solid {role['accent']}; }}"
        )

    def minimumSizeHint(self) -> QSize:
        """Return no minimum width, so that many tabs do not make the window wider."""
        return QSize(px(120), super().minimumSizeHint().height())

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Ask for the menu of the tab under the pointer, or of the current one by key."""
        number = self.tabAt(event.pos()) if event.reason() == QContextMenuEvent.Reason.Mouse else self.currentIndex()
        if number >= 0:
            self.menuRequested.emit(number, event.globalPos())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the tabs, and a frame around the current one if a key brought the focus here."""
        super().paintEvent(event)
        if self.hasFocus():
            p = QPainter(self)
            p.setPen(QPen(C("accent"), 2))
            p.drawRect(self.tabRect(self.currentIndex()).adjusted(1, 1, -2, -1))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Close the tab under the middle button."""
        super().mouseReleaseEvent(event)
        number = self.tabAt(event.position().toPoint())
        if event.button() == Qt.MouseButton.MiddleButton and number >= 0:
            self.middleClicked.emit(number)


class TabWindow(QWidget):
    """A top-level window of pages, one of which is shown. ``pages`` are in the order of the tabs."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("tabWindow")
        self.setProperty(IN_PARTS, True)
        self.pages: list[MainWindow] = []
        self.closed_tabs: list[ClosedTab] = []
        """The stores of closed tabs, the last one at the end."""
        self.is_closing = False
        """True while all pages close together."""
        self._recent: list[MainWindow] = []
        """Pages in the order in which they were shown, the current one last."""
        self._shown: WeakSet[MainWindow] = WeakSet()
        self.bar = TabBar()
        self.add_button = ToolButton("plus")
        self.add_button.setObjectName("tabs.add")
        self.head = ThemedPanel("window")
        self.head.setObjectName("tabs.head")
        head_line = QHBoxLayout(self.head)
        head_line.setContentsMargins(0, 0, px(6), 0)
        head_line.setSpacing(px(4))
        head_line.addWidget(self.bar)
        head_line.addWidget(self.add_button)
        head_line.addStretch(1)
        self.stack = ViewStack()
        self.stack.setObjectName("tabs.pages")
        line = QVBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        line.addWidget(self.head)
        line.addWidget(self.stack, 1)
        self.head.hide()
        self.bar.currentChanged.connect(self._on_current)
        self.bar.tabMoved.connect(self._on_moved)
        self.bar.middleClicked.connect(lambda number: self.pages[number].ask_close())
        self.bar.menuRequested.connect(self._show_menu)
        self.add_button.clicked.connect(self._new_tab)
        theme.changed.connect(self._on_theme)
        self._on_theme()
        _tab_windows.append(self)

    # ---- pages -------------------------------------------------------------------------------------------------------

    @property
    def current(self) -> MainWindow:
        """The page that is shown."""
        return self.pages[max(0, self.bar.currentIndex())]

    def add(self, page: MainWindow, *, front: bool = True) -> None:
        """Add a page as the last tab, and show it with ``front``. Its focus stays where it is."""
        focused = page.focusWidget()
        self.pages.append(page)
        self._recent.insert(0, page)
        page.setMinimumSize(0, 0)
        page.installEventFilter(self)
        page.storeNamed.connect(self.refresh)
        page.windowIconChanged.connect(self.setWindowIcon)
        self.stack.addWidget(page)
        self.bar.blockSignals(True)
        number = self.bar.addTab("")
        self.bar.blockSignals(False)
        self._add_close_button(number, page)
        self.refresh()
        if front or len(self.pages) == 1:
            self.show_page(self.pages[number])
        self._enable()
        if page is self.current and focused is not None:
            focused.setFocus()

    def _add_close_button(self, number: int, page: MainWindow) -> None:
        button = ToolButton("close")
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        button.setAutoRaise(True)
        button.clicked.connect(lambda: page.ask_close())  # noqa: PLW0108
        self.bar.setTabButton(number, QTabBar.ButtonPosition.RightSide, button)

    def show_page(self, page: MainWindow) -> None:
        """Bring the tab of ``page`` to the front."""
        number = self.pages.index(page)
        if self.bar.currentIndex() != number:
            self.bar.setCurrentIndex(number)
        else:
            self._on_current(number)

    def step(self, step: int) -> None:
        """Show the next (1) or previous (-1) tab. After the last one comes the first."""
        self.show_page(self.pages[(self.bar.currentIndex() + step) % len(self.pages)])

    def last_other(self, page: MainWindow) -> MainWindow | None:
        """Return the page with a store that was shown last before ``page``."""
        pages = reversed(self._recent)
        return next((other for other in pages if other is not page and other.session is not None), None)

    def take_out(self, page: MainWindow) -> None:
        """Remove the tab of ``page``. The page stays open, without a window."""
        self._forget(page)
        page.removeEventFilter(self)
        page.storeNamed.disconnect(self.refresh)
        page.windowIconChanged.disconnect(self.setWindowIcon)
        self.stack.removeWidget(page)

    def _forget(self, page: MainWindow) -> None:
        number = self.pages.index(page)
        current = self.current
        if page is current:
            current = next((other for other in reversed(self._recent) if other is not page), page)
        self.pages.remove(page)
        self._recent.remove(page)
        self.bar.blockSignals(True)
        self.bar.removeTab(number)
        self.bar.blockSignals(False)
        if not self.pages or self.is_closing:
            return
        current.remembers = current.remembers or page.remembers
        self.show_page(current)
        self.refresh()
        self._enable()

    def _on_current(self, number: int) -> None:
        if not 0 <= number < len(self.pages):
            return
        page = self.pages[number]
        changed = self.stack.currentWidget() is not page
        if changed and page not in self._shown:  # it is laid out in this turn of the loop and painted in the next
            page.setUpdatesEnabled(False)
            QTimer.singleShot(0, page, lambda: page.setUpdatesEnabled(True))
        self._shown.add(page)
        self.stack.setCurrentWidget(page)
        self._recent.remove(page)
        self._recent.append(page)
        self._show_title()
        if changed and self.isVisible():
            page.came_to_front()

    def _on_moved(self, old: int, new: int) -> None:
        self.pages.insert(new, self.pages.pop(old))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Remove the tab of a page that closes, and close the window with its last page."""
        if event.type() == QEvent.Type.Close and watched in self.pages:
            page = self.pages[self.pages.index(watched)]
            self._note_closed(page)
            self._forget(page)
            QTimer.singleShot(0, page, lambda: page.setParent(None))
            if not self.pages and not self.is_closing:
                QTimer.singleShot(0, self, self.close)
        return False

    def _note_closed(self, page: MainWindow) -> None:
        session = page.session
        if session is not None and not self.is_closing:
            place_text = page.workspace.here() or "log"
            self.closed_tabs.append(ClosedTab(session.archive or session.path, place_text, session.config))
            del self.closed_tabs[:-MAX_REOPENED]

    # ---- titles ------------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Show the names of the stores again. Every tooltip is the whole path."""
        paths = [page.store_path for page in self.pages]
        for number, (path, title) in enumerate(zip(paths, tab_titles(paths), strict=True)):
            text = (title or tr("New tab")).replace("&", "&&")
            self.bar.setTabText(number, text)
            self.bar.setTabToolTip(number, path or tr("No store"))
            self.bar.setAccessibleTabName(number, path or tr("New tab"))
            button = self.bar.tabButton(number, QTabBar.ButtonPosition.RightSide)
            if button is not None:
                button.setToolTip(tr("Close this tab"))
                button.setAccessibleName(tr("Close this tab"))
        self.bar.setAccessibleName(tr("Open stores"))
        self.add_button.setToolTip(tr("New tab"))
        self.add_button.setAccessibleName(tr("New tab"))
        self.head.setVisible(len(self.pages) > 1)
        self._show_title()

    def _show_title(self) -> None:
        if self.pages:
            self.setWindowTitle(self.current.windowTitle())
            self.setAccessibleName(self.current.windowTitle())

    def _enable(self) -> None:
        for page in self.pages:
            page.enable()

    def _new_tab(self) -> None:
        self.current.actions_by_id["tab.new"].trigger()

    def _on_theme(self) -> None:
        self.head.setStyleSheet(style_sheet())
        apply_theme_in(self.head)

    def _show_menu(self, number: int, position: QPoint) -> None:
        """Show what can be done with a tab. Comparing needs the store of another tab in front."""
        page, current = self.pages[number], self.current
        menu = QMenu(self)
        menu.setObjectName("tabs.menu")
        menu.setToolTipsVisible(True)
        menu.setFont(ui(13))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        is_pair = page is not current and page.session is not None and current.session is not None
        compare = menu.addAction(tr("Compare with the store in front"))
        link = menu.addAction(tr("Link with the store in front, side by side"))
        for action in (compare, link):
            action.setEnabled(is_pair)
            action.setToolTip("" if is_pair else tr("Needs a store in this tab and another one in front."))
        compare.triggered.connect(lambda: current.workspace.comparison.show_on_one_page(Path(page.store_path)))
        link.triggered.connect(lambda: current.workspace.comparison.link(page))
        menu.addSeparator()
        own = menu.addAction(tr("Move to a window of its own"))
        own.triggered.connect(lambda: move_to_own_window(page))
        own.setEnabled(len(self.pages) > 1)
        menu.addSeparator()
        menu.addAction(tr("Close this tab")).triggered.connect(lambda: page.ask_close())  # noqa: PLW0108
        others = menu.addAction(tr("Close all other tabs"))
        others.setEnabled(len(self.pages) > 1)
        others.triggered.connect(lambda: self._close_others(page))
        menu.addAction(current.actions_by_id["tab.reopen"])
        menu.popup(position)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go back into the view on Escape."""
        if event.key() == Qt.Key.Key_Escape and self.pages:
            self.current.focus_view()
        else:
            super().keyPressEvent(event)

    def _close_others(self, page: MainWindow) -> None:
        for other in [other for other in self.pages if other is not page]:
            other.ask_close()

    # ---- the end -----------------------------------------------------------------------------------------------------

    def ask_close(self) -> None:
        """Close the window with all tabs. If anything would be lost, ask first, once for all tabs."""
        running = [sentence for page in self.pages for sentence in page.workspace.what_would_end()]
        if not self.pages or not ask_end(self.current, running, self.close):
            self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Keep the sessions of all tabs for the next start, then close every page."""
        running = [sentence for page in self.pages for sentence in page.workspace.what_would_end()]
        if event.spontaneous() and self.pages and ask_end(self.current, running, self.close):
            event.ignore()
            return
        if not self.is_closing:
            keeper = next((page for page in self.pages if page.remembers), None)
            if keeper is not None:
                keeper.workspace.keep_all()
            self.is_closing = True
            for page in list(self.pages):
                page.close()
                page.setParent(None)
            QTimer.singleShot(0, lambda: _tab_windows.remove(self))  # not before Qt has done with the event
        super().closeEvent(event)


_tab_windows: list[TabWindow] = []


def tab_window_of(window: QWidget) -> TabWindow | None:
    """Return the window whose tab shows ``window``, or None if it is a window of its own."""
    top = window.window()
    return top if isinstance(top, TabWindow) else None


def put_into_tabs(window: MainWindow) -> TabWindow:
    """Return the window of tabs that shows ``window``. A window of its own becomes the first tab of a new one."""
    tabs = tab_window_of(window)
    if tabs is not None:
        return tabs
    tabs = TabWindow()
    visible, geometry, state = window.isVisible(), window.geometry(), window.windowState()
    tabs.setMinimumSize(window.minimumSize())
    tabs.setGeometry(geometry)
    tabs.add(window)
    if visible:
        tabs.setWindowState(state)
        tabs.show()
    return tabs


def move_to_own_window(page: MainWindow) -> TabWindow | None:
    """Move the tab of ``page`` to a new window. Return None if it is the only tab."""
    tabs = tab_window_of(page)
    if tabs is None or len(tabs.pages) < 2:
        return None
    size, minimum = tabs.size(), tabs.minimumSize()
    tabs.take_out(page)
    own = TabWindow()
    own.setMinimumSize(minimum)
    own.resize(size)
    own.add(page)
    page.remembers = False
    own.show()
    return own
