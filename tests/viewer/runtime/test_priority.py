"""Beside a writing broker, every thread of the window has a lower priority."""

from __future__ import annotations

import subprocess
import sys

WORDS = """
import os, threading, time
from viewer.runtime.priority import BACKGROUND_NICENESS, stand_back
wait = threading.Event()
threads = [threading.Thread(target=wait.wait, daemon=True) for _ in range(2)]
[one.start() for one in threads]
before = os.getpriority(os.PRIO_PROCESS, 0)
stand_back()
late = threading.Thread(target=wait.wait, daemon=True)
late.start()
seen = {os.getpriority(os.PRIO_PROCESS, int(task)) for task in os.listdir("/proc/self/task")}
assert seen == {max(before, BACKGROUND_NICENESS)}, (before, seen)
stand_back()
assert os.getpriority(os.PRIO_PROCESS, 0) == max(before, BACKGROUND_NICENESS)
"""


def test_all_present_and_later_threads_get_a_low_priority() -> None:
    subprocess.run([sys.executable, "-c", WORDS], check=True, timeout=60)
