"""Commands: ids that others rely on, keys that do not collide, every one with a deed."""

from __future__ import annotations

from collections import Counter

from PySide6.QtGui import QAction, QKeySequence

from viewer.shell.command_handlers import deeds
from viewer.shell.commands import BY_ID, COMMANDS, MENUS, key_caps
from viewer.shell.main_window import MainWindow
from viewer.shell.palette_box import rank

PROMISED = (
    "store.open", "store.close", "view.units", "view.queues", "view.index", "view.positions", "view.findings",
    "go.back", "go.forward", "go.to", "filter.apply", "find.next", "export.table", "copy.json", "copy.cli",
    "recovery.preview", "palette.open", "layout.reset", "help.keys", "lab.create", "lab.start", "lab.stop",
)  # fmt: skip


def test_ids_and_keys_are_unique() -> None:
    assert max(Counter(command.id for command in COMMANDS).values()) == 1
    keys = Counter(QKeySequence(key).toString() for command in COMMANDS for key in command.keys)
    assert [key for key, times in keys.items() if times > 1] == []


def test_promised_ids_are_there() -> None:
    assert set(PROMISED) <= set(BY_ID)


def test_every_command_stands_in_a_menu_and_has_words() -> None:
    assert {command.menu for command in COMMANDS} <= set(MENUS)
    assert all(command.text for command in COMMANDS)


def test_every_command_is_an_action_of_the_window(window: MainWindow) -> None:
    for command in COMMANDS:
        action = window.findChild(QAction, command.id)
        assert action is not None, command.id
        assert action.text() == command.text
    assert set(deeds(window)) == set(BY_ID)


def test_without_a_store_only_what_needs_none_can_be_done(window: MainWindow) -> None:
    window.show_welcome()
    able = {command.id for command in COMMANDS if window.actions_by_id[command.id].isEnabled()}
    assert able == {command.id for command in COMMANDS if not command.needs and not command.view}


def test_key_caps_are_what_stands_on_keys() -> None:
    assert key_caps("Ctrl+Shift+P") == "Ctrl Shift P"
    assert key_caps("Alt+Left") == "Alt ←"
    assert key_caps("Ctrl++") == "Ctrl +"


def test_palette_ranks_beginnings_before_middles() -> None:
    words = ["Record positions", "Open recent store", "Recovery: preview", "Direct", "Refresh each column"]
    ranked = sorted((r, w) for w in words if (r := rank(w, "rec")) is not None)
    assert [w for _, w in ranked] == [
        "Record positions", "Recovery: preview", "Open recent store", "Direct", "Refresh each column",
    ]  # fmt: skip
    assert rank("Quit", "rec") is None
