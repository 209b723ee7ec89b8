"""Common parts of the consumers that share queues: rebalance, pull, flow control, offsets, and requests of brokers.

Java: ``RebalanceImpl``, ``DefaultMQPushConsumerImpl.pullMessage``, ``PullAPIWrapper`` (docs/protocol/clients.md).
Messages are consumed in :mod:`engine.client.consumer` and :mod:`engine.client.pulling`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import abstractmethod
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.callbacks import system_clock
from engine.client import broker_api
from engine.client.answers_of_consumer import offset_table, running_info, status_body
from engine.client.broker_api import PullResult
from engine.client.errors import BrokerRefused, NotRunning, WrongMessage
from engine.client.events import (
    EventStream,
    OffsetReset,
    PullAnswered,
    PullDelayed,
    PullSent,
    QueueAcquired,
    QueueReleased,
    Rebalanced,
)
from engine.client.instance import FAILURES, ClientInstance, ClientPart
from engine.client.messages import ReceivedMessage, check_topic
from engine.client.offsets import BrokerOffsets, FileOffsets, OffsetStore
from engine.client.process_queue import ProcessQueue
from engine.client.rebalance import AllocationStrategy, Averagely, RebalancePlan, plan_rebalance
from engine.client.repeated_warnings import warn
from engine.client.routes import MessageQueue
from engine.codec import properties as props
from engine.errors import cause_of
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.connection import Connection, not_supported
from engine.remoting.frame import VERSION, Command, answer_to, release_of
from engine.remoting.subscriptions import SQL92, TAG, Subscription
from engine.sentences import plural, sentence
from engine.system_names import RETRY_PREFIX

CLUSTERING, BROADCASTING = "CLUSTERING", "BROADCASTING"
FROM_LAST, FROM_FIRST, FROM_TIME = "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"
SOON, AFTER_ERROR, AFTER_FLOW_CONTROL, UNBALANCED = 0.05, 1.0, 0.02, 1.0
"""Seconds until the next pull if a limit delays it, after an error, after a broker's flow control; and until the next
rebalance if a queue could not be taken.
"""
LOCK_RENEWAL = 20.0
_HALF_AN_HOUR = 1_800_000
_QUICK_LOOKUPS = 10
"""Number of quick lookups of a retry topic that brokers have not created yet."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """Settings of a consumer; the defaults are those of Java's push consumer. Times are seconds, sizes bytes."""

    model: str = CLUSTERING
    """CLUSTERING: each message goes to one of the group; BROADCASTING: to each."""
    start: str = FROM_LAST
    """Where reading of a queue begins if the group has no offset."""
    start_time: int = 0
    """For CONSUME_FROM_TIMESTAMP, ms since the epoch; 0: half an hour ago."""
    orderly: bool = False
    """Consume each queue's messages one after the other, under a lock of the broker."""
    threads: int = 20
    """Messages (or batches) that are consumed at once."""
    batch: int = 1
    pull_batch: int = 32
    pull_interval: float = 0.0
    hold: float = 15.0
    """How long a broker may hold a pull."""
    most_held: int = 1000
    most_bytes: int = 100 << 20
    widest_span: int = 2000
    """Messages, bytes and offsets that are held of a queue; beyond them it is not pulled."""
    rebalance_interval: float = 20.0
    commit_interval: float = 1.0
    """Seconds from one save of offsets to the next; what was consumed since comes again after a kill."""
    auto_commit: bool = True
    max_reconsume: int = -1
    """Maximum number of times that a message comes again; −1: 16 times, orderly without limit."""
    suspend: float = 1.0
    """How long an orderly queue pauses before a message comes again."""
    consume_timeout: float = 900.0
    """Messages that are consumed for longer are sent back."""
    stop_timeout: float = 5.0
    """How long :meth:`stop` waits for listeners at work; what they consume then is not consumed again."""
    offsets_folder: Path | None = None
    """Where a broadcasting consumer keeps its offsets; None: ``~/.rocketmq_offsets``, as Java."""

    def __post_init__(self) -> None:
        if self.model not in (CLUSTERING, BROADCASTING):
            raise WrongMessage(f"model is {self.model!r}; known are {CLUSTERING} and {BROADCASTING}")
        if self.start not in (FROM_LAST, FROM_FIRST, FROM_TIME):
            raise WrongMessage(f"start is {self.start!r}; known are {FROM_LAST}, {FROM_FIRST} and {FROM_TIME}")
        if not 1 <= self.threads <= 1000:
            raise WrongMessage(f"threads is {self.threads}, expected 1 to 1000")
        if not 1 <= self.batch <= 1024 or not 1 <= self.pull_batch <= 1024:
            raise WrongMessage(f"batch and pull_batch are {self.batch} and {self.pull_batch}, expected 1 to 1024")


class QueueConsumer(ClientPart):
    """A consumer that shares queues with its group. ``async with``, or :meth:`start` and :meth:`stop`."""

    _consume_type = "CONSUME_PASSIVELY"
    _pull_flag = 0
    _commits_by_itself = True
    """True if offsets are committed regularly, and with each pull."""

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
        super().__init__(group, namesrv, instance, events)
        self.config = config or ConsumerConfig()
        self.strategy: AllocationStrategy = strategy or Averagely()
        self.subscriptions: dict[str, Subscription] = {}
        self.offsets: OffsetStore = (
            FileOffsets(self.instance, group, self.config.offsets_folder)
            if self.is_broadcasting
            else BrokerOffsets(self.instance, group)
        )
        self.started_at = 0
        self._held: dict[MessageQueue, ProcessQueue] = {}
        self._pulls: dict[ProcessQueue, asyncio.Task[None]] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._reason = "start"
        self._sharing = asyncio.Lock()
        self._unplanned = 0

    @property
    def is_broadcasting(self) -> bool:
        return self.config.model == BROADCASTING

    @property
    def owned(self) -> tuple[MessageQueue, ...]:
        """Queues that are read now."""
        return tuple(queue for queue, process_queue in self._held.items() if not process_queue.dropped)

    @property
    def process_queues(self) -> tuple[ProcessQueue, ...]:
        """The process queue of each queue that is read."""
        return tuple(self._held.values())

    def subscribe(self, topic: str, expression: str = "*", kind: str = TAG) -> None:
        """Consume a topic: tags with ``||`` between, ``*`` for all; with ``kind`` SQL92 an expression over
        properties. It replaces an earlier subscription; a running consumer uses it from the next heartbeat on.

        What was subscribed before is replaced; a running consumer goes by it from the next heartbeat on.
        """
        check_topic(topic)
        if kind not in (TAG, SQL92):
            raise WrongMessage(f"kind is {kind!r}; known are {TAG} and {SQL92}")
        self.subscriptions[topic] = Subscription.of(topic, expression, system_clock(), kind)
        if self._running:
            self.instance.soon(self.instance.heartbeat())
            self.rebalance_soon("subscribed")

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic; its queues are released at the next rebalance, which is soon."""
        self.subscriptions.pop(topic, None)
        if self._running:
            self.instance.soon(self.instance.heartbeat())
            self.rebalance_soon("unsubscribed")

    # Beginning and end

    async def start(self) -> None:
        """Register with brokers, and begin to share queues. Raises :class:`ClientError`, :class:`CannotRead`."""
        await self.offsets.load()
        await self.instance.join(self)
        try:
            await asyncio.gather(*(self.instance.fresh_route(topic) for topic in self.topics()))
            for subscription in self.subscriptions.values():
                if subscription.kind != TAG:
                    await broker_api.check_subscription(self.instance, self.group, subscription)
        except BaseException:
            await self.instance.leave(self)
            raise
        self._running = True
        self.started_at = system_clock()
        await self.instance.heartbeat()
        self._began()
        self._loops = [asyncio.create_task(self._rebalance_forever()), *map(asyncio.create_task, self._more_loops())]
        if self.config.auto_commit and self._commits_by_itself:
            self._loops.append(asyncio.create_task(self.instance.repeat(self.config.commit_interval, self.commit_soon)))
        if self.config.orderly and not self.is_broadcasting:
            self._loops.append(asyncio.create_task(self.instance.repeat(LOCK_RENEWAL, self._renew_locks)))

    def _more_loops(self) -> Iterable[Coroutine[Any, Any, None]]:
        """Further loops that run in the background."""
        return ()

    async def stop(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Stop pulling, let listeners at work end, commit, release locks, and leave the group. ``timeout`` is how many
        seconds listeners have; None: ``stop_timeout`` of the configuration. After that they are cancelled, and their
        messages come again.
        """
        if not self._running:
            return
        self._running = False
        await self._halt()
        await self._finish(self.config.stop_timeout if timeout is None else timeout)
        with contextlib.suppress(*FAILURES):
            await self.offsets.persist(self.owned, one_way=False)
        for process_queue in self._held.values():
            process_queue.dropped = True
        if self.config.orderly and not self.is_broadcasting:
            with contextlib.suppress(*FAILURES):
                await broker_api.unlock(self.instance, self.group, list(self._held))
        await self.instance.leave(self)
        self._ended(unregistered=True)

    async def _finish(self, timeout: float) -> None:  # noqa: ARG002, ASYNC109
        """Wait for listeners at work."""
        await asyncio.sleep(0)

    async def kill(self) -> None:
        """End all parts of this client without a word: nothing is committed, as by a process that is killed."""
        self._running = False
        for process_queue in self._held.values():
            process_queue.dropped = True
        await self._halt()
        await self.instance.kill()
        self._ended(unregistered=False)

    async def _halt(self) -> None:
        ending = [*self._loops, *self._pulls.values()]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._loops.clear()
        self._pulls.clear()

    def _ended(self, *, unregistered: bool) -> None:
        self._held.clear()
        super()._ended(unregistered=unregistered)

    def pause_queues(self, *queues: MessageQueue, paused: bool = True) -> None:
        """Stop pulling some queues, or pull them again. A queue that is released and acquired again is not paused."""
        for queue in queues:
            if (process_queue := self._held.get(queue)) is not None:
                process_queue.paused = paused

    def _must_run(self) -> None:
        if not self._running:
            raise NotRunning(f"The consumer {self.group} is not running")

    # The client's part

    def topics(self) -> Collection[str]:
        """Topics that are read, with the group's retry topic."""
        return tuple(self._all_subscriptions())

    def _all_subscriptions(self) -> dict[str, Subscription]:
        if self.is_broadcasting or self._consume_type == "CONSUME_ACTIVELY":
            return dict(self.subscriptions)
        return {**self.subscriptions, RETRY_PREFIX + self.group: Subscription(RETRY_PREFIX + self.group)}

    def heartbeat(self) -> Mapping[str, Any]:
        """Return its row of a heartbeat."""
        return {
            "consumeFromWhere": self.config.start,
            "consumeType": self._consume_type,
            "groupName": self.group,
            "messageModel": self.config.model,
            "unitMode": False,
            "subscriptionDataSet": [subscription.record() for subscription in self._all_subscriptions().values()],
        }

    def asked(self, request: Command, _connection: Connection) -> Command | Coroutine[Any, Any, Command] | None:
        """Answer the requests of brokers to consumers: members changed, new offsets, positions, running info."""
        if request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            self.rebalance_soon("notice")
            return None
        if request.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
            self.instance.soon(self._reset(request))
            return None
        if request.code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT:
            topic = request.fields.get("topic", "")
            table = {queue: self.offsets.known(queue) for queue in self._held if queue.topic == topic}
            return answer_to(request, body=status_body(table))
        if request.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
            return answer_to(request, body=self._running_info())
        return not_supported(request)

    def _running_info(self) -> bytes:
        config = self.config
        properties = {
            "PROP_CLIENT_VERSION": f"V{release_of(VERSION).replace('.', '_')}",
            "PROP_CONSUME_ORDERLY": str(config.orderly).lower(),
            "PROP_CONSUME_TYPE": self._consume_type,
            "PROP_CONSUMER_START_TIMESTAMP": str(self.started_at),
            "PROP_NAMESERVER_ADDR": ";".join(self.instance.name_servers),
            "PROP_THREADPOOL_CORE_SIZE": str(config.threads),
            "consumeFromWhere": config.start,
            "messageModel": config.model,
            "consumerGroup": self.group,
            "pullBatchSize": str(config.pull_batch),
            "allocateMessageQueueStrategy": self.strategy.name,
        }
        queues = [(process_queue, self.offsets.known(process_queue.queue)) for process_queue in self._held.values()]
        subscriptions = [subscription.record() for subscription in self._all_subscriptions().values()]
        return running_info(properties, queues, subscriptions)

    async def _reset(self, request: Command) -> None:
        """RESET_CONSUMER_CLIENT_OFFSET: an administrator resets the group's offsets."""
        topic = request.fields.get("topic", "")
        table = {queue: offset for queue, offset in offset_table(request.body).items() if queue.topic == topic}
        for queue, offset in table.items():
            if queue in self._held:
                await self.seek(queue, offset, reason="reset by an administrator")

    async def seek(self, queue: MessageQueue, offset: int, *, reason: str = "seek") -> None:
        """Read one of the client's queues from ``offset`` on; its held messages are dropped, and the offset is
        committed. Raises :class:`WrongMessage` where the queue is not this client's.

        Raises :class:`WrongMessage` where the queue is not this client's.
        """
        await self._read_from(queue, offset)
        self.offsets.update(queue, offset)
        await self.offsets.persist([queue])
        self._saw_reset(queue, offset, reason)

    async def _read_from(self, queue: MessageQueue, offset: int) -> None:
        async with self._sharing:
            old = self._held.get(queue)
            if old is None or old.dropped:
                raise WrongMessage(f"the queue {queue} is not read by this client")
            await self._drop(old)
            self.offsets.forget(queue)
            self._take(queue, offset, locked=old.locked, locked_at=old.locked_at)
            self._held[queue].paused = old.paused

    def _saw_reset(self, queue: MessageQueue, offset: int, reason: str) -> None:
        if self.events.has_subscribers:
            self.events.emit(OffsetReset(system_clock(), self.client_id, self.group, queue, offset, reason))

    async def reset_to(self, topic: str, timestamp: int) -> None:
        """Read the client's queues of a topic again from ``timestamp`` (ms) on (Java: ``resetOffsetByTimeStamp``)."""
        for queue in self.owned:
            if queue.topic == topic:
                offset = await broker_api.search_offset(self.instance, queue, timestamp)
                await self.seek(queue, offset, reason="reset to a time")

    async def commit_soon(self) -> None:
        """Commit all offsets, without waiting for brokers."""
        await self.offsets.persist(self.owned)

    async def commit(self) -> None:
        """Commit all offsets, and wait until they are stored. Raises the errors of brokers."""
        await self.offsets.persist(self.owned, one_way=False)

    # Rebalance

    def rebalance_soon(self, reason: str = "asked for") -> None:
        """Rebalance at once."""
        self._reason = reason
        self._wake.set()

    async def _rebalance_forever(self) -> None:
        while True:
            reason, self._reason = self._reason, "interval"
            self._wake.clear()
            balanced = True
            for topic in {*self._all_subscriptions(), *(queue.topic for queue in self._held)}:
                try:
                    async with self._sharing:
                        balanced &= await self._rebalance(topic, reason)
                except (*FAILURES, ValueError) as error:
                    warn(_log, str(error), "rebalance of %s in %s: %s", topic, self.group, error)
                    balanced = False
            pause = self.config.rebalance_interval
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause if balanced else min(pause, UNBALANCED)):
                    await self._wake.wait()

    async def _plan(self, topic: str) -> RebalancePlan | None:
        """Return the plan for a topic; None if the members of the group or the queues of the topic are not known."""
        held_queues = {
            queue
            for queue, process_queue in self._held.items()
            if queue.topic == topic and not self._must_release(process_queue)
        }
        if topic not in self._all_subscriptions():
            return RebalancePlan((), (), (), tuple(held_queues), ())
        route = await self.instance.route(topic)
        if route is None or not route.subscribe_queues:
            return None
        if self.is_broadcasting:
            return plan_rebalance(self.client_id, route.subscribe_queues, [self.client_id], held_queues, None)
        ids = await broker_api.consumer_ids(self.instance, self.group, topic)
        if self.client_id not in ids:
            await self.instance.heartbeat()
            return None
        return plan_rebalance(self.client_id, route.subscribe_queues, ids, held_queues, self.strategy)

    def _must_release(self, process_queue: ProcessQueue) -> bool:
        """Return True if a queue is dropped already, or was not pulled for so long that it is taken again."""
        return process_queue.dropped or process_queue.is_stuck(system_clock())

    async def _rebalance(self, topic: str, reason: str) -> bool:
        """Share out one topic. Return True if everything that is the client's own is read."""
        plan = await self._plan(topic)
        if plan is None:
            self._unplanned += 1
            return topic.startswith(RETRY_PREFIX) and self._unplanned > _QUICK_LOOKUPS
        stale = [
            process_queue
            for queue, process_queue in self._held.items()
            if queue.topic == topic and self._must_release(process_queue)
        ]
        released = [self._held[queue] for queue in plan.released] + stale
        not_released = [process_queue.queue for process_queue in released if not await self._release(process_queue)]
        acquired, refused = [], not_released
        for queue in plan.added:
            if queue in self._held or not await self._try_to_acquire(queue):
                refused.append(queue)
            else:
                acquired.append(queue)
        if self.events.has_subscribers:
            self.events.emit(
                Rebalanced(
                    system_clock(),
                    self.client_id,
                    self.group,
                    topic,
                    plan.queues,
                    plan.client_ids,
                    plan.owned,
                    tuple(acquired),
                    tuple(process_queue.queue for process_queue in released),
                    tuple(refused),
                    reason,
                )
            )
        if acquired or released:
            self._changed(topic)
        return not refused

    def _changed(self, topic: str) -> None:
        """The queues of a topic changed: send a newer version of the subscription to brokers."""
        subscription = self.subscriptions.get(topic)
        if subscription is not None:
            self.subscriptions[topic] = replace(subscription, version=system_clock())
            self.instance.soon(self.instance.heartbeat())

    async def _try_to_acquire(self, queue: MessageQueue) -> bool:
        locked = self.config.orderly and not self.is_broadcasting
        if locked and queue not in await broker_api.lock(self.instance, self.group, [queue]):
            return False
        self.offsets.forget(queue)
        try:
            offset = await self._first_offset(queue)
        except FAILURES as error:
            warn(_log, cause_of(error), "the offset of %s: %s", queue, cause_of(error))
            return False
        self._take(queue, offset, locked=locked, locked_at=system_clock())
        return True

    async def _first_offset(self, queue: MessageQueue) -> int:
        """Return the offset at which a queue is first read (docs/protocol/clients.md#first-offset)."""
        committed = await self.offsets.read(queue)
        if committed is not None:
            return committed
        is_retry, start = queue.topic.startswith(RETRY_PREFIX), self.config.start
        if start == FROM_FIRST or (is_retry and start == FROM_LAST):
            return 0
        if start == FROM_LAST or is_retry:
            return await broker_api.max_offset(self.instance, queue)
        return await broker_api.search_offset(
            self.instance, queue, self.config.start_time or system_clock() - _HALF_AN_HOUR
        )

    def _take(self, queue: MessageQueue, offset: int, *, locked: bool = False, locked_at: int = 0) -> None:
        process_queue = ProcessQueue(
            queue, offset, locked=locked, locked_at=locked_at, pulled_at=system_clock(), consumed_at=system_clock()
        )
        self._held[queue] = process_queue
        task = asyncio.create_task(self._read(process_queue))
        self._pulls[process_queue] = task
        task.add_done_callback(self._read_ended)
        if self.events.has_subscribers:
            self.events.emit(QueueAcquired(system_clock(), self.client_id, self.group, queue, offset))

    def _read_ended(self, task: asyncio.Task[None]) -> None:
        for process_queue in [process_queue for process_queue, pull_task in self._pulls.items() if pull_task is task]:
            del self._pulls[process_queue]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a queue is not read any more", exc_info=error)

    async def _drop(self, process_queue: ProcessQueue) -> None:
        """Stop pulling, delivering and committing a queue."""
        process_queue.dropped = True
        task = self._pulls.pop(process_queue, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _release(self, process_queue: ProcessQueue) -> bool:
        """Release a queue. Return False if that is impossible now, because it is being consumed in order."""
        await self._drop(process_queue)
        if self.config.orderly and not self.is_broadcasting and not await self._settled(process_queue):
            return False
        await self.offsets.persist([process_queue.queue])
        offset = self.offsets.known(process_queue.queue)
        self.offsets.forget(process_queue.queue)
        if self.config.orderly and not self.is_broadcasting:
            with contextlib.suppress(*FAILURES):
                await broker_api.unlock(self.instance, self.group, [process_queue.queue])
        if self._held.get(process_queue.queue) is process_queue:
            del self._held[process_queue.queue]
        if self.events.has_subscribers:
            last_offset = -1 if offset is None else offset
            self.events.emit(
                QueueReleased(system_clock(), self.client_id, self.group, process_queue.queue, last_offset)
            )
        return True

    async def _settled(self, _process_queue: ProcessQueue) -> bool:
        """Return True if nobody consumes a queue in order any more; may wait a moment for that."""
        return True

    async def _renew_locks(self) -> None:
        locked_queues = await broker_api.lock(self.instance, self.group, self.owned)
        for queue, process_queue in self._held.items():
            process_queue.locked = queue in locked_queues
            if process_queue.locked:
                process_queue.locked_at = system_clock()

    # Pulling

    async def _read(self, process_queue: ProcessQueue) -> None:
        """Pull a queue until it is dropped, one pull at a time."""
        last_reason = ""
        while process_queue.is_ours():
            process_queue.pulled_at = system_clock()
            reason = self._held_back(process_queue)
            if reason != last_reason and reason and self.events.has_subscribers:
                self.events.emit(PullDelayed(system_clock(), self.client_id, self.group, process_queue.queue, reason))
            last_reason = reason
            if reason:
                await asyncio.sleep(SOON)
                continue
            try:
                result = await self._pull(process_queue)
            except BrokerRefused as error:
                warn(_log, str(error), "pull of %s: %s", process_queue.queue, error)
                await asyncio.sleep(AFTER_FLOW_CONTROL if error.code == ResponseCode.FLOW_CONTROL else AFTER_ERROR)
                continue
            except FAILURES as error:
                warn(_log, cause_of(error), "pull of %s: %s", process_queue.queue, cause_of(error))
                await asyncio.sleep(AFTER_ERROR)
                continue
            if process_queue.is_ours():
                await self._pulled(process_queue, result)
                if self.config.pull_interval:
                    await asyncio.sleep(self.config.pull_interval)

    def _held_back(self, process_queue: ProcessQueue) -> str:
        """Return why a queue is not pulled now; empty if it is."""
        config = self.config
        if self.control.paused or process_queue.paused:
            return sentence("paused")
        if process_queue.count > config.most_held:
            return plural(
                "{n:,} message is held, more than {most:,}",
                "{n:,} messages are held, more than {most:,}",
                n=process_queue.count,
                most=config.most_held,
            )
        if process_queue.size > config.most_bytes:
            return plural(
                "{n:,} byte is held, more than {most:,}",
                "{n:,} bytes are held, more than {most:,}",
                n=process_queue.size,
                most=config.most_bytes,
            )
        if config.orderly and not self.is_broadcasting and not process_queue.locked:
            return sentence("another client has the lock")
        if not config.orderly and process_queue.span > config.widest_span:
            return plural(
                "the messages held span {n:,} offset, more than {most:,}",
                "the messages held span {n:,} offsets, more than {most:,}",
                n=process_queue.span,
                most=config.widest_span,
            )
        return ""

    async def _pull(self, process_queue: ProcessQueue) -> PullResult:
        queue = process_queue.queue
        subscription = self._all_subscriptions().get(queue.topic) or Subscription(queue.topic)
        commits = self.config.auto_commit and self._commits_by_itself and not self.is_broadcasting
        commit = self.offsets.known(queue) if commits else None
        sys_flag = broker_api.SUSPEND | self._pull_flag
        if commit:
            sys_flag |= broker_api.COMMIT_OFFSET
        if subscription.kind == TAG:
            sys_flag |= broker_api.SUBSCRIPTION
        start_ms = system_clock()
        if self.events.has_subscribers:
            self.events.emit(PullSent(start_ms, self.client_id, self.group, queue, process_queue.next_offset))
        result = await broker_api.pull(
            self.instance,
            self.group,
            queue,
            subscription,
            process_queue.next_offset,
            max_messages=self.config.pull_batch,
            sys_flag=sys_flag,
            commit=commit or 0,
            hold=self.config.hold,
            timeout_s=self.config.hold + 15.0,
            broker_id=process_queue.from_broker,
        )
        if self.events.has_subscribers:
            now = system_clock()
            self.events.emit(
                PullAnswered(
                    now,
                    self.client_id,
                    self.group,
                    queue,
                    result.status,
                    len(result.messages),
                    result.next_offset,
                    result.max_offset,
                    now - start_ms,
                )
            )
        return result

    async def _pulled(self, process_queue: ProcessQueue, result: PullResult) -> None:
        process_queue.from_broker = result.from_broker
        if result.status == "OFFSET_ILLEGAL":
            process_queue.dropped = True
            self.offsets.update(process_queue.queue, result.next_offset)
            await self.offsets.persist([process_queue.queue])
            self._saw_reset(process_queue.queue, result.next_offset, "the broker moved the offset")
            self.rebalance_soon("offset moved")
            return
        process_queue.next_offset = result.next_offset
        if result.messages:
            retry = RETRY_PREFIX + self.group
            for message in result.messages:
                if message.topic == retry and (topic := message.properties.get(props.RETRY_TOPIC)):
                    message.topic = topic
            process_queue.put(result.messages)
            self._arrived(process_queue, result.messages)
        elif result.status != "FOUND" and process_queue.count == 0:
            self.offsets.update(process_queue.queue, result.next_offset, only_up=True)

    @abstractmethod
    def _arrived(self, process_queue: ProcessQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Messages were pulled, and are held."""
