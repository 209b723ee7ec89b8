"""Free memory is returned to the system."""

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


def test_memory_freed_below_used_blocks_is_returned() -> None:
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


def test_the_library_accepts_the_settings() -> None:
    assert memory.keep_little()


CODE = """
import mmap, os, sys
from viewer.runtime import memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
with open(sys.argv[1], "rb") as file:
    read = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
    written = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
written[:] = read[:][::-1]
full = resident()
told = memory.give_back_code()
print(told, full - resident(), read[:3] + written[-3:])
"""


def test_read_only_pages_leave_memory_and_written_ones_stay(tmp_path: Path) -> None:
    """The test uses its own file: pages that other programs map too stay in memory."""
    code = tmp_path / "code"
    code.write_bytes(b"abc" + bytes(48 << 20))
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(code)],
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    reported, output, saved = done.stdout.split(maxsplit=2)
    assert int(reported) > 48 << 20
    assert int(output) > 40_000_000
    assert saved.strip() == "b'abccba'"
