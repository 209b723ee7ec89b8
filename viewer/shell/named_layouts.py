"""Layouts with names: where splitters stand, whether the tree is shown and which view is in front.

They are kept in the settings, beside the reset to the layout of the first day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QListWidget, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.theme import px, ui
from viewer.runtime.settings import NamedLayout
from viewer.shell.views import BY_KIND
from viewer.widgets.basics import Button, Field, Label, row

if TYPE_CHECKING:
    from viewer.shell.framed_window import FramedWindow
    from viewer.shell.layout import Layout


def save(window: FramedWindow, layouts: Layout, name: str) -> bool:
    """Keep what stands in the window as ``name``, in the place of one of this name; False without a name."""
    name = name.strip()
    if not name or window.session is None:
        return False
    made = NamedLayout(name, window.view, window.settings.tree_shown, layouts.states())
    window.settings.named_layouts = [*(one for one in window.settings.named_layouts if one.name != name), made]
    window.say(tr("Layout saved: {name}", name=name))
    return True


def take(window: FramedWindow, layouts: Layout, name: str) -> bool:
    """Put everything where it stood in the layout ``name``; False where there is none."""
    found = next((one for one in window.settings.named_layouts if one.name == name), None)
    if found is None or window.session is None:
        return False
    window.settings.tree_shown = found.tree
    window.actions_by_id["view.tree"].setChecked(found.tree)
    if found.view in BY_KIND:
        window.show_view(found.view)
    window.fit_side()
    layouts.take(found.states)
    window.say(tr("Layout: {name}", name=name))
    return True


def delete(window: FramedWindow, name: str) -> None:
    """Forget the layout ``name``."""
    window.settings.named_layouts = [one for one in window.settings.named_layouts if one.name != name]
    window.say(tr("Layout deleted: {name}", name=name))


class SaveBox(QDialog):
    """Asks for the name."""

    def __init__(self, window: FramedWindow, layouts: Layout) -> None:
        super().__init__(window)
        self.setObjectName("layout.saveBox")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Save the layout"))
        self.setAccessibleName(tr("Save the layout"))
        self.setMinimumWidth(px(420))
        self.name = Field(tr("Name"))
        self.name.setObjectName("layout.name")
        self.note = Label("", 12, "text3", wrap=True)
        keep, close = Button(tr("Save"), "primary"), Button(tr("Cancel"))
        keep.setObjectName("layout.keep")
        close.setObjectName("layout.cancel")
        self._known = {one.name for one in window.settings.named_layouts}

        def accept() -> None:
            if save(window, layouts, self.name.text()):
                self.accept()

        keep.clicked.connect(accept)
        self.name.returnPressed.connect(accept)
        self.name.textChanged.connect(self._told)
        close.clicked.connect(self.reject)
        _column(self, self.name, self.note, row(None, close, keep))

    def _told(self, text: str) -> None:
        known = text.strip() in self._known
        self.note.setText(tr("There is a layout of this name: it is replaced.") if known else "")


class ChooseBox(QDialog):
    """The layouts by name: Enter takes one up, Del forgets it."""

    def __init__(self, window: FramedWindow, layouts: Layout) -> None:
        super().__init__(window)
        self._window, self._layouts = window, layouts
        self.setObjectName("layout.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Layouts"))
        self.setAccessibleName(tr("Layouts"))
        self.resize(px(460), px(340))
        self.list = QListWidget()
        self.list.setObjectName("layout.list")
        self.list.setAccessibleName(tr("Layouts"))
        self.list.setFont(ui(13))
        self.list.itemActivated.connect(lambda _item: self._take())
        self.list.currentRowChanged.connect(lambda _n: self._able())
        self.note = Label(tr("No layout was saved yet."), 12, "text3", wrap=True)
        self.use, self.forget, close = Button(tr("Use"), "primary"), Button(tr("Delete")), Button(tr("Close"))
        for button, name in ((self.use, "use"), (self.forget, "delete"), (close, "close")):
            button.setObjectName(f"layout.{name}")
        self.use.clicked.connect(self._take)
        self.forget.clicked.connect(self._delete)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.list, self._delete)
        close.clicked.connect(self.reject)
        _column(self, self.list, self.note, row(self.forget, None, close, self.use))
        self._fill()

    def _fill(self) -> None:
        names = [one.name for one in self._window.settings.named_layouts]
        self.list.clear()
        self.list.addItems(names)
        self.list.setCurrentRow(0 if names else -1)
        self.note.setVisible(not names)
        self._able()

    def _able(self) -> None:
        self.use.setEnabled(self._name() != "")
        self.forget.setEnabled(self._name() != "")

    def _name(self) -> str:
        return self.list.currentItem().text() if self.list.currentRow() >= 0 else ""

    def _take(self) -> None:
        if take(self._window, self._layouts, self._name()):
            self.accept()

    def _delete(self) -> None:
        if self._name():
            delete(self._window, self._name())
            self._fill()


def _column(box: QDialog, *parts: QWidget) -> None:
    layout = QVBoxLayout(box)
    layout.setContentsMargins(px(16), px(14), px(16), px(12))
    layout.setSpacing(px(8))
    for part in parts:
        layout.addWidget(part)


def ask_save(window: FramedWindow, layouts: Layout) -> None:
    """Ask for the name under which the layout is kept."""
    if window.session is not None:
        box = SaveBox(window, layouts)
        box.open()
        box.name.setFocus()


def ask_choose(window: FramedWindow, layouts: Layout) -> None:
    """Show the layouts, to be taken up or forgotten."""
    box = ChooseBox(window, layouts)
    box.open()
    box.list.setFocus()
