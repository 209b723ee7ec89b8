"""A second start hands its path over to the window that runs already, and ends.

One address a user and settings folder: who keeps settings elsewhere has a window of his own. What is said is one line
of JSON, the answer one word. Nothing here may keep a start from happening: where nobody answers in time, or answers
something else, the start opens its own window.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket
from PySide6.QtWidgets import QApplication

from viewer.look.assets import tr
from viewer.shell.windows import open_beside, windows

if TYPE_CHECKING:
    from viewer.pane.store_window import StoreWindow

ANSWER_MS = 2000
"""How long a second start waits for the first one's word."""
LONGEST_LINE = 1 << 16
TAKEN = b"taken\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a second start wants shown: a store (None: only the window), and a place in it."""

    store: Path | None = None
    at: str | None = None

    def line(self) -> bytes:
        """As it is sent."""
        said = {"store": str(self.store.absolute()) if self.store is not None else None, "at": self.at}
        return json.dumps(said).encode() + b"\n"


def read_line(line: bytes) -> Asked | None:
    """What was sent; None where it is nothing of the kind."""
    try:
        said = json.loads(line)
    except ValueError:
        return None
    match said:
        case {"store": str() | None as store, "at": str() | None as at}:
            return Asked(Path(store) if store else None, at)
    return None


def address(folder: Path) -> str:
    """Where the window of this user with settings in ``folder`` listens: a socket in the user's run-time folder, or a
    name that Qt places.
    """
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = ""
    key = hashlib.sha256(f"{user}\n{folder.absolute()}".encode()).hexdigest()[:16]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return str(Path(runtime) / f"storescope-{key}") if runtime and Path(runtime).is_dir() else f"storescope-{key}"


def hand_over(folder: Path, asked: Asked) -> bool:
    """Tell the window that runs what is wanted; whether it took it. Waits at most twice :data:`ANSWER_MS`."""
    socket = QLocalSocket()
    socket.connectToServer(address(folder))
    if not socket.waitForConnected(ANSWER_MS):
        return False
    socket.write(asked.line())
    answer = b""
    while not answer.endswith(b"\n") and len(answer) < len(TAKEN) and socket.waitForReadyRead(ANSWER_MS):
        answer += bytes(socket.readAll().data())
    socket.disconnectFromServer()
    return answer == TAKEN


class Doorbell(QObject):
    """Listens for second starts: ``rung(Asked)``. One a process, at the first window."""

    rung = Signal(object)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("doorbell")
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._met)
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        self.listening = self._listen(address(folder))

    def _listen(self, name: str) -> bool:
        """Take the address, unless somebody answers there; what a process left behind when it died is taken away."""
        other = QLocalSocket()
        other.connectToServer(name)
        if other.waitForConnected(ANSWER_MS):
            other.disconnectFromServer()
            return False
        QLocalServer.removeServer(name)
        return bool(self._server.listen(name))

    def close(self) -> None:
        """Listen no more; the address is free again."""
        self._server.close()
        self.listening = False

    def _met(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.setParent(self)
            socket.disconnected.connect(socket.deleteLater)
            socket.readyRead.connect(_reader(socket, self.rung.emit))
            if socket.bytesAvailable():
                socket.readyRead.emit()


def _reader(socket: QLocalSocket, ring: Callable[[Asked], object]) -> Callable[[], None]:
    """Reads one line, answers, and rings; whoever says something else is shown the door."""

    def read() -> None:
        if not socket.canReadLine():
            if socket.bytesAvailable() > LONGEST_LINE:
                socket.abort()
            return
        asked = read_line(bytes(socket.readLine(LONGEST_LINE).data()))
        if asked is None:
            socket.abort()
            return
        socket.write(TAKEN)
        socket.flush()
        socket.disconnectFromServer()
        ring(asked)

    return read


def answer(window: StoreWindow, asked: Asked) -> StoreWindow:
    """Show what a second start wants, in front of everything; gives the window that shows it.

    A store that stands in a window is shown there; another one gets the first window where that is empty, else a
    window of its own.
    """
    shown = window
    if asked.store is not None:
        known = next((one for one in (window, *windows()) if _shows(one, asked.store)), None)
        if known is not None:
            shown = known
            if asked.at:
                known.jobs.start(known.go_to_text(asked.at))
        elif window.session is None and not window.opening:
            window.jobs.start(window.open(asked.store, asked.at))
        else:
            beside = open_beside(window, asked.store, asked.at)
            shown = beside if beside is not None else window
            if beside is None:
                window.say(tr("There are too many windows: close one first."))
    raise_window(shown)
    return shown


def _shows(window: StoreWindow, store: Path) -> bool:
    """Whether ``store``, or the store below it, stands in ``window``."""
    return window.session is not None and store in {window.session.path, window.session.path.parent}


def raise_window(window: StoreWindow) -> None:
    """Bring the window to the front; where the desktop refuses that, it is marked in the task bar."""
    window.setWindowState((window.windowState() & ~Qt.WindowState.WindowMinimized) | Qt.WindowState.WindowActive)
    window.show()
    window.raise_()
    window.activateWindow()
    QApplication.alert(window)
