"""The menus and the strip that holds them, with the promise "Read-only" at the right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QMenu, QMenuBar

from viewer.look.assets import tr
from viewer.look.theme import follow, px, ui
from viewer.widgets.basics import ElidedLine, Glyph, Label, ThemedPanel

if TYPE_CHECKING:
    from viewer.runtime.settings import RecentStore

MAX_RECENT = 10


@dataclass(frozen=True, slots=True)
class MenuLine:
    """An action in a menu. A separator stands between two lines with different ``group``."""

    group: int
    action: QAction
    submenu: str = ""
    """English title of its submenu. Lines with the same title follow each other."""


@dataclass(frozen=True, slots=True)
class Menu:
    """A menu: its English name, the letter that opens it, and its lines."""

    name: str
    letter: str
    lines: Sequence[MenuLine]


def _with_letter(name: str, letter: str) -> str:
    """Return a menu's title with its letter marked, or added in brackets if the title does not contain it."""
    title = tr(name)
    return title.replace(letter, f"&{letter}", 1) if letter in title else f"{title}(&{letter})"


def _hide_empty(submenus: Iterable[QMenu]) -> None:
    """Hide every submenu in which no command can run."""
    for submenu in submenus:
        submenu.menuAction().setVisible(any(action.isVisible() for action in submenu.actions()))


class MenuStrip(ThemedPanel):
    """The menus, and at the right the store's access mode and path. ``storeRequested(path)`` from Open recent.

    ``statusText(words)`` says what a highlighted grey command needs; "" once it is not highlighted any more.
    """

    storeRequested = Signal(str)
    statusText = Signal(str)

    def __init__(self, menus: Sequence[Menu], recent_stores: Callable[[], Sequence[RecentStore]] = tuple) -> None:
        super().__init__("window")
        self.setObjectName("menuStrip")
        self._slim = self._is_patched = False
        self._path = self._need = ""
        self._recent_stores = recent_stores
        self.bar = QMenuBar()
        self.bar.setNativeMenuBar(False)
        self.menus: list[QMenu] = []
        self._submenus: list[QMenu] = []
        for menu in menus:
            self.menus.append(self._menu(menu))
        self.lock = Glyph("lock", "ok", 15)
        self.promise = Label(tr("Read-only"), 12, "ok", 600)
        self.promise.setObjectName("promise")
        self.promise.setToolTip(tr("Files are opened with read rights only. No lock is taken, nothing is created."))
        self.path = ElidedLine("", 12, "text3", code=True, middle=True)
        self.path.setObjectName("store.path")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, px(12), 0)
        layout.setSpacing(px(6))
        layout.addWidget(self.bar, 0, Qt.AlignmentFlag.AlignVCenter)
        layout.addStretch(1)
        layout.addWidget(self.lock)
        layout.addWidget(self.promise)
        layout.addWidget(self.path)
        self.show_store("")
        self._fit()
        follow(self, self._fit)

    def _menu(self, definition: Menu) -> QMenu:
        menu = self.bar.addMenu(_with_letter(definition.name, definition.letter))
        menu.setObjectName(f"menu.{definition.name.lower()}")
        group, submenus = 0, dict[str, QMenu]()
        for line in definition.lines:
            if line.group != group:
                menu.addSeparator()
                group = line.group
            if line.submenu and line.submenu not in submenus:
                submenu = submenus[line.submenu] = menu.addMenu(tr(line.submenu))
                submenu.setObjectName(f"{menu.objectName()}.{line.submenu.lower().replace(' ', '-')}")
            (submenus[line.submenu] if line.submenu else menu).addAction(line.action)
            if line.action.objectName() == "store.openFile":
                self._recent = menu.addMenu(tr("Open recent"))
                self._recent.setObjectName("menu.recent")
                self._recent.aboutToShow.connect(self._fill_recent)
        self._submenus += submenus.values()
        menu.aboutToShow.connect(lambda: _hide_empty(submenus.values()))
        menu.aboutToHide.connect(lambda: self._say_need(None))
        for shown_menu in (menu, *submenus.values()):
            shown_menu.hovered.connect(self._say_need)
        return menu

    def _say_need(self, action: QAction | None) -> None:
        need = action.toolTip() if action is not None and not action.isEnabled() and action.menu() is None else ""
        if need != self._need:
            self._need = need
            self.statusText.emit(need)

    def _fill_recent(self) -> None:
        """List the last opened stores by their paths."""
        self._recent.clear()
        stores = self._recent_stores()[:MAX_RECENT]
        for store in stores:
            action = self._recent.addAction(store.path.replace("&", "&&"))
            action.triggered.connect(lambda _on=False, path=store.path: self.storeRequested.emit(path))
        if not stores:
            self._recent.addAction(tr("No store was opened yet")).setEnabled(False)

    def open_menus(self) -> None:
        """Open the first menu, as F10 does everywhere."""
        self.bar.setFocus()
        self.bar.setActiveAction(self.bar.actions()[0])

    def show_store(self, path: str) -> None:
        """Show the path of the open store, or nothing if it is empty."""
        self._path = path
        for part in (self.lock, self.promise):
            part.setVisible(bool(path))
        self.path.setText(path)
        self.path.setVisible(bool(path) and not self._slim)
        self.path.setAccessibleName(path)

    def set_patched(self, on: bool) -> None:
        """Show that the views show the store as patched; its files are only read, as always."""
        self._is_patched = on
        self.set_writing(False)

    def set_writing(self, on: bool, *, users_store: bool = False) -> None:
        """Show that the store is open for writing: a lab store, or the user's own store (``users_store``)."""
        words = tr("Open for writing") if users_store else tr("Lab store, open for writing")
        reading = tr("As patched, read-only") if self._is_patched else tr("Read-only")
        role = "live" if on or self._is_patched else "ok"
        self.promise.setText(words if on else reading)
        self.promise.set_role(role)
        self.lock.set_glyph("lab" if on else "lock", role)
        self.promise.setToolTip(
            tr("The lab's engine has this store open for writing, in a process of its own.")
            if on
            else tr("Files are opened with read rights only. No lock is taken, nothing is created.")
        )

    def set_slim(self, slim: bool) -> None:
        """Hide the path in a narrow window."""
        self._slim = slim
        self.path.setVisible(bool(self._path) and not slim)

    def _fit(self) -> None:
        self.bar.setFont(ui(13))
        for menu in (*self.menus, *self._submenus, self._recent):
            menu.setFont(ui(13))
        self.setFixedHeight(px(30))
