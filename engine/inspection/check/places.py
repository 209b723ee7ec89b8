"""Places of the log that are broken: what else leads there is their consequence, and is told with them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

from engine.rules.findings import STORED_FROM, STORED_TO

MOST_SPANS = 10_000
MOST_NAMED = 3
MOST_LISTED = 256


@dataclass(slots=True)
class Span:
    """Bytes [start, end) of the log that hold no readable unit, and how many entries lead into them."""

    start: int
    end: int
    kind: str  # damage, gap, stale, cut, other
    reason: str
    units: int = 0
    entries: int = 0
    keys: int = 0
    first_entry: str = ""
    queues: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Queue → first and last of its entries that lead here, and how many do."""
    before: int = -1
    after: int = -1
    """Store times (ms) of the units in front and behind; −1 where there is none."""
    groups: list[str] = field(default_factory=list)
    """Consumer groups whose next message is one of these."""

    def lead_in(self, queue: str, number: int) -> None:
        """Entry ``number`` of ``queue`` leads here: the message that it knows is lost."""
        self.entries += 1
        self.first_entry = self.first_entry or f"{queue}/{number}"
        first, last, count = self.queues.get(queue, (number, number, 0))
        self.queues[queue] = (min(first, number), max(last, number), count + 1)

    def lead_all_in(self, queue: str, first: int, last: int, count: int) -> None:
        """``count`` entries of ``queue`` from ``first`` to ``last`` lead here."""
        self.lead_in(queue, first)
        known = self.queues[queue]
        self.entries += count - 1
        self.queues[queue] = (known[0], max(known[1], last), known[2] + count - 1)

    @property
    def lost(self) -> str:
        """Which messages are lost here, by queue and queue offset; "" where no entry leads here."""
        if not self.queues:
            return ""
        most = sorted(self.queues.items(), key=lambda one: -one[1][2])
        named = ", ".join(f"{name} {_offsets(*known)}" for name, known in most[:MOST_NAMED])
        more = f" and {len(most) - MOST_NAMED:,} more queues" if len(most) > MOST_NAMED else ""
        wait = f"; the next message of {', '.join(self.groups[:MOST_NAMED])} is one of them" if self.groups else ""
        return f"{_messages(self.entries)} lost: {named}{more}{wait}"

    def stand(self, group: str, queue: str, offset: int) -> None:
        """Note a group that stands at ``offset`` of ``queue``, where that message is one of the lost."""
        known = self.queues.get(queue)
        if known is not None and known[0] <= offset <= known[1]:
            self.groups.append(f"{group} ({queue}/{offset})")

    def evidence(self) -> dict[str, Any]:
        """What a finding on this span tells about it."""
        told: dict[str, Any] = {"found": self.reason, "bytes": self.end - self.start}
        if self.units:
            told["units"] = self.units
        if self.entries:
            told["queueEntries"] = self.entries
            told["firstQueueEntry"] = self.first_entry
            told["lost"] = [
                {"queue": name, "first": first, "last": last, "messages": count}
                for name, (first, last, count) in list(self.queues.items())[:MOST_LISTED]
            ]
        if self.groups:
            told["groups"] = self.groups[:MOST_LISTED]
        if self.keys:
            told["indexEntries"] = self.keys
        return told | between(self.before, self.after)


def between(first: int, last: int) -> dict[str, int]:
    """The evidence of store times (ms) around a place; −1 for one that is not known."""
    known = {STORED_FROM: first, STORED_TO: last}
    return {name: time for name, time in known.items() if time >= 0}


def _offsets(first: int, last: int, count: int) -> str:
    """The queue offsets of so many messages between two of them."""
    if first == last:
        return f"{first:,}"
    return f"{first:,}–{last:,}" if last - first + 1 == count else f"{count:,} of {first:,}–{last:,}"


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


class Spans:
    """All broken places in the order of the log; at most :data:`MOST_SPANS` are kept apart."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._starts: list[int] = []

    def add(self, start: int, end: int, kind: str, reason: str, units: int = 0) -> Span:
        """One more place; neighbours of the same kind grow together."""
        last = self.spans[-1] if self.spans else None
        if last is not None and ((last.end == start and last.kind == kind) or len(self.spans) >= MOST_SPANS):
            last.end = max(last.end, end)
            last.units += units
            return last
        span = Span(start, end, kind, reason, units)
        self.spans.append(span)
        self._starts.append(start)
        return span

    def find(self, offset: int) -> Span | None:
        """The broken place that holds ``offset``, or None."""
        at = bisect_right(self._starts, offset) - 1
        return self.spans[at] if at >= 0 and offset < self.spans[at].end else None

    def arrange(self) -> None:
        """Put them in order again after all have been added (a gap may be known before the walk reaches it)."""
        self.spans.sort(key=lambda span: (span.start, -span.end))
        self._starts = [span.start for span in self.spans]
