"""Types of callbacks: clocks, progress, cancellation. And the system's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

Clock = Callable[[], int]
"""Returns milliseconds since 1970."""
Progress = Callable[[int, int], None]
"""Called with the amount done and the total: bytes, unless the function says otherwise."""
OffsetProgress = Callable[[int], None]
"""Called with the offset in the log that was reached, or with the bytes that were read."""
Cancelled = Callable[[], bool]
"""Returns True to stop."""


class Cancel(Protocol):
    """A flag that asks to stop, such as ``threading.Event``."""

    def is_set(self) -> bool:
        """Return True to stop."""


def system_clock() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000
