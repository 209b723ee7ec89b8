"""Crumbs: the way from the store to a place, each of them a place itself."""

from __future__ import annotations

import pytest

from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.shell.breadcrumbs import beside, crumbs_of


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        (places.queue("Orders", 2, 5), ["Orders", "Queue 2", "5"]),
        (places.queue(""), ["Queues"]),
        (places.log(1234), ["Commit log", "1,234"]),
        (places.index("2024"), ["Index", "2024"]),
        (Place("config", name="topics.json"), ["Config", "topics.json"]),
    ],
)
def test_the_way_to_a_place(place, wanted):
    assert [words for words, _place in crumbs_of(place, None)] == wanted


def test_every_crumb_leads_somewhere_and_the_last_to_the_place_itself():
    place = places.queue("Orders", 2, 5)
    found = crumbs_of(place, None)
    assert all(isinstance(target, Place) for _words, target in found)
    assert found[-1][1] == place
    assert found[0][1] == places.queue("Orders")


def test_without_a_store_nothing_lies_beside():
    assert beside(1, places.log(), None) == []
