"""Plan a resend: which messages go to which topics, and which are left out and why. Nothing is sent or written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from engine.codec.message import Unit
from engine.resend.journal import SENT, UNKNOWN, Identity, Journal
from engine.resend.originals import kind_of, messages_of, original_topic, why_not_sent
from engine.sentences import sentence


class Decision(StrEnum):
    """The decision about a chosen message."""

    SEND = "send"
    ALREADY_SENT = "alreadySent"
    """The journal says that it was sent, or another copy of it."""
    NOT_KNOWN = "notKnown"
    """The journal does not say whether it arrived: only sent with ``resend_unknown``."""
    COPY = "copy"
    """A later unit has the same message; that one is sent."""
    CANNOT = "cannotBeSent"


@dataclass(frozen=True, slots=True)
class PlannedMessage:
    """A chosen message. ``topic`` is where it goes, None if that is not known; ``reason`` is why it cannot be sent."""

    identity: Identity
    source_topic: str
    kind: str
    topic: str | None
    decision: Decision
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TopicShare:
    """The messages that go to one topic; times are store times (ms)."""

    topic: str
    messages: int
    first_timestamp: int
    last_timestamp: int


@dataclass(frozen=True)
class ResendPlan:
    """All chosen messages in the order of the log."""

    messages: list[PlannedMessage] = field(default_factory=list)
    known_keys: int = 0
    """Chosen messages whose unique key the journal has, whatever became of it."""

    @property
    def to_send(self) -> list[PlannedMessage]:
        """The messages that will be sent."""
        return [message for message in self.messages if message.decision is Decision.SEND]

    def count(self, decision: Decision) -> int:
        """Return how many messages have this decision."""
        return sum(message.decision is decision for message in self.messages)

    def reasons(self) -> Counter[str]:
        """Return how many messages cannot be sent, by reason."""
        return Counter(message.reason or "" for message in self.messages if message.decision is Decision.CANNOT)

    def kinds(self) -> Counter[str]:
        """Return how many messages will be sent, by kind."""
        return Counter(message.kind for message in self.to_send)

    def topics(self) -> list[TopicShare]:
        """Return the topics to which messages will be sent, by name."""
        times: dict[str, list[int]] = {}
        for message in self.to_send:
            times.setdefault(message.topic or "", []).append(message.identity.store_timestamp)
        return [TopicShare(topic, len(times[topic]), min(times[topic]), max(times[topic])) for topic in sorted(times)]

    def without_topics(self, refused: Mapping[str, str]) -> ResendPlan:
        """Return the plan with the messages left out whose topic the broker does not take; ``refused`` has reasons."""
        return ResendPlan(
            [
                replace(message, decision=Decision.CANNOT, reason=refused[message.topic])
                if message.decision is Decision.SEND and message.topic is not None and message.topic in refused
                else message
                for message in self.messages
            ],
            self.known_keys,
        )


def plan_resend(
    units: Iterable[Unit], journal: Journal, topic: str | None = None, *, resend_unknown: bool = False
) -> ResendPlan:
    """Return what becomes of the messages in ``units``, which come in the order of the log.

    ``topic`` takes all of them; None: each goes to its original topic.
    """
    plan = ResendPlan()
    newest: dict[tuple[str, str], int] = {}
    known_keys = 0
    for unit in units:
        for message in messages_of(unit):
            key = message.unique_key
            origin = original_topic(unit.topic, message.properties)
            target = topic or origin
            identity = Identity(key, unit.offset, message.member, unit.store_timestamp, origin or unit.topic)
            planned = PlannedMessage(identity, unit.topic, kind_of(unit.topic), target, Decision.SEND)
            known_keys += journal.has_key(key)
            reason = why_not_sent(message)
            if reason is None and target is None:
                reason = sentence("its original topic is not known")
            state = journal.message_state(identity)
            if reason is not None:
                planned = replace(planned, decision=Decision.CANNOT, reason=reason)
            elif state == SENT:
                planned = replace(planned, decision=Decision.ALREADY_SENT)
            elif state == UNKNOWN and not resend_unknown:
                planned = replace(planned, decision=Decision.NOT_KNOWN)
            elif key is not None:
                earlier = newest.get((key, identity.origin))
                if earlier is not None:
                    plan.messages[earlier] = replace(plan.messages[earlier], decision=Decision.COPY)
                newest[key, identity.origin] = len(plan.messages)
            plan.messages.append(planned)
    return replace(plan, known_keys=known_keys)
