"""A flag with a very long name stays within its Line."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from viewer.space.space_line import Block, LineFlag, SpaceLine
from viewer.widgets.flag_layout import MAX_NAME_CHARACTERS
from viewer.widgets.log_line import LogLine


def test_a_flag_of_a_group_with_a_long_name_stays_in_the_line(themed_app: QApplication) -> None:
    """The name of a group, 142 letters, ran out of the Line at the right."""
    line = SpaceLine()
    line.resize(900, line.height())
    name = "g-" + "0123456789" * 14
    line.show_files(LogLine(0, 1000, 1000), (Block("0", 0, 1000),), (LineFlag(name, 500, "posBuild"),))
    ((flag, request, place),) = line._placed_flags()
    assert len(flag.name) <= MAX_NAME_CHARACTERS
    assert place.left >= 0
    assert place.left + request.width <= line.width()
    assert line.flags[0].name == name, "the whole name is said"
