"""A chain of an index file, drawn."""

from __future__ import annotations

from PySide6.QtCore import Qt

from viewer.index.chain_canvas import ChainCanvas
from viewer.index.trace_lanes import ChainCard, ChainLane


def test_the_chain_follows_the_arrow_keys_to_a_unit(shown, qtbot) -> None:
    canvas = shown(ChainCanvas())
    cards = (ChainCard(2, 9, "hashDiffers", folded=4), ChainCard(6, 5, "match", "T#k", 1 << 50, "09:00:00"))
    canvas.show_lanes(
        [
            ChainLane("b", "span", False, "passed over"),
            ChainLane("a", "span", True, "why", 7, 1, 9, cards, loop_to=9, end_note=("loop", "back to 9")),
            ChainLane("c", "span", True, "why", 7, 1, 9, cards, quiet="only other keys"),
        ]
    )
    canvas.grab()
    with qtbot.waitSignal(canvas.chosen) as blocker:
        qtbot.keyClick(canvas, Qt.Key.Key_Right)
    assert blocker.args == [2]
    qtbot.keyClick(canvas, Qt.Key.Key_Right)
    assert "match" in canvas.accessibleDescription()
    with qtbot.waitSignal(canvas.stepFollowed) as blocker:
        qtbot.keyClick(canvas, Qt.Key.Key_Return)
    assert blocker.args == [6]
