"""The offline counterparts of mqadmin's reading commands, under its names and options, with ``-s STORE`` in place
of ``-n``.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from engine.cli.commands import groups, mqadmin_cluster, mqadmin_files, mqadmin_offsets
from engine.cli.commands.config import range_text
from engine.cli.commands.message import show
from engine.cli.commands.units import print_unit, unit_of
from engine.cli.options import add_command, add_release, common_options, count, moment, number, open_named_store
from engine.cli.output import Column, Output, escape_controls
from engine.codec.index_keys import INDEX_TYPES
from engine.english import number_of
from engine.errors import StoreError
from engine.inspection import records
from engine.inspection.entry_verdict import resolve
from engine.inspection.get_message import store_time
from engine.inspection.key_trace import DEFAULT_MAX, MAX_TIME_MS, Match, TraceStep, trace
from engine.inspection.lite_topics import lite_groups, lite_topics
from engine.inspection.lookup import by_key, by_offset_id
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.static_topics import find_logical_offsets, logical_ranges
from engine.inspection.store_queues import AnyQueue
from engine.sentences import sentence

_STATUS = (
    Column("Topic", "topic"),
    Column("Queue", "queueId", "plain"),
    Column("Min offset", "minOffset", "number"),
    Column("Max offset", "maxOffset", "number"),
    Column("Last updated", "lastUpdateTimestamp", "time"),
)
_STATIC_STATUS = (
    *_STATUS,
    Column("Logical queue", "logicalQueueId", "plain"),
    Column("Min logical", "minLogicalOffset", "number"),
    Column("Max logical", "maxLogicalOffset", "number"),
)
_LITE_TOPICS = (
    Column("Lite topic", "liteTopic"),
    Column("Min offset", "minOffset", "number"),
    Column("Max offset", "maxOffset", "number"),
    Column("Last updated", "lastUpdateTimestamp", "time"),
    Column("Deleted after", "expirationTimestamp", "time"),
    Column("Unread by", "unreadBy"),
)
_PRINT_LIMIT = 2000
_EXAMPLE_ID = "0A00000500002A9F0000000000002001"


def register(commands: Any) -> None:
    parser = _add(commands, "queryMsgByKey", _query_by_key, "-t Orders", "-k O-1042")
    text = "earliest store time, ms since 1970 (default: 0)"
    parser.add_argument("-b", "--beginTimestamp", dest="begin", type=number, default=0, metavar="MS", help=text)
    text = "latest store time, ms since 1970 (default: none)"
    parser.add_argument("-e", "--endTimestamp", dest="end", type=number, default=MAX_TIME_MS, metavar="MS", help=text)
    text = "stop after N messages (default: %(default)s)"
    parser.add_argument(
        "-c", "-m", "--maxNum", dest="max_count", type=count, default=DEFAULT_MAX, metavar="N", help=text
    )
    parser.add_argument(
        "-p",
        "--keyType",
        dest="index_type",
        choices=INDEX_TYPES,
        metavar="TYPE",
        help="kind of KEY: K key, U unique key, T tag (default: any kind)",
    )
    _add(commands, "queryMsgById", _query_by_id, f"-i {_EXAMPLE_ID}")
    _add(commands, "queryMsgByUniqueKey", _query_by_unique_key, "-t Orders", f"-i {_EXAMPLE_ID}")
    _add(commands, "queryMsgByOffset", _query_by_offset, "-t Orders", "-i 0", "-o 100")
    parser = _add(commands, "queryCq", _query_cq, "-t Orders", "-q 0", "-i 100")
    text = "the first queue offset"
    parser.add_argument("-i", "--index", dest="start", type=number, required=True, metavar="OFFSET", help=text)
    text = "list at most N entries (default: %(default)s)"
    parser.add_argument("-c", "--count", dest="max_count", type=count, default=10, metavar="N", help=text)
    _window(_add(commands, "printMsg", _print_messages, "-t Orders"))
    _window(_add(commands, "printMsgByQueue", _print_by_queue, "-t Orders", "-i 0"))
    parser = _add(commands, "consumerProgress", _consumer_progress, "-g billing")
    parser.add_argument("-g", "--groupName", dest="group", metavar="GROUP", help="the consumer group (default: all)")
    add_release(parser, "judge the start of this RocketMQ release (default: the one that probably wrote the store)")
    _add(commands, "topicStatus", _topic_status, "-t Orders")
    mqadmin_cluster.register(commands)
    mqadmin_files.register(commands)
    mqadmin_offsets.register(commands)


def _add(commands: Any, name: str, run: Any, *options: str) -> argparse.ArgumentParser:
    """Add a command. ``options`` are its required options with values for the example; ``-g`` is not required."""
    example = " ".join([name, "-s ~/store", *options])
    parser = add_command(commands, name, example, parents=[common_options()])
    parser.add_argument(
        "-s", "--store", required=True, metavar="STORE", help="the store: the folder that contains commitlog/"
    )
    by_id = name in ("queryMsgById", "queryMsgByUniqueKey")
    for option in options:
        match option.split()[0]:
            case "-t":
                parser.add_argument("-t", "--topic", required=True, metavar="TOPIC", help="the topic")
            case "-k":
                parser.add_argument("-k", "--msgKey", dest="key", required=True, metavar="KEY", help="the key")
            case "-i" if by_id:
                text = "the unique key" if name == "queryMsgByUniqueKey" else "offset message ids, separated by commas"
                parser.add_argument("-i", "--msgId", dest="id", required=True, metavar="ID", help=text)
            case "-i" if name != "queryCq":
                parser.add_argument(
                    "-i", "--queueId", dest="queue", type=number, required=True, metavar="QUEUE", help="the queue id"
                )
            case "-q":
                parser.add_argument("-q", "--queue", type=number, required=True, metavar="QUEUE", help="the queue id")
            case "-o":
                parser.add_argument(
                    "-o", "--offset", type=number, required=True, metavar="OFFSET", help="the queue offset"
                )
    parser.set_defaults(run=run)
    return parser


def _window(parser: argparse.ArgumentParser) -> None:
    form = "ms since 1970, or yyyy-MM-dd#HH:mm:ss:SSS in local time"
    text = f"earliest store time: {form} (default: 0)"
    parser.add_argument("-b", "--beginTimestamp", dest="begin", type=moment, default=0, metavar="TIME", help=text)
    text = f"latest store time: {form} (default: none)"
    parser.add_argument("-e", "--endTimestamp", dest="end", type=moment, default=MAX_TIME_MS, metavar="TIME", help=text)
    text = "print at most N messages (default: %(default)s)"
    parser.add_argument("--count", dest="max_count", type=count, default=_PRINT_LIMIT, metavar="N", help=text)


def _query_by_key(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        match_count = 0
        span = args.begin, args.end
        for item in trace(store, args.topic, args.key, *span, args.max_count, args.index_type):
            if isinstance(item, Match):
                match_count += 1
                print_unit(store, item.unit, out)
            elif isinstance(item, TraceStep) and item.why is not None:
                out.say_nothing(item.why)
        if not match_count:
            _say_of_batches(store, args.topic, args.key, out)
    return 0 if match_count else 1


def _say_of_batches(store: StoreSnapshot, topic: str, key: str, out: Output) -> None:
    """Say that no index holds keys of messages inside batches, where the topic has batches."""
    if any(queue.kind == "batch" for queue in store.queues.by_topic().get(topic, {}).values()):
        command = shlex.join(["storescope", "where", str(store.path), key, "--topic", topic])
        out.say_nothing(f"no index holds keys of messages inside a batch, and {topic} has batches; ask: {command}")


def _query_by_id(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        code = 0
        for text in args.id.split(","):
            unit = by_offset_id(store, text.strip())
            if unit is None:
                out.say_nothing(f"no unit has the offset message id {text}")
                code = 1
            else:
                show(unit, store.log.file_name(unit.offset), out)
    return code


def _query_by_unique_key(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        units = [unit for unit in by_key(store, args.id, args.topic) if unit.unique_key == args.id]
        for unit in units:
            print_unit(store, unit, out)
        if not units and args.topic is not None:
            _say_of_batches(store, args.topic, args.id, out)
    return 0 if units else 1


def _query_by_offset(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        entry = _queue(store, args).entry(args.offset)
        unit = unit_of(store, entry) if entry is not None else None
        if unit is None:
            out.say_nothing(f"no message at {args.topic}/{args.queue}/{args.offset}")
            return 1
        show(unit, store.log.file_name(unit.offset), out)
    return 0


def _query_cq(args: argparse.Namespace, out: Output) -> int:
    from engine.cli.commands.queue import COLUMNS

    with open_named_store(args, out) as store:
        queue = _queue(store, args)
        for entry in queue.entries(args.start, args.start + args.max_count):
            verdict = resolve(store.log, args.topic, args.queue, entry).verdict
            out.record(records.cq(entry, verdict), COLUMNS)
    return 0


def _print_messages(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        queues = list(store.queues.by_topic().get(args.topic, {}).values())
        if not queues:
            store.queues.require()
            raise StoreError(
                sentence("expected queues of topic {topic}, found no folder for it", topic=args.topic),
                file=str(store.path),
            )
        return _print(store, queues, args, out)


def _print_by_queue(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        return _print(store, [_queue(store, args)], args, out)


def _print(store: StoreSnapshot, queues: list[AnyQueue], args: argparse.Namespace, out: Output) -> int:
    printed = 0
    for queue in queues:
        for entry in queue.entries(max(queue.min_offset, 0)):
            unit = unit_of(store, entry)
            if unit is None or not args.begin <= unit.store_timestamp <= args.end:
                continue
            if printed >= args.max_count:
                out.line(f"-- stopped after {number_of(printed, 'message', 'messages')} (--count)")
                return 0
            printed += 1
            print_unit(store, unit, out)
    return 0


def _consumer_progress(args: argparse.Namespace, out: Output) -> int:
    return groups.progress(args, out, args.group)


def _topic_status(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        queues = store.queues.by_topic().get(args.topic)
        if not queues:
            store.queues.require()
            raise StoreError(
                sentence("expected queues of topic {topic}, found no folder for it", topic=args.topic),
                file=str(store.path),
            )
        logical_offsets = find_logical_offsets(store, args.topic)
        for number_, queue in queues.items():
            newest = queue.entry(queue.max_offset - 1) if queue.max_offset > max(queue.min_offset, 0) else None
            status = {
                "type": "topicStatus",
                "topic": args.topic,
                "queueId": number_,
                "minOffset": queue.min_offset,
                "maxOffset": queue.max_offset,
                "lastUpdateTimestamp": store_time(store, newest) if newest else None,
            }
            if not logical_offsets:
                out.record(status, _STATUS)
            for item in logical_offsets[number_].ranges if number_ in logical_offsets else ():
                min_logical, max_logical = item.logical_bounds or (None, None)
                logical = {
                    "logicalQueueId": item.queue_id,
                    "minLogicalOffset": min_logical,
                    "maxLogicalOffset": max_logical,
                }
                out.record(status | logical, _STATIC_STATUS)
            if logical_offsets and number_ not in logical_offsets:
                out.record(status, _STATIC_STATUS)
        for item in logical_ranges(store, args.topic):
            if not item.is_local:
                out.line(f"-- {range_text(item)}")
        _print_lite_topics(store, args.topic, out)
    return 0


def _print_lite_topics(store: StoreSnapshot, topic: str, out: Output) -> None:
    """Print the lite topics of a topic, when a broker deletes each, and the groups that may read them."""
    for lite in lite_topics(store, topic):
        record = records.lite_topic(lite)
        unread = ", ".join(f"{group} ({count:,})" for group, count in lite.unread)
        out.record(record if out.as_json else record | {"unreadBy": unread}, _LITE_TOPICS)
    for group in lite_groups(store, topic):
        settings = ", ".join(f"{name}={value}" for name, value in group.attributes)
        out.line(f"-- group {escape_controls(group.name)}: {escape_controls(settings)}")


def _queue(store: StoreSnapshot, args: argparse.Namespace) -> AnyQueue:
    queue = store.queues.find(args.topic, args.queue)
    if queue is None:
        raise StoreError(
            sentence("expected a queue {topic}/{queue}, found no folder for it", topic=args.topic, queue=args.queue),
            file=str(store.path),
        )
    return queue
