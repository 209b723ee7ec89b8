"""What a query asks for, as ranges and sets: so much of its filters as can spare reading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

EVERYWHERE = (-(1 << 63), (1 << 63) - 1)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Want:
    """What is asked for: ranges with both ends in them, sets; None is everything."""

    topics: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    queue_offsets: Span = EVERYWHERE
    physical_offsets: Span = EVERYWHERE
    store_timestamps: Span = EVERYWHERE

    def and_among(self, name: str, values: Iterable[object]) -> Want:
        """This, and the field ``name`` is one of ``values``."""
        known: frozenset[Any] = frozenset(values)
        if name == "topics":
            return replace(self, topics=known if self.topics is None else self.topics & known)
        if name == "queue_ids":
            return replace(self, queue_ids=known if self.queue_ids is None else self.queue_ids & known)
        numbers = [value for value in known if isinstance(value, int)]
        return self.and_between(name, min(numbers, default=1), max(numbers, default=0))

    def and_between(self, name: str, low: int | None, high: int | None) -> Want:
        """This, and the field ``name`` lies in [low, high]; None is no bound."""
        before: Span = getattr(self, name)
        span = (before[0] if low is None else max(before[0], low), before[1] if high is None else min(before[1], high))
        changes: dict[str, Any] = {name: span}
        return replace(self, **changes)
