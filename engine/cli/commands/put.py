"""``put``: messages into a store that is there or into a new one, by the engine; one record a message."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from engine.cli.keeping import add_consent, consented, keeping
from engine.cli.options import common, number
from engine.cli.output import Column, Output
from engine.cli.put_plan import PutPlan, read_plan
from engine.cli.writing import WriteTarget, find_target, given_config
from engine.codec.encode import Message
from engine.counted import counted
from engine.errors import UsageError
from engine.inspection import records

_COLUMNS = (
    Column("Status", "status"),
    Column("Physical offset", "physicalOffset", "number"),
    Column("Queue offset", "queueOffset", "number"),
    Column("Size", "size", "number"),
    Column("Stored", "storeTimestamp", "time"),
    Column("Message id", "msgId"),
)
_OF_ONE = ("queue", "body", "tags", "keys", "unique_key", "properties", "flag")


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "put", parents=[common()], help="writes: puts messages into a store, or into a new one"
    )
    parser.add_argument("store", metavar="STORE", help="a store, or a directory that is absent or empty")
    parser.add_argument("--plan", metavar="PLAN.json", help="the messages and the configuration of a new store")
    parser.add_argument("--topic", metavar="T", help="the topic of one message")
    parser.add_argument("--queue", type=number, metavar="Q", help="its queue; 0 unless given")
    parser.add_argument("--body", metavar="TEXT")
    parser.add_argument("--tags", metavar="TAG")
    parser.add_argument("--keys", metavar="'K1 K2'", help="its keys, a space between them")
    parser.add_argument("--unique-key", metavar="ID")
    parser.add_argument("--property", action="append", dest="properties", metavar="NAME=VALUE")
    parser.add_argument("--flag", type=number, metavar="N")
    parser.add_argument("--like", choices=("4.9", "5.3"), default="5.3", help="the release whose rules apply")
    add_consent(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    plan = _asked(args)
    for remark in plan.remarks:
        out.say(remark)
    target = find_target(args.store, plan.over(given_config(args, out)), args.like)
    planned = _planned(target, plan.messages)
    if target.exists and not consented(args, planned, "Put them there?", empty_log=target.empty_log):
        return 2
    return 0 if _put(args, out, target, plan) else 1


def _put(args: argparse.Namespace, out: Output, target: WriteTarget, plan: PutPlan) -> bool:
    from engine.message_store import MessageStore

    stored = True
    changes = target.recovery is not None and not target.recovery.changes_nothing
    with keeping(args, target.path, target.config, wanted=changes) as kept:
        opened = MessageStore(
            target.path, target.config, disk=kept.store_disk, like=args.like, empty_log=args.empty_log
        )
        with opened as store:
            kept.settled = True
            for name, queues in plan.batch_topics:
                if not store.tables.is_batch_topic(name):
                    store.tables.create_topic(name, queues, attributes={"queue.type": "BatchCQ"})
            for message in plan.messages:
                result = store.put_message(message)
                stored &= result.ok
                out.record({**records.put(result), **kept.place}, _COLUMNS)
            store.wait_dispatched()
    kept.say(out)
    return stored


def _asked(args: argparse.Namespace) -> PutPlan:
    """The plan that was given, or one of the single message that the options describe."""
    named = [name for name in _OF_ONE if getattr(args, name) is not None]
    if args.plan is not None:
        if args.topic is not None or named:
            raise UsageError("expected either --plan or one message by --topic and --body, found both")
        return read_plan(args.plan, args.like)
    if args.topic is None or args.body is None:
        raise UsageError("expected --plan PLAN.json, or --topic T and --body TEXT")
    properties = {}
    for text in args.properties or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--property: expected NAME=VALUE, found '{text}'")
        properties[name] = value
    message = Message(
        args.topic, args.body.encode("utf-8", "surrogateescape"), args.queue or 0, properties, flag=args.flag or 0,
        tags=args.tags, keys=args.keys, unique_key=args.unique_key,
    )  # fmt: skip
    return PutPlan({}, (), (message,), ())


def _planned(target: WriteTarget, messages: Sequence[Message]) -> Iterator[str]:
    yield from target.planned()
    size = sum(len(message.body) for message in messages)
    topics = len({message.topic for message in messages})
    are = "is" if len(messages) == 1 else "are"
    what = f"{counted(len(messages), 'messages')} of {counted(topics, 'topics')}"
    yield f"Then {what} {are} put behind it, {size:,} bytes of bodies."
