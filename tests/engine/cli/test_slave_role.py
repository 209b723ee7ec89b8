"""A broker in the slave role: its master, its tables, its answers (those of real slaves of 5.3.3 and 4.9.7), and its
change to a master at the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal

import pytest
from brokers import BrokerClient, run_scenario, units
from ha_masters import log_of

from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.cli import slave_role
from engine.cli.slave_role import follow_until, with_role
from engine.codec.timer import TimerCheck
from engine.config import MessageStoreConfig
from engine.errors import UsageError
from engine.message_store import MessageStore
from engine.namesrv.server import ListeningNameServer
from engine.remoting.connection import bind, port_of
from engine.replication import follower
from engine.replication.follower import NotAPrefix
from engine.replication.master import MasterTimers
from engine.replication.source import HaServer

Release = Literal["4.9", "5.3"]
HOST = "127.0.0.1"
STORE = MessageStoreConfig(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=6000)
SLAVE = MessageStoreConfig(
    broker_role="SLAVE", mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=6000
)
NO_DECLARING = "Can't modify topic or subscription group from slave broker, please execute it from master broker."
BUSY = "[REJECTREQUEST]system busy, start flow control for a while"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slave_role, "_POLL_INTERVAL_S", 0.02)
    monkeypatch.setattr(slave_role, "TABLE_DELAYS_S", {5: (0.1, 0.1), 4: (0.1, 0.1)})
    monkeypatch.setattr(slave_role, "TIMER_INTERVAL_S", 0.05)
    monkeypatch.setattr(follower, "_MAX_PAUSE_S", 0.05)


@contextlib.asynccontextmanager
async def broker(
    path: Path, config: MessageStoreConfig, namesrv: str, release: Release = "5.3", **options: object
) -> AsyncIterator[BrokerClient]:
    """Start a broker with an HA port, and yield a client of it."""
    broker_config = BrokerConfig(broker_id=int(config.broker_role == "SLAVE"), registration_ms=50, **options)  # type: ignore[arg-type]
    with bind(HOST, 0) as position, bind(HOST, 0) as ha, MessageStore(path, config, release=release) as store:
        async with (
            HaServer(store, ha),
            ListeningBroker(
                store, broker_config, name_servers=[namesrv], listening_socket=position, ha=f"{HOST}:{port_of(ha)}"
            ) as server,
        ):
            client = BrokerClient(server)
            await client.open()
            yield client
            client.close()


@contextlib.asynccontextmanager
async def slave(
    path: Path,
    namesrv: str,
    release: Release = "5.3",
    on_message: Callable[[str], None] = lambda _: None,
    **options: object,
) -> AsyncIterator[BrokerClient]:
    """Start a broker that follows the master named by the name server. ``on_message`` receives its messages."""
    ended = asyncio.Event()
    async with broker(path, SLAVE, namesrv, release, **options) as client:
        following = asyncio.ensure_future(follow_until(ended, client.server.broker, on_message))
        yield client
        ended.set()
        await following


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


def test_role_and_broker_id_must_match() -> None:
    config = BrokerConfig(broker_id=3)
    assert with_role(config, "SLAVE", "broker.conf") is config
    assert with_role(config, "SYNC_MASTER", "broker.conf").broker_id == 0
    with pytest.raises(UsageError, match="expected a brokerId above 0, found 0"):
        with_role(BrokerConfig(), "SLAVE", "broker.conf")


def test_a_slave_finds_its_master_and_copies_log_and_tables(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            ListeningNameServer(port=0) as names,
            slave(tmp_path / "slave", names.address) as copy,
            broker(tmp_path / "master", STORE, names.address) as master,
        ):
            store, our_store = master.server.broker.store, copy.server.broker.store
            for number in range(100):
                assert (await master.send("Orders", b"%d" % number * 500, number % 4)).code == 0
            await master.pull("Orders", 0)
            where = {"consumerGroup": "readers", "topic": "Orders", "queueId": 1}
            await master.ask(15, **where, commitOffset=7)
            await until(lambda: our_store.positions().wrote == store.positions().wrote)
            assert len(log_of(our_store)) > 10_000
            assert log_of(store).endswith(log_of(our_store))  # the copy begins with its master's last file
            await until(lambda: our_store.tables.consumer_offset("readers", "Orders", 1) == 7)
            assert our_store.tables.topics()["Orders"] == store.tables.topics()["Orders"]
            assert "readers" in our_store.tables.groups()
            await master.ask(215, topic="Orders")
            await until(lambda: "Orders" not in our_store.tables.topics())

    run_scenario(scenario)


def test_a_slave_serves_without_its_master_and_can_be_started_as_master(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ListeningNameServer(port=0) as names:
            output: list[str] = []
            async with slave(tmp_path / "slave", names.address, on_message=output.append, slave_read=True) as copy:
                async with broker(tmp_path / "master", STORE, names.address) as master:
                    for number in range(8):
                        await master.send("Orders", b"%d" % number)
                    store = copy.server.broker.store
                    await until(lambda: store.positions().wrote == master.server.broker.store.positions().wrote)
                    await until(lambda: "Orders" in store.tables.topics())
                store.wait_dispatched()
                answer = await copy.pull("Orders", 0)
                assert (answer.code, answer.fields["nextBeginOffset"]) == (0, "8")
                await until(lambda: any("gives no topics" in line for line in output))
                assert "Orders" in store.tables.topics()
            async with broker(tmp_path / "slave", STORE, names.address) as now:
                assert (await now.send("Orders", b"more")).fields["queueOffset"] == "8"

    run_scenario(scenario)


def test_a_slave_continues_its_masters_timers(tmp_path: Path) -> None:
    """A slave did not know its master's timers. When it was started as a master, it delivered every timer message of
    the log again.
    """

    async def scenario() -> None:
        def bodies(client: BrokerClient) -> list[bytes]:
            client.server.broker.store.wait_dispatched()
            return [unit.body for unit in units(client, "Orders")]

        async with ListeningNameServer(port=0) as names:
            async with slave(tmp_path / "slave", names.address) as copy:
                async with broker(tmp_path / "master", STORE, names.address) as master:
                    store, our_broker = master.server.broker.store, copy.server.broker
                    now = master.server.broker.now()
                    for body, due in ((b"early", now + 1000), (b"late", now + 600_000)):
                        text = f"TIMER_DELIVER_MS\x01{due}\x02UNIQ_KEY\x01{body.decode()}\x02"
                        assert (await master.send("Orders", body, 0, text)).code == 0
                    await until(lambda: bodies(master) == [b"early"])
                    assert our_broker.timers is not None
                    timers = our_broker.timers
                    await until(lambda: our_broker.store.positions().wrote == store.positions().wrote)
                    our_broker.store.wait_dispatched()
                    await until(lambda: timers.queue_offset == 2 and timers.read_time > now + 1000)
                    await until(lambda: timers.counts() == {"Orders": 1})
                    assert timers.left_to_put() == 1
                assert bodies(copy) == [b"early"]
            async with broker(tmp_path / "slave", STORE, names.address) as heir:
                heirs_timers = heir.server.broker.timers
                assert heirs_timers is not None
                heir.server.broker.now = lambda: now + 300_000
                await asyncio.sleep(0.5)
                assert (bodies(heir), heirs_timers.counts()) == ([b"early"], {"Orders": 1})
                heir.server.broker.now = lambda: now + 602_000
                await until(lambda: len(bodies(heir)) > 1)
                await asyncio.sleep(0.3)
                assert bodies(heir) == [b"early", b"late"]

    run_scenario(scenario)


def test_timer_positions_apply_only_after_the_log_has_arrived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The master's positions may refer to a part of the log that the slave has not received yet."""
    check = TimerCheck(1_700_000_000_000, 0, 3, 3, 0, 0, 0)
    log_end = 1 << 40

    async def ask(_host: str, _port: int) -> MasterTimers:
        return MasterTimers(check, log_end)

    async def scenario() -> None:
        nonlocal log_end
        monkeypatch.setattr(slave_role, "ask_timers", ask)
        async with ListeningNameServer(port=0) as names, slave(tmp_path, names.address) as copy:
            timers = copy.server.broker.timers
            assert timers is not None
            offset_before = timers.check_point().master_queue_offset
            copy.server.broker.master_address = "127.0.0.1:1"
            await asyncio.sleep(0.2)
            assert timers.check_point().master_queue_offset == offset_before
            copy.server.broker.master_address, log_end = "127.0.0.1:2", 0
            await until(lambda: timers.check_point().master_queue_offset == 3)

    run_scenario(scenario)


def test_a_slave_with_another_log_ends_with_a_reason(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ListeningNameServer(port=0) as names:
            async with broker(tmp_path / "slave", STORE, names.address) as other_broker:
                await other_broker.send("Orders", b"of another log")
            async with (
                broker(tmp_path / "master", STORE, names.address) as master,
                broker(tmp_path / "slave", SLAVE, names.address) as copy,
            ):
                await master.send("Orders", b"x" * 1000)
                with pytest.raises(NotAPrefix):
                    await follow_until(asyncio.Event(), copy.server.broker, lambda _: None)

    run_scenario(scenario)


@pytest.mark.parametrize("release", ["5.3", "4.9"])
def test_a_slave_answers_as_real_slaves_did(tmp_path: Path, release: Release) -> None:
    """The answers are those of slaves of 5.3.3 and 4.9.7 with ``slaveReadEnable=true``, for four messages that the
    master has.
    """
    since_5 = release == "5.3"

    async def scenario() -> None:
        async with (
            ListeningNameServer(port=0) as names,
            slave(tmp_path / "slave", names.address, release, slave_read=True) as copy,
            broker(tmp_path / "master", STORE, names.address, release) as master,
        ):
            store = copy.server.broker.store
            for number in range(4):
                await master.send("Orders", b"%d" % number)
            await until(lambda: store.positions().wrote == master.server.broker.store.positions().wrote)
            await until(lambda: "Orders" in store.tables.topics())
            store.wait_dispatched()
            for topic in ("Orders", "New"):
                answer = await copy.send(topic, b"x")
                if since_5:
                    assert (answer.code, answer.remark, answer.fields) == (2, BUSY, {})
                else:
                    assert answer.code == 14
                    assert "messages are put to the slave" in str(answer.remark)
            assert (await copy.batch("Orders", b"x")).code == (2 if since_5 else 14)
            pulled = await copy.pull("Orders", 0)
            assert (pulled.code, pulled.fields["suggestWhichBrokerId"]) == (0, "0")
            beyond = await copy.pull("Orders", 99)
            assert (beyond.code, beyond.remark) == (20, "OFFSET_OVERFLOW_BADLY")
            assert beyond.fields["nextBeginOffset"] == "99"
            await copy.pull("Orders", 0, sysFlag=5, commitOffset=2)
            offset = await copy.ask(14, consumerGroup="readers", topic="Orders", queueId=0)
            assert offset.fields["offset"] == ("2" if since_5 else "0")
            returned = await copy.ask(36, offset=0, group="readers", delayLevel=0)
            assert (returned.code, returned.remark) == ((2, BUSY) if since_5 else (1, "SERVICE_NOT_AVAILABLE"))
            end = await copy.ask(37, producerGroup="p", tranStateTableOffset=0, commitLogOffset=0, commitOrRollback=8)
            assert (end.code, end.remark) == (11, "not set any response code")
            response = await copy.ask(
                17,
                topic="Made",
                defaultTopic="TBW102",
                readQueueNums=1,
                writeQueueNums=1,
                perm=6,
                topicFilterType="SINGLE_TAG",
                order=False,
            )
            removed_response = await copy.ask(215, topic="Made")
            for answered, remark in ((response, "not set any response code"), (removed_response, None)):
                assert (answered.code, answered.remark) == ((0, remark) if since_5 else (1, NO_DECLARING))
            if since_5:
                reset = await copy.ask(222, topic="Orders", group="readers", timestamp=0, isForce=True)
                assert (reset.code, reset.remark) == (1, "Can not reset offset in slave broker")

    run_scenario(scenario)


@pytest.mark.parametrize("release", ["5.3", "4.9"])
def test_without_slave_read_enable_only_slaves_of_5_refuse_pulls(tmp_path: Path, release: Release) -> None:
    async def scenario() -> None:
        async with ListeningNameServer(port=0) as names, broker(tmp_path, SLAVE, names.address, release) as copy:
            answer = await copy.pull("TBW102", 0)
            assert (answer.code, answer.remark) == ((2, BUSY) if release == "5.3" else (19, "NO_MESSAGE_IN_QUEUE"))

    run_scenario(scenario)


def test_a_master_suggests_its_slave_to_a_client_that_reads_far_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with (
            ListeningNameServer(port=0) as names,
            broker(tmp_path, STORE, names.address, slave_read=True) as master,
        ):
            store = master.server.broker.store
            await master.send("Orders", b"x")
            await until(lambda: store.max_offset_in_queue("Orders", 0) == 1)
            assert (await master.pull("Orders", 0)).fields["suggestWhichBrokerId"] == "0"
            get = store.get_message

            def far_behind(*args: object) -> object:
                results = get(*args)  # type: ignore[arg-type]
                assert results is not None
                results.suggest_pulling_from_slave = True
                return results

            monkeypatch.setattr(store, "get_message", far_behind)
            assert (await master.pull("Orders", 0)).fields["suggestWhichBrokerId"] == "1"

    run_scenario(scenario)
