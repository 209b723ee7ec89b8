"""Names that RocketMQ keeps for itself: topics and groups that no client made (docs/formats/transactions.md)."""

from __future__ import annotations

RETRY, DLQ, LMQ = "%RETRY%", "%DLQ%", "%LMQ%"
TIMER_TOPIC = "rmq_sys_wheel_timer"
CLUSTER_PROPERTY = "CLUSTER"
"""A broker writes its cluster's name into the properties of clients' messages; a store without a broker does not."""
_TOPICS = frozenset(
    {
        "TBW102",
        "SCHEDULE_TOPIC_XXXX",
        "BenchmarkTest",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
        "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
        "RMQ_SYS_TRACE_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
_GROUPS = frozenset(
    {
        "DEFAULT_CONSUMER",
        "TOOLS_CONSUMER",
        "SCHEDULE_CONSUMER",
        "FILTERSRV_CONSUMER",
        "__MONITOR_CONSUMER",
        "SELF_TEST_C_GROUP",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PULL",
    }
)


def is_system_topic(name: str) -> bool:
    """Return True for a topic that a broker creates for itself; retry, dead-letter and light queues of groups do not
    count.
    """
    return name in _TOPICS or name.startswith("rmq_sys_")


def is_system_group(name: str) -> bool:
    """A group of the broker's own, or of RocketMQ's tools."""
    return name in _GROUPS or name.startswith("CID_RMQ_SYS_")
