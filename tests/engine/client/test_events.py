"""Events are delivered to watchers, and stored in rings that count what they drop."""

from __future__ import annotations

from engine.client.events import Event, EventStream, Started


def event(time_ms: int) -> Event:
    return Started(time_ms, "client", "group")


def test_no_event_is_made_without_a_watcher() -> None:
    stream, calls = EventStream(), []
    assert not stream.wanted
    end = stream.subscribe(calls.append)
    assert stream.wanted
    stream.emit(event(1))
    end()
    end()
    assert not stream.wanted
    assert calls == [event(1)]


def test_a_ring_keeps_the_latest_and_counts_the_others() -> None:
    stream = EventStream()
    ring = stream.ring(2)
    for position in range(5):
        stream.emit(event(position))
    assert ring.dropped == 3
    assert [item.time_ms for item in ring.take()] == [3, 4]
    assert ring.take() == []
    stream.emit(event(9))
    assert ring.take() == [event(9)]
    assert ring.dropped == 3
