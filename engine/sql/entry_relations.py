"""Entries of the queues and of the index files as relations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.codec.consume_queue import MAX_EXT_ADDRESS
from engine.codec.entry_states import runs_of_states
from engine.errors import CannotRead, StoreError
from engine.inspection.index_reader import IndexReader
from engine.inspection.store_queues import AnyQueue
from engine.pipeline import schema

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.inspection.snapshot import StoreSnapshot
    from engine.sql.unit_relations import Progress

_OF_FLEETS = frozenset({"type", "reason", "store", "broker"})
_NOT_OF_EVERY_QUEUE = frozenset({"ext", "file", "storeTimestamp", "storeTime"})
QUEUE_ENTRIES: schema.Columns = {
    name: kind for name, kind in schema.CQ.items() if name not in _OF_FLEETS | _NOT_OF_EVERY_QUEUE
}
INDEX_ENTRIES: schema.Columns = {name: kind for name, kind in schema.INDEX.items() if name not in _OF_FLEETS}
_CHUNK = 1 << 16


def queue_batches(store: StoreSnapshot, columns: schema.Columns, _on_progress: Progress) -> Iterator[pa.RecordBatch]:
    """Yield the entries of all queues, also of those in a RocksDB; of a batch queue an entry a batch."""
    store.queues.require()
    for topic, queues in store.queues.by_topic().items():
        for queue_id, queue in queues.items():
            try:
                for fields in _queue_fields(queue):
                    yield _batch(columns, {"topic": topic, "queueId": queue_id, **fields})
            except CannotRead:
                continue  # the reading door has noted it


def _queue_fields(queue: AnyQueue) -> Iterator[dict[str, Any]]:
    """Yield the columns of many entries at once; a value that is no array is that of all of them."""
    if queue.kind != "simple":
        entries = queue.entries()
        while chunk := list(islice(entries, _CHUNK)):
            yield _one_by_one(chunk)
        return
    for offsets, rows in queue.blocks():
        for start, end, state in runs_of_states(rows):
            part = rows[start:end]
            if queue.ext is not None and (part["tags_code"] <= MAX_EXT_ADDRESS).any():
                yield _one_by_one(list(queue.entries(int(offsets[start]), int(offsets[end - 1]) + 1)))
                continue
            yield {
                "queueOffset": offsets[start:end],
                "physicalOffset": part["physical_offset"].astype("i8"),
                "size": part["size"].astype("i4"),
                "tagsCode": part["tags_code"].astype("i8"),
                "state": state,
                "batchSize": None,
            }


def _one_by_one(entries: list[Any]) -> dict[str, Any]:
    return {
        "queueOffset": [entry.queue_offset for entry in entries],
        "physicalOffset": [entry.physical_offset for entry in entries],
        "size": [entry.size for entry in entries],
        "tagsCode": [entry.real_tags_code for entry in entries],
        "state": [entry.state for entry in entries],
        "batchSize": [entry.batch_size for entry in entries],
    }


def index_batches(store: StoreSnapshot, columns: schema.Columns, _on_progress: Progress) -> Iterator[pa.RecordBatch]:
    """Yield the entries of the index files. What is no index file gives none; ``check`` names it."""
    for reader in store.index_files():
        try:
            yield from _index_file(reader, columns)
        except StoreError:
            continue


def _index_file(reader: IndexReader, columns: schema.Columns) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    header, slots, end = reader.header, reader.slots, reader.last_entry + 1
    for start in range(1, end, _CHUNK):
        rows = reader.array(start, min(start + _CHUNK, end))
        if not len(rows):
            return
        hashes = rows["key_hash"].astype("i4")
        seconds = rows["time_diff"].astype("i8")
        stored = header.begin_timestamp + seconds * 1000
        yield _batch(
            columns,
            {
                "file": reader.name,
                "entry": np.arange(start, start + len(rows), dtype="i4"),
                "slot": pa.array(hashes % slots, mask=hashes < 0),
                "keyHash": hashes,
                "phyOffset": rows["phy_offset"].astype("i8"),
                "timeDiff": seconds,
                "storeTimestamp": stored,
                "storeTime": stored,
                "prev": rows["prev"].astype("i4"),
            },
        )


def _batch(columns: schema.Columns, fields: dict[str, Any]) -> pa.RecordBatch:
    import pyarrow as pa

    rows = next(len(value) for value in fields.values() if isinstance(value, np.ndarray | list))
    shape = schema.arrow_schema(columns)
    arrays = []
    for field in shape:
        value = fields[field.name]
        if field.name == "storeTime":
            arrays.append(schema.time_array(value))
        elif isinstance(value, np.ndarray | list | pa.Array):
            arrays.append(pa.array(value, field.type) if isinstance(value, list) else pa.array(value).cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(value, field.type), rows))
    return pa.RecordBatch.from_arrays(arrays, schema=shape)
