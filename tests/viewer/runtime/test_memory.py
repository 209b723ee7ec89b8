"""Free memory goes back to the system."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from viewer.runtime import memory

PROGRAM = """
import os
from viewer.runtime import memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
held = [bytes([number % 251 + 1]) * 100_000 for number in range(1_000)]
last = b"x" * 100_000
full = resident()
del held
memory.give_back()
print(full - resident())
"""


def test_what_is_freed_below_what_is_held_goes_back() -> None:
    root = Path(__file__).resolve().parents[3]
    run = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        run,
        cwd=root,
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "1000000"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) > 80_000_000


def test_the_library_takes_the_settings() -> None:
    assert memory.keep_little()
