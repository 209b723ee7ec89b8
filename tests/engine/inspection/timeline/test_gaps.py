"""Times without messages: a stall, an outage or a pause."""

from __future__ import annotations

from timeline_rows import chunk_of, steady

from engine.inspection.timeline.gaps import find_gaps
from engine.inspection.timeline.unit_rows import DELAYED, DELIVERED, SENT

FIRST, GAP = 1_000_000, 30_000
BEFORE = steady(100, 50)
END = BEFORE[-1] + GAP
AFTER = steady(100, 50, END)
STORED = BEFORE + AFTER


def born_usually():
    return [time - 2 for time in STORED]


def only_gap(**columns):
    (gap,) = find_gaps(chunk_of(stored=STORED, **columns), set())
    return gap


def test_without_any_sign_of_a_request_it_is_a_pause():
    gap = only_gap(born=born_usually())
    assert (gap.is_pause, gap.is_stall, gap.is_outage) == (True, False, False)
    assert (gap.start, gap.end, gap.usual) == (BEFORE[-1], END, 50)


def test_requests_that_were_sent_meanwhile_make_it_a_stall():
    born = born_usually()
    for number in range(10):
        born[100 + number] = BEFORE[-1] + 20 + number
    gap = only_gap(born=born)
    assert (gap.is_stall, gap.waited, gap.longest_wait) == (True, 10, GAP - 22)


def test_messages_that_stay_late_are_a_producers_clock_and_no_stall():
    born = [time - 2 for time in BEFORE] + [time - GAP for time in AFTER]
    assert not only_gap(born=born).is_stall


def test_first_attempts_meanwhile_make_it_an_outage():
    key_times = [time - 500_000 for time in born_usually()]
    key_times[103] = BEFORE[-1] + 10_000 - 500_000
    gap = only_gap(born=born_usually(), client=[7] * 200, key_time=key_times)
    assert (gap.is_outage, gap.attempts, gap.first_attempt) == (True, 1, BEFORE[-1] + 10_002)


def test_delayed_messages_that_were_due_meanwhile_make_it_an_outage_only_if_they_came():
    due = [-1] * 200
    due[50] = BEFORE[-1] + 10_000
    flags = [SENT] * 200
    flags[50] = DELAYED
    assert only_gap(born=born_usually(), due=due, flags=flags).is_pause
    flags[101] = DELIVERED
    gap = only_gap(born=born_usually(), due=due, flags=flags)
    assert (gap.is_outage, gap.due, gap.delivered) == (True, 1, 1)


def test_keys_whose_time_stands_still_say_nothing():
    key_times = [5] * 200
    assert only_gap(born=born_usually(), client=[7] * 200, key_time=key_times).is_pause


def test_rare_traffic_has_long_gaps_and_no_pause():
    stored = steady(50, 60_000)
    gaps = find_gaps(chunk_of(stored=stored, born=[time - 1 for time in stored]), set())
    assert len(gaps) == 49
    assert not any(gap.is_pause or gap.is_stall or gap.is_outage for gap in gaps)


def test_a_gap_that_is_a_clock_step_is_left_out():
    assert find_gaps(chunk_of(stored=STORED, born=born_usually()), {99}) == []


def test_keys_that_a_producer_made_meanwhile_for_messages_that_are_not_here_make_it_an_outage():
    key_times = [time - 500_000 for time in born_usually()]
    numbers = [*range(100), *range(400, 500)]
    gap = only_gap(born=born_usually(), client=[7] * 200, key_time=key_times, key_number=numbers)
    assert (gap.is_outage, gap.keys_made) == (True, 300)


def test_a_producer_that_always_sends_elsewhere_too_shows_nothing():
    key_times = [time - 500_000 for time in born_usually()]
    pace = 9 * GAP // 50  # the tenth part of its messages came here
    numbers = [*range(0, 1000, 10), *range(990 + pace, 1990 + pace, 10)]
    assert only_gap(born=born_usually(), client=[7] * 200, key_time=key_times, key_number=numbers).is_pause
