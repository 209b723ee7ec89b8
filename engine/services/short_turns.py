"""Short turns: while a service works beside busy producers, threads change places after a fraction of a millisecond.

Each write and each compiled loop of a service gives the interpreter lock away, and getting it back from a thread that
computes takes a whole switch interval, five milliseconds unless told otherwise: a service with twenty writes to do then
needs a tenth of a second for them and falls behind. The interval belongs to the interpreter, so it is shortened only
while such work goes on, and whatever it was before comes back with the end of the last one.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

INTERVAL: Final = 0.0002
"""Seconds of one turn."""
_ROUNDING: Final = 5e-7
"""The interpreter counts whole microseconds and rounds down: without it the interval would shrink time and again."""


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
