"""What became of a message: a verdict over its units, its place in queue and index, and a group's progress. Pure.

The units of one message share its unique key: delayed and delivered, half and committed, retried, dead (store flavours,
section 3). The newest unit decides what state the message is in; whether it can be read decides the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.codec import properties as props
from engine.codec.message import COMMIT, SCHEDULE_TOPIC, TRANSACTION_MASK, Unit

Verdict = Literal[
    "found",
    "expired",
    "truncated",
    "damaged",
    "notInQueue",
    "notInIndex",
    "half",
    "rolledBack",
    "delayed",
    "retried",
    "deadLetter",
    "hiddenByTag",
    "notYetDispatched",
    "consumed",
    "notConsumed",
    "neverSeen",
    "unknown",
]
Role = Literal[
    "plain", "delayed", "timer", "recall", "half", "committed", "givenUp", "retryWaiting", "retry", "dead", "other"
]

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
GIVEN_UP_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
TIMER_TOPIC = "rmq_sys_wheel_timer"
RETRY_PREFIX = "%RETRY%"
DEAD_PREFIX = "%DLQ%"

ROLE_WORDS: dict[Role, str] = {
    "plain": "stored in its topic",
    "delayed": "waits in the delay topic",
    "timer": "waits in the timing wheel",
    "recall": "a recall: the timed message is taken back",
    "half": "half message of a transaction",
    "committed": "committed message of a transaction",
    "givenUp": "half message given up after too many checks",
    "retryWaiting": "waits for its next delivery to a group",
    "retry": "delivered again to a group",
    "dead": "dead letter of a group",
    "other": "stored in a system topic",
}


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where a unit stands with its queue: ``state`` is ``listed``, ``absent``, ``behind`` (dispatch has not come so
    far),
    ``noQueue`` (the topic has no folder) or ``otherTag`` (the entry's tag code is not the unit's).
    """

    state: Literal["listed", "absent", "behind", "noQueue", "otherTag", "notNeeded"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found out about a message beside its units."""

    place: QueuePlace
    in_index: bool | None  # None: it has no key, or there is no index to be in
    settled_halves: frozenset[int]  # half-queue offsets that an op message names
    log_end: int  # where the next start would end the log
    group_offset: int | None = None  # the asked group's next offset in the message's queue
    group_known: bool = False
    filter_matches: bool | None = None  # of the asked group's SQL filter; None where it has none


def role(unit: Unit) -> Role:
    """What part a unit plays in its message's life, by its stored topic and properties."""
    topic, text = unit.topic, unit.properties
    if topic == HALF_TOPIC:
        return "half"
    if topic == GIVEN_UP_TOPIC:
        return "givenUp"
    if topic == SCHEDULE_TOPIC:
        return "retryWaiting" if text.get(props.REAL_TOPIC, "").startswith(RETRY_PREFIX) else "delayed"
    if topic == TIMER_TOPIC:
        return "recall" if props.TIMER_DEL_UNIQUE_KEY in text else "timer"
    if topic.startswith(DEAD_PREFIX):
        return "dead"
    if topic.startswith(RETRY_PREFIX):
        return "retry"
    if unit.sys_flag & TRANSACTION_MASK == COMMIT:
        return "committed"
    if unit.sys_flag & TRANSACTION_MASK:
        return "half"
    if topic == OP_TOPIC:
        return "other"
    return "plain"


def deciding_unit(family: Sequence[Unit]) -> Unit:
    """The unit whose role tells the message's state: the newest, but a committed message stays committed whatever a
    check
    wrote behind it.
    """
    newest = family[-1]
    if role(newest) in ("half", "givenUp"):
        for unit in reversed(family):
            if role(unit) in ("committed", "plain"):
                return unit
    return newest


def conclude(family: Sequence[Unit], facts: Facts) -> Verdict:
    """The verdict on the message whose units, oldest first, are ``family``."""
    unit = deciding_unit(family)
    if unit.crc == "bad":
        return "damaged"
    if unit.offset >= facts.log_end:
        return "truncated"
    state = role(unit)
    if state == "half":
        return "rolledBack" if _settled(family, facts) else "half"
    by_role: dict[Role, Verdict] = {
        "givenUp": "half",
        "delayed": "delayed",
        "timer": "delayed",
        "recall": "delayed",
        "retryWaiting": "retried",
        "dead": "deadLetter",
        "retry": "retried",
    }
    if state in by_role:
        return by_role[state] if facts.place.state != "behind" or state == "recall" else "notYetDispatched"
    return _readable(facts)


def _settled(family: Sequence[Unit], facts: Facts) -> bool:
    halves = [unit for unit in family if role(unit) == "half"]
    if halves and halves[-1].sys_flag & TRANSACTION_MASK == TRANSACTION_MASK:
        return True  # written as ROLLBACK by an old release
    return any(unit.queue_offset in facts.settled_halves for unit in halves if unit.topic == HALF_TOPIC)


def _readable(facts: Facts) -> Verdict:
    """The verdict on a message that stands in its own topic."""
    match facts.place.state:
        case "behind":
            return "notYetDispatched"
        case "absent" | "noQueue":
            return "notInQueue"
        case "otherTag":
            return "hiddenByTag"
    if facts.filter_matches is False:
        return "hiddenByTag"
    if facts.in_index is False:
        return "notInIndex"
    return "found"


def with_group(verdict: Verdict, queue_offset: int, facts: Facts) -> Verdict:
    """``found`` made more precise by a group's progress in the message's queue."""
    if verdict != "found" or not facts.group_known:
        return verdict
    if facts.group_offset is None:
        return "notConsumed"
    return "consumed" if facts.group_offset > queue_offset else "notConsumed"


NEXT_STEPS: dict[Verdict, str] = {
    "found": "The message can be read: look at the group's progress and its subscription.",
    "expired": "Retention has deleted it; a backup or another replica may still hold it.",
    "truncated": "Take a snapshot before any start; a replica that was in sync, or the bytes behind the end, may hold it.",
    "damaged": "Take a snapshot first; then compare the damaged bytes with a replica.",
    "notInQueue": "Take a snapshot; then build the queues again from the log into a new place and compare.",
    "notInIndex": "It can be consumed; only queries by key miss it. The index can be built again from the log.",
    "half": "Ask the producer's group why it has not answered the check; it is invisible until then.",
    "rolledBack": "The producer rolled it back: it is not to be delivered.",
    "delayed": "Wait until it is due; the evidence names the time.",
    "retried": "Look at the consumer's log for the failure of the earlier delivery.",
    "deadLetter": "Read it from the dead letter topic, mend the cause, and send it again.",
    "hiddenByTag": "Compare the message's tag or properties with the group's subscription.",
    "notYetDispatched": "The next start dispatches it; look at the recovery plan.",
    "consumed": "The group has passed it: look at the consumer's own log.",
    "notConsumed": "The group has not come so far: look at its progress.",
    "neverSeen": "No byte of this store speaks of it: look at the producer's log and at the other brokers.",
    "unknown": "The files do not tell; look at the other brokers and at the producer's log.",
}
