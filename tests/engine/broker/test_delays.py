"""Delay levels: due messages go to their topic in order and once, and each level's offset survives a restart."""

from __future__ import annotations

from pathlib import Path

from brokers import BrokerClient, asking_broker, run_scenario
from put_logs import PutLog

from engine.broker.broker import Broker
from engine.broker.delays import deliver_due, delivered_message
from engine.broker.services import SERVICES
from engine.codec.encode import Message

DELAYED = "DELAY\x012\x02REAL\x01no\x02"


def bodies(broker: Broker, topic: str) -> list[bytes]:
    broker.store.wait_dispatched()
    message = broker.store.get_message("g", topic, 0, 0)
    assert message is not None
    with message:
        return [unit.body for unit in message.units()]


async def send_two(client: BrokerClient) -> Broker:
    """Send two messages of level 2 (5 s). From then on the test sets the broker's clock."""
    for number in range(2):
        assert (await client.send("Orders", b"%d" % number, properties=DELAYED)).code == 0
    broker = client.server.broker
    broker.store.wait_dispatched()
    return broker


def test_a_level_delivers_what_is_due_in_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            broker = await send_two(client)
            began = broker.now()
            broker.now = lambda: began + 4_000
            deliver_due(broker)
            assert bodies(broker, "Orders") == []
            broker.now = lambda: began + 5_100
            deliver_due(broker)
            deliver_due(broker)
            assert bodies(broker, "Orders") == [b"0", b"1"]
            assert broker.store.tables.delay_offset(2) == 2

    run_scenario(scenario)


def test_a_levels_offset_is_saved_in_the_store(tmp_path: Path) -> None:
    """The second broker delivers the messages that the first had not delivered."""

    async def first() -> None:
        async with asking_broker(tmp_path) as client:
            broker = await send_two(client)
            began = broker.now()
            broker.now = lambda: began + 5_100
            deliver_due(broker)

    async def second() -> None:
        async with asking_broker(tmp_path) as client:
            broker = client.server.broker
            began = broker.now()
            broker.now = lambda: began + 60_000
            deliver_due(broker)
            assert bodies(broker, "Orders") == [b"0", b"1"]

    run_scenario(first)
    assert '"offsetTable":{2:2}' in (tmp_path / "config" / "delayOffset.json").read_text().replace("\n", "").replace(
        "\t", ""
    ).replace(" ", "")
    run_scenario(second)


def test_a_clock_that_went_back_delays_nothing_further(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            broker = await send_two(client)
            began = broker.now()
            broker.now = lambda: began - 3_600_000
            deliver_due(broker)
            assert bodies(broker, "Orders") == [b"0", b"1"]

    run_scenario(scenario)


def test_a_message_without_a_topic_is_skipped(tmp_path: Path) -> None:
    put = PutLog(tmp_path)
    for results in (
        {},
        {"REAL_TOPIC": "T", "REAL_QID": "x"},
        {"REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC", "REAL_QID": "0"},
    ):
        unit = put.unit(put.log.put_message(Message("SCHEDULE_TOPIC_XXXX", b"x", 0, results)))
        assert delivered_message(unit) is None


def test_the_broker_delivers_without_a_request() -> None:
    assert deliver_due in [service.step for service in SERVICES]
