"""The data inspector: the bytes at the cursor as every type, big endian (as a store is written) and little endian."""

from __future__ import annotations

from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from viewer.assets import tr, words
from viewer.models.byte_values import Reading, readings
from viewer.models.columns import Column, RecordKind, text_column
from viewer.theme import mono, px, theme
from viewer.widgets.kit import PaneHead
from viewer.widgets.record_view import RecordView

KIND = RecordKind(
    "reading",
    (
        text_column("name", words("Type"), 76, tone=lambda _: "text2"),
        Column("value", words("Value"), 160, lambda r: r.value, lambda r: r.value, mono=True, elide="middle",
               tip=lambda r: f"{r.value}\n{r.note}".strip()),
    ),
    record=lambda r: {"type": r.name, "value": r.value},
)  # fmt: skip
AT_CURSOR = 16
"""Bytes from the cursor on that are read."""


class DataInspector(QWidget):
    """``show_bytes`` as the cursor moves. Rows are copied like those of every table."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("unit.inspector")
        self.head = PaneHead(tr("Data inspector"))
        self.table = RecordView("inspector.table", KIND)
        self.table.setAccessibleName(tr("The bytes at the cursor as every type"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.head)
        layout.addWidget(self.table, 1)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self._fit()
        theme.changed.connect(self._fit)

    def show_bytes(self, offset: int, data: bytes, selected: bytes) -> None:
        """``data`` begins at ``offset``; ``selected`` are the chosen bytes."""
        self.head.set_note(f"@ {offset:,}")
        found: list[Reading] = readings(data, selected)
        top = self.table.verticalScrollBar().value()
        at = self.table.currentIndex().row()
        self.table.set_rows(list(found))
        if at >= 0:
            self.table.go_to(at)
        self.table.verticalScrollBar().setValue(top)

    def clear(self) -> None:
        """No bytes."""
        self.head.set_note("")
        self.table.set_rows([])

    def _fit(self) -> None:
        widest = QFontMetrics(mono(12)).horizontalAdvance("-9,223,372,036,854,775,808")
        self.setFixedWidth(px(76) + widest + px(34))
