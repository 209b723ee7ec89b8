"""The help: one text a language in ``resources/help``, with pictures that the program made of itself, and a page for
every rule (:mod:`viewer.look.rule_pages`); and the sheet of all keys.

Commands stand in the text by their ids, ``{go.to}``, and are shown in the words and with the keys in force.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QImage, QTextBlockFormat, QTextCursor
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
from viewer.look.theme import px, ui
from viewer.widgets.basics import Button, Field, Key, Label, Paper, column, row

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
    found = [
        Topic(one[0].lstrip("# "), whole[one.start() : end].casefold()) for one, end in zip(heads, ends, strict=True)
    ]
    found.append(Topic(tr("All rules"), tr("All rules").casefold()))
    return found + [Topic(rule_title(rule), rule_page(rule).casefold(), rule.id) for rule in rules_in_order()]


def linked(markdown: str) -> str:
    """Names of rules as links to their pages; a page's own title is none."""
    head, line, rest = markdown.partition("\n")
    return (
        head + line + _RULE.sub(lambda found: f"[{found[1]}](rule:{found[1]})" if found[1] in RULES else found[0], rest)
    )


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
