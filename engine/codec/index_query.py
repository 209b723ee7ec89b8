"""Look up keys in the bytes of mapped index files (docs/formats/index-file.md#query): one key, or many at once; and
locate the units that they lead to in the bytes of a mapped log (docs/formats/commit-log.md#unit).

Pure. Every number that comes out of a file is checked against the file's bounds. For files that another process
writes see ``engine.inspection.chain_query``: nothing is mapped there.

Two twins keep one contract: the compiled ones are loaded after enough keys were looked up. Numba's dispatch by argument
types takes longer than a query. So the functions of :class:`QueryTwin` are the machine code itself, as Python calls it:
each has one signature, and other types are an error, never a wrong number. See also :mod:`engine.codec.dispatch_twin`.
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
from engine.codec.java import continue_hash, index_key_hash, topic_hash
from engine.codec.machine_code_build import import_compiled

KEYS_WITH_NUMBA_IMPORTED, KEYS_WITHOUT_NUMBA = 1000, 20_000
"""Number of keys after which loading pays off: if numba is already imported (milliseconds), and if not (a second)."""


class QueryTwin(NamedTuple):
    """The functions of :mod:`engine.codec.compiled_query`."""

    find_one: Callable[..., int]
    find_all: Callable[..., int]
    hash_texts: Callable[..., int]
    find_keys: Callable[..., None]
    place_units: Callable[..., int]


class TwinState:
    """The state of this process: ``twin`` are the compiled twins once they are loaded, ``keys_without_twin`` counts
    keys that were looked up without them.
    """

    twin: QueryTwin | None = None
    keys_without_twin: int = 0


def twin_for(keys: int) -> QueryTwin | None:
    """Return the compiled twins for a query of so many keys; None if plain Python is quicker, or the only way."""
    return TwinState.twin or _load_if_worth_it(keys)


def load() -> QueryTwin | None:
    """Load and return the compiled twins; None if only plain Python is available."""
    if columns.twin() is None:
        return None
    if TwinState.twin is None:
        compiled_query = import_compiled("compiled_query")
        TwinState.twin = QueryTwin(*(_machine_code(getattr(compiled_query, name)) for name in QueryTwin._fields))
    return TwinState.twin


def _load_if_worth_it(keys: int) -> QueryTwin | None:
    TwinState.keys_without_twin += keys
    if TwinState.keys_without_twin < (KEYS_WITH_NUMBA_IMPORTED if "numba" in sys.modules else KEYS_WITHOUT_NUMBA):
        return None
    TwinState.keys_without_twin = 0
    return load()


def _machine_code(function: Any) -> Callable[..., Any]:
    """Return the function that numba would call for the only signature of ``function``."""
    (compiled,) = function.overloads.values()
    return cast("Callable[..., Any]", compiled.entry_point)


Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
_SLOT, _ENTRY = struct.Struct(">i"), struct.Struct(">iqii")
_MIN_TIME, _MAX_TIME = -(1 << 63), (1 << 63) - 1
_SEVERAL_MATCHES = -2
_PREFETCHED_FILES = 4  # files whose slots are prefetched


class TimeWindow(NamedTuple):
    """The wanted entries: time (64-bit ms, floored to seconds) in [begin, end], at most ``max_matches`` per key."""

    begin: int
    end: int
    max_matches: int


class MappedIndex(NamedTuple):
    """A complete index file in memory; entries from ``limit`` on are not counted by ``header``."""

    view: memoryview
    address: int
    slots: int
    limit: int
    header: codec.IndexHeader


class MappedFiles(NamedTuple):
    """Index files in memory, the newest first.

    A row of ``rows`` is what the compiled twin gets of one file: address, slots, limit, begin and end timestamp.
    ``end_timestamp`` (ms) and ``end_phy_offset`` are the newest file's, 0 if there is none.

    """

    files: tuple[MappedIndex, ...]
    rows: Int64
    end_timestamp: int
    end_phy_offset: int


def mapped_index(view: memoryview, address: int, geometry: codec.Geometry, header: codec.IndexHeader) -> MappedIndex:
    """Return the file with the bytes ``view``, which lie at ``address``."""
    limit = min(header.index_count + 1, geometry.entries) if header.index_count > 1 else 0
    return MappedIndex(view, address, geometry.slots, limit, header)


def mapped_files(files: Sequence[MappedIndex]) -> MappedFiles:
    """Combine files, newest first, for queries over all of them."""
    rows = np.array([_row(file) for file in files], np.int64).reshape(-1, 5)
    return _with_end(tuple(files), rows)


def with_newest(files: MappedFiles, newest: MappedIndex) -> MappedFiles:
    """Return the same files after the newest has grown."""
    rows = files.rows.copy()
    rows[0] = _row(newest)
    return _with_end((newest, *files.files[1:]), rows)


def _with_end(files: tuple[MappedIndex, ...], rows: Int64) -> MappedFiles:
    if not files:
        return MappedFiles(files, rows, 0, 0)
    return MappedFiles(files, rows, files[0].header.end_timestamp, files[0].header.end_phy_offset)


def _row(file: MappedIndex) -> tuple[int, int, int, int, int]:
    return file.address, file.slots, file.limit, file.header.begin_timestamp, file.header.end_timestamp


def find_key(files: MappedFiles, topic: str, key: str, begin: int, end: int, max_matches: int) -> list[int]:
    """Return log offsets of the entries with the key's hash and a time in [begin, end] ms, newest first, at most
    ``max_matches``.

    Files are chosen as by RocketMQ: those that the window touches, back to the one that begins before it.

    """
    twin = TwinState.twin or twin_for(1)
    if twin is None:
        return _find_plain(files, index_key_hash(topic, key), TimeWindow(begin, end, max_matches))
    if key.isascii():
        h, text = topic_hash(topic), key.encode()
    else:
        h, text = continue_hash(topic_hash(topic), key), b""
    try:
        single_offset = twin.find_one(files.rows, h, text, begin, end, max_matches)
    except OverflowError:
        return find_key(files, topic, key, max(begin, _MIN_TIME), min(end, _MAX_TIME), min(max_matches, _MAX_TIME))
    if single_offset != _SEVERAL_MATCHES:
        return [single_offset] if single_offset >= 0 else []
    out = np.empty(min(max_matches, sum(file.limit for file in files.files)), np.int64)
    offsets: list[int] = out[: twin.find_all(files.rows, h, text, begin, end, out)].tolist()
    return offsets


def find_keys(files: MappedFiles, key_hash: Int32, window: TimeWindow) -> tuple[Int64, Int64]:
    """Run :func:`find_key` for many hashes, each key's offsets in ascending order; returns (number of offsets up to
    each key, offsets).
    """
    max_matches, ends = max(window.max_matches, 0), np.zeros(len(key_hash), np.int64)
    twin = twin_for(len(key_hash))
    if twin is None or not files.files:
        all_offsets: list[int] = []
        for number, hash_value in enumerate(key_hash.tolist()):
            all_offsets += sorted(_find_plain(files, hash_value, window))
            ends[number] = len(all_offsets)
        return ends, np.array(all_offsets, np.int64)
    max_matches = min(max_matches, sum(file.limit for file in files.files))
    out = np.empty(len(ends) * max_matches, np.int64)
    begin, end = max(window.begin, _MIN_TIME), min(window.end, _MAX_TIME)
    return ends, out[: twin.find_keys(files.rows, key_hash, begin, end, max_matches, ends, out, _PREFETCHED_FILES)]


def hashes_of(topic: str, keys: list[str]) -> Int32:
    """Return the index hash of each key of a topic."""
    twin = twin_for(0)
    if twin is not None:
        out = np.empty(len(keys), np.int32)
        try:
            if twin.hash_texts(topic_hash(topic), "\0".join(keys).encode(), out) == len(keys):
                return out
        except UnicodeEncodeError:
            pass
    return np.array([index_key_hash(topic, key) for key in keys], np.int32)


def _find_plain(files: MappedFiles, key_hash: int, window: TimeWindow) -> list[int]:
    offsets: list[int] = []
    for file in files.files:
        if file.limit and codec.time_matched(file.header, window.begin, window.end):
            _walk_plain(file, key_hash, window, offsets)
        if len(offsets) >= window.max_matches or file.header.begin_timestamp < window.begin:
            break
    return offsets


def _walk_plain(file: MappedIndex, key_hash: int, window: TimeWindow, offsets: list[int]) -> None:
    """Add the offsets of one file. Numbers fall along a chain, so every walk ends."""
    view, slots, begin_timestamp = file.view, file.slots, file.header.begin_timestamp
    (number,) = _SLOT.unpack_from(view, codec.HEADER_SIZE + codec.SLOT_SIZE * (key_hash % slots))
    previous_number, entries = file.limit, codec.HEADER_SIZE + codec.SLOT_SIZE * slots
    while 0 < number < previous_number and len(offsets) < window.max_matches:
        stored_hash, offset, seconds, previous = _ENTRY.unpack_from(view, entries + codec.ENTRY_SIZE * number)
        time = begin_timestamp + seconds * 1000
        if seconds < 0:
            break
        if stored_hash == key_hash and window.begin <= time <= window.end:
            offsets.append(offset)
        if time < window.begin:
            break
        previous_number, number = number, previous


_SIZE = struct.Struct(">i")
_MAX_OFFSET = 1 << 62  # beyond any log: such an offset comes from a damaged entry


class Span(NamedTuple):
    """The log from ``start`` to ``stop``. ``view`` are its bytes, None if they cannot be read."""

    start: int
    stop: int
    view: memoryview | None


class Units(NamedTuple):
    """Units by key, each key's in the order of the log; ``ends[i]`` is the number of units up to key ``i``.

    ``offsets`` are absolute; ``begins`` and ``stops`` count in the view of the span with number ``spans``.

    """

    offsets: list[int]
    begins: list[int]
    stops: list[int]
    spans: list[int]
    ends: list[int]


def place_units(ends: Int64, offsets: Int64, span_at: Callable[[int], Span]) -> Units:
    """Locate the units at the offsets of many keys; ``ends[i]`` is the number of offsets up to key ``i``.

    ``span_at`` returns a span that holds an offset (0 to 2⁶²); spans are numbered in the order of the calls. An
    offset whose bytes do not begin with a size that fits into the span is left out.

    """
    twin = twin_for(0)
    if twin is None:
        begins, stops, spans = _place_plain(offsets, span_at)
    else:
        out = np.empty((3, len(offsets)), np.int64)
        span_number, missing_index = 0, twin.place_units(offsets, 0, 0, b"", -1, out)
        while missing_index >= 0:
            span = span_at(int(offsets[missing_index]))
            missing_index = twin.place_units(offsets, span.start, span.stop, span.view or b"", span_number, out)
            span_number += 1
        begins, stops = out[:2].tolist()
        spans = out[2].tolist() if span_number > 1 else [0] * len(begins)
    units = Units(offsets.tolist(), begins, stops, spans, ends.tolist())
    return units if 0 not in stops else _drop_missing(units)


def _place_plain(offsets: Int64, span_at: Callable[[int], Span]) -> tuple[list[int], list[int], list[int]]:
    begins, stops, numbers = [], [], []
    spans: list[Span] = []
    for offset in offsets.tolist():
        number = next((n for n, span in enumerate(spans) if span.start <= offset < span.stop), len(spans))
        position = size = 0
        if 0 <= offset < _MAX_OFFSET:
            if number == len(spans):
                spans.append(span_at(offset))
            start, _, view = spans[number]
            position, available = offset - start, len(view) - offset + start if view is not None else 0
            size = _SIZE.unpack_from(view, position)[0] if view is not None and available >= _SIZE.size else 0
            size = size if _SIZE.size < size <= available else 0
        begins.append(position)
        stops.append(position + size if size else 0)
        numbers.append(number)
    return begins, stops, numbers


def _drop_missing(units: Units) -> Units:
    """Drop the offsets without a unit."""
    placed = [number for number, stop in enumerate(units.stops) if stop]
    ends = [bisect_left(placed, end) for end in units.ends]
    offsets, begins, stops, spans = ([column[number] for number in placed] for column in units[:4])
    return Units(offsets, begins, stops, spans, ends)
