"""The help: one text a language in ``resources/help``, with pictures that the program made of itself, and a page for
every rule (:mod:`viewer.look.rule_pages`); and the sheet of all keys.

Commands stand in the text by their ids, ``{go.to}``, and are shown in the words and with the keys in force.

The guided tour: five steps over the damaged sample store, each a place, a thing to look at and a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QImage, QKeyEvent, QPainter, QPaintEvent, QPen, QTextBlockFormat, QTextCursor
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QScrollArea,
    QSizePolicy,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from engine.rules.catalogue import RULES
from viewer.look.assets import language, resource_bytes, tr, words
from viewer.look.rule_pages import rule_index, rule_page, rule_title, rules_in_order
from viewer.look.theme import C, follow, px, ui
from viewer.widgets.basics import Button, Field, Key, Label, Paper, column, row

if TYPE_CHECKING:
    from viewer.pane.store_window import StoreWindow


Said = Callable[[str], str]
"""A command's id → its words and its key, as Markdown."""
_COMMAND = re.compile(r"\{([a-z]+\.[A-Za-z]+)\}")
_RULE = re.compile(r"(?<![\w\[:])([A-Z]{2}\d\d)(?![\w\]])")
_TITLE = re.compile(r"^#.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Topic:
    """One line of the help's list; ``text`` is all that it says, for the search."""

    title: str
    text: str
    rule: str = ""


def topics(said: Said) -> list[Topic]:
    """The chapters of the help, the list of all rules, and the rules."""
    whole = help_text(language(), said)
    heads = list(_TITLE.finditer(whole))
    ends = [one.start() for one in heads[1:]] + [len(whole)]
    found = [Topic(one[0].lstrip("# "), whole[one.start() : end].casefold())
             for one, end in zip(heads, ends, strict=True)]  # fmt: skip
    found.append(Topic(tr("All rules"), tr("All rules").casefold()))
    return found + [Topic(rule_title(rule), rule_page(rule).casefold(), rule.id) for rule in rules_in_order()]


def linked(markdown: str) -> str:
    """Names of rules as links to their pages; a page's own title is none."""
    head, line, rest = markdown.partition("\n")
    return head + line + _RULE.sub(lambda found: f"[{found[1]}](rule:{found[1]})" if found[1] in RULES else found[0],
                                   rest)  # fmt: skip


def help_text(name: str, said: Said) -> str:
    """The page of language ``name`` as Markdown, commands in words."""
    return _COMMAND.sub(lambda found: said(found[1]), resource_bytes(f"help/{name}.md").decode("utf-8"))


class HelpPage(QTextBrowser):
    """Text and pictures from the resources; links outwards are not followed. ``ruleAsked(id)`` on a rule's link."""

    ruleAsked = Signal(str)

    def __init__(self, name: str, said: Said) -> None:
        super().__init__()
        self.setObjectName("help.page")
        self.setAccessibleName(tr("Help"))
        self.setOpenLinks(False)
        self.setFont(ui(14))
        self.document().setDocumentMargin(px(20))
        self._name, self._said = name, said
        self.anchorClicked.connect(self._follow)
        self.show_text(help_text(name, said))

    def show_text(self, markdown: str) -> None:
        """Another page, from its top."""
        self.setMarkdown(linked(markdown))
        self._set_apart()
        self.verticalScrollBar().setValue(0)

    def show_chapter(self, heading: str) -> None:
        """The help itself, from this heading on."""
        self.show_text(help_text(self._name, self._said))
        block = self.document().begin()
        while block.isValid() and not (block.blockFormat().headingLevel() and block.text() == heading):
            block = block.next()
        if block.isValid():
            top = self.document().documentLayout().blockBoundingRect(block).top()
            self.verticalScrollBar().setValue(round(top) - px(8))

    def _follow(self, link: QUrl) -> None:
        if link.scheme() == "rule":
            self.ruleAsked.emit(link.path())

    def _set_apart(self) -> None:
        """Room around headings and below paragraphs: Markdown has none, and they stuck together."""
        block = self.document().begin()
        while block.isValid():
            level = block.blockFormat().headingLevel()
            if level:
                form = QTextBlockFormat(block.blockFormat())
                form.setTopMargin(px(0 if block.blockNumber() == 0 else 26 if level < 3 else 18))
                form.setBottomMargin(px(8))
                QTextCursor(block).setBlockFormat(form)
            elif block.textList() is None:
                form = QTextBlockFormat(block.blockFormat())
                form.setBottomMargin(px(6))
                QTextCursor(block).setBlockFormat(form)
            block = block.next()

    def loadResource(self, kind: int, url: QUrl | str) -> Any:
        """Pictures by their path below the resources, as wide as the page."""
        path = url if isinstance(url, str) else url.toString()
        if kind == 2 and re.fullmatch(r"pictures/[a-z]+\.png", path):
            picture = QImage.fromData(resource_bytes(path))
            room = max(px(600), self.viewport().width() - px(56))
            return picture.scaledToWidth(min(picture.width(), room), Qt.TransformationMode.SmoothTransformation)
        return None


class HelpBox(QDialog):
    """Chapters and rules on the left, found by what is typed; the page chosen there on the right."""

    def __init__(self, parent: QWidget, said: Said) -> None:
        super().__init__(parent)
        self.setObjectName("help.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Help"))
        self.setAccessibleName(tr("Help"))
        self.resize(min(px(1240), parent.window().width()), min(px(900), parent.window().height()))
        self.page = HelpPage(language(), said)
        self.page.ruleAsked.connect(self.show_rule)
        self.search = Field(tr("Search the help, or the id of a rule"))
        self.search.setObjectName("help.search")
        self.search.setAccessibleName(tr("Search the help"))
        self.search.textChanged.connect(self._find)
        self.list = QListWidget()
        self.search.returnPressed.connect(self.list.setFocus)
        self.list.setObjectName("help.index")
        self.list.setAccessibleName(tr("Chapters and rules"))
        self.list.setFont(ui(13))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._topics = topics(said)
        for topic in self._topics:
            item = QListWidgetItem(topic.title, self.list)
            item.setToolTip(topic.title)
        self.list.currentRowChanged.connect(self._show)
        self.note = Label(tr("Nothing speaks of that."), 12, "text3")
        self.note.hide()
        left = column(self.search, self.list, self.note, gap=8, margins=(12, 12, 8, 0))
        left.box.setStretch(1, 1)
        left.setFixedWidth(px(280))
        close = Button(tr("Close"))
        close.clicked.connect(self.accept)
        beside = row(left, self.page, gap=0)
        beside.box.setStretch(1, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, px(12))
        layout.addWidget(beside, 1)
        layout.addWidget(row(None, close, margins=(0, 0, 16, 0)))
        self.page.setFocus()

    def show_rule(self, rule: str) -> None:
        """The page of a rule; whatever was searched for is dropped."""
        self.search.clear()
        at = next((n for n, topic in enumerate(self._topics) if topic.rule == rule), None)
        if at is not None:
            self.list.setCurrentRow(at)

    def _show(self, number: int) -> None:
        if number < 0:
            return
        topic = self._topics[number]
        if topic.rule:
            self.page.show_text(rule_page(RULES[topic.rule]))
        elif topic.title == tr("All rules"):
            self.page.show_text(rule_index())
        else:
            self.page.show_chapter(topic.title)

    def _find(self, text: str) -> None:
        """Only what speaks of every word that was typed; the first of it is shown, what is named so before others."""
        asked = text.casefold().split()
        said = [topic for topic in self._topics if all(word in topic.text for word in asked)]
        for number, topic in enumerate(self._topics):
            self.list.item(number).setHidden(topic not in said)
        self.note.setVisible(not said)
        if asked and said:
            best = next((topic for topic in said if all(word in topic.title.casefold() for word in asked)), said[0])
            self.list.setCurrentRow(self._topics.index(best))


def open_help(parent: QWidget, said: Said, rule: str = "") -> HelpBox:
    """The help of the window around ``parent``, at a rule where one is named; one that is open comes to the front."""
    window = parent.window()
    known = (one for one in QApplication.topLevelWidgets() if isinstance(one, HelpBox) and one.parent() is window)
    box = next((one for one in known if one.isVisible()), None) or HelpBox(window, said)
    if rule:
        box.show_rule(rule)
    box.show()
    box.raise_()
    box.activateWindow()
    return box


FIXED = (
    ("Enter", words("Follow the link of the chosen row")),
    ("Shift+F10", words("All that can be done with the row or field")),
    ("Tab", words("Next control")),
    ("Ctrl wheel", words("Larger, smaller")),
    ("Home End", words("Begin and end of what is in front")),
    ("Esc", words("Close a box, leave a field")),
)


class KeySheet(QDialog):
    """All keys by menu, in columns."""

    def __init__(self, parent: QWidget, menus: Sequence[tuple[str, list[tuple[str, str]]]]) -> None:
        """``menus``: of each menu its name and its commands, each as (key caps, words)."""
        super().__init__(parent)
        self.setObjectName("keys.sheet")
        self.setWindowTitle(tr("All keys"))
        self.setAccessibleName(tr("All keys"))
        self.resize(px(900), min(px(760), parent.window().height()))
        ground = Paper("pane")
        grid = QHBoxLayout(ground)
        grid.setContentsMargins(px(20), px(16), px(20), px(16))
        grid.setSpacing(px(32))
        columns = [QVBoxLayout(), QVBoxLayout()]
        for side in columns:
            side.setSpacing(0)
        for number, (title, lines) in enumerate(
            (*menus, (tr("In tables and fields"), [(caps, tr(text)) for caps, text in FIXED]))
        ):
            target = columns[0] if number in {0, 1, 2} else columns[1]
            target.addWidget(_section(title, lines))
        for side in columns:
            side.addStretch(1)
            grid.addLayout(side, 1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidget(ground)
        close = Button(tr("Close"))
        close.clicked.connect(self.accept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, px(12))
        layout.addWidget(area, 1)
        layout.addWidget(row(None, close, margins=(0, 0, 16, 0)))


def _section(title: str, lines: Sequence[tuple[str, str]]) -> QWidget:
    box = QWidget()
    layout = QVBoxLayout(box)
    layout.setContentsMargins(0, 0, 0, px(14))
    layout.setSpacing(px(4))
    layout.addWidget(Label(title, 13, "text", 600), 0, Qt.AlignmentFlag.AlignTop)
    grid = QGridLayout()
    grid.setHorizontalSpacing(px(12))
    grid.setVerticalSpacing(px(4))
    for number, (caps, text) in enumerate(lines):
        grid.addWidget(row(*[Key(cap) for cap in caps.split()], None, gap=4), number, 0)
        grid.addWidget(Label(text, 13, "text2"), number, 1)
    grid.setColumnMinimumWidth(0, px(150))
    grid.setColumnStretch(1, 1)
    layout.addLayout(grid)
    box.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
    return box


SAMPLE = "orders-damaged"


@dataclass(frozen=True, slots=True)
class Step:
    """Where the window goes, which part is framed, what is said; ``command`` is one that may be done here."""

    at: str
    part: str
    title: str
    text: str
    command: str = ""


STEPS = (
    Step(
        "log:1049472", "unit.hex", words("Read a message down to its bytes"),
        words(
            "Each row is a unit of the commit log. The chosen one is taken apart below, and painted as bytes "
            "beside it: click a field, a byte or a link, and the others follow. F7 and F8 move the list from "
            "anywhere."
        ),
    ),
    Step(
        "trace:ShipmentEvents/SO-000421", "trace.steps", words("Follow a key through the index"),
        words(
            "The index keeps hashes, not keys: this is the chain that a broker walks for the key, newest first. Each "
            "step has its verdict and leads to its unit. Here damage bent a link back: the walk sees the ring, and "
            "stops."
        ),
    ),
    Step(
        "where:SO-000749", "where.evidence", words("See why a message was not consumed"),
        words(
            "One field for an id, a key, an offset or a queue entry. The verdict stands on the right, and below "
            "it the chain of evidence. Name a group to ask whether it has read the message."
        ),
    ),
    Step(
        "findings:CL03", "finding.hex", words("Find the damage, see what recovery would do"),
        words(
            "Every rule looked at the whole store. The gravest finding is chosen: its bytes, its cause, the "
            "safe next step. Below stands what the next start of a broker would keep and drop. F4 walks the "
            "findings from anywhere."
        ),
    ),
    Step(
        "findings:CL03", "rail.lab", words("Pull the plug on a lab store"),
        words(
            "In the lab you put messages into a store of your own and watch them being written, flushed and "
            "dispatched; then pull its plug and compare the recovery plan with what happened. Nothing of yours "
            "is touched."
        ),
        "lab.create",
    ),
)  # fmt: skip


class Frame(QWidget):
    """A frame around the part that is spoken of; lets every click through."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setObjectName("tour.frame")

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Two px in accent."""
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(QPen(C("accent"), 2))
        p.drawRoundedRect(self.rect().adjusted(1, 1, -2, -2), 5, 5)


class Tour(Paper):
    """The card over the lower right corner of the window; Escape ends the tour."""

    def __init__(self, window: StoreWindow) -> None:
        super().__init__("raised", ("top", "bottom", "left", "right"))
        self.setParent(window)
        self.setObjectName("tour")
        self._window = window
        self.at = -1
        self._frame = Frame(window)
        self._number = Label("", 12, "text3")
        self._title = Label("", 15, "text", 600)
        self._text = Label("", 13, "text", wrap=True)
        self._back, self._next = Button(tr("Back")), Button(tr("Next"), "primary")
        self._end, self._command = Button(tr("End the tour"), "flat"), Button("")
        for name, button, command in (
            ("back", self._back, lambda: self.go(self.at - 1)), ("next", self._next, self._forward),
            ("end", self._end, self.end), ("deed", self._command, self._do),
        ):  # fmt: skip
            button.setObjectName(f"tour.{name}")
            button.clicked.connect(command)
        layout = self._lines = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(12), px(16), px(12))
        layout.setSpacing(px(6))
        for part in (self._number, self._title, self._text):
            layout.addWidget(part)
        layout.addWidget(row(self._end, None, self._command, self._back, self._next, gap=8))
        self._look = QTimer(self, interval=150)
        self._look.timeout.connect(self._place)
        follow(self, self._place)
        window.installEventFilter(self)

    def go(self, number: int) -> None:
        """Show step ``number``."""
        if not 0 <= number < len(STEPS):
            return
        self.at = number
        step = STEPS[number]
        self._number.setText(tr("Step {n} of {all}", n=number + 1, all=len(STEPS)))
        self._title.setText(tr(step.title))
        self._text.setText(tr(step.text))
        self.setAccessibleName(f"{tr(step.title)}. {tr(step.text)}")
        self._back.setEnabled(number > 0)
        self._next.setText(tr("Next") if number + 1 < len(STEPS) else tr("End the tour"))
        self._end.setVisible(number + 1 < len(STEPS))
        self._command.setVisible(bool(step.command))
        if step.command:
            self._command.setText(self._window.actions_by_id[step.command].text())
        self._window.jobs.start(self._window.go_to_text(step.at))
        self._look.start()
        self.show()
        self._place()
        self._next.setFocus()

    def end(self) -> None:
        """Take card and frame away."""
        self._look.stop()
        self.hide()
        self._frame.hide()
        self.deleteLater()
        self._frame.deleteLater()
        self._window.removeEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """The card stays in its corner."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape ends it."""
        if event.key() == Qt.Key.Key_Escape:
            self.end()
        else:
            super().keyPressEvent(event)

    def _forward(self) -> None:
        if self.at + 1 < len(STEPS):
            self.go(self.at + 1)
        else:
            self.end()

    def _do(self) -> None:
        command = STEPS[self.at].command
        self.end()
        self._window.actions_by_id[command].trigger()

    def _place(self) -> None:
        """Card and frame where they belong; parts appear when their view is there."""
        window = self._window
        if window.session is None:
            self.end()
            return
        width = px(460)
        self.setFixedWidth(width)
        self.setFixedHeight(self._lines.heightForWidth(width))
        part = window.findChild(QWidget, STEPS[self.at].part)
        seen = part is not None and part.isVisible()
        self._frame.setVisible(seen)
        box = QRect()
        if part is not None and seen:
            shown = part.visibleRegion().boundingRect()
            box = QRect(part.mapTo(window, shown.topLeft()), shown.size()).adjusted(-2, -2, 2, 2)
            self._frame.setGeometry(box)
            self._frame.raise_()
        self.move(self._corner(box))
        self.raise_()

    def _corner(self, box: QRect) -> QPoint:
        """A corner of the window where the card covers least of ``box``."""
        window, gap = self._window, px(16)
        right, low = window.width() - self.width() - gap, window.height() - self.height() - px(44)
        high, left = px(120), px(96)

        def covered(at: QPoint) -> int:
            over = QRect(at, self.size()).intersected(box)
            return over.width() * over.height() if not over.isEmpty() else 0

        return min((QPoint(right, low), QPoint(right, high), QPoint(left, low)), key=covered)
