"""A consumer that pops: brokers hand messages out one by one, whoever asks, and bring back what nobody acknowledged.

No queue is anybody's own, so a slow consumer holds nobody up (docs/protocol/pop.md, #consumer). Which queues a member
pops it decides itself (all of them), or a broker does. In order, a broker hands a queue's next messages out when what
it handed out before is done with, whoever asks (docs/protocol/pop.md#orderly). What is asked stands in
:mod:`engine.client.pop_questions`. Brokers of 5.x only. Java: ``DefaultMQPushConsumer`` with ``clientRebalance=false``,
its ``ConsumeMessagePopConcurrentlyService``, and ``RebalanceImpl.getRebalanceResultFromBroker``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
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
    Rebalanced,
    SentBack,
    now_ms,
)
from engine.client.instance import FAILURES, NOTIFY_CONSUMER_IDS_CHANGED, ClientInstance, ClientPart
from engine.client.messages import ReceivedMessage, check_topic
from engine.client.pop_questions import (
    EVERY_QUEUE,
    POP,
    POP_CK,
    acknowledge,
    change_invisible,
    masters,
    pop,
    query_assignment,
    set_request_mode,
)
from engine.client.routes import MessageQueue, queue_order
from engine.codec import pop as codec
from engine.errors import cause_of
from engine.remoting.connection import Connection, not_supported
from engine.remoting.frame import Command
from engine.remoting.subscriptions import TAG, Subscription

BACKOFF = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""Seconds until a message that failed comes again, by how often it came before."""
_SAID_NOTHING = 1.0
"""Seconds until a broker is asked again that could not say which queues are whose."""
_AHEAD, _RENEWED_FOR = 10.0, 3 * 3600.0
"""Seconds before its end at which the time of messages in order is renewed, and for how long that goes on. Java, of its
proxy: ``renewAheadTimeMillis``, ``renewMaxTimeMillis``.
"""
_log = logging.getLogger(__name__)


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
    """A message that came more often is acknowledged unseen; in order it comes as long as it fails."""
    rebalance_interval: float = 20.0
    """How often brokers are looked for anew."""
    orderly: bool = False
    """Each queue's messages one after the other, whoever of the group gets them: the next come when all that came are
    acknowledged. What waits here or is worked at stays nobody else's for three hours at most: its ``invisible`` time is
    renewed before it is over, as RocketMQ's proxy does for its consumers (``DefaultReceiptHandleManager``; a Java
    client of 5.3 that consumes in order never pops). Where a member is killed it runs out.
    """
    suspend: float = 1.0
    """Orderly: how long a queue rests before a message that failed comes again, with what is behind it."""
    shared_by_broker: bool = False
    """Ask a broker which queues to pop (Java: ``clientRebalance=false``), instead of popping all. Topics that the group
    is not set to pop (:func:`set_request_mode`) are left alone then.
    """
    strategy: str = "AVG"
    """By which a broker shares out: AVG or AVG_BY_CIRCLE."""

    def __post_init__(self) -> None:
        if self.start not in (FROM_FIRST, FROM_LAST):
            raise WrongMessage(f"start is {self.start!r}; a pop knows {FROM_FIRST} and {FROM_LAST}")
        if not 1 <= self.pull_batch <= 32:
            raise WrongMessage(f"pull_batch is {self.pull_batch}, expected 1 to 32")
        if not 1 <= self.threads <= 1000:
            raise WrongMessage(f"threads is {self.threads}, expected 1 to 1000")
        if self.strategy not in ("AVG", "AVG_BY_CIRCLE"):
            raise WrongMessage(f"strategy is {self.strategy!r}; brokers know AVG and AVG_BY_CIRCLE")


@dataclass(eq=False, slots=True)
class _Batch:
    """What is handed to a worker: a message, or in order what one pop got of one queue."""

    left: list[ReceivedMessage]
    """Those that are not done with, in order."""
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a broker is asked to change their time: what comes again soon must not be renewed behind that."""
    renewing: asyncio.Task[None] | None = None


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
        self._ready: asyncio.Queue[_Batch] = asyncio.Queue()
        """What is to be consumed."""
        self._renewing: set[asyncio.Task[None]] = set()
        self._open: dict[tuple[str, str], int] = {}
        """Messages that are not acknowledged, by topic and broker."""
        self._in_turn: dict[MessageQueue, asyncio.Lock] = {}
        self._mine: set[MessageQueue] = set()
        self._pops: dict[MessageQueue, asyncio.Task[None]] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._news = asyncio.Event()

    @property
    def popped_queues(self) -> tuple[MessageQueue, ...]:
        """What is popped now; a queue id of −1 stands for every queue of that broker."""
        return tuple(sorted(self._mine, key=queue_order))

    def subscribe(self, topic: str, expression: str = "*", kind: str = TAG) -> None:
        """Consume a topic. Raises :class:`WrongMessage`; a consumer that runs cannot be told more."""
        if self._running:
            raise WrongMessage("a consumer that pops is told its topics before it starts")
        check_topic(topic)
        self.subscriptions[topic] = Subscription.of(topic, expression, now_ms(), kind)

    async def start(self) -> None:
        """Be known to brokers, and begin to pop. Raises :class:`ClientError`; among them :class:`BrokerRefused` where
        queues are to be shared out by a broker of 4.9, which does not.
        """
        await self.instance.join(self)
        try:
            await asyncio.gather(*(self.instance.fresh_route(topic) for topic in self.subscriptions))
        except BaseException:
            await self.instance.leave(self)
            raise
        await self.instance.heartbeat()
        self._running = True
        self._began()
        try:
            said = await self._look()
        except BrokerRefused:
            await self.stop()
            raise
        self._loops = [asyncio.create_task(self._work()) for _ in range(self.config.threads)]
        self._loops.append(asyncio.create_task(self._look_again(said=said)))

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
        ending = [*self._loops, *self._pops.values(), *self._renewing]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._loops.clear()
        self._pops.clear()
        self._mine.clear()

    def topics(self) -> Collection[str]:
        """Topics that are popped."""
        return tuple(self.subscriptions)

    def heartbeat(self) -> Mapping[str, Any]:
        """Its line of a heartbeat."""
        return {
            "consumeFromWhere": self.config.start,
            "consumeType": "CONSUME_PASSIVELY",
            "groupName": self.group,
            "messageModel": "CLUSTERING",
            "unitMode": False,
            "subscriptionDataSet": [one.record() for one in self.subscriptions.values()],
        }

    def asked(self, request: Command, _connection: Connection, /) -> Command | Coroutine[Any, Any, Command] | None:
        """40: members came or went, so a broker shares out anew; nothing else is answered."""
        if request.code == NOTIFY_CONSUMER_IDS_CHANGED:
            if self.config.shared_by_broker:
                self._news.set()
            return None
        return None if request.is_one_way else not_supported(request)

    # Which queues

    async def set_request_mode(self, topic: str, mode: str, *, share_queues: int = 0) -> None:
        """:func:`set_request_mode` for this group; this member goes by it at once, others when they look next."""
        await set_request_mode(self.instance, self.group, topic, mode, share_queues=share_queues)
        self._news.set()

    async def _look_again(self, *, said: bool) -> None:
        """As often as the settings say, and when members come or go where a broker shares out."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.config.rebalance_interval if said else _SAID_NOTHING):
                    await self._news.wait()
            self._news.clear()
            try:
                said = await self._look()
            except FAILURES as error:
                said = False
                _log.warning("queues of %s: %s", self.group, cause_of(error))

    async def _look(self) -> bool:
        """Pop what is this member's; False where somebody could not say what that is. What it has it keeps then."""
        said = True
        for topic in self.subscriptions:
            wanted, left = await self._wanted(topic)
            if wanted is None:
                said = False
            else:
                self._take(topic, wanted, left)
        return said

    async def _wanted(self, topic: str) -> tuple[set[MessageQueue] | None, set[MessageQueue]]:
        """What to pop of a topic, and what a broker would have pulled."""
        if not self.config.shared_by_broker:
            route = await self.instance.fresh_route(topic)
            brokers = masters(route.brokers) if route is not None else ()
            return {MessageQueue(topic, one, EVERY_QUEUE) for one in brokers}, set()
        try:
            told = await query_assignment(self.instance, self.group, topic, strategy=self.config.strategy)
        except BrokerRefused:
            raise
        except FAILURES as error:
            _log.warning("queues of %s for %s: %s", topic, self.group, cause_of(error))
            return None, set()
        if told is None:
            return None, set()
        by_mode: dict[bool, set[MessageQueue]] = {True: set(), False: set()}
        for one in told:
            by_mode[one.mode == POP].add(one.queue)
        return by_mode[True], by_mode[False]

    def _take(self, topic: str, wanted: set[MessageQueue], left: set[MessageQueue]) -> None:
        before = {one for one in self._mine if one.topic == topic}
        self._mine = self._mine - before | wanted
        for queue in wanted:
            task = self._pops.get(queue)
            if task is None or task.done():
                self._pops[queue] = asyncio.create_task(self._read(queue))
        if left and not wanted:
            _log.warning("brokers would have %s pull %s, so it is not popped", self.group, topic)
        if wanted != before and self.events.wanted:
            owned, taken, given_up, refused = (
                tuple(sorted(queues, key=queue_order)) for queues in (wanted, wanted - before, before - wanted, left)
            )
            self.events.emit(
                Rebalanced(
                    now_ms(),
                    self.client_id,
                    self.group,
                    topic,
                    owned,
                    (),
                    owned,
                    taken,
                    given_up,
                    refused,
                    "shared out by a broker" if self.config.shared_by_broker else "",
                )
            )

    # Popping

    async def _read(self, queue: MessageQueue) -> None:
        """Pop as long as it is this member's. A pop that a broker holds is not taken back, for what it gives would be
        nobody's until its invisible time is over: so this ends behind it.
        """
        config, put_off = self.config, ""
        topic, broker, _ = queue
        place = topic, broker
        attempt: str | None = None
        while queue in self._mine:
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
            if config.orderly and attempt is None:
                attempt = str(uuid.uuid4())
            try:
                result = await pop(
                    self.instance,
                    self.group,
                    broker,
                    self.subscriptions[topic],
                    queue_id=queue.queue_id,
                    most=config.pull_batch,
                    invisible=config.invisible,
                    hold=config.hold,
                    from_first=config.start == FROM_FIRST,
                    orderly=config.orderly,
                    attempt=attempt,
                )
            except FAILURES as error:
                _log.warning("pop of %s on %s: %s", topic, broker, cause_of(error))
                await asyncio.sleep(AFTER_ERROR)
                continue
            attempt = None
            if self.events.wanted:
                now, many = now_ms(), len(result.messages)
                self.events.emit(
                    PullAnswered(now, self.client_id, self.group, queue, result.status, many, -1, -1, now - begun)
                )
            if result.status == "POLLING_FULL":
                await asyncio.sleep(AFTER_ERROR)
            self._open[place] = self._open.get(place, 0) + len(result.messages)
            for some in _by_their_queue(result.messages) if config.orderly else [[one] for one in result.messages]:
                batch = _Batch(some)
                if config.orderly:
                    batch.renewing = asyncio.create_task(self._renew(batch))
                    self._renewing.add(batch.renewing)
                    batch.renewing.add_done_callback(self._renewing.discard)
                self._ready.put_nowait(batch)

    # Consuming

    async def _work(self) -> None:
        while True:
            batch = await self._ready.get()
            first, count = batch.left[0], len(batch.left)
            try:
                if self.config.orderly:
                    async with self._in_turn.setdefault(first.queue, asyncio.Lock()):
                        await self._consume_in_order(batch)
                else:
                    await self._consume(first)
            except FAILURES as error:
                _log.warning("%s: %s", first.msg_id, cause_of(error))
            finally:
                place = (first.queue.topic, first.queue.broker)
                self._open[place] = self._open.get(place, count) - count
                if batch.renewing is not None:
                    batch.renewing.cancel()

    async def _renew(self, batch: _Batch) -> None:
        """Keep a batch from others while it waits or is worked at."""
        ahead = min(_AHEAD, self.config.invisible / 2)
        end = time.monotonic() + _RENEWED_FOR
        while time.monotonic() < end:
            await asyncio.sleep(ahead / 2)
            async with batch.changing:
                for message in batch.left[:]:
                    if _is_due(message):
                        return  # it may be somebody else's by now
                    if _is_due(message, ahead):
                        try:
                            await change_invisible(self.instance, self.group, message, self.config.invisible)
                        except FAILURES as error:
                            _log.warning("%s: %s", message.msg_id, cause_of(error))

    async def _consume_in_order(self, batch: _Batch) -> None:
        """One after the other, up to the first that fails: that one and what is behind it come again together, and
        first. Nothing is begun that others may have by now.
        """
        while batch.left:
            message = batch.left[0]
            if self.pace.delay:
                await asyncio.sleep(self.pace.delay)
            if _is_due(message):
                return
            context, status = ConsumeContext(message.queue), ConsumeStatus.SUCCESS
            if not self._is_passed_over(message):
                status = await self._listened(message, context)
            if _is_due(message):
                return
            if status is not ConsumeStatus.SUCCESS:
                rest = self.config.suspend if context.suspend is None else context.suspend
                async with batch.changing:
                    again, batch.left = batch.left, []
                    for one in reversed(again):
                        await change_invisible(self.instance, self.group, one, rest)
                self._saw_sent_back(message)
                return
            if not await self._acknowledged_in_time(message):
                return
            del batch.left[0]

    async def _acknowledged_in_time(self, message: ReceivedMessage) -> bool:
        """What is not acknowledged comes again, with what is behind it: so nothing more is consumed before it is."""
        while not _is_due(message):
            try:
                await self._acknowledge(message)
            except BrokerRefused:
                raise
            except FAILURES as error:
                _log.warning("%s: %s", message.msg_id, cause_of(error))
                await asyncio.sleep(SOON)
            else:
                return True
        return False

    def _is_passed_over(self, message: ReceivedMessage) -> bool:
        """Whether it has a tag that nobody asked for (a broker knows hashes of tags alone)."""
        subscription = self.subscriptions[message.queue.topic]
        return subscription.kind == TAG and bool(subscription.tags) and message.tags not in subscription.tags

    async def _consume(self, message: ReceivedMessage) -> None:
        if self._is_passed_over(message):
            await self._acknowledge(message)
            return
        if self.pace.delay:
            await asyncio.sleep(self.pace.delay)
        if _is_due(message):
            return  # somebody else gets it
        if message.reconsume_times > self.config.max_reconsume:
            await self._acknowledge(message)
            return
        context = ConsumeContext(message.queue)
        status = await self._listened(message, context)
        if _is_due(message):
            return
        if status is ConsumeStatus.SUCCESS:
            await self._acknowledge(message)
        else:
            await self._again_later(message, context.delay_level)

    async def _listened(self, message: ReceivedMessage, context: ConsumeContext) -> ConsumeStatus:
        """What the listener says."""
        begun = now_ms()
        queue, at = message.queue, message.queue_offset
        if self.events.wanted:
            self.events.emit(
                Delivered(
                    begun,
                    self.client_id,
                    self.group,
                    queue,
                    at,
                    message.msg_id,
                    message.keys,
                    message.reconsume_times,
                    message.store_timestamp,
                )
            )
        status, _ = await answer_of(self._listener, self._executor, [message], context, self.group)
        if self.events.wanted:
            now = now_ms()
            self.events.emit(Consumed(now, self.client_id, self.group, queue, at, 1, status.value, now - begun))
        return status

    async def _acknowledge(self, message: ReceivedMessage) -> None:
        await acknowledge(self.instance, self.group, message)
        if self.events.wanted:
            self.events.emit(
                Acknowledged(now_ms(), self.client_id, self.group, message.queue, message.queue_offset, message.msg_id)
            )

    async def _again_later(self, message: ReceivedMessage, level: int) -> None:
        step = level - 1 if level > 0 else message.reconsume_times
        await change_invisible(self.instance, self.group, message, BACKOFF[min(step, len(BACKOFF) - 1)])
        self._saw_sent_back(message)

    def _saw_sent_back(self, message: ReceivedMessage) -> None:
        if self.events.wanted:
            self.events.emit(
                SentBack(
                    now_ms(),
                    self.client_id,
                    self.group,
                    message.queue,
                    message.queue_offset,
                    message.msg_id,
                    message.reconsume_times,
                    by_broker=True,
                )
            )


def _is_due(message: ReceivedMessage, ahead: float = 0.0) -> bool:
    """Whether others may have it by now, or in ``ahead`` seconds."""
    return now_ms() + ahead * 1000 >= codec.Handle.parse(message.properties[POP_CK]).due


def _by_their_queue(messages: Iterable[ReceivedMessage]) -> list[list[ReceivedMessage]]:
    found: dict[MessageQueue, list[ReceivedMessage]] = {}
    for one in messages:
        found.setdefault(one.queue, []).append(one)
    return [sorted(batch, key=lambda one: one.queue_offset) for batch in found.values()]
