"""Events are delivered to watchers, and stored in rings that count what they drop."""

from __future__ import annotations

import pytest

from engine.client import events
from engine.client.events import Event, EventStream, Rebalanced, Started
from engine.client.routes import MessageQueue


def event(time_ms: int) -> Event:
    return Started(time_ms, "client", "group")


def test_no_event_is_made_without_a_subscriber() -> None:
    stream, calls = EventStream(), []
    assert not stream.has_subscribers
    end = stream.subscribe(calls.append)
    assert stream.has_subscribers
    stream.emit(event(1))
    end()
    end()
    assert not stream.has_subscribers
    assert calls == [event(1)]


def test_a_ring_has_the_latest_and_counts_the_others() -> None:
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


@pytest.mark.parametrize("name", ["QueueTaken", "QueueGivenUp", "PullPutOff"])
def test_an_event_has_its_older_name_with_a_warning(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} is called [A-Z]"):
        assert issubclass(getattr(events, name), Event)


def test_older_names_of_fields_work_with_a_warning() -> None:
    queue = MessageQueue("Orders", "a", 0)
    rebalanced = Rebalanced(1, "client", "group", "Orders", (queue,), ("client",), (queue,), (queue,), ())
    with pytest.warns(DeprecationWarning, match="given_up is called released now"):
        assert rebalanced.given_up == ()
    with pytest.warns(DeprecationWarning, match="wanted is called has_subscribers now"):
        assert not EventStream().wanted
