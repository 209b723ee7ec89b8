"""The help shows the documentation: its commands and pictures exist, its links lead to pages, its search finds them."""

from __future__ import annotations

import re

import docs
import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.rules.catalogue import RULES
from viewer.look import assets
from viewer.look.help_pages import contents, page_text
from viewer.shell.commands import BY_ID, in_words
from viewer.shell.help_box import linked, open_help


def test_commands_and_pictures_on_the_pages_exist() -> None:
    pages = [path.read_text("utf-8") for path in docs.DOCS.rglob("*.md")]
    commands = {name for text in pages for name in re.findall(r"\]\(command:([^)]+)\)", text)}
    assert len(commands) > 20
    assert commands <= set(BY_ID)
    pictures = sorted((docs.DOCS / "pictures").glob("*.png"))
    assert len(pictures) >= 6
    chinese = sorted((docs.DOCS / "zh_CN" / "pictures").glob("*.png"))
    assert [path.name for path in chinese] == [path.name for path in pictures], "Chinese pages show Chinese windows"
    pictures += chinese
    assert sum(path.stat().st_size for path in pictures) < 3 << 20
    for path in pictures:
        assert QImage(str(path)).width() > 900, path


def test_commands_are_shown_in_words_with_their_keys(themed_app: QApplication) -> None:
    assert "**Where is my message** (Ctrl Shift M)" in page_text("views/where.md", in_words)
    assets.set_language("zh_CN")
    assert "**我的消息在哪里** (Ctrl Shift M)" in page_text("views/where.md", in_words)


@pytest.fixture
def help_box(themed_app: QApplication, qtbot):
    parent = QWidget()
    parent.resize(1280, 720)
    parent.show()
    qtbot.addWidget(parent)
    box = open_help(parent, in_words)
    yield box
    box.close()


def shown(box) -> list[str]:
    return [box.list.item(n).text() for n in range(box.list.count()) if not box.list.item(n).isHidden()]


def test_every_rule_is_in_the_list_of_the_help_and_is_found_by_its_id(help_box) -> None:
    """The help did not describe most rules: the meaning of a finding was in a box of three lines."""
    assert help_box.width() <= 1280
    for rule in RULES.values():
        help_box.search.setText(rule.id.lower())
        assert help_box.list.currentItem().text() == f"{rule.id} · {rule.title}"
        assert help_box.page.toPlainText().startswith(f"{rule.id} · {rule.title}")
    help_box.search.setText("no such words anywhere")
    assert shown(help_box) == []
    assert help_box.note.isVisible()
    help_box.search.setText("body crc wrong")
    assert help_box.list.currentItem().text().startswith("CL03")
    QTest.keyClick(help_box.search, Qt.Key.Key_Return)
    assert help_box.isVisible(), "Enter goes to the list and closes nothing"


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize("language", assets.LANGUAGES)
def test_every_page_is_shown_under_its_title(themed_app: QApplication, help_box, language: str) -> None:
    assets.set_language(language)
    for paths in contents().values():
        for path in paths:
            help_box.show_page(path)
            title, _, remainder = help_box.page.toPlainText().partition("\n")
            assert title, path
            assert remainder.strip(), path


def test_links_lead_to_pages_rules_and_headings(help_box) -> None:
    assert help_box.page.toPlainText().startswith("Storescope\n"), "the first page is shown at first"
    help_box.page.anchorClicked.emit(QUrl("views/index.md"))
    assert help_box.list.currentItem().text() == "Views"
    help_box.page.anchorClicked.emit(QUrl("../formats/commit-log.md#batches"))
    assert help_box.list.currentItem().text() == "Commit log"
    assert help_box.page.verticalScrollBar().value() > 100
    help_box.page.anchorClicked.emit(QUrl("#unit"))
    help_box.page.anchorClicked.emit(QUrl("../findings/CF03.md"))
    assert help_box.page.toPlainText().startswith("CF03")
    help_box.page.anchorClicked.emit(QUrl("rule:CL03"))
    assert help_box.page.toPlainText().startswith("CL03")
    help_box.page.anchorClicked.emit(QUrl("https://example.org/"))
    assert help_box.page.toPlainText().startswith("CL03"), "links outwards are not followed"
    assert open_help(help_box.parentWidget(), in_words, "RP01") is help_box, "one help a window"
    assert help_box.page.toPlainText().startswith("RP01")


def test_pictures_are_loaded_from_pages_of_both_languages(themed_app: QApplication, help_box) -> None:
    for language in assets.LANGUAGES:
        assets.set_language(language)
        help_box.show_page("views/index.md")
        help_box.show_page("views/log.md")
        picture = help_box.page.loadResource(2, QUrl("../pictures/log.png"))
        assert picture.width() > 500
        file = docs.DOCS / ("zh_CN" if language == "zh_CN" else "") / "pictures" / "log.png"
        assert picture == QImage(str(file)).scaledToWidth(picture.width(), Qt.TransformationMode.SmoothTransformation)
        assert help_box.page.loadResource(2, QUrl("../../icons/app.svg")) is None


def test_ids_of_rules_become_links_and_nothing_else() -> None:
    assert linked("# CL01 x\nsee CL01, XX99, [CF03](rule:CF03) and [b](../findings/CF01.md)") == (
        "# CL01 x\nsee [CL01](rule:CL01), XX99, [CF03](rule:CF03) and [b](../findings/CF01.md)"
    )
