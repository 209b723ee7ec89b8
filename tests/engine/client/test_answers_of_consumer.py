"""Bodies that brokers and consumers exchange."""

from __future__ import annotations

import json

import pytest

from engine.client.answers_of_consumer import consumed_directly, offset_table, running_info, status_body
from engine.client.process_queue import ProcessQueue
from engine.client.routes import MessageQueue
from engine.codec.json_dialect import ObjectKey, parse
from engine.remoting.subscriptions import Subscription

QUEUE = MessageQueue("T", "broker-a", 3)


@pytest.mark.parametrize(
    "body",
    [
        b'{"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"T"}:5}}',
        b'{"offsetTable":[{"brokerName":"broker-a","queueId":3,"topic":"T","offset":5}]}',
    ],
)
def test_both_spellings_of_a_reset_are_read(body: bytes) -> None:
    assert offset_table(body) == {QUEUE: 5}
    assert offset_table(b"{}") == {}


def test_a_status_has_queues_as_keys() -> None:
    table = parse(status_body({QUEUE: 7, MessageQueue("T", "broker-a", 4): None})).value["messageQueueTable"]
    assert [(key.value["queueId"], offset) for key, offset in table.items() if isinstance(key, ObjectKey)] == [
        (3, 7),
        (4, -1),
    ]


def test_a_consumer_reports_its_queues() -> None:
    subscriptions = [Subscription.of("T", "a || b").record()]
    value = parse(
        running_info({"PROP_CONSUME_TYPE": "x"}, [(ProcessQueue(QUEUE, 5, locked=True), None)], subscriptions)
    ).value
    ((key, row),) = value["mqTable"].items()
    assert key.value == {"brokerName": "broker-a", "queueId": 3, "topic": "T"}
    assert (row["commitOffset"], row["locked"], row["droped"], row["cachedMsgCount"]) == (-1, True, False, 0)
    assert value["properties"] == {"PROP_CONSUME_TYPE": "x"}
    assert value["subscriptionSet"] == subscriptions


def test_the_result_of_consuming_one_message_is_reported() -> None:
    record = json.loads(consumed_directly(order=False, result="CR_SUCCESS", remark=None, spent=3))
    assert record == {
        "autoCommit": True,
        "consumeResult": "CR_SUCCESS",
        "order": False,
        "remark": None,
        "spentTimeMills": 3,
    }
