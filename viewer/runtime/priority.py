"""Lower priority for this process: the window for a broker, and the worker for the window.

A lowered priority cannot be raised again. It costs nothing while no other process needs the processor.
"""

from __future__ import annotations

from engine import system

BACKGROUND_NICENESS = 10
"""The nice value of these processes."""


def stand_back() -> None:
    """Lower the priority of all threads of this process; threads started later inherit it. Does nothing on systems
    without priorities.
    """
    system.lower_priority(BACKGROUND_NICENESS)
