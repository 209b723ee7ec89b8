"""Saved filters as buttons behind the filter's field: a click applies one, its menu renames, replaces or deletes it.

What does not fit stands in the menu of the last button.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QInputDialog, QMenu, QSizePolicy, QWidget

from viewer.look.assets import tr, words
from viewer.look.theme import follow, px
from viewer.widgets.basics import Button

LAST_MINUTES = "last:5m"
"""Stands for the last five minutes of the log, whatever the clock says: its pane gives the text."""
FIRST = (
    (words("CRC bad"), 'crc = "bad"'),
    (words("Transactions"), "transaction is not null"),
    (words("Retries"), "retry or reconsumeTimes > 0"),
    (words("last 5 min"), LAST_MINUTES),
)
"""The buttons of the first day."""
GAP = 8
Saved = Sequence[tuple[str, str]]


class FilterPills(QWidget):
    """``chosen(text)`` when a filter is to be applied, ``changed(list)`` when the list was edited."""

    chosen = Signal(str)
    changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("filter.saved")
        self.saved: list[tuple[str, str]] = [(tr(name), text) for name, text in FIRST]
        self.current: Callable[[], str] = lambda: ""
        self._buttons: list[Button] = []
        self._room = 0
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(GAP)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self.more = Button("…", "pill")
        self.more.setObjectName("filter.more")
        self.more.setAccessibleName(tr("Saved filters"))
        self.more.setToolTip(tr("Saved filters"))
        self.more.clicked.connect(lambda: self.menu().popup(self.more.mapToGlobal(QPoint(0, self.more.height()))))
        self.show_saved(self.saved)
        follow(self, self._fit)

    def show_saved(self, saved: Saved) -> None:
        """These buttons."""
        self.saved = list(saved)
        for button in self._buttons:
            self._line.removeWidget(button)
            button.setObjectName("")
            button.deleteLater()
        self._line.removeWidget(self.more)
        self._buttons = [self._button(number, name, text) for number, (name, text) in enumerate(self.saved)]
        for button in self._buttons:
            self._line.addWidget(button)
        self._line.addWidget(self.more)
        self._fit()

    def _button(self, number: int, name: str, text: str) -> Button:
        made = Button(name.replace("&", "&&"), "pill")
        made.setObjectName(f"filter.saved.{number}")
        made.setAccessibleName(name)
        made.setToolTip(text if text != LAST_MINUTES else tr("The last five minutes of the log"))
        made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        made.clicked.connect(lambda: self.chosen.emit(text))
        made.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        made.customContextMenuRequested.connect(lambda at: self._menu_of(number).popup(made.mapToGlobal(at)))
        return made

    # ---- menus -------------------------------------------------------------------------------------------------------

    def menu(self) -> QMenu:
        """All saved filters, and what can be done with each."""
        made = self._new_menu()
        for number, (name, text) in enumerate(self.saved):
            made.addAction(name.replace("&", "&&"), partial(self.chosen.emit, text)).setToolTip(text)
            if number >= len(self.saved) - 1:
                made.addSeparator()
        keep = made.addAction(tr("Save the filter as a button…"), self.ask_name)
        keep.setEnabled(bool(self.current().strip()))
        for number, (name, _text) in enumerate(self.saved):
            below = made.addMenu(tr("Change {name}", name=name.replace("&", "&&")))
            self._add_row_commands(below, number)
        return made

    def _menu_of(self, number: int) -> QMenu:
        made = self._new_menu()
        self._add_row_commands(made, number)
        return made

    def _new_menu(self) -> QMenu:
        made = QMenu(self)
        made.setObjectName("filter.saved.menu")
        made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        made.setToolTipsVisible(True)
        return made

    def _add_row_commands(self, menu: QMenu, number: int) -> None:
        menu.addAction(tr("Rename…"), lambda: self.ask_name(number))
        replace = menu.addAction(tr("Replace by the filter in the field"), lambda: self.replace(number))
        replace.setEnabled(bool(self.current().strip()))
        menu.addAction(tr("Delete"), lambda: self.delete(number))

    # ---- editing -----------------------------------------------------------------------------------------------------

    def ask_name(self, number: int | None = None) -> QInputDialog | None:
        """Ask for the name of a new button, or for another name of button ``number``."""
        if number is None and not self.current().strip():
            return None
        dialog = QInputDialog(self)
        dialog.setObjectName("filter.name")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(tr("Save the filter") if number is None else tr("Rename the filter"))
        dialog.setLabelText(tr("Name of the button"))
        dialog.setTextValue(self.current()[:24] if number is None else self.saved[number][0])
        dialog.textValueSelected.connect(lambda name: self.save(name) if number is None else self.rename(number, name))
        dialog.open()
        return dialog

    def save(self, name: str) -> None:
        """A new button for the filter in the field; one with the same name is replaced."""
        text, name = self.current().strip(), name.strip()
        if text and name:
            self._edit([*(item for item in self.saved if item[0] != name), (name, text)])

    def rename(self, number: int, name: str) -> None:
        """Another name."""
        if name.strip() and 0 <= number < len(self.saved):
            self._edit([(name.strip(), text) if n == number else (old, text)
                        for n, (old, text) in enumerate(self.saved)])  # fmt: skip

    def replace(self, number: int) -> None:
        """The filter in the field under the name of button ``number``."""
        text = self.current().strip()
        if text and 0 <= number < len(self.saved):
            self._edit([(name, text) if n == number else (name, old) for n, (name, old) in enumerate(self.saved)])

    def delete(self, number: int) -> None:
        """One button less."""
        self._edit([item for n, item in enumerate(self.saved) if n != number])

    def _edit(self, saved: Saved) -> None:
        self.show_saved(saved)
        self.changed.emit(self.saved)

    # ---- room --------------------------------------------------------------------------------------------------------

    def set_room(self, room: int) -> None:
        """At most ``room`` px for all buttons."""
        self._room = room
        self._fit()

    def _fit(self) -> None:
        left = self._room - self.more.sizeHint().width()
        for button in self._buttons:
            left -= button.sizeHint().width() + px(GAP)
            button.setVisible(left >= 0)
        self.setVisible(self._room > 0)
