"""``put``: put messages into an existing or a new store; prints one record a message."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from engine.cli.backup import add_consent, ask_consent, backed_up
from engine.cli.options import add_command, add_release, common_options, number
from engine.cli.output import Column, Output
from engine.cli.put_plan import PutPlan, read_plan
from engine.cli.writing import WriteTarget, find_target, given_config, report_compilation, target_release
from engine.codec.encode import Message
from engine.english import number_of
from engine.errors import UsageError
from engine.inspection import records
from engine.releases import Release
from engine.sentences import sentence

_COLUMNS = (
    Column("Status", "status"),
    Column("Physical offset", "physicalOffset", "number"),
    Column("Queue offset", "queueOffset", "number"),
    Column("Size", "size", "number"),
    Column("Stored", "storeTimestamp", "time"),
    Column("Message id", "msgId"),
)
_MESSAGE_OPTIONS = ("queue", "body", "tags", "keys", "unique_key", "properties", "flag")


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "put",
        "put /tmp/new --topic Orders --body hello --tags OrderPaid --keys O-1042",
        "put /tmp/new --plan messages.json --yes",
        parents=[common_options()],
    )
    parser.add_argument("store", metavar="STORE", help="a store, or a new or empty folder")
    parser.add_argument(
        "--plan", metavar="PLAN.json", help="read the messages, and the configuration of a new store, from this file"
    )
    parser.add_argument("--topic", metavar="T", help="the topic of one message")
    parser.add_argument("--queue", type=number, metavar="Q", help="its queue id (default: 0)")
    parser.add_argument("--body", metavar="TEXT", help="its body")
    parser.add_argument("--tags", metavar="TAG", help="its tag")
    parser.add_argument("--keys", metavar="'K1 K2'", help="its keys, separated by spaces")
    parser.add_argument("--unique-key", metavar="ID", help="its unique key (UNIQ_KEY)")
    parser.add_argument(
        "--property",
        action="append",
        dest="properties",
        metavar="NAME=VALUE",
        help="a property; may be given several times",
    )
    parser.add_argument("--flag", type=number, metavar="N", help="its flag (default: 0)")
    add_release(
        parser, "write as this RocketMQ release does (default: as the store was written; new store: the newest)"
    )
    add_consent(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    report_compilation(out)
    release = target_release(args.store, args.release)
    plan = _plan_from_arguments(args, release)
    for remark in plan.remarks:
        out.say(remark)
    target = find_target(args.store, plan.with_settings(given_config(args, out)), release)
    planned_lines = _planned_lines(target, plan.messages)
    if target.exists and not ask_consent(args, planned_lines, "Put them there?", empty_log=target.empty_log):
        return 2
    return 0 if _put(args, out, target, plan) else 1


def _put(args: argparse.Namespace, out: Output, target: WriteTarget, plan: PutPlan) -> bool:
    from engine.message_store import MessageStore

    all_stored = True
    changes = target.recovery is not None and not target.recovery.changes_nothing
    with backed_up(args, target.path, target.config, enabled=changes) as backup:
        opened = MessageStore(
            target.path, target.config, disk=backup.store_disk, release=target.release, empty_log=args.empty_log
        )
        with opened as store:
            backup.settled = True
            for name, queues in plan.batch_topics:
                if not store.tables.is_batch_topic(name):
                    store.tables.create_topic(name, queues, attributes={"queue.type": "BatchCQ"})
            for message in plan.messages:
                result = store.put_message(message)
                all_stored &= result.ok
                out.record({**records.put(result), **backup.place}, _COLUMNS)
            store.wait_dispatched()
    backup.say(out)
    return all_stored


def _plan_from_arguments(args: argparse.Namespace, release: Release) -> PutPlan:
    """Return the plan of ``--plan``, or one with the message that the options describe."""
    given_options = [name for name in _MESSAGE_OPTIONS if getattr(args, name) is not None]
    if args.plan is not None:
        if args.topic is not None or given_options:
            raise UsageError(sentence("expected either --plan or one message by --topic and --body, found both"))
        return read_plan(args.plan, release)
    if args.topic is None or args.body is None:
        raise UsageError(sentence("expected --plan PLAN.json, or --topic T and --body TEXT"))
    properties = {}
    for text in args.properties or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(sentence("--property: expected NAME=VALUE, found '{text}'", text=text))
        properties[name] = value
    message = Message(
        args.topic,
        args.body.encode("utf-8", "surrogateescape"),
        args.queue or 0,
        properties,
        flag=args.flag or 0,
        tags=args.tags,
        keys=args.keys,
        unique_key=args.unique_key,
    )
    return PutPlan({}, (), (message,), ())


def _planned_lines(target: WriteTarget, messages: Sequence[Message]) -> Iterator[str]:
    yield from target.planned()
    size = sum(len(message.body) for message in messages)
    topics = len({message.topic for message in messages})
    are = "is" if len(messages) == 1 else "are"
    summary = f"{number_of(len(messages), 'message', 'messages')} of {number_of(topics, 'topic', 'topics')}"
    yield f"Then {summary} {are} appended, {number_of(size, 'byte', 'bytes')} of bodies."
