"""Flags of the recovery Line never run into each other, and a hole lies at the place of its bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from viewer.widgets.recovery_line import LineFlag, Part, RecoveryLine, share_at


@pytest.mark.parametrize("width", [400, 700, 1400])
def test_flags_that_would_touch_stand_one_above_the_other(qtbot, width: int) -> None:
    line = RecoveryLine("line", "Line")
    qtbot.addWidget(line)
    line.resize(width, line.height())
    flags = [
        LineFlag(0.5, "start file 00000000002147483648", "posTime"),
        LineFlag(0.55, "end of log 2,689,597,440", "posLog"),
    ]
    line.show_parts([Part(0.5, "keep"), Part(0.5, "again")], flags)
    line.show()
    placed = sorted(line._placed(), key=lambda pair: (pair[1].level, pair[1].left))
    for (wide, place), (_, next_place) in pairwise(placed):
        assert place.level != next_place.level or place.left + wide.width <= next_place.left
    line.grab()


def test_a_place_on_a_line_that_is_not_to_scale() -> None:
    lengths, widths = [100, 0, 300], [0.5, 0.1, 0.4]
    assert share_at(0, lengths, widths) == 0
    assert share_at(50, lengths, widths) == pytest.approx(0.25)
    assert share_at(250, lengths, widths) == pytest.approx(0.7)
    assert share_at(9_999, lengths, widths) == pytest.approx(0.9)
