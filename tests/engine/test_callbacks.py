"""The clock of the system counts milliseconds."""

from __future__ import annotations

import time

from engine.callbacks import system_clock


def test_the_system_clock_gives_milliseconds_since_1970():
    start = time.time()
    now = system_clock()
    assert isinstance(now, int)
    assert start - 0.001 <= now / 1000 <= time.time()
