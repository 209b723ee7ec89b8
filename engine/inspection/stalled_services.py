"""Finds stalled services of a broker: delay levels, timer wheel, transaction check, revive of pops (CF13;
docs/formats/delays.md, docs/formats/transactions.md).

The current time is the newest store time of the log, not the wall clock: a closed store does not age. A service is
stalled if its next action was due, and the broker stored other messages for at least a minute afterwards. If messages
waited only while no broker was running, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import releases
from engine.codec import pop, timer
from engine.codec import properties as props
from engine.codec.columns import UnitColumns
from engine.codec.config_tables import delay_offsets
from engine.codec.message import Unit
from engine.config import MessageStoreConfig
from engine.english import small
from engine.errors import CorruptUnit
from engine.inspection import tables
from engine.inspection.block_scan import scan_log
from engine.inspection.byte_scan import units_with
from engine.inspection.queue_reader import CqEntry
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.store_queues import AnyQueue
from engine.rules import catalogue_tables
from engine.rules.findings import HAPPENED, Finding
from engine.sentences import join, plural, sentence
from engine.system_names import (
    HALF_TOPIC,
    OP_TOPIC,
    RETRY_PREFIX,
    REVIVE_GROUP,
    REVIVE_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TRANSACTION_GROUP,
)
from engine.times import duration_text, time_text

SETTLE_MS = 5_000
"""Time after which a service has certainly done its due work."""
ALIVE_MS = 60_000
"""Time for which a broker must have stored messages after the due time."""
SLOW_SERVICE_MS = 600_000
"""The same for the transaction check and the revive of pops, which run every minute or more often."""
MAX_COUNTED = 100_000
_NO_OFFSET = -1


@dataclass(frozen=True, slots=True)
class StalledService:
    """A stalled service: ``next_offset`` of ``topic``/``queue_id`` was due at ``due_ms``.

    ``overdue`` entries were due at the newest store time, the first of them by ``overdue_ms``. ``why`` is the reason,
    if the store shows it; ``rule_kind`` is the kind of the rule that has the step for it.
    """

    kind: str
    name: str
    topic: str
    queue_id: int
    next_offset: int
    due_ms: int
    overdue: int
    overdue_ms: int
    why: str = ""
    rule_kind: str = ""

    @property
    def words(self) -> str:
        """Words for the stalled position, since when, and the waiting messages."""
        text = self._checkpoint_words if self.kind == "revive" else self._message_words
        return join("; ", [text, self.why]) if self.why else text

    @property
    def _checkpoint_words(self) -> str:
        return plural(
            "{service} has been at {offset:,} since {time}: {n:,} checkpoint is overdue by up to {span}",
            "{service} has been at {offset:,} since {time}: {n:,} checkpoints are overdue by up to {span}",
            n=self.overdue,
            service=self.name,
            offset=self.next_offset,
            time=time_text(self.due_ms),
            span=duration_text(self.overdue_ms),
        )

    @property
    def _message_words(self) -> str:
        if self.overdue_ms < 0:
            return plural(
                "{service} has been at {offset:,} since {time}: {n:,} message is not put into it",
                "{service} has been at {offset:,} since {time}: {n:,} messages are not put into it",
                n=self.overdue,
                service=self.name,
                offset=self.next_offset,
                time=time_text(self.due_ms),
            )
        return plural(
            "{service} has been at {offset:,} since {time}: {n:,} message is overdue by up to {span}",
            "{service} has been at {offset:,} since {time}: {n:,} messages are overdue by up to {span}",
            n=self.overdue,
            service=self.name,
            offset=self.next_offset,
            time=time_text(self.due_ms),
            span=duration_text(self.overdue_ms),
        )


def stalled_services(store: StoreSnapshot, newest: int) -> Iterator[StalledService]:
    """Every stalled service."""
    for queue_id in sorted(store.queues.by_topic().get(SCHEDULE_TOPIC, {})):
        service = stalled_level(store, queue_id + 1, newest)
        if service is not None:
            yield service
    yield from _stalled_timer(store, newest)
    yield from _stalled_groups(store, newest)


@dataclass(frozen=True, slots=True)
class LevelBeyondQueue:
    """A delay level whose offset in delayOffset.json is beyond the end of its queue: it delivers nothing of it."""

    level: int
    next_offset: int
    queue_end: int

    @property
    def queue_id(self) -> int:
        return self.level - 1

    @property
    def words(self) -> str:
        return sentence(
            "Delay level {level} is delivered from {n:,} on, its queue ends at {end:,}",
            level=self.level,
            n=self.next_offset,
            end=self.queue_end,
        )


def levels_beyond_queues(store: StoreSnapshot) -> Iterator[LevelBeyondQueue]:
    """Delay levels whose offset is beyond their queue; none while a broker runs. Raises :class:`CannotRead`."""
    table = tables.loaded(store, "delayOffset.json")
    if table is None or store.lock_state == "held":
        return
    offset_by_level, _ = delay_offsets(table)
    for queue_id, queue in store.queues.by_topic().get(SCHEDULE_TOPIC, {}).items():
        next_offset = offset_by_level.get(queue_id + 1)
        if next_offset is not None and next_offset > queue.max_offset:
            yield LevelBeyondQueue(queue_id + 1, next_offset, queue.max_offset)


def stalled_level(store: StoreSnapshot, level: int, newest: int) -> StalledService | None:
    """The delay level if it is stalled, else None."""
    table = tables.loaded(store, "delayOffset.json")
    queue = store.queues.by_topic().get(SCHEDULE_TOPIC, {}).get(level - 1)
    next_offset = delay_offsets(table)[0].get(level) if table is not None else None
    if queue is None or next_offset is None or not queue.min_offset <= next_offset < queue.max_offset:
        return None
    next_entry = queue.entry(next_offset)
    if next_entry is None or next_entry.state != "entry" or not 0 < next_entry.tags_code <= newest - ALIVE_MS:
        return None
    unit = store.log.seen_at(next_entry.physical_offset, crc=False)
    if not isinstance(unit, Unit) or not _was_alive_behind(store, next_entry.tags_code, newest, ALIVE_MS):
        return None
    if was_delivered(store, unit):
        return None
    why = _refusal(unit, store.config.max_message_size) if store.config is not None else ""
    due = [entry.tags_code for entry in _entries(queue, next_offset) if 0 < entry.tags_code <= newest]
    return StalledService(
        "level",
        sentence("Delay level {level}", level=level),
        SCHEDULE_TOPIC,
        level - 1,
        next_offset,
        next_entry.tags_code,
        len(due),
        newest - next_entry.tags_code,
        why,
    )


def _refusal(unit: Unit, max_message_bytes: int) -> str:
    """Why a broker refuses to deliver ``unit``; "" if its size is no reason.

    Since 4.9.4 a broker compares the body with maxMessageSize; before that the whole message, which has other
    properties when it is delivered than while it waits.
    """
    if len(unit.body) > max_message_bytes:
        return sentence(
            "the body of the first has {size:,} bytes, and maxMessageSize is {most:,}",
            size=len(unit.body),
            most=max_message_bytes,
        )
    if unit.size > max_message_bytes - max_message_bytes // 8:
        return sentence(
            "the first is {size:,} bytes long, and maxMessageSize is {most:,}: releases before 4.9.4 refuse to "
            "deliver it",
            size=unit.size,
            most=max_message_bytes,
        )
    return ""


def _stalled_timer(store: StoreSnapshot, newest: int) -> Iterator[StalledService]:
    """The timer service, if it has accepted or delivered no message for a while."""
    assert store.paths is not None
    if store.why_unknown("timer") is not None or store.rocksdb_rows.has_timers:
        return  # timercheck is that of the wheel, which gets nothing more
    raw = store.small_file(store.paths.timercheck)
    queue = store.queues.find(TIMER_TOPIC, 0)
    if not raw or queue is None:
        return
    try:
        check = timer.decode_check(raw)
    except CorruptUnit:
        return
    waiting = _first_undelivered(store, queue, check, newest) or _refused_by_wheel(store, queue, check, newest)
    if waiting is None:
        return
    overdue_ms = newest - waiting.due_ms if waiting.is_due else -1
    large = _larger_than_timer_buffer(store, waiting.largest)
    yield StalledService(
        "timer",
        sentence("The timer wheel"),
        TIMER_TOPIC,
        0,
        waiting.queue_offset,
        waiting.due_ms,
        waiting.count,
        overdue_ms,
        large,
        "large" if large else "timer",
    )


@dataclass(frozen=True, slots=True)
class _Undelivered:
    """Messages that the timer should have delivered, or put into its wheel, before it stalled.

    ``due_ms``: when the first of them was due, or was stored. ``largest``: the size of the largest one that can
    hold up the others, bytes.
    """

    queue_offset: int
    due_ms: int
    count: int
    largest: int
    is_due: bool = True


def _first_undelivered(
    store: StoreSnapshot, queue: AnyQueue, check: timer.TimerCheck, newest: int
) -> _Undelivered | None:
    """The messages that are due after the time up to which the wheel was read, or, if the wheel goes on, those that
    were not put into it.
    """
    read_to = check.last_read_time
    start = max(queue.min_offset, queue.max_offset - MAX_COUNTED, 0)
    if read_to > newest - ALIVE_MS:
        start, read_to = max(start, check.queue_offset), 0
    earliest: tuple[int, int] | None = None
    count = largest = 0
    for entry in _entries(queue, start):
        unit = store.log.seen_at(entry.physical_offset, crc=False)
        due = _timer_due(unit) if isinstance(unit, Unit) else None
        if due is None or not read_to <= due <= newest - SETTLE_MS or not isinstance(unit, Unit):
            continue
        if earliest is None and (not _was_alive_behind(store, due, newest, ALIVE_MS) or was_delivered(store, unit)):
            continue
        earliest = (entry.queue_offset, due) if earliest is None or due < earliest[1] else earliest
        count += 1
        largest = max(largest, unit.size)
    return _Undelivered(*earliest, count, largest) if earliest is not None else None


def _refused_by_wheel(
    store: StoreSnapshot, queue: AnyQueue, check: timer.TimerCheck, newest: int
) -> _Undelivered | None:
    """The messages from the one at which the timer stops putting messages into its wheel because it is too large."""
    entry = queue.entry(check.queue_offset) if queue.min_offset <= check.queue_offset < queue.max_offset else None
    unit = store.log.seen_at(entry.physical_offset, crc=False) if entry is not None and entry.state == "entry" else None
    if not isinstance(unit, Unit) or not _larger_than_timer_buffer(store, unit.size):
        return None
    if not _was_alive_behind(store, unit.store_timestamp, newest, ALIVE_MS):
        return None
    waiting = queue.max_offset - check.queue_offset
    return _Undelivered(check.queue_offset, unit.store_timestamp, waiting, unit.size, is_due=False)


def _larger_than_timer_buffer(store: StoreSnapshot, size: int) -> str:
    """Words for a message at which the timer stops because it does not fit into its buffer; "" if it fits.

    Java: ``TimerMessageStore.getMessageByCommitOffset`` fails to set the limit of its buffer.
    """
    config = store.config or MessageStoreConfig()
    max_size = config.max_message_size + releases.rules_of("5.3").timer_buffer_extra_bytes
    if size <= max_size:
        return ""
    if store.config is None:
        return sentence(
            "a message has {size:,} bytes, and with the default maxMessageSize releases before 5.4 stop at timer "
            "messages of more than {most:,} bytes",
            size=size,
            most=max_size,
        )
    return sentence(
        "a message has {size:,} bytes, and releases before 5.4 stop at timer messages of more than {most:,} bytes "
        "(maxMessageSize + {extra})",
        size=size,
        most=max_size,
        extra=releases.rules_of("5.3").timer_buffer_extra_bytes,
    )


def _timer_due(unit: Unit) -> int | None:
    """When a message of the timer topic is to be delivered, ms; None for recalls."""
    if props.TIMER_DEL_UNIQUE_KEY in unit.properties:
        return None
    text = unit.properties.get(props.TIMER_OUT_MS, "")
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _stalled_groups(store: StoreSnapshot, newest: int) -> Iterator[StalledService]:
    """The transaction check and the revive of pops, by the offsets that they keep as groups.

    Without an offset the transaction check begins at the first half message, and the revive at offset 0.
    """
    if tables.loaded(store, "consumerOffset.json") is None:
        return
    offsets = {(row.topic, row.group): row.offsets for row in tables.offsets(store)}
    for topic, queues in sorted(store.queues.by_topic().items()):
        for queue_id, queue in sorted(queues.items()):
            if topic == HALF_TOPIC:
                next_offset = offsets.get((topic, TRANSACTION_GROUP), {}).get(queue_id, queue.min_offset)
                service = _stalled_transactions(store, queue, queue_id, next_offset, newest)
            else:
                continue
            if service is not None:
                yield service
    yield from stalled_revives(store, newest)


def stalled_revives(store: StoreSnapshot, newest: int) -> Iterator[StalledService]:
    """The queues whose pops are not revived, in files or in a RocksDB; nothing if queues or offsets are unknown."""
    if any(store.why_unknown(subject) is not None for subject in ("log", "queues", "offsets")):
        return
    queues = [
        (topic, queue_id, queue)
        for topic, by_id in sorted(store.queues.by_topic().items())
        if topic.startswith(REVIVE_PREFIX)
        for queue_id, queue in sorted(by_id.items())
    ]
    if not queues or tables.loaded(store, "consumerOffset.json") is None:
        return
    offsets = _revive_offsets(store)
    for topic, queue_id, queue in queues:
        last_offset = offsets.get((topic, queue_id), _NO_OFFSET)
        service = _stalled_revive(store, topic, queue, queue_id, last_offset, newest)
        if service is not None:
            yield service


def _revive_offsets(store: StoreSnapshot) -> dict[tuple[str, int], int]:
    """Offset of the last checkpoint that was handled, by topic and queue id."""
    rows = (row for row in tables.offsets(store) if row.group == REVIVE_GROUP)
    return {(row.topic, queue_id): offset for row in rows for queue_id, offset in row.offsets.items()}


def unrevived_checkpoint(store: StoreSnapshot, service: StalledService, unit: Unit) -> pop.CheckPoint | None:
    """The first checkpoint that waits for the stalled revive ``service`` and holds ``unit``, if the group has not
    acknowledged it.
    """
    queue = store.queues.find(service.topic, service.queue_id)
    if queue is None:
        return None
    start = _revive_offsets(store).get((service.topic, service.queue_id), _NO_OFFSET) + 1
    place = (unit.topic, unit.queue_id)
    checkpoints: dict[str, pop.CheckPoint] = {}
    for entry in _entries(queue, max(start, queue.min_offset)):
        record = store.log.seen_at(entry.physical_offset, crc=False)
        if not isinstance(record, Unit):
            continue
        if record.tags == pop.CHECK_POINT_TAG:
            checkpoint = pop.read_check_point(record.body, entry.queue_offset)
            holds_unit = checkpoint is not None and unit.queue_offset in checkpoint.offsets
            if checkpoint is not None and holds_unit and (checkpoint.topic, checkpoint.queue_id) == place:
                checkpoints[checkpoint.merge_key] = checkpoint
        elif record.tags in (pop.ACK_TAG, pop.BATCH_ACK_TAG):
            ack = pop.read_ack(record.body, record.tags, "")
            if ack is not None and unit.queue_offset in ack.all_offsets:
                checkpoints.pop(ack.merge_key, None)
    return next(iter(checkpoints.values()), None)


def _stalled_transactions(
    store: StoreSnapshot, queue: AnyQueue, queue_id: int, next_offset: int, newest: int
) -> StalledService | None:
    """The transaction check, if it has not looked at an undecided half message for a while."""
    if not queue.min_offset <= next_offset < queue.max_offset:
        return None
    settled: frozenset[int] | None = None
    oldest_open: tuple[int, Unit] | None = None
    count = 0
    for entry in _entries(queue, next_offset):
        unit = store.log.seen_at(entry.physical_offset, crc=False)
        if not isinstance(unit, Unit):
            continue
        immune = unit.properties.get("CHECK_IMMUNITY_TIME_IN_SECONDS", "0")
        due_ms = unit.store_timestamp + (int(immune) * 1000 if immune.isdecimal() and len(immune) < 9 else 0)
        if due_ms > newest - SLOW_SERVICE_MS:
            if oldest_open is None and unit.store_timestamp > newest - SLOW_SERVICE_MS:
                return None  # all later ones are newer still
            continue
        if settled is None:
            settled = settled_halves(store)
        if entry.queue_offset in settled:
            continue
        if oldest_open is None:
            if not _was_alive_behind(store, due_ms, newest, SLOW_SERVICE_MS):
                return None
            if _newer_half(store, queue, unit, entry.queue_offset):
                return None  # the check wrote the half again: only the offset in the table is outdated
            oldest_open = due_ms, unit
        count += 1
    if oldest_open is None:
        return None
    due_ms, unit = oldest_open
    why = _refusal(unit, store.config.max_message_size) if store.config is not None else ""
    return StalledService(
        "transactions",
        sentence("The check of transactions"),
        HALF_TOPIC,
        queue_id,
        next_offset,
        due_ms,
        count,
        newest - due_ms,
        why,
        "refused half" if why else "transactions",
    )


def settled_halves(store: StoreSnapshot) -> frozenset[int]:
    """Half-queue offsets that op messages name: their transactions were committed or rolled back."""
    settled: set[int] = set()
    for queue in store.queues.by_topic().get(OP_TOPIC, {}).values():
        for entry in _entries(queue, max(queue.min_offset, queue.max_offset - MAX_COUNTED, 0)):
            unit = store.log.seen_at(entry.physical_offset, crc=False)
            if isinstance(unit, Unit):
                pieces = unit.body.decode("ascii", "replace").split(",")
                settled.update(int(piece) for piece in pieces if piece.strip().isdecimal())
    return frozenset(settled)


def _stalled_revive(
    store: StoreSnapshot, topic: str, queue: AnyQueue, queue_id: int, last_offset: int, newest: int
) -> StalledService | None:
    """The revive of pops, if a checkpoint has been due for a while.

    A checkpoint comes into this queue when its messages are visible again. The offset is that of the last checkpoint
    that was handled. Acknowledgements behind that one are not counted: a broker reads them again at each round until a
    later checkpoint is handled.
    """
    first_stored: int | None = None
    count = 0
    why = ""
    for entry in _entries(queue, max(last_offset + 1, queue.min_offset)):
        unit = store.log.seen_at(entry.physical_offset, crc=False)
        if not isinstance(unit, Unit):
            continue
        if unit.store_timestamp > newest - SLOW_SERVICE_MS:
            break
        tag = unit.tags
        if tag not in (pop.CHECK_POINT_TAG, pop.ACK_TAG, pop.BATCH_ACK_TAG):
            continue
        unreadable = not pop.is_record(unit.body)
        if unreadable and not why:
            why = sentence("the body of entry {n:,} is not JSON, and the service fails at it", n=entry.queue_offset)
        if tag != pop.CHECK_POINT_TAG and not unreadable:
            continue
        checkpoint = None if unreadable else pop.read_check_point(unit.body, entry.queue_offset)
        if not unreadable and checkpoint is None:
            continue
        if first_stored is None:
            if not _was_alive_behind(store, unit.store_timestamp, newest, SLOW_SERVICE_MS):
                return None
            if checkpoint is not None and _was_revived(store, checkpoint, unit.end):
                return None  # only the offset in the table is outdated
            first_stored = unit.store_timestamp
        count += checkpoint is not None
    if first_stored is None or not count:
        return None
    return StalledService(
        "revive",
        sentence("The revive of pops ({topic})", topic=topic),
        topic,
        queue_id,
        max(last_offset, 0),
        first_stored,
        count,
        newest - first_stored,
        why,
        "unreadable" if why else "revive",
    )


def _was_revived(store: StoreSnapshot, checkpoint: pop.CheckPoint, start: int) -> bool:
    """Return True if the log has a message of the checkpoint in a retry topic, at or after the offset ``start``."""
    queue = store.queues.find(checkpoint.topic, checkpoint.queue_id)
    for queue_offset in checkpoint.offsets:
        entry = queue.entry(queue_offset) if queue is not None else None
        if entry is None or entry.state != "entry":
            continue
        unit = store.log.seen_at(entry.physical_offset, crc=False)
        if not isinstance(unit, Unit) or not unit.unique_key:
            continue
        needle = f"{props.UNIQUE_KEY}\x01{unit.unique_key}".encode()
        if any(later.topic.startswith(RETRY_PREFIX) for later in units_with(store.log, needle, start)):
            return True
    return False


def _newer_half(store: StoreSnapshot, queue: AnyQueue, half: Unit, number: int) -> bool:
    """Return True if the half message was written again further back in the queue."""
    for entry in _entries(queue, number + 1):
        unit = store.log.seen_at(entry.physical_offset, crc=False)
        if isinstance(unit, Unit) and half.unique_key and unit.unique_key == half.unique_key:
            return True
    return False


def _entries(queue: AnyQueue, start: int) -> Iterator[CqEntry]:
    """Entries from ``start`` on, at most :data:`MAX_COUNTED`."""
    for entry in queue.entries(start, min(queue.max_offset, start + MAX_COUNTED)):
        if entry.state == "entry":
            yield entry


def was_delivered(store: StoreSnapshot, unit: Unit) -> bool:
    """Return True if the log holds the message again behind its waiting place: then only the table is outdated."""
    key, topic = unit.unique_key, unit.properties.get(props.REAL_TOPIC)
    if not key:
        return False
    needle = f"{props.UNIQUE_KEY}\x01{key}".encode()
    return any(
        later_unit.topic == topic and later_unit.unique_key == key
        for later_unit in units_with(store.log, needle, unit.end)
    )


def _was_alive_behind(store: StoreSnapshot, due: int, newest: int, span_ms: int) -> bool:
    """Return True if the broker stored messages from shortly after ``due`` on for at least ``span_ms``."""
    first_stored = _first_stored_from(store, due + SETTLE_MS)
    return first_stored is not None and newest - first_stored >= span_ms


def _first_stored_from(store: StoreSnapshot, time: int) -> int | None:
    """Store time (ms) of the first unit stored at or after ``time``; None if there is none."""
    files = store.log.files
    start = max(store.log.min_offset, 0)
    for file in files:
        head = store.log.seen_at(file.start_offset, crc=False)
        if isinstance(head, Unit) and head.store_timestamp < time:
            start = file.start_offset
    for block in scan_log(store.log, start, None, crc=False, with_tags=False):
        if isinstance(block, UnitColumns) and block.count:
            late = np.flatnonzero(block.store_timestamp[: block.count] >= time)
            if len(late):
                return int(block.store_timestamp[late[0]])
    return None


def findings(store: StoreSnapshot, newest: int) -> Iterator[Finding]:
    """CF13 of a store; ``newest`` is its newest store time (ms). Raises :class:`CannotRead`."""
    if store.paths is None or newest <= 0:
        return
    files = {"level": "delayOffset.json", "timer": "timercheck"}  # others keep their offsets as consumer groups do
    for service in stalled_services(store, newest):
        path = tables.table_place(store, files.get(service.kind, "consumerOffset.json"))
        evidence: dict[str, Any] = {
            "queue": f"{service.topic}/{service.queue_id}",
            "found": service.next_offset,
            "messages": service.overdue,
            "overdueMs": service.overdue_ms,
            "since": time_text(service.due_ms),
            HAPPENED: small(service.words),
        }
        yield catalogue_tables.CF13.finding(service.words, path, None, evidence, kind=service.rule_kind or service.kind)
