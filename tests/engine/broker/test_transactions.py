"""Transaction decisions are collected and written together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from brokers import BrokerClient, asking_broker, half, run_scenario, units
from served_broker import wait_until

from engine.broker.broker import Broker
from engine.broker.config import BrokerConfig
from engine.broker.services import SERVICES
from engine.broker.transactions import INTERVAL_MS, OpMessages, check_transactions, immunity_ms, is_half
from engine.codec.message import COMMIT, ROLLBACK, TRANSACTION_MASK, decode
from engine.releases import Release
from engine.system_names import CHECK_MAX_TOPIC, HALF_TOPIC, OP_TOPIC, TRANSACTION_GROUP


def test_decisions_are_collected() -> None:
    ops = OpMessages()
    assert not ops.add(0, 17, 1_000)
    assert not ops.add(0, 18, 2_000)
    assert ops.bodies(1_000 + INTERVAL_MS - 1) == []
    assert ops.bodies(1_000 + INTERVAL_MS) == [(0, b"17,18,")]
    ops.add(0, 19, 5_000)
    ops.written(0, b"17,18,")
    assert ops.bodies(None) == [(0, b"19,")]


def test_a_full_batch_of_decisions_is_written_at_once() -> None:
    ops = OpMessages()
    assert [ops.add(0, 1_000_000 + number, 0) for number in range(600)].index(True) == 512


@pytest.mark.parametrize(("release", "keeps_place"), [("5.3", True), ("5.4", False)])
def test_a_commit_puts_the_message_into_its_topic(tmp_path: Path, release: Release, *, keeps_place: bool) -> None:
    """Since 5.4 a committed message has lost the place of its half message. Ours kept it always."""

    async def scenario() -> None:
        async with asking_broker(tmp_path, release=release) as client:
            request = await half(client)
            assert units(client, "Orders", 2) == []
            (saved_unit,) = units(client, HALF_TOPIC)
            assert saved_unit.sys_flag & TRANSACTION_MASK == 0
            assert (saved_unit.properties["REAL_TOPIC"], saved_unit.properties["__transactionId__"]) == ("Orders", "U0")
            assert (await client.ask(37, commitOrRollback=COMMIT, **request)).code == 0
            (unit,) = units(client, "Orders", 2)
            assert (unit.body, unit.sys_flag & TRANSACTION_MASK) == (b"0", COMMIT)
            assert client.server.broker.stats.own_puts["Orders"].size == unit.size
            assert unit.prepared_transaction_offset == request["commitLogOffset"]
            place = b"REAL_TOPIC\x01Orders\x02REAL_QID\x012\x02"
            assert saved_unit.properties_raw.endswith(place)
            assert unit.properties_raw == saved_unit.properties_raw.removesuffix(b"" if keeps_place else place)

    run_scenario(scenario)


def test_decisions_share_one_op_message(tmp_path: Path) -> None:
    """The op message is written even if the broker stops before its time."""

    async def first() -> None:
        async with asking_broker(tmp_path) as client:
            for number in range(3):
                request = await half(client, number)
                answer = await client.ask(37, commitOrRollback=ROLLBACK, **request)
                assert (answer.code, answer.remark) == (0, "not set any response code")  # as by 5.5.1
            assert units(client, "Orders", 2) == []
            assert units(client, OP_TOPIC) == []

    async def second() -> None:
        async with asking_broker(tmp_path) as client:
            (op,) = units(client, OP_TOPIC)
            assert (op.body, op.tags) == (b"0,1,2,", "d")

    run_scenario(first)
    run_scenario(second)


def test_a_decision_without_its_half_message_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            request = await half(client)
            for wrong, words in {
                "producerGroup": "The producer group wrong",
                "tranStateTableOffset": "The transaction state table offset wrong",
                "commitLogOffset": "Find prepared transaction message failed",
            }.items():
                answer = await client.ask(37, commitOrRollback=COMMIT, **{**request, wrong: 17})
                assert (answer.code, answer.remark) == (1, words)

    run_scenario(scenario)


def test_a_message_may_set_its_own_time_for_the_decision(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            request = await half(client, 0, "CHECK_IMMUNITY_TIME_IN_SECONDS\x0130\x02")
            broker = client.server.broker
            began = broker.now()
            broker.now = lambda: began + 31_000
            assert (await client.ask(37, commitOrRollback=COMMIT, **request)).code == 604
            response = await client.ask(37, commitOrRollback=COMMIT, fromTransactionCheck=True, **request)
            assert response.code == 0

    run_scenario(scenario)


def test_times_and_kinds() -> None:
    assert [immunity_ms(text, 6_000) for text in ("30", "1", "x", "-5")] == [30_000, 6_000, 6_000, 6_000]
    assert is_half({"TRAN_MSG": "TRUE"}, 0)
    assert is_half({"TRAN_MSG": "true", "DELAY": "3"}, 0)
    assert not is_half({"TRAN_MSG": "true", "DELAY": "3"}, 1)
    assert not is_half({}, 0)


def later(broker: Broker, ms: int) -> None:
    """Advance the broker's clock by ``ms``."""
    began = broker.now()
    broker.now = lambda: began + ms


async def say_hello(client: BrokerClient) -> None:
    reported = {"clientID": "one", "producerDataSet": [{"groupName": "payers"}], "consumerDataSet": []}
    assert (await client.ask(34, json.dumps(reported).encode())).code == 0


async def open_transaction(client: BrokerClient, properties: str = "") -> tuple[Broker, dict[str, object]]:
    request = await half(client, 0, properties)
    broker = client.server.broker
    broker.store.wait_dispatched()
    later(broker, 7_000)
    return broker, request


def test_a_producer_answers_a_transaction_check(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await say_hello(client)
            broker, _ = await open_transaction(client)
            check_transactions(broker)
            await wait_until(lambda: any(command.code == 39 for command in client.requests))
            (check_request,) = [command for command in client.requests if command.code == 39]
            unit = decode(bytes(check_request.body))
            assert (unit.topic, unit.queue_id, unit.body) == ("Orders", 2, b"0")
            copy = units(client, HALF_TOPIC)[1]
            assert copy.properties["TRANSACTION_CHECK_TIMES"] == "1"
            fields = check_request.fields
            assert (fields["tranStateTableOffset"], fields["commitLogOffset"]) == ("1", str(copy.physical_offset))
            assert (fields["offsetMsgId"], fields["msgId"]) == (copy.offset_msg_id, "U0")
            answer = await client.ask(
                37,
                producerGroup="payers",
                tranStateTableOffset=1,
                commitLogOffset=copy.physical_offset,
                commitOrRollback=COMMIT,
                fromTransactionCheck=True,
            )
            assert answer.code == 0
            later(broker, 7_000)
            check_transactions(broker)
            assert [unit.body for unit in units(client, "Orders", 2)] == [b"0"]
            assert len(units(client, HALF_TOPIC)) == 2
            tables = broker.store.tables
            assert tables.consumer_offset(TRANSACTION_GROUP, HALF_TOPIC, 0) == 2
            check_transactions(broker)
            assert tables.consumer_offset(TRANSACTION_GROUP, "RMQ_SYS_TRANS_OP_HALF_TOPIC", 0) == 1

    run_scenario(scenario)


def test_young_half_messages_are_not_checked(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            broker = client.server.broker
            await half(client)
            check_transactions(broker)
            assert len(units(client, HALF_TOPIC)) == 1

    run_scenario(scenario)


def test_a_half_message_is_discarded_after_its_last_check(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(transaction_checks=2)) as client:
            broker = client.server.broker
            await half(client)
            for _ in range(3):
                later(broker, 10_000)
                check_transactions(broker)
                broker.store.wait_dispatched()
            assert [unit.properties["TRANSACTION_CHECK_TIMES"] for unit in units(client, HALF_TOPIC)[1:]] == ["1", "2"]
            assert [unit.body for unit in units(client, CHECK_MAX_TOPIC)] == [b"0"]

    run_scenario(scenario)


def test_the_broker_checks_without_a_request() -> None:
    assert check_transactions in [service.step for service in SERVICES]
