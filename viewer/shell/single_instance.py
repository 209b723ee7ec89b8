"""A second start hands its path to the running window and ends.

There is one address for each user and settings folder, so another settings folder gets its own window. The
request is one line of JSON, the answer one word. Nothing here may block a start: if there is no answer in time,
or an unexpected one, the start opens its own window.
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
from viewer.runtime.store_session import straight_path
from viewer.shell.tab_window import tab_window_of
from viewer.shell.windows import open_beside, open_tab, windows

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow

ANSWER_MS = 2000
"""How long a second start waits for the answer of the first."""
MAX_LINE_BYTES = 1 << 16
ACCEPTED = b"taken\n"


@dataclass(frozen=True, slots=True)
class SecondStart:
    """The request of a second start: a store (None: only the window), a place in it, and stores for further tabs."""

    store: Path | None = None
    at: str | None = None
    further: tuple[Path, ...] = ()

    def line(self) -> bytes:
        """Return the request as the line that is sent."""
        message = {
            "store": str(self.store.absolute()) if self.store is not None else None,
            "at": self.at,
            "further": [str(store.absolute()) for store in self.further],
        }
        return json.dumps(message).encode() + b"\n"


def read_line(line: bytes) -> SecondStart | None:
    """Parse the received line. Return None if it is not a request."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    match message:
        case {"store": str() | None as store, "at": str() | None as place_text}:
            further = message.get("further", [])
            if isinstance(further, list) and all(isinstance(path, str) for path in further):
                return SecondStart(Path(store) if store else None, place_text, tuple(map(Path, further)))
    return None


def address(folder: Path) -> str:
    """Return the address of the window for this user and settings ``folder``.

    It is a socket in the user's run-time folder, or a name that Qt places.
    """
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = ""
    key = hashlib.sha256(f"{user}\n{folder.absolute()}".encode()).hexdigest()[:16]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return str(Path(runtime) / f"storescope-{key}") if runtime and Path(runtime).is_dir() else f"storescope-{key}"


def hand_over(folder: Path, request: SecondStart) -> bool:
    """Send the request to the running window. Return True if it accepts. Waits at most twice :data:`ANSWER_MS`."""
    socket = QLocalSocket()
    socket.connectToServer(address(folder))
    if not socket.waitForConnected(ANSWER_MS):
        return False
    socket.write(request.line())
    answer = b""
    while not answer.endswith(b"\n") and len(answer) < len(ACCEPTED) and socket.waitForReadyRead(ANSWER_MS):
        answer += bytes(socket.readAll().data())
    socket.disconnectFromServer()
    return answer == ACCEPTED


class SecondStartListener(QObject):
    """Listens for second starts: ``startReceived(SecondStart)``. There is one in a process, at the first window."""

    startReceived = Signal(object)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("secondStartListener")
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        self.listening = self._listen(address(folder))

    def _listen(self, name: str) -> bool:
        """Listen at the address unless another process answers there. Remove what a dead process left behind."""
        running = QLocalSocket()
        running.connectToServer(name)
        if running.waitForConnected(ANSWER_MS):
            running.disconnectFromServer()
            return False
        QLocalServer.removeServer(name)
        return bool(self._server.listen(name))

    def close(self) -> None:
        """Stop listening and free the address."""
        self._server.close()
        self.listening = False

    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.setParent(self)
            socket.disconnected.connect(socket.deleteLater)
            socket.readyRead.connect(_reader(socket, self.startReceived.emit))
            if socket.bytesAvailable():
                socket.readyRead.emit()


def _reader(socket: QLocalSocket, on_start: Callable[[SecondStart], object]) -> Callable[[], None]:
    """Return a function that reads a line, answers it and calls ``on_start``. Other content closes the connection."""

    def read() -> None:
        if not socket.canReadLine():
            if socket.bytesAvailable() > MAX_LINE_BYTES:
                socket.abort()
            return
        request = read_line(bytes(socket.readLine(MAX_LINE_BYTES).data()))
        if request is None:
            socket.abort()
            return
        socket.write(ACCEPTED)
        socket.flush()
        socket.disconnectFromServer()
        on_start(request)

    return read


def answer(window: MainWindow, request: SecondStart) -> MainWindow:
    """Show what a second start requests, in front of everything. Return the window that shows it.

    If a window shows the store already, it is used. Another store opens in the first window if that is empty,
    otherwise in a new window.
    """
    if window.closed:  # its tab was closed, and another one is open
        window = next((candidate for candidate in windows() if not candidate.closed), window)
    shown = window
    if request.store is not None:
        showing = next((candidate for candidate in (window, *windows()) if shows_store(candidate, request.store)), None)
        if showing is not None:
            shown = showing
            if request.at:
                showing.jobs.start(showing.go_to_text(request.at))
        elif window.session is None and not window.opening:
            window.jobs.start(window.open(request.store, request.at))
        else:
            beside = open_beside(window, request.store, request.at)
            shown = beside if beside is not None else window
            if beside is None:
                window.say(tr("There are too many windows: close one first."))
    for store in request.further:
        if open_tab(shown, store, front=False) is None:
            window.say(tr("There are too many windows: close one first."))
    raise_window(shown)
    return shown


def shows_store(window: MainWindow, store: Path) -> bool:
    """Return True if ``window`` shows ``store`` or the store below it."""
    session = window.session
    return session is not None and straight_path(store) in {session.path, session.path.parent}


def raise_window(window: MainWindow) -> None:
    """Bring the window, and its tab, to the front. If the desktop refuses, mark it in the task bar."""
    tabs, top = tab_window_of(window), window.window()
    if tabs is not None:
        tabs.show_page(window)
    top.setWindowState((top.windowState() & ~Qt.WindowState.WindowMinimized) | Qt.WindowState.WindowActive)
    top.show()
    top.raise_()
    top.activateWindow()
    QApplication.alert(top)
