"""Everything that the log has of the messages of one name, in the order of the log: one text to read from top to
bottom.

The units of a message (half, committed, delayed, delivered again, dead letter) are those that :mod:`where
<engine.inspection.where.evidence>` finds; op messages that settle a half message and message traces of clients join
them. Between two steps stand the events of the store that happened meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

from engine.callbacks import OffsetProgress
from engine.codec.message import Unit
from engine.inspection.message_traces import traces_of_message
from engine.inspection.timeline.events import TRACE_KINDS, TimelineEvent
from engine.inspection.where.evidence import WhereResult, where
from engine.rules.where import Role, role

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

MAX_MESSAGES = 200
"""Messages of one name that are followed, the newest ones."""
StepKind = Role | Literal["op", "trace", "event"]
_BETWEEN = frozenset(
    {"start", "cleanStop", "crash", "outage", "stall", "clockStep", "hostChange", "masterTerm", "redelivery"}
)
"""Events of a store that can be the reason for what a message went through."""


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """A property that differs from the previous unit of the same message; None: the unit has no such property."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ConversationStep:
    """A step of a conversation: a unit of a message, an op message, a trace of a client, or an event of the store.

    ``message``: number of the message it belongs to, from 1; 0 for an event. ``time``: store time of a unit, the
    client's time of a trace (ms). ``gap_ms``: time since the previous step; None for the first one.
    ``changes``: against the previous unit of the message. ``event``: of a trace or an event of the store.
    ``statement``: what the step means, if its kind does not say it.
    """

    kind: StepKind
    message: int
    time: int
    offset: int | None
    unit: Unit | None = None
    changes: tuple[PropertyChange, ...] = ()
    event: TimelineEvent | None = None
    statement: str = ""
    gap_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """The steps of all messages of a name. ``is_truncated``: there are more than :data:`MAX_MESSAGES` messages;
    ``has_unread``: files that could not be read, or a part that was not decoded, may hold other steps.
    """

    text: str
    messages: tuple[WhereResult, ...]
    steps: tuple[ConversationStep, ...]
    is_truncated: bool = False
    has_unread: bool = False

    @property
    def unit_count(self) -> int:
        """Number of units, op messages among them."""
        return sum(step.unit is not None for step in self.steps)

    @property
    def duration_ms(self) -> int:
        """Time from the earliest to the latest step, ms."""
        times = [step.time for step in self.steps]
        return max(times) - min(times) if times else 0


def read_conversation(
    store: StoreSnapshot,
    text: str,
    topic: str | None = None,
    progress: OffsetProgress | None = None,
    events: Sequence[TimelineEvent] = (),
) -> Conversation:
    """Return the conversation of the messages that ``text`` names (an id, a unique key, a key, an offset or
    ``topic/queue/offset``), as :func:`where` understands it.

    ``events``: the timeline of the store, if it is known; those between the first and the last step are included.
    """
    results = list(islice(where(store, text, topic, None, progress), MAX_MESSAGES + 1))
    is_truncated = len(results) > MAX_MESSAGES
    results = sorted(results[:MAX_MESSAGES], key=_first_offset)
    steps = _ordered([step for number, result in enumerate(results, 1) for step in _steps(store, number, result)])
    if steps:
        begin, end = min(step.time for step in steps), max(step.time for step in steps)
        steps = _ordered([*steps, *_events_between(events, begin, end)])
    has_unread = bool(store.unread or store.reading.undecoded)
    return Conversation(text, tuple(results), tuple(_with_gaps(steps)), is_truncated, has_unread)


def _first_offset(result: WhereResult) -> int:
    offsets = [
        evidence.offset for evidence in result.evidence if evidence.what == "unit" and evidence.offset is not None
    ]
    return min(offsets, default=-1)


def _steps(store: StoreSnapshot, number: int, result: WhereResult) -> Iterator[ConversationStep]:
    """Yield the steps of one message: units in the order of the log, op messages, then traces."""
    previous: Unit | None = None
    family = {item.offset: "" for item in result.evidence if item.what == "unit" and item.offset is not None}
    settling = {item.offset: item.holds for item in result.evidence if item.what == "op message"}
    last_unit: Unit | None = None
    for offset in sorted(family.keys() | {offset for offset in settling if offset is not None}):
        unit = store.log.seen_at(offset)
        if not isinstance(unit, Unit):
            continue
        if offset not in family:
            yield ConversationStep("op", number, unit.store_timestamp, offset, unit, statement=settling[offset])
            continue
        changes = property_changes(previous, unit) if previous is not None else ()
        yield ConversationStep(role(unit), number, unit.store_timestamp, offset, unit, changes)
        previous = last_unit = unit
    if last_unit is not None:
        for step in traces_of_message(store, last_unit):
            yield ConversationStep(
                "trace", number, step.event.time, step.offset, event=step.event, statement=step.event.message
            )


def property_changes(before: Unit, after: Unit) -> tuple[PropertyChange, ...]:
    """Return the properties that differ between two units of one message, by name."""
    old, new = before.properties, after.properties
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return tuple(PropertyChange(name, old.get(name), new.get(name)) for name in names)


def _events_between(events: Sequence[TimelineEvent], begin: int, end: int) -> Iterator[ConversationStep]:
    """Yield the events of the store between two times; a clean start or stop is one of them, a topic is not."""
    for event in events:
        if event.kind in _BETWEEN and event.kind not in TRACE_KINDS and begin <= event.time <= end:
            yield ConversationStep("event", 0, event.time, event.physical_offset, event=event, statement=event.message)


def _ordered(steps: Sequence[ConversationStep]) -> list[ConversationStep]:
    """Return units in the order of the log, and traces and events in front of the first unit that is later.

    A clock that was set back cannot reorder units.
    """
    units = sorted((step for step in steps if step.unit is not None), key=lambda step: (step.offset or 0, step.message))
    others = sorted((step for step in steps if step.unit is None), key=lambda step: step.time)
    ordered: list[ConversationStep] = []
    for unit in units:
        while others and others[0].time < unit.time:
            ordered.append(others.pop(0))
        ordered.append(unit)
    return [*ordered, *others]


def _with_gaps(steps: Sequence[ConversationStep]) -> Iterator[ConversationStep]:
    previous: ConversationStep | None = None
    for step in steps:
        yield step if previous is None else replace(step, gap_ms=step.time - previous.time)
        previous = step
