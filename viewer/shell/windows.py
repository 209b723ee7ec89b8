"""Further windows and tabs: a link that is opened with Shift shows its place in a new window beside the old one.

All windows and tabs live in one process and share the settings; only the first remembers sizes. Each has its own
session, so closing a window or a tab closes nothing in another.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt

from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.shell.layout import MIN_WINDOW_SIZE, beside, margins_of
from viewer.shell.tab_window import put_into_tabs, tab_window_of

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from viewer.shell.main_window import MainWindow

MAX_WINDOWS = 8

_open: list[MainWindow] = []


def windows() -> tuple[MainWindow, ...]:
    """Return the windows and tabs beside the first."""
    return tuple(_open)


def open_beside(
    window: MainWindow,
    store: Path,
    place_text: str | None = None,
    *,
    tied: bool = False,
    lends: bool = False,
    config: MessageStoreConfig | None = None,
) -> MainWindow | None:
    """Open a new window with ``store`` at ``place_text``. Return None if :data:`MAX_WINDOWS` windows are open.

    ``lends``: topics get the colours that they have in the first window, for a second window of the same store.
    ``tied``: as ``lends``, and both windows share the screen. ``config`` is the broker configuration of
    ``store``.
    """
    if len(_open) >= MAX_WINDOWS:
        return None
    new_window = _make(window)
    new_window.lender = window.topic_colours if tied or lends else None
    if tab_window_of(window) is not None:
        put_into_tabs(new_window)
    put_beside(window, new_window, tied=tied)
    new_window.window().show()
    new_window.jobs.start(new_window.open(store, place_text, config))
    return new_window


def open_tab(
    window: MainWindow,
    store: Path | None = None,
    place_text: str | None = None,
    *,
    config: MessageStoreConfig | None = None,
    front: bool = True,
) -> MainWindow | None:
    """Open ``store`` in a new tab of the window of ``window``; without a store show the first page there.

    Returns None if :data:`MAX_WINDOWS` windows and tabs are open beside the first. With ``front`` the tab is shown.
    """
    if len(_open) >= MAX_WINDOWS:
        return None
    tabs, page = put_into_tabs(window), _make(window)
    tabs.add(page, front=front)
    if store is None:
        page.show_welcome()
    else:
        page.jobs.start(page.open(store, place_text, config))
    return page


def _make(window: MainWindow) -> MainWindow:
    """Return a new window that is in the list until it closes."""
    new_window = window.another()
    new_window.remembers = False
    new_window.installEventFilter(_Forgetter(new_window))
    _open.append(new_window)
    return new_window


def put_beside(window: MainWindow, second: MainWindow, *, tied: bool) -> None:
    """Put the window of ``second`` beside the first one, inside the screen. Do nothing if the screen is too small.

    ``tied``: both are small enough to share the screen.
    """
    for member in (window, second) if tied else ():
        member.tie(True)
    top, second_top, room = window.window(), second.window(), window.screen().availableGeometry()
    second_top.resize(top.size())
    if room.width() < MIN_WINDOW_SIZE[0] or room.height() < MIN_WINDOW_SIZE[1]:
        return
    edge = margins_of(top)
    window_frame, second_frame = beside(top.frameGeometry(), room, tied=tied)
    if window_frame != top.frameGeometry():
        if top.isMaximized():
            top.showNormal()
        top.setGeometry(window_frame.marginsRemoved(edge))
    second_top.setGeometry(second_frame.marginsRemoved(edge))


def show_beside(window: MainWindow, place: Place) -> MainWindow | None:
    """Open the same store at ``place`` in a new window."""
    session = window.session
    if session is None:
        return None
    place_text = places.text_of(replace(place, new_window=False))
    return open_beside(window, session.path, place_text, lends=True, config=session.config)


async def all_closed() -> None:
    """Wait until no window beside the first is open."""
    while _open:  # noqa: ASYNC110 (windows are closed by people, in Qt)
        await asyncio.sleep(0.1)


async def close_all() -> None:
    """Close every window beside the first, and wait for their running work."""
    while _open:
        window = _open[-1]
        window.close()
        await window.jobs.drain()
        if window in _open:
            _open.remove(window)


class _Forgetter(QObject):
    """Drops a window from the list when it is closed."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Watch for the close event only."""
        if event.type() == QEvent.Type.Close and self._window in _open:
            _open.remove(self._window)
            self._window.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return False
