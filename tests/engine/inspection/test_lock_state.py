"""Who holds the lock of a store is asked without taking it."""

from __future__ import annotations

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
    """Another process has it at once: a lock of this one would not stand in its own way."""
    file = tmp_path / "lock"
    file.write_bytes(b"lock")
    assert lock_state(Reading(), file) == "free"
    at_once = HOLD.replace("LOCK_EX", "LOCK_EX | fcntl.LOCK_NB")
    done = subprocess.run([sys.executable, "-c", at_once, str(file)], input=b"", capture_output=True)
    assert (done.stdout, done.returncode) == (b"held\n", 0), done.stderr
