"""Undo and redo: in order, by name, with typing as one edit. Another store clears them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from viewer.runtime.edit import Edit
from viewer.shell.main_window import MainWindow

Golden = Callable[..., Path]


def test_edits_are_undone_and_redone_in_order(run: Callable[[Any], Any], window: MainWindow, golden: Golden) -> None:
    assert run(window.open(golden("broker-orders")))
    values: dict[str, int] = {"a": 0, "b": 0}
    edits, undo, redo = window.workspace.edits, window.actions_by_id["edit.undo"], window.actions_by_id["edit.redo"]

    def change(name: str, value: int, spell: str = "") -> None:
        old_value, values[name] = values[name], value
        edits.push(Edit(f"the {name}", old_value, value, lambda value: values.update({name: value}), spell))

    assert (undo.isEnabled(), redo.isEnabled(), undo.text()) == (False, False, "Undo")
    change("a", 1)
    change("b", 5, "typing")
    change("b", 6, "typing")
    change("b", 6)
    assert (undo.isEnabled(), undo.text(), redo.isEnabled()) == (True, "Undo: the b", False)
    undo.trigger()
    assert (values, undo.text(), redo.text()) == ({"a": 1, "b": 0}, "Undo: the a", "Redo: the b")
    undo.trigger()
    assert (values, undo.isEnabled(), undo.text()) == ({"a": 0, "b": 0}, False, "Undo")
    redo.trigger()
    redo.trigger()
    assert (values, redo.isEnabled()) == ({"a": 1, "b": 6}, False)
    undo.trigger()
    change("a", 9)
    assert not redo.isEnabled(), "undone edits are dropped after a new edit"
    assert run(window.open(golden("broker-orders")))
    assert not undo.isEnabled()
    assert values == {"a": 9, "b": 0}
