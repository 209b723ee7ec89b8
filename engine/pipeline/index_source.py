"""``rocketmq-index``: one row for each entry of the index files of one store, or of many
(docs/formats/index-file.md#layout).

Rows are those that ``storescope index --entries`` tells; a file that cannot be read as an index file is one row of the
type ``damage``. Options: ``path``, ``broker``, ``columns``, ``headers``,
``unreadable`` (``fail``: instead of that row the read fails). Conditions on store and broker leave whole
stores unread. What a wrong header, or a clock that was set back, would hide is behind an option that says so: with
``headers`` as ``trust`` conditions on storeTimestamp and phyOffset pass over files by what their headers say. Spark's
log tells how much is left unread.
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
from engine.layout import parse_file_name
from engine.pipeline import filters, schema
from engine.pipeline.defaults import PART_BYTES
from engine.pipeline.files import StorePlace
from engine.pipeline.filters import Want
from engine.pipeline.part_source import ROWS, PartReader, PartSource, batch_of, damage, whole
from engine.pipeline.pruning import SLACK_MS
from engine.pipeline.splits import Skipped
from engine.pipeline.storage import Listed, OpenFile, join, opened, storage_of
from engine.pipeline.undecoded import rocksdb_index

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class IndexPart:
    """Bytes [``start``, ``stop``) of an index file, whole entries from number ``first`` on; or why there are none, and
    whether that is because nobody can read them.
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

    def parts_of(self, store: StorePlace, want: Want, skipped: list[Skipped]) -> Iterator[IndexPart]:
        """See :func:`index_parts`."""
        return index_parts(store, want if self.asked.headers else Want(), skipped)

    def rows_of(self, part: IndexPart) -> Iterator[pa.RecordBatch]:
        """See :func:`rows_of`."""
        return rows_of(part, self.columns, self.asked.fails)


class IndexReader(filters.Pushed, PlainIndexReader):
    """Is handed conditions too."""


class IndexSource(PartSource):
    """The format ``rocketmq-index``."""

    READER: ClassVar[type[PartReader]] = IndexReader


class PlainIndexSource(IndexSource):
    """The format where Spark has no place for :mod:`engine.pipeline.insides.one_read_each`."""

    READER = PlainIndexReader


@dataclass(frozen=True, slots=True)
class _Lent:
    """An open index file with its length."""

    size: int
    file: OpenFile

    def read(self, position: int, size: int) -> bytes:
        return self.file.read(position, size)


def index_parts(store: StorePlace, want: Want, skipped: list[Skipped]) -> Iterator[IndexPart]:
    """Parts of at most :data:`PART_BYTES` of the index files of a store, in the order of their names; files that hold
    nothing that is wanted are put into ``skipped``.
    """
    if store.unread is not None:
        raise store.unread
    undecoded = rocksdb_index(store)
    if undecoded is not None:
        raise undecoded
    storage, local = storage_of(join(store.path, "index"))
    files = [e for e in storage.listing(local) if parse_file_name(e.name) is not None and e.size >= 0]
    known = {file.path: _looked_at(file) for file in files}
    # Files of a store have one geometry: what one gives away holds for all of its length.
    common = Counter(geometry for geometry, _, entries in known.values() if geometry is not None and entries)
    usual = common.most_common(1)[0][0] if common else None
    for file in files:
        geometry, why, entries = known[file.path]
        if usual is not None and usual.file_size == file.size and entries >= 0:
            geometry = usual
        if geometry is None:
            if entries:
                yield IndexPart(store.path, store.broker, file.path, 0, 0, 0, 0, 0, why, entries < 0)
            continue
        try:
            with opened(file.path) as lent:
                header = decode_header(lent.read(0, HEADER_SIZE))
        except CannotRead as error:
            yield IndexPart(store.path, store.broker, file.path, 0, 0, 0, 0, 0, str(error), unread=True)
            continue
        if not _may_hold(header, want, file is not files[-1]):
            why = "nothing of the store time or offset asked for lies there"
            skipped.append(Skipped(file.path, file.size, why))
            continue
        end = min(entries, geometry.entries - 1) + 1
        step = PART_BYTES // ENTRY_SIZE
        for first in range(1, end, step):
            start, stop = (geometry.entry_position(number) for number in (first, min(first + step, end)))
            yield IndexPart(
                store.path, store.broker, file.path, start, stop, first, geometry.slots, header.begin_timestamp
            )


def _may_hold(header: IndexHeader, want: Want, finished: bool) -> bool:
    """Whether a file can hold what is wanted, by its header: the ends in it count where a later file follows."""
    times, places = want.store_timestamps, want.physical_offsets
    if 0 < header.begin_timestamp > times[1] + SLACK_MS or 0 < header.begin_phy_offset > places[1]:
        return False
    if not finished:
        return True
    too_early = 0 < header.end_timestamp < times[0] - SLACK_MS
    return not too_early and not 0 < header.end_phy_offset < places[0]


def _looked_at(file: Listed) -> tuple[Geometry | None, str, int]:
    """The geometry that a file gives away, how, and how many entries it says that it has; −1 where it cannot
    be read.
    """
    try:
        with opened(file.path) as lent:
            head = lent.read(0, HEADER_SIZE)
            if len(head) < HEADER_SIZE:
                return None, f"expected a header of {HEADER_SIZE} bytes, found {len(head)}", 1
            return (*derive_geometry(_Lent(file.size, lent)), decode_header(head).entries)
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
        yield damage(columns, part.reason, same)
    else:
        yield from whole(part, _entries(part, columns, same), columns, ENTRY_SIZE, same, fail)


def _entries(part: IndexPart, columns: schema.Columns, same: dict[str, str | None]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with opened(part.path) as lent:
        for at in range(part.start, part.stop, ROWS * ENTRY_SIZE):
            data = lent.read(at, min(ROWS * ENTRY_SIZE, part.stop - at))
            entries = np.frombuffer(data[: len(data) // ENTRY_SIZE * ENTRY_SIZE], INDEX_ENTRY)
            if not len(entries):
                return
            key_hash, diff = entries["key_hash"].astype("i4"), entries["time_diff"].astype("i4")
            first = part.first + (at - part.start) // ENTRY_SIZE
            stored = part.begin_timestamp + diff.astype("i8") * 1000
            made: dict[str, Any] = {
                "type": "indexEntry",
                **same,
                "entry": np.arange(first, first + len(entries), dtype="i4"),
                "slot": pa.array((key_hash % part.slots).astype("i4"), mask=key_hash < 0),
                "keyHash": key_hash,
                "phyOffset": entries["phy_offset"].astype("i8"),
                "timeDiff": diff,
                "storeTimestamp": stored,
                "storeTime": schema.time_array(stored),
                "prev": entries["prev"].astype("i4"),
            }
            yield batch_of(columns, made, len(entries))
