"""A store under random use of everything that MessageStore offers, compared with a plain model of it.

The model is a list of acknowledged messages, in the order of the log. The conditions after each step are in
``resources/docs/architecture/promises.md``. :class:`StoreMachine` works in a real directory with a reader that looks at
it all the time; :class:`PowerMachine` on a simulated disk whose power fails.
"""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from raw_units import raw_unit
from simulated_disk import SimulatedDisk

from engine.codec.encode import Message
from engine.codec.message import PREPARED, decode
from engine.codec.message_columns import MessageColumns
from engine.config import MessageStoreConfig
from engine.errors import StoreClosed, StoreLocked
from engine.inspection import StoreSnapshot, open_store
from engine.mapped.disk import RealDisk
from engine.mapped.power_loss import PowerLoss
from engine.message_store import MessageStore
from engine.store.put_message import PutMessageStatus
from engine.store.put_raw_units import append_units
from engine.store.recovery.empty_log import LogIsEmpty

SMALL: dict[str, Any] = {
    "mapped_file_size_commit_log": 1 << 13,
    "mapped_file_size_consume_queue": 20 * 12,
    "max_hash_slot_num": 20,
    "mapped_file_size_consume_queue_ext": 500,
    "max_index_num": 60,
    "max_message_size": 4096,
    "file_reserved_time": 0,
}
TOPICS = ("Orders", "Stock", "%RETRY%billing")
RAW = "Stored again"
SERVICES = ("reput", "flush", "queues", "checkpoint", "index", "persist", "allocate", "commit")
topics = st.sampled_from(TOPICS)
queues = st.integers(0, 1)
lengths = st.sampled_from((0, 5, 60, 300, 1500))


@dataclass
class AcknowledgedPut:
    """An acknowledged message."""

    offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int  # −1 where it goes into no queue
    body: bytes
    promised: bool = False  # answered PUT_OK under SYNC_FLUSH

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass
class Model:
    """The expected content of a store. ``vague`` are topics that were deleted: after a crash, or if no unit of a queue
    follows them, a start dispatches the units of them that it finds in the log, as RocketMQ's does.

    ``unindexed_end``: a start after a crash deleted index files whose keys of units before this offset no dispatch adds
    again. RocketMQ 5.5 does so: it dispatches from the checkpoint's queue offset on.
    """

    puts: list[AcknowledgedPut] = field(default_factory=list)
    next: dict[tuple[str, int], int] = field(default_factory=dict)
    begins: dict[str, int] = field(default_factory=dict)  # offset in the log, before which a deleted topic's units lie
    vague: set[str] = field(default_factory=set)
    flushed: int = 0
    low: int = 0
    unindexed_end: int = 0

    def queue(self, topic: str, queue_id: int, end: int) -> list[AcknowledgedPut]:
        """Return the queue's messages after everything before ``end`` is dispatched."""
        begin = max(self.begins.get(topic, 0), self.low)
        return [
            put
            for put in self.puts
            if (put.topic, put.queue_id) == (topic, queue_id) and put.queue_offset >= 0 and begin <= put.offset < end
        ]

    def is_sure(self, put: AcknowledgedPut) -> bool:
        """Return True if its queue must have it: its topic was not deleted since."""
        return put.topic not in self.vague and put.offset >= self.begins.get(put.topic, 0)

    def cut(self, end: int) -> list[AcknowledgedPut]:
        """Cut the model at ``end``, where a start found the end of the log; return the lost messages. The start
        dispatches units after the last one that is in a queue, those of deleted topics too.
        """
        queued = [put.offset for put in self.puts if put.queue_offset >= 0 and put.offset < end and self.is_sure(put)]
        self.vague |= {topic for topic, begin in self.begins.items() if max(queued, default=-1) < begin}
        lost = [put for put in self.puts if put.offset >= end]
        self.puts = [put for put in self.puts if put.offset < end]
        self.next = {}
        for put in self.puts:
            if put.queue_offset >= 0 and self.is_sure(put):
                self.next[put.topic, put.queue_id] = put.queue_offset + 1
        self.flushed = min(self.flushed, end)
        return lost


class NeverFullDisk(RealDisk):
    """A disk that is never full, even if this machine's is."""

    def usage(self, path: Path) -> float:
        return 0.1 if path.exists() else -1.0


class CommonStoreMachine(RuleBasedStateMachine):
    """Rules and conditions of both machines."""

    disk: SimulatedDisk | None = None
    path: Path

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.numbers = itertools.count(1)
        self.closed: list[MessageStore] = []
        self.store: MessageStore | None = None
        self.now = 1_700_000_000_000
        self.settings = MessageStoreConfig()

    @initialize(
        flush=st.sampled_from(("ASYNC_FLUSH", "SYNC_FLUSH")), pool=st.booleans(), ext=st.booleans(), crc=st.booleans()
    )
    def configure(self, flush: str, pool: bool, ext: bool, crc: bool) -> None:
        self.settings = replace(
            self.settings,
            **SMALL,
            flush_disk_type=flush,
            transient_store_pool_enable=pool,
            transient_store_pool_size=3,
            enabled_append_prop_crc=crc,
            enable_consume_queue_ext=ext,
        )
        self.open()

    # -- life

    def made(self, **options: Any) -> MessageStore:
        return MessageStore(self.path, self.settings, disk=self.disk, clock=self.clock, services=False, **options)

    def clock(self) -> int:
        self.now += 3
        return self.now

    @property
    def live(self) -> MessageStore:
        assert self.store is not None
        return self.store

    def open(self) -> None:
        self.store = self.made()
        self.found()

    def found(self) -> None:
        """Assert that the kept messages are a beginning of the put ones, with every flushed or promised one."""
        store, model = self.live, self.model
        end = store.positions().wrote
        lost = model.cut(end)
        assert not [put for put in lost if put.promised or put.end <= model.flushed], "what was flushed is lost"
        model.flushed = store.positions().flushed
        if store.recovery_plan.index_deleted:
            model.unindexed_end = max(model.unindexed_end, store.recovery_plan.dispatch_from)
        self.holds_all()

    @precondition(lambda self: self.store is None)
    @rule()
    def reopen(self) -> None:
        self.open()

    @precondition(lambda self: self.store is not None)
    @rule()
    def close(self) -> None:
        """Close cleanly: the next start drops nothing and dispatches nothing."""
        store = self.live
        end = store.positions().wrote
        store.close()
        self.ended()
        self.model.flushed = end
        with self.made() as repeated:
            assert repeated.recovery_plan.exit == "normal"
            positions = repeated.positions()
            assert (positions.dispatched, positions.flushed) == (positions.wrote, positions.wrote)
            assert positions.wrote == end or self.ends_with_blank(positions.wrote, end)
        self.open()
        self.holds_queues()

    def ends_with_blank(self, found_end: int, end: int) -> bool:
        """RocketMQ takes a BLANK that no unit follows for the end of the log."""
        last_put_end = self.model.puts[-1].end if self.model.puts else 0
        return end % self.settings.mapped_file_size_commit_log == 0 and last_put_end <= found_end < end

    @precondition(lambda self: self.store is not None)
    @rule()
    def stay_closed(self) -> None:
        self.live.close()
        self.model.flushed = self.live.positions().wrote
        self.ended()

    def ended(self) -> None:
        self.closed = [*self.closed[-3:], self.live]
        self.store = None

    @precondition(lambda self: self.store is not None)
    @rule()
    def crash(self) -> None:
        """Kill the process: committed bytes are in the page cache, and come back."""
        store = self.live
        store.abandon()
        self.model.flushed = max(self.model.flushed, store.positions().committed)
        self.after_crash()

    def after_crash(self) -> None:
        self.model.vague |= set(self.model.begins)
        self.ended()

    @precondition(lambda self: self.store is not None)
    @rule()
    def second_owner(self) -> None:
        with pytest.raises(StoreLocked):
            self.made()

    @precondition(lambda self: self.closed)
    @rule(pick=st.integers(0, 99))
    def use_after_close(self, pick: int) -> None:
        store = self.closed[pick % len(self.closed)]
        message = Message(TOPICS[0], b"late")
        puts = (store.put_message(message), store.put_messages([message])[0], store.put_batch([message]))
        assert {result.status for result in puts} == {PutMessageStatus.SERVICE_NOT_AVAILABLE}
        assert store.get_message("g", TOPICS[0], 0, 0) is None
        for work in (
            lambda: store.parts.commit_log.append_blank(),  # noqa: PLW0108  refused when it is called
            store.flush,
            lambda: store.services.log.commit_all(),  # noqa: PLW0108
            store.wait_dispatched,
            lambda: store.services.delete_expired_files(),  # noqa: PLW0108
            lambda: store.delete_topics(TOPICS),
            lambda: store.parts.commit_log.append_raw(raw_unit()),
            lambda: store.parts.commit_log.begin_at(0),
            lambda: store.services.step("reput"),
            lambda: store.services.pause("reput"),
            lambda: store.max_offset_in_queue(TOPICS[0], 0),
        ):
            with pytest.raises(StoreClosed):
                work()

    # -- putting

    def message(self, topic: str, queue_id: int, length: int, **options: Any) -> Message:
        number = next(self.numbers)
        body = b"%d " % number + random.Random(number).randbytes(length)
        return Message(topic, body, queue_id, tags="A", keys=f"k{number}", **options)

    def note(self, message: Message, result: Any, *, queued: bool = True) -> None:
        assert result.status is PutMessageStatus.PUT_OK, result.status
        sample = result.append
        assert sample is not None
        self.add(sample.physical_offset, sample.size, message, sample.queue_offset if queued else -1)

    def add(self, offset: int, size: int, message: Message, queue_offset: int, *, promised: bool = True) -> None:
        model, key = self.model, (message.topic, message.queue_id)
        if queue_offset >= 0:
            if message.topic in model.vague:
                model.next.setdefault(key, queue_offset)
            assert queue_offset == model.next.get(key, 0), f"{key}: {queue_offset}"
            model.next[key] = queue_offset + 1
        assert not model.puts or offset >= model.puts[-1].end, "units do not stand in the order of their answers"
        assert message.body is not None
        promised = promised and self.settings.flush_disk_type == "SYNC_FLUSH"
        model.puts.append(AcknowledgedPut(offset, size, *key, queue_offset, message.body, promised))

    @precondition(lambda self: self.store is not None)
    @rule(topic=topics, queue=queues, length=lengths, ruled=st.booleans())
    def put(self, topic: str, queue: int, length: int, ruled: bool) -> None:
        message = self.message(topic, queue, length)
        if ruled:
            message = message.changed(properties={**(message.properties or {}), "DELAY": "0"})
        self.note(message, self.live.put_message(message))

    @precondition(lambda self: self.store is not None)
    @rule(topic=topics, queue=queues)
    def put_prepared(self, topic: str, queue: int) -> None:
        message = self.message(topic, queue, 20, sys_flag=PREPARED)
        self.note(message, self.live.put_message(message), queued=False)

    @precondition(lambda self: self.store is not None)
    @rule(what=st.lists(st.tuples(topics, queues, lengths), min_size=1, max_size=12))
    def put_many(self, what: list[tuple[str, int, int]]) -> None:
        messages = [self.message(*item) for item in what]
        for message, result in zip(messages, self.live.put_messages(messages), strict=True):
            self.note(message, result)

    @precondition(lambda self: self.store is not None)
    @rule(topic=topics, queue=queues, sizes=st.lists(lengths, min_size=1, max_size=12))
    def append_columns(self, topic: str, queue: int, sizes: list[int]) -> None:
        messages = [self.message(topic, queue, size) for size in sizes]
        bodies = [message.body or b"" for message in messages]
        columns = MessageColumns(
            [topic],
            b"".join(bodies),
            np.array([len(body) for body in bodies], np.int32),
            queue_id=np.full(len(bodies), queue, np.int32),
        )
        for message, result in zip(messages, self.live.append_columns(columns), strict=True):
            self.note(message, result)

    @precondition(lambda self: self.store is not None)
    @rule(topic=st.sampled_from(TOPICS[:2]), queue=queues, count=st.integers(1, 4))
    def put_batch(self, topic: str, queue: int, count: int) -> None:
        messages = [self.message(topic, queue, 30) for _ in range(count)]
        result = self.live.put_batch(messages)
        assert result.ok
        sample = result.append
        assert sample is not None
        edges = [*sample.unit_offsets, sample.end_offset]
        for number, message in enumerate(messages):
            self.add(edges[number], edges[number + 1] - edges[number], message, sample.queue_offset + number)

    def raw(self, queue: int, ahead: int = 0) -> tuple[bytes, Message]:
        message = self.message(RAW, queue, 40)
        number = self.model.next.get((RAW, queue), 0) + ahead
        body = message.body or b""
        keys = f"KEYS\x01{message.properties['KEYS']}\x02".encode() if message.properties else b""
        return raw_unit(
            topic=RAW.encode(), body=body, queue_id=queue, queue_offset=number, stored=self.now, properties=keys
        ), message

    @precondition(lambda self: self.store is not None)
    @rule(queue=queues)
    def append_raw(self, queue: int) -> None:
        unit, message = self.raw(queue)
        offset = self.live.parts.commit_log.append_raw(unit)
        self.add(offset, len(unit), message, self.model.next.get((RAW, queue), 0), promised=False)

    @precondition(lambda self: self.store is not None)
    @rule(queue=queues, count=st.integers(1, 5))
    def append_units(self, queue: int, count: int) -> None:
        units = [self.raw(queue, number) for number in range(count)]
        sizes = np.array([len(unit) for unit, _ in units], np.int64)
        data = np.frombuffer(b"".join(unit for unit, _ in units), np.uint8)
        offset_before = self.live.positions().wrote
        end = append_units(self.live.parts.commit_log, data, sizes, np.full(count, self.now, np.int64))
        assert end == self.live.positions().wrote >= offset_before + int(sizes.sum())
        size = self.settings.mapped_file_size_commit_log
        offset = offset_before
        for (unit, message), size_of_unit in zip(units, sizes.tolist(), strict=True):
            if offset % size + size_of_unit + 8 > size:
                offset += size - offset % size
            self.add(offset, len(unit), message, self.model.next.get((RAW, queue), 0), promised=False)
            offset += size_of_unit

    @precondition(lambda self: self.store is not None)
    @rule()
    def append_blank(self) -> None:
        offset_before = self.live.positions().wrote
        if self.live.parts.commit_log.append_blank():
            assert self.live.positions().wrote % self.settings.mapped_file_size_commit_log == 0
        else:
            assert self.live.positions().wrote == offset_before

    @precondition(lambda self: self.store is not None and not self.model.puts)
    @rule()
    def begin_at(self) -> None:
        self.live.parts.commit_log.begin_at(self.live.positions().wrote)

    # -- services

    @precondition(lambda self: self.store is not None)
    @rule()
    def flush(self) -> None:
        assert self.live.flush() == self.live.positions().flushed == self.live.positions().wrote

    @precondition(lambda self: self.store is not None)
    @rule()
    def commit(self) -> None:
        assert self.live.services.log.commit_all() == self.live.positions().committed == self.live.positions().wrote

    @precondition(lambda self: self.store is not None)
    @rule(name=st.sampled_from(SERVICES))
    def step(self, name: str) -> None:
        if name in self.live.services.names:
            self.live.services.step(name)

    @precondition(lambda self: self.store is not None)
    @rule()
    def dispatch(self) -> None:
        self.live.services.log.commit_all()
        if self.settings.flush_disk_type == "SYNC_FLUSH":
            self.live.flush()
        assert self.live.wait_dispatched()
        assert self.live.positions().dispatched == self.live.positions().wrote
        self.holds_queues()

    @precondition(lambda self: self.store is not None)
    @rule()
    def clean(self) -> None:
        """Clean after dispatch and flush, because hours pass before a file is deleted: of units deleted earlier, a
        queue gets no entry and continues without a gap, as RocketMQ's does.
        """
        self.dispatch()
        store = self.live
        store.flush()
        store.parts.queues.flush()
        store.services.delete_expired_files()
        for _ in range(200):
            if store.services.step("clean") == self.settings.clean_resource_interval:
                break
        self.model.low = max(store.positions().min, 0)

    @precondition(lambda self: self.store is not None)
    @rule(topic=topics)
    def delete_topic(self, topic: str) -> None:
        store, model = self.live, self.model
        store.delete_topics([topic])
        model.begins[topic] = store.positions().wrote
        model.vague.discard(topic)
        for queue in (0, 1):
            model.next.pop((topic, queue), None)
            assert store.max_offset_in_queue(topic, queue) == 0

    # -- what holds

    @invariant()
    def positions_hold(self) -> None:
        if self.store is None:
            return
        positions, model = self.store.positions(), self.model
        assert model.low <= max(positions.min, 0) + 0
        assert model.flushed <= positions.flushed <= positions.committed <= positions.wrote
        assert positions.dispatched <= positions.confirm <= positions.committed
        if model.puts:
            assert positions.wrote >= model.puts[-1].end
        assert self.store.flags.why == ""
        model.flushed = positions.flushed

    @precondition(lambda self: self.store is not None)
    @rule()
    def holds_all(self) -> None:
        """Assert that every unit is at its place, with its bytes; none is lent before it is committed."""
        store, last_timestamp = self.live, 0
        positions = store.positions()
        self.model.low = max(positions.min, 0)
        for put in self.model.puts:
            if put.offset < self.model.low:
                continue
            unit = store.look_message_by_offset(put.offset)
            if unit is None:
                assert put.end > positions.committed, f"no unit at {put.offset}"
                continue
            assert put.end <= positions.committed
            assert (unit.body, unit.topic, unit.queue_id) == (put.body, put.topic, put.queue_id)
            assert unit.physical_offset == put.offset
            assert put.queue_offset < 0 or unit.queue_offset == put.queue_offset
            if put.topic != RAW:
                assert unit.store_timestamp >= last_timestamp
                last_timestamp = unit.store_timestamp

    @precondition(lambda self: self.store is not None)
    @rule()
    def holds_queues(self) -> None:
        """Assert that each dispatched unit has exactly one entry, at its queue offset, and that the index leads to
        its key.
        """
        store, model = self.live, self.model
        model.low = max(store.positions().min, 0)
        end = store.positions().dispatched
        for topic, queue_id in itertools.product((*TOPICS, RAW), (0, 1)):
            if topic in model.vague:
                continue
            due = model.queue(topic, queue_id, end)
            start = due[0].queue_offset if due else store.max_offset_in_queue(topic, queue_id)
            units = list(self.streamed(topic, queue_id, start))
            results = [(unit.physical_offset, unit.queue_offset, unit.body) for unit in units]
            assert results == [(put.offset, put.queue_offset, put.body) for put in due], f"queue {topic}/{queue_id}"
            for put in due[-2:]:
                if put.offset >= model.unindexed_end:
                    self.holds_key(put)

    def holds_key(self, put: AcknowledgedPut) -> None:
        unit = self.live.look_message_by_offset(put.offset)
        assert unit is not None
        for key in (unit.properties or {}).get("KEYS", "").split():
            with self.live.query_message(put.topic, key) as query_message:
                assert put.body in [item.body for item in query_message.units()]

    def streamed(self, topic: str, queue_id: int, start: int) -> Iterator[Any]:
        for block in self.live.stream(topic, queue_id, start):
            with block:
                for message in block.messages():
                    yield decode(message)

    def teardown(self) -> None:
        if self.store is not None:
            self.store.abandon()


class StoreMachine(CommonStoreMachine):
    """A machine in a real directory, with an inspector open beside the store all the time."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="store-machine-"))
        self.path = self.root / "store"
        self.looking: StoreSnapshot | None = None
        self.patch = mock.patch("engine.message_store.RealDisk", NeverFullDisk)
        self.patch.start()

    def clock(self) -> int:
        self.now = max(self.now + 3, 4_000_000_000_000)  # behind every time that a file was written
        return self.now

    @precondition(lambda self: (self.path / "commitlog").exists())
    @rule()
    def look(self) -> None:
        """Assert that the old inspector reports the same after a refresh as a new one."""
        if self.looking is None:
            self.looking = open_store(self.path)
        else:
            self.looking.refresh()
        with open_store(self.path) as fresh:
            assert seen_of(self.looking) == seen_of(fresh)

    def teardown(self) -> None:
        try:
            super().teardown()
            if self.looking is not None:
                self.looking.close()
        finally:
            self.patch.stop()
            shutil.rmtree(self.root)


def seen_of(look: StoreSnapshot) -> dict[str, Any]:
    """Return an inspector's view of a store."""
    return {
        "units": [repr(item) for item in look.units()],
        "queues": {
            (name, queue_id): (reader.min_offset, reader.max_offset, [repr(entry) for entry in reader.entries()])
            for name, readers in look.topics().items()
            for queue_id, reader in readers.items()
        },
        "index": [(reader.name, repr(reader.header)) for reader in look.index_files()],
        "checkpoint": look.checkpoint(),
        "abort": look.abort,
    }


class PowerMachine(CommonStoreMachine):
    """A machine on a simulated disk, whose power fails."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path("/store")
        self.disk = SimulatedDisk(clock=lambda: self.now)

    def open(self) -> None:
        try:
            self.store = self.made()
        except LogIsEmpty:  # nothing of the log was flushed, but entries were
            puts = [put for put in self.model.puts if self.model.low <= put.offset]
            assert puts
            assert all(put.end > self.model.flushed for put in puts)
            self.store = self.made(empty_log=True)
        self.found()

    @precondition(lambda self: self.store is not None)
    @rule(seed=st.integers(0, 1 << 20), keep=st.sampled_from((None, 0.0, 0.5, 1.0)))
    def lose_power(self, seed: int, keep: float | None) -> None:
        disk = self.disk
        assert disk is not None
        after_power_loss = disk.after_power_loss(random.Random(seed), keep)
        disk.cut_power()
        with suppress(PowerLoss):
            self.live.abandon()
        self.closed, self.disk = [], after_power_loss
        self.model.vague |= set(self.model.begins)
        self.store = None
