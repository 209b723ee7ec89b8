"""Checkpoints on their way into the revive topic: what a group has read never passes one that is not stored."""

from __future__ import annotations

import asyncio
from pathlib import Path

from brokers import Asking, asking, run, units
from pops import GROUP, pop, popped, sent

from engine.broker.revive_log import commit, put_unstored, reached
from engine.broker.serving import serving_store
from engine.config import MessageStoreConfig
from engine.store.put.message import PutMessageResult, PutMessageStatus


def test_offsets_are_committed_from_the_front(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            broker = client.server.broker
            first = reached(broker, GROUP, "Orders", 0, 3)
            reached(broker, GROUP, "Orders", 0, 5, stored=True)
            assert broker.store.tables.consumer_offset(GROUP, "Orders", 0) == -1
            assert broker.popped.latest(GROUP, "Orders", 0) == 5
            first.stored = True
            commit(broker, GROUP, "Orders", 0)
            assert broker.store.tables.consumer_offset(GROUP, "Orders", 0) == 5
            assert broker.popped.steps == {}

    run(told)


def test_a_checkpoint_that_cannot_be_stored_is_tried_again(tmp_path: Path) -> None:
    """Its messages are handed out all the same, and pops go on behind them; only the offset stays in front."""

    async def told() -> None:
        async with asking(tmp_path) as client:
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

    run(told)


def test_under_sync_flush_who_pops_waits_for_the_disk(tmp_path: Path) -> None:
    """Not the loop: the checkpoint goes to the thread that waits for it, and the next pop meets its offset."""

    async def told() -> None:
        flushing = MessageStoreConfig(flush_disk_type="SYNC_FLUSH")
        async with serving_store(tmp_path, store_config=flushing, port=0) as server:
            client = Asking(server)
            await client.open()
            await sent(client, b"one", b"two")
            answers = await asyncio.gather(pop(client, maxMsgNums=1), pop(client, maxMsgNums=1))
            assert sorted(unit.body for one in answers for unit in popped(one)) == [b"one", b"two"]
            assert server.broker.store.tables.consumer_offset(GROUP, "Orders", 0) == 2
            assert server.broker.store.positions().unflushed == 0
            client.close()

    run(told)
