"""The actions of a menu, with those of its submenus in their place."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu


def actions_in(menu: QMenu) -> Iterator[QAction]:
    """Yield the actions of a menu and its submenus from top to bottom; a submenu's own line is left out."""
    for action in menu.actions():
        submenu = action.menu()
        if isinstance(submenu, QMenu):
            yield from actions_in(submenu)
        else:
            yield action
