"""Calls for the loop's thread run in order, in short slices, and return errors."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from viewer.runtime import loop_calls


def test_calls_of_other_threads_run_on_the_loops_thread_in_order(qtbot):
    loop_calls.open_mailbox()
    done: list[tuple[int, bool]] = []

    def ask() -> None:
        for number in range(20):
            loop_calls.post(lambda n=number: done.append((n, threading.current_thread() is threading.main_thread())))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(ask).result()
    qtbot.waitUntil(lambda: len(done) == 20, timeout=60_000)
    assert done == [(number, True) for number in range(20)]


def test_the_loop_runs_between_long_calls(qtbot):
    loop_calls.open_mailbox()
    done: list[int] = []

    def long(number: int) -> None:
        end = time.perf_counter() + 2 * loop_calls.SLICE_SECONDS
        while time.perf_counter() < end:
            pass
        done.append(number)

    box = loop_calls._Post.box
    for number in range(3):
        box._calls.put([long, number])
    box._deliver()
    assert done == [0], "the others wait for a turn of their own"
    qtbot.waitUntil(lambda: done == [0, 1, 2], timeout=60_000)


def test_a_result_or_an_error_is_returned(qtbot):
    loop_calls.open_mailbox()
    reports: list[tuple[object, object]] = []
    with ThreadPoolExecutor(1) as pool:
        loop_calls.run_in(pool, lambda: 42, lambda result, error: reports.append((result, error)))
        loop_calls.run_in(pool, lambda: 1 // 0, lambda result, error: reports.append((result, type(error))))
    qtbot.waitUntil(lambda: len(reports) == 2, timeout=60_000)
    assert reports == [(42, None), (None, ZeroDivisionError)]
