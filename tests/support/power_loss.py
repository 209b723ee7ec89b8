"""A random life of a store on a simulated disk, and the conditions for every disk that a power loss may leave."""

from __future__ import annotations

import random
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from simulated_disk import PowerLoss, SimulatedDisk

from engine.codec.encode import Message
from engine.codec.message import Unit
from engine.codec.unit_scan import walk
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.store.put_message import PutMessageStatus

ROOT = Path("/store")
TOPICS = ("Orders", "Stock", "%RETRY%billing")
FILE_SIZE = 1 << 13
SMALL: dict[str, Any] = {
    "mapped_file_size_commit_log": FILE_SIZE,
    "mapped_file_size_consume_queue": 20 * 12,
    "mapped_file_size_consume_queue_ext": 500,
    "max_hash_slot_num": 20,
    "max_index_num": 60,
    "message_index_safe": True,
    "max_message_size": 4096,
}
MODES: dict[str, dict[str, Any]] = {
    "sync": {"flush_disk_type": "SYNC_FLUSH"},
    "async": {"flush_disk_type": "ASYNC_FLUSH"},
    "pool": {"flush_disk_type": "ASYNC_FLUSH", "transient_store_pool_enable": True, "transient_store_pool_size": 3},
    "sync pool": {"flush_disk_type": "SYNC_FLUSH", "transient_store_pool_enable": True, "transient_store_pool_size": 3},
}


def configuration(mode: str, rng: random.Random) -> MessageStoreConfig:
    """Return a random configuration with small files and this flush mode."""
    extra = {"enable_consume_queue_ext": rng.random() < 0.2, "enabled_append_prop_crc": rng.random() < 0.2}
    extra["commit_log_recover_max_num"] = 1_000  # these tiny files are soon more than the ten of a default start
    return replace(MessageStoreConfig(), **{**SMALL, **extra, **MODES[mode]})


class Clock:
    """Milliseconds under the script's control."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


@dataclass
class PutLedger:
    """Put messages, by body, and the store's answers about them."""

    tried: dict[bytes, tuple[str, int]] = field(default_factory=dict)
    placed: dict[bytes, tuple[int, int]] = field(
        default_factory=dict
    )  # offset and end in the log, once the put came back
    promised: set[bytes] = field(default_factory=set)  # PUT_OK under SYNC_FLUSH, or below the flushed offset
    deleted_below: int = 0

    def due(self, flushed: int) -> list[tuple[int, bytes]]:
        """Return offsets and bodies that must exist: acknowledged by SYNC_FLUSH, or reported as flushed."""
        return [
            (offset, body)
            for body, (offset, end) in self.placed.items()
            if (end <= flushed or body in self.promised) and offset >= self.deleted_below
        ]

    def note_call(self, kind: str, path: str) -> None:
        """Note that a file of the log was deleted and need not exist any more."""
        if kind == "delete" and "/commitlog/" in path:
            self.deleted_below = max(self.deleted_below, int(path.rpartition("/")[2]) + FILE_SIZE)

    def keep(self, bodies: Collection[bytes]) -> None:
        """Forget messages that were not found after a recovery: they may not come back."""
        self.tried = {body: place for body, place in self.tried.items() if body in bodies}
        self.placed = {body: place for body, place in self.placed.items() if body in bodies}
        self.promised &= set(bodies)


class StoreLifetime:
    """The lifetime of an open store: opened, used at random, perhaps closed."""

    def __init__(
        self, mode: str, seed: int, disk: SimulatedDisk, ledger: PutLedger, clock: Clock, *, jumps: bool = False
    ) -> None:
        self.rng = random.Random(seed)
        self.mode = mode
        self.config = configuration(mode, random.Random(seed // 100))
        self.disk = disk
        self.ledger = ledger
        self.clock = clock
        self.jumps = (0, -5, -60_000, 60_000, 1) if jumps else (0, 1, 5, 700, 4000)
        self.number = 0
        self.prefix = b"%d-%d " % (seed, len(ledger.tried))
        self.store: MessageStore | None = None

    def open(self) -> MessageStore:
        self.store = MessageStore(ROOT, self.config, disk=self.disk, clock=self.clock, services=False, empty_log=True)
        return self.store

    @property
    def flushed(self) -> int:
        """The offset that the store reports as safe from a power loss."""
        return self.store.positions().flushed if self.store is not None else 0

    def run(self, steps: int, *, close: bool) -> None:
        store = self.store or self.open()
        for _ in range(steps):
            self.clock.now += self.rng.choice(self.jumps)
            chance = self.rng.random()
            if chance < 0.45:
                self._put(store)
            elif chance < 0.6:
                self._put_many(store)
            else:
                store.services.step(self.rng.choice(store.services.names))
        if close:
            store.close()
            self.store = None

    def run_or_fail(self, steps: int) -> None:
        """Run like :meth:`run` on a disk with failing calls: opening and closing may raise, nothing else."""
        try:
            self.open()
        except OSError:
            self.store = None
            return
        self.run(steps, close=False)
        assert self.store is not None
        with suppress(OSError):
            self.store.close()

    def _message(self) -> Message:
        rng = self.rng
        self.number += 1
        body = self.prefix + b"%d " % self.number + rng.randbytes(rng.choice((0, 10, 200, 600, 2500)))
        topic, queue_id = rng.choice(TOPICS), rng.randrange(2)
        self.ledger.tried[body] = topic, queue_id
        return Message(topic, body, queue_id, tags=rng.choice(("A", "B")), keys=f"k{self.number} every")

    def _put(self, store: MessageStore) -> None:
        message = self._message()
        result = store.put_message(message)
        self._note(message, result)

    def _put_many(self, store: MessageStore) -> None:
        messages = [self._message() for _ in range(self.rng.randint(2, 6))]
        for message, result in zip(messages, store.put_messages(messages), strict=True):
            self._note(message, result)

    def _note(self, message: Message, result: Any) -> None:
        if result.ok and result.append is not None:
            self.ledger.placed[message.body] = result.append.physical_offset, result.append.end_offset
            if self.config.flush_disk_type == "SYNC_FLUSH" and result.status is PutMessageStatus.PUT_OK:
                self.ledger.promised.add(message.body)


class StoreContents:
    """Content of a store after it was opened: every unit of the log by its body, and the ends of its queues."""

    def __init__(self, store: MessageStore) -> None:
        self.units: dict[bytes, Unit] = {}
        self.end = store.positions().wrote
        parts = store._parts
        for file in parts.files.files:
            for row in walk(file.read(0, file.readable), file.start_offset):
                if isinstance(row, Unit):
                    unit = store.look_message_by_offset(row.offset)
                    assert unit is not None, f"no unit at {row.offset}"
                    assert unit.physical_offset == row.offset, "a unit that was written elsewhere has come back"
                    assert unit.body not in self.units, "a message is there twice"
                    self.units[unit.body] = unit
        self.queues = {(queue.topic, queue.queue_id): queue.state() for queue in parts.queues if queue.end_bytes}
        self.entries = {
            (queue.topic, queue.queue_id): {
                queue.min_offset + number: (int(entry["physical_offset"]), int(entry["size"]))
                for number, entry in enumerate(queue.read(queue.min_offset, 1 << 20))
            }
            for queue in parts.queues
            if queue.end_bytes
        }


def check(store: MessageStore, ledger: PutLedger, flushed: int) -> StoreContents:
    """Assert that no promised message is lost, none is invented, and queues and index have every message at its
    place.
    """
    contents = StoreContents(store)
    for body, unit in contents.units.items():
        assert body in ledger.tried, f"invented: {body[:20]!r} at {unit.physical_offset}"
        assert ledger.placed.get(body, (unit.physical_offset,))[0] == unit.physical_offset
    for offset, body in ledger.due(flushed):
        unit = contents.units.get(body)
        assert unit is not None, f"lost: {body[:20]!r} at {offset}, flushed up to {flushed}, end {contents.end}"
        assert is_whole(unit, ledger), f"torn: {body[:20]!r} at {offset}, flushed up to {flushed}"
    _check_queues(contents)
    _check_index(store, contents, ledger)
    return contents


def is_whole(unit: Unit, ledger: PutLedger) -> bool:
    """Return True if a unit is as it was put. RocketMQ checks the body's CRC only: the rest of the last unit may be
    torn.
    """
    number = unit.body.split(b" ")[1].decode()
    return ledger.tried[unit.body] == (unit.topic, unit.queue_id) and unit.properties.get("KEYS") == f"k{number} every"


def _check_queues(contents: StoreContents) -> None:
    observed = 0
    by_offset = {unit.physical_offset: unit for unit in contents.units.values()}
    for (topic, queue_id), entries in contents.entries.items():
        for queue_offset, (offset, size) in entries.items():
            unit = by_offset.get(offset)
            assert unit is not None, f"{topic}/{queue_id} entry {queue_offset} points to {offset}: no unit there"
            is_for = (unit.topic, unit.queue_id, unit.queue_offset, unit.size)
            assert is_for == (topic, queue_id, queue_offset, size), (
                f"{topic}/{queue_id} entry {queue_offset} of {size} bytes at {offset} is for {is_for}"
            )
            observed += 1
    assert observed == len(contents.units), f"{len(contents.units)} messages, {observed} entries in the queues"


def _check_index(store: MessageStore, contents: StoreContents, ledger: PutLedger) -> None:
    for unit in list(contents.units.values())[-5:]:
        if not is_whole(unit, ledger) or unit.store_timestamp == store.positions().checkpoint.index_msg_timestamp:
            continue  # RocketMQ's rule loses what was stored in the very millisecond in which an index file ended
        key = unit.body.split(b" ")[1].decode()
        with store.query_message(unit.topic, f"k{key}") as result:
            assert any(result_unit.body == unit.body for result_unit in result.units()), f"not in the index: k{key}"


def verify(image: SimulatedDisk, life: StoreLifetime, flushed: int, rng: random.Random) -> StoreContents:
    """Open the store after a power loss, check it, and check that another recovery, also after a power loss during
    recovery, has the same result.
    """
    same = image.after_power_loss(rng, keep=1.0)
    results = _opened(image, life, flushed)
    calls = image.calls
    _same(results, _opened(image.after_power_loss(rng), life, flushed), "a second recovery")
    same.crash_at = rng.randint(1, calls)
    try:
        _opened(same, life, flushed)
    except PowerLoss:
        repeated = _opened(same.after_power_loss(rng), life, flushed)
        _same(results, repeated, f"after a power loss at call {same.crash_at} of {calls} recovery")
    return results


def _same(first_contents: StoreContents, second_contents: StoreContents, when: str) -> None:
    for name in ("end", "units", "queues", "entries"):
        first_value, second_value = getattr(first_contents, name), getattr(second_contents, name)
        assert first_value == second_value, f"{when} changes {name}: {_difference(first_value, second_value)}"


def _difference(first_value: Any, second_value: Any) -> str:
    if isinstance(first_value, dict):
        return "; ".join(
            f"{key!r}: {first_value.get(key)} → {second_value.get(key)}"
            for key in first_value | second_value
            if first_value.get(key) != second_value.get(key)
        )
    return f"{first_value} → {second_value}"


def _opened(disk: SimulatedDisk, life: StoreLifetime, flushed: int) -> StoreContents:
    store = MessageStore(ROOT, life.config, disk=disk, clock=life.clock, services=False, empty_log=True)
    results = check(store, life.ledger, flushed)
    store.abandon()
    return results
