"""Which parts of a log can be left unread, by what is asked for (spec 3.1, 9).

A part is passed over only where it is proven that nothing in it can meet a condition: a filter may never change which
rows exist. Offsets say it themselves. Of topics the units themselves say it, see :mod:`engine.pipeline.pruning`; that
entries of queues say so is believed only where a :class:`Trust` tells it. Nothing proves store times but all units:
that they never fall, but for a minute of a clock that was set back (:data:`SLACK_MS`), is believed only where the
trust tells that. Nothing is concluded from what cannot be read.

Where the entries of all queues of a store, laid over its log, tile a stretch without a gap (spec 3.1, 3.6).

Such a stretch holds one unit behind the other, and nothing that no queue knows of. Whose units they are is another
question: an entry may be wrong, or left over from an earlier life of the queue, and lie over a unit of another topic.
:func:`passed_over` therefore asks each unit of a stretch itself, by its first bytes and by those behind its body; where
units are small that costs as much as reading them, so only stretches of large units are asked about. With ``trust``
entries are believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.codec.consume_queue import PREFILLED_SIZE
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.codec.java import utf8
from engine.codec.message import BORN_HOST_V6, LARGEST_UNIT, STORE_HOST_V6, measure
from engine.codec.unit_flavours import MAGICS
from engine.errors import CannotRead
from engine.pipeline.files import LogFile, StorePlace, log_files
from engine.pipeline.filters import EVERYWHERE, Span, Want
from engine.pipeline.queue_files import Queue, list_queues, raw_end
from engine.pipeline.splits import Ranges, Split, first_in
from engine.pipeline.storage import ObjectStorage, OpenFile, opened, storage_of

SLACK_MS = 60_000


@dataclass(frozen=True, slots=True)
class Trust:
    """What is believed to spare reading. ``queues``: nothing (``off``), where all units bear it out (``prove``), or
    entries that tile the log (``trust``). ``times``: that files are in the order of the clock.
    """

    queues: str = "prove"
    times: bool = False


EXACT = Trust()


def needed(stores: Sequence[StorePlace], want: Want, trust: Trust = EXACT) -> dict[str, Ranges]:
    """The parts of each log that can hold what is asked for, by the path of the store, for
    :func:`engine.pipeline.splits.plan`. A store that cannot be read has none.
    """
    found = {}
    for store in stores:
        try:
            spans, whys = _needed(store, want, trust)
        except CannotRead:  # the plan meets it again, and tells it
            continue
        if whys:
            found[store.path] = Ranges(tuple(spans), f"nothing of the {' and '.join(whys)} asked for lies there")
    return found


def _needed(store: StorePlace, want: Want, trust: Trust) -> tuple[list[Span], list[str]]:
    spans: list[Span] = [(0, EVERYWHERE[1])]
    whys: list[str] = []
    if want.physical_offsets != EVERYWHERE:
        low, high = want.physical_offsets
        spans, whys = _both(spans, [(max(low, 0), min(high, EVERYWHERE[1] - 1) + 1)]), ["offset"]
    if trust.times and want.store_timestamps != EVERYWHERE:
        spans, whys = _both(spans, list(_in_time(log_files(store), want.store_timestamps))), [*whys, "store time"]
    if trust.queues != "off" and want.topics is not None:
        others = passed_over(store, want, trust.queues == "trust")
        if others:
            spans, whys = _both(spans, list(_between(others))), [*whys, "topic"]
    return spans, whys


def _between(spans: Sequence[Span]) -> Iterator[Span]:
    """What ``spans``, in order and apart, leave of the log."""
    at = 0
    for low, high in spans:
        if at < low:
            yield at, low
        at = max(at, high)
    yield at, EVERYWHERE[1]


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
    """Store time of the unit that a file begins with, None where it begins with none, or cannot be read."""
    try:
        with opened(file.path) as lent:
            head = lent.read(0, 80)
    except CannotRead:
        return None
    if len(head) < 80 or int.from_bytes(head[4:8], "big") not in MAGICS:
        return None
    at = 48 + (20 if int.from_bytes(head[36:40], "big") & BORN_HOST_V6 else 8)
    return int.from_bytes(head[at : at + 8], "big", signed=True)


WORTH = 8 << 20
"""Bytes of a stretch from which on it is passed over: a new beginning behind it costs about as much as to read it."""
LARGE = 128 << 10
"""Bytes of a store's units, on average, from which on each of them is asked itself: that takes as long as to read half
of it."""
MOST_ASKED = 100_000
"""Units of a store that are asked at most."""
MOST_QUEUE_BYTES = 1 << 29
"""Bytes of queue entries that are laid over a log at most."""
_ENTRIES = 1 << 18
"""Entries of a queue that are held at once."""
_HEAD = 112
"""Bytes in front of a unit's body at most."""
_LIGHT = "%LMQ%"

Stretch = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Claims:
    """What entries say, in the order of the log: that a unit of ``size`` bytes lies at ``place``, and whether it is
    ``wanted``.
    """

    place: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    wanted: npt.NDArray[np.bool_]


def passed_over(store: StorePlace, want: Want, trust: bool) -> list[Stretch]:
    """Stretches [low, high) of a log that hold no unit of the topics and queues that are wanted, in order.

    Nothing is concluded from what cannot be read: then there is none. Queues in an object storage are believed, or not
    looked at: asking units there would take a request for each.
    """
    if any("?" in topic or "\ufffd" in topic for topic in want.topics or ()):
        return []  # a name that malformed bytes may have as well
    if not trust and isinstance(storage_of(store.path)[0], ObjectStorage):
        return []
    try:
        files = log_files(store)
        queues = [queue for queue in list_queues(store) if queue.files and not queue.topic.startswith(_LIGHT)]
        ends = [max(raw_end(queue) - queue.files[0].start, 0) for queue in queues]
        entries = sum(end // queue.unit_size for queue, end in zip(queues, ends, strict=True))
        log = sum(file.size for file in files)
        if log < WORTH or sum(ends) > MOST_QUEUE_BYTES or not (trust or log >= LARGE * entries):
            return []
        claims = _sorted([claim for queue in queues for claim in _claims(queue, want)])
        stretches = _stretches(claims, [file.start for file in files])
        return list(_believed(claims, stretches) if trust else _asked(store, files, claims, stretches, want))
    except CannotRead:
        return []


def _claims(queue: Queue, want: Want) -> Iterator[Claims]:
    """What the entries of one queue say."""
    kind = BATCH_CQ_UNIT if queue.batch else CQ_UNIT
    asked = queue.topic in (want.topics or ()) and (want.queue_ids is None or queue.queue_id in want.queue_ids)
    low, high = want.queue_offsets
    for file in queue.files:
        with opened(file.path) as lent:
            for at in range(0, file.size // kind.itemsize, _ENTRIES):
                data = lent.read(at * kind.itemsize, _ENTRIES * kind.itemsize)
                entries = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
                place, size = entries["physical_offset"].astype(np.int64), entries["size"].astype(np.int64)
                real = (size > 0) & (place >= 0) & (size <= LARGEST_UNIT) & ((size != PREFILLED_SIZE) | (place != 0))
                numbers = np.arange(len(entries), dtype=np.int64) + file.start // kind.itemsize + at
                wanted = np.full(len(entries), asked)
                if not queue.batch:
                    wanted &= (numbers >= low) & (numbers <= high)
                if real.any():
                    yield Claims(place[real], size[real], wanted[real])


def _sorted(claims: Sequence[Claims]) -> Claims:
    """All claims in the order of the log; those that say the same are one, wanted where one of them is."""
    none = np.zeros(0, np.int64)
    place = np.concatenate([none, *(one.place for one in claims)])
    size = np.concatenate([none, *(one.size for one in claims)])
    wanted = np.concatenate([none.astype(np.bool_), *(one.wanted for one in claims)])
    order = np.lexsort((size, place))
    place, size, wanted = place[order], size[order], wanted[order]
    if not len(place):
        return Claims(place, size, wanted)
    begins = np.flatnonzero(np.r_[True, (np.diff(place) != 0) | (np.diff(size) != 0)])
    return Claims(place[begins], size[begins], np.logical_or.reduceat(wanted, begins))


def _stretches(claims: Claims, file_starts: Sequence[int]) -> list[Stretch]:
    """Runs (first claim, behind the last) that tile a stretch of one file that is worth it, none of them wanted."""
    kept = np.flatnonzero(~claims.wanted)
    if not len(kept):
        return []
    place, end = claims.place[kept], claims.place[kept] + claims.size[kept]
    cuts = (place[1:] != end[:-1]) | (np.diff(kept) != 1) | np.isin(place[1:], file_starts)
    first = kept[np.r_[0, np.flatnonzero(cuts) + 1]]
    last = kept[np.r_[np.flatnonzero(cuts), len(kept) - 1]]
    worth = claims.place[last] + claims.size[last] - claims.place[first] >= WORTH
    return list(zip(first[worth].tolist(), (last[worth] + 1).tolist(), strict=True))


def _believed(claims: Claims, stretches: Sequence[Stretch]) -> Iterator[Stretch]:
    """The stretches as entries tell them, without what a wanted entry lies over."""
    of_wanted = np.flatnonzero(claims.wanted)
    ends = np.maximum.accumulate(claims.place[of_wanted] + claims.size[of_wanted])
    for first, behind in stretches:
        low, high = int(claims.place[first]), int(claims.place[behind - 1] + claims.size[behind - 1])
        before = int(np.searchsorted(of_wanted, first))
        if before:
            low = max(low, int(ends[before - 1]))
        if before < len(of_wanted):
            high = min(high, int(claims.place[of_wanted[before]]))
        if high - low >= WORTH:
            yield low, high


def _asked(
    store: StorePlace, files: Sequence[LogFile], claims: Claims, stretches: Sequence[Stretch], want: Want
) -> Iterator[Stretch]:
    """The stretches, as far as each of their units says itself that it is another's."""
    left = MOST_ASKED
    for first, behind in stretches:
        low = int(claims.place[first])
        file = next((file for file in files if file.start <= low < file.end), None)
        if file is None or left <= 0:
            continue
        here = Split(store.path, store.broker, file.path, file.start, low - file.start, file.size, file.size)
        if low > file.start and first_in(here) != low:
            continue
        high = low
        with opened(file.path) as lent:
            for number in range(first, min(behind, first + left)):
                size = int(claims.size[number])
                if high + size > file.end or not _is_anothers(lent, high - file.start, size, want):
                    break
                high += size
        left -= behind - first
        if high - low >= WORTH:
            yield low, high


def _is_anothers(lent: OpenFile, position: int, size: int, want: Want) -> bool:
    """Whether a whole unit of ``size`` bytes stands at ``position``, and of no topic or queue that is wanted."""
    unit = bytearray(size)
    head = lent.read(position, min(_HEAD, size))
    unit[: len(head)] = head
    behind = _behind_body(head)
    if not 0 < behind < size:
        return False
    if behind > len(head):  # the body is not looked at: no frame depends on it
        tail = lent.read(position + behind, size - behind)
    else:
        tail = lent.read(position + len(head), size - len(head))
        behind = len(head)
    unit[behind:] = tail
    frame = measure(unit, 0, len(unit))
    if len(unit) != size or isinstance(frame, str) or frame.size != size:
        return False
    topic = utf8(bytes(unit[frame.topic : frame.topic + frame.topic_length]))
    if topic not in (want.topics or ()):
        return True
    queue_id, offset = (int.from_bytes(unit[at:to], "big", signed=True) for at, to in ((12, 16), (20, 28)))
    of_queue = want.queue_ids is None or queue_id in want.queue_ids
    return not (of_queue and want.queue_offsets[0] <= offset <= want.queue_offsets[1])


def _behind_body(head: bytes) -> int:
    """Where the body of a unit ends by its head, −1 where that says nothing of it."""
    if len(head) < _HEAD:
        return -1
    flags = int.from_bytes(head[36:40], "big")
    body = 48 + (20 if flags & BORN_HOST_V6 else 8) + 8 + (20 if flags & STORE_HOST_V6 else 8) + 16
    return body + max(int.from_bytes(head[body - 4 : body], "big", signed=True), 0)
