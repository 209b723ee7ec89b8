"""mqadmin's commands that move a group's offsets on running brokers, and ``restore-offsets``, which moves them back.

Each shows which messages come again and which never come before it asks, and writes a file with the old offsets.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.cli.backup import ask_consent
from engine.cli.connecting import add_credentials, new_client
from engine.cli.options import add_command, common_options, moment, number
from engine.cli.output import Column, Output
from engine.cli.serving import address_list
from engine.client.errors import ClientError
from engine.client.offset_moves import TO_END, GroupOffsets, OffsetMove
from engine.client.offset_undo import read_undo, undo_name, undo_record, write_undo
from engine.client.routes import MessageQueue
from engine.english import number_of
from engine.errors import CannotRead, UsageError, cause_of
from engine.remoting.answers import UnexpectedAnswer
from engine.sentences import sentence

COLUMNS = (
    Column("Topic", "topic"),
    Column("Broker", "brokerName"),
    Column("Queue", "queueId", "plain"),
    Column("Old offset", "oldOffset", "number"),
    Column("New offset", "newOffset", "number"),
    Column("Again", "again", "number"),
    Column("Never", "never", "number"),
    Column("Result", "result", "prose"),
)


def register(commands: Any) -> None:
    """Add the commands."""
    parser = _add(
        commands,
        "resetOffsetByTime",
        "resetOffsetByTime -n 127.0.0.1:9876 -g billing -t Orders -s 2026-11-20#09:41:07:000 --plan",
        "resetOffsetByTime -n 127.0.0.1:9876 -g billing -t Orders -b broker-a -q 0 -o 1200",
    )
    _add_group_and_topic(parser)
    text = "ms since 1970, yyyy-MM-dd#HH:mm:ss:SSS in local time, or now; -1 is the end of each queue"
    parser.add_argument("-s", "--timestamp", type=_time, metavar="TIME", help=text)
    parser.add_argument("-b", "--broker", metavar="NAME", help="only the queues of this broker name")
    parser.add_argument("-q", "--queue", type=number, metavar="QUEUE", help="only this queue")
    parser.add_argument("-o", "--offset", type=number, metavar="OFFSET", help="this offset instead of a time; needs -q")
    parser.set_defaults(run=_reset)
    parser = _add(
        commands,
        "skipAccumulatedMessage",
        "skipAccumulatedMessage -n 127.0.0.1:9876 -g billing -t Orders --plan",
    )
    _add_group_and_topic(parser)
    parser.set_defaults(run=_skip)
    parser = _add(
        commands,
        "cloneGroupOffset",
        "cloneGroupOffset -n 127.0.0.1:9876 -s billing -d billing-new -t Orders --plan",
    )
    parser.add_argument("-s", "--srcGroup", dest="source", required=True, metavar="GROUP", help="the group to copy")
    text = "the group whose offsets are set"
    parser.add_argument("-d", "--destGroup", dest="group", required=True, metavar="GROUP", help=text)
    parser.add_argument("-t", "--topic", required=True, metavar="TOPIC", help="the topic")
    parser.set_defaults(run=_clone)
    parser = _add(
        commands,
        "restore-offsets",
        "restore-offsets billing.offsets.json --plan",
        needs_servers=False,
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the undo file of one of the commands above")
    parser.set_defaults(run=_restore)


def _add(commands: Any, name: str, *examples: str, needs_servers: bool = True) -> argparse.ArgumentParser:
    parser = add_command(commands, name, *examples, parents=[common_options(store=False)])
    text = "the cluster's name servers" if needs_servers else "the cluster's name servers (default: those in FILE)"
    parser.add_argument(
        "-n",
        "--namesrvAddr",
        dest="namesrv",
        type=address_list,
        required=needs_servers,
        metavar="ADDR[;ADDR]",
        help=text,
    )
    add_credentials(parser)
    parser.add_argument("--plan", action="store_true", help="show which messages come again or never; set nothing")
    text = "write the old offsets into this new file (default: GROUP.offsets-TIME.json in the current folder)"
    parser.add_argument("--undo-file", type=Path, metavar="FILE", help=text)
    parser.add_argument("--yes", action="store_true", help="do not ask before setting")
    return parser


def _add_group_and_topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--group", required=True, metavar="GROUP", help="the consumer group")
    parser.add_argument("-t", "--topic", required=True, metavar="TOPIC", help="the topic")


def _time(text: str) -> int:
    if text == "now":
        return time.time_ns() // 1_000_000
    return TO_END if text.strip() == "-1" else moment(text)


@dataclass(frozen=True, slots=True)
class _Request:
    """The offsets that a command sets. ``timestamp`` is given if it sets all queues of the topic to one time."""

    group: str
    targets: dict[MessageQueue, int]
    timestamp: int | None = None
    unchanged: str = ""
    """Words about queues that are left as they are."""


def _reset(args: argparse.Namespace, out: Output) -> int:
    if (args.offset is None) == (args.timestamp is None):
        raise UsageError(sentence("resetOffsetByTime needs -s TIME or -o OFFSET, one of them"))
    if args.offset is not None and args.queue is None:
        raise UsageError(sentence("-o OFFSET needs the queue: -q QUEUE"))

    async def request(offsets: GroupOffsets) -> _Request:
        queues = [
            queue
            for queue in await offsets.queues(args.topic)
            if args.broker in {None, queue.broker} and args.queue in {None, queue.queue_id}
        ]
        if not queues:
            raise UsageError(sentence("the name servers know no such queue of topic {topic}", topic=args.topic))
        if args.offset is not None and len(queues) > 1:
            raise UsageError(sentence("several brokers have this queue: -b NAME chooses one"))
        if args.offset is not None:
            return _Request(args.group, {queues[0]: args.offset})
        whole = args.broker is None and args.queue is None
        targets = await offsets.at_time(queues, args.timestamp)
        return _Request(args.group, targets, args.timestamp if whole else None)

    return _move(args, out, args.namesrv, request)


def _skip(args: argparse.Namespace, out: Output) -> int:
    async def request(offsets: GroupOffsets) -> _Request:
        targets = await offsets.at_time(await offsets.queues(args.topic), TO_END)
        return _Request(args.group, targets, TO_END)

    return _move(args, out, args.namesrv, request)


def _clone(args: argparse.Namespace, out: Output) -> int:
    async def request(offsets: GroupOffsets) -> _Request:
        queues = await offsets.queues(args.topic)
        targets = await offsets.offsets_to_clone(args.source, args.topic)
        lacking = len(queues) - len(targets)
        words = (
            f"{number_of(lacking, 'queue keeps its offset', 'queues keep their offsets')}: {args.source} has none there"
            if lacking
            else ""
        )
        return _Request(args.group, targets, unchanged=words)

    return _move(args, out, args.namesrv, request)


def _restore(args: argparse.Namespace, out: Output) -> int:
    undo = read_undo(args.file)
    rows = [(MessageQueue(row["topic"], row["brokerName"], row["queueId"]), row["offset"]) for row in undo["offsets"]]

    async def request(offsets: GroupOffsets) -> _Request:
        for topic in sorted({queue.topic for queue, _ in rows}):
            await offsets.queues(topic)  # the routes of the brokers
        lacking = sum(offset is None for _, offset in rows)
        words = (
            f"{number_of(lacking, 'queue keeps its offset', 'queues keep their offsets')}: there was none before, and "
            "none can be removed"
            if lacking
            else ""
        )
        return _Request(undo["group"], {queue: offset for queue, offset in rows if offset is not None}, unchanged=words)

    return _move(args, out, args.namesrv or undo["nameServers"], request)


def _move(args: argparse.Namespace, out: Output, name_servers: list[str], request: Any) -> int:
    async def move() -> int:
        instance = new_client(args, out, name_servers)
        try:
            offsets = GroupOffsets(instance)
            return await _plan_and_apply(args, out, name_servers, offsets, await request(offsets))
        finally:
            await instance.kill()

    try:
        return asyncio.run(move())
    except (ClientError, UnexpectedAnswer, OSError, TimeoutError) as error:
        raise CannotRead(cause_of(error)) from error


async def _plan_and_apply(
    args: argparse.Namespace, out: Output, name_servers: list[str], offsets: GroupOffsets, request: _Request
) -> int:
    group = request.group
    moves = await offsets.plan(group, request.targets)
    members = await offsets.members(group, request.targets)
    lines = list(_plan_lines(group, moves, members, request))
    changing = [move for move in moves if move.changes]
    if args.plan or not changing:
        for move in moves:
            out.record(_record(group, move, None))
        out.record(_summary(group, moves, None, members))
        for line in lines:
            out.line(line)
        return 0
    what = "this sets the offsets of a group"
    if not ask_consent(args, lines, "Set them?", empty_log=None, what_it_does=what):
        return 2
    moves = await offsets.plan(group, request.targets)  # the group may have gone on meanwhile
    undo_file = args.undo_file or Path(undo_name(group))
    write_undo(undo_file, undo_record(args.command, name_servers, group, moves))
    failures = await offsets.apply(group, moves, request.timestamp)
    for move in moves:
        result = failures.get(move.queue, "set" if move.changes else "unchanged")
        out.record(_record(group, move, result), COLUMNS)
    out.record(_summary(group, moves, undo_file, members))
    if failures:
        out.line(number_of(len(failures), "offset was not set", "offsets were not set"))
    if len(failures) < sum(move.changes for move in moves):
        out.line(f"{_sums([move for move in moves if move.queue not in failures])}. To set the old offsets again:")
        out.line(f"  storescope restore-offsets {shlex.quote(str(undo_file))}")
    return 1 if failures else 0


def _record(group: str, move: OffsetMove, result: str | None) -> dict[str, Any]:
    return {
        "type": "offsetMove",
        "group": group,
        "topic": move.queue.topic,
        "brokerName": move.queue.broker,
        "queueId": move.queue.queue_id,
        "oldOffset": move.old,
        "newOffset": move.new,
        "minOffset": move.min_offset,
        "maxOffset": move.max_offset,
        "again": len(move.again),
        "againFrom": move.again.start if move.again else None,
        "never": len(move.never),
        "neverFrom": move.never.start if move.never else None,
        "result": result,
    }


def _summary(group: str, moves: Sequence[OffsetMove], undo_file: Path | None, members: list[str]) -> dict[str, Any]:
    return {
        "type": "offsetMoves",
        "group": group,
        "queues": sum(move.changes for move in moves),
        "again": sum(len(move.again) for move in moves),
        "never": sum(len(move.never) for move in moves),
        "members": members,
        "undoFile": None if undo_file is None else str(undo_file),
    }


def _plan_lines(group: str, moves: list[OffsetMove], members: list[str], request: _Request) -> Iterator[str]:
    topics = ", ".join(sorted({move.queue.topic for move in moves}))
    yield f"Group {group}, topic {topics}:"
    for move in moves:
        if move.changes:
            yield f"  {move.queue.broker}/{move.queue.queue_id}: {_move_words(move)}"
    if unchanged := sum(not move.changes for move in moves):
        yield f"  {number_of(unchanged, 'queue does', 'queues do')} not change"
    if request.unchanged:
        yield f"  {request.unchanged}"
    yield f"  in all: {_sums(moves)}; messages in the group's retry topic stay as they are"
    if members:
        yield (
            f"  {number_of(len(members), 'consumer is', 'consumers are')} connected and may read on until the offsets "
            "are set; the undo file has the offsets of that time"
        )


def _move_words(move: OffsetMove) -> str:
    old = "no offset" if move.old is None else f"{move.old:,}"
    bounds = (
        f"the queue has offsets {move.min_offset:,} to {move.max_offset - 1:,}"
        if move.max_offset > move.min_offset
        else "the queue is empty"
    )
    words = f"{old} → {move.new:,} ({bounds}): "
    if move.old is None:
        count = max(move.max_offset - max(move.new, move.min_offset), 0)
        return words + f"{number_of(count, 'message is', 'messages are')} read from there on"
    if move.again:
        words += f"{number_of(len(move.again), 'message comes', 'messages come')} again{_span(move.again)}"
    elif move.never:
        words += f"{number_of(len(move.never), 'message never comes', 'messages never come')}{_span(move.never)}"
    else:
        words += "no message comes again or is left out"
    return words


def _span(offsets: range) -> str:
    if len(offsets) == 1:
        return f": offset {offsets.start:,}"
    return f": offsets {offsets.start:,} to {offsets.stop - 1:,}"


def _sums(moves: Sequence[OffsetMove]) -> str:
    again, never = sum(len(move.again) for move in moves), sum(len(move.never) for move in moves)
    return (
        f"{number_of(again, 'message comes', 'messages come')} again, "
        f"{number_of(never, 'message never comes', 'messages never come')}"
    )
