"""Who holds the lock of a store is asked without taking it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys

from engine.inspection.lock_state import lock_state
from engine.mapped.reading import Reading

HOLD = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX, 1); print('held', flush=True); sys.stdin.read()"  # noqa: E501


def test_free_held_and_absent(tmp_path):
    file = tmp_path / "lock"
    assert lock_state(Reading(), file) == "absent"
    file.write_bytes(b"lock")
    assert lock_state(Reading(), file) == "free"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"held\n"
        assert lock_state(Reading(), file) == "held"
        one.communicate(b"")
    assert lock_state(Reading(), file) == "free"


def test_asking_takes_nothing(tmp_path):
    file = tmp_path / "lock"
    file.write_bytes(b"lock")
    lock_state(Reading(), file)
    descriptor = os.open(file, os.O_RDWR)
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
    os.close(descriptor)
