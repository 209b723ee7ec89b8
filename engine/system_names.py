"""Names that RocketMQ keeps for itself: topics and groups that no client made (docs/formats/transactions.md)."""

from __future__ import annotations

RETRY_PREFIX, DLQ_PREFIX = "%RETRY%", "%DLQ%"
"""Prefixes of a group's topics: messages that come again, and messages that were given up."""
LMQ_PREFIX = "%LMQ%"
"""Prefix of light queues: names of queues that messages of other topics list in a property."""
SYSTEM_PREFIX = "rmq_sys_"
"""Prefix of topics of 5.x brokers."""
TEMPLATE_TOPIC = "TBW102"
"""The topic whose settings a topic takes that is created by its first message."""
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC = "rmq_sys_wheel_timer"
HALF_TOPIC, OP_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
"""Half messages of transactions, and what became of them."""
ROCKSDB_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
ROCKSDB_OP_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
"""Topics that 5.4 and later use with ``transRocksDBEnable``; ``rocksdbstore`` has the open half messages."""
CHECK_MAX_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
"""Half messages that were checked too often and given up."""
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
REVIVE_PREFIX = "rmq_sys_REVIVE_LOG_"
"""Prefix of the topic of checkpoints and acknowledgements of popped messages; the cluster's name follows."""
SYNC_MEMBER_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Prefix of the topic in which brokers of one name announce themselves to each other (5.x)."""
SELF_TEST_TOPIC, BENCHMARK_TOPIC = "SELF_TEST_TOPIC", "BenchmarkTest"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
"""Notices of brokers that a group read outside of a queue's range."""
TRANSACTION_GROUP = "CID_RMQ_SYS_TRANS"
"""The group that owns the offsets of both transaction topics."""
REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
"""The group whose offsets show which checkpoints of pops are handled."""
CLUSTER_PROPERTY = "CLUSTER"
"""A broker writes its cluster's name into the properties of clients' messages; a store without a broker does not."""
NOT_SENT_TO = frozenset({SCHEDULE_TOPIC, HALF_TOPIC, OP_TOPIC, CHECK_MAX_TOPIC, SELF_TEST_TOPIC, OFFSET_MOVED_TOPIC})
"""Topics of the broker's own to which no client sends (Java: ``TopicValidator``)."""
_TOPICS = NOT_SENT_TO | {TEMPLATE_TOPIC, BENCHMARK_TOPIC, ROCKSDB_HALF_TOPIC, ROCKSDB_OP_TOPIC, TRACE_TOPIC}
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
    return name in _TOPICS or name.startswith(SYSTEM_PREFIX)


def is_system_group(name: str) -> bool:
    """A group of the broker's own, or of RocketMQ's tools."""
    return name in _GROUPS or name.startswith("CID_RMQ_SYS_")
