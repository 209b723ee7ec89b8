"""The purposes of RocketMQ's own topics."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from viewer.look.topic_kinds import is_system_topic, kind_of, kind_words

KINDS = {
    "%RETRY%billing": "retry",
    "%DLQ%billing": "dead",
    "SCHEDULE_TOPIC_XXXX": "delayed",
    "rmq_sys_wheel_timer": "delayed",
    "RMQ_SYS_TRANS_HALF_TOPIC": "half",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC": "op",
    "RMQ_SYS_TRACE_TOPIC": "system",
    "rmq_sys_REVIVE_LOG_DefaultCluster": "system",
    "TRANS_CHECK_MAX_TIME_TOPIC": "system",
    "TBW102": "system",
    "OFFSET_MOVED_EVENT": "system",
}


@pytest.mark.parametrize("topic", KINDS)
def test_system_topics_are_known_by_kind_and_in_words(topic: str, themed_app: QApplication) -> None:
    assert (kind_of(topic), is_system_topic(topic)) == (KINDS[topic], True)
    assert kind_words(topic)
