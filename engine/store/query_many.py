"""Messages of many keys at once: one walk over the index, one look at each file of the log (spec 4.4)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.codec.unit_places import Span, place_units
from engine.store.get_message import LentMessages
from engine.store.mapped_log import LentBytes, ReadableLog
from engine.store.query_message import LAST_TIME, SIZE_BYTES


class ManyAnswers(Protocol):
    """What the index answers for many keys: ``offsets`` in the order of the log, one key's behind the other's,
    ``ends[i]`` of them up to key ``i``.
    """

    @property
    def ends(self) -> npt.NDArray[np.int64]: ...
    @property
    def offsets(self) -> npt.NDArray[np.int64]: ...


class ManyKeysIndex(Protocol):
    """What such a query asks of the index files."""

    def query_offsets(self, topic: str, keys: list[str], max_count: int, begin: int, end: int) -> ManyAnswers:
        """Offsets of the log under which the keys' hashes are indexed."""


class QueryMessagesResult(LentMessages):
    """Messages of all keys, one key's behind the other's; :meth:`of` gives those of one. Each key's are in the order of
    the log, collisions of the hash among them.
    """

    __slots__ = ("_ends",)

    def __init__(self, messages: list[memoryview], offsets: list[int], ends: list[int], lent: list[LentBytes]) -> None:
        super().__init__(messages, offsets, (), lent)
        self._ends = ends

    def of(self, key: int) -> list[memoryview]:
        """The messages of the key with this number in the query."""
        return self.messages[self._ends[key - 1] if key else 0 : self._ends[key]]


def query_messages(
    index: ManyKeysIndex | None,
    log: ReadableLog,
    topic: str,
    keys: list[str],
    max_count: int = 32,
    begin: int = 0,
    end: int = LAST_TIME,
) -> QueryMessagesResult:
    """Messages stored in [begin, end] ms under ``topic`` and each of ``keys``, as the index has them.

    As :func:`engine.store.query_message.query_message` for each key, but for its further rounds: what the log has no
    more is left out.
    """
    if index is None or not keys:
        return QueryMessagesResult([], [], [0] * len(keys), [])
    answers = index.query_offsets(topic, keys, max_count, begin, end)
    lent: list[LentBytes] = []
    views: list[memoryview] = []

    def span_at(offset: int) -> Span:
        span, held = _span(log, offset)
        views.append(span.view or memoryview(b""))
        if held is not None:
            lent.append(held)
        return span

    units = place_units(answers.ends, answers.offsets, span_at)
    if len(views) == 1:
        view = views[0]
        messages = [view[at:stop] for at, stop in zip(units.begins, units.stops, strict=True)]
    else:
        places = zip(units.spans, units.begins, units.stops, strict=True)
        messages = [views[span][at:stop] for span, at, stop in places]
    return QueryMessagesResult(messages, units.offsets, units.ends, lent)


def _span(log: ReadableLog, offset: int) -> tuple[Span, LentBytes | None]:
    """What may be read of the log's file that holds ``offset``, and what holds that."""
    start = offset - offset % log.file_size
    stop = start + log.file_size
    for place in (start, offset):
        held = log.lend(place, SIZE_BYTES)
        if held is not None:
            return Span(held.start_offset, stop, held.view), held
    return Span(offset, stop, None), None
