"""Decides the verdict on a message from its units, its place in queue and index, and a group's progress. Pure.

The units of one message share its unique key: delayed and delivered, half and committed, retried, dead (store flavours,
section 3). The newest unit decides what state the message is in; whether it can be read decides the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.codec import properties as props
from engine.codec.java import utf8
from engine.codec.message import COMMIT, PREPARED, TRANSACTION_MASK, Unit
from engine.sentences import msgid, sentence
from engine.system_names import (
    CHECK_MAX_TOPIC,
    DLQ_PREFIX,
    HALF_TOPIC,
    OP_TOPIC,
    RETRY_PREFIX,
    ROCKSDB_HALF_TOPIC,
    ROCKSDB_OP_TOPIC,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
)

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
    "passedOver",
    "replaced",
    "retried",
    "deadLetter",
    "hiddenByTag",
    "notYetDispatched",
    "consumed",
    "notConsumed",
    "beyondQueue",
    "neverSeen",
    "unknown",
]
By = Literal["offset", "queue", "key", "uniqueKey", "group"]
PlaceState = Literal[
    "listed",
    "absent",
    "behind",
    "noQueue",
    "deletedTopic",
    "otherTag",
    "notNeeded",
    "notOpened",
    "undecoded",
]
Role = Literal[
    "plain", "delayed", "timer", "recall", "half", "committed", "givenUp", "retryWaiting", "retry", "dead", "other"
]

OTHER_CASE = "a name in another case"
MERGED_CASE = "a file system that ignores case makes one folder of both"
NOT_LISTED = frozenset(("absent", "noQueue", "deletedTopic"))

ROLE_WORDS: dict[Role, str] = {
    "plain": sentence("stored in its topic"),
    "delayed": sentence("waits in the delay topic"),
    "timer": sentence("waits in the timer wheel"),
    "recall": sentence("a recall: the timed message is taken back"),
    "half": sentence("half message of a transaction"),
    "committed": sentence("committed message of a transaction"),
    "givenUp": sentence("half message given up after too many checks"),
    "retryWaiting": sentence("waits for its next delivery to a group"),
    "retry": sentence("delivered again to a group"),
    "dead": sentence("dead letter of a group"),
    "other": sentence("stored in a system topic"),
}


@dataclass(frozen=True, slots=True)
class Route:
    """A way to a message: ``by`` which identifier, and its result.

    ``verdict`` covers this way only: ``found`` if it reaches the message, else the obstacle; ``why`` is the evidence in
    the files.
    """

    by: By
    value: str
    verdict: Verdict
    why: str
    barred: str = ""  # words for why the broker refuses the message to the group that this way is about


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A unit's place in its queue.

    ``state`` is ``listed``, ``absent``, ``behind`` (not dispatched yet), ``noQueue`` (the topic has no folder),
    ``deletedTopic`` (nor is it declared: dispatch gives it none), ``otherTag`` (the entry's tag code is not the
    unit's), ``notNeeded`` (no consumer should read it), ``notOpened`` or ``undecoded`` (its queue is in a RocksDB).
    ``why`` is the statement of its entry.
    """

    state: PlaceState
    why: str = ""


@dataclass(frozen=True, slots=True)
class KeyReach:
    """Reach of a unit's key: whether the index finds the unit by it; None if the index must not be asked."""

    key: str
    reached: bool | None
    why: str


@dataclass(frozen=True, slots=True)
class GroupReach:
    """The next offset of a group in the unit's queue; ``queue_end`` is the end of the queue."""

    group: str
    offset: int
    why: str
    queue_end: int | None = None
    barred: str = ""  # words for why the broker refuses it the topic, "" if it may consume

    @property
    def is_beyond(self) -> bool:
        """True if the offset is beyond the queue's end: then it does not show what the group has read."""
        return self.queue_end is not None and self.offset > self.queue_end

    def has_read(self, queue_offset: int) -> bool:
        """Return True if the group has read past ``queue_offset``."""
        return self.offset > queue_offset and not self.is_beyond


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a message besides its units."""

    place: QueuePlace
    in_index: bool | None  # None: it has no key, or there is no index; refers to the requested key if there is one
    settled_halves: frozenset[int]  # half-queue offsets that an op message names
    log_end: int  # end of the log after the next start
    group_offset: int | None = None  # the requested group's next offset in the message's queue
    group_known: bool = False
    filter_matches: bool | None = None  # result of the requested group's SQL filter; None if it has none
    keys: tuple[KeyReach, ...] = ()
    groups: tuple[GroupReach, ...] = ()
    stalled: str = ""  # words for the stalled service that should have delivered it, or should ask its producer
    level_beyond_queue: bool = False  # it waits in a delay level whose offset is beyond the end of its queue
    passed_over: bool = False  # the timer has read on behind its time and has not delivered it
    barred: str = ""  # words for why the broker refuses its group, or everybody, to read it
    settled_offsets: frozenset[int] = frozenset()  # log offsets of half messages in a RocksDB that an op message names
    unrevived: bool = False  # a group popped it and did not acknowledge it, and the revive of pops is stalled
    dispatch_stalled: bool = False  # dispatch stopped at a message before it, so no queue has it


def role(unit: Unit) -> Role:
    """The part that a unit plays in its message's life, by its stored topic and properties."""
    topic, text = unit.topic, unit.properties
    if topic in (HALF_TOPIC, ROCKSDB_HALF_TOPIC):
        return "half"
    if topic == CHECK_MAX_TOPIC:
        return "givenUp"
    if topic == SCHEDULE_TOPIC:
        return "retryWaiting" if text.get(props.REAL_TOPIC, "").startswith(RETRY_PREFIX) else "delayed"
    if topic == TIMER_TOPIC:
        return "recall" if props.TIMER_DEL_UNIQUE_KEY in text else "timer"
    if topic.startswith(DLQ_PREFIX):
        return "dead"
    if topic.startswith(RETRY_PREFIX):
        return "retry"
    if unit.sys_flag & TRANSACTION_MASK == COMMIT:
        return "committed"
    if unit.sys_flag & TRANSACTION_MASK:
        return "half"
    if topic in (OP_TOPIC, ROCKSDB_OP_TOPIC):
        return "other"
    return "plain"


def own_key(unit: Unit) -> str | None:
    """The unique key that the broker returned to this message's sender: the first one among the unit's properties.

    A 5.x broker adds the batch's key behind each element's own in a classic batch: the last one wins in every reader
    and in the index, and all elements share it.
    """
    for pair in unit.properties_raw.split(b"\x02"):
        name, separator, value = pair.partition(b"\x01")
        if separator and name == props.UNIQUE_KEY.encode():
            return utf8(value)
    return unit.unique_key


def messages(units: Sequence[Unit]) -> list[list[Unit]]:
    """Units that share a unique key, oldest first, parted into messages: elements of one batch are several.

    A copy made for a retry has lost the element's own key: it names its original, or has its body.
    """
    parted: dict[str, list[Unit]] = {}
    originals: dict[str, str] = {}
    for unit in units:
        key = own_key(unit) or f"@{unit.offset}"
        if key != unit.unique_key:
            originals[unit.offset_msg_id] = key
    for unit in units:
        key = own_key(unit) or f"@{unit.offset}"
        if originals and key == unit.unique_key:
            key = _original(unit, originals, parted) or key
        parted.setdefault(key, []).append(unit)
    return list(parted.values())


def _original(unit: Unit, originals: dict[str, str], parted: dict[str, list[Unit]]) -> str | None:
    named = originals.get(unit.properties.get(props.ORIGIN_MESSAGE_ID, ""))
    if named is not None:
        return named
    return next(
        (key for key, units in parted.items() if key in originals.values() and units[0].body == unit.body), None
    )


def group_of(unit: Unit) -> str | None:
    """The group that a retry or dead letter belongs to; None for other units.

    Pop consumption adds the topic behind the group's name: the name may be longer than the group's.
    """
    topic = unit.properties.get(props.REAL_TOPIC, "") if unit.topic == SCHEDULE_TOPIC else unit.topic
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if topic.startswith(prefix):
            return topic[len(prefix) :]
    return None


def of_group(family: Sequence[Unit], group: str | None) -> list[Unit]:
    """The units that matter to ``group``, without other groups' retries and dead letters; all units if there is no
    group.
    """
    if group is None:
        return list(family)
    names = {group, None}
    return [
        unit
        for unit in family
        if (group_of_unit := group_of(unit)) in names or (group_of_unit or "").startswith((f"{group}_", f"{group}+"))
    ]


def deciding_unit(family: Sequence[Unit]) -> Unit:
    """The unit whose role gives the message's state: the newest one.

    A message once delivered or committed stays so, whatever a check or a late recall wrote later.
    """
    newest = family[-1]
    if role(newest) in {"half", "givenUp", "recall"}:
        for unit in reversed(family):
            if role(unit) in {"committed", "plain"}:
                return unit
    return newest


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A step of a message's life.

    ``step`` is ``born``, ``stored`` or another part that a unit plays (:data:`Role`), ``dispatched``, ``indexed`` or
    ``consumed`` (by the groups ``who``); time in ms and place in the log if known.
    """

    step: str
    timestamp: int | None = None
    offset: int | None = None
    who: tuple[str, ...] = ()


def life(family: Sequence[Unit], unit: Unit, facts: Facts) -> tuple[HistoryStep, ...]:
    """The history of a message so far; ``unit`` is the deciding one, to which ``facts`` refer."""
    steps = [HistoryStep("born", family[0].born_timestamp)]
    for member in family:
        part = role(member)
        steps.append(HistoryStep("stored" if part == "plain" else part, member.store_timestamp, member.offset))
    if facts.place.state == "listed":
        steps.append(HistoryStep("dispatched"))
    if facts.in_index:
        steps.append(HistoryStep("indexed"))
    readers = tuple(member.group for member in facts.groups if member.has_read(unit.queue_offset))
    if readers:
        steps.append(HistoryStep("consumed", who=readers))
    return tuple(steps)


def conclude(family: Sequence[Unit], facts: Facts) -> Verdict:
    """The verdict on the message whose units, oldest first, are ``family``."""
    unit = deciding_unit(family)
    if unit.crc == "bad":
        return "damaged"
    if unit.offset >= facts.log_end:
        return "truncated"
    state = role(unit)
    if state in {"half", "givenUp"}:
        if _settled(family, facts):
            return "rolledBack"
        return "notYetDispatched" if facts.place.state == "behind" else "half"
    by_role: dict[Role, Verdict] = {
        "delayed": "delayed",
        "timer": "delayed",
        "recall": "rolledBack",
        "retryWaiting": "retried",
        "dead": "deadLetter",
        "retry": "retried",
    }
    if state == "recall" or state not in by_role:
        return by_role.get(state) or _readable(facts)
    if facts.place.state == "behind":
        return "notYetDispatched"
    if facts.place.state in NOT_LISTED and state != "timer":  # the wheel keeps its own account
        return "notInQueue"
    return "passedOver" if facts.passed_over else by_role[state]


def _settled(family: Sequence[Unit], facts: Facts) -> bool:
    halves = [unit for unit in family if role(unit) == "half"]
    if halves and halves[-1].sys_flag & TRANSACTION_MASK == TRANSACTION_MASK:
        return True  # written as ROLLBACK by an old release
    if any(unit.offset in facts.settled_offsets for unit in halves):
        return True
    return any(unit.queue_offset in facts.settled_halves for unit in halves if unit.topic == HALF_TOPIC)


def _readable(facts: Facts) -> Verdict:
    """The verdict on a message in its own topic."""
    match facts.place.state:
        case "behind":
            return "notYetDispatched"
        case "absent" | "noQueue" | "deletedTopic":
            return "notInQueue"
        case "otherTag":
            return "hiddenByTag"
        case "undecoded":
            return "unknown"
    if facts.filter_matches is False:
        return "hiddenByTag"
    if facts.in_index is False:
        return "notInIndex"
    return "found"


def with_group(verdict: Verdict, unit: Unit, facts: Facts) -> Verdict:
    """A message that can be read, or was delivered again, made more precise by a group's progress in its queue."""
    if not facts.group_known:
        return verdict
    if any(group.is_beyond for group in facts.groups) and verdict in {"found", "notInIndex", "retried"}:
        return "beyondQueue"
    passed = facts.group_offset is not None and facts.group_offset > unit.queue_offset
    if verdict == "retried" and role(unit) == "retry":
        return "consumed" if passed else verdict
    if verdict in {"found", "notInIndex"}:  # queues are read without the index
        return "consumed" if passed else "notConsumed"
    return verdict


def in_index(keys: Sequence[KeyReach], asked_key: str | None) -> bool | None:
    """True if the index leads to a unit: from the requested key if the unit has it, else from all its keys."""
    results = [key_reach.reached for key_reach in keys if key_reach.key == asked_key] or [
        key_reach.reached for key_reach in keys
    ]
    known_results = [key_reach for key_reach in results if key_reach is not None]
    return all(known_results) if known_results else None


def routes(unit: Unit, facts: Facts) -> list[Route]:
    """Every way to ``unit``: by its offset, by its queue, by each key, by each group's progress."""
    all_routes = [_by_offset(unit, facts), _by_queue(unit, facts.place)]
    for key_reach in facts.keys:
        by: By = "uniqueKey" if key_reach.key == unit.unique_key else "key"
        verdict: Verdict = "unknown" if key_reach.reached is None else "found" if key_reach.reached else "notInIndex"
        all_routes.append(Route(by, key_reach.key, verdict, key_reach.why))
    for group in facts.groups:
        group_verdict: Verdict = "consumed" if group.has_read(unit.queue_offset) else "notConsumed"
        verdict = "beyondQueue" if group.is_beyond else group_verdict
        all_routes.append(Route("group", group.group, verdict, group.why, _refusal(group, unit)))
    return all_routes


def _refusal(group: GroupReach, unit: Unit) -> str:
    """Words for why the broker refuses ``unit`` to the group; "" if it may consume or has read past it."""
    return "" if group.has_read(unit.queue_offset) else group.barred


def _by_offset(unit: Unit, facts: Facts) -> Route:
    value = f"{unit.offset:,}"
    if unit.crc == "bad":
        return Route("offset", value, "damaged", sentence("the body is not what was stored"))
    if unit.offset >= facts.log_end:
        return Route("offset", value, "truncated", sentence("it is after the end of the log"))
    return Route("offset", value, "found", sentence("the unit is intact; its id is {id_}", id_=unit.offset_msg_id))


_QUEUE_VERDICTS: dict[str, Verdict] = {
    "listed": "found",
    "absent": "notInQueue",
    "noQueue": "notInQueue",
    "deletedTopic": "notInQueue",
    "behind": "notYetDispatched",
    "otherTag": "hiddenByTag",
    "notOpened": "unknown",
    "undecoded": "unknown",
}


def _by_queue(unit: Unit, place: QueuePlace) -> Route:
    value = f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"
    if place.state == "notNeeded":
        verdict: Verdict = "half" if unit.transaction_type == PREPARED else "rolledBack"
        return Route("queue", value, verdict, sentence("no queue lists half messages and what was rolled back"))
    return Route("queue", value, _QUEUE_VERDICTS[place.state], place.why)


def next_step(verdict: Verdict, unit: Unit, facts: Facts) -> str:
    """The recommended next step, in one sentence."""
    if facts.stalled and verdict in {"delayed", "retried"}:
        return STALLED_SERVICE_STEP
    if facts.level_beyond_queue and verdict in {"delayed", "retried"}:
        return LEVEL_BEYOND_QUEUE_STEP
    if facts.stalled and verdict == "half":
        return STALLED_CHECK_STEP
    if facts.dispatch_stalled and verdict == "notYetDispatched":
        return STALLED_DISPATCH_STEP
    if facts.unrevived and verdict in {"found", "notInIndex", "consumed", "notConsumed", "retried"}:
        return UNREVIVED_STEP
    if facts.barred and verdict in {"found", "notInIndex", "notConsumed", "retried"}:
        return BARRED_STEP
    if verdict == "found" and any(_refusal(group, unit) for group in facts.groups):
        return BARRED_GROUP_STEP
    if unit.physical_offset != unit.offset:
        return MISPLACED_STEP
    if verdict == "notInQueue" and OTHER_CASE in facts.place.why:
        return OTHER_CASE_STEP
    if verdict == "notInQueue" and MERGED_CASE in facts.place.why:
        return MERGED_CASE_STEP
    if verdict == "notInQueue" and facts.place.state == "deletedTopic":
        return DELETED_STEP
    if facts.place.state == "undecoded":
        return UNDECODED_STEP
    if verdict == "rolledBack" and role(unit) == "recall":
        return sentence("The producer recalled it before it was due: it must not be delivered.")
    if verdict == "half" and role(unit) == "givenUp":
        return sentence(
            "The broker has given up asking: look at the producer, and send the message again if it is needed."
        )
    return NEXT_STEPS[verdict]


DELETED_STEP = sentence(
    "Its topic was deleted, and no dispatch gives it a queue again. Until retention deletes it, you can read it from "
    "the log and send it again."
)
NOT_COMPACTED_STEP = sentence(
    "Consumers read its topic from compaction/, which lacks it: follow the steps of CM02 and CM03 in check."
)
COMPACTED_STEP = sentence(
    "The log has deleted it; its topic is compacted, and damaged bytes of the compaction log may hold it: follow the "
    "step of CM02 in check."
)
UNDECODED_STEP = sentence(
    "The log holds it; its queue is in a part of the store that is not decoded: ask a broker, by queryMsgByOffset."
)
LOG_UNDECODED_STEP = sentence(
    "The messages of this store are in a part that is not decoded: ask a running broker of it, by queryMsgByKey."
)
SOME_UNDECODED_STEP = sentence(
    "The message, or a later copy of it, may be in the part of the log that is not decoded: ask a running broker, by "
    "queryMsgByKey."
)
GROUP_UNKNOWN_STEP = sentence(
    "It is unknown what the group has read; the evidence says why, and check what to do. The message itself can be "
    "read."
)
RULED_OUT_STEP = sentence("Bytes that cannot be read may hold it: take a snapshot, and compare them with a replica.")
STALLED_CHECK_STEP = sentence(
    "The broker does not ask its producer, because the check of transactions makes no progress: follow the steps of "
    "CF13 in check."
)
LEVEL_BEYOND_QUEUE_STEP = sentence(
    "Its delay level makes no progress, because the level's offset is beyond the end of its queue: follow the step of "
    "CF09 in check."
)
STALLED_SERVICE_STEP = sentence("The service that delivers it makes no progress: follow the steps of CF13 in check.")
STALLED_DISPATCH_STEP = sentence("Dispatch stopped at a message before it: follow the step of CQ17 in check.")
UNREVIVED_STEP = sentence(
    "It comes again to the group that popped it only when the revive of pops makes progress: follow the steps of CF13 "
    "in check."
)
BARRED_STEP = sentence(
    "It waits, and the broker refuses to hand it out; the evidence names the table and the setting: change that while "
    "the broker runs."
)
BARRED_GROUP_STEP = sentence(
    "The message can be read, but the broker refuses it to a group that has not read it; the evidence names the group "
    "and the table."
)
MISPLACED_STEP = sentence(
    "Its unit says that it belongs at another offset: ask check (CL05) which file has a wrong name, before queues are "
    "built from this log."
)
MERGED_CASE_STEP = sentence(
    "Two topics whose names differ in case lie in one folder: build the queues again, on a file system that tells "
    "cases apart."
)
OTHER_CASE_STEP = sentence("Its topic's folder has a name in another case: give that its name back (check, CL14).")
OLDER_STEP = sentence(
    "Consumers do not get it: its file came back with an older copy of the log. It can be read here and copied out."
)
MISNAMED_STEP = sentence(
    "A file of the log is in its folder under another name or packed, and may hold it: do what check says of CL07."
)
OTHER_HOST_STEP = sentence(
    "The id belongs to another broker: look in that broker's store, or give the message's unique key or "
    "topic/queue/offset."
)
BEGINNING_STEP = sentence("Other names begin with it: give the complete id or key.")
INSIDE_UNIT_STEP = msgid("A message includes this byte: ask for its offset {offset}.")
NO_LOG_STEP = sentence("The commit log has no files: mount its disk or restore them, then ask again.")
NO_FILE_STEP = sentence("Find the missing file of the log: a backup or a replica may have it.")
NO_FILE_AT_OFFSET = sentence("no file of the log holds this offset")
TIERED_TABLE_STEP = sentence(
    "Restore the table of tiered storage from a backup or a replica (it may have a .bak), then ask again."
)

NEXT_STEPS: dict[Verdict, str] = {
    "found": sentence("The message can be read: look at the group's progress and its subscription."),
    "expired": sentence(
        "Its file of the log is gone, as retention deletes them; a backup or another replica may still hold it."
    ),
    "truncated": sentence(
        "Take a snapshot before any start; a replica, or the bytes behind the end, may still hold it."
    ),
    "damaged": sentence("Take a snapshot first; then compare the damaged bytes with a replica."),
    "notInQueue": sentence(
        "Take a snapshot, and ask check why its queue lacks it; only then build the queues again, into a new place."
    ),
    "notInIndex": sentence("It can be consumed; only queries by key miss it. Rebuild the index from the log."),
    "half": sentence(
        "Find out why the producer group has not answered the transaction check; consumers do not see the message "
        "until then."
    ),
    "rolledBack": sentence("The producer rolled it back: it must not be delivered."),
    "delayed": sentence("Wait until it is due; the evidence shows the time."),
    "passedOver": sentence("No start delivers it: follow the steps of TM05 in check, or send it again."),
    "replaced": sentence(
        "Its topic is compacted: consumers get only the newest message of each key. Read this one from the log, until "
        "retention deletes it there."
    ),
    "retried": sentence("Look at the consumer's log for the failure of the earlier delivery."),
    "deadLetter": sentence("Fix the cause, then send it again: storescope resend, or Send again… in the Log view."),
    "hiddenByTag": sentence("Compare the message's tag or properties with the group's subscription."),
    "notYetDispatched": sentence("No queue has it yet; ask recover --plan whether the next start dispatches it."),
    "consumed": sentence("The group has read past it: look at the consumer's log."),
    "notConsumed": sentence("The group has not reached it yet: look at its progress."),
    "beyondQueue": sentence(
        "The group's offset is beyond the end of the queue: it belongs to an earlier queue, or the queue "
        "lost its end. Run check to find out; if the queue was started anew, the group skips new messages "
        "until its offset is set back."
    ),
    "neverSeen": sentence("This store has no trace of it: look at the producer's log and at the other brokers."),
    "unknown": sentence("The files do not show it; look at the other brokers and at the producer's log."),
}
NO_UNIT_HAS_KEY = sentence("no unit of the log has this key")
NO_UNIT_BESIDE_DLEDGER_HAS_KEY = sentence("no unit of commitlog has this key")
ENTRY_INTO_DLEDGER = msgid("an entry for {key} points into the DLedger log, which is not decoded")
BEGINS_WITH = msgid("{name} begins with it")
"""Evidence of a longer id or key; the window leads to it."""
