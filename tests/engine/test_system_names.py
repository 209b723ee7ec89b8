"""Names that RocketMQ reserves for itself."""

from __future__ import annotations

import pytest

from engine.system_names import is_system_group, is_system_topic


@pytest.mark.parametrize(
    ("topic", "is_reserved"),
    [
        ("Orders", False),
        ("%RETRY%billing", False),
        ("%DLQ%billing", False),
        ("SCHEDULE_TOPIC_XXXX", True),
        ("rmq_sys_wheel_timer", True),
        ("TBW102", True),
        ("schedule_topic_xxxx", False),
    ],
)
def test_topics(topic, is_reserved):
    assert is_system_topic(topic) is is_reserved


@pytest.mark.parametrize(
    ("group", "is_reserved"), [("billing", False), ("CID_RMQ_SYS_TRANS", True), ("TOOLS_CONSUMER", True)]
)
def test_groups(group, is_reserved):
    assert is_system_group(group) is is_reserved
