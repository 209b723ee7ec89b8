"""Places of the log that are broken: what else leads there is their consequence, and is told with them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

MOST_SPANS = 10_000


@dataclass(slots=True)
class Span:
    """Bytes [start, end) of the log that hold no readable unit, and how many entries lead into them."""

    start: int
    end: int
    kind: str  # damage, gap, stale, cut
    reason: str
    units: int = 0
    entries: int = 0
    keys: int = 0
    first_entry: str = ""

    def evidence(self) -> dict[str, Any]:
        """What a finding on this span tells about it."""
        told: dict[str, Any] = {"found": self.reason, "bytes": self.end - self.start}
        if self.units:
            told["units"] = self.units
        if self.entries:
            told["queueEntries"] = self.entries
            told["firstQueueEntry"] = self.first_entry
        if self.keys:
            told["indexEntries"] = self.keys
        return told


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
