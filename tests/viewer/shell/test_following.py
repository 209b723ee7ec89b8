"""Updates of a view when the tail of the store moves are limited in rate."""

from __future__ import annotations

from viewer.shell.following import Throttle


def test_updates_are_limited_in_rate_and_none_is_lost(qtbot, qapp) -> None:
    done = []
    pace = Throttle(qapp, lambda: done.append(1), 60)
    for _ in range(10):
        pace.ask()
    assert len(done) == 1
    qtbot.waitUntil(lambda: len(done) == 2, timeout=60_000)
    qtbot.wait(100)
    assert len(done) == 2
    pace.ask()
    assert len(done) == 3
