"""Expressions of tags are read as RocketMQ reads them."""

from __future__ import annotations

import pytest

from engine.remoting.subscriptions import SQL92, Subscription


@pytest.mark.parametrize("expression", ["*", "", None])
def test_a_star_is_all(expression: str | None) -> None:
    results = Subscription.of("T", expression, 7)
    assert (results.expression, results.tags, results.codes) == ("*", (), ())


def test_tags_have_their_hashes() -> None:
    """See docs/protocol/check-vectors.md#heartbeat."""
    assert Subscription.of("TopicTest", "TagA || TagB", 1700000000000).record() == {
        "classFilterMode": False,
        "codeSet": [2598919, 2598920],
        "expressionType": "TAG",
        "subString": "TagA || TagB",
        "subVersion": 1700000000000,
        "tagsSet": ["TagA", "TagB"],
        "topic": "TopicTest",
    }


def test_sql_is_kept_as_it_is() -> None:
    assert Subscription.of("T", "a > 1 ", 1, SQL92) == Subscription("T", "a > 1 ", 1, SQL92)
