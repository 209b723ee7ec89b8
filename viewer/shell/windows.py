"""Windows of their own: a link followed with Shift opens its place beside the one it came from.

All windows live in one process and share the settings; only the first remembers sizes. Each has its own look at the
store, so closing one closes nothing of another.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt

from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.shell.layout import SMALLEST, beside, margins_of

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from viewer.pane.store_window import StoreWindow

MOST = 8

_open: list[StoreWindow] = []


def windows() -> tuple[StoreWindow, ...]:
    """The windows beside the first."""
    return tuple(_open)


def open_beside(
    window: StoreWindow,
    store: Path,
    at: str | None = None,
    *,
    tied: bool = False,
    lends: bool = False,
    config: MessageStoreConfig | None = None,
) -> StoreWindow | None:
    """A new window with ``store`` at ``at``; None where there are :data:`MOST` already. ``lends``: topics have the
    colours that they have in the first, as in a second window of the same store; ``tied``: and both share the screen.
    ``config`` is that of ``store``.
    """
    if len(_open) >= MOST:
        return None
    made = window.another()
    made.remembers = False
    made.lender = window.topic_colours if tied or lends else None
    for one in (window, made) if tied else ():
        one.tie(True)
    _place(window, made, tied=tied)
    made.installEventFilter(_Forgetter(made))
    _open.append(made)
    made.show()
    made.jobs.start(made.open(store, at, config))
    return made


def _place(first: StoreWindow, second: StoreWindow, *, tied: bool) -> None:
    """Put ``second`` beside ``first``, inside the screen; a screen too small for any window is left alone."""
    room = first.screen().availableGeometry()
    second.resize(first.size())
    if room.width() < SMALLEST[0] or room.height() < SMALLEST[1]:
        return
    edge = margins_of(first)
    here, there = beside(first.frameGeometry(), room, tied=tied)
    if here != first.frameGeometry():
        if first.isMaximized():
            first.showNormal()
        first.setGeometry(here.marginsRemoved(edge))
    second.setGeometry(there.marginsRemoved(edge))


def show_beside(window: StoreWindow, place: Place) -> StoreWindow | None:
    """The same store at ``place`` in a new window."""
    session = window.session
    if session is None:
        return None
    at = places.text_of(replace(place, new_window=False))
    return open_beside(window, session.path, at, lends=True, config=session.config)


async def all_closed() -> None:
    """Until no window beside the first is open."""
    while _open:  # noqa: ASYNC110 (windows are closed by people, in Qt)
        await asyncio.sleep(0.1)


async def close_all() -> None:
    """Close every window beside the first, and wait for what they have under way."""
    while _open:
        window = _open[-1]
        window.close()
        await window.jobs.drain()
        if window in _open:
            _open.remove(window)


class _Forgetter(QObject):
    """Lets go of a window when it was closed."""

    def __init__(self, window: StoreWindow) -> None:
        super().__init__(window)
        self._window = window

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Look at closing only."""
        if event.type() == QEvent.Type.Close and self._window in _open:
            _open.remove(self._window)
            self._window.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return False
