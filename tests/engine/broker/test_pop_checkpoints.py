"""Offsets of pops are committed once their checkpoints are stored."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path

from brokers import BrokerClient, asking_broker, run_scenario, units
from pops import GROUP, pop, popped, sent

from engine.broker.pop_checkpoints import (
    PendingOffset,
    PopState,
    add_pending_offset,
    commit_stored_offsets,
    put_unstored,
)
from engine.broker.serving import serving_store
from engine.config import MessageStoreConfig
from engine.store.put_message import PutMessageResult, PutMessageStatus


def test_the_next_pop_starts_after_the_last() -> None:
    state = PopState()
    assert state.latest("popping", "Orders", 0) == -1
    state.pending_offsets["popping", "Orders", 0] = deque([PendingOffset(4), PendingOffset(9)])
    assert state.latest("popping", "Orders", 0) == 9
    state.clear("popping", "Orders", 0)
    state.clear("popping", "Orders", 0)
    assert state.latest("popping", "Orders", 0) == -1


def test_offsets_are_committed_from_the_front(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            broker = client.server.broker
            pending = add_pending_offset(broker, GROUP, "Orders", 0, 3)
            add_pending_offset(broker, GROUP, "Orders", 0, 5, stored=True)
            assert broker.store.tables.consumer_offset(GROUP, "Orders", 0) == -1
            assert broker.popped.latest(GROUP, "Orders", 0) == 5
            pending.stored = True
            commit_stored_offsets(broker, GROUP, "Orders", 0)
            assert broker.store.tables.consumer_offset(GROUP, "Orders", 0) == 5
            assert broker.popped.pending_offsets == {}

    run_scenario(scenario)


def test_a_checkpoint_that_cannot_be_stored_is_retried(tmp_path: Path) -> None:
    """Its messages are handed out, and the next pop starts after them. Only the committed offset waits."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two")
            broker = client.server.broker
            put, refused = broker.store.put_messages, PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
            broker.store.put_messages = lambda messages: [refused] * len(messages)  # type: ignore[assignment]
            answer = await pop(client, maxMsgNums=1)
            broker.store.put_messages = put  # type: ignore[method-assign]
            assert [unit.body for unit in popped(answer)] == [b"one"]
            assert broker.store.tables.consumer_offset(GROUP, "Orders", 0) == 0
            assert [unit.body for unit in popped(await pop(client, maxMsgNums=1))] == [b"two"]
            assert broker.store.tables.consumer_offset(GROUP, "Orders", 0) == 0
            put_unstored(broker)
            assert broker.store.tables.consumer_offset(GROUP, "Orders", 0) == 2
            assert [unit.tags for unit in units(client, "rmq_sys_wheel_timer")] == ["ck", "ck"]

    run_scenario(scenario)


def test_a_pop_under_sync_flush_waits_for_the_disk(tmp_path: Path) -> None:
    """The event loop does not wait: a thread waits for the checkpoint, and the next pop already uses the new offset."""

    async def scenario() -> None:
        flushing = MessageStoreConfig(flush_disk_type="SYNC_FLUSH")
        async with serving_store(tmp_path, store_config=flushing, port=0) as server:
            client = BrokerClient(server)
            await client.open()
            await sent(client, b"one", b"two")
            answers = await asyncio.gather(pop(client, maxMsgNums=1), pop(client, maxMsgNums=1))
            assert sorted(unit.body for answer in answers for unit in popped(answer)) == [b"one", b"two"]
            assert server.broker.store.tables.consumer_offset(GROUP, "Orders", 0) == 2
            assert server.broker.store.positions().unflushed == 0
            client.close()

    run_scenario(scenario)
