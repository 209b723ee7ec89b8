"""Groups of our consumers and Java's; their members are killed (-9) one after another and come back, at a real broker.

The members themselves report their queues and their messages with the time. Every acknowledged message is delivered at
least once, and in an orderly group a queue has one owner at a time. Five rounds, or as ``--fault-rounds`` says.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import real_cluster
from java_members import JavaMember, Member, OurMember
from served_broker import wait_until

from engine.client.messages import Message
from engine.client.producer import Producer, ProducerConfig
from engine.client.routes import MessageQueue

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(3600)]
QUEUES = 8
SETTLES = 240.0
"""A killed member's queues stay locked for a minute, and Java takes its time to start."""


@dataclass
class Group:
    """Members that are alive, and all members that ever were, by name."""

    join: Callable[[int], Member]
    living: dict[int, Member] = field(default_factory=dict)
    ever: list[Member] = field(default_factory=list)
    killed: set[int] = field(default_factory=set)
    """Places among all."""

    def add(self, place: int) -> None:
        self.living[place] = self.join(place)
        self.ever.append(self.living[place])

    def is_shared(self) -> bool:
        """Return True if every queue has one owner, and each member owns some."""
        lists = [item.owned for item in self.living.values()]
        return all(lists) and sorted(itertools.chain(*lists)) == list(range(QUEUES))

    def deliveries(self) -> list[tuple[int, int, int, int]]:
        """Return (ms, member, queue, queue offset) in the order of time, as each member reported them."""
        results = [
            (row["at"], number, row["queueId"], row["queueOffset"])
            for number, item in enumerate(self.ever)
            for row in tuple(item.received)
        ]
        return sorted(results, key=lambda row: row[0])


@contextlib.asynccontextmanager
async def sending(producer: Producer, topic: str, acknowledged: Counter[int]) -> AsyncIterator[None]:
    """Send to all queues in turn; ``acknowledged`` counts by queue."""

    async def send() -> None:
        for number in itertools.count():
            queue = MessageQueue(topic, "broker-a", number % QUEUES)
            result = await producer.send(Message(topic, b"%d" % number, keys=str(number)), queue=queue)
            assert result.queue_offset == acknowledged[queue.queue_id]
            acknowledged[queue.queue_id] += 1
            await asyncio.sleep(0.01)

    task = asyncio.create_task(send())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def runs(deliveries: Sequence[tuple[int, int, int, int]], queue: int) -> list[tuple[int, list[int]]]:
    """Return the members that got a queue's messages, one after another: (member, queue offsets)."""
    turns: list[tuple[int, list[int]]] = []
    for _, member, number, offset in deliveries:
        if number == queue:
            if not turns or turns[-1][0] != member:
                turns.append((member, []))
            turns[-1][1].append(offset)
    return turns


def assert_one_owner_at_a_time(group: Group, deliveries: Sequence[tuple[int, int, int, int]], queue: int) -> None:
    """Assert order; only uncommitted messages of a killed member come again, to the next owner. (Two owners at a time
    would each get messages that the other got.)
    """
    turns = runs(deliveries, queue)
    for _, offsets in turns:
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets))), f"queue {queue}: {offsets}"
    for (previous_member, earlier), (_, later) in itertools.pairwise(turns):
        repeated = earlier[-1] + 1 - later[0]
        assert repeated >= 0, f"queue {queue}: {later[0]} behind {earlier[-1]}"
        assert not repeated or previous_member in group.killed, (
            f"queue {queue}: {repeated} again, and nobody was killed"
        )


@pytest.mark.parametrize("orderly", [False, True], ids=["at once", "in order"])
@pytest.mark.parametrize("release", ["5.3.3", "4.9.7"])
def test_members_of_both_kinds_are_killed_and_come_back(release: str, orderly: bool, request, tmp_path: Path) -> None:
    rounds, chance = request.config.getoption("--fault-rounds"), random.Random(request.config.getoption("--kill-first"))
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    words = ["orderly"] if orderly else []
    acknowledged: Counter[int] = Counter()
    names = itertools.count()

    async def scenario(namesrv: str, broker: str) -> Group:
        def join(place: int) -> Member:
            if place % 2:
                return OurMember(namesrv, "mixed", "Orders", *words)
            return JavaMember(release, namesrv, "mixed", "Orders", tmp_path / f"home{next(names)}", *words)

        group = Group(join)
        async with Producer("senders", namesrv, ProducerConfig(release=release[:3], send_timeout=30.0)) as producer:
            fields = {
                "topic": "Orders",
                "defaultTopic": "TBW102",
                "readQueueNums": QUEUES,
                "writeQueueNums": QUEUES,
                "perm": 6,
                "topicFilterType": "SINGLE_TAG",
                "topicSysFlag": 0,
                "order": False,
            }
            await producer.instance.call(broker, 17, fields, timeout_s=30.0)
            while await producer.instance.fresh_route("Orders") is None:
                await asyncio.sleep(0.05)
            try:
                for place in range(4):
                    group.add(place)
                await wait_until(group.is_shared, SETTLES)
                async with sending(producer, "Orders", acknowledged):
                    for number in range(rounds):
                        acknowledged_before = acknowledged.total()
                        await wait_until(
                            lambda acknowledged_before=acknowledged_before: (
                                acknowledged.total() >= acknowledged_before + 200
                            ),
                            120,
                        )
                        place = 2 * chance.randrange(2) + number % 2
                        group.killed.add(group.ever.index(group.living[place]))
                        await asyncio.to_thread(group.living[place].kill)
                        group.add(place)
                        await wait_until(group.is_shared, SETTLES)
                total = acknowledged.total()
                with contextlib.suppress(TimeoutError):  # what is missing is named below
                    await wait_until(lambda: len({row[2:] for row in group.deliveries()}) >= total, 120)
            finally:
                for member in group.living.values():
                    await asyncio.to_thread(member.stop)
        return group

    with real_cluster.real(tmp_path / "real", *ports, release=release) as cluster:
        group = asyncio.run(scenario(cluster["namesrv"], cluster["broker"]))
    deliveries = group.deliveries()
    times = Counter(row[2:] for row in deliveries)
    expected = {(queue, position) for queue, count in acknowledged.items() for position in range(count)}
    sys.stdout.write(
        f"{release}, {'in order' if orderly else 'at once'}: {len(group.killed)} kills, {len(expected)} acknowledged, "
        f"{len(deliveries)} deliveries, {len(deliveries) - len(times)} of them again\n"
    )
    assert times.keys() >= expected  # one may have been stored when the sender was stopped
    assert len(times) <= len(expected) + 1
    for queue in range(QUEUES) if orderly else ():
        assert_one_owner_at_a_time(group, deliveries, queue)
