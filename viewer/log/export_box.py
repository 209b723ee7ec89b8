"""The dialog of an export: which rows, in which form, what is masked, where to; it says what will be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QDialog,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from viewer.look.assets import tr, words
from viewer.look.field_words import MASKS
from viewer.look.theme import px
from viewer.pane.exporting import ask_target
from viewer.widgets.basics import Button, Field, Label, row

FORMS = (
    ("jsonl", words("JSON lines: every field"), "jsonl"),
    ("csv", words("CSV: one line a unit"), "csv"),
    ("markdown", words("Markdown table: long cells are cut"), "md"),
    ("raw", words("Raw: the units' bytes, one behind the other"), "bin"),
)


@dataclass(frozen=True, slots=True)
class Scope:
    """Rows that may be exported: a key, what they are in words, and whether there are any."""

    key: str
    text: str
    able: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen."""

    scope: str
    form: str
    target: Path
    body: bool
    masked: tuple[str, ...]
    """Words of ``--mask``."""
    kept: tuple[str, ...] = ()
    """Names of users' properties that stay where ``properties`` are masked."""


class ExportBox(QDialog):
    """``wanted(choice)`` when it is to be done."""

    wanted = Signal(object)

    def __init__(self, scopes: Sequence[Scope], first: str, folder: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("export.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Export units of the log"))
        self.setAccessibleName(tr("Export units of the log"))
        self._folder, self._touched = folder, False
        self._group = QButtonGroup(self)
        self._scopes: dict[str, QRadioButton] = {}
        for scope in scopes:
            button = QRadioButton(scope.text.replace("&", "&&"))
            button.setObjectName(f"export.scope.{scope.key}")
            button.setAccessibleName(scope.text)
            button.setEnabled(scope.able)
            button.setChecked(scope.key == first)
            self._group.addButton(button)
            self._scopes[scope.key] = button
        self.form = QComboBox()
        self.form.setObjectName("export.form")
        self.form.setAccessibleName(tr("Form"))
        for key, text, _suffix in FORMS:
            self.form.addItem(tr(text), key)
        self.body = _tick("export.body", tr("with bodies, as stored (base64)"))
        self.masks = {part: _tick(f"export.mask.{part}", tr(text)) for part, text in MASKS.items()}
        self.keep = Field(tr("Properties that stay, with commas"), code=True)
        self.keep.setObjectName("export.keep")
        self.path = Field(tr("File"), code=True)
        self.path.setObjectName("export.path")
        self.note = Label("", 12, "text3", wrap=True)
        self._lay_out()
        self._formed()

    def _lay_out(self) -> None:
        self.resize(px(560), px(400))
        browse, cancel, go = Button(tr("Choose…")), Button(tr("Cancel"), "flat"), Button(tr("Export"), "primary")
        for button, name in ((browse, "browse"), (cancel, "cancel"), (go, "go")):
            button.setObjectName(f"export.{name}")
        browse.clicked.connect(lambda: ask_target(self, self.path.text(), self._chosen))
        cancel.clicked.connect(self.reject)
        go.clicked.connect(self._go)
        self.form.currentIndexChanged.connect(lambda _n: self._formed())
        self.path.textEdited.connect(lambda _text: setattr(self, "_touched", True))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(8))
        layout.addWidget(Label(tr("Rows"), 13, "text", 600))
        for scope in self._scopes.values():
            layout.addWidget(scope)
        layout.addSpacing(px(4))
        layout.addWidget(row(Label(tr("Form"), 13, "text", 600), self.form, self.body, None))
        first, more = list(self.masks.values())[:4], list(self.masks.values())[4:]
        layout.addWidget(row(Label(tr("Masked"), 13, "text", 600), *first, None))
        layout.addWidget(row(*more, self.keep))
        self.masks["properties"].toggled.connect(lambda _on: self._formed())
        layout.addWidget(row(self.path, browse))
        layout.addWidget(self.note)
        layout.addStretch(1)
        layout.addWidget(row(None, cancel, go))

    def _formed(self) -> None:
        """Another form: the file's ending and what it can hold follow."""
        key, _text, suffix = FORMS[self.form.currentIndex()]
        if not self._touched:
            self.path.setText(str(self._folder / f"units.{suffix}"))
        self.body.setEnabled(key != "raw")
        for tick in self.masks.values():
            tick.setEnabled(key != "raw")
        self.keep.setEnabled(key != "raw" and self.masks["properties"].isChecked())
        said = {
            "jsonl": tr(
                "As storescope units --json prints them; blanks and damage are lines too where all is written."
            ),
            "csv": tr("Units only: blanks and damage are left out."),
            "markdown": tr("Units only. Cells of more than 80 characters are cut, and their number is said."),
            "raw": tr("Nothing is masked: these are the bytes of the store."),
        }
        self.note.setText(said[key])

    def _chosen(self, path: str) -> None:
        self._touched = True
        self.path.setText(path)

    @property
    def choice(self) -> Choice:
        """What is chosen now."""
        scope = next((key for key, button in self._scopes.items() if button.isChecked()), "all")
        key = FORMS[self.form.currentIndex()][0]
        plain = key == "raw"
        return Choice(
            scope,
            key,
            Path(self.path.text()).expanduser(),
            self.body.isChecked() and not plain,
            () if plain else tuple(part for part, tick in self.masks.items() if tick.isChecked()),
            tuple(filter(None, map(str.strip, self.keep.text().split(",")))) if self.keep.isEnabled() else (),
        )

    def _go(self) -> None:
        if self.path.text().strip():
            self.wanted.emit(self.choice)
            self.accept()


def _tick(name: str, text: str) -> QCheckBox:
    made = QCheckBox(text)
    made.setObjectName(name)
    made.setAccessibleName(text)
    return made
