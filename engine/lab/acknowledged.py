"""What producers were told is stored: the ends of acknowledged messages, as far as a power loss could still take them.

Bounded: what is flushed is forgotten, and beyond a few million entries old ones are kept in heaps, whose sums are exact
and whose edges are not.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

PRUNE_FROM: Final = 1 << 16
MOST: Final = 1 << 20
"""Ends kept one by one: 8 MiB for each producer."""
_HEAP: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class Lost:
    """Messages that had been acknowledged and lie behind an offset. ``exact`` is False where heaps were cut in two."""

    messages: int = 0
    exact: bool = True


class Acknowledged:
    """Of one producer. ``ends`` rise; ``append`` on it is the quick way to note one message."""

    __slots__ = ("_heaps", "_many", "ends")

    def __init__(self) -> None:
        self.ends = array("q")
        self._many: dict[int, int] = {}  # end of a call → its messages, where they are several
        self._heaps: list[tuple[int, int, int]] = []  # end of the first, end of the last, messages

    def note_many(self, end: int, messages: int) -> None:
        """One call put ``messages`` of them, the last up to ``end``."""
        self.ends.append(end)
        self._many[end] = messages

    def prune(self, flushed: int) -> None:
        """Forget what a power loss cannot take."""
        ends = self.ends
        gone = bisect_right(ends, flushed)
        if self._many:
            for end in ends[:gone]:
                self._many.pop(end, None)
        del ends[:gone]
        self._heaps = [heap for heap in self._heaps if heap[1] > flushed]

    def bound(self) -> None:
        """Put the oldest ends into heaps where there are too many."""
        while len(self.ends) > MOST:
            taken = self.ends[:_HEAP]
            del self.ends[:_HEAP]
            many = self._many
            self._heaps.append((taken[0], taken[-1], sum(many.pop(end, 1) for end in taken) if many else _HEAP))

    def lost_behind(self, offset: int) -> Lost:
        """How many acknowledged messages do not end at or before ``offset``: what was lost with the log cut there."""
        first = bisect_right(self.ends, offset)
        many = self._many
        behind = self.ends[first:]
        messages = sum(many.get(end, 1) for end in behind) if many else len(behind)
        exact = not many or first == len(self.ends) or many.get(self.ends[first], 1) == 1
        for begin, end, count in self._heaps:
            if end > offset:
                messages += count
                exact = exact and begin > offset
        return Lost(messages, exact)


def lost_behind(everybody: Iterable[Acknowledged], offset: int) -> Lost:
    """The same of several producers together."""
    found = [one.lost_behind(offset) for one in everybody]
    return Lost(sum(lost.messages for lost in found), all(lost.exact for lost in found))
