"""The page that the window shows if a path cannot be opened as a store: what was found there and what to try."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.ssh.address import is_ssh_address
from viewer.look.assets import tr, tr_in
from viewer.look.theme import px
from viewer.widgets.basics import Button, Card, Label, StatusMark, ThemedPanel
from viewer.widgets.boxes import column, row

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from viewer.shell.main_window import MainWindow


def error_page(window: MainWindow, path: Path, words: str, config: MessageStoreConfig | None = None) -> QWidget:
    """Return the page that says what was found instead of a store."""
    page = ErrorPage(str(path), words, hints_for(_kind_of(path, words)))
    page.openRequested.connect(window.actions_by_id["store.open"].trigger)
    page.againRequested.connect(lambda: window.jobs.start(window.open(path, None, config)))
    page.closeRequested.connect(window.show_welcome)
    return below_the_menus(page)


def _kind_of(path: Path, words: str) -> str:
    """Return what is at the path, as :func:`hints_for` takes it."""
    if is_ssh_address(path):
        return "ssh"
    if "ermission" in words:
        return "closed"
    return "nothing" if not path.exists() else "file" if path.is_file() else "folder"


def below_the_menus(page: QWidget) -> QWidget:
    """Return ``page`` with a hairline above it, to stand under the menus."""
    holder = ThemedPanel("window", ("top",))
    line = QVBoxLayout(holder)
    line.setContentsMargins(0, 1, 0, 0)
    line.addWidget(page)
    return holder


class ErrorPage(ThemedPanel):
    """A card in the middle of the window. ``openRequested``, ``againRequested``, ``closeRequested``."""

    openRequested = Signal()
    againRequested = Signal()
    closeRequested = Signal()

    def __init__(self, path: str, words: str, hints: tuple[str, ...] = ()) -> None:
        super().__init__("window")
        self.setObjectName("error.page")
        self.words = words
        self.setAccessibleName(words)
        title = Label(tr("This cannot be opened as a store"), 18, "text", 600)
        place = Label(path, 12, "text3", code=True, wrap=True, select=True)
        expected, found_text = split_words(words, path)
        facts = [self._fact(tr("Expected"), expected)] if found_text else []
        facts.append(self._fact(tr_in("evidence", "Found") if found_text else tr("Error"), found_text or words))
        advice = [Label(f"· {hint}", 13, "text2", wrap=True) for hint in hints]
        advice_rows: list[QWidget | int] = [4, *advice] if advice else []
        open_ = Button(tr("Open another store…"), "primary")
        open_.setObjectName("error.open")
        retry = Button(tr("Try again"))
        retry.setObjectName("error.again")
        copy = Button(tr("Copy"), "flat")
        back = Button(tr("Back to the welcome page"), "flat")
        open_.clicked.connect(self.openRequested)
        retry.clicked.connect(self.againRequested)
        back.clicked.connect(self.closeRequested)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(f"{path}: {words}"))
        card = Card(
            row(StatusMark("error", 6), column(title, place, gap=2), gap=10),
            4,
            *facts,
            *advice_rows,
            8,
            row(open_, retry, copy, None, back, gap=8),
            gap=8,
            pad=24,
        )
        card.setMaximumWidth(px(760))
        outer = QVBoxLayout(self)
        outer.addStretch(2)
        middle = QHBoxLayout()
        middle.addStretch(1)
        middle.addWidget(card, 6)
        middle.addStretch(1)
        outer.addLayout(middle)
        outer.addStretch(3)

    @staticmethod
    def _fact(name: str, text: str) -> QWidget:
        box = QWidget()
        layout = QHBoxLayout(box)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(px(8))
        name_label = Label(name, 13, "text3")
        name_label.setFixedWidth(px(84))
        layout.addWidget(name_label, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(Label(text, 13, "text", wrap=True, select=True), 1)
        return box


def split_words(words: str, path: str) -> tuple[str, str]:
    """Split an error line ``FILE: expected …, found …`` into (expected, found). Both are empty for other errors."""
    text = words.removeprefix(path).lstrip(": ")
    if not text.startswith("expected ") or ", found " not in text:
        return "", ""
    expected, _, found_text = text.partition(", found ")
    return expected.removeprefix("expected "), found_text


def hints_for(path_kind: str) -> tuple[str, ...]:
    """Return hints for what is at the path: ``nothing``, ``file``, ``folder``, ``closed``, ``ssh``."""
    return {
        "ssh": (
            tr("Try ssh with the same user and machine in a terminal: it has to work without a question."),
            tr("The path is that of the folder that holds commitlog/, on that machine."),
        ),
        "nothing": (tr("Check the spelling, and check that the disk is mounted."),),
        "file": (
            tr("A file out of a commit log has a name of 20 digits and opens by itself."),
            tr("For queues and index open the directory that holds commitlog/."),
        ),
        "folder": (
            tr("A store is the directory that holds commitlog/, consumequeue/ and index/."),
            tr("Any directory above one store opens too."),
            tr("A broker's path is storePathRootDir in its configuration; without it, ~/store."),
        ),
        "closed": (tr("Reading needs read permission for the folder and its files, and nothing else."),),
    }.get(path_kind, ())
