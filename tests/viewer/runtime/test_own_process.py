"""Free memory goes back to the system.

Beside a broker that writes, every thread of the window is behind it in the queue for the processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from viewer.runtime import own_process

PROGRAM = """
import os
from viewer.runtime import own_process
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
held = [bytes([number % 251 + 1]) * 100_000 for number in range(1_000)]
last = b"x" * 100_000
full = resident()
del held
own_process.give_back()
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
    assert own_process.keep_little()


CODE = """
import mmap, os, sys
from viewer.runtime import own_process
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
with open(sys.argv[1], "rb") as file:
    read = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
    written = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
written[:] = read[:][::-1]
full = resident()
told = own_process.give_back_code()
print(told, full - resident(), read[:3] + written[-3:])
"""


def test_code_that_was_only_read_leaves_memory_and_what_was_written_stays(tmp_path: Path) -> None:
    """A file of its own: pages that other programs hold too stay where they are."""
    code = tmp_path / "code"
    code.write_bytes(b"abc" + bytes(48 << 20))
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(code)],
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    told, gone, kept = done.stdout.split(maxsplit=2)
    assert int(told) > 48 << 20
    assert int(gone) > 40_000_000
    assert kept.strip() == "b'abccba'"


WORDS = """
import os, threading, time
from viewer.runtime.own_process import BEHIND, stand_back
wait = threading.Event()
threads = [threading.Thread(target=wait.wait, daemon=True) for _ in range(2)]
[one.start() for one in threads]
before = os.getpriority(os.PRIO_PROCESS, 0)
stand_back()
late = threading.Thread(target=wait.wait, daemon=True)
late.start()
seen = {os.getpriority(os.PRIO_PROCESS, int(task)) for task in os.listdir("/proc/self/task")}
assert seen == {max(before, BEHIND)}, (before, seen)
stand_back()
assert os.getpriority(os.PRIO_PROCESS, 0) == max(before, BEHIND)
"""


def test_all_threads_stand_back_and_those_that_come() -> None:
    subprocess.run([sys.executable, "-c", WORDS], check=True, timeout=60)
