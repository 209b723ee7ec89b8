"""Keys looked up in the bytes of an index file that is mapped (spec 4.4): one key, or many at once.

Pure. Every number that comes out of the file is proven against the file's bounds. Two twins keep one contract, chosen
as in :mod:`engine.codec.columns`. For files that somebody else writes see ``engine.inspection.chain_query``: nothing is
mapped there.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import dispatch_twin
from engine.codec import index as codec
from engine.codec.java import index_key_hash, jhash

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
_SLOT, _ENTRY = struct.Struct(">i"), struct.Struct(">iqii")
_MANY = 20_000


class Window(NamedTuple):
    """Which entries are wanted: time (64-bit ms, floored to seconds) in [begin, end], at most ``most`` a key."""

    begin: int
    end: int
    most: int


class MappedIndex(NamedTuple):
    """A whole index file in memory, as far as its header counts: entries from ``limit`` on do not."""

    address: int
    slots: int
    limit: int
    begin_timestamp: int
    view: memoryview


def mapped_index(view: memoryview, address: int, geometry: codec.Geometry, header: codec.IndexHeader) -> MappedIndex:
    """The file whose bytes are ``view``, at ``address``."""
    limit = min(header.index_count + 1, geometry.entries) if header.index_count > 1 else 0
    return MappedIndex(address, geometry.slots, limit, header.begin_timestamp, view)


class Key:
    """One key of a topic on its way through the files."""

    __slots__ = ("_text", "_wanted")

    def __init__(self, topic: str, key: str) -> None:
        text = f"{topic}#{key}"
        compiled = dispatch_twin.loaded() is not None and text.isascii()
        self._text = text.encode() if compiled else b""
        self._wanted = -1 if compiled else index_key_hash(topic, key)

    def find(self, file: MappedIndex, begin: int, end: int, most: int) -> list[int]:
        """Offsets into the log of the entries with the key's hash and a time in [begin, end], newest first."""
        if self._wanted >= 0:
            return _find_plain(file, self._wanted, Window(begin, end, most))
        out = np.empty(most, np.int64)
        found = dispatch_twin.loaded().find_key(*file[:4], self._text, begin, end, most, out)  # type: ignore[union-attr]
        offsets: list[int] = out[:found].tolist()
        return offsets


def find_keys(file: MappedIndex, key_hash: Int32, window: Window, taken: Int64, out: Int64) -> None:
    """:meth:`Key.find` for many hashes: row ``i`` of ``out`` has ``taken[i]`` offsets and gets what this file adds."""
    compiled = _twin_for(len(key_hash))
    if compiled is not None:
        compiled.find_keys(*file[:4], key_hash, *window, taken, out)
        return
    for row, wanted in enumerate(key_hash.tolist()):
        left = window.most - int(taken[row])
        found = _find_plain(file, wanted, Window(window.begin, window.end, left))
        out[row, taken[row] : taken[row] + len(found)] = found
        taken[row] += len(found)


def hashes_of(topic: str, keys: list[str]) -> Int32:
    """The index hash of each key of a topic."""
    compiled = _twin_for(len(keys))
    if compiled is None:
        return np.array([index_key_hash(topic, key) for key in keys], np.int32)
    texts = [key.encode(errors="surrogatepass") for key in keys]
    blob = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    out = np.empty(len(keys), np.int32)
    done = compiled.hash_texts(np.uint32(jhash(f"{topic}#") & 0xFFFFFFFF), blob.ctypes.data, ends, out)
    for number in range(done, len(keys)):
        out[number] = index_key_hash(topic, keys[number])
    return out


def _twin_for(keys: int) -> dispatch_twin.Compiled | None:
    """The compiled twin where it is there, or the work is worth the second that it takes to load."""
    return dispatch_twin.loaded() if keys < _MANY else dispatch_twin.twin()


def _find_plain(file: MappedIndex, wanted: int, window: Window) -> list[int]:
    view, slots = file.view, file.slots
    (number,) = _SLOT.unpack_from(view, codec.HEADER_SIZE + codec.SLOT_SIZE * (wanted % slots))
    above, entries = file.limit, codec.HEADER_SIZE + codec.SLOT_SIZE * slots
    found: list[int] = []
    while 0 < number < above and len(found) < window.most:
        stored, offset, seconds, previous = _ENTRY.unpack_from(view, entries + codec.ENTRY_SIZE * number)
        time = file.begin_timestamp + seconds * 1000
        if seconds < 0:
            break
        if stored == wanted and window.begin <= time <= window.end:
            found.append(offset)
        if time < window.begin:
            break
        above, number = number, previous
    return found
