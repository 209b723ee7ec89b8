"""Observation of the frames of connections: the server's frames are passed on as values, never parsed a second time.

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
from engine.remoting.exchanges import BROKEN, CAME, CLOSED, LATER, OPENED, WENT, FrameEvent
from engine.remoting.frame import Command

MAX_BROKEN_BYTES = 64 << 10
"""Bytes of a broken frame that are kept."""
RING_BYTES = 64 << 20
"""Bytes of frames that are kept in memory; the oldest go."""
_EVENT_OVERHEAD_BYTES = 600
"""Bytes that a frame costs beside its own."""
OnEvent = Callable[[FrameEvent], None]
_log = logging.getLogger(__name__)


class FrameTap:
    """Calls ``takes`` with the events on the connections of one ``server`` (``broker`` or ``namesrv``).

    A callback that fails is not called again: observing never harms the server. Connections are counted over all taps
    together.
    """

    _counted = 0

    def __init__(self, server: str, *takes: OnEvent) -> None:
        self._server = server
        self.takes = list(takes)
        self._numbers: dict[Connection, int] = {}

    def opened(self, connection: Connection) -> None:
        """Report a new connection."""
        FrameTap._counted += 1
        self._numbers[connection] = FrameTap._counted
        self._tell(connection, OPENED, f"{connection.peer} {self._server}".encode())

    def received(self, connection: Connection, command: Command, frame: bytes) -> None:
        """Report a frame that arrived."""
        self._tell(connection, CAME, frame, replace(command, body=b""))

    def sent(self, connection: Connection, command: Command, frame: bytes, *, later: bool) -> None:
        """Report a frame that is written."""
        self._tell(connection, LATER if later else WENT, frame, replace(command, body=b""))

    def broke(self, connection: Connection, reason: str, data: bytes) -> None:
        """Report bytes that are no frame."""
        self._tell(connection, BROKEN, data[:MAX_BROKEN_BYTES], None, reason)

    def closed(self, connection: Connection) -> None:
        """Report the end of a connection."""
        self._tell(connection, CLOSED)
        self._numbers.pop(connection, None)

    def _tell(
        self, connection: Connection, kind: int, data: bytes = b"", command: Command | None = None, reason: str = ""
    ) -> None:
        number = self._numbers.get(connection)
        if number is None:
            return
        event = FrameEvent(time.time_ns() // 1000, number, kind, data, command, reason)
        for take in list(self.takes):
            try:
                take(event)
            except Exception:  # noqa: BLE001  a full disk under a log is no reason to stop serving
                _log.exception("frames cannot be recorded; no further one is")
                self.takes.remove(take)


class Ring:
    """The last frames, at most ``limit_bytes`` of them. One thread fills it, another reads it.

    Each has a number, counted from 0; ``dropped`` is the number of the oldest that were removed.
    """

    def __init__(self, limit_bytes: int = RING_BYTES) -> None:
        self._most = limit_bytes
        self._held: deque[FrameEvent] = deque()
        self._lock = threading.Lock()
        self.bytes = 0
        self.dropped = 0

    def take(self, event: FrameEvent) -> None:
        """Add an event; the oldest make room."""
        with self._lock:
            self._held.append(event)
            self.bytes += len(event.data) + _EVENT_OVERHEAD_BYTES
            while self.bytes > self._most and len(self._held) > 1:
                self.bytes -= len(self._held.popleft().data) + _EVENT_OVERHEAD_BYTES
                self.dropped += 1

    def events_from(self, number: int, limit_bytes: int) -> tuple[int, list[FrameEvent]]:
        """Return the events from ``number`` on, about ``limit_bytes`` of them and at least one, and the number of the
        first: larger than ``number`` where events were dropped.
        """
        with self._lock:
            start_number = max(number, self.dropped)
            events: list[FrameEvent] = []
            total = 0
            for index in range(start_number - self.dropped, len(self._held)):
                event = self._held[index]
                total += len(event.data) + _EVENT_OVERHEAD_BYTES
                if events and total > limit_bytes:
                    break
                events.append(event)
            return start_number, events
