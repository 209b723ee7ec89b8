"""Queue mappings of static topics: which queue of which broker holds which offsets of a logical queue
(docs/formats/config-tables.md#static-topics).

A static topic has a fixed number of logical queues. Each is a list of ranges: a range is a queue of a broker, with the
logical offset of its first message. The last range belongs to the leader, which takes sends and answers clients.

Pure. Java: ``TopicQueueMappingDetail``, ``LogicQueueMappingItem``, ``TopicQueueMappingUtils``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

GLOBAL_SCOPE = "__global__"
MAPPINGS_FILE = "topicQueueMapping.json"
MAPPINGS_MEMBER = "topicQueueMappingInfoMap"
UNDECIDED = -1
"""Value of an offset that a later command sets."""


@dataclass(frozen=True, slots=True)
class MappedRange:
    """A queue of a broker as a part of a logical queue. ``end_offset`` is exclusive."""

    generation: int
    queue_id: int
    broker: str
    logical_offset: int
    """Logical offset of the message at ``start_offset``; :data:`UNDECIDED` while a remapping is under way."""
    start_offset: int = 0
    end_offset: int = UNDECIDED
    time_of_start: int = -1
    time_of_end: int = -1

    @property
    def is_placed(self) -> bool:
        """True if the logical offset is decided."""
        return self.logical_offset >= 0

    @property
    def has_end(self) -> bool:
        """True if no further message belongs to the range."""
        return self.end_offset > self.start_offset

    @property
    def logical_end(self) -> int:
        """Logical offset behind the last message, as far as the mapping says it."""
        return self.logical_offset + max(self.end_offset - self.start_offset, 0)

    @property
    def delta(self) -> int:
        """Difference between the logical and the physical offset of a message."""
        return self.logical_offset - self.start_offset

    def logical(self, offset: int) -> int:
        """Return the logical offset of a physical one; those before the range become its start."""
        return self.logical_offset + max(offset - self.start_offset, 0)

    def logical_within(self, offset: int) -> int:
        """:meth:`logical`, at most the range's end; :data:`UNDECIDED` while it is not placed."""
        if not self.is_placed:
            return UNDECIDED
        if self.start_offset <= self.end_offset < offset:
            return self.logical_end
        return self.logical(offset)

    def physical(self, logical_offset: int) -> int:
        """Return the physical offset of a logical one."""
        return logical_offset - self.delta

    def record(self) -> dict[str, Any]:
        """Return RocketMQ's ``LogicQueueMappingItem``."""
        return {
            "bname": self.broker,
            "endOffset": self.end_offset,
            "gen": self.generation,
            "logicOffset": self.logical_offset,
            "queueId": self.queue_id,
            "startOffset": self.start_offset,
            "timeOfEnd": self.time_of_end,
            "timeOfStart": self.time_of_start,
        }


Ranges = tuple[MappedRange, ...]


@dataclass(frozen=True, slots=True)
class TopicMapping:
    """The logical queues of a static topic that one broker knows: those that it leads, and those that it led."""

    topic: str
    broker: str
    total_queues: int
    epoch: int
    queues: Mapping[int, Ranges]
    """Ranges by logical queue, the oldest one first."""
    scope: str = GLOBAL_SCOPE
    dirty: bool = False
    sent_queues: Mapping[int, int] = field(default_factory=dict)
    """``currIdMap`` as an administrator sent it: mostly empty, and used by nobody."""

    def leads(self, queue_id: int) -> bool:
        """Return True if this broker takes the sends of a logical queue."""
        ranges = self.queues.get(queue_id)
        return bool(ranges) and ranges[-1].broker == self.broker  # type: ignore[index]

    @property
    def current_queues(self) -> dict[int, int]:
        """The physical queue of each logical queue that this broker leads."""
        return {number: ranges[-1].queue_id for number, ranges in self.queues.items() if self.leads(number)}

    def info(self) -> dict[str, Any]:
        """Return RocketMQ's ``TopicQueueMappingInfo``, as name servers get it."""
        return {
            "bname": self.broker,
            "currIdMap": self.current_queues,
            "dirty": self.dirty,
            "epoch": self.epoch,
            "scope": self.scope,
            "topic": self.topic,
            "totalQueues": self.total_queues,
        }

    def record(self) -> dict[str, Any]:
        """Return RocketMQ's ``TopicQueueMappingDetail``."""
        hosted = {number: [item.record() for item in ranges] for number, ranges in self.queues.items()}
        return {**self.info(), "currIdMap": dict(self.sent_queues), "hostedQueues": hosted}


class WrongMapping(ValueError):
    """A mapping that contradicts itself or its predecessor; the text is RocketMQ's."""


def range_at(ranges: Sequence[MappedRange], logical_offset: int) -> MappedRange | None:
    """Return the placed range that holds a logical offset: the first one for an offset before all of them; None if
    no range is placed.
    """
    placed = [item for item in ranges if item.is_placed]
    earlier_ranges = [item for item in placed if item.logical_offset <= logical_offset]
    return earlier_ranges[-1] if earlier_ranges else next(iter(placed), None)


def next_range(ranges: Sequence[MappedRange], current: MappedRange) -> MappedRange | None:
    """Return the range behind ``current``; None if there is none, or it is not placed."""
    for item, following in pairwise(ranges):
        if item.is_placed and item.generation == current.generation:
            return following if following.is_placed else None
    return None


def read_mapping(value: Any) -> TopicMapping | None:
    """Return the mapping in a row of the table, or in the body of a request; None for what is no object. Absent members
    have Java's defaults.
    """
    if not isinstance(value, Mapping):
        return None
    queues = {
        int(number): tuple(_range(item) for item in items if isinstance(item, Mapping))
        for number, items in _members(value.get("hostedQueues"))
        if str(number).lstrip("-").isdigit() and isinstance(items, list | tuple)
    }
    return TopicMapping(
        str(value.get("topic") or ""),
        str(value.get("bname") or ""),
        _number(value.get("totalQueues"), 0),
        _number(value.get("epoch"), 0),
        dict(sorted(queues.items())),
        GLOBAL_SCOPE if value.get("scope") is None else str(value["scope"]),
        value.get("dirty") is True,
        {int(key): _number(queue, 0) for key, queue in _members(value.get("currIdMap")) if str(key).isdigit()},
    )


def _members(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, Mapping) else ()


def _range(item: Mapping[Any, Any]) -> MappedRange:
    return MappedRange(
        _number(item.get("gen"), 0),
        _number(item.get("queueId"), 0),
        str(item.get("bname") or ""),
        _number(item.get("logicOffset"), 0),
        _number(item.get("startOffset"), 0),
        _number(item.get("endOffset"), UNDECIDED),
        _number(item.get("timeOfStart"), -1),
        _number(item.get("timeOfEnd"), -1),
    )


def _number(value: Any, default: int) -> int:
    text = str(value)
    return int(text) if text.lstrip("+-").isdigit() else default


def read_mappings(table: Mapping[Any, Any]) -> dict[str, TopicMapping]:
    """Return the mappings of ``topicQueueMapping.json`` by topic."""
    mappings = {str(name): read_mapping(row) for name, row in _members(table.get(MAPPINGS_MEMBER))}
    return {name: mapping for name, mapping in mappings.items() if mapping is not None}


def check_ranges(ranges: Sequence[MappedRange]) -> None:
    """Check the ranges of one logical queue. Raises :class:`WrongMapping`, in RocketMQ's order: from the last one."""
    later: MappedRange | None = None
    for item in reversed(ranges):
        if item.start_offset < 0 or item.generation < 0 or item.queue_id < 0:
            raise WrongMapping("The field is illegal, should not be negative")
        if later is not None and not item.is_placed:
            raise WrongMapping("The non-latest item has negative logic offset")
        if later is not None and item.generation >= later.generation:
            raise WrongMapping("The gen does not increase monotonically")
        if item.end_offset != UNDECIDED and item.end_offset < item.start_offset:
            raise WrongMapping("The endOffset is smaller than the start offset")
        if later is not None and UNDECIDED not in {later.logical_offset, item.logical_offset}:
            if item.logical_offset >= later.logical_offset:
                raise WrongMapping("The base logic offset does not increase monotonically")
            if item.logical_end >= later.logical_offset:
                raise WrongMapping("The max logic offset does not increase monotonically")
        later = item


def merged(old: TopicMapping, new: TopicMapping, *, force: bool = False) -> TopicMapping:
    """Return the mapping that replaces ``old``: ``new``, with the queues that it leaves out. Raises
    :class:`WrongMapping` where ``new`` is older or changes what is decided; with ``force`` never.
    """
    if force:
        return replace(new, queues=dict(sorted({**old.queues, **new.queues}.items())))
    if new.epoch < old.epoch:
        raise WrongMapping(f"Can't accept data with small epoch {new.epoch} < {old.epoch}")
    if new.scope != old.scope:
        raise WrongMapping(f"Can't accept data with unmatched scope {new.scope} != {old.scope}")
    is_same_epoch = new.epoch == old.epoch
    queues = dict(new.queues)
    for number, old_ranges in old.queues.items():
        if number not in queues:
            if is_same_epoch:
                raise WrongMapping("Cannot accept equal epoch with null data")
            queues[number] = old_ranges
            continue
        if not old_ranges:
            continue
        if not queues[number]:
            raise WrongMapping("The new item list is null or empty")
        if is_same_epoch and _leader(queues[number]) != _leader(old_ranges):
            raise WrongMapping("The new leader is different but epoch equal")
    return replace(new, queues=dict(sorted(queues.items())))


def _leader(ranges: Sequence[MappedRange]) -> tuple[int, str, int, int]:
    item = ranges[-1]
    return item.generation, item.broker, item.queue_id, item.start_offset
