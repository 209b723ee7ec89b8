"""The dialog of an export of a table as it stands: in which form, where to."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QDialog, QVBoxLayout, QWidget

from viewer.look.assets import tr, words
from viewer.look.theme import px
from viewer.widgets.basics import Button, Field, Label, row
from viewer.widgets.export_target import ask_target

FORMS = (
    ("jsonl", words("JSON lines: every field")),
    ("csv", words("CSV: one line a row")),
    ("md", words("Markdown table, as it is shown")),
)


class TableExportBox(QDialog):
    """``wanted(path)`` when it is to be done."""

    wanted = Signal(object)

    def __init__(self, name: str, folder: Path, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("export.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Export the table"))
        self.setAccessibleName(tr("Export the table"))
        self._folder, self._stem, self._touched = folder, Path(name).stem, False
        self.form = QComboBox()
        self.form.setObjectName("export.form")
        self.form.setAccessibleName(tr("Form"))
        for suffix, text in FORMS:
            self.form.addItem(tr(text), suffix)
        self.path = Field(tr("File"), code=True)
        self.path.setObjectName("export.path")
        browse, cancel, go = Button(tr("Choose…")), Button(tr("Cancel"), "flat"), Button(tr("Export"), "primary")
        for button, part in ((browse, "browse"), (cancel, "cancel"), (go, "go")):
            button.setObjectName(f"export.{part}")
        browse.clicked.connect(lambda: ask_target(self, self.path.text(), self._chosen))
        cancel.clicked.connect(self.reject)
        go.clicked.connect(self._go)
        self.form.currentIndexChanged.connect(lambda _n: self._formed())
        self.path.textEdited.connect(lambda _text: setattr(self, "_touched", True))
        self.resize(px(560), px(180))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(10))
        layout.addWidget(row(Label(tr("Form"), 13, "text", 600), self.form, None))
        layout.addWidget(row(self.path, browse))
        layout.addStretch(1)
        layout.addWidget(row(None, cancel, go))
        self._formed()

    def _formed(self) -> None:
        suffix = self.form.currentData()
        if not self._touched:
            self.path.setText(str(self._folder / f"{self._stem}.{suffix}"))
        else:
            self.path.setText(str(Path(self.path.text()).with_suffix(f".{suffix}")))

    def _chosen(self, path: str) -> None:
        self._touched = True
        self.path.setText(path)
        at = self.form.findData(Path(path).suffix.removeprefix("."))
        if at >= 0:
            self.form.setCurrentIndex(at)

    def _go(self) -> None:
        if self.path.text().strip():
            self.wanted.emit(Path(self.path.text()).expanduser())
            self.accept()
