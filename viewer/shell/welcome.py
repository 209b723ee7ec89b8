"""The welcome page: four cards. Recent stores with their state, sample stores, stores on other machines, guides.

The state of a store is remembered when its window leaves it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt, Signal, SignalInstance
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from engine.ssh.address import is_ssh_address
from viewer.look.assets import app_pixmap, tr, tr_plural, words
from viewer.look.formats import moment
from viewer.look.theme import TOPICS_DARK, TOPICS_LIGHT, C, px, theme
from viewer.look.topic_kinds import is_system_topic
from viewer.runtime.settings import RecentStore, Settings
from viewer.runtime.store_session import StoreSession
from viewer.runtime.survey import card_status
from viewer.shell.error_page import below_the_menus
from viewer.shell.store_tree import counted
from viewer.widgets.basics import (
    Button,
    Card,
    Chip,
    ElidedLine,
    Glyph,
    Hairline,
    Key,
    Label,
    Link,
    ThemedPanel,
    ToolButton,
)
from viewer.widgets.boxes import column, row
from viewer.widgets.paint import mark

if TYPE_CHECKING:
    from engine.inspection.samples import Sample
    from viewer.shell.main_window import MainWindow


WIDTH, LOW = 1216, 800
CARD_MARGINS = (16, 12, 16, 10)
MAX_RECENT = 4
"""How many recent stores the page lists. File ▸ Open recent has more."""
MONTHS = (
    words("January"),
    words("February"),
    words("March"),
    words("April"),
    words("May"),
    words("June"),
    words("July"),
    words("August"),
    words("September"),
    words("October"),
    words("November"),
    words("December"),
)
DAYS = (
    words("Monday"),
    words("Tuesday"),
    words("Wednesday"),
    words("Thursday"),
    words("Friday"),
    words("Saturday"),
    words("Sunday"),
)


class Logo(QWidget):
    """The application's icon, large."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self.setFixedSize(px(size), px(size))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the icon."""
        QPainter(self).drawPixmap(0, 0, app_pixmap(self.width()))


class DropZone(Card):
    """The card on which a store is dropped. The window accepts drops anywhere; this card shows it."""

    def __init__(self, *parts: QWidget) -> None:
        super().__init__(*parts, None, gap=0, pad=1)
        self.setObjectName("welcome.drop")
        self.setAccessibleName(tr("Drop a store directory here"))
        self.hot = False

    def set_hot(self, hot: bool) -> None:
        """Highlight the card while something is dragged over the window."""
        self.hot = hot
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the card, and dashes around it while something is dragged over the window."""
        super().paintEvent(event)
        if self.hot:
            p = QPainter(self)
            p.setRenderHint(QPainter.RenderHint.Antialiasing)
            pen = QPen(C("accent"), 2.5, Qt.PenStyle.CustomDashLine)
            pen.setDashPattern([5, 4])
            p.setPen(pen)
            p.setBrush(C("select"))
            p.drawRoundedRect(QRectF(self.rect()).adjusted(1.5, 1.5, -1.5, -1.5), 6, 6)


class MiniLine(QWidget):
    """A store's Line in small: its largest topics by their share of the log, and a mark if it has errors."""

    def __init__(self, shares: Sequence[float], errors: bool) -> None:
        super().__init__()
        self._shares, self._errors = shares, errors
        self.setFixedSize(px(150), px(14))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the topics from left to right, largest first."""
        p = QPainter(self)
        x, width = 0.0, float(self.width() - (px(8) if self._errors else 0))
        top, height = (self.height() - px(8)) // 2, px(8)
        for number, share in enumerate(self._shares[: len(TOPICS_LIGHT)]):
            color = QColor((TOPICS_DARK if theme.dark else TOPICS_LIGHT)[number])
            color.setAlphaF(0.8)
            p.fillRect(QRectF(x, top, max(1.0, width * share - 1), height), color)
            x += width * share
        p.fillRect(QRectF(x, top, max(0.0, width - x), height), C("sunken"))
        if self._errors:
            mark(p, "error", QPointF(width, self.height() / 2), 5)


class ChoosablePart(QWidget):
    """A part of the page that a click or Enter chooses."""

    picked = Signal()

    def __init__(self, content: QWidget, enabled: bool = True) -> None:
        super().__init__()
        self._enabled = enabled
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(content)
        if enabled:
            self.setCursor(Qt.CursorShape.PointingHandCursor)
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint a background under the pointer and a frame with the focus."""
        p = QPainter(self)
        if self._enabled and self.underMouse():
            p.setPen(Qt.PenStyle.NoPen)
            p.setBrush(C("hover"))
            p.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 5, 5)
        if self.hasFocus():
            p.setRenderHint(QPainter.RenderHint.Antialiasing)
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.setPen(QPen(C("accent"), 2))
            p.drawRoundedRect(QRectF(self.rect()).adjusted(2, 2, -2, -2), 5, 5)

    def enterEvent(self, _event: object) -> None:
        """Highlight the part when the pointer enters."""
        self.update()

    def leaveEvent(self, _event: object) -> None:
        """Remove the highlight when the pointer leaves."""
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose the part on a click."""
        if self._enabled and event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose the part on Enter or Space."""
        if self._enabled and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}:
            self.picked.emit()
        else:
            super().keyPressEvent(event)


class WelcomePage(QScrollArea):
    """The page that a window without a store shows: four cards.

    ``storeChosen(path)``, ``sampleChosen(sample)``, ``openRequested()``, ``clearRequested()``, ``pinRequested(path)``,
    ``clusterRequested()`` for a running broker, ``sshRequested()`` for a store on another machine, ``tourRequested()``,
    ``labRequested()``, ``helpRequested()``.
    """

    storeChosen = Signal(str)
    sampleChosen = Signal(object)
    openRequested = Signal()
    clearRequested = Signal()
    pinRequested = Signal(str)
    tourRequested = Signal()
    labRequested = Signal()
    clusterRequested = Signal()
    sshRequested = Signal()
    helpRequested = Signal()

    def __init__(self, recent: Sequence[RecentStore], samples: Sequence[Sample]) -> None:
        super().__init__()
        self.setObjectName("welcome")
        self.setAccessibleName(tr("Welcome"))
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # its parts have the focus; it scrolls to them
        ground = ThemedPanel("window")
        outer = QHBoxLayout(ground)
        outer.setContentsMargins(px(24), 0, px(24), 0)
        outer.addStretch(1)
        body = QWidget()
        body.setMaximumWidth(px(WIDTH))
        outer.addWidget(body, 100)
        outer.addStretch(1)
        layout = self._body = QVBoxLayout(body)
        layout.setSpacing(0)
        title = Label(
            tr(
                "See inside an Apache RocketMQ store: every message, queue entry, index chain and position, "
                "down to the byte."
            ),
            15,
            "text2",
            wrap=True,
        )
        promise = Label(
            tr("Opening only reads. It takes no lock and creates no file, and it does not disturb a running broker."),
            13,
            "ok",
            500,
            wrap=True,
        )
        words_ = column(Label("Storescope", 28, "text", 600), title, promise, gap=2)
        layout.addWidget(row(Logo(72), words_, gap=20))
        layout.addSpacing(px(24))
        self.drop = self._own_stores(recent)
        cards = QGridLayout()
        cards.setSpacing(px(16))
        for number, card in enumerate((self.drop, self._samples(samples), self._elsewhere(), self._guides())):
            cards.addWidget(card, number // 2, number % 2)
        cards.setColumnStretch(0, 1)
        cards.setColumnStretch(1, 1)
        layout.addLayout(cards)
        layout.addStretch(1)
        self.setWidget(ground)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use smaller margins in a low window."""
        super().resizeEvent(event)
        is_low = self.height() < px(LOW)
        self._body.setContentsMargins(0, px(16 if is_low else 56), 0, px(12 if is_low else 24))

    def _own_stores(self, recent: Sequence[RecentStore]) -> DropZone:
        """The card of the user's own stores: open one, or choose one that was open before."""
        button = Button(tr("Open a store…"), "primary")
        button.setObjectName("welcome.open")
        button.clicked.connect(self.openRequested)
        invitation = Label(
            tr(
                "Or drop a store directory anywhere in this window: also a directory above it, "
                "a single commitlog folder, one file, a copied tail."
            ),
            12,
            "text2",
            wrap=True,
        )
        line = row(invitation, gap=16)
        line.box.setStretch(0, 1)
        if recent:
            clear = Link(tr("Clear the list"), 12)
            clear.setObjectName("welcome.clear")
            clear.setToolTip(tr("Pinned stores stay"))
            clear.clicked.connect(self.clearRequested)
            line.box.addWidget(clear, 0, Qt.AlignmentFlag.AlignBottom)
        head = _card_head("open", tr("Your stores"), Key("Ctrl O"), button)
        introduction = column(head, line, gap=6, margins=CARD_MARGINS)
        rows: list[QWidget] = [self._recent_store(store) for store in recent[:MAX_RECENT]]
        if not rows:
            note = Label(tr("Stores that you open appear here, with their last state."), 12, "text3", wrap=True)
            rows = [row(note, margins=(16, 10, 16, 10))]
        return DropZone(introduction, *_with_lines(rows))

    def _samples(self, samples: Sequence[Sample]) -> Card:
        """The card of stores to try things on."""
        rows = []
        for sample in samples:
            chip = Chip(sample.state, tr(sample.word))
            name = f"welcome.sample.{sample.name}"
            pick = _choosable_row(name, tr(sample.title), tr(sample.text), chip)
            pick.picked.connect(lambda sample=sample: self.sampleChosen.emit(sample))
            rows.append(pick)
        rows.append(
            self._row(
                "lab",
                tr("Make a lab store"),
                tr("Put messages, cut its power; your stores are not touched"),
                self.labRequested,
            )
        )
        return _card("lab", tr("Sample stores"), *rows)

    def _elsewhere(self) -> Card:
        """The card for what is not on this disk."""
        return _card(
            "cluster",
            tr("On other machines"),
            self._row(
                "cluster", tr("A running broker…"), tr("Its queues, groups and lag, read-only"), self.clusterRequested
            ),
            self._row(
                "ssh",
                tr("A store on another machine…"),
                tr("Over ssh; nothing is copied, only reads"),
                self.sshRequested,
            ),
        )

    def _guides(self) -> Card:
        """The card for newcomers."""
        return _card(
            "tour",
            tr("New here?"),
            self._row("help", tr("What each view is for"), tr("One page a view, with pictures"), self.helpRequested),
            self._row(
                "tour",
                tr("Guided tour"),
                tr("4 minutes: a message, a key, a loss, a power cut"),
                self.tourRequested,
            ),
        )

    @staticmethod
    def _row(name: str, title: str, text: str, request: SignalInstance) -> ChoosablePart:
        """A row of a card that emits ``request``."""
        pick = _choosable_row(f"welcome.{name}", title, text)
        pick.picked.connect(request)
        return pick

    def _recent_store(self, store: RecentStore) -> QWidget:
        is_there = is_ssh_address(store.path) or Path(store.path).exists()
        chips: list[QWidget] = []
        if not is_there:
            chips.append(Chip("out", tr("missing")))
        else:
            if store.errors:
                chips.append(Chip("error", tr_plural("{n:,} error", "{n:,} errors", n=store.errors)))
            elif store.warnings:
                chips.append(Chip("warn", tr_plural("{n:,} warning", "{n:,} warnings", n=store.warnings)))
            if store.word and store.state != "live":  # only an open store knows whether a broker runs
                chips.append(Chip(store.state or "chat", tr(store.word)))
        name = Label(store.name, 13, "text" if is_there else "disabled", 600)
        pin = ToolButton("pin", tr("Unpin") if store.pinned else tr("Pin to the top"), checkable=True)
        pin.setObjectName(f"welcome.pin.{store.path}")
        pin.setChecked(store.pinned)
        pin.clicked.connect(lambda: self.pinRequested.emit(store.path))
        facts_text = counted(*store.facts) if any(store.facts) else ""
        facts = Label(facts_text if is_there else tr("not there any more"), 12, "text2" if is_there else "text3")
        head = row(name, *chips, None, facts, gap=8)
        path = ElidedLine(_short_home(store.path), 12, "text3", code=True, middle=True)
        line_of_topics = [MiniLine(store.shares, store.errors > 0)] if is_there else []
        line = row(path, None, *line_of_topics, Label(_when(store.when), 12, "text3"), gap=12)
        pick = ChoosablePart(row(column(head, line, gap=3), pin, gap=10, margins=(16, 9, 12, 9)), is_there)
        pick.setObjectName(f"welcome.recent.{store.path}")
        pick.setAccessibleName(f"{store.name}, {store.path}, {facts_text}")
        pick.picked.connect(lambda: self.storeChosen.emit(store.path))
        return pick


def _card_head(icon_name: str, title: str, *tools: QWidget) -> QWidget:
    return row(Glyph(icon_name, "accent", 20), Label(title, 15, "text", 600), None, *tools, gap=10)


def _card(icon_name: str, title: str, *rows: QWidget) -> Card:
    """Return a card with a title and rows that a click or Enter chooses."""
    head = row(_card_head(icon_name, title), margins=CARD_MARGINS)
    return Card(head, *_with_lines(rows), None, gap=0, pad=1)


def _with_lines(rows: Sequence[QWidget]) -> list[QWidget]:
    """Return the rows with a hairline above each."""
    return [part for row_ in rows for part in (Hairline(), row_)]


def _choosable_row(name: str, title: str, text: str, *marks: QWidget) -> ChoosablePart:
    head = row(Label(title, 13, "text", 600), *marks, None, gap=8)
    pick = ChoosablePart(column(head, Label(text, 12, "text2", wrap=True), gap=2, margins=(16, 9, 16, 9)))
    pick.setObjectName(name)
    pick.setAccessibleName(f"{title}, {text}")
    return pick


def _when(ms: int) -> str:
    """Return ``today 09:52``, ``yesterday``, ``Tuesday`` or ``3 November``."""
    if not ms:
        return ""
    then = datetime.fromtimestamp(ms / 1000, UTC).astimezone()
    days = (datetime.now(UTC).astimezone().date() - then.date()).days
    if days <= 0:
        return tr("today {time}", time=then.strftime("%H:%M"))
    if days == 1:
        return tr("yesterday")
    if days < 7:
        return tr(DAYS[then.weekday()])
    if days < 300:
        return tr("{day} {month}", day=then.day, month=tr(MONTHS[then.month - 1]))
    return moment(ms)[:10]


def _short_home(path: str) -> str:
    home = str(Path.home())
    return f"~{path.removeprefix(home)}" if home != "/" and path.startswith(home + "/") else path


def samples() -> list[Sample]:
    """Return the samples that come with the program."""
    from engine.inspection import samples as engine

    return engine.samples()


def unpacked(item: Sample, cache: Path) -> Path:
    """Unpack the sample below ``cache`` unless it is there already, and return its store directory.

    The directory appears only when it is complete.
    """
    from engine.inspection import samples as engine

    return engine.sample(item.name, cache)


SHARES = 8


def welcome_page(window: MainWindow) -> QWidget:
    """Return the page without a store."""
    page = WelcomePage(window.settings.recent, samples())
    page.storeChosen.connect(lambda path: window.ask_open(Path(path)))
    page.sampleChosen.connect(lambda sample: window.jobs.start(window.open_sample(sample)))
    page.openRequested.connect(window.actions_by_id["store.open"].trigger)
    page.labRequested.connect(window.actions_by_id["lab.create"].trigger)
    page.clusterRequested.connect(window.actions_by_id["view.cluster"].trigger)
    page.sshRequested.connect(window.actions_by_id["store.openOverSsh"].trigger)
    page.helpRequested.connect(lambda: window.workspace.show_help().show_page("views/index.md"))
    page.clearRequested.connect(lambda: (window.settings.forget_recent(), window.show_welcome()))
    page.pinRequested.connect(lambda path: (window.settings.pin(path), window.show_welcome()))
    page.tourRequested.connect(window.actions_by_id["help.tour"].trigger)
    return below_the_menus(page)


def remember_store(settings: Settings, session: StoreSession | None) -> None:
    """Put the open store first in the welcome page's list."""
    if session is None or session.survey is None:
        return
    survey, counts = session.survey, session.counts()
    total_bytes = sum(topic.bytes for topic in survey.topics) or 1
    topic_sizes = sorted((topic.bytes for topic in survey.topics if not is_system_topic(topic.name)), reverse=True)
    kind, word = survey.state
    if kind == "ok" and card_status(survey, counts, complete=session.findings_complete)[0] != "ok":
        kind = "chat"  # its errors are shown beside it
    settings.remember(
        RecentStore(
            path=survey.path,
            name=survey.name,
            when=int(time.time() * 1000),
            facts=(survey.log_bytes, len(survey.topics), survey.messages),
            state="" if kind == "live" else kind,  # only an open store knows whether a broker runs
            word="" if kind == "live" else word,
            shares=tuple(round(size / total_bytes, 3) for size in topic_sizes[:SHARES]),
            errors=counts["error"],
            warnings=counts["warn"],
        )
    )
