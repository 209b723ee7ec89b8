"""Profiles: the view in front, the tree, the sizes, the columns and the time histogram, under a name.

Three come with the program. The user's own are saved in the settings, and only they can be renamed and deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from viewer.look.assets import tr, words
from viewer.look.theme import px, ui
from viewer.pane.histogram_bar import show_histograms
from viewer.runtime.settings import NamedLayout
from viewer.shell.layout import Layout
from viewer.shell.views import BY_KIND
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import row
from viewer.widgets.choices import ChoiceList
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow


UNITS = "units.table"
BUILT_IN = {
    "operator": NamedLayout("Operator", "findings", True, {}, {UNITS: {"hidden": ["size", "body"]}}, True),
    "developer": NamedLayout("Developer", "log", True, {}, {UNITS: {}}, False),
    "student": NamedLayout(
        "Student", "positions", True, {}, {UNITS: {"hidden": ["size", "crc", "Marks", "body"]}}, False
    ),
}
"""The profiles of the program. Their names and sentences are translated where they are shown."""
TITLES = {"operator": words("Operator"), "developer": words("Developer"), "student": words("Student")}
SENTENCES = {
    "operator": words("Findings in front, the time histogram over the log, and the columns that an incident needs"),
    "developer": words("The log in front with every column; no histogram, so that rows, fields and bytes have room"),
    "student": words("Positions in front, and few columns: where a message is, not how large"),
}


def save(window: MainWindow, layouts: Layout, name: str) -> bool:
    """Save the window's layout as ``name``, replacing one with this name.

    Returns False if there is no name or no store.
    """
    name = name.strip()
    if not name or window.session is None:
        return False
    tables = {table.objectName(): table for pane in window.panes.values() for table in pane.findChildren(RecordView)}
    columns = {table_name: table.fitting.kept.record() for table_name, table in tables.items() if table_name}
    settings = window.settings
    named_layout = NamedLayout(
        name, window.view, settings.tree_shown, layouts.states(), columns, settings.histogram_shown
    )
    window.settings.named_layouts = [
        *(saved for saved in window.settings.named_layouts if saved.name != name),
        named_layout,
    ]
    window.say(tr("Profile saved: {name}", name=name))
    return True


def restore(window: MainWindow, layouts: Layout, name: str) -> bool:
    """Restore the user's profile ``name``. Return False if there is none."""
    saved = next((candidate for candidate in window.settings.named_layouts if candidate.name == name), None)
    return saved is not None and use(window, layouts, saved, name)


def use_built_in(window: MainWindow, layouts: Layout, name: str) -> bool:
    """Use a profile of the program. Return False without a store."""
    return use(window, layouts, BUILT_IN[name], tr(TITLES[name]))


def use(window: MainWindow, layouts: Layout, saved: NamedLayout, title: str) -> bool:
    """Lay the window out as in ``saved``. Return False without a store."""
    if window.session is None:
        return False
    window.settings.tree_shown = saved.tree
    window.actions_by_id["view.tree"].setChecked(saved.tree)
    if saved.view in BY_KIND:
        window.show_view(saved.view)
    window.fit_side()
    layouts.take(saved.states)
    _use_columns(window, saved.columns)
    if saved.histogram is not None:
        show_histograms(window.settings, is_shown=saved.histogram, shows_bytes=window.settings.histogram_bytes)
    window.say(tr("Profile: {name}", name=title))
    return True


def _use_columns(window: MainWindow, columns: Mapping[str, object]) -> None:
    """Give tables their columns. Tables that are not made yet take theirs from the settings."""
    for name, record in columns.items():
        window.settings.set_columns(name, record)
    for pane in window.panes.values():
        for table in pane.findChildren(RecordView):
            if table.objectName() in columns:
                table.fitting.take(columns[table.objectName()])


def rename(window: MainWindow, name: str, new_name: str) -> bool:
    """Rename the user's profile ``name``. Return False if there is no new name or another profile has it."""
    new_name, saved = new_name.strip(), window.settings.named_layouts
    if not new_name or new_name in {layout.name for layout in saved}:
        return False
    window.settings.named_layouts = [
        replace(layout, name=new_name) if layout.name == name else layout for layout in saved
    ]
    window.say(tr("Profile renamed: {name}", name=new_name))
    return True


def delete(window: MainWindow, name: str) -> None:
    """Delete the user's profile ``name``."""
    window.settings.named_layouts = [saved for saved in window.settings.named_layouts if saved.name != name]
    window.say(tr("Profile deleted: {name}", name=name))


class SaveBox(QDialog):
    """Asks for the name of a profile."""

    def __init__(self, window: MainWindow, layouts: Layout) -> None:
        super().__init__(window)
        self.setObjectName("layout.saveBox")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Save the profile"))
        self.setAccessibleName(tr("Save the profile"))
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
        self.note.setText(tr("There is a profile of this name: it is replaced.") if name_exists else "")


class ChooseBox(QDialog):
    """Lists the profiles, first those of the program. Enter uses one, F2 renames it, Del deletes it."""

    def __init__(self, window: MainWindow, layouts: Layout) -> None:
        super().__init__(window)
        self._window, self._layouts = window, layouts
        self.setObjectName("layout.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Profiles"))
        self.setAccessibleName(tr("Profiles"))
        self.resize(px(460), px(340))
        self.list = ChoiceList()
        self.list.setObjectName("layout.list")
        self.list.setAccessibleName(tr("Profiles"))
        self.list.setFont(ui(13))
        self.list.itemActivated.connect(lambda _item: self._restore_selected())
        self.list.currentRowChanged.connect(lambda _n: self._enable_buttons())
        self.note = Label("", 12, "text3", wrap=True)
        self.use, self.forget, close = Button(tr("Use"), "primary"), Button(tr("Delete")), Button(tr("Close"))
        self.new_name, self.rename = Field(tr("New name")), Button(tr("Rename"))
        self.new_name.setObjectName("layout.newName")
        named_buttons = ((self.use, "use"), (self.forget, "delete"), (close, "close"), (self.rename, "rename"))
        for button, name in named_buttons:
            button.setObjectName(f"layout.{name}")
        self.use.clicked.connect(self._restore_selected)
        self.forget.clicked.connect(self._delete_selected)
        self.rename.clicked.connect(self._rename_selected)
        self.new_name.returnPressed.connect(self._rename_selected)
        QShortcut(QKeySequence("F2"), self, self.new_name.setFocus)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.list, self._delete_selected)
        close.clicked.connect(self.reject)
        _column(self, self.list, self.note, row(self.new_name, self.rename), row(self.forget, None, close, self.use))
        self._fill()

    def _fill(self, selected: str = "") -> None:
        names = [saved.name for saved in self._window.settings.named_layouts]
        self.list.clear()
        self.list.addItems([*(tr(TITLES[name]) for name in BUILT_IN), *names])
        self.list.setCurrentRow(len(BUILT_IN) + names.index(selected) if selected in names else 0)
        self._enable_buttons()

    def _enable_buttons(self) -> None:
        built_in, own_name = self._selected_built_in(), self._own_name()
        self.use.setEnabled(bool(built_in or own_name))
        tip = "" if own_name else tr("A profile of the program cannot be renamed or deleted.")
        for part in (self.forget, self.rename, self.new_name):
            part.setEnabled(own_name != "")
            part.setToolTip(tip)
        self.new_name.setText(own_name)
        self.note.setText(f"{tr(SENTENCES[built_in])}." if built_in else "")

    def _selected_built_in(self) -> str:
        number = self.list.currentRow()
        return list(BUILT_IN)[number] if 0 <= number < len(BUILT_IN) else ""

    def _own_name(self) -> str:
        """Return the name of the selected profile of the user's, or nothing."""
        number = self.list.currentRow() - len(BUILT_IN)
        names = [saved.name for saved in self._window.settings.named_layouts]
        return names[number] if 0 <= number < len(names) else ""

    def _restore_selected(self) -> None:
        built_in = self._selected_built_in()
        if built_in:
            is_used = use_built_in(self._window, self._layouts, built_in)
        else:
            is_used = restore(self._window, self._layouts, self._own_name())
        if is_used:
            self.accept()

    def _delete_selected(self) -> None:
        if self._own_name():
            delete(self._window, self._own_name())
            self._fill()

    def _rename_selected(self) -> None:
        new_name = self.new_name.text().strip()
        if self._own_name() and rename(self._window, self._own_name(), new_name):
            self._fill(new_name)


def _column(box: QDialog, *parts: QWidget) -> None:
    layout = QVBoxLayout(box)
    layout.setContentsMargins(px(16), px(14), px(16), px(12))
    layout.setSpacing(px(8))
    for part in parts:
        layout.addWidget(part)


def ask_save(window: MainWindow, layouts: Layout) -> None:
    """Ask for a name and save the layout as a profile under it."""
    if window.session is not None:
        box = SaveBox(window, layouts)
        box.open()
        box.name.setFocus()


def ask_choose(window: MainWindow, layouts: Layout) -> None:
    """Show the profiles, to use, rename or delete one."""
    box = ChooseBox(window, layouts)
    box.open()
    box.list.setFocus()
