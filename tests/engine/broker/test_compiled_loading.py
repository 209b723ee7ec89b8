"""A broker answers clients while its compiled code is loading."""

from __future__ import annotations

import threading

from engine.broker.compiled_loading import LOADS, loading_beside
from engine.codec import columns


def test_clients_do_not_wait_while_compiled_code_is_loaded() -> None:
    """A broker answered no client for half a second, and for two on a busy machine, while numba was loaded. Clients
    closed their connections, and a group received nothing for half a minute.
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


def test_nothing_is_loaded_before_the_first_use() -> None:
    threads_before = threading.active_count()
    with loading_beside():
        assert threading.active_count() == threads_before


def test_each_twin_is_loaded() -> None:
    assert all(load() is not None for load in LOADS)
