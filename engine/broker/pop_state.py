"""What pops leave in memory: offsets that wait for their checkpoints, and what was read of the revive topic
(docs/protocol/pop.md#checkpoints, #revive). Passive; :mod:`engine.broker.revive_log` and :mod:`engine.broker.revive`
change it.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from engine.codec.pop import CheckPoint


@dataclass(slots=True)
class Step:
    """An offset that a group's pops have reached in a queue; it holds once its checkpoint is ``stored``."""

    offset: int
    stored: bool = False


@dataclass(slots=True)
class Unstored:
    """A checkpoint that could not be put, and is tried again."""

    check_point: CheckPoint
    revive_queue: int
    step: Step


@dataclass(slots=True)
class ReviveQueue:
    """What was read of one revive queue. ``handled`` is the offset of the last checkpoint that is done with, −1 before
    the first, ``read`` what is read next; up to ``end`` (ms) everything that is due has been seen. Checkpoints and the
    offsets of what was acknowledged of them stand by their merge keys.
    """

    handled: int = -1
    read: int = 0
    end: int = 0
    points: dict[str, CheckPoint] = field(default_factory=dict)
    acked: dict[str, set[int]] = field(default_factory=dict)


@dataclass(slots=True)
class PopState:
    """``steps`` are, by group, topic and queue, offsets in the order in which pops reached them: committed from the
    front, so that what a group has read never passes a checkpoint that is not stored. ``count`` counts pops, for their
    revive queues to take turns.
    """

    count: int = 0
    steps: dict[tuple[str, str, int], deque[Step]] = field(default_factory=dict)
    unstored: list[Unstored] = field(default_factory=list)
    revive_queues: list[ReviveQueue] = field(default_factory=list)
    asked: set[tuple[str, str]] = field(default_factory=set)
    """Groups that have popped, with their topics."""
    in_flight: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Messages that were handed out and are neither acknowledged nor come again, by group, topic and queue."""

    def latest(self, group: str, topic: str, queue_id: int) -> int:
        """Where the next pop goes on; −1 where nothing waits and the committed offset tells it."""
        waiting = self.steps.get((group, topic, queue_id))
        return waiting[-1].offset if waiting else -1

    def clear(self, group: str, topic: str, queue_id: int) -> None:
        """An administrator has set the offset: what waits commits nothing more."""
        self.steps.pop((group, topic, queue_id), None)
        self.in_flight.pop((group, topic, queue_id), None)

    def done(self, group: str, topic: str, queue_id: int, count: int = 1) -> None:
        """So many messages were acknowledged, or come again."""
        left = self.in_flight.pop((group, topic, queue_id), 0) - count
        if left > 0:
            self.in_flight[group, topic, queue_id] = left
