"""A consumer that pops: brokers hand messages out one by one, whoever asks, and bring back what nobody acknowledged.

No queue is anybody's own, so a slow consumer holds nobody up and there is nothing to share out (pop page 1, 3).
Brokers of 5.x only. Java: ``DefaultMQPushConsumer`` with ``clientRebalance=false``, and its
``ConsumeMessagePopConcurrentlyService``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from engine.client.consumer import ConsumeContext, ConsumeStatus, Listener, answer_of
from engine.client.consuming import AFTER_ERROR, FROM_FIRST, FROM_LAST, SOON
from engine.client.errors import BrokerRefused, WrongMessage
from engine.client.events import (
    Acknowledged,
    Consumed,
    Delivered,
    EventStream,
    PullAnswered,
    PullPutOff,
    PullSent,
    SentBack,
    now_ms,
)
from engine.client.instance import FAILURES, ClientInstance, ClientPart, spelled
from engine.client.messages import ReceivedMessage, check_topic, read_messages
from engine.client.routes import MASTER, MessageQueue
from engine.codec import pop as codec
from engine.codec import properties as props
from engine.remoting.codes import Answer
from engine.remoting.connection import Connection, not_supported
from engine.remoting.frame import Command
from engine.remoting.subscriptions import TAG, Subscription

POP_MESSAGE, ACK_MESSAGE, CHANGE_MESSAGE_INVISIBLETIME = 200_050, 200_051, 200_053
POP_CK = "POP_CK"
"""The property that a popped message is acknowledged with."""
EVERY_QUEUE = -1
"""``queueId`` of a pop that takes from all queues of a broker."""
BACKOFF = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""Seconds until a message that failed comes again, by how often it came before."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PopResult:
    """The answer to a pop; each message has its handle as the property POP_CK. ``rest`` messages are left."""

    status: str
    messages: list[ReceivedMessage]
    pop_time: int
    rest: int


async def pop(
    instance: ClientInstance,
    group: str,
    broker: str,
    subscription: Subscription,
    *,
    queue_id: int = EVERY_QUEUE,
    most: int = 32,
    invisible: float = 60.0,
    hold: float = 0.0,
    from_first: bool = False,
) -> PopResult:
    """Messages of a topic on one broker, invisible to others for ``invisible`` seconds; the broker may hold the
    question ``hold`` seconds. ``from_first``: where a group begins that has no offset.

    Raises :class:`BrokerRefused`, :class:`NoRoute`, ``OSError``, ``TimeoutError``.
    """
    address = instance.address(broker)
    fields = {
        "consumerGroup": group, "topic": subscription.topic, "queueId": queue_id, "maxMsgNums": most,
        "invisibleTime": int(invisible * 1000), "pollTime": int(hold * 1000), "bornTime": now_ms(),
        "initMode": 0 if from_first else 1, "expType": subscription.kind, "exp": subscription.expression,
        "order": False, "bname": broker,
    }  # fmt: skip
    answer = await instance.ask(address, Command(POP_MESSAGE, spelled(fields)), hold + 10.0)
    if answer.code in (Answer.POLLING_TIMEOUT, Answer.POLLING_FULL, Answer.PULL_NOT_FOUND):
        return PopResult("NO_NEW_MSG" if answer.code != Answer.POLLING_FULL else "POLLING_FULL", [], 0, 0)
    if answer.code != Answer.SUCCESS:
        raise BrokerRefused(answer.code, answer.remark, address)
    told = answer.fields
    messages = read_messages(answer.body, MessageQueue(subscription.topic, broker, queue_id))
    starts = _by_queue(told.get("startOffsetInfo", ""))
    popped, invisible_ms = int(told.get("popTime", 0)), int(told.get("invisibleTime", 0))
    for one in messages:
        _give_handle(one, group, broker, starts, popped, invisible_ms, int(told.get("reviveQid", 0)))
    return PopResult("FOUND", messages, popped, int(told.get("restNum", 0)))


def _by_queue(text: str) -> dict[tuple[str, int], str]:
    """Of one of the three texts (pop page 1.2), the third word by retry mark and queue."""
    found = {}
    for entry in text.split(";"):
        words = entry.split(" ")
        if len(words) == 3 and words[1].isdecimal():
            found[words[0], int(words[1])] = words[2]
    return found


def _give_handle(
    one: ReceivedMessage,
    group: str,
    broker: str,
    starts: Mapping[tuple[str, int], str],
    popped: int,
    invisible: int,
    revive_queue: int,
) -> None:
    """A message of a retry topic brings its handle, all others get theirs from the answer (pop page 1.3)."""
    one.queue = MessageQueue(codec.normal_topic(one.topic, group), broker, one.queue_id)
    if POP_CK not in one.properties:
        mark = codec.mark_of(one.topic)
        start = int(starts.get((mark, one.queue_id), one.queue_offset))
        handle = codec.Handle(start, popped, invisible, revive_queue, mark, broker)
        one.properties[POP_CK] = handle.of_message(one.queue_id, one.queue_offset)
    one.topic = one.queue.topic
    one.properties.setdefault(props.FIRST_POP_TIME, str(popped))


async def _with_handle(
    instance: ClientInstance, code: int, group: str, message: ReceivedMessage, **more: object
) -> tuple[codec.Handle, Command]:
    text = message.properties.get(POP_CK)
    if text is None:
        raise WrongMessage("the message was not popped: it has no property POP_CK")
    handle = codec.Handle.parse(text)
    topic = codec.real_topic(message.queue.topic, group, handle.mark)
    fields = {
        "consumerGroup": group, "topic": topic, "queueId": message.queue_id, "offset": message.queue_offset,
        "extraInfo": text, "bname": handle.broker_name, **more,
    }  # fmt: skip
    return handle, await instance.call(instance.address(handle.broker_name), code, fields)


async def acknowledge(instance: ClientInstance, group: str, message: ReceivedMessage) -> None:
    """200051: a popped message is done with. Too late, or twice, is no error.

    Raises :class:`BrokerRefused`, :class:`WrongMessage`, ``OSError``, ``TimeoutError``.
    """
    await _with_handle(instance, ACK_MESSAGE, group, message)


async def change_invisible(instance: ClientInstance, group: str, message: ReceivedMessage, invisible: float) -> None:
    """200053: a popped message comes again in ``invisible`` seconds from now; it has a new handle then. Raises as
    :func:`acknowledge`.
    """
    handle, answer = await _with_handle(
        instance, CHANGE_MESSAGE_INVISIBLETIME, group, message, invisibleTime=int(invisible * 1000)
    )
    told = answer.fields
    new = codec.Handle(
        message.queue_offset, int(told.get("popTime", 0)), int(told.get("invisibleTime", 0)),
        int(told.get("reviveQid", 0)), handle.mark, handle.broker_name,
    )  # fmt: skip
    message.properties[POP_CK] = new.of_message(message.queue_id, message.queue_offset)


@dataclass(frozen=True, slots=True)
class PopConfig:
    """Settings of a consumer that pops; the defaults are Java's. Times are seconds."""

    start: str = FROM_LAST
    threads: int = 20
    pull_batch: int = 32
    hold: float = 15.0
    invisible: float = 60.0
    """How long a message is nobody else's."""
    most_held: int = 96
    """Messages of a broker that are not acknowledged; beyond them it is not asked."""
    max_reconsume: int = 16
    """A message that came more often is acknowledged unseen."""
    rebalance_interval: float = 20.0
    """How often brokers are looked for anew."""

    def __post_init__(self) -> None:
        if self.start not in (FROM_FIRST, FROM_LAST):
            raise WrongMessage(f"start is {self.start!r}; a pop knows {FROM_FIRST} and {FROM_LAST}")
        if not 1 <= self.pull_batch <= 32:
            raise WrongMessage(f"pull_batch is {self.pull_batch}, expected 1 to 32")
        if not 1 <= self.threads <= 1000:
            raise WrongMessage(f"threads is {self.threads}, expected 1 to 1000")


class PopConsumer(ClientPart):
    """Hands popped messages to ``listener``, as :class:`engine.client.consumer.Consumer` does with pulled ones: what it
    is done with is acknowledged, what failed comes again, later each time. ``async with``, or :meth:`start` and
    :meth:`stop`.
    """

    def __init__(
        self,
        group: str,
        listener: Listener,
        namesrv: str = "",
        config: PopConfig | None = None,
        *,
        instance: ClientInstance | None = None,
        events: EventStream | None = None,
        executor: Executor | None = None,
    ) -> None:
        super().__init__(group, namesrv, instance, events)
        self.config = config or PopConfig()
        self.subscriptions: dict[str, Subscription] = {}
        self._listener = listener
        self._executor = executor
        self._ready: asyncio.Queue[ReceivedMessage] = asyncio.Queue()
        self._open: dict[tuple[str, str], int] = {}
        """Messages that are not acknowledged, by topic and broker."""
        self._pops: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._loops: list[asyncio.Task[None]] = []

    def subscribe(self, topic: str, expression: str = "*", kind: str = TAG) -> None:
        """Consume a topic. Raises :class:`WrongMessage`; a consumer that runs cannot be told more."""
        if self._running:
            raise WrongMessage("a consumer that pops is told its topics before it starts")
        check_topic(topic)
        self.subscriptions[topic] = Subscription.of(topic, expression, now_ms(), kind)

    async def start(self) -> None:
        """Be known to brokers, and begin to pop. Raises :class:`ClientError`."""
        await self.instance.join(self)
        try:
            await asyncio.gather(*(self.instance.fresh_route(topic) for topic in self.subscriptions))
        except BaseException:
            await self.instance.leave(self)
            raise
        await self.instance.heartbeat()
        self._running = True
        self._began()
        await self._look_for_brokers()
        self._loops = [asyncio.create_task(self._work()) for _ in range(self.config.threads)]
        every = self.instance.every(self.config.rebalance_interval, self._look_for_brokers)
        self._loops.append(asyncio.create_task(every))

    async def stop(self) -> None:
        """Pop no more, and say goodbye; what is not acknowledged comes again, to anybody."""
        if self._running:
            await self._halt()
            await self.instance.leave(self)
            self._ended(said_goodbye=True)

    async def kill(self) -> None:
        """End without a word, with all parts of this client."""
        await self._halt()
        await self.instance.kill()
        self._ended(said_goodbye=False)

    async def _halt(self) -> None:
        self._running = False
        ending = [*self._loops, *self._pops.values()]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._loops.clear()
        self._pops.clear()

    def topics(self) -> Collection[str]:
        """Topics that are popped."""
        return tuple(self.subscriptions)

    def heartbeat(self) -> Mapping[str, Any]:
        """Its line of a heartbeat."""
        return {
            "consumeFromWhere": self.config.start, "consumeType": "CONSUME_PASSIVELY", "groupName": self.group,
            "messageModel": "CLUSTERING", "unitMode": False,
            "subscriptionDataSet": [one.record() for one in self.subscriptions.values()],
        }  # fmt: skip

    def asked(self, request: Command, _connection: Connection, /) -> Command | Coroutine[Any, Any, Command] | None:
        """Nothing is answered: who else pops is of no interest."""
        return None if request.is_one_way else not_supported(request)

    async def _look_for_brokers(self) -> None:
        for topic in self.subscriptions:
            route = await self.instance.fresh_route(topic)
            for broker in _masters(route.brokers if route else {}):
                task = self._pops.get((topic, broker))
                if task is None or task.done():
                    self._pops[topic, broker] = asyncio.create_task(self._read(topic, broker))

    async def _read(self, topic: str, broker: str) -> None:
        """Pop one broker's messages again and again."""
        config, place, put_off = self.config, (topic, broker), ""
        queue = MessageQueue(topic, broker, EVERY_QUEUE)
        while True:
            count = self._open.get(place, 0)
            reason = "paused" if self.pace.paused else ""
            if count > config.most_held:
                reason = f"{count:,} messages are not acknowledged, more than {config.most_held:,}"
            if reason and reason != put_off and self.events.wanted:
                self.events.emit(PullPutOff(now_ms(), self.client_id, self.group, queue, reason))
            put_off = reason
            if reason:
                await asyncio.sleep(SOON)
                continue
            begun = now_ms()
            if self.events.wanted:
                self.events.emit(PullSent(begun, self.client_id, self.group, queue, -1))
            try:
                result = await pop(
                    self.instance, self.group, broker, self.subscriptions[topic], most=config.pull_batch,
                    invisible=config.invisible, hold=config.hold, from_first=config.start == FROM_FIRST,
                )  # fmt: skip
            except FAILURES as error:
                _log.warning("pop of %s on %s: %s", topic, broker, str(error) or "no answer")
                await asyncio.sleep(AFTER_ERROR)
                continue
            if self.events.wanted:
                now, many = now_ms(), len(result.messages)
                self.events.emit(
                    PullAnswered(now, self.client_id, self.group, queue, result.status, many, -1, -1, now - begun)
                )
            if result.status == "POLLING_FULL":
                await asyncio.sleep(AFTER_ERROR)
            self._open[place] = self._open.get(place, 0) + len(result.messages)
            for one in result.messages:
                self._ready.put_nowait(one)

    async def _work(self) -> None:
        while True:
            message = await self._ready.get()
            try:
                await self._consume(message)
            except FAILURES as error:
                _log.warning("%s: %s", message.msg_id, str(error) or "no answer")
            finally:
                place = (message.queue.topic, message.queue.broker)
                self._open[place] = self._open.get(place, 1) - 1

    async def _consume(self, message: ReceivedMessage) -> None:
        subscription = self.subscriptions[message.queue.topic]
        if subscription.kind == TAG and subscription.tags and message.tags not in subscription.tags:
            await self._acknowledge(message)
            return
        if self.pace.delay:
            await asyncio.sleep(self.pace.delay)
        if now_ms() >= codec.Handle.parse(message.properties[POP_CK]).due:
            return  # somebody else gets it
        if message.reconsume_times > self.config.max_reconsume:
            await self._acknowledge(message)
            return
        begun = now_ms()
        queue, at = message.queue, message.queue_offset
        if self.events.wanted:
            self.events.emit(
                Delivered(
                    begun, self.client_id, self.group, queue, at, message.msg_id, message.keys,
                    message.reconsume_times, message.store_timestamp,
                )
            )  # fmt: skip
        context = ConsumeContext(queue)
        status, _ = await answer_of(self._listener, self._executor, [message], context, self.group)
        if self.events.wanted:
            now = now_ms()
            self.events.emit(Consumed(now, self.client_id, self.group, queue, at, 1, status.value, now - begun))
        if now_ms() >= codec.Handle.parse(message.properties[POP_CK]).due:
            return
        if status is ConsumeStatus.SUCCESS:
            await self._acknowledge(message)
        else:
            await self._again_later(message, context.delay_level)

    async def _acknowledge(self, message: ReceivedMessage) -> None:
        await acknowledge(self.instance, self.group, message)
        if self.events.wanted:
            self.events.emit(
                Acknowledged(
                    now_ms(), self.client_id, self.group, message.queue, message.queue_offset, message.msg_id
                )
            )  # fmt: skip

    async def _again_later(self, message: ReceivedMessage, level: int) -> None:
        step = level - 1 if level > 0 else message.reconsume_times
        await change_invisible(self.instance, self.group, message, BACKOFF[min(step, len(BACKOFF) - 1)])
        if self.events.wanted:
            self.events.emit(
                SentBack(
                    now_ms(), self.client_id, self.group, message.queue, message.queue_offset, message.msg_id,
                    message.reconsume_times, by_broker=True,
                )
            )  # fmt: skip


def _masters(brokers: Mapping[str, Mapping[int, str]]) -> Iterable[str]:
    return sorted(name for name, addresses in brokers.items() if MASTER in addresses)
