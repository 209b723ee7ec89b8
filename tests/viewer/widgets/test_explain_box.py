"""What a field means, with the chapter where more is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from PySide6.QtWidgets import QWidget

from viewer.widgets.explain_box import ExplainBox, words_of


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
