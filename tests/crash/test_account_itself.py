"""The account of the rounds of faults finds and names each wrong delivery, and passes right ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from delivery_account import Account, body_of, number_of, settle

COUNT, LOST_ANSWER = 10, 5


class DeliveryStory:
    """Ten messages of one queue, one of them stored twice because its answer was lost; two readings in order."""

    def __init__(self) -> None:
        self.account = account = Account()
        self.sent = [(0, number) for number in range(COUNT)]
        self.stored = self.sent[: LOST_ANSWER + 1] + self.sent[LOST_ANSWER:]
        first_reading = account.take("readers", 0, 0)
        for offset in range(4):
            account.deliver("readers", first_reading, 0, offset, self.stored[offset])
        account.strike("a kill")
        account.miss([(0, LOST_ANSWER)])
        account.acknowledge(self.sent, "SEND_OK")
        self.second = account.take("readers", 0, 2)
        for offset in range(2, COUNT + 1):
            account.deliver("readers", self.second, 0, offset, self.stored[offset])

    def settle(self):
        units = [
            SimpleNamespace(body=body_of(*item), queue_id=0, queue_offset=index, properties={"UNIQ_KEY": f"id {item}"})
            for index, item in enumerate(self.stored)
        ]
        return settle(self.account, units, ["readers"])  # type: ignore[arg-type]


def test_a_body_names_its_message() -> None:
    assert [number_of(body_of(3, number)) for number in (0, 7, 12_345)] == [(3, 0), (3, 7), (3, 12_345)]


def test_doubles_are_booked_to_the_event_before_them() -> None:
    report = DeliveryStory().settle()
    assert (report.acknowledged, report.stored, report.copies) == (COUNT, COUNT, Counter({"a kill": 1}))
    assert (report.delivered, report.again) == ({"readers": COUNT + 1}, {"readers": Counter({"a kill": 2})})
    assert "1 of them twice (1 behind a kill); 1 tries without an answer" in report.line()


def a_message_is_gone(story: DeliveryStory) -> None:
    story.stored[-1:] = []


def one_is_stored_twice(story: DeliveryStory) -> None:
    story.account.unanswered.clear()


def a_queue_is_out_of_order(story: DeliveryStory) -> None:
    story.stored[7:9] = reversed(story.stored[7:9])


def one_is_not_delivered(story: DeliveryStory) -> None:
    story.second.given.pop()


def another_is_delivered(story: DeliveryStory) -> None:
    story.second.given[0] = (2, (0, 3))


def a_delivery_leaves_one_out(story: DeliveryStory) -> None:
    del story.second.given[1]


def a_group_goes_back_in_order(story: DeliveryStory) -> None:
    story.account.order["readers"][0][8:10] = reversed(story.account.order["readers"][0][8:10])


def a_reading_gives_one_again(story: DeliveryStory) -> None:
    story.second.given.append(story.second.given[-1])


def one_comes_again_though_nothing_happened(story: DeliveryStory) -> None:
    story.second.cause = ""


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (a_message_is_gone, "acknowledged and not stored"),
        (one_is_stored_twice, "is stored 2 times, and 1 tries"),
        (a_queue_is_out_of_order, "queue 0: out of order"),
        (one_is_not_delivered, "not delivered {10}"),
        (another_is_delivered, "another message"),
        (a_delivery_leaves_one_out, "a reading has gaps"),
        (a_group_goes_back_in_order, "readers, queue 0: out of order"),
        (a_reading_gives_one_again, "had something twice"),
        (one_comes_again_though_nothing_happened, "came twice for no reason"),
    ],
)
def test_a_wrong_story_is_named(spoil: Callable[[DeliveryStory], None], words: str) -> None:
    story = DeliveryStory()
    spoil(story)
    with pytest.raises(AssertionError, match=re.escape(words)):
        story.settle()
