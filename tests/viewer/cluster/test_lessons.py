"""The scripts of the lessons, and the conditions that their steps wait for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from viewer.cluster.lessons import LESSONS, _each_got, _one_got


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.key)
def test_only_a_consumer_that_was_started_is_stopped_or_killed(lesson):
    consumers = 0
    for act in lesson.acts:
        if act.verb == "consumer":
            consumers += 1
        if act.verb in {"stop", "kill"}:
            assert act.amount < consumers
    assert lesson.title
    assert lesson.about


def delivered(*client_ids):
    return SimpleNamespace(deliveries=[SimpleNamespace(client_id=client_id) for client_id in client_ids])


def test_each_consumer_must_have_received_its_messages():
    condition = _each_got(2, 2).condition
    assert not condition(delivered("a", "a", "b"))
    assert condition(delivered("a", "a", "b", "b"))


def test_one_consumer_is_enough_where_one_is_asked_for():
    condition = _one_got(2).condition
    assert not condition(delivered("a", "b"))
    assert condition(delivered("a", "b", "b"))
