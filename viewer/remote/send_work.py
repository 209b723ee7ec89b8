"""Plan and send one new message to a running cluster, in the worker process. No Qt.

A topic that does not exist is an error: nothing is created by sending.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.callbacks import system_clock
from engine.codec import properties as props
from engine.codec.compression import unpack
from engine.errors import CannotRead, UsageError, cause_of
from engine.sentences import sentence
from engine.system_names import is_system_topic
from viewer.cluster.access import NO_FILES, AccessFiles

if TYPE_CHECKING:
    from engine.client.instance import ClientInstance
    from engine.client.messages import Message
    from engine.codec.message import Unit
    from engine.resend.sending import Destination, SendOutcome
    from viewer.runtime.control import Control

FIRST_WITH_TIMERS = 5
"""Major release of the first brokers that take a delivery time."""
_RELEASE = re.compile(r"V?(\d+)[._](\d+)")


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to send. An empty ``broker`` and a ``queue_id`` of None leave the queue to the sender; ``deliver_at``
    is ms since the epoch.
    """

    topic: str
    body: bytes
    tags: str = ""
    keys: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    delay_level: int = 0
    deliver_at: int = 0
    broker: str = ""
    queue_id: int | None = None

    def to_send(self, msg_id: str = "") -> Message:
        """Return the message as the client sends it."""
        from engine.client.messages import Message

        return Message(
            self.topic,
            self.body,
            self.tags,
            self.keys,
            dict(self.properties),
            self.delay_level,
            deliver_at=self.deliver_at,
            msg_id=msg_id,
        )


@dataclass(frozen=True, slots=True)
class SendRequest:
    """A message and the cluster that it goes to."""

    addresses: tuple[str, ...]
    message: NewMessage
    access: AccessFiles = NO_FILES


@dataclass(frozen=True, slots=True)
class SendPlan:
    """What will be sent, and where: ``broker`` and ``address``, its release as it says, the queue."""

    message: NewMessage
    broker: str
    address: str
    release: str
    queue_id: int
    queue_count: int
    """Number of queues of the topic that may be written to."""


@dataclass(frozen=True, slots=True)
class SendReport:
    """The result of a send. Topic, queue and offset are where the broker keeps the message: a delayed one waits in
    another topic. ``state`` is sent, refused or unknown.
    """

    state: str
    status: str
    msg_id: str
    broker: str
    topic: str
    queue_id: int | None
    queue_offset: int | None
    offset_msg_id: str | None
    reason: str


def message_of(unit: Unit) -> NewMessage:
    """Return a copy of a stored message as a new one: to its original topic, without what brokers and clients set.

    Raises :class:`UsageError` if its body cannot be unpacked.
    """
    from engine.resend.originals import BROKER_PROPERTIES, original_topic

    body = unpack(unit.body, unit.sys_flag)
    if body.note is not None:
        raise UsageError(body.note)
    own = {
        name: value
        for name, value in unit.properties.items()
        if name not in BROKER_PROPERTIES
        and name not in {props.KEYS, props.TAGS, props.UNIQUE_KEY, props.ORIGIN_MESSAGE_ID}
        and value
    }
    return NewMessage(
        original_topic(unit.topic, unit.properties) or unit.topic,
        bytes(body.data),
        unit.tags or "",
        unit.properties.get(props.KEYS, ""),
        tuple(own.items()),
    )


def plan(_control: Control, request: SendRequest) -> SendPlan:
    """Return what would be sent; nothing is sent. Raises :class:`CannotRead` and :class:`UsageError`."""
    return asyncio.run(_plan(request))


def send(_control: Control, request: SendRequest, shown: SendPlan) -> SendReport:
    """Send what ``shown`` has, once. Raises as :func:`plan`; then it was not sent."""
    return asyncio.run(_send(request, shown))


async def _plan(request: SendRequest) -> SendPlan:
    from engine.client.errors import WrongMessage
    from engine.client.messages import check, sent_properties

    message = request.message
    if is_system_topic(message.topic):
        raise UsageError(sentence("{topic} has RocketMQ's own records, no messages of a producer", topic=message.topic))
    try:
        check(message.to_send())
        sent_properties(message.to_send("0" * 32))
    except WrongMessage as error:
        raise UsageError(cause_of(error)) from error
    if message.deliver_at and message.deliver_at <= system_clock():
        raise UsageError(sentence("the delivery time is in the past"))
    instance = _new_client(request)
    try:
        destination = await _destination(instance, request)
        queues = [
            queue
            for queue in destination.queues(message.topic)
            if message.broker in {"", queue.broker} and message.queue_id in {None, queue.queue_id}
        ]
        if not queues:
            raise UsageError(
                sentence(
                    "the topic {topic} has no such queue that may be written to: {queue}",
                    topic=message.topic,
                    queue="/".join(str(part) for part in (message.broker, message.queue_id) if part not in {"", None}),
                )
            )
        queue = destination.choose(message.topic, message.to_send().properties.get(props.SHARDING_KEY))
        if queue not in queues:
            queue = queues[0]
        release = await _release_of(instance, queue.address)
        number = _RELEASE.match(release)
        if message.deliver_at and number is not None and int(number[1]) < FIRST_WITH_TIMERS:
            raise UsageError(
                sentence(
                    "{broker} is {release}: brokers take a delivery time from 5.0 on; choose a delay level",
                    broker=queue.broker or queue.address,
                    release=release,
                )
            )
        total = len(destination.queues(message.topic))
        return SendPlan(message, queue.broker or "", queue.address, release, queue.queue_id, total)
    finally:
        await instance.kill()


async def _send(request: SendRequest, shown: SendPlan) -> SendReport:
    from engine.remoting.unique_ids import unique_id
    from engine.resend.sending import TargetQueue

    instance = _new_client(request)
    try:
        destination = await _destination(instance, request)  # the topic may have been deleted meanwhile
        queue = TargetQueue(shown.address, shown.broker or None, shown.queue_id)
        if queue not in destination.queues(shown.message.topic):
            raise UsageError(sentence("the queues of {topic} have changed meanwhile", topic=shown.message.topic))
        outcome = await destination.send_new(shown.message.to_send(unique_id(system_clock())), queue)
        place = await _place_of(instance, shown, outcome)
    finally:
        await instance.kill()
    return SendReport(
        outcome.state,
        outcome.status,
        outcome.msg_id,
        queue.broker or "",
        *place,
        outcome.offset_msg_id,
        outcome.reason or "",
    )


async def _place_of(
    instance: ClientInstance, shown: SendPlan, outcome: SendOutcome
) -> tuple[str, int | None, int | None]:
    """Return topic, queue id and queue offset of the stored message.

    The answer of a send does not name the topic in which a delayed message waits, so the broker is asked for the
    message itself.
    """
    from engine.client import broker_api
    from engine.client.instance import FAILURES
    from engine.client.routes import MessageQueue

    message = shown.message
    if outcome.offset_msg_id is not None:
        queue = MessageQueue(message.topic, shown.broker, shown.queue_id)
        try:
            stored = await broker_api.view_message(instance, queue, outcome.offset_msg_id)
        except (*FAILURES, ValueError):
            pass
        else:
            return stored.topic, stored.queue_id, stored.queue_offset
    is_delayed = message.delay_level or message.deliver_at
    return message.topic, outcome.queue_id, None if is_delayed else outcome.queue_offset


async def _destination(instance: ClientInstance, request: SendRequest) -> Destination:
    """Return the cluster with the queues of the topic. Raises :class:`CannotRead` if no name server answers or the
    topic does not exist.
    """
    from engine.resend.sending import Destination

    failure: CannotRead | None = None
    for address in request.addresses:
        destination = Destination(instance, address)
        try:
            missing = await destination.find_topics([request.message.topic])
        except CannotRead as error:
            failure = error
            continue
        for reason in missing.values():
            raise CannotRead(reason)
        return destination
    assert failure is not None
    raise failure


async def _release_of(instance: ClientInstance, address: str) -> str:
    """Return a broker's release as it says, such as 5.3.3; "" if it does not."""
    from engine.client.instance import FAILURES
    from engine.cluster.answers import runtime
    from engine.remoting.codes import RequestCode

    try:
        answer = await instance.call(address, RequestCode.GET_BROKER_RUNTIME_INFO, {})
        text = runtime(bytes(answer.body)).get("brokerVersionDesc", "")
    except (*FAILURES, ValueError):
        return ""
    return text.removeprefix("V").replace("_", ".")


def _new_client(request: SendRequest) -> ClientInstance:
    from engine.client.instance import ClientInstance

    account, tls = request.access.read_account(), request.access.read_tls()
    return ClientInstance(";".join(request.addresses), account=account, tls=tls)


def with_queue(message: NewMessage, text: str) -> NewMessage | None:
    """Return the message for the queue in ``2``, ``broker-a/2`` or ``broker-a``; None if the text is none."""
    broker, slash, number = text.strip().rpartition("/")
    if not slash and not number.isdecimal():
        return replace(message, broker=number)
    return replace(message, broker=broker, queue_id=int(number)) if number.isdecimal() else None
