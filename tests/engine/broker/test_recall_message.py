"""Timer messages of clients: they are delivered, or recalled by the handle that the sender received."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from brokers import BrokerClient, asking_broker, run_scenario

from engine.broker.config import BrokerConfig
from engine.broker.services import SERVICES

RECALLS = BrokerConfig(recall_message=True)


def step(client: BrokerClient) -> None:
    broker = client.server.broker
    broker.store.wait_dispatched()
    for service in SERVICES:
        if service.name.startswith("timer"):
            service.step(broker)
    broker.store.wait_dispatched()


async def send_timed(client: BrokerClient, key: str) -> tuple[str, int]:
    """Send a message that is due in a minute; return its handle and due time."""
    due = client.server.broker.now() + 60_000
    answer = await client.send("Orders", key.encode(), 0, f"TIMER_DELIVER_MS\x01{due}\x02UNIQ_KEY\x01{key}\x02")
    assert answer.code == 0
    return str(answer.fields["recallHandle"]), due


def test_a_recalled_message_is_not_delivered_and_others_are(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, RECALLS) as client:
            broker = client.server.broker
            began = broker.now()
            broker.now = lambda: began
            handle, due = await send_timed(client, "A")
            await send_timed(client, "B")
            fields = base64.urlsafe_b64decode(handle).decode().split(" ")
            assert fields[:3] == ["v1", "Orders", broker.config.broker_name]
            assert (due - 1000 <= int(fields[3]) <= due, fields[4]) == (True, "A")
            answer = await client.ask(370, topic="Orders", recallHandle=handle)
            assert (answer.code, answer.fields) == (0, {"MSG_REGION": "DefaultRegion", "msgId": "A"})
            step(client)
            broker.now = lambda: began + 62_000
            step(client)
            assert broker.store.max_offset_in_queue("Orders", 0) == 1
            late = await client.ask(370, topic="Orders", recallHandle=handle)
            assert (late.code, late.remark) == (604, "recall failed, timestamp invalid")

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("handle", "words"),
    [
        ("", "recall handle is invalid"),
        ("no base 64", "recall handle is invalid"),
        (base64.urlsafe_b64encode(b"v2 Orders broker-a 1 A").decode(), "recall handle is invalid"),
        (base64.urlsafe_b64encode(b"v1 Other broker-a 1 A").decode(), "recall failed, topic not match"),
        (base64.urlsafe_b64encode(b"v1 Orders b 1 A").decode(), "recall failed, broker service not available"),
    ],
)
def test_an_invalid_handle_is_refused_with_rocketmqs_message(tmp_path: Path, handle: str, words: str) -> None:
    """Refusals named no region. A Java client's trace of a recall begins with the region, so recalls were never
    traced.
    """

    async def scenario() -> None:
        async with asking_broker(tmp_path, RECALLS) as client:
            await client.send("Orders", b"x")
            answer = await client.ask(370, topic="Orders", recallHandle=handle)
            assert (answer.code, answer.remark) == (604, words)
            assert answer.fields == {"MSG_REGION": "DefaultRegion"}

    run_scenario(scenario)


def test_recalling_is_off_unless_it_is_configured_and_needs_a_topic(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            handle, _ = await send_timed(client, "A")
            answer = await client.ask(370, topic="Orders", recallHandle=handle)
            assert (answer.code, answer.remark) == (16, "recall failed, operation is forbidden")
            client.server.broker.config = RECALLS
            answer = await client.ask(370, topic="None", recallHandle=handle)
            assert (answer.code, answer.remark) == (17, "recall failed, the topic[None] not exist")

    run_scenario(scenario)
