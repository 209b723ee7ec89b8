"""Glow comes at once, is held, fades, and ends by itself."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget

from viewer.look.theme import theme
from viewer.positions.pane import renew_rows
from viewer.widgets.columns import RecordKind, number_column, text_column
from viewer.widgets.glow import WHOLE, Glow
from viewer.widgets.record_view import RecordView


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def lit(qtbot):
    widget, clock = QWidget(), Clock()
    qtbot.addWidget(widget)
    return Glow(widget, clock), clock


def test_it_is_held_and_then_fades(lit) -> None:
    glow, clock = lit
    glow.add("row", (2,))
    assert glow.of("row", 4) == ((2, 1.0),)
    clock.now += 0.3
    assert glow.of("row", 4) == ((2, 1.0),)
    clock.now += 0.5
    assert 0.4 < glow.of("row", 4)[0][1] < 0.6
    clock.now += 0.5
    assert glow.of("row", 4) == ()
    glow._tick()
    assert not glow


def test_with_less_motion_it_does_not_fade(lit, monkeypatch) -> None:
    glow, clock = lit
    monkeypatch.setattr(theme, "motion", False)
    glow.add("row")
    clock.now += 0.9
    assert glow.of("row", 1) == ((WHOLE, 1.0),)
    clock.now += 0.2
    assert glow.of("row", 1) == ()


def test_only_so_many_glow(lit) -> None:
    glow, _ = lit
    for number in range(2000):
        glow.add(number)
    assert len(glow._begun) <= 512
    glow.clear()
    assert not glow


class Row:
    """A named number."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and (self.name, self.size) == (other.name, other.size)

    def __hash__(self) -> int:
        return hash(self.name)


def test_rows_take_new_values_in_place_and_what_changed_glows(qtbot) -> None:
    kind = RecordKind("unit", (text_column("name", "Name", 100), number_column("size", "Size", 80)))
    view = RecordView("positions.now", kind)
    qtbot.addWidget(view)
    view.resize(300, 200)
    view.show()
    view.set_rows([Row("a", 1), Row("b", 2)])
    view.go_to(1)
    chosen = []
    view.rowChosen.connect(chosen.append)
    assert renew_rows(view, [Row("a", 1), Row("b", 3)], lambda row: row.name, ("size",))
    assert view.table.texts(1)[1] == "3"
    assert view.current_row() == Row("b", 3)
    assert not chosen
    assert view.glow.of(1, 2) == ((1, 1.0),)
    assert not view.glow.of(0, 2)
    view.grab()
    assert not renew_rows(view, [Row("a", 1)], lambda row: row.name, ("size",))
    assert not renew_rows(view, [Row("a", 1), Row("c", 1)], lambda row: row.name, ("size",))
