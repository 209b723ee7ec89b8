"""Warnings about other hosts, at most once a second for each cause: a broker that is away fails the pulls of all its
queues, heartbeats and routes, again and again.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

INTERVAL_S = 1.0
"""Seconds from one line about a cause to the next."""
_MAX_CAUSES = 1000


@dataclass(slots=True)
class _Cause:
    logged_at: float
    suppressed_count: int = 0


class RepeatedWarnings:
    """Remembers when each cause was logged last. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._causes: dict[str, _Cause] = {}

    def warn(self, logger: logging.Logger, cause: str, text: str, *args: object) -> None:
        """Log a warning, unless one about the same cause was logged within the last second. The next line about the
        cause says how many were left out.
        """
        now = time.monotonic()
        with self._lock:
            known_cause = self._causes.pop(cause, None)
            if known_cause is not None and now - known_cause.logged_at < INTERVAL_S:
                known_cause.suppressed_count += 1
                self._causes[cause] = known_cause
                return
            self._causes[cause] = _Cause(now)  # at the end: the first ones are the oldest
            if len(self._causes) > _MAX_CAUSES:
                del self._causes[next(iter(self._causes))]
        suppressed_count = 0 if known_cause is None else known_cause.suppressed_count
        if suppressed_count:
            text, args = text + " (%d more of this cause since the last line)", (*args, suppressed_count)
        logger.warning(text, *args)


_WARNINGS = RepeatedWarnings()
"""Shared by all clients of this process."""
warn = _WARNINGS.warn
