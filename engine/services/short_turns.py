"""Short turns: while a service works beside busy producers, threads change places after a fraction of a millisecond.

Each write and each compiled loop of a service gives the interpreter lock away, and getting it back from a thread that
computes takes a whole switch interval, five milliseconds unless told otherwise: a service with twenty writes to do then
needs a tenth of a second for them and falls behind. The interval belongs to the interpreter, so it is shortened only
while such work goes on, and whatever it was before comes back with the end of the last one.

The same holds for those who wait for a flush beside threads that never pause: each has to get the interpreter back when
the disk is done. But among producers alone long turns are the better ones, so there a :class:`Crowd` decides.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

INTERVAL: Final = 0.0002
"""Seconds of one turn."""
_ROUNDING: Final = 5e-7
"""The interpreter counts whole microseconds and rounds down: without it the interval would shrink time and again."""


class Crowd:
    """Whether threads that compute keep the interpreter from those that wake up: told by how late a thread comes back
    that sleeps a known time, on the mean of its last eight naps or so. ``now`` gives seconds.
    """

    _LATE: Final = 0.002
    _MOST: Final = 0.05
    _NAPS: Final = 8

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._due = float("inf")
        self._late = 0.0

    @property
    def is_dense(self) -> bool:
        """Whether whoever wakes up has to wait for two milliseconds and more."""
        return self._late > self._LATE

    def sleeps(self, seconds: float) -> None:
        """The thread is about to sleep."""
        self._due = self._now() + seconds

    def wakes(self) -> None:
        """The thread is back; before its time it was woken, and that tells nothing."""
        late = self._now() - self._due
        if late >= 0:
            self._late += (min(late, self._MOST) - self._late) / self._NAPS


class _Turns:
    """How many works go on, and the interval from before the first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.works = 0
        self.before = INTERVAL


_turns = _Turns()


@contextmanager
def short_turns() -> Iterator[None]:
    """Turns are short within the block; blocks of several threads and stores may overlap."""
    turns = _turns
    with turns.lock:
        if turns.works == 0:
            turns.before = sys.getswitchinterval()
            sys.setswitchinterval(min(turns.before, INTERVAL) + _ROUNDING)
        turns.works += 1
    try:
        yield
    finally:
        with turns.lock:
            turns.works -= 1
            if turns.works == 0:
                sys.setswitchinterval(turns.before + _ROUNDING)
