"""The menu of a row."""

from __future__ import annotations

import pytest
from many_entries import Entries

from viewer.widgets.record_menu import build_menu


@pytest.fixture
def entries(view):
    view.set_source(Entries())
    return view


def test_the_menu_offers_links_copies_and_filters(entries):
    entries.filters = True
    row = entries.table.rows[3]
    menu = build_menu(entries, row, 2)
    assert [a.text() for a in menu.actions() if a.text() and a.isEnabled()][:2] == [
        "Follow the link",
        "Open in a window of its own",
    ]
    assert next(a for a in menu.actions() if a.objectName() == "copy.cell").isEnabled()
    trace = next(a for a in menu.actions() if a.objectName() == "follow.trace")
    assert not trace.isEnabled()
    assert trace.toolTip() == "This row names no key."
    terms = []
    entries.termRequested.connect(lambda how, term: terms.append((how, term)))
    next(a for a in menu.actions() if a.text().startswith("Only physicalOffset")).trigger()
    assert terms == [("only", f"physicalOffset = {row.physical_offset}")]
    menu.deleteLater()
