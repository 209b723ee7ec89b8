"""A store changes hands with open pops: RocketMQ's own broker revives messages that ours delivered, and ours those of
RocketMQ's; acknowledged messages stay done.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import real_cluster
from brokers import BrokerClient, asking_broker
from pops import GROUP, pop, popped

from engine.broker.config import BrokerConfig

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
CLUSTER = "PeerCluster"
"""The cluster of the real broker: its name is part of the revive topic's."""
BODIES = [b"%d" % number for number in range(8)]
TIMEOUT_S = 60.0
"""Seconds."""
INVISIBLE_MS = 20_000
"""Time to acknowledge what was popped: a busy machine needs some seconds for the first answers."""


async def left_open(client: BrokerClient) -> None:
    """Pop all eight messages of two queues, acknowledge two of them and change the time of a third."""
    for number, body in enumerate(BODIES):
        answer = await client.send("Orders", body, number % 2)
        assert answer.code == 0

    handles: dict[bytes, tuple[int, int, str]] = {}
    while len(handles) < len(BODIES):
        answer = await pop(client, invisibleTime=INVISIBLE_MS, pollTime=1_000)
        starts = {word.split()[1]: word.split()[2] for word in answer.fields["startOffsetInfo"].split(";") if word}
        for unit in popped(answer):
            start = starts[str(unit.queue_id)]
            fields = answer.fields
            handle = f"{start} {fields['popTime']} {INVISIBLE_MS} {fields['reviveQid']} 0 broker-a {unit.queue_id}"
            handles[unit.body] = unit.queue_id, unit.queue_offset, f"{handle} {unit.queue_offset}"
    where = {"consumerGroup": GROUP, "topic": "Orders"}
    for body in (b"0", b"3"):
        queue_id, offset, handle = handles[body]
        acked = await client.ask(200051, **where, queueId=queue_id, offset=offset, extraInfo=handle)
        assert acked.code == 0
    queue_id, offset, handle = handles[b"5"]
    changed = await client.ask(
        200053, **where, queueId=queue_id, offset=offset, extraInfo=handle, invisibleTime=INVISIBLE_MS + 8_000
    )
    assert changed.code == 0


async def assert_revived(client: BrokerClient, left_at: float) -> None:
    """Assert that messages without acknowledgement come again, once each, and acknowledged ones do not.

    ``left_at``: seconds of the monotonic clock at which they were left. The one with the changed time comes last,
    unless the broker began so late that the time of all had passed.
    """
    repeated, until = [], time.monotonic() + TIMEOUT_S
    first_at = until
    while len(repeated) < len(BODIES) - 2 and time.monotonic() < until:
        answer = await pop(client, pollTime=1_000)
        repeated += popped(answer)
        if repeated:
            first_at = min(first_at, time.monotonic())
    for _ in range(3):  # for one too many
        repeated += popped(await pop(client, pollTime=2_000))
    assert sorted(unit.body for unit in repeated) == [b"1", b"2", b"4", b"5", b"6", b"7"]
    assert {(unit.topic, unit.reconsume_times) for unit in repeated} == {("Orders", 1)}
    assert repeated[-1].body == b"5" or first_at > left_at + INVISIBLE_MS / 1000 + 6


async def assert_all_come(client: BrokerClient) -> None:
    """Assert that each comes at least once: after a kill offsets are some seconds old, and popped messages may be
    popped anew.
    """
    arrived: set[bytes] = set()
    until = time.monotonic() + TIMEOUT_S
    while not arrived >= set(BODIES) - {b"0", b"3"} and time.monotonic() < until:
        arrived |= {unit.body for unit in popped(await pop(client, pollTime=1_000))}
    assert arrived >= set(BODIES) - {b"0", b"3"}


async def real_client(addresses: dict[str, str]) -> BrokerClient:
    client = BrokerClient(SimpleNamespace(address=addresses["broker"]))  # type: ignore[arg-type]
    await client.open()
    return client


async def in_hand(client: BrokerClient) -> None:
    """Pop two of three messages as an orderly group, and acknowledge the first of them."""
    for body in BODIES[:3]:
        assert (await client.send("Orders", body)).code == 0
    answer = await pop(
        client, order=True, attemptId="a", maxMsgNums=2, invisibleTime=600_000, pollTime=1_000, queueId=0
    )
    assert answer.fields["msgOffsetInfo"] == "0 0 0,1"
    handle = f"0 {answer.fields['popTime']} 600000 999 0 broker-a 0 0"
    acked = {"consumerGroup": GROUP, "topic": "Orders", "queueId": 0, "offset": 0, "extraInfo": handle}
    assert (await client.ask(200051, **acked)).code == 0


async def assert_in_hand(client: BrokerClient) -> None:
    """Assert that another attempt gets nothing, and the same attempt gets the open message and the following ones."""
    request_fields = {"order": True, "maxMsgNums": 2, "invisibleTime": 600_000, "queueId": 0}
    assert (await pop(client, **request_fields, attemptId="b", pollTime=300)).code == 210
    repeated = await pop(client, **request_fields, attemptId="a", pollTime=300)
    assert (repeated.fields["msgOffsetInfo"], repeated.fields["orderCountInfo"]) == ("0 0 1,2", "0 0 0")


@pytest.mark.clients_full
def test_a_real_broker_revives_what_ours_handed_out(tmp_path: Path) -> None:
    async def ours() -> None:
        async with asking_broker(tmp_path / "store", BrokerConfig(cluster=CLUSTER), release="5.3") as client:
            client.server.broker.store.tables.create_topic("Orders", 2)
            await left_open(client)

    async def theirs(addresses: dict[str, str]) -> None:
        client = await real_client(addresses)
        try:
            await assert_revived(client, left_at)
        finally:
            client.close()

    left_at = time.monotonic()
    asyncio.run(ours())
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(tmp_path, *options) as output:
        asyncio.run(theirs(output))


def test_a_real_broker_goes_on_where_ours_was_killed(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(f"brokerClusterName={CLUSTER}\n")
    words = ["serve", str(tmp_path / "store"), "--port", "0", "--namesrv-port", "0", "--json", "--config", str(conf)]
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *words, "--release", "5.3"], stdout=subprocess.PIPE, text=True
    )

    async def run_with(addresses: dict[str, str], action: Callable[[BrokerClient], Awaitable[None]]) -> None:
        client = await real_client(addresses)
        await action(client)
        client.close()

    try:
        assert process.stdout is not None
        record = json.loads(process.stdout.readline())
        asyncio.run(run_with(record, left_open))
    finally:
        process.kill()
        process.communicate()
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(tmp_path, *options) as record:
        asyncio.run(run_with(record, assert_all_come))


@pytest.mark.clients_full
def test_what_an_orderly_group_has_in_hand_stays_there(tmp_path: Path) -> None:
    """From our broker to a real one, and from that one to ours."""

    async def ours(folder: Path, action: Callable[[BrokerClient], Awaitable[None]]) -> None:
        async with asking_broker(folder / "store", BrokerConfig(cluster=CLUSTER), release="5.3") as client:
            await action(client)

    async def theirs(addresses: dict[str, str], action: Callable[[BrokerClient], Awaitable[None]]) -> None:
        client = await real_client(addresses)
        await action(client)
        client.close()

    for folder, ours_first in ((tmp_path / "ours first", True), (tmp_path / "theirs first", False)):
        if ours_first:
            asyncio.run(ours(folder, in_hand))
        options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
        with real_cluster.real(folder, *options, clean_end=True) as output:
            asyncio.run(theirs(output, assert_in_hand if ours_first else in_hand))
        if not ours_first:
            asyncio.run(ours(folder, assert_in_hand))


@pytest.mark.clients_full
def test_ours_revives_what_a_real_broker_handed_out(tmp_path: Path) -> None:
    async def theirs(addresses: dict[str, str]) -> None:
        client = await real_client(addresses)
        declared = {
            "topic": "Orders",
            "defaultTopic": "TBW102",
            "readQueueNums": 2,
            "writeQueueNums": 2,
            "perm": 6,
            "topicFilterType": "SINGLE_TAG",
        }
        assert (await client.ask(17, **declared)).code == 0
        await left_open(client)
        client.close()

    async def ours() -> None:
        async with asking_broker(tmp_path / "store", BrokerConfig(cluster=CLUSTER), release="5.3") as client:
            await assert_revived(client, left_at)

    left_at = time.monotonic()
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(tmp_path, *options, clean_end=True) as output:
        asyncio.run(theirs(output))
    asyncio.run(ours())
