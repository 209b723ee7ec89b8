"""Where entries of queues, laid over a log, tile a stretch without a gap, and none of them is wanted
(docs/formats/consume-queue.md#entry, #ext).

Such a stretch holds one unit behind the other, and nothing that no queue knows of. Whose units they are is another
question: an entry may be wrong, or left over from an earlier life of the queue, and lie over a unit of another topic.
:func:`passed_over` therefore asks each unit of a stretch itself, by its first bytes and by those behind its body; where
units are small that costs as much as reading them, so only stretches of large units are asked about. With ``trust``
entries are believed.

The queues that are wanted are read first: only what lies between their entries, and is long enough, can be passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from engine.codec.consume_queue import PREFILLED_SIZE
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.codec.java import utf8
from engine.codec.message import BORN_HOST_V6, MAX_UNIT_BYTES, STORE_HOST_V6, check_frame
from engine.errors import CannotRead
from engine.pipeline.files import LogFile, StorePlace, log_files
from engine.pipeline.filters import Want
from engine.pipeline.queue_files import Queue, list_queues, raw_end
from engine.pipeline.splits import Split, first_in
from engine.pipeline.storage import ObjectStorage, OpenFile, opened, storage_of

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
Ints = npt.NDArray[np.int64]


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
        told = (queue for queue in list_queues(store) if queue.files and not queue.topic.startswith(_LIGHT))
        queues = [replace(queue, end=raw_end(queue)) for queue in told]
        sizes = [max(queue.end - queue.files[0].start, 0) for queue in queues]
        entries = sum(size // queue.unit_size for queue, size in zip(queues, sizes, strict=True))
        log = sum(file.size for file in files)
        if log < WORTH or sum(sizes) > MOST_QUEUE_BYTES or not (trust or log >= LARGE * entries):
            return []
        gaps = _gaps(
            files, [claim for queue in queues if _is_asked(queue, want) for claim in _claims(queue, want, True)]
        )
        if not gaps:
            return []
        if not trust:
            return list(_asked(store, files, _runs(gaps, queues, want), want))
        tiled, others = _tiled(gaps, queues, want)
        return sorted([*tiled, *((run.low, run.high) for run in _runs(others, queues, want))])
    except CannotRead:
        return []


def _is_asked(queue: Queue, want: Want) -> bool:
    return queue.topic in (want.topics or ()) and (want.queue_ids is None or queue.queue_id in want.queue_ids)


def _claims(queue: Queue, want: Want, wanted: bool) -> Iterator[tuple[Ints, Ints]]:
    """(places, sizes) of the units that the entries of one queue tell of: of those that are ``wanted``, or the others.

    Behind the end of a queue only those that are wanted count: others prove nothing there.
    """
    kind = BATCH_CQ_UNIT if queue.batch else CQ_UNIT
    asked = _is_asked(queue, want)
    low, high = want.queue_offsets
    for file in queue.files:
        count = (file.size if wanted else min(file.size, queue.end - file.start)) // kind.itemsize
        if count <= 0 or (wanted and not asked):
            continue
        with opened(file.path) as lent:
            for at in range(0, count, _ENTRIES):
                data = lent.read(at * kind.itemsize, min(_ENTRIES, count - at) * kind.itemsize)
                entries = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
                place, size = entries["physical_offset"].astype(np.int64), entries["size"].astype(np.int64)
                told = (size > 0) & (place >= 0) & (size <= MAX_UNIT_BYTES) & ((size != PREFILLED_SIZE) | (place != 0))
                if asked and not queue.batch:
                    numbers = np.arange(len(entries), dtype=np.int64) + file.start // kind.itemsize + at
                    told &= ((numbers >= low) & (numbers <= high)) == wanted
                elif asked != wanted:
                    break
                if told.all():
                    yield place, size
                elif told.any():
                    yield place[told], size[told]


def _gaps(files: Sequence[LogFile], wanted: Sequence[tuple[Ints, Ints]]) -> list[Stretch]:
    """What units that are wanted leave of each file of the log, in order, where it is long enough."""
    none = np.zeros(0, np.int64)
    place = np.concatenate([none, *(places for places, _ in wanted)])
    size = np.concatenate([none, *(sizes for _, sizes in wanted)])
    order = np.argsort(place, kind="stable")
    place = place[order]
    behind = np.maximum.accumulate(place + size[order])
    found: list[Stretch] = []
    for file in files:
        first, last = np.searchsorted(place, [file.start, file.end])
        low = np.r_[max(file.start, int(behind[first - 1]) if first else 0), behind[first:last]]
        high = np.r_[place[first:last], file.end]
        worth = high - low >= WORTH
        found += zip(low[worth].tolist(), high[worth].tolist(), strict=True)
    return found


def _tiled(gaps: Sequence[Stretch], queues: Sequence[Queue], want: Want) -> tuple[list[Stretch], list[Stretch]]:
    """The stretches of those gaps that one row of units fills, from its first to its last, and the other gaps.

    Units of positive size fill a stretch, one behind the other, just where the places at which they begin and that
    behind the stretch are the same numbers as those at which they end and that of its beginning. Sums of 64 bits of
    hashes of both tell it without putting all entries in order.
    """
    lows, highs = (np.array(bounds, np.int64) for bounds in zip(*gaps, strict=True))
    sums = np.zeros(len(gaps), np.uint64)
    first, behind = highs.copy(), lows.copy()
    for queue in queues:
        for place, size in _claims(queue, want, False):
            order = np.argsort(place, kind="stable") if (place[1:] < place[:-1]).any() else slice(None)
            start, end = place[order], (place + size)[order]
            begins, stops = np.searchsorted(start, lows), np.searchsorted(start, highs)
            here = np.flatnonzero(begins < stops)
            if not len(here):
                continue
            begins, stops = begins[here], stops[here]
            total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_hashes(start) - _hashes(end), dtype=np.uint64)])
            sums[here] += total[stops] - total[begins]
            first[here] = np.minimum(first[here], start[begins])
            behind[here] = np.maximum(behind[here], end[stops - 1])
    whole = (sums == _hashes(first) - _hashes(behind)) & (behind <= highs)
    worth = behind - first >= WORTH
    tiled = list(zip(first[whole & worth].tolist(), behind[whole & worth].tolist(), strict=True))
    return tiled, [gap for gap, is_open in zip(gaps, (worth & ~whole).tolist(), strict=True) if is_open]


def _hashes(places: Ints) -> npt.NDArray[np.uint64]:
    found = places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    found ^= found >> np.uint64(29)
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(32)
    return found


@dataclass(frozen=True, slots=True)
class Run:
    """Units that tile [low, high), by their sizes in bytes."""

    low: int
    sizes: Ints = field(repr=False)

    @property
    def high(self) -> int:
        return self.low + int(self.sizes.sum())


def _runs(gaps: Sequence[Stretch], queues: Sequence[Queue], want: Want) -> Iterator[Run]:
    """Stretches of those gaps that one row of units fills and that are long enough, all entries put in order.

    Where entries say the same they are one; those that reach out of a gap say nothing.
    """
    if not gaps:
        return
    lows, highs = (np.array(bounds, np.int64) for bounds in zip(*gaps, strict=True))
    places, sizes = [lows[:0]], [lows[:0]]
    for queue in queues:
        for place, size in _claims(queue, want, False):
            gap = np.searchsorted(lows, place, side="right") - 1
            inside = (gap >= 0) & (place + size <= highs[gap])
            places.append(place[inside])
            sizes.append(size[inside])
    place, size = np.concatenate(places), np.concatenate(sizes)
    order = np.lexsort((size, place))
    place, size = place[order], size[order]
    once = np.flatnonzero(np.r_[np.full(min(len(place), 1), True), (np.diff(place) != 0) | (np.diff(size) != 0)])
    place, size = place[once], size[once]
    cuts = np.flatnonzero((place[1:] != place[:-1] + size[:-1]) | np.isin(place[1:], lows)) + 1
    for first, behind in zip([0, *cuts.tolist()], [*cuts.tolist(), len(place)], strict=True):
        run = Run(int(place[first]), size[first:behind]) if first < behind else None
        if run is not None and run.high - run.low >= WORTH:
            yield run


def _asked(store: StorePlace, files: Sequence[LogFile], runs: Iterator[Run], want: Want) -> Iterator[Stretch]:
    """The stretches, as far as each of their units says itself that it is another's."""
    left = MOST_ASKED
    for run in runs:
        low = run.low
        file = next((file for file in files if file.start <= low < file.end), None)
        if file is None or left <= 0:
            continue
        here = Split(store.path, store.broker, file.path, file.start, low - file.start, file.size, file.size)
        if low > file.start and first_in(here) != low:
            continue
        high = low
        with opened(file.path) as lent:
            for size in run.sizes[:left].tolist():
                if high + size > file.end or not _is_anothers(lent, high - file.start, size, want):
                    break
                high += size
        left -= len(run.sizes)
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
    frame = check_frame(unit, 0, len(unit))
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
