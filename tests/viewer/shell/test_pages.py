"""What stands in the window instead of a store: the error taken apart, with advice by what is there."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from viewer.shell.pages import ErrorPage, hints_for, remember_store, split_words


def test_an_error_s_line_is_expected_and_found():
    said = "/x: expected a store (a directory that holds commitlog/), found an empty directory"
    assert split_words(said, "/x") == ("a store (a directory that holds commitlog/)", "an empty directory")
    assert split_words("/x: Permission denied", "/x") == ("", "")


@pytest.mark.parametrize("kind", ["nothing", "file", "folder", "closed"])
def test_there_is_advice_for_each_kind(kind):
    assert hints_for(kind)
    assert hints_for("else") == ()


def test_the_page_asks_for_another_store_or_the_same(qtbot):
    page = ErrorPage("/x", "/x: expected a store, found 3 other entries", hints_for("folder"))
    qtbot.addWidget(page)
    asked = []
    page.openAsked.connect(lambda: asked.append("open"))
    page.againAsked.connect(lambda: asked.append("again"))
    for name in ("error.open", "error.again"):
        page.findChild(QPushButton, name).click()
    assert asked == ["open", "again"]
    assert "3 other entries" in {label.text() for label in page.findChildren(QLabel)}


def test_a_store_is_remembered_once_it_is_known(run, window, golden):
    remember_store(window.settings, None)
    assert list(window.settings.recent) == []
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    remember_store(window.settings, window.session)
    (one, *_) = window.settings.recent
    assert one.path == str(window.session.path)
    assert one.facts[0] == window.session.survey.log_bytes
