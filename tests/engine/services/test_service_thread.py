"""ServiceThread: start, wakeup, pause, stop, join.

Short switch intervals start, end and overlap. Late naps show that many threads compete.
"""

from __future__ import annotations

import sys
import threading

import pytest

from engine.errors import StoreClosed
from engine.services.service_thread import SHORT_TURN_S, ServiceThread, ThreadContention, WakeSignal, short_turns


class CountingService:
    """Counts its rounds. The next round is due after ``pause`` ms."""

    name = "counting"

    def __init__(self, pause: float) -> None:
        self.pause = pause
        self.rounds = 0
        self.seen = threading.Semaphore(0)

    def step(self) -> float:
        self.rounds += 1
        self.seen.release()
        return self.pause


def test_a_service_can_be_stepped_without_a_thread() -> None:
    thread = ServiceThread(CountingService(7.0))
    assert thread.step() == 7.0
    assert not thread.running


def test_a_wakeup_ends_the_pause() -> None:
    service = CountingService(3_600_000.0)
    thread = ServiceThread(service)
    thread.start()
    assert service.seen.acquire(timeout=60)
    thread.wakeup()
    assert service.seen.acquire(timeout=60)
    thread.stop()
    assert thread.join(60)
    assert service.rounds == 2


def test_a_paused_service_runs_only_explicit_steps() -> None:
    service = CountingService(0.0)
    thread = ServiceThread(service)
    thread.start()
    assert service.seen.acquire(timeout=60)
    thread.pause()
    rounds_before = service.rounds
    thread.wakeup()
    thread.step()
    assert service.rounds == rounds_before + 1
    thread.resume()
    while service.rounds < rounds_before + 5:
        assert service.seen.acquire(timeout=60)
    thread.stop()
    assert thread.join(60)


def test_an_error_ends_the_thread_and_is_logged() -> None:
    reports: list[tuple[str, Exception]] = []

    class BrokenService:
        name = "broken"

        def step(self) -> float:
            raise ValueError("a mistake")

    thread = ServiceThread(BrokenService(), lambda name, error: reports.append((name, error)))
    thread.start()
    assert thread.join(60)
    assert [(name, str(error)) for name, error in reports] == [("broken", "a mistake")]


def test_an_error_of_an_explicit_step_is_raised() -> None:
    class BrokenService:
        name = "broken"

        def step(self) -> float:
            raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        ServiceThread(BrokenService()).step()


def test_a_wakeup_before_the_wait_is_remembered_once() -> None:
    bell = WakeSignal()
    bell.ring()
    bell.ring()
    assert bell.wait(0)
    assert not bell.wait(0)


def test_a_stopped_service_can_be_started_again() -> None:
    service = CountingService(3_600_000.0)
    thread = ServiceThread(service)
    for _ in range(2):
        thread.start()
        assert service.seen.acquire(timeout=60)
        thread.stop()
        assert thread.join(60)
    assert service.rounds == 2


class InterruptingLock:
    """The lock of a round that never ends: a thread that waits for it is interrupted."""

    def __enter__(self) -> None:
        raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        return


def test_an_interrupted_pause_has_no_effect() -> None:
    """Otherwise a flush service would stay paused forever without anyone knowing."""
    thread = ServiceThread(CountingService(0.0))
    rounds = thread._stepping
    thread._stepping = InterruptingLock()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        thread.pause()
    thread._stepping = rounds
    assert not thread.paused


def test_after_the_end_no_step_runs() -> None:
    thread = ServiceThread(CountingService(0.0))
    thread.step()
    thread.end()
    with pytest.raises(StoreClosed, match="has ended"):
        thread.step()
    assert thread.rounds == 1


def test_the_last_end_restores_the_previous_interval() -> None:
    interval_before = sys.getswitchinterval()
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(SHORT_TURN_S)
        with short_turns():
            pass
        assert sys.getswitchinterval() == pytest.approx(SHORT_TURN_S)
    assert sys.getswitchinterval() == interval_before


def test_a_shorter_interval_stays() -> None:
    interval_before = sys.getswitchinterval()
    sys.setswitchinterval(0.0000705)
    try:
        for _ in range(20):
            with short_turns():
                assert sys.getswitchinterval() == pytest.approx(0.00007)
        assert sys.getswitchinterval() == pytest.approx(0.00007)
    finally:
        sys.setswitchinterval(interval_before)


def test_an_error_restores_the_interval_too() -> None:
    interval_before = sys.getswitchinterval()
    with pytest.raises(ValueError, match="no"), short_turns():
        raise ValueError("no")
    assert sys.getswitchinterval() == interval_before


def naps(crowd: ThreadContention, clock: list[float], late: float, count: int) -> None:
    for _ in range(count):
        crowd.sleeps(0.01)
        clock[0] += 0.01 + late
        crowd.wakes()


def test_contention_is_detected_by_late_naps_on_average() -> None:
    clock = [100.0]
    crowd = ThreadContention(lambda: clock[0])
    crowd.wakes()
    assert not crowd.is_dense
    naps(crowd, clock, 0.001, 50)
    naps(crowd, clock, 0.006, 1)
    assert not crowd.is_dense
    naps(crowd, clock, 0.006, 2)
    assert crowd.is_dense
    naps(crowd, clock, -0.005, 50)  # woken by another thread
    assert crowd.is_dense
    naps(crowd, clock, 0.0, 20)
    assert not crowd.is_dense


def test_one_long_pause_is_forgotten_soon() -> None:
    clock = [100.0]
    crowd = ThreadContention(lambda: clock[0])
    naps(crowd, clock, 3600.0, 1)
    assert crowd.is_dense
    naps(crowd, clock, 0.0, 9)
    assert not crowd.is_dense
