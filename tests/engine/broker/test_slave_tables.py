"""What a slave of RocketMQ asks beside topics, groups and offsets: timers and modes, answered as 5.3.3 does."""

from __future__ import annotations

import json
from pathlib import Path

from brokers import asking, run

from engine.broker.slave_tables import take_request_modes
from engine.codec.timer import decode_check
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore

MODE = {"topic": "Orders", "consumerGroup": "poppers", "mode": "POP", "popShareQueueNum": 2}


def test_timers_and_modes_are_told_to_a_slave(tmp_path: Path) -> None:
    """A real slave of ours wrote an error with its stack every three seconds: 60 was not supported, each minute also
    61 and 402. Groups that pop lost their mode there.
    """

    async def told() -> None:
        async with asking(tmp_path) as client:
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

    run(told)


def test_a_broker_without_timers_says_so(tmp_path: Path) -> None:
    with MessageStore(tmp_path, MessageStoreConfig(timer_wheel_enable=False)):
        pass

    async def told() -> None:
        async with asking(tmp_path) as client:
            client.server.broker.timers = None
            assert [(await client.ask(code)).code for code in (60, 61)] == [1, 1]

    run(told)


def test_modes_of_the_master_are_taken_and_kept(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            broker = client.server.broker
            table = {"messageRequestModeMap": {"Orders": {"poppers": MODE}}}
            take_request_modes(broker, {"other": 1})
            assert not (tmp_path / "config" / "messageRequestMode.json").exists()
            take_request_modes(broker, table)
            assert json.loads((tmp_path / "config" / "messageRequestMode.json").read_text()) == table

    run(told)
