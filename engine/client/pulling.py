"""Consumers that return messages on request.

Lite pull shares queues and reads ahead; pull does neither.

Java: ``DefaultLitePullConsumer``, ``DefaultMQPullConsumer`` (docs/protocol/broker.md#pull,
docs/protocol/clients.md#rebalance).

>>> consumer = LitePullConsumer("readers", "127.0.0.1:9876")
>>> consumer.subscribe("Orders", "hot || iced")
>>> async with consumer:
...     messages = await consumer.poll(5.0)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from engine.callbacks import system_clock
from engine.client import broker_api
from engine.client.broker_api import PullResult
from engine.client.consuming import FROM_LAST, ConsumerConfig, QueueConsumer
from engine.client.errors import ClientError, NoRoute, NotRunning, WrongMessage
from engine.client.events import Delivered, EventStream
from engine.client.instance import ClientInstance, ClientPart
from engine.client.messages import ReceivedMessage
from engine.client.process_queue import ProcessQueue
from engine.client.rebalance import AllocationStrategy, RebalancePlan
from engine.client.routes import MessageQueue, queue_order
from engine.older_names import renamed_keyword
from engine.remoting.connection import Connection, not_supported
from engine.remoting.frame import Command
from engine.remoting.subscriptions import TAG, Subscription

LITE_PULL_BATCH, LITE_PULL_HOLD = 10, 20.0
"""Default messages per pull, and default seconds that a broker may hold one."""
POLL = 5.0
"""Seconds that a poll waits."""
ROUTE_ATTEMPTS = 10
"""Number of times that the route of a queue to pull from is asked for."""
ROUTE_RETRY_S = 0.2


class LitePullConsumer(QueueConsumer):
    """Reads ahead, and returns messages on request (:meth:`poll`).

    Queues are shared with the group (:meth:`subscribe`), or assigned (:meth:`assign`).

    A message counts as consumed when it was given. With ``auto_commit`` a poll commits what polls before it gave, every
    ``commit_interval`` seconds; else :meth:`commit` does.
    """

    _consume_type = "CONSUME_ACTIVELY"
    _pull_flag = broker_api.LITE_PULL
    _commits_by_itself = False

    def __init__(
        self,
        group: str,
        namesrv: str = "",
        config: ConsumerConfig | None = None,
        *,
        strategy: AllocationStrategy | None = None,
        instance: ClientInstance | None = None,
        events: EventStream | None = None,
    ) -> None:
        config = config or ConsumerConfig(pull_batch=LITE_PULL_BATCH, hold=LITE_PULL_HOLD)
        if config.orderly:
            raise WrongMessage("orderly is for listeners: what is polled comes in the order of its queue anyway")
        super().__init__(group, namesrv, config, strategy=strategy, instance=instance, events=events)
        self._ready: asyncio.Queue[tuple[ProcessQueue, Sequence[ReceivedMessage]]] = asyncio.Queue()
        self._assigned: tuple[MessageQueue, ...] | None = None
        self._positions: dict[MessageQueue, int] = {}
        self._commit_at = 0

    def subscribe(self, topic: str, expression: str = "*", kind: str = TAG) -> None:
        """See :meth:`QueueConsumer.subscribe`. Raises :class:`WrongMessage` where queues were assigned."""
        if self._assigned is not None:
            raise WrongMessage("Subscribe and assign are mutually exclusive.")
        super().subscribe(topic, expression, kind)

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Read these queues and no others, even if other clients read them.

        Raises :class:`WrongMessage` if a topic was subscribed.
        """
        if self.subscriptions:
            raise WrongMessage("Subscribe and assign are mutually exclusive.")
        self._assigned = tuple(sorted(set(queues), key=queue_order))
        if self._running:
            self.rebalance_soon("assigned")

    def _all_subscriptions(self) -> dict[str, Subscription]:
        if self._assigned is not None:
            return {queue.topic: Subscription(queue.topic) for queue in self._assigned}
        return super()._all_subscriptions()

    def heartbeat(self) -> Mapping[str, Any]:
        """Return its row of a heartbeat; brokers get no word of assigned queues."""
        return {
            **super().heartbeat(),
            "subscriptionDataSet": [subscription.record() for subscription in self.subscriptions.values()],
        }

    async def _plan(self, topic: str) -> RebalancePlan | None:
        if self._assigned is None:
            return await super()._plan(topic)
        await self.instance.route(topic)
        assigned = tuple(queue for queue in self._assigned if queue.topic == topic)
        held_queues = [
            queue
            for queue, process_queue in self._held.items()
            if queue.topic == topic and not self._must_release(process_queue)
        ]
        return RebalancePlan(
            assigned,
            (self.client_id,),
            assigned,
            tuple(queue for queue in held_queues if queue not in assigned),
            tuple(queue for queue in assigned if queue not in held_queues),
        )

    def _arrived(self, process_queue: ProcessQueue, messages: Sequence[ReceivedMessage]) -> None:
        self._ready.put_nowait((process_queue, messages))

    @renamed_keyword("patience", "timeout_s")
    async def poll(self, timeout_s: float = POLL) -> list[ReceivedMessage]:
        """Return messages of one queue, as one pull brought them.

        The list is empty if none came within ``timeout_s`` seconds.

        Raises :class:`NotRunning`.
        """
        self._must_run()
        if self.config.auto_commit and system_clock() >= self._commit_at:
            self._commit_at = system_clock() + int(self.config.commit_interval * 1000)
            self._move_offsets()
            await self.commit_soon()
        if self.control.delay:
            await asyncio.sleep(self.control.delay)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while True:
                    process_queue, messages = await self._ready.get()
                    if process_queue.is_ours():
                        return self._deliver(process_queue, messages)
        return []

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        """Yield messages one by one as :meth:`poll` brings them, until the consumer is stopped.

        A message counts as consumed once the loop asks for one of a later poll.
        """
        while True:
            try:
                messages = await self.poll()
            except NotRunning:
                return
            for message in messages:
                yield message

    def _deliver(self, process_queue: ProcessQueue, messages: Sequence[ReceivedMessage]) -> list[ReceivedMessage]:
        process_queue.consumed_at = now = system_clock()
        offset = process_queue.remove(messages)
        if offset >= 0:
            self._positions[process_queue.queue] = offset
        if self.events.has_subscribers:
            for message in messages:
                self.events.emit(
                    Delivered(
                        now,
                        self.client_id,
                        self.group,
                        process_queue.queue,
                        message.queue_offset,
                        message.msg_id,
                        message.keys,
                        message.reconsume_times,
                        message.store_timestamp,
                    )
                )
        return list(messages)

    def _move_offsets(self) -> None:
        for queue, offset in self._positions.items():
            if queue in self._held:
                self.offsets.update(queue, offset)

    async def commit(self) -> None:
        """Commit the messages that were returned, and wait until the offsets are stored.

        Raises the errors of brokers.
        """
        self._move_offsets()
        await super().commit()

    def position(self, queue: MessageQueue) -> int | None:
        """Return the offset of the next message; None if no message of the queue was returned yet."""
        return self._positions.get(queue)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the offset that the group committed for a queue, as its broker has it."""
        return await broker_api.query_offset(self.instance, self.group, queue)

    async def seek(self, queue: MessageQueue, offset: int, *, reason: str = "seek") -> None:
        """Read one of the client's queues from ``offset`` on.

        Raises :class:`WrongMessage` where the queue is not the client's, and for an offset that it does not have.
        """
        min_offset, max_offset = (
            await broker_api.min_offset(self.instance, queue),
            await broker_api.max_offset(self.instance, queue),
        )
        if not min_offset <= offset <= max_offset:
            raise WrongMessage(
                f"Seek offset illegal, seek offset = {offset}, min offset = {min_offset}, max offset = {max_offset}"
            )
        await self._read_from(queue, offset)
        self._positions[queue] = offset
        self._saw_reset(queue, offset, reason)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Read a queue from its first message on."""
        await self.seek(queue, await broker_api.min_offset(self.instance, queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Read only the messages of a queue that come from now on."""
        await self.seek(queue, await broker_api.max_offset(self.instance, queue))


class PullConsumer(ClientPart):
    """Pulls single queues on request, and shares nothing. ``async with``, or :meth:`start` and :meth:`stop`."""

    def __init__(
        self,
        group: str,
        namesrv: str = "",
        *,
        instance: ClientInstance | None = None,
        events: EventStream | None = None,
    ) -> None:
        super().__init__(group, namesrv, instance, events)
        self._topics: set[str] = set()

    async def start(self) -> None:
        """Join the client. Brokers learn of it with the next heartbeat."""
        await self.instance.join(self)
        self._running = True
        self._began()

    async def stop(self) -> None:
        """Leave the client."""
        if self._running:
            self._running = False
            await self.instance.leave(self)
            self._ended(unregistered=True)

    def topics(self) -> Iterable[str]:
        """Return the topics that were pulled."""
        return tuple(self._topics)

    def heartbeat(self) -> Mapping[str, Any]:
        """Return its row of a heartbeat."""
        return {
            "consumeFromWhere": FROM_LAST,
            "consumeType": "CONSUME_ACTIVELY",
            "groupName": self.group,
            "messageModel": "CLUSTERING",
            "unitMode": False,
            "subscriptionDataSet": [Subscription(topic).record() for topic in sorted(self._topics)],
        }

    def asked(self, request: Command, _connection: Connection, /) -> Command | Coroutine[Any, Any, Command] | None:
        """Answer nothing; a notice needs no answer."""
        return None if request.is_one_way else not_supported(request)

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the readable queues of a topic. Raises :class:`NoRoute`."""
        route = await self.instance.fresh_route(topic)
        if route is None or not route.subscribe_queues:
            raise NoRoute(f"Can not find Message Queue for this topic, {topic}")
        self._topics.add(topic)
        return route.subscribe_queues

    async def _wait_for_route(self, topic: str) -> None:
        """Wait for a route of the topic: a broker announces a new topic just after it has answered the first send."""
        for attempt in range(1, ROUTE_ATTEMPTS + 1):
            try:
                await self.queues(topic)
                return
            except NoRoute:
                if attempt == ROUTE_ATTEMPTS:
                    raise
            await asyncio.sleep(ROUTE_RETRY_S)

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        max_messages: int = 32,
        expression: str = "*",
        kind: str = TAG,
        hold: float = 0.0,
    ) -> PullResult:
        """Return messages of a queue from ``offset`` on.

        With ``hold`` the broker may hold the request that many seconds.

        Raises :class:`NotRunning`, :class:`BrokerRefused`, :class:`NoRoute`, ``OSError``, ``TimeoutError``.
        """
        if not self._running:
            raise NotRunning(f"The consumer {self.group} is not running")
        if queue.topic not in self._topics:
            await self._wait_for_route(queue.topic)
        await self.control.wait()
        sys_flag = broker_api.SUBSCRIPTION | (broker_api.SUSPEND if hold else 0)
        subscription = Subscription.of(queue.topic, expression, 0, kind)
        return await broker_api.pull(
            self.instance,
            self.group,
            queue,
            subscription,
            offset,
            max_messages=max_messages,
            sys_flag=sys_flag,
            hold=hold,
            timeout_s=hold + 10.0,
        )

    async def fetch_offset(self, queue: MessageQueue) -> int | None:
        """Return the offset that the group reads next; None if it never committed."""
        await self._known(queue)
        return await broker_api.query_offset(self.instance, self.group, queue)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Commit ``offset``: the group reads it next."""
        await self._known(queue)
        await broker_api.commit_offset(self.instance, self.group, queue, offset, one_way=False)

    async def _known(self, queue: MessageQueue) -> None:
        if await self.instance.route(queue.topic) is None:
            raise NoRoute(f"Can not find Message Queue for this topic, {queue.topic}")

    async def send_back(self, message: ReceivedMessage, delay_level: int = 0, max_reconsume: int = 16) -> None:
        """Let a message come again to the group's consumers. Raises :class:`ClientError` for a reply."""
        if message.physical_offset < 0:
            raise ClientError("the message has no place in a log: it was replied, not pulled")
        await broker_api.send_back(self.instance, self.group, message, delay_level, max_reconsume)
