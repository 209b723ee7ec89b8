"""Waiting messages of each kind, written by our broker and its services, against what their senders know.

A few hundred of each kind by default; ``bash packaging/test.sh tests/engine/inspection/test_waiting_truth.py
--waiting-messages 10000`` is the full form.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest
from brokers import BrokerClient, asking_broker, half

from engine.broker.config import BrokerConfig
from engine.codec.message import COMMIT, ROLLBACK, Unit
from engine.inspection import open_store
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.waiting import WaitingMessage, find_waiting

DELAYS_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""Seconds of RocketMQ's delay levels 1 to 18."""
SENDS_AT_ONCE = 32
Due = Callable[[Unit], tuple[int, int]]
"""Earliest and latest due time of a message, from its first unit in the log."""


class Truth:
    """What the senders know: when each message is due, or why it does not wait."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.due: dict[str, Due] = {}
        self.tries: dict[str, int] = {}
        self.settled: set[str] = set()
        self.offsets: dict[str, int] = {}
        self.random = random.Random(20261130)


def wheel_time(due: int) -> int:
    """Return the second of the timer wheel: the last one before the time (RocketMQ's transformTimerMessage)."""
    return (due - 1) // 1000 * 1000


async def at_once(calls: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Run calls, some of them at the same time."""
    limit = asyncio.Semaphore(SENDS_AT_ONCE)

    async def run(call: Callable[[], Awaitable[object]]) -> None:
        async with limit:
            await call()

    await asyncio.gather(*(run(call) for call in calls))


async def send(client: BrokerClient, truth: Truth, topic: str, key: str, properties: str = "") -> None:
    answer = await client.send(topic, key.encode(), properties=f"UNIQ_KEY\x01{key}\x02{properties}")
    assert answer.code == 0, answer.remark
    truth.offsets[key] = int(str(answer.fields["msgId"])[-16:], 16)


async def send_delayed(client: BrokerClient, truth: Truth) -> None:
    async def send_number(number: int) -> None:
        level = truth.random.randint(1, 18)
        key = f"delay-{number}"
        await send(client, truth, "Delayed", key, f"DELAY\x01{level}\x02")
        truth.due[key] = lambda unit: (unit.store_timestamp + DELAYS_S[level - 1] * 1000,) * 2

    await at_once(lambda number=number: send_number(number) for number in range(truth.count))


async def send_timers(client: BrokerClient, truth: Truth) -> None:
    now = client.server.broker.now()

    async def send_number(number: int) -> None:
        key = f"timer-{number}"
        if number % 2:
            due = now + truth.random.randint(2_000, 86_400_000)
            await send(client, truth, "Timed", key, f"TIMER_DELIVER_MS\x01{due}\x02")
            truth.due[key] = lambda _unit: (wheel_time(due),) * 2
        else:
            seconds = truth.random.randint(2, 86_400)
            before = client.server.broker.now()
            await send(client, truth, "Timed", key, f"TIMER_DELAY_SEC\x01{seconds}\x02")
            after = client.server.broker.now()
            bounds = tuple(wheel_time(moment + seconds * 1000) for moment in (before, after))
            truth.due[key] = lambda _unit: bounds  # type: ignore[return-value]

    await at_once(lambda number=number: send_number(number) for number in range(truth.count))


async def send_halves(client: BrokerClient, truth: Truth) -> None:
    async def send_number(number: int) -> None:
        request = await half(client, number)
        outcome = truth.random.choice((COMMIT, ROLLBACK, None, None))
        key = f"U{number}"
        truth.offsets[key] = int(str(request["commitLogOffset"]))
        truth.due[key] = lambda _unit: (0, 0)
        if outcome is not None:
            assert (await client.ask(37, commitOrRollback=outcome, **request)).code == 0
            truth.settled.add(key)

    await at_once(lambda number=number: send_number(number) for number in range(truth.count))


async def pop_some(client: BrokerClient, truth: Truth) -> None:
    """Pop all messages; some are acknowledged, others get another time to be invisible."""
    for number in range(truth.count):
        await send(client, truth, "Popped", f"pop-{number}")
    client.server.broker.store.wait_dispatched()
    place = {"consumerGroup": "poppers", "topic": "Popped", "queueId": 0}
    popped = 0
    while popped < truth.count:
        invisible = truth.random.randint(60, 600) * 1000
        options = {"maxMsgNums": 32, "pollTime": 0, "bornTime": 0, "initMode": 0, "order": False}
        answer = await client.ask(200050, **place, invisibleTime=invisible, **options)
        assert answer.code == 0, answer.remark
        pop_time, start = int(answer.fields["popTime"]), popped
        popped = min(truth.count, start + 32)
        revive_queue = int(answer.fields["reviveQid"])
        while client.server.broker.now() <= pop_time:  # a changed pop of the same millisecond would have the same key
            await asyncio.sleep(0.001)
        for offset in range(start, popped):
            key = f"pop-{offset}"
            handle = f"{start} {pop_time} {invisible} {revive_queue} 0 broker-a 0 {offset}"
            truth.due[key] = lambda _unit, due=pop_time + invisible: (due, due)
            truth.tries[key] = 1
            decision = truth.random.random()
            if decision < 0.4:
                assert (await client.ask(200051, **place, offset=offset, extraInfo=handle)).code == 0
                truth.settled.add(key)
            elif decision < 0.6:
                other_ms = truth.random.randint(60, 600) * 1000
                changed = await client.ask(200053, **place, offset=offset, extraInfo=handle, invisibleTime=other_ms)
                assert changed.code == 0, changed.remark
                new_due = int(changed.fields["popTime"]) + other_ms
                truth.due[key] = lambda _unit, due=new_due: (due, due)


async def send_back(client: BrokerClient, truth: Truth) -> None:
    async def send_number(number: int) -> None:
        key, level = f"retry-{number}", truth.random.randint(3, 18)
        await send(client, truth, "Failed", key)
        request = {"offset": truth.offsets[key], "group": "readers", "originTopic": "Failed"}
        assert (await client.ask(36, delayLevel=level, **request)).code == 0
        truth.due[key] = lambda unit: (unit.store_timestamp + DELAYS_S[level - 1] * 1000,) * 2
        truth.tries[key] = 1

    await at_once(lambda number=number: send_number(number) for number in range(truth.count))


def later_units(store: StoreSnapshot, truth: Truth) -> dict[str, list[Unit]]:
    """Return the units of each message behind the one that its sender knows."""
    units: dict[str, list[Unit]] = {key: [] for key in truth.offsets}
    for unit in store.units(crc=False):
        key = unit.unique_key if isinstance(unit, Unit) else None
        if isinstance(unit, Unit) and key in units and unit.offset > truth.offsets[key]:
            units[key].append(unit)
    return units


def expected_and_wrong(store: StoreSnapshot, truth: Truth, rows: dict[str, WaitingMessage]) -> tuple[set[str], list]:
    """Return the keys that wait, and the rows whose due time or number of tries is wrong."""
    later = later_units(store, truth)
    expected, wrong = set(), []
    for key, due in truth.due.items():
        unit = store.log.unit_at(truth.offsets[key])
        assert isinstance(unit, Unit)
        if key.startswith("retry-"):  # the broker stored it again in a delay level
            unit, *later[key] = later[key]
        delivered = any(not later_unit.topic.startswith(("SCHEDULE", "rmq_sys")) for later_unit in later[key])
        if key in truth.settled or (delivered and not key.startswith("retry-")):
            continue
        expected.add(key)
        row = rows.get(key)
        if row is None:
            continue
        earliest, latest = due(unit)
        is_due_right = row.due is None if key.startswith("U") or delivered else earliest <= (row.due or 0) <= latest
        if not is_due_right or row.tries != truth.tries.get(key, row.tries):
            wrong.append((key, row, earliest, latest))
    return expected, wrong


@pytest.mark.timeout(900)
def test_all_waiting_messages_of_each_kind_have_the_right_due_time(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Popped messages did not wait as long as no record of a pop had reached a revive topic."""
    truth = Truth(request.config.getoption("--waiting-messages"))

    async def scenario() -> None:
        config = BrokerConfig(broker_name="broker-a")
        async with asking_broker(tmp_path, config) as client:
            for fill in (send_delayed, send_timers, send_halves, pop_some, send_back):
                await fill(client, truth)

    asyncio.run(scenario())
    with open_store(tmp_path) as store:
        waiting = find_waiting(store)
        rows = {row.unique_key or "": row for row in waiting.rows if row.state != "again"}
        expected, wrong = expected_and_wrong(store, truth, rows)
    assert waiting.unknown == {}
    assert wrong == []
    assert rows.keys() - expected == set()
    assert expected - rows.keys() == set()
    assert {row.kind for row in rows.values()} == {"delay", "timer", "half", "pop", "retry"}
    assert waiting.groups.keys() == {"payers", "poppers", "readers"}
    assert not [service.stalled for service in waiting.services if service.stalled]
