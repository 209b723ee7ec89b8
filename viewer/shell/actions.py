"""The commands as Qt's actions: made, said in the language in force, greyed where they cannot be done now."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence

from viewer.look.assets import tr
from viewer.shell.command_handlers import Parts
from viewer.shell.commands import COMMANDS, MENUS, MNEMONICS, Command
from viewer.shell.menu_strip import Menu
from viewer.shell.views import VIEWS
from viewer.widgets.basics import icon


def make_actions(parts: Parts) -> dict[str, QAction]:
    """One QAction below the window for each command, with its id as its name."""
    made: dict[str, QAction] = {}
    for command in COMMANDS:
        action = QAction(parts.window)
        action.setObjectName(command.id)
        action.setCheckable(command.checkable)
        action.setShortcuts([QKeySequence(keys) for keys in command.keys])
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        action.triggered.connect(partial(_given, parts, command))
        if command.noted:
            parts.changes.operations.listen(action, command.cli)
        parts.window.addAction(action)
        made[command.id] = action
    retranslate_actions(made)
    return made


def _given(parts: Parts, command: Command, _on: bool = False) -> None:
    """A command is given: done by what does it, or by the view in front."""
    if command.does is not None:
        command.does(parts)
        return
    answer = parts.window.pane_commands().get(command.id)
    if answer is not None:
        answer()


def menus_of(actions: Mapping[str, QAction]) -> list[Menu]:
    """Every menu with its actions, in the order of the commands."""
    return [
        Menu(name, MNEMONICS[name], [(one.group, actions[one.id]) for one in COMMANDS if one.menu == name])
        for name in MENUS
    ]


def retranslate_actions(actions: Mapping[str, QAction]) -> None:
    """Words in the language in force."""
    for command in COMMANDS:
        action = actions[command.id]
        action.setText(tr(command.text))
        action.setToolTip(tr(command.tip or command.text))


def draw_icons(actions: Mapping[str, QAction]) -> None:
    """Icons in the colours in force; nobody sees them before a menu opens."""
    for command in COMMANDS:
        if command.icon:
            actions[command.id].setIcon(icon(command.icon, "text2", 18))


def enable_actions(parts: Parts) -> None:
    """Grey what cannot be done now: without a store, or where the view in front does not answer it."""
    window = parts.window
    answered = window.pane_commands()
    is_open = window.session is not None and window.pages.currentIndex() == 0
    alone = window.alone
    able = {
        "go.back": (is_open and window.history.can_go_back) or alone,
        "go.forward": (is_open or alone) and window.history.can_go_forward,
        "jobs.cancel": bool(window.jobs.list),
        **parts.lab.able(),
        **parts.workspace.edits.able(),
    }
    for command in COMMANDS:
        asked = command.id in answered
        enabled = (is_open or not command.needs or (alone and asked)) and (command.does is not None or asked)
        window.actions_by_id[command.id].setEnabled(able.get(command.id, enabled))
    window.top.back.setEnabled(able["go.back"])
    window.rail.set_able([view.kind for view in VIEWS if view.alone] if window.session is None else None)
    window.top.forward.setEnabled(able["go.forward"])
    parts.lab.show_words()
