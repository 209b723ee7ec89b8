"""What kind a message is, by the properties that it was sent with."""

from __future__ import annotations

import pytest

from engine.broker.stats import BrokerStats, kind_of


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ({}, "normal"),
        ({"TRAN_MSG": "true", "DELAY": "1"}, "transaction"),
        ({"TRAN_MSG": "false"}, "normal"),
        ({"__SHARDINGKEY": "a", "DELAY": "1"}, "fifo"),
        ({"TIMER_DELAY_MS": "5"}, "delay"),
    ],
)
def test_the_kind_of_a_message(found: dict[str, str], kind: str) -> None:
    assert kind_of(found) == kind


def test_flows_add_up() -> None:
    stats = BrokerStats()
    stats.put["a", "normal"].add(2, 300)
    stats.put["a", "normal"].add(1, 100)
    assert (stats.put["a", "normal"].messages, stats.put["a", "normal"].size) == (3, 400)
