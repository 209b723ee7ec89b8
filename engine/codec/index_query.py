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
_LARGEST_TIME = (1 << 62) - 1


class Window(NamedTuple):
    """Which entries are wanted: time (ms, floored to seconds) in [begin, end], at most ``most`` a key."""

    begin: int
    end: int
    most: int

    def bounded(self) -> Window:
        """The same, in numbers that a sum with another time does not carry beyond 64 bits."""
        if self.begin >= -_LARGEST_TIME and self.end <= _LARGEST_TIME:
            return self
        return Window(max(self.begin, -_LARGEST_TIME), min(self.end, _LARGEST_TIME), self.most)


class MappedIndex(NamedTuple):
    """The bytes of a whole file, where they lie in memory, and what its header says of them."""

    view: memoryview
    address: int
    geometry: codec.Geometry

    def limit(self, header: codec.IndexHeader) -> int:
        """Entries from here on do not count."""
        if header.index_count <= 1:
            return 0
        return min(header.index_count + 1, self.geometry.entries)


def find_key(file: MappedIndex, header: codec.IndexHeader, topic: str, key: str, window: Window) -> list[int]:
    """Offsets into the log of the entries with the key's hash, newest first."""
    compiled = dispatch_twin.loaded()
    text = f"{topic}#{key}"
    if compiled is None or not text.isascii():
        return _find_plain(file, header, index_key_hash(topic, key), window)
    window = window.bounded()
    out = np.empty(window.most, np.int64)
    found = compiled.find_key(
        file.address, file.geometry.slots, file.limit(header), header.begin_timestamp, text.encode(), *window, out
    )
    offsets: list[int] = out[:found].tolist()
    return offsets


def find_keys(
    file: MappedIndex, header: codec.IndexHeader, key_hash: Int32, window: Window, taken: Int64, out: Int64
) -> None:
    """:func:`find_key` for many hashes: row ``i`` of ``out`` has ``taken[i]`` offsets and gets what this file adds."""
    compiled = _twin_for(len(key_hash))
    window = window.bounded()
    if compiled is not None:
        compiled.find_keys(
            file.address, file.geometry.slots, file.limit(header), header.begin_timestamp, key_hash, *window, taken, out
        )
        return
    for row, wanted in enumerate(key_hash.tolist()):
        left = window.most - int(taken[row])
        found = _find_plain(file, header, wanted, Window(window.begin, window.end, left))
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


def _find_plain(file: MappedIndex, header: codec.IndexHeader, wanted: int, window: Window) -> list[int]:
    view, slots = file.view, file.geometry.slots
    (number,) = _SLOT.unpack_from(view, codec.HEADER_SIZE + codec.SLOT_SIZE * (wanted % slots))
    above, entries = file.limit(header), codec.HEADER_SIZE + codec.SLOT_SIZE * slots
    found: list[int] = []
    while 0 < number < above and len(found) < window.most:
        stored, offset, seconds, previous = _ENTRY.unpack_from(view, entries + codec.ENTRY_SIZE * number)
        time = header.begin_timestamp + seconds * 1000
        if seconds < 0:
            break
        if stored == wanted and window.begin <= time <= window.end:
            found.append(offset)
        if time < window.begin:
            break
        above, number = number, previous
    return found
