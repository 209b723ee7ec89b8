"""The dialog that makes a lab store: a folder, a preset, and every value with its range and meaning."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QComboBox, QDialog, QFileDialog, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from engine.config import MessageStoreConfig
from engine.errors import UsageError
from viewer.assets import tr
from viewer.models.config_rows import ConfigRow, changed, config_rows, differences, row_kind
from viewer.theme import px
from viewer.widgets.kit import Button, Elided, Field, Hairline, Label, Mark, column, row
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.runner import Runner, run_here

if TYPE_CHECKING:
    from engine.lab.presets import Preset

LIKES = (("5.3", "RocketMQ 5.3.3"), ("4.9", "RocketMQ 4.9.8"))
NAME = re.compile(r"[\w][\w.\-]{0,63}")


class CreateDialog(QDialog):
    """``made(folder, config, like)`` when the store shall be made: a folder that is not there yet."""

    made = Signal(object, object, str)

    def __init__(self, parent: QWidget, folder: Path, name: str = "lab-1", runner: Runner = run_here) -> None:
        super().__init__(parent)
        self._runner = runner
        self._taken: Path | None = None
        self._over = False
        self.setObjectName("lab.create.dialog")
        self.setWindowTitle(tr("Make a lab store"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.config = MessageStoreConfig()
        self.like = "5.3"
        self._presets: list[Button] = []
        self._build_head(folder, name)
        self._build_table()
        self.create_button = Button(tr("Make the store"), "primary")
        self.create_button.setObjectName("lab.create.make")
        self.create_button.setDefault(True)
        self.create_button.clicked.connect(self._make)
        cancel = Button(tr("Cancel"))
        cancel.setObjectName("lab.create.cancel")
        cancel.clicked.connect(self.reject)
        self._summary = Elided("", 12, "text2")
        self._summary.setObjectName("lab.create.summary")
        box = QVBoxLayout(self)
        box.setContentsMargins(px(20), px(16), px(20), px(14))
        box.setSpacing(px(10))
        box.addWidget(
            column(
                Label(tr("Make a lab store"), 18, "text", 600),
                Label(tr("A real store directory of its own, written by this program's engine. Only lab stores can "
                         "have their plug pulled."), 12, "text2", wrap=True),
                gap=2,
            )
        )  # fmt: skip
        box.addWidget(self._place)
        box.addWidget(self._choices)
        box.addWidget(self._preset_words)
        box.addWidget(self._table_box, 1)
        box.addWidget(row(self._summary, None, cancel, self.create_button, gap=8))
        self.resize(px(1040), px(640))
        self._choose_preset(0)

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build_head(self, folder: Path, name: str) -> None:
        self.name = Field(tr("Name"), code=True, width=200)
        self.name.setObjectName("lab.create.name")
        self.name.setText(name)
        self.name.textChanged.connect(lambda _text: self._look())
        self.folder = Field(tr("Folder"), code=True)
        self.folder.setObjectName("lab.create.folder")
        self.folder.setText(str(folder))
        self.folder.textChanged.connect(lambda _text: self._look())
        pick = Button(tr("Choose…"))
        pick.setObjectName("lab.create.choose")
        pick.clicked.connect(self._pick_folder)
        self._place = row(Label(tr("Name"), 12, "text2"), self.name, 8, Label(tr("in"), 12, "text2"), self.folder, pick)
        self._fault = Label("", 12, "error")
        self._fault.hide()
        parts: list[QWidget | int | None] = [Label(tr("Preset"), 12, "text2")]
        for number, preset in enumerate(_presets()):
            button = Button(tr(preset.name), "pill")
            button.setObjectName(f"lab.create.preset.{number}")
            button.setCheckable(True)
            button.clicked.connect(lambda _on=False, number=number: self._choose_preset(number))
            self._presets.append(button)
            parts.append(button)
        parts += [16, Label(tr("Like"), 12, "text2")]
        self._likes = []
        for like, said in LIKES:
            button = Button(said, "pill")
            button.setObjectName(f"lab.create.like.{like}")
            button.setCheckable(True)
            button.clicked.connect(lambda _on=False, like=like: self._choose_like(like))
            self._likes.append((like, button))
            parts.append(button)
        self._choices = row(*parts, None, self._fault, gap=6)
        self._preset_words = Label("", 12, "text3", wrap=True)
        self._choose_like("5.3")

    def _build_table(self) -> None:
        self.search = Field(tr("Search names and meanings"), width=280, icon_name="search")
        self.search.setObjectName("lab.create.search")
        self.search.textChanged.connect(lambda _text: self._show_rows())
        self.table = RecordView("lab.create.values", row_kind())
        self.table.setAccessibleName(tr("Configuration values"))
        self.table.rowChosen.connect(self._row_chosen)
        self._key = Label("", 12, "text", 600, code=True)
        self._key.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.value = Field(tr("Value"), code=True, width=220)
        self.value.setObjectName("lab.create.value")
        self.value.textEdited.connect(lambda _text: self._try())
        self.choice = QComboBox()
        self.choice.setObjectName("lab.create.choice")
        self.choice.setAccessibleName(tr("Value"))
        self.choice.activated.connect(lambda _n: self._try())
        self._editor = QStackedWidget()
        self._editor.addWidget(self.value)
        self._editor.addWidget(self.choice)
        self._editor.setFixedSize(px(224), px(30))
        self._note = Elided("", 12, "text3")
        self._note_mark = Mark("")
        self.reset = Button(tr("Default"), "flat")
        self.reset.setObjectName("lab.create.default")
        self.reset.clicked.connect(self._take_default)
        editor = row(self._key, self._editor, self.reset, self._note_mark, self._note, gap=8)
        editor.layout().setStretch(4, 1)
        self._table_box = column(
            row(self.search, None, gap=8), Hairline(), self.table, self.table.strip, Hairline(), editor, gap=6
        )
        self._table_box.layout().setStretch(2, 1)

    # ---- choosing ----------------------------------------------------------------------------------------------------

    def _choose_preset(self, number: int) -> None:
        presets = _presets()
        for at, button in enumerate(self._presets):
            button.setChecked(at == number)
        self.config = presets[number].config
        self._preset_words.setText(tr(presets[number].words))
        self._show_rows()

    def _choose_like(self, like: str) -> None:
        self.like = like
        for name, button in self._likes:
            button.setChecked(name == like)

    def _pick_folder(self) -> None:
        dialog = QFileDialog(self, tr("Folder of lab stores"), self.folder.text())
        dialog.setObjectName("lab.create.pick")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.folder.setText)
        dialog.open()

    # ---- the values --------------------------------------------------------------------------------------------------

    def _show_rows(self) -> None:
        chosen = self.table.current_row()
        rows = config_rows(self.config, self.search.text())
        self.table.set_rows(list(rows))
        self.table.set_state(None if rows else State("empty", tr("No value has these words.")))
        keys = [one.key for one in rows]
        if rows:
            self.table.go_to_row(keys.index(chosen.key) if chosen is not None and chosen.key in keys else 0)
        self._row_chosen(self.table.current_row())
        self._check()

    def _row_chosen(self, chosen: ConfigRow | None) -> None:
        for part in (self._editor, self.reset):
            part.setEnabled(chosen is not None and not chosen.fixed)
        self.value.setProperty("state", "")
        self._key.setText(chosen.key if chosen is not None else "")
        if chosen is None:
            self._say("", "")
            return
        if chosen.choices:
            self.choice.clear()
            self.choice.addItems(list(chosen.choices))
            self.choice.setCurrentText(chosen.text)
            self.choice.setAccessibleName(chosen.key)
            self._editor.setCurrentWidget(self.choice)
        else:
            self.value.setText(chosen.text)
            self.value.setAccessibleName(chosen.key)
            self._editor.setCurrentWidget(self.value)
        fixed = tr("a lab store keeps its files below its own folder, in the default form")
        self._say("", fixed if chosen.fixed else f"{chosen.span} {chosen.unit}".strip() + f" · {chosen.meaning}")

    def set_value(self, key: str, text: str) -> bool:
        """Give the value ``key`` another text; False where it is not permitted, and the line below says why."""
        try:
            self.config = changed(self.config, key, text)
        except UsageError as error:
            self._say("error", error.what)
            return False
        self._refresh()
        return True

    def _try(self) -> None:
        chosen = self.table.current_row()
        if chosen is None:
            return
        text = self.choice.currentText() if chosen.choices else self.value.text()
        try:
            self.config = changed(self.config, chosen.key, text)
        except UsageError as error:
            self._say("error", error.what)
            self.value.setProperty("state", "error")
        else:
            self._say("ok" if text.strip() != chosen.default else "", f"{chosen.span} {chosen.unit}".strip())
            self.value.setProperty("state", "")
            self._refresh()
        self.value.style().unpolish(self.value)
        self.value.style().polish(self.value)
        self._check()

    def _refresh(self) -> None:
        """New values in the rows; the chosen one and what is typed stay."""
        at = self.table.currentIndex().row()
        self.table.blockSignals(True)
        self.table.set_rows(list(config_rows(self.config, self.search.text())))
        if at >= 0:
            self.table.go_to_row(at)
        self.table.blockSignals(False)
        self._check()

    def _take_default(self) -> None:
        chosen = self.table.current_row()
        if chosen is not None and self.set_value(chosen.key, chosen.default):
            self._row_chosen(self.table.current_row())
            self._check()

    def _say(self, kind: str, said: str) -> None:
        self._note_mark.set_kind(kind)
        self._note.set_role("error" if kind == "error" else "text3")
        self._note.setText(said)
        self._note.setAccessibleName(said)

    # ---- making ------------------------------------------------------------------------------------------------------

    @property
    def target(self) -> Path:
        """The folder that would be made."""
        return Path(self.folder.text()).expanduser() / self.name.text().strip()

    def fault(self) -> str:
        """Why the store cannot be made like this; empty where it can."""
        if not NAME.fullmatch(self.name.text().strip()):
            return tr("A name has letters, figures, dot, hyphen and underline.")
        if not self.folder.text().strip():
            return tr("A folder is needed.")
        if self.target == self._taken:
            return tr("There is a {name} in this folder already.", name=self.name.text().strip())
        if self.value.property("state") == "error":
            return tr("A value is not permitted; see the line below.")
        return ""

    def _look(self) -> None:
        """Whether something is there already: asked of the disk, off the loop."""
        target = self.target

        def done(there: object) -> None:
            if not self._over:
                self._taken = target if there else self._taken
                self._check()

        self._check()
        self._runner(target.exists, done, done)

    def done(self, result: int) -> None:
        """It was answered: what still comes back finds nobody."""
        self._over = True
        super().done(result)

    def _check(self) -> None:
        said = self.fault()
        self._fault.setText(said)
        self._fault.setVisible(bool(said))
        self.create_button.setEnabled(not said)
        own = differences(self.config)
        names = ", ".join(f"{one.key}={one.text}" for one in own)
        text = tr("{n} values differ from RocketMQ's defaults", n=len(own)) if own else tr("RocketMQ's defaults")
        self._summary.setText(f"{text}: {names}" if own else text)

    def _make(self) -> None:
        if not self.fault():
            self.made.emit(self.target, self.config, self.like)
            self.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter in a field makes the store only where the button has the focus."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not isinstance(self.focusWidget(), Button):
            event.accept()
            return
        super().keyPressEvent(event)


def _presets() -> tuple[Preset, ...]:
    from engine.lab.presets import PRESETS

    return tuple(PRESETS)
