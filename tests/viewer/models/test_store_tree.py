"""The tree while a store grows: the same lines with other words are not built anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewer.bridge import places
from viewer.bridge.survey import QueueFacts, Survey, TopicFacts
from viewer.models.store_tree import StoreTree, store_nodes
from viewer.theme import is_system_topic


def topic(name: str, count: int, size: int) -> TopicFacts:
    return TopicFacts(name, (QueueFacts(0, 0, count), QueueFacts(1, 0, count)), size)


@pytest.fixture
def survey() -> Survey:
    return Survey(
        "s", "/s", "store", 1, 100, 0, 100, 1, 2, (topic("Alpha", 10, 500), topic("Beta", 5, 400)), (), (), 0, None,
        False, False, "free", (), "",
    )  # fmt: skip


def names(model: StoreTree) -> list[str]:
    top = model.find("topics")
    return [node.text for node in top.children] if top is not None else []


def test_lines_stay_where_they_are_while_the_store_grows(qapp, survey: Survey) -> None:
    model, changed, built = StoreTree(), [], []
    model.dataChanged.connect(lambda first, _last: changed.append(model.node(first).name))
    model.modelReset.connect(lambda: built.append(1))
    assert model.set_nodes(store_nodes(survey, places, is_system_topic))
    held = model.find("topic/Alpha")
    grown = replace(survey, log_bytes=1 << 30, topics=(topic("Alpha", 10, 500), topic("Beta", 50, 900)))
    assert not model.set_nodes(store_nodes(grown, places, is_system_topic, names(model)))
    assert built == [1]
    assert "log" in changed
    assert "topic/Beta" in changed
    assert "topic/Alpha" not in changed
    assert model.find("topic/Alpha") is held
    assert names(model) == ["Alpha", "Beta"], "no line changes its place"


def test_another_topic_builds_the_tree_anew_by_bytes(qapp, survey: Survey) -> None:
    model = StoreTree()
    model.set_nodes(store_nodes(survey, places, is_system_topic))
    more = replace(survey, topics=(*survey.topics, topic("Gamma", 1, 450)))
    assert model.set_nodes(store_nodes(more, places, is_system_topic, names(model)))
    assert names(model) == ["Alpha", "Gamma", "Beta"]


def test_marks_are_laid_out_once(qapp, survey: Survey) -> None:
    model, laid = StoreTree(), []
    model.set_nodes(store_nodes(survey, places, is_system_topic))
    model.layoutChanged.connect(lambda *_: laid.append(1))
    for _ in range(3):
        model.set_marks({"topic/Beta": "error"})
    assert laid == [1]
    assert model.find("topics").mark == "error"
    model.set_marks({})
    assert laid == [1, 1]
    assert model.find("topics").mark == ""
