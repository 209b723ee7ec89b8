"""The help pages: every page is in the contents, and says the same in both languages."""

from __future__ import annotations

import re
from collections import Counter

import docs
import pytest
from PySide6.QtWidgets import QApplication

from viewer.look import assets
from viewer.look.field_words import FIELDS
from viewer.look.help_pages import (
    SECTIONS,
    anchor,
    contents,
    page_file,
    page_text,
    page_title,
    reference_title,
    resolve,
)

CHINESE = sorted(path.relative_to(docs.DOCS / "zh_CN").as_posix() for path in (docs.DOCS / "zh_CN").rglob("*.md"))


def test_every_page_has_one_place_in_the_contents() -> None:
    listed = Counter(path for paths in contents().values() for path in paths)
    pages = {path.relative_to(docs.DOCS).as_posix() for path in docs.DOCS.rglob("*.md")}
    assert set(listed) == {path for path in pages if not path.startswith("zh_CN/")}
    assert set(listed.values()) == {1}
    assert tuple(contents()) == SECTIONS


@pytest.mark.parametrize("path", CHINESE)
def test_a_chinese_page_has_the_headings_links_and_pictures_of_the_english_one(path: str) -> None:
    english, chinese = (docs.DOCS / path).read_text("utf-8"), (docs.DOCS / "zh_CN" / path).read_text("utf-8")
    for pattern in (r"^#+ ", r"^\|", r"^- ", r"\]\((command:[^)]+)\)"):
        counts = [Counter(re.findall(pattern, text, re.MULTILINE)) for text in (english, chinese)]
        assert counts[0] == counts[1], pattern
    names = [[link.rpartition("/")[2] for link in re.findall(r"\]\(([^)]+)\)", text)] for text in (english, chinese)]
    assert Counter(names[0]) == Counter(names[1])
    assert not re.search("请(?!求)", chinese)


def test_every_view_s_page_is_there_in_chinese() -> None:
    assert set(CHINESE) >= set(contents()["Views"])


def test_a_page_comes_in_the_language_in_force_and_else_in_english(themed_app: QApplication) -> None:
    assets.set_language("zh_CN")
    assert page_file("views/log.md")[0] == "zh_CN/views"
    assert page_file("formats/commit-log.md")[0] == "formats"
    assets.set_language("en")
    text = page_text("views/log.md", lambda command: f"**{command}**")
    assert "**view.units** shows one row for each unit" in text
    assert page_title(text) == "Log"
    assert "<!--" not in page_text("commands/check.md", str)


def test_links_are_resolved_within_the_pages() -> None:
    assert resolve("views", "../formats/files.md") == "formats/files.md"
    assert resolve("zh_CN/views", "../pictures/log.png") == "zh_CN/pictures/log.png"
    assert resolve("", "views/log.md") == "views/log.md"
    assert anchor("Property CRC") == "property-crc"


def test_the_place_that_explains_a_field_is_named_by_its_headings(themed_app: QApplication) -> None:
    assets.set_language("en")
    assert reference_title("docs/formats/commit-log.md#property-crc") == "Commit log › Property CRC"
    assert reference_title("docs/formats/checkpoint.md") == "Checkpoint, abort, lock"
    for name, (_, page) in FIELDS.items():
        assert ("#" in page) == ("›" in reference_title(page)), name
