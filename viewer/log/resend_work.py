"""Plan and send messages of the log to a running broker again, in the worker process. No Qt.

What is sent is what the plan showed: messages that came later are not part of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from viewer.runtime.control import Control

if TYPE_CHECKING:
    from engine.client.instance import ClientInstance
    from engine.codec.message import Unit
    from engine.config import MessageStoreConfig
    from engine.inspection.snapshot import StoreSnapshot
    from engine.resend.journal import Journal
    from engine.resend.resend_plan import PlannedMessage, ResendPlan
    from engine.resend.sending import SendOutcome

POLL_INTERVAL_S = 0.1
"""Interval at which a running job notices that it must stop."""


@dataclass(frozen=True, slots=True)
class ResendChoice:
    """The messages to send and their target: units that match ``where``, or those at ``offsets``.

    An empty ``topic`` stands for the original topics; a ``rate`` of None for no limit. The account and the settings of
    TLS are in files, so that no secret is in a choice; an empty path stands for none.
    """

    to: str
    journal: Path
    topic: str = ""
    rate: float | None = None
    resend_unknown: bool = False
    where: str = ""
    offsets: tuple[int, ...] | None = None
    account_file: str = ""
    tls_file: str = ""


@dataclass(frozen=True, slots=True)
class ResendResult:
    """The numbers of messages that were sent, refused, without an answer, and not sent yet; ``reason`` is the first
    failure's.
    """

    sent: int
    refused: int
    unknown: int
    remaining: int
    reason: str


def plan(
    control: Control, path: Path, config: MessageStoreConfig | None, choice: ResendChoice, now_ms: int
) -> ResendPlan:
    """Return what would be sent; nothing is sent. Raises StoreError, OSError, and what ``control.check`` raises."""
    from engine.inspection.snapshot import open_store
    from engine.resend.journal import Journal
    from engine.resend.resend_plan import plan_resend

    with open_store(path, config) as store, Journal(choice.journal) as journal:
        store.require("log")
        store.require_bodies()
        units = _units(control, store, choice, now_ms)
        planned = plan_resend(units, journal, choice.topic or None, resend_unknown=choice.resend_unknown)
        store.refuse_unread("nothing is sent without it")
    return asyncio.run(_without_missing_topics(planned, choice)) if planned.to_send else planned


def _units(control: Control, store: StoreSnapshot, choice: ResendChoice, now_ms: int) -> Iterator[Unit]:
    from engine.query import parse
    from engine.resend.store_messages import at_offsets, matching

    if choice.offsets is not None:
        total = len(choice.offsets)

        def on_unit(number: int) -> None:
            control.check()
            control.report(number, total)

        return at_offsets(store, choice.offsets, on_unit)
    begin = max(store.log.min_offset, 0)
    length = max(store.log.end_offset - begin, 1)

    def on_offset(offset: int) -> None:
        control.check()
        control.report(max(offset - begin, 0), length)

    return matching(store, parse(choice.where, now_ms=now_ms), on_offset)


def _new_client(choice: ResendChoice) -> ClientInstance:
    from engine.client.instance import ClientInstance
    from engine.remoting.client_account import read_client_account
    from engine.remoting.tls import read_client_tls

    return ClientInstance(
        choice.to,
        account=read_client_account(choice.account_file) if choice.account_file else None,
        tls=read_client_tls(choice.tls_file)[0] if choice.tls_file else None,
    )


async def _without_missing_topics(planned: ResendPlan, choice: ResendChoice) -> ResendPlan:
    from engine.resend.sending import Destination

    instance = _new_client(choice)
    try:
        destination = Destination(instance, choice.to)
        return planned.without_topics(await destination.find_topics([share.topic for share in planned.topics()]))
    finally:
        await instance.kill()


def send(
    control: Control,
    path: Path,
    config: MessageStoreConfig | None,
    choice: ResendChoice,
    planned: tuple[PlannedMessage, ...],
) -> ResendResult:
    """Send the planned messages, and return what became of them. Cancelling ends after the message that is under way.

    Raises StoreError, OSError.
    """
    from engine.inspection.snapshot import open_store
    from engine.resend.journal import UNKNOWN, Journal

    with open_store(path, config) as store, Journal(choice.journal) as journal:
        allowed = {None, UNKNOWN} if choice.resend_unknown else {None}
        planned = tuple(message for message in planned if journal.message_state(message.identity) in allowed)
        journal.create(str(store.path))
        return asyncio.run(_send(control, store, journal, choice, planned))


async def _send(
    control: Control, store: StoreSnapshot, journal: Journal, choice: ResendChoice, planned: tuple[PlannedMessage, ...]
) -> ResendResult:
    from engine.errors import StoreError
    from engine.resend.sending import Destination, resend
    from engine.resend.store_messages import read_planned

    results: Counter[str] = Counter()
    reasons: list[str] = []
    stopped = asyncio.Event()

    def on_result(_planned: PlannedMessage, outcome: SendOutcome) -> None:
        results[outcome.state] += 1
        if outcome.reason:
            reasons.append(outcome.reason)
        control.report(results.total(), len(planned))

    def watch() -> None:
        if control.cancelled:
            stopped.set()
        elif not ended:
            asyncio.get_running_loop().call_later(POLL_INTERVAL_S, watch)

    ended = False
    instance = _new_client(choice)
    watch()
    try:
        destination = Destination(instance, choice.to)
        await destination.find_topics({message.topic for message in planned if message.topic is not None})
        await resend(
            planned,
            lambda message: read_planned(store, message),
            destination,
            journal,
            rate=choice.rate,
            on_result=on_result,
            stopped=stopped,
        )
    except StoreError as error:
        reasons.append(str(error))
    finally:
        ended = True
        await instance.kill()
    return ResendResult(
        results["sent"],
        results["refused"],
        results["unknown"],
        len(planned) - results.total(),
        reasons[0] if reasons else "",
    )
