"""Keys looked up in the bytes of index files that are mapped (spec 4.4): one key, or many at once.

Pure. Every number that comes out of a file is proven against the file's bounds. Two twins keep one contract, chosen
as :mod:`engine.codec.query_twin` tells. For files that somebody else writes see ``engine.inspection.chain_query``:
nothing is mapped there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import index as codec
from engine.codec import query_twin
from engine.codec.java import hash_on, index_key_hash, topic_hash

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
_SLOT, _ENTRY = struct.Struct(">i"), struct.Struct(">iqii")
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1
_SEVERAL = -2
_loaded = query_twin.Loaded
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
    twin = _loaded.twin or query_twin.ready(1)
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
    twin = query_twin.ready(len(key_hash))
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
    twin = query_twin.ready(0)
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
