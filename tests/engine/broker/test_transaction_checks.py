"""Producers are asked about open transactions; what nobody decides is put aside."""

from __future__ import annotations

import json
from pathlib import Path

from brokers import Asking, asking, half, run, units
from clients_beside import until

from engine.broker.broker import Broker
from engine.broker.config import BrokerConfig
from engine.broker.services import SERVICES
from engine.broker.transaction_checks import check_transactions
from engine.codec.message import COMMIT, decode
from engine.system_names import CHECK_MAX_TOPIC, HALF_TOPIC, TRANSACTION_GROUP


def later(broker: Broker, ms: int) -> None:
    """The broker's clock goes on."""
    began = broker.now()
    broker.now = lambda: began + ms


async def say_hello(client: Asking) -> None:
    told = {"clientID": "one", "producerDataSet": [{"groupName": "payers"}], "consumerDataSet": []}
    assert (await client.ask(34, json.dumps(told).encode())).code == 0


async def open_transaction(client: Asking, more: str = "") -> tuple[Broker, dict[str, object]]:
    asked = await half(client, 0, more)
    broker = client.server.broker
    broker.store.wait_dispatched()
    later(broker, 7_000)
    return broker, asked


def test_a_producer_is_asked_and_answers(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await say_hello(client)
            broker, _ = await open_transaction(client)
            check_transactions(broker)
            await until(lambda: any(one.code == 39 for one in client.told))
            (question,) = [one for one in client.told if one.code == 39]
            unit = decode(bytes(question.body))
            assert (unit.topic, unit.queue_id, unit.body) == ("Orders", 2, b"0")
            copy = units(client, HALF_TOPIC)[1]
            assert copy.properties["TRANSACTION_CHECK_TIMES"] == "1"
            fields = question.fields
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

    run(told)


def test_what_is_too_young_is_let_alone(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            broker = client.server.broker
            await half(client)
            check_transactions(broker)
            assert len(units(client, HALF_TOPIC)) == 1

    run(told)


def test_after_the_last_question_it_is_put_aside(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path, BrokerConfig(transaction_checks=2)) as client:
            broker = client.server.broker
            await half(client)
            for _ in range(3):
                later(broker, 10_000)
                check_transactions(broker)
                broker.store.wait_dispatched()
            assert [unit.properties["TRANSACTION_CHECK_TIMES"] for unit in units(client, HALF_TOPIC)[1:]] == ["1", "2"]
            assert [unit.body for unit in units(client, CHECK_MAX_TOPIC)] == [b"0"]

    run(told)


def test_the_broker_does_it_by_itself() -> None:
    assert check_transactions in [service.step for service in SERVICES]
