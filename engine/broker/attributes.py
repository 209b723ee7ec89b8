"""Attributes of topics and groups (5.x): which there are, their values, and how a request changes them
(docs/protocol/broker.md#attributes).

Java: ``TopicAttributes``, ``SubscriptionGroupAttributes``, ``AttributeUtil``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.releases import Release, rules_of
from engine.remoting.codes import Refused, ResponseCode

CheckValue = Callable[[str], str | None]
"""Return why an attribute cannot have this value; None if it can."""
_MAX = (1 << 63) - 1
_EXPIRATION_LIMIT_MINUTES = 30 * 24 * 60
FIXED_OF_TOPICS = frozenset({"queue.type", "cleanup.policy"})
"""Attributes that only a new topic can get."""


def _one_of(*values: str) -> CheckValue:
    return lambda value: None if value in values else f"value is not in set: [{', '.join(values)}]"


def _number(least: int, greatest: int) -> CheckValue:
    def check(value: str) -> str | None:
        digits = value[1:] if value[:1] in {"-", "+"} else value
        if not digits.isdecimal():
            return f'For input string: "{value}"'
        return None if least <= int(value) <= greatest else f"value is not in range({least}, {greatest})"

    return check


def _any_text(_value: str) -> str | None:
    return None


def topic_attributes(release: Release) -> dict[str, CheckValue]:
    """Return the attributes that a topic of this release may have."""
    rules = rules_of(release)
    attributes = {
        "queue.type": _one_of("SimpleCQ", "BatchCQ"),
        "cleanup.policy": _one_of("DELETE", "COMPACTION"),
        "reserve.time": _number(-1, _MAX),
        "message.type": _one_of(*rules.message_types),
    }
    return attributes | ({"lite.topic.expiration": _number(-1, _EXPIRATION_LIMIT_MINUTES)} if rules.lite_topics else {})


def group_attributes(release: Release) -> dict[str, CheckValue]:
    """Return the attributes that a group of this release may have."""
    rules = rules_of(release)
    attributes: dict[str, CheckValue] = {"priority.factor": _number(0, 100)} if rules.priorities else {}
    if rules.lite_topics:
        attributes |= {
            "lite.bind.topic": _any_text,
            "lite.sub.model": _one_of("Shared", "Exclusive"),
            "lite.sub.reset.offset.exclusive": _one_of("true", "false"),
            "lite.sub.reset.offset.unsubscribe": _one_of("true", "false"),
            "lite.sub.client.quota": _number(-1, _MAX),
            "lite.sub.client.max.event.cnt": _number(10, _MAX),
            "lite.sub.wildcard": _any_text,
        }
    return attributes


def changed_attributes(
    old: Mapping[str, str],
    changes: Mapping[str, str | None],
    known: Mapping[str, CheckValue],
    fixed: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """Return attributes with changes applied: ``+key`` sets a value, ``-key`` takes it away. Raises :class:`Refused` in
    RocketMQ's order; ``fixed`` are those that cannot be changed.
    """
    attributes = dict(old)
    for word, value in changes.items():
        key, sign = word[1:], word[:1]
        if not key:
            raise Refused(ResponseCode.SYSTEM_ERROR, "kv string format wrong.")
        if sign not in {"+", "-"}:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"wrong format key: {key}")
        if key not in known:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"unsupported key: {key}")
        if key in fixed:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"attempt to update an unchangeable attribute. key: {key}")
        if sign == "-" or value is None:
            attributes.pop(key, None)
            continue
        if (fault := known[key](value)) is not None:
            raise Refused(ResponseCode.SYSTEM_ERROR, fault)
        attributes[key] = value
    return attributes
