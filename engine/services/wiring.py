"""The structures and services of one store, made and wired: a list, top to bottom. Nothing is loaded, nothing runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.layout import StorePaths
from engine.mapped.disk import Disk, DiskFile
from engine.mapped.mapped_file import MappedFile
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.mapped.memory import TransientStorePool, lock_memory, warm
from engine.rules.unit_check import Release, Request
from engine.services.allocate import AllocateMappedFile
from engine.services.flush_index import FlushIndex
from engine.services.store_services import StoreServices
from engine.store.commit_log import CommitLog
from engine.store.config_tables import ConfigTables
from engine.store.consume_queue_store import ConsumeQueueStore
from engine.store.dispatcher import Dispatcher
from engine.store.index_service import IndexService
from engine.store.mapped_log import MappedLog
from engine.store.queue_offsets import QueueOffsetTable
from engine.store.recovery.load_source import log_folders
from engine.store.running_flags import RunningFlags
from engine.store.store_checkpoint import StoreCheckpoint
from engine.store.store_parts import Clock, StoreParts


def wire(
    paths: StorePaths,
    config: MessageStoreConfig,
    disk: Disk,
    clock: Clock,
    like: Release,
    store_host: str,
    bit_map: Callable[[Request], bytes] | None = None,
) -> tuple[StoreParts, StoreServices]:
    """Everything that makes up the store below ``paths.root``; raises :class:`StoreError` for kinds not known here."""
    _refuse_foreign_kinds(config)
    flags = RunningFlags()
    tables = ConfigTables(paths, disk, clock, like=like, light=config.enable_lmq)
    checkpoint = StoreCheckpoint(paths.checkpoint, disk)
    pool = _pool(config)
    files, allocate = _log_files(paths, config, disk, pool)
    commit_log = CommitLog(
        config, files, QueueOffsetTable(), clock,
        store_host=store_host, like=like, is_batch_topic=tables.is_batch_topic,
    )  # fmt: skip
    queues = ConsumeQueueStore(paths, config, disk, tables.is_batch_topic)
    flush_index = FlushIndex(checkpoint)
    index = None
    if config.message_index_enable:
        index = IndexService(paths, config, disk, clock, flush_index.take, pause=_no_pause)
    parts = StoreParts(
        paths=paths, config=config, disk=disk, clock=clock, like=like, flags=flags, tables=tables,
        checkpoint=checkpoint, pool=pool, files=files, log=MappedLog(files), commit_log=commit_log, queues=queues,
        index=index, dispatcher=Dispatcher(queues, index, config, bit_map=bit_map),
    )  # fmt: skip
    return parts, StoreServices(parts, allocate, flush_index)


def _refuse_foreign_kinds(config: MessageStoreConfig) -> None:
    if config.store_type != "default":
        raise StoreError(f"storeType: expected default, found {config.store_type}: RocksDB queues are not written here")
    if config.enable_dleger_commit_log:
        raise StoreError("enableDLegerCommitLog: expected false: a DLedger log is not written here")


def _pool(config: MessageStoreConfig) -> TransientStorePool | None:
    if not config.transient_store_pool_enable or config.broker_role == "SLAVE":
        return None
    return TransientStorePool(config.transient_store_pool_size, config.mapped_file_size_commit_log, lock=True)


def _log_files(
    paths: StorePaths, config: MessageStoreConfig, disk: Disk, pool: TransientStorePool | None
) -> tuple[MappedFileQueue, AllocateMappedFile]:
    size = config.mapped_file_size_commit_log
    force = min(max(config.disk_space_clean_forcibly_ratio, 30), 85) / 100
    files: MappedFileQueue

    def create(start_offset: int) -> MappedFile:
        return files.create(start_offset)

    def is_full(folder: Path) -> bool:
        return disk.usage(folder) > force

    fails_fast = pool is not None and config.fast_fail_if_no_buffer_in_store_pool
    allocate = AllocateMappedFile(
        create, size, may_allocate=(lambda: pool is not None and pool.available > 0) if fails_fast else None
    )
    files = MappedFileQueue(
        disk,
        log_folders(paths, config),
        size,
        read_only_folders=[Path(folder) for folder in config.read_only_commit_log_paths],
        allocate=allocate.allocate,
        is_full=is_full,
        borrow=pool.borrow if pool is not None else None,
        prepare=_warm_up(config) if config.warm_maped_file_enable else None,
        ahead=allocate.reserve_ahead,
    )
    return files, allocate


def _warm_up(config: MessageStoreConfig) -> Callable[[DiskFile], None]:
    sync_pages = config.flush_least_pages_when_warm_maped_file if config.flush_disk_type == "SYNC_FLUSH" else 0

    def prepare(file: DiskFile) -> None:
        warm(file, sync_pages=sync_pages)
        lock_memory(file.view, file.path)

    return prepare


def _no_pause(_seconds: float) -> None:
    """The dispatch service itself tries again a second later."""
