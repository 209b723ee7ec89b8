"""Garbage of the tests is collected between them, on the thread they run in. Hook for ``tests/conftest.py``.

Python collects cycles in whichever thread happens to allocate. Windows of earlier tests lie among them, and what Qt
made ends on its own thread or takes the process with it. The program does the same by ``viewer/runtime/garbage.py``.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

gc.disable()


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
