"""RocketMQ's own integration tests, unmodified, against three brokers of ours behind our name server."""

from __future__ import annotations

from pathlib import Path

import pytest
import rocketmq_tests

pytestmark = pytest.mark.peer
SHORT = [
    "client.producer.batch.BatchSendIT",
    "client.producer.oneway.OneWaySendIT",
    "client.producer.querymsg.QueryMsgByKeyIT",
    "client.consumer.pop.PopMessageAndForwardingIT",
    "offset.LagCalculationIT#testCalculateLag",
    "recall.RecallWithTraceIT",
    "statictopic.StaticTopicIT#testNoTargetBrokers",
    "statictopic.StaticTopicIT#testRemappingWithNegativeLogicOffset",
    "tls.TlsIT",
]
NEED_THE_BROKERS_OBJECT = {
    "offset.LagCalculationIT#testEstimateLag": "the store's estimate of a count",
    "offset.OffsetResetForPopIT#testResetOffsetThenAckOldForPopOrderly": "what an orderly group holds",
    "offset.OffsetResetForPopIT#testRestOffsetToSkipMsgForPopOrderly": "what an orderly group holds",
    "smoke.NormalMessageSendAndRecvIT#testSynSendMessageWhenEnableBuildConsumeQueueConcurrently": "a restart",
    "statictopic.StaticTopicIT#testRemappingAndClear": "a wake-up of the service that cleans mappings",
}
"""Tests that fail beside real brokers in other processes, too: no request does what they call."""


def failures(results: list[rocketmq_tests.Result]) -> list[str]:
    return [f"{name}: {reason}" for name, has_passed, reason in results if not has_passed]


@pytest.mark.timeout(600)
def test_a_selection_of_rocketmqs_tests_passes(tmp_path: Path) -> None:
    """Sends, batches, keys, pops, lag, recall, static topics and TLS: once they failed for seven reasons."""
    with rocketmq_tests.three_brokers(tmp_path) as names:
        results = rocketmq_tests.run_tests_twice(names, SHORT, 400)
    assert failures(results) == []
    assert len(results) >= len(SHORT)


@pytest.mark.full_form
@pytest.mark.timeout(7200)
def test_all_of_rocketmqs_tests_pass_that_need_no_broker_object(tmp_path: Path) -> None:
    with rocketmq_tests.three_brokers(tmp_path) as names:
        results = rocketmq_tests.run_tests_twice(names, rocketmq_tests.all_classes(), 6000)
    judged = [result for result in results if result.name not in NEED_THE_BROKERS_OBJECT]
    assert failures(judged) == []
    assert len(judged) >= 200
