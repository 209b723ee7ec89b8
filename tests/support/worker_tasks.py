"""Work for the viewer's worker process."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any


def count(control: Any, up_to: int) -> int:
    """Emit 0 … up_to − 1 one by one, return their sum."""
    for number in range(up_to):
        control.emit([number])
    return sum(range(up_to))


def has_qt(_control: Any) -> bool:
    """Return True if Qt was loaded here."""
    return any(name.startswith("PySide6") for name in sys.modules)


def fail(_control: Any, words: str) -> None:
    """Raise."""
    raise ValueError(words)


def endless(control: Any) -> None:
    """Run until stopped."""
    done = 0
    while True:
        control.check()
        done += 1
        control.report(done)
        time.sleep(0.005)


def count_until_stopped(control: Any) -> None:
    """Emit a number every few milliseconds until stopped."""
    number = 0
    while not control.cancelled:
        control.emit(number)
        number += 1
        time.sleep(0.005)


def process_id(_control: Any) -> int:
    """Return the number of this process."""
    return os.getpid()


def wait_in_pool(control: Any) -> None:
    """Emit a value, then wait in a thread of a pool until stopped: Python waits for such threads before it ends."""
    control.emit("waiting")
    asyncio.run(asyncio.to_thread(control.stop.wait))


class CannotUnpack:
    """An object that can be pickled, but not unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)


def unpackable(_control: Any, kind: str) -> object:
    """Return an object that cannot be pickled, or cannot be unpickled."""
    return {"no pickle": lambda: 1, "no way back": CannotUnpack()}[kind]


def emit_unpackable(control: Any, kind: str) -> None:
    """Emit such an object."""
    control.emit(unpackable(control, kind))
    while not control.cancelled:
        time.sleep(0.005)


def take(_control: Any, _given: object) -> None:
    """Take any argument."""


def leave(_control: Any) -> None:
    """End the thread like no error does."""
    raise SystemExit(3)


def die(_control: Any) -> None:
    """End the whole process."""
    os._exit(3)


def read_listed(_control: Any, path: str) -> None:
    """Open a file that was listed through the door of reading."""
    from engine.mapped.reading import Reading

    os.close(Reading().open(path))


def compile_something(control: Any) -> None:
    """Report the begin and, when stopped, the end of a compilation, like machine code does."""
    from engine.codec import machine_code_build

    while machine_code_build.on_compiling is None:
        time.sleep(0.005)
    machine_code_build.on_compiling(True)
    while not control.cancelled:
        time.sleep(0.005)
    machine_code_build.on_compiling(False)


def read_checkpoint(_control: Any, path: Any) -> bytes | None:
    """Return the checkpoint of a store as the job reads it."""
    from engine.inspection import open_store

    with open_store(path) as store:
        assert store.paths is not None
        return store.small_file(store.paths.checkpoint)
