"""Nobody waits for compiled code in a broker."""

from __future__ import annotations

import threading

from engine.broker.compiled_loading import LOADS, loading_beside
from engine.codec import columns


def test_nobody_waits_while_they_are_loaded() -> None:
    """A broker answered nobody for half a second, and for two on a busy machine, while numba was loaded: clients ended
    their connections, and a group had nothing for half a minute.
    """
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()
    twins = []

    def slow() -> None:
        begun.set()
        assert go_on.wait(60)
        twins.append(columns.twin())
        done.set()

    with loading_beside(slow):
        assert columns.twin() is None
        assert begun.wait(60)
        assert columns.twin() is None
        go_on.set()
        assert done.wait(60)
    assert twins == [columns.twin()]


def test_whoever_never_asks_loads_nothing() -> None:
    before = threading.active_count()
    with loading_beside():
        assert threading.active_count() == before


def test_each_twin_is_loaded() -> None:
    assert all(load() is not None for load in LOADS)
