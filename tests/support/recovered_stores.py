"""Stores for our own recovery, and the common content of two equal stores."""

from __future__ import annotations

import fcntl
import json
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import golden_stores
import numpy as np

from engine import releases
from engine.codec import index as index_codec
from engine.codec.dtypes import INDEX_ENTRY
from engine.config import MessageStoreConfig, from_mapping
from engine.files.layout import StorePaths
from engine.mapped.disk import Disk, RealDisk
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.releases import Release
from engine.store.consume_queue_store import ConsumeQueueStore
from engine.store.dispatcher import Dispatcher
from engine.store.index_service import IndexService
from engine.store.recovery import apply as recovery_apply
from engine.store.recovery import load_source
from engine.store.recovery.plan import RecoveryPlan
from engine.store.store_checkpoint import StoreCheckpoint

WRITE_LOCK_ON_BYTE_0 = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
"""What Java's lock on a store's ``lock`` file asks of the kernel."""


@dataclass
class OpenedStore:
    """The parts of a store that recovery writes to."""

    paths: StorePaths
    disk: Disk
    files: MappedFileQueue
    queues: ConsumeQueueStore
    index: IndexService
    dispatcher: Dispatcher
    checkpoint: StoreCheckpoint

    def flush(self) -> None:
        self.queues.flush()
        self.index.flush()
        self.checkpoint.flush()

    def close(self) -> None:
        self.queues.close()
        self.index.close()
        self.checkpoint.close()
        self.files.close()


def golden_config(name: str) -> MessageStoreConfig:
    """Return the configuration under which a golden store was written."""
    plan = json.loads((golden_stores.GOLDEN / name / "plan.json").read_text(encoding="utf-8"))
    return from_mapping({"timerWheelEnable": False, **plan["config"]})[0]


def opened(
    root: Path,
    config: MessageStoreConfig,
    disk: Disk | None = None,
    clock: Callable[[], int] = lambda: 1_700_000_000_000,
    release: Release = "5.3",
) -> OpenedStore:
    """Return the parts of the store at ``root``, nothing loaded yet; topics with a folder of batch queues are batch
    topics.
    """
    paths, disk = StorePaths(root), RealDisk() if disk is None else disk
    batch = frozenset(disk.folders(paths.batchconsumequeue))
    queues = ConsumeQueueStore(paths, config, disk, is_batch_topic=lambda topic: topic in batch)
    index = IndexService(paths, config, disk, clock, tag_entries=releases.rules_of(release).writes_tag_entries)
    checkpoint = StoreCheckpoint(paths.checkpoint, disk, releases.rules_of(release).checkpoint_numbers)
    checkpoint.load()
    folders = load_source.log_folders(paths, config)
    files = MappedFileQueue(disk, folders, config.mapped_file_size_commit_log)
    return OpenedStore(paths, disk, files, queues, index, Dispatcher(queues, index, config), checkpoint)


def recover(
    root: Path, config: MessageStoreConfig, release: Release = "5.3", disk: Disk | None = None
) -> tuple[RecoveryPlan, OpenedStore]:
    """Recover the store at ``root``, whose log may be empty; the parts are left open."""
    parts = opened(root, config, disk, release=release)
    plan = recovery_apply.recover(load_source.source(parts.paths, config, parts.disk), parts, release, empty_log=True)
    return plan, parts


@dataclass(frozen=True)
class StoreContents:
    """Content of a store: the log to its end, the entries of every queue, the entries of every index file."""

    log: bytes
    log_min: int
    queues: dict[tuple[str, int], tuple[int, int, bytes]]
    index: list[bytes]


def held_by(root: Path, config: MessageStoreConfig, plan: RecoveryPlan, disk: Disk | None = None) -> StoreContents:
    """Return the content of the files, bounded by ``plan``; with index headers, without names (clock times)."""
    disk = RealDisk() if disk is None else disk
    paths = StorePaths(root)
    log = b"".join(_contents(disk, folder) for folder in load_source.log_folders(paths, config))
    queues = {}
    for queue in plan.queues:
        folder = (paths.batch_folder if queue.kind == "batch" else paths.queue_folder)(queue.topic, queue.queue_id)
        names = disk.names(folder)
        first_byte = int(names[0][0]) if names else 0
        data = _contents(disk, folder)[: queue.final.end_bytes - first_byte]
        if data:
            queues[queue.topic, queue.queue_id] = (queue.min_offset, queue.max_offset, data)
    geometry = index_codec.Geometry(config.max_hash_slot_num, config.max_index_num)
    index = [_index_content(disk.read_file(paths.index / name), geometry) for name, _ in disk.names(paths.index)]
    return StoreContents(log[: plan.end_offset - plan.log_min], plan.log_min, queues, [i for i in index if i])


def _contents(disk: Disk, folder: Path) -> bytes:
    return b"".join(disk.read_file(folder / name) or b"" for name, _ in disk.names(folder))


def _index_content(data: bytes | None, geometry: index_codec.Geometry) -> bytes:
    """Return header, slots and entries up to the last one; empty for a file without entries."""
    assert data is not None
    count = index_codec.decode_header(data).index_count
    end = geometry.entry_position(max(count, 1)) if count > 1 else 0
    return data[:end]


def index_rows(content: bytes, geometry: index_codec.Geometry) -> np.ndarray:
    """Return the entries of :attr:`StoreContents.index` from entry 1 on."""
    return np.frombuffer(content[geometry.entry_position(1) :], INDEX_ENTRY)


def copy_to(disk: Disk, source: Path, target: Path) -> None:
    """Copy the files below ``source`` onto another disk, durably."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            disk.write_file(target / os.path.relpath(path, source), path.read_bytes(), sync=True)
