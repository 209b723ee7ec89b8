"""Build index entries of many keys at once: their hashes and their chains, with the same result as RocketMQ's one by
one (docs/formats/index-file.md#insert, #keys).

Pure: takes the slots of one file and the keys' hashes, returns entries and the new header. Two twins keep one
contract, chosen as in :mod:`engine.codec.columns`.

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
from engine.sentences import sentence

_SLOT, _ENTRY = struct.Struct(">i"), struct.Struct(">iqii")
MAX_DIFFERENCE_S = (1 << 31) - 1
UInt32 = npt.NDArray[np.uint32]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Raw = npt.NDArray[np.uint8]


class IndexKeys(NamedTuple):
    """The keys that the units of a block add to the index, in order (docs/formats/index-file.md#keys): one item per
    key in each array.

    ``units`` is the number of units; ``later_units`` is True if some of them come after the last key's unit.

    """

    key_hash: Int32
    phy_offset: Int64
    store_timestamp: Int64
    units: int
    later_units: bool


def build_keys(columns: UnitColumns, prefixes: UInt32, rows: Int64, *, tags: bool) -> IndexKeys:
    """Return the keys of the units in ``rows`` (ascending row numbers, no blanks); rolled back units have none
    (docs/formats/transactions.md#queue-entries).

    ``prefixes`` are those of the topics, see :meth:`engine.codec.topic_table.TopicTable.prefixes`. With ``tags``
    units have tag entries, as since RocketMQ 5.4.

    """
    row, key_hash = hashes_of(columns, prefixes, WITH_TAGS if tags else NO_TAGS)
    rolled_back = columns.sys_flag[rows] & TRANSACTION_MASK == ROLLBACK
    if rolled_back.any() or len(rows) < columns.count:
        is_wanted = np.zeros(columns.count, np.bool_)
        is_wanted[rows[~rolled_back]] = True
        selected = is_wanted[row]
        row, key_hash = row[selected], key_hash[selected]
    later_units = bool(len(rows)) and (not len(row) or int(row[-1]) < int(rows[-1]))
    return IndexKeys(key_hash, columns.physical_offset[row], columns.store_timestamp[row], len(rows), later_units)


def remaining_entries(header: IndexHeader, geometry: Geometry) -> int:
    """Return how many entries the file can still take. Entry 0 is never used."""
    return max(geometry.entries - max(header.index_count, 1), 0)


def time_difference(begin_timestamp: int, store_timestamp: int) -> int:
    """Return the seconds (rounded to 0) that an entry stores; ``begin_timestamp`` is the header's before the entry
    is put.
    """
    if begin_timestamp <= 0:
        return 0
    return min(max(divide(store_timestamp - begin_timestamp, 1000), 0), MAX_DIFFERENCE_S)


def put_entries(
    file: Raw, header: IndexHeader, geometry: Geometry, key_hash: Int32, phy_offset: Int64, store_timestamp: Int64
) -> IndexHeader:
    """Write entries for ``key_hash`` into the bytes of a complete ``file`` and return its new header, which is not
    written.

    The three arrays have one item per key, at most as many as :func:`remaining_entries` returns. Every entry is
    written before its slot, so a concurrent reader never follows a slot to bytes that are not there.

    """
    count = len(key_hash)
    if not count:
        return header
    if count > remaining_entries(header, geometry) or len(file) < geometry.file_size:
        raise ValueError(
            sentence(
                "expected at most {remaining_entries:,} keys for a file of {file_size:,} bytes",
                remaining_entries=remaining_entries(header, geometry),
                file_size=geometry.file_size,
            )
        )
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
    """:func:`put_entries` for one key, without the cost of numpy; the file must have room."""
    number = max(header.index_count, 1)
    slot = geometry.slot_position(key_hash % geometry.slots)
    (previous,) = _SLOT.unpack_from(file, slot)
    if not 0 < previous <= number:
        previous = 0
    seconds = time_difference(header.begin_timestamp, store_timestamp)
    _ENTRY.pack_into(file, geometry.entry_position(number), key_hash, phy_offset, seconds, previous)
    _SLOT.pack_into(file, slot, number)
    is_first = number == 1
    return IndexHeader(
        store_timestamp if is_first else header.begin_timestamp,
        store_timestamp,
        phy_offset if is_first else header.begin_phy_offset,
        phy_offset,
        header.hash_slot_count + (previous == 0),
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
    """Write entries and slots by numpy; returns how many slots were empty before."""
    count = len(key_hash)
    slots = file[geometry.slot_position(0) : geometry.entry_position(0)].view(">i4")
    slot = key_hash.astype(np.int64) % geometry.slots
    order = np.argsort(slot, kind="stable")
    ordered = slot[order]
    heads = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    # A slot's value counts only if it is an entry that exists when the key is put: a number below the next one.
    old_heads = slots[ordered].astype(np.int64)
    old_heads[(old_heads <= 0) | (old_heads > number + order)] = 0
    previous = np.where(heads, old_heads, np.concatenate([[0], number + order[:-1]]))
    entries = np.empty(count, INDEX_ENTRY)
    entries["key_hash"], entries["phy_offset"] = key_hash, phy_offset
    entries["prev"][order] = previous
    entries["time_diff"] = _differences(first_begin, begin, store_timestamp)
    position = geometry.entry_position(number)
    file[position : position + entries.nbytes] = entries.view(np.uint8)
    is_last = np.concatenate([heads[1:], [True]])
    slots[ordered[is_last]] = number + order[is_last]
    return int(np.count_nonzero(heads & (old_heads == 0)))


def _differences(first_begin: int, begin: int, store_timestamp: Int64) -> Int64:
    """Return the seconds of every key; the first one counts from the time in the header before it
    (docs/formats/index-file.md#insert).
    """
    elapsed_ms = store_timestamp - begin
    seconds = np.where(elapsed_ms < 0, 0, elapsed_ms // 1000)
    if begin <= 0:
        seconds[:] = 0
    seconds[0] = time_difference(first_begin, int(store_timestamp[0]))
    return np.minimum(seconds, MAX_DIFFERENCE_S)


class UnitKeys(NamedTuple):
    """All keys that the index may hold for the rows of a block, in the order of its entries: UNIQ_KEY first, then
    each piece of KEYS, last the tags (docs/formats/index-file.md#keys). One item per key in each array.
    """

    row: Int32
    key_hash: Int32
    is_tag: npt.NDArray[np.bool_]

    def choose(self, chosen: npt.NDArray[np.bool_]) -> UnitKeys:
        """Return the keys for which ``chosen`` is true."""
        return UnitKeys(self.row[chosen], self.key_hash[chosen], self.is_tag[chosen])


def key_hashes(columns: UnitColumns, topics: TopicTable) -> UnitKeys:
    """Return the keys of these rows, including their tags.

    ROLLBACK units are included, although RocketMQ does not index them: the caller must skip them.

    """
    row, key_hash = hashes_of(columns, topics.prefixes(), MARKED_TAGS)
    is_tag = row < 0
    return UnitKeys(np.where(is_tag, ~row, row), key_hash, is_tag)


def hashes_of(columns: UnitColumns, prefixes: npt.NDArray[np.uint32], tags: int) -> tuple[Int32, Int32]:
    """Return (row, hash) of every key of these rows.

    ``prefixes`` are :meth:`TopicTable.prefixes` of their topics: another thread may go on adding topics
    meanwhile. ``tags`` is NO_TAGS, WITH_TAGS or MARKED_TAGS (:mod:`engine.codec.machine_code`).

    """
    compiled = twin()
    rows = columns.count - int(columns.count > 0 and columns.kind[columns.count - 1] == BLANK)
    if compiled is None:
        row_pairs = [pair for row in range(rows) for pair in _row_hashes(columns, row, tags)]
        pairs = np.array(row_pairs, np.int32).reshape(-1, 2)
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
            row_hashes = _row_hashes(columns, row, tags)
            while filled + len(row_hashes) > len(out_row):
                out_row, out_hash = np.resize(out_row, 2 * len(out_row)), np.resize(out_hash, 2 * len(out_hash))
            for out, values in zip((out_row, out_hash), zip(*row_hashes, strict=True), strict=False):
                out[filled : filled + len(row_hashes)] = values
            row, filled = row + 1, filled + len(row_hashes)
    return out_row[:filled], out_hash[:filled]


def _row_hashes(columns: UnitColumns, row: int, tags: int) -> list[tuple[int, int]]:
    """Return (row, hash) of each key of one row."""
    topic = utf8(columns.raw_topic(row))
    keys = index_keys.index_keys(properties.decode(columns.raw_properties(row)), tags=tags != NO_TAGS)
    marked = ~row if tags == MARKED_TAGS else row
    return [(marked if key.index_type == index_keys.TAG else row, index_key_hash(topic, key.text)) for key in keys]
