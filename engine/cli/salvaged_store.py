"""A new store with salvaged messages: the work of ``salvage --to``."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from engine.codec import properties as props
from engine.codec.encode import write_property_crc
from engine.codec.message import PREPARED, ROLLBACK, Unit, decode
from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.files.temporary_folders import staged
from engine.inspection.salvage.salvage import Salvaged
from engine.inspection.snapshot import StoreSnapshot
from engine.message_store import MessageStore
from engine.releases import Release
from engine.sentences import sentence

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
    sent. The store gets its name when it is complete. Raises as the engine does; nothing is left then.
    """
    written = Written()
    next_offsets: Counter[tuple[str, int]] = Counter()
    with staged(target, ".salvage") as staging:
        store = MessageStore(staging, config, release=release)
        try:
            for name, queues in source.topics().items():
                if any(queue.kind == "batch" for queue in queues.values()):
                    store.tables.create_topic(name, len(queues), attributes={"queue.type": "BatchCQ"})
            for row in rows:
                if row.rank == 1 and row.ties:
                    written.ambiguous.append(row.physical_offset or 0)
                elif row.rank == 1:
                    unit = decode(row.data)
                    store.parts.commit_log.append_raw(_numbered(row.data, unit, next_offsets))
                    written.units += 1
                    written.size += len(row.data)
            _dispatch(store, target)
            store.close()
        except BaseException:
            store.abandon()
            raise
    return written


def _numbered(data: bytes, unit: Unit, next_offsets: Counter[tuple[str, int]]) -> bytes:
    """Return the unit with the next offset of its queue, and with its property CRC if it has one."""
    key = unit.topic, unit.queue_id
    numbered = bytearray(data)
    _QUEUE_OFFSET.pack_into(numbered, _QUEUE_OFFSET_POSITION, next_offsets[key])
    if props.verify_crc(data):
        write_property_crc(numbered)
    if unit.transaction_type not in (PREPARED, ROLLBACK):
        next_offsets[key] += unit.batch_size
    return bytes(numbered)


def _dispatch(store: MessageStore, target: Path) -> None:
    while not store.wait_dispatched(_WAIT_MS):
        if not store.flags.writeable:
            raise StoreError(sentence("the copy could not be dispatched: {why}", why=store.flags.why), file=str(target))
