"""What stands in the window instead of a store, what is remembered of one, what wheel and drop do anywhere."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QDropEvent, QGuiApplication, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QHBoxLayout, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.theme import px, theme
from viewer.look.topic_kinds import is_system_topic
from viewer.runtime.settings import RecentStore, Settings
from viewer.runtime.store_session import StoreSession
from viewer.runtime.survey import standing
from viewer.widgets.basics import Button, Card, Label, Mark, Paper, column, row

if TYPE_CHECKING:
    from viewer.shell.framed_window import FramedWindow


SHARES = 8


def welcome_page(window: FramedWindow) -> QWidget:
    """The page without a store."""
    from viewer.shell.welcome import WelcomePage, samples

    page = WelcomePage(window.settings.recent, samples())
    page.storeChosen.connect(lambda path: window.jobs.start(window.open(Path(path))))
    page.sampleChosen.connect(lambda sample: window.jobs.start(window.open_sample(sample)))
    page.openAsked.connect(window.actions_by_id["store.open"].trigger)
    page.labAsked.connect(window.actions_by_id["lab.create"].trigger)
    page.clearAsked.connect(lambda: (window.settings.forget_recent(), window.show_welcome()))
    page.pinAsked.connect(lambda path: (window.settings.pin(path), window.show_welcome()))
    page.tourAsked.connect(window.actions_by_id["help.tour"].trigger)
    return _framed(page)


def error_page(window: FramedWindow, path: Path, words: str) -> QWidget:
    """The page that says what was found instead of a store."""
    kind = "nothing" if not path.exists() else "file" if path.is_file() else "folder"
    page = ErrorPage(str(path), words, hints_for("closed" if "ermission" in words else kind))
    page.openAsked.connect(window.actions_by_id["store.open"].trigger)
    page.againAsked.connect(lambda: window.jobs.start(window.open(path)))
    page.closeAsked.connect(window.show_welcome)
    return _framed(page)


def _framed(page: QWidget) -> QWidget:
    """A hairline under the menus."""
    holder = Paper("window", ("top",))
    line = QVBoxLayout(holder)
    line.setContentsMargins(0, 1, 0, 0)
    line.addWidget(page)
    return holder


def remember_store(settings: Settings, session: StoreSession | None) -> None:
    """Put the open store first among those that the welcome page shows."""
    if session is None or session.survey is None:
        return
    survey, counts = session.survey, session.counts()
    whole = sum(topic.bytes for topic in survey.topics) or 1
    own = sorted((topic.bytes for topic in survey.topics if not is_system_topic(topic.name)), reverse=True)
    kind, word = survey.state
    if kind == "ok" and standing(survey, counts, complete=session.findings_complete)[0] != "ok":
        kind = "chat"  # its errors stand beside it
    settings.remember(
        RecentStore(
            path=survey.path,
            name=survey.name,
            when=int(time.time() * 1000),
            facts=(survey.log_bytes, len(survey.topics), survey.messages),
            state=kind,
            word=word,
            shares=tuple(round(size / whole, 3) for size in own[:SHARES]),
            errors=counts["error"],
            warnings=counts["warn"],
        )
    )


class ZoomFilter(QObject):
    """Ctrl and the wheel scale everything, also over what scrolls by itself."""

    def __init__(self, window: FramedWindow) -> None:
        super().__init__(window)
        self._window = window

    def watch(self, part: QWidget) -> None:
        """Look at everything below ``part`` that scrolls."""
        for area in part.findChildren(QAbstractScrollArea):
            area.viewport().installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Look at the wheel only."""
        if not isinstance(event, QWheelEvent) or not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            return False
        self._window.zoom(theme.wished_zoom + (10 if event.angleDelta().y() > 0 else -10))
        return True


class DropFilter(QObject):
    """Opens the one file or directory that is dropped anywhere on the window."""

    def __init__(self, window: FramedWindow) -> None:
        super().__init__(window)
        self._window = window
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Look at dragging and dropping only."""
        if isinstance(event, QDropEvent) and event.type() in {QEvent.Type.DragEnter, QEvent.Type.Drop}:
            urls = event.mimeData().urls()
            if len(urls) != 1 or not urls[0].isLocalFile():
                return False
            event.acceptProposedAction()
            self._hot(event.type() == QEvent.Type.DragEnter)
            if event.type() == QEvent.Type.Drop:
                self._window.jobs.start(self._window.open(Path(urls[0].toLocalFile())))
            return True
        if event.type() == QEvent.Type.DragLeave:
            self._hot(False)
        return False

    def _hot(self, hot: bool) -> None:
        from viewer.shell.welcome import WelcomePage

        page = self._window.pages.findChild(WelcomePage, "welcome")
        if page is not None:
            page.drop.set_hot(hot)


class ErrorPage(Paper):
    """One card in the middle of the window. ``openAsked``, ``againAsked``, ``closeAsked``."""

    openAsked = Signal()
    againAsked = Signal()
    closeAsked = Signal()

    def __init__(self, path: str, words: str, hints: tuple[str, ...] = ()) -> None:
        super().__init__("window")
        self.setObjectName("error.page")
        self.words = words
        self.setAccessibleName(words)
        title = Label(tr("This cannot be opened as a store"), 18, "text", 600)
        place = Label(path, 12, "text3", code=True, wrap=True, select=True)
        expected, found = split_words(words, path)
        facts = [self._fact(tr("Expected"), expected)] if found else []
        facts.append(self._fact(tr("Found") if found else tr("Error"), found or words))
        advice = [Label(f"· {hint}", 13, "text2", wrap=True) for hint in hints]
        advice_rows: list[QWidget | int] = [4, *advice] if advice else []
        open_ = Button(tr("Open another store…"), "primary")
        open_.setObjectName("error.open")
        again = Button(tr("Try again"))
        again.setObjectName("error.again")
        copy = Button(tr("Copy"), "flat")
        back = Button(tr("Back to the welcome page"), "flat")
        open_.clicked.connect(self.openAsked)
        again.clicked.connect(self.againAsked)
        back.clicked.connect(self.closeAsked)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(f"{path}: {words}"))
        card = Card(
            row(Mark("error", 6), column(title, place, gap=2), gap=10), 4, *facts, *advice_rows, 8,
            row(open_, again, copy, None, back, gap=8), gap=8, pad=24,
        )  # fmt: skip
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
        left = Label(name, 13, "text3")
        left.setFixedWidth(px(84))
        layout.addWidget(left, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(Label(text, 13, "text", wrap=True, select=True), 1)
        return box


def split_words(words: str, path: str) -> tuple[str, str]:
    """(expected, found) of an error's one line ``FILE: expected …, found …``; empty where it is said in another way."""
    text = words.removeprefix(path).lstrip(": ")
    if not text.startswith("expected ") or ", found " not in text:
        return "", ""
    expected, _, found = text.partition(", found ")
    return expected.removeprefix("expected "), found


def hints_for(path_kind: str) -> tuple[str, ...]:
    """What to try, by what stands at the path: ``nothing``, ``file``, ``folder``, ``closed``."""
    return {
        "nothing": (tr("Look at the spelling, and whether the disk is mounted."),),
        "file": (tr("A file out of a commit log has a name of 20 digits and opens by itself."),
                 tr("For queues and index open the directory that holds commitlog/.")),
        "folder": (tr("A store is the directory that holds commitlog/, consumequeue/ and index/."),
                   tr("Any directory above one store opens too."),
                   tr("A broker's path is storePathRootDir in its configuration; without it, ~/store.")),
        "closed": (tr("Reading needs rights on the directory and its files; the program asks for nothing else."),),
    }.get(path_kind, ())  # fmt: skip
