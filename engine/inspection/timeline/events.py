"""Events of a store's past. Each names the bytes that show it and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Kind = Literal[
    "deleted",
    "start",
    "cleanStop",
    "crash",
    "outage",
    "stall",
    "pause",
    "clockStep",
    "lateIndex",
    "hostChange",
    "masterTerm",
    "duplicateSend",
    "redelivery",
    "retryStorm",
    "topicAppears",
    "messageSent",
    "messageConsumed",
    "transactionEnded",
    "messageRecalled",
]
"""``outage``: nothing was stored although something was to be stored; ``stall``: requests waited for the broker;
``pause``: nothing was stored, and nothing shows that anybody wanted to. ``lateIndex``: index entries were made much
later than their messages. ``redelivery``: delayed messages were delivered a second time. The last four come from
message traces of clients.
"""
KINDS: tuple[Kind, ...] = get_args(Kind)
TRACE_KINDS: tuple[Kind, ...] = ("messageSent", "messageConsumed", "transactionEnded", "messageRecalled")
Certainty = Literal["certain", "likely"]


@dataclass(slots=True)
class TimelineEvent:
    """Something that happened between ``start`` and ``end`` (ms by the broker's clock; None: the bytes show no limit).

    ``physical_offset``: the unit of the log at which it shows; None if none does.
    """

    kind: Kind
    start: int | None
    end: int | None
    physical_offset: int | None
    message: str
    certainty: Certainty
    source: str
    """File or folder with the bytes that show the event."""
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def time(self) -> int:
        """Time by which events are ordered (ms)."""
        time = self.start if self.start is not None else self.end
        return time if time is not None else 0

    def record(self) -> dict[str, Any]:
        """Return the JSON record ``timelineEvent``."""
        return {
            "type": "timelineEvent",
            "kind": self.kind,
            "from": self.start,
            "to": self.end,
            "physicalOffset": self.physical_offset,
            "message": self.message,
            "evidence": {"certainty": self.certainty, "source": self.source, **self.evidence},
        }
