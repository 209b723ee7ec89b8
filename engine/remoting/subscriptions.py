"""What a group wants of a topic, as clients say it and brokers keep it (protocol 3.5, 4.6). Pure.

Java: ``SubscriptionData``, ``FilterAPI``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.codec.java import jhash

TAG, SQL92 = "TAG", "SQL92"


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a group wants of a topic. ``codes`` are the hashes of its tags, empty for all."""

    topic: str
    expression: str = "*"
    version: int = 0
    kind: str = TAG
    tags: tuple[str, ...] = ()

    @property
    def codes(self) -> tuple[int, ...]:
        return tuple(jhash(tag) for tag in self.tags)

    @classmethod
    def of(cls, topic: str, expression: str | None, version: int = 0, kind: str | None = None) -> Subscription:
        """As RocketMQ reads an expression of tags: ``*``, nothing, or tags with ``||`` between (``FilterAPI``)."""
        text = (expression or "").strip()
        kind = kind or TAG
        if kind != TAG:
            return cls(topic, expression or "", version, kind)
        if text in {"", "*"}:
            return cls(topic, "*", version)
        return cls(topic, text, version, TAG, tuple(tag for one in text.split("||") if (tag := one.strip())))

    def record(self) -> dict[str, Any]:
        """As ``SubscriptionData`` is written."""
        return {
            "classFilterMode": False, "codeSet": list(self.codes), "expressionType": self.kind,
            "subString": self.expression, "subVersion": self.version, "tagsSet": list(self.tags), "topic": self.topic,
        }  # fmt: skip
