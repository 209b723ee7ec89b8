"""``rocketmq-index``: one row for each entry of the index files of one store, or of many
(docs/formats/index-file.md#layout).

The rows are those of ``storescope index --entries``. A file that cannot be read as an index file is one row of the type
``damage``. Options: ``path``, ``broker``, ``columns``, ``headers``, ``unreadable`` (with ``fail`` the read fails
instead of giving that row). Conditions on store and broker leave whole stores unread. With ``headers`` = ``trust``,
conditions on storeTimestamp and phyOffset skip files by their headers; this is an option because a wrong header, or a
clock that was set back, would hide rows. Spark's log reports how much is left unread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from engine.codec.dtypes import INDEX_ENTRY
from engine.codec.index import ENTRY_SIZE, HEADER_SIZE, Geometry, IndexHeader, decode_header, derive_geometry
from engine.errors import CannotRead
from engine.files.layout import parse_file_name
from engine.pipeline import filters, schema
from engine.pipeline.defaults import PART_BYTES
from engine.pipeline.files import StorePlace
from engine.pipeline.filters import QueryLimits
from engine.pipeline.part_source import BATCH_ROWS, PartReader, PartSource, batch_of, damage_batch, whole
from engine.pipeline.pruning import SLACK_MS
from engine.pipeline.splits import SkippedRange
from engine.pipeline.storage import FolderEntry, OpenFile, join, open_path, storage_of
from engine.pipeline.undecoded import rocksdb_index
from engine.sentences import sentence

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class IndexPart:
    """Bytes [``start``, ``stop``) of an index file, whole entries from number ``first`` on; or the reason why there are
    none, and whether the file could not be read.
    """

    store: str
    broker: str | None
    path: str
    start: int
    stop: int
    first: int
    slots: int
    begin_timestamp: int
    reason: str | None = None
    unread: bool = False


class PlainIndexReader(PartReader):
    """Plans and reads parts of index files."""

    NAME = "rocketmq-index"
    COLUMNS = schema.INDEX

    def parts_of(self, store: StorePlace, limits: QueryLimits, skipped: list[SkippedRange]) -> Iterator[IndexPart]:
        """See :func:`index_parts`."""
        return index_parts(store, limits if self.read_options.headers else QueryLimits(), skipped)

    def rows_of(self, part: IndexPart) -> Iterator[pa.RecordBatch]:
        """See :func:`rows_of`."""
        return rows_of(part, self.columns, self.read_options.fails)


class IndexReader(filters.PushdownReader, PlainIndexReader):
    """A reader that also gets the query's conditions."""


class IndexSource(PartSource):
    """The format ``rocketmq-index``."""

    READER: ClassVar[type[PartReader]] = IndexReader


class PlainIndexSource(IndexSource):
    """The format for a Spark that does not support :mod:`engine.pipeline.spark_internals.one_read_each`."""

    READER = PlainIndexReader


@dataclass(frozen=True, slots=True)
class _OpenIndexFile:
    """An open index file with its length."""

    size: int
    file: OpenFile

    def read(self, position: int, size: int) -> bytes:
        return self.file.read(position, size)


def index_parts(store: StorePlace, limits: QueryLimits, skipped: list[SkippedRange]) -> Iterator[IndexPart]:
    """Yield parts of at most :data:`PART_BYTES` of a store's index files, in the order of their names; files that
    hold nothing the query asks for are put into ``skipped``.
    """
    if store.unread is not None:
        raise store.unread
    undecoded = rocksdb_index(store)
    if undecoded is not None:
        raise undecoded
    storage, local = storage_of(join(store.path, "index"))
    files = [e for e in storage.listing(local) if parse_file_name(e.name) is not None and e.size >= 0]
    file_facts = {file.path: _inspect_file(file) for file in files}
    # Files of a store have one geometry: what one gives away holds for all of its length.
    geometries = Counter(geometry for geometry, _, entries in file_facts.values() if geometry is not None and entries)
    common_geometry = geometries.most_common(1)[0][0] if geometries else None
    for file in files:
        geometry, why, entries = file_facts[file.path]
        if common_geometry is not None and common_geometry.file_size == file.size and entries >= 0:
            geometry = common_geometry
        if geometry is None:
            if entries:
                yield IndexPart(store.path, store.broker, file.path, 0, 0, 0, 0, 0, why, entries < 0)
            continue
        try:
            with open_path(file.path) as opened_file:
                header = decode_header(opened_file.read(0, HEADER_SIZE))
        except CannotRead as error:
            yield IndexPart(store.path, store.broker, file.path, 0, 0, 0, 0, 0, str(error), unread=True)
            continue
        if not _may_hold(header, limits, file is not files[-1]):
            why = "nothing of the store time or offset asked for lies there"
            skipped.append(SkippedRange(file.path, file.size, why))
            continue
        end = min(entries, geometry.entries - 1) + 1
        step = PART_BYTES // ENTRY_SIZE
        for first_entry in range(1, end, step):
            start, stop = (geometry.entry_position(number) for number in (first_entry, min(first_entry + step, end)))
            yield IndexPart(
                store.path, store.broker, file.path, start, stop, first_entry, geometry.slots, header.begin_timestamp
            )


def _may_hold(header: IndexHeader, limits: QueryLimits, finished: bool) -> bool:
    """Return True if a file can hold entries of the query, by its header: the ends in it count where a later file
    follows.
    """
    times, places = limits.store_timestamps, limits.physical_offsets
    if 0 < header.begin_timestamp > times[1] + SLACK_MS or 0 < header.begin_phy_offset > places[1]:
        return False
    if not finished:
        return True
    too_early = 0 < header.end_timestamp < times[0] - SLACK_MS
    return not too_early and not 0 < header.end_phy_offset < places[0]


def _inspect_file(file: FolderEntry) -> tuple[Geometry | None, str, int]:
    """Return the geometry of a file, how it was derived, and the number of entries in its header; −1 if it cannot
    be read.
    """
    try:
        with open_path(file.path) as opened_file:
            head = opened_file.read(0, HEADER_SIZE)
            if len(head) < HEADER_SIZE:
                return (
                    None,
                    sentence("expected a header of {size} bytes, found {found:,}", size=HEADER_SIZE, found=len(head)),
                    1,
                )
            return (*derive_geometry(_OpenIndexFile(file.size, opened_file)), decode_header(head).entries)
    except CannotRead as error:
        return None, str(error), -1


def rows_of(part: IndexPart, columns: schema.Columns, fail: bool = False) -> Iterator[pa.RecordBatch]:
    """The entries of a part in batches; a row of the type ``damage`` where the file is none, is gone, or shorter than
    it was.
    """
    same = {"file": part.path.rpartition("/")[2], "store": part.store, "broker": part.broker}
    if part.reason is not None:
        if fail and part.unread:
            raise CannotRead(part.reason)
        yield damage_batch(columns, part.reason, same)
    else:
        yield from whole(part, _entries(part, columns, same), columns, ENTRY_SIZE, same, fail)


def _entries(part: IndexPart, columns: schema.Columns, same: dict[str, str | None]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with open_path(part.path) as opened_file:
        for position in range(part.start, part.stop, BATCH_ROWS * ENTRY_SIZE):
            data = opened_file.read(position, min(BATCH_ROWS * ENTRY_SIZE, part.stop - position))
            entries = np.frombuffer(data[: len(data) // ENTRY_SIZE * ENTRY_SIZE], INDEX_ENTRY)
            if not len(entries):
                return
            key_hash, time_diff = entries["key_hash"].astype("i4"), entries["time_diff"].astype("i4")
            first_entry = part.first + (position - part.start) // ENTRY_SIZE
            stored = part.begin_timestamp + time_diff.astype("i8") * 1000
            values: dict[str, Any] = {
                "type": "indexEntry",
                **same,
                "entry": np.arange(first_entry, first_entry + len(entries), dtype="i4"),
                "slot": pa.array((key_hash % part.slots).astype("i4"), mask=key_hash < 0),
                "keyHash": key_hash,
                "phyOffset": entries["phy_offset"].astype("i8"),
                "timeDiff": time_diff,
                "storeTimestamp": stored,
                "storeTime": schema.time_array(stored),
                "prev": entries["prev"].astype("i4"),
            }
            yield batch_of(columns, values, len(entries))
