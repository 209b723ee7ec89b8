"""MessageStore: the engine as one object that reads and writes a store.

Java: DefaultMessageStore; docs/formats/writing.md#flush, docs/formats/cleaning.md.

    >>> with MessageStore(path) as store:
    ...     result = store.put_message(Message("Orders", b"one cup of tea", keys="order-1"))
    ...     dispatched = store.wait_dispatched()
    ...     found = store.query_message("Orders", "order-1").units()
    >>> (result.status.value, dispatched, found[0].body)
    ('PUT_OK', True, b'one cup of tea')

Offsets are bytes of the commit log, queue offsets count entries of a queue, times are ms since 1970. Puts and gets
return a status, as in RocketMQ; :class:`engine.errors.StoreError` and ``OSError`` are raised for errors that stop a
store. Only one process at a time can open a store, and no broker beside it: the store's lock ensures that. After
:meth:`MessageStore.close` puts return SERVICE_NOT_AVAILABLE, :meth:`MessageStore.get_message` returns None, all other
methods raise :class:`engine.errors.StoreClosed`. Nothing is printed; the ``logging`` loggers below ``engine`` report
events.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from engine import releases
from engine.callbacks import Clock, system_clock
from engine.codec.encode import Message
from engine.codec.message import Unit
from engine.codec.message_columns import MessageColumns
from engine.config import MessageStoreConfig
from engine.errors import StoreClosed
from engine.files.layout import StorePaths
from engine.mapped.abort_file import AbortFile
from engine.mapped.disk import Disk, DiskLock, RealDisk
from engine.older_names import renamed_keyword
from engine.releases import Release
from engine.rules.unit_check import Request
from engine.sentences import sentence
from engine.services.opening import apply_flags, close_files, end, load, take_lock, written_by
from engine.services.status import ServiceFailure, read_counts, read_positions, read_troubles
from engine.services.store_services import StoreServices, wire
from engine.store.config_tables import ConfigTables
from engine.store.get_message import GetMessageResult, GetMessageStatus, Limits, get_message
from engine.store.latency import SLOW_NS, Latencies, SlowCalls
from engine.store.message_filter import MessageFilter
from engine.store.offset_by_time import offset_by_time, offset_by_time_49
from engine.store.positions import Positions
from engine.store.put_message import PutMessageResult, PutMessageResults, PutMessageStatus
from engine.store.query_message import (
    MAX_TIME_MS,
    QueryMessageResult,
    by_offset_id,
    by_unique_key,
    look_message_by_offset,
    query_message,
)
from engine.store.recovery.plan import RecoveryPlan
from engine.store.running_flags import RunningFlags
from engine.store.store_parts import StoreParts
from engine.store.stream import StreamBlock, stream

__all__ = ["GetMessageStatus", "Message", "MessageStore", "PutMessageResult", "PutMessageStatus", "system_clock"]

STORE_HOST = "127.0.0.1:10911"
WAIT_MS = 60_000.0
_OK = PutMessageStatus.PUT_OK
_nanoseconds = time.perf_counter_ns
logging.getLogger("engine").addHandler(logging.NullHandler())  # silent unless the embedding program configures logging


class MessageStore:
    """The store in the directory ``path``, created if missing; open from construction until :meth:`close`.

    Opening locks the store, recovers it as a broker would (:attr:`recovery_plan`) and starts the services. It raises
    :class:`engine.errors.StoreLocked`, :class:`StoreError` if a broker would not start, and ``OSError``.

    ``config`` are a broker's settings (:func:`engine.config.read_config`). Paths in it that leave the folder raise
    :class:`engine.files.store_folders.OutsidePath`, unless ``paths_from_config`` allows them. ``release`` is the
    RocketMQ release whose rules apply; by default the one that probably wrote the store, or the newest (``like`` is its
    old name). ``services=False`` starts no thread: the caller drives the store by ``services.step(name)``.
    ``store_host`` is the broker's address in stored messages, ``bit_map`` returns each unit's filter bit map for ext
    queues, ``empty_log`` also opens a store whose log is missing. ``disk`` and ``clock`` (ms) are for tests. All
    methods may be called from any thread.
    """

    @renamed_keyword("like", "release")
    def __init__(
        self,
        path: Path | str,
        config: MessageStoreConfig | None = None,
        *,
        disk: Disk | None = None,
        clock: Clock | None = None,
        release: Release | None = None,
        services: bool = True,
        store_host: str = STORE_HOST,
        bit_map: Callable[[Request], bytes] | None = None,
        empty_log: bool = False,
        progress: Callable[[int], None] | None = None,
        paths_from_config: bool = False,
    ) -> None:
        self.config = config or MessageStoreConfig()
        if paths_from_config:
            self.config = replace(self.config, paths_from_config=True)
        self.paths = StorePaths(Path(path))
        self._services: StoreServices
        self._own_disk = RealDisk()
        self._disk: Disk = disk or self._own_disk
        self.release: Release = release or written_by(self.paths, self._disk)
        self.rules = releases.rules_of(self.release)
        self._closed = False
        self._state_lock = threading.RLock()
        self._put_latencies = Latencies()
        self._put_counts = self._put_latencies.counts
        self._slow_puts, self._slow_gets = SlowCalls(), SlowCalls()
        self._get_counts = [0, 0]
        """Calls of :meth:`get_message` that found nothing, and that found messages."""
        self._refused: Counter[PutMessageStatus] = Counter()
        self._lock: DiskLock = take_lock(self.paths, self.config, self._disk, self.release, empty_log=empty_log)
        try:
            self._parts, self._services = wire(
                self.paths, self.config, self._disk, clock or system_clock, self.release, store_host, bit_map
            )
            self._abort = AbortFile(self._disk, self.paths, self.release)
            self._limits = Limits.of(self.config)
            self.recovery_plan: RecoveryPlan = load(
                self._parts, self._services, bit_map, empty_log=empty_log, progress=progress
            )
            self._start(services)
        except BaseException:
            self._let_go(abandoned=True)
            raise

    # -- opening and closing

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # After close(), _parts and _services are gone; using one raises StoreClosed.
            if name in {"_parts", "_services"}:
                raise StoreClosed(sentence("the store is closed"), file=str(self.paths.root))
            raise AttributeError(name)

    def _start(self, services: bool) -> None:
        parts = self._parts
        self._flags = parts.flags
        self._group = self._services.group
        self._log = parts.commit_log  # refuses puts itself
        self._append = parts.commit_log.put_message
        self._wakeup = self._services.wakeup
        look = parts, self._services, self._put_latencies
        self._positions: Callable[[], Positions] = lambda: read_positions(*look)
        self._wakes_commit = parts.pool is not None and self.config.wake_commit_when_put_message
        self._wakes_flush = self.config.wake_flush_when_put_message and parts.pool is None
        self._plain = self._group is None and not (self._wakes_commit or self._wakes_flush)
        apply_flags(parts)
        if services:
            self._services.start()
        self._abort.create()

    def close(self) -> None:
        """Flush, dispatch the rest (for at most five seconds), write checkpoint and tables, and release everything.

        If any of that fails, ``abort`` stays and the next start recovers as after a crash.
        """
        self._let_go()

    def abandon(self) -> None:
        """Release everything as it is, as a crash would: nothing is flushed, ``abort`` stays."""
        self._let_go(abandoned=True)

    @property
    def closed(self) -> bool:
        """True after :meth:`close` or :meth:`abandon` has begun."""
        return self._closed

    def _let_go(self, *, abandoned: bool = False) -> None:
        """Refuse new calls first, then end the work under way; the lock is released last, whatever happens."""
        with self._state_lock:
            if self._closed:
                return
            self._closed = True
            parts, services = vars(self).pop("_parts", None), vars(self).pop("_services", None)
            try:
                if parts is not None:
                    try:
                        end(parts, services, None if abandoned else self._abort)
                    finally:
                        last_positions = read_positions(parts, services, self._put_latencies)
                        self._positions = lambda: last_positions
                        close_files(parts)
            finally:
                try:
                    self._own_disk.shut()
                finally:
                    self._lock.release()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self._positions().min:,} to {self._positions().wrote:,}"
        return f"MessageStore({str(self.paths.root)!r}, release {self.release}, {state})"

    def __enter__(self) -> Self:
        if self._closed:
            raise StoreClosed(sentence("the store is closed"), file=str(self.paths.root))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- putting

    def put_message(self, message: Message) -> PutMessageResult:
        """Store one message; wait for the disk if configuration and message ask for it."""
        began = _nanoseconds()
        result = self._append(message)
        if not self._plain:
            self._after_put(result, message)
        if result.status is not _OK:
            self._refused[result.status] += 1
        elapsed_ns = _nanoseconds() - began
        self._put_counts[elapsed_ns.bit_length()] += 1
        if elapsed_ns >= SLOW_NS:
            self._slow_puts.add(elapsed_ns)
        return result

    def put_messages(self, messages: Sequence[Message]) -> PutMessageResults:
        """Store messages of any topics and queues: the same bytes as one put each, and much faster.

        Waits once for all of them. The results are computed when they are used.
        """
        return self._after_many(_nanoseconds(), self._log.put_messages(messages))

    def append_columns(self, columns: MessageColumns) -> PutMessageResults:
        """Store messages given as arrays, without rules. Raises ``ValueError`` if columns do not fit."""
        return self._after_many(_nanoseconds(), self._log.append_columns(columns))

    def _after_many(self, began: int, results: PutMessageResults) -> PutMessageResults:
        if not self._plain and results.end_offset:
            if self._group is None:
                self._wake()
            elif results.waits and not self._group.wait(results.end_offset):
                results.set_status(PutMessageStatus.FLUSH_DISK_TIMEOUT)
        if not results.ok:
            self._refused.update(result.status for result in results if result.status is not _OK)
        elapsed_ns = _nanoseconds() - began
        self._put_counts[elapsed_ns.bit_length()] += 1
        if elapsed_ns >= SLOW_NS:
            self._slow_puts.add(elapsed_ns)
        return results

    def put_batch(self, messages: Sequence[Message], properties: dict[str, str] | None = None) -> PutMessageResult:
        """Store messages of one topic and queue as a client's batch with these ``properties``.

        They are contiguous, or one inner batch if the topic has batch queues (docs/formats/commit-log.md#batches).
        """
        began = _nanoseconds()
        return self._counted(began, self._log.put_batch(messages, properties), *messages)

    def put_encoded_batch(self, batch: Message) -> PutMessageResult:
        """Store a batch whose body a client has encoded (docs/formats/commit-log.md#batches)."""
        began = _nanoseconds()
        return self._counted(began, self._log.put_encoded_batch(batch), batch)

    def _counted(self, began: int, result: PutMessageResult, *messages: Message) -> PutMessageResult:
        if not self._plain:
            self._after_put(result, *messages)
        if result.status is not _OK:
            self._refused[result.status] += 1
        elapsed_ns = _nanoseconds() - began
        self._put_counts[elapsed_ns.bit_length()] += 1
        if elapsed_ns >= SLOW_NS:
            self._slow_puts.add(elapsed_ns)
        return result

    def _after_put(self, result: PutMessageResult, *messages: Message) -> None:
        fields = result.fields
        if fields is None or not result.ok:
            return
        group = self._group
        if group is None:
            self._wake()
        elif all(message.waits for message in messages) and not group.wait(fields[1] + fields[2]):
            result.status = PutMessageStatus.FLUSH_DISK_TIMEOUT

    def _wake(self) -> None:
        if self._wakes_commit:
            self._wakeup("commit")
        if self._wakes_flush:
            self._wakeup("flush")

    # -- reading

    def get_message(
        self,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int = 32,
        message_filter: MessageFilter | None = None,
    ) -> GetMessageResult | None:
        """Return messages of a queue from queue offset ``offset`` on, lent until the result is released.

        None if the store is closed or not readable. ``group`` is not used here (docs/formats/reading.md#get-message).
        """
        del group
        if self.closed or not self._flags.readable:
            return None
        try:
            began = _nanoseconds()
            queue = self._parts.queues.find_or_create(topic, queue_id)
            result = get_message(queue, self._parts.log, offset, max_count, message_filter, self._limits)
            self._get_counts[result.status is GetMessageStatus.FOUND] += 1
            elapsed_ns = _nanoseconds() - began
            if elapsed_ns >= SLOW_NS:
                self._slow_gets.add(elapsed_ns)
            return result
        except (OSError, StoreClosed):
            if self._closed:  # closed meanwhile
                return None
            raise

    def offset_in_queue_by_time(self, topic: str, queue_id: int, timestamp: int, boundary: str = "lower") -> int:
        """Return the offset of the first message stored from ``timestamp`` on (``upper``: the last one until it)."""
        queue = self._parts.queues.find_or_create(topic, queue_id)
        if not self.rules.offset_boundaries:
            return offset_by_time_49(queue, self._parts.log, timestamp, queue.modified_times())
        return offset_by_time(queue, self._parts.log, timestamp, boundary)

    def query_message(
        self, topic: str, key: str, max_count: int = 32, begin: int = 0, end: int = MAX_TIME_MS
    ) -> QueryMessageResult:
        """Return messages that the index has under a key, stored from ``begin`` to ``end`` (ms), lent until released.

        Messages whose key only has the same hash are included. A store of RocketMQ 5.4 and later has tags as keys, too
        (:func:`engine.codec.index_keys.key_text`; docs/formats/index-file.md#query).
        """
        return query_message(self._parts.index, self._parts.log, topic, key, max_count, begin, end)

    def query_by_unique_key(self, topic: str, unique_key: str) -> Unit | None:
        """Return the newest message of ``topic`` with this unique key."""
        return by_unique_key(self._parts.index, self._parts.log, topic, unique_key)

    def query_by_offset_id(self, message_id: str) -> Unit | None:
        """Return the message with this offset id (``msgId`` in a put's response)."""
        return by_offset_id(self._parts.log, message_id)

    def look_message_by_offset(self, physical_offset: int) -> Unit | None:
        """Return the message that begins at an offset of the log; None if none does."""
        return look_message_by_offset(self._parts.log, physical_offset)

    def stream(self, topic: str, queue_id: int, start: int = 0) -> Iterator[StreamBlock]:
        """Yield all messages of a queue from queue offset ``start`` on, in blocks that are lent one after the other."""
        return stream(self._parts.queues.find_or_create(topic, queue_id), self._parts.log, start)

    def min_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the first readable queue offset; creates a missing queue."""
        return self._parts.queues.find_or_create(topic, queue_id).min_offset

    def max_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the queue offset behind the last dispatched message; 0 if there is no such queue."""
        queue = self._parts.queues.queue(topic, queue_id)
        return 0 if queue is None else queue.max_offset

    # -- status

    def positions(self) -> Positions:
        """Return the store's positions as one consistent value; cheap. For a closed store, the last ones."""
        return self._positions()

    def counters(self) -> dict[str, int]:
        """Return counts since the store was opened: puts by status, units dispatched, flushes, files deleted."""
        missed_count, found_count = self._get_counts
        return {
            **read_counts(self._services, self._put_latencies, self._refused),
            "get.found": found_count,
            "get.missed": missed_count,
            "slowest.getMs": self._slow_gets.longest_ms,
            "slowest.putMs": self._slow_puts.longest_ms,
        }

    def put_times(self) -> tuple[int, ...]:
        """Return counts of puts by duration, one for each row of :data:`engine.store.latency.CALL_ENDS_MS`."""
        _ = self._services  # gone after close(): asking for it raises StoreClosed
        slow = tuple(self._slow_puts.counts)
        return (max(sum(self._put_counts) - sum(slow), 0), *slow[1:])

    def troubles(self) -> tuple[ServiceFailure, ...]:
        """Return everything that fails now, and why; empty if all is well."""
        return read_troubles(self._parts, self._services)

    @property
    def flags(self) -> RunningFlags:
        """The reasons why the store refuses or withholds messages (:attr:`RunningFlags.why`)."""
        return self._flags

    @property
    def parts(self) -> StoreParts:
        """The structures of the store, for code that displays them."""
        return self._parts

    @property
    def tables(self) -> ConfigTables:
        """Topics, groups and offsets under ``config/``; the store itself uses only which topics have batch queues."""
        return self._parts.tables

    # -- flushing, dispatching, cleaning

    def flush(self) -> int:
        """Write everything put so far to disk; returns the flushed offset. Raises ``FlushFailed``, ``OSError``."""
        self._services.log.flush_all()
        return self._parts.files.flushed_where

    def wait_dispatched(self, timeout_ms: float = WAIT_MS) -> bool:
        """Wait until queues and index have everything that is confirmed now; False after ``timeout_ms``."""
        return self._services.dispatch(self._parts.confirm_offset(), timeout_ms)

    def delete_topics(self, names: Iterable[str]) -> int:
        """Delete the queues, table rows and offsets of topics; returns how many had queues. Messages stay in the log.

        Raises ``OSError`` before anything of its topic changes.
        """
        return self._services.delete_topics(names)

    # -- services by hand

    @property
    def services(self) -> StoreServices:
        """The services, for code that drives them by hand (``step``, ``pause``, ``resume``) or observes them."""
        return self._services
