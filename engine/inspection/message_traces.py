"""The message traces of one message, and the messages that a trace is about; both are found by the index.

Clients give the message of a trace the unique keys of the traced messages as keys, so no log has to be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from engine.inspection.lookup import by_key
from engine.inspection.timeline.traces import TraceCollector
from engine.system_names import TRACE_TOPIC

if TYPE_CHECKING:
    from engine.codec.message import Unit
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.timeline.events import TimelineEvent

MAX_TRACE_UNITS = 64
"""Units of traces that are read for one message, the newest ones."""
MAX_TRACES = 40
"""Traces of one body whose message is looked for."""


@dataclass(frozen=True, slots=True)
class TracedStep:
    """Something that a client did with a message.

    ``offset``: physical offset of the trace, or of the message where the trace is given; None if it is not found.
    """

    event: TimelineEvent
    offset: int | None


def has_traces(store: StoreSnapshot) -> bool:
    """Return True if clients sent traces to this store and an index leads to them; a capsule lacks their bodies."""
    if store.capsule is not None or TRACE_TOPIC not in store.queues.by_topic():
        return False
    return store.index.rocksdb is not None or bool(store.index_files())


def traces_of_message(store: StoreSnapshot, unit: Unit) -> list[TracedStep]:
    """Return what clients traced about a message, in order of time; each step with the offset of its trace."""
    if not unit.unique_key or not has_traces(store):
        return []
    collector = TraceCollector(message=unit.unique_key)
    for trace_unit in reversed(list(islice(by_key(store, unit.unique_key, TRACE_TOPIC), MAX_TRACE_UNITS))):
        collector.add_unit(trace_unit)
    collector.finish()
    steps = [TracedStep(event, event.physical_offset) for event in collector.events]
    return sorted(steps, key=lambda step: step.event.time)


def messages_of_trace(store: StoreSnapshot, trace_unit: Unit) -> list[TracedStep]:
    """Return what a unit of the trace topic tells; each step with the offset of the message that it is about."""
    collector = TraceCollector(limit=MAX_TRACES)
    collector.add_unit(trace_unit)
    collector.finish()
    offsets: dict[str, int | None] = {}
    for event in collector.events:
        key = str(event.evidence["uniqueKey"])
        if key not in offsets:
            offsets[key] = _find_message(store, key, event.evidence.get("topic"))
    return [TracedStep(event, offsets[str(event.evidence["uniqueKey"])]) for event in collector.events]


def _find_message(store: StoreSnapshot, unique_key: str, topic: str | None) -> int | None:
    """Return the offset of the newest message of a unique key that is no trace."""
    units = by_key(store, unique_key, topic)
    return next((unit.offset for unit in units if unit.topic != TRACE_TOPIC and unit.unique_key == unique_key), None)
