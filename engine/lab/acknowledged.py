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

PRUNE_FROM: Final = 1 << 13
MOST: Final = 1 << 20
"""Ends kept one by one, 8 MiB for each producer; of calls with several messages a sixteenth of that."""
_HEAP: Final = 1 << 12
_ONE: Final = (1, 0)


@dataclass(frozen=True, slots=True)
class LostBehind:
    """Messages that had been acknowledged and do not end at or before an offset.

    ``cut`` is where a call began whose messages (they are counted) lie on both sides of it, −1 where none does.
    ``exact`` is False where a heap does.
    """

    messages: int = 0
    cut: int = -1
    exact: bool = True


class Acknowledged:
    """Of one producer. ``ends`` rise; ``append`` on it is the quick way to note one message."""

    __slots__ = ("_heaps", "_many", "ends")

    def __init__(self) -> None:
        self.ends = array("q")
        self._many: dict[int, tuple[int, int]] = {}  # end of a call that put several → how many, and its start
        self._heaps: list[tuple[int, int, int]] = []  # end of the first, end of the last, messages

    def note_many(self, start: int, end: int, messages: int) -> None:
        """One call put ``messages`` of them, from ``start`` up to ``end``."""
        self._many[end] = messages, start
        self.ends.append(end)

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
        while len(self.ends) > (MOST >> 4 if self._many else MOST):
            taken = self.ends[:_HEAP]
            del self.ends[:_HEAP]
            self._heaps.append((taken[0], taken[-1], sum(self._many.pop(end, _ONE)[0] for end in taken)))

    def lost_behind(self, offset: int) -> LostBehind:
        """What would be lost were the log cut at ``offset``."""
        behind = self.ends[bisect_right(self.ends, offset) :]
        many = self._many
        messages = sum(many.get(end, _ONE)[0] for end in behind) if many else len(behind)
        cut = -1
        if behind and behind[0] in many and many[behind[0]][1] < offset:
            cut = many[behind[0]][1]
        exact = True
        for begin, end, count in self._heaps:
            if end > offset:
                messages += count
                exact = exact and begin > offset
        return LostBehind(messages, cut, exact)


def lost_behind(everybody: Iterable[Acknowledged], offset: int) -> LostBehind:
    """The same of several producers together; one call at most is cut, for a call is one stretch of the log."""
    found = [one.lost_behind(offset) for one in everybody]
    return LostBehind(
        sum(lost.messages for lost in found), max((lost.cut for lost in found), default=-1),
        all(lost.exact for lost in found),
    )  # fmt: skip
