"""Message traces of the chosen unit as lines of its detail: who sent and received it, how long, how it ended. No Qt.

For a unit of the trace topic they are the traces in its body, each with the way to its message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.system_names import TRACE_TOPIC
from viewer.log.unit_fields import Group, Line
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import moment, plain, span
from viewer.runtime import places
from viewer.runtime.places import Place

if TYPE_CHECKING:
    from engine.codec.message import Unit
    from engine.inspection.message_traces import TracedStep
    from engine.inspection.snapshot import StoreSnapshot

STEP_WORDS = {
    "messageSent": words("sent"),
    "messageConsumed": words("received"),
    "transactionEnded": words("transaction ended"),
    "messageRecalled": words("recalled"),
}
MAX_OPEN_STEPS = 4
"""Of more steps only the first line is shown until one is opened."""
FAILED = {"failed", "timeout", "exception", "returnedNull"}


def read_traces(store: StoreSnapshot, unit: Unit) -> Group | None:
    """Return the traces of a unit as a group of lines; None if the store has no traces. Reads the disk."""
    from engine.inspection.message_traces import (  # numpy: not before the first rows
        has_traces,
        messages_of_trace,
        traces_of_message,
    )

    if not has_traces(store):
        return None
    if unit.topic == TRACE_TOPIC:
        return group_of(messages_of_trace(store, unit), is_trace=True)
    return group_of(traces_of_message(store, unit), is_trace=False) if unit.unique_key else None


def group_of(steps: list[TracedStep], *, is_trace: bool) -> Group:
    """Return the group of these steps; ``is_trace``: they lead from a trace to its messages, not back."""
    title = words("Message traces")
    if not steps:
        text = (
            tr("No trace is understood in this body.")
            if is_trace
            else tr("The index leads to no trace of this message.")
        )
        return Group(title, "", (Line("", text),), opened=is_trace)
    summary = tr_plural("{n:,} step", "{n:,} steps", n=len(steps))
    is_folded = len(steps) > MAX_OPEN_STEPS
    lines = tuple(_line(step, is_trace=is_trace, is_folded=is_folded) for step in steps)
    return Group(title, summary, lines)


def _line(step: TracedStep, *, is_trace: bool, is_folded: bool) -> Line:
    event, evidence = step.event, step.event.evidence
    key = str(evidence.get("uniqueKey") or "")
    place: Place | None = places.log(step.offset) if step.offset is not None else None
    note = tr("→ message") if is_trace else tr("→ trace")
    if place is None and is_trace and key:
        place, note = Place("where", key=key), tr("→ where is it")
    parts = [
        (tr("message"), key if is_trace else ""),
        (tr("client"), str(evidence.get("client") or "")),
        (tr("time there"), moment(event.time or None)),
        (tr("took"), span(int(evidence["costMs"])) if evidence.get("costMs") is not None else ""),
        (tr("ended"), _ending(step)),
        (tr("retries before"), str(evidence.get("retryTimes") or "")),
    ]
    lines = tuple(Line("", plain(value), label=label) for label, value in parts if value)
    if _has_failed(step):
        note = f"{_ending(step)} · {note}"
    tone = "error" if _has_failed(step) else "text3"
    group = plain(str(evidence.get("group") or "?"))
    return Line("", group, note, place, tone, tr(STEP_WORDS[event.kind]), lines, folded=is_folded)


def _has_failed(step: TracedStep) -> bool:
    return step.event.evidence.get("success") is False or str(step.event.evidence.get("result")) in FAILED


def _ending(step: TracedStep) -> str:
    evidence = step.event.evidence
    if evidence.get("result"):
        return plain(str(evidence["result"]))
    if evidence.get("success") is None:
        return tr("no trace says how it ended") if step.event.kind == "messageConsumed" else ""
    return tr("success") if evidence["success"] else tr("failed")
