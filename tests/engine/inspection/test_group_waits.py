"""What a group still has to handle though its offsets stand at the ends of the queues."""

from __future__ import annotations

from engine.inspection import open_store
from engine.inspection.group_waits import find_group_waits


def test_messages_in_retry_topics_and_popped_ones_wait(golden) -> None:
    """Groups said "caught up" while their messages stood in a retry topic or were handed out without an answer."""
    with open_store(golden("broker-pop-5.5.1")) as store:
        waits = find_group_waits(store)
        retry = store.topics()["%RETRY%billing_OrderEvents"][0]
        assert waits.retry == {("billing", "OrderEvents"): retry.max_offset - 17}
        assert set(waits.popped) <= {
            ("billing", "OrderEvents", 0),
            ("billing", "OrderEvents", 1),
            ("billing", "%RETRY%billing_OrderEvents", 0),
        }
        assert waits.popped.total() > 0


def test_a_group_that_retries_without_pop_has_one_topic_for_all(golden) -> None:
    with open_store(golden("broker-retries")) as store:
        waits = find_group_waits(store)
    assert {topic for _, topic in waits.retry} == {""}
    assert waits.retry.total() == 7
    assert not waits.popped


def test_nothing_waits_where_nothing_was_retried(golden) -> None:
    with open_store(golden("broker-orders")) as store:
        waits = find_group_waits(store)
    assert not waits.retry
    assert not waits.popped
