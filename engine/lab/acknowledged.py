"""Messages of a load that were acknowledged and that a power loss could still lose, by their ends in the log.

Bounded: flushed messages are forgotten. Beyond a few million entries old ones are grouped into heaps, whose sums are
exact and whose edges are not.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

PRUNE_FROM: Final = 1 << 13
MAX_ENDS: Final = 1 << 20
"""Ends kept one by one, 8 MiB for each producer; of calls with several messages a sixteenth of that."""
_HEAP: Final = 1 << 12
_SINGLE_STEP: Final = (1, 0)


@dataclass(frozen=True, slots=True)
class LostAcknowledged:
    """Messages that had been acknowledged and do not end at or before an offset.

    ``cut`` is where a call began whose messages (they are counted) lie on both sides of it, −1 if none does.
    ``exact`` is False if a heap does.
    """

    messages: int = 0
    cut: int = -1
    exact: bool = True


class Acknowledged:
    """Acknowledged messages of one producer. ``ends`` rise; ``append`` on it is the quick way to note one message."""

    __slots__ = ("_heaps", "_many", "ends")

    def __init__(self) -> None:
        self.ends = array("q")
        self._many: dict[int, tuple[int, int]] = {}  # end of a call that put several → how many, and its start
        self._heaps: list[tuple[int, int, int]] = []  # end of the first, end of the last, messages

    def note_many(self, start: int, end: int, messages: int) -> None:
        """Note one call that put ``messages`` messages, from ``start`` up to ``end``."""
        self._many[end] = messages, start
        self.ends.append(end)

    def prune(self, flushed: int) -> None:
        """Forget messages that a power loss cannot lose."""
        ends = self.ends
        flushed_count = bisect_right(ends, flushed)
        if self._many:
            for end in ends[:flushed_count]:
                self._many.pop(end, None)
        del ends[:flushed_count]
        self._heaps = [heap for heap in self._heaps if heap[1] > flushed]

    def bound(self) -> None:
        """Group the oldest ends into heaps if there are too many."""
        while len(self.ends) > (MAX_ENDS >> 4 if self._many else MAX_ENDS):
            oldest_ends = self.ends[:_HEAP]
            del self.ends[:_HEAP]
            self._heaps.append(
                (oldest_ends[0], oldest_ends[-1], sum(self._many.pop(end, _SINGLE_STEP)[0] for end in oldest_ends))
            )

    def lost_behind(self, offset: int) -> LostAcknowledged:
        """Return what would be lost if the log were cut at ``offset``."""
        lost_ends = self.ends[bisect_right(self.ends, offset) :]
        many = self._many
        messages = sum(many.get(end, _SINGLE_STEP)[0] for end in lost_ends) if many else len(lost_ends)
        cut = -1
        if lost_ends and lost_ends[0] in many and many[lost_ends[0]][1] < offset:
            cut = many[lost_ends[0]][1]
        exact = True
        for begin, end, count in self._heaps:
            if end > offset:
                messages += count
                exact = exact and begin > offset
        return LostAcknowledged(messages, cut, exact)


def lost_behind(everybody: Iterable[Acknowledged], offset: int) -> LostAcknowledged:
    """Return the losses of several producers together. At most one call is cut, since a call is one range of the
    log.
    """
    losses = [acknowledged.lost_behind(offset) for acknowledged in everybody]
    return LostAcknowledged(
        sum(lost.messages for lost in losses),
        max((lost.cut for lost in losses), default=-1),
        all(lost.exact for lost in losses),
    )
