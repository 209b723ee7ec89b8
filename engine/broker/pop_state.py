"""In-memory state of pops: offsets that wait for their checkpoints, and records of the revive topic
(docs/protocol/pop.md#checkpoints, #revive). Passive; :mod:`engine.broker.revive_log` and
:mod:`engine.broker.revive` change it.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from engine.codec.pop import CheckPoint


@dataclass(slots=True)
class Step:
    """An offset that a group's pops have reached in a queue; it counts once its checkpoint is ``stored``."""

    offset: int
    stored: bool = False


@dataclass(slots=True)
class Unstored:
    """A checkpoint that could not be stored, and is tried again."""

    check_point: CheckPoint
    revive_queue: int
    step: Step


@dataclass(slots=True)
class ReviveQueue:
    """State of one revive queue. ``handled`` is the offset of the last checkpoint that is done with, −1 before the
    first; ``read`` is the next offset to read; everything that is due up to ``end`` (ms) has been read.
    Checkpoints and their acknowledged offsets stand by their merge keys.
    """

    handled: int = -1
    read: int = 0
    end: int = 0
    points: dict[str, CheckPoint] = field(default_factory=dict)
    acked: dict[str, set[int]] = field(default_factory=dict)


@dataclass(slots=True)
class PopState:
    """``steps`` are offsets by group, topic and queue, in the order in which pops reached them. They are committed
    from the front, so that a group's offset never passes a checkpoint that is not stored. ``count`` counts pops,
    so that their revive queues take turns.
    """

    count: int = 0
    steps: dict[tuple[str, str, int], deque[Step]] = field(default_factory=dict)
    unstored: list[Unstored] = field(default_factory=list)
    revive_queues: list[ReviveQueue] = field(default_factory=list)
    popping_groups: set[tuple[str, str]] = field(default_factory=set)
    """Groups that have popped, with their topics."""
    in_flight: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Messages that were handed out, and neither acknowledged nor brought back, by group, topic and queue."""

    def latest(self, group: str, topic: str, queue_id: int) -> int:
        """Return where the next pop continues; −1 if no offset waits, and the committed offset counts."""
        waiting = self.steps.get((group, topic, queue_id))
        return waiting[-1].offset if waiting else -1

    def clear(self, group: str, topic: str, queue_id: int) -> None:
        """Drop the waiting offsets: an administrator has set the group's offset."""
        self.steps.pop((group, topic, queue_id), None)
        self.in_flight.pop((group, topic, queue_id), None)

    def done(self, group: str, topic: str, queue_id: int, count: int = 1) -> None:
        """Count messages that were acknowledged, or come again, as no longer in flight."""
        remaining = self.in_flight.pop((group, topic, queue_id), 0) - count
        if remaining > 0:
            self.in_flight[group, topic, queue_id] = remaining
