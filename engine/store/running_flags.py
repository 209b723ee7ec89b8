"""Flags that stop a store from taking or returning messages, each with its reason (docs/formats/writing.md#checks).

Java: ``RunningFlags``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from engine.sentences import join, msgid, sentence

NOT_READABLE: Final = 1
NOT_WRITEABLE: Final = 2
QUEUE_WRITE_ERROR: Final = 4
INDEX_WRITE_ERROR: Final = 8
DISK_FULL: Final = 16
FENCED: Final = 32
LOGIC_DISK_FULL: Final = 64

_STOPS_PUTS: Final = NOT_WRITEABLE | QUEUE_WRITE_ERROR | INDEX_WRITE_ERROR | DISK_FULL | FENCED | LOGIC_DISK_FULL
_STOPS_QUEUES: Final = NOT_WRITEABLE | QUEUE_WRITE_ERROR | INDEX_WRITE_ERROR | LOGIC_DISK_FULL

NAMES: Final = {
    NOT_READABLE: msgid("not readable"),
    NOT_WRITEABLE: msgid("not writeable"),
    QUEUE_WRITE_ERROR: msgid("queue write error"),
    INDEX_WRITE_ERROR: msgid("index write error"),
    DISK_FULL: msgid("disk full"),
    FENCED: msgid("fenced"),
    LOGIC_DISK_FULL: msgid("queue disk full"),
}


class RunningFlags:
    """The raised flags as ``bits`` (0 for none), and the reason of each. Any thread may raise one; ``on_change`` is
    called after each change.
    """

    __slots__ = ("_lock", "bits", "on_change", "reasons")

    def __init__(self) -> None:
        self.bits = 0
        self.reasons: dict[int, str] = {}
        self.on_change: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def raise_flag(self, flag: int, why: str) -> bool:
        """Raise ``flag``; its first reason stays. Return True if it was not raised before."""
        with self._lock:
            is_new = not self.bits & flag
            self.reasons.setdefault(flag, why)
            self.bits |= flag
        if is_new and self.on_change is not None:
            self.on_change()
        return is_new

    def clear(self, flag: int) -> bool:
        """Clear ``flag``. Return True if it was raised."""
        with self._lock:
            was_raised = bool(self.bits & flag)
            self.bits &= ~flag
            self.reasons.pop(flag, None)
        if was_raised and self.on_change is not None:
            self.on_change()
        return was_raised

    @property
    def readable(self) -> bool:
        return not self.bits & NOT_READABLE

    @property
    def writeable(self) -> bool:
        """True if puts are accepted."""
        return not self.bits & _STOPS_PUTS

    @property
    def queue_writeable(self) -> bool:
        """True if dispatch writes queue entries: a full disk and a fence stop puts only."""
        return not self.bits & _STOPS_QUEUES

    @property
    def why(self) -> str:
        """Every raised flag with its reason; empty if none is raised."""
        with self._lock:
            reasons = sorted(self.reasons.items())
            return join(
                "; ",
                (sentence("{flag}: {reason}", flag=sentence(NAMES[flag]), reason=reason) for flag, reason in reasons),
            )
