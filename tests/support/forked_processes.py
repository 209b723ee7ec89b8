"""Processes of a window, forked from one that has loaded their modules.

The program starts each with *spawn*: a Python that loads the engine anew takes half a second or more, for every window
of a test. Here one such Python is loaded once for all tests of a process, and each start is a fork of it, some
milliseconds. Function, pipe and folder are those of a spawned process, and so is the environment at that moment. Tests
of the processes themselves spawn them (:data:`SPAWNED`).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

STARTING = ("viewer.runtime.worker", "viewer.runtime.lab_client")
"""Modules that start a process."""
SPAWNED = frozenset({"test_worker.py", "test_lab_client.py", "test_soak.py", "test_cluster_soak.py"})
"""Files of tests that look at what a start loads, or how much memory it takes."""
LOADED = "preloaded_modules"


class _Context:
    """The part of ``multiprocessing.get_context("spawn")`` that the program uses."""

    Pipe = staticmethod(multiprocessing.Pipe)

    @staticmethod
    def Process(  # noqa: N802 (multiprocessing's name)
        target: Callable[..., object], args: tuple[Any, ...], name: str, daemon: bool
    ) -> BaseProcess:
        with pytest.MonkeyPatch.context() as patch:  # the folder of the helpers, for the process that is forked
            patch.setenv("PYTHONPATH", str(Path(__file__).parent))
            forkserver.set_forkserver_preload([LOADED])
            forkserver.ensure_running()
        arguments = (dict(os.environ), target, args)
        context = multiprocessing.get_context("forkserver")
        return context.Process(target=in_surroundings, args=arguments, name=name, daemon=daemon)


class _Multiprocessing:
    """The replacement of the module for the program."""

    @staticmethod
    def get_context(method: str) -> _Context:
        assert method == "spawn"
        return _Context()


def in_surroundings(environment: Mapping[str, str], target: Callable[..., object], args: tuple[Any, ...]) -> None:
    """Call ``target(*args)`` with the environment of the starting process."""
    os.environ.clear()
    os.environ.update(environment)
    target(*args)


@contextlib.contextmanager
def forked(file: str) -> Iterator[None]:
    """While the block runs, processes of tests in ``file`` are forked, unless they must be spawned."""
    with pytest.MonkeyPatch.context() as patch:
        for module in STARTING if file not in SPAWNED else ():
            patch.setattr(f"{module}.multiprocessing", _Multiprocessing())
        yield
