"""What a view does as the tail of the store moves comes at a pace."""

from __future__ import annotations

from viewer.shell.following import Throttle


def test_deeds_come_at_their_pace_and_none_is_lost(qtbot, qapp) -> None:
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
