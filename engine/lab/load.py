"""Messages of a load, generated fast: topics, sizes and positions in a text come from tables prepared beforehand."""

from __future__ import annotations

import random
import shutil
import threading
import time
from itertools import accumulate
from pathlib import Path
from typing import Final

from engine.codec.encode import Message
from engine.lab.acknowledged import PRUNE_FROM, Acknowledged
from engine.lab.load_settings import LoadSettings
from engine.lab.samples import LoadCounts
from engine.mapped.power_loss import PowerLoss
from engine.message_store import MessageStore
from engine.sentences import sentence
from engine.services.service_thread import ServiceThread
from engine.store.latency import Histogram
from engine.store.put_message import PutMessageResult, PutMessageStatus

_TABLE: Final = 4096
_TEXT: Final = 1 << 16
_TAGS: Final = (b"created", b"paid", b"packed", b"sent", b"returned")
_WORDS: Final = (
    b"please",
    b"leave",
    b"at",
    b"the",
    b"door",
    b"ring",
    b"twice",
    b"fragile",
    b"gift",
    b"before",
    b"noon",
)
_END: Final = b'"}'
_SPREAD: Final = 0x9E3779B97F4A7C15
"""Odd and without a pattern: numbers times it fall evenly among the keys."""


class MessageMaker:
    """The messages of producer ``number``: the same for the same settings."""

    def __init__(self, settings: LoadSettings, number: int) -> None:
        pick = random.Random(f"{settings.seed} {number}")
        self._n = 0
        self._keys = settings.keys
        self._queues = settings.queues
        self._first = number
        self._unique = b"UNIQ_KEY\x01%08X%08X0000%04X" % (settings.seed & 0xFFFFFFFF, pick.getrandbits(32), number)
        largest = settings.body_size + settings.body_spread
        self._text = _text(pick, largest)
        self._topics = _topics(settings, pick)
        sizes = [
            max(0, settings.body_size + pick.randint(-settings.body_spread, settings.body_spread))
            for _ in range(_TABLE)
        ]
        heads = [_head(pick, size) for size in sizes]
        self._heads = heads
        rests = [max(0, size - len(head) - len(_END)) for head, size in zip(heads, sizes, strict=True)]
        self._spans = [slice(start := pick.randrange(_TEXT), start + length) for length in rests]
        self._ends = [_END if head.startswith(b"{") else b"" for head in heads]
        self._tags = [b"TAGS\x01%s\x02" % pick.choice(_TAGS) for _ in range(_TABLE)]

    def one(self) -> Message:
        """Return the next message."""
        n = self._n
        self._n = n + 1
        row = n & (_TABLE - 1)
        if self._keys:
            raw = b"%s%08X\x02KEYS\x01key-%d\x02%s" % (self._unique, n, n * _SPREAD % self._keys, self._tags[row])
        else:
            raw = b"%s%08X\x02%s" % (self._unique, n, self._tags[row])
        body = self._heads[row] + self._text[self._spans[row]] + self._ends[row]
        return Message(self._topics[row], body, (self._first + n) % self._queues, None, raw)

    def many(self, count: int) -> list[Message]:
        """Return the next ``count`` messages."""
        make_one = self.one
        return [make_one() for _ in range(count)]


def _text(pick: random.Random, largest: int) -> bytes:
    """Words, long enough for ``largest`` bytes from any place in the first 64 KiB; any part of it is good in JSON."""
    text = b" ".join(pick.choice(_WORDS) for _ in range(8192)) + b" "
    return text * (-(-(_TEXT + largest) // len(text)))


def _head(pick: random.Random, size: int) -> bytes:
    """Return the beginning of a JSON body of ``size`` bytes: an object up to its last text, or, if there is no room
    for one, a number.
    """
    head = b'{"order":%d,"amount":%d.%02d,"city":"%s","note":"' % (
        pick.randrange(10**6),
        pick.randrange(500),
        pick.randrange(100),
        pick.choice((b"Ulm", b"Graz", b"Chur")),
    )
    if len(head) + len(_END) <= size:
        return head
    return b"".join(pick.choice((b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9")) for _ in range(size))


def _topics(settings: LoadSettings, pick: random.Random) -> list[str]:
    """The topic of each row of the table: alike, or the n-th as often as 1/n."""
    names = [settings.topic if settings.topics == 1 else f"{settings.topic}-{n + 1}" for n in range(settings.topics)]
    if len(names) == 1:
        return names * _TABLE
    if settings.zipf:
        shares = list(accumulate(1 / (n + 1) for n in range(len(names))))
        return pick.choices(names, cum_weights=shares, k=_TABLE)
    rows = (names * (-(-_TABLE // len(names))))[: max(_TABLE, len(names))]
    pick.shuffle(rows)
    return rows[:_TABLE]


TURN_SECONDS: Final = 0.004
"""A producer looks at its settings and the clock this often."""
MIN_FREE_BYTES: Final = 1 << 30
"""Bytes of free disk below which a load stops by itself."""
_REFUSED_PAUSE_MS: Final = 20.0
_REFUSED: Final = 8
"""Refusals in one turn after which a producer pauses."""
_DISK_CHECK_INTERVAL_S: Final = 1.0
_OK = PutMessageStatus.PUT_OK


class Load:
    """A load on ``store``; nothing is put before :meth:`start`. All calls may come from any thread.

    ``folder`` is where free room is looked for: the load stops by itself before the disk is full.
    """

    def __init__(self, store: MessageStore, settings: LoadSettings, *, folder: Path | None = None) -> None:
        self.settings = settings
        self._store = store
        self._folder = folder or store.paths.root
        self._producers: list[_Producer] = []
        self._threads: list[ServiceThread] = []
        self._lock = threading.Lock()
        self._running = False
        self._before = store.positions().put_latency.counts
        self.stopped = ""
        self.acknowledged: list[Acknowledged] = []
        """Of every producer there ever was: the ends of what was answered PUT_OK."""

    @property
    def running(self) -> bool:
        """True while messages are put."""
        return self._running

    def start(self) -> None:
        """Start the producers; do nothing if they run."""
        with self._lock:
            if not self._running:
                self._running = True
                self.stopped = ""
                self._fit()

    def change(self, settings: LoadSettings) -> None:
        """Use other settings from the next turn of each producer on."""
        with self._lock:
            self.settings = settings
            for producer in self._producers:
                producer.change(settings)
            if self._running:
                self._fit()

    def stop(self, seconds: float = 60.0) -> bool:
        """Stop the producers. Return True if all of them ended in time. Messages that they put still count."""
        with self._lock:
            self._running = False
            threads, self._threads = self._threads, []
            for thread in threads:
                thread.stop()
            ended = [thread.join(seconds) for thread in threads]
            return all(ended)

    def counts(self) -> LoadCounts:
        """Return what was done so far."""
        statuses = self.statuses()
        now = self._store.positions().put_latency.counts
        latency = Histogram(
            tuple(new_count - old_count for new_count, old_count in zip(now, self._before, strict=True))
        )
        size = sum(producer.bytes for producer in list(self._producers))
        return LoadCounts(self._running, sum(statuses.values()), size, statuses, latency, self.stopped)

    def statuses(self) -> dict[str, int]:
        """Return the number of messages by put status."""
        numbers: dict[str, int] = {}
        for producer in list(self._producers):
            for status, number in [(_OK, producer.ok), *list(producer.refused.items())]:
                if number:
                    numbers[status.name] = numbers.get(status.name, 0) + number
        return numbers

    def _fit(self) -> None:
        """Start or stop threads until there are as many as the settings say; the lock is held."""
        thread_count = self.settings.producers
        while len(self._threads) > thread_count:
            self._threads.pop().stop()
        while len(self._threads) < thread_count:
            number = len(self._threads)
            if number == len(self._producers):
                self._producers.append(_Producer(self, self._store, number, self.settings))
                self.acknowledged.append(self._producers[number].acknowledged)
            self._producers[number].begin()
            thread = ServiceThread(self._producers[number], self._broken)
            self._threads.append(thread)
            thread.start()

    def give_up(self, why: str) -> None:
        """Record that a producer cannot continue, and why."""
        self.stopped = self.stopped or why
        self._running = False
        for thread in list(self._threads):
            thread.stop()

    def _broken(self, name: str, error: Exception) -> None:
        self.give_up(f"{name}: {type(error).__name__}: {error}")

    def check_room(self) -> None:
        """Stop where the disk has hardly any room left."""
        try:
            free = shutil.disk_usage(self._folder).free
        except OSError as error:
            self.give_up(
                sentence(
                    "the disk of {folder} cannot be asked for room: {strerror}",
                    folder=self._folder,
                    strerror=error.strerror,
                )
            )
            return
        if free < MIN_FREE_BYTES:
            self.give_up(
                sentence(
                    "the load has stopped: the disk of {folder} has {n:,} MiB left, {kept:,} MiB are kept free",
                    folder=self._folder,
                    n=free >> 20,
                    kept=MIN_FREE_BYTES >> 20,
                )
            )


class _Producer:
    """The work of one thread: in turns, puts and then a check of the free disk space."""

    def __init__(self, load: Load, store: MessageStore, number: int, settings: LoadSettings) -> None:
        self.name = f"lab-producer-{number}"
        self.bytes = 0
        self.ok = 0
        self.refused: dict[PutMessageStatus, int] = {}
        self.acknowledged = Acknowledged()
        self._load = load
        self._store = store
        self._number = number
        self._wanted = settings
        self._settings: LoadSettings | None = None
        self._maker = MessageMaker(settings, number)
        self._began = 0.0
        self._done = 0
        self._looked = 0.0
        self._prune_at = PRUNE_FROM

    def begin(self) -> None:
        """Start the clock of a limited rate."""
        self._settings = None

    def change(self, settings: LoadSettings) -> None:
        """Take over other settings at the next turn."""
        self._wanted = settings

    def step(self) -> float:
        """Run one turn; returns the milliseconds until the next. Does nothing after a simulated power cut."""
        try:
            return self._turn()
        except PowerLoss:
            return _REFUSED_PAUSE_MS

    def _turn(self) -> float:
        if self._settings is not self._wanted:
            self._take_over(self._wanted)
        settings = self._wanted
        now = time.perf_counter()
        if self._number == 0 and now - self._looked > _DISK_CHECK_INTERVAL_S:
            self._looked = now
            self._load.check_room()
        if len(self.acknowledged.ends) > self._prune_at:
            self.acknowledged.prune(self._store.positions().flushed)
            self._prune_at = len(self.acknowledged.ends) + PRUNE_FROM
        max_messages = 1 << 30
        if settings.rate:
            share = settings.rate / settings.producers
            due = int((now - self._began) * share) - self._done
            if due < settings.batch:
                return max(1.0, min((settings.batch - due) / share * 1000.0, 50.0))
            if due > share:  # more than a second behind: what was missed is not made up for
                self._began += (due - share) / share
                due = int(share)
            max_messages = due
        turn = self._singly if settings.batch == 1 else self._in_batches
        refused = turn(max_messages, now + TURN_SECONDS)
        if refused:
            return _REFUSED_PAUSE_MS
        return 0.0

    def _take_over(self, settings: LoadSettings) -> None:
        self._settings = settings
        self._maker = MessageMaker(settings, self._number)
        self._began = time.perf_counter()
        self._done = 0

    def _singly(self, max_messages: int, until: float) -> bool:
        put, make, clock = self._store.put_message, self._maker.one, time.perf_counter
        note, ok = self.acknowledged.ends.append, _OK
        done = refused = 0
        while done < max_messages and refused < _REFUSED and clock() < until:
            message = make()
            result = put(message)
            done += 1
            if result.status is ok and (fields := result.fields) is not None:
                note(fields[1] + fields[2])
                self.ok += 1
                self.bytes += len(message.body)
            else:
                refused += 1
                self._count(result.status)
        self._done += done
        self.acknowledged.bound()
        return refused >= _REFUSED

    def _count(self, status: PutMessageStatus) -> None:
        self.refused[status] = self.refused.get(status, 0) + 1

    def _in_batches(self, max_messages: int, until: float) -> bool:
        put, make, clock = self._store.put_messages, self._maker.many, time.perf_counter
        ok, batch = _OK, self._wanted.batch
        refused = False
        while max_messages >= batch and not refused and clock() < until:
            messages = make(batch)
            results = put(messages)
            max_messages -= batch
            self._done += batch
            timed_out = results.waits and results.ok and results[0].status is not ok
            if results.ok and not timed_out:
                self.acknowledged.note_many(_start_of(results[0]), results.end_offset, batch)
                self.ok += batch
                self.bytes += sum([len(message.body) for message in messages])
                continue
            for message, result in zip(messages, results, strict=True):
                if result.status is ok and result.append is not None:
                    self.acknowledged.ends.append(result.append.end_offset)
                    self.ok += 1
                    self.bytes += len(message.body)
                else:
                    self._count(result.status)
            refused = not results.ok
        self.acknowledged.bound()
        return refused


def _start_of(result: PutMessageResult) -> int:
    return result.append.physical_offset if result.append is not None else 0
