"""Move a group's offsets on running brokers: what each move means for its messages, and the move itself.

A plan reads offsets from the brokers and changes nothing. The offsets that it names are then set as they are, queue by
queue: a broker that resolved a time again could come to others. See docs/protocol/broker.md#offsets and #admin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.client import broker_api
from engine.client.errors import AnswerNotUnderstood, BrokerRefused, ClientError, NoRoute
from engine.client.instance import ClientInstance
from engine.client.routes import MASTER, READ, MessageQueue
from engine.codec.config_tables import consumer_offsets
from engine.codec.json_dialect import ObjectKey, parse
from engine.errors import UsageError
from engine.remoting.answers import json_object, member_object, reading
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.frame import Command
from engine.sentences import sentence

TO_END = -1
"""The time that stands for the end of each queue, as mqadmin writes it."""
_SERVER_SIDE = "useServerSideResetOffset"
"""A key that brokers of 5.x have."""
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class OffsetMove:
    """A group's offset in one queue before and after. ``old`` is None if the group has none."""

    queue: MessageQueue
    old: int | None
    new: int
    min_offset: int
    max_offset: int

    @property
    def again(self) -> range:
        """The offsets of the messages that come again."""
        if self.old is None or self.new >= self.old:
            return range(0)
        return range(max(self.new, self.min_offset), max(min(self.old, self.max_offset), self.new, self.min_offset))

    @property
    def never(self) -> range:
        """The offsets of the messages that never come."""
        if self.old is None or self.new <= self.old:
            return range(0)
        return range(max(self.old, self.min_offset), max(min(self.new, self.max_offset), self.old, self.min_offset))

    @property
    def changes(self) -> bool:
        return self.old != self.new


class GroupOffsets:
    """Reads and sets offsets of groups at the masters of a topic.

    All calls raise :class:`ClientError`, ``OSError`` or ``TimeoutError``.
    """

    def __init__(self, instance: ClientInstance) -> None:
        self._instance = instance

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the readable queues of a topic, in order. Raises :class:`NoRoute` if there are none."""
        route = await self._instance.fresh_route(topic)
        if route is None or not route.queues:
            raise NoRoute(sentence("no broker serves the topic {topic}", topic=topic))
        if route.leaders:
            raise NoRoute(sentence("{topic} is a static topic, whose offsets are not moved here", topic=topic))
        return tuple(
            MessageQueue(topic, data.broker, number)
            for data in sorted(route.queues, key=lambda data: data.broker)
            if data.permission & READ and MASTER in route.brokers.get(data.broker, {})
            for number in range(data.read)
        )

    async def committed(self, group: str, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        """Return the offset that the group reads next in each queue; a queue without one is left out."""
        wanted = set(queues)
        offsets: dict[MessageQueue, int] = {}
        for broker in sorted({queue.broker for queue in wanted}):
            address = self._instance.address(broker)
            code = RequestCode.GET_ALL_CONSUMER_OFFSET
            answer = await self._instance.call(address, code, {}, timeout_s=_TIMEOUT_S)
            with reading(code, address, AnswerNotUnderstood):
                for row in consumer_offsets(json_object(answer.body)).rows:
                    if row.group == group and row.mode != "broadcast":
                        offsets |= {MessageQueue(row.topic, broker, number): at for number, at in row.offsets.items()}
        return {queue: offset for queue, offset in offsets.items() if queue in wanted and offset >= 0}

    async def offsets_to_clone(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """Return the offsets of a group in the queues of a topic. Raises :class:`UsageError` if it has none."""
        offsets = await self.committed(group, await self.queues(topic))
        if not offsets:
            raise UsageError(sentence("group {group} has no offset in topic {topic}", group=group, topic=topic))
        return offsets

    async def members(self, group: str, queues: Iterable[MessageQueue]) -> list[str]:
        """Return the ids of the group's connected consumers."""
        members: set[str] = set()
        for broker in {queue.broker for queue in queues}:
            request = Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
            address = self._instance.address(broker)
            answer = await self._instance.ask(address, request)
            if answer.code == ResponseCode.SUCCESS:
                with reading(RequestCode.GET_CONSUMER_LIST_BY_GROUP, address, AnswerNotUnderstood):
                    members |= {str(name) for name in json_object(answer.body).get("consumerIdList") or ()}
        return sorted(members)

    async def plan(self, group: str, targets: Mapping[MessageQueue, int]) -> list[OffsetMove]:
        """Return the moves of a group to ``targets``, in order of the queues."""
        old_offsets = await self.committed(group, targets)
        return [
            OffsetMove(
                queue,
                old_offsets.get(queue),
                targets[queue],
                await broker_api.min_offset(self._instance, queue),
                await broker_api.max_offset(self._instance, queue),
            )
            for queue in sorted(targets)
        ]

    async def at_time(self, queues: Iterable[MessageQueue], timestamp: int) -> dict[MessageQueue, int]:
        """Return the offset of each queue at a store time (ms), or its end for :data:`TO_END`."""
        targets = {}
        for queue in queues:
            if timestamp == TO_END:
                targets[queue] = await broker_api.max_offset(self._instance, queue)
            else:
                targets[queue] = max(await broker_api.search_offset(self._instance, queue, timestamp), 0)
        return targets

    async def apply(
        self, group: str, moves: Sequence[OffsetMove], timestamp: int | None = None
    ) -> dict[MessageQueue, str]:
        """Set the new offsets, and return why those that were not set were not.

        A broker of 5.x sets them also for connected consumers, which get them with their next pull. Others commit
        them, which connected consumers would overwrite. They are told only of a ``timestamp``, from which ``moves``
        were planned for all queues; without it nothing is set. Raises :class:`ClientError`.
        """
        changing = [move for move in moves if move.changes]
        ways = {broker: await self._sets_for_members(broker) for broker in {move.queue.broker for move in changing}}
        unable = sorted(broker for broker, sets in ways.items() if not sets)
        if unable:
            members = await self.members(group, [move.queue for move in changing if move.queue.broker in unable])
            if members and timestamp is not None:
                return await self._reset_members(group, moves, timestamp)
            if members:
                raise ClientError(
                    sentence(
                        "{broker} cannot set single offsets while consumers of {group} are connected, here {members}: "
                        "end them first",
                        broker=", ".join(unable),
                        group=group,
                        members=", ".join(members),
                    )
                )
        failures: dict[MessageQueue, str] = {}
        for move in changing:
            try:
                await self._set(group, move, resets=ways[move.queue.broker])
            except (ClientError, OSError, TimeoutError) as error:
                failures[move.queue] = str(error) or type(error).__name__
        return failures

    async def _reset_members(self, group: str, moves: Sequence[OffsetMove], timestamp: int) -> dict[MessageQueue, str]:
        """Let the brokers of the topic find the offsets at a time and send them to the group's consumers (4.9)."""
        failures: dict[MessageQueue, str] = {}
        code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        fields = {"topic": moves[0].queue.topic, "group": group, "timestamp": timestamp, "isForce": True}
        for broker in sorted({move.queue.broker for move in moves}):
            rows = [move for move in moves if move.queue.broker == broker]
            address = self._instance.address(broker)
            try:
                answer = await self._instance.call(address, code, fields, timeout_s=_TIMEOUT_S)
                with reading(code, address, AnswerNotUnderstood):
                    offsets = _offsets_by_queue(answer)
            except (ClientError, OSError, TimeoutError) as error:
                failures |= {move.queue: str(error) or type(error).__name__ for move in rows}
                continue
            for move in rows:
                offset = offsets.get(move.queue.queue_id)
                if offset != move.new:
                    failures[move.queue] = sentence("the broker set the offset {offset}", offset=offset)
        return failures

    async def _sets_for_members(self, broker: str) -> bool:
        """Return True if a broker keeps a reset for the group's next pull (5.x, unless it is switched off)."""
        address = self._instance.address(broker)
        code = RequestCode.GET_BROKER_CONFIG
        answer = await self._instance.call(address, code, {}, timeout_s=_TIMEOUT_S)
        lines = bytes(answer.body).decode("utf-8", "replace").splitlines()
        values = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
        return values.get(_SERVER_SIDE) == "true"

    async def _set(self, group: str, move: OffsetMove, *, resets: bool) -> None:
        queue, address = move.queue, self._instance.address(move.queue.broker)
        if not resets:
            await broker_api.commit_offset(self._instance, group, queue, move.new, one_way=False)
            return
        code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        fields = {
            "topic": queue.topic,
            "group": group,
            "timestamp": TO_END,
            "isForce": True,
            "queueId": queue.queue_id,
            "offset": max(move.new, move.min_offset),
        }
        answer = await self._instance.call(address, code, fields, timeout_s=_TIMEOUT_S)
        with reading(code, address, AnswerNotUnderstood):
            offset = _offsets_by_queue(answer).get(queue.queue_id)
        if offset != fields["offset"]:
            raise BrokerRefused(answer.code, sentence("the broker set the offset {offset}", offset=offset), address)


def _offsets_by_queue(answer: Command) -> dict[int, int]:
    """Return the offsets in a broker's answer to a reset, by queue id."""
    offsets = {}
    for key, offset in member_object(json_object(answer.body), "offsetTable").items():
        row = key.value if isinstance(key, ObjectKey) else parse(str(key).encode()).value
        offsets[int(row["queueId"])] = int(offset)
    return offsets
