"""All services of a store, wired to its structures: started in order, stepped by hand, ended in order (spec 7, 8.3).

With threads each service has one; without, whoever drives the store calls :meth:`StoreServices.step`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final

from engine.errors import UsageError
from engine.rules.unit_check import Rules
from engine.services.allocate import AllocateMappedFile
from engine.services.clean import FIRST_PAUSE_MS, CleanFiles
from engine.services.flush import (
    CommitRealTime,
    FlushCheckpoint,
    FlushConsumeQueue,
    FlushFailed,
    FlushRealTime,
    LogFlush,
)
from engine.services.flush_index import FlushIndex
from engine.services.group_commit import GroupCommit
from engine.services.reput import ReputMessage
from engine.services.service_thread import Service, ServiceThread
from engine.store.config_tables import ConfigTables
from engine.store.running_flags import NOT_WRITEABLE
from engine.store.store_parts import StoreParts

DISPATCH_WAIT_MS: Final = 5000.0
_log = logging.getLogger(__name__)


class StoreServices:
    """The services of ``parts``; ``allocate`` is the one that its log files come from."""

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
        rules = Rules(
            "4.9" if parts.like == "4.9" else "5.3", False, False, config.duplication_enable, config.delay_levels()
        )
        self.reput = ReputMessage(
            parts.files, parts.dispatcher, parts.checkpoint, parts.flags, parts.confirm_offset, rules
        )
        self.clean = CleanFiles(
            parts.files, parts.queues, parts.index, parts.flags, config, parts.disk, clock, parts.queue_folder
        )
        self.persist = PersistTables(parts.tables)
        self._threads = self._make_threads()
        self._running = False

    def _make_threads(self) -> dict[str, ServiceThread]:
        """In the order in which they start."""
        made: dict[str, ServiceThread] = {}

        def add(name: str, service: Service | None, first_pause: float = 0.0) -> None:
            if service is not None:
                made[name] = ServiceThread(service, self._broken, first_pause)

        add("allocate", self.allocate)
        add("reput", self.reput)
        add("flush", self.group or self.flush_real_time)
        add("commit", self.commit)
        add("queues", self.flush_queues, self._parts.config.flush_interval_consume_queue)
        if self._parts.like != "4.9":
            add("checkpoint", FlushCheckpoint(self._parts.checkpoint), FlushCheckpoint.interval)
        add("index", self.flush_index)
        add("clean", self.clean, FIRST_PAUSE_MS)
        add("persist", self.persist, PERSIST_PAUSE_MS)
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """What :meth:`step`, :meth:`pause` and :meth:`resume` know."""
        return tuple(self._threads)

    @property
    def running(self) -> bool:
        """Services have threads of their own."""
        return self._running

    def start(self) -> None:
        """Give every service its thread."""
        self._running = True
        self.allocate.ring = self._threads["allocate"].wakeup
        self.reput.ring = self._threads["reput"].wakeup
        self.flush_index.ring = self._threads["index"].wakeup
        if self.group is not None:
            self.group.ring = self._threads["flush"].wakeup
        for thread in self._threads.values():
            thread.start()

    def thread(self, name: str) -> ServiceThread:
        """The loop of the service ``name``; raises :class:`UsageError` naming those there are."""
        found = self._threads.get(name)
        if found is None:
            raise UsageError(f"expected a service of {', '.join(self._threads)}, found {name!r}")
        return found

    def pause(self, name: str) -> None:
        """No further round of a service until :meth:`resume`; under SYNC_FLUSH puts do not flush themselves then."""
        thread = self.thread(name)
        try:
            if thread.service is self.group and self.group is not None:
                self.group.hold(True)
            thread.pause()
        except BaseException:  # interrupted while it waited: nobody would know that it is paused
            self.resume(name)
            raise

    def resume(self, name: str) -> None:
        """Let a service go on."""
        thread = self.thread(name)
        if thread.service is self.group and self.group is not None:
            self.group.hold(False)
        thread.resume()

    def wakeup(self, name: str) -> None:
        """End the pause of a service, unless its configuration says that nothing can (``flushCommitLogTimed``)."""
        timed = self.flush_real_time is not None and self.flush_real_time.timed
        if not (name == "flush" and timed):
            self._threads[name].wakeup()

    def dispatch(self, offset: int, timeout_ms: float) -> bool:
        """Return when everything before ``offset`` is dispatched: True; False where that took longer."""
        if self._running and self._threads["reput"].running and not self._threads["reput"].paused:
            return self.reput.wait_for(offset, timeout_ms)
        thread, deadline = self._threads["reput"], time.monotonic() + timeout_ms / 1000.0
        while self.reput.reput_from < offset and time.monotonic() < deadline:
            before = self.reput.reput_from
            thread.step()
            if self.reput.reput_from == before:
                break
        return self.reput.reput_from >= offset

    def delete_topics(self, names: Iterable[str]) -> int:
        """Delete the queues of topics, their table rows and offsets; how many had queues. Raises ``OSError``: the topic
        that it met is as it was, those before it are deleted.

        Nothing is dispatched, flushed or cleaned meanwhile. Units of the topics that are in the log now get no entry
        any more, those put later begin at queue offset 0.
        """
        parts, gone, deleted = self._parts, list[str](), 0
        with ExitStack() as held:
            for service in ("clean", "queues", "reput"):
                held.enter_context(self._threads[service].held())
            try:
                for name in names:
                    deleted += parts.queues.delete_topic(name)
                    end = parts.commit_log.forget_topic(name)
                    parts.queues.pass_over(name, end, self.reput.reput_from)
                    gone.append(name)
            finally:
                self._drop_rows(gone)
        return deleted

    def _drop_rows(self, topics: list[str]) -> None:
        try:
            self._parts.tables.delete_topics(topics)
        except OSError as error:
            _log.warning("rows of deleted topics are taken out of the tables by the next save: %s", error)

    def shutdown(self) -> None:
        """End every service: the log flushed, what is in it dispatched (five seconds at most), queues and index
        flushed, checkpoint and tables written, files made ahead deleted. Failures are logged and raise a flag, so that
        the store keeps ``abort``.
        """
        parts = self._parts
        self._stop("clean", "persist", "commit", "flush")
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
        self.flush_index.ring = None
        for what, work in (
            ("queues", self.flush_queues.flush),
            ("index", self._flush_index),
            ("checkpoint", parts.checkpoint.flush),
            ("config tables", parts.tables.save),
        ):
            try:
                work()
            except OSError as error:
                _log.error("the %s could not be written at the end: %s", what, error)
                parts.flags.raise_flag(NOT_WRITEABLE, f"{what}: {error}")
        self._stop("allocate")
        self.allocate.close()
        self._running = False

    def abandon(self) -> None:
        """End the threads and nothing else, as a crash would: nothing is flushed."""
        self.allocate.ring = self.reput.ring = self.flush_index.ring = None
        if self.group is not None:
            self.group.ring = None
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

    def _broken(self, name: str, error: Exception) -> None:
        self._parts.flags.raise_flag(NOT_WRITEABLE, f"service {name} ended: {type(error).__name__}: {error}")


PERSIST_PAUSE_MS = 10_000.0
PERSIST_EVERY_MS = 5000.0


class PersistTables:
    """Saves tables that changed. A failure is told once and tried again: the old table still stands."""

    name = "PersistTablesService"

    def __init__(self, tables: ConfigTables) -> None:
        self.failure: str | None = None
        self._tables = tables

    def step(self) -> float:
        """Save what changed."""
        try:
            self._tables.save()
            self.failure = None
        except OSError as error:
            if self.failure is None:
                _log.warning("config tables cannot be written: %s", error)
            self.failure = str(error)
        return PERSIST_EVERY_MS
