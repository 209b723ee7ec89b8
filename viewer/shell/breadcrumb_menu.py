"""What drops down from a crumb: the places beside it, narrowed down while one types."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.theme import C, mono, px
from viewer.shell.palette_box import rank
from viewer.widgets.basics import Field

MOST = 400
"""Lines that are shown; typing narrows down what is behind them."""
Beside = Sequence[tuple[str, object]]


class CrumbDrop(QWidget):
    """``chosen(place)`` by Enter or a click."""

    chosen = Signal(object)

    def __init__(self, beside: Beside, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("crumb.drop")
        self.setAccessibleName(tr("Places beside this one"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._beside = list(beside)
        self.field = Field(tr("Type to narrow down"), code=True, icon_name="search")
        self.field.setObjectName("crumb.field")
        self.list = QListWidget()
        self.list.setObjectName("crumb.list")
        self.list.setAccessibleName(tr("Places beside this one"))
        self.list.setFont(mono(12))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.itemClicked.connect(self._take)
        self.setStyleSheet(f"#crumb\\.drop {{ background: {C('pane').name()}; border: 1px solid {C('line').name()}; }}")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(6), px(6), px(6), px(6))
        layout.setSpacing(px(4))
        layout.addWidget(self.field)
        layout.addWidget(self.list, 1)
        self.field.textChanged.connect(self._narrow)
        self.field.installEventFilter(self)
        self._narrow("")

    def drop(self, at: QPoint) -> None:
        """Show it at ``at`` (global)."""
        self.resize(px(340), min(px(420), px(60) + px(24) * max(2, len(self._beside))))
        self.move(at)
        self.show()
        self.field.setFocus()

    def _narrow(self, typed: str) -> None:
        ranked = [(found, n, text, place) for n, (text, place) in enumerate(self._beside)
                  if (found := rank(text, typed)) is not None]  # fmt: skip
        self.list.clear()
        for _, _, text, place in sorted(ranked, key=lambda item: item[:2])[:MOST]:
            item = QListWidgetItem(text)
            item.setData(Qt.ItemDataRole.UserRole, place)
            self.list.addItem(item)
        left = len(ranked) - self.list.count()
        if left > 0:
            item = QListWidgetItem(tr("{n:,} more: type to narrow down", n=left))
            item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _take(self, item: QListWidgetItem | None) -> None:
        place = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        if place is not None:
            self.close()
            self.chosen.emit(place)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrows move the choice, Enter takes it, Escape closes."""
        if watched is self.field and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if step is not None:
                self.list.setCurrentRow((self.list.currentRow() + step) % max(1, self.list.count()))
                return True
            if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                self._take(self.list.currentItem())
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.close()
                return True
        return bool(super().eventFilter(watched, event))
