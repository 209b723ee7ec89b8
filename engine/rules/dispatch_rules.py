"""Further queue entries that a unit of the log requests, besides the one in its own queue
(docs/formats/consume-queue.md#light-queues, docs/formats/writing.md#dispatch).

No I/O. The live dispatcher and all other code that builds queues from a log use these functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.codec import properties as props
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.java import split
from engine.system_names import LMQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC, SYSTEM_PREFIX, is_system_topic

Int64 = npt.NDArray[np.int64]
_INNER = re.compile(rb"INNER_MULTI_")
_NO_MULTI_DISPATCH = (RETRY_PREFIX, SYSTEM_PREFIX)


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """Topics with a folder of queues, topics in the topics table, and the offset of the newest unit that is in a queue.

    ``are_known``: a topic that is in neither was deleted and not lost (docs/formats/cleaning.md).
    """

    folders: frozenset[str]
    listed: frozenset[str]
    newest: int
    are_known: bool

    def deleted(self, first_of: Mapping[str, int]) -> list[str]:
        """Return the topics that were deleted: later units were dispatched, so they had a queue, and now they have
        neither a queue nor a row in the topics table.

        ``first_of`` gives, for each topic of the log, the offset of its first unit that belongs into a queue.

        Without a table, no topic counts as deleted in a store that crashed or has no queue at all: such queues were
        lost. Nor do the broker's own topics and light queues, which cannot be deleted.
        """
        if not self.are_known:
            return []
        existing = self.folders | self.listed
        return [
            topic
            for topic, offset in first_of.items()
            if topic not in existing
            and offset < self.newest
            and not (topic.startswith(LMQ_PREFIX) or is_system_topic(topic))
        ]


def units_of(columns: UnitColumns, rows: Int64 | None = None) -> Int64:
    """Return the row numbers of a block's units, or those in ``rows``. Only the last row of a block can be a blank."""
    count = columns.count
    if count and columns.kind[count - 1] == BLANK:
        count -= 1
    return np.arange(count) if rows is None else rows[: int(np.searchsorted(rows, count))]


def names_light_queues(columns: UnitColumns, rows: Int64) -> bool:
    """Return True if the bytes of these rows (ascending, not empty) contain a property name for further queues."""
    first_row, last_row = int(rows[0]), int(rows[-1])
    begin = int(columns.offset[first_row]) - columns.base
    end = int(columns.offset[last_row]) - columns.base + int(columns.size[last_row])
    return _INNER.search(columns.buffer.data[begin:end]) is not None


def light_entries(properties: Mapping[str, str], topic: str, queue_id: int) -> list[tuple[str, int, int]]:
    """Return (queue name, queue id, queue offset) of the further entries that a unit of this queue requests
    (docs/formats/consume-queue.md#light-queues).
    """
    names = properties.get(props.INNER_MULTI_DISPATCH)
    offsets = properties.get(props.INNER_MULTI_QUEUE_OFFSET)
    if not names or not offsets or topic == SCHEDULE_TOPIC or topic.startswith(_NO_MULTI_DISPATCH):
        return []
    queue_names, offset_texts = split(names, ","), split(offsets, ",")
    if len(queue_names) != len(offset_texts):
        return []
    entries = []
    for name, text in zip(queue_names, offset_texts, strict=True):
        digits = text.removeprefix("-")
        if "/" not in name and digits.isascii() and digits.isdigit():
            entries.append((name, 0 if name.startswith(LMQ_PREFIX) else queue_id, int(text)))
    return entries
