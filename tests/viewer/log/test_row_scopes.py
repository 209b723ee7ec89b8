"""The rows that a box of the Log view offers to choose from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from viewer.log.row_scopes import RowScope, RowScopeBox, row_scopes
from viewer.widgets.basics import Button


def scopes_of(row: object | None, span: tuple[int, int] | None, marked: set[int], text: str) -> dict[str, bool]:
    markings, row_filter = SimpleNamespace(marked=marked), SimpleNamespace(text=text)
    model = SimpleNamespace(filter=row_filter, markings=markings, chosen_span=lambda chosen: chosen)
    table = SimpleNamespace(current_row=lambda: row, chosen_span=lambda: span)
    return {scope.key: scope.able for scope in row_scopes(cast("Any", model), cast("Any", table))}


@pytest.mark.parametrize(
    ("row", "span", "marked", "text", "expected"),
    [
        (None, None, set(), "", {"row": False, "marked": False, "filter": False}),
        ("row", None, {100}, "size > 1", {"row": True, "marked": True, "filter": True}),
        ("row", (100, 900), set(), "", {"row": False, "span": True, "marked": False, "filter": False}),
    ],
)
def test_only_rows_that_exist_can_be_chosen(themed_app: object, row, span, marked, text, expected) -> None:
    assert scopes_of(row, span, marked, text) == expected


def test_a_box_shows_the_scopes_and_names_its_buttons(qtbot: Any, themed_app: object) -> None:
    box = RowScopeBox("demo", "Demo", [RowScope("row", "This && that"), RowScope("marked", "None", able=False)], "row")
    qtbot.addWidget(box)
    clicked: list[str] = []
    go = Button("Go")
    box.begin_layout(400, 300, {"go": (go, lambda: clicked.append("go"))})
    go.click()
    assert clicked == ["go"]
    assert (box.objectName(), go.objectName()) == ("demo.box", "demo.go")
    assert not box.scope_buttons["marked"].isEnabled()
    assert box.chosen_scope("all") == "row"
