"""Messages that wait for their time: timer queue, timer log, wheel and ``timercheck`` against each other
(docs/formats/delays.md).

A start goes by the timer log: the queue goes on behind its last unit's message, and the wheel is made again from its
last two files. What is not due and stands in neither is never delivered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec import properties, timer
from engine.codec.dtypes import TIMER_LOG_UNIT
from engine.codec.message import Unit
from engine.codec.words import time_text
from engine.errors import CorruptUnit
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import FileSequence
from engine.rules import catalogue_tables as rules
from engine.rules.findings import STORE, Finding, Severity
from engine.rules.system_names import TIMER_TOPIC

MOST = 20
MOST_WAITING = 20_000
"""Waiting messages that are looked up one by one."""
_CHUNK = 1 << 16
_QUEUE_OFFSET_AT = 16
_FLUSH_AT = 8
Int64 = NDArray[np.int64]


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """TM01–TM03. Raises :class:`CannotRead`. While a broker moves all of it nothing is said."""
    if store.paths is None or store.lock_state == "held":
        return
    timers = _Timers(store)
    if timers.log is None or (timers.queue_end == 0 and timers.log.units == 0):
        return
    yield from timers.check_file()
    yield from timers.entries()
    yield from timers.lost_log()
    yield from timers.lost_wheel()


class _Log(NamedTuple):
    """What the timer log holds: of all units those that wait, as columns; offsets are the log's own."""

    units: int
    waiting: np.ndarray
    waiting_at: Int64
    last: tuple[int, int] | None  # (physical offset, size) of the last unit's message
    others: list[tuple[int, int, int]]  # a sample of the delivered: (offset, physical, size)
    end: int
    file_size: int


@dataclass
class _Timers:
    """The timers of one store."""

    store: StoreSnapshot

    @cached_property
    def check(self) -> timer.TimerCheck | None:
        """``timercheck``; None where it is gone or too short."""
        assert self.store.paths is not None
        data = self.store.small_file(self.store.paths.timercheck)
        try:
            return timer.decode_check(data) if data else None
        except CorruptUnit:
            return None

    @cached_property
    def queue_end(self) -> int:
        """Queue offset behind the newest entry of the timer queue, stale ones included."""
        queue = self.store.queue(TIMER_TOPIC, 0)
        return max(queue.max_offset, queue.raw_end // queue.unit_size) if queue is not None else 0

    @cached_property
    def log(self) -> _Log | None:
        sequence = self.store.timer_log()
        if sequence is None:
            return None
        sequence.whole()
        return _read_log(sequence, self.check.last_read_time if self.check is not None else 0)

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
            text = (
                f"config/timercheck is gone or cut: the next start takes all {self.queue_end:,} timer messages in "
                f"again, and delivers again those that were due"
            )
            evidence = {"expected": timer.TIMER_CHECK_SIZE, "found": None, "messages": self.queue_end}
            command = f"cp REPLICA/config/timercheck {STORE}/config/"
            yield rules.TM01.found(text, path, None, evidence, self._light, kind="gone", command=command)
            return
        if self.check.queue_offset <= self.queue_end:
            return
        taken = self._taken_in()
        text = (
            f"timercheck says that {self.check.queue_offset:,} timer messages were taken in; {TIMER_TOPIC}/0 ends at "
        )
        text += f"{self.queue_end:,}"
        evidence = {"expected": self.queue_end, "found": self.check.queue_offset, "timerLog": taken}
        if taken is not None:
            text += f". A start goes by the timer log instead, which ends with message {taken - 1:,}"
        grave: Severity | None = self._light or ("warn" if taken is not None else None)
        going_on = self.queue_end if taken is None else taken
        command = _patch(_QUEUE_OFFSET_AT, going_on)
        yield rules.TM01.found(text, path, _QUEUE_OFFSET_AT, evidence, grave, command=command)

    def _taken_in(self) -> int | None:
        """Queue offset behind the message of the timer log's last unit, as a start finds it."""
        assert self.log is not None
        if self.log.last is None:
            return None
        unit = self._message(*self.log.last)
        return unit.queue_offset + 1 if unit is not None else None

    def _message(self, physical: int, size: int) -> Unit | None:
        unit = self.store.log.seen_at(physical, crc=False)
        return unit if isinstance(unit, Unit) and unit.topic == TIMER_TOPIC and unit.size == size else None

    # -- TM02

    def entries(self) -> Iterator[Finding]:
        """TM02: units of the timer log that lead to no timer message."""
        assert self.log is not None
        least, end = max(self.store.log.min_offset, 0), self.store.log.max_offset
        rows = self.log.waiting[:MOST_WAITING]
        places = [(int(row["physical_offset"]), int(row["message_size"])) for row in rows]
        bad = [at for at, place in enumerate(places) if place[0] < least or self._message(*place) is None]
        expired = [at for at in bad if places[at][0] < least]
        behind = [at for at in bad if places[at][0] >= end]
        foreign = [at for at in bad if least <= places[at][0] < end]
        if foreign:
            yield self._leads_nowhere(foreign, rows)
        if behind:
            text = f"Messages that wait for their time lie behind the end of the log at {end:,} "
            text += f"(messages: {len(behind):,})"
            at = int(self.log.waiting_at[behind[0]])
            evidence = {"messages": len(behind), "expected": f"below {end:,}", "found": places[behind[0]][0]}
            yield rules.TM02.found(text, self._file(at), self._position(at), evidence)
        if expired:
            text = f"The log has deleted messages that wait for their time (messages: {len(expired):,}): "
            text += "they are never delivered"
            at = int(self.log.waiting_at[expired[0]])
            evidence = {"messages": len(expired), "expected": f"at least {least}", "found": places[expired[0]][0]}
            yield rules.TM02.found(text, self._file(at), self._position(at), evidence, kind="expired")
        yield from self._delivered(least)

    def _leads_nowhere(self, foreign: list[int], rows: np.ndarray) -> Finding:
        assert self.log is not None
        first = foreign[0]
        physical, at = int(rows["physical_offset"][first]), int(self.log.waiting_at[first])
        due = time_text(int(rows["write_time"][first]) + int(rows["delay"][first]))
        seen = self.store.log.seen_at(physical, crc=False)
        there = f"a unit of {seen.topic}" if isinstance(seen, Unit) else "no unit"
        text = (
            f"Messages that wait for their time cannot be delivered ({len(foreign):,}): the timer log's unit at {at:,} "
            f"leads to {physical:,}, where {there} stands (due {due})"
        )
        evidence = {"messages": len(foreign), "expected": f"a unit of {TIMER_TOPIC}", "found": there, "due": due}
        return rules.TM02.found(text, self._file(at), self._position(at), evidence)

    def _delivered(self, least: int) -> Iterator[Finding]:
        """The last unit tells a start where the queue goes on; the others only tell of a foreign log."""
        assert self.log is not None
        last = self.log.last
        waits = len(self.log.waiting_at) and int(self.log.waiting_at[-1]) == self.log.end - timer.UNIT_SIZE
        if last is not None and not waits and last[0] >= least and self._message(*last) is None:
            text = (
                f"The timer log's last unit leads to {last[0]:,}, where no timer message of {last[1]:,} bytes stands: "
            )
            text += "the next start finds from it where the timer queue goes on"
            at = self.log.end - timer.UNIT_SIZE
            evidence = {"expected": f"a unit of {TIMER_TOPIC}", "found": last[0], "queueOffset": self._goes_on}
            yield rules.TM02.found(text, self._file(at), self._position(at), evidence, kind="last")
            return
        odd = [one for one in self.log.others if one[1] >= least and self._message(one[1], one[2]) is None]
        if odd:
            text = (
                f"Delivered units of the timer log lead to no timer message ({len(odd):,}), the first at {odd[0][0]:,}"
            )
            evidence = {"units": len(odd), "expected": f"a unit of {TIMER_TOPIC}", "found": odd[0][1]}
            yield rules.TM02.found(text, self._file(odd[0][0]), self._position(odd[0][0]), evidence, kind="delivered")

    @property
    def _goes_on(self) -> int | None:
        return self.check.queue_offset if self.check is not None else None

    # -- TM03

    def lost_log(self) -> Iterator[Finding]:
        """TM03: the timer log ends before what timercheck knows of it."""
        assert self.log is not None
        assert self.store.paths is not None
        if self.check is None or self.check.flush_position <= self.log.end:
            return
        lost = self._not_due()
        path = str(self.store.paths.timerlog)
        how = "is gone" if not self.log.units else f"ends at {self.log.end:,}"
        text = f"The timer log {how}; timercheck knows of {self.check.flush_position:,} bytes"
        evidence: dict[str, Any] = {"expected": self.check.flush_position, "found": self.log.end, "messages": len(lost)}
        if not lost:
            yield rules.TM03.found(text + "; no message is known to wait", path, None, evidence, "note")
            return
        first = min(lost)
        text += f": messages that are not due yet are never delivered ({len(lost):,})"
        evidence |= {"firstQueueOffset": first, "queueOffsets": sorted(lost)[:MOST]}
        command = _patch(_QUEUE_OFFSET_AT, first)
        yield rules.TM03.found(text, path, None, evidence, self._light, kind="log", command=command)

    def _not_due(self) -> list[int]:
        """Queue offsets of timer messages that were taken in, are not due, and are in no unit of the timer log."""
        assert self.log is not None
        assert self.check is not None
        queue = self.store.queue(TIMER_TOPIC, 0)
        if queue is None:
            return []
        known = set(self.log.waiting["physical_offset"].tolist())
        stop = min(self.check.queue_offset, queue.max_offset)
        found = []
        for entry in queue.entries(max(queue.first_in_log, stop - MOST_WAITING), stop):
            unit = self._message(entry.physical_offset, entry.size)
            due = unit.properties.get(properties.TIMER_OUT_MS, "") if unit is not None else ""
            if due.isdigit() and int(due) >= self.check.last_read_time and entry.physical_offset not in known:
                found.append(entry.queue_offset)
        return found

    def lost_wheel(self) -> Iterator[Finding]:
        """TM03: slots of the wheel that do not hold what waits for their time."""
        assert self.log is not None
        assert self.store.paths is not None
        if self.check is None or not len(self.log.waiting):
            return
        wheel = self.store.paths.timerwheel
        data = self._wheel()
        known = self.log.waiting_at < self.check.flush_position
        precision = self.store.config.timer_precision_ms if self.store.config is not None else 1000
        due = (self.log.waiting["write_time"] + self.log.waiting["delay"])[known]
        times = np.unique(due // precision)
        missing = [int(time) for time in times if not _holds(data, int(time), precision)]
        if not missing:
            return
        lost = int(np.isin(due // precision, missing).sum())
        how = "is gone" if not data else f"lacks slots ({len(missing):,})"
        rebuilt = max(self.check.flush_position - self.log.file_size, 0) // self.log.file_size * self.log.file_size
        older = int((np.isin(due // precision, missing) & (self.log.waiting_at[known] < rebuilt)).sum())
        text = f"The timer wheel {how}: messages wait there for their time ({lost:,})"
        evidence = {
            "expected": len(times),
            "found": len(times) - len(missing),
            "messages": lost,
            "beforeRebuilt": older,
        }
        if older:
            text += f"; the next start makes it again from {rebuilt:,} of the timer log on, and what stands before is "
            text += f"not found ({older:,})"
            yield rules.TM03.found(text, str(wheel), None, evidence, kind="wheel", command=_patch(_FLUSH_AT, 0))
        else:
            text += "; the next start makes it again from the timer log"
            yield rules.TM03.found(text, str(wheel), None, evidence, kind="again")

    def _wheel(self) -> bytes:
        assert self.store.paths is not None
        return self.store.small_file(self.store.paths.timerwheel) or b""

    # -- places

    def _file(self, at: int) -> str | None:
        sequence = self.store.timer_log()
        file = sequence.find(at) if sequence is not None else None
        return file.path if file is not None else None

    def _position(self, at: int) -> int | None:
        sequence = self.store.timer_log()
        file = sequence.find(at) if sequence is not None else None
        return at - file.start_offset if file is not None else None


def _patch(position: int, value: int) -> str:
    """The command that puts a number of 8 bytes into timercheck."""
    octal = "".join(f"\\{byte:03o}" for byte in value.to_bytes(8, "big"))
    return f"printf '{octal}' | dd of={STORE}/config/timercheck bs=1 seek={position} conv=notrunc"


def _holds(wheel: bytes, time: int, precision: int) -> bool:
    """Whether the slot of a time holds that time; ``time`` in units of the precision."""
    at = timer.slot_index(time * precision, precision) * timer.SLOT_SIZE
    return len(wheel) >= at + timer.SLOT_SIZE and timer.decode_slot(wheel, at).time == time


def _read_log(sequence: FileSequence, read_time: int) -> _Log:
    """Every unit up to the first that is none; those that wait are due at ``read_time`` (ms) or later."""
    waiting: list[np.ndarray] = []
    places: list[Int64] = []
    others: list[tuple[int, int, int]] = []
    last: tuple[int, int] | None = None
    units, end = 0, max(sequence.min_offset, 0)
    for start, rows in _units(sequence):
        units += len(rows)
        end = start + len(rows) * timer.UNIT_SIZE
        last = (int(rows["physical_offset"][-1]), int(rows["message_size"][-1]))
        at = start + np.arange(len(rows), dtype=np.int64) * timer.UNIT_SIZE
        due = rows["write_time"].astype(np.int64) + rows["delay"] >= read_time
        waiting.append(rows[due])
        places.append(at[due])
        for row in np.flatnonzero(~due)[: MOST_WAITING - len(others)]:
            others.append((int(at[row]), int(rows["physical_offset"][row]), int(rows["message_size"][row])))
    none = np.zeros(0, TIMER_LOG_UNIT)
    held = np.concatenate(waiting) if waiting else none
    held_at = np.concatenate(places) if places else np.zeros(0, np.int64)
    return _Log(units, held, held_at, last, others, end, max(sequence.file_size, 1))


def _units(sequence: FileSequence) -> Iterator[tuple[int, np.ndarray]]:
    """Runs of units with the offset of their first; the walk ends where a start's would."""
    for file in sequence.files:
        at = 0
        while at + timer.UNIT_SIZE <= file.size:
            data = file.read(at, min(_CHUNK * timer.UNIT_SIZE, (file.size - at) // timer.UNIT_SIZE * timer.UNIT_SIZE))
            rows = np.frombuffer(data[: len(data) // timer.UNIT_SIZE * timer.UNIT_SIZE], TIMER_LOG_UNIT)
            if not len(rows):
                return
            odd = np.flatnonzero(
                (rows["size"] != timer.UNIT_SIZE) | (rows["magic"] & ~0xF != 0) | (rows["magic"] & 1 == 0)
            )
            good = int(odd[0]) if len(odd) else len(rows)
            if good:
                yield file.start_offset + at, rows[:good]
            at += good * timer.UNIT_SIZE
            if good < len(rows):
                seen = timer.decode_unit(file.read(at, timer.UNIT_SIZE), 0, file.start_offset + at)
                if isinstance(seen, timer.TimerLogStop) and seen.kind == "blank":
                    break
                return
