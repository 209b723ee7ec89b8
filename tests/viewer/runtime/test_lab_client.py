"""Requests to the lab's process, sent like by the window: real processes, few of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.codec.encode import Message
from engine.codec.message import Unit
from engine.codec.unit_scan import decode_item
from engine.config import MessageStoreConfig
from engine.errors import StoreLocked, UsageError
from engine.lab.lab_store import LabStore, NotALab
from engine.lab.load_settings import LoadSettings
from engine.lab.presets import PRESETS
from engine.message_store import MessageStore
from viewer.runtime.lab_client import LabClient, LabDied

TINY = PRESETS[3].config


def walk(work: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine on a new loop with a time limit."""
    asyncio.run(asyncio.wait_for(work(), 120))


def test_a_message_is_put_and_its_bytes_come_back(tmp_path: Path) -> None:
    async def work() -> None:
        client = LabClient()
        opened = await client.start(tmp_path / "lab", PRESETS[2].config)
        assert (opened.is_lab, opened.root) == (True, tmp_path / "lab/store")
        assert client.alive
        await client.pause("commit")
        answer = await client.put(Message("Orders", "订单".encode(), 3, tags="paid", keys="k1"))
        assert (answer.status, answer.offset, answer.queue_offset) == ("PUT_OK", 0, 0)
        unit = decode_item(answer.unit, 0, len(answer.unit), answer.offset)
        assert isinstance(unit, Unit)
        assert (unit.body, unit.topic, unit.queue_id, len(answer.unit)) == ("订单".encode(), "Orders", 3, answer.size)
        sample = await client.sample()
        assert (sample.positions.wrote, sample.positions.committed) == (answer.size, 0)
        assert sample.services["commit"].paused
        assert sample.services["commit"].waiting_bytes == answer.size
        await asyncio.sleep(0.25)  # commitCommitLogThoroughInterval: a round commits so little only now and then
        step = await client.step("commit")
        assert (step.positions_before.committed, step.positions_after.committed) == (0, answer.size)
        assert await client.flush() == answer.size
        assert (await client.sample()).flushes[-1].to_offset == answer.size
        await client.resume("commit")
        with pytest.raises(UsageError, match="expected a service of"):
            await client.step("coffee")
        bad = await client.put(Message("x" * 300, b""))
        assert (bad.status, bad.unit) == ("MESSAGE_ILLEGAL", b"")
        assert (await client.sample()).statuses == {"PUT_OK": 1, "MESSAGE_ILLEGAL": 1}
        await client.close()
        await client.close()
        assert not client.alive
        with pytest.raises(LabDied, match="closed"):
            await client.sample()

    walk(work)
    with MessageStore(tmp_path / "lab/store", PRESETS[2].config) as store:
        assert store.recovery_plan.exit == "normal"


def test_polls_are_answered_under_full_load_and_the_power_can_be_cut(tmp_path: Path) -> None:
    async def work() -> None:
        client = LabClient()
        await client.start(tmp_path / "lab", replace(TINY, mapped_file_size_commit_log=1 << 24))
        await client.load(LoadSettings(producers=4, keys=100, topics=3))
        for _ in range(10):
            await client.sample()
        while not (await client.sample()).rates.messages:
            await asyncio.sleep(0.05)
        await client.load(LoadSettings(producers=1, rate=50))
        counts = await client.counts()
        assert counts.running
        report = await client.cut_power(11, keep=0.5)
        assert report.state_after is None
        assert not client.alive
        with pytest.raises(LabDied):
            await client.put(Message("T", b""))
        report = await client.recover()
        assert report.state_after is not None
        assert report.as_planned
        assert report.state_after.units == report.state_on_disk.units
        assert report.loss.messages == report.state_before.units - report.state_after.units
        assert client.alive
        assert (await client.put(Message("T", b"goes on"))).status == "PUT_OK"
        with pytest.raises(UsageError, match="the power was not cut"):
            await client.recover()
        await client.close()

    walk(work)


def test_a_dead_process_is_an_error_for_waiting_and_later_requests(tmp_path: Path) -> None:
    async def work() -> None:
        calls: list[LabDied] = []
        client = LabClient(calls.append)
        await client.start(tmp_path / "lab", replace(PRESETS[1].config, mapped_file_size_commit_log=1 << 20))
        await client.pause("flush")
        waiting = asyncio.ensure_future(client.put(Message("T", b"waits for a flush")))
        while not (await client.sample()).positions.wrote:
            await asyncio.sleep(0.02)
        client.kill()
        with pytest.raises(LabDied, match="has ended"):
            await waiting
        with pytest.raises(LabDied, match="has ended"):
            await client.sample()
        assert (len(calls), client.alive) == (1, False)
        await client.close()
        second_client = LabClient()
        opened = await second_client.start(tmp_path / "lab")
        assert (opened.plan.exit, opened.plan.units_kept) == ("abnormal", 1)
        await second_client.close()

    walk(work)


def test_closing_under_load_is_clean_and_timeouts_are_counted(tmp_path: Path) -> None:
    async def work() -> None:
        client = LabClient()
        config = replace(TINY, flush_disk_type="SYNC_FLUSH", sync_flush_timeout=50)
        await client.start(tmp_path / "lab", config)
        await client.load(LoadSettings(producers=3))
        await client.pause("flush")
        while not (await client.sample()).statuses.get("FLUSH_DISK_TIMEOUT"):
            await asyncio.sleep(0.02)
        await client.resume("flush")
        await client.close()

    walk(work)
    repeated = LabStore.open(tmp_path / "lab")
    assert repeated.store.recovery_plan.exit == "normal"
    repeated.close()


def test_obstacles_are_reported(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")

    async def work() -> None:
        client = LabClient()
        with pytest.raises(UsageError, match="new or empty folder, found something there"):
            await client.start(tmp_path / "mine", TINY)
        assert not client.alive

    walk(work)
    assert (tmp_path / "mine/notes.txt").read_text() == "mine"


def test_a_users_own_store_keeps_its_sizes_and_cannot_lose_power(tmp_path: Path) -> None:
    with MessageStore(tmp_path / "store", TINY) as store:
        store.put_message(Message("T", b"theirs", keys="a"))
        store.wait_dispatched()

    async def work() -> None:
        client = LabClient()
        opened = await client.open_store(tmp_path / "store", MessageStoreConfig())
        assert not opened.is_lab
        assert opened.config.mapped_file_size_commit_log == TINY.mapped_file_size_commit_log
        assert opened.config.max_index_num == TINY.max_index_num
        assert opened.config.file_reserved_time > 100_000
        with pytest.raises(UsageError, match="only a store that the lab made can lose its power"):
            await client.cut_power(1)
        assert client.alive
        second_client = LabClient()
        with pytest.raises(StoreLocked, match=f"process {opened.pid} has the store open"):
            await second_client.open_store(tmp_path / "store")
        assert (await client.put(Message("T", b"ours"))).queue_offset == 1
        await client.close()

    walk(work)
    assert {path.name for path in tmp_path.iterdir()} == {"store"}
    with pytest.raises(NotALab):
        LabStore.open(tmp_path)


def test_two_stores_under_the_same_load_lose_messages_by_their_settings(tmp_path: Path) -> None:
    async def work() -> None:
        sync, pool = LabClient(), LabClient()
        await asyncio.gather(
            sync.start(tmp_path / "sync", replace(TINY, flush_disk_type="SYNC_FLUSH")),
            pool.start(tmp_path / "pool", replace(TINY, transient_store_pool_enable=True)),
        )
        load = LoadSettings(producers=2, keys=20, body_size=300, seed=3)
        await asyncio.gather(sync.load(load), pool.load(load))
        await pool.pause("commit")
        while min([(await client.sample()).statuses.get("PUT_OK", 0) for client in (sync, pool)]) < 200:
            await asyncio.sleep(0.02)
        losses = [(await client.cut_power(4, keep=0.0)).loss for client in (sync, pool)]
        assert (losses[0].messages, losses[0].allowed) == (0, True)
        assert losses[1].messages > 0
        assert (losses[1].below_flushed, losses[1].allowed) == (0, True)
        await asyncio.gather(sync.close(), pool.close())

    walk(work)
