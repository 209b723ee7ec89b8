"""Chains of an index file, checked from its bytes alone."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codec.index import IndexHeader
from engine.rules.index_rules import (
    SUMMER_TIME_MS,
    Chains,
    IndexRange,
    header_faults,
    is_of_the_clock,
    link_words,
    out_of_name_order,
    out_of_order,
    with_changed_hash,
)

SLOTS = 4
HASHES = np.array([1, 5, 2, 9, 1, 2], np.int64)  # slots 1 1 2 1 1 2
LINKS = np.array([0, 1, 0, 2, 4, 3], np.int64)
NEWEST = np.array([0, 5, 6, 0], np.int32)


def chains(hashes=HASHES, links=LINKS, piece=6):
    new_chains = Chains(SLOTS, len(hashes) + 1)
    for position in range(0, len(hashes), piece):
        new_chains.feed(position + 1, hashes[position : position + piece], links[position : position + piece])
    return new_chains


@pytest.mark.parametrize("piece", [1, 2, 6])
def test_healthy_chains_in_pieces_of_any_size(piece):
    new_chains = chains(piece=piece)
    assert new_chains.bad == []
    assert new_chains.slots(NEWEST) == []
    assert new_chains.used_slots == 2


LINKED = [
    pytest.param(3, 4, "loop", id="to itself"),
    pytest.param(3, 5, "loop", id="to a later entry"),
    pytest.param(3, 7, "pastCount", id="past the count"),
    pytest.param(3, -1, "pastCount", id="below zero"),
    pytest.param(3, 1, "skips", id="over one"),
    pytest.param(4, 0, "skips", id="ends early"),
]


@pytest.mark.parametrize(("position", "link", "kind"), LINKED)
def test_one_wrong_link_is_one_fault(position, link, kind):
    links = LINKS.copy()
    links[position] = link
    (bad,) = chains(links=links).bad
    assert (bad.entry, bad.actual, bad.kind) == (position + 1, link, kind)
    assert str(bad.entry) in link_words(bad)


@pytest.mark.parametrize(("value", "kind"), [(99, "pastCount"), (2, "skips"), (0, "skips")])
def test_a_slot_names_the_newest_of_its_chain(value, kind):
    stored = NEWEST.copy()
    stored[1] = value
    (bad,) = chains().slots(stored)
    assert (bad.entry, bad.slot, bad.actual, bad.expected, bad.kind) == (0, 1, value, 5, kind)


@pytest.mark.parametrize("settled", range(7))
def test_slots_read_during_writes_may_differ_in_age(settled):
    new_chains = Chains(SLOTS, 7)
    new_chains.feed(1, HASHES[:settled], LINKS[:settled])
    new_chains.settle()
    new_chains.feed(settled + 1, HASHES[settled:], LINKS[settled:])
    chain_of = [[number + 1 for number in range(6) if HASHES[number] % SLOTS == slot] for slot in range(SLOTS)]
    for slot, numbers in enumerate(chain_of):
        newest = max((number for number in numbers if number <= settled), default=0)
        may = {newest, *(number for number in numbers if number > settled)}
        for value in range(-1, 9):
            stored = NEWEST.copy()
            stored[slot] = value
            assert [bad.actual for bad in new_chains.slots(stored)] == [value] * (value not in may), (slot, value)


def test_an_entry_with_another_hash_is_distinguished_from_wrong_links():
    hashes = HASHES.copy()
    hashes[1] = 3
    new_chains = chains(hashes)
    assert with_changed_hash([*new_chains.bad, *new_chains.slots(NEWEST)]) == 2
    links = LINKS.copy()
    links[3] = 1
    assert with_changed_hash(chains(links=links).bad) is None


def test_the_header_counts_the_entries():
    header = IndexHeader(1, 2, 100, 900, 2, 7)
    assert header_faults(header, 2, 6, 100, 900) == []
    assert header_faults(IndexHeader(1, 2, 100, 900, 6, 7), 2, 6, 100, 900) == []  # older releases counted every put
    assert len(header_faults(IndexHeader(1, 2, 101, 901, 3, 9), 2, 6, 100, 900)) == 4


ORDERS = [
    pytest.param([1, 2, 2, 3], [], id="rising"),
    pytest.param([1, 9, 2, 3], [1], id="one too far"),
    pytest.param([5, 6, 1, 7], [2], id="one too early"),
    pytest.param([9, 1, 2, 3], [0], id="the first"),
    pytest.param([1, 2, 3, 0], [3], id="the last"),
    pytest.param([2, 1], [], id="too few to say"),
]


@pytest.mark.parametrize(("offsets", "odd"), ORDERS)
def test_the_file_that_breaks_the_order(offsets, odd):
    assert np.flatnonzero(out_of_order(np.array(offsets, np.int64))).tolist() == odd


def ranges(*parts: tuple[int, int]) -> list[IndexRange]:
    """Return files in the order of their names, by the log ranges that they index."""
    return [IndexRange(number * 1000, start, start, end) for number, (start, end) in enumerate(parts)]


NAMES = [
    pytest.param([(0, 10), (10, 20), (20, 30)], [], id="in order"),
    pytest.param([(20, 30), (0, 10), (10, 20)], [0], id="the newest has the oldest name"),
    pytest.param([(10, 20), (20, 30), (0, 10)], [2], id="the oldest has the newest name"),
    pytest.param([(0, 10), (30, 40), (20, 30), (10, 20), (40, 50)], [2, 3], id="two swapped"),
    pytest.param([(0, 10), (10, 20), (20, 30), (5, 15), (15, 30)], [], id="a part was indexed again after a crash"),
    pytest.param([(0, 10), (10, 20), (10, 10), (20, 30)], [2], id="within the place where two files meet"),
    pytest.param([], [], id="no file"),
]


@pytest.mark.parametrize(("parts", "misplaced"), NAMES)
def test_names_that_do_not_follow_the_content(parts, misplaced):
    assert out_of_name_order(ranges(*parts)) == misplaced


def test_an_hour_is_there_twice_when_summer_time_ends():
    ordered = [IndexRange(7_200_000 + time, time, time, time + 9) for time in (0, 1000, 2000)]
    late = IndexRange(7_200_000 + 3000 - SUMMER_TIME_MS, 3000, 3000, 3009)
    assert is_of_the_clock(late, ordered)
    assert not is_of_the_clock(late._replace(name_ms=late.name_ms - 60_000), ordered)
    assert not is_of_the_clock(late._replace(name_ms=None), ordered)


def test_a_clock_that_was_set_back_has_older_messages_too():
    ordered = [IndexRange(time, time, place, place + 9) for place, time in ((0, 50_000), (10, 60_000))]
    assert is_of_the_clock(IndexRange(20_000, 20_000, 20, 29), ordered)
    assert not is_of_the_clock(IndexRange(20_000, 70_000, 20, 29), ordered)
