"""A disabled command says what it needs: in its menu, in the palette, on its key and on its button."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QMenu

from viewer.shell.command_needs import CONNECT, STORE
from viewer.shell.commands import COMMANDS
from viewer.shell.palette_source import entries
from viewer.shell.views import VIEWS


def silent_commands(window) -> list[str]:
    """Return the disabled commands whose tip does not say what they need in a sentence."""
    return [
        command.id
        for command in COMMANDS
        if not window.actions_by_id[command.id].isEnabled()
        and not window.actions_by_id[command.id].toolTip().endswith(".")
    ]


def silent_buttons(window) -> list[str]:
    """Return the visible disabled buttons without a tip."""
    return [
        button.objectName() or button.text()
        for button in window.findChildren(QAbstractButton)
        if button.isVisible() and not button.isEnabled() and not button.toolTip()
    ]


def test_every_disabled_command_and_button_says_what_it_needs_in_every_view(run, window, golden):
    """A grey command did not say why it was grey. Users tried it in view after view."""
    window.show_welcome()
    window.enable()
    assert silent_commands(window) == []
    assert window.actions_by_id["view.units"].toolTip() == STORE
    assert run(window.open(golden("broker-orders")))
    silent = {}
    for view in VIEWS:
        window.show_view(view.kind)
        run(window.settled())
        window.enable()
        commands, buttons = silent_commands(window), silent_buttons(window)
        if commands or buttons:
            silent[view.kind] = (commands, buttons)
    assert silent == {}


def test_the_palette_a_menu_and_a_key_say_what_a_command_needs(run, window, golden):
    assert run(window.open(golden("broker-orders")))
    window.show_view("cluster")
    window.enable()
    entry = next(entry for entry in entries(window, ">send a message") if not entry.enabled)
    assert entry.note == CONNECT
    entry.work()
    assert window.status.message.text() == CONNECT
    window.say("")
    send = window.actions_by_id["cluster.send"]
    menu = next(
        menu for menu in window.strip.menus if any(send in part.actions() for part in (menu, *menu.findChildren(QMenu)))
    )
    menu.hovered.emit(send)
    assert window.status.message.text() == CONNECT
    menu.aboutToHide.emit()
    assert window.status.message.text() != CONNECT
    key = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
    window.keyPressEvent(QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Z, key))
    assert window.status.message.text() == CONNECT
