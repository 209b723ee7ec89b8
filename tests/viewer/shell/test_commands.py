"""Commands: stable ids, unique keys, and a handler for every command.

The commands as Qt's actions: one each, in their menus, disabled without a store.
"""

from __future__ import annotations

from collections import Counter

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDialog, QMenu

from engine.cli.main import COMMANDS as CLI_COMMANDS
from viewer.look import assets
from viewer.look.assets import set_language, tr
from viewer.shell.commands import BY_ID, COMMANDS, MENUS, key_caps, menus_of, retranslate_actions
from viewer.shell.main_window import MainWindow
from viewer.shell.palette_box import rank
from viewer.shell.views import VIEWS
from viewer.widgets.basics import Key


def test_ids_and_keys_are_unique() -> None:
    assert max(Counter(command.id for command in COMMANDS).values()) == 1
    keys = Counter(QKeySequence(key).toString() for command in COMMANDS for key in command.keys)
    assert [key for key, times in keys.items() if times > 1] == []


def test_every_command_is_in_a_menu_and_has_a_text() -> None:
    assert {command.menu for command in COMMANDS} <= set(MENUS)
    assert all(command.text for command in COMMANDS)
    assert [command.id for command in COMMANDS if not command.palette] == ["palette.open"]


def test_every_command_has_a_chinese_text() -> None:
    assets.set_language("zh_CN")
    language_commands = {"language.en", "language.zh_CN"}
    assert [
        c.id
        for c in COMMANDS
        if c.id not in language_commands and (tr(c.text) == c.text or (c.tip and tr(c.tip) == c.tip))
    ] == []


def test_every_command_line_exists() -> None:
    lines = {command.id: command.cli for command in COMMANDS if command.cli}
    assert {"check.run", "recovery.preview", "view.units"} <= lines.keys()
    assert all(line[0] in {*CLI_COMMANDS, "view"} and line[1] == "STORE" for line in lines.values())


NOT_YET = {
    "bookmark.edit",
    "bookmark.remove",
    "cluster.add.broker",
    "cluster.add.consumer",
    "cluster.add.producer",
    "cluster.add.queues",
    "cluster.broker.end",
    "cluster.browse",
    "cluster.client.pause",
    "cluster.cut",
    "cluster.kill",
    "cluster.lessons",
    "cluster.mine",
    "cluster.offsets",
    "cluster.send",
    "cluster.slow",
    "cluster.stop",
    "lab.copyTwo",
    "pipeline.cancel",
    "recovery.again",
    "recovery.open",
}
"""What a view answers only once there is something to do it with."""


def test_every_view_command_is_handled_by_a_view(run, window: MainWindow, golden) -> None:
    """A command that no view handles is always disabled."""
    assert run(window.open(golden("broker-orders")))
    window.stages.make_all()
    answered = {name for view in window.panes for name in window.awake(view).commands()}
    assert {command.id for command in COMMANDS if command.does is None} - answered == NOT_YET


def test_every_command_is_an_action_of_the_window(window: MainWindow) -> None:
    for command in COMMANDS:
        action = window.findChild(QAction, command.id)
        assert action is not None, command.id
        assert action.text() == (command.short or command.text)
    assert window.actions_by_id.keys() == BY_ID.keys()


def test_a_triggered_command_runs_and_is_logged(window: MainWindow, monkeypatch) -> None:
    done = []
    monkeypatch.setattr(window.workspace, "close", lambda: done.append("close"))
    monkeypatch.setattr(window, "zoom", done.append)
    for name in ("window.close", "zoom.reset", "help.keys"):
        window.actions_by_id[name].trigger()
    assert done == ["close", 100]
    sheet = window.findChild(QDialog, "keys.sheet")
    assert len(sheet.findChildren(Key)) > len([command for command in COMMANDS if command.keys])
    sheet.close()
    assert [finding.id for finding in window.changes.operations.list] == ["window.close", "zoom.reset", "help.keys"]


def test_without_a_store_only_independent_commands_are_enabled(window: MainWindow) -> None:
    window.show_welcome()
    able = {command.id for command in COMMANDS if window.actions_by_id[command.id].isEnabled()}
    of_tabs = {"tab.reopen", "tab.next", "tab.previous", "tab.own"}  # they need another tab
    assert able == {c.id for c in COMMANDS if not c.needs and c.does is not None} - of_tabs


def test_key_caps_are_the_labels_of_keys() -> None:
    assert key_caps("Ctrl+Shift+P") == "Ctrl Shift P"
    assert key_caps("Alt+Left") == "Alt ←"
    assert key_caps("Ctrl++") == "Ctrl +"


def test_palette_ranks_beginnings_before_middles() -> None:
    words = ["Record positions", "Open recent store", "Recovery: preview", "Direct", "Refresh each column"]
    ranked = sorted((r, w) for w in words if (r := rank(w, "rec")) is not None)
    assert [w for _, w in ranked] == [
        "Record positions",
        "Recovery: preview",
        "Open recent store",
        "Direct",
        "Refresh each column",
    ]
    assert rank("Quit", "rec") is None


def test_every_command_has_its_action_in_its_menu(window):
    actions_by_id = window.actions_by_id
    assert list(actions_by_id) == [command.id for command in COMMANDS]
    menus = menus_of(actions_by_id)
    assert [menu.name for menu in menus] == list(MENUS)
    listed = [line.action.objectName() for menu in menus for line in menu.lines]
    assert set(listed) == BY_ID.keys()
    texts = {"view.where", "view.pipeline", "view.bookmarks"}
    assert {name for name, times in Counter(listed).items() if times > 1} == texts, "View lists every view"


def _lines(window: MainWindow, menu: str) -> list[str]:
    """Return the commands that a menu shows now."""
    menus = next(item for item in menus_of(window.actions_by_id) if item.name == menu)
    return [line.action.objectName() for line in menus.lines if line.action.isVisible()]


def test_commands_of_views_that_are_not_in_front_are_not_in_their_menus(run, window, golden):
    """In the Log, Analyse had thirty lines, twenty of them disabled, and the Lab menu 23 disabled ones of 27."""
    run(window.open(golden("broker-orders")))
    run(window.settled())
    assert len(_lines(window, "Analyse")) <= 13
    assert _lines(window, "Lab") == ["lab.create", "lab.openFolder", "lab.write", "lab.compare"]
    assert not [name for menu in MENUS for name in _lines(window, menu) if name.startswith(("cluster.", "requests."))]
    assert "copy.hex" in _lines(window, "Edit")
    window.show_view("cluster")
    assert {"cluster.connect", "cluster.pause"} <= set(_lines(window, "Analyse"))
    assert {"cluster.kill", "cluster.add.consumer"} <= set(_lines(window, "Lab")), "grey, but its view is in front"
    assert not window.actions_by_id["cluster.kill"].isEnabled()
    window.show_view("requests")
    assert "requests.record" in _lines(window, "Analyse")
    assert "cluster.kill" not in _lines(window, "Lab")
    assert window.rail.buttons["cluster"].isChecked(), "Requests is a tab of Cluster"


def test_the_view_menu_begins_with_all_views_in_the_order_of_the_rail(window):
    """View listed eight of fourteen views, without those below the rail's line."""
    view = next(menu for menu in menus_of(window.actions_by_id) if menu.name == "View")
    opening = [line.action.objectName() for line in view.lines if line.group == 0]
    assert opening == [view.command for view in VIEWS]
    shown = list(window.rail.buttons)
    assert [view.kind for view in VIEWS if view.kind in shown] == shown


def test_no_menu_has_more_than_fifteen_lines(run, window, golden):
    """In the Log, View had 35 lines, Edit 26 and Go 25. Nobody finds a command in such a list."""
    run(window.open(golden("broker-orders")))
    run(window.settled())
    for view in ("log", "positions", "lab", "cluster", "requests"):
        window.show_view(view)
        for menu in window.strip.findChildren(QMenu):
            menu.aboutToShow.emit()
            lines = [action for action in menu.actions() if action.isVisible() and not action.isSeparator()]
            assert len(lines) <= 15, (view, menu.objectName())


def test_a_submenu_without_enabled_commands_is_hidden(run, window, golden):
    run(window.open(golden("broker-orders")))
    run(window.settled())
    edit = window.strip.menus[MENUS.index("Edit")]
    submenu = edit.findChild(QMenu, "menu.edit.copy-bytes-as")
    edit.aboutToShow.emit()
    assert submenu.menuAction().isVisible()
    assert [action.text() for action in submenu.actions()] == ["Hex", "C array", "Python", "Base64"]
    window.show_view("space")
    edit.aboutToShow.emit()
    assert not submenu.menuAction().isVisible()


def test_a_view_handles_only_existing_commands(run, window, golden):
    """Requests handled same.next, which no menu and no key offers: Ctrl+. did nothing there."""
    run(window.open(golden("broker-orders")))
    window.stages.make_all()
    assert {name for view in window.panes for name in window.awake(view).commands()} <= BY_ID.keys()


def test_commands_that_need_a_store_are_disabled_without_one(run, window, golden):
    window.enable()
    assert not window.actions_by_id["find.next"].isEnabled()
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    assert window.actions_by_id["find.next"].isEnabled()


def test_commands_have_the_current_language(window):
    english_text = window.actions_by_id["go.to"].text()
    set_language("zh_CN")
    retranslate_actions(window.actions_by_id)
    text = window.actions_by_id["go.to"].text()
    set_language("en")
    retranslate_actions(window.actions_by_id)
    assert text != english_text == window.actions_by_id["go.to"].text()
