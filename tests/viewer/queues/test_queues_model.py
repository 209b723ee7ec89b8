"""The model of the queue view: the chosen queues, their contents, and the steps between problems."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from viewer.queues.facts import LoadedQueues, QueueFacts
from viewer.queues.queues_model import (
    MAX_QUEUES,
    QueuesModel,
    first_queue,
    queue_of_place,
    queues_of_topics,
    times_term,
    verdict_sentence,
)
from viewer.queues.rows import EntryRow
from viewer.queues.verdict_work import Verdicts
from viewer.runtime import places
from viewer.runtime.survey import QueueFacts as QueueSize
from viewer.runtime.survey import TopicFacts

ORDERS = TopicFacts("Orders", (QueueSize(0, 0, 10), QueueSize(1, 0, 40)), 1000)
PAID = TopicFacts("Paid", (QueueSize(0, 0, 20),), 500)
DELAYED = TopicFacts("SCHEDULE_TOPIC_XXXX", (QueueSize(2, 0, 900),), 900)
EMPTY = TopicFacts("Empty", (), 0)
TOPICS = (ORDERS, PAID, DELAYED, EMPTY)


class Source:
    """A fake source of queue rows that records what it adopts."""

    def __init__(self):
        self.adopted = []
        self.adopt = self.adopted.append


def facts(topic="Orders", queue_id=0, *, raw_end=10, kind="simple", groups=(), minimum=2):
    return QueueFacts(topic, queue_id, kind, (), 0, minimum, 10, raw_end, "first", 640, groups, has_ext=False)


def loaded(*queues):
    return LoadedQueues({(queue.topic, queue.queue_id): queue for queue in queues}, Source())


def entry(offset):
    return EntryRow(offset, "Orders", 0, offset, 640, 100, 0, "entry", "ok", "")


def test_the_busiest_queue_of_the_users_comes_first():
    assert first_queue(TOPICS) == ("Orders", 1)
    assert first_queue((DELAYED,)) == ("SCHEDULE_TOPIC_XXXX", 2)


@pytest.mark.parametrize(
    ("place", "key"),
    [
        (places.queue("Orders"), ("Orders", 1)),
        (places.queue("Orders", 0, 5), ("Orders", 0)),
        (places.queue("Gone", 3), ("Gone", 3)),
        (places.queue("Empty"), ("Empty", 0)),
    ],
    ids=["topic", "queue", "absent", "without queues"],
)
def test_a_place_names_a_queue(place, key):
    assert queue_of_place(place, TOPICS) == key


def test_one_topic_opens_its_busiest_queue_and_several_open_all():
    assert queues_of_topics(["Orders"], TOPICS) == [("Orders", 1)]
    assert queues_of_topics(["Orders", "Paid"], TOPICS) == [("Orders", 0), ("Orders", 1), ("Paid", 0)]
    assert queues_of_topics(["Empty"], TOPICS) == []


def test_queues_of_several_topics_are_listed_with_their_topic():
    model = QueuesModel()
    model.choose([("Orders", 0)])
    assert model.queue_items(TOPICS) == [(("Orders", 0), "0"), (("Orders", 1), "1")]
    model.choose([("Orders", 0), ("Paid", 0)])
    assert [text for _, text in model.queue_items(TOPICS)] == ["Orders/0", "Orders/1", "Paid/0"]
    assert model.topics == ["Orders", "Paid"]


def test_a_new_choice_makes_earlier_answers_late():
    model = QueuesModel()
    generation = model.choose([("Orders", 0)])
    assert model.choose([("Orders", 0)], again=True) == generation
    assert model.choose([("T", number) for number in range(MAX_QUEUES + 5)]) > generation
    assert len(model.queues) == MAX_QUEUES
    generation = model.generation
    model.forget_store()
    assert model.generation > generation
    assert model.queues == []


def test_the_queue_of_the_place_or_the_first_one_is_shown():
    model = QueuesModel()
    look = loaded(facts(queue_id=0), facts(queue_id=1))
    assert model.take(look, places.queue("Orders", 1, 5)) == ("Orders", 1)
    assert model.take(look, places.queue("Paid", 0)) == ("Orders", 0)
    assert model.take(look, None) == ("Orders", 0)
    model.choose([("Gone", 3)])
    assert model.take(loaded(), None) is None
    assert model.missing_words() == "This store has no queue Gone/3."


def test_a_queue_that_grows_keeps_the_choice():
    model = QueuesModel()
    look = loaded(facts(queue_id=0), facts(queue_id=1))
    model.take(look, None)
    model.current, model.entry = ("Orders", 0), entry(5)
    newer = loaded(facts(queue_id=0), facts(queue_id=1, raw_end=12))
    assert model.holds(newer)
    assert model.grow(newer) == [("Orders", 1)]
    assert look.source.adopted == [newer.source]
    assert (model.current, model.entry.queue_offset) == (("Orders", 0), 5)
    assert not model.holds(loaded(facts(queue_id=1)))


def test_a_missing_offset_is_reported_with_the_existing_range():
    model = QueuesModel()
    model.take(loaded(facts()), None)
    key = ("Orders", 0)
    assert model.outside_words(key, 99) == "Orders/0 has no entry 99: it holds 2 to 10."
    assert model.outside_words(key, 5) == model.outside_words(key, None) == ""
    assert (model.goal(key, 5), model.goal(key, None)) == (5, 2)


def test_the_head_names_the_size_of_an_entry_and_the_groups():
    model = QueuesModel()
    assert model.head_note() == ""
    group = SimpleNamespace(group="billing")
    model.take(loaded(facts(), facts(queue_id=1, kind="batch", groups=(group, group))), None)
    model.current = ("Orders", 0)
    assert model.head_note() == "20 bytes each"
    model.current = ("Orders", 1)
    assert model.head_note() == "46 bytes each · offsets of 2 groups drawn where they read next"


def test_a_step_leads_from_problem_to_problem():
    model = QueuesModel()
    counts = Verdicts(problems=[(3, "missing"), (7, "missing")], reached=10, total=10)
    assert (model.next_problem(counts, 1), model.next_problem(counts, -1)) == (3, 7)
    model.entry = entry(3)
    assert (model.next_problem(counts, 1), model.next_problem(counts, -1)) == (7, None)
    model.entry = entry(7)
    assert (model.next_problem(counts, 1), model.next_problem(counts, -1)) == (None, 3)


def test_verdicts_are_summed_up_as_far_as_they_were_counted():
    key = ("Orders", 0)
    assert verdict_sentence(key, None) == verdict_sentence(None, Verdicts()) == ""
    complete = Verdicts(Counter(ok=10), reached=10, total=10)
    assert verdict_sentence(key, complete) == "Orders/0 · 10 entries · all agree with the log · complete"
    moved = Verdicts(Counter(moved=111, ok=9), reached=120, total=120)
    assert verdict_sentence(key, moved) == (
        "Orders/0 · 120 entries · 9 compared with the log, all agree · 111 only in tiered storage · complete"
    )
    only_moved = Verdicts(Counter(moved=2), reached=2, total=2)
    assert verdict_sentence(key, only_moved) == "Orders/0 · 2 entries · 2 only in tiered storage · complete"
    part = Verdicts(Counter(ok=3, missing=1), reached=4, total=10)
    assert verdict_sentence(key, part).startswith("Orders/0 · 10 entries · 1 does not agree with the log · first 4 ")


def test_the_times_of_a_queue_are_those_of_its_messages_in_the_log() -> None:
    assert times_term("Orders", 3) == 'topic = "Orders" and queueId = 3'
    assert times_term("%LMQ%clients/7", 0) is None
