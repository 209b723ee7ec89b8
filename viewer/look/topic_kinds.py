"""Which topics are users' own and which RocketMQ keeps for itself, and what for."""

from __future__ import annotations

from typing import Literal

from engine.system_names import (
    BENCHMARK_TOPIC,
    DLQ_PREFIX,
    HALF_TOPIC,
    OFFSET_MOVED_TOPIC,
    OP_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    SYSTEM_PREFIX,
    TEMPLATE_TOPIC,
    TIMER_TOPIC,
)
from viewer.look.assets import tr, words

Kind = Literal["", "retry", "dead", "delayed", "half", "op", "system"]

_DELAYED = (SCHEDULE_TOPIC, TIMER_TOPIC)
_SYSTEM = (
    "SCHEDULE_TOPIC_",
    "RMQ_SYS_",
    SYSTEM_PREFIX,
    "%SYS%",
    "TRANS_CHECK_",
    "SELF_TEST_",
    OFFSET_MOVED_TOPIC,
    TEMPLATE_TOPIC,
    BENCHMARK_TOPIC,
)
_WORDS: dict[Kind, str] = {
    "retry": words("retry topic"),
    "dead": words("dead letter topic"),
    "delayed": words("delayed messages"),
    "half": words("half messages"),
    "op": words("ends of half messages"),
    "system": words("system topic"),
}


def kind_of(topic: str) -> Kind:
    """Return RocketMQ's purpose of ``topic``; empty for a user's own."""
    if topic.startswith(RETRY_PREFIX):
        return "retry"
    if topic.startswith(DLQ_PREFIX):
        return "dead"
    if topic in _DELAYED:
        return "delayed"
    if topic == HALF_TOPIC:
        return "half"
    if topic == OP_TOPIC:
        return "op"
    return "system" if topic.startswith(_SYSTEM) else ""


def is_system_topic(topic: str) -> bool:
    """Return whether RocketMQ made this topic for itself."""
    return bool(kind_of(topic))


def alike_at_the_start(topic: str) -> bool:
    """Return whether its first letters are those of many others, so that a short form leaves them out."""
    return topic.startswith(("RMQ_SYS_", SYSTEM_PREFIX))


def kind_words(topic: str) -> str:
    """The kind of a system topic in words; empty for a user's own."""
    kind = kind_of(topic)
    return tr(_WORDS[kind]) if kind else ""
