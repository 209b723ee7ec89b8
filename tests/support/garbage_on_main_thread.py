"""Garbage of the tests is collected between them, on their own thread. Hook for ``tests/conftest.py``.

Python collects cycles in whichever thread allocates. Windows of earlier tests are among them, and Qt objects must end
on their own thread or may crash the process. The program does the same by ``viewer/runtime/garbage.py``.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

import pytest

gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Hook: freeze everything that all tests need, so that no collection between them looks at it again."""
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def what_is_new() -> Iterator[None]:
    """A window of a test freezes nothing: each collection looks at all new objects.

    With the libraries in it a collection took a quarter of a second, twice a window.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("viewer.shell.opening_stages.set_aside", lambda: None)
        patch.setattr("viewer.runtime.garbage.take_back", lambda: None)
        yield
    gc.freeze()  # the windows are gone: what is left was loaded on the way, and stays


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Hook: after a test's own tear-down, collect what has become due by Python's thresholds."""
    try:
        return (yield)
    finally:
        counts, thresholds = gc.get_count(), gc.get_threshold()
        due = [generation for generation in (2, 1, 0) if counts[generation] > thresholds[generation]]
        if due:
            gc.collect(due[0])
