"""A push consumer: brokers deliver messages to a listener as soon as they have them, by long polling.

See docs/protocol/clients.md#pull-loop.

Java: ``DefaultMQPushConsumer``, ``ConsumeMessageConcurrentlyService``, ``ConsumeMessageOrderlyService``.

>>> consumer = Consumer("readers", lambda messages, context: print(messages[0].body), "127.0.0.1:9876")
>>> consumer.subscribe("Orders", "hot || iced")
>>> await consumer.start()
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import Enum
from typing import Any

from engine.callbacks import system_clock
from engine.client import broker_api
from engine.client.answers_of_consumer import consumed_directly
from engine.client.consuming import ConsumerConfig, QueueConsumer
from engine.client.events import Consumed, Delivered, EventStream, SentBack
from engine.client.instance import FAILURES, ClientInstance
from engine.client.messages import MAX_RECONSUME_TIMES, RECONSUME_TIME, Message, ReceivedMessage, received
from engine.client.process_queue import ProcessQueue
from engine.client.producer import Producer
from engine.client.rebalance import AllocationStrategy
from engine.client.repeated_warnings import warn
from engine.client.routes import LOGICAL_BROKER, MessageQueue
from engine.codec import message as codec
from engine.codec import properties as props
from engine.errors import CorruptUnit, cause_of
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.system_names import RETRY_PREFIX

CONSUME_START_TIME = "CONSUME_START_TIME"
INNER_PRODUCER = "CLIENT_INNER_PRODUCER"
USUAL_RETRIES = 16
"""Default number of times that a message comes again."""
LOCAL_RETRY_DELAY_S = 5.0
"""Seconds until a message that no broker accepted back is consumed here again."""
FIRST_RETRY_LEVEL = 3
_EXPIRED_AT_ONCE = 16
_OWN_FIELDS = (props.TAGS, props.KEYS, props.WAIT, props.DELAY, props.UNIQUE_KEY, props.TRANSACTION_PREPARED)
_MESSAGES_PER_TURN = 64
"""Messages that one task hands out before others get their turn."""
_log = logging.getLogger(__name__)


class ConsumeStatus(Enum):
    """The result of a listener. LATER: the message comes again (orderly: ``SUSPEND_CURRENT_QUEUE_A_MOMENT``)."""

    SUCCESS = "CONSUME_SUCCESS"
    LATER = "RECONSUME_LATER"


@dataclass(slots=True)
class ConsumeContext:
    """Details that a listener may set beside its result.

    ``delay_level`` applies to messages that come again: 0 leaves it to the broker, −1 makes them dead letters at
    once, others are RocketMQ's levels. The first ``done_with`` messages of a batch are consumed, whatever happens
    to the others. In orderly consumption, the queue pauses for ``suspend`` seconds.
    """

    queue: MessageQueue
    delay_level: int = 0
    done_with: int | None = None
    suspend: float | None = None


Answered = ConsumeStatus | bool | None
Listener = Callable[[Sequence[ReceivedMessage], ConsumeContext], Answered | Awaitable[Answered]]
"""Consumes messages of one queue. None and True are SUCCESS, False and any exception LATER."""


class Consumer(QueueConsumer):
    """Hands messages to ``listener``: a coroutine function, or a plain function.

    A plain function runs in ``executor`` if one is given, otherwise in the event loop, where it must be quick.
    """

    def __init__(
        self,
        group: str,
        listener: Listener,
        namesrv: str = "",
        config: ConsumerConfig | None = None,
        *,
        strategy: AllocationStrategy | None = None,
        instance: ClientInstance | None = None,
        events: EventStream | None = None,
        executor: Executor | None = None,
    ) -> None:
        super().__init__(group, namesrv, config, strategy=strategy, instance=instance, events=events)
        self._listener = listener
        self._executor = None if inspect.iscoroutinefunction(listener) else executor
        self._ready: asyncio.Queue[tuple[ProcessQueue, list[ReceivedMessage]]] = asyncio.Queue()
        self._in_order: dict[ProcessQueue, asyncio.Task[None]] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._busy = 0
        self._inner: Producer | None = None

    async def start(self) -> None:
        """See :meth:`QueueConsumer.start`."""
        await super().start()
        if not self.config.orderly:
            self._workers = [asyncio.create_task(self._work()) for _ in range(self.config.threads)]

    def _more_loops(self) -> Iterable[Coroutine[Any, Any, None]]:
        if not self.config.orderly:
            yield self.instance.repeat(self.config.consume_timeout, self._send_expired_back)

    async def _finish(self, timeout: float) -> None:  # noqa: ASYNC109
        end = time.monotonic() + timeout
        while self._busy and time.monotonic() < end:  # noqa: ASYNC110  many may be at work
            await asyncio.sleep(0.01)
        await self._end_workers()
        if self._inner is not None:
            await self._inner.stop()

    async def kill(self) -> None:
        """See :meth:`QueueConsumer.kill`; running consumption is cut off."""
        await self._end_workers()
        await super().kill()

    async def _end_workers(self) -> None:
        ending = [*self._workers, *self._in_order.values()]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._workers.clear()
        self._in_order.clear()

    def asked(self, request: Command, connection: Connection, /) -> Command | Coroutine[Any, Any, Command] | None:
        """Answer a broker; 309 too: consume one message now."""
        if request.code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
            return self._consume_directly(request)
        return super().asked(request, connection)

    async def _consume_directly(self, request: Command) -> Command:
        queue = MessageQueue("", request.fields.get("brokerName", ""), -1)
        try:
            unit = codec.decode(bytes(request.body))
        except CorruptUnit as error:
            return answer_to(request, ResponseCode.SYSTEM_ERROR, remark=str(error))
        message = received(unit, MessageQueue(unit.topic, queue.broker, unit.queue_id))
        start_ms = system_clock()
        status, remark = await self._ask([message], ConsumeContext(message.queue))
        result = "CR_SUCCESS" if status is ConsumeStatus.SUCCESS else "CR_THROW_EXCEPTION" if remark else "CR_LATER"
        body = consumed_directly(
            order=self.config.orderly, result=result, remark=remark or None, spent=system_clock() - start_ms
        )
        return answer_to(request, body=body)

    # Consuming

    def _arrived(self, process_queue: ProcessQueue, messages: Sequence[ReceivedMessage]) -> None:
        if self.config.orderly:
            if process_queue not in self._in_order:
                task = self._in_order[process_queue] = asyncio.create_task(self._consume_in_order(process_queue))
                task.add_done_callback(lambda _: self._in_order.pop(process_queue, None))
            return
        size = self.config.batch
        for start in range(0, len(messages), size):
            self._ready.put_nowait((process_queue, list(messages[start : start + size])))

    async def _work(self) -> None:
        """Consume ready messages, batch after batch."""
        done = 0
        while True:
            process_queue, messages = await self._ready.get()
            if not self._running:
                return  # what waits is consumed by another member, or later
            try:
                await self._consume(process_queue, messages)
            except asyncio.CancelledError:
                raise
            except Exception:  # noqa: BLE001  the next messages are consumed all the same
                _log.exception("messages of %s", process_queue.queue)
            done += 1
            if done % _MESSAGES_PER_TURN == 0:
                await asyncio.sleep(0)

    async def _consume(self, process_queue: ProcessQueue, messages: list[ReceivedMessage]) -> None:
        if self.control.delay:
            await asyncio.sleep(self.control.delay * len(messages))
        if not self._may_consume(process_queue):
            return
        self._busy += 1
        try:
            await self._consume_now(process_queue, messages)
        finally:
            self._busy -= 1

    def _may_consume(self, process_queue: ProcessQueue) -> bool:
        """Return True if the queue is this client's, and it does not stop."""
        return self._running and process_queue.is_ours()

    async def _consume_now(self, process_queue: ProcessQueue, messages: list[ReceivedMessage]) -> None:
        context = ConsumeContext(process_queue.queue)
        status, _ = await self._hand_out(process_queue, messages, context)
        if not process_queue.is_ours():
            return
        if status is ConsumeStatus.SUCCESS:
            done = len(messages) if context.done_with is None else min(context.done_with, len(messages))
        else:
            done = context.done_with or 0
        failed = messages[done:]
        if failed:
            messages = await self._not_consumed(process_queue, messages, failed, context)
        offset = process_queue.remove(messages)
        if offset >= 0 and process_queue.is_ours():
            self.offsets.update(process_queue.queue, offset, only_up=True)

    async def _hand_out(
        self, process_queue: ProcessQueue, messages: Sequence[ReceivedMessage], context: ConsumeContext
    ) -> tuple[ConsumeStatus, str]:
        now = system_clock()
        if not self.config.orderly:
            start_property = {CONSUME_START_TIME: str(now)}
            for message in messages:
                message.note(start_property)
        if self.events.has_subscribers:
            for message in messages:
                self.events.emit(delivered(self, message, now))
        started = time.monotonic()
        status, words = await self._ask(messages, context)
        process_queue.consumed_at = system_clock()
        if self.events.has_subscribers:
            ms = (time.monotonic() - started) * 1000
            first_offset = messages[0].queue_offset
            self.events.emit(
                Consumed(
                    process_queue.consumed_at,
                    self.client_id,
                    self.group,
                    process_queue.queue,
                    first_offset,
                    len(messages),
                    status.value,
                    ms,
                )
            )
        return status, words

    async def _ask(self, messages: Sequence[ReceivedMessage], context: ConsumeContext) -> tuple[ConsumeStatus, str]:
        return await answer_of(self._listener, self._executor, messages, context, self.group)

    async def _not_consumed(
        self,
        process_queue: ProcessQueue,
        messages: list[ReceivedMessage],
        failed: Sequence[ReceivedMessage],
        context: ConsumeContext,
    ) -> list[ReceivedMessage]:
        """Send back the messages that were not consumed. Return those of all that need not be held any more."""
        if self.is_broadcasting:
            _log.warning(
                "%d messages of %s were not consumed, and come to nobody again", len(failed), process_queue.queue
            )
            return messages
        retried_here = []
        for message in failed:
            if message.queue_offset in process_queue.held and not await self._send_back(message, context.delay_level):
                message.reconsume_times += 1
                retried_here.append(message)
        if retried_here:
            self.instance.soon(self._again_here(process_queue, retried_here))
        return [message for message in messages if message not in retried_here]

    async def _again_here(self, process_queue: ProcessQueue, messages: list[ReceivedMessage]) -> None:
        await asyncio.sleep(LOCAL_RETRY_DELAY_S)
        self._ready.put_nowait((process_queue, messages))

    async def _send_back(self, message: ReceivedMessage, delay_level: int) -> bool:
        """Give a message back to its broker, or send it to the group's retry topic.

        Messages of static topics go to the retry topic, as in Java. Return False if neither accepted it.
        """
        max_retries = USUAL_RETRIES if self.config.max_reconsume == -1 else self.config.max_reconsume
        if message.queue.broker.startswith(LOGICAL_BROKER):
            is_accepted = await self._send_to_retry(message, message.reconsume_times + 1, max_retries)
            if is_accepted:
                self._saw_back(message, by_broker=False)
            return is_accepted
        by_broker = True
        try:
            await broker_api.send_back(self.instance, self.group, message, delay_level, max_retries)
        except FAILURES as error:
            warn(_log, cause_of(error), "%s is not taken back: %s", message.msg_id, cause_of(error))
            by_broker = False
            if not await self._send_to_retry(message, message.reconsume_times + 1, max_retries):
                return False
        self._saw_back(message, by_broker=by_broker)
        return True

    def _saw_back(self, message: ReceivedMessage, *, by_broker: bool) -> None:
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
                    by_broker,
                )
            )

    async def _send_to_retry(self, message: ReceivedMessage, times: int, max_retries: int) -> bool:
        """Send the message as a new one to the group's retry topic.

        The broker makes a dead letter of one that came too often.
        """
        properties = {name: value for name, value in message.properties.items() if name not in _OWN_FIELDS and value}
        properties |= {
            props.RETRY_TOPIC: message.topic,
            RECONSUME_TIME: str(times),
            MAX_RECONSUME_TIMES: str(max_retries),
            props.ORIGIN_MESSAGE_ID: message.properties.get(props.ORIGIN_MESSAGE_ID) or message.msg_id,
        }
        retry_message = Message(
            RETRY_PREFIX + self.group,
            message.body,
            message.tags,
            message.keys,
            properties,
            delay_level=FIRST_RETRY_LEVEL + message.reconsume_times,
            flag=message.flag,
            msg_id=message.properties.get(props.UNIQUE_KEY, ""),
        )
        try:
            if self._inner is None:
                self._inner = Producer(INNER_PRODUCER, instance=self.instance)
                await self._inner.start()
            await self._inner.send(retry_message)
        except FAILURES as error:
            warn(_log, cause_of(error), "%s is not sent to the retry topic: %s", message.msg_id, cause_of(error))
            return False
        return True

    async def _send_expired_back(self) -> None:
        """Send back messages whose consumption takes too long; other clients get them."""
        cutoff_ms = system_clock() - int(self.config.consume_timeout * 1000)
        for process_queue in self.process_queues:
            for _ in range(_EXPIRED_AT_ONCE):
                lowest_offset = process_queue.lowest
                message = None if lowest_offset is None else process_queue.held[lowest_offset]
                start_ms = 0 if message is None else int(message.properties.get(CONSUME_START_TIME, 0))
                if message is None or not start_ms or start_ms > cutoff_ms:
                    break
                if not await self._send_back(message, FIRST_RETRY_LEVEL):
                    break
                offset = process_queue.remove([message])
                if offset >= 0 and process_queue.is_ours():
                    self.offsets.update(process_queue.queue, offset, only_up=True)

    # In order

    async def _settled(self, process_queue: ProcessQueue) -> bool:
        task = self._in_order.get(process_queue)
        if task is None:
            return True
        await asyncio.wait({task}, timeout=1.0)
        return task.done()

    async def _consume_in_order(self, process_queue: ProcessQueue) -> None:
        """Consume a queue message after message until it is empty, or belongs to another client."""
        done = 0
        while self._may_consume(process_queue):
            if not self.is_broadcasting and not process_queue.is_locked(system_clock()):
                if not await self._lock_again(process_queue):
                    await asyncio.sleep(3.0)
                continue
            messages = process_queue.take(self.config.batch)
            if not messages:
                return
            if self.control.delay:
                await asyncio.sleep(self.control.delay * len(messages))
            if not self._may_consume(process_queue):
                return
            context = ConsumeContext(process_queue.queue)
            self._busy += 1
            try:
                is_consumed = await self._consume_batch_in_order(process_queue, messages, context)
            finally:
                self._busy -= 1
            if not process_queue.is_ours():
                return
            if not is_consumed:
                await asyncio.sleep(self.config.suspend if context.suspend is None else context.suspend)
                continue
            done += 1
            if done % _MESSAGES_PER_TURN == 0:
                await asyncio.sleep(0)

    async def _consume_batch_in_order(
        self, process_queue: ProcessQueue, messages: list[ReceivedMessage], context: ConsumeContext
    ) -> bool:
        """Return False if the messages come again here."""
        status, _ = await self._hand_out(process_queue, messages, context)
        if not process_queue.is_ours():
            return False
        if status is ConsumeStatus.LATER and await self._comes_again(messages):
            process_queue.give_back(messages)
            return False
        offset = process_queue.commit()
        if offset >= 0:
            self.offsets.update(process_queue.queue, offset)
        return True

    async def _lock_again(self, process_queue: ProcessQueue) -> bool:
        process_queue.locked = process_queue.queue in await broker_api.lock(
            self.instance, self.group, [process_queue.queue]
        )
        if process_queue.locked:
            process_queue.locked_at = system_clock()
        return process_queue.locked

    async def _comes_again(self, messages: Sequence[ReceivedMessage]) -> bool:
        """Return True if messages are consumed here again; those that came too often go to the dead letters."""
        max_reconsume = self.config.max_reconsume
        retries_here = False
        for message in messages:
            too_often = 0 <= max_reconsume <= message.reconsume_times
            if too_often and await self._send_to_retry(message, message.reconsume_times, max_reconsume):
                self._saw_back(message, by_broker=False)
                continue
            message.reconsume_times += 1
            retries_here = True
        return retries_here


def delivered(consumer: QueueConsumer, message: ReceivedMessage, now: int) -> Delivered:
    """Return the event of a message that is handed to the listener."""
    return Delivered(
        now,
        consumer.client_id,
        consumer.group,
        message.queue,
        message.queue_offset,
        message.msg_id,
        message.keys,
        message.reconsume_times,
        message.store_timestamp,
    )


async def answer_of(
    listener: Listener,
    executor: Executor | None,
    messages: Sequence[ReceivedMessage],
    context: ConsumeContext,
    group: str,
) -> tuple[ConsumeStatus, str]:
    """Return the listener's status, and the text of what it raised."""
    try:
        if executor is not None:
            loop = asyncio.get_running_loop()
            result: Any = await loop.run_in_executor(executor, listener, messages, context)
        else:
            result = listener(messages, context)
            if isinstance(result, Awaitable):
                result = await result
    except Exception as error:  # noqa: BLE001  whatever a listener raises, the message comes again
        words = f"{type(error).__name__}: {error}"
        warn(_log, words, "a listener of %s: %s", group, words)
        return ConsumeStatus.LATER, words
    if result is None or result is True or result is ConsumeStatus.SUCCESS:
        return ConsumeStatus.SUCCESS, ""
    return ConsumeStatus.LATER, ""
