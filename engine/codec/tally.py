"""Sums over the units of a log: groups by a number, tags and producers, sizes, and sketches of keys.

Pure. All results can be merged: the sums of a log are the sums of its pieces. There are two twins; the compiled
one is :mod:`engine.codec.compiled_tally`. Sums are exact. Quantiles are within 1/64 of the size. Numbers of
different keys are within about 1.6 % (HyperLogLog with 4,096 registers).
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
MAX_SKETCHES = 4096
"""Maximum number of topics with sketches of their own; later topics share the first sketch."""
_MASK_64 = (1 << 64) - 1
_MIX = 0x9E3779B97F4A7C15
_BORN_HOST = 48
_STEPS = 5
_ALPHA = 0.7213 / (1 + 1.079 / REGISTERS)

Numbers = npt.NDArray[np.int64]


class Group(NamedTuple):
    """The sums of all rows with one key."""

    key: int
    messages: int
    bytes: int
    smallest: int
    largest: int


class Groups:
    """Row count, bytes, smallest and largest size for each 64-bit key; grows as new keys come."""

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
        """Add one row for each key and its size in bytes."""
        compiled = twin()
        if compiled is None:
            keys, sums = _sum_by_key(keys, sizes)
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
            total = self._sums[number]
            total[2] = min(total[2], row[2]) if total[0] else row[2]
            total[3] = max(total[3], row[3])
            total[:2] += row[:2]

    def _grow(self) -> None:
        self._keys = np.concatenate([self._keys, np.zeros_like(self._keys)])
        self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        self._slots = np.zeros(2 * len(self._slots), np.int32)
        for number in range(self._count):
            self._occupy(number)

    def _occupy(self, number: int) -> None:
        mask = len(self._slots) - 1
        h = (int(self._keys[number]) & _MASK_64) * _MIX & _MASK_64
        h = (h ^ h >> 29) * _MIX & _MASK_64
        slot = h >> 32 & mask
        while self._slots[slot]:
            slot = (slot + 1) & mask
        self._slots[slot] = number + 1


class UnitTexts:
    """Sums over the texts of units of all blocks: tags by number, producers, and sketches of both kinds of keys.

    ``tag`` and ``host`` hold the rows of the last block. A tag is 0 for none, −1 past the table's limit, else its
    number in ``tags`` plus one. A host is an IPv4 address as a number, −1 for IPv6.
    """

    __slots__ = ("host", "registers", "tag", "tags")

    def __init__(self, most_tags: int = 1 << 20) -> None:
        self.tags = TopicTable(most_tags)
        self.registers = np.zeros((1, 2, REGISTERS), np.uint8)
        self.tag = np.zeros(0, np.int32)
        self.host = np.zeros(0, np.int64)

    def read(self, block: UnitColumns, rows: int, topics: TopicTable) -> None:
        """Add the first ``rows`` rows of ``block``, which must be units."""
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
        sketch_count = min(topics, MAX_SKETCHES) + 1
        if len(self.registers) < sketch_count:
            larger = np.zeros(
                (max(sketch_count, min(2 * len(self.registers), MAX_SKETCHES + 1)), 2, REGISTERS), np.uint8
            )
            larger[: len(self.registers)] = self.registers
            self.registers = larger

    def _read_row(self, block: UnitColumns, row: int) -> None:
        raw = block.raw_properties(row)
        values = _last_values(raw)
        tag = values.get(b"TAGS")
        number = -1 if tag is None else self.tags.number_of(tag)
        self.tag[row] = 0 if tag is None else number + 1 if number >= 0 else -1
        host_position = int(block.offset[row]) - block.base + _BORN_HOST
        wide = bool(block.sys_flag[row] & BORN_HOST_V6)
        self.host[row] = (
            -1 if wide else int.from_bytes(block.buffer[host_position : host_position + 4].tobytes(), "big")
        )
        sketch = int(block.topic_id[row]) + 1
        sketch = 0 if sketch >= len(self.registers) else sketch
        for kind, keys in ((0, [values.get(b"UNIQ_KEY", b"")]), (1, values.get(b"KEYS", b"").split(b" "))):
            for key in keys:
                if key:
                    place, rank = _place_and_rank(key)
                    self.registers[sketch, kind, place] = max(rank, int(self.registers[sketch, kind, place]))


def ipv6_host(block: UnitColumns, row: int) -> bytes:
    """Return the 16 bytes of a unit's IPv6 born host."""
    host_position = int(block.offset[row]) - block.base + _BORN_HOST
    return block.buffer[host_position : host_position + 16].tobytes()


def size_buckets(sizes: npt.NDArray[np.int32]) -> Numbers:
    """Return the bucket of each size: its power of two in 32 steps."""
    bits: Numbers = sizes.astype(np.float64).view(np.int64) >> (52 - _STEPS)
    return bits


def bucket_size(bucket: int) -> int:
    """Return the size in the middle of a bucket."""
    lower_bound, upper_bound = np.array([bucket, bucket + 1], np.int64) << (52 - _STEPS)
    return round(float(lower_bound.view(np.float64) + upper_bound.view(np.float64)) / 2)


def quantile(buckets: dict[int, int], share: float, smallest: int, largest: int) -> int:
    """Return the size that ``share`` of the messages do not exceed, to 1/64. ``buckets`` maps bucket to messages and
    is not empty.
    """
    remaining = max(1, math.ceil(share * sum(buckets.values())))
    for bucket in sorted(buckets):
        remaining -= buckets[bucket]
        if remaining <= 0:
            return min(max(bucket_size(bucket), smallest), largest)
    return largest


def estimate_distinct(registers: npt.NDArray[np.uint8]) -> int:
    """Estimate how many different keys went into ``registers``."""
    ranks = np.bincount(registers, minlength=2)
    empty = int(ranks[0])
    raw = _ALPHA * REGISTERS * REGISTERS / float((ranks * np.exp2(-np.arange(len(ranks), dtype=np.float64))).sum())
    if raw <= 2.5 * REGISTERS and empty:
        return round(REGISTERS * math.log(REGISTERS / empty))
    return round(raw)


class KeySet:
    """A set of many texts, stored as hashes, to find the units that have one of them as a unique key or key. Only
    its array is sent between processes.

    About once in 2⁴⁴ a unit matches that has none of them: compare the texts to be certain.
    """

    __slots__ = ("slots",)

    def __init__(self, keys: Iterable[str]) -> None:
        raw = list({key.encode("utf-8", "surrogatepass") for key in keys if key})
        self.slots = np.zeros(max(64, 1 << (2 * len(raw)).bit_length()), np.uint64)
        compiled = twin()
        if compiled is not None:
            data = np.frombuffer(b"".join(raw) + bytes(8), np.uint8)
            ends = np.cumsum(np.array([len(key_bytes) for key_bytes in raw], np.int64), dtype=np.int64)
            compiled.hash_texts(data.ctypes.data, ends, self.slots)
            return
        mask = len(self.slots) - 1
        for key_bytes in raw:
            h = _hash_of(key_bytes)
            slot = h & mask
            while self.slots[slot] and int(self.slots[slot]) != h:
                slot = (slot + 1) & mask
            self.slots[slot] = h

    def __contains__(self, key: bytes) -> bool:
        h, mask = _hash_of(key), len(self.slots) - 1
        slot = h & mask
        while self.slots[slot]:
            if int(self.slots[slot]) == h:
                return True
            slot = (slot + 1) & mask
        return False

    def rows(self, block: UnitColumns, rows: int) -> npt.NDArray[np.int64]:
        """Return the rows among the first ``rows`` of a block (which must be units) that have one of the texts."""
        compiled = twin()
        if compiled is None:
            return np.array([row for row in range(rows) if self._has(block.raw_properties(row))], np.int64)
        out = np.empty(rows, np.int64)
        match_count = compiled.match_keys(
            block.buffer.ctypes.data, rows, block.properties_position, block.properties_length, self.slots, out
        )
        return out[:match_count]

    def _has(self, raw: bytes) -> bool:
        return any(key in self for key in keys_in(raw))


def keys_in(raw: bytes) -> Iterator[bytes]:
    """Yield every unique key and every piece of KEYS in property text, also those that a later pair overrides."""
    for position, length in properties.pair_spans(raw):
        name, separator, value = raw[position : position + length].removesuffix(b"\x02").partition(b"\x01")
        if separator and name == b"UNIQ_KEY" and value:
            yield value
        elif separator and name == b"KEYS":
            yield from (key for key in value.split(b" ") if key)


def _last_values(raw: bytes) -> dict[bytes, bytes]:
    """Return name → value as the compiled walks read property text: empty values vanish, the last one wins."""
    values: dict[bytes, bytes] = {}
    for position, length in properties.pair_spans(raw):
        piece = raw[position : position + length].removesuffix(b"\x02")
        name, separator, value = piece.partition(b"\x01")
        if separator and value:
            values[name] = value
    return values


def _place_and_rank(key: bytes) -> tuple[int, int]:
    h = _hash_of(key)
    low_bits = h << PRECISION & _MASK_64
    return h >> (64 - PRECISION), min(64 - low_bits.bit_length(), 64 - PRECISION) + 1


def _hash_of(key: bytes) -> int:
    h = len(key) * _MIX & _MASK_64
    if len(key) >= 8:
        for position in range(0, len(key) - 8, 8):
            h = (h ^ int.from_bytes(key[position : position + 8], "little")) * _MIX & _MASK_64
            h ^= h >> 29
        h = (h ^ int.from_bytes(key[-8:], "little")) * _MIX & _MASK_64
    else:
        for byte in key:
            h = (h ^ byte) * _MIX & _MASK_64
    h ^= h >> 33
    h = h * 0xFF51AFD7ED558CCD & _MASK_64
    h ^= h >> 33
    h = h * 0xC4CEB9FE1A85EC53 & _MASK_64
    h ^= h >> 33
    return h or 1


def _sum_by_key(keys: Numbers, sizes: npt.NDArray[np.int32]) -> tuple[Numbers, Numbers]:
    distinct_keys, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    sums = np.zeros((len(distinct_keys), 4), np.int64)
    sums[:, 0], sums[:, 2] = counts, np.iinfo(np.int64).max
    np.add.at(sums[:, 1], inverse, sizes.astype(np.int64))
    np.minimum.at(sums[:, 2], inverse, sizes)
    np.maximum.at(sums[:, 3], inverse, sizes)
    return distinct_keys, sums


class Compiled(Protocol):
    """The functions of :mod:`engine.codec.compiled_tally`."""

    def add_rows(self, *arguments: Any) -> tuple[int, int]:
        """Add rows to their groups; returns (row without room, number of groups)."""

    def read_texts(self, *arguments: Any) -> int:
        """Read tags, hosts and sketches of rows; returns the row before which the table of tags must grow."""

    def match_keys(self, *arguments: Any) -> int:
        """Write the rows that have one of many keys; returns their number."""

    def hash_texts(self, *arguments: Any) -> None:
        """Put hashes of many texts into a table."""


def twin() -> Compiled | None:
    """Return the compiled twin; None if it is not available or ``STORESCOPE_PLAIN=1`` asks for plain Python."""
    return None if unit_columns.twin() is None else _load()


@functools.cache
def _load() -> Compiled:
    return cast("Compiled", import_compiled("compiled_tally"))
