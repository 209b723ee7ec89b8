"""Producers and consumers for code without an event loop: the asynchronous ones, on one loop in a thread of its own.

Listeners are plain functions, and run in threads. Everything else is documented with the asynchronous classes
(:mod:`engine.client.producer`, ``consumer``, ``pulling``, ``popping``, ``admin``, ``topic_reader``); ``options`` are
their further settings, such as ``events`` and ``instance``.

>>> with BlockingProducer("orders", "127.0.0.1:9876") as producer:
...     producer.send(Message("Orders", b"one cup of tea"))
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, Self, TypeVar

from engine.client.admin import QUEUES, Admin, QueueLag
from engine.client.broker_api import PullResult
from engine.client.consumer import Consumer, Listener
from engine.client.consuming import ConsumerConfig
from engine.client.errors import NotRunning
from engine.client.events import EventStream
from engine.client.instance import ClientInstance
from engine.client.messages import Message, QueueSelector, ReceivedMessage, SendResult
from engine.client.popping import PopConfig, PopConsumer
from engine.client.producer import Producer, ProducerConfig, SendHook, TransactionListener, TransactionState
from engine.client.pulling import POLL, LitePullConsumer, PullConsumer
from engine.client.routes import MessageQueue
from engine.client.topic_reader import QueueRange, TopicReader, UnitPage
from engine.older_names import renamed_keyword
from engine.remoting.subscriptions import TAG

T = TypeVar("T")


class _Loop:
    """The event loop behind all blocking clients of this process; its thread ends with the last of them."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def enter(self) -> asyncio.AbstractEventLoop:
        """Count one more user, and return the loop; the first one starts it."""
        with self._gate:
            self._users += 1
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="storescope-client", daemon=True)
                self._thread.start()
            return self._loop

    def leave(self) -> None:
        """Count one user less; the last one ends the loop."""
        with self._gate:
            self._users -= 1
            if self._users or self._loop is None or self._thread is None:
                return
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None


_LOOP = _Loop()


class _Part(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    @property
    def client_id(self) -> str: ...

    @property
    def events(self) -> EventStream: ...


class _Blocking:
    """Common parts of the blocking clients: ``with``, or :meth:`start` and :meth:`stop`."""

    def __init__(self, part: _Part) -> None:
        self._part = part
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def client_id(self) -> str:
        return self._part.client_id

    @property
    def events(self) -> EventStream:
        """Events of this client; subscribers are called by the loop's thread, and must be quick."""
        return self._part.events

    def start(self) -> None:
        """Start the client. Raises what the asynchronous client raises."""
        self._loop = _LOOP.enter()
        try:
            self._ask(self._part.start())
        except BaseException:
            self._left()
            raise

    def stop(self) -> None:
        """Stop the client; a second call does nothing."""
        self._stop(self._part.stop())

    def _stop(self, stopping: Coroutine[Any, Any, None]) -> None:
        if self._loop is None:
            stopping.close()
            return
        try:
            self._ask(stopping)
        finally:
            self._left()

    def _left(self) -> None:
        self._loop = None
        _LOOP.leave()

    def _begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop is None:
            work.close()
            raise NotRunning(f"{type(self).__name__} is not started, or has stopped")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _ask(self, work: Coroutine[Any, Any, T]) -> T:
        return self._begin(work).result()

    def _do(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function on the loop's thread; before the start there is no loop, and nothing else runs."""
        if self._loop is None:
            return function(*args, **kwargs)

        async def done() -> T:
            return function(*args, **kwargs)

        return self._ask(done())


class _InThreads:
    """A transaction listener of plain functions, which may be slow: they run in threads."""

    def __init__(self, listener: TransactionListener) -> None:
        self._listener = listener

    async def execute(self, message: Message, argument: object) -> TransactionState:
        return await _listener_state(self._listener.execute, message, argument)

    async def check(self, message: ReceivedMessage) -> TransactionState:
        return await _listener_state(self._listener.check, message)


async def _listener_state(decide: Callable[..., Any], *args: object) -> TransactionState:
    decision = await asyncio.to_thread(decide, *args)
    return TransactionState(decision if not asyncio.iscoroutine(decision) else await decision)


class BlockingProducer(_Blocking):
    """See :class:`engine.client.producer.Producer`. Safe for many threads."""

    def __init__(
        self,
        group: str,
        namesrv: str = "",
        config: ProducerConfig | None = None,
        *,
        listener: TransactionListener | None = None,
        hooks: Sequence[SendHook] = (),
        **options: Any,
    ) -> None:
        in_threads = None if listener is None else _InThreads(listener)
        self.asynchronous = Producer(group, namesrv, config, listener=in_threads, hooks=hooks, **options)
        super().__init__(self.asynchronous)

    @renamed_keyword("patience", "timeout_s")
    def send(
        self,
        message: Message | Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        order_by: str | None = None,
        select: QueueSelector | None = None,
        key: str | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Send, and wait for the answer."""
        return self._ask(
            self.asynchronous.send(message, queue=queue, order_by=order_by, select=select, key=key, timeout_s=timeout_s)
        )

    @renamed_keyword("patience", "timeout_s")
    def send_soon(
        self,
        message: Message | Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        order_by: str | None = None,
        select: QueueSelector | None = None,
        key: str | None = None,
        timeout_s: float | None = None,
    ) -> Future[SendResult]:
        """Send without waiting; the future gets the result."""

        async def sent() -> SendResult:
            return await self.asynchronous.send_soon(
                message, queue=queue, order_by=order_by, select=select, key=key, timeout_s=timeout_s
            )

        return self._begin(sent())

    def send_one_way(
        self,
        message: Message | Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        order_by: str | None = None,
        select: QueueSelector | None = None,
        key: str | None = None,
    ) -> MessageQueue:
        """Send, and ask for no answer."""
        return self._ask(
            self.asynchronous.send_one_way(message, queue=queue, order_by=order_by, select=select, key=key)
        )

    def send_in_transaction(self, message: Message, argument: object = None) -> tuple[SendResult, TransactionState]:
        """Send a half message, and let the listener decide."""
        return self._ask(self.asynchronous.send_in_transaction(message, argument))

    @renamed_keyword("patience", "timeout_s")
    def request(self, message: Message, timeout_s: float) -> ReceivedMessage:
        """Send, and wait for the reply of the consumer."""
        return self._ask(self.asynchronous.request(message, timeout_s))

    def reply(self, message: Message) -> SendResult:
        """Send the answer to a request."""
        return self._ask(self.asynchronous.reply(message))

    def recall(self, topic: str, handle: str) -> str:
        """Recall a message that is not due yet."""
        return self._ask(self.asynchronous.recall(topic, handle))

    def pause(self) -> None:
        """Let sends wait until :meth:`resume`."""
        self._do(self.asynchronous.pause)

    def resume(self) -> None:
        """Go on sending."""
        self._do(self.asynchronous.resume)


class BlockingConsumer(_Blocking):
    """See :class:`engine.client.consumer.Consumer`. ``listener`` runs in as many threads as ``config`` says."""

    def __init__(
        self,
        group: str,
        listener: Listener,
        namesrv: str = "",
        config: ConsumerConfig | None = None,
        **options: Any,
    ) -> None:
        config = config or ConsumerConfig()
        self._pool = ThreadPoolExecutor(config.threads, thread_name_prefix=f"storescope-{group}")
        self.asynchronous = Consumer(group, listener, namesrv, config, executor=self._pool, **options)
        super().__init__(self.asynchronous)

    def subscribe(self, topic: str, expression: str = "*", kind: str = TAG) -> None:
        """Consume a topic."""
        self._do(self.asynchronous.subscribe, topic, expression, kind)

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic."""
        self._do(self.asynchronous.unsubscribe, topic)

    def stop(self, timeout: float | None = None) -> None:
        """See :meth:`engine.client.consuming.QueueConsumer.stop`.

        A listener that takes longer than ``timeout`` runs on in its thread, and its messages come again.
        """
        self._stop(self.asynchronous.stop(timeout))
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def owned(self) -> tuple[MessageQueue, ...]:
        """Queues that are read now."""
        return self._do(lambda: self.asynchronous.owned)

    def commit(self) -> None:
        """Commit, and wait until the offsets are stored."""
        self._ask(self.asynchronous.commit())

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Read one of the client's queues from ``offset`` on."""
        self._ask(self.asynchronous.seek(queue, offset))

    def pause(self) -> None:
        """Stop pulling until :meth:`resume`."""
        self._do(self.asynchronous.pause)

    def resume(self) -> None:
        """Pull again."""
        self._do(self.asynchronous.resume)


class BlockingPopConsumer(_Blocking):
    """See :class:`engine.client.popping.PopConsumer`. ``listener`` runs in as many threads as ``config`` says."""

    def __init__(
        self,
        group: str,
        listener: Listener,
        namesrv: str = "",
        config: PopConfig | None = None,
        **options: Any,
    ) -> None:
        config = config or PopConfig()
        self._pool = ThreadPoolExecutor(config.threads, thread_name_prefix=f"storescope-{group}")
        self.asynchronous = PopConsumer(group, listener, namesrv, config, executor=self._pool, **options)
        super().__init__(self.asynchronous)

    def subscribe(self, topic: str, expression: str = "*", kind: str = TAG) -> None:
        """Consume a topic."""
        self.asynchronous.subscribe(topic, expression, kind)

    @property
    def popped_queues(self) -> tuple[MessageQueue, ...]:
        """Queues that are popped now; a queue id of −1 stands for every queue of that broker."""
        return self.asynchronous.popped_queues

    def set_request_mode(self, topic: str, mode: str, share_queues: int = 0) -> None:
        """Set how this consumer's group gets a topic from now on."""
        self._ask(self.asynchronous.set_request_mode(topic, mode, share_queues=share_queues))

    def stop(self, timeout: float | None = None) -> None:
        """See :meth:`engine.client.popping.PopConsumer.stop`.

        A listener that takes longer than ``timeout`` runs on in its thread, and its messages come again.
        """
        self._stop(self.asynchronous.stop(timeout))
        self._pool.shutdown(wait=False, cancel_futures=True)


class BlockingLitePullConsumer(_Blocking):
    """See :class:`engine.client.pulling.LitePullConsumer`."""

    def __init__(
        self,
        group: str,
        namesrv: str = "",
        config: ConsumerConfig | None = None,
        **options: Any,
    ) -> None:
        self.asynchronous = LitePullConsumer(group, namesrv, config, **options)
        super().__init__(self.asynchronous)

    def subscribe(self, topic: str, expression: str = "*", kind: str = TAG) -> None:
        """Consume a topic."""
        self._do(self.asynchronous.subscribe, topic, expression, kind)

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Read these queues and no others."""
        self._do(self.asynchronous.assign, queues)

    @property
    def owned(self) -> tuple[MessageQueue, ...]:
        """Queues that are read now."""
        return self._do(lambda: self.asynchronous.owned)

    @renamed_keyword("patience", "timeout_s")
    def poll(self, timeout_s: float = POLL) -> list[ReceivedMessage]:
        """Return messages of one queue; an empty list if none came in time."""
        return self._ask(self.asynchronous.poll(timeout_s))

    def commit(self) -> None:
        """Commit the messages that were returned, and wait until the offsets are stored."""
        self._ask(self.asynchronous.commit())

    def committed(self, queue: MessageQueue) -> int | None:
        """Return the offset that the group committed for a queue."""
        return self._ask(self.asynchronous.committed(queue))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Read one of the client's queues from ``offset`` on."""
        self._ask(self.asynchronous.seek(queue, offset))

    def pause_queues(self, *queues: MessageQueue, paused: bool = True) -> None:
        """Stop pulling some queues, or pull them again."""
        self._do(self.asynchronous.pause_queues, *queues, paused=paused)


class BlockingPullConsumer(_Blocking):
    """See :class:`engine.client.pulling.PullConsumer`."""

    def __init__(self, group: str, namesrv: str = "", **options: Any) -> None:
        self.asynchronous = PullConsumer(group, namesrv, **options)
        super().__init__(self.asynchronous)

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the readable queues of a topic."""
        return self._ask(self.asynchronous.queues(topic))

    def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        max_messages: int = 32,
        expression: str = "*",
        kind: str = TAG,
        hold: float = 0.0,
    ) -> PullResult:
        """Return messages of a queue from ``offset`` on."""
        return self._ask(
            self.asynchronous.pull(
                queue, offset, max_messages=max_messages, expression=expression, kind=kind, hold=hold
            )
        )

    def fetch_offset(self, queue: MessageQueue) -> int | None:
        """Return the offset that the group reads next."""
        return self._ask(self.asynchronous.fetch_offset(queue))

    def commit(self, queue: MessageQueue, offset: int) -> None:
        """Commit ``offset``: the group reads it next."""
        self._ask(self.asynchronous.commit(queue, offset))

    def send_back(self, message: ReceivedMessage, delay_level: int = 0, max_reconsume: int = 16) -> None:
        """Let a message come again to the group's consumers."""
        self._ask(self.asynchronous.send_back(message, delay_level, max_reconsume))


class BlockingAdmin(_Blocking):
    """See :class:`engine.client.admin.Admin`."""

    def __init__(self, namesrv: str = "", **options: Any) -> None:
        self.asynchronous = Admin(namesrv, **options)
        super().__init__(self.asynchronous)

    def create_topic(
        self,
        topic: str,
        queues: int = QUEUES,
        *,
        readable: bool = True,
        writable: bool = True,
        message_type: str = "",
        brokers: Collection[str] = (),
    ) -> None:
        """Create or change a topic, and wait until name servers know it."""
        self._ask(
            self.asynchronous.create_topic(
                topic, queues, readable=readable, writable=writable, message_type=message_type, brokers=brokers
            )
        )

    def topics(self, *, include_system: bool = False) -> list[str]:
        """Return the names of all topics."""
        return self._ask(self.asynchronous.topics(include_system=include_system))

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the readable queues of a topic."""
        return self._ask(self.asynchronous.queues(topic))

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, with its messages."""
        self._ask(self.asynchronous.delete_topic(topic))

    def lag(self, group: str, topic: str = "") -> list[QueueLag]:
        """Return the progress of a group in each queue."""
        return self._ask(self.asynchronous.lag(group, topic))


class BlockingTopicReader(_Blocking):
    """See :class:`engine.client.topic_reader.TopicReader`.

    :meth:`cancel` ends the calls of other threads with ``concurrent.futures.CancelledError``.
    """

    def __init__(self, instance: ClientInstance) -> None:
        self.asynchronous = TopicReader(instance)
        self._calls: set[Future[Any]] = set()
        super().__init__(self.asynchronous)

    def queues(self, topic: str) -> list[QueueRange]:
        """Return the readable queues of a topic with their ends."""
        return self._call(self.asynchronous.queues(topic))

    def ends(self, queue: MessageQueue) -> QueueRange:
        """Return the present ends of a queue."""
        return self._call(self.asynchronous.ends(queue))

    def offset_at(self, queue: MessageQueue, timestamp: int) -> int:
        """Return the offset of the first message stored at ``timestamp`` (ms) or later."""
        return self._call(self.asynchronous.offset_at(queue, timestamp))

    def read(self, queue: MessageQueue, offset: int, count: int) -> UnitPage:
        """Return up to ``count`` units from ``offset`` on."""
        return self._call(self.asynchronous.read(queue, offset, count))

    def cancel(self) -> None:
        """End all calls that wait for a broker."""
        for call in tuple(self._calls):
            call.cancel()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        call = self._begin(work)
        self._calls.add(call)
        try:
            return call.result()
        finally:
            self._calls.discard(call)
