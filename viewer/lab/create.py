"""Dialog that makes a lab store: folder, preset, and every value with its range and meaning."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QFileDialog, QVBoxLayout, QWidget

from engine.config import MessageStoreConfig
from engine.releases import NEWEST, NEWEST_FIRST, Release, rules_of
from viewer.lab.values import ValuesEditor, values_words
from viewer.look.assets import tr
from viewer.look.theme import px
from viewer.widgets.basics import Button, ElidedLine, Field, Label
from viewer.widgets.boxes import column, row
from viewer.widgets.stepwise import Runner, run_here

if TYPE_CHECKING:
    from engine.lab.presets import Preset

RELEASE_CHOICES = tuple((name, rules_of(name).title) for name in NEWEST_FIRST)
NAME = re.compile(r"[\w][\w.\-]{0,63}")


class CreateDialog(QDialog):
    """Emits ``createRequested(folder, config, like)`` to make the store in a folder that does not exist yet."""

    createRequested = Signal(object, object, str)

    def __init__(self, parent: QWidget, folder: Path, name: str = "lab-1", runner: Runner = run_here) -> None:
        super().__init__(parent)
        self._runner = runner
        self._existing_folder: Path | None = None
        self._is_closed = False
        self.setObjectName("lab.create.dialog")
        self.setWindowTitle(tr("Make a lab store"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.release: Release = NEWEST
        self._presets: list[Button] = []
        self._build_head(folder, name)
        self.editor = ValuesEditor("lab.create", MessageStoreConfig())
        self.search, self.table, self.value = self.editor.search, self.editor.table, self.editor.value
        self.editor.changed.connect(self._check)
        self.create_button = Button(tr("Make the store"), "primary")
        self.create_button.setObjectName("lab.create.make")
        self.create_button.setDefault(True)
        self.create_button.clicked.connect(self._make)
        cancel = Button(tr("Cancel"))
        cancel.setObjectName("lab.create.cancel")
        cancel.clicked.connect(self.reject)
        self._summary = ElidedLine("", 12, "text2")
        self._summary.setObjectName("lab.create.summary")
        box = QVBoxLayout(self)
        box.setContentsMargins(px(20), px(16), px(20), px(14))
        box.setSpacing(px(10))
        box.addWidget(
            column(
                Label(tr("Make a lab store"), 18, "text", 600),
                Label(
                    tr(
                        "A real store folder, written by this program's engine. Only lab stores can have their "
                        "power cut."
                    ),
                    12,
                    "text2",
                    wrap=True,
                ),
                gap=2,
            )
        )
        self._replaced_note = ElidedLine("", 12, "text2", middle=True)
        self._replaced_note.setObjectName("lab.create.replaced")
        self._replaced_note.hide()
        box.addWidget(self._replaced_note)
        box.addWidget(self._place)
        box.addWidget(self._choices)
        box.addWidget(self._preset_words)
        box.addWidget(self.editor, 1)
        box.addWidget(row(self._summary, None, cancel, self.create_button, gap=8))
        self.resize(px(1120), px(640))
        self._choose_preset(0)

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build_head(self, folder: Path, name: str) -> None:
        self.name = Field(tr("Name"), code=True, width=200)
        self.name.setObjectName("lab.create.name")
        self.name.setText(name)
        self.name.textChanged.connect(lambda _text: self._check_folder())
        self.folder = Field(tr("Folder"), code=True)
        self.folder.setObjectName("lab.create.folder")
        self.folder.setText(str(folder))
        self.folder.textChanged.connect(lambda _text: self._check_folder())
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
        parts += [16, Label(tr("Release"), 12, "text2")]
        self._release_buttons = []
        for release, title in RELEASE_CHOICES:
            button = Button(title, "pill")
            button.setObjectName(f"lab.create.like.{release}")
            button.setCheckable(True)
            button.clicked.connect(lambda _on=False, release=release: self._choose_release(release))
            self._release_buttons.append((release, button))
            parts.append(button)
        self._choices = row(*parts, None, self._fault, gap=6)
        self._preset_words = Label("", 12, "text3", wrap=True)
        self._choose_release(NEWEST)

    def say_replaced(self, store: str) -> None:
        """Say that the window will show the new store instead of ``store``."""
        self._replaced_note.setText(tr("This window then shows the new store instead of {store}.", store=store))
        self._replaced_note.show()

    # ---- choosing ----------------------------------------------------------------------------------------------------

    def _choose_preset(self, number: int) -> None:
        presets = _presets()
        for index, button in enumerate(self._presets):
            button.setChecked(index == number)
        self._preset_words.setText(tr(presets[number].words))
        self.editor.set_config(presets[number].config)

    def _choose_release(self, release: Release) -> None:
        self.release = release
        for name, button in self._release_buttons:
            button.setChecked(name == release)

    def _pick_folder(self) -> None:
        dialog = QFileDialog(self, tr("Folder of lab stores"), self.folder.text())
        dialog.setObjectName("lab.create.pick")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.folder.setText)
        dialog.open()

    # ---- making ------------------------------------------------------------------------------------------------------

    @property
    def config(self) -> MessageStoreConfig:
        """Configuration as edited."""
        return self.editor.config

    @property
    def target(self) -> Path:
        """Folder that will be made."""
        return Path(self.folder.text()).expanduser() / self.name.text().strip()

    def fault(self) -> str:
        """Return why the store cannot be made; empty if it can."""
        if not NAME.fullmatch(self.name.text().strip()):
            return tr("Use letters, digits, dot, hyphen and underscore.")
        if not self.folder.text().strip():
            return tr("A folder is needed.")
        if self.target == self._existing_folder:
            return tr("{name} exists already in this folder.", name=self.name.text().strip())
        if self.editor.wrong:
            return tr("A value is not permitted; see the line below.")
        return ""

    def _check_folder(self) -> None:
        """Check off the loop whether the folder exists."""
        target = self.target

        def done(exists: object) -> None:
            if not self._is_closed:
                self._existing_folder = target if exists else self._existing_folder
                self._check()

        self._check()
        self._runner(target.exists, done, done)

    def done(self, result: int) -> None:
        """Close the dialog; replies that arrive later are ignored."""
        self._is_closed = True
        super().done(result)

    def _check(self) -> None:
        reason = self.fault()
        self._fault.setText(reason)
        self._fault.setVisible(bool(reason))
        self.create_button.setEnabled(not reason)
        self._summary.setText(values_words(self.config))

    def _make(self) -> None:
        if not self.fault():
            self.createRequested.emit(self.target, self.config, self.release)
            self.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Make the store on Enter only while the button has the focus."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not isinstance(self.focusWidget(), Button):
            event.accept()
            return
        super().keyPressEvent(event)


def _presets() -> tuple[Preset, ...]:
    from engine.lab.presets import PRESETS

    return tuple(PRESETS)
