"""The help pages speak of commands and pictures that there are, in both languages alike."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.rules.catalogue import RULES
from viewer.look import assets
from viewer.shell.commands import BY_ID, in_words
from viewer.shell.help_box import HelpPage, help_text, linked, open_help


@pytest.mark.parametrize("name", assets.LANGUAGES)
def test_commands_and_pictures_are_there(dressed: QApplication, name: str) -> None:
    raw = assets.resource_bytes(f"help/{name}.md").decode("utf-8")
    named = re.findall(r"\{([^}]+)\}", raw)
    assert len(named) > 20
    assert set(named) <= set(BY_ID)
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", raw)
    assert len(pictures) >= 6
    for path in pictures:
        assert QImage.fromData(assets.resource_bytes(path)).width() > 900, path


def test_both_languages_say_the_same(dressed: QApplication) -> None:
    english, chinese = (assets.resource_bytes(f"help/{name}.md").decode("utf-8") for name in ("en", "zh_CN"))
    for pattern in (r"^#+ ", r"\{[^}]+\}", r"\]\([^)]+\)"):
        found = [re.findall(pattern, text, re.MULTILINE) for text in (english, chinese)]
        assert found[0] == found[1], pattern
    assert "请" not in chinese


def test_commands_stand_in_words_with_their_keys(dressed: QApplication) -> None:
    assert "**Where is my message** (Ctrl Shift M)" in help_text("en", in_words)
    assets.set_language("zh_CN")
    page = HelpPage("zh_CN", in_words)
    assert "我的消息在哪里" in page.toPlainText()
    assert "{" not in page.toPlainText()
    page.deleteLater()


@pytest.fixture
def help_box(dressed: QApplication, qtbot):
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
    """The help had no word on most rules: what a finding means stood in a box of three lines."""
    assert help_box.width() <= 1280
    assert [line.partition(" ")[0] for line in shown(help_box) if re.match(r"[A-Z]{2}\d\d ", line)] != []
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


def test_a_rule_that_is_named_leads_to_its_page_and_chapters_come_back(help_box) -> None:
    help_box.page.anchorClicked.emit(QUrl("rule:CF03"))
    assert help_box.page.toPlainText().startswith("CF03")
    line = next(n for n in range(help_box.list.count()) if help_box.list.item(n).text() == "Positions")
    help_box.list.setCurrentRow(line)
    assert help_box.page.verticalScrollBar().value() > 100
    assert "Who reads, and how far?" in help_box.page.toPlainText()
    assert open_help(help_box.parentWidget(), in_words, "RP01") is help_box, "one help a window"
    assert help_box.page.toPlainText().startswith("RP01")


def test_names_of_rules_become_links_and_nothing_else() -> None:
    assert linked("# CL01 x\nsee CL01, XX99 and [CF03](rule:CF03)") == (
        "# CL01 x\nsee [CL01](rule:CL01), XX99 and [CF03](rule:CF03)"
    )
