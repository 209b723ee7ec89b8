"""The filter line: a filter with completion, its error below the wrong word, and saved filters.

A green edge means that the rows are those of this text, a red one that it is invalid; then the rows of the last valid
filter stay. Saved filters are buttons behind the field: a click applies one, its menu renames, replaces or deletes it.
Buttons that do not fit are in the menu of the last button.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QAction, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QInputDialog,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine.errors import BadFilter
from viewer.look.assets import tr, words
from viewer.look.theme import C, follow, mono, px, scale, ui
from viewer.widgets.basics import Button, Field, Key, icon

if TYPE_CHECKING:
    from engine.query import Completion


Values = Callable[[str], Iterable[str]]
NARROW = 1120
ROOM = 760
"""Minimum width of the field in px at 100 %, before buttons are shown."""
MAX_SUGGESTIONS = 9


class FilterLine(QWidget):
    """Emits ``applied(text)`` on Enter or for a saved filter ("" shows all rows), ``edited(is_valid)`` while typing."""

    applied = Signal(str)
    edited = Signal(bool)

    def __init__(
        self,
        values: Values | None = None,
        meaning: Callable[[str], str] = lambda text: text,
        used: Callable[[], Sequence[str]] = tuple,
        parent: QWidget | None = None,
    ) -> None:
        """Make the line.

        Args:
            values: returns the values that a field has in the store, to complete them.
            meaning: returns the filter that the text of a saved button stands for.
            used: returns filters used before, newest first. Up and Down leaf through them.
            parent: the widget around it.
        """
        super().__init__(parent)
        self.setObjectName("filter.line")
        self._values, self._meaning, self._used = values, meaning, used
        self.field = Field(tr('Filter: topic = "Orders" and keys contains "42"'), code=True, icon_name="filter")
        self.field.setObjectName("filter.field")
        self.field.setAccessibleName(tr("Filter"))
        self._clear = QAction(self.field)
        self._clear.setToolTip(tr("Clear the filter"))
        self._clear.triggered.connect(lambda: self.apply(""))
        self._clear.setVisible(False)
        self.field.addAction(self._clear, QLineEdit.ActionPosition.TrailingPosition)
        self.field.textEdited.connect(self._edited)
        self.field.textChanged.connect(self._changed)
        self.field.installEventFilter(self)
        self._key = Key("Ctrl L")
        self.pills = FilterPills(self.text)
        self.pills.chosen.connect(self._saved_chosen)
        self._leaf = -1
        self._fault = _Fault(self.field)
        self._offers = _Offers(self)
        self._offers.chosen.connect(self._take)
        self._in_force = ""
        self._line = QHBoxLayout()
        self._line.setSpacing(8)
        self._line.addWidget(self.field, 1)
        self._line.addWidget(self._key)
        self._line.addWidget(self.pills)
        box = self._lines = QVBoxLayout(self)
        box.setSpacing(0)
        box.addLayout(self._line)
        box.addWidget(self._fault)
        self._fault.hide()
        self._fit()
        follow(self, self._fit)

    def _saved_chosen(self, text: str) -> None:
        self.apply(self._meaning(text))

    def prepare(self, text: str) -> None:
        """Put ``text`` into the field, checked but not applied, and go there."""
        blocked = self.field.blockSignals(True)
        self.set_text(text)
        self.field.blockSignals(blocked)
        self._clear.setVisible(bool(text))
        self.check()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @property
    def in_force(self) -> str:
        """The filter whose rows are shown; "" for none."""
        return self._in_force

    def text(self) -> str:
        """Text of the field."""
        return self.field.text()

    def set_text(self, text: str) -> None:
        """Put ``text`` into the field without applying it."""
        self.field.setText(text)
        self.field.setCursorPosition(len(text))

    def apply(self, text: str | None = None) -> bool:
        """Apply ``text``, or the text of the field. Return False if it is invalid."""
        if text is not None:
            blocked = self.field.blockSignals(True)
            self.set_text(text)
            self.field.blockSignals(blocked)
            self._clear.setVisible(bool(text))
        self._offers.hide()
        if not self.check():
            return False
        self._in_force, self._leaf = self.text().strip(), -1
        self._mark("ok" if self._in_force else "")
        self.applied.emit(self._in_force)
        return True

    def check(self) -> bool:
        """Return whether the text can be understood; shows the fault under its word if not."""
        try:
            if self.text().strip():
                from engine.query import parse

                parse(self.text())
        except BadFilter as wrong:
            self._fault.show_fault(wrong.what, wrong.at, wrong.length)
            self._mark("error")
            return False
        self._fault.show_fault("", 0, 0)
        self._mark("ok" if self.text().strip() and self.text().strip() == self._in_force else "")
        return True

    @property
    def fault(self) -> str:
        """The complaint that is shown; "" for none."""
        return self._fault.words

    def focus(self) -> None:
        """Go to the field with everything selected."""
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    # ---- below -------------------------------------------------------------------------------------------------------

    def _edited(self, _text: str) -> None:
        good = self.check()
        self._offer()
        if not good and self._offers.isVisible() and self._fault.ends_at(self.field.cursorPosition()):
            self._fault.show_fault("", 0, 0)  # the word is still being typed, and what it may become is offered
            self._mark("")
        self.edited.emit(good)

    def _changed(self, text: str) -> None:
        self._clear.setVisible(bool(text))
        if not text and self._in_force:
            self.apply("")

    def _mark(self, state: str) -> None:
        if self.field.property("state") != state:
            self.field.setProperty("state", state)
            self.field.style().unpolish(self.field)
            self.field.style().polish(self.field)

    def _offer(self) -> None:
        from engine.query import complete

        cursor = self.field.cursorPosition()
        offers = complete(self.text(), cursor, self._values, MAX_SUGGESTIONS) if self.text() else []
        typed = self.text()[:cursor]
        offers = [offer for offer in offers if self.text()[offer.start : offer.end] != offer.text]
        if not offers or not typed.strip():
            self._offers.hide()
            return
        x = self.field.cursorRect().left() if offers[0].start == cursor else _text_x(self.field, offers[0].start)
        self._offers.show_offers(offers, self.field.mapToGlobal(QPoint(x, self.field.height() + 2)))

    def _take(self, offer: Completion) -> None:
        text = self.text()
        added = offer.text + ("" if offer.text.endswith((".", "(", "/")) else " ")
        text_after = text[offer.end :].lstrip() if added.endswith(" ") else text[offer.end :]
        self.field.setText(text[: offer.start] + added + text_after)
        self.field.setCursorPosition(offer.start + len(added))
        self.check()
        self._offer()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field:
            if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
                return self._key_pressed(event)
            if event.type() in {QEvent.Type.FocusOut, QEvent.Type.Hide}:
                self._offers.hide()
        return bool(super().eventFilter(watched, event))

    def _key_pressed(self, event: QKeyEvent) -> bool:
        key = event.key()
        if self._offers.isVisible():
            if key in {Qt.Key.Key_Down, Qt.Key.Key_Up}:
                self._offers.step(1 if key == Qt.Key.Key_Down else -1)
                return True
            if key == Qt.Key.Key_Tab or (key in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self._offers.picked):
                self._offers.take()
                return True
            if key == Qt.Key.Key_Escape:
                self._offers.hide()
                return True
        elif key == Qt.Key.Key_Space and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._offer()
            return True
        elif key in {Qt.Key.Key_Up, Qt.Key.Key_Down}:
            self._leaf_through(1 if key == Qt.Key.Key_Up else -1)
            return True
        elif key == Qt.Key.Key_Escape and self.text() != self._in_force:
            self.set_text(self._in_force)
            self.check()
            return True
        if key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.apply()
            return True
        return False

    def _leaf_through(self, step: int) -> None:
        """Show an older or a newer of the filters used before. The current filter comes after the newest one."""
        used = [text for text in self._used() if text != self._in_force]
        self._leaf = max(-1, min(len(used) - 1, self._leaf + step))
        self.set_text(used[self._leaf] if self._leaf >= 0 else self._in_force)
        self.check()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.pills.set_room(self.width() - px(ROOM) if self.width() >= NARROW * scale() else 1)

    def _fit(self) -> None:
        self.setMinimumHeight(px(40))
        self.field.setFixedHeight(px(28))
        self._clear.setIcon(icon("close", "text3", 16))
        self._lines.setContentsMargins(px(12), px(6), px(10), px(6))

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(self.rect(), C("pane"))
        p.fillRect(QRect(0, self.height() - 1, self.width(), 1), C("hair"))


def _text_x(field: QLineEdit, position: int) -> int:
    """Left edge of the character at ``position`` in the field's coordinates."""
    cursor = field.cursorRect().center().x()
    metrics = QFontMetrics(field.font())
    now = metrics.horizontalAdvance(field.text()[: field.cursorPosition()])
    return cursor + metrics.horizontalAdvance(field.text()[:position]) - now


class _Fault(QWidget):
    """``^^^^  no field “sise”; did you mean size?``, each mark under its letter."""

    def __init__(self, field: QLineEdit) -> None:
        super().__init__()
        self.setObjectName("filter.fault")
        self._field = field
        self.words = ""
        self._at = (0, 0)

    def show_fault(self, words: str, position: int, length: int) -> None:
        """Show the complaint under the characters ``position`` …; an empty one hides it."""
        self.words, self._at = words, (position, max(1, length))
        self.setAccessibleName(words)
        self.setFixedHeight(px(22))
        self.setVisible(bool(words))
        self.update()

    def ends_at(self, position: int) -> bool:
        """Return whether the faulty word ends at this character."""
        return bool(self.words) and sum(self._at) == position

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        position, length = self._at
        left_x = _text_x(self._field, position) + self._field.x() - self.x()
        p.setFont(mono(12))
        p.setPen(C("error"))
        metrics = QFontMetrics(p.font())
        carets = "^" * min(length, 60)
        text_width = QFontMetrics(ui(12)).horizontalAdvance(self.words) + px(10)
        if left_x + metrics.horizontalAdvance(carets) + text_width > self.width() and left_x > text_width:
            words = QRect(0, 0, left_x - px(8), self.height())
            align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        else:
            words = QRect(left_x + metrics.horizontalAdvance(carets) + px(8), 0, self.width(), self.height())
            align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        p.drawText(QRect(left_x, 0, self.width(), self.height()), Qt.AlignmentFlag.AlignVCenter, carets)
        p.setFont(ui(12))
        p.drawText(words, int(align), self.words)


class _Offers(QListWidget):
    """List of completions below the word; never takes the focus."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowFlags(Qt.WindowType.ToolTip | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setObjectName("filter.offers")
        self.setAccessibleName(tr("Suggestions"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.picked = False
        self.itemClicked.connect(lambda _item: self.take())

    def show_offers(self, offers: Sequence[Completion], global_position: QPoint) -> None:
        """Show ``offers`` at ``global_position`` (global)."""
        self.clear()
        self.picked = False
        self.setFont(mono(12))
        self.setStyleSheet(
            f"QListWidget {{ background: {C('pane').name()}; border: 1px solid {C('line').name()}; padding: 4px; }}"
            f"QListWidget::item {{ color: {C('text').name()}; padding: 2px 6px; border-radius: 4px; }}"
            f"QListWidget::item:selected {{ background: {C('select').name()}; }}"
        )
        widest = max(len(offer.text) for offer in offers)
        for offer in offers:
            about = tr(offer.about) if offer.about else ""
            item = QListWidgetItem(f"{offer.text.ljust(widest + 2)}{about}")
            item.setData(Qt.ItemDataRole.UserRole, offer)
            self.addItem(item)
        self.setCurrentRow(0)
        row = max(self.sizeHintForRow(0), px(20))
        self.resize(max(px(180), self.sizeHintForColumn(0) + px(24)), row * len(offers) + 12)
        self.move(global_position)
        self.show()

    def step(self, by: int) -> None:
        """Move the selection; from now on Enter inserts it."""
        self.setCurrentRow((self.currentRow() + by) % max(1, self.count()) if self.picked or by < 0 else 0)
        self.picked = True

    def take(self) -> None:
        """Put the chosen offer into the text."""
        item = self.currentItem()
        if item is not None:
            self.chosen.emit(item.data(Qt.ItemDataRole.UserRole))


LAST_MINUTES = "last:5m"
"""Placeholder for a filter on the last five minutes of the log; the pane computes its times."""
FIRST = (
    (words("CRC bad"), 'crc = "bad"'),
    (words("Transactions"), "transaction is not null"),
    (words("Retries"), "retry or reconsumeTimes > 0"),
    (words("last 5 min"), LAST_MINUTES),
)
"""Buttons before the user has saved any filter."""
GAP = 8
Saved = Sequence[tuple[str, str]]


class FilterPills(QWidget):
    """``chosen(text)`` when a filter is to be applied, ``changed(list)`` when the list was edited."""

    chosen = Signal(str)
    changed = Signal(object)

    def __init__(self, current: Callable[[], str] = str, parent: QWidget | None = None) -> None:
        """``current`` returns the filter to save under a new name."""
        super().__init__(parent)
        self.setObjectName("filter.saved")
        self._current = current
        self.saved: list[tuple[str, str]] = [(tr(name), text) for name, text in FIRST]
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
        button = Button(name.replace("&", "&&"), "pill")
        button.setObjectName(f"filter.saved.{number}")
        button.setAccessibleName(name)
        button.setToolTip(text if text != LAST_MINUTES else tr("The last five minutes of the log"))
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(lambda: self.chosen.emit(text))
        button.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        button.customContextMenuRequested.connect(lambda point: self._menu_of(number).popup(button.mapToGlobal(point)))
        return button

    # ---- menus -------------------------------------------------------------------------------------------------------

    def menu(self) -> QMenu:
        """All saved filters, and what can be done with each."""
        menu = self._new_menu()
        for number, (name, text) in enumerate(self.saved):
            menu.addAction(name.replace("&", "&&"), partial(self.chosen.emit, text)).setToolTip(text)
            if number >= len(self.saved) - 1:
                menu.addSeparator()
        keep = menu.addAction(tr("Save the filter as a button…"), self.ask_name)
        keep.setEnabled(bool(self._current().strip()))
        for number, (name, _text) in enumerate(self.saved):
            below = menu.addMenu(tr("Change {name}", name=name.replace("&", "&&")))
            self._add_row_commands(below, number)
        return menu

    def _menu_of(self, number: int) -> QMenu:
        menu = self._new_menu()
        self._add_row_commands(menu, number)
        return menu

    def _new_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setObjectName("filter.saved.menu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setToolTipsVisible(True)
        return menu

    def _add_row_commands(self, menu: QMenu, number: int) -> None:
        menu.addAction(tr("Rename…"), lambda: self.ask_name(number))
        replace = menu.addAction(tr("Replace by the filter in the field"), lambda: self.replace(number))
        replace.setEnabled(bool(self._current().strip()))
        menu.addAction(tr("Delete"), lambda: self.delete(number))

    # ---- editing -----------------------------------------------------------------------------------------------------

    def ask_name(self, number: int | None = None) -> QInputDialog | None:
        """Ask for the name of a new button, or for another name of button ``number``."""
        if number is None and not self._current().strip():
            return None
        dialog = QInputDialog(self)
        dialog.setObjectName("filter.name")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(tr("Save the filter") if number is None else tr("Rename the filter"))
        dialog.setLabelText(tr("Name of the button"))
        dialog.setTextValue(self._current()[:24] if number is None else self.saved[number][0])
        dialog.textValueSelected.connect(lambda name: self.save(name) if number is None else self.rename(number, name))
        dialog.open()
        return dialog

    def save(self, name: str) -> None:
        """A new button for the filter in the field; one with the same name is replaced."""
        text, name = self._current().strip(), name.strip()
        if text and name:
            self._edit([*(item for item in self.saved if item[0] != name), (name, text)])

    def rename(self, number: int, name: str) -> None:
        """Another name."""
        if name.strip() and 0 <= number < len(self.saved):
            self._edit(
                [(name.strip(), text) if n == number else (old, text) for n, (old, text) in enumerate(self.saved)]
            )

    def replace(self, number: int) -> None:
        """The filter in the field under the name of button ``number``."""
        text = self._current().strip()
        if text and 0 <= number < len(self.saved):
            self._edit([(name, text) if n == number else (name, old) for n, (name, old) in enumerate(self.saved)])

    def delete(self, number: int) -> None:
        """Delete a button."""
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
        room_left = self._room - self.more.sizeHint().width()
        for button in self._buttons:
            room_left -= button.sizeHint().width() + px(GAP)
            button.setVisible(room_left >= 0)
        self.setVisible(self._room > 0)
