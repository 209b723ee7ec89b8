"""A consumer that pops: brokers hand out messages one by one, to any member that asks.

Messages that nobody acknowledged come again.

No queue belongs to a member, so a slow consumer delays nobody (docs/protocol/pop.md, #consumer). A member pops
all queues, or those that a broker assigns to it. Orderly, a broker hands out the next messages of a queue, to any
member, once all earlier ones are acknowledged (docs/protocol/pop.md#orderly). The requests are in
:mod:`engine.client.broker_api`. Brokers of 5.x only. Java: ``DefaultMQPushConsumer`` with
``clientRebalance=false``, its ``ConsumeMessagePopConcurrentlyService``, and
``RebalanceImpl.getRebalanceResultFromBroker``.
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

from engine.callbacks import system_clock
from engine.client.broker_api import (
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
from engine.client.consumer import ConsumeContext, ConsumeStatus, Listener, answer_of
from engine.client.consuming import AFTER_ERROR, FROM_FIRST, FROM_LAST, SOON
from engine.client.errors import BrokerRefused, WrongMessage
from engine.client.events import (
    Acknowledged,
    Consumed,
    Delivered,
    EventStream,
    PullAnswered,
    PullDelayed,
    PullSent,
    Rebalanced,
    SentBack,
)
from engine.client.instance import FAILURES, ClientInstance, ClientPart
from engine.client.messages import ReceivedMessage, check_topic
from engine.client.repeated_warnings import warn
from engine.client.routes import MessageQueue, queue_order
from engine.codec import pop as codec
from engine.errors import cause_of
from engine.remoting.codes import RequestCode
from engine.remoting.connection import Connection, not_supported
from engine.remoting.frame import Command
from engine.remoting.subscriptions import TAG, Subscription
from engine.sentences import plural

BACKOFF = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""Seconds until a failed message comes again, by the number of earlier tries."""
_ASSIGNMENT_RETRY_S = 1.0
"""Seconds until a broker that could not tell the assignment is asked again."""
_AHEAD, _RENEWED_FOR = 10.0, 3 * 3600.0
"""Orderly: seconds before its end at which an invisible time is renewed, and for how many seconds at most. Java's
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
    """How long a message is invisible to other members."""
    most_held: int = 96
    """Maximum number of unacknowledged messages of a broker; beyond it no more are popped."""
    max_reconsume: int = 16
    """A message that came more often is acknowledged without the listener; orderly, it comes as long as it fails."""
    rebalance_interval: float = 20.0
    """Seconds from one lookup of brokers to the next."""
    orderly: bool = False
    """Consume each queue's messages one after the other, by any member of the group: the next ones come when all
    earlier ones are acknowledged. Messages that wait here or are being consumed stay invisible to others for three
    hours at most: their ``invisible`` time is renewed before it ends, as RocketMQ's proxy does for its consumers
    (``DefaultReceiptHandleManager``; a Java client of 5.3 that consumes in order never pops). When a member is
    killed, the time runs out.
    """
    suspend: float = 1.0
    """Orderly: how long a queue pauses before a failed message comes again, with those behind it."""
    shared_by_broker: bool = False
    """Ask a broker which queues to pop (Java: ``clientRebalance=false``), instead of popping all. Topics that the group
    is not set to pop (:func:`set_request_mode`) are not consumed then.
    """
    stop_timeout: float = 5.0
    """How long :meth:`PopConsumer.stop` waits for listeners at work; what they consume then is acknowledged."""
    strategy: str = "AVG"
    """Strategy of the broker's assignment: AVG or AVG_BY_CIRCLE."""

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
    """Messages for a worker: a single one, or in order those that one pop got of one queue."""

    remaining: list[ReceivedMessage]
    """Messages that are not consumed yet, in order."""
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a broker changes their invisible time: a renewal must not follow a shorter time."""
    renewing: asyncio.Task[None] | None = None


class PopConsumer(ClientPart):
    """Hands popped messages to ``listener``, as :class:`engine.client.consumer.Consumer` does with pulled ones.

    Consumed messages are acknowledged, failed ones come again, later each time.
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
        """Batches to be consumed."""
        self._renewing: set[asyncio.Task[None]] = set()
        self._open: dict[tuple[str, str], int] = {}
        """Messages that are not acknowledged, by topic and broker."""
        self._in_turn: dict[MessageQueue, asyncio.Lock] = {}
        self._mine: set[MessageQueue] = set()
        self._pops: dict[MessageQueue, asyncio.Task[None]] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._workers: list[asyncio.Task[None]] = []
        self._busy = 0
        """Messages at a listener."""
        self._news = asyncio.Event()

    @property
    def popped_queues(self) -> tuple[MessageQueue, ...]:
        """Queues that are popped now; a queue id of −1 stands for every queue of that broker."""
        return tuple(sorted(self._mine, key=queue_order))

    def subscribe(self, topic: str, expression: str = "*", kind: str = TAG) -> None:
        """Consume a topic. Raises :class:`WrongMessage`; a running consumer accepts no further topic."""
        if self._running:
            raise WrongMessage("a consumer that pops is told its topics before it starts")
        check_topic(topic)
        self.subscriptions[topic] = Subscription.of(topic, expression, system_clock(), kind)

    async def start(self) -> None:
        """Register with brokers, and begin to pop.

        Raises :class:`ClientError`; among them :class:`BrokerRefused` where queues are to be shared out by a broker of
        4.9, which does not do that.
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
            is_assigned = await self._update_queues()
        except BrokerRefused:
            await self.stop()
            raise
        self._workers = [asyncio.create_task(self._work()) for _ in range(self.config.threads)]
        self._loops = [asyncio.create_task(self._keep_queues_updated(is_assigned=is_assigned))]

    async def stop(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Stop popping, let listeners at work end, and leave the group.

        ``timeout`` is how many seconds listeners have; None: ``stop_timeout`` of the configuration. Messages that are
        not acknowledged come again, to any member.
        """
        if self._running:
            self._running = False
            await self._end_tasks([*self._loops, *self._pops.values()])
            end = time.monotonic() + (self.config.stop_timeout if timeout is None else timeout)
            while self._busy and time.monotonic() < end:  # noqa: ASYNC110  many may be at work
                await asyncio.sleep(0.01)
            await self._halt()
            await self.instance.leave(self)
            self._ended(unregistered=True)

    async def kill(self) -> None:
        """End all parts of this client without unregistering."""
        await self._halt()
        await self.instance.kill()
        self._ended(unregistered=False)

    async def _halt(self) -> None:
        self._running = False
        await self._end_tasks([*self._loops, *self._workers, *self._pops.values(), *self._renewing])
        self._loops.clear()
        self._workers.clear()
        self._pops.clear()
        self._mine.clear()

    async def _end_tasks(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def topics(self) -> Collection[str]:
        """Topics that are popped."""
        return tuple(self.subscriptions)

    def heartbeat(self) -> Mapping[str, Any]:
        """Return its row of a heartbeat."""
        return {
            "consumeFromWhere": self.config.start,
            "consumeType": "CONSUME_PASSIVELY",
            "groupName": self.group,
            "messageModel": "CLUSTERING",
            "unitMode": False,
            "subscriptionDataSet": [subscription.record() for subscription in self.subscriptions.values()],
        }

    def asked(self, request: Command, _connection: Connection, /) -> Command | Coroutine[Any, Any, Command] | None:
        """NOTIFY_CONSUMER_IDS_CHANGED: members came or went, so a broker assigns queues again; no other is answered."""
        if request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            if self.config.shared_by_broker:
                self._news.set()
            return None
        return None if request.is_one_way else not_supported(request)

    # Which queues

    async def set_request_mode(self, topic: str, mode: str, *, share_queues: int = 0) -> None:
        """Call :func:`set_request_mode` for this group; this member follows it at once, others when they look next."""
        await set_request_mode(self.instance, self.group, topic, mode, share_queues=share_queues)
        self._news.set()

    async def _keep_queues_updated(self, *, is_assigned: bool) -> None:
        """Look for queues as often as the settings say, and when members come or go where a broker shares out."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.config.rebalance_interval if is_assigned else _ASSIGNMENT_RETRY_S):
                    await self._news.wait()
            self._news.clear()
            try:
                is_assigned = await self._update_queues()
            except FAILURES as error:
                is_assigned = False
                warn(_log, cause_of(error), "queues of %s: %s", self.group, cause_of(error))

    async def _update_queues(self) -> bool:
        """Pop this member's queues. Return False if a broker could not tell them; the member keeps what it has then."""
        is_assigned = True
        for topic in self.subscriptions:
            queues_to_pop, queues_to_pull = await self._assigned_queues(topic)
            if queues_to_pop is None:
                is_assigned = False
            else:
                self._take(topic, queues_to_pop, queues_to_pull)
        return is_assigned

    async def _assigned_queues(self, topic: str) -> tuple[set[MessageQueue] | None, set[MessageQueue]]:
        """Return the queues of a topic to pop, and those that a broker wants pulled.

        Where name servers know no master any more, which is so while a broker restarts, the member keeps what it has,
        and looks again soon.
        """
        if not self.config.shared_by_broker:
            route = await self.instance.fresh_route(topic)
            brokers = masters(route.brokers) if route is not None else ()
            if not brokers and any(queue.topic == topic for queue in self._mine):
                return None, set()
            return {MessageQueue(topic, broker, EVERY_QUEUE) for broker in brokers}, set()
        try:
            assignments = await query_assignment(self.instance, self.group, topic, strategy=self.config.strategy)
        except BrokerRefused:
            raise
        except FAILURES as error:
            warn(_log, cause_of(error), "queues of %s for %s: %s", topic, self.group, cause_of(error))
            return None, set()
        if assignments is None:
            return None, set()
        by_mode: dict[bool, set[MessageQueue]] = {True: set(), False: set()}
        for assignment in assignments:
            by_mode[assignment.mode == POP].add(assignment.queue)
        return by_mode[True], by_mode[False]

    def _take(self, topic: str, queues_to_pop: set[MessageQueue], queues_to_pull: set[MessageQueue]) -> None:
        old_queues = {own_queue for own_queue in self._mine if own_queue.topic == topic}
        self._mine = self._mine - old_queues | queues_to_pop
        for queue in queues_to_pop:
            task = self._pops.get(queue)
            if task is None or task.done():
                self._pops[queue] = asyncio.create_task(self._read(queue))
        if queues_to_pull and not queues_to_pop:
            _log.warning("brokers would have %s pull %s, so it is not popped", self.group, topic)
        if queues_to_pop != old_queues and self.events.has_subscribers:
            owned, new_queues, released, refused = (
                tuple(sorted(queues, key=queue_order))
                for queues in (queues_to_pop, queues_to_pop - old_queues, old_queues - queues_to_pop, queues_to_pull)
            )
            self.events.emit(
                Rebalanced(
                    system_clock(),
                    self.client_id,
                    self.group,
                    topic,
                    owned,
                    (),
                    owned,
                    new_queues,
                    released,
                    refused,
                    "shared out by a broker" if self.config.shared_by_broker else "",
                )
            )

    # Popping

    async def _read(self, queue: MessageQueue) -> None:
        """Pop a queue as long as it is this member's.

        A pop that a broker holds is not cancelled: its messages would be nobody's until their invisible time is over.
        So this ends after that pop.
        """
        config, last_reason = self.config, ""
        topic, broker, _ = queue
        topic_and_broker = topic, broker
        attempt: str | None = None
        while queue in self._mine:
            count = self._open.get(topic_and_broker, 0)
            reason = "paused" if self.control.paused else ""
            if count > config.most_held:
                reason = plural(
                    "{n:,} message is not acknowledged, more than {most:,}",
                    "{n:,} messages are not acknowledged, more than {most:,}",
                    n=count,
                    most=config.most_held,
                )
            if reason and reason != last_reason and self.events.has_subscribers:
                self.events.emit(PullDelayed(system_clock(), self.client_id, self.group, queue, reason))
            last_reason = reason
            if reason:
                await asyncio.sleep(SOON)
                continue
            start_ms = system_clock()
            if self.events.has_subscribers:
                self.events.emit(PullSent(start_ms, self.client_id, self.group, queue, -1))
            if config.orderly and attempt is None:
                attempt = str(uuid.uuid4())
            try:
                result = await pop(
                    self.instance,
                    self.group,
                    broker,
                    self.subscriptions[topic],
                    queue_id=queue.queue_id,
                    max_messages=config.pull_batch,
                    invisible=config.invisible,
                    hold=config.hold,
                    from_first=config.start == FROM_FIRST,
                    orderly=config.orderly,
                    attempt=attempt,
                )
            except FAILURES as error:
                warn(_log, cause_of(error), "pop of %s on %s: %s", topic, broker, cause_of(error))
                await asyncio.sleep(AFTER_ERROR)
                continue
            attempt = None
            if self.events.has_subscribers:
                now, count_received = system_clock(), len(result.messages)
                self.events.emit(
                    PullAnswered(
                        now, self.client_id, self.group, queue, result.status, count_received, -1, -1, now - start_ms
                    )
                )
            if result.status == "POLLING_FULL":
                await asyncio.sleep(AFTER_ERROR)
            self._open[topic_and_broker] = self._open.get(topic_and_broker, 0) + len(result.messages)
            for messages in (
                _by_their_queue(result.messages) if config.orderly else [[message] for message in result.messages]
            ):
                batch = _Batch(messages)
                if config.orderly:
                    batch.renewing = asyncio.create_task(self._renew(batch))
                    self._renewing.add(batch.renewing)
                    batch.renewing.add_done_callback(self._renewing.discard)
                self._ready.put_nowait(batch)

    # Consuming

    async def _work(self) -> None:
        while True:
            batch = await self._ready.get()
            if not self._running:
                return
            first_message, count = batch.remaining[0], len(batch.remaining)
            try:
                if self.config.orderly:
                    async with self._in_turn.setdefault(first_message.queue, asyncio.Lock()):
                        await self._consume_in_order(batch)
                else:
                    await self._consume(first_message)
            except FAILURES as error:
                warn(_log, cause_of(error), "%s: %s", first_message.msg_id, cause_of(error))
            finally:
                topic_and_broker = (first_message.queue.topic, first_message.queue.broker)
                self._open[topic_and_broker] = self._open.get(topic_and_broker, count) - count
                if batch.renewing is not None:
                    batch.renewing.cancel()

    async def _renew(self, batch: _Batch) -> None:
        """Keep a batch invisible to others while it waits or is consumed."""
        ahead = min(_AHEAD, self.config.invisible / 2)
        end = time.monotonic() + _RENEWED_FOR
        while time.monotonic() < end:
            await asyncio.sleep(ahead / 2)
            async with batch.changing:
                for message in batch.remaining[:]:
                    if _is_due(message):
                        return  # another member may have it by now
                    if _is_due(message, ahead):
                        try:
                            await change_invisible(self.instance, self.group, message, self.config.invisible)
                        except FAILURES as error:
                            warn(_log, cause_of(error), "%s: %s", message.msg_id, cause_of(error))

    async def _consume_in_order(self, batch: _Batch) -> None:
        """Consume messages one after the other, up to the first that fails.

        This one and those behind it come again together. Nothing is begun that others may have by now.
        """
        while batch.remaining and self._running:
            message = batch.remaining[0]
            if self.control.delay:
                await asyncio.sleep(self.control.delay)
            if _is_due(message) or not self._running:
                return
            self._busy += 1
            try:
                if not await self._consume_first(batch):
                    return
            finally:
                self._busy -= 1
            del batch.remaining[0]

    async def _consume_first(self, batch: _Batch) -> bool:
        """Consume the first message of a batch. Return False if it comes again."""
        message = batch.remaining[0]
        context, status = ConsumeContext(message.queue), ConsumeStatus.SUCCESS
        if not self._is_passed_over(message):
            status = await self._call_listener(message, context)
        if _is_due(message):
            return False
        if status is ConsumeStatus.SUCCESS:
            return await self._acknowledged_in_time(message)
        suspend_s = self.config.suspend if context.suspend is None else context.suspend
        async with batch.changing:
            failed_messages, batch.remaining = batch.remaining, []
            for failed_message in reversed(failed_messages):
                await change_invisible(self.instance, self.group, failed_message, suspend_s)
        self._saw_sent_back(message)
        return False

    async def _acknowledged_in_time(self, message: ReceivedMessage) -> bool:
        """Acknowledge a message. Return False if others may have it by now: it comes again with those behind it."""
        while not _is_due(message):
            try:
                await self._acknowledge(message)
            except BrokerRefused:
                raise
            except FAILURES as error:
                warn(_log, cause_of(error), "%s: %s", message.msg_id, cause_of(error))
                await asyncio.sleep(SOON)
            else:
                return True
        return False

    def _is_passed_over(self, message: ReceivedMessage) -> bool:
        """Return True if the message has a tag that was not subscribed (a broker compares only hashes of tags)."""
        subscription = self.subscriptions[message.queue.topic]
        return subscription.kind == TAG and bool(subscription.tags) and message.tags not in subscription.tags

    async def _consume(self, message: ReceivedMessage) -> None:
        if self._is_passed_over(message):
            await self._acknowledge(message)
            return
        if self.control.delay:
            await asyncio.sleep(self.control.delay)
        if _is_due(message) or not self._running:
            return  # another member gets it
        self._busy += 1
        try:
            await self._consume_now(message)
        finally:
            self._busy -= 1

    async def _consume_now(self, message: ReceivedMessage) -> None:
        if message.reconsume_times > self.config.max_reconsume:
            await self._acknowledge(message)
            return
        context = ConsumeContext(message.queue)
        status = await self._call_listener(message, context)
        if _is_due(message):
            return
        if status is ConsumeStatus.SUCCESS:
            await self._acknowledge(message)
        else:
            await self._again_later(message, context.delay_level)

    async def _call_listener(self, message: ReceivedMessage, context: ConsumeContext) -> ConsumeStatus:
        """Return the listener's status."""
        start_ms = system_clock()
        queue, offset = message.queue, message.queue_offset
        if self.events.has_subscribers:
            self.events.emit(
                Delivered(
                    start_ms,
                    self.client_id,
                    self.group,
                    queue,
                    offset,
                    message.msg_id,
                    message.keys,
                    message.reconsume_times,
                    message.store_timestamp,
                )
            )
        status, _ = await answer_of(self._listener, self._executor, [message], context, self.group)
        if self.events.has_subscribers:
            now = system_clock()
            self.events.emit(Consumed(now, self.client_id, self.group, queue, offset, 1, status.value, now - start_ms))
        return status

    async def _acknowledge(self, message: ReceivedMessage) -> None:
        await acknowledge(self.instance, self.group, message)
        if self.events.has_subscribers:
            self.events.emit(
                Acknowledged(
                    system_clock(), self.client_id, self.group, message.queue, message.queue_offset, message.msg_id
                )
            )

    async def _again_later(self, message: ReceivedMessage, level: int) -> None:
        step = level - 1 if level > 0 else message.reconsume_times
        await change_invisible(self.instance, self.group, message, BACKOFF[min(step, len(BACKOFF) - 1)])
        self._saw_sent_back(message)

    def _saw_sent_back(self, message: ReceivedMessage) -> None:
        if self.events.has_subscribers:
            self.events.emit(
                SentBack(
                    system_clock(),
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
    """Return True if others may have the message by now, or in ``ahead`` seconds."""
    return system_clock() + ahead * 1000 >= codec.Handle.parse(message.properties[POP_CK]).due


def _by_their_queue(messages: Iterable[ReceivedMessage]) -> list[list[ReceivedMessage]]:
    batches: dict[MessageQueue, list[ReceivedMessage]] = {}
    for message in messages:
        batches.setdefault(message.queue, []).append(message)
    return [sorted(batch, key=lambda message: message.queue_offset) for batch in batches.values()]
