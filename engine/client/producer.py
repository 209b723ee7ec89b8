"""A producer: sends messages to any broker, one by one, in batches, by key, one-way, as transactions, as requests.

Java: ``DefaultMQProducer``, ``TransactionMQProducer``, ``DefaultMQProducerImpl`` (docs/protocol/clients.md,
docs/protocol/broker.md#transactions).

>>> async with Producer("orders", "127.0.0.1:9876") as producer:
...     result = await producer.send(Message("Orders", b"one cup of tea", keys="order-1"))
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from engine import releases
from engine.callbacks import system_clock
from engine.client.errors import (
    AnswerNotUnderstood,
    BrokerRefused,
    NoReply,
    NoRoute,
    NotRunning,
    NotSent,
    WrongMessage,
)
from engine.client.events import EventStream, SendFailed, Sent, TransactionEnded
from engine.client.instance import ClientInstance, ClientPart, fields_as_text
from engine.client.messages import (
    CORRELATION_ID,
    MAX_BODY,
    MAX_RECONSUME_TIMES,
    MESSAGE_TYPE,
    RECONSUME_TIME,
    REPLY,
    REPLY_TO_CLIENT,
    TTL,
    Encoded,
    Message,
    QueueSelector,
    ReceivedMessage,
    SendResult,
    check,
    compressed,
    encode_batch,
    received,
    sent_properties,
)
from engine.client.queue_choice import QueueChoice, by_key
from engine.client.routes import MessageQueue
from engine.codec import message as codec
from engine.codec import properties as props
from engine.codec.compression import unpack
from engine.errors import cause_of
from engine.older_names import renamed_attribute, renamed_keyword
from engine.releases import NEWEST, Release
from engine.remoting.answers import reading
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command
from engine.remoting.unique_ids import unique_id
from engine.sentences import sentence
from engine.system_names import RETRY_PREFIX, TEMPLATE_TOPIC

STATUSES: dict[int, str] = {
    ResponseCode.SUCCESS: "SEND_OK",
    ResponseCode.FLUSH_DISK_TIMEOUT: "FLUSH_DISK_TIMEOUT",
    ResponseCode.SLAVE_NOT_AVAILABLE: "SLAVE_NOT_AVAILABLE",
    ResponseCode.FLUSH_SLAVE_TIMEOUT: "FLUSH_SLAVE_TIMEOUT",
}
"""Answer codes of stored messages."""
_RETRIED_BY_4 = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
    }
)
RETRIED_CODES = {5: _RETRIED_BY_4 | {ResponseCode.SYSTEM_BUSY, ResponseCode.GO_AWAY}, 4: _RETRIED_BY_4}
"""Answer codes after which another broker is tried, by major release."""


class TransactionState(IntEnum):
    """The outcome of a half message; the numbers are those of END_TRANSACTION."""

    UNKNOWN = 0
    COMMIT = 8
    ROLLBACK = 12


class TransactionListener(Protocol):
    """The sender's side of transactions. An error in either method counts as UNKNOWN: the broker asks again."""

    def execute(self, message: Message, argument: object) -> TransactionState | Awaitable[TransactionState]:
        """Do the local work of a stored half message, and decide."""

    def check(self, message: ReceivedMessage) -> TransactionState | Awaitable[TransactionState]:
        """Decide about a half message that is still undecided, for a broker that checks it."""


class SendHook(Protocol):
    """Called before and after each attempt to send. It may change the message before the first attempt."""

    def before(self, message: Message, queue: MessageQueue) -> None:
        """Called before a message is sent."""

    def after(self, message: Message, queue: MessageQueue, result: SendResult | None, error: Exception | None) -> None:
        """Called with the result of a send, or its error; after a one-way send with neither."""


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """Settings of a producer; the defaults are Java's. Times are seconds, sizes bytes.

    ``release`` is the RocketMQ release whose client it behaves as: which errors are retried, how long slow brokers are
    avoided, whether a batch has its own id.
    """

    release: Release = NEWEST
    send_timeout: float = 3.0
    """Time for all attempts of one send, from the first one on."""
    max_in_flight: int = 1_000
    """Maximum number of sends that wait for an answer. Further ones are queued; their timeout begins later."""
    retries: int = 2
    async_retries: int = 2
    retry_when_not_ok: bool = False
    """True: try another broker if a message is stored, but not flushed or replicated in time."""
    compress_from: int = 4096
    compression: str = "zlib"
    compression_level: int = 5
    max_body: int = MAX_BODY
    new_topic_queues: int = 4
    avoid_slow: bool = False
    """``sendLatencyFaultEnable``: avoid brokers that were slow or failed."""

    def __post_init__(self) -> None:
        if self.release not in releases.NAMES:
            raise WrongMessage(f"release is {self.release!r}; known are {', '.join(releases.NAMES)}")
        if self.max_in_flight < 1:
            raise WrongMessage(f"max_in_flight is {self.max_in_flight}; expected 1 or more")

    like = renamed_attribute("like", "release")


ProducerConfig.__init__ = renamed_keyword("like", "release")(ProducerConfig.__init__)  # type: ignore[method-assign]


class Producer(ClientPart):
    """Sends messages: ``async with``, or :meth:`start` and :meth:`stop`. Safe for many tasks of one event loop."""

    is_consumer = False

    def __init__(
        self,
        group: str,
        namesrv: str = "",
        config: ProducerConfig | None = None,
        *,
        listener: TransactionListener | None = None,
        hooks: Sequence[SendHook] = (),
        instance: ClientInstance | None = None,
        events: EventStream | None = None,
    ) -> None:
        super().__init__(group, namesrv, instance, events)
        self.config = config or ProducerConfig()
        self.choice = QueueChoice(self.config.release, avoid_slow=self.config.avoid_slow)
        self._listener = listener
        self._hooks = tuple(hooks)
        self._in_flight = asyncio.Semaphore(self.config.max_in_flight)
        self._topics: dict[str, tuple[MessageQueue, ...]] = {TEMPLATE_TOPIC: ()}

    async def start(self) -> None:
        """Register with name servers and brokers. Raises :class:`ClientError` if no name server answers."""
        await self.instance.join(self)
        try:
            await self.instance.fresh_route(TEMPLATE_TOPIC)
        except BaseException:
            await self.instance.leave(self)
            raise
        await self.instance.heartbeat()
        self._running = True
        self._began()

    async def stop(self) -> None:
        """Unregister, without waiting for running sends."""
        if self._running:
            self._running = False
            await self.instance.leave(self)
            self._ended(unregistered=True)

    async def kill(self) -> None:
        """End all parts of this client without unregistering, like a killed process."""
        self._running = False
        await self.instance.kill()
        self._ended(unregistered=False)

    # The client's part

    def topics(self) -> Sequence[str]:
        """Return the topics that were sent to."""
        return tuple(self._topics)

    def heartbeat(self) -> Mapping[str, Any]:
        """Return this producer's row of a heartbeat."""
        return {"groupName": self.group}

    def asked(self, request: Command, connection: Connection) -> Coroutine[Any, Any, Command] | None:
        """CHECK_TRANSACTION_STATE: answer a broker that asks about a half message."""
        if request.code == RequestCode.CHECK_TRANSACTION_STATE and self._listener is not None:
            self.instance.soon(self._checked(request, connection))
        return None

    # Sending

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the queues of a topic to which messages may be sent; for a new topic, those that it will have.

        Raises :class:`NoRoute`.
        """
        route = await self.instance.route(topic)
        if route is None or not route.publish_queues:
            route = await self.instance.fresh_route(topic)
        self._topics.setdefault(topic, ())
        if route is not None and route.publish_queues:
            return route.publish_queues
        model = await self.instance.route(TEMPLATE_TOPIC)
        queues = () if model is None else model.for_new_topic(topic, self.config.new_topic_queues).publish_queues
        if not queues:
            raise NoRoute(sentence("No route info of this topic: {topic}", topic=topic))
        return queues

    def _known_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the known queues of a topic that was sent to; empty if its route must be read."""
        route = self.instance.known_route(topic) if topic in self._topics else None
        return () if route is None else route.publish_queues

    @renamed_keyword("patience", "timeout_s")
    async def send(
        self,
        message: Message | Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        order_by: str | None = None,
        select: QueueSelector | None = None,
        key: str | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Send a message, or a batch of them, and wait for the broker's answer.

        If a broker fails, another one is tried, within ``timeout_s`` seconds in all
        (:attr:`ProducerConfig.send_timeout`). ``queue``, ``order_by`` (all messages with this text go to one queue, in
        order) and ``select`` choose the queue; then failures are not retried, to preserve the order. The keys by which
        a message can be found are ``Message(keys=…)``. ``key`` is the older name of ``order_by``.

        Raises :class:`WrongMessage`, :class:`NoRoute`, :class:`BrokerRefused`, or :class:`NotSent` after the last try.
        """
        order_by = key if order_by is None else order_by
        return await self._send(message, queue, order_by, select, timeout_s, self.config.retries, retries_on_codes=True)

    @renamed_keyword("patience", "timeout_s")
    def send_soon(
        self,
        message: Message | Sequence[Message],
        done: Callable[[SendResult | None, BaseException | None], None] | None = None,
        *,
        queue: MessageQueue | None = None,
        order_by: str | None = None,
        select: QueueSelector | None = None,
        key: str | None = None,
        timeout_s: float | None = None,
    ) -> asyncio.Task[SendResult]:
        """Send without waiting; ``done`` is called with the result, or with the error.

        As in Java, only lost connections and timeouts are retried, not refusals. At most
        :attr:`ProducerConfig.max_in_flight` sends run at a time; the others are queued.
        """
        order_by = key if order_by is None else order_by
        task = asyncio.ensure_future(
            self._send(message, queue, order_by, select, timeout_s, self.config.async_retries, retries_on_codes=False)
        )
        if done is not None:

            def on_ended(ended: asyncio.Task[SendResult]) -> None:
                error = asyncio.CancelledError() if ended.cancelled() else ended.exception()
                done(None if error is not None else ended.result(), error)

            task.add_done_callback(on_ended)
        return task

    async def send_one_way(
        self,
        message: Message | Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        order_by: str | None = None,
        select: QueueSelector | None = None,
        key: str | None = None,
    ) -> MessageQueue:
        """Send a message without requesting an answer, so it is unknown whether it is stored. Return its queue.

        Raises :class:`WrongMessage`, :class:`NoRoute`, ``OSError``.
        """
        first_message = await self._begin(message)
        order_by = key if order_by is None else order_by
        chosen = await self._chosen(first_message, queue, order_by, select) or self.choice.choose(
            await self.queues(first_message.topic), None, _now()
        )
        encoded = self._encoded(message)
        start_ms = _now()
        for hook in self._hooks:
            hook.before(first_message, chosen)
        connection = await self.instance.connection(self.instance.queue_address(chosen))
        if connection.must_wait_to_write:
            await connection.room_to_write()
        self.instance.write(connection, self._request(message, encoded, chosen))
        self._call_after_hooks(first_message, chosen, None, None)
        if self.events.has_subscribers:
            self._emit_sent(
                SendResult("ONE_WAY", chosen, -1, first_message.msg_id, ""), first_message, encoded, 1, start_ms
            )
        return chosen

    async def _begin(self, message: Message | Sequence[Message]) -> Message:
        """Wait until the message may be sent.

        Return it, or the first of a batch. Raises :class:`NotRunning`, :class:`WrongMessage`.
        """
        if not self._running:
            raise NotRunning(f"The producer {self.group} is not running")
        if self.control.paused or self.control.delay:
            await self.control.wait()
        if isinstance(message, Message):
            check(message, self.config.max_body)
            return message
        if not message:
            raise WrongMessage("a batch without messages")
        return message[0]

    async def _chosen(
        self, message: Message, queue: MessageQueue | None, key: str | None, select: QueueSelector | None
    ) -> MessageQueue | None:
        if queue is not None:
            if queue.topic != message.topic:
                raise WrongMessage("message's topic not equal mq's topic")
            await self.queues(message.topic)
            return queue
        if key is None and select is None:
            return None
        queues = await self.queues(message.topic)
        return by_key(queues, key) if select is None else select(queues, message)  # type: ignore[arg-type]

    async def _send(
        self,
        message: Message | Sequence[Message],
        queue: MessageQueue | None,
        key: str | None,
        select: QueueSelector | None,
        timeout_s: float | None,
        retries: int,
        *,
        retries_on_codes: bool,
    ) -> SendResult:
        first_message = await self._begin(message)
        async with self._in_flight:
            if not self._running:
                raise NotRunning(f"The producer {self.group} is not running")
            return await self._send_now(
                message,
                first_message,
                (queue, key, select),
                timeout_s,
                retries,
                retries_on_codes=retries_on_codes,
            )

    async def _send_now(
        self,
        message: Message | Sequence[Message],
        first_message: Message,
        choice: tuple[MessageQueue | None, str | None, QueueSelector | None],
        timeout_s: float | None,
        retries: int,
        *,
        retries_on_codes: bool,
    ) -> SendResult:
        queue, key, select = choice
        start_ms, timeout_ms = _now(), (timeout_s or self.config.send_timeout) * 1000
        chosen = None
        if queue is not None or key is not None or select is not None:
            chosen = await self._chosen(first_message, queue, key, select)
        encoded = self._encoded(message)
        tries = 1 if chosen is not None else 1 + retries
        last_queue: MessageQueue | None = None
        failure: Exception | None = None
        brokers: list[str] = []
        result: SendResult | None = None
        for number in range(1, tries + 1):
            if chosen is None:
                queues = self._known_queues(first_message.topic) or await self.queues(first_message.topic)
                target = self.choice.choose(queues, None if last_queue is None else last_queue.broker, _now())
            else:
                target = chosen
            remaining_ms = timeout_ms - (_now() - start_ms)
            if remaining_ms <= 0:
                failure = failure or TimeoutError("sendDefaultImpl call timeout")
                break
            last_queue = target
            brokers.append(self.instance.broker_of(target))
            try_start_ms = _now()
            try:
                result = await self._try(message, first_message, encoded, target, remaining_ms / 1000)
            except (BrokerRefused, OSError, TimeoutError, NoRoute) as error:
                failure = error
                may_retry = number < tries and (
                    not isinstance(error, BrokerRefused) or (retries_on_codes and self._is_retried(error))
                )
                self._report_failed_try(first_message, target, error, try_start_ms, may_retry=may_retry)
                if not may_retry:
                    break
                if not isinstance(error, BrokerRefused):
                    await self._refresh_route(first_message.topic)
                continue
            self.choice.record_send(target.broker, _now() - try_start_ms, try_start_ms)
            self._call_after_hooks(first_message, target, result, None)
            if self.events.has_subscribers:
                self._emit_sent(result, first_message, encoded, number, try_start_ms)
            if result.is_ok or not self.config.retry_when_not_ok or chosen is not None:
                return result
        if result is not None:
            return result
        if isinstance(failure, BrokerRefused) and (chosen is not None or not self._is_retried(failure)):
            raise failure
        raise _not_sent(first_message.topic, brokers, failure, timeout_ms, _now() - start_ms) from failure

    def _report_failed_try(
        self, message: Message, target: MessageQueue, error: Exception, start_ms: float, *, may_retry: bool
    ) -> None:
        """Record a try that failed for the choice of brokers, the hooks and the subscribers of events."""
        duration_ms = _now() - start_ms
        reachable = not isinstance(error, BrokerRefused)  # as in Java: a refusal counts as unreachable
        self.choice.record_send(target.broker, duration_ms, start_ms, failed=True, reachable=reachable)
        self._call_after_hooks(message, target, None, error)
        if self.events.has_subscribers:
            cause = cause_of(error, type(error).__name__)
            self.events.emit(
                SendFailed(
                    system_clock(), self.client_id, self.group, target, message.msg_id, cause, may_retry, duration_ms
                )
            )

    def _is_retried(self, error: BrokerRefused) -> bool:
        return error.code in RETRIED_CODES[releases.rules_of(self.config.release).major]

    async def _refresh_route(self, topic: str) -> None:
        """Read the route again: a broker that does not answer may no longer be in it."""
        try:
            await self.instance.fresh_route(topic)
        except (OSError, TimeoutError, NoRoute, BrokerRefused):
            return

    def _call_after_hooks(
        self, message: Message, queue: MessageQueue, result: SendResult | None, error: Exception | None
    ) -> None:
        for hook in self._hooks:
            hook.after(message, queue, result, error)

    def _emit_sent(self, result: SendResult, message: Message, encoded: Encoded, tries: int, start_ms: float) -> None:
        self.events.emit(
            Sent(
                system_clock(),
                self.client_id,
                self.group,
                result.queue,
                result.queue_offset,
                result.msg_id,
                message.key_text,
                result.status,
                tries,
                encoded.count,
                len(encoded.body),
                _now() - start_ms,
            )
        )

    def _encoded(self, message: Message | Sequence[Message]) -> Encoded:
        """Encode a message. Every attempt sends the same bytes."""
        if not isinstance(message, Message):
            with_id = releases.rules_of(self.config.release).major >= 5
            return encode_batch(message, system_clock(), self.config.max_body, with_id=with_id)
        message.msg_id = message.msg_id or unique_id(system_clock())
        body, sys_flag = message.body, 0
        if len(body) >= self.config.compress_from:
            body, sys_flag = compressed(body, self.config.compression, self.config.compression_level)
        if message.properties.get(props.TRANSACTION_PREPARED) == "true":
            sys_flag |= codec.PREPARED
        return Encoded(body, sent_properties(message), sys_flag, 1)

    def _request(self, message: Message | Sequence[Message], encoded: Encoded, queue: MessageQueue) -> Command:
        first_message = message if isinstance(message, Message) else message[0]
        fields = {
            "a": self.group,
            "b": first_message.topic,
            "c": TEMPLATE_TOPIC,
            "d": str(self.config.new_topic_queues),
            "e": str(queue.queue_id),
            "f": str(encoded.sys_flag),
            "g": str(system_clock()),
            "h": str(first_message.flag),
            "i": encoded.properties,
            "j": "0",
            "k": "false",
            "m": "false",
            "n": self.instance.broker_of(queue),
        }
        code = RequestCode.SEND_MESSAGE_V2
        if not isinstance(message, Message):
            code, fields["m"], fields["h"] = RequestCode.SEND_BATCH_MESSAGE, "true", "0"
        elif first_message.properties.get(MESSAGE_TYPE) == REPLY:
            code = RequestCode.SEND_REPLY_MESSAGE_V2
        elif first_message.topic.startswith(RETRY_PREFIX):
            fields["j"] = first_message.properties.get(RECONSUME_TIME, "0")
            fields["l"] = first_message.properties.get(MAX_RECONSUME_TIMES, "16")
        return Command(code, fields, encoded.body)

    async def _try(
        self,
        message: Message | Sequence[Message],
        first_message: Message,
        encoded: Encoded,
        queue: MessageQueue,
        timeout_s: float,
    ) -> SendResult:
        for hook in self._hooks:
            hook.before(first_message, queue)
        address = self.instance.queue_address(queue)
        answer = await self.instance.ask(address, self._request(message, encoded, queue), timeout_s)
        status = STATUSES.get(answer.code)
        if status is None:
            raise BrokerRefused(answer.code, answer.remark, address)
        response_fields = answer.fields
        msg_id = first_message.msg_id if isinstance(message, Message) else ",".join(member.msg_id for member in message)
        with reading(RequestCode.SEND_MESSAGE_V2, address, AnswerNotUnderstood):
            stored_in = int(response_fields.get("queueId", queue.queue_id))
            queue_offset = int(response_fields.get("queueOffset", -1))
        return SendResult(
            status,
            MessageQueue(first_message.topic, queue.broker, stored_in),
            queue_offset,
            response_fields.get("batchUniqId") or msg_id,
            response_fields.get("msgId", ""),
            response_fields.get("transactionId", ""),
            response_fields.get("recallHandle", ""),
        )

    # Transactions

    async def send_in_transaction(
        self, message: Message, argument: object = None
    ) -> tuple[SendResult, TransactionState]:
        """Send a half message, let the listener do the local work, and send its decision to the broker.

        If the send is not SEND_OK, it is rolled back without calling the listener. Raises like :meth:`send`, and
        :class:`WrongMessage` if the producer has no listener.

        """
        if self._listener is None:
            raise WrongMessage("TransactionListener is null: this producer was made without one")
        message.delay_level = 0
        marks = {props.TRANSACTION_PREPARED: "true", props.PRODUCER_GROUP: self.group}
        message.properties = {**message.properties, **marks}
        result = await self.send(message)
        state, words = TransactionState.ROLLBACK, ""
        if result.is_ok:
            state, words = await _decided(self._listener.execute, message, argument)
        id_parts = codec.parse_offset_message_id(result.offset_msg_id)
        if id_parts is None:
            raise AnswerNotUnderstood(f"the broker's message id {result.offset_msg_id!r} is none")
        fields = {
            "topic": message.topic,
            "producerGroup": self.group,
            "tranStateTableOffset": result.queue_offset,
            "commitLogOffset": id_parts[1],
            "commitOrRollback": int(state),
            "fromTransactionCheck": False,
            "msgId": message.msg_id,
            "transactionId": result.transaction_id,
            "bname": self.instance.broker_of(result.queue),
        }
        await self._end_transaction(self.instance.queue_address(result.queue), fields, words)
        self._emit_transaction(message.topic, message.msg_id, state, checked=False)
        return result, state

    def _emit_transaction(self, topic: str, msg_id: str, state: TransactionState, *, checked: bool) -> None:
        if self.events.has_subscribers:
            self.events.emit(
                TransactionEnded(system_clock(), self.client_id, self.group, topic, msg_id, state.name, checked)
            )

    async def _end_transaction(self, address: str, fields: Mapping[str, object], words: str) -> None:
        connection = await self.instance.connection(address)
        remark = f"executeLocalTransactionBranch exception: {words}" if words else None
        self.instance.write(connection, Command(RequestCode.END_TRANSACTION, fields_as_text(fields), remark=remark))

    async def _checked(self, request: Command, connection: Connection) -> None:
        assert self._listener is not None
        unit = codec.decode(bytes(request.body))
        if unit.properties.get(props.PRODUCER_GROUP) != self.group:
            return
        queue = MessageQueue(unit.topic, request.fields.get("bname", ""), unit.queue_id)
        message = received(unit, queue)
        state, words = await _decided(self._listener.check, message)
        fields = {
            "topic": request.fields.get("topic"),
            "producerGroup": self.group,
            "fromTransactionCheck": True,
            "tranStateTableOffset": request.fields.get("tranStateTableOffset"),
            "commitLogOffset": request.fields.get("commitLogOffset"),
            "commitOrRollback": int(state),
            "msgId": message.msg_id,
            "transactionId": request.fields.get("transactionId"),
            "bname": request.fields.get("bname"),
        }
        remark = f"checkLocalTransactionState Exception: {words}" if words else None
        self.instance.write(connection, Command(RequestCode.END_TRANSACTION, fields_as_text(fields), remark=remark))
        self._emit_transaction(message.topic, message.msg_id, state, checked=True)

    # Requests that are replied to, and recall

    @renamed_keyword("patience", "timeout_s")
    async def request(self, message: Message, timeout_s: float, **choice: Any) -> ReceivedMessage:
        """Send a message and wait ``timeout_s`` seconds for the reply of the consumer; ``choice`` as for :meth:`send`.

        Raises :class:`NoReply`, and the errors of :meth:`send`.
        """
        correlation = str(uuid.uuid4())
        message.properties = {
            **message.properties,
            CORRELATION_ID: correlation,
            REPLY_TO_CLIENT: self.client_id,
            TTL: str(int(timeout_s * 1000)),
        }
        waiting: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self.instance.replies[correlation] = waiting
        try:
            async with asyncio.timeout(timeout_s):
                await self._register_for_replies(message.topic)
                await self.send(message, timeout_s=timeout_s, **choice)
                return _reply(await waiting)
        except TimeoutError:
            raise NoReply(f"send request message to <{message.topic}> OK, but wait reply message timeout") from None
        except asyncio.CancelledError:
            if waiting.cancelled():
                raise NoReply("this client has ended") from None
            raise
        finally:
            self.instance.replies.pop(correlation, None)

    async def _register_for_replies(self, topic: str) -> None:
        """Send a heartbeat if the topic is new, so that brokers know this client and replies reach it."""
        if topic not in self._topics:
            await self.queues(topic)
            await self.instance.heartbeat()

    async def reply(self, message: Message) -> SendResult:
        """Send the answer to a request (:func:`engine.client.messages.reply_to`)."""
        return await self.send(message)

    async def recall(self, topic: str, handle: str) -> str:
        """Recall a message that is not due yet (5.3), and return its unique id. Raises :class:`BrokerRefused`."""
        queues = await self.queues(topic)
        fields = {"producerGroup": self.group, "topic": topic, "recallHandle": handle}
        address = self.instance.queue_address(queues[0])
        answer = await self.instance.call(
            address, RequestCode.RECALL_MESSAGE, fields, timeout_s=self.config.send_timeout
        )
        return answer.fields.get("msgId", "")


async def _decided(
    decide: Callable[..., TransactionState | Awaitable[TransactionState]], *args: object
) -> tuple[TransactionState, str]:
    """Return a listener's decision; if it raises, UNKNOWN and the text of the error."""
    try:
        decision = decide(*args)
        state = await decision if isinstance(decision, Awaitable) else decision
        return TransactionState(state), ""
    except Exception as error:  # noqa: BLE001  whatever a listener raises, the broker asks again
        return TransactionState.UNKNOWN, f"{type(error).__name__}: {error}"


def _reply(request: Command) -> ReceivedMessage:
    """Return the message in PUSH_REPLY_MESSAGE_TO_CLIENT."""
    fields, body = request.fields, bytes(request.body)
    sys_flag = int(fields.get("sysFlag", 0))
    if sys_flag & codec.COMPRESSED:
        body = unpack(body, sys_flag).data
    topic, queue_id = fields.get("topic", ""), int(fields.get("queueId", -1))
    properties = props.decode(fields.get("properties", "").encode())
    return ReceivedMessage(
        topic,
        body,
        MessageQueue(topic, "", queue_id),
        properties,
        queue_id=queue_id,
        reconsume_times=int(fields.get("reconsumeTimes", 0)),
        born_timestamp=int(fields.get("bornTimestamp", 0)),
        store_timestamp=int(fields.get("storeTimestamp", 0)),
        born_host=fields.get("bornHost", ""),
        store_host=fields.get("storeHost", ""),
        sys_flag=sys_flag & ~codec.COMPRESSED,
        flag=int(fields.get("flag", 0)),
    )


def _now() -> float:
    """Return milliseconds of a monotonic clock."""
    return time.monotonic() * 1000


def _not_sent(
    topic: str, brokers: list[str], failure: Exception | None, timeout_ms: float, duration_ms: float
) -> NotSent:
    """Return the error of a send that failed at each of ``brokers``, in the words of Java's client."""
    cause: str = sentence("the time ended before the first try")
    if failure is not None:
        cause = cause_of(failure, sentence("no answer within {timeout_ms:,.0f} ms", timeout_ms=timeout_ms))
    return NotSent(
        sentence(
            "Send [{count}] times, still failed, cost [{cost_ms:.0f}]ms, Topic: {topic}, BrokersSent: {brokers}: "
            "{cause}",
            count=len(brokers),
            cost_ms=duration_ms,
            topic=topic,
            brokers=str(brokers),
            cause=cause,
        ),
        brokers,
    )
