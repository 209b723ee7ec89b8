"""The structures of one open store. Services change them, and MessageStore reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.callbacks import Clock
from engine.config import MessageStoreConfig
from engine.files.layout import StorePaths
from engine.mapped.disk import Disk
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.mapped.transient_pool import TransientStorePool
from engine.releases import Release, rules_of
from engine.store.commit_log import CommitLog
from engine.store.config_tables import ConfigTables
from engine.store.consume_queue_store import ConsumeQueueStore
from engine.store.dispatcher import Dispatcher
from engine.store.index_service import IndexService
from engine.store.mapped_log import MappedLog
from engine.store.running_flags import RunningFlags
from engine.store.store_checkpoint import StoreCheckpoint


@dataclass(frozen=True, slots=True)
class StoreParts:
    """The structures of a store. ``pool`` is None without a transient pool, ``index`` where no index is kept."""

    paths: StorePaths
    config: MessageStoreConfig
    disk: Disk
    clock: Clock
    release: Release
    flags: RunningFlags
    tables: ConfigTables
    checkpoint: StoreCheckpoint
    pool: TransientStorePool | None
    files: MappedFileQueue
    log: MappedLog
    commit_log: CommitLog
    queues: ConsumeQueueStore
    index: IndexService | None
    dispatcher: Dispatcher

    @property
    def sync_flush(self) -> bool:
        """True if puts wait for the disk."""
        return self.config.flush_disk_type == "SYNC_FLUSH"

    @property
    def queue_folder(self) -> Path:
        """The folder whose disk the queues share."""
        return self.paths.consumequeue

    def confirm_offset(self) -> int:
        """End of the bytes that may be dispatched (docs/formats/writing.md#dispatch): what is flushed under SYNC_FLUSH
        since 5.3.2, else everything.
        """
        files = self.files
        if self.sync_flush and rules_of(self.release).dispatches_flushed_only and not self.config.read_un_committed:
            return min(files.flushed_where, files.max_offset)
        return files.max_offset
