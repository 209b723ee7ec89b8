"""A group's subscription to a topic, as clients send it and brokers keep it (docs/protocol/broker.md#clients,
docs/protocol/behaviour.md#filters). Pure.

Java: ``SubscriptionData``, ``FilterAPI``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.codec.java import jhash

TAG, SQL92 = "TAG", "SQL92"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A group's subscription to a topic. ``codes`` are the hashes of its tags as its client computed them: a broker
    compares those, and clients in other languages hash non-ASCII text differently from Java.
    """

    topic: str
    expression: str = "*"
    version: int = 0
    kind: str = TAG
    tags: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    class_filter: bool = False

    @property
    def is_all(self) -> bool:
        """Return True if the subscription accepts every tag (``ExpressionMessageFilter``); also where a filter server
        of 4.2 would decide.
        """
        return self.expression == "*" or self.class_filter

    @classmethod
    def of(cls, topic: str, expression: str | None, version: int = 0, kind: str | None = None) -> Subscription:
        """Parse an expression of tags as RocketMQ does: ``*``, nothing, or tags with ``||`` between (``FilterAPI``)."""
        text = expression or ""
        kind = kind or TAG
        if kind != TAG:
            return cls(topic, expression or "", version, kind)
        if text in {"", "*"}:
            return cls(topic, "*", version)
        tags = tuple(tag for part in text.split("||") if (tag := part.strip()))
        return cls(topic, text, version, TAG, tags, tuple(map(jhash, tags)))

    def record(self) -> dict[str, Any]:
        """Return the subscription as ``SubscriptionData`` is written."""
        return {
            "classFilterMode": self.class_filter,
            "codeSet": list(self.codes),
            "expressionType": self.kind,
            "subString": self.expression,
            "subVersion": self.version,
            "tagsSet": list(self.tags),
            "topic": self.topic,
        }
