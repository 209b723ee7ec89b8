"""RunningFlags: what keeps a store from taking or giving messages, and why (docs/formats/writing.md#checks; Java:
RunningFlags).
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
    """``bits`` is 0 where all is well; ``reasons`` says for each raised flag why. Any thread may raise one;
    ``on_change`` is called after each change.
    """

    __slots__ = ("_lock", "bits", "on_change", "reasons")

    def __init__(self) -> None:
        self.bits = 0
        self.reasons: dict[int, str] = {}
        self.on_change: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def raise_flag(self, flag: int, why: str) -> bool:
        """Raise ``flag``; the first reason is kept. True where it was down before."""
        with self._lock:
            fresh = not self.bits & flag
            self.reasons.setdefault(flag, why)
            self.bits |= flag
        if fresh and self.on_change is not None:
            self.on_change()
        return fresh

    def clear(self, flag: int) -> bool:
        """Take ``flag`` down; True where it was up."""
        with self._lock:
            was = bool(self.bits & flag)
            self.bits &= ~flag
            self.reasons.pop(flag, None)
        if was and self.on_change is not None:
            self.on_change()
        return was

    @property
    def readable(self) -> bool:
        return not self.bits & NOT_READABLE

    @property
    def writeable(self) -> bool:
        """True if puts are taken."""
        return not self.bits & _STOPS_PUTS

    @property
    def queue_writeable(self) -> bool:
        """True if entries go into queues: a full disk and a fence stop puts only."""
        return not self.bits & _STOPS_QUEUES

    @property
    def why(self) -> str:
        """Every raised flag with its reason; empty where none is raised."""
        with self._lock:
            reasons = sorted(self.reasons.items())
            return join(
                "; ",
                (sentence("{flag}: {reason}", flag=sentence(NAMES[flag]), reason=reason) for flag, reason in reasons),
            )
