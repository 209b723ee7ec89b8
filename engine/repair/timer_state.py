"""Write timer log and ``timercheck`` again from the messages of the timer topic, and let a start build the wheel from
them (docs/formats/repair.md#timers).

A message waits if its unique key does not come again behind it, in its own topic. The new timer log has a unit for each
of these; a message that is overdue gets the time of the newest message, at which the timer then begins to read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import astuple, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from engine.codec import properties as props
from engine.codec import timer
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.java import jhash
from engine.codec.message import Unit
from engine.codec.timer import (
    BLANK_BYTES,
    MAGIC_DEFAULT,
    MAGIC_ROLL,
    NO_OFFSET,
    UNIT_SIZE,
    TimerCheck,
    TimerLogUnit,
)
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.config import MessageStoreConfig
from engine.errors import CorruptUnit
from engine.files.layout import queue_file_name
from engine.inspection.block_scan import scan_log
from engine.inspection.check.timer_deliveries import TimerDeliveries
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.timer_wheel import wheel_snapshots
from engine.mapped.read_only import ReadOnlyFile
from engine.patching.patches import Patch, RemoveFile, WriteFile
from engine.repair.repair import Certainty, Repair, sample_of
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import plural, sentence
from engine.system_names import TIMER_TOPIC

NAME = "timers"
MAX_WAITING = 500_000
"""Maximum number of waiting messages: their units are held in memory."""
_GONE = frozenset({("TM02", "expired"), ("TM05", "large")})
"""Findings about messages that no timer log brings back."""


class _Waiting(NamedTuple):
    """A message that waits, in the order of the log; ``due`` in ms."""

    message: Unit
    due: int


def repair_timers(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of timer log, ``timercheck`` and wheel; None if there is nothing to mend, or damage of the log
    hides which messages were delivered.

    Raises :class:`engine.errors.CannotRead`.
    """
    chosen = [
        finding
        for finding in findings
        if finding.id in mendable.TIMERS
        and at_least(finding.severity, "warn")
        and (finding.id, finding.kind) not in _GONE
    ]
    if not chosen or store.paths is None or store.kind != "store" or store.rocksdb_rows.has_timers:
        return None
    patches: list[Patch] = [
        _removed(store, path, sentence("a start builds the wheel from the timer log"))
        for path in (store.paths.timerwheel, *(snapshot.path for snapshot in wheel_snapshots(store)))
        if store.reading.exists(path)
    ]
    gains = sentence("a broker starts, and the timer goes on")
    costs = ""
    certainty: Certainty = "certain"
    if store.queues.find(TIMER_TOPIC, 0) is not None:
        timers = _Timers(store)
        if not timers.read():
            return None
        patches += timers.patches()
        gains = plural(
            "the timer delivers {n:,} message that waits, and none of the others again",
            "the timer delivers {n:,} messages that wait, and none of the others again",
            n=len(timers.waiting),
        )
        if timers.repeated:
            gains = plural(
                "the timer delivers {n:,} message that waits",
                "the timer delivers {n:,} messages that wait",
                n=len(timers.waiting),
            )
            costs = plural(
                "{n:,} message may be delivered again: without a timer log the timer reads its queue from the first "
                "that waits; with --config none is",
                "{n:,} messages may be delivered again: without a timer log the timer reads its queue from the first "
                "that waits; with --config none is",
                n=timers.repeated,
            )
        certainty = "likely" if timers.has_keyless or timers.repeated else "certain"
    title = sentence("Write the timer log again from the messages that wait")
    return Repair(NAME, mendable.TIMERS, title, tuple(patches), gains, costs, certainty) if patches else None


class _Timers:
    """The messages of the timer topic that wait, and the files that a timer has of them.

    A broker starts with no timer log of another file size than that of its configuration. Where neither the
    configuration nor a file says it, no timer log is written: the timer reads its queue from the first message that
    waits, and delivers ``repeated`` messages behind it again.
    """

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        config = store.config or MessageStoreConfig()
        self._precision = config.timer_precision_ms
        self._window = config.timer_roll_window_slot * self._precision
        self._newest = 0
        sequence = store.timer_log()
        self._files = list(sequence.files) if sequence is not None else []
        self._file_size = _file_size(self._files, store.config)
        queue = store.queues.find(TIMER_TOPIC, 0)
        self._queue_end = queue.max_offset if queue is not None else 0
        self.waiting: list[_Waiting] = []
        self.has_keyless = False

    def read(self) -> bool:
        """Find the messages that wait; return False if damage hides some, or they are too many."""
        topics = TopicTable()
        deliveries = TimerDeliveries(self._store, topics, of_all=True)
        for block in scan_log(self._store.log, crc=False, topics=topics):
            if isinstance(block, Damage):
                if block.offset < self._store.log.max_offset:
                    return False
            elif isinstance(block, UnitColumns):
                units = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
                deliveries.block(block, block.physical_offset[:units] == block.offset[:units])
                if units:
                    self._newest = max(self._newest, int(block.store_timestamp[:units].max()))
        if deliveries.is_damaged:
            return False
        keyless = [(offset, due) for offset, due in deliveries.keyless if due > self._newest]
        self.has_keyless = bool(deliveries.keyless)
        rows = deliveries.passed_over(1 << 62)
        places = sorted([*zip(rows["offset"].tolist(), rows["due"].tolist(), strict=True), *keyless])
        if len(places) > MAX_WAITING:
            return False
        for offset, due in places:
            unit = self._store.log.seen_at(offset, crc=False)
            if isinstance(unit, Unit):
                self.waiting.append(_Waiting(unit, due))
        return True

    def patches(self) -> list[Patch]:
        """Return the patches of timer log and ``timercheck``."""
        assert self._store.paths is not None
        start = self._files[-1].end_offset if self._files else 0
        why = sentence("the timer log has a unit for each message that waits")
        patches: list[Patch] = [_removed(self._store, Path(file.path), why) for file in self._files]
        for number, content in enumerate(self._contents(start) if self._file_size else ()):
            name = f"timerlog/{queue_file_name(start + number * self._file_size)}"
            zeros = self._file_size - len(content)
            patches.append(WriteFile(file=name, old=None, new=content, zeros=zeros, why=why, name=NAME))
        raw = self._store.small_file(self._store.paths.timercheck)
        new = self._check(raw)
        if new != raw:
            why = sentence("timercheck says where the timer goes on")
            patches.append(WriteFile(file="config/timercheck", old=raw, new=new, why=why, name=NAME))
        return patches

    @property
    def repeated(self) -> int:
        """Number of messages that the timer delivers again."""
        return 0 if self._file_size else self._queue_end - self._reached - len(self.waiting)

    @property
    def _reached(self) -> int:
        """Offset in the timer queue at which the timer goes on."""
        if self._file_size or not self.waiting:
            return self._queue_end
        return self.waiting[0].message.queue_offset

    @property
    def _read_time(self) -> int:
        """The time (ms) from which the timer reads its wheel."""
        return self._newest // self._precision * self._precision

    def _contents(self, start: int) -> list[bytes]:
        """Return the bytes of the files of the timer log, without the zeros at their ends."""
        contents, current = [], bytearray()
        last_of_slot: dict[int, int] = {}
        for unit in self._units():
            if self._file_size - len(current) < UNIT_SIZE + BLANK_BYTES:
                contents.append(bytes(current) + timer.blank(self._file_size - len(current)))
                current = bytearray()
            offset = start + len(contents) * self._file_size + len(current)
            slot = timer.slot_index(unit.due, self._precision)
            current += replace(unit, previous=last_of_slot.get(slot, NO_OFFSET)).encoded()
            last_of_slot[slot] = offset
        return [*contents, bytes(current)] if current else contents

    def _units(self) -> list[TimerLogUnit]:
        units = [self._unit(item) for item in self.waiting]
        last = self._last_message()
        if last is not None and (not self.waiting or self.waiting[-1].message.offset != last.offset):
            # A start goes on behind the message of the last unit: this one is in a slot that is never read.
            units.append(_timer_unit(last, MAGIC_DEFAULT, self._read_time - self._precision, 0))
        return units

    def _unit(self, item: _Waiting) -> TimerLogUnit:
        due, began = max(item.due, self._read_time), self._read_time
        magic = MAGIC_DEFAULT
        if due - began >= self._window:  # as a broker does: in this time it puts the message back once more
            magic |= MAGIC_ROLL
            slots = self._window // self._precision
            is_near = due - began - self._window < slots // 3 * self._precision
            due = began + (slots // 2 * self._precision if is_near else self._window)
        return _timer_unit(item.message, magic, began, due - began)

    def _last_message(self) -> Unit | None:
        """The last message of the timer queue."""
        queue = self._store.queues.find(TIMER_TOPIC, 0)
        entry = queue.entry(queue.max_offset - 1) if queue is not None and queue.max_offset > 0 else None
        unit = self._store.log.seen_at(entry.physical_offset, crc=False) if entry is not None else None
        return unit if isinstance(unit, Unit) else None

    def _check(self, raw: bytes | None) -> bytes:
        try:
            old = timer.decode_check(raw or b"")
        except CorruptUnit:
            old = TimerCheck(0, 0, 0, 0, 0, 0, 0)
        new = TimerCheck(self._read_time, 0, self._reached, self._reached, *astuple(old)[4:])
        return new.encoded()


def _file_size(files: Sequence[ReadOnlyFile], config: MessageStoreConfig | None) -> int:
    """Return the size (bytes) of the timer log's files; 0 if it is unknown.

    The configuration counts where the names of the files agree with it, then the distance of their names: the damage
    may be a wrong length.
    """
    starts = [file.start_offset for file in files]
    if config is not None and all(start % config.mapped_file_size_timer_log == 0 for start in starts):
        return config.mapped_file_size_timer_log
    distances = [later_start - start for start, later_start in pairwise(starts)]
    return min(distances, default=0) or next((file.size for file in files if file.size), 0)


def _timer_unit(message: Unit, magic: int, began: int, delay: int) -> TimerLogUnit:
    topic = message.properties.get(props.REAL_TOPIC, "")
    return TimerLogUnit(0, NO_OFFSET, magic, began, delay, message.offset, message.size, jhash(topic))


def _removed(store: StoreSnapshot, path: Path, why: str) -> RemoveFile:
    size, sample = sample_of(store, path)
    return RemoveFile(file=path.relative_to(store.path).as_posix(), size=size, sample=sample, why=why, name=NAME)
