"""``resend``: send messages of a store to a running broker again, dead letters to their original topics."""

from __future__ import annotations

import argparse
import asyncio
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.cli.backup import ask_consent
from engine.cli.connecting import add_credentials, new_client
from engine.cli.decoding import add_rules, decoding
from engine.cli.options import add_command, add_store, common_options, open_named_store
from engine.cli.output import Column, Output, Progress, iso_time
from engine.cli.serving import address_list, ended_by_signals
from engine.client.errors import WrongMessage
from engine.client.messages import check_topic
from engine.english import number_of
from engine.errors import UsageError
from engine.inspection.snapshot import StoreSnapshot
from engine.query import parse
from engine.resend.journal import REFUSED, SENT, UNKNOWN, Journal
from engine.resend.originals import DEAD_LETTER, DELAYED, HALF, RETRY
from engine.resend.resend_plan import Decision, PlannedMessage, ResendPlan, plan_resend
from engine.resend.sending import Destination, NotReached, SendOutcome, resend
from engine.resend.store_messages import default_journal, matching, read_planned

COLUMNS = (
    Column("Physical offset", "physicalOffset", "number"),
    Column("Unique key", "uniqueKey", spare=1),
    Column("From topic", "sourceTopic"),
    Column("To topic", "topic"),
    Column("Result", "result"),
    Column("Queue", "queueId", "plain"),
    Column("Queue offset", "queueOffset", "number"),
    Column("Reason", "reason", "prose"),
)
_KIND_WORDS = {
    DEAD_LETTER: ("dead letter", "dead letters"),
    RETRY: ("message of a retry topic", "messages of retry topics"),
    DELAYED: ("delayed message, sent without its delay", "delayed messages, sent without their delays"),
    HALF: (
        "half message, sent as an ordinary one even if its transaction was rolled back",
        "half messages, sent as ordinary ones even if their transactions were rolled back",
    ),
}


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "resend",
        """resend ~/store --where 'topic = "%DLQ%billing"' --to 127.0.0.1:10911 --plan""",
        """resend ~/store --where 'topic = "%DLQ%billing"' --to 127.0.0.1:10911 --rate 50""",
        """resend ~/store --where 'key = "O-1042"' --to 127.0.0.1:9876 --topic Orders_again""",
        parents=[common_options()],
    )
    add_store(parser)
    parser.add_argument("--where", metavar="FILTER", required=True, help="send the messages that match this filter")
    add_rules(parser)
    parser.add_argument(
        "--to",
        metavar="HOST:PORT",
        type=_address,
        required=True,
        help="a running broker, or a name server of its cluster",
    )
    add_credentials(parser)
    parser.add_argument(
        "--topic", metavar="T", help="send all messages to this topic (default: each to its original topic)"
    )
    parser.add_argument("--rate", metavar="N", type=_rate, help="send at most N messages a second (default: no limit)")
    parser.add_argument(
        "--journal",
        metavar="FILE",
        type=Path,
        help="the file that remembers what was sent (default: STORE.resent.jsonl beside the store)",
    )
    parser.add_argument(
        "--resend-unknown",
        action="store_true",
        help="also send messages of which an earlier run does not know whether they arrived",
    )
    parser.add_argument("--plan", action="store_true", help="show what would be sent; send nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask before sending")
    parser.set_defaults(run=run)


def _address(text: str) -> str:
    addresses = address_list(text)
    if len(addresses) != 1:
        raise argparse.ArgumentTypeError(f"expected one HOST:PORT, found '{text}'")
    return addresses[0]


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, found '{text}'")
    return rate


def run(args: argparse.Namespace, out: Output) -> int:
    unit_filter = parse(args.where)  # a mistake in the filter is reported before anything is opened
    if args.topic is not None:
        try:
            check_topic(args.topic)
        except WrongMessage as error:
            raise UsageError(str(error)) from error
    with open_named_store(args, out) as store:
        store.require("log")
        store.require_bodies()
        journal_path = args.journal or default_journal(store.path)
        with Journal(journal_path) as journal:
            begin = max(store.log.min_offset, 0)
            with (
                Progress("read", store.log.end_offset - begin, out.quiet) as progress,
                decoding(args, store, out, unit_filter),
            ):
                units = matching(store, unit_filter, lambda offset: progress.update(offset - begin))
                plan = plan_resend(units, journal, args.topic, resend_unknown=args.resend_unknown)
            store.refuse_unread("nothing is sent without it")
            return asyncio.run(_Resending(args, out, store, journal).run(plan))


class _Resending:
    """A run of the command: it completes the plan with the broker's topics, asks, sends, and counts the results."""

    def __init__(self, args: argparse.Namespace, out: Output, store: StoreSnapshot, journal: Journal) -> None:
        self._args = args
        self._out = out
        self._store = store
        self._journal = journal
        self._results = {SENT: 0, REFUSED: 0, UNKNOWN: 0}

    async def run(self, plan: ResendPlan) -> int:
        instance = new_client(self._args, self._out, [self._args.to])
        try:
            destination = Destination(instance, self._args.to)
            if plan.to_send:
                topics = [share.topic for share in plan.topics()]
                plan = plan.without_topics(await destination.find_topics(topics))
            return await self._run(plan, destination)
        finally:
            await instance.kill()

    async def _run(self, plan: ResendPlan, destination: Destination) -> int:
        args, out = self._args, self._out
        out.record(_plan_record(plan, args, self._journal))
        lines = list(_plan_lines(plan, args, self._journal))
        if args.plan or not plan.to_send:
            for line in lines:
                out.line(line)
            return 1 if plan.count(Decision.CANNOT) or plan.count(Decision.NOT_KNOWN) else 0
        question = "Send them?"
        if not ask_consent(args, lines, question, empty_log=None, what_it_does="this sends messages to a broker"):
            return 2
        self._journal.create(str(self._store.path))
        for message in plan.messages:
            if message.decision is not Decision.SEND:
                record = _record(message, message.decision, SendOutcome("", "", "", reason=message.reason))
                out.record(record, COLUMNS if message.decision is Decision.CANNOT else None)
        handled = 0
        failure: NotReached | None = None
        with ended_by_signals() as stopped:
            try:
                handled = await resend(
                    plan.to_send,
                    lambda planned: read_planned(self._store, planned),
                    destination,
                    self._journal,
                    rate=args.rate,
                    on_result=self._print_result,
                    stopped=stopped,
                )
            except NotReached as error:
                failure, handled = error, sum(self._results.values())
            self._print_end(plan, len(plan.to_send) - handled)
            if failure is not None:
                raise failure
            if stopped.is_set():
                return 130
        is_complete = handled == len(plan.to_send) == self._results[SENT]
        return 0 if is_complete and not plan.count(Decision.CANNOT) and not plan.count(Decision.NOT_KNOWN) else 1

    def _print_result(self, planned: PlannedMessage, outcome: SendOutcome) -> None:
        self._results[outcome.state] += 1
        self._out.record(_record(planned, outcome.state, outcome), COLUMNS)
        if self._out.as_json:
            self._out.flush()

    def _print_end(self, plan: ResendPlan, remaining: int) -> None:
        out, results, journal = self._out, self._results, str(self._journal.path)
        end = {
            "type": "resendEnd",
            **results,
            "alreadySent": plan.count(Decision.ALREADY_SENT),
            "notKnown": plan.count(Decision.NOT_KNOWN),
            "copies": plan.count(Decision.COPY),
            "cannotBeSent": plan.count(Decision.CANNOT),
            "remaining": remaining,
            "journal": journal,
        }
        out.record(end)
        out.line(
            f"{number_of(results[SENT], 'message was', 'messages were')} sent, {results[REFUSED]:,} refused; of "
            f"{results[UNKNOWN]:,} it is not known whether they arrived"
        )
        if remaining:
            out.line(f"{number_of(remaining, 'message', 'messages')} not sent yet: the same command goes on there")
        out.line(f"journal: {shlex.quote(journal)}")


def _record(planned: PlannedMessage, result: str, outcome: SendOutcome) -> dict[str, Any]:
    return {
        "type": "resent",
        "result": str(result),
        **planned.identity.record(),
        "sourceTopic": planned.source_topic,
        "topic": planned.topic,
        "status": outcome.status or None,
        "msgId": outcome.msg_id or None,
        "queueId": outcome.queue_id,
        "queueOffset": outcome.queue_offset,
        "offsetMsgId": outcome.offset_msg_id,
        "reason": outcome.reason,
    }


def _plan_record(plan: ResendPlan, args: argparse.Namespace, journal: Journal) -> dict[str, Any]:
    return {
        "type": "resendPlan",
        "messages": len(plan.messages),
        "toSend": len(plan.to_send),
        "topics": [
            {
                "topic": share.topic,
                "messages": share.messages,
                "firstStoreTimestamp": share.first_timestamp,
                "lastStoreTimestamp": share.last_timestamp,
            }
            for share in plan.topics()
        ],
        "kinds": dict(plan.kinds()),
        "knownKeys": plan.known_keys,
        "alreadySent": plan.count(Decision.ALREADY_SENT),
        "notKnown": plan.count(Decision.NOT_KNOWN),
        "copies": plan.count(Decision.COPY),
        "cannotBeSent": dict(plan.reasons()),
        "to": args.to,
        "journal": str(journal.path),
    }


def _plan_lines(plan: ResendPlan, args: argparse.Namespace, journal: Journal) -> Iterator[str]:
    pace = f", at most {args.rate:g} a second" if args.rate is not None else ""
    yield (
        f"{number_of(len(plan.messages), 'message matches', 'messages match')}; "
        f"{number_of(len(plan.to_send), 'is', 'are')} sent to {args.to}{pace}:"
        if plan.to_send
        else f"{number_of(len(plan.messages), 'message matches', 'messages match')}; none is sent"
    )
    for share in plan.topics():
        yield (
            f"  to {share.topic}: {number_of(share.messages, 'message', 'messages')}, stored from "
            f"{iso_time(share.first_timestamp)} to {iso_time(share.last_timestamp)}"
        )
    kinds = plan.kinds()
    for kind, (one, many) in _KIND_WORDS.items():
        if kinds[kind]:
            yield f"  among them {number_of(kinds[kind], one, many)}"
    if plan.to_send:
        yield "  every group that consumes such a topic gets them, also a group that consumed them before"
    for decision, text in (
        (Decision.ALREADY_SENT, "sent already, says the journal"),
        (Decision.COPY, "not sent because a later copy of the same message is"),
        (Decision.NOT_KNOWN, "left out: not known whether they arrived (--resend-unknown sends them again)"),
    ):
        if count := plan.count(decision):
            yield f"  {count:,} {text}"
    for reason, count in plan.reasons().items():
        yield f"  {count:,} cannot be sent: {reason}"
    exists = "" if journal.exists else ", a new file"
    yield f"  journal: {shlex.quote(str(journal.path))}{exists}; it has the unique keys of {plan.known_keys:,} of them"
