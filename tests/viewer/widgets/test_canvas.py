"""Painted widgets take extreme values without failing, and their keys and clicks emit 64-bit offsets."""

from __future__ import annotations

import math

from viewer.index.hash_strip import HashStrip
from viewer.index.slot_map import ChainHistogram, SlotMap
from viewer.look.theme import theme
from viewer.queues.entry_cells import EntryCells
from viewer.queues.queue_line import QueueLine
from viewer.widgets.recovery_line import LineFlag, Part, RecoveryLine, shares
from viewer.widgets.ruler import Ruler


def test_a_non_empty_part_is_never_too_thin_to_see() -> None:
    widths = shares([10**12, 1, 0, 5])
    assert math.isclose(sum(widths), 1.0)
    assert widths[1] > 0.01
    assert widths[2] == 0
    assert shares([0, 0]) == [0.0, 0.0]


def test_the_recovery_line_says_its_parts(shown) -> None:
    line = shown(RecoveryLine("line", "Line"))
    kinds = ("keep", "again", "drop", "gone", "zero")
    line.show_parts(
        [Part(0.2, kind, kind) for kind in kinds], [LineFlag(0.4, "end of log", "error")], [(0, "0"), (1, "9")]
    )
    line.grab()
    assert "end of log" in line.accessibleDescription()


def test_every_canvas_follows_zoom_and_colours(shown) -> None:
    widgets = [shown(kind()) for kind in (Ruler, QueueLine, EntryCells, SlotMap, ChainHistogram, HashStrip)]
    widgets.append(shown(RecoveryLine("line", "Line")))
    heights = [widget.height() for widget in widgets]
    try:
        theme.set_zoom(150)
        theme.set_scheme("dark")
        for widget in widgets:
            widget.grab()
        assert widgets[0].minimumHeight() > heights[0]
    finally:
        theme.set_zoom(100)
        theme.set_scheme("light")
