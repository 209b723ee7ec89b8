"""A button that shows the selection and opens a list: a click selects one row, the check boxes select several."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QListWidget, QListWidgetItem, QSizePolicy, QVBoxLayout, QWidget

from viewer.look.assets import tr, tr_plural
from viewer.look.theme import mono, px
from viewer.widgets.basics import Button, Field
from viewer.widgets.choices import draw_chevron

_MIN_FILTERED_ITEMS = 12


class CheckList(Button):
    """Button with a list below it. Emits ``chosen(list of keys)`` when the selection changes.

    Items are (key, text). A click on a row selects only this row; its check box adds it to the selection or removes it.
    """

    chosen = Signal(object)

    def __init__(self, name: str, accessible_name: str, width: int, count_forms: tuple[str, str]) -> None:
        super().__init__("")
        self.setObjectName(name)
        self.setAccessibleName(accessible_name)
        self._width, self._text = width, ""
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setStyleSheet("text-align: left;")
        self._count_forms = count_forms
        self._items: list[tuple[object, str]] = []
        self._keys: list[object] = []
        self._popup: _Popup | None = None
        self.clicked.connect(self.open_list)

    @property
    def keys(self) -> list[object]:
        """The selected keys, in the order of the list."""
        return list(self._keys)

    def set_items(self, items: Sequence[tuple[object, str]], keys: Sequence[object]) -> None:
        """Set the (key, text) items and the selected ``keys``. Emits nothing."""
        self._items = list(items)
        self._keys = [key for key, _ in self._items if key in keys]
        self._show_selection()

    def open_list(self) -> None:
        """Open the list below the button."""
        self._popup = _Popup(self, self._items, self._keys)
        self._popup.itemsChosen.connect(self._select)
        self._popup.open_below(self)

    def _select(self, keys: object) -> None:
        assert isinstance(keys, list)
        chosen_keys = [key for key, _ in self._items if key in keys]
        if chosen_keys != self._keys:
            self._keys = chosen_keys
            self._show_selection()
            self.chosen.emit(list(chosen_keys))

    def _show_selection(self) -> None:
        texts = [text for key, text in self._items if key in self._keys]
        if not texts:
            text = tr("none")
        elif len(texts) == 1:
            text = texts[0]
        else:
            text = tr_plural(*self._count_forms, n=len(texts))
        self._text = text
        self._elide()
        self.setToolTip("\n".join(texts[:40]))
        self.setAccessibleDescription(", ".join(texts[:40]))

    def _elide(self) -> None:
        self.setFont(mono(12))
        room = self.width() - px(46)
        self.setText(self.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideMiddle, room))

    def sizeHint(self) -> QSize:
        """Return the declared width. A narrow window may give less, see :meth:`minimumSizeHint`."""
        return QSize(px(self._width), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(px(64), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        draw_chevron(self)


class _Popup(QFrame):
    """The open list: rows with check boxes, and above a long list a field that filters it."""

    itemsChosen = Signal(object)

    def __init__(self, parent: QWidget, items: Sequence[tuple[object, str]], keys: Sequence[object]) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self._field = Field(tr("Narrow the list"))
        self._list = QListWidget()
        self._list.setAccessibleName(parent.accessibleName())
        box = QVBoxLayout(self)
        box.setContentsMargins(px(6), px(6), px(6), px(6))
        box.addWidget(self._field)
        box.addWidget(self._list)
        self._field.setVisible(len(items) > _MIN_FILTERED_ITEMS)
        for key, text in items:
            item = QListWidgetItem(text)
            item.setFont(mono(12))
            item.setData(Qt.ItemDataRole.UserRole, key)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if key in keys else Qt.CheckState.Unchecked)
            self._list.addItem(item)
            if key in keys and self._list.currentRow() < 0:
                self._list.setCurrentItem(item)
        self._field.textChanged.connect(self._filter_items)
        self._list.itemClicked.connect(self._on_item_clicked)
        self._last_checked_keys = self._checked_keys()

    def open_below(self, button: QWidget) -> None:
        """Show it below ``button`` and focus the filter field, or the list if there is no field."""
        rows = min(self._list.count(), 16)
        height = rows * px(26) + px(22) + (px(32) if self._field.isVisibleTo(self) else 0)
        self.resize(max(button.width(), px(260)), height)
        self.move(button.mapToGlobal(QPoint(0, button.height())))
        self.show()
        (self._field if self._field.isVisibleTo(self) else self._list).setFocus()

    def _checked_keys(self) -> list[object]:
        items = [self._list.item(n) for n in range(self._list.count())]
        return [i.data(Qt.ItemDataRole.UserRole) for i in items if i.checkState() == Qt.CheckState.Checked]

    def _filter_items(self, text: str) -> None:
        for n in range(self._list.count()):
            item = self._list.item(n)
            item.setHidden(text.casefold() not in item.text().casefold())

    def _on_item_clicked(self, item: QListWidgetItem) -> None:
        checked_keys = self._checked_keys()
        if checked_keys == self._last_checked_keys:  # the row was clicked, not its box
            self.itemsChosen.emit([item.data(Qt.ItemDataRole.UserRole)])
            self.close()
            return
        self._last_checked_keys = checked_keys
        self.itemsChosen.emit(checked_keys)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        item = self._list.currentItem()
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and item is not None:
            self.itemsChosen.emit([item.data(Qt.ItemDataRole.UserRole)])
            self.close()
        elif event.key() == Qt.Key.Key_Space and item is not None:
            checked = item.checkState() == Qt.CheckState.Checked
            item.setCheckState(Qt.CheckState.Unchecked if checked else Qt.CheckState.Checked)
            self._last_checked_keys = self._checked_keys()
            self.itemsChosen.emit(self._last_checked_keys)
        else:
            super().keyPressEvent(event)
