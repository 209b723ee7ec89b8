"""Asks for a folder to write into. It must be absent or empty, and outside the open store.

A folder dialog of the system accepts only existing folders. So the path is a field, with a proposal beside the
store.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.theme import px
from viewer.runtime.store_session import in_store
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import row
from viewer.widgets.stepwise import Runner

MAX_NUMBER = 1000


def propose_target(store: Path, suffix: str) -> Path:
    """Return ``STORE-suffix`` beside the store, with a number if that exists. Reads the disk."""
    folder = store if store.is_dir() else store.parent
    store_folder = folder if folder.name not in {"store", "commitlog"} else folder.parent
    parent = store_folder.parent
    if not os.access(parent, os.W_OK):
        parent = Path.home()
    name = f"{store_folder.name or 'store'}-{suffix}"
    numbered = (parent / f"{name}-{number}" for number in range(2, MAX_NUMBER))
    return next((path for path in (parent / name, *numbered) if not path.exists()), parent / name)


def target_fault(target: Path, store: Path | None = None) -> str:
    """Return why nothing new can be written to ``target``, or an empty text. Reads the disk."""
    if store is not None and in_store(store, target):
        return tr("Nothing is written into the store: choose another folder.")
    try:
        if target.is_file():
            return tr("{path} is a file: a folder is needed.", path=str(target))
        if target.is_dir():
            if any(target.iterdir()):
                return tr(
                    "{path} is not empty. Nothing was written: choose an empty or a new folder.", path=str(target)
                )
            return ""
        existing_parent = next((parent for parent in target.parents if parent.exists()), None)
        if existing_parent is None or not existing_parent.is_dir() or not os.access(existing_parent, os.W_OK):
            return tr("No folder can be made in {path}.", path=str(existing_parent or target))
    except OSError as error:
        return f"{target}: {engine_words(error.strerror or str(error))}"
    return ""


class TargetBox(QDialog):
    """Asks for a path to write to. ``chosen(path)`` is called with a path that is absent or empty."""

    def __init__(
        self,
        parent: QWidget,
        title: str,
        button_text: str,
        store: Path | None,
        runner: Runner,
        chosen: Callable[[Path], object],
    ) -> None:
        super().__init__(parent)
        self._store, self._runner, self._chosen = store, runner, chosen
        self._over = False
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.field = Field(tr("A new or empty folder"), code=True)
        self.field.setObjectName("target.path")
        self.field.setMinimumWidth(px(520))
        self.field.textEdited.connect(lambda _text: self._say(""))
        self.fault = Label("", 12, "error", wrap=True)
        self.fault.setObjectName("target.fault")
        browse, self.accept_button, cancel = Button(tr("Browse…")), Button(button_text, "primary"), Button(tr("Cancel"))
        browse.setObjectName("target.browse")
        self.accept_button.setObjectName("target.accept")
        browse.clicked.connect(self._browse)
        self.accept_button.clicked.connect(self.take)
        cancel.clicked.connect(self.reject)
        self.accept_button.setDefault(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(10))
        layout.addWidget(
            Label(tr("A new folder is created; an existing folder must be empty."), 13, "text2", wrap=True)
        )
        layout.addWidget(row(self.field, browse, gap=8))
        layout.addWidget(self.fault)
        layout.addWidget(row(None, cancel, self.accept_button, gap=8))
        self._say("")

    def propose(self, suffix: str) -> None:
        """Put ``STORE-suffix`` into the field, unless the user has typed meanwhile."""
        store = self._store or Path.home() / "store"

        def done(target: object) -> None:
            if not self._over and not self.field.text():
                self.field.setText(str(target))
                self.field.selectAll()

        self._runner(lambda: propose_target(store, suffix), done, lambda _error: None)

    def take(self) -> None:
        """Check the folder, and close the box if it can be written to."""
        text = self.field.text().strip()
        if not text:
            self._say(tr("A folder is needed."))
            return
        target = Path(text).expanduser().absolute()

        def done(fault: str) -> None:
            if self._over:
                return
            self._say(fault)
            if not fault:
                self.accept()
                self._chosen(target)

        self._runner(lambda: target_fault(target, self._store), done, lambda error: self._say(engine_words(str(error))))

    def done(self, result: int) -> None:
        """Ignore the results of checks that end after the box was closed."""
        self._over = True
        super().done(result)

    def _say(self, fault: str) -> None:
        self.fault.setText(fault)
        self.fault.setVisible(bool(fault))

    def _browse(self) -> None:
        """Choose the parent folder of the new one. Its name stays."""
        typed = Path(self.field.text().strip() or str(Path.home())).expanduser()
        dialog = QFileDialog(self, tr("The folder in which a new one is made"), str(typed.parent))
        dialog.setObjectName("target.dialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.fileSelected.connect(lambda path: self.field.setText(str(Path(path) / typed.name)))
        dialog.open()


def ask_target_folder(
    parent: QWidget,
    name: str,
    title: str,
    button_text: str,
    suffix: str,
    store: Path | None,
    runner: Runner,
    chosen: Callable[[Path], object],
) -> TargetBox:
    """Ask for a folder that is absent or empty, with ``STORE-suffix`` proposed. ``chosen`` is called with it."""
    box = TargetBox(parent, title, button_text, store, runner, chosen)
    box.setObjectName(name)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.propose(suffix)
    box.open()
    return box
