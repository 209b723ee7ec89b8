"""Which parts of a log can be left unread, by what is asked for (spec 3.1, 9).

Offsets say it themselves. A file that was full before a time, or begun after it, holds nothing of that time: store
times never fall, but for a clock that was set back; :data:`SLACK_MS` allows for a minute of that. A topic is where its
queues point, and behind the newest entry of all queues, where nothing was dispatched yet. Queues are believed: where
one that is asked for is missing, has a gap or no files, the whole log is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.codec.consume_queue import CQ_UNIT_SIZE, PREFILLED_SIZE
from engine.codec.dtypes import CQ_UNIT
from engine.codec.message import BORN_HOST_V6, MAGIC_V1, MAGIC_V2
from engine.layout import is_folder_name
from engine.pipeline.files import LogFile, StorePlace, log_files
from engine.pipeline.queue_files import files_of, list_queues, newest, numbered_folders
from engine.pipeline.splits import Ranges
from engine.pipeline.storage import join, opened

SLACK_MS = 60_000
GRAIN = 1 << 20
"""Bytes of the log that one bit of a topic's map stands for."""
WORTH = 8
"""Grains without a message that are read along: a new beginning costs about as much."""
MOST_QUEUE_BYTES = 1 << 30
"""Bytes of queue files that are read at most to spare the log."""
_ENTRIES = 1 << 18
"""Entries of a queue that are held at once."""
_ALL = (-(1 << 63), (1 << 63) - 1)

Span = tuple[int, int]
Grains = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Want:
    """What is asked for: ranges with both ends in them, sets; None is everything."""

    topics: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    queue_offsets: Span = _ALL
    physical_offsets: Span = _ALL
    store_timestamps: Span = _ALL

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


def needed(stores: Sequence[StorePlace], want: Want, use_queues: bool = True) -> dict[str, Ranges]:
    """The parts of each log that can hold what is asked for, by the path of the store, for
    :func:`engine.pipeline.splits.plan`.

    Raises :class:`CannotRead`.
    """
    found = {}
    for store in stores:
        spans: list[Span] = [(0, _ALL[1])]
        whys: list[str] = []
        if want.physical_offsets != _ALL:
            low, high = want.physical_offsets
            spans, whys = _both(spans, [(max(low, 0), min(high, _ALL[1] - 1) + 1)]), [*whys, "offset"]
        if want.store_timestamps != _ALL:
            spans, whys = _both(spans, list(_in_time(log_files(store), want.store_timestamps))), [*whys, "store time"]
        if use_queues and want.topics is not None:
            of_topics = _of_queues(store, want)
            if of_topics is not None:
                spans, whys = _both(spans, of_topics), [*whys, "topic"]
        if whys:
            found[store.path] = Ranges(tuple(spans), f"nothing of the {' and '.join(whys)} asked for lies there")
    return found


def _both(left: list[Span], right: list[Span]) -> list[Span]:
    """Where two lists of spans, each in order, overlap."""
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low < high:
            found.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return found


def _in_time(files: Sequence[LogFile], times: Span) -> Iterator[Span]:
    begins = [_first_time(file) for file in files]
    for number, file in enumerate(files):
        begin = begins[number]
        following = begins[number + 1] if number + 1 < len(files) else None
        too_late = begin is not None and begin > times[1] + SLACK_MS
        too_early = following is not None and following < times[0] - SLACK_MS
        if not too_late and not too_early:
            yield file.start, file.end


def _first_time(file: LogFile) -> int | None:
    """Store time of the unit that a file begins with, None where it begins with none."""
    with opened(file.path) as lent:
        head = lent.read(0, 80)
    if len(head) < 80 or int.from_bytes(head[4:8], "big") not in (MAGIC_V1, MAGIC_V2):
        return None
    at = 48 + (20 if int.from_bytes(head[36:40], "big") & BORN_HOST_V6 else 8)
    return int.from_bytes(head[at : at + 8], "big", signed=True)


def _of_queues(store: StorePlace, want: Want) -> list[Span] | None:
    """Where the topics' messages lie, and what no queue knows of yet; None where the queues do not tell."""
    root = join(store.path, "consumequeue")
    grains: list[Grains] = []
    spent = 0
    for topic in sorted(want.topics or ()):
        folders = numbered_folders(join(root, topic)) if is_folder_name(topic) else {}
        if not folders or (want.queue_ids is not None and not want.queue_ids <= folders.keys()):
            return None
        for queue_id in sorted(folders.keys() if want.queue_ids is None else want.queue_ids):
            files = files_of(folders[queue_id])
            spent += sum(file.size for file in files)
            if not _joined(files) or spent > MOST_QUEUE_BYTES:
                return None
            for file in files:
                grains.append(_grains(file, want.queue_offsets))
    known = np.unique(np.concatenate([np.zeros(0, np.int64), *grains]))
    spans = [(int(low) * GRAIN, (int(high) + 1) * GRAIN) for low, high in _runs(known)]
    return _with_tail(spans, _dispatched(store))


def _joined(files: Sequence[LogFile]) -> bool:
    """Whether the files hold every entry since the queue's first: without a gap, and none cleaned away."""
    ends = [0, *(file.end for file in files)]
    return bool(files) and all(file.start == end for file, end in zip(files, ends, strict=False))


def _grains(file: LogFile, queue_offsets: Span) -> Grains:
    """The grains of the log that the entries of one queue file point into."""
    first = file.start // CQ_UNIT_SIZE
    low = max(queue_offsets[0] - first, 0)
    high = min(queue_offsets[1] - first + 1, file.size // CQ_UNIT_SIZE)
    if low >= high:
        return np.zeros(0, np.int64)
    found: list[Grains] = []
    with opened(file.path) as lent:
        for at in range(low, high, _ENTRIES):
            data = lent.read(at * CQ_UNIT_SIZE, min(_ENTRIES, high - at) * CQ_UNIT_SIZE)
            entries = np.frombuffer(data[: len(data) // CQ_UNIT_SIZE * CQ_UNIT_SIZE], CQ_UNIT)
            size, place = entries["size"], entries["physical_offset"]
            real = (size > 0) & (place >= 0) & ~((size == PREFILLED_SIZE) & (place == 0))
            found.append(np.unique(place[real].astype(np.int64) // GRAIN))
    return np.unique(np.concatenate(found))


def _runs(grains: Grains) -> Iterator[Span]:
    """(first, last) of each run of grains with no more than :data:`WORTH` missing in between."""
    if len(grains):
        cuts = np.flatnonzero(np.diff(grains) > WORTH)
        yield from zip(grains[np.r_[0, cuts + 1]].tolist(), grains[np.r_[cuts, len(grains) - 1]].tolist(), strict=True)


def _dispatched(store: StorePlace) -> int:
    """Where the unit begins that the newest entry of all queues points at, 0 without queues."""
    places = (newest(queue) for queue in list_queues(store))
    return max((place for place, _ in filter(None, places)), default=0)


def _with_tail(spans: list[Span], tail: int) -> list[Span]:
    kept = [(low, min(high, tail)) for low, high in spans if low < tail]
    return [*kept, (tail, _ALL[1])]
