"""Rebuild queues and index of a store from its log beside the old ones, then exchange them: the work of
``dispatch``.

The new trees grow in a folder of their own and are on the disk before they get their names, so a stop in the
middle leaves everything as it was. Existing trees are exchanged for the new ones in one step.

"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine import releases, system
from engine.callbacks import OffsetProgress, system_clock
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.config import MessageStoreConfig
from engine.errors import CannotRead
from engine.files.layout import StorePaths
from engine.files.temporary_folders import staged
from engine.inspection.block_scan import scan_log
from engine.inspection.deleted_topics import deleted_topics
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.written_release import require_release
from engine.mapped.backup import TREES, BackupWriter
from engine.mapped.disk import Disk, RealDisk
from engine.mapped.undo import exchange
from engine.releases import Release
from engine.rules.unit_check import Request
from engine.sentences import join, sentence
from engine.services.rebuild import Rebuild
from engine.store.config_tables import ConfigTables
from engine.store.consume_queue_store import ConsumeQueueStore
from engine.store.index_service import IndexService

NOTHING_BUILT = sentence("nothing is built over it")
STAGING = ".dispatch"
"""Folder inside a store in which its new trees grow. Only a killed process leaves it there."""


@dataclass(slots=True)
class Rebuilt:
    """The result of a rebuild.

    ``damaged`` counts spans of the log that are no units (``damaged_bytes`` long), ``stale`` counts units whose
    own offset differs from their place, left over from before a truncation. Neither has an entry.
    """

    units: int = 0
    queues: int = 0
    entries: int = 0
    index_files: int = 0
    index_entries: int = 0
    damaged: int = 0
    damaged_bytes: int = 0
    stale: int = 0
    deleted_topics: list[str] = field(default_factory=list)


def rebuild_beside(
    source: StoreSnapshot,
    target: Path,
    config: MessageStoreConfig,
    progress: OffsetProgress | None = None,
    release: Release | None = None,
) -> Rebuilt:
    """Build the trees in the new directory ``target`` (absent or empty); nothing remains if it is stopped."""
    with staged(target, STAGING) as staging:
        return build(source, staging, config, RealDisk(), progress, release)


def rebuild_in_place(
    source: StoreSnapshot,
    config: MessageStoreConfig,
    backup: BackupWriter | None,
    progress: OffsetProgress | None = None,
    release: Release | None = None,
) -> Rebuilt:
    """Build the trees again and exchange them for the old ones.

    The old ones stay with ``backup``. Without one the new ones are built inside the store, and the old ones are
    deleted. The caller holds the store's lock.

    """
    root = source.path
    if backup is not None:
        staging = backup.folder / TREES
        if (root / STAGING).exists():
            backup.before_exchange(STAGING)
            (root / STAGING).rename(staging / STAGING)
        done = build(source, staging, config, RealDisk(), progress, release)
        put_in_place(staging, root, config, backup.before_exchange)
        return done
    staging = root / STAGING
    shutil.rmtree(staging, ignore_errors=True)
    try:
        staging.mkdir()
        done = build(source, staging, config, RealDisk(), progress, release)
        put_in_place(staging, root, config)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return done


def build(
    source: StoreSnapshot,
    root: Path,
    config: MessageStoreConfig,
    disk: Disk,
    progress: OffsetProgress | None = None,
    release: Release | None = None,
) -> Rebuilt:
    """Build queues and index of ``source`` below ``root``; all of it is on the disk afterwards.

    ``release`` sets the rules; by default the release that probably wrote the store.

    """
    tags = releases.rules_of(release or require_release(source)).writes_tag_entries
    queues = ConsumeQueueStore(StorePaths(root), config, disk, batch_topics(source, disk).__contains__)
    index = IndexService(StorePaths(root), config, disk, system_clock, lambda _file: None, tag_entries=tags)
    done, topics, start_offset = Rebuilt(), TopicTable(), max(source.log.min_offset, 0)
    stop = None if source.abort else source.log.max_offset
    bit_map = _bit_map_of(source) if config.enable_consume_queue_ext else None
    with Rebuild(queues, index, config, bit_map=bit_map) as rebuild:
        for block in scan_log(source.log, start_offset, stop, crc=False, topics=topics, levels=config.delay_levels()):
            if isinstance(block, Damage):
                if block.unread:
                    raise CannotRead(join(": ", [block.reason, NOTHING_BUILT]))
                done.damaged += 1
                done.damaged_bytes += block.size
            if not isinstance(block, UnitColumns):
                continue
            _take(rebuild, block, topics, done)
            if progress is not None:
                progress(int(block.offset[block.count - 1]) - start_offset)
        rebuild.finish()
        done.units = rebuild.units
    done.deleted_topics = _drop_deleted(source, queues)
    queues.flush()
    index.flush()
    done.queues = len(queues)
    done.entries = sum(
        queue.files.end // queue.unit_size - queue.min_offset for queue in queues if queue.kind == "simple"
    )
    done.entries += sum(queue.files.end // queue.unit_size for queue in queues if queue.kind == "batch")
    done.index_files = len(index.files)
    done.index_entries = sum(file.header.entries for file in index.files)
    queues.close()
    index.close()
    disk.close()
    source.refuse_unread(NOTHING_BUILT)
    return done


def _take(rebuild: Rebuild, block: UnitColumns, topics: TopicTable, done: Rebuilt) -> None:
    units = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
    in_place = block.physical_offset[:units] == block.offset[:units]
    if in_place.all():
        rebuild.take(block, topics)
        return
    done.stale += int(np.count_nonzero(~in_place))
    rebuild.take(block, topics, np.flatnonzero(in_place))


def batch_topics(source: StoreSnapshot, disk: Disk) -> frozenset[str]:
    """Return topics whose queues are batch queues, from the topics table or from existing folders.

    Raises :class:`StoreError` if the table cannot be read.

    """
    assert source.paths is not None
    tables = ConfigTables(source.paths, disk, lambda: 0)
    tables.load()
    return batch_queue_topics(source) | {topic for topic in tables.topics() if tables.is_batch_topic(topic)}


def batch_queue_topics(source: StoreSnapshot) -> frozenset[str]:
    """Return topics that have batch queues."""
    topics = source.topics().items()
    return frozenset(topic for topic, queues in topics if any(queue.kind == "batch" for queue in queues.values()))


def _bit_map_of(source: StoreSnapshot) -> Callable[[Request], bytes]:
    """Return the filter bit maps of the old ext queues: the log does not contain them."""

    def bit_map(request: Request) -> bytes:
        queue = source.queue(request.topic, request.queue_id)
        entry = queue.entry(request.queue_offset) if queue is not None else None
        return entry.ext.bit_map if entry is not None and entry.ext is not None else b""

    return bit_map


def _drop_deleted(source: StoreSnapshot, queues: ConsumeQueueStore) -> list[str]:
    """Remove the queues of topics that were deleted: their units are still in the log."""
    first_of = {
        topic: min(queue.physical_at(queue.min_offset * queue.unit_size) for queue in queues.queues_of(topic).values())
        for topic in queues.topics()
    }
    deleted = deleted_topics(source, first_of)
    for topic in deleted:
        queues.delete_topic(topic)
    return deleted


# -- names


def put_in_place(
    staging: Path, root: Path, config: MessageStoreConfig, before_exchange: Callable[[str], None] | None = None
) -> None:
    """Exchange the trees of the store at ``root`` for those in ``staging``, which then holds the old ones.

    ``before_exchange`` is called with each name before its exchange.

    """
    names = ["consumequeue", "batchconsumequeue"]
    names += ["consumequeue_ext"] if config.enable_consume_queue_ext else []
    names += ["index"] if config.message_index_enable else []
    with system.postponed_signals():
        for name in names:
            new, old = staging / name, root / name
            if before_exchange is not None and (old.exists() or new.exists()):
                before_exchange(name)
            if old.exists():
                new.mkdir(exist_ok=True)
                exchange(new, old)
            elif new.exists():
                new.rename(old)
        system.sync_folder(root)
