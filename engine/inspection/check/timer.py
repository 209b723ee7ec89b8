"""Checks timer messages: compares timer queue, timer log, wheel and ``timercheck`` (docs/formats/delays.md).

A start relies on the timer log: the queue continues behind the message of its last unit, and the wheel is rebuilt from
its last two files. A message that is not due and in neither of them is never delivered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine import releases
from engine.codec import properties, timer
from engine.codec.dtypes import TIMER_LOG_UNIT
from engine.codec.message import Unit
from engine.config import MessageStoreConfig
from engine.errors import CorruptUnit
from engine.inspection.check.timer_deliveries import TimerDeliveries
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.timer_wheel import WheelFile, wheel_taken
from engine.inspection.written_release import release_of
from engine.mapped.read_only import FileSequence, ReadOnlyFile
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, STORE, Finding, Severity
from engine.sentences import join, plural, sentence
from engine.system_names import TIMER_TOPIC
from engine.times import time_text

MAX_LISTED = 20
MAX_WAITING = 20_000
"""Waiting messages that are looked up one by one."""
_CHUNK = 1 << 16
_READ_TIME_AT = 0
_QUEUE_OFFSET_AT = 16
_SETTLE_MS = 5_000
"""Time by which a delivery may be stored before its due time, or a unit be dated wrong."""
_FLUSH_AT = 8
Int64 = NDArray[np.int64]
_NO_MESSAGES = np.zeros(0, [("offset", np.int64), ("due", np.int64)])


def findings(store: StoreSnapshot, newest: int = 0, deliveries: TimerDeliveries | None = None) -> Iterator[Finding]:
    """TM01–TM03 and TM05; ``newest`` is the latest store time of the log (ms; 0 if there is none), ``deliveries`` what
    the walk over the log has collected.

    Raises :class:`CannotRead`. Reports nothing while a broker is running.
    """
    if store.paths is None or store.lock_state == "held":
        return
    timers = _Timers(store, newest, deliveries)
    if store.rocksdb_rows.has_timers:
        return  # timercheck counts the messages with rows too: what the timer log lacks is no fault
    if timers.log is None or (timers.queue_end == 0 and timers.log.units == 0):
        return
    yield from timers.check_file()
    yield from timers.passed_over()
    yield from timers.never_delivered()
    yield from timers.entries()
    yield from timers.lost_log()
    yield from timers.lost_wheel()


class _Log(NamedTuple):
    """Content of the timer log: the waiting units as columns; offsets are the timer log's own."""

    units: int
    waiting: np.ndarray
    waiting_at: Int64
    passed_over: Int64  # due times before the read time that no delivery can have reached
    last_message: tuple[int, int] | None  # (physical offset, size) of the last unit's message
    delivered_sample: list[tuple[int, int, int]]  # a sample of the delivered: (offset, physical, size)
    end: int
    file_size: int


@dataclass
class _Timers:
    """The timers of one store."""

    store: StoreSnapshot
    newest: int
    deliveries: TimerDeliveries | None = None

    @cached_property
    def check(self) -> timer.TimerCheck | None:
        """``timercheck``; None if it is missing or too short."""
        assert self.store.paths is not None
        data = self.store.small_file(self.store.paths.timercheck)
        try:
            return timer.decode_check(data) if data else None
        except CorruptUnit:
            return None

    @cached_property
    def queue_end(self) -> int:
        """Queue offset behind the newest entry of the timer queue, stale ones included."""
        queue = self.store.queues.find(TIMER_TOPIC, 0)
        return max(queue.max_offset, queue.raw_end // queue.unit_size) if queue is not None else 0

    @cached_property
    def log(self) -> _Log | None:
        sequence = self.store.timer_log()
        if sequence is None:
            return None
        sequence.require_complete()
        return _read_log(sequence, self.check.last_read_time if self.check is not None else 0, self.newest)

    @cached_property
    def wheel(self) -> WheelFile:
        """The wheel that a start takes."""
        wheel = wheel_taken(self.store)
        assert wheel is not None
        return wheel

    @property
    def _flush_position(self) -> int:
        """Position in the timer log up to which the wheel is in its file."""
        assert self.check is not None
        return self.wheel.position or self.check.flush_position

    @property
    def _light(self) -> Severity | None:
        return "note" if self.store.abort else None

    # -- TM01

    def check_file(self) -> Iterator[Finding]:
        """TM01: timercheck against the timer queue."""
        assert self.store.paths is not None
        assert self.log is not None
        path = str(self.store.paths.timercheck)
        if self.check is None:
            text = plural(
                "config/timercheck is gone or cut: the next start reads all {n:,} timer message again, and "
                "delivers those that were due again",
                "config/timercheck is gone or cut: the next start reads all {n:,} timer messages again, and "
                "delivers those that were due again",
                n=self.queue_end,
            )
            evidence = {"expected": timer.TIMER_CHECK_SIZE, "found": None, "messages": self.queue_end}
            command = f"cp REPLICA/config/timercheck {STORE}/config/"
            severity = None if self.queue_end else self._light  # a broker makes the file when it starts
            yield rules.TM01.finding(text, path, None, evidence, severity, kind="gone", command=command)
            return
        if self.check.queue_offset <= self.queue_end:
            return
        taken_count = self._taken_in()
        text = sentence(
            "timercheck says that {n:,} timer messages were read; {queue} ends at {end:,}",
            n=self.check.queue_offset,
            queue=f"{TIMER_TOPIC}/0",
            end=self.queue_end,
        )
        evidence = {"expected": self.queue_end, "found": self.check.queue_offset, "timerLog": taken_count}
        if taken_count is not None:
            text += sentence(
                ". A start uses the timer log instead, which ends with message {last:,}", last=taken_count - 1
            )
        grave: Severity | None = self._light or ("warn" if taken_count is not None else None)
        going_on = self.queue_end if taken_count is None else taken_count
        command = _patch(_QUEUE_OFFSET_AT, going_on)
        yield rules.TM01.finding(text, path, _QUEUE_OFFSET_AT, evidence, grave, command=command)

    @cached_property
    def _undelivered(self) -> np.ndarray:
        """Offset and due time (ms) of messages that the timer passed over although the log goes on behind that time.

        A message with a unit in a slot that is read later was not passed over.
        """
        if self.deliveries is None:
            return _NO_MESSAGES
        rows = self.deliveries.passed_over(self.newest - _SETTLE_MS)
        return rows if self.log is None else rows[~np.isin(rows["offset"], self.log.waiting["physical_offset"])]

    @cached_property
    def _are_all_in_wheel(self) -> bool:
        """Return True if the wheel has these messages and has delivered nothing since the first of them was due: then
        it delivers them, and none twice, if the time in timercheck is set back.
        """
        sequence = self.store.timer_log()
        if sequence is None or self.check is None or not len(self._undelivered):
            return False
        first_due, offsets = int(self._undelivered["due"][0]), self._undelivered["offset"]
        missing = set(offsets.tolist())
        for _, rows in _units(sequence):
            due = rows["write_time"].astype(np.int64) + rows["delay"]
            leaves = rows["magic"] & (timer.MAGIC_ROLL | timer.MAGIC_DELETE) == 0
            in_wheel = rows["physical_offset"][leaves & (due >= first_due) & (due < self.check.last_read_time)]
            missing.difference_update(in_wheel.tolist())
            in_time = rows["physical_offset"][leaves & (due >= first_due) & (due <= self.newest - _SETTLE_MS)]
            if not np.isin(in_time, offsets).all():
                return False
        return not missing

    def passed_over(self) -> Iterator[Finding]:
        """TM01: a time in timercheck that is after the due time of messages which were not delivered.

        A delivery is stored when the message is due. If the log has no unit that is as late, nothing was delivered.
        """
        assert self.log is not None
        assert self.store.paths is not None
        due = self.log.passed_over
        if self.check is None or not len(due):
            return
        if len(self._undelivered) and self._are_all_in_wheel:
            due = np.concatenate([self._undelivered["due"], due])
        first_due = int(due.min())
        read_time = time_text(self.check.last_read_time)
        text = plural(
            "timercheck says that the timer wheel was read up to {time}, but {n:,} message that was due before that "
            "was not delivered (due from {first} on; the newest unit of the log is of {newest})",
            "timercheck says that the timer wheel was read up to {time}, but {n:,} messages that were due before that "
            "were not delivered (due from {first} on; the newest unit of the log is of {newest})",
            n=len(due),
            time=read_time,
            first=time_text(first_due),
            newest=time_text(self.newest),
        )
        words = join("; ", [text, self._last_start(first_due)])
        evidence = {
            "expected": time_text(first_due),
            "found": read_time,
            "messages": len(due),
            HAPPENED: sentence("timercheck has a time that the timer wheel has not reached"),
        }
        path = str(self.store.paths.timercheck)
        yield rules.TM01.finding(
            words, path, _READ_TIME_AT, evidence, kind="ahead", command=self._set_time_back(first_due)
        )

    # -- TM05

    def never_delivered(self) -> Iterator[Finding]:
        """TM05: messages that left the wheel, or were not put into it, and that the log does not have again."""
        assert self.log is not None
        rows = self._undelivered
        if self.check is None or not len(rows) or (len(self.log.passed_over) and self._are_all_in_wheel):
            return
        first_unit = self.store.log.seen_at(int(rows["offset"][0]), crc=False)
        if not isinstance(first_unit, Unit):
            return
        due = time_text(int(rows["due"][0]))
        text = plural(
            "The timer passed over {n:,} message and never delivered it: {key} for {topic}, due {due}, at {offset:,} "
            "of the log",
            "The timer passed over {n:,} messages and never delivered them: the first is {key} for {topic}, due "
            "{due}, at {offset:,} of the log",
            n=len(rows),
            key=first_unit.unique_key,
            topic=first_unit.properties.get(properties.REAL_TOPIC, ""),
            due=due,
            offset=first_unit.offset,
        )
        file = self.store.log.sequence.find(first_unit.offset)
        evidence: dict[str, Any] = {
            "messages": len(rows),
            "expected": sentence("a message that was delivered when it was due"),
            "found": sentence("no unit with its unique key behind it"),
            "due": due,
            "offsets": rows["offset"][:MAX_LISTED].tolist(),
        }
        path, position = (file.path, first_unit.offset - file.start_offset) if file is not None else (None, None)
        largest = self._too_large(rows)
        if largest:
            yield rules.TM05.finding(join("; ", [text, largest]), path, position, evidence, kind="large")
        elif self._are_all_in_wheel:
            command = self._set_time_back(int(rows["due"][0]))
            evidence["readTime"] = time_text(self.check.last_read_time)
            words = join("; ", [text, self._last_start(int(rows["due"][0]))])
            yield rules.TM05.finding(words, path, position, evidence, kind="again", command=command)
        else:
            yield rules.TM05.finding(text, path, position, evidence)

    def _set_time_back(self, due: int) -> str:
        """The command that makes the slot of ``due`` (ms) the next one that the timer reads."""
        return _patch(_READ_TIME_AT, due // self._precision_ms * self._precision_ms)

    def _last_start(self, due: int) -> str:
        """Words for the last start that delivers a message which was due at ``due`` (ms)."""
        last_start = due + timer.CATCH_UP_SLOTS * self._precision_ms
        return sentence(
            "a broker that starts later than {time} passes over the first of them", time=time_text(last_start)
        )

    @property
    def _precision_ms(self) -> int:
        return 1000 if self.store.config is None else self.store.config.timer_precision_ms

    def _too_large(self, rows: np.ndarray) -> str:
        """Words for messages that do not fit into the buffer of the timer; "" if one of them does."""
        config = self.store.config or MessageStoreConfig()
        sizes = []
        for offset in rows["offset"][:MAX_LISTED].tolist():
            unit = self.store.log.seen_at(offset, crc=False)
            sizes.append(unit.size if isinstance(unit, Unit) else 0)
        for release in (release_of(self.store), *releases.NEWEST_FIRST):
            release_rules = releases.rules_of(release)
            max_bytes = config.max_message_size + release_rules.timer_buffer_extra_bytes
            if not release_rules.timer_skips_large_messages or min(sizes) <= max_bytes:
                continue
            if self.store.config is None:
                return sentence(
                    "it has {size:,} bytes, and with the default maxMessageSize the timer of {release} reads at most "
                    "{most:,}",
                    size=sizes[0],
                    release=release_rules.title,
                    most=max_bytes,
                )
            return sentence(
                "it has {size:,} bytes, and the timer of {release} reads at most {most:,} (maxMessageSize + {extra:,})",
                size=sizes[0],
                release=release_rules.title,
                most=max_bytes,
                extra=release_rules.timer_buffer_extra_bytes,
            )
        return ""

    def _taken_in(self) -> int | None:
        """Queue offset behind the message of the timer log's last unit, as a start finds it."""
        assert self.log is not None
        if self.log.last_message is None:
            return None
        unit = self._message(*self.log.last_message)
        return unit.queue_offset + 1 if unit is not None else None

    def _message(self, physical: int, size: int) -> Unit | None:
        unit = self.store.log.seen_at(physical, crc=False)
        return unit if isinstance(unit, Unit) and unit.topic == TIMER_TOPIC and unit.size == size else None

    # -- TM02

    def entries(self) -> Iterator[Finding]:
        """TM02: units of the timer log that point to no timer message."""
        assert self.log is not None
        least, end = max(self.store.log.min_offset, 0), self.store.log.max_offset
        rows = self.log.waiting[:MAX_WAITING]
        places = [(int(row["physical_offset"]), int(row["message_size"])) for row in rows]
        bad = [index for index, place in enumerate(places) if place[0] < least or self._message(*place) is None]
        expired = [index for index in bad if places[index][0] < least]
        beyond_end = [index for index in bad if places[index][0] >= end]
        foreign = [index for index in bad if least <= places[index][0] < end]
        if foreign:
            yield self._leads_nowhere(foreign, rows)
        if beyond_end:
            text = sentence(
                "Messages that wait for their time are after the end of the log at {end:,} (messages: {n:,})",
                end=end,
                n=len(beyond_end),
            )
            index = int(self.log.waiting_at[beyond_end[0]])
            evidence = {
                "messages": len(beyond_end),
                "expected": sentence("below {n:,}", n=end),
                "found": places[beyond_end[0]][0],
            }
            yield rules.TM02.finding(text, self._file(index), self._position(index), evidence)
        if expired:
            text = sentence(
                "The log has deleted messages that wait for their time (messages: {n:,}): they are never delivered",
                n=len(expired),
            )
            index = int(self.log.waiting_at[expired[0]])
            evidence = {
                "messages": len(expired),
                "expected": sentence("at least {n}", n=least),
                "found": places[expired[0]][0],
            }
            yield rules.TM02.finding(text, self._file(index), self._position(index), evidence, kind="expired")
        yield from self._delivered(least)

    def _leads_nowhere(self, foreign: list[int], rows: np.ndarray) -> Finding:
        assert self.log is not None
        first_row = foreign[0]
        physical, log_offset = int(rows["physical_offset"][first_row]), int(self.log.waiting_at[first_row])
        due = time_text(int(rows["write_time"][first_row]) + int(rows["delay"][first_row]))
        item = self.store.log.seen_at(physical, crc=False)
        place_words = sentence("no unit")
        if isinstance(item, Unit):
            place_words = sentence("a unit of {topic}", topic=item.topic)
        text = sentence(
            "Messages that wait for their time cannot be delivered ({n:,}): the timer log's unit at "
            "{at:,} leads to {offset:,}, where {there} is (due {due})",
            n=len(foreign),
            at=log_offset,
            offset=physical,
            there=place_words,
            due=due,
        )
        evidence = {
            "messages": len(foreign),
            "expected": sentence("a unit of {topic}", topic=TIMER_TOPIC),
            "found": place_words,
            "due": due,
        }
        return rules.TM02.finding(text, self._file(log_offset), self._position(log_offset), evidence)

    def _delivered(self, least: int) -> Iterator[Finding]:
        """A start continues the queue from the last unit; the other delivered units only show that the log is
        foreign.
        """
        assert self.log is not None
        last_message = self.log.last_message
        waits = len(self.log.waiting_at) and int(self.log.waiting_at[-1]) == self.log.end - timer.UNIT_SIZE
        if last_message is not None and not waits and last_message[0] >= least and self._message(*last_message) is None:
            text = sentence(
                "The timer log's last unit leads to {offset:,}, where no timer message of {n:,} bytes is: the next "
                "start uses it to find where the timer queue continues",
                offset=last_message[0],
                n=last_message[1],
            )
            last_offset = self.log.end - timer.UNIT_SIZE
            evidence = {
                "expected": sentence("a unit of {topic}", topic=TIMER_TOPIC),
                "found": last_message[0],
                "queueOffset": self._goes_on,
            }
            yield rules.TM02.finding(text, self._file(last_offset), self._position(last_offset), evidence, kind="last")
            return
        odd = [
            delivered
            for delivered in self.log.delivered_sample
            if delivered[1] >= least and self._message(delivered[1], delivered[2]) is None
        ]
        if odd:
            text = sentence(
                "Delivered units of the timer log lead to no timer message ({n:,}), the first at {at:,}",
                n=len(odd),
                at=odd[0][0],
            )
            evidence = {
                "units": len(odd),
                "expected": sentence("a unit of {topic}", topic=TIMER_TOPIC),
                "found": odd[0][1],
            }
            yield rules.TM02.finding(text, self._file(odd[0][0]), self._position(odd[0][0]), evidence, kind="delivered")

    @property
    def _goes_on(self) -> int | None:
        return self.check.queue_offset if self.check is not None else None

    # -- TM03

    def lost_log(self) -> Iterator[Finding]:
        """TM03: the timer log ends before the position in timercheck, or lacks files."""
        assert self.log is not None
        assert self.store.paths is not None
        if self.check is None:
            return
        position = max(self.check.flush_position, self.wheel.position or 0)
        ends_early = position > self.log.end
        if not ends_early and not self._lacks_files:
            return
        taken_count = self._taken_in()
        lost = self._not_due()
        if not ends_early and taken_count is not None:
            lost = [number for number in lost if number < taken_count]
        if not ends_early and not lost:
            return
        path = str(self.store.paths.timerlog)
        evidence: dict[str, Any] = {"expected": position, "found": self.log.end, "messages": len(lost)}
        if ends_early:
            text = sentence(
                "The timer log ends at {end:,}; {name} knows of {n:,} bytes"
                if self.log.units
                else "The timer log is gone; {name} knows of {n:,} bytes",
                end=self.log.end,
                name=self.wheel.name if position > self.check.flush_position else "timercheck",
                n=position,
            )
        else:
            text = sentence("Files of the timer log are missing in front of its end at {end:,}", end=self.log.end)
            evidence |= {
                "expected": sentence("files one behind another"),
                "found": [file.start_offset for file in self._files][:MAX_LISTED],
            }
        if not lost:
            text += "; " + sentence("no message is known to wait")
            yield rules.TM03.finding(text, path, None, evidence, "note")
            return
        first_number = min(lost)
        text += ": " + sentence("messages that are not due yet are never delivered ({n:,})", n=len(lost))
        evidence |= {"firstQueueOffset": first_number, "queueOffsets": sorted(lost)[:MAX_LISTED]}
        # A start reads the queue again behind the message of the last unit: what is lost there comes back.
        severity = self._light if taken_count is not None and first_number >= taken_count else None
        command = _patch(_QUEUE_OFFSET_AT, first_number)
        yield rules.TM03.finding(text, path, None, evidence, severity, kind="log", command=command)

    @property
    def _files(self) -> Sequence[ReadOnlyFile]:
        sequence = self.store.timer_log()
        return sequence.files if sequence is not None else ()

    @property
    def _lacks_files(self) -> bool:
        """Return True if there is a gap between the files, or in front of them: old files are deleted, too."""
        files = self._files
        has_gap = any(file.end_offset != later_file.start_offset for file, later_file in pairwise(files))
        return has_gap or bool(files and files[0].start_offset > 0)

    def _not_due(self) -> list[int]:
        """Queue offsets of timer messages that were taken in, are not due, and are in no unit of the timer log."""
        assert self.log is not None
        assert self.check is not None
        queue = self.store.queues.find(TIMER_TOPIC, 0)
        if queue is None:
            return []
        waiting_offsets = set(self.log.waiting["physical_offset"].tolist())
        stop = min(self.check.queue_offset, queue.max_offset)
        queue_offsets: dict[object, int] = {}  # by unique key: a message that was rolled has several entries
        for entry in queue.entries(max(queue.first_in_log, stop - MAX_WAITING), stop):
            unit = self._message(entry.physical_offset, entry.size)
            if unit is None:
                continue
            recalled = unit.properties.get(properties.TIMER_DEL_UNIQUE_KEY)
            key = recalled.rpartition("+")[2] if recalled else unit.unique_key or entry.queue_offset
            queue_offsets.pop(key, None)
            due = unit.properties.get(properties.TIMER_OUT_MS, "")
            is_waiting = not recalled and due.isdigit() and int(due) >= self.check.last_read_time
            if is_waiting and entry.physical_offset not in waiting_offsets:
                queue_offsets[key] = entry.queue_offset
        return list(queue_offsets.values())

    def lost_wheel(self) -> Iterator[Finding]:
        """TM03: slots of the wheel that lack messages waiting for their time."""
        assert self.log is not None
        assert self.store.paths is not None
        if self.check is None or not len(self.log.waiting):
            return
        wheel = self.wheel.path
        data = self.store.small_file(wheel) or b""
        is_flushed = self.log.waiting_at < self._flush_position
        precision = self.store.config.timer_precision_ms if self.store.config is not None else 1000
        due = (self.log.waiting["write_time"] + self.log.waiting["delay"])[is_flushed]
        times = np.unique(due // precision)
        missing = [int(time) for time in times if not _holds(data, int(time), precision)]
        if not missing:
            return
        lost = int(np.isin(due // precision, missing).sum())
        rebuilt = max(self._flush_position - self.log.file_size, 0) // self.log.file_size * self.log.file_size
        older = int((np.isin(due // precision, missing) & (self.log.waiting_at[is_flushed] < rebuilt)).sum())
        text = sentence(
            "The timer wheel lacks slots ({slots:,}): messages wait there for their time ({n:,})"
            if data
            else "The timer wheel is gone: messages wait there for their time ({n:,})",
            slots=len(missing),
            n=lost,
        )
        evidence = {
            "expected": len(times),
            "found": len(times) - len(missing),
            "messages": lost,
            "beforeRebuilt": older,
        }
        if older:
            text += "; " + sentence(
                "the next start rebuilds it from {start:,} of the timer log on, and does not find what is before "
                "({older:,})",
                start=rebuilt,
                older=older,
            )
            command = _patch(_FLUSH_AT, 0)
            if self.wheel.position is not None:  # a start takes the position from the name of the snapshot
                command = f"mkdir {STORE}.wheels && mv {STORE}/timerwheel.[0-9]* {STORE}.wheels/ && {command}"
            yield rules.TM03.finding(text, str(wheel), None, evidence, kind="wheel", command=command)
        else:
            text += "; " + sentence("the next start rebuilds it from the timer log")
            yield rules.TM03.finding(text, str(wheel), None, evidence, kind="again")

    # -- places

    def _file(self, log_offset: int) -> str | None:
        sequence = self.store.timer_log()
        file = sequence.find(log_offset) if sequence is not None else None
        return file.path if file is not None else None

    def _position(self, log_offset: int) -> int | None:
        sequence = self.store.timer_log()
        file = sequence.find(log_offset) if sequence is not None else None
        return log_offset - file.start_offset if file is not None else None


def offsets_in_timer_log(store: StoreSnapshot) -> set[int]:
    """Offsets (bytes of the log) of all messages in the timer log. Raises :class:`CannotRead`."""
    sequence = store.timer_log()
    if sequence is None:
        return set()
    return {offset for _, rows in _units(sequence) for offset in rows["physical_offset"].tolist()}


def offsets_read_later(store: StoreSnapshot, read_time: int) -> set[int]:
    """Offsets (bytes of the log) of the messages with a unit of the timer log in a slot of ``read_time`` (ms) or later:
    the timer still reaches them, even if they were due before. Raises :class:`CannotRead`.
    """
    sequence = store.timer_log()
    if sequence is None:
        return set()
    offsets: set[int] = set()
    for _, rows in _units(sequence):
        is_later = rows["write_time"].astype(np.int64) + rows["delay"] >= read_time
        offsets.update(rows["physical_offset"][is_later].tolist())
    return offsets


def _patch(position: int, value: int) -> str:
    """The command that puts a number of 8 bytes into timercheck."""
    octal = "".join(f"\\{byte:03o}" for byte in value.to_bytes(8, "big"))
    return f"printf '{octal}' | dd of={STORE}/config/timercheck bs=1 seek={position} conv=notrunc"


def _holds(wheel: bytes, time: int, precision: int) -> bool:
    """Return True if the slot of a time holds that time; ``time`` in units of the precision."""
    position = timer.slot_index(time * precision, precision) * timer.SLOT_SIZE
    return len(wheel) >= position + timer.SLOT_SIZE and timer.decode_slot(wheel, position).time == time


def _read_log(sequence: FileSequence, read_time: int, newest: int) -> _Log:
    """Read every unit up to the first invalid one; waiting units are due at ``read_time`` (ms) or later. ``newest`` is
    the latest store time of the log.
    """
    passed: list[Int64] = []
    recalled: list[Int64] = []
    waiting: list[np.ndarray] = []
    places: list[Int64] = []
    delivered: list[tuple[int, int, int]] = []
    last_message: tuple[int, int] | None = None
    units, end = 0, max(sequence.min_offset, 0)
    for start, rows in _units(sequence):
        units += len(rows)
        end = start + len(rows) * timer.UNIT_SIZE
        last_message = (int(rows["physical_offset"][-1]), int(rows["message_size"][-1]))
        offsets = start + np.arange(len(rows), dtype=np.int64) * timer.UNIT_SIZE
        due_times = rows["write_time"].astype(np.int64) + rows["delay"]
        due = due_times >= read_time
        if newest > 0:
            is_passed = ~due & (due_times > newest + _SETTLE_MS)
            is_recall = rows["magic"] & timer.MAGIC_DELETE != 0
            passed.append(due_times[is_passed & ~is_recall])
            recalled.append(due_times[is_passed & is_recall])
        waiting.append(rows[due])
        places.append(offsets[due])
        for row in np.flatnonzero(~due)[: MAX_WAITING - len(delivered)]:
            delivered.append((int(offsets[row]), int(rows["physical_offset"][row]), int(rows["message_size"][row])))
    none = np.zeros(0, TIMER_LOG_UNIT)
    waiting_rows = np.concatenate(waiting) if waiting else none
    waiting_offsets = np.concatenate(places) if places else np.zeros(0, np.int64)
    passed_over = np.concatenate(passed) if passed else np.zeros(0, np.int64)
    if recalled:  # a recalled message is not delivered: those of the same second may be recalled
        passed_over = passed_over[~np.isin(passed_over // 1000, np.concatenate(recalled) // 1000)]
    return _Log(
        units, waiting_rows, waiting_offsets, passed_over, last_message, delivered, end, max(sequence.file_size, 1)
    )


def _units(sequence: FileSequence) -> Iterator[tuple[int, np.ndarray]]:
    """Runs of units with the offset of their first; ends at the same place as a start's walk."""
    for file in sequence.files:
        position = 0
        while position + timer.UNIT_SIZE <= file.size:
            data = file.read(
                position, min(_CHUNK * timer.UNIT_SIZE, (file.size - position) // timer.UNIT_SIZE * timer.UNIT_SIZE)
            )
            rows = np.frombuffer(data[: len(data) // timer.UNIT_SIZE * timer.UNIT_SIZE], TIMER_LOG_UNIT)
            if not len(rows):
                return
            odd = np.flatnonzero(
                (rows["size"] != timer.UNIT_SIZE) | (rows["magic"] & ~0xF != 0) | (rows["magic"] & 1 == 0)
            )
            good = int(odd[0]) if len(odd) else len(rows)
            if good:
                yield file.start_offset + position, rows[:good]
            position += good * timer.UNIT_SIZE
            if good < len(rows):
                item = timer.decode_unit(file.read(position, timer.UNIT_SIZE), 0, file.start_offset + position)
                if isinstance(item, timer.TimerLogStop) and item.kind == "blank":
                    break
                return
