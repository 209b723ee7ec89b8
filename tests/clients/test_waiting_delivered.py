"""What ``waiting`` lists in the store of a killed real broker is what that broker delivers when it is started again."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import real_cluster
from brokers import BrokerClient

from engine.callbacks import system_clock
from engine.codec.message import COMMIT, Unit
from engine.inspection import open_store
from engine.inspection.waiting import WaitingMessage, find_waiting

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]
COUNT = 40
GROUP = "readers"
DELIVERY_DELAY_MS = 8_000
"""A message is delivered within this time from its due time or from the start of the broker."""


async def create_topics(client: BrokerClient, *topics: str) -> None:
    for topic in topics:
        fields = {"topic": topic, "defaultTopic": "TBW102", "perm": 6, "topicFilterType": "SINGLE_TAG"}
        queues = {"readQueueNums": 1, "writeQueueNums": 1, "topicSysFlag": 0, "order": False}
        assert (await client.ask(17, **fields, **queues)).code == 0


async def send(client: BrokerClient, topic: str, key: str, properties: str = "", **options: object) -> int:
    """Send a message and return its offset."""
    born = {"bornTimestamp": system_clock()}
    answer = await client.send(topic, b"x", properties=f"UNIQ_KEY\x01{key}\x02{properties}", **{**born, **options})
    assert answer.code == 0, answer.remark
    return int(str(answer.fields["msgId"])[-16:], 16)


async def write(address: str) -> set[str]:
    """Write waiting messages of every kind; return the keys of those that were settled."""
    client = BrokerClient(SimpleNamespace(address=address))  # type: ignore[arg-type]
    await client.open()
    numbers, settled = random.Random(5), set[str]()
    await create_topics(client, "Delayed", "Timed", "Paid", "Popped", "Failed")
    for number in range(COUNT):
        await send(client, "Delayed", f"delay-{number}", f"DELAY\x01{numbers.randint(3, 5)}\x02")
        due = system_clock() + numbers.randint(15_000, 60_000)
        await send(client, "Timed", f"timer-{number}", f"TIMER_DELIVER_MS\x01{due}\x02")
        key, transaction = f"half-{number}", "TRAN_MSG\x01true\x02PGROUP\x01payers\x02"
        offset = await send(client, "Paid", key, transaction, sysFlag=4)
        if number % 2:
            place = {"producerGroup": "payers", "tranStateTableOffset": number, "commitLogOffset": offset}
            assert (await client.ask(37, commitOrRollback=COMMIT, msgId=key, transactionId=key, **place)).code == 0
            settled.add(key)
        offset = await send(client, "Failed", f"retry-{number}")
        level = numbers.randint(3, 5)
        assert (await client.ask(36, offset=offset, group=GROUP, delayLevel=level, originTopic="Failed")).code == 0
        await send(client, "Popped", f"pop-{number}")
    await asyncio.sleep(1)  # until they are dispatched
    place = {"consumerGroup": "poppers", "topic": "Popped", "queueId": 0}
    options = {"maxMsgNums": 16, "pollTime": 0, "bornTime": system_clock(), "initMode": 0, "order": False}
    popped = 0
    while popped < COUNT:
        answer = await client.ask(200050, **place, invisibleTime=30_000, **options)
        assert answer.code == 0, answer.remark
        start, pop_time = popped, answer.fields["popTime"]
        popped = min(COUNT, popped + 16)
        for offset in range(start, popped, 3):
            handle = f"{start} {pop_time} 30000 {answer.fields['reviveQid']} 0 broker-a 0 {offset}"
            assert (await client.ask(200051, **place, offset=offset, extraInfo=handle)).code == 0
            settled.add(f"pop-{offset}")
    await asyncio.sleep(4)  # until acknowledgements in the broker's memory and decisions are in the store
    client.close()
    return settled


def units_of(store: Path) -> list[Unit]:
    with open_store(store) as opened:
        return [unit for unit in opened.units(crc=False) if isinstance(unit, Unit)]


def is_delivery(unit: Unit, row: WaitingMessage) -> bool:
    topics = {"delay": "Delayed", "timer": "Timed", "half": "Paid", "retry": f"%RETRY%{GROUP}"}
    expected = topics.get(row.kind)
    return unit.topic == expected if expected else unit.topic.startswith("%RETRY%poppers")


@pytest.mark.clients_full
def test_a_real_broker_delivers_what_waits_and_when_it_is_due(tmp_path: Path) -> None:
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(tmp_path, *ports, release="5.5.1") as output:
        settled = asyncio.run(write(output["broker"]))
    store = tmp_path / "store"
    with open_store(store) as opened:
        opened.commit_log.settle_end()
        waiting = find_waiting(opened)
        end = opened.log.max_offset
    assert waiting.unknown == {}
    rows = {row.unique_key or "": row for row in waiting.rows}
    assert len(rows) == waiting.total
    delivered_before = {
        unit.unique_key for unit in units_of(store) if unit.topic in {"Delayed", "Timed", f"%RETRY%{GROUP}"}
    }
    kinds = ("delay", "timer", "half", "retry", "pop")
    keys = {f"{kind}-{number}" for kind in kinds for number in range(COUNT)} - settled - delivered_before
    ready = {key for key, row in rows.items() if row.state == "ready"}
    assert rows.keys() == keys | ready
    last_due = max(row.due or 0 for row in rows.values())
    start = system_clock()
    with real_cluster.real(tmp_path, *ports, release="5.5.1", clean_end=True):
        started = system_clock()
        while system_clock() < max(last_due, started) + DELIVERY_DELAY_MS + 4_000:
            time.sleep(0.5)
    wrong, delivered = [], set[str]()
    for unit in units_of(store):
        row = rows.get(unit.unique_key or "")
        if row is None or unit.offset < end or not is_delivery(unit, row):
            continue
        delivered.add(row.unique_key or "")
        earliest, latest = row.due or 0, max(row.due or 0, started) + DELIVERY_DELAY_MS
        if not earliest <= unit.store_timestamp <= latest:
            wrong.append((row.unique_key, row.due, unit.store_timestamp, start))
    print(f"{len(rows)} rows, {len(delivered)} delivered, {len(wrong)} at another time")
    assert wrong == []
    assert delivered == {key for key, row in rows.items() if row.kind != "half"} - ready
