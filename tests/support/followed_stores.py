"""Stores that a stream follows, and Spark's calls of its source."""

import json

from engine.codec.encode import Message
from engine.codec.message import Unit
from engine.config import from_mapping
from engine.inspection.snapshot import open_store
from engine.message_store import MessageStore
from engine.pipeline.commitlog_source import CommitLogStream
from engine.pipeline.options import LogOptions

FILE = 1 << 15


def new_store(path):
    sizes = {"mappedFileSizeCommitLog": FILE, "mappedFileSizeConsumeQueue": 20 * 200}
    return MessageStore(path, from_mapping(sizes)[0])


def put(store, count, topic="Orders", queues=3):
    for number in range(count):
        store.put_message(Message(topic, bytes(number % 400), queue_id=number % queues, tags="T"))


def units_of(path):
    """Return (offset, topic, queue) of every unit, as the engine reads them."""
    with open_store(path) as store:
        return [(unit.offset, unit.topic, unit.queue_id) for unit in store.units() if isinstance(unit, Unit)]


class Query:
    """Spark's calls of a source: get the end, plan and read up to it, and keep it in the checkpoint.

    ``at`` is the content of the checkpoint; a query with the ``at`` of another one is that one started again.
    """

    def __init__(self, path, at=None, **options):
        log_options = LogOptions(
            {"path": str(path), "columns": "type,store,physicalOffset,topic,queueId,size", **options}
        )
        self.source = CommitLogStream(log_options, list(log_options.columns))
        self.at = through_json(self.source.initialOffset() if at is None else at)

    def read(self, start, end):
        parts = self.source.partitions(start, end)
        return [row for part in parts for batch in self.source.read(part) for row in batch.to_pylist()]

    def trigger(self):
        """Return the rows of the next batch and commit it."""
        limit = self.source.getDefaultReadLimit()
        start, self.at = self.at, through_json(self.source.latestOffset(self.at, limit))
        return self.read(start, self.at)

    def offset(self):
        """Return the offset up to which the only store is delivered."""
        (record,) = self.at.values()
        return record["offset"]


def places(rows):
    assert {row["type"] for row in rows} <= {"unit"}
    return [(row["physicalOffset"], row["topic"], row["queueId"]) for row in rows]


def through_json(offsets):
    """Return offsets as a checkpoint returns them."""
    return json.loads(json.dumps(offsets))
