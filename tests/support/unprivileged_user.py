"""Work done by a user without rights, for tests of messages about missing rights."""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import pkgutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import engine

Result = TypeVar("Result")
NOBODY = 65534


@functools.cache
def _load_all() -> None:
    """Load the engine while there are rights: an interpreter, and its machine code, may be in root's home."""
    for results in pkgutil.walk_packages(engine.__path__, "engine."):
        if not results.name.startswith(("engine.pipeline", "engine.lab")) and not results.name.endswith("__main__"):
            importlib.import_module(results.name)
    importlib.import_module("_strptime")  # datetime.strptime loads it at its first call


def as_nobody(work: Callable[[], Result]) -> Result:
    """Return the result of ``work`` by a user without rights: in a fork if this process is root's."""
    if os.geteuid() != 0:
        return work()
    _load_all()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            answer = pickle.dumps(work())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            answer = pickle.dumps(error)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    result = pickle.loads(answer)
    if isinstance(result, BaseException):
        raise result
    return result


@contextmanager
def open_folder() -> Iterator[Path]:
    """Yield a folder that every user may enter; pytest's folders are for its own user alone."""
    with tempfile.TemporaryDirectory(prefix="storescope-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
