"""Counts of deliveries: repeated ones by queue and offset, pauses to the millisecond, bursts."""

from __future__ import annotations

import pickle

from engine.cluster.state import Queue
from viewer.cluster.deliveries import Deliveries, Delivery, RebalanceEvent

Q, R = Queue("T", "a", 0), Queue("T", "a", 1)


def deliveries_at(times_ms, queue=Q, client="c1", first_offset=0):
    return [Delivery(time, client, "g", queue, first_offset + number) for number, time in enumerate(times_ms)]


def test_a_repeated_delivery_is_counted_by_its_offset():
    deliveries = Deliveries()
    deliveries.add(deliveries_at(range(0, 1_000, 100)))
    deliveries.add(deliveries_at(range(2_000, 2_500, 100), client="c2", first_offset=6))
    repeated = deliveries.repeated("g", 0, 10_000)
    assert [(item.offset, item.first_client, item.second_client) for item in repeated] == [
        (n, "c1", "c2") for n in (6, 7, 8, 9)
    ]
    assert deliveries.repeated("g", 0, 2_000) == []
    assert deliveries.delivered_count("g", 0, 2_000) == 10
    assert deliveries.knows("g")
    assert not deliveries.knows("other")


def test_a_pause_is_the_longest_gap_that_touches_the_step():
    deliveries = Deliveries()
    deliveries.add(deliveries_at([*range(0, 10_000, 100), *range(10_512, 20_000, 100)]))
    deliveries.add(deliveries_at(range(0, 20_000, 100), R))
    deliveries.add(deliveries_at(range(15_000, 16_000, 100), Queue("T", "a", 2)))
    assert deliveries.pauses("g", 9_950, 11_000, 20_000) == {Q: 612, R: 100}
    assert deliveries.pauses("g", 12_000, 12_000, 20_000) == {Q: 100, R: 100}
    assert deliveries.pauses("nobody", 0, 1, 2) == {}


def test_a_burst_compares_the_rates_before_and_after():
    deliveries = Deliveries()
    deliveries.add(deliveries_at([*range(0, 10_000, 100), *range(10_000, 12_000, 25), *range(12_000, 20_000, 100)]))
    usual, peak = deliveries.bursts("g", 10_000, 10_000, 20_000)[Q]
    assert 9.5 < usual < 10.5
    assert 38 < peak <= 41
    assert deliveries.bursts("g", 100, 100, 20_000) == {}


def test_lists_that_changed_something_are_kept():
    deliveries = Deliveries()
    event = RebalanceEvent(5, "c1", "g", "T", ("c1", "c2"), (Q,), (), (R,), "")
    same = RebalanceEvent(6, "c1", "g", "T", ("c1", "c2"), (Q,), (), (), "interval")
    second_event = RebalanceEvent(6, "c1", "g", "%RETRY%g", ("c1",), (Q,), (Q,), (), "")
    fewer = RebalanceEvent(7, "c1", "g", "T", ("c1",), (Q,), (), (), "notice")
    deliveries.add([], [event, same, second_event, fewer], dropped=3)
    assert deliveries.lists("g", 0, 10) == [event, fewer]
    assert deliveries.lists("g", 6, 7) == []
    assert deliveries.dropped == 3


def test_old_deliveries_are_dropped(monkeypatch):
    monkeypatch.setattr("viewer.cluster.deliveries.MAX_DELIVERIES", 100)
    deliveries = Deliveries()
    for number in range(150):
        deliveries.add(deliveries_at([number], first_offset=number))
    assert deliveries.delivered_count("g", 0, 1_000) <= 100


def test_deliveries_older_than_half_an_hour_are_dropped():
    """The memory of a window that watches for hours stays constant. It grew with every message."""
    deliveries = Deliveries()
    for minute in range(120):
        deliveries.add(deliveries_at(range(minute * 60_000, minute * 60_000 + 60_000, 1_000), first_offset=minute * 60))
    assert 1_800 <= deliveries.delivered_count("g", 0, 1 << 60) <= 2_010
    assert deliveries.delivered_count("g", 119 * 60_000, 120 * 60_000) == 60


def test_repeated_deliveries_are_dropped_with_age_too(monkeypatch):
    """A hundred thousand deliveries of each queue were kept whatever their age, and each message's first client was in
    a dictionary of objects: forty MiB in half an hour of 200 messages a second.
    """
    monkeypatch.setattr("viewer.cluster.deliveries.MAX_AGE_MS", 1_000)
    deliveries = Deliveries()
    deliveries.add(deliveries_at(range(0, 1_000, 10)))
    deliveries.add(deliveries_at(range(1_000, 1_100, 10), client="c2", first_offset=50))
    assert len(deliveries.repeated("g", 0, 10_000)) == 10
    deliveries.add(deliveries_at([9_000, 9_010], first_offset=200))
    deliveries.add(deliveries_at([9_020, 9_030], client="c2", first_offset=50))
    assert deliveries.repeated("g", 0, 10_000) == [], "whoever had them first is forgotten with them"
    assert deliveries.delivered_count("g", 0, 10_000) == 4
    deliveries.add(deliveries_at([9_040], client="c3", first_offset=50))
    (repeated,) = deliveries.repeated("g", 0, 10_000)
    assert (repeated.offset, repeated.first_client, repeated.second_client) == (50, "c2", "c3")


def test_offsets_may_be_far_apart():
    deliveries = Deliveries()
    far = [0, 63, 64, 1 << 40, (1 << 62) + 5]
    for offset in far:
        deliveries.add([Delivery(1, "c1", "g", Q, offset)])
        deliveries.add([Delivery(2, "c2", "g", Q, offset)])
    assert [item.offset for item in deliveries.repeated("g", 0, 10)] == far


def test_lists_of_queues_are_kept_once():
    deliveries = Deliveries()
    for position in (1, 2):
        deliveries.add(
            [],
            [
                pickle.loads(
                    pickle.dumps(RebalanceEvent(position, "c1", "g", "T", ("c1", "c2"), (Q,), (), (), "interval"))
                )
            ],
        )
    first_event, second_event = deliveries.rebalances
    assert first_event.owned[0] is second_event.owned[0]
    assert first_event.client_ids is second_event.client_ids
