"""Which units of a fleet have one of many keys: the join of keys with units, in one walk, or two.

Tasks get the keys as hashes and give one row for each unit and key that agree; the driver compares the texts. The
second walk looks for units that share a unique key with those that were found by another key of theirs: what became of
the history of a message is in all of its units. The verdicts on them are in :mod:`engine.rules.where`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.codec import batch, properties
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.compression import unpack
from engine.codec.java import utf8
from engine.codec.message import INNER_BATCH
from engine.codec.tally import KeySet, keys_in
from engine.codec.unit_scan import Damage
from engine.pipeline import tasks

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from engine.pipeline.progress import Counter
    from engine.pipeline.splits import Split

SCHEMA = "store string, broker string, `key` string, place bigint, start bigint, uniqueKey string"
"""``start`` is null for a unit at ``place``; else the key stands at ``place`` in damage that begins at ``start``."""
_WORDS = re.compile(rb"[^\x00-\x20\x7f]+")
_PIECE_BYTES = 1 << 20
_MAX_KEY_BYTES = 1 << 10
Store = tuple[str, str | None]


@dataclass(slots=True)
class KeyPlaces:
    """Places of keys in one store: ``units`` key → offsets of units, ``damaged`` key → (place, begin of the damage),
    ``relatives`` unique key → offsets of all units that have it.
    """

    units: dict[str, list[int]] = field(default_factory=dict)
    damaged: dict[str, tuple[int, int]] = field(default_factory=dict)
    relatives: dict[str, list[int]] = field(default_factory=dict)
    _owners: dict[int, list[str]] = field(default_factory=dict)

    def relatives_of(self, keys: Iterable[str]) -> dict[str, list[int]]:
        """Return the relatives of the units that ``keys`` name; call it when all are found."""
        if not self._owners:
            for key, offsets in self.relatives.items():
                for offset in offsets:
                    self._owners.setdefault(offset, []).append(key)
        unit_offsets = (offset for key in keys for offset in self.units.get(key, ()))
        return {key: self.relatives[key] for offset in unit_offsets for key in self._owners.get(offset, ())}


def find_keys(
    spark: SparkSession, splits: Sequence[Split], keys: Iterable[str], counter: Counter | None = None
) -> dict[Store, KeyPlaces]:
    """Return the places of ``keys``, store by store, for every store of ``splits``."""
    key_set = set(keys)
    by_store: dict[Store, KeyPlaces] = {(split.store, split.broker): KeyPlaces() for split in splits}
    unique: dict[Store, set[str]] = {store: set() for store in by_store}
    for store, key, place, start, unique_key in _walk(spark, splits, key_set, counter, damage=True):
        if key in key_set and start is not None:
            damaged = by_store[store].damaged
            damaged[key] = min(damaged.get(key, (place, start)), (place, start))
        elif start is None:
            if key in key_set:
                by_store[store].units.setdefault(key, []).append(place)
            if unique_key is not None:
                unique[store].add(unique_key)
    unique_keys = {key for store in unique for key in unique[store]} - key_set
    if unique_keys:
        for store, key, place, start, _ in _walk(spark, splits, unique_keys, None, damage=False):
            if start is None and key in unique[store]:
                by_store[store].relatives.setdefault(key, []).append(place)
    for store, places_of_store in by_store.items():
        places_of_store.relatives.update(
            (key, places_of_store.units[key]) for key in unique[store] & key_set if key in places_of_store.units
        )
    for places_of_store in by_store.values():
        for listed in (places_of_store.units, places_of_store.relatives):
            for key, places in listed.items():
                listed[key] = sorted(set(places))
    return by_store


def _walk(
    spark: SparkSession, splits: Sequence[Split], keys: set[str], counter: Counter | None, damage: bool
) -> Iterator[tuple[Store, str, int, int | None, str | None]]:
    shares = tasks.share_out(splits, spark.sparkContext.defaultParallelism)
    if not shares or not keys:
        return
    hashes = spark.sparkContext.broadcast(KeySet(keys).slots)
    try:
        frame = tasks.run_tasks(spark, shares, partial(_task, hashes, counter, damage), SCHEMA)
        for batch in frame.toArrow().to_batches():
            for store, broker, key, place, start, unique_key in zip(
                *(c.to_pylist() for c in batch.columns), strict=True
            ):
                yield (store, broker), key, place, start, unique_key
    finally:
        hashes.unpersist()


def _task(hashes: Any, counter: Counter | None, damage: bool, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    keys = KeySet(())
    keys.slots = hashes.value
    units = 0
    for split in tasks.join_splits(splits):
        rows = []
        walked = [0]
        for row in matches(split, keys, damage, walked):
            rows.append(row)
            if len(rows) >= 1 << 14:
                yield _batch(rows)
                rows = []
        if rows:
            yield _batch(rows)
        units += walked[0]
    tasks.count_splits(counter, splits, units)


Row = tuple[str, str | None, str, int, int | None, str | None]


def matches(split: Split, keys: KeySet, damage: bool = True, walked: list[int] | None = None) -> Iterator[Row]:
    """Yield rows of :data:`SCHEMA` for one split: each unit under each of its keys that is in ``keys``, and keys in
    damage.

    ``walked`` gets the number of units that were looked at added to its only element.
    """
    from engine.pipeline.splits import read_split

    for block in read_split(split, crc=False, with_tags=False):
        if isinstance(block, UnitColumns):
            units = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
            if walked is not None:
                walked[0] += units
            for row in keys.rows(block, units).tolist():
                raw = block.raw_properties(row)
                unique_key = properties.decode(raw).get(properties.UNIQUE_KEY)
                for key in dict.fromkeys(keys_in(raw)):
                    if key in keys:
                        yield (split.store, split.broker, utf8(key), int(block.offset[row]), None, unique_key)
            yield from _in_batches(split, block, units, keys)
        elif isinstance(block, Damage) and damage:
            yield from _in_damage(split, block, keys)


def _in_batches(split: Split, block: UnitColumns, units: int, keys: KeySet) -> Iterator[Row]:
    """Yield keys of messages inside batch units: the place is that of the unit."""
    for row in np.flatnonzero(block.sys_flag[:units] & INNER_BATCH).tolist():
        unique_key = properties.decode(block.raw_properties(row)).get(properties.UNIQUE_KEY)
        unit_keys: set[bytes] = set(keys_in(block.raw_properties(row)))
        for member in batch.walk(unpack(block.body(row), int(block.sys_flag[row])).data):
            for key in keys_in(member.properties_raw) if isinstance(member, batch.Member) else ():
                if key not in unit_keys and key in keys:
                    yield (split.store, split.broker, utf8(key), int(block.offset[row]), None, unique_key)
                unit_keys.add(key)


def _in_damage(split: Split, block: Damage, keys: KeySet) -> Iterator[Row]:
    """Yield keys that stand as words in bytes that are no unit."""
    from engine.errors import CannotRead
    from engine.pipeline.storage import open_path

    end = min(block.offset + block.size, split.file_start + split.file_size)
    try:
        with open_path(split.path) as file:
            for offset in range(block.offset, end, _PIECE_BYTES):
                data = file.read(offset - split.file_start, min(_PIECE_BYTES + _MAX_KEY_BYTES, end - offset))
                for word in _WORDS.finditer(data):
                    if word.start() < _PIECE_BYTES and word[0] in keys:
                        yield (split.store, split.broker, utf8(word[0]), offset + word.start(), block.offset, None)
    except (CannotRead, OSError):
        return


def _batch(rows: list[Row]) -> pa.RecordBatch:
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    kinds = (text, text, text, number, number, text)
    names = ("store", "broker", "key", "place", "start", "uniqueKey")
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(zip(names, kinds, strict=True))))
