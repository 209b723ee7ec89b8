"""The page before a cluster is connected."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QApplication

from viewer.cluster.start_page import MAX_ADDRESSES, StartPage
from viewer.widgets.basics import Link


def test_it_offers_the_newest_addresses_and_connects_to_the_chosen_one(qtbot: Any, themed_app: Any) -> None:
    page = StartPage()
    qtbot.addWidget(page)
    page.show_addresses(["a:1"])
    page.show_addresses([f"host-{number}:9876" for number in range(MAX_ADDRESSES + 2)])
    QApplication.processEvents()
    links = [link for link in page.findChildren(Link) if not link.isHidden()]
    assert len(links) == MAX_ADDRESSES
    chosen: list[str] = []
    page.addressChosen.connect(chosen.append)
    links[1].clicked.emit()
    assert chosen == ["host-1:9876"]


def test_it_says_which_address_is_asked(qtbot: Any, themed_app: Any) -> None:
    page = StartPage()
    qtbot.addWidget(page)
    page.show_connecting("")
    assert page.title.text() == "No cluster is connected"
    page.show_connecting("a:1")
    assert page.title.text() == "Asking a:1 …"
