"""A queue as one line."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt

from viewer.queues.queue_line import QueueFile, QueueFlag, QueueLine, QueueSpan, choose_flags


def test_a_click_on_the_queue_line_names_an_entry(shown, qtbot) -> None:
    line = shown(QueueLine())
    base = 5_000_000_000
    line.show_span(QueueSpan((QueueFile("0", base, base + 1000),), base, base + 1000))
    with qtbot.waitSignal(line.entry_chosen) as blocker:
        qtbot.mouseClick(line, Qt.MouseButton.LeftButton, pos=QPoint(450, 50))
    assert base + 400 < blocker.args[0] < base + 600
    line.show_window(base + 100, base + 200)
    with qtbot.waitSignal(line.entry_chosen) as blocker:
        qtbot.keyClick(line, Qt.Key.Key_Right)
    assert blocker.args == [base + 200]


def test_groups_at_one_entry_share_a_flag_and_problems_come_first() -> None:
    groups = [
        QueueFlag(name, offset, role)
        for name, offset, role in (
            ("a", 10, "posBuild"),
            ("b", 10, "posBuild"),
            ("c", 5, "error"),
            ("d", 90, "posLog"),
        )
    ]
    chosen = choose_flags(groups, 2)
    assert [(flag.name, flag.offset) for flag in chosen] == [("c", 5), ("a · b", 10)]
