"""Topics of a scan as small numbers: a hash table that both twins of ``columns`` fill."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.codec.java import jhash, utf8
from engine.system_names import SCHEDULE_TOPIC

_COUNT, _POOL_USED, _SCHEDULE, _LIMIT = range(4)


class TopicTable:
    """Topic bytes ⇄ small numbers, in order of appearance, shared by all blocks of a scan. Both twins add topics.

    At most ``limit`` topics get a number: bytes of a damaged log can name millions.
    """

    def __init__(self, limit: int = 1 << 20) -> None:
        self.state = np.array([0, 0, -1, limit], np.int64)
        self.slots = np.zeros(1 << 7, np.int32)
        self.hashes = np.zeros(1 << 6, np.uint64)
        self.places = np.zeros(1 << 6, np.int64)
        self.lengths = np.zeros(1 << 6, np.int32)
        self.pool = np.zeros(1 << 13, np.uint8)
        self._table: tuple[int, ...] = ()
        self._raw: list[bytes] = []
        self._names: list[str] = []
        self._ids: dict[bytes, int] = {}
        self._prefixes = np.zeros(0, np.uint32)

    def __len__(self) -> int:
        return int(self.state[_COUNT])

    @property
    def names(self) -> list[str]:
        """Every topic's name, by number; grows, never changes."""
        self._catch_up()
        return self._names

    def raw(self, number: int) -> bytes:
        """Return the bytes of a topic's name as stored."""
        self._catch_up()
        return self._raw[number]

    def find(self, topic: str) -> int:
        """Return the topic's number, −1 if it did not appear. If several stored names decode to ``topic``, return
        the first.
        """
        self._catch_up()
        return self._ids.get(topic.encode(errors="surrogatepass"), -1)

    def number_of(self, raw: bytes) -> int:
        """Return the topic's number, adding it if it is new; −1 past the limit."""
        self._catch_up()
        number = self._ids.get(raw, -1)
        if number < 0 and len(self._raw) < self.state[_LIMIT]:
            number = self._enter(raw)
        return number

    def table(self) -> tuple[int, ...]:
        """Return addresses and sizes for the compiled twin; valid until the table grows."""
        if not self._table:
            arrays = (self.hashes, self.places, self.lengths, self.pool, self.state)
            addresses = tuple(array.ctypes.data for array in arrays)
            self._table = (self.slots.ctypes.data, len(self.slots) - 1, *addresses, len(self.hashes), len(self.pool))
        return self._table

    def prefixes(self) -> npt.NDArray[np.uint32]:
        """Return Java's hash of ``topic#`` by topic number, as unsigned: the start value for every index key of the
        topic.
        """
        hashed_count = len(self._prefixes)
        new_hashes = [jhash(name + "#") & 0xFFFFFFFF for name in self.names[hashed_count:]]
        if new_hashes:
            self._prefixes = np.concatenate([self._prefixes, np.array(new_hashes, np.uint32)])
        return self._prefixes

    def grow(self, length: int = 0) -> None:
        """Make room for more topics and ``length`` more bytes of their names."""
        self._table = ()
        if len(self) * 2 >= len(self.hashes):
            for name in ("hashes", "places", "lengths"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
            self._spread()
        while int(self.state[_POOL_USED]) + length + (1 << 15) > len(self.pool):
            self.pool = np.concatenate([self.pool, np.zeros_like(self.pool)])

    def _spread(self) -> None:
        self.slots = np.zeros(2 * len(self.hashes), np.int32)
        mask = len(self.slots) - 1
        for number in range(len(self)):
            self._occupy(int(self.hashes[number]) & mask, number)

    def _occupy(self, slot: int, number: int) -> None:
        while self.slots[slot]:
            slot = (slot + 1) & (len(self.slots) - 1)
        self.slots[slot] = number + 1

    def _enter(self, raw: bytes) -> int:
        number, place = len(self._raw), int(self.state[_POOL_USED])
        if number >= len(self.hashes) or place + len(raw) > len(self.pool):
            self.grow(len(raw))
        self.hashes[number], self.places[number], self.lengths[number] = _mix(raw), place, len(raw)
        self.pool[place : place + len(raw)] = np.frombuffer(raw, np.uint8)
        self._occupy(int(self.hashes[number]) & (len(self.slots) - 1), number)
        self.state[_COUNT], self.state[_POOL_USED] = number + 1, place + len(raw)
        if raw == SCHEDULE_TOPIC.encode():
            self.state[_SCHEDULE] = number
        self._catch_up()
        return number

    def _catch_up(self) -> None:
        for number in range(len(self._raw), int(self.state[_COUNT])):
            place = int(self.places[number])
            raw = self.pool[place : place + int(self.lengths[number])].tobytes()
            self._raw.append(raw)
            self._names.append(utf8(raw))
            self._ids[raw] = number


def _mix(raw: bytes) -> int:
    """The compiled twin's hash of a topic."""
    mask, mix = (1 << 64) - 1, 0x9E3779B97F4A7C15
    h = len(raw) * mix & mask
    if len(raw) >= 8:
        for position in range(0, len(raw) - 8, 8):
            h = (h ^ int.from_bytes(raw[position : position + 8], "little")) * mix & mask
            h ^= h >> 29
        h = (h ^ int.from_bytes(raw[-8:], "little")) * mix & mask
    else:
        for byte in raw:
            h = (h ^ byte) * mix & mask
    return h ^ h >> 32
