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

_LONG_LIST = 12


class CheckList(Button):
    """``chosen(list of keys)`` when the choice changed. Keys are any values; their texts are shown as they are.

    A click on a row chooses it alone; its box adds it to the choice or takes it away.
    """

    chosen = Signal(object)

    def __init__(self, name: str, accessible: str, width: int, counted: tuple[str, str]) -> None:
        super().__init__("")
        self.setObjectName(name)
        self.setAccessibleName(accessible)
        self._width, self._words = width, ""
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setStyleSheet("text-align: left;")
        self._counted = counted
        self._all: list[tuple[object, str]] = []
        self._keys: list[object] = []
        self._popup: _Popup | None = None
        self.clicked.connect(self.open_list)

    @property
    def keys(self) -> list[object]:
        """The chosen keys, in the order of the list."""
        return list(self._keys)

    def set_items(self, items: Sequence[tuple[object, str]], keys: Sequence[object]) -> None:
        """Offer these (key, text), with ``keys`` chosen; nothing is emitted."""
        self._all = list(items)
        self._keys = [key for key, _ in self._all if key in keys]
        self._say()

    def open_list(self) -> None:
        """Open the list below the button."""
        self._popup = _Popup(self, self._all, self._keys)
        self._popup.itemsChosen.connect(self._take)
        self._popup.open_below(self)

    def _take(self, keys: object) -> None:
        assert isinstance(keys, list)
        chosen_keys = [key for key, _ in self._all if key in keys]
        if chosen_keys != self._keys:
            self._keys = chosen_keys
            self._say()
            self.chosen.emit(list(chosen_keys))

    def _say(self) -> None:
        texts = [text for key, text in self._all if key in self._keys]
        if not texts:
            words = tr("none")
        elif len(texts) == 1:
            words = texts[0]
        else:
            words = tr_plural(*self._counted, n=len(texts))
        self._words = words
        self._elide()
        self.setToolTip("\n".join(texts[:40]))
        self.setAccessibleDescription(", ".join(texts[:40]))

    def _elide(self) -> None:
        self.setFont(mono(12))
        room = self.width() - px(46)
        self.setText(self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideMiddle, room))

    def sizeHint(self) -> QSize:
        """The declared width; half a screen has less room."""
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
    """The list itself: a field to narrow it where it is long, and the rows with their boxes."""

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
        self._field.setVisible(len(items) > _LONG_LIST)
        for key, text in items:
            item = QListWidgetItem(text)
            item.setFont(mono(12))
            item.setData(Qt.ItemDataRole.UserRole, key)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if key in keys else Qt.CheckState.Unchecked)
            self._list.addItem(item)
            if key in keys and self._list.currentRow() < 0:
                self._list.setCurrentItem(item)
        self._field.textChanged.connect(self._narrow)
        self._list.itemClicked.connect(self._clicked)
        self._before = self._checked()

    def open_below(self, button: QWidget) -> None:
        """Show it under ``button``, the keyboard in the list."""
        rows = min(self._list.count(), 16)
        height = rows * px(26) + px(22) + (px(32) if self._field.isVisibleTo(self) else 0)
        self.resize(max(button.width(), px(260)), height)
        self.move(button.mapToGlobal(QPoint(0, button.height())))
        self.show()
        (self._field if self._field.isVisibleTo(self) else self._list).setFocus()

    def _checked(self) -> list[object]:
        items = [self._list.item(n) for n in range(self._list.count())]
        return [i.data(Qt.ItemDataRole.UserRole) for i in items if i.checkState() == Qt.CheckState.Checked]

    def _narrow(self, text: str) -> None:
        for n in range(self._list.count()):
            item = self._list.item(n)
            item.setHidden(text.casefold() not in item.text().casefold())

    def _clicked(self, item: QListWidgetItem) -> None:
        now = self._checked()
        if now == self._before:  # the row was clicked, not its box
            self.itemsChosen.emit([item.data(Qt.ItemDataRole.UserRole)])
            self.close()
            return
        self._before = now
        self.itemsChosen.emit(now)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        item = self._list.currentItem()
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and item is not None:
            self.itemsChosen.emit([item.data(Qt.ItemDataRole.UserRole)])
            self.close()
        elif event.key() == Qt.Key.Key_Space and item is not None:
            checked = item.checkState() == Qt.CheckState.Checked
            item.setCheckState(Qt.CheckState.Unchecked if checked else Qt.CheckState.Checked)
            self._before = self._checked()
            self.itemsChosen.emit(self._before)
        else:
            super().keyPressEvent(event)
