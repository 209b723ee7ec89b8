"""Timer messages of a store that runs: taken from their queue into the wheel, and out of it when their time has come
(docs/formats/delays.md#timer-service; Java: TimerMessageStore).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from engine.callbacks import Clock
from engine.codec import properties
from engine.codec.config_tables import metrics
from engine.codec.encode import HOST_BITS, Message, encode_properties
from engine.codec.java import jhash
from engine.codec.json_dialect import parse, render_line
from engine.codec.message import Unit
from engine.codec.timer import (
    MAGIC_DEFAULT,
    MAGIC_DELETE,
    MAGIC_ROLL,
    NO_OFFSET,
    UNIT_SIZE,
    TimerCheck,
    TimerLogUnit,
    decode_check,
)
from engine.errors import CorruptUnit
from engine.mapped.disk import put_file
from engine.store.put_message import PutMessageResult, PutMessageStatus
from engine.store.query_message import look_message_by_offset
from engine.store.queue_entry import unit_at
from engine.store.recovery.source import TIMER_METRICS
from engine.store.store_parts import StoreParts
from engine.store.timers.wheel import TimerLog, TimerWheel
from engine.system_names import TIMER_TOPIC

MAX_PER_STEP = 256
"""Messages of one step: the caller has other work in between."""
DUE_ON_ARRIVAL = (1 << 63) - 1
"""TIMER_ENQUEUE_MS of a message that was due when it reached the wheel."""
_DAYS_KEPT, _SLOTS_FREE = 7 * 86_400, 60
_PAUSE_MS = 500
_CLEAN_MS = 30_000
_FAR = 1 << 62
_Status = PutMessageStatus
_FINAL_REFUSALS = {
    _Status.MESSAGE_ILLEGAL,
    _Status.PROPERTIES_SIZE_EXCEEDED,
    _Status.WHEEL_TIMER_NOT_ENABLE,
    _Status.WHEEL_TIMER_MSG_ILLEGAL,
}
Put = Callable[[Message], PutMessageResult]
_log = logging.getLogger(__name__)


class TimerMessages:
    """The timers of an open store. ``put`` stores a message that leaves the wheel, ``now`` gives ms since the epoch.

    Opening recovers log, wheel and positions; raises :class:`engine.errors.StoreError` where a broker would not start,
    ``OSError``. The caller that opened it calls the steps, on one thread, and :meth:`flush` at the end.

    A slave puts no message. It takes messages into its own wheel as far as its master has done so, and its reading
    time is that of its master (:meth:`follow`), so that it can go on as a master where the other one ended.
    """

    def __init__(self, parts: StoreParts, put: Put, now: Clock) -> None:
        config, paths = parts.config, parts.paths
        self._parts = parts
        self._put = put
        self._now = now
        self._precision = config.timer_precision_ms
        self._window = config.timer_roll_window_slot * self._precision
        self.wheel = TimerWheel(paths.timerwheel, parts.disk, self._precision)
        self.log = TimerLog(paths.timerlog, parts.disk, config.mapped_file_size_timer_log)
        self._waiting: deque[TimerLogUnit] = deque()
        """Units of the slot at :attr:`read_time` that wait to be put."""
        self._recalled: set[str] = set()
        self._not_before = self._cleaned = 0
        self._version = 0
        self._is_slave = config.broker_role == "SLAVE"
        self.on_enqueued: Callable[[str, int], None] = lambda _topic, _seconds: None
        """Called for each message that reaches the wheel: its topic, and the seconds from its birth to its time."""
        self.on_dequeued: Callable[[str], None] = lambda _topic: None
        """Called with the topic of each message that leaves the wheel, for its topic or for another round."""
        self.on_put: Callable[[str, int], None] = lambda _topic, _size: None
        """Called with topic and bytes of each message that is put when it leaves the wheel."""
        self._load()

    # -- opening

    def _load(self) -> None:
        self.wheel.load()
        self.log.load()
        self._metrics = self._read_metrics()
        check = self._written = self._read_check()
        self._version = check.version_counter
        files = self.log.files
        log_start = max(files.min_offset, 0)
        end = self._revise(max(check.flush_position - files.file_size, log_start))
        files.truncate(end)
        files.flushed_where = end
        self.queue_offset = self._behind_last(end)
        self._master = check if check.master_queue_offset > check.queue_offset or self._is_slave else None
        if check.flush_position <= end:  # its messages stand in the log, or went to their topics at once
            self.queue_offset = max(self.queue_offset, check.queue_offset)
        queue = self._parts.queues.queue(TIMER_TOPIC, 0)
        if queue is not None:
            self.queue_offset = min(max(self.queue_offset, queue.min_offset), queue.max_offset)
        now = self._floor(self._now())
        self.write_time = now
        self.read_time = max(check.last_read_time, now - (_DAYS_KEPT - _SLOTS_FREE) * self._precision)
        beyond = self.wheel.beyond(self.read_time, end)
        if beyond is not None and beyond < end:
            self._revise(max(beyond, log_start))

    def _read_check(self) -> TimerCheck:
        raw = self._parts.disk.read_file(self._parts.paths.timercheck)
        try:
            return decode_check(raw or b"")
        except CorruptUnit as error:
            if raw:
                _log.warning("%s: %s", self._parts.paths.timercheck, error)
            return TimerCheck(0, 0, 0, 0, 0, 0, 0)

    def _read_metrics(self) -> dict[str, list[int]]:
        """``timermetrics``: topic to balance and time of its last change."""
        raw = self._parts.disk.read_file(self._parts.paths.config / TIMER_METRICS)
        try:
            balances = metrics(parse(raw or b"{}").value)
        except ValueError:
            return {}
        return {topic: [count, time] for topic, (count, time) in balances.items()}

    def _revise(self, start: int) -> int:
        """Enter every unit of the log from ``start`` on into the wheel; returns where the last one ends."""
        end = start
        for unit in self.log.walk(start):
            self.wheel.revise(unit.due, unit.offset)
            end = unit.offset + UNIT_SIZE
        return end

    def _behind_last(self, end: int) -> int:
        """Queue offset behind the message of the log's last unit, 0 if there is none."""
        last_unit = self.log.unit(end - UNIT_SIZE) if end else None
        message = self._message(last_unit) if last_unit is not None else None
        return 0 if message is None else message.queue_offset + 1

    def _floor(self, time: int) -> int:
        return time // self._precision * self._precision

    def _message(self, unit: TimerLogUnit) -> Unit | None:
        message = look_message_by_offset(self._parts.log, unit.physical_offset)
        return message if message is not None and message.topic == TIMER_TOPIC else None

    def step(self) -> int:
        """Enqueue what came and put what is due; returns how many messages were put. On a slave, return how many
        messages were enqueued: nothing is put.
        """
        enqueued_count = self.enqueue()
        return enqueued_count if self._is_slave else self.dequeue() + enqueued_count

    # -- as a slave

    def follow(self, master: TimerCheck) -> None:
        """Take over the positions of the master's timers, as its answer to request 60 has them. The log must have
        what the master had put by then: messages whose time is before the master's reading time are not put again.
        """
        self._master = master
        self.read_time = max(self.read_time, master.last_read_time)

    def take_metrics(self, text: bytes) -> None:
        """Store the master's balances of waiting messages, as its answer to request 61 has them. Raises
        ``ValueError`` where the text is not such a table, ``OSError``.
        """
        balances = {topic: [count, time] for topic, (count, time) in metrics(parse(text).value).items()}
        if balances == self._metrics:
            return
        self._metrics = balances
        self._version += 1
        put_file(self._parts.disk, self._parts.paths.config / TIMER_METRICS, self.metrics_text().encode())

    def _is_done_by_master(self, message: Unit, due: int) -> bool:
        """Return True if the master has taken the message in, and had put it before its positions were read."""
        master = self._master
        return master is not None and (
            message.queue_offset < master.master_queue_offset and due < master.last_read_time
        )

    # -- into the wheel

    def enqueue(self) -> int:
        """Take messages from the timer queue into the wheel; returns how many."""
        self.write_time = max(self.write_time, self._floor(self._now()))
        queue = self._parts.queues.queue(TIMER_TOPIC, 0)
        if queue is None:
            return 0
        self.queue_offset = max(self.queue_offset, queue.min_offset)
        begun, end = self.queue_offset, queue.max_offset
        if self._is_slave:
            end = min(end, self._master.master_queue_offset if self._master is not None else 0)
        while self.queue_offset < min(end, begun + MAX_PER_STEP):
            entry = unit_at(queue, self.queue_offset)
            if entry is None or entry.state != "entry":
                break
            message = look_message_by_offset(self._parts.log, entry.physical_offset)
            if message is None:
                _log.warning("timer queue %d: no message at %d", self.queue_offset, entry.physical_offset)
            elif not self._take_in(message):
                break
            self.queue_offset += 1
        return self.queue_offset - begun

    def _take_in(self, message: Unit) -> bool:
        """Return True if the message is done with: one that was due before it came here is put at once."""
        due, topic = _number(message.properties.get(properties.TIMER_OUT_MS, "")), _real_topic(message)
        if due is None:
            _log.warning("timer message at %d: no TIMER_OUT_MS", message.physical_offset)
            return True
        if self._is_done_by_master(message, due):
            return True
        if due >= self.write_time or self._is_slave:
            self._to_wheel(message, due)
        elif self._now() >= self._not_before and self._deliver(message, DUE_ON_ARRIVAL, rolls=False):
            self.on_dequeued(topic)
        else:
            return False
        self.on_enqueued(topic, (due - message.born_timestamp) // 1000)
        return True

    def _to_wheel(self, message: Unit, due: int) -> None:
        window, began = self._window, self.write_time
        deletes = properties.TIMER_DEL_UNIQUE_KEY in message.properties
        magic = MAGIC_DEFAULT | (MAGIC_DELETE if deletes else 0)
        if due - began >= window:
            magic |= MAGIC_ROLL
            slots = window // self._precision
            near = due - began - window < slots // 3 * self._precision  # else the next roll would have no time
            due = began + (slots // 2 * self._precision if near else window)
        topic = _real_topic(message)
        slot = self.wheel.slot(due)
        offset = self.log.append(
            TimerLogUnit(
                0, slot.last_offset, magic, began, due - began, message.physical_offset, message.size, jhash(topic)
            )
        )
        first_offset = offset if slot.first_offset == NO_OFFSET else slot.first_offset
        self.wheel.put(due, first_offset, offset, max(slot.count, 0) + (-1 if deletes else 1))
        self._count(topic, -1 if deletes else 1)

    def _count(self, topic: str, change: int) -> None:
        if self._is_slave:
            return  # its master counts
        row = self._metrics.setdefault(topic, [0, 0])
        row[0] += change
        row[1] = self._now()
        self._version += 1

    # -- out of it

    def dequeue(self) -> int:
        """Put what is due: to its topic, or once more into the timer topic; returns how many messages."""
        put = 0
        while put < MAX_PER_STEP and self._now() >= self._not_before:
            if not self._waiting:
                due = self.wheel.next_used(self.read_time, self.write_time)
                if due is None:
                    self.read_time = max(self.read_time, self.write_time)
                    break
                self.read_time = due
                self._open_slot()
            while self._waiting and put < MAX_PER_STEP and self._leave(self._waiting[0]):
                self._waiting.popleft()
                put += 1
            if self._waiting:
                break
            self.read_time += self._precision
        return put

    def _open_slot(self) -> None:
        """Read the units of the slot at :attr:`read_time`: deletes take effect first, then the others wait, the
        oldest first.
        """
        self._recalled = set()
        offset, chain = self.wheel.slot(self.read_time).last_offset, []
        while offset != NO_OFFSET:
            unit = self.log.unit(offset)
            if unit is None:
                _log.warning("timer log: no unit at %d, the slot of %d ends there", offset, self.read_time)
                break
            chain.append(unit)
            offset = unit.previous
        for unit in chain:
            if unit.magic & MAGIC_DELETE and not unit.magic & MAGIC_ROLL:
                message = self._message(unit)
                if message is not None and properties.TIMER_DEL_UNIQUE_KEY in message.properties:
                    self._recalled.add(message.properties[properties.TIMER_DEL_UNIQUE_KEY])
            else:
                self._waiting.appendleft(unit)

    def _leave(self, unit: TimerLogUnit) -> bool:
        """Return True if the unit is done with; False if it is to be tried again."""
        message = self._message(unit)
        if message is None:
            _log.warning("timer log %d: no timer message at %d", unit.offset, unit.physical_offset)
            return True
        message_properties = message.properties
        topic = _real_topic(message)
        if f"{topic}+{message_properties.get(properties.UNIQUE_KEY)}" in self._recalled:
            return True
        rolls = bool(unit.magic & MAGIC_ROLL)
        if not self._deliver(message, unit.write_time, rolls=rolls):
            return False
        self._count(topic, -1)
        self.on_dequeued(topic)
        return True

    def _deliver(self, message: Unit, enqueued: int, *, rolls: bool) -> bool:
        """Put the message that leaves the wheel; returns True if that is done, or never can be. RocketMQ gives up at
        the third refusal, even when the disk is full, unless timerEnableRetryUntilSuccess is on; here a message
        waits until it is taken.
        """
        delivery = _leaving(message, enqueued, self._now(), rolls=rolls)
        if delivery is None:
            return True
        result = self._put(delivery)
        if result.append is not None:
            self.on_put(delivery.topic, result.append.size)
        if result.ok or result.status in _FINAL_REFUSALS:
            return True
        self._not_before = self._now() + _PAUSE_MS
        return False

    # -- keeping

    def flush(self) -> None:
        """Make log, wheel and positions durable where something has changed; raises ``OSError``."""
        master_offset = self._master.master_queue_offset if self._master is not None else 0
        if self.queue_offset == 0 and self.log.files.last is None and master_offset == 0:
            return  # the store has never had a timer message: it gets no files of them
        flushed = self.log.flush()
        self.wheel.flush()
        reads = self._reads(flushed)
        last_check = self._written
        if replace(last_check, state_version=0, version_timestamp=0, version_counter=0) == reads:
            return
        now = self._now()
        check = replace(reads, version_timestamp=now, version_counter=last_check.version_counter + 1)
        disk, paths = self._parts.disk, self._parts.paths
        put_file(disk, paths.timercheck, check.encoded())
        put_file(disk, paths.config / TIMER_METRICS, self.metrics_text().encode())
        self._written = check

    def _reads(self, flushed: int) -> TimerCheck:
        master_offset = self.queue_offset
        if self._is_slave and self._master is not None:
            master_offset = self._master.master_queue_offset
        return TimerCheck(self.read_time, flushed, min(self.queue_offset, master_offset), master_offset, 0, 0, 0)

    def check_point(self) -> TimerCheck:
        """Positions of the timers, with the version of what was written last."""
        last_check = self._written
        return replace(
            self._reads(last_check.flush_position),
            state_version=last_check.state_version,
            version_timestamp=last_check.version_timestamp,
            version_counter=last_check.version_counter,
        )

    def metrics_text(self) -> str:
        """Messages that wait by topic, as ``timermetrics`` has them."""
        rows = {topic: {"count": count, "timeStamp": time} for topic, (count, time) in self._metrics.items()}
        version = {"counter": self._version, "stateVersion": 0, "timestamp": self._now()}
        return render_line({"dataVersion": version, "timingCount": rows})

    def clean(self) -> None:
        """Delete, every half minute, files of the timer log whose messages the commit log no longer holds."""
        now = self._now()
        if now - self._cleaned >= _CLEAN_MS:
            self._cleaned = now
            self.log.delete_expired(self._parts.log.min_offset, now)

    def counts(self) -> dict[str, int]:
        """Number of waiting messages by topic: a balance over all starts, as ``timermetrics`` keeps it."""
        return {topic: count for topic, (count, _) in self._metrics.items()}

    def count(self, start: int, end: int) -> int:
        """Number of messages of the wheel that are due from ``start`` to ``end``, ms from now."""
        now = self._floor(self._now())
        return self.wheel.count(now + start, now + end)

    def left_to_put(self) -> int:
        """Number of messages in the wheel, however far away their time is."""
        return self.wheel.count(self.read_time, _FAR)

    def oldest_waiting(self) -> int:
        """Store time (ms) of the first message that is not in the wheel yet; 0 without one."""
        queue = self._parts.queues.queue(TIMER_TOPIC, 0)
        if queue is None or self.queue_offset >= queue.max_offset:
            return 0
        entry = unit_at(queue, self.queue_offset)
        message = None if entry is None else look_message_by_offset(self._parts.log, entry.physical_offset)
        return 0 if message is None else message.store_timestamp

    def behind(self) -> tuple[int, int]:
        """Lag of the wheel: ms of reading, messages of the queue."""
        queue = self._parts.queues.queue(TIMER_TOPIC, 0)
        late = max(self._floor(self._now()) - self.read_time, 0)
        return late, max(queue.max_offset - self.queue_offset, 0) if queue is not None else 0


def _leaving(message: Unit, enqueued: int, now: int, *, rolls: bool) -> Message | None:
    """Return the message that is put for one that leaves the wheel; None for one that only deletes another."""
    message_properties = {**message.properties, properties.TIMER_ENQUEUE_MS: str(enqueued)}
    if rolls:
        message_properties[properties.TIMER_ROLL_TIMES] = str(
            (_number(message_properties.get(properties.TIMER_ROLL_TIMES, "")) or 0) + 1
        )
    message_properties[properties.TIMER_DEQUEUE_MS] = str(now)
    if not rolls and properties.TIMER_DEL_UNIQUE_KEY in message_properties:
        return None
    topic, queue_id = message.topic, message.queue_id
    if not rolls:
        real = _number(message_properties.get(properties.REAL_QUEUE_ID, ""))
        topic = message_properties.get(properties.REAL_TOPIC, "")
        if not topic or real is None:
            return None
        queue_id = real
    rules = {**message_properties, properties.WAIT: "false"}
    return Message(
        topic,
        message.body,
        queue_id,
        rules,
        encode_properties(message_properties),
        flag=message.flag,
        sys_flag=message.sys_flag & ~HOST_BITS,
        born_timestamp=message.born_timestamp,
        born_host=message.born_host,
        store_host=message.store_host,
        reconsume_times=message.reconsume_times,
    )


def _real_topic(message: Unit) -> str:
    """The topic that a timer message is for."""
    return message.properties.get(properties.REAL_TOPIC, "")


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else None
