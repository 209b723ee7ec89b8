"""``replay``: send a recording's requests again, to another store or a broker."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from engine.broker.serving import serving_open
from engine.cli.backup import Backup, add_consent, ask_consent, backed_up
from engine.cli.connecting import add_credentials, read_credentials
from engine.cli.options import add_command, add_release, common_options
from engine.cli.output import Column, Output
from engine.cli.serving import address_list
from engine.cli.writing import WriteTarget, find_target
from engine.english import number_of
from engine.errors import CannotRead, UsageError, cause_of
from engine.message_store import MessageStore
from engine.remoting.codes import RequestCode, answer_name
from engine.remoting.recording import Recording, Replay, ReplayResult, ResentRequest, exchanges_of
from engine.sentences import sentence

DIFFERENCES = (
    Column("Time", "time", "time"),
    Column("Request", "name"),
    Column("Topic", "topic"),
    Column("Queue", "queueId", "number"),
    Column("Answered before", "before"),
    Column("Now", "now"),
    Column("Remark", "remark", "prose"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "replay",
        "replay requests.rec --store /tmp/new",
        "replay requests.rec --to 127.0.0.1:10911 --only SEND_MESSAGE_V2",
        parents=[common_options(store=False)],
    )
    parser.add_argument("recording", metavar="RECORDING", type=Path, help="a file that 'serve --record' wrote")
    parser.add_argument(
        "--store", metavar="STORE", help="send them to this store, or to a new one in this new or empty folder"
    )
    parser.add_argument("--to", type=address_list, metavar="HOST:PORT", help="send them to this running broker")
    parser.add_argument(
        "--only",
        metavar="NAME[,NAME]",
        default="",
        help="send only requests with these names, for example SEND_MESSAGE_V2",
    )
    add_credentials(parser)
    add_release(
        parser,
        "behave as this RocketMQ release (default: the one that probably wrote the store; new store: the newest)",
    )
    add_consent(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    if (args.store is None) == (args.to is None):
        raise UsageError(sentence("replay needs --store STORE or --to HOST:PORT, one of them"))
    only = [name for name in args.only.split(",") if name]
    unknown = [name for name in only if name not in RequestCode.__members__]
    if unknown:
        raise UsageError(sentence("no request is called {unknown}", unknown=", ".join(unknown)))
    if args.to is None and (args.tls is not None or args.account is not None):
        raise UsageError(sentence("--tls and --account are for --to HOST:PORT"))
    credentials = read_credentials(args, out)
    recording = Recording(args.recording)
    exchanges = exchanges_of(recording)
    if recording.left_out:
        out.say(
            f"{args.recording} was full: {number_of(recording.left_out, 'frame', 'frames')} after its "
            "end were not recorded"
        )
    differ: list[ResentRequest] = []

    def on_sent(sent: ResentRequest) -> None:
        if not sent.same and sent.before is not None:
            differ.append(sent)

    def replay(address: str) -> Replay:
        return Replay(exchanges, address, on_sent, only, *credentials)

    if args.to is not None:
        result = asyncio.run(_to_broker(replay(args.to[0]), args.to[0]))
    else:
        replayed = _to_store(args, out, replay, len(exchanges))
        if replayed is None:
            return 1
        result = replayed
    _say(out, result, differ)
    return 0 if not result.differs and not result.unanswered else 1


async def _to_broker(replay: Replay, address: str) -> ReplayResult:
    try:
        return await replay.run()
    except (OSError, TimeoutError) as error:
        raise CannotRead(
            sentence("the broker at {address} cannot be reached: {cause}", address=address, cause=cause_of(error))
        ) from error


def _to_store(args: argparse.Namespace, out: Output, replay: Any, number: int) -> ReplayResult | None:
    target = find_target(args.store, None, args.release)
    planned = [*target.planned(), f"  {number_of(number, 'request is', 'requests are')} sent to it again"]
    if target.exists and not ask_consent(args, planned, empty_log=target.empty_log):
        return None
    changes = target.recovery is not None and not target.recovery.changes_nothing
    with backed_up(args, target.path, target.config, enabled=changes) as backup:

        async def served() -> ReplayResult:
            async with _broker(args, target, backup) as address:
                replayed: ReplayResult = await replay(address).run()
                return replayed

        result = asyncio.run(served())
    backup.say(out)
    return result


@contextlib.asynccontextmanager
async def _broker(args: argparse.Namespace, target: WriteTarget, backup: Backup) -> AsyncIterator[str]:
    def open_store(host: str) -> MessageStore:
        return MessageStore(
            target.path,
            target.config,
            disk=backup.store_disk,
            release=target.release,
            store_host=host,
            empty_log=args.empty_log,
        )

    async with serving_open(open_store) as server:
        backup.settled = True
        yield server.address


def _say(out: Output, result: ReplayResult, differ: list[ResentRequest]) -> None:
    rows = [
        {
            "type": "replayDifference",
            "time": sent.exchange.time,
            "name": sent.exchange.name,
            "topic": sent.exchange.topic or None,
            "queueId": sent.exchange.queue_id,
            "before": None if sent.before is None else answer_name(sent.before),
            "now": None if sent.now is None else answer_name(sent.now),
            "remark": sent.remark or None,
        }
        for sent in differ
    ]
    if out.as_json:
        for row in rows:
            out.record(row)
        out.record(
            {
                "type": "replayed",
                "sent": result.sent,
                "same": result.same,
                "differs": result.differs,
                "oneWay": result.one_way,
                "unanswered": result.unanswered,
                "leftOut": result.left_out,
                "answeredNow": result.answered_now,
                "byName": dict(result.by_name.most_common()),
            }
        )
        return
    for row in rows:
        out.record(row, DIFFERENCES)
    names = ", ".join(f"{number:,} {name}" for name, number in result.by_name.most_common())
    out.line(f"{number_of(result.sent, 'request was', 'requests were')} sent again: {names or 'none'}")
    out.line(
        f"{result.same:,} got the same response, {result.differs:,} a different one, {result.unanswered:,} none; "
        f"{result.answered_now:,} have no response in the recording; {result.one_way:,} expect no response"
    )
    if result.left_out:
        out.line(
            f"{result.left_out:,} were skipped: they are not requests of a client to a broker, or --only excludes them"
        )
