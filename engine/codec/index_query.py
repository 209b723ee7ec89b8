"""Keys looked up in the bytes of index files that are mapped (docs/formats/index-file.md#query): one key, or many at
once.

Then the units that an index leads to, found in bytes of the log that are lent on the way
(docs/formats/commit-log.md#unit).

Pure. Every number that comes out of a file is proven against the file's bounds. For files that somebody else writes see
``engine.inspection.chain_query``: nothing is mapped there.

Two twins keep one contract: the compiled ones are loaded when enough keys have been asked for (see
:mod:`engine.codec.dispatch_twin`).

Choosing machine code by the types of its arguments costs numba more than a query takes, so the functions here are the
machine code itself, as Python calls it: each has one signature, and other types are an error, never a wrong number.
"""

from __future__ import annotations

import struct
import sys
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from engine.codec import columns
from engine.codec import index as codec
from engine.codec.java import hash_on, index_key_hash, topic_hash
from engine.codec.machine_code_build import import_compiled

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
_SLOT, _ENTRY = struct.Struct(">i"), struct.Struct(">iqii")
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1
_SEVERAL = -2
_AHEAD = 4  # files whose slots are asked for before they are looked at


class Window(NamedTuple):
    """Which entries are wanted: time (64-bit ms, floored to seconds) in [begin, end], at most ``most`` a key."""

    begin: int
    end: int
    most: int


class MappedIndex(NamedTuple):
    """A whole index file in memory, as far as ``header`` counts: entries from ``limit`` on do not."""

    view: memoryview
    address: int
    slots: int
    limit: int
    header: codec.IndexHeader


class MappedFiles(NamedTuple):
    """Index files in memory, the newest first; a row of ``rows`` is what the compiled twin knows of one: address,
    slots, limit, begin and end timestamp. Time (ms) and offset up to which the newest goes are 0 where there is none.
    """

    files: tuple[MappedIndex, ...]
    rows: Int64
    end_timestamp: int
    end_phy_offset: int


def mapped_index(view: memoryview, address: int, geometry: codec.Geometry, header: codec.IndexHeader) -> MappedIndex:
    """The file whose bytes are ``view``, at ``address``."""
    limit = min(header.index_count + 1, geometry.entries) if header.index_count > 1 else 0
    return MappedIndex(view, address, geometry.slots, limit, header)


def mapped_files(files: Sequence[MappedIndex]) -> MappedFiles:
    """The files, which come with the newest first, to be asked together."""
    rows = np.array([_row(file) for file in files], np.int64).reshape(-1, 5)
    return _with_end(tuple(files), rows)


def with_newest(files: MappedFiles, newest: MappedIndex) -> MappedFiles:
    """The same files, the newest of which has grown."""
    rows = files.rows.copy()
    rows[0] = _row(newest)
    return _with_end((newest, *files.files[1:]), rows)


def _with_end(files: tuple[MappedIndex, ...], rows: Int64) -> MappedFiles:
    if not files:
        return MappedFiles(files, rows, 0, 0)
    return MappedFiles(files, rows, files[0].header.end_timestamp, files[0].header.end_phy_offset)


def _row(file: MappedIndex) -> tuple[int, int, int, int, int]:
    return file.address, file.slots, file.limit, file.header.begin_timestamp, file.header.end_timestamp


def find_key(files: MappedFiles, topic: str, key: str, begin: int, end: int, most: int) -> list[int]:
    """Offsets into the log of the entries with the key's hash and a time in [begin, end] ms, newest first, at most
    ``most``. Files are asked as RocketMQ does: those that the window takes in, back to the one that begins before it.
    """
    twin = Loaded.twin or ready(1)
    if twin is None:
        return _find_plain(files, index_key_hash(topic, key), Window(begin, end, most))
    if key.isascii():
        h, text = topic_hash(topic), key.encode()
    else:
        h, text = hash_on(topic_hash(topic), key), b""
    try:
        only = twin.find_one(files.rows, h, text, begin, end, most)
    except OverflowError:
        return find_key(files, topic, key, max(begin, _FIRST), min(end, _LAST), min(most, _LAST))
    if only != _SEVERAL:
        return [only] if only >= 0 else []
    out = np.empty(min(most, sum(file.limit for file in files.files)), np.int64)
    offsets: list[int] = out[: twin.find_all(files.rows, h, text, begin, end, out)].tolist()
    return offsets


def find_keys(files: MappedFiles, key_hash: Int32, window: Window) -> tuple[Int64, Int64]:
    """:func:`find_key` for many hashes, each key's offsets in ascending order: (how many up to each key, offsets)."""
    most, ends = max(window.most, 0), np.zeros(len(key_hash), np.int64)
    twin = ready(len(key_hash))
    if twin is None or not files.files:
        found: list[int] = []
        for number, wanted in enumerate(key_hash.tolist()):
            found += sorted(_find_plain(files, wanted, window))
            ends[number] = len(found)
        return ends, np.array(found, np.int64)
    most = min(most, sum(file.limit for file in files.files))
    out = np.empty(len(ends) * most, np.int64)
    begin, end = max(window.begin, _FIRST), min(window.end, _LAST)
    return ends, out[: twin.find_keys(files.rows, key_hash, begin, end, most, ends, out, _AHEAD)]


def hashes_of(topic: str, keys: list[str]) -> Int32:
    """The index hash of each key of a topic."""
    twin = ready(0)
    if twin is not None:
        out = np.empty(len(keys), np.int32)
        try:
            if twin.hash_texts(topic_hash(topic), "\0".join(keys).encode(), out) == len(keys):
                return out
        except UnicodeEncodeError:
            pass
    return np.array([index_key_hash(topic, key) for key in keys], np.int32)


def _find_plain(files: MappedFiles, wanted: int, window: Window) -> list[int]:
    found: list[int] = []
    for file in files.files:
        if file.limit and codec.time_matched(file.header, window.begin, window.end):
            _walk_plain(file, wanted, window, found)
        if len(found) >= window.most or file.header.begin_timestamp < window.begin:
            break
    return found


def _walk_plain(file: MappedIndex, wanted: int, window: Window, found: list[int]) -> None:
    """Add what one file has. Numbers fall along a chain, so every walk ends."""
    view, slots, begin_timestamp = file.view, file.slots, file.header.begin_timestamp
    (number,) = _SLOT.unpack_from(view, codec.HEADER_SIZE + codec.SLOT_SIZE * (wanted % slots))
    above, entries = file.limit, codec.HEADER_SIZE + codec.SLOT_SIZE * slots
    while 0 < number < above and len(found) < window.most:
        stored, offset, seconds, previous = _ENTRY.unpack_from(view, entries + codec.ENTRY_SIZE * number)
        time = begin_timestamp + seconds * 1000
        if seconds < 0:
            break
        if stored == wanted and window.begin <= time <= window.end:
            found.append(offset)
        if time < window.begin:
            break
        above, number = number, previous


_SIZE = struct.Struct(">i")
_FAR = 1 << 62  # no log goes there: such an offset is a damaged entry's


class Span(NamedTuple):
    """The log from ``start`` to ``stop``, of which ``view`` can be read; nothing without one."""

    start: int
    stop: int
    view: memoryview | None


class Units(NamedTuple):
    """Units by key, each key's in the order of the log: ``ends[i]`` of them up to key ``i``.

    ``offsets`` are absolute; ``begins`` and ``stops`` count in the view of the span with number ``spans``.
    """

    offsets: list[int]
    begins: list[int]
    stops: list[int]
    spans: list[int]
    ends: list[int]


def place_units(ends: Int64, offsets: Int64, span_at: Callable[[int], Span]) -> Units:
    """The units at the offsets of many keys, of which there are ``ends[i]`` up to key ``i``.

    ``span_at`` gives a span that holds an offset (0 to 2⁶²), and its answers are numbered as it is called. What does
    not begin with a size that fits into its span is no unit and left out.
    """
    twin = ready(0)
    if twin is None:
        begins, stops, spans = _place_plain(offsets, span_at)
    else:
        out = np.empty((3, len(offsets)), np.int64)
        asked, left = 0, twin.place_units(offsets, 0, 0, b"", -1, out)
        while left >= 0:
            span = span_at(int(offsets[left]))
            left = twin.place_units(offsets, span.start, span.stop, span.view or b"", asked, out)
            asked += 1
        begins, stops = out[:2].tolist()
        spans = out[2].tolist() if asked > 1 else [0] * len(begins)
    units = Units(offsets.tolist(), begins, stops, spans, ends.tolist())
    return units if 0 not in stops else _without_lost(units)


def _place_plain(offsets: Int64, span_at: Callable[[int], Span]) -> tuple[list[int], list[int], list[int]]:
    begins, stops, numbers = [], [], []
    spans: list[Span] = []
    for offset in offsets.tolist():
        number = next((n for n, span in enumerate(spans) if span.start <= offset < span.stop), len(spans))
        at = size = 0
        if 0 <= offset < _FAR:
            if number == len(spans):
                spans.append(span_at(offset))
            start, _, view = spans[number]
            at, room = offset - start, len(view) - offset + start if view is not None else 0
            size = _SIZE.unpack_from(view, at)[0] if view is not None and room >= _SIZE.size else 0
            size = size if _SIZE.size < size <= room else 0
        begins.append(at)
        stops.append(at + size if size else 0)
        numbers.append(number)
    return begins, stops, numbers


def _without_lost(units: Units) -> Units:
    """Those that have been found."""
    there = [number for number, stop in enumerate(units.stops) if stop]
    ends = [bisect_left(there, end) for end in units.ends]
    offsets, begins, stops, spans = ([column[number] for number in there] for column in units[:4])
    return Units(offsets, begins, stops, spans, ends)


SOON, LATE = 1000, 20_000
"""Keys after which loading is worth its time: where numba is there already (milliseconds), and where not (a second)."""


class QueryTwin(NamedTuple):
    """The functions of :mod:`engine.codec.compiled_query`."""

    find_one: Callable[..., int]
    find_all: Callable[..., int]
    hash_texts: Callable[..., int]
    find_keys: Callable[..., None]
    place_units: Callable[..., int]


class Loaded:
    """What is there in this process: ``twin`` are the compiled twins, once they are, for those to whom a call is dear;
    ``asked`` the keys that were asked for without them.
    """

    twin: QueryTwin | None = None
    asked: int = 0


def ready(keys: int) -> QueryTwin | None:
    """The compiled twins for a query of so many keys; None where plain Python is the quicker way, or the only one."""
    return Loaded.twin or _consider(keys)


def load() -> QueryTwin | None:
    """The compiled twins, loaded now; None where only plain Python is to be had."""
    if columns.twin() is None:
        return None
    if Loaded.twin is None:
        compiled_query = import_compiled("compiled_query")
        Loaded.twin = QueryTwin(*(_machine_code(getattr(compiled_query, name)) for name in QueryTwin._fields))
    return Loaded.twin


def _consider(keys: int) -> QueryTwin | None:
    Loaded.asked += keys
    if Loaded.asked < (SOON if "numba" in sys.modules else LATE):
        return None
    Loaded.asked = 0
    return load()


def _machine_code(function: Any) -> Callable[..., Any]:
    """What numba would call for the one signature that ``function`` has."""
    (compiled,) = function.overloads.values()
    return cast("Callable[..., Any]", compiled.entry_point)
