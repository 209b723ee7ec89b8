"""Attributes of topics and groups, and how requests change them."""

from __future__ import annotations

import pytest

from engine.broker.attributes import changed_attributes, group_attributes, topic_attributes
from engine.remoting.codes import Refused

TYPES = "message.type"


def test_a_change_adds_alters_and_takes_away() -> None:
    known = group_attributes("5.5")
    attributes = changed_attributes({"priority.factor": "1"}, {"+lite.bind.topic": "Parent"}, known)
    assert attributes == {"priority.factor": "1", "lite.bind.topic": "Parent"}
    assert changed_attributes(attributes, {"-lite.bind.topic": ""}, known) == {"priority.factor": "1"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"+priority.factor": "101"}, "value is not in range(0, 100)"),
        ({"+priority.factor": "-1"}, "value is not in range(0, 100)"),
        ({"+priority.factor": "x"}, 'For input string: "x"'),
        ({"priority.factor": "5"}, "wrong format key: riority.factor"),
        ({"+nope": "1"}, "unsupported key: nope"),
        ({"+lite.sub.model": "foo"}, "value is not in set: [Shared, Exclusive]"),
        ({"+": "1"}, "kv string format wrong."),
    ],
)
def test_a_wrong_change_is_refused_with_the_words_of_5_5_1(change: dict[str, str], words: str) -> None:
    with pytest.raises(Refused) as error:
        changed_attributes({}, change, group_attributes("5.5"))
    assert str(error.value) == words


def test_each_release_has_its_own_attributes_and_types() -> None:
    assert group_attributes("5.3") == {}
    assert set(group_attributes("5.4")) == {"priority.factor"}
    assert "lite.topic.expiration" in topic_attributes("5.5")
    assert "lite.topic.expiration" not in topic_attributes("5.4")
    assert topic_attributes("5.3")[TYPES]("PRIORITY") is not None
    assert topic_attributes("5.4")[TYPES]("PRIORITY") is None
    wrong = "value is not in set: [UNSPECIFIED, MIXED, TRANSACTION, PRIORITY, FIFO, DELAY, NORMAL]"
    assert topic_attributes("5.4")[TYPES]("LITE") == wrong
    assert topic_attributes("5.5")[TYPES]("LITE") is None
