"""Work that is done step by step."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from viewer.widgets.stepwise import Turns


def test_what_is_new_takes_the_place_of_what_waits(dressed: QApplication) -> None:
    done: list[int] = []
    turns = Turns(dressed)
    turns.take([lambda: done.append(1), lambda: done.append(2)])
    assert done == [1]
    assert turns.busy
    turns.take([lambda: done.append(3), lambda: done.append(4)], spread=False)
    for _ in range(20):
        dressed.processEvents()
    assert done == [1, 3, 4]
    assert not turns.busy
