"""Messages that wait in a store: delayed ones, timers, open transactions, popped and retried messages
(docs/formats/delays.md, docs/formats/transactions.md).

A message is overdue if the store has a message that was stored after its due time: the current time is the newest store
time of the log, not the wall clock. An overdue message that the log already has in its real topic comes again: the
saved offset of its service is outdated.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Literal

import numpy as np

from engine.codec import pop, timer
from engine.codec import properties as props
from engine.codec.columns import UnitColumns
from engine.codec.config_tables import ConsumerOffset, delay_offsets
from engine.codec.message import Unit
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.errors import CannotRead, CorruptUnit
from engine.inspection import tables
from engine.inspection.block_scan import scan_log
from engine.inspection.check.timer import offsets_read_later
from engine.inspection.groups import Permissions, open_checkpoints, read_permissions, split_retry_topic
from engine.inspection.rocksdb_rows import MessageRow
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.stalled_services import (
    SETTLE_MS,
    StalledService,
    levels_beyond_queues,
    settled_halves,
    stalled_services,
)
from engine.inspection.store_queues import AnyQueue
from engine.sentences import plural, sentence
from engine.system_names import (
    CHECK_MAX_TOPIC,
    HALF_TOPIC,
    RETRY_PREFIX,
    REVIVE_GROUP,
    REVIVE_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TRANSACTION_GROUP,
)
from engine.times import local_time_text

Kind = Literal["delay", "timer", "half", "pop", "retry"]
MAX_POP_RECORDS = 500_000
"""Number of newest records of each revive queue, and of the timer topic, that are read for popped messages."""
KINDS: tuple[Kind, ...] = ("delay", "timer", "half", "pop", "retry")
State = Literal["waiting", "overdue", "again", "ready", "open", "passedOver"]
"""``waiting``: not due; ``overdue``: due at the newest store time; ``again``: overdue, and the log has it in its real
topic already; ``ready``: in a retry topic, its group can read it; ``open``: a half message without an outcome;
``passedOver``: the timer left it behind and never delivers it.
"""


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message that waits at ``queue_offset`` of ``topic``/``queue_id`` for delivery to ``for_topic`` or ``group``.

    ``since`` is when it began to wait, ``due`` when it is delivered or visible again (ms); None if it has no such
    time. ``tries``: deliveries to the group so far, or checks of a transaction. ``why``: why it does not come, as far
    as the store shows it. ``group`` of a half message is its producer's.
    """

    kind: Kind
    state: State
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    physical_offset: int | None
    unique_key: str | None
    keys: tuple[str, ...]
    for_topic: str | None
    group: str | None
    since: int | None
    due: int | None
    overdue_ms: int | None
    tries: int | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class ServiceProgress:
    """The progress of a service: the next queue offset of a queue that ends at ``end_offset``, or the time (ms) up to
    which it has delivered; None if the store does not show it. ``stalled``: words if it is stalled, else "".
    """

    service: Literal["level", "timer", "transactions", "revive"]
    topic: str
    queue_id: int
    next_offset: int | None
    end_offset: int
    read_to: int | None = None
    stalled: str = ""


@dataclass(slots=True)
class WaitingMessages:
    """The first waiting messages in order of due time, and totals of all."""

    newest: int
    rows: list[WaitingMessage] = field(default_factory=list)
    total: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    topics: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)
    services: list[ServiceProgress] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)
    """Kind → why its messages cannot be told, or why some can be missing."""


def find_waiting(
    store: StoreSnapshot,
    limit: int | None = None,
    *,
    kinds: Sequence[str] = KINDS,
    topic: str | None = None,
    group: str | None = None,
    check_stop: Callable[[], None] = lambda: None,
) -> WaitingMessages:
    """Return the waiting messages of ``kinds`` for ``topic`` and ``group`` (None: any), at most ``limit`` as rows.

    ``check_stop`` is called now and then and may raise. What cannot be read is recorded in the store's reading and
    named in ``unknown``.
    """
    newest = newest_store_time(store)
    waiting = WaitingMessages(newest)
    stalled = _read_stalled(store, waiting)
    permissions = _read_permissions(store, waiting)
    readers: tuple[tuple[tuple[Kind, ...], Callable[[StoreSnapshot, int], Iterator[WaitingMessage]]], ...] = (
        (("delay", "retry"), _delayed),
        (("timer",), _timers),
        (("half",), _halves),
        (("pop",), _popped),
        (("retry",), _retries),
    )
    messages: list[Iterable[WaitingMessage]] = []
    for reader_kinds, read in readers:
        if not set(reader_kinds) & set(kinds):
            continue
        messages.append(_guarded(read(store, newest), reader_kinds, waiting))
    chosen = (
        message
        for message in chain.from_iterable(messages)
        if message.kind in kinds and topic in {None, message.for_topic} and group in {None, message.group}
    )
    earliest = _EarliestRows(limit)
    overdue = []
    for message in chosen:
        check_stop()
        if message.state in {"overdue", "open"} and message.unique_key:
            overdue.append(message)
        else:
            _add(waiting, earliest, _with_reason(message, stalled, permissions))
    delivered, _ = _delivered(store, overdue, check_stop)
    for message in overdue:
        key = message.unique_key or ""
        offset = max(delivered.get((key, delivery_topic), -1) for delivery_topic in _delivery_topics(message))
        is_again = message.physical_offset is not None and offset > message.physical_offset
        checked = replace(message, state="again") if is_again else _with_reason(message, stalled, permissions)
        _add(waiting, earliest, checked)
    waiting.rows = earliest.rows()
    waiting.services = list(_services(store, stalled, waiting))
    return waiting


def newest_store_time(store: StoreSnapshot) -> int:
    """Store time (ms) of the last unit of the log; 0 without one."""
    last_items = store.log.items_before(store.log.max_offset, 1, crc=False)
    return last_items[-1].store_timestamp if last_items and isinstance(last_items[-1], Unit) else 0


class _EarliestRows:
    """Keeps the ``limit`` messages that are due first; those without a due time come last."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._heap: list[tuple[tuple[int, int, int], int, WaitingMessage]] = []
        self._numbers = count()

    def add(self, message: WaitingMessage) -> None:
        due = message.due if message.due is not None else 1 << 62
        key = (-due, -(message.since or 0), -(message.physical_offset or 0))
        item = key, -next(self._numbers), message
        if self._limit is None or len(self._heap) < self._limit:
            heapq.heappush(self._heap, item)
        elif self._heap and item[:2] > self._heap[0][:2]:
            heapq.heapreplace(self._heap, item)

    def rows(self) -> list[WaitingMessage]:
        return [message for _, _, message in sorted(self._heap, key=lambda item: item[:2], reverse=True)]


def _add(waiting: WaitingMessages, earliest: _EarliestRows, message: WaitingMessage) -> None:
    earliest.add(message)
    waiting.total += 1
    waiting.kinds[message.kind] += 1
    waiting.states[message.state] += 1
    if message.for_topic:
        waiting.topics[message.for_topic] += 1
    if message.group:
        waiting.groups[message.group] += 1


def _guarded(
    messages: Iterator[WaitingMessage], kinds: tuple[Kind, ...], waiting: WaitingMessages
) -> Iterator[WaitingMessage]:
    try:
        yield from messages
    except CannotRead as error:
        for kind in kinds:
            waiting.unknown.setdefault(kind, error.what)


# -- why a message does not come


def _read_stalled(store: StoreSnapshot, waiting: WaitingMessages) -> list[StalledService]:
    services: list[StalledService] = []
    try:
        services.extend(stalled_services(store, waiting.newest))
    except CannotRead as error:
        waiting.unknown.setdefault("services", error.what)
    return services


def _read_permissions(store: StoreSnapshot, waiting: WaitingMessages) -> Permissions:
    try:
        return read_permissions(store)
    except CannotRead as error:
        waiting.unknown.setdefault("permissions", error.what)
        return Permissions()


def _with_reason(message: WaitingMessage, stalled: list[StalledService], permissions: Permissions) -> WaitingMessage:
    if message.state == "ready":
        why = permissions.why_barred(message.group or "", message.topic or "")
    else:
        why = next((service.words for service in stalled if _waits_for(message, service)), "")
    return replace(message, why=why) if why else message


def _waits_for(message: WaitingMessage, service: StalledService) -> bool:
    if message.kind == "pop" or (message.topic, message.queue_id) != (service.topic, service.queue_id):
        return False
    return message.queue_offset is not None and message.queue_offset >= service.next_offset


# -- the kinds


def _delayed(store: StoreSnapshot, newest: int) -> Iterator[WaitingMessage]:
    """Messages behind the offsets of the delay levels."""
    queues = _known_queues(store).get(SCHEDULE_TOPIC, {})
    if not queues:
        return
    offset_by_level = _level_offsets(store)
    reader = _UnitReader(store)
    for queue_id, queue in sorted(queues.items()):
        for unit, queue_offset, due in reader.units(queue, offset_by_level.get(queue_id + 1, 0)):
            yield _message("delay", unit, queue_offset, newest, due if due > 0 else None)
    reader.require_all_read()


def _timers(store: StoreSnapshot, newest: int) -> Iterator[WaitingMessage]:
    """Messages of the timer wheel, or of the rows in a RocksDB. A popped message's records are not listed."""
    if store.paths is None:
        return
    store.rocksdb_rows.require("timer")
    queue = _known_queues(store).get(TIMER_TOPIC, {}).get(0)
    keys_of_rows: set[str] = set()
    if store.rocksdb_rows.has_timers:
        for row in store.rocksdb_rows.rows("timer"):
            if row.unique_key:
                keys_of_rows.add(row.unique_key)
            if row.state == "waiting" and not (row.topic or "").startswith(REVIVE_PREFIX):
                yield _row_message("timer", row, newest, row.time)
    if queue is None:
        return
    reach = _read_timer_reach(store)
    latest_by_key: dict[str, WaitingMessage] = {}
    reader = _UnitReader(store)
    for unit, queue_offset, _ in reader.units(queue, 0):
        cancelled_key = unit.properties.get(props.TIMER_DEL_UNIQUE_KEY)
        if cancelled_key is not None:
            latest_by_key.pop(cancelled_key.rpartition("+")[2], None)
            continue
        due = unit.properties.get(props.TIMER_OUT_MS, "")
        if due.isdecimal() and not unit.properties.get(props.REAL_TOPIC, "").startswith(REVIVE_PREFIX):
            message = _message("timer", unit, queue_offset, newest, int(due))
            latest_by_key[unit.unique_key or f"@{unit.offset}"] = message  # a rolled message is stored again
    left_wheel = []
    for key, message in latest_by_key.items():
        if reach.is_ahead(message):
            if key not in keys_of_rows:
                yield message
        elif message.unique_key and store.lock_state != "held":
            left_wheel.append(message)
    reader.require_all_read()
    delivered, damage = _delivered(store, left_wheel)
    read_later = offsets_read_later(store, reach.read_to) if left_wheel and not reach.has_rows else frozenset()
    for message in left_wheel:
        offset = delivered.get((message.unique_key or "", message.for_topic or ""), -1)
        if message.unique_key in keys_of_rows or offset > (message.physical_offset or 0):
            continue
        if message.physical_offset in read_later:
            yield message
            continue
        if damage is not None:
            raise CannotRead(
                sentence("the log is damaged at {offset:,}: a message may have been delivered there", offset=damage),
                file=store.log.file_name(damage),
            )
        is_settled = (message.due or 0) <= newest - SETTLE_MS
        why = reach.why_never(message) if is_settled or not reach.is_read_past(message) else ""
        yield replace(message, state="passedOver", why=why) if why else message


@dataclass(frozen=True, slots=True)
class _TimerReach:
    """The progress of the timer: messages before ``put_to`` of the timer queue are in the wheel, or have a row, and
    those that were due before ``read_to`` (ms) have left it. The wheel has its own numbers where there are rows.
    """

    put_to: int
    read_to: int
    wheel_put_to: int = 0
    wheel_read_to: int = 0
    has_rows: bool = False

    def is_ahead(self, message: WaitingMessage) -> bool:
        """Return True if the timer still has to put or to deliver the message."""
        offset, due = message.queue_offset or 0, message.due or 0
        if offset >= self.put_to or (offset < self.wheel_put_to and due >= self.wheel_read_to):
            return True
        return not self.has_rows and due >= self.read_to

    def is_read_past(self, message: WaitingMessage) -> bool:
        """Return True if the timer has read on behind the due time."""
        return (message.due or 0) < self.read_to

    def why_never(self, message: WaitingMessage) -> str:
        """Words for why a message that the log does not have again is never delivered."""
        if not self.is_read_past(message):
            return sentence("it has no row: it is never delivered")
        return sentence(
            "the timer has read up to {time}, and the log does not have the message again",
            time=local_time_text(self.read_to),
        )


def _read_timer_reach(store: StoreSnapshot) -> _TimerReach:
    assert store.paths is not None
    raw = store.small_file(store.paths.timercheck)
    try:
        check = timer.decode_check(raw) if raw else None
    except CorruptUnit as error:
        raise CannotRead(str(error), file=str(store.paths.timercheck)) from error
    put_to, read_to = (check.queue_offset, check.last_read_time) if check is not None else (0, 0)
    if not store.rocksdb_rows.has_timers:
        return _TimerReach(put_to, read_to)
    progress = store.rocksdb_rows.timer_progress()
    return _TimerReach(progress.scanned or 0, progress.timeline or 0, put_to, read_to, has_rows=True)


def _halves(store: StoreSnapshot, newest: int) -> Iterator[WaitingMessage]:
    """Half messages without an op message, and rows of open transactions in a RocksDB."""
    store.rocksdb_rows.require("transactions")
    for row in store.rocksdb_rows.rows("transactions"):
        yield _row_message("half", row, newest, None)
    queues = _known_queues(store).get(HALF_TOPIC, {})
    if not queues:
        return
    offsets = _group_offsets(store, TRANSACTION_GROUP)
    settled = settled_halves(store)
    reader = _UnitReader(store)
    for queue_id, queue in sorted(queues.items()):
        latest_by_key: dict[str, tuple[Unit, int]] = {}
        for unit, queue_offset, _ in reader.units(queue, offsets.get((HALF_TOPIC, queue_id), 0)):
            key = unit.unique_key or f"@{unit.offset}"
            latest_by_key.pop(key, None)  # a check stores the half message again
            if queue_offset not in settled:
                latest_by_key[key] = unit, queue_offset
        for unit, queue_offset in latest_by_key.values():
            yield _message("half", unit, queue_offset, newest, None)
    reader.require_all_read()


def _popped(store: StoreSnapshot, newest: int) -> Iterator[WaitingMessage]:
    """Messages of open checkpoints, and rows of popped messages in a RocksDB."""
    store.rocksdb_rows.require("pop")
    for row in store.rocksdb_rows.rows("pop"):
        yield _row_message("pop", row, newest, row.time)
    _offsets(store)
    for checkpoint, offsets in open_checkpoints(store, MAX_POP_RECORDS):
        queue = store.queues.find(checkpoint.topic, checkpoint.queue_id)
        for queue_offset in offsets:
            entry = queue.entry(queue_offset) if queue is not None else None
            is_entry = entry is not None and entry.state == "entry"
            unit = store.log.seen_at(entry.physical_offset, crc=False) if entry is not None and is_entry else None
            is_unit = isinstance(unit, Unit)
            yield WaitingMessage(
                "pop",
                _state_at(checkpoint.due, newest),
                checkpoint.topic,
                checkpoint.queue_id,
                queue_offset,
                unit.offset if isinstance(unit, Unit) else None,
                unit.unique_key if isinstance(unit, Unit) else None,
                _keys(unit) if isinstance(unit, Unit) else (),
                _subscribed_topic(unit if isinstance(unit, Unit) else None, checkpoint.topic, checkpoint.group),
                checkpoint.group,
                checkpoint.pop_time,
                checkpoint.due,
                _overdue_ms(checkpoint.due, newest),
                unit.reconsume_times + 1 if isinstance(unit, Unit) else None,
                "" if is_unit else sentence("its queue has no message at this offset"),
            )
    _require_all_records(store)


def _require_all_records(store: StoreSnapshot) -> None:
    """Raise :class:`CannotRead` if a queue has more records of pops than are read."""
    for topic, queues in _known_queues(store).items():
        if topic != TIMER_TOPIC and not topic.startswith(REVIVE_PREFIX):
            continue
        if any(queue.max_offset - queue.first_in_log > MAX_POP_RECORDS for queue in queues.values()):
            raise CannotRead(
                sentence("only the newest {count:,} records of {topic} were read", count=MAX_POP_RECORDS, topic=topic)
            )


def _retries(store: StoreSnapshot, newest: int) -> Iterator[WaitingMessage]:
    """Messages of retry topics behind the offset of their group."""
    topics = {name: queues for name, queues in _known_queues(store).items() if name.startswith(RETRY_PREFIX)}
    if not topics:
        return
    rows = [row for row in _offsets(store) if row.mode != "broadcast"]
    groups = {row.group for row in rows}
    offsets = {(row.group, row.topic): row.offsets for row in rows}
    reader = _UnitReader(store)
    for topic, queues in sorted(topics.items()):
        group, _ = split_retry_topic(topic, groups)
        for queue_id, queue in sorted(queues.items()):
            next_offset = offsets.get((group, topic), {}).get(queue_id)
            why = "" if next_offset is not None else sentence("its group has no offset in this retry topic")
            for unit, queue_offset, _ in reader.units(queue, max(next_offset or 0, 0)):
                message = _message("retry", unit, queue_offset, newest, None)
                for_topic = _subscribed_topic(unit, topic, group)
                yield replace(message, state="ready", group=group, for_topic=for_topic, why=why)
    reader.require_all_read()


# -- rows


def _known_queues(store: StoreSnapshot) -> dict[str, dict[int, AnyQueue]]:
    store.queues.require()
    return {topic: dict(queues) for topic, queues in store.queues.by_topic().items()}


def _offsets(store: StoreSnapshot) -> list[ConsumerOffset]:
    """The offsets of all groups. Raises :class:`CannotRead`, also for a table that no broker can load."""
    error = tables.broken_offsets(store)
    if error is not None:
        raise error
    return tables.offsets(store)


def _level_offsets(store: StoreSnapshot) -> dict[int, int]:
    """Delay level → next offset. Raises :class:`CannotRead`, also for a table that no broker can load."""
    table = tables.read_table(store, "delayOffset.json")
    error = tables.note_broken_table(store, table) if table is not None else None
    if error is not None:
        raise error
    value = tables.loaded(store, "delayOffset.json")
    return delay_offsets(value)[0] if value is not None else {}


def _group_offsets(store: StoreSnapshot, group: str) -> dict[tuple[str, int], int]:
    rows = (row for row in _offsets(store) if row.group == group)
    return {(row.topic, queue_id): offset for row in rows for queue_id, offset in row.offsets.items()}


class _UnitReader:
    """Reads the units of queues, and notes the log offsets at which no unit can be read."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._gaps: list[int] = []

    def units(self, queue: AnyQueue, start: int) -> Iterator[tuple[Unit, int, int]]:
        """Units from queue offset ``start`` on, with queue offset and tags code of the entry."""
        for entry in queue.entries(max(start, queue.first_in_log), queue.max_offset):
            if entry.state != "entry":
                continue
            unit = self._store.log.seen_at(entry.physical_offset, crc=False)
            if isinstance(unit, Unit):
                yield unit, entry.queue_offset, entry.tags_code
            else:
                self._gaps.append(entry.physical_offset)

    def require_all_read(self) -> None:
        """Raise :class:`CannotRead` if an entry led to no unit: it is not known what waits there."""
        if self._gaps:
            raise CannotRead(
                plural(
                    "{n:,} entry leads to no message: at {offset:,} of the log nothing can be read",
                    "{n:,} entries lead to no message: the first to {offset:,} of the log, where nothing can be read",
                    n=len(self._gaps),
                    offset=self._gaps[0],
                )
            )


def _message(kind: Kind, unit: Unit, queue_offset: int, newest: int, due: int | None) -> WaitingMessage:
    real_topic = unit.properties.get(props.REAL_TOPIC, "")
    if kind == "delay" and real_topic.startswith(RETRY_PREFIX):
        kind = "retry"
    group = real_topic.removeprefix(RETRY_PREFIX) if kind == "retry" else None
    tries: int | None = unit.reconsume_times if kind == "retry" else None
    if kind == "half":
        checks = unit.properties.get(props.TRANSACTION_CHECK_TIMES, "0")
        group, tries = unit.properties.get(props.PRODUCER_GROUP), int(checks) if checks.isdecimal() else None
    return WaitingMessage(
        kind,
        "open" if kind == "half" else _state_at(due, newest),
        unit.topic,
        unit.queue_id,
        queue_offset,
        unit.offset,
        unit.unique_key,
        _keys(unit),
        _subscribed_topic(unit, real_topic, group or "") or None,
        group,
        unit.store_timestamp,
        due,
        _overdue_ms(due, newest),
        tries,
    )


def _row_message(kind: Kind, row: MessageRow, newest: int, due: int | None) -> WaitingMessage:
    """The message of a row in a RocksDB."""
    unit = row.unit if row.verdict == "match" else None
    why = ""
    if row.state == "unreadable":
        why = sentence("its row cannot be read")
    elif unit is None:
        why = sentence("the log does not have its message")
    tries = row.count if kind == "half" else None
    if kind == "pop" and unit is not None:
        tries = unit.reconsume_times + 1
    since = row.since
    if since is None and unit is not None:
        since = unit.store_timestamp
    return WaitingMessage(
        kind,
        "open" if kind == "half" else _state_at(due, newest),
        unit.topic if unit is not None else row.topic if kind == "pop" else None,
        unit.queue_id if unit is not None else row.queue_id if kind == "pop" else None,
        unit.queue_offset if unit is not None else row.queue_offset,
        row.physical_offset,
        row.unique_key,
        _keys(unit) if unit is not None else (),
        _subscribed_topic(unit, row.topic or "", row.group or "") if kind == "pop" else row.topic,
        row.group,
        since,
        due,
        _overdue_ms(due, newest),
        tries,
        why,
    )


def _keys(unit: Unit) -> tuple[str, ...]:
    return tuple(props.split_keys(unit.properties.get(props.KEYS)))


def _subscribed_topic(unit: Unit | None, topic: str, group: str) -> str:
    """The topic that the group subscribed: a retry topic of pops has it in its name, or its message names it."""
    original_topic = unit.properties.get(props.RETRY_TOPIC) if unit is not None else None
    if not topic.startswith(RETRY_PREFIX):
        return topic
    return original_topic or pop.normal_topic(topic, group) or topic


def _state_at(due: int | None, newest: int) -> State:
    return "overdue" if due is not None and due <= newest else "waiting"


def _overdue_ms(due: int | None, newest: int) -> int | None:
    return newest - due if due is not None and due <= newest else None


def _delivery_topics(message: WaitingMessage) -> tuple[str, ...]:
    """Topics in which the message is stored when it does not wait any more."""
    if message.kind == "half":
        return message.for_topic or "", CHECK_MAX_TOPIC
    if message.kind == "retry":
        return (f"{RETRY_PREFIX}{message.group}",)
    if message.kind == "pop":
        topic, group = message.topic or "", message.group or ""
        is_retry = topic.startswith(RETRY_PREFIX)
        return (topic,) if is_retry else (pop.retry_topic(topic, group), pop.retry_topic(topic, group, v2=True))
    return (message.for_topic or "",)


# -- messages that were delivered although the saved offset is before them


def _delivered(
    store: StoreSnapshot, overdue: Sequence[WaitingMessage], check_stop: Callable[[], None] = lambda: None
) -> tuple[dict[tuple[str, str], int], int | None]:
    """(Unique key, topic) → log offset of the last unit, for the messages in ``overdue`` that the log has again; and
    the offset of the first damage, in which there may be others.
    """
    awaited = {(message.unique_key, topic) for message in overdue for topic in _delivery_topics(message)}
    offsets = [message.physical_offset for message in overdue if message.physical_offset is not None]
    delivered: dict[tuple[str, str], int] = {}
    if not offsets:
        return delivered, None
    names = TopicTable()
    numbers = np.array(
        [names.number_of(topic.encode(errors="surrogatepass")) for topic in {name for _, name in awaited}]
    )
    damage: int | None = None
    for block in scan_log(store.log, min(offsets), None, crc=False, with_tags=False, topics=names):
        check_stop()
        if isinstance(block, Damage) and damage is None:
            damage = block.offset
        if not isinstance(block, UnitColumns) or not block.count:
            continue
        for offset in block.offset[: block.count][np.isin(block.topic_id[: block.count], numbers)].tolist():
            unit = store.log.seen_at(offset, crc=False)
            if isinstance(unit, Unit) and (unit.unique_key, unit.topic) in awaited:
                delivered[unit.unique_key or "", unit.topic] = offset
    return delivered, damage


# -- services


def _services(
    store: StoreSnapshot, stalled: list[StalledService], waiting: WaitingMessages
) -> Iterator[ServiceProgress]:
    """Return the progress of each service that has a queue."""
    try:
        reasons = {(service.topic, service.queue_id): service.words for service in stalled}
        for level in levels_beyond_queues(store):
            reasons[SCHEDULE_TOPIC, level.queue_id] = level.words
        yield from _progress(store, reasons)
    except CannotRead as error:
        waiting.unknown.setdefault("services", error.what)


def _progress(store: StoreSnapshot, reasons: dict[tuple[str, int], str]) -> Iterator[ServiceProgress]:
    queues_by_topic = _known_queues(store)
    offset_by_level = _level_offsets(store)
    for queue_id, queue in sorted(queues_by_topic.get(SCHEDULE_TOPIC, {}).items()):
        place = SCHEDULE_TOPIC, queue_id
        next_offset = offset_by_level.get(queue_id + 1)
        yield ServiceProgress("level", *place, next_offset, queue.max_offset, stalled=reasons.get(place, ""))
    for queue_id, queue in sorted(queues_by_topic.get(TIMER_TOPIC, {}).items()):
        next_offset, read_to = _timer_progress(store)
        place = TIMER_TOPIC, queue_id
        yield ServiceProgress("timer", *place, next_offset, queue.max_offset, read_to, reasons.get(place, ""))
    offsets = _group_offsets(store, TRANSACTION_GROUP) | _group_offsets(store, REVIVE_GROUP)
    for topic, queues in sorted(queues_by_topic.items()):
        if topic != HALF_TOPIC and not topic.startswith(REVIVE_PREFIX):
            continue
        for queue_id, queue in sorted(queues.items()):
            yield ServiceProgress(
                "transactions" if topic == HALF_TOPIC else "revive",
                topic,
                queue_id,
                offsets.get((topic, queue_id)),
                queue.max_offset,
                stalled=reasons.get((topic, queue_id), ""),
            )


def _timer_progress(store: StoreSnapshot) -> tuple[int | None, int | None]:
    if store.rocksdb_rows.has_timers:
        progress = store.rocksdb_rows.timer_progress()
        return progress.scanned, progress.timeline
    raw = store.small_file(store.paths.timercheck) if store.paths is not None else None
    try:
        check = timer.decode_check(raw) if raw else None
    except CorruptUnit:
        check = None
    return (None, None) if check is None else (check.queue_offset, check.last_read_time)
