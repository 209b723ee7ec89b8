"""What a group wants of a topic, as clients say it and brokers keep it (docs/protocol/broker.md#clients,
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
    """What a group wants of a topic. ``codes`` are the hashes of its tags as its client reckoned them: a broker
    compares those, and clients in other languages hash what is not ASCII otherwise than Java does.
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
        """Whether every tag will do (``ExpressionMessageFilter``): also what a filter server of 4.2 would look at."""
        return self.expression == "*" or self.class_filter

    @classmethod
    def of(cls, topic: str, expression: str | None, version: int = 0, kind: str | None = None) -> Subscription:
        """As RocketMQ reads an expression of tags: ``*``, nothing, or tags with ``||`` between (``FilterAPI``)."""
        text = expression or ""
        kind = kind or TAG
        if kind != TAG:
            return cls(topic, expression or "", version, kind)
        if text in {"", "*"}:
            return cls(topic, "*", version)
        tags = tuple(tag for one in text.split("||") if (tag := one.strip()))
        return cls(topic, text, version, TAG, tags, tuple(map(jhash, tags)))

    def record(self) -> dict[str, Any]:
        """As ``SubscriptionData`` is written."""
        return {
            "classFilterMode": self.class_filter,
            "codeSet": list(self.codes),
            "expressionType": self.kind,
            "subString": self.expression,
            "subVersion": self.version,
            "tagsSet": list(self.tags),
            "topic": self.topic,
        }
