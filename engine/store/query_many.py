"""Messages of many keys at once: one walk over the index, one look at each file of the log (spec 4.4)."""

from __future__ import annotations

import struct
from itertools import accumulate
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.store.get_message import LentMessages
from engine.store.mapped_log import LentBytes, ReadableLog
from engine.store.query_message import LAST_TIME

_SIZE = struct.Struct(">i")


class ManyAnswers(Protocol):
    """What the index answers for many keys: ``offsets[i, :counts[i]]`` are those of key ``i``, newest first."""

    @property
    def counts(self) -> npt.NDArray[np.int64]: ...
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
    counts, most = answers.counts, answers.offsets.shape[1]
    wanted = answers.offsets[:, ::-1][np.arange(most) >= most - counts[:, None]].tolist()
    found, offsets, lost = [], [], []
    files: dict[int, LentBytes | None] = {}
    file_size, unpack = log.file_size, _SIZE.unpack_from
    for number, offset in enumerate(wanted):
        file = offset // file_size
        if file not in files:
            files[file] = log.lend(file * file_size, _SIZE.size)
        lent = files[file]
        if lent is not None:
            view, at = lent.view, offset - lent.start_offset
            room = len(view) - at
            (size,) = unpack(view, at) if room >= _SIZE.size else (0,)
            if _SIZE.size < size <= room:
                found.append(view[at : at + size])
                offsets.append(offset)
                continue
        lost.append(number)
    ends = list(accumulate(counts.tolist()))
    if lost:
        ends = [end - int(np.searchsorted(lost, end)) for end in ends]
    return QueryMessagesResult(found, offsets, ends, [lent for lent in files.values() if lent is not None])
