"""What was handed out, counted: twice by queue and offset, pauses to the millisecond, bursts."""

from __future__ import annotations

from engine.cluster.state import Queue
from viewer.cluster.deliveries import Deliveries, Handed, Shared

Q, R = Queue("T", "a", 0), Queue("T", "a", 1)


def handed(times, queue=Q, client="c1", first=0):
    return [Handed(at, client, "g", queue, first + number) for number, at in enumerate(times)]


def test_a_message_that_is_handed_out_again_is_counted_by_its_offset():
    made = Deliveries()
    made.add(handed(range(0, 1_000, 100)))
    made.add(handed(range(2_000, 2_500, 100), client="c2", first=6))
    found = made.twice("g", 0, 10_000)
    assert [(one.offset, one.first, one.again) for one in found] == [(n, "c1", "c2") for n in (6, 7, 8, 9)]
    assert made.twice("g", 0, 2_000) == []
    assert made.handed("g", 0, 2_000) == 10
    assert made.knows("g")
    assert not made.knows("other")


def test_a_pause_is_the_longest_gap_that_touches_the_step():
    made = Deliveries()
    made.add(handed([*range(0, 10_000, 100), *range(10_512, 20_000, 100)]))
    made.add(handed(range(0, 20_000, 100), R))
    made.add(handed(range(15_000, 16_000, 100), Queue("T", "a", 2)))
    assert made.pauses("g", 9_950, 11_000, 20_000) == {Q: 612, R: 100}
    assert made.pauses("g", 12_000, 12_000, 20_000) == {Q: 100, R: 100}
    assert made.pauses("nobody", 0, 1, 2) == {}


def test_a_burst_is_the_rate_after_beside_that_before():
    made = Deliveries()
    made.add(handed([*range(0, 10_000, 100), *range(10_000, 12_000, 25), *range(12_000, 20_000, 100)]))
    usual, most = made.bursts("g", 10_000, 10_000, 20_000)[Q]
    assert 9.5 < usual < 10.5
    assert 38 < most <= 41
    assert made.bursts("g", 100, 100, 20_000) == {}


def test_lists_that_changed_something_are_kept():
    made = Deliveries()
    one = Shared(5, "c1", "g", "T", ("c1", "c2"), (Q,), (), (R,), "")
    same = Shared(6, "c1", "g", "T", ("c1", "c2"), (Q,), (), (), "interval")
    again = Shared(6, "c1", "g", "%RETRY%g", ("c1",), (Q,), (Q,), (), "")
    fewer = Shared(7, "c1", "g", "T", ("c1",), (Q,), (), (), "notice")
    made.add([], [one, same, again, fewer], dropped=3)
    assert made.lists("g", 0, 10) == [one, fewer]
    assert made.lists("g", 6, 7) == []
    assert made.dropped == 3


def test_old_deliveries_go(monkeypatch):
    monkeypatch.setattr("viewer.cluster.deliveries.MOST", 100)
    made = Deliveries()
    for number in range(150):
        made.add(handed([number], first=number))
    assert made.handed("g", 0, 1_000) <= 100


def test_what_is_older_than_half_an_hour_goes():
    """Memory of a window that looks for hours stays as it is: it grew with every message."""
    made = Deliveries()
    for minute in range(120):
        made.add(handed(range(minute * 60_000, minute * 60_000 + 60_000, 1_000), first=minute * 60))
    assert 1_800 <= made.handed("g", 0, 1 << 60) <= 2_010
    assert made.handed("g", 119 * 60_000, 120 * 60_000) == 60
