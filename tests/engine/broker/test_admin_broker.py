"""Requests with which an administrator reads a broker's state and changes its configuration."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from brokers import asking_broker, run_scenario

from engine.broker.admin_broker import take_request_modes
from engine.codec.encode import Message
from engine.codec.json_dialect import parse
from engine.codec.timer import decode_check
from engine.config import MessageStoreConfig
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.message_store import MessageStore
from engine.releases import Release


def test_a_broker_reports_its_runtime_information(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            lines = bytes((await client.ask(26)).body).decode().splitlines()
            assert "brokerName=broker-a" in lines
            table = json.loads(bytes((await client.ask(28)).body))["table"]
            assert all(isinstance(value, str) for value in table.values())

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("4.9", {"brokerVersion": "409", "brokerVersionDesc": "V4_9_8"}),
        ("5.3", {"brokerVersion": "479", "brokerVersionDesc": "V5_3_3"}),
        ("5.5", {"brokerVersionDesc": "V5_5_1"}),
    ],
)
def test_a_broker_reports_the_release_of_its_store(tmp_path: Path, release: Release, version: dict[str, str]) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, release=release) as client:
            table = json.loads(bytes((await client.ask(28)).body))["table"]
            assert {key: table[key] for key in table if key.startswith("brokerVersion")} == version

    run_scenario(scenario)


def test_figures_follow_the_store(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            await client.send("Orders", b"late", properties="DELAY\x0118\x02")
            store = client.server.broker.store
            store.wait_dispatched()
            table = json.loads(bytes((await client.ask(28)).body))["table"]
            assert table["commitLogMaxOffset"] == str(store.positions().wrote)
            assert (table["putMessageTimesTotal"], table["dispatchBehindBytes"]) == ("2", "0")
            assert table["scheduleMessageOffset_18"] == "0,1"

    run_scenario(scenario)


def test_held_pulls_are_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            assert await asyncio.to_thread(client.server.broker.store.wait_dispatched)
            pull = {
                "consumerGroup": "readers",
                "topic": "Orders",
                "queueId": 0,
                "queueOffset": 1,
                "maxMsgNums": 32,
                "sysFlag": 6,
                "commitOffset": 0,
                "suspendTimeoutMillis": 15_000,
                "subscription": "*",
                "subVersion": 0,
            }
            waiting = asyncio.ensure_future(client.ask(11, **pull))
            broker = client.server.broker
            while not len(broker.held):
                await asyncio.sleep(0.01)
            table = json.loads(bytes((await client.ask(28, heldPulls="true")).body))["table"]
            assert json.loads(table["heldPulls"]) == [["Orders", 0, "readers", 1]]
            assert "heldPulls" not in json.loads(bytes((await client.ask(28)).body))["table"], "as RocketMQ's answers"
            await client.send("Orders", b"two")
            assert (await waiting).code == 0

    run_scenario(scenario)


def test_changeable_settings_are_changed_and_others_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            broker = client.server.broker
            assert (await client.ask(25, b"autoCreateTopicEnable=false\nflushDiskType=ASYNC_FLUSH\n")).code == 0
            assert not broker.config.auto_create_topic
            assert (await client.send("New", b"one")).code == 17
            for line in (b"brokerName=other", b"flushDiskType=SYNC_FLUSH"):
                answer = await client.ask(25, line)
                assert answer.code == 1
                assert answer.remark == f"cannot be changed while the broker runs: {line.decode().partition('=')[0]}"
            assert (await client.ask(25, b"autoCreateTopicEnable=maybe")).code == 1
            assert "autoCreateTopicEnable=false" in bytes((await client.ask(26)).body).decode().splitlines()

    run_scenario(scenario)


def test_queues_of_undeclared_topics_are_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            store = client.server.broker.store
            for name in ("Undeclared", "rmq_sys_wheel_timer", "%LMQ%room", "SCHEDULE_TOPIC_XXXX"):
                assert store.put_message(Message(name, b"x")).ok
            store.wait_dispatched()
            assert (await client.ask(316)).code == 0
            assert sorted(store.parts.queues.topics()) == [
                "%LMQ%room",
                "Orders",
                "SCHEDULE_TOPIC_XXXX",
                "rmq_sys_wheel_timer",
            ]

    run_scenario(scenario)


def test_cleaning_can_be_requested(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            texts: list[str] = []
            client.server.broker.store.services.delete_expired_files = lambda: texts.append("files")  # type: ignore[method-assign]
            assert [(await client.ask(code)).code for code in (306, 329)] == [0, 0]
            assert texts == ["files"]

    run_scenario(scenario)


def test_uncounted_figures_are_absent(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            answer = await client.ask(315, statsName="TOPIC_PUT_NUMS", statsKey="Orders")
            assert (answer.code, answer.remark) == (1, "The stats <TOPIC_PUT_NUMS> <Orders> not exist")

    run_scenario(scenario)


def test_progress_of_every_group(tmp_path: Path) -> None:
    """A topic that a group no longer consumes is left out while the group consumes other topics."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for _ in range(3):
                await client.send("Orders", b"one", 1)
            client.server.broker.store.wait_dispatched()
            tables = client.server.broker.store.tables
            tables.create_group("readers")
            tables.commit_consumer_offset("readers", "Orders", 1, 2)
            record = parse((await client.ask(317, isOrder=False)).body).value
            assert (record["totalDiff"], record["totalInflightDiff"]) == (1, -2)
            assert record["brokerAddr"] == client.server.address
            by_group = {name: rows for item in record["consumeStatsList"] for name, rows in item.items()}
            offsets = by_group["readers"][0]["offsetTable"]
            row = next(value for key, value in offsets.items() if '"queueId":1' in str(key))
            assert (row["brokerOffset"], row["consumerOffset"], row["pullOffset"]) == (3, 2, 0)
            ordered = parse((await client.ask(317, isOrder=True)).body).value
            assert {"readers": []} in ordered["consumeStatsList"]
            group = {"groupName": "readers", "subscriptionDataSet": [{"topic": "Others", "subString": "*"}]}
            beat = {"clientID": "me", "consumerDataSet": [group], "producerDataSet": []}
            await client.ask(34, json.dumps(beat).encode())
            remaining_value = parse((await client.ask(317, isOrder=False)).body).value
            assert {"readers": []} in remaining_value["consumeStatsList"]

    run_scenario(scenario)


def test_slaves_are_reported_with_their_lag(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            broker = client.server.broker
            end = broker.store.positions().wrote
            broker.followers = lambda: [SimpleNamespace(peer="127.0.0.1:9", sent=end, acknowledged=end - 10)]
            record = json.loads((await client.ask(907)).body)
            (slave,) = record["haConnectionInfo"]
            assert slave == {
                "addr": "127.0.0.1:9",
                "diff": 10,
                "inSync": True,
                "slaveAckOffset": end - 10,
                "transferFromWhere": end,
                "transferredByteInSecond": 0,
            }
            assert (record["master"], record["inSyncSlaveNums"], record["masterCommitLogMaxOffset"]) == (True, 1, end)

    run_scenario(scenario)


def test_cold_reads_have_thresholds_while_the_broker_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:

            async def thresholds() -> dict[str, int]:
                record = json.loads(bytes((await client.ask(2003)).body))
                assert (record["cgColdReadThreshold"], record["globalColdReadThreshold"]) == (3145728, 104857600)
                return record["configTable"]

            assert await thresholds() == {}
            assert (await client.ask(2001, b"g1=5000\ng2=abc\n# no\ng3 = 7\n")).code == 0
            assert await thresholds() == {"g1": 5000, "g3": 7}
            for content in (b"g1", b"none"):
                assert (await client.ask(2002, content)).code == 0
            assert await thresholds() == {"g3": 7}

    run_scenario(scenario)


def test_epochs_are_for_controller_mode_only(tmp_path: Path) -> None:
    """5.5.0 answers so. The epochs come from the store's file in ``test_mqadmin_cluster.py``."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            answer = await client.ask(1007)
            assert (answer.code, answer.remark) == (1, "this request only for controllerMode ")

    run_scenario(scenario)


def test_rocksdb_requests_succeed_without_rocksdb(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            body = json.loads(bytes((await client.ask(354)).body))
            assert body == {"checkResult": "It is not CombineConsumeQueueStore, no need check", "checkStatus": 0}
            assert (await client.ask(200056)).code == 0

    run_scenario(scenario)


def test_the_log_is_read_ahead_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are those of 5.3.3, and the setting reaches the maps of the log's files."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            advices: list[int] = []
            really = MappedFileQueue.advise
            monkeypatch.setattr(MappedFileQueue, "advise", lambda _, advice: advices.append(advice))
            for fields, code, words in (
                ({}, 1, "set commitlog readahead mode param error"),
                ({"READ_AHEAD_MODE": "x"}, 1, "set commitlog readahead mode failed"),
                ({"OTHER": "1"}, 1, "set commitlog readahead mode failed"),
                ({"READ_AHEAD_MODE": "7"}, 29, "set commitlog readahead mode param value error"),
                ({"READ_AHEAD_MODE": "1"}, 0, "set commitlog readahead mode success, mode: 1"),
                ({"READ_AHEAD_MODE": "0"}, 0, "set commitlog readahead mode success, mode: 0"),
            ):
                answer = await client.ask(2004, **fields)
                assert (answer.code, answer.remark) == (code, words)
            assert advices == [1, 0]
            really(client.server.broker.store.parts.files, 1)

    run_scenario(scenario)


MODE = {"topic": "Orders", "consumerGroup": "poppers", "mode": "POP", "popShareQueueNum": 2}


def test_a_slave_receives_timers_and_request_modes(tmp_path: Path) -> None:
    """A real slave of our broker logged an error with its stack trace every three seconds: request 60 was not
    supported, and each minute 61 and 402. Groups that pop lost their mode on that slave.
    """

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            broker = client.server.broker
            assert json.loads(bytes((await client.ask(402)).body)) == {"messageRequestModeMap": {}}
            due = broker.now() + 60_000
            await client.send("Orders", b"later", 0, f"TIMER_DELIVER_MS\x01{due}\x02UNIQ_KEY\x01A\x02")
            broker.store.wait_dispatched()
            assert broker.timers is not None
            broker.timers.step()
            broker.timers.flush()
            answer = await client.ask(60)
            assert (answer.code, len(answer.body)) == (0, 56)
            written = decode_check((tmp_path / "config" / "timercheck").read_bytes())
            assert decode_check(bytes(answer.body).ljust(4096, b"\0")) == written
            metrics = json.loads(bytes((await client.ask(61)).body))
            assert metrics["timingCount"]["Orders"]["count"] == 1
            assert metrics.keys() == {"dataVersion", "timingCount"}
            assert (await client.ask(401, json.dumps(MODE).encode())).code == 0
            table = json.loads(bytes((await client.ask(402)).body))
            assert table == {"messageRequestModeMap": {"Orders": {"poppers": MODE}}}

    run_scenario(scenario)


def test_a_broker_without_timers_reports_it(tmp_path: Path) -> None:
    with MessageStore(tmp_path, MessageStoreConfig(timer_wheel_enable=False)):
        pass

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            client.server.broker.timers = None
            assert [(await client.ask(code)).code for code in (60, 61)] == [1, 1]

    run_scenario(scenario)


def test_a_slave_saves_the_masters_request_modes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            broker = client.server.broker
            table = {"messageRequestModeMap": {"Orders": {"poppers": MODE}}}
            take_request_modes(broker, {"other": 1})
            assert not (tmp_path / "config" / "messageRequestMode.json").exists()
            take_request_modes(broker, table)
            assert json.loads((tmp_path / "config" / "messageRequestMode.json").read_text()) == table

    run_scenario(scenario)
