"""Days as bars."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade_stores import HandmadeStore
from PySide6.QtCore import QPoint, Qt

from engine.inspection import open_store
from engine.inspection.space.account import Space, space_of
from viewer.space.day_bars import MAX_DAYS, DayBar, DayBars
from viewer.space.rows import day_bars

DAY = 86_400_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = HandmadeStore()
    for number in range(120):
        store.put(topic=("Orders", "%RETRY%g", "Paid")[number % 3], queue_id=number % 2, tags="A", step=DAY // 6)
    return store.write(tmp_path_factory.mktemp("rows") / "store")


@pytest.fixture(scope="module")
def space(root: Path) -> Space:
    with open_store(root) as store:
        return space_of(store)


def test_days_that_are_too_many_stand_together(space: Space) -> None:
    bars = day_bars(space, ("Orders", "Paid"))
    assert len(bars) == MAX_DAYS + 1
    assert bars[0].day.startswith("≤ ")
    assert sum(bar.bytes for bar in bars) == sum(row.bytes for row in space.rows if row.part == "units")
    assert [topic for topic, _ in bars[1].parts][:2] == ["Orders", "Paid"]


LEFT = Qt.MouseButton.LeftButton


def test_a_day_is_gone_to(qtbot):
    bars = DayBars()
    qtbot.addWidget(bars)
    bars.resize(500, 100)
    bars.show()
    bars.show_days([DayBar("2026-11-18", 100, 3, (("Orders", 100),)), DayBar("2026-11-19", 50, 1, (("Paid", 50),))])
    bars.grab()
    with qtbot.waitSignal(bars.dayChosen) as chosen:
        qtbot.mouseClick(bars, LEFT, pos=QPoint(100, 15))
    assert chosen.args[0] == "2026-11-18"
    qtbot.keyClick(bars, Qt.Key.Key_Down)
    with qtbot.waitSignal(bars.dayChosen) as chosen:
        qtbot.keyClick(bars, Qt.Key.Key_Return)
    assert chosen.args[0] == "2026-11-19"
    assert "Orders 100 B" in bars.words_of(bars.days[0])
    bars.show_days((), "no message")
    bars.grab()
    assert bars.accessibleDescription() == "no message"
