"""Rounds in which a group's offsets are moved on a running broker and the group reads on: what comes again or never is
compared, message by message, with what the plan says.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

from engine.client import broker_api
from engine.client.instance import ClientInstance
from engine.client.offset_moves import TO_END, GroupOffsets, OffsetMove
from engine.client.routes import MessageQueue
from engine.remoting.codes import RequestCode
from engine.remoting.subscriptions import Subscription


@dataclass
class OffsetRounds:
    """Rounds of one topic. ``times`` are store times (ms) of its messages, read at the beginning."""

    instance: ClientInstance
    topic: str
    rng: random.Random
    times: list[int] = field(default_factory=list)
    queues: tuple[MessageQueue, ...] = ()
    rounds: int = 0
    predictions: int = 0
    """Queues whose offset was moved and whose messages were compared."""

    async def begin(self) -> None:
        self.offsets = GroupOffsets(self.instance)
        self.queues = await self.offsets.queues(self.topic)
        for queue in self.queues:
            messages = await self.read_on("reader-of-times", queue, await self.ends(queue))
            self.times += [message.store_timestamp for message in messages]

    async def ends(self, queue: MessageQueue) -> int:
        return await broker_api.min_offset(self.instance, queue)

    async def declare(self, group: str) -> None:
        body = json.dumps({"groupName": group, "consumeEnable": True, "retryQueueNums": 1, "retryMaxTimes": 16})
        for broker in {queue.broker for queue in self.queues}:
            code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
            await self.instance.call(self.instance.address(broker), code, {}, body.encode())

    async def read_on(self, group: str, queue: MessageQueue, offset: int) -> list:
        """Read a queue from ``offset`` to its end as a consumer does, which goes where the broker sends it."""
        messages: list = []
        subscription = Subscription.of(queue.topic, "*", 0)
        while True:
            result = await broker_api.pull(self.instance, group, queue, subscription, offset, max_messages=1000)
            messages += result.messages
            offset = result.next_offset
            if result.status in {"NO_NEW_MSG", "NO_MATCHED_MSG"}:
                return messages

    async def round(self) -> None:
        """Give a new group offsets, move them, and let it read on."""
        self.rounds += 1
        group = f"group-{self.rounds}"
        await self.declare(group)
        bounds = {}
        for queue in self.queues:
            bounds[queue] = (
                await broker_api.min_offset(self.instance, queue),
                await broker_api.max_offset(self.instance, queue),
            )
            if self.rng.random() < 0.9:
                await broker_api.commit_offset(self.instance, group, queue, self.place(*bounds[queue]), one_way=False)
        targets, timestamp = await self.targets(bounds)
        plan = await self.offsets.plan(group, targets)
        assert await self.offsets.apply(group, plan, timestamp) == {}
        for move in plan:
            assert move.min_offset == bounds[move.queue][0]
            await self.compare(group, move)
        back = await self.offsets.plan(group, {move.queue: move.old for move in plan if move.old is not None})
        assert await self.offsets.apply(group, back) == {}
        committed = await self.offsets.committed(group, targets)
        for move in back:
            assert committed[move.queue] in {move.new, max(move.new, move.min_offset)}
            await self.compare(group, move)

    def place(self, min_offset: int, max_offset: int) -> int:
        """Return an offset in a queue, sometimes at one of its ends or before its first message."""
        kind = self.rng.random()
        if kind < 0.15:
            return max(min_offset - self.rng.randrange(1, 50), 0)
        return self.rng.choice((min_offset, max_offset)) if kind < 0.3 else self.rng.randint(min_offset, max_offset)

    async def targets(self, bounds: dict[MessageQueue, tuple[int, int]]) -> tuple[dict[MessageQueue, int], int | None]:
        """Return the targets of one of the commands: a time, the end, an offset, another group's offsets."""
        kind = self.rng.choice(("time", "end", "offset", "clone"))
        if kind in {"time", "end"}:
            time = TO_END if kind == "end" else self.rng.choice(self.times) + self.rng.randrange(-3, 4)
            return await self.offsets.at_time(self.queues, time), time
        if kind == "offset":
            queue = self.rng.choice(self.queues)
            return {queue: self.rng.randint(*bounds[queue])}, None
        source = f"source-{self.rounds}"
        await self.declare(source)
        for queue in self.queues:
            await broker_api.commit_offset(self.instance, source, queue, self.place(*bounds[queue]), one_way=False)
        return await self.offsets.committed(source, self.queues), None

    async def compare(self, group: str, move: OffsetMove) -> None:
        """Read on from the group's offset, and compare with the plan which messages that changed."""
        start = await broker_api.query_offset(self.instance, group, move.queue)
        assert start is not None
        came = {message.queue_offset for message in await self.read_on(group, move.queue, start)}
        came -= set(range(move.max_offset, max(came, default=0) + 1))  # delayed messages that came after the plan
        if move.old is None:
            assert came == set(range(max(move.new, move.min_offset), move.max_offset))
            return
        before = set(range(max(move.old, move.min_offset), move.max_offset))
        assert came - before == set(move.again), move
        assert before - came == set(move.never), move
        self.predictions += 1
