"""The help pages speak of commands and pictures that there are, in both languages alike."""

from __future__ import annotations

import re

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from viewer import assets
from viewer.actions import BY_ID
from viewer.widgets.help_box import HelpPage, help_text


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
    assert "**Where is my message** (Ctrl Shift M)" in help_text("en")
    assets.set_language("zh_CN")
    page = HelpPage("zh_CN")
    assert "我的消息在哪里" in page.toPlainText()
    assert "{" not in page.toPlainText()
    page.deleteLater()
