"""The data inspector: a table of the bytes at the cursor, decoded as each number, time and text type."""

from __future__ import annotations

from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from viewer.look.assets import tr, words
from viewer.look.theme import follow, mono, px
from viewer.widgets.basics import PaneHead
from viewer.widgets.byte_values import Reading, readings
from viewer.widgets.columns import Column, RecordKind, text_column
from viewer.widgets.record_view import RecordView

KIND = RecordKind(
    "reading",
    (
        text_column("name", words("Type"), 76, tone=lambda _: "text2"),
        Column(
            "value",
            words("Value"),
            160,
            lambda r: r.value,
            lambda r: r.value,
            mono=True,
            elide="middle",
            tip=lambda r: f"{r.value}\n{r.note}".strip(),
        ),
    ),
    record=lambda r: {"type": r.name, "value": r.value},
)
BYTES_FROM_CURSOR = 16
"""Number of bytes, from the cursor on, that the inspector needs."""
QWIDGETSIZE_MAX = (1 << 24) - 1


class DataInspector(QWidget):
    """Shows the bytes given to :meth:`show_bytes`, one row per type. Rows can be copied as in every table."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("unit.inspector")
        self._beside_bytes = True
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
        follow(self, self._fit)

    def show_bytes(self, offset: int, data: bytes, selected: bytes) -> None:
        """Decode ``data``, which begins at ``offset``. ``selected`` are the selected bytes."""
        self.head.set_note(f"@ {offset:,}")
        rows: list[Reading] = readings(data, selected)
        top = self.table.verticalScrollBar().value()
        row = self.table.currentIndex().row()
        self.table.set_rows(list(rows))
        if row >= 0:
            self.table.go_to(row)
        self.table.verticalScrollBar().setValue(top)

    def clear(self) -> None:
        """Show no bytes."""
        self.head.set_note("")
        self.table.set_rows([])

    def full_width(self) -> int:
        """Return the width in px at which the longest number fits."""
        widest = QFontMetrics(mono(12)).horizontalAdvance("-9,223,372,036,854,775,808")
        return px(76) + widest + px(34)

    def set_beside_bytes(self, beside_bytes: bool) -> None:
        """Set where the inspector is: beside the bytes with a fixed width, or below the tree with the tree's width."""
        self._beside_bytes = beside_bytes
        self._fit()

    def _fit(self) -> None:
        if self._beside_bytes:
            self.setFixedWidth(self.full_width())
        else:
            self.setMinimumWidth(0)
            self.setMaximumWidth(QWIDGETSIZE_MAX)
