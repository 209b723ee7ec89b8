"""The log that every message is appended to, in the order of acknowledgement (docs/formats/commit-log.md,
docs/formats/writing.md#put; Java: CommitLog).

One lock is held while a message gets its queue offset, its place and its store time, and is copied. Each append asks
under this lock whether the log still takes anything, so nothing is appended after :meth:`CommitLog.close`. Nothing here
waits for a flush. A message without any of the properties that put has rules for takes the short way through
:meth:`CommitLog.put_message`; all others go through :mod:`engine.store.put_ruled`, with the same bytes as the result.
"""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

from engine.callbacks import Clock
from engine.codec.crc import MASK, crc32
from engine.codec.encode import (
    HEAD_FORMATS,
    HOST_BITS,
    Message,
    encode_properties,
    host_bits,
    host_raw,
)
from engine.codec.message import INNER_BATCH, MAGIC_BLANK, NEED_UNWRAP, TRANSACTION_MASK
from engine.codec.message_columns import Encoder, MessageColumns
from engine.codec.object_put import NOT_PLAIN, ObjectPut, object_put
from engine.codec.object_put import NOW as _NOW
from engine.codec.object_put import POSITION as _POSITION
from engine.codec.object_put import QUEUE_OFFSET as _QUEUE_OFFSET
from engine.codec.unit_flavours import MAX_PROPERTIES_BYTES
from engine.config import MessageStoreConfig
from engine.errors import NotWriteable, StoreClosed, StoreError
from engine.mapped.mapped_file import MappedFile
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.releases import NEWEST, Release, rules_of
from engine.sentences import sentence
from engine.store import put_columns, put_objects, put_ruled
from engine.store.put_message import (
    BLANK_SIZE,
    RULED,
    AppendMessageResult,
    AppendMessageStatus,
    PutMessageResult,
    PutMessageResults,
    PutMessageStatus,
    check_topic,
)
from engine.store.queue_offsets import QueueOffsetTable, Topic

MIN_MAX_MESSAGE_SIZE = 10
"""A smaller maxMessageSize (bytes) is ignored at run time (docs/formats/writing.md#checks)."""
MAX_BUSY_MS = 10_000_000
PUTS_UNTIL_COMPILED = 1000
"""Puts of one message until compiled code is worth loading."""
_BLANK = struct.Struct(">iI")
_U16 = [number.to_bytes(2, "big") for number in range(MAX_PROPERTIES_BYTES + 1)]
_RULED_BITS = TRANSACTION_MASK | INNER_BATCH | NEED_UNWRAP | HOST_BITS
_unruled = RULED.isdisjoint
_new = object.__new__
_PUT_OK, _ILLEGAL = PutMessageStatus.PUT_OK, PutMessageStatus.MESSAGE_ILLEGAL
_APPENDED = AppendMessageStatus.PUT_OK
_log = logging.getLogger(__name__)


class HeldAppendLock:
    """The append lock, held for one append. ``ask`` is called under it and raises :class:`NotWriteable` where the
    log takes nothing; the lock is free then.
    """

    __slots__ = ("_ask", "_log")

    def __init__(self, log: CommitLog, ask: Callable[[], None]) -> None:
        self._log = log
        self._ask = ask

    def __enter__(self) -> int:
        log = self._log
        log.lock.acquire()
        try:
            self._ask()
            return log.begin_append()
        except BaseException:
            log.locked_since = 0
            log.lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.locked_since = 0
        self._log.lock.release()


class CommitLog:
    """Appends to ``files``. ``clock`` gives ms; ``store_host`` is the broker's address for messages that name none.

    ``release`` is the release whose checks apply. While ``refuses`` is set, every put is answered with it, and every
    other append raises :class:`NotWriteable`; after :meth:`close` that is so for good.
    """

    def __init__(
        self,
        config: MessageStoreConfig,
        files: MappedFileQueue,
        queue_offsets: QueueOffsetTable,
        clock: Clock,
        *,
        store_host: str = "127.0.0.1:10911",
        release: Release = NEWEST,
        is_batch_topic: Callable[[str], bool] = lambda _topic: False,
    ) -> None:
        self.config = config
        self.files = files
        self.queue_offsets = queue_offsets
        self.clock = clock
        self.release: Release = release
        self.is_batch_topic = is_batch_topic
        self.lock = threading.Lock()
        self._acquire, self._release = self.lock.acquire, self.lock.release
        self.appending = HeldAppendLock(self, self.ask)
        """``with log.appending as now``: the append lock, and the store time (ms) of what is appended under it."""
        self.copying = HeldAppendLock(self, self.ask_copy)
        """Like :attr:`appending`, for bytes of a master's log: a slave takes those, and nothing else."""
        self.locked_since = 0
        """Time (ms) at which the append lock was taken, 0 while it is free."""
        self.last_time = 0
        """Store time (ms) that no later message falls behind, even if the clock is set back: recovery looks for its
        first file by these times, and would leave out what it finds too new.
        """
        self.refuses: PutMessageStatus | None = None
        self._refuses_copies: PutMessageStatus | None = None
        self._follows = False
        self.closed = False
        self._deciding = threading.Lock()  # guards refuses, _refuses_copies and closed
        self.store_host = store_host
        self.store_host_raw = host_raw(store_host)
        self.max_message_size = config.max_message_size
        self.auto_version = config.auto_message_version_on_topic_len and rules_of(release).long_topics
        self.property_crc = config.enabled_append_prop_crc and rules_of(release).property_crc
        self._busy_after = config.os_page_cache_busy_time_out_mills
        self.flushes_at_once = config.flush_disk_type == "SYNC_FLUSH"
        self.encoder = Encoder()
        """Writes whole columns; under the append lock."""
        self._object_put: ObjectPut | None = None
        self._until_compiled = PUTS_UNTIL_COMPILED
        self._topics: dict[str, Topic] = {}
        self._not_appended = -1, ""
        self.before_first: Callable[[], None] | None = None
        """Called once, under the append lock, before the first put; where it raises ``OSError``, at a later one too."""

    # Where the log stands

    @property
    def min_offset(self) -> int:
        """Start of the first file that may be read, −1 for an empty log (docs/formats/reading.md#other-reads)."""
        return self.files.readable_min

    @property
    def max_offset(self) -> int:
        """End of what may be read."""
        return self.files.max_offset

    @property
    def wrote(self) -> int:
        """End of what has been appended."""
        return self.files.wrote_offset

    @property
    def lock_time(self) -> int:
        """Time (ms) for which the append lock has been held now; 0 while it is free."""
        locked_since = self.locked_since
        return max(0, self.clock() - locked_since) if locked_since else 0

    @property
    def is_busy(self) -> bool:
        """True if the append lock has been held for too long (OS_PAGE_CACHE_BUSY)."""
        return self._busy_after < self.lock_time < MAX_BUSY_MS

    def set_max_message_size(self, size: int) -> None:
        """Set the limit for bodies (bytes) from the next put on; less than 10 is ignored."""
        if size >= MIN_MAX_MESSAGE_SIZE:
            with self.lock:
                self.max_message_size = size
                if self._object_put is not None:
                    self._object_put.release_file()

    def refuse(self, status: PutMessageStatus | None) -> None:
        """Answer every put with ``status`` from now on, None: take them again. A closed log stays closed."""
        with self._deciding:
            if not self.closed:
                self._refuses_copies = status
                self.refuses = PutMessageStatus.SERVICE_NOT_AVAILABLE if self._follows else status

    def follow(self) -> None:
        """Take nothing from now on but the bytes of a master's log."""
        self._follows = True
        self.refuse(self._refuses_copies)

    def close(self) -> None:
        """Take nothing from now on; an append that is under way has ended when this returns."""
        with self.lock, self._deciding:
            self.closed = True
            self.refuses = self._refuses_copies = PutMessageStatus.SERVICE_NOT_AVAILABLE
            if self._object_put is not None:
                self._object_put.release_file()

    def ask(self) -> None:
        """Raise :class:`NotWriteable` where the log takes nothing: to be asked under the append lock."""
        if self.refuses is not None:
            raise self.refusal()

    def ask_copy(self) -> None:
        """:meth:`ask` for what comes from a master's log."""
        if self._refuses_copies is not None:
            raise self.refusal()

    def refusal(self) -> NotWriteable:
        """The error to raise where no status can be returned."""
        if self.closed:
            return StoreClosed(sentence("the store is closed"), file=str(self.files.folders[0]))
        return NotWriteable(
            sentence("the store takes nothing now ({name})", name=self.refused.name), file=str(self.files.folders[0])
        )

    @property
    def refused(self) -> PutMessageStatus:
        """The status of a put that met :class:`NotWriteable`."""
        return self.refuses or PutMessageStatus.SERVICE_NOT_AVAILABLE

    # Putting

    def put_message(self, message: Message) -> PutMessageResult:
        """Check and append one message; the flush that its sender may wait for is not part of it.

        After :data:`PUTS_UNTIL_COMPILED` puts compiled code appends plain messages; the bytes are the same.
        """
        compiled = self._object_put
        if compiled is None:
            self._until_compiled -= 1
            if not self._until_compiled:
                self.compiled_put()
            return self.put_in_python(message)
        outcome = 0
        if self.locked_since and self.is_busy:
            return PutMessageResult(PutMessageStatus.OS_PAGE_CACHE_BUSY)
        self._acquire()  # a with-statement costs twice as much
        try:
            if self.refuses is not None:
                return PutMessageResult(self.refuses)
            now = self.locked_since = self.clock()
            if now > self.last_time:
                self.last_time = now
            else:
                now = self.last_time
            files = self.files.files
            file = files[-1] if files else None
            if (  # put.is_current() inlined: saves a call
                file is not None
                and compiled.file is file
                and file.open_view is compiled.target
                and self.queue_offsets.numbers is compiled.numbers
            ):
                position = file.wrote
                sheet = compiled.sheet
                sheet[_NOW] = now
                sheet[_POSITION] = position
                try:
                    outcome = compiled.put_one(message)
                finally:  # after an interrupt, too, a written unit has its number
                    if sheet[_POSITION] != position:
                        file.store_timestamp = now
                        file.wrote = sheet[_POSITION]
                if outcome > 0:
                    result = _new(PutMessageResult)
                    result.status = _PUT_OK
                    offset = file.start_offset + position
                    result.fields = _APPENDED, offset, outcome, now, sheet[_QUEUE_OFFSET], 1, self.store_host_raw
                    return result
        finally:
            self.locked_since = 0
            self._release()
        result = self.put_in_python(message)
        if result.status is _PUT_OK and outcome != NOT_PLAIN:
            put_objects.learn_after(self, compiled, message, outcome)
        return result

    def compiled_put(self) -> ObjectPut | None:
        """The compiled put, loaded at the first call; None if there is none, or rules forbid it."""
        if self._object_put is None and not self.property_crc:
            loaded = object_put(self.store_host_raw, RULED, BLANK_SIZE)
            with self.lock:
                if self._object_put is None:
                    self._object_put = loaded
        self._until_compiled = PUTS_UNTIL_COMPILED
        return self._object_put

    def put_in_python(self, message: Message) -> PutMessageResult:
        """:meth:`put_message` in plain Python."""
        refuses = self.refuses
        if refuses is not None:
            return PutMessageResult(refuses)
        topic = self._topics.get(message.topic) or self.topic(message.topic)
        body = message.body
        queue_id = message.queue_id
        if not topic.legal or body is None or queue_id < 0:  # type: ignore[redundant-expr]  # a caller may err
            return PutMessageResult(_ILLEGAL)
        if self.locked_since and self.is_busy:
            return PutMessageResult(PutMessageStatus.OS_PAGE_CACHE_BUSY)
        properties = message.properties
        sys_flag = message.sys_flag
        if sys_flag & _RULED_BITS or self.property_crc or (properties and not _unruled(properties)):
            return put_ruled.put_ruled(self, message)
        raw_properties = message.properties_raw
        try:
            if raw_properties is None:
                raw_properties = encode_properties(properties) if properties else b""
            born_host = host_raw(message.born_host)
            stored_host = self.store_host_raw if message.store_host is None else host_raw(message.store_host)
        except ValueError:
            return PutMessageResult(_ILLEGAL)
        body_length = len(body)
        properties_length = len(raw_properties)
        if properties_length > MAX_PROPERTIES_BYTES or body_length > self.max_message_size:
            return put_ruled.put_ruled(self, message)
        size = topic.fixed + body_length + properties_length
        if len(born_host) != 8 or len(stored_host) != 8:
            size += len(born_host) + len(stored_host) - 16
            sys_flag |= host_bits(born_host, stored_host)
        crc = crc32(body) & MASK
        try:
            with self.appending as now:
                files = self.files.files
                file = files[-1] if files else None
                if file is None or size + BLANK_SIZE > file.size - file.wrote:
                    file_or_result = self.room_for(size, now)
                    if isinstance(file_or_result, PutMessageResult):
                        return file_or_result
                    file = file_or_result
                place = topic.places.get(queue_id)
                if place is None:
                    place = self.place(topic, queue_id)
                numbers = self.queue_offsets.numbers
                queue_offset = numbers[place]
                offset = file.start_offset + file.wrote
                born_at = message.born_timestamp
                head = HEAD_FORMATS[sys_flag & HOST_BITS].pack(
                    size,
                    topic.magic,
                    crc,
                    queue_id,
                    message.flag,
                    queue_offset,
                    offset,
                    sys_flag,
                    now if born_at is None else born_at,
                    born_host,
                    now,
                    stored_host,
                    message.reconsume_times,
                    message.prepared_transaction_offset,
                    body_length,
                )
                numbers[place] = queue_offset + 1
                try:
                    file.append(b"".join((head, body, topic.raw, _U16[properties_length], raw_properties)), now)
                except BaseException:  # after an interrupt the unit is there with its number, or neither
                    if offset == file.start_offset + file.wrote:
                        numbers[place] = queue_offset
                    raise
        except NotWriteable:
            return PutMessageResult(self.refused)
        except OSError as error:
            return self.failed(error)
        except struct.error:
            return PutMessageResult(_ILLEGAL)
        result = _new(PutMessageResult)
        result.status = _PUT_OK
        result.fields = (_APPENDED, offset, size, now, queue_offset, 1, stored_host)
        return result

    def put_messages(self, messages: Sequence[Message]) -> PutMessageResults:
        """Put many messages of any topics and queues, in order, with the bytes that single puts would have made."""
        return put_objects.put_messages(self, messages)

    def append_columns(self, columns: MessageColumns) -> PutMessageResults:
        """Put messages that are given as arrays, in order; their property text is stored as it is, without rules.

        Raises ``ValueError`` where the columns do not fit each other.
        """
        columns.check()
        return put_columns.append_columns(self, columns)

    def put_batch(self, messages: Sequence[Message], properties: dict[str, str] | None = None) -> PutMessageResult:
        """Put messages of one topic and queue as a client's batch: see :func:`engine.store.put_ruled.put_batch`."""
        return put_ruled.put_batch(self, messages, properties)

    def put_encoded_batch(self, batch: Message) -> PutMessageResult:
        """Put a client's batch as it came: see :func:`engine.store.put_ruled.put_encoded_batch`."""
        return put_ruled.put_encoded_batch(self, batch)

    def append_raw(self, unit: bytes) -> int:
        """Store a whole unit again: see :func:`engine.store.put_ruled.append_raw`."""
        return put_ruled.append_raw(self, unit)

    def forget_topic(self, name: str) -> int:
        """Let the queues of a deleted topic begin at 0 again; returns the end of the log, behind which units are
        new.
        """
        with self.lock:
            self.queue_offsets.forget(name)
            return self.wrote

    # Shared by all ways to put; the caller holds the lock for everything that changes places or files

    def topic(self, name: str) -> Topic:
        """Return what the log keeps of the topic ``name``; a new one is entered if it may be stored."""
        topic = self._topics.get(name)
        if topic is None:
            topic = Topic(name, check_topic(name, self.release), self.auto_version)
            if topic.legal:
                self._topics[name] = topic
        return topic

    def place(self, topic: Topic, queue_id: int) -> int:
        """Index of the queue's next offset in ``queue_offsets.numbers``; a new queue is entered."""
        place = topic.places.get(queue_id)
        if place is None:
            if self.before_first is not None:
                self._begin()
            place = topic.places[queue_id] = self.queue_offsets.place(topic.name, queue_id)
        return place

    def room_for(self, size: int, now: int) -> MappedFile | PutMessageResult:
        """Return the file that takes the next unit of ``size`` bytes; a BLANK ends a file in which it has no room
        (docs/formats/commit-log.md#append).

        Returns a result instead where there is no such file: not even an empty one is long enough, or none can be
        made.
        """
        end_of_file: AppendMessageResult | None = None
        for _ in range(2):
            file = self._last_file()
            if file is None:
                return PutMessageResult(PutMessageStatus.CREATE_MAPPED_FILE_FAILED, end_of_file)
            room = file.size - file.wrote
            if size + BLANK_SIZE <= room:
                return file
            end_of_file = AppendMessageResult(
                AppendMessageStatus.END_OF_FILE, file.start_offset + file.wrote, room, now, 0, 1, self.store_host_raw
            )
            self._write_blank(file, now)
        return PutMessageResult(PutMessageStatus.PUT_OK, end_of_file)

    def begin_append(self) -> int:
        """Return the store time (ms) of what is appended now; the append lock must be held: see :attr:`appending`."""
        now = self.locked_since = self.clock()
        if self.before_first is not None:
            self._begin()
        self.last_time = max(self.last_time, now)
        return self.last_time

    def _begin(self) -> None:
        try:
            if self.before_first is not None:
                self.before_first()
            self.before_first = None
        except OSError as error:
            _log.warning("before the first put: %s", error)

    def append_blank(self) -> bool:
        """End the last file here; False if there is none, or it is full already. Raises :class:`NotWriteable`,
        ``OSError``.
        """
        with self.appending as now:
            file = self.files.last
            if file is None or file.is_full:
                return False
            self._write_blank(file, now)
            return True

    def begin_at(self, physical_offset: int) -> None:
        """Make sure there is a file to append to: in an empty log the one that holds ``physical_offset``. Raises
        :class:`NotWriteable`, ``OSError``, :class:`StoreError` if none can be made in time.
        """
        with self.appending:
            if self.files.last_or_create(physical_offset) is None:
                raise StoreError(sentence("no new file of the commit log can be made"), file=str(self.files.folders[0]))

    def failed(self, error: OSError) -> PutMessageResult:
        """Return the result of a put that the disk refused; nothing was appended."""
        self._not_appended = self.wrote, str(error)
        _log.error("the append failed: %s", error)
        return PutMessageResult(PutMessageStatus.UNKNOWN_ERROR, AppendMessageResult(AppendMessageStatus.UNKNOWN_ERROR))

    @property
    def not_appended(self) -> str:
        """Reason why the disk refused the last append; empty if it did not, or something was appended since."""
        wrote, why = self._not_appended
        return why if wrote == self.wrote else ""

    def _last_file(self) -> MappedFile | None:
        try:
            return self.files.last_or_create()
        except OSError as error:
            self._not_appended = self.wrote, str(error)
            _log.error("no new file can be made: %s", error)
            return None

    def _write_blank(self, file: MappedFile, now: int) -> None:
        """Write the eight bytes of a BLANK and count the file as full; the bytes behind them stay."""
        position, room = file.wrote, file.size - file.wrote
        file.target(BLANK_SIZE)[position : position + BLANK_SIZE] = _BLANK.pack(room, MAGIC_BLANK)
        file.advance(room, now)
