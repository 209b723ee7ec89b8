"""Parts of a log that can be left unread, by the conditions of a query: by their offsets, by their times, and where
entries of queues tile them without a gap, none of them for a topic or queue of the query
(docs/formats/consume-queue.md#entry, #ext; docs/formats/reading.md).

A part is skipped only if it is proven that none of its rows can meet the conditions: a filter must never change which
rows exist. Offsets prove this by themselves. For topics the units prove it; queue entries alone are believed only if a
:class:`TrustedFacts` says so. For store times nothing but reading all units is a proof. That they never fall, except by
a minute of a clock that was set back (:data:`SLACK_MS`), is believed only if the trusted facts say so. Nothing is
concluded from parts that cannot be read.

A range that entries tile holds one unit behind the other, and nothing that no queue knows of. Whose units they are is
another question: an entry may be wrong, or left over from an earlier life of the queue, and lie over a unit of another
topic. :func:`skippable_ranges` therefore asks each unit of a range itself, by its first bytes and by those behind
its body; where units are small that costs as much as reading them, so only ranges of large units are asked about.
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
from engine.codec.unit_flavours import MAGICS
from engine.errors import CannotRead
from engine.pipeline.files import StorePlace, log_files
from engine.pipeline.filters import EVERYWHERE, QueryLimits, Span
from engine.pipeline.log_files import LogFile
from engine.pipeline.queue_files import Queue, list_queues, raw_end
from engine.pipeline.splits import Ranges, Split, first_in
from engine.pipeline.storage import ObjectStorage, OpenFile, open_path, storage_of
from engine.system_names import LMQ_PREFIX

MIN_STRETCH_BYTES = 8 << 20
"""Bytes of a range from which on it is passed over: a new beginning behind it costs about as much as to read it."""
LARGE_UNIT_BYTES = 128 << 10
"""Bytes of a store's units, on average, from which on each of them is asked itself: that takes as long as to read half
of it."""
MAX_CHECKED_UNITS = 100_000
"""Units of a store that are asked at most."""
MAX_QUEUE_BYTES = 1 << 29
"""Bytes of queue entries that are laid over a log at most."""
_ENTRIES_AT_ONCE = 1 << 18
"""Entries of a queue that are held at once."""
_HEAD_BYTES = 112
"""Bytes in front of a unit's body at most."""
ByteRange = tuple[int, int]
Ints = npt.NDArray[np.int64]


def skippable_ranges(store: StorePlace, limits: QueryLimits, trust: bool) -> list[ByteRange]:
    """Return ranges [low, high) of a log that hold no unit of the query's topics and queues, in order.

    Nothing is concluded from what cannot be read: then there is none. Queues in an object storage are believed, or not
    looked at: asking units there would take a request for each.
    """
    if any("?" in topic or "\ufffd" in topic for topic in limits.topics or ()):
        return []  # a name that malformed bytes may have as well
    if not trust and isinstance(storage_of(store.path)[0], ObjectStorage):
        return []
    try:
        files = log_files(store)
        listed_queues = (
            queue for queue in list_queues(store) if queue.files and not queue.topic.startswith(LMQ_PREFIX)
        )
        queues = [replace(queue, end=raw_end(queue)) for queue in listed_queues]
        sizes = [max(queue.end - queue.files[0].start, 0) for queue in queues]
        entries = sum(size // queue.unit_size for queue, size in zip(queues, sizes, strict=True))
        log_bytes = sum(file.size for file in files)
        if (
            log_bytes < MIN_STRETCH_BYTES
            or sum(sizes) > MAX_QUEUE_BYTES
            or not (trust or log_bytes >= LARGE_UNIT_BYTES * entries)
        ):
            return []
        gaps = _gaps(
            files,
            [claim for queue in queues if _is_in_query(queue, limits) for claim in _iter_claims(queue, limits, True)],
        )
        if not gaps:
            return []
        if not trust:
            return list(_checked_ranges(store, files, _runs(gaps, queues, limits), limits))
        tiled, untiled = _tiled(gaps, queues, limits)
        return sorted([*tiled, *((run.start, run.stop) for run in _runs(untiled, queues, limits))])
    except CannotRead:
        return []


def _is_in_query(queue: Queue, limits: QueryLimits) -> bool:
    return queue.topic in (limits.topics or ()) and (limits.queue_ids is None or queue.queue_id in limits.queue_ids)


def _iter_claims(queue: Queue, limits: QueryLimits, for_query: bool) -> Iterator[tuple[Ints, Ints]]:
    """Yield (places, sizes) of the units that one queue's entries point to: those the query asks for, or the others.

    Behind the end of a queue only those that are wanted count: others prove nothing there.
    """
    kind = BATCH_CQ_UNIT if queue.batch else CQ_UNIT
    is_asked = _is_in_query(queue, limits)
    lower, upper = limits.queue_offsets
    for file in queue.files:
        count = (file.size if for_query else min(file.size, queue.end - file.start)) // kind.itemsize
        if count <= 0 or (for_query and not is_asked):
            continue
        with open_path(file.path) as opened_file:
            for first_entry in range(0, count, _ENTRIES_AT_ONCE):
                data = opened_file.read(
                    first_entry * kind.itemsize, min(_ENTRIES_AT_ONCE, count - first_entry) * kind.itemsize
                )
                entries = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
                place, size = entries["physical_offset"].astype(np.int64), entries["size"].astype(np.int64)
                are_valid = (
                    (size > 0) & (place >= 0) & (size <= MAX_UNIT_BYTES) & ((size != PREFILLED_SIZE) | (place != 0))
                )
                if is_asked and not queue.batch:
                    numbers = np.arange(len(entries), dtype=np.int64) + file.start // kind.itemsize + first_entry
                    are_valid &= ((numbers >= lower) & (numbers <= upper)) == for_query
                elif is_asked != for_query:
                    break
                if are_valid.all():
                    yield place, size
                elif are_valid.any():
                    yield place[are_valid], size[are_valid]


def _gaps(files: Sequence[LogFile], claims: Sequence[tuple[Ints, Ints]]) -> list[ByteRange]:
    """Return the gaps between units of the query in each file of the log, in order, where they are long enough."""
    none = np.zeros(0, np.int64)
    place = np.concatenate([none, *(places for places, _ in claims)])
    size = np.concatenate([none, *(sizes for _, sizes in claims)])
    order = np.argsort(place, kind="stable")
    place = place[order]
    ends = np.maximum.accumulate(place + size[order])
    gaps: list[ByteRange] = []
    for file in files:
        first_claim, last_claim = np.searchsorted(place, [file.start, file.end])
        gap_starts = np.r_[
            max(file.start, int(ends[first_claim - 1]) if first_claim else 0), ends[first_claim:last_claim]
        ]
        gap_ends = np.r_[place[first_claim:last_claim], file.end]
        worth = gap_ends - gap_starts >= MIN_STRETCH_BYTES
        gaps += zip(gap_starts[worth].tolist(), gap_ends[worth].tolist(), strict=True)
    return gaps


# Units tile a range if each begins where the one before it ends. Then every border inside is once an end and once a
# start, so it cancels out, and only the first start and the last end remain:
#
#     |  unit a  |  unit b  | unit c |        starts 0, 9, 19        ends 9, 19, 26
#     0          9          19       26       Σ h(start) − Σ h(end) = h(0) − h(26)
#
# The reverse holds too. If each border inside is as often an end as a start, one unit leads from the first start to the
# next and so on to the last end. A second chain beside it would have a start and an end without partners, because units
# have positive sizes and no chain leads back to its start. A gap or an overlap leaves two borders without partners.
#
# So the entries of all queues are added in any order, a queue at a time, and are never sorted together. ``h`` is a hash
# of 64 bits and sums are modulo 2⁶⁴: sums of the plain numbers would also agree for other borders.


def _tiled(
    gaps: Sequence[ByteRange], queues: Sequence[Queue], limits: QueryLimits
) -> tuple[list[ByteRange], list[ByteRange]]:
    """Return the parts of those gaps that units tile, from the first unit in a gap to the last, and the other gaps."""
    lows, highs = (np.array(bounds, np.int64) for bounds in zip(*gaps, strict=True))
    sums = np.zeros(len(gaps), np.uint64)
    first_starts, last_ends = highs.copy(), lows.copy()
    for queue in queues:
        for place, size in _iter_claims(queue, limits, False):
            order = np.argsort(place, kind="stable") if (place[1:] < place[:-1]).any() else slice(None)
            start, end = place[order], (place + size)[order]
            begins, stops = np.searchsorted(start, lows), np.searchsorted(start, highs)
            touched = np.flatnonzero(begins < stops)
            if not len(touched):
                continue
            begins, stops = begins[touched], stops[touched]
            total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_hashes(start) - _hashes(end), dtype=np.uint64)])
            sums[touched] += total[stops] - total[begins]
            first_starts[touched] = np.minimum(first_starts[touched], start[begins])
            last_ends[touched] = np.maximum(last_ends[touched], end[stops - 1])
    is_tiled = (sums == _hashes(first_starts) - _hashes(last_ends)) & (last_ends <= highs)
    worth = last_ends - first_starts >= MIN_STRETCH_BYTES
    tiled = list(zip(first_starts[is_tiled & worth].tolist(), last_ends[is_tiled & worth].tolist(), strict=True))
    return tiled, [gap for gap, is_open in zip(gaps, (worth & ~is_tiled).tolist(), strict=True) if is_open]


def _hashes(places: Ints) -> npt.NDArray[np.uint64]:
    hashes = places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    hashes ^= hashes >> np.uint64(29)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(32)
    return hashes


@dataclass(frozen=True, slots=True)
class Run:
    """Units that tile [start, stop), by their sizes in bytes."""

    start: int
    sizes: Ints = field(repr=False)

    @property
    def stop(self) -> int:
        return self.start + int(self.sizes.sum())


def _runs(gaps: Sequence[ByteRange], queues: Sequence[Queue], limits: QueryLimits) -> Iterator[Run]:
    """Yield ranges of those gaps that one row of units fills and that are long enough, after sorting all entries.

    Where entries say the same they are one; those that reach out of a gap say nothing.
    """
    if not gaps:
        return
    lows, highs = (np.array(bounds, np.int64) for bounds in zip(*gaps, strict=True))
    places, sizes = [lows[:0]], [lows[:0]]
    for queue in queues:
        for place, size in _iter_claims(queue, limits, False):
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
    for start, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), len(place)], strict=True):
        run = Run(int(place[start]), size[start:stop]) if start < stop else None
        if run is not None and run.stop - run.start >= MIN_STRETCH_BYTES:
            yield run


def _checked_ranges(
    store: StorePlace, files: Sequence[LogFile], runs: Iterator[Run], limits: QueryLimits
) -> Iterator[ByteRange]:
    """Yield the ranges as far as each of their units itself belongs to another topic or queue."""
    remaining = MAX_CHECKED_UNITS
    for run in runs:
        range_start = run.start
        file = next((file for file in files if file.start <= range_start < file.end), None)
        if file is None or remaining <= 0:
            continue
        split = Split.of_file(store, file, range_start - file.start)
        if range_start > file.start and first_in(split) != range_start:
            continue
        range_end = range_start
        with open_path(file.path) as opened_file:
            for size in run.sizes[:remaining].tolist():
                if range_end + size > file.end or not _is_foreign_unit(
                    opened_file, range_end - file.start, size, limits
                ):
                    break
                range_end += size
        remaining -= len(run.sizes)
        if range_end - range_start >= MIN_STRETCH_BYTES:
            yield range_start, range_end


def _is_foreign_unit(opened_file: OpenFile, position: int, size: int, limits: QueryLimits) -> bool:
    """Return True if a whole unit of ``size`` bytes stands at ``position``, of no topic or queue of the query."""
    unit = bytearray(size)
    head = opened_file.read(position, min(_HEAD_BYTES, size))
    unit[: len(head)] = head
    body_end = _behind_body(head)
    if not 0 < body_end < size:
        return False
    if body_end > len(head):  # the body is not looked at: no frame depends on it
        tail = opened_file.read(position + body_end, size - body_end)
    else:
        tail = opened_file.read(position + len(head), size - len(head))
        body_end = len(head)
    unit[body_end:] = tail
    frame = check_frame(unit, 0, len(unit))
    if len(unit) != size or isinstance(frame, str) or frame.size != size:
        return False
    topic = utf8(bytes(unit[frame.topic : frame.topic + frame.topic_length]))
    if topic not in (limits.topics or ()):
        return True
    queue_id, offset = (int.from_bytes(unit[begin:end], "big", signed=True) for begin, end in ((12, 16), (20, 28)))
    of_queue = limits.queue_ids is None or queue_id in limits.queue_ids
    return not (of_queue and limits.queue_offsets[0] <= offset <= limits.queue_offsets[1])


def _behind_body(head: bytes) -> int:
    """Return where the body of a unit ends by its head, −1 if the head does not say."""
    if len(head) < _HEAD_BYTES:
        return -1
    flags = int.from_bytes(head[36:40], "big")
    body = 48 + (20 if flags & BORN_HOST_V6 else 8) + 8 + (20 if flags & STORE_HOST_V6 else 8) + 16
    return body + max(int.from_bytes(head[body - 4 : body], "big", signed=True), 0)


SLACK_MS = 60_000


@dataclass(frozen=True, slots=True)
class TrustedFacts:
    """Facts that a plan may trust in order to read less. ``queues``: nothing (``off``), where all units confirm it
    (``prove``), or entries that tile the log (``trust``). ``times``: that files are in the order of the clock.
    """

    queues: str = "prove"
    times: bool = False


EXACT = TrustedFacts()


def needed_ranges(stores: Sequence[StorePlace], limits: QueryLimits, trust: TrustedFacts = EXACT) -> dict[str, Ranges]:
    """Return the parts of each log that can hold what the query asks for, by the path of the store, for
    :func:`engine.pipeline.splits.plan`. A store that cannot be read has none.
    """
    ranges = {}
    for store in stores:
        try:
            spans, whys = _needed_spans(store, limits, trust)
        except CannotRead:  # the plan meets it again, and reports it
            continue
        if whys:
            ranges[store.path] = Ranges(tuple(spans), f"nothing of the {' and '.join(whys)} asked for lies there")
    return ranges


def _needed_spans(store: StorePlace, limits: QueryLimits, trust: TrustedFacts) -> tuple[list[Span], list[str]]:
    spans: list[Span] = [(0, EVERYWHERE[1])]
    whys: list[str] = []
    if limits.physical_offsets != EVERYWHERE:
        lower, upper = limits.physical_offsets
        spans, whys = _intersect(spans, [(max(lower, 0), min(upper, EVERYWHERE[1] - 1) + 1)]), ["offset"]
    if trust.times and limits.store_timestamps != EVERYWHERE:
        spans, whys = (
            _intersect(spans, list(_in_time(log_files(store), limits.store_timestamps))),
            [*whys, "store time"],
        )
    if trust.queues != "off" and limits.topics is not None:
        foreign_spans = skippable_ranges(store, limits, trust.queues == "trust")
        if foreign_spans:
            spans, whys = _intersect(spans, list(_uncovered(foreign_spans))), [*whys, "topic"]
    return spans, whys


def _uncovered(spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of the log that ``spans``, in order and apart, do not cover."""
    position = 0
    for span_start, span_end in spans:
        if position < span_start:
            yield position, span_start
        position = max(position, span_end)
    yield position, EVERYWHERE[1]


def _intersect(spans: list[Span], other_spans: list[Span]) -> list[Span]:
    """Return the overlaps of two lists of spans, each in order."""
    overlaps, i, j = [], 0, 0
    while i < len(spans) and j < len(other_spans):
        span_start, span_end = max(spans[i][0], other_spans[j][0]), min(spans[i][1], other_spans[j][1])
        if span_start < span_end:
            overlaps.append((span_start, span_end))
        if spans[i][1] < other_spans[j][1]:
            i += 1
        else:
            j += 1
    return overlaps


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
    """Return the store time of the unit that a file begins with; None if it begins with none, or cannot be read."""
    try:
        with open_path(file.path) as opened_file:
            head = opened_file.read(0, 80)
    except CannotRead:
        return None
    if len(head) < 80 or int.from_bytes(head[4:8], "big") not in MAGICS:
        return None
    position = 48 + (20 if int.from_bytes(head[36:40], "big") & BORN_HOST_V6 else 8)
    return int.from_bytes(head[position : position + 8], "big", signed=True)
