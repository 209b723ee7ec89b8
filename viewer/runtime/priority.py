"""Lower priority for this process: the window for a broker, and the worker for the window.

A lowered priority cannot be raised again. It costs nothing while no other process needs the processor.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

BACKGROUND_NICENESS = 10
"""The nice value of these processes."""
TASKS = Path("/proc/self/task")


def stand_back() -> None:
    """Lower the priority of all threads of this process; threads started later inherit it. Does nothing on systems
    without priorities.
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
