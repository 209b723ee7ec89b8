"""Bugs planted in the program for the fuzz campaign's own tests: each must be caught at its own case.

A worker process calls this before its first case. :data:`BUGS` are the program's bugs at case 1, 2, 3 and so on.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import agree
import fuzz_campaign

from engine.cli.main import main

Bug = Callable[[Path], object]
_KEPT: list[bytes] = []


def escape(_: Path) -> None:
    """Raise an exception of ours."""
    raise ZeroDivisionError("planted")


def traceback(_: Path) -> None:
    """Print a traceback on standard error, and go on."""
    sys.stderr.write("Traceback (most recent call last): planted\n")


def change_a_byte(store: Path) -> None:
    """Overwrite one byte and restore the time of the file; only the byte shows it."""
    file = store / "checkpoint"
    status = file.stat()
    with file.open("r+b") as opened:
        opened.seek(3000)
        opened.write(b"\x01")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def leave_a_file(store: Path) -> None:
    """Make a file in the store."""
    (store / "planted").write_bytes(b"")


def make_and_remove_a_file(store: Path) -> None:
    """Make a file and remove it again: only its folder's time shows it."""
    (store / "config" / "planted").write_bytes(b"")
    (store / "config" / "planted").unlink()


def hang(_: Path) -> None:
    """Work endlessly and swallow every ordinary error."""
    while True:
        try:
            sum(range(1000))
        except Exception:  # noqa: BLE001 - as bad code would
            continue


def hang_waiting(_: Path) -> None:
    """Wait endlessly."""
    while True:
        time.sleep(1)


def hang_below_python(_: Path) -> None:
    """Loop endlessly while holding the interpreter: no alarm is heard."""
    sum(range(1 << 60))


def hang_waiting_below_python(_: Path) -> None:
    """Take a lock twice while holding the interpreter: no alarm is heard, and no work is done."""
    library, lock = ctypes.PyDLL(None), ctypes.create_string_buffer(256)
    library.pthread_mutex_lock(lock)
    library.pthread_mutex_lock(lock)


def be_starved(_: Path) -> None:
    """No bug: let much time pass in which the process cannot work, as on a busy machine."""
    time.sleep(2.5 * LIMIT)


def crash(_: Path) -> None:
    """End the process."""
    os.abort()


def hold_memory(_: Path) -> None:
    """Keep more memory than any command should need."""
    _KEPT.append(b"x" * (2 * fuzz_campaign.LEAP * 1024))


def no_json(_: Path) -> None:
    """Print a word between the records, and a control code for the terminal."""
    print("\x1b[2J{")


def strange_exit(_: Path) -> None:
    """Return an unknown exit code."""
    sys.exit(7)


# A campaign of three processes gives each a third of these, one after the other: those that wait longest lie apart.
BUGS: tuple[Bug, ...] = (
    escape,
    traceback,
    hold_memory,
    no_json,
    hang_waiting_below_python,
    hang,
    make_and_remove_a_file,
    change_a_byte,
    crash,
    leave_a_file,
    hang_below_python,
    hang_waiting,
    strange_exit,
)
LIMIT = 1
"""Seconds that a command may take here."""


def plant_all() -> None:
    """Plant bug number N in the answer to case N + 1, and after them a case without a bug."""
    fuzz_campaign.BLOCKED = 8
    planted = (*BUGS, be_starved)

    def spoiled(arguments: list[str]) -> int:
        bench = fuzz_campaign.WorkerStores.now
        if bench is not None and 0 < bench.number <= len(planted):
            planted[bench.number - 1](bench.bed(bench.number).known.store)
        return main(arguments)

    agree.main = spoiled  # type: ignore[assignment]


def leak() -> None:
    """Keep a little memory in every command."""

    def spoiled(arguments: list[str]) -> int:
        _KEPT.append(b"x" * (fuzz_campaign.GROWTH * 1024 // 40))
        return main(arguments)

    agree.main = spoiled  # type: ignore[assignment]
