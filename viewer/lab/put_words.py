"""What the answers to a put mean, for whoever does not know RocketMQ's statuses by heart; no Qt."""

from __future__ import annotations

from viewer.look.assets import words

MEANINGS = {
    "PUT_OK": words("stored as it should be"),
    "FLUSH_DISK_TIMEOUT": words("stored; the flush was not waited for to its end"),
    "SERVICE_NOT_AVAILABLE": words("not stored: the store takes none now"),
    "CREATE_MAPPED_FILE_FAILED": words("not stored: no next file, or no buffer of the pool is free"),
    "MESSAGE_ILLEGAL": words("not stored: the message breaks a rule"),
    "PROPERTIES_SIZE_EXCEEDED": words("not stored: its properties are too long"),
    "OS_PAGE_CACHE_BUSY": words("not stored: a put has held the log for too long"),
    "LMQ_CONSUME_QUEUE_NUM_EXCEEDED": words("not stored: too many light queues"),
    "WHEEL_TIMER_NOT_ENABLE": words("not stored: the timer wheel is off"),
    "WHEEL_TIMER_MSG_ILLEGAL": words("not stored: its delivery time is out of range"),
    "WHEEL_TIMER_FLOW_CONTROL": words("not stored: too many messages for that second"),
    "UNKNOWN_ERROR": words("not stored: an error"),
}
"""PutMessageStatus's name → in words."""
