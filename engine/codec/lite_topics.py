"""Names of lite topics and of their light queues (docs/formats/consume-queue.md#light-queues).

Java: ``LiteUtil``.
"""

from __future__ import annotations

from engine.system_names import LMQ_PREFIX

LITE_PREFIX = LMQ_PREFIX + "$"
"""Light queues of lite topics are ``%LMQ%$<topic>$<lite topic>``."""


def lite_queue_name(topic: str, lite_topic: str) -> str:
    """Return the light queue of a topic's lite topic."""
    return f"{LITE_PREFIX}{topic}${lite_topic}"


def listing_key(topic: str) -> tuple[str, str]:
    """Return the sort key of a topic in lists: the light queues of lite topics follow their topic."""
    parts = split_lite_queue(topic)
    return (topic, "") if parts is None else parts


def split_lite_queue(name: str) -> tuple[str, str] | None:
    """Return topic and lite topic of a light queue; None for any other name, also one with a third ``$``."""
    if not name.startswith(LITE_PREFIX):
        return None
    topic, separator, lite_topic = name.removeprefix(LITE_PREFIX).partition("$")
    if not topic or not separator or not lite_topic or "$" in lite_topic:
        return None
    return topic, lite_topic
