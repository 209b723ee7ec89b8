"""Undo and redo of the user's edits: bookmarks, notes, marks, colouring rules, saved filters.

Each window has one stack, for its open store. Text fields have their own undo while the user types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtGui import QUndoCommand, QUndoStack

from viewer.look.assets import tr
from viewer.runtime.edit import Edit

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow

MAX_EDITS = 200


class _Step(QUndoCommand):
    """An edit on the stack. It is applied before it is pushed, so the first redo does nothing."""

    def __init__(self, edit: Edit, number: int) -> None:
        super().__init__(edit.title)
        self.edit, self._number, self._made = edit, number, False

    def id(self) -> int:
        return self._number

    def redo(self) -> None:
        if self._made:
            self.edit.put(self.edit.new_value)
        self._made = True

    def undo(self) -> None:
        self.edit.put(self.edit.old_value)

    def mergeWith(self, command: QUndoCommand) -> bool:
        """Merge with the next edit if both belong to the same run of typing."""
        if not isinstance(command, _Step) or command.edit.run != self.edit.run or not self.edit.run:
            return False
        self.edit = Edit(self.edit.title, self.edit.old_value, command.edit.new_value, self.edit.put, self.edit.run)
        return True


class Edits:
    """The undo stack of one window."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._stack = QUndoStack(window)
        self._stack.setObjectName("edits")
        self._stack.setUndoLimit(MAX_EDITS)
        self._runs: dict[str, int] = {}
        self._putting = False

    def push(self, edit: Edit) -> None:
        """Push an edit, unless it comes from an undo or redo."""
        if self._putting or edit.old_value == edit.new_value:
            return
        number = self._runs.setdefault(edit.run, len(self._runs)) if edit.run else -1
        self._stack.push(_Step(edit, number))
        self._window.enable()

    def forget(self) -> None:
        """Clear the stack for another store or another log view. Edits stay as they are."""
        self._stack.clear()

    def undo(self) -> None:
        """Undo the last edit and say which."""
        self._go(self._stack.undo, self._stack.canUndo(), tr("Undone: {what}", what=self._stack.undoText()))

    def redo(self) -> None:
        """Redo the last undone edit."""
        self._go(self._stack.redo, self._stack.canRedo(), tr("Redone: {what}", what=self._stack.redoText()))

    def _go(self, work: Callable[[], object], able: bool, message: str) -> None:
        if not able:
            return
        self._putting = True
        try:
            work()
        finally:
            self._putting = False
        self._window.say(message)
        self._window.enable()

    def able(self) -> dict[str, bool]:
        """Return for undo and redo whether they can run now, and update their words."""
        actions = self._window.actions_by_id
        enabled_by_id = {}
        for name, plain, text, able in (
            ("edit.undo", tr("Undo"), self._stack.undoText(), self._stack.canUndo()),
            ("edit.redo", tr("Redo"), self._stack.redoText(), self._stack.canRedo()),
        ):
            actions[name].setText(tr("{deed}: {what}", deed=plain, what=text) if able else plain)
            enabled_by_id[name] = able and self._window.session is not None
        return enabled_by_id
