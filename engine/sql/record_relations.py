"""Small relations: what other commands answer as records, a row a record."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.errors import CannotRead
from engine.inspection.findings import check
from engine.inspection.groups import group_progress
from engine.inspection.tables import read_tables, topics
from engine.pipeline import schema
from engine.rules.findings import Finding

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.inspection.snapshot import StoreSnapshot
    from engine.sql.unit_relations import Progress

TOPICS: schema.Columns = {
    "topic": "string",
    "messages": "bigint",
    "queues": "int",
    "readQueueNums": "int",
    "writeQueueNums": "int",
    "perm": "int",
    "isOrdered": "boolean",
    "topicSysFlag": "int",
    "attributes": "map<string,string>",
}
QUEUES: schema.Columns = {
    "topic": "string",
    "queueId": "int",
    "minOffset": "bigint",
    "maxOffset": "bigint",
    "messages": "bigint",
}
GROUPS: schema.Columns = {
    "consumerGroup": "string",
    "topic": "string",
    "queueId": "int",
    "consumerOffset": "bigint",
    "maxOffset": "bigint",
    "behind": "bigint",
    "oldestUnreadTimestamp": "bigint",
    "state": "string",
    "mode": "string",
}
FINDINGS: schema.Columns = {
    "id": "string",
    "severity": "string",
    "subject": "string",
    "file": "string",
    "fileOffset": "bigint",
    "message": "string",
    "nextStep": "string",
    "causedBy": "string",
    "evidence": "string",
}
INDEX_FILES: schema.Columns = {
    "file": "string",
    "beginTimestamp": "bigint",
    "endTimestamp": "bigint",
    "beginPhyOffset": "bigint",
    "endPhyOffset": "bigint",
    "hashSlotCount": "int",
    "indexCount": "int",
}
TABLES: schema.Columns = {"name": "string", "path": "string", "value": "string"}


def topic_batches(store: StoreSnapshot, columns: schema.Columns, _on_progress: Progress) -> Iterator[pa.RecordBatch]:
    """Yield a row for each topic that the table of topics or a queue names."""
    declared = topics(store) or {}
    held: dict[str, tuple[int, int]] = {}
    for row in _queue_rows(store):
        queues, messages = held.get(row["topic"], (0, 0))
        held[row["topic"]] = queues + 1, messages + row["messages"]
    rows = []
    for name in sorted(declared.keys() | held.keys()):
        config = declared.get(name)
        queues, messages = held.get(name, (0, 0))
        row = {"topic": name, "messages": messages, "queues": queues}
        if config is not None:
            row |= {
                "readQueueNums": config.read_queue_nums,
                "writeQueueNums": config.write_queue_nums,
                "perm": config.perm,
                "isOrdered": config.order,
                "topicSysFlag": config.topic_sys_flag,
                "attributes": list(config.attributes.items()),
            }
        rows.append(row)
    yield _batch(columns, rows)


def queue_list_batches(
    store: StoreSnapshot, columns: schema.Columns, _on_progress: Progress
) -> Iterator[pa.RecordBatch]:
    """Yield a row for each queue: its bounds as a broker answers them."""
    yield _batch(columns, list(_queue_rows(store)))


def _queue_rows(store: StoreSnapshot) -> Iterator[dict[str, Any]]:
    store.queues.require()
    for topic, queues in store.queues.by_topic().items():
        for queue_id, queue in queues.items():
            with contextlib.suppress(CannotRead):  # the reading door has noted it
                first, end = queue.min_offset, queue.max_offset
                yield {
                    "topic": topic,
                    "queueId": queue_id,
                    "minOffset": first,
                    "maxOffset": end,
                    "messages": max(end - max(first, 0), 0),
                }


def group_batches(store: StoreSnapshot, columns: schema.Columns, _on_progress: Progress) -> Iterator[pa.RecordBatch]:
    """Yield the progress of each group in each queue."""
    yield _batch(
        columns,
        [
            {
                "consumerGroup": item.group,
                "topic": item.topic,
                "queueId": item.queue_id,
                "consumerOffset": item.offset,
                "maxOffset": item.max_offset,
                "behind": item.behind,
                "oldestUnreadTimestamp": item.oldest_unread_timestamp,
                "state": item.state,
                "mode": item.mode,
            }
            for item in group_progress(store)
        ],
    )


def finding_batches(store: StoreSnapshot, columns: schema.Columns, on_progress: Progress) -> Iterator[pa.RecordBatch]:
    """Check the store, and yield its findings."""
    rows = [
        {
            **finding.record(),
            "subject": finding.group,
            "fileOffset": finding.offset,
            "evidence": json.dumps(finding.evidence, ensure_ascii=False, default=str),
        }
        for finding in check(store, progress=lambda done, _: on_progress(done))
        if isinstance(finding, Finding)
    ]
    yield _batch(columns, rows)


def index_file_batches(
    store: StoreSnapshot, columns: schema.Columns, _on_progress: Progress
) -> Iterator[pa.RecordBatch]:
    """Yield the headers of the index files."""
    rows = []
    for reader in store.index_files():
        with contextlib.suppress(CannotRead):
            header = reader.header
            rows.append(
                {
                    "file": reader.name,
                    "beginTimestamp": header.begin_timestamp,
                    "endTimestamp": header.end_timestamp,
                    "beginPhyOffset": header.begin_phy_offset,
                    "endPhyOffset": header.end_phy_offset,
                    "hashSlotCount": header.hash_slot_count,
                    "indexCount": header.index_count,
                }
            )
    yield _batch(columns, rows)


def table_batches(store: StoreSnapshot, columns: schema.Columns, _on_progress: Progress) -> Iterator[pa.RecordBatch]:
    """Yield each value of the tables in config/ as a row: which table, the path to it, the value as JSON."""
    for table in read_tables(store):
        name = table.name.removesuffix(".json")
        rows = [
            {"name": name, "path": path, "value": json.dumps(value, ensure_ascii=False)}
            for path, value in _leaves(table.value)
        ]
        yield _batch(columns, rows)


def _leaves(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Yield what is no object in a JSON value, with its path as SQL's JSON functions write it."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f'{path}."{key}"')
    else:
        yield path, value


def _batch(columns: schema.Columns, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    import pyarrow as pa

    shape = schema.arrow_schema(columns)
    arrays = [schema.text_array([row.get(field.name) for row in rows], field.type) for field in shape]
    return pa.RecordBatch.from_arrays(arrays, schema=shape)
