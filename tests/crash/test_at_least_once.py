"""Clients send and consume while their broker is killed (-9), restarted, cut off, half closed, its disk slow, full and
nearly full: every acknowledged message is stored and delivered at least once, orderly queues stay in order, and each
double has its reason. Five rounds, unless ``--fault-rounds`` sets more.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from pathlib import Path

import pytest
from delivery_account import Account, QueueReading, body_of, number_of, settle
from fault_rounds import (
    BATCH,
    BATCHED,
    GROUPS,
    OWN_LOCKS_MS,
    QUEUES,
    RENEWAL,
    TOPIC,
    campaign,
    ends_of,
    make_topic,
    units_of,
)

from engine.cli.main import main
from engine.client import consuming, process_queue
from engine.client.consumer import Consumer
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.errors import BrokerRefused, ClientError
from engine.client.events import Event, EventStream, QueueAcquired
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.routes import MessageQueue

pytestmark = pytest.mark.timeout(7200)


class OurClients:
    """Senders and consumers of ours, all in this process (:class:`fault_rounds.Clients`)."""

    def __init__(self, account: Account, namesrv: str) -> None:
        self.account, self._namesrv = account, namesrv
        self._producer = Producer("senders", namesrv)
        self._consumers: dict[str, list[Consumer]] = {group: [] for group in GROUPS}
        self._senders: list[asyncio.Task[None]] = []
        self._sending = True
        self.behind, self.tails = [0] * QUEUES, [0] * QUEUES

    async def start(self, broker: str) -> None:
        await self._producer.start()
        await make_topic(self._producer.instance, broker)
        for group in GROUPS:
            for _ in range(2):
                await self._join(group)
        self._senders = [asyncio.create_task(self._send(queue)) for queue in range(QUEUES)]

    async def replace(self, group: str, chance: random.Random) -> None:
        consumers = self._consumers[group]
        await consumers.pop(chance.randrange(len(consumers))).kill()
        await self._join(group)

    async def _join(self, group: str) -> None:
        readings: dict[int, QueueReading] = {}
        events = EventStream()

        def saw(event: Event) -> None:
            if isinstance(event, QueueAcquired) and event.queue.topic == TOPIC:
                readings[event.queue.queue_id] = self.account.take(group, event.queue.queue_id, event.offset)

        def listen(messages, context) -> None:
            for message in messages:
                queue = message.queue.queue_id
                self.account.deliver(group, readings[queue], queue, message.queue_offset, number_of(message.body))

        events.subscribe(saw)
        if self._consumers[group]:
            self.account.note("a consumer that joined")
        config = ConsumerConfig(
            start=FROM_FIRST, orderly=GROUPS[group], rebalance_interval=1.0, commit_interval=0.5, hold=2.0
        )
        consumer = Consumer(group, listen, self._namesrv, config, events=events)
        consumer.subscribe(TOPIC)
        await consumer.start()
        self._consumers[group].append(consumer)

    async def _send(self, queue: int) -> None:
        size = BATCH if queue == BATCHED else 1
        for first_number in itertools.count(0, size):
            if not self._sending:
                return
            numbers = [(queue, number) for number in range(first_number, first_number + size)]
            await self._send_until_acknowledged(queue, numbers, [Message(TOPIC, body_of(*item)) for item in numbers])
            self.behind[queue] = first_number + size
            await asyncio.sleep(0.005)

    async def _send_until_acknowledged(
        self, queue: int, numbers: list[tuple[int, int]], messages: list[Message]
    ) -> None:
        account, message_or_batch = self.account, messages if queue == BATCHED else messages[0]
        while True:
            try:
                result = await self._producer.send(
                    message_or_batch, queue=MessageQueue(TOPIC, "broker-a", queue), timeout_s=2.0
                )
            except BrokerRefused as error:
                account.refused[error.code, error.remark] += 1
            except (ClientError, OSError, TimeoutError) as error:
                if not isinstance(error.__cause__, ConnectionRefusedError):
                    account.miss(numbers)
            else:
                account.acknowledge(numbers, result.status)
                self.tails[queue] = max(self.tails[queue], result.queue_offset + len(numbers))
                return
            await asyncio.sleep(0.02)

    async def end_sending(self) -> None:
        self._sending = False
        await asyncio.gather(*self._senders)

    async def ends(self) -> list[int]:
        return await ends_of(self._producer.instance)

    async def stop(self) -> None:
        for task in self._senders:
            task.cancel()
        await asyncio.gather(*self._senders, return_exceptions=True)
        for consumers in self._consumers.values():
            for consumer in consumers:
                await consumer.stop()
        await self._producer.stop()


def test_acknowledged_messages_are_stored_and_delivered_at_least_once(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consuming, "LOCK_RENEWAL", RENEWAL)
    monkeypatch.setattr(process_queue, "LOCK_LIVES", OWN_LOCKS_MS)
    rounds, seed = request.config.getoption("--fault-rounds"), request.config.getoption("--kill-first")
    account, life = asyncio.run(campaign(tmp_path, rounds, seed, OurClients))
    in_order = [group for group, orderly in GROUPS.items() if orderly]
    report = settle(account, units_of(life.store), in_order, [BATCHED])
    capsys.readouterr()
    with capsys.disabled():
        sys.stdout.write(f"\n{rounds} rounds: {report.line()}\n")
    assert {code for code, _ in account.refused} <= {1, 14}
    assert report.copies.total() > 0
    assert main(["check", str(life.store)]) == 0, capsys.readouterr().out
    assert "Traceback" not in life.output
