"""Plan and send dead letters at a broker to their original topics again, in the worker process. No Qt.

A journal keeps what was sent, so that no message is sent twice by accident. What is sent is what the plan showed.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.errors import CannotRead, cause_of
from engine.sentences import sentence
from viewer.cluster.access import NO_FILES, AccessFiles
from viewer.log.resend_work import ResendResult

if TYPE_CHECKING:
    from engine.client.instance import ClientInstance
    from engine.client.routes import MessageQueue
    from engine.client.topic_reader import PulledUnit
    from engine.resend.journal import Journal
    from engine.resend.originals import StoredMessage
    from engine.resend.resend_plan import PlannedMessage, ResendPlan
    from engine.resend.sending import Destination, SendOutcome
    from viewer.runtime.control import Control

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LetterRequest:
    """The dead letters at these offsets of a queue. ``resend_unknown``: also those of which an earlier run does not
    know whether they arrived.
    """

    addresses: tuple[str, ...]
    queue: MessageQueue
    offsets: tuple[int, ...]
    journal: Path
    resend_unknown: bool = False
    access: AccessFiles = NO_FILES


def journal_of(folder: Path, addresses: Sequence[str]) -> Path:
    """Return the journal for a cluster: one for its name servers, in whatever order they were written."""
    name = "_".join(sorted(re.sub(r"[^A-Za-z0-9.-]", "-", address) for address in addresses))
    return folder / f"{name}.resent.jsonl"


def plan(_control: Control, request: LetterRequest) -> ResendPlan:
    """Return what would be sent; nothing is sent. Raises :class:`engine.errors.StoreError`."""
    from engine.resend.journal import Journal
    from engine.resend.resend_plan import plan_resend

    async def planned(instance: ClientInstance) -> ResendPlan:
        units = [item.unit for item in await _pull(instance, request)]
        result = plan_resend(units, journal, resend_unknown=request.resend_unknown)
        if not result.to_send:
            return result
        destination = _destination(instance, request)
        return result.without_topics(await destination.find_topics([share.topic for share in result.topics()]))

    with Journal(request.journal) as journal:
        return asyncio.run(_connected(request, planned))


def send(control: Control, request: LetterRequest, shown: tuple[PlannedMessage, ...]) -> ResendResult:
    """Send the messages of a plan that the journal does not have by now. Raises as :func:`plan`, and ``OSError``."""
    from engine.resend.journal import UNKNOWN, Journal

    with Journal(request.journal) as journal:
        allowed = {None, UNKNOWN} if request.resend_unknown else {None}
        letters = tuple(message for message in shown if journal.message_state(message.identity) in allowed)
        journal.create(";".join(request.addresses))
        return asyncio.run(_connected(request, lambda instance: _send(control, instance, journal, request, letters)))


async def _connected(request: LetterRequest, work: Callable[[ClientInstance], Awaitable[Result]]) -> Result:
    from engine.client.errors import ClientError
    from engine.client.instance import ClientInstance

    account, tls = request.access.read_account(), request.access.read_tls()
    instance = ClientInstance(";".join(request.addresses), account=account, tls=tls)
    try:
        return await work(instance)
    except (ClientError, OSError, TimeoutError) as error:
        raise CannotRead(cause_of(error, "time is up")) from error
    finally:
        await instance.kill()


def _destination(instance: ClientInstance, request: LetterRequest) -> Destination:
    from engine.resend.sending import Destination

    return Destination(instance, request.addresses[0])


async def _pull(instance: ClientInstance, request: LetterRequest) -> list[PulledUnit]:
    """Return the units at the offsets of a request. Raises :class:`CannotRead` if the broker does not have all."""
    from engine.client.topic_reader import TopicReader

    reader = TopicReader(instance)
    items: dict[int, PulledUnit] = {}
    wanted = sorted(set(request.offsets))
    for offset in wanted:
        if offset in items:
            continue
        page = await reader.read(request.queue, offset, min(wanted[-1] - offset + 1, 256))
        items |= {item.queue_offset: item for item in page.units}
    missing = sum(offset not in items for offset in wanted)
    if missing:
        raise CannotRead(
            sentence("the broker does not have {count} of the chosen messages any more: read it again", count=missing)
        )
    return [items[offset] for offset in wanted]


async def _send(
    control: Control,
    instance: ClientInstance,
    journal: Journal,
    request: LetterRequest,
    letters: tuple[PlannedMessage, ...],
) -> ResendResult:
    from engine.errors import StoreError
    from engine.resend.originals import messages_of
    from engine.resend.sending import resend

    states: Counter[str] = Counter()
    reasons: list[str] = []
    stored = {
        (item.unit.offset, item.unit.store_timestamp, message.member): message
        for item in await _pull(instance, request)
        for message in messages_of(item.unit)
    }

    def read_message(planned: PlannedMessage) -> StoredMessage | str:
        identity = planned.identity
        message = stored.get((identity.physical_offset, identity.store_timestamp, identity.member))
        return sentence("the message is no longer in the log") if message is None else message

    def on_result(_planned: PlannedMessage, outcome: SendOutcome) -> None:
        states[outcome.state] += 1
        if outcome.reason:
            reasons.append(outcome.reason)
        control.report(states.total(), len(letters))
        if control.cancelled:
            stopped.set()

    stopped = asyncio.Event()
    destination = _destination(instance, request)
    try:
        await destination.find_topics({letter.topic for letter in letters if letter.topic is not None})
        await resend(letters, read_message, destination, journal, on_result=on_result, stopped=stopped)
    except StoreError as error:
        reasons.append(str(error))
    remaining = len(letters) - states.total()
    return ResendResult(states["sent"], states["refused"], states["unknown"], remaining, reasons[0] if reasons else "")
