"""The next queue offset of every queue, and the log's data of one topic that leads there
(docs/formats/consume-queue.md#queue-offsets; Java: topicQueueTable, QueueOffsetOperator).

One array of numbers, so that many messages can take theirs in one compiled call; the place of a queue in it never
changes. Only the holder of the append lock may read or change it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from engine.codec.encode import TopicField
from engine.codec.message_columns import TopicRow

_FIRST_SIZE = 64


class QueueOffsetTable:
    """(topic, queue id) → offset that the queue's next message gets; 0 for a queue never heard of.

    Light queues stand here too, as queue 0 of their name.
    """

    __slots__ = ("_count", "_places", "numbers")

    def __init__(self) -> None:
        self._places: dict[str, dict[int, int]] = {}
        self._count = 0
        self.numbers = array("q", bytes(8 * _FIRST_SIZE))
        """The offsets, by place. Replaced by a longer one when it is full: never keep it beyond the append lock."""

    def __len__(self) -> int:
        return self._count

    def place(self, topic: str, queue_id: int) -> int:
        """Index of the queue's offset in :attr:`numbers`; a new queue is entered."""
        places = self._places.get(topic)
        if places is None:
            places = self._places[topic] = {}
        place = places.get(queue_id)
        if place is None:
            place = self._count
            if place == len(self.numbers):
                self.numbers = self.numbers + array("q", bytes(8 * len(self.numbers)))
            self._count = place + 1
            places[queue_id] = place
        return place

    def next(self, topic: str, queue_id: int) -> int:
        """The offset that the queue's next message gets."""
        place = self._places.get(topic, {}).get(queue_id)
        return 0 if place is None else self.numbers[place]

    def increase(self, topic: str, queue_id: int, count: int = 1) -> None:
        """Count ``count`` messages that have gone into the queue."""
        self.numbers[self.place(topic, queue_id)] += count

    def load(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Take the ends of the queues from recovery, and nothing else."""
        self.numbers = array("q", bytes(8 * len(self.numbers)))
        for (topic, queue_id), offset in offsets.items():
            place = self.place(topic, queue_id)
            self.numbers[place] = offset

    def forget(self, topic: str) -> None:
        """Let the queues of a deleted topic begin at 0 again. Takes time for the topic's own queues only: puts wait
        meanwhile.
        """
        for place in self._places.get(topic, {}).values():
            self.numbers[place] = 0

    def count_of(self, prefix: str) -> int:
        """Number of queues whose names begin with ``prefix``."""
        return sum(len(places) for topic, places in self._places.items() if topic.startswith(prefix))

    def offsets(self) -> dict[tuple[str, int], int]:
        """Return a copy of all offsets."""
        return {
            (topic, queue_id): self.numbers[place]
            for topic, places in self._places.items()
            for queue_id, place in places.items()
        }


MAX_QUEUES = 1 << 16
"""Queue ids from this one on go the long way: no table of their places is made."""


class Topic:
    """The log's data of one topic: its encoded field, and where its queues' offsets stand."""

    __slots__ = ("field", "fixed", "legal", "magic", "name", "places", "raw", "row")

    def __init__(self, name: str, legal: bool, auto_version: bool) -> None:
        self.name = name
        try:
            self.field = TopicField(name, auto_version) if legal else None
        except ValueError:
            self.field = None
        self.legal = self.field is not None
        self.magic, self.raw, self.fixed = (
            (self.field.magic, self.field.raw, self.field.fixed) if self.field is not None else (0, b"", 0)
        )
        self.places: dict[int, int] = {}
        self.row = TopicRow(self.raw, self.magic)
        """The topic's row for a run over columns."""
