"""Look up keys in the bytes of mapped index files (docs/formats/index-file.md#query): one key, or many at once.

Pure. Every number that comes out of a file is checked against the file's bounds. For files that another process
writes see ``engine.inspection.chain_query``: nothing is mapped there. Two twins keep one contract: the compiled ones
are loaded after enough keys were looked up (:mod:`engine.codec.query_twin`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import index as codec
from engine.codec.java import continue_hash, index_key_hash, topic_hash
from engine.codec.query_twin import TwinState, twin_for

Int64 = npt.NDArray[np.int64]

Int32 = npt.NDArray[np.int32]
_SLOT, _ENTRY = struct.Struct(">i"), struct.Struct(">iqii")
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1
_SEVERAL = -2
_AHEAD = 4  # files whose slots are prefetched


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
        return find_key(files, topic, key, max(begin, _FIRST), min(end, _LAST), min(max_matches, _LAST))
    if single_offset != _SEVERAL:
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
    begin, end = max(window.begin, _FIRST), min(window.end, _LAST)
    return ends, out[: twin.find_keys(files.rows, key_hash, begin, end, max_matches, ends, out, _AHEAD)]


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
