"""Looks up many keys in one index file at once: the matching entries of their chains
(docs/formats/index-file.md#query), without a record for each step.

For the steps with their verdicts, see :mod:`engine.inspection.key_trace`. Reads with ``pread``, also in the compiled
twin, so a file that is cut short meanwhile ends a chain and not the process.
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import index as codec
from engine.codec.columns import twin
from engine.codec.java import index_key_hash
from engine.codec.machine_code_build import twins
from engine.errors import CannotRead
from engine.inspection.index_reader import IndexReader
from engine.mapped.read_only import ReadOnlyFile

MAX_MATCHES = 64
BYTES_A_READ = 8192
"""Bytes that are copied in the time of one small read, about."""
MAX_TABLE_BYTES = 64 << 20
ENDED, UPWARDS, UNREADABLE = 0, 1, 2
_FOREVER = (1 << 62) - 1
_ENTRY = struct.Struct(">iqii")
_I32 = struct.Struct(">i")


class Matches(NamedTuple):
    """Matching entries in the order of the keys, newest first for each: ``key`` is the key's number, ``offset`` the
    commit-log offset, ``entry`` the entry's number.

    ``state`` is how the chain of each key ended: ENDED normally, UPWARDS at a link to an entry that is not older (a
    loop or damage), UNREADABLE if the file ended first.
    """

    key: npt.NDArray[np.int64]
    offset: npt.NDArray[np.int64]
    entry: npt.NDArray[np.int64]
    state: npt.NDArray[np.uint8]


def hashes_of(topic: str, keys: list[str]) -> npt.NDArray[np.int32]:
    """The index hash of each key of a topic."""
    return np.array([index_key_hash(topic, key) for key in keys], np.int32)


def find_matches(
    index: IndexReader,
    hashes: npt.NDArray[np.int32],
    begin: int = -_FOREVER,
    end: int = _FOREVER,
    max_matches: int = MAX_MATCHES,
) -> Matches:
    """Find entries whose hash is in ``hashes`` and whose time (ms, floored to seconds) lies in [begin, end].

    At most ``max_matches`` for each key, as a broker's query takes. Raises :class:`CorruptUnit` if the file has no
    header or its number of slots is not known.
    """
    header, slots = index.header, index.slots
    count = min(header.index_count, index.last_entry + 1)
    arguments = (index.file, slots, count, header.begin_timestamp, begin, end, max_matches)
    if twin() is None or not index.file.reads_by_itself:
        return _find_plain(hashes, *arguments)
    matches = _find_compiled(hashes, *arguments)
    failed = matches.state == UNREADABLE
    if failed.any():
        _find_plain(hashes[failed], *arguments)  # compiled code met the error; read again so that ``reading`` notes it
    return matches


def _find_compiled(
    hashes: npt.NDArray[np.int32],
    file: ReadOnlyFile,
    slots: int,
    count: int,
    begin_timestamp: int,
    begin: int,
    end: int,
    max_matches: int,
) -> Matches:
    descriptor = file.descriptor()
    try:
        newest = _newest(hashes, file, slots)
        return _chains(hashes, descriptor, newest, slots, count, begin_timestamp, begin, end, max_matches)
    finally:
        os.close(descriptor)


def _chains(
    hashes: npt.NDArray[np.int32],
    descriptor: int,
    newest: npt.NDArray[np.int32],
    slots: int,
    count: int,
    begin_timestamp: int,
    begin: int,
    end: int,
    max_matches: int,
) -> Matches:
    compiled_chains, page = twins("compiled_chains"), np.empty(20, np.uint8)
    state = np.zeros(len(hashes), np.uint8)
    max_matches = min(max_matches, max(count, 1))
    room = 2 * len(hashes) + max_matches
    keys, offsets, entries = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    key, filled = 0, 0
    while key < len(hashes):
        key, filled = compiled_chains.chains(
            descriptor,
            hashes,
            newest,
            key,
            slots,
            count,
            begin_timestamp,
            begin,
            end,
            max_matches,
            state,
            keys,
            offsets,
            entries,
            filled,
            page,
        )
        if key < len(hashes):
            keys, offsets, entries = (np.resize(array, 2 * len(array)) for array in (keys, offsets, entries))
    return Matches(keys[:filled], offsets[:filled], entries[:filled], state)


def _newest(hashes: npt.NDArray[np.int32], file: ReadOnlyFile, slots: int) -> npt.NDArray[np.int32]:
    """The slot values for all keys, if reading the whole table is cheaper than one read per key; else empty."""
    size = codec.SLOT_SIZE * slots
    if len(hashes) * BYTES_A_READ < size or size > MAX_TABLE_BYTES:
        return np.empty(0, np.int32)
    table = np.zeros(slots, ">i4")
    got = file.read_into(table.data.cast("B"), codec.HEADER_SIZE)
    return table[hashes % slots].astype(np.int32) if got == size else np.empty(0, np.int32)


def _find_plain(
    hashes: npt.NDArray[np.int32],
    file: ReadOnlyFile,
    slots: int,
    count: int,
    begin_timestamp: int,
    begin: int,
    end: int,
    max_matches: int,
) -> Matches:
    geometry = codec.Geometry(slots, 0)
    state = np.zeros(len(hashes), np.uint8)
    matches: list[tuple[int, int, int]] = []
    for key, searched_hash in enumerate(hashes.tolist()):
        match_count, above = 0, count + 1
        data = _read(file, codec.SLOT_SIZE, geometry.slot_position(searched_hash % slots))
        number = _I32.unpack(data)[0] if len(data) == codec.SLOT_SIZE else 0
        state[key] = ENDED if len(data) == codec.SLOT_SIZE else UNREADABLE
        while 0 < number <= count and count > 1 and match_count < max_matches:
            data = _read(file, codec.ENTRY_SIZE, geometry.entry_position(number)) if number < above else b""
            if len(data) < codec.ENTRY_SIZE:
                state[key] = UNREADABLE if number < above else UPWARDS
                break
            key_hash, offset, seconds, previous = _ENTRY.unpack(data)
            time = begin_timestamp + seconds * 1000
            if seconds < 0:
                break
            if key_hash == searched_hash and begin <= time <= end:
                matches.append((key, offset, number))
                match_count += 1
            if time < begin:
                break
            above, number = number, previous
    columns = np.array(matches, np.int64).reshape(-1, 3)
    return Matches(columns[:, 0], columns[:, 1], columns[:, 2], state)


def _read(file: ReadOnlyFile, size: int, position: int) -> bytes:
    """Read bytes; empty if they cannot be read (``reading`` has noted the error)."""
    try:
        return file.read(position, size)
    except CannotRead:
        return b""
