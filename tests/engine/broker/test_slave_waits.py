"""Sends that wait for slaves: when they wait and how they are answered, while the loop continues."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from brokers import BrokerClient, run_scenario

from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.broker.slave_waits import SlaveWaits
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.remoting.connection import bind

CONFIG = MessageStoreConfig(broker_role="SYNC_MASTER", in_sync_replicas=2, slave_timeout=20_000)


class ScriptedSlaves:
    """Waits over slaves whose offsets the test sets."""

    def __init__(self, config: MessageStoreConfig, release: str = "5.3") -> None:
        self.slaves: list[int] = []
        self.wrote = 0
        self.statuses: list[tuple[int, str]] = []
        self.hurried = 0
        self.waits = SlaveWaits(config, release, lambda: self.wrote)  # type: ignore[arg-type]
        self.waits.acknowledged = lambda: self.slaves
        self.waits.hurry = self._hurry

    def _hurry(self) -> None:
        self.hurried += 1

    def wait(self, *ends: int) -> None:
        for end in ends:
            self.wrote = max(self.wrote, end)
            self.waits.wait(end, lambda status, end=end: self.statuses.append((end, status.value)))

    def say(self, *slaves: int) -> list[tuple[int, str]]:
        self.slaves = list(slaves)
        self.waits.answer_covered()
        reported, self.statuses = self.statuses, []
        return reported


def test_only_a_sync_master_waits_and_since_5_only_for_more_than_itself() -> None:
    def waits_for_slaves(release: str, **fields: object) -> bool:
        return SlaveWaits(replace(CONFIG, **fields), release, lambda: 0).are_asked_for  # type: ignore[arg-type]

    assert waits_for_slaves("5.3")
    assert not waits_for_slaves("5.3", in_sync_replicas=1)
    assert waits_for_slaves("4.9", in_sync_replicas=1)
    assert not waits_for_slaves("5.3", broker_role="ASYNC_MASTER")
    assert not waits_for_slaves("4.9", broker_role="SLAVE")


def test_each_send_is_answered_as_soon_as_enough_slaves_have_it() -> None:
    async def scenario() -> None:
        slaves, two = ScriptedSlaves(CONFIG), ScriptedSlaves(replace(CONFIG, in_sync_replicas=3))
        for watched in (slaves, two):
            watched.wait(100, 200, 300)
        assert slaves.hurried == 3
        assert slaves.say() == slaves.say(99) == []
        assert slaves.say(200, 50) == [(100, "PUT_OK"), (200, "PUT_OK")]
        assert two.say(300) == []
        assert two.say(300, 150) == [(100, "PUT_OK")]
        slaves.wait(200)
        assert slaves.statuses == [(200, "PUT_OK")]
        for watched in (slaves, two):
            watched.waits.end()
        assert two.statuses == [(200, "FLUSH_SLAVE_TIMEOUT"), (300, "FLUSH_SLAVE_TIMEOUT")]

    run_scenario(scenario)


def test_a_send_that_waits_too_long_is_answered_and_the_others_continue() -> None:
    async def scenario() -> None:
        watched = ScriptedSlaves(replace(CONFIG, slave_timeout=50))
        watched.wait(100)
        while not watched.statuses:
            await asyncio.sleep(0.01)
        assert watched.statuses == [(100, "FLUSH_SLAVE_TIMEOUT")]
        watched.statuses.clear()
        watched.slaves = [100]
        watched.wait(90, 200)
        assert watched.say(200) == [(90, "PUT_OK"), (200, "PUT_OK")]
        watched.waits.end()

    run_scenario(scenario)


def test_before_5_no_send_waits_without_a_slave_or_for_one_far_behind() -> None:
    async def scenario() -> None:
        watched = ScriptedSlaves(replace(CONFIG, ha_slave_fallbehind_max=1000), "4.9")
        watched.wait(100)
        assert watched.statuses == [(100, "SLAVE_NOT_AVAILABLE")]
        watched.statuses.clear()
        watched.slaves = [0]
        watched.wait(200)
        assert watched.statuses == []
        assert watched.say(200) == [(200, "PUT_OK")]
        watched.wait(1200)
        assert watched.statuses == [(1200, "SLAVE_NOT_AVAILABLE")]
        watched.statuses.clear()
        watched.slaves = [0]  # another slave connects: the first slave's offset is not forgotten
        watched.wait(150)
        watched.wrote = 1199
        watched.waits.end()

    run_scenario(scenario)


def test_a_waiting_send_does_not_block_other_requests(tmp_path: Path) -> None:
    async def scenario() -> None:
        with bind("127.0.0.1", 0) as listener, MessageStore(tmp_path, CONFIG) as store:
            async with ListeningBroker(store, BrokerConfig(), listening_socket=listener) as server:
                client = BrokerClient(server)
                await client.open()
                waiting_send = asyncio.ensure_future(client.send("Orders", b"x"))
                assert (await client.send("Orders", b"y", properties="WAIT\x01false\x02")).code == 0
                assert (await client.ask(30, topic="Orders", queueId=0)).code == 0
                assert not waiting_send.done()
                server.broker.slaves.acknowledged = lambda: [store.positions().wrote]
                server.broker.slaves.answer_covered()
                assert (await waiting_send).code == 0
                client.close()

    run_scenario(scenario)
