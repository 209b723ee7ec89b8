"""Undo and redo: in order, by name, typing as one; another store forgets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from viewer.runtime.edit import Edit
from viewer.shell.main_window import MainWindow

Golden = Callable[..., Path]


def test_edits_are_taken_back_and_made_again_in_order(
    run: Callable[[Any], Any], window: MainWindow, golden: Golden
) -> None:
    assert run(window.open(golden("broker-orders")))
    held: dict[str, int] = {"a": 0, "b": 0}
    edits, undo, redo = window.workspace.edits, window.actions_by_id["edit.undo"], window.actions_by_id["edit.redo"]

    def change(name: str, value: int, spell: str = "") -> None:
        before, held[name] = held[name], value
        edits.push(Edit(f"the {name}", before, value, lambda value: held.update({name: value}), spell))

    assert (undo.isEnabled(), redo.isEnabled(), undo.text()) == (False, False, "Undo")
    change("a", 1)
    change("b", 5, "typing")
    change("b", 6, "typing")
    change("b", 6)
    assert (undo.isEnabled(), undo.text(), redo.isEnabled()) == (True, "Undo: the b", False)
    undo.trigger()
    assert (held, undo.text(), redo.text()) == ({"a": 1, "b": 0}, "Undo: the a", "Redo: the b")
    undo.trigger()
    assert (held, undo.isEnabled(), undo.text()) == ({"a": 0, "b": 0}, False, "Undo")
    redo.trigger()
    redo.trigger()
    assert (held, redo.isEnabled()) == ({"a": 1, "b": 6}, False)
    undo.trigger()
    change("a", 9)
    assert not redo.isEnabled(), "what was taken back is gone once something else is edited"
    assert run(window.open(golden("broker-orders")))
    assert not undo.isEnabled()
    assert held == {"a": 9, "b": 0}
