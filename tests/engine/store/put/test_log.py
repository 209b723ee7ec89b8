"""What the log keeps of a topic for those who put."""

from __future__ import annotations

import pytest

from engine.store.put.log import Topic


@pytest.mark.parametrize(("length", "magic"), [(6, 0xDAA320A7), (127, 0xDAA320A7), (128, 0xDAA320AB)])
def test_a_legal_topic_has_its_field_and_the_same_for_columns(length, magic):
    topic = Topic("T" * length, legal=True, auto_version=True)
    assert (topic.legal, topic.magic & 0xFFFFFFFF, topic.places) == (True, magic, {})
    assert topic.raw.endswith(b"T" * length)
    assert topic.field is not None
    assert topic.fixed == topic.field.fixed


@pytest.mark.parametrize(("name", "legal"), [("Orders", False), ("T" * 70_000, True)])
def test_a_topic_that_may_not_be_stored_or_does_not_fit_a_field_is_not_legal(name, legal):
    topic = Topic(name, legal=legal, auto_version=True)
    assert (topic.legal, topic.raw, topic.fixed) == (False, b"", 0)
