"""The menu of a row."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from many_entries import Entries
from PySide6.QtWidgets import QWidget

from viewer.widgets.record_menu import ExplainBox, build_menu, words_of


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


def facts(field: str) -> Any:
    return cast("Any", SimpleNamespace(kind="unit", field=field))


def test_a_field_is_explained_with_its_chapter(dressed):
    title, text, source = words_of(facts("bodyCRC"))
    assert title == "bodyCRC"
    assert text.endswith(".")
    assert source.startswith("Section ")


def test_what_nobody_explains_keeps_its_name(dressed):
    assert words_of(facts("nonsense")) == ("nonsense", "", "")


def test_a_screen_reader_hears_all_of_it(shown):
    host = shown(QWidget())
    box = ExplainBox(facts("bodyCRC"), host)
    _title, text, source = words_of(facts("bodyCRC"))
    assert box.accessibleName() == "bodyCRC"
    assert box.accessibleDescription() == f"{text} {source}"
    box.close()
