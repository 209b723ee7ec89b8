"""A new store with salvaged messages: the work of ``salvage --to``."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from engine.codec import properties as props
from engine.codec.config_tables import consumer_offsets, delay_offsets
from engine.codec.encode import write_property_crc
from engine.codec.json_dialect import render
from engine.codec.message import PREPARED, ROLLBACK, Unit, decode
from engine.config import MessageStoreConfig
from engine.errors import StoreError, UsageError
from engine.files.temporary_folders import staged
from engine.inspection.salvage.salvage_search import Salvaged
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.store_queues import AnyQueue
from engine.inspection.tables import read_table
from engine.message_store import MessageStore
from engine.releases import Release
from engine.sentences import sentence
from engine.store.config_tables import CONSUMER_OFFSETS, DELAY_OFFSETS, GROUPS, TOPICS
from engine.system_names import LMQ_PREFIX, SCHEDULE_TOPIC, is_system_topic

_QUEUE_OFFSET = struct.Struct(">q")
_QUEUE_OFFSET_POSITION = 20
_WAIT_MS = 1000.0


@dataclass(slots=True)
class Written:
    """Number of messages and bytes in the new store; ``ambiguous`` are offsets for which several contents are equally
    likely: none of them is written.
    """

    units: int = 0
    size: int = 0
    ambiguous: list[int] = field(default_factory=list)


def write_salvaged(
    source: StoreSnapshot, target: Path, config: MessageStoreConfig, rows: Iterable[Salvaged], release: Release
) -> Written:
    """Append the messages of ``rows`` to a new store at ``target``, absent or empty, as ``release`` does.

    Queue offsets begin at 0 and have no gaps: a queue with gaps is read by no broker. Everything else stays as it was
    sent. Topics and groups are those of ``source`` and of the messages; offsets of groups lead to the same messages.
    The store gets its name when it is complete. Raises as the engine does; nothing is left then.
    """
    written, numbers = Written(), _QueueNumbers()
    with staged(target, ".salvage") as staging:
        _write_declarations(source, staging)
        store = MessageStore(staging, config, release=release, empty_log=True)
        try:
            for name, queues in _queues(source).items():
                if any(queue.kind == "batch" for queue in queues.values()) and not store.tables.is_batch_topic(name):
                    store.tables.create_topic(name, len(queues), attributes={"queue.type": "BatchCQ"})
            for row in rows:
                if row.rank == 1 and row.ties:
                    written.ambiguous.append(row.physical_offset or 0)
                elif row.rank == 1:
                    unit = decode(row.data)
                    store.parts.commit_log.append_raw(_numbered(row.data, unit, numbers))
                    written.units += 1
                    written.size += len(row.data)
            _dispatch(store, target)
            if store.tables.knows_topics():
                _declare_topics(store, numbers)
                _set_offsets(source, store, numbers)
                store.tables.complete()
            store.close()
        except BaseException:
            store.abandon()
            raise
    return written


def _queues(source: StoreSnapshot) -> Mapping[str, Mapping[int, AnyQueue]]:
    """Return the queues of ``source`` by topic; none where they are in a RocksDB, which has no batch queues."""
    return source.topics() if source.queues.rocksdb is None else {}


class _QueueNumbers:
    """Old and new queue offsets of the messages that were written."""

    def __init__(self) -> None:
        self._next_offsets: Counter[tuple[str, int]] = Counter()
        self._pairs: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)

    @property
    def queues(self) -> Iterable[tuple[str, int]]:
        """Topic and number of each queue."""
        return self._pairs

    def next_offset(self, unit: Unit) -> int:
        """Return the new queue offset of the next message ``unit``."""
        key = unit.topic, unit.queue_id
        offset = self._next_offsets[key]
        if unit.transaction_type not in (PREPARED, ROLLBACK):
            self._pairs[key].append((unit.queue_offset, offset))
            self._next_offsets[key] += unit.batch_size
        return offset

    def new_offset(self, topic: str, queue_id: int, old_offset: int) -> int:
        """Return the new offset of the first message that had ``old_offset`` or a higher one."""
        pairs = self._pairs.get((topic, queue_id), [])
        return min((new for old, new in pairs if old >= old_offset), default=self._next_offsets[topic, queue_id])


def _write_declarations(source: StoreSnapshot, staging: Path) -> None:
    """Write the tables of topics and groups as ``source`` has them; none that no broker can load."""
    for name in (TOPICS, GROUPS):
        table = read_table(source, name)
        if table is not None and table.will_load and table.value:
            path = staging / "config" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render(table.value), "utf-8")


def _declare_topics(store: MessageStore, numbers: _QueueNumbers) -> None:
    """Declare the topics of messages that the tables do not have: no client may read them otherwise."""
    declared, queue_counts = store.tables.topics(), Counter[str]()
    for topic, queue_id in numbers.queues:
        queue_counts[topic] = max(queue_counts[topic], queue_id + 1)
    for topic, count in sorted(queue_counts.items()):
        if topic not in declared and not is_system_topic(topic) and not topic.startswith(LMQ_PREFIX):
            with suppress(UsageError):  # no broker takes that name
                store.tables.create_topic(topic, count)


def _set_offsets(source: StoreSnapshot, store: MessageStore, numbers: _QueueNumbers) -> None:
    """Let groups and delay levels go on at the messages at which they stand in ``source``."""
    table = read_table(source, CONSUMER_OFFSETS)
    for row in consumer_offsets(table.value).rows if table is not None else ():
        for queue_id, offset in row.offsets.items() if row.mode == "cluster" else ():
            new_offset = numbers.new_offset(row.topic, queue_id, offset)
            store.tables.commit_consumer_offset(row.group, row.topic, queue_id, new_offset)
    table = read_table(source, DELAY_OFFSETS)
    for level, offset in delay_offsets(table.value)[0].items() if table is not None else ():
        store.tables.set_delay_offset(level, numbers.new_offset(SCHEDULE_TOPIC, level - 1, offset))


def _numbered(data: bytes, unit: Unit, numbers: _QueueNumbers) -> bytes:
    """Return the unit with the next offset of its queue, and with its property CRC if it has one."""
    numbered = bytearray(data)
    _QUEUE_OFFSET.pack_into(numbered, _QUEUE_OFFSET_POSITION, numbers.next_offset(unit))
    if props.verify_crc(data):
        write_property_crc(numbered)
    return bytes(numbered)


def _dispatch(store: MessageStore, target: Path) -> None:
    while not store.wait_dispatched(_WAIT_MS):
        if not store.flags.writeable:
            raise StoreError(sentence("the copy could not be dispatched: {why}", why=store.flags.why), file=str(target))
