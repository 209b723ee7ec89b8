"""Units added up while a log is walked: groups by a number, tags and producers, sizes, and sketches of keys.

Pure. Everything here can be merged: a log that was walked in pieces has the sums of its pieces. Two twins again, the
compiled ones in :mod:`engine.codec.compiled_tally`. Sums are exact; quantiles are within 1/64 of the size, numbers of
different keys within about 1.6 % (HyperLogLog with 4,096 registers).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from engine.codec import columns as unit_columns
from engine.codec import properties
from engine.codec.columns import UnitColumns
from engine.codec.machine_code_build import import_compiled
from engine.codec.message import BORN_HOST_V6
from engine.codec.topic_table import TopicTable

PRECISION = 12
REGISTERS = 1 << PRECISION
MOST_SKETCHES = 4096
"""Topics with sketches of their own; later ones share the first."""
_ONES = (1 << 64) - 1
_MIX = 0x9E3779B97F4A7C15
_BORN_HOST = 48
_STEPS = 5
_ALPHA = 0.7213 / (1 + 1.079 / REGISTERS)

Numbers = npt.NDArray[np.int64]


class Group(NamedTuple):
    """What was added up under one number."""

    key: int
    messages: int
    bytes: int
    smallest: int
    largest: int


class Groups:
    """Rows, bytes, smallest and largest by a 64-bit number; grows as new numbers come."""

    __slots__ = ("_count", "_keys", "_slots", "_sums")

    def __init__(self) -> None:
        self._count = 0
        self._slots = np.zeros(1 << 9, np.int32)
        self._keys = np.zeros(1 << 8, np.int64)
        self._sums = np.zeros((1 << 8, 4), np.int64)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Group]:
        for key, sums in zip(self._keys[: self._count].tolist(), self._sums[: self._count].tolist(), strict=True):
            yield Group(key, *sums)

    def add(self, keys: Numbers, sizes: npt.NDArray[np.int32]) -> None:
        """One row each: its number and its size in bytes."""
        compiled = twin()
        if compiled is None:
            keys, sums = _summed(keys, sizes)
            self._merge(keys, sums)
            return
        row = 0
        while True:
            row, self._count = compiled.add_rows(keys, sizes, row, self._slots, self._keys, self._sums, self._count)
            if row == len(keys):
                return
            self._grow()

    def _merge(self, keys: Numbers, sums: Numbers) -> None:
        places = {key: number for number, key in enumerate(self._keys[: self._count].tolist())}
        for key, row in zip(keys.tolist(), sums, strict=True):
            number = places.get(key, -1)
            if number < 0:
                if self._count == len(self._keys):
                    self._grow()
                number = self._count
                self._count += 1
                self._keys[number] = key
                self._occupy(number)
            seen = self._sums[number]
            seen[2] = min(seen[2], row[2]) if seen[0] else row[2]
            seen[3] = max(seen[3], row[3])
            seen[:2] += row[:2]

    def _grow(self) -> None:
        self._keys = np.concatenate([self._keys, np.zeros_like(self._keys)])
        self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        self._slots = np.zeros(2 * len(self._slots), np.int32)
        for number in range(self._count):
            self._occupy(number)

    def _occupy(self, number: int) -> None:
        mask = len(self._slots) - 1
        h = (int(self._keys[number]) & _ONES) * _MIX & _ONES
        h = (h ^ h >> 29) * _MIX & _ONES
        at = h >> 32 & mask
        while self._slots[at]:
            at = (at + 1) & mask
        self._slots[at] = number + 1


class UnitTexts:
    """What the texts of units say, over all blocks: tags by number, producers, and sketches of both kinds of keys.

    ``tag`` and ``host`` hold the last block's rows: 0 no tag, −1 a tag past the table's limit, else one more than its
    number in ``tags``; the host is an IPv4 address as a number, −1 for IPv6.
    """

    __slots__ = ("host", "registers", "tag", "tags")

    def __init__(self, most_tags: int = 1 << 20) -> None:
        self.tags = TopicTable(most_tags)
        self.registers = np.zeros((1, 2, REGISTERS), np.uint8)
        self.tag = np.zeros(0, np.int32)
        self.host = np.zeros(0, np.int64)

    def read(self, block: UnitColumns, rows: int, topics: TopicTable) -> None:
        """The first ``rows`` rows of ``block``, which are units."""
        self._make_room(rows, len(topics))
        compiled = twin()
        if compiled is None:
            for row in range(rows):
                self._read_row(block, row)
            return
        row = 0
        while True:
            row = compiled.read_texts(
                block.buffer.ctypes.data,
                len(block.buffer),
                row,
                rows,
                block.base,
                block.offset,
                block.sys_flag,
                block.topic_id,
                block.properties_position,
                block.properties_length,
                self.tags.table(),
                self.tag,
                self.host,
                self.registers,
            )
            if row == rows:
                return
            self.tags.grow(int(block.properties_length[row]))

    def _make_room(self, rows: int, topics: int) -> None:
        if len(self.tag) < rows:
            self.tag, self.host = np.zeros(rows, np.int32), np.zeros(rows, np.int64)
        wanted = min(topics, MOST_SKETCHES) + 1
        if len(self.registers) < wanted:
            more = np.zeros((max(wanted, min(2 * len(self.registers), MOST_SKETCHES + 1)), 2, REGISTERS), np.uint8)
            more[: len(self.registers)] = self.registers
            self.registers = more

    def _read_row(self, block: UnitColumns, row: int) -> None:
        raw = block.raw_properties(row)
        found = _last_values(raw)
        tag = found.get(b"TAGS")
        number = -1 if tag is None else self.tags.number_of(tag)
        self.tag[row] = 0 if tag is None else number + 1 if number >= 0 else -1
        at = int(block.offset[row]) - block.base + _BORN_HOST
        wide = bool(block.sys_flag[row] & BORN_HOST_V6)
        self.host[row] = -1 if wide else int.from_bytes(block.buffer[at : at + 4].tobytes(), "big")
        sketch = int(block.topic_id[row]) + 1
        sketch = 0 if sketch >= len(self.registers) else sketch
        for kind, keys in ((0, [found.get(b"UNIQ_KEY", b"")]), (1, found.get(b"KEYS", b"").split(b" "))):
            for key in keys:
                if key:
                    place, rank = _place_and_rank(key)
                    self.registers[sketch, kind, place] = max(rank, int(self.registers[sketch, kind, place]))


def wide_host(block: UnitColumns, row: int) -> bytes:
    """The 16 bytes of the IPv6 address that a unit was born at."""
    at = int(block.offset[row]) - block.base + _BORN_HOST
    return block.buffer[at : at + 16].tobytes()


def size_buckets(sizes: npt.NDArray[np.int32]) -> Numbers:
    """The bucket of each size: its power of two in 32 steps."""
    bits: Numbers = sizes.astype(np.float64).view(np.int64) >> (52 - _STEPS)
    return bits


def bucket_size(bucket: int) -> int:
    """The size in the middle of a bucket."""
    low, high = np.array([bucket, bucket + 1], np.int64) << (52 - _STEPS)
    return round(float(low.view(np.float64) + high.view(np.float64)) / 2)


def quantile(buckets: dict[int, int], share: float, smallest: int, largest: int) -> int:
    """The size that ``share`` of the messages do not exceed, to 1/64; ``buckets``: bucket → messages, at least one."""
    wanted = max(1, math.ceil(share * sum(buckets.values())))
    for bucket in sorted(buckets):
        wanted -= buckets[bucket]
        if wanted <= 0:
            return min(max(bucket_size(bucket), smallest), largest)
    return largest


def different(registers: npt.NDArray[np.uint8]) -> int:
    """About how many different keys went into ``registers``."""
    ranks = np.bincount(registers, minlength=2)
    empty = int(ranks[0])
    raw = _ALPHA * REGISTERS * REGISTERS / float((ranks * np.exp2(-np.arange(len(ranks), dtype=np.float64))).sum())
    if raw <= 2.5 * REGISTERS and empty:
        return round(REGISTERS * math.log(REGISTERS / empty))
    return round(raw)


class KeySet:
    """Many texts, as hashes: which units have one of them as a unique key or among their keys. Travels as its array.

    A unit that is told may, once in 2⁴⁴ or so, have none: whoever wants to be sure compares the texts.
    """

    __slots__ = ("slots",)

    def __init__(self, keys: Iterable[str]) -> None:
        raw = list({key.encode("utf-8", "surrogatepass") for key in keys if key})
        self.slots = np.zeros(max(64, 1 << (2 * len(raw)).bit_length()), np.uint64)
        compiled = twin()
        if compiled is not None:
            data = np.frombuffer(b"".join(raw) + bytes(8), np.uint8)
            ends = np.cumsum(np.array([len(one) for one in raw], np.int64), dtype=np.int64)
            compiled.hash_texts(data.ctypes.data, ends, self.slots)
            return
        mask = len(self.slots) - 1
        for one in raw:
            h = _hash_of(one)
            at = h & mask
            while self.slots[at] and int(self.slots[at]) != h:
                at = (at + 1) & mask
            self.slots[at] = h

    def __contains__(self, key: bytes) -> bool:
        h, mask = _hash_of(key), len(self.slots) - 1
        at = h & mask
        while self.slots[at]:
            if int(self.slots[at]) == h:
                return True
            at = (at + 1) & mask
        return False

    def rows(self, block: UnitColumns, rows: int) -> npt.NDArray[np.int64]:
        """Of the first ``rows`` rows of a block, which are units, those that have one of the texts."""
        compiled = twin()
        if compiled is None:
            return np.array([row for row in range(rows) if self._has(block.raw_properties(row))], np.int64)
        out = np.empty(rows, np.int64)
        found = compiled.match_keys(
            block.buffer.ctypes.data, rows, block.properties_position, block.properties_length, self.slots, out
        )
        return out[:found]

    def _has(self, raw: bytes) -> bool:
        return any(key in self for key in keys_in(raw))


def keys_in(raw: bytes) -> Iterator[bytes]:
    """Every unique key and every piece of KEYS in property text, those that a later pair overrules too."""
    for at, length in properties.spans(raw):
        name, there, value = raw[at : at + length].removesuffix(b"\x02").partition(b"\x01")
        if there and name == b"UNIQ_KEY" and value:
            yield value
        elif there and name == b"KEYS":
            yield from (key for key in value.split(b" ") if key)


def _last_values(raw: bytes) -> dict[bytes, bytes]:
    """Name → value as the compiled walks read property text: empty values vanish, the last one wins."""
    found: dict[bytes, bytes] = {}
    for at, length in properties.spans(raw):
        piece = raw[at : at + length].removesuffix(b"\x02")
        name, there, value = piece.partition(b"\x01")
        if there and value:
            found[name] = value
    return found


def _place_and_rank(key: bytes) -> tuple[int, int]:
    h = _hash_of(key)
    rest = h << PRECISION & _ONES
    return h >> (64 - PRECISION), min(64 - rest.bit_length(), 64 - PRECISION) + 1


def _hash_of(key: bytes) -> int:
    h = len(key) * _MIX & _ONES
    if len(key) >= 8:
        for at in range(0, len(key) - 8, 8):
            h = (h ^ int.from_bytes(key[at : at + 8], "little")) * _MIX & _ONES
            h ^= h >> 29
        h = (h ^ int.from_bytes(key[-8:], "little")) * _MIX & _ONES
    else:
        for byte in key:
            h = (h ^ byte) * _MIX & _ONES
    h ^= h >> 33
    h = h * 0xFF51AFD7ED558CCD & _ONES
    h ^= h >> 33
    h = h * 0xC4CEB9FE1A85EC53 & _ONES
    h ^= h >> 33
    return h or 1


def _summed(keys: Numbers, sizes: npt.NDArray[np.int32]) -> tuple[Numbers, Numbers]:
    found, where, counts = np.unique(keys, return_inverse=True, return_counts=True)
    sums = np.zeros((len(found), 4), np.int64)
    sums[:, 0], sums[:, 2] = counts, np.iinfo(np.int64).max
    np.add.at(sums[:, 1], where, sizes.astype(np.int64))
    np.minimum.at(sums[:, 2], where, sizes)
    np.maximum.at(sums[:, 3], where, sizes)
    return found, sums


class Compiled(Protocol):
    """The functions of :mod:`engine.codec.compiled_tally`."""

    def add_rows(self, *arguments: Any) -> tuple[int, int]:
        """Rows into their groups; gives (row without room, groups)."""

    def read_texts(self, *arguments: Any) -> int:
        """Tags, hosts and sketches of rows; gives the row before which the table of tags must grow."""

    def match_keys(self, *arguments: Any) -> int:
        """Rows that have one of many keys; gives how many."""

    def hash_texts(self, *arguments: Any) -> None:
        """Hashes of many texts into a table."""


def twin() -> Compiled | None:
    """The compiled twin; None where only plain Python is to be had, or ``STORESCOPE_PLAIN=1`` asks for it."""
    return None if unit_columns.twin() is None else _load()


@functools.cache
def _load() -> Compiled:
    return cast("Compiled", import_compiled("compiled_tally"))
