"""Messages that are stored twice, and groups that get many messages again."""

from __future__ import annotations

from timeline_rows import chunk_of, steady

from engine.inspection.timeline.sends import Duplicates, RetryStorms
from engine.inspection.timeline.unit_rows import DELIVERED, RETRIED, SENT


def runs_of(*chunks):
    duplicates = Duplicates()
    for chunk in chunks:
        duplicates.add(chunk)
    return [(run.is_delivery, run.count, run.offset, run.original) for run in duplicates.runs]


def test_the_same_key_with_another_born_time_is_a_send_that_was_repeated():
    stored = steady(4)
    assert runs_of(chunk_of(key=[5, 6, 7, 5], stored=stored, born=stored)) == [(False, 1, 300, 0)]


def test_messages_of_a_batch_share_their_key_and_are_no_duplicates():
    assert runs_of(chunk_of(key=[5, 5, 5], stored=[9, 9, 10], born=[8, 8, 8])) == []


def test_a_repeat_in_a_later_chunk_is_found():
    first = chunk_of(key=[5], stored=[100], born=[99])
    second = chunk_of(key=[5], stored=[3100], born=[3099], offset=[700])
    assert runs_of(first, second) == [(False, 1, 700, 0)]


def test_a_delayed_message_that_was_delivered_twice_keeps_its_born_time():
    chunk = chunk_of(key=[5, 5], stored=[9000, 20_000], born=[8, 8], flags=[DELIVERED, DELIVERED])
    assert runs_of(chunk) == [(True, 1, 100, 0)]


def test_a_send_and_a_delivery_with_one_key_are_no_pair():
    assert runs_of(chunk_of(key=[5, 5], stored=[9, 20_000], born=[8, 7], flags=[SENT, DELIVERED])) == []


def test_repeats_of_one_minute_are_one_event():
    stored = steady(6, 1000)
    assert runs_of(chunk_of(key=[5, 6, 7, 5, 6, 7], stored=stored, born=stored)) == [(False, 3, 300, 0)]


def storms_of(**columns):
    storms = RetryStorms()
    storms.add(chunk_of(**columns))
    return [(storm.count, storm.start, storm.end) for storm in storms.storms]


def test_many_retries_of_one_group_within_a_minute_are_a_storm():
    stored = steady(300, 100)
    assert storms_of(stored=stored, flags=[RETRIED] * 300) == [(300, stored[0], stored[-1])]


def test_retries_that_are_few_among_the_units_are_no_storm():
    flags = [SENT] * 19 + [RETRIED]
    assert storms_of(stored=steady(6000, 5), flags=flags * 300) == []


def test_retries_that_come_slowly_are_no_storm():
    assert storms_of(stored=steady(1000, 1000), flags=[RETRIED] * 1000) == []
