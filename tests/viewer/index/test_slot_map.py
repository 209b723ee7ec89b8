"""The map of an index file's slots."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt

from engine.inspection.index_reader import SlotLoad
from viewer.index.slot_map import ChainHistogram, SlotMap, short_count


def load(cells: int = 896, slots: int = 5_000_000) -> SlotLoad:
    means = tuple(float(n % 20) for n in range(cells))
    return SlotLoad(slots, 20_000_000, 4_900_000, means, tuple(range(11)), 21, 7, 0, True)


def test_the_slot_map_names_the_first_slot_of_a_cell(shown, qtbot) -> None:
    widget = shown(SlotMap())
    widget.show_load(load())
    widget.choose(4_999_999, 3)
    widget.grab()
    with qtbot.waitSignal(widget.slot_chosen) as blocker:
        qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=QPoint(14, 10))
    assert blocker.args == [0]
    widget.show_load(load(3, 3))
    widget.choose(2)
    widget.grab()
    widget.show_load(None, "counting")
    widget.grab()
    assert widget.accessibleDescription() == "counting"


def test_the_histogram_marks_the_chosen_length(shown) -> None:
    widget = shown(ChainHistogram())
    widget.show_load(load(), 50)
    widget.grab()
    assert "10: 10" in widget.accessibleDescription()
    assert [short_count(n) for n in (999, 12_345, 4_900_000)] == ["999", "12k", "4.9M"]
