"""Send planned messages to a running broker, one by one, with each result in the journal.

A message is sent once: an answer that does not come is a result of its own, and nothing is tried again by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.callbacks import system_clock
from engine.client.errors import AnswerNotUnderstood, BrokerRefused, NoRoute
from engine.client.instance import ClientInstance
from engine.client.messages import MAX_RECONSUME_TIMES, Message, check, property_text, sent_properties
from engine.client.producer import STATUSES
from engine.client.routes import WRITE
from engine.codec import properties as props
from engine.codec.java import jhash
from engine.errors import CannotRead, cause_of
from engine.remoting.answers import json_object, member_object, reading
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.frame import Command
from engine.remoting.unique_ids import unique_id
from engine.resend.journal import REFUSED, SENDING, SENT, UNKNOWN, Journal
from engine.resend.originals import StoredMessage, properties_to_send
from engine.resend.resend_plan import PlannedMessage
from engine.sentences import sentence
from engine.system_names import RETRY_PREFIX, TEMPLATE_TOPIC

PRODUCER_GROUP = "storescope_resend"
SEND_TIMEOUT_S = 5.0
MAX_UNANSWERED = 3
"""Sends in a row without an answer, after which a run ends."""


@dataclass(frozen=True, slots=True)
class TargetQueue:
    """A queue of a topic, and the address of its broker."""

    address: str
    broker: str | None
    queue_id: int


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """The result of one send. ``state`` is SENT, REFUSED or UNKNOWN; ``reason`` is the broker's, or what happened."""

    state: str
    status: str
    msg_id: str
    queue_id: int | None = None
    queue_offset: int | None = None
    offset_msg_id: str | None = None
    reason: str | None = None


class NotReached(CannotRead):
    """The broker cannot be connected to: the message was not sent."""


class Destination:
    """A running broker, or the brokers that a name server knows, found out from what answers at ``address``."""

    def __init__(self, instance: ClientInstance, address: str) -> None:
        self.instance = instance
        self.address = address
        self.is_name_server = False
        self._topics: dict[str, tuple[TargetQueue, ...]] = {}
        self._turns: dict[str, int] = {}

    async def find_topics(self, topics: Iterable[str]) -> dict[str, str]:
        """Read the queues of ``topics``, and return why those that cannot be sent to cannot.

        Raises :class:`CannotRead` if nobody answers, or something that is no broker and no name server.
        """
        try:
            answer = await self.instance.ask(self.address, Command(RequestCode.GET_BROKER_CLUSTER_INFO, {}))
            self.is_name_server = answer.code == ResponseCode.SUCCESS
            if self.is_name_server:
                for topic in topics:
                    self._topics[topic] = await self._routed_queues(topic)
            else:
                table = await self._broker_topics()
                self._topics = {topic: table.get(topic, ()) for topic in topics}
        except BrokerRefused as error:
            cause = cause_of(error)
            if not self.instance.has_account:
                cause = sentence("{cause}; does it require an account?", cause=cause)
            raise CannotRead(sentence("refused by {cause}", cause=cause)) from error
        except (OSError, TimeoutError, NoRoute, AnswerNotUnderstood) as error:
            cause = cause_of(error)
            has_ended = isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError)
            if has_ended and not self.instance.uses_tls:
                cause = sentence("{cause}; does it require TLS?", cause=cause)
            raise CannotRead(
                sentence("the broker at {address} cannot be reached: {cause}", address=self.address, cause=cause)
            ) from error
        return {
            topic: sentence(
                "{address} has no topic {topic} that may be written to: create it there (mqadmin updateTopic), or "
                "choose another topic",
                address=self.address,
                topic=topic,
            )
            for topic, queues in self._topics.items()
            if not queues
        }

    async def _routed_queues(self, topic: str) -> tuple[TargetQueue, ...]:
        route = await self.instance.fresh_route(topic)
        return tuple(
            TargetQueue(self.instance.queue_address(queue), self.instance.broker_of(queue), queue.queue_id)
            for queue in (route.publish_queues if route is not None else ())
        )

    async def _broker_topics(self) -> dict[str, tuple[TargetQueue, ...]]:
        """Return the writable topics of the broker at the address."""
        code = RequestCode.GET_ALL_TOPIC_CONFIG
        answer = await self.instance.call(self.address, code, {}, timeout_s=SEND_TIMEOUT_S)
        with reading(code, self.address, AnswerNotUnderstood):
            rows = member_object(json_object(answer.body), "topicConfigTable")
            return {
                str(name): tuple(
                    TargetQueue(self.address, None, number) for number in range(int(row["writeQueueNums"]))
                )
                for name, row in rows.items()
                if int(row["perm"]) & WRITE
            }

    def choose(self, topic: str, sharding_key: str | None) -> TargetQueue:
        """Return the next queue of a topic in turn; messages with one sharding key go to one queue."""
        queues = self._topics[topic]
        if sharding_key is not None:
            return queues[abs(jhash(sharding_key)) % len(queues)]
        turn = self._turns[topic] = self._turns.get(topic, -1) + 1
        return queues[turn % len(queues)]

    def queues(self, topic: str) -> tuple[TargetQueue, ...]:
        """Return the queues of a topic that was asked for with :meth:`find_topics`."""
        return self._topics.get(topic, ())

    async def send(self, message: StoredMessage, topic: str, msg_id: str, queue: TargetQueue) -> SendOutcome:
        """Send a stored message to a queue again. Raises :class:`NotReached` if it was certainly not sent."""
        return await self._send(lambda: _request(message, topic, msg_id, queue), msg_id, queue)

    async def send_new(self, message: Message, queue: TargetQueue) -> SendOutcome:
        """Send a new message, which has its unique id, to a queue. Raises :class:`NotReached` as :meth:`send` does."""
        return await self._send(lambda: _new_request(message, queue), message.msg_id, queue)

    async def _send(self, make_request: Callable[[], Command], msg_id: str, queue: TargetQueue) -> SendOutcome:
        try:
            request = make_request()
        except ValueError as error:  # WrongMessage
            return SendOutcome(REFUSED, "WrongMessage", msg_id, reason=str(error))
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self.instance.connection(queue.address)
        except (OSError, TimeoutError) as error:
            raise NotReached(
                sentence(
                    "the broker at {address} cannot be reached: {cause}", address=queue.address, cause=cause_of(error)
                )
            ) from error
        try:
            answer = await self.instance.ask(queue.address, request, SEND_TIMEOUT_S)
        except (OSError, TimeoutError) as error:
            reason = sentence("no answer came: {cause}", cause=cause_of(error, "time is up"))
            return SendOutcome(UNKNOWN, "NO_ANSWER", msg_id, reason=reason)
        status = STATUSES.get(answer.code)
        if status is None:
            refusal = BrokerRefused(answer.code, answer.remark)
            name = ResponseCode(answer.code).name if answer.code in ResponseCode.__members__.values() else "REFUSED"
            return SendOutcome(REFUSED, name, msg_id, reason=str(refusal))
        return SendOutcome(
            SENT,
            status,
            msg_id,
            _number(answer.fields.get("queueId")),
            _number(answer.fields.get("queueOffset")),
            answer.fields.get("msgId"),
        )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None


def _request(message: StoredMessage, topic: str, msg_id: str, queue: TargetQueue) -> Command:
    """Return the request of a send: the body as it is stored, also if it is compressed."""
    fields = {
        **_place_fields(topic, queue),
        "f": str(message.sys_flag),
        "g": str(message.unit.born_timestamp),
        "h": str(message.flag),
        "i": property_text(properties_to_send(message, topic, msg_id)),
    }
    if topic.startswith(RETRY_PREFIX):
        fields["l"] = message.properties.get(MAX_RECONSUME_TIMES, "16")
    return Command(RequestCode.SEND_MESSAGE_V2, fields, message.body)


def _new_request(message: Message, queue: TargetQueue) -> Command:
    """Return the request of a new message's send. Raises :class:`WrongMessage` if a producer must not send it."""
    check(message)
    fields = {
        **_place_fields(message.topic, queue),
        "f": "0",
        "g": str(system_clock()),
        "h": str(message.flag),
        "i": sent_properties(message),
    }
    return Command(RequestCode.SEND_MESSAGE_V2, fields, message.body)


def _place_fields(topic: str, queue: TargetQueue) -> dict[str, str]:
    """Return the fields of SEND_MESSAGE_V2 that do not depend on the message (docs/protocol/broker.md#send)."""
    fields = {
        "a": PRODUCER_GROUP,
        "b": topic,
        "c": TEMPLATE_TOPIC,
        "d": "4",
        "e": str(queue.queue_id),
        "j": "0",
        "k": "false",
        "m": "false",
    }
    return fields if queue.broker is None else {**fields, "n": queue.broker}


async def resend(
    planned: Sequence[PlannedMessage],
    read_message: Callable[[PlannedMessage], StoredMessage | str],
    destination: Destination,
    journal: Journal,
    *,
    rate: float | None = None,
    on_result: Callable[[PlannedMessage, SendOutcome], None],
    stopped: asyncio.Event | None = None,
) -> int:
    """Send the messages in their order, at most ``rate`` a second, and return how many were handled.

    ``read_message`` returns a message, or why it cannot be read any more. The run ends early when ``stopped`` is set,
    and after :data:`MAX_UNANSWERED` sends in a row without an answer. Raises :class:`NotReached` if there is no
    connection.
    """
    stopped = stopped or asyncio.Event()
    unanswered = 0
    due = time.monotonic()
    for number, item in enumerate(planned):
        if rate is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(due - time.monotonic(), 0)):
                    await stopped.wait()
            due = max(due, time.monotonic() - 1 / rate) + 1 / rate
        if stopped.is_set() or unanswered >= MAX_UNANSWERED:
            return number
        message = read_message(item)
        assert item.topic is not None
        if isinstance(message, str):
            on_result(item, SendOutcome(REFUSED, "NOT_READABLE", item.identity.unique_key or "", reason=message))
            continue
        msg_id = message.unique_key or unique_id(system_clock())
        queue = destination.choose(item.topic, message.properties.get(props.SHARDING_KEY))
        journal.write(SENDING, item.identity, item.topic, msgId=msg_id, time=system_clock())
        try:
            outcome = await destination.send(message, item.topic, msg_id, queue)
        except NotReached:
            journal.write(REFUSED, item.identity, item.topic, status="NOT_REACHED", time=system_clock())
            raise
        journal.write(outcome.state, item.identity, item.topic, **_details(outcome))
        on_result(item, outcome)
        unanswered = unanswered + 1 if outcome.state == UNKNOWN else 0
    return len(planned)


def _details(outcome: SendOutcome) -> Mapping[str, object]:
    return {
        "status": outcome.status,
        "msgId": outcome.msg_id,
        "queueId": outcome.queue_id,
        "queueOffset": outcome.queue_offset,
        "reason": outcome.reason,
        "time": system_clock(),
    }
