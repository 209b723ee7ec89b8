"""Layouts saved under a name in the settings: sizes of the splitters, the tree, and the current view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QListWidget, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.theme import px, ui
from viewer.runtime.settings import NamedLayout
from viewer.shell.layout import Layout
from viewer.shell.views import BY_KIND
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import row

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow


def save(window: MainWindow, layouts: Layout, name: str) -> bool:
    """Save the window's layout as ``name``, replacing one with this name.

    Returns False if there is no name or no store.
    """
    name = name.strip()
    if not name or window.session is None:
        return False
    named_layout = NamedLayout(name, window.view, window.settings.tree_shown, layouts.states())
    window.settings.named_layouts = [
        *(saved for saved in window.settings.named_layouts if saved.name != name),
        named_layout,
    ]
    window.say(tr("Layout saved: {name}", name=name))
    return True


def restore(window: MainWindow, layouts: Layout, name: str) -> bool:
    """Restore the layout ``name``. Return False if there is none."""
    saved = next((candidate for candidate in window.settings.named_layouts if candidate.name == name), None)
    if saved is None or window.session is None:
        return False
    window.settings.tree_shown = saved.tree
    window.actions_by_id["view.tree"].setChecked(saved.tree)
    if saved.view in BY_KIND:
        window.show_view(saved.view)
    window.fit_side()
    layouts.take(saved.states)
    window.say(tr("Layout: {name}", name=name))
    return True


def delete(window: MainWindow, name: str) -> None:
    """Delete the layout ``name``."""
    window.settings.named_layouts = [saved for saved in window.settings.named_layouts if saved.name != name]
    window.say(tr("Layout deleted: {name}", name=name))


class SaveBox(QDialog):
    """Asks for the name of a layout."""

    def __init__(self, window: MainWindow, layouts: Layout) -> None:
        super().__init__(window)
        self.setObjectName("layout.saveBox")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Save the layout"))
        self.setAccessibleName(tr("Save the layout"))
        self.setMinimumWidth(px(420))
        self.name = Field(tr("Name"))
        self.name.setObjectName("layout.name")
        self.note = Label("", 12, "text3", wrap=True)
        save_button, close = Button(tr("Save"), "primary"), Button(tr("Cancel"))
        save_button.setObjectName("layout.keep")
        close.setObjectName("layout.cancel")
        self._existing_names = {saved.name for saved in window.settings.named_layouts}

        def accept() -> None:
            if save(window, layouts, self.name.text()):
                self.accept()

        save_button.clicked.connect(accept)
        self.name.returnPressed.connect(accept)
        self.name.textChanged.connect(self._warn_if_name_exists)
        close.clicked.connect(self.reject)
        _column(self, self.name, self.note, row(None, close, save_button))

    def _warn_if_name_exists(self, text: str) -> None:
        name_exists = text.strip() in self._existing_names
        self.note.setText(tr("There is a layout of this name: it is replaced.") if name_exists else "")


class ChooseBox(QDialog):
    """Lists the saved layouts by name. Enter restores one, Del deletes it."""

    def __init__(self, window: MainWindow, layouts: Layout) -> None:
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
        self.list.itemActivated.connect(lambda _item: self._restore_selected())
        self.list.currentRowChanged.connect(lambda _n: self._enable_buttons())
        self.note = Label(tr("No layout was saved yet."), 12, "text3", wrap=True)
        self.use, self.forget, close = Button(tr("Use"), "primary"), Button(tr("Delete")), Button(tr("Close"))
        for button, name in ((self.use, "use"), (self.forget, "delete"), (close, "close")):
            button.setObjectName(f"layout.{name}")
        self.use.clicked.connect(self._restore_selected)
        self.forget.clicked.connect(self._delete_selected)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.list, self._delete_selected)
        close.clicked.connect(self.reject)
        _column(self, self.list, self.note, row(self.forget, None, close, self.use))
        self._fill()

    def _fill(self) -> None:
        names = [saved.name for saved in self._window.settings.named_layouts]
        self.list.clear()
        self.list.addItems(names)
        self.list.setCurrentRow(0 if names else -1)
        self.note.setVisible(not names)
        self._enable_buttons()

    def _enable_buttons(self) -> None:
        self.use.setEnabled(self._selected_name() != "")
        self.forget.setEnabled(self._selected_name() != "")

    def _selected_name(self) -> str:
        return self.list.currentItem().text() if self.list.currentRow() >= 0 else ""

    def _restore_selected(self) -> None:
        if restore(self._window, self._layouts, self._selected_name()):
            self.accept()

    def _delete_selected(self) -> None:
        if self._selected_name():
            delete(self._window, self._selected_name())
            self._fill()


def _column(box: QDialog, *parts: QWidget) -> None:
    layout = QVBoxLayout(box)
    layout.setContentsMargins(px(16), px(14), px(16), px(12))
    layout.setSpacing(px(8))
    for part in parts:
        layout.addWidget(part)


def ask_save(window: MainWindow, layouts: Layout) -> None:
    """Ask for a name and save the layout under it."""
    if window.session is not None:
        box = SaveBox(window, layouts)
        box.open()
        box.name.setFocus()


def ask_choose(window: MainWindow, layouts: Layout) -> None:
    """Show the saved layouts, to restore or delete one."""
    box = ChooseBox(window, layouts)
    box.open()
    box.list.setFocus()
