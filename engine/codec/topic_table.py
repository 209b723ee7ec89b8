"""Topics of a scan as small numbers: a hash table into which both twins of ``columns`` enter them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.codec.java import jhash, utf8
from engine.codec.message import SCHEDULE_TOPIC

_COUNT, _POOL_USED, _SCHEDULE, _LIMIT = range(4)


class TopicTable:
    """Topic bytes ⇄ small numbers, in order of appearance, shared by all blocks of a scan. Both twins enter topics
    here.

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
        """The bytes of a topic's name as stored."""
        self._catch_up()
        return self._raw[number]

    def find(self, topic: str) -> int:
        """The topic's number, −1 where it did not appear. Of names that only malformed bytes tell apart, the first."""
        self._catch_up()
        return self._ids.get(topic.encode(errors="surrogatepass"), -1)

    def number_of(self, raw: bytes) -> int:
        """The topic's number, entering it where it is new; −1 past the limit."""
        self._catch_up()
        number = self._ids.get(raw, -1)
        if number < 0 and len(self._raw) < self.state[_LIMIT]:
            number = self._enter(raw)
        return number

    def table(self) -> tuple[int, ...]:
        """Addresses and sizes for the compiled twin; good until the table grows."""
        if not self._table:
            arrays = (self.hashes, self.places, self.lengths, self.pool, self.state)
            found = tuple(array.ctypes.data for array in arrays)
            self._table = (self.slots.ctypes.data, len(self.slots) - 1, *found, len(self.hashes), len(self.pool))
        return self._table

    def prefixes(self) -> npt.NDArray[np.uint32]:
        """Java's hash of ``topic#`` by number, as unsigned: where every index key of the topic begins."""
        known = len(self._prefixes)
        more = [jhash(name + "#") & 0xFFFFFFFF for name in self.names[known:]]
        if more:
            self._prefixes = np.concatenate([self._prefixes, np.array(more, np.uint32)])
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

    def _occupy(self, at: int, number: int) -> None:
        while self.slots[at]:
            at = (at + 1) & (len(self.slots) - 1)
        self.slots[at] = number + 1

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
    ones, mix = (1 << 64) - 1, 0x9E3779B97F4A7C15
    h = len(raw) * mix & ones
    if len(raw) >= 8:
        for at in range(0, len(raw) - 8, 8):
            h = (h ^ int.from_bytes(raw[at : at + 8], "little")) * mix & ones
            h ^= h >> 29
        h = (h ^ int.from_bytes(raw[-8:], "little")) * mix & ones
    else:
        for byte in raw:
            h = (h ^ byte) * mix & ones
    return h ^ h >> 32
