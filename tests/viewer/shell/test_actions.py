"""The commands as Qt's actions: one each, in their menus, greyed without a store."""

from __future__ import annotations

from viewer.look.assets import set_language
from viewer.shell.actions import menus_of, retranslate_actions
from viewer.shell.commands import COMMANDS, MENUS


def test_every_command_has_its_action_in_its_menu(window):
    made = window.actions_by_id
    assert list(made) == [command.id for command in COMMANDS]
    menus = menus_of(made)
    assert [menu.name for menu in menus] == list(MENUS)
    assert sum(len(menu.lines) for menu in menus) == len(COMMANDS)


def test_what_needs_a_store_is_grey_without_one(run, window, golden):
    window.enable()
    assert not window.actions_by_id["find.next"].isEnabled()
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    assert window.actions_by_id["find.next"].isEnabled()


def test_they_are_said_in_the_language_in_force(window):
    before = window.actions_by_id["go.to"].text()
    set_language("zh_CN")
    retranslate_actions(window.actions_by_id)
    said = window.actions_by_id["go.to"].text()
    set_language("en")
    retranslate_actions(window.actions_by_id)
    assert said != before == window.actions_by_id["go.to"].text()
