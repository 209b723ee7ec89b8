"""The help: the pages of the documentation, with a page for every rule; and the sheet of all keys.

The pages come from :mod:`viewer.look.help_pages` and :mod:`viewer.look.rule_pages`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QImage, QTextBlockFormat, QTextCursor
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QListWidgetItem,
    QScrollArea,
    QSizePolicy,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from engine.rules.catalogue import RULES
from viewer.look.assets import LANGUAGES, tr, words
from viewer.look.help_pages import (
    CommandWords,
    anchor,
    contents,
    page_file,
    page_text,
    page_title,
    picture_bytes,
    resolve,
)
from viewer.look.rule_pages import rule_index, rule_page
from viewer.look.theme import px, ui
from viewer.widgets.basics import Button, Field, Key, Label, ThemedPanel
from viewer.widgets.boxes import column, row
from viewer.widgets.choices import ChoiceList

_RULE = re.compile(r"(?<![\w\[:/])([A-Z]{2}\d\d)(?![\w\].])")
FIRST_PAGE = "index.md"


@dataclass(frozen=True, slots=True)
class Topic:
    """A line of the help's list: a page, or the head of a section if ``path`` is empty."""

    title: str
    path: str = ""
    text: str = ""
    """The page's text in lower case, for the search."""


def topics(command_words: CommandWords) -> list[Topic]:
    """Return all pages by section, each section below its head."""
    lines = []
    for section, paths in contents().items():
        lines.append(Topic(tr(section)))
        for path in paths:
            text = help_page(path, command_words)
            lines.append(Topic(page_title(text), path, text.casefold()))
    return lines


def help_page(path: str, command_words: CommandWords) -> str:
    """Return a page in the language in force; pages of rules are made from the catalogue."""
    if path == "findings/index.md":
        return rule_index()
    if path.startswith("findings/"):
        return rule_page(RULES[path.removeprefix("findings/").removesuffix(".md")])
    return page_text(path, command_words)


def linked(markdown: str) -> str:
    """Return the page with the ids of rules as links to their pages, except in its own title."""
    head, line, body = markdown.partition("\n")
    return (
        head + line + _RULE.sub(lambda match: f"[{match[1]}](rule:{match[1]})" if match[1] in RULES else match[0], body)
    )


class HelpPage(QTextBrowser):
    """A page of the help. It follows no links to the web. ``pageRequested(path, anchor)`` on a link to another page."""

    pageRequested = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("help.page")
        self.setAccessibleName(tr("Help"))
        self.setOpenLinks(False)
        self.setFont(ui(14))
        self.document().setDocumentMargin(px(20))
        self._folder = ""
        self.anchorClicked.connect(self._follow)

    def show_text(self, markdown: str, folder: str = "") -> None:
        """Show a page from its top; its links and pictures are relative to ``folder``."""
        self._folder = folder
        self.setMarkdown(linked(markdown))
        self._set_apart()
        self.verticalScrollBar().setValue(0)

    def show_heading(self, name: str) -> None:
        """Scroll to the heading with the anchor ``name``."""
        block = self.document().begin()
        while block.isValid() and not (block.blockFormat().headingLevel() and anchor(block.text()) == name):
            block = block.next()
        if block.isValid():
            top = self.document().documentLayout().blockBoundingRect(block).top()
            self.verticalScrollBar().setValue(round(top) - px(8))

    def _follow(self, link: QUrl) -> None:
        if link.scheme() == "rule":
            self.pageRequested.emit(f"findings/{link.path()}.md", "")
        elif not link.scheme() and not link.path():
            self.show_heading(link.fragment())
        elif not link.scheme() and link.path().endswith(".md"):
            path = resolve(self._folder, link.path())
            folder, _, path_in_folder = path.partition("/")
            self.pageRequested.emit(path_in_folder if folder in LANGUAGES else path, link.fragment())

    def _set_apart(self) -> None:
        """Add space around headings and below paragraphs: Markdown has none, and they stuck together."""
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
        """Load a picture of the documentation, at most as wide as the page."""
        path = resolve(self._folder, url if isinstance(url, str) else url.toString())
        if kind == 2 and re.fullmatch(r"(?:[a-zA-Z_]+/)?pictures/[a-z]+\.png", path):
            picture = QImage.fromData(picture_bytes(path))
            room = max(px(600), self.viewport().width() - px(56))
            return picture.scaledToWidth(min(picture.width(), room), Qt.TransformationMode.SmoothTransformation)
        return None


class HelpBox(QDialog):
    """The list of all pages on the left, filtered by the typed text; the chosen page on the right."""

    def __init__(self, parent: QWidget, command_words: CommandWords) -> None:
        super().__init__(parent)
        self.setObjectName("help.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Help"))
        self.setAccessibleName(tr("Help"))
        self.resize(min(px(1240), parent.window().width()), min(px(900), parent.window().height()))
        self._command_words = command_words
        self.page = HelpPage()
        self.page.pageRequested.connect(self.show_page)
        self.search = Field(tr("Search the help, or the id of a rule"))
        self.search.setObjectName("help.search")
        self.search.setAccessibleName(tr("Search the help"))
        self.search.textChanged.connect(self._find)
        self.list = ChoiceList()
        self.search.returnPressed.connect(self.list.setFocus)
        self.list.setObjectName("help.index")
        self.list.setAccessibleName(tr("Pages of the help"))
        self.list.setFont(ui(13))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._topics = topics(command_words)
        for topic in self._topics:
            item = QListWidgetItem(topic.title, self.list)
            item.setToolTip(topic.title)
            if not topic.path:
                item.setFlags(Qt.ItemFlag.NoItemFlags)
                item.setFont(ui(12, 600))
        self.list.currentRowChanged.connect(self._show)
        self.note = Label(tr("No page contains these words."), 12, "text3")
        self.note.hide()
        list_column = column(self.search, self.list, self.note, gap=8, margins=(12, 12, 8, 0))
        list_column.box.setStretch(1, 1)
        list_column.setFixedWidth(px(280))
        close = Button(tr("Close"))
        close.clicked.connect(self.accept)
        beside = row(list_column, self.page, gap=0)
        beside.box.setStretch(1, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, px(12))
        layout.addWidget(beside, 1)
        layout.addWidget(row(None, close, margins=(0, 0, 16, 0)))
        self.show_page(FIRST_PAGE)
        self.page.setFocus()

    def show_rule(self, rule: str) -> None:
        """Show the page of a rule."""
        self.show_page(f"findings/{rule}.md")

    def show_page(self, path: str, heading: str = "") -> None:
        """Show a page, at a heading if one is named; the search is cleared."""
        self.search.clear()
        line = next((number for number, topic in enumerate(self._topics) if topic.path == path), None)
        if line is not None:
            self.list.setCurrentRow(line)
            if heading:
                self.page.show_heading(heading)

    def _show(self, number: int) -> None:
        path = self._topics[number].path if number >= 0 else ""
        if path:
            self.page.show_text(help_page(path, self._command_words), page_file(path)[0])

    def _find(self, text: str) -> None:
        """List only pages that contain every typed word. Show the best one: with the words in its title, if any."""
        typed_words = text.casefold().split()
        matching = [topic for topic in self._topics if topic.path and all(word in topic.text for word in typed_words)]
        section_row = 0
        for number, topic in enumerate(self._topics):
            if not topic.path:
                section_row = number
                self.list.item(number).setHidden(True)
                continue
            is_shown = topic in matching
            self.list.item(number).setHidden(not is_shown)
            if is_shown:
                self.list.item(section_row).setHidden(False)
        self.note.setVisible(not matching)
        if typed_words and matching:
            titled = (topic for topic in matching if all(word in topic.title.casefold() for word in typed_words))
            self.list.setCurrentRow(self._topics.index(next(titled, matching[0])))


def open_help(parent: QWidget, command_words: CommandWords, rule: str = "") -> HelpBox:
    """Open the help of the window around ``parent``, at a rule if one is named. An open help comes to the front."""
    window = parent.window()
    boxes = (box for box in QApplication.topLevelWidgets() if isinstance(box, HelpBox) and box.parent() is window)
    box = next((box for box in boxes if box.isVisible()), None) or HelpBox(window, command_words)
    if rule:
        box.show_rule(rule)
    box.show()
    box.raise_()
    box.activateWindow()
    return box


FIXED = (
    ("Enter", words("Follow the link of the chosen row")),
    ("Shift+F10", words("All actions for the row or field")),
    ("Tab", words("Next control")),
    ("Ctrl wheel", words("Larger, smaller")),
    ("Home End", words("Beginning and end of the current view")),
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
        ground = ThemedPanel("pane")
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
