"""Looking at the frames of connections: what a server lends, handed on as values. Never a second parser.

A server without a tap pays one test a frame (:class:`engine.remoting.connection.Tap`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from engine.remoting.connection import Connection
from engine.remoting.exchanges import BROKEN, CAME, CLOSED, LATER, OPENED, WENT, Seen
from engine.remoting.frame import Command

MOST_BROKEN = 64 << 10
"""Bytes of a broken frame that are kept."""
RING = 64 << 20
"""Bytes of frames that are kept in memory; the oldest go."""
_COST = 600
"""Bytes that a frame costs beside its own."""
Take = Callable[[Seen], None]
_log = logging.getLogger(__name__)


class FrameTap:
    """Tells ``takes`` of what is seen on the connections of one ``server`` (``broker`` or ``namesrv``).

    Who takes and fails is told no more: looking never harms. Connections are counted over all taps together.
    """

    _counted = 0

    def __init__(self, server: str, *takes: Take) -> None:
        self._server = server
        self.takes = list(takes)
        self._numbers: dict[Connection, int] = {}

    def opened(self, connection: Connection) -> None:
        """A connection stands."""
        FrameTap._counted += 1
        self._numbers[connection] = FrameTap._counted
        self._tell(connection, OPENED, f"{connection.peer} {self._server}".encode())

    def came(self, connection: Connection, command: Command, frame: bytes) -> None:
        """A frame came."""
        self._tell(connection, CAME, frame, replace(command, body=b""))

    def went(self, connection: Connection, command: Command, frame: bytes, *, later: bool) -> None:
        """A frame goes."""
        self._tell(connection, LATER if later else WENT, frame, replace(command, body=b""))

    def broke(self, connection: Connection, reason: str, data: bytes) -> None:
        """Report bytes that are no frame."""
        self._tell(connection, BROKEN, data[:MOST_BROKEN], None, reason)

    def closed(self, connection: Connection) -> None:
        """A connection has ended."""
        self._tell(connection, CLOSED)
        self._numbers.pop(connection, None)

    def _tell(
        self, connection: Connection, kind: int, data: bytes = b"", command: Command | None = None, reason: str = ""
    ) -> None:
        number = self._numbers.get(connection)
        if number is None:
            return
        event = Seen(time.time_ns() // 1000, number, kind, data, command, reason)
        for take in list(self.takes):
            try:
                take(event)
            except Exception:  # noqa: BLE001  a full disk under a log is no reason to stop serving
                _log.exception("what is seen cannot be kept; nothing more is told")
                self.takes.remove(take)


class Ring:
    """The last frames, at most ``most`` bytes of them. Filled by one thread, read by another.

    Each has a number, counted from 0; ``dropped`` is how many of the oldest have gone.
    """

    def __init__(self, limit_bytes: int = RING) -> None:
        self._most = limit_bytes
        self._held: deque[Seen] = deque()
        self._lock = threading.Lock()
        self.bytes = 0
        self.dropped = 0

    def take(self, event: Seen) -> None:
        """Add an event; the oldest make room."""
        with self._lock:
            self._held.append(event)
            self.bytes += len(event.data) + _COST
            while self.bytes > self._most and len(self._held) > 1:
                self.bytes -= len(self._held.popleft().data) + _COST
                self.dropped += 1

    def since(self, number: int, limit_bytes: int) -> tuple[int, list[Seen]]:
        """Return the events from ``number`` on, about ``limit_bytes`` of them and at least one, and the number of the
        first: larger than ``number`` where events were dropped.
        """
        with self._lock:
            start_number = max(number, self.dropped)
            events: list[Seen] = []
            total = 0
            for index in range(start_number - self.dropped, len(self._held)):
                event = self._held[index]
                total += len(event.data) + _COST
                if events and total > limit_bytes:
                    break
                events.append(event)
            return start_number, events
