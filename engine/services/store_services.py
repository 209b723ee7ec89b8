"""All services of a store: created with its parts, started in order, stopped in order
(docs/formats/writing.md#flush, #dispatch).

With threads each service has one. Without threads the caller calls :meth:`StoreServices.step`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from engine.callbacks import Clock
from engine.config import MessageStoreConfig
from engine.errors import StoreError, UsageError
from engine.files.layout import StorePaths
from engine.mapped.disk import Disk, DiskFile
from engine.mapped.mapped_file import MappedFile
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.mapped.memory import lock_memory, warm
from engine.mapped.transient_pool import TransientStorePool
from engine.releases import Release, rules_of
from engine.rules.unit_check import Request, Rules
from engine.sentences import sentence
from engine.services.allocate import AllocateMappedFile
from engine.services.clean import FIRST_CHECK_MS, FIRST_PAUSE_MS, CleanFiles, DiskCheck
from engine.services.flush import (
    CommitRealTime,
    FlushCheckpoint,
    FlushConsumeQueue,
    FlushFailed,
    FlushIndex,
    FlushRealTime,
    LogFlush,
)
from engine.services.group_commit import GroupCommit
from engine.services.persist_tables import PERSIST_PAUSE_MS, PersistTables
from engine.services.reput import ReputMessage
from engine.services.service_thread import Service, ServiceThread
from engine.store.commit_log import CommitLog
from engine.store.config_tables import ConfigTables
from engine.store.consume_queue_store import ConsumeQueueStore
from engine.store.dispatcher import Dispatcher
from engine.store.index_service import IndexService
from engine.store.mapped_log import MappedLog
from engine.store.queue_offsets import QueueOffsetTable
from engine.store.recovery.load_source import written_folders
from engine.store.running_flags import NOT_WRITEABLE, RunningFlags
from engine.store.store_checkpoint import StoreCheckpoint
from engine.store.store_parts import StoreParts

_log = logging.getLogger(__name__)

DISPATCH_WAIT_MS: Final = 5000.0


class StoreServices:
    """The services of ``parts``; ``allocate`` is the service that creates its log files."""

    def __init__(self, parts: StoreParts, allocate: AllocateMappedFile, flush_index: FlushIndex) -> None:
        self._parts = parts
        config, clock = parts.config, parts.clock
        self.log = LogFlush(parts.files, parts.checkpoint, parts.flags)
        self.allocate = allocate
        self.flush_index = flush_index
        self.group: GroupCommit | None = None
        self.flush_real_time: FlushRealTime | None = None
        self.commit: CommitRealTime | None = None
        if parts.sync_flush:
            self.group = GroupCommit(self.log, config.sync_flush_timeout, pool=parts.pool is not None)
        else:
            self.flush_real_time = FlushRealTime(self.log, config, clock)
        if parts.pool is not None:
            self.commit = CommitRealTime(self.log, config, clock, lambda: self.wakeup("flush"))
        self.flush_queues = FlushConsumeQueue(parts.queues, parts.checkpoint, parts.flags, config, clock)
        rules = Rules(parts.release, False, False, config.duplication_enable, config.delay_levels())
        self.reput = ReputMessage(
            parts.files, parts.dispatcher, parts.checkpoint, parts.flags, parts.confirm_offset, rules
        )
        self.clean = CleanFiles(
            parts.files, parts.queues, parts.index, parts.flags, config, parts.disk, clock, parts.queue_folder
        )
        self.persist = PersistTables(parts.tables)
        self.flush_checkpoint = FlushCheckpoint(parts.checkpoint)
        self._threads = self._make_threads()
        self._running = False

    def _make_threads(self) -> dict[str, ServiceThread]:
        """Return the threads in the order in which they start."""
        threads: dict[str, ServiceThread] = {}

        def add(name: str, service: Service | None, first_pause: float = 0.0) -> None:
            if service is not None:
                threads[name] = ServiceThread(service, self._raise_flag_for, first_pause)

        add("allocate", self.allocate)
        add("reput", self.reput)
        add("flush", self.group or self.flush_real_time)
        add("commit", self.commit)
        add("queues", self.flush_queues, self._parts.config.flush_interval_consume_queue)
        if rules_of(self._parts.release).flushes_checkpoint:
            add("checkpoint", self.flush_checkpoint, FlushCheckpoint.interval)
        add("index", self.flush_index)
        add("clean", self.clean, FIRST_PAUSE_MS)
        if rules_of(self._parts.release).checks_disk_by_service:
            add("space", DiskCheck(self.clean), FIRST_CHECK_MS)
        add("persist", self.persist, PERSIST_PAUSE_MS)
        return threads

    @property
    def names(self) -> tuple[str, ...]:
        """The names for :meth:`step`, :meth:`pause` and :meth:`resume`."""
        return tuple(self._threads)

    @property
    def running(self) -> bool:
        """True if the services have their own threads."""
        return self._running

    def start(self) -> None:
        """Start a thread for every service."""
        self._running = True
        self.allocate.wake_service = self._threads["allocate"].wakeup
        self.reput.wake_service = self._threads["reput"].wakeup
        self.flush_index.wake_service = self._threads["index"].wakeup
        if self.group is not None:
            self.group.wake_service = self._threads["flush"].wakeup
        for thread in self._threads.values():
            thread.start()

    def thread(self, name: str) -> ServiceThread:
        """Return the thread of the service ``name``. Raises :class:`UsageError` with the valid names."""
        thread = self._threads.get(name)
        if thread is None:
            raise UsageError(
                sentence(
                    "expected a service of {threads}, found {name}", threads=", ".join(self._threads), name=repr(name)
                )
            )
        return thread

    def step(self, name: str) -> float:
        """Do one round of a service on the caller's thread; returns the milliseconds until the next is due."""
        return self.thread(name).step()

    def dispatch_now(self) -> None:
        """Do one round of dispatch on the caller's thread, unless the service is about to retry a failed round."""
        if self.reput.delayed is None:
            self.step("reput")

    def delete_expired_files(self) -> None:
        """Delete old files in the next twenty cleaning runs, whatever the hour (docs/formats/cleaning.md: by hand)."""
        self.clean.delete_by_hand()
        self.wakeup("clean")

    def pause(self, name: str) -> None:
        """Stop a service after its present round until :meth:`resume`. With SYNC_FLUSH, puts do not flush then."""
        thread = self.thread(name)
        try:
            if thread.service is self.group and self.group is not None:
                self.group.hold(True)
            thread.pause()
        except BaseException:  # interrupted: no caller would know that it is paused
            self.resume(name)
            raise

    def resume(self, name: str) -> None:
        """Let a service continue."""
        thread = self.thread(name)
        if thread.service is self.group and self.group is not None:
            self.group.hold(False)
        thread.resume()

    def wakeup(self, name: str) -> None:
        """End the pause of a service, unless its configuration forbids that (``flushCommitLogTimed``)."""
        timed = self.flush_real_time is not None and self.flush_real_time.timed
        if not (name == "flush" and timed):
            self._threads[name].wakeup()

    def dispatch(self, offset: int, timeout_ms: float) -> bool:
        """Wait until everything before ``offset`` is dispatched and return True; False if that takes longer."""
        if self._running and self._threads["reput"].running and not self._threads["reput"].paused:
            return self.reput.wait_for(offset, timeout_ms)
        thread, deadline = self._threads["reput"], time.monotonic() + timeout_ms / 1000.0
        while self.reput.reput_from < offset and time.monotonic() < deadline:
            old_offset = self.reput.reput_from
            thread.step()
            if self.reput.reput_from == old_offset:
                break
        return self.reput.reput_from >= offset

    def delete_topics(self, names: Iterable[str]) -> int:
        """Delete the queues of topics, their table rows and offsets. Return the number of topics that had queues.

        Raises ``OSError``: then the topic with the error is unchanged, and those before it are deleted. Nothing is
        dispatched, flushed or cleaned meanwhile. Units of the topics that are in the log now get no queue entry; later
        units begin at queue offset 0.
        """
        parts, deleted_names, count_with_queues = self._parts, list[str](), 0
        with ExitStack() as paused_services:
            for service in ("clean", "queues", "reput"):
                paused_services.enter_context(self._threads[service].held())
            try:
                for name in names:
                    count_with_queues += parts.queues.delete_topic(name)
                    end = parts.commit_log.forget_topic(name)
                    parts.queues.pass_over(name, end, self.reput.reput_from)
                    deleted_names.append(name)
            finally:
                self._drop_rows(deleted_names)
        return count_with_queues

    def _drop_rows(self, topics: list[str]) -> None:
        try:
            self._parts.tables.delete_topics(topics)
        except OSError as error:
            _log.warning("the next save removes the rows of deleted topics from the tables: %s", error)

    def shutdown(self) -> None:
        """Stop every service: flush the log, dispatch it (for at most five seconds), flush queues and index, write
        checkpoint and tables, delete files created ahead.

        Failures are logged and raise a flag, so that the file ``abort`` stays.
        """
        parts = self._parts
        self._stop("clean", "space", "persist", "commit", "flush")
        if self.group is not None:
            self.group.close()
        try:
            self.log.flush_all()
        except (FlushFailed, OSError) as error:
            _log.error("the log could not be flushed at the end: %s", error)
            parts.flags.raise_flag(NOT_WRITEABLE, str(error))
        if not self.dispatch(parts.confirm_offset(), DISPATCH_WAIT_MS):
            _log.warning("%d bytes of the log could not be dispatched in time", self.reput.behind)
        self._stop("reput", "queues", "checkpoint", "index")
        self.reput.close()
        self.flush_index.wake_service = None
        for part_name, write in (
            ("queues", self.flush_queues.flush),
            ("index", self._flush_index),
            ("checkpoint", parts.checkpoint.flush),
            ("config tables", parts.tables.save),
        ):
            try:
                write()
            except OSError as error:
                _log.error("the %s could not be written at the end: %s", part_name, error)
                parts.flags.raise_flag(NOT_WRITEABLE, f"{part_name}: {error}")
        self._stop("allocate")
        self.allocate.close()
        self._running = False

    def abandon(self) -> None:
        """End the threads as a crash does: nothing is flushed."""
        self.allocate.wake_service = self.reput.wake_service = self.flush_index.wake_service = None
        if self.group is not None:
            self.group.wake_service = None
        self._stop(*self._threads)
        self.reput.close()
        self._running = False

    def _flush_index(self) -> None:
        self.flush_index.finish()
        if self._parts.index is not None:
            self._parts.index.flush()

    def _stop(self, *names: str) -> None:
        threads = [self._threads[name] for name in names if name in self._threads]
        for thread in threads:
            thread.stop()
        for thread in threads:
            thread.join()
        for thread in threads:
            thread.end()

    def _raise_flag_for(self, name: str, error: Exception) -> None:
        self._parts.flags.raise_flag(NOT_WRITEABLE, f"service {name} ended: {type(error).__name__}: {error}")


def wire(
    paths: StorePaths,
    config: MessageStoreConfig,
    disk: Disk,
    clock: Clock,
    release: Release,
    store_host: str,
    bit_map: Callable[[Request], bytes] | None = None,
) -> tuple[StoreParts, StoreServices]:
    """Create all parts and services of the store below ``paths.root``.

    Raises :class:`StoreError` for a storage mode that is not written here.
    """
    _refuse_unsupported_modes(config)
    flags = RunningFlags()
    tables = ConfigTables(paths, disk, clock, release=release, light=config.enable_lmq)
    checkpoint = StoreCheckpoint(paths.checkpoint, disk, rules_of(release).checkpoint_numbers)
    pool = _pool(config)
    files, allocate = _log_files(paths, config, disk, pool)
    commit_log = CommitLog(
        config,
        files,
        QueueOffsetTable(),
        clock,
        store_host=store_host,
        release=release,
        is_batch_topic=tables.is_batch_topic,
    )
    queues = ConsumeQueueStore(paths, config, disk, tables.is_batch_topic)
    flush_index = FlushIndex(checkpoint)
    index = None
    if config.message_index_enable:
        tags = rules_of(release).writes_tag_entries
        index = IndexService(paths, config, disk, clock, flush_index.take, tag_entries=tags, pause=_no_pause)
    parts = StoreParts(
        paths=paths,
        config=config,
        disk=disk,
        clock=clock,
        release=release,
        flags=flags,
        tables=tables,
        checkpoint=checkpoint,
        pool=pool,
        files=files,
        log=MappedLog(files),
        commit_log=commit_log,
        queues=queues,
        index=index,
        dispatcher=Dispatcher(queues, index, config, bit_map=bit_map),
    )
    return parts, StoreServices(parts, allocate, flush_index)


def _refuse_unsupported_modes(config: MessageStoreConfig) -> None:
    if config.store_type != "default":
        raise StoreError(
            sentence(
                "storeType: expected default, found {store_type}: RocksDB queues are not written here",
                store_type=config.store_type,
            )
        )
    if config.rocksdb_cq_double_write_enable:
        raise StoreError(sentence("rocksdbCQDoubleWriteEnable: expected false: RocksDB queues are not written here"))
    if config.enable_dleger_commit_log:
        raise StoreError(sentence("enableDLegerCommitLog: expected false: a DLedger log is not written here"))


def _pool(config: MessageStoreConfig) -> TransientStorePool | None:
    if not config.transient_store_pool_enable or config.broker_role == "SLAVE":
        return None
    return TransientStorePool(config.transient_store_pool_size, config.mapped_file_size_commit_log, lock=True)


def _log_files(
    paths: StorePaths, config: MessageStoreConfig, disk: Disk, pool: TransientStorePool | None
) -> tuple[MappedFileQueue, AllocateMappedFile]:
    size = config.mapped_file_size_commit_log
    full_ratio = min(max(config.disk_space_clean_forcibly_ratio, 30), 85) / 100
    folders = written_folders(paths, config)
    files: MappedFileQueue

    def create(start_offset: int) -> MappedFile:
        return files.create(start_offset)

    def is_full(folder: Path) -> bool:
        return disk.usage(folder) > full_ratio

    fails_fast = pool is not None and config.fast_fail_if_no_buffer_in_store_pool
    allocate = AllocateMappedFile(
        create, size, may_allocate=(lambda: pool is not None and pool.available > 0) if fails_fast else None
    )
    files = MappedFileQueue(
        disk,
        folders.log,
        size,
        read_only_folders=folders.read_only,
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
    """Do not wait here: the dispatch service retries a second later."""
