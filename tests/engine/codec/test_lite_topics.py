"""Names of lite topics and their light queues."""

from __future__ import annotations

import pytest

from engine.codec.lite_topics import listing_key, lite_queue_name, split_lite_queue


def test_a_light_queue_has_the_names_of_topic_and_lite_topic() -> None:
    assert lite_queue_name("Parent", "a") == "%LMQ%$Parent$a"
    assert split_lite_queue("%LMQ%$Parent$a") == ("Parent", "a")


def test_light_queues_of_lite_topics_are_listed_behind_their_topic() -> None:
    names = ["%LMQ%$Parent$b", "%LMQ%other", "Zebra", "%LMQ%$Parent$a", "Parent"]
    assert sorted(names, key=listing_key) == ["%LMQ%other", "Parent", "%LMQ%$Parent$a", "%LMQ%$Parent$b", "Zebra"]


@pytest.mark.parametrize("name", ["%LMQ%a", "Parent", "%LMQ%$Parent", "%LMQ%$Parent$", "%LMQ%$$a", "%LMQ%$Parent$a$b"])
def test_other_queues_belong_to_no_lite_topic(name: str) -> None:
    assert split_lite_queue(name) is None
