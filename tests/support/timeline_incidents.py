"""Stores with incidents at known times: our engine writes them with a clock that the script sets."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.codec import properties as props
from engine.config import from_mapping
from engine.inspection.timeline.events import TimelineEvent
from engine.message_store import Message, MessageStore

SIZES = {
    "mappedFileSizeCommitLog": 1 << 18,
    "mappedFileSizeConsumeQueue": 20_000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 200,
    "flushDiskType": "ASYNC_FLUSH",
}
BEGIN = 1_795_000_000_000
MONTH = 1_793_404_800_000
"""The midnight from which the clients count the time in their unique keys."""
TOLERANCE_MS = 1000


@dataclass(frozen=True)
class Incident:
    """What the timeline must show: an event of this kind at these times of the broker's clock."""

    kind: str
    start: int
    end: int | None = None
    extra: tuple[tuple[str, object], ...] = ()
    """Values that its evidence must have."""

    def is_shown_by(self, event: TimelineEvent) -> bool:
        return (
            event.kind == self.kind
            and min(abs(time - self.start) for time in self._times_of(event)) <= TOLERANCE_MS
            and (self.end is None or (event.end is not None and abs(event.end - self.end) <= TOLERANCE_MS))
            and all(event.evidence[name] == value for name, value in self.extra)
        )

    def _times_of(self, event: TimelineEvent) -> list[int]:
        """The beginning; of a clock that was set also the first message behind, since nothing shows what is between."""
        times = [event.time]
        return [*times, event.end] if self.kind == "clockStep" and event.end is not None else times


@dataclass
class Producer:
    host: str
    pid: int
    clock_offset: int = 0
    counter: int = 0

    def unique_key(self, first_attempt: int) -> str:
        self.counter += 1
        address = bytes(int(part) for part in self.host.split("."))
        parts = (self.pid.to_bytes(2), b"\x12\x34\x56\x78", (first_attempt + self.clock_offset - MONTH).to_bytes(4))
        return (address + b"".join(parts) + (self.counter & 0xFFFF).to_bytes(2)).hex().upper()


@dataclass
class Script:
    """A store, its broker's clock and its producers; ``incidents`` lists what happened."""

    root: Path
    seed: int
    now: int = BEGIN
    broker_offset: int = 0
    store_host: str = "127.0.0.1:10911"
    incidents: list[Incident] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.now += self.rng.randrange(1_000_000)
        self.producers = [Producer(f"10.0.0.{n}", 4000 + n) for n in range(1, self.rng.randrange(2, 5))]
        self.interval = self.rng.choice(((10, 60), (20, 120), (100, 600)))
        self.store = self.open()

    def clock(self) -> int:
        return self.now + self.broker_offset

    def open(self) -> MessageStore:
        config = from_mapping({name: str(value) for name, value in SIZES.items()})[0]
        store = MessageStore(self.root, config, clock=self.clock, services=False, store_host=self.store_host)
        store.services.step("reput")
        return store

    def put(
        self, producer: Producer, first: int, last: int, topic: str = "Orders", key: str = "", **options: Any
    ) -> str:
        """Store a message now that was first sent at ``first`` and whose last attempt was at ``last``."""
        key = key or producer.unique_key(first)
        body = bytes(self.rng.randrange(256) for _ in range(16)) * self.rng.randrange(1, 8)
        self.put_body(producer, last, topic, key, options.pop("body", body), **options)
        return key

    def put_body(self, producer: Producer, last: int, topic: str, key: str, body: bytes, **options: Any) -> None:
        properties = options.pop("properties", {})
        result = self.store.put_message(
            Message(
                topic,
                body,
                self.rng.randrange(2),
                unique_key=key,
                properties=properties,
                born_timestamp=last + producer.clock_offset,
                born_host=f"{producer.host}:5000",
                **options,
            )
        )
        assert result.status.name == "PUT_OK"

    def traffic(self, duration_ms: int) -> None:
        """Let all producers send for a while, longer if they send rarely."""
        end = self.now + duration_ms * sum(self.interval) // 70
        while self.now < end:
            self.now += self.rng.randrange(*self.interval)
            sent = self.now - self.rng.randrange(1, 6)
            self.put(self.rng.choice(self.producers), sent, sent)
            self.store.services.step("reput")

    def retried(self, begin: int) -> None:
        """Store messages whose first attempts failed since ``begin``."""
        for _ in range(self.rng.randrange(3, 9)):
            self.now += self.rng.randrange(1, 8)
            first = self.rng.randrange(begin + 200, self.now - 800)
            self.put(self.rng.choice(self.producers), first, self.now - 2)

    # -- incidents

    def crash(self) -> None:
        begin = self.now
        crashed = self.root.with_name(f"{self.root.name}-{begin}")
        self.store.services.step("reput")
        shutil.copytree(self.root, crashed)
        self.store.abandon()
        shutil.rmtree(self.root)
        crashed.rename(self.root)
        self.now += self.rng.randrange(4000, 40_000)
        start = self.clock()
        self.store = self.open()
        self.now += self.rng.randrange(100, 700)
        self.retried(begin)
        offset = self.broker_offset
        self.incidents += [Incident("crash", begin + offset, start), Incident("start", start)]

    def outage(self) -> None:
        begin = self.now
        self.store.close()
        self.now += self.rng.randrange(4000, 40_000)
        self.store = self.open()
        self.incidents.append(Incident("outage", begin + self.broker_offset, self.clock()))
        self.retried(begin)

    def outage_with_losses(self) -> None:
        """No message that was sent meanwhile is stored later: the producers gave up, or sent it to another broker."""
        begin = self.now
        self.store.close()
        self.now += self.rng.randrange(4000, 40_000)
        self.store = self.open()
        for producer in self.producers:
            producer.counter += (self.now - begin) // sum(self.interval)
        self.traffic(10)
        self.incidents.append(Incident("outage", begin + self.broker_offset, self.clock()))

    def stall(self) -> None:
        begin = self.now
        end = begin + self.rng.randrange(1500, 20_000)
        sent = sorted(self.rng.randrange(begin + 10, end) for _ in range(self.rng.randrange(2, 40)))
        sent[0] = begin + self.rng.randrange(5, 100)
        self.now = end
        for time in sent:
            self.put(self.rng.choice(self.producers), time, time)
            self.now += self.rng.randrange(3)
        self.incidents.append(Incident("stall", begin + self.broker_offset, end + self.broker_offset))

    def pause(self) -> None:
        begin = self.now
        self.now += self.rng.randrange(15_000, 120_000)
        self.incidents.append(Incident("pause", begin + self.broker_offset, self.clock()))

    def broker_clock(self) -> None:
        step = self.rng.choice((-1, 1)) * self.rng.randrange(2000, 3_600_000)
        self.incidents.append(Incident("clockStep", self.clock(), None, (("clock", "broker"),)))
        self.broker_offset += step
        self.store._log.last_time = 0  # RocketMQ's store time follows a clock that goes back; ours waits for it

    def producer_clock(self) -> None:
        producer = self.rng.choice(self.producers)
        producer.clock_offset += self.rng.choice((-1, 1)) * self.rng.randrange(2000, 3_600_000)
        self.incidents.append(Incident("clockStep", self.clock(), None, (("clock", "producer"),)))

    def duplicates(self) -> None:
        producer, body = self.producers[0], bytes(100)
        key = self.put(producer, self.now, self.now, body=body)
        self.traffic(self.rng.randrange(1000, 5000))
        self.put(producer, self.now, self.now - 1, key=key, body=body)
        self.incidents.append(Incident("duplicateSend", self.clock()))

    def retry_storm(self) -> None:
        begin, group = self.clock(), f"group{self.rng.randrange(100)}"
        for number in range(self.rng.randrange(300, 600)):
            self.now += self.rng.randrange(1, 20)
            if number % 20 == 0:
                self.store.services.step("reput")
            producer = self.rng.choice(self.producers)
            born = self.now - 20_000
            self.put(producer, born, born, f"%RETRY%{group}", reconsume_times=self.rng.randrange(1, 5))
        self.incidents.append(Incident("retryStorm", begin, self.clock()))

    def new_topic(self) -> None:
        topic = f"Topic{self.rng.randrange(1_000_000)}"
        self.now += 5
        self.put(self.producers[-1], self.now, self.now, topic)
        self.incidents.append(Incident("topicAppears", self.clock(), None, (("topic", topic),)))

    def new_host(self) -> None:
        self.store.close()
        self.store_host = f"10.1.0.{self.rng.randrange(1, 200)}:10911"
        self.store = self.open()
        self.now += 10
        self.incidents.append(Incident("hostChange", self.clock()))

    def delayed_again(self) -> None:
        """Delayed messages are due while the broker is down, and a start delivers older ones a second time."""
        producer, delivered = self.producers[0], []
        for number in range(5):
            self.now += 20
            body, born = number.to_bytes(40), self.now - 3
            properties = {props.REAL_TOPIC: "Orders", props.REAL_QUEUE_ID: "0"}
            key = self.put(
                producer, born, born, "SCHEDULE_TOPIC_XXXX", body=body, properties={**properties, props.DELAY: "3"}
            )
            delivered.append((key, body, born, properties))
        self.traffic(9000)
        self.now += 1500
        for key, body, born, properties in delivered:
            self.put_body(producer, born, "Orders", key, body, properties=properties)
        self.traffic(2000)
        begin = self.now
        self.store.close()
        self.now += self.rng.randrange(4000, 40_000)
        self.store = self.open()
        self.incidents.append(Incident("crash", begin + self.broker_offset, self.clock()))
        for key, body, born, properties in delivered:
            self.put_body(producer, born, "Orders", key, body, properties=properties)

    def finish(self) -> None:
        """End the last run: closed, or not."""
        is_closed = bool(self.rng.randrange(2))
        if is_closed:
            self.store.close()
        else:
            self.store.services.step("reput")
            self.store.abandon()
        self.incidents.append(Incident("cleanStop" if is_closed else "crash", self.clock()))


INCIDENTS: tuple[Callable[[Script], None], ...] = (
    Script.crash,
    Script.outage,
    Script.outage_with_losses,
    Script.stall,
    Script.pause,
    Script.broker_clock,
    Script.producer_clock,
    Script.duplicates,
    Script.retry_storm,
    Script.new_topic,
    Script.new_host,
    Script.delayed_again,
)
INCIDENTAL = {"topicAppears", "redelivery"}
"""Kinds of events that a script causes without listing them."""


def write_store(root: Path, seed: int, kinds: int = 3) -> Script:
    """Write a store with ``kinds`` incidents and an end; the same for the same seed."""
    script = Script(root, seed)
    script.traffic(12_000)
    first = seed * kinds % len(INCIDENTS)
    chosen = [INCIDENTS[(first + number) % len(INCIDENTS)] for number in range(kinds)]
    script.rng.shuffle(chosen)
    for incident in chosen:
        incident(script)
        script.traffic(script.rng.randrange(11_000, 16_000))
    script.finish()
    return script
