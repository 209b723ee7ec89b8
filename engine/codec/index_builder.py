"""Index entries of many keys at once: their hashes, and how they are chained to the slots, as RocketMQ chains them one
by one (docs/formats/index-file.md#insert, #keys).

Pure: the slots of one file and the keys' hashes in, entries and the new header out. Two twins keep one contract, chosen
as in :mod:`engine.codec.columns`.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import dispatch_twin, index_keys, properties
from engine.codec.columns import BLANK, UnitColumns, twin
from engine.codec.dtypes import INDEX_ENTRY
from engine.codec.index import Geometry, IndexHeader
from engine.codec.java import divide, index_key_hash, utf8
from engine.codec.machine_code import MARKED_TAGS, NO_TAGS, WITH_TAGS
from engine.codec.message import ROLLBACK, TRANSACTION_MASK
from engine.codec.topic_table import TopicTable

_SLOT, _ENTRY = struct.Struct(">i"), struct.Struct(">iqii")
LARGEST_DIFFERENCE = (1 << 31) - 1
UInt32 = npt.NDArray[np.uint32]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Raw = npt.NDArray[np.uint8]


class IndexKeys(NamedTuple):
    """What the units of a block put into the index, in order (docs/formats/index-file.md#keys): one item a key in each
    array.

    ``units`` is the number of units, ``later_units`` says that some of them stand behind the last key's.
    """

    key_hash: Int32
    phy_offset: Int64
    store_timestamp: Int64
    units: int
    later_units: bool


def build_keys(columns: UnitColumns, prefixes: UInt32, rows: Int64, *, tags: bool) -> IndexKeys:
    """The keys of the units in ``rows`` (ascending row numbers, no blanks); those rolled back have none
    (docs/formats/transactions.md#queue-entries). ``prefixes`` are those of the topics, see
    :meth:`engine.codec.topic_table.TopicTable.prefixes`. With ``tags`` units have tag entries, as since RocketMQ 5.4.
    """
    row, key_hash = hashes_of(columns, prefixes, WITH_TAGS if tags else NO_TAGS)
    rolled_back = columns.sys_flag[rows] & TRANSACTION_MASK == ROLLBACK
    if rolled_back.any() or len(rows) < columns.count:
        wanted = np.zeros(columns.count, np.bool_)
        wanted[rows[~rolled_back]] = True
        kept = wanted[row]
        row, key_hash = row[kept], key_hash[kept]
    later = bool(len(rows)) and (not len(row) or int(row[-1]) < int(rows[-1]))
    return IndexKeys(key_hash, columns.physical_offset[row], columns.store_timestamp[row], len(rows), later)


def room(header: IndexHeader, geometry: Geometry) -> int:
    """How many entries the file still takes: it holds one less than its number of entries, the first is never used."""
    return max(geometry.entries - max(header.index_count, 1), 0)


def time_difference(begin_timestamp: int, store_timestamp: int) -> int:
    """Seconds (rounded to 0) that an entry stores; ``begin_timestamp`` is the header's before the entry is put."""
    if begin_timestamp <= 0:
        return 0
    return min(max(divide(store_timestamp - begin_timestamp, 1000), 0), LARGEST_DIFFERENCE)


def put_entries(
    file: Raw, header: IndexHeader, geometry: Geometry, key_hash: Int32, phy_offset: Int64, store_timestamp: Int64
) -> IndexHeader:
    """Write entries for ``key_hash`` into the bytes of a whole ``file`` (header left alone) and give its new header.

    The three arrays have one item a key, and not more than :func:`room` tells. Every entry is written before its slot,
    so that one who reads meanwhile never follows a slot into bytes that are not there.
    """
    count = len(key_hash)
    if not count:
        return header
    if count > room(header, geometry) or len(file) < geometry.file_size:
        raise ValueError(f"expected at most {room(header, geometry):,} keys for a file of {geometry.file_size:,} bytes")
    number = max(header.index_count, 1)
    begin = int(store_timestamp[0]) if number <= 1 else header.begin_timestamp
    begin_offset = int(phy_offset[0]) if number <= 1 else header.begin_phy_offset
    compiled = dispatch_twin.twin()
    if compiled is None:
        new_slots = _put_plain(
            file, header.begin_timestamp, begin, number, geometry, key_hash, phy_offset, store_timestamp
        )
    else:
        new_slots = compiled.chain_entries(
            file.ctypes.data,
            header.begin_timestamp,
            begin,
            number,
            geometry.slots,
            key_hash,
            phy_offset,
            store_timestamp,
        )
    return replace(
        header,
        begin_timestamp=begin,
        begin_phy_offset=begin_offset,
        end_timestamp=int(store_timestamp[-1]),
        end_phy_offset=int(phy_offset[-1]),
        hash_slot_count=header.hash_slot_count + int(new_slots),
        index_count=number + count,
    )


def put_entry(
    file: memoryview, header: IndexHeader, geometry: Geometry, key_hash: int, phy_offset: int, store_timestamp: int
) -> IndexHeader:
    """:func:`put_entries` for one key, without numpy's price; the file must have room."""
    number = max(header.index_count, 1)
    slot = geometry.slot_position(key_hash % geometry.slots)
    (old,) = _SLOT.unpack_from(file, slot)
    if not 0 < old <= number:
        old = 0
    seconds = time_difference(header.begin_timestamp, store_timestamp)
    _ENTRY.pack_into(file, geometry.entry_position(number), key_hash, phy_offset, seconds, old)
    _SLOT.pack_into(file, slot, number)
    first = number == 1
    return IndexHeader(
        store_timestamp if first else header.begin_timestamp,
        store_timestamp,
        phy_offset if first else header.begin_phy_offset,
        phy_offset,
        header.hash_slot_count + (old == 0),
        number + 1,
    )


def _put_plain(
    file: Raw,
    first_begin: int,
    begin: int,
    number: int,
    geometry: Geometry,
    key_hash: Int32,
    phy_offset: Int64,
    store_timestamp: Int64,
) -> int:
    """Write entries and slots by numpy; gives how many slots were empty before."""
    count = len(key_hash)
    slots = file[geometry.slot_position(0) : geometry.entry_position(0)].view(">i4")
    slot = key_hash.astype(np.int64) % geometry.slots
    order = np.argsort(slot, kind="stable")
    ordered = slot[order]
    heads = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    # A slot's value counts only where it names an entry that exists when the key is put: numbers below the next one.
    old = slots[ordered].astype(np.int64)
    old[(old <= 0) | (old > number + order)] = 0
    previous = np.where(heads, old, np.concatenate([[0], number + order[:-1]]))
    entries = np.empty(count, INDEX_ENTRY)
    entries["key_hash"], entries["phy_offset"] = key_hash, phy_offset
    entries["prev"][order] = previous
    entries["time_diff"] = _differences(first_begin, begin, store_timestamp)
    at = geometry.entry_position(number)
    file[at : at + entries.nbytes] = entries.view(np.uint8)
    last = np.concatenate([heads[1:], [True]])
    slots[ordered[last]] = number + order[last]
    return int(np.count_nonzero(heads & (old == 0)))


def _differences(first_begin: int, begin: int, store_timestamp: Int64) -> Int64:
    """Seconds of every key; the first one counts from the time that stood in the header before it
    (docs/formats/index-file.md#insert).
    """
    passed = store_timestamp - begin
    seconds = np.where(passed < 0, 0, passed // 1000)
    if begin <= 0:
        seconds[:] = 0
    seconds[0] = time_difference(first_begin, int(store_timestamp[0]))
    return np.minimum(seconds, LARGEST_DIFFERENCE)


class UnitKeys(NamedTuple):
    """Everything that the index may hold for the rows of a block, in the order of its entries: UNIQ_KEY first, then
    each piece of KEYS, last the tags (docs/formats/index-file.md#keys). One item a key in each array.
    """

    row: Int32
    key_hash: Int32
    is_tag: npt.NDArray[np.bool_]

    def choose(self, chosen: npt.NDArray[np.bool_]) -> UnitKeys:
        """Those of the keys for which ``chosen`` is true."""
        return UnitKeys(self.row[chosen], self.key_hash[chosen], self.is_tag[chosen])


def key_hashes(columns: UnitColumns, topics: TopicTable) -> UnitKeys:
    """Return the keys of these rows, their tags among them.

    ROLLBACK units, which RocketMQ does not index, are left to the caller: their rows are here too.
    """
    row, key_hash = hashes_of(columns, topics.prefixes(), MARKED_TAGS)
    is_tag = row < 0
    return UnitKeys(np.where(is_tag, ~row, row), key_hash, is_tag)


def hashes_of(columns: UnitColumns, prefixes: npt.NDArray[np.uint32], tags: int) -> tuple[Int32, Int32]:
    """Return (row, hash) of every key of these rows, with :meth:`TopicTable.prefixes` of their topics: another thread
    may go on adding topics meanwhile. ``tags`` is NO_TAGS, WITH_TAGS or MARKED_TAGS (:mod:`engine.codec.machine_code`).
    """
    compiled = twin()
    rows = columns.count - int(columns.count > 0 and columns.kind[columns.count - 1] == BLANK)
    if compiled is None:
        found = [pair for row in range(rows) for pair in _row_hashes(columns, row, tags)]
        pairs = np.array(found, np.int32).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()
    out_row, out_hash = np.empty(4 * rows + 64, np.int32), np.empty(4 * rows + 64, np.int32)
    row, filled = 0, 0
    while row < rows:
        row, filled = compiled.key_hashes(
            columns.buffer.ctypes.data,
            len(columns.buffer),
            row,
            rows,
            columns.topic_id,
            columns.properties_position,
            columns.properties_length,
            prefixes,
            out_row,
            out_hash,
            filled,
            tags,
        )
        if row < rows:
            own = _row_hashes(columns, row, tags)
            while filled + len(own) > len(out_row):
                out_row, out_hash = np.resize(out_row, 2 * len(out_row)), np.resize(out_hash, 2 * len(out_hash))
            for out, values in zip((out_row, out_hash), zip(*own, strict=True), strict=False):
                out[filled : filled + len(own)] = values
            row, filled = row + 1, filled + len(own)
    return out_row[:filled], out_hash[:filled]


def _row_hashes(columns: UnitColumns, row: int, tags: int) -> list[tuple[int, int]]:
    """(row, hash) of each key of one row."""
    topic = utf8(columns.raw_topic(row))
    keys = index_keys.index_keys(properties.decode(columns.raw_properties(row)), tags=tags != NO_TAGS)
    marked = ~row if tags == MARKED_TAGS else row
    return [(marked if key.index_type == index_keys.TAG else row, index_key_hash(topic, key.text)) for key in keys]
