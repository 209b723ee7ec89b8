"""The log that every message is appended to, in the order of acknowledgement (docs/formats/commit-log.md,
docs/formats/writing.md#put; Java: CommitLog).

One lock, held while a message gets its queue offset, its place and its store time, and is copied. Whoever takes it asks
under it whether the log still takes anything: so nobody appends behind :meth:`CommitLog.close`. Nothing here waits for
a flush. A message without any of the properties that put has rules for takes the short way through
:meth:`CommitLog.put_message`; all others go through :mod:`engine.store.put.ruled`, with the same bytes as the result.
"""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

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
from engine.codec.unit_flavours import LONGEST_PROPERTIES
from engine.config import MessageStoreConfig
from engine.errors import NotWriteable, StoreClosed, StoreError
from engine.mapped.mapped_file import MappedFile
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.releases import NEWEST, Release, of
from engine.store.put import batches, objects
from engine.store.put import columns as put_columns
from engine.store.put import ruled as put_ruled
from engine.store.put.log import Topic
from engine.store.put.message import (
    BLANK_SIZE,
    RULED,
    AppendMessageResult,
    AppendMessageStatus,
    Clock,
    PutMessageResult,
    PutMessageResults,
    PutMessageStatus,
    check_topic,
)
from engine.store.queue_offsets import QueueOffsetTable

SMALLEST_LIMIT = 10
"""maxMessageSize below this is not taken over at run time (docs/formats/writing.md#checks)."""
LONGEST_BUSY = 10_000_000
UNTIL_COMPILED = 1000
"""Puts of one message until compiled code is worth loading."""
_BLANK = struct.Struct(">iI")
_U16 = [number.to_bytes(2, "big") for number in range(LONGEST_PROPERTIES + 1)]
_RULED_BITS = TRANSACTION_MASK | INNER_BATCH | NEED_UNWRAP | HOST_BITS
_unruled = RULED.isdisjoint
_new = object.__new__
_PUT_OK, _ILLEGAL = PutMessageStatus.PUT_OK, PutMessageStatus.MESSAGE_ILLEGAL
_APPENDED = AppendMessageStatus.PUT_OK
_log = logging.getLogger(__name__)


class Appending:
    """The append lock held for one append, from the question whether there may be one to its end. Raises
    :class:`NotWriteable`; the lock is free then. ``ask`` is that question.
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

    ``like`` is the release whose checks apply. While ``refuses`` is set, every put is answered with it, and whatever
    else appends raises :class:`NotWriteable`; behind :meth:`close` that is so for good.
    """

    def __init__(
        self,
        config: MessageStoreConfig,
        files: MappedFileQueue,
        queue_offsets: QueueOffsetTable,
        clock: Clock,
        *,
        store_host: str = "127.0.0.1:10911",
        like: Release = NEWEST,
        is_batch_topic: Callable[[str], bool] = lambda _topic: False,
    ) -> None:
        self.config = config
        self.files = files
        self.queue_offsets = queue_offsets
        self.clock = clock
        self.like: Release = like
        self.is_batch_topic = is_batch_topic
        self.lock = threading.Lock()
        self._acquire, self._release = self.lock.acquire, self.lock.release
        self.appending = Appending(self, self.ask)
        """``with log.appending as now``: the append lock, and the store time (ms) of what is appended under it."""
        self.copying = Appending(self, self.ask_copy)
        """The same for what comes from a master's log: a slave takes that, and nothing else."""
        self.locked_since = 0
        """When the append lock was taken (ms), 0 while nobody holds it."""
        self.last_time = 0
        """Store time (ms) that no later message falls behind, even if the clock is set back: recovery looks for its
        first file by these times, and would leave out what it finds too new.
        """
        self.refuses: PutMessageStatus | None = None
        self._refuses_copies: PutMessageStatus | None = None
        self._follows = False
        self.closed = False
        self._deciding = threading.Lock()  # who says what is refused
        self.store_host = store_host
        self.store_host_raw = host_raw(store_host)
        self.max_message_size = config.max_message_size
        self.auto_version = config.auto_message_version_on_topic_len and of(like).long_topics
        self.property_crc = config.enabled_append_prop_crc and of(like).property_crc
        self._busy_after = config.os_page_cache_busy_time_out_mills
        self.flushes_at_once = config.flush_disk_type == "SYNC_FLUSH"
        self.encoder = Encoder()
        """Writes whole columns; under the append lock."""
        self._object_put: ObjectPut | None = None
        self._until_compiled = UNTIL_COMPILED
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
        """How long the append lock has been held now, in ms; 0 while it is free."""
        since = self.locked_since
        return max(0, self.clock() - since) if since else 0

    @property
    def is_busy(self) -> bool:
        """Whether its holder has had the append lock for too long (OS_PAGE_CACHE_BUSY)."""
        return self._busy_after < self.lock_time < LONGEST_BUSY

    def set_max_message_size(self, size: int) -> None:
        """Another limit for bodies (bytes) from the next put on; less than 10 is ignored."""
        if size >= SMALLEST_LIMIT:
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
        """Take nothing from now on but what a master's log has."""
        self._follows = True
        self.refuse(self._refuses_copies)

    def close(self) -> None:
        """Take nothing any more; whoever is appending is through when this returns."""
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
        """What is raised where no status can be given."""
        if self.closed:
            return StoreClosed("the store is closed", file=str(self.files.folders[0]))
        return NotWriteable(f"the store takes nothing now ({self.refused.name})", file=str(self.files.folders[0]))

    @property
    def refused(self) -> PutMessageStatus:
        """The answer to a put that met :class:`NotWriteable`."""
        return self.refuses or PutMessageStatus.SERVICE_NOT_AVAILABLE

    # Putting

    def put_message(self, message: Message) -> PutMessageResult:
        """Check and append one message; the flush that its sender may wait for is not part of it.

        By compiled code once many have come, where the message is plain; the bytes are the same.
        """
        put = self._object_put
        if put is None:
            self._until_compiled -= 1
            if not self._until_compiled:
                self.compiled_put()
            return self.put_otherwise(message)
        why = 0
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
            if (  # as put.is_current() has it, without the call
                file is not None
                and put.file is file
                and file.open_view is put.target
                and self.queue_offsets.numbers is put.numbers
            ):
                position = file.wrote
                sheet = put.sheet
                sheet[_NOW] = now
                sheet[_POSITION] = position
                try:
                    why = put.put_one(message)
                finally:  # what was written has its number, whatever interrupted
                    if sheet[_POSITION] != position:
                        file.store_timestamp = now
                        file.wrote = sheet[_POSITION]
                if why > 0:
                    result = _new(PutMessageResult)
                    result.status = _PUT_OK
                    offset = file.start_offset + position
                    result.fields = _APPENDED, offset, why, now, sheet[_QUEUE_OFFSET], 1, self.store_host_raw
                    return result
        finally:
            self.locked_since = 0
            self._release()
        result = self.put_otherwise(message)
        if result.status is _PUT_OK and why != NOT_PLAIN:
            objects.learn_after(self, put, message, why)
        return result

    def compiled_put(self) -> ObjectPut | None:
        """What puts by compiled code, loaded where it is not yet; None where there is none, or rules forbid it."""
        if self._object_put is None and not self.property_crc:
            found = object_put(self.store_host_raw, RULED, BLANK_SIZE)
            with self.lock:
                if self._object_put is None:
                    self._object_put = found
        self._until_compiled = UNTIL_COMPILED
        return self._object_put

    def put_otherwise(self, message: Message) -> PutMessageResult:
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
        raw = message.properties_raw
        try:
            if raw is None:
                raw = encode_properties(properties) if properties else b""
            born = host_raw(message.born_host)
            stored = self.store_host_raw if message.store_host is None else host_raw(message.store_host)
        except ValueError:
            return PutMessageResult(_ILLEGAL)
        length = len(body)
        long = len(raw)
        if long > LONGEST_PROPERTIES or length > self.max_message_size:
            return put_ruled.put_ruled(self, message)
        size = topic.fixed + length + long
        if len(born) != 8 or len(stored) != 8:
            size += len(born) + len(stored) - 16
            sys_flag |= host_bits(born, stored)
        crc = crc32(body) & MASK
        try:
            with self.appending as now:
                files = self.files.files
                file = files[-1] if files else None
                if file is None or size + BLANK_SIZE > file.size - file.wrote:
                    found = self.room_for(size, now)
                    if isinstance(found, PutMessageResult):
                        return found
                    file = found
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
                    born,
                    now,
                    stored,
                    message.reconsume_times,
                    message.prepared_transaction_offset,
                    length,
                )
                numbers[place] = queue_offset + 1
                try:
                    file.append(b"".join((head, body, topic.raw, _U16[long], raw)), now)
                except BaseException:  # interrupted in between, the unit is there with its number, or neither of them
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
        result.fields = (_APPENDED, offset, size, now, queue_offset, 1, stored)
        return result

    def put_messages(self, messages: Sequence[Message]) -> PutMessageResults:
        """Put many messages of any topics and queues, in order, with the bytes that single puts would have made."""
        return objects.put_messages(self, messages)

    def append_columns(self, what: MessageColumns) -> PutMessageResults:
        """Put messages that are there as arrays, in order; their property text is stored as it is, without rules.

        Raises ``ValueError`` where the columns do not fit each other.
        """
        what.check()
        return put_columns.append_columns(self, what)

    def put_batch(self, messages: Sequence[Message], properties: dict[str, str] | None = None) -> PutMessageResult:
        """Put messages of one topic and queue as a client's batch: see :func:`engine.store.put.batches.put_batch`."""
        return batches.put_batch(self, messages, properties)

    def put_encoded_batch(self, batch: Message) -> PutMessageResult:
        """Put a client's batch as it came: see :func:`engine.store.put.batches.put_encoded_batch`."""
        return batches.put_encoded_batch(self, batch)

    def append_raw(self, unit: bytes) -> int:
        """Store a whole unit again: see :func:`engine.store.put.ruled.append_raw`."""
        return put_ruled.append_raw(self, unit)

    def forget_topic(self, name: str) -> int:
        """The topic was deleted: its queues begin at 0 again. Gives the end of the log, behind which units are new."""
        with self.lock:
            self.queue_offsets.forget(name)
            return self.wrote

    # What the ways to put share; the caller holds the lock where places and files are concerned

    def topic(self, name: str) -> Topic:
        """What the log keeps of the topic ``name``; entered when it is new and may be stored."""
        known = self._topics.get(name)
        if known is None:
            known = Topic(name, check_topic(name, self.like), self.auto_version)
            if known.legal:
                self._topics[name] = known
        return known

    def place(self, topic: Topic, queue_id: int) -> int:
        """Where the queue's next offset stands in ``queue_offsets.numbers``."""
        place = topic.places.get(queue_id)
        if place is None:
            if self.before_first is not None:
                self._begin()
            place = topic.places[queue_id] = self.queue_offsets.place(topic.name, queue_id)
        return place

    def room_for(self, size: int, now: int) -> MappedFile | PutMessageResult:
        """The file that takes the next unit of ``size`` bytes; a BLANK goes where it does not fit
        (docs/formats/commit-log.md#append).

        An answer where there is no such file: not even an empty one is long enough, or none can be made.
        """
        ended: AppendMessageResult | None = None
        for _ in range(2):
            last = self._last_file()
            if last is None:
                return PutMessageResult(PutMessageStatus.CREATE_MAPPED_FILE_FAILED, ended)
            left = last.size - last.wrote
            if size + BLANK_SIZE <= left:
                return last
            ended = AppendMessageResult(
                AppendMessageStatus.END_OF_FILE, last.start_offset + last.wrote, left, now, 0, 1, self.store_host_raw
            )
            self._write_blank(last, now)
        return PutMessageResult(PutMessageStatus.PUT_OK, ended)

    def begin_append(self) -> int:
        """The store time (ms) of what is appended now; the append lock must be held: see :attr:`appending`."""
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
        """End the last file here; False where there is none, or it is full already. Raises :class:`NotWriteable`,
        ``OSError``.
        """
        with self.appending as now:
            last = self.files.last
            if last is None or last.is_full:
                return False
            self._write_blank(last, now)
            return True

    def begin_at(self, physical_offset: int) -> None:
        """Have a file to append to: in an empty log the one whose place holds ``physical_offset``. Raises
        :class:`NotWriteable`, ``OSError``, :class:`StoreError` where none can be made in time.
        """
        with self.appending:
            if self.files.last_or_create(physical_offset) is None:
                raise StoreError("no new file of the commit log can be made", file=str(self.files.folders[0]))

    def failed(self, error: OSError) -> PutMessageResult:
        """The answer where the disk refused; nothing was appended."""
        self._not_appended = self.wrote, str(error)
        _log.error("the append failed: %s", error)
        return PutMessageResult(PutMessageStatus.UNKNOWN_ERROR, AppendMessageResult(AppendMessageStatus.UNKNOWN_ERROR))

    @property
    def not_appended(self) -> str:
        """Why the disk took the last append not; empty where it did, or something was appended since."""
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
        """Eight bytes, and the file is full; what stands behind them stays."""
        at, left = file.wrote, file.size - file.wrote
        file.target(BLANK_SIZE)[at : at + BLANK_SIZE] = _BLANK.pack(left, MAGIC_BLANK)
        file.advance(left, now)
