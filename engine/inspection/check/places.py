"""Broken places of the log: entries that point there are their consequence, and are reported with them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

from engine.rules.findings import STORED_FROM, STORED_TO
from engine.sentences import join, plural, sentence

MAX_SPANS = 10_000
MAX_NAMED = 3
MAX_LISTED = 256


@dataclass(slots=True)
class Span:
    """Bytes [start, end) of the log without a readable unit, and the number of entries that point into them."""

    start: int
    end: int
    kind: str  # damage, gap, stale, cut, other, placeholder
    reason: str
    units: int = 0
    entries: int = 0
    keys: int = 0
    first_entry: str = ""
    is_elsewhere: bool = False
    """Whether a file under another name holds these bytes: then they are not lost."""
    queues: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Queue → first and last of its entries that point here, and their number."""
    time_before: int = -1
    time_after: int = -1
    """Store times (ms) of the units before and after; −1 if there is none."""
    groups: list[str] = field(default_factory=list)
    """Consumer groups whose next message is one of these."""

    def lead_in(self, queue: str, number: int) -> None:
        """Note that entry ``number`` of ``queue`` points here: its message is lost."""
        self.entries += 1
        self.first_entry = self.first_entry or f"{queue}/{number}"
        lowest, highest, count = self.queues.get(queue, (number, number, 0))
        self.queues[queue] = (min(lowest, number), max(highest, number), count + 1)

    def lead_all_in(self, queue: str, first_number: int, last_number: int, count: int) -> None:
        """Note that ``count`` entries of ``queue`` from ``first_number`` to ``last_number`` point here."""
        self.lead_in(queue, first_number)
        lost_range = self.queues[queue]
        self.entries += count - 1
        self.queues[queue] = (lost_range[0], max(lost_range[1], last_number), lost_range[2] + count - 1)

    @property
    def lost(self) -> str:
        """The messages lost here, by queue and queue offset; "" if no entry points here."""
        if not self.queues:
            return ""
        by_loss = sorted(self.queues.items(), key=lambda item: -item[1][2])
        named = join(", ", (_lost_offsets(name, *lost_range) for name, lost_range in by_loss[:MAX_NAMED]))
        if len(by_loss) > MAX_NAMED:
            named = plural(
                "{queues} and {n:,} more queue",
                "{queues} and {n:,} more queues",
                n=len(by_loss) - MAX_NAMED,
                queues=named,
            )
        lost = plural("{n:,} message lost: {queues}", "{n:,} messages lost: {queues}", n=self.entries, queues=named)
        if not self.groups:
            return lost
        waiting = sentence("the next message of {groups} is one of them", groups=", ".join(self.groups[:MAX_NAMED]))
        return join("; ", [lost, waiting])

    def stand(self, group: str, queue: str, offset: int) -> None:
        """Note a group whose next message, at ``offset`` of ``queue``, is one of the lost."""
        lost_range = self.queues.get(queue)
        if lost_range is not None and lost_range[0] <= offset <= lost_range[1]:
            self.groups.append(f"{group} ({queue}/{offset})")

    def evidence(self) -> dict[str, Any]:
        """Evidence for a finding on this span."""
        evidence: dict[str, Any] = {"found": self.reason, "bytes": self.end - self.start}
        if self.units:
            evidence["units"] = self.units
        if self.entries:
            evidence["queueEntries"] = self.entries
            evidence["firstQueueEntry"] = self.first_entry
            evidence["lost"] = [
                {"queue": name, "first": lowest, "last": highest, "messages": count}
                for name, (lowest, highest, count) in list(self.queues.items())[:MAX_LISTED]
            ]
        if self.groups:
            evidence["groups"] = self.groups[:MAX_LISTED]
        if self.keys:
            evidence["indexEntries"] = self.keys
        return evidence | between(self.time_before, self.time_after)


def between(start_time: int, end_time: int) -> dict[str, int]:
    """The store times (ms) around a place, as evidence; −1 for an unknown time."""
    bounds = {STORED_FROM: start_time, STORED_TO: end_time}
    return {name: time for name, time in bounds.items() if time >= 0}


def _lost_offsets(queue: str, start: int, end: int, count: int) -> str:
    """Words for the queue and the queue offsets of ``count`` messages in a range."""
    if start == end:
        return f"{queue} {start:,}"
    if end - start + 1 == count:
        return f"{queue} {start:,}–{end:,}"
    return sentence("{queue} {n:,} of {start:,}–{end:,}", queue=queue, n=count, start=start, end=end)


class Spans:
    """All broken places in the order of the log; at most :data:`MAX_SPANS` are kept apart."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._starts: list[int] = []

    def add(self, start: int, end: int, kind: str, reason: str, units: int = 0) -> Span:
        """Add a place; neighbours of the same kind are merged."""
        previous = self.spans[-1] if self.spans else None
        if previous is not None and ((previous.end == start and previous.kind == kind) or len(self.spans) >= MAX_SPANS):
            previous.end = max(previous.end, end)
            previous.units += units
            return previous
        span = Span(start, end, kind, reason, units)
        self.spans.append(span)
        self._starts.append(start)
        return span

    def find(self, offset: int) -> Span | None:
        """The broken place that contains ``offset``, or None."""
        index = bisect_right(self._starts, offset) - 1
        return self.spans[index] if index >= 0 and offset < self.spans[index].end else None

    def arrange(self) -> None:
        """Put them in order again after all have been added (a gap may be known before the walk reaches it)."""
        self.spans.sort(key=lambda span: (span.start, -span.end))
        self._starts = [span.start for span in self.spans]
