"""Lower priority for this process: the window for a broker, and the worker for the window.

A priority that was given up cannot be taken back. Where nothing else wants the processor it costs nothing.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

BACKGROUND_NICENESS = 10
"""How far (nice)."""
TASKS = Path("/proc/self/task")


def stand_back() -> None:
    """All threads of this process, and with them those that they will start; where the system has no such thing,
    nothing.
    """
    if not hasattr(os, "setpriority"):
        return
    try:
        tasks = [int(task.name) for task in TASKS.iterdir()]
    except OSError:
        tasks = [0]
    for task in tasks:
        with contextlib.suppress(OSError):
            if os.getpriority(os.PRIO_PROCESS, task) < BACKGROUND_NICENESS:
                os.setpriority(os.PRIO_PROCESS, task, BACKGROUND_NICENESS)
