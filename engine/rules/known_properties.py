"""Properties of messages that RocketMQ's clients and brokers set themselves, and what each tells of (spec 2.4)."""

from __future__ import annotations

from typing import Final

from engine.codec import properties as props

OF_KEYS: Final = (props.KEYS, "__SHARDINGKEY", "CORRELATION_ID")
OF_IDS: Final = (
    props.UNIQUE_KEY, props.TRANSACTION_ID, props.ORIGIN_MESSAGE_ID, props.TIMER_DEL_UNIQUE_KEY, "EXTEND_UNIQ_INFO",
    "DLQ_ORIGIN_MESSAGE_ID",
)  # fmt: skip
"""Ids name their message, and begin with an address: masked with keys and with hosts."""
OF_HOSTS: Final = (
    "BORN_HOST", "CLIENT_HOST", "REPLY_TO_CLIENT", "MSG_REGION", "INSTANCE_ID", "CLUSTER", "DUP_INFO", "POP_CK",
)  # fmt: skip
OF_GROUPS: Final = (props.PRODUCER_GROUP,)
OF_LIGHT_QUEUES: Final = (props.INNER_MULTI_DISPATCH,)
OF_TOPICS: Final = (props.REAL_TOPIC, props.RETRY_TOPIC, "DLQ_ORIGIN_TOPIC")
OF_ROCKETMQ: Final = frozenset({
    *OF_KEYS, *OF_IDS, *OF_HOSTS, *OF_GROUPS, *OF_LIGHT_QUEUES, *OF_TOPICS,
    props.TAGS, props.WAIT, props.DELAY, props.REAL_QUEUE_ID, props.TRANSACTION_PREPARED,
    props.TRANSACTION_CHECK_TIMES, props.INNER_NUM, props.INNER_BASE, props.INNER_MULTI_QUEUE_OFFSET,
    props.TIMER_DELAY_SEC, props.TIMER_DELAY_MS, props.TIMER_DELIVER_MS, props.TIMER_OUT_MS, props.TIMER_ENQUEUE_MS,
    props.TIMER_DEQUEUE_MS, props.TIMER_ROLL_TIMES, props.FIRST_POP_TIME, props.CRC32,
    "MIN_OFFSET", "MAX_OFFSET", "TRANSFER_FLAG", "CORRECTION_FLAG", "MQ2_FLAG", "RECONSUME_TIME", "TRACE_ON",
    "MAX_RECONSUME_TIMES", "CONSUME_START_TIME", "CHECK_IMMUNITY_TIME_IN_SECONDS", "TRAN_PREPARED_QUEUE_OFFSET",
    "TTL", "ARRIVE_TIME", "PUSH_REPLY_TIME", "MSG_TYPE", "POP_CK_OFFSET", "FORWARD_QUEUE_ID", "REDIRECT",
    "TIMER_DELAY_LEVEL", "BORN_TIMESTAMP",
})  # fmt: skip
"""All other properties are a user's own."""
