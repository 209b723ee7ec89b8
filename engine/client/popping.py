"""A consumer that pops: brokers hand messages out one by one, whoever asks, and bring back what nobody acknowledged.

No queue is anybody's own, so a slow consumer holds nobody up (pop page 1, 3). Which queues a member pops it decides
itself (all of them), or a broker does (:func:`query_assignment`). In order, a broker hands a queue's next messages out
when what it handed out before is done with, whoever asks (pop page 2.7).
Brokers of 5.x only. Java: ``DefaultMQPushConsumer`` with ``clientRebalance=false``, its
``ConsumeMessagePopConcurrentlyService``, and ``RebalanceImpl.getRebalanceResultFromBroker``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import uuid
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from engine.client.consumer import ConsumeContext, ConsumeStatus, Listener, answer_of
from engine.client.consuming import AFTER_ERROR, FROM_FIRST, FROM_LAST, SOON
from engine.client.errors import BrokerRefused, NoRoute, WrongMessage
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
from engine.client.instance import (
    FAILURES,
    NOTIFY_CONSUMER_IDS_CHANGED,
    ClientInstance,
    ClientPart,
    spelled,
)
from engine.client.messages import ReceivedMessage, check_topic, read_messages
from engine.client.routes import MASTER, MessageQueue, NotUnderstood, queue_order, read_object
from engine.codec import pop as codec
from engine.codec import properties as props
from engine.remoting.codes import Answer
from engine.remoting.connection import Connection, not_supported
from engine.remoting.frame import Command
from engine.remoting.subscriptions import TAG, Subscription

POP_MESSAGE, ACK_MESSAGE, CHANGE_MESSAGE_INVISIBLETIME = 200_050, 200_051, 200_053
QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE = 400, 401
POP, PULL = "POP", "PULL"
"""How a group gets a topic's messages (Java: ``MessageRequestMode``)."""
POP_CK = "POP_CK"
"""The property that a popped message is acknowledged with."""
EVERY_QUEUE = -1
"""``queueId`` of a pop that takes from all queues of a broker."""
BACKOFF = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""Seconds until a message that failed comes again, by how often it came before."""
_SAID_NOTHING = 1.0
"""Seconds until a broker is asked again that could not say which queues are whose."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PopResult:
    """The answer to a pop; each message has its handle as the property POP_CK. ``rest`` messages are left."""

    status: str
    messages: list[ReceivedMessage]
    pop_time: int
    rest: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """A queue that a broker gives a client, and whether that is to pop or to pull it. A queue id of −1 stands for every
    queue of the topic on that broker.
    """

    queue: MessageQueue
    mode: str


async def query_assignment(
    instance: ClientInstance, group: str, topic: str, *, strategy: str = "AVG"
) -> list[Assignment] | None:
    """400: which queues of ``topic``, on whatever brokers, are this client's, as one broker of the topic reckons it
    from the heartbeats that it got; None where it says nothing (the group or the topic is not known there yet).
    ``strategy`` is AVG or AVG_BY_CIRCLE.

    Raises :class:`BrokerRefused`, :class:`NoRoute`, :class:`NotUnderstood`, ``OSError``, ``TimeoutError``: the last of
    them where no broker answers.
    """
    told = {
        "clientId": instance.client_id, "consumerGroup": group, "messageModel": "CLUSTERING",
        "strategyName": strategy, "topic": topic,
    }  # fmt: skip
    body = json.dumps(told, separators=(",", ":")).encode()
    masters = await _addresses(instance, topic)
    random.shuffle(masters)
    last: Exception = NoRoute(f"No route info of this topic: {topic}")
    for address in masters:
        try:
            answer = await instance.call(address, QUERY_ASSIGNMENT, {}, body)
        except FAILURES as error:
            last = error
        else:
            return _assignments(bytes(answer.body))
    raise last


def _assignments(body: bytes) -> list[Assignment] | None:
    rows = read_object(body).get("messageQueueAssignments") if body else None
    if rows is None:
        return None
    found = []
    for row in rows if isinstance(rows, Sequence) else ():
        queue = row.get("messageQueue") if isinstance(row, Mapping) else None
        if not isinstance(queue, Mapping):
            raise NotUnderstood(f"an assignment without a queue: {row!r}")
        named = MessageQueue(str(queue.get("topic")), str(queue.get("brokerName")), int(queue.get("queueId", -1)))
        found.append(Assignment(named, str(row.get("mode") or PULL)))
    return found


async def set_request_mode(
    instance: ClientInstance, group: str, topic: str, mode: str, *, share_queues: int = 0
) -> None:
    """401, to each master of the topic: the group pops (``POP``) or pulls (``PULL``) it from now on, as far as its
    members ask brokers. With ``share_queues`` below the number of members each pops its own queues and those of so many
    members behind it; 0: all queues (Java: ``popShareQueueNum``).

    Raises :class:`BrokerRefused` (16 for a retry topic, 17 and 26 for what is not known), :class:`NoRoute`,
    ``OSError``, ``TimeoutError``.
    """
    if mode not in (POP, PULL):
        raise WrongMessage(f"mode is {mode!r}, expected {POP} or {PULL}")
    told = {"consumerGroup": group, "mode": mode, "popShareQueueNum": share_queues, "topic": topic}
    body = json.dumps(told, separators=(",", ":")).encode()
    for address in await _addresses(instance, topic):
        await instance.call(address, SET_MESSAGE_REQUEST_MODE, {}, body)


async def _addresses(instance: ClientInstance, topic: str) -> list[str]:
    """The topic's masters. Raises :class:`NoRoute`."""
    route = await instance.fresh_route(topic)
    found = [route.brokers[name][MASTER] for name in _masters(route.brokers)] if route is not None else []
    if not found:
        raise NoRoute(f"No route info of this topic: {topic}")
    return found


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
    orderly: bool = False,
    attempt: str | None = None,
) -> PopResult:
    """Messages of a topic on one broker, invisible to others for ``invisible`` seconds; the broker may hold the
    question ``hold`` seconds. ``from_first``: where a group begins that has no offset. ``orderly``: of no queue of
    which the group has something in its hands; a question that is repeated with the same ``attempt``, whatever text,
    gets what it should have got the first time.

    Raises :class:`BrokerRefused`, :class:`NoRoute`, ``OSError``, ``TimeoutError``.
    """
    address = instance.address(broker)
    fields = {
        "consumerGroup": group, "topic": subscription.topic, "queueId": queue_id, "maxMsgNums": most,
        "invisibleTime": int(invisible * 1000), "pollTime": int(hold * 1000), "bornTime": now_ms(),
        "initMode": 0 if from_first else 1, "expType": subscription.kind, "exp": subscription.expression,
        "order": orderly, "attemptId": attempt, "bname": broker,
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
    counts = _counts(told.get("orderCountInfo", "")) if orderly else {}
    for one in messages:
        if orderly:
            one.reconsume_times = counts.get((one.queue_id, one.queue_offset), counts.get((one.queue_id, -1), 0))
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


def _counts(text: str) -> dict[tuple[int, int], int]:
    """``orderCountInfo``: how often messages came before, by queue and offset, −1 for all others of the queue."""
    found = {}
    for entry in text.split(";"):
        words = entry.split(" ")
        if len(words) == 3 and words[2].isdecimal():
            queue, _, offset = words[1].removeprefix("qo").partition("%")
            if queue.isdecimal() and (offset.isdecimal() or not offset):
                found[int(queue), int(offset) if offset else -1] = int(words[2])
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
    """A message that came more often is acknowledged unseen; in order it comes as long as it fails."""
    rebalance_interval: float = 20.0
    """How often brokers are looked for anew."""
    orderly: bool = False
    """Each queue's messages one after the other, whoever of the group gets them: the next come when all that came are
    acknowledged, or their ``invisible`` time is over. So it must be longer than ``pull_batch`` messages take.
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
        self._ready: asyncio.Queue[list[ReceivedMessage]] = asyncio.Queue()
        """What is to be consumed: single messages, or in order what one pop got of one queue."""
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
        ending = [*self._loops, *self._pops.values()]
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
            "consumeFromWhere": self.config.start, "consumeType": "CONSUME_PASSIVELY", "groupName": self.group,
            "messageModel": "CLUSTERING", "unitMode": False,
            "subscriptionDataSet": [one.record() for one in self.subscriptions.values()],
        }  # fmt: skip

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
                _log.warning("queues of %s: %s", self.group, str(error) or "no answer")

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
            brokers = _masters(route.brokers) if route is not None else ()
            return {MessageQueue(topic, one, EVERY_QUEUE) for one in brokers}, set()
        try:
            told = await query_assignment(self.instance, self.group, topic, strategy=self.config.strategy)
        except BrokerRefused:
            raise
        except FAILURES as error:
            _log.warning("queues of %s for %s: %s", topic, self.group, str(error) or "no answer")
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
                    now_ms(), self.client_id, self.group, topic, owned, (), owned, taken, given_up, refused,
                    "shared out by a broker" if self.config.shared_by_broker else "",
                )
            )  # fmt: skip

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
                    self.instance, self.group, broker, self.subscriptions[topic], queue_id=queue.queue_id,
                    most=config.pull_batch, invisible=config.invisible, hold=config.hold,
                    from_first=config.start == FROM_FIRST, orderly=config.orderly, attempt=attempt,
                )  # fmt: skip
            except FAILURES as error:
                _log.warning("pop of %s on %s: %s", topic, broker, str(error) or "no answer")
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
            for batch in _by_their_queue(result.messages) if config.orderly else ([one] for one in result.messages):
                self._ready.put_nowait(batch)

    # Consuming

    async def _work(self) -> None:
        while True:
            batch = await self._ready.get()
            first = batch[0]
            try:
                if self.config.orderly:
                    async with self._in_turn.setdefault(first.queue, asyncio.Lock()):
                        await self._consume_in_order(batch)
                else:
                    await self._consume(first)
            except FAILURES as error:
                _log.warning("%s: %s", first.msg_id, str(error) or "no answer")
            finally:
                place = (first.queue.topic, first.queue.broker)
                self._open[place] = self._open.get(place, len(batch)) - len(batch)

    async def _consume_in_order(self, batch: Sequence[ReceivedMessage]) -> None:
        """One after the other, up to the first that fails: that one and what is behind it come again together, and
        first. Nothing is begun that others may have by now.
        """
        for at, message in enumerate(batch):
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
                for one in reversed(batch[at:]):
                    await change_invisible(self.instance, self.group, one, rest)
                self._saw_sent_back(message)
                return
            if not await self._acknowledged_in_time(message):
                return

    async def _acknowledged_in_time(self, message: ReceivedMessage) -> bool:
        """What is not acknowledged comes again, with what is behind it: so nothing more is consumed before it is."""
        while not _is_due(message):
            try:
                await self._acknowledge(message)
            except BrokerRefused:
                raise
            except FAILURES as error:
                _log.warning("%s: %s", message.msg_id, str(error) or "no answer")
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
                    begun, self.client_id, self.group, queue, at, message.msg_id, message.keys,
                    message.reconsume_times, message.store_timestamp,
                )
            )  # fmt: skip
        status, _ = await answer_of(self._listener, self._executor, [message], context, self.group)
        if self.events.wanted:
            now = now_ms()
            self.events.emit(Consumed(now, self.client_id, self.group, queue, at, 1, status.value, now - begun))
        return status

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
        self._saw_sent_back(message)

    def _saw_sent_back(self, message: ReceivedMessage) -> None:
        if self.events.wanted:
            self.events.emit(
                SentBack(
                    now_ms(), self.client_id, self.group, message.queue, message.queue_offset, message.msg_id,
                    message.reconsume_times, by_broker=True,
                )
            )  # fmt: skip


def _masters(brokers: Mapping[str, Mapping[int, str]]) -> Iterable[str]:
    return sorted(name for name, addresses in brokers.items() if MASTER in addresses)


def _is_due(message: ReceivedMessage) -> bool:
    """Whether others may have it by now."""
    return now_ms() >= codec.Handle.parse(message.properties[POP_CK]).due


def _by_their_queue(messages: Iterable[ReceivedMessage]) -> list[list[ReceivedMessage]]:
    found: dict[MessageQueue, list[ReceivedMessage]] = {}
    for one in messages:
        found.setdefault(one.queue, []).append(one)
    return [sorted(batch, key=lambda one: one.queue_offset) for batch in found.values()]
