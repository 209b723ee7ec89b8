"""The error page in place of a store: expected and found values, with advice for each kind of path."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from viewer.shell.error_page import ErrorPage, hints_for, split_words


def test_an_error_s_line_is_expected_and_found():
    text = "/x: expected a store (a directory that holds commitlog/), found an empty directory"
    assert split_words(text, "/x") == ("a store (a directory that holds commitlog/)", "an empty directory")
    assert split_words("/x: Permission denied", "/x") == ("", "")


@pytest.mark.parametrize("kind", ["nothing", "file", "folder", "closed", "ssh"])
def test_there_is_advice_for_each_kind(kind):
    assert hints_for(kind)
    assert hints_for("else") == ()


def test_the_page_asks_for_another_store_or_the_same(qtbot):
    page = ErrorPage("/x", "/x: expected a store, found 3 other entries", hints_for("folder"))
    qtbot.addWidget(page)
    texts = []
    page.openRequested.connect(lambda: texts.append("open"))
    page.againRequested.connect(lambda: texts.append("again"))
    for name in ("error.open", "error.again"):
        page.findChild(QPushButton, name).click()
    assert texts == ["open", "again"]
    assert "3 other entries" in {label.text() for label in page.findChildren(QLabel)}
