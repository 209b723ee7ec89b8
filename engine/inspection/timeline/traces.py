"""Message traces in a log: who sent and received a message, how long that took, and how it ended.

Clients send them to a topic of their own if they are told to. Their times are of the clients' clocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.codec.columns import UNIT, UnitColumns
from engine.codec.compression import unpack
from engine.codec.message import Unit
from engine.codec.message_trace import MessageTrace, decode
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import decode_item
from engine.inspection.timeline.events import Kind, TimelineEvent
from engine.sentences import sentence
from engine.system_names import TRACE_TOPIC
from engine.times import duration_text

MAX_OPEN = 100_000
"""Number of messages that wait for the trace of their listener's end."""


@dataclass(slots=True)
class TraceCollector:
    """Collects at most ``limit`` events from the traces of a log; ``message``: only those of this unique key or key.

    ``units``: units of the trace topic; ``unknown``: those without a trace that is understood; ``left_out``: events
    beyond the limit.
    """

    limit: int | None = None
    message: str = ""
    is_wanted: bool = True
    events: list[TimelineEvent] = field(default_factory=list)
    units: int = 0
    unknown: int = 0
    left_out: int = 0
    _open: dict[tuple[str, str], tuple[MessageTrace, str, int]] = field(default_factory=dict)

    def add(self, block: UnitColumns, topics: TopicTable) -> None:
        """Read the traces of a block; without ``is_wanted`` only count their units."""
        topic = topics.find(TRACE_TOPIC)
        if topic < 0:
            return
        rows = np.flatnonzero((block["topic_id"] == topic) & (block["kind"] == UNIT))
        self.units += len(rows)
        for row in rows.tolist() if self.is_wanted else ():
            begin = int(block.offset[row]) - block.base
            data = block.buffer[begin : begin + int(block.size[row])].tobytes()
            unit = decode_item(data, 0, len(data), int(block.offset[row]), crc=False)
            if isinstance(unit, Unit):
                self.add_unit(unit)

    def add_unit(self, unit: Unit) -> None:
        """Read the traces in the body of a unit of the trace topic. Units are given in the order of the log."""
        traces = list(decode(unpack(unit.body, unit.sys_flag).data))
        self.unknown += not traces
        for trace in traces:
            if self.message and self.message != trace.message_id and self.message not in trace.keys.split(" "):
                continue
            if trace.action == "receive":
                if len(self._open) >= MAX_OPEN:
                    self._end(next(iter(self._open)), None)
                self._open[trace.request_id, trace.message_id] = trace, unit.born_host, unit.offset
            elif trace.action == "consumed":
                self._end((trace.request_id, trace.message_id), (trace, unit.born_host, unit.offset))
            else:
                self._note(_single_event(trace, unit.born_host, unit.offset))

    def _end(self, key: tuple[str, str], consumed: tuple[MessageTrace, str, int] | None) -> None:
        received = self._open.pop(key, None)
        self._note(_consumed_event(received, consumed))

    def _note(self, event: TimelineEvent) -> None:
        if self.limit is None or len(self.events) < self.limit:
            self.events.append(event)
        else:
            self.left_out += 1

    def finish(self) -> None:
        """Add the messages of which no trace says how they ended."""
        for key in list(self._open):
            self._end(key, None)


def _event(
    kind: Kind, start: int | None, end: int | None, offset: int, message: str, evidence: dict[str, Any]
) -> TimelineEvent:
    return TimelineEvent(kind, start, end, offset, message, "certain", TRACE_TOPIC, evidence)


def _facts(trace: MessageTrace, client: str) -> dict[str, Any]:
    return {
        "uniqueKey": trace.message_id,
        "keys": trace.keys or None,
        "topic": trace.topic or None,
        "group": trace.group or None,
        "client": client,
        "costMs": trace.cost_ms,
        "success": trace.is_success,
        "result": trace.result or None,
    }


def _single_event(trace: MessageTrace, client: str, offset: int) -> TimelineEvent:
    start, evidence = trace.time, _facts(trace, client)
    end = start + (trace.cost_ms or 0) if start is not None else None
    values = {"group": trace.group, "client": client, "id": trace.message_id, "topic": trace.topic}
    if trace.action == "endTransaction":
        message = sentence(
            "Group {group} at {client} ended the transaction of message {id} to topic {topic}: {result}",
            **values,
            result=trace.result,
        )
        return _event("transactionEnded", start, end, offset, message, evidence)
    if trace.action == "recall":
        message = sentence("Group {group} at {client} recalled message {id} of topic {topic}", **values)
        return _event("messageRecalled", start, end, offset, message, evidence)
    cost = duration_text(trace.cost_ms or 0)
    template = (
        sentence("Group {group} at {client} sent message {id} to topic {topic} within {cost}", **values, cost=cost)
        if trace.is_success
        else sentence(
            "Group {group} at {client} failed to send message {id} to topic {topic}, after {cost}", **values, cost=cost
        )
    )
    evidence |= {"broker": trace.broker or None, "messageType": trace.message_type or None}
    return _event("messageSent", start, end, offset, template, evidence)


def _consumed_event(
    received: tuple[MessageTrace, str, int] | None, consumed: tuple[MessageTrace, str, int] | None
) -> TimelineEvent:
    trace, client, offset = received or consumed or (MessageTrace("receive", ""), "", 0)
    start = received[0].time if received else None
    evidence = _facts(trace, client) | {"retryTimes": trace.retry_times}
    group = trace.group or (consumed[0].group if consumed else "")
    values = {"group": group, "client": client, "id": trace.message_id}
    if consumed is None:
        message = sentence("Group {group} at {client} got message {id}; no trace says how that ended", **values)
        return _event("messageConsumed", start, None, offset, message, evidence)
    consumption = consumed[0]
    evidence |= {"group": group or None, "costMs": consumption.cost_ms, "success": consumption.is_success}
    evidence |= {"result": consumption.result or None}
    end = start + (consumption.cost_ms or 0) if start is not None else consumption.time
    message = sentence(
        "Group {group} at {client} consumed message {id} within {cost}: {result}",
        **values,
        cost=duration_text(consumption.cost_ms or 0),
        result=consumption.result or ("success" if consumption.is_success else "failed"),
    )
    return _event("messageConsumed", start, end, offset, message, evidence)
