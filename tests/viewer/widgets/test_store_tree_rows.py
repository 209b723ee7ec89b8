"""Tree of a growing store: the same lines with other words are not built anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewer.look.topic_kinds import is_system_topic
from viewer.runtime import places
from viewer.runtime.survey import QueueFacts, Survey, TopicFacts
from viewer.widgets.store_tree_rows import StoreTree, store_nodes


def topic(name: str, count: int, size: int) -> TopicFacts:
    return TopicFacts(name, (QueueFacts(0, 0, count), QueueFacts(1, 0, count)), size)


@pytest.fixture
def survey() -> Survey:
    return Survey(
        "s",
        "/s",
        "store",
        1,
        100,
        0,
        100,
        1,
        2,
        (topic("Alpha", 10, 500), topic("Beta", 5, 400)),
        (),
        (),
        0,
        None,
        False,
        False,
        "free",
        (),
        "",
    )


def names(model: StoreTree) -> list[str]:
    top = model.find("topics")
    return [node.text for node in top.children] if top is not None else []


def test_lines_stay_where_they_are_while_the_store_grows(qapp, survey: Survey) -> None:
    model, changed, built = StoreTree(), [], []
    model.dataChanged.connect(lambda first, _last: changed.append(model.node(first).name))
    model.modelReset.connect(lambda: built.append(1))
    assert model.set_nodes(store_nodes(survey, places, is_system_topic))
    alpha = model.find("topic/Alpha")
    grown = replace(survey, log_bytes=1 << 30, topics=(topic("Alpha", 10, 500), topic("Beta", 50, 900)))
    assert not model.set_nodes(store_nodes(grown, places, is_system_topic, names(model)))
    assert built == [1]
    assert "log" in changed
    assert "topic/Beta" in changed
    assert "topic/Alpha" not in changed
    assert model.find("topic/Alpha") is alpha
    assert names(model) == ["Alpha", "Beta"], "no line changes its place"


def test_another_topic_builds_the_tree_anew_by_bytes(qapp, survey: Survey) -> None:
    model = StoreTree()
    model.set_nodes(store_nodes(survey, places, is_system_topic))
    extra = replace(survey, topics=(*survey.topics, topic("Gamma", 1, 450)))
    assert model.set_nodes(store_nodes(extra, places, is_system_topic, names(model)))
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


def test_a_log_by_itself_has_the_topics_that_its_units_tell(qapp, survey: Survey) -> None:
    alone = replace(survey, kind="commitlog", topics=())
    assert [node.name for node in store_nodes(alone, places, is_system_topic)] == ["log"]
    model = StoreTree()
    model.set_nodes(store_nodes(alone, places, is_system_topic, (), {"Beta": 5, 'A"b': 2048}))
    assert names(model) == ['A"b', "Beta"]
    node_ = model.find('topic/A"b')
    assert node_ is not None
    assert node_.badge == "2.00 KiB"
    assert node_.place.name == 'topic = "A\\"b"'


def test_topics_that_only_tiered_storage_has_are_marked(survey: Survey) -> None:
    moved = TopicFacts("Old", (QueueFacts(0, 0, 7, is_moved=True),), 0)
    grown = replace(survey, topics=(*survey.topics, moved))
    model = StoreTree()
    model.set_nodes(store_nodes(grown, places, is_system_topic))
    nodes = [model.find(name) for name in ("topic/Old", "queue/Old/0", "topic/Beta")]
    assert [node.badge for node in nodes if node is not None] == ["7 tiered", "7 tiered", "10"]
    assert grown.messages == survey.messages
