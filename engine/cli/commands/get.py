"""``get`` and ``offset``: what a broker's getMessage and getOffsetInQueueByTime answer from these files."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.commands.units import print_unit
from engine.cli.decoding import add_decoding, decoding
from engine.cli.options import (
    add_command,
    add_masking,
    add_queue,
    add_store,
    common_options,
    count,
    number,
    open_named_store,
    report_read_side,
)
from engine.cli.output import Output
from engine.errors import UsageError
from engine.inspection import records
from engine.inspection.get_message import get_message
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.static_topics import find_logical_offsets, find_range
from engine.sentences import sentence
from engine.store.message_filter import BothFilters, MessageFilter, SqlFilter, TagFilter


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "get",
        "get ~/store Orders 0 100 --max 10",
        "get ~/store Orders 0 100 --tag 'OrderPaid || OrderSent'",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    add_queue(parser)
    parser.add_argument("offset", metavar="OFFSET", type=number, help="the first queue offset to read")
    parser.add_argument(
        "--max",
        dest="max_count",
        type=count,
        default=32,
        metavar="N",
        help="return at most N messages (default: %(default)s)",
    )
    parser.add_argument("--tag", metavar="EXPR", help="only messages with these tags, as in a subscription: 'A || B'")
    parser.add_argument(
        "--sql", metavar="EXPR", help="only messages that match this SQL92 expression, as in a subscription"
    )
    parser.add_argument(
        "--logical",
        action="store_true",
        help="QUEUE and OFFSET are those of a logical queue of a static topic, as its clients name them",
    )
    add_decoding(parser)
    add_masking(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store, decoding(args, store, out) as decoders:
        report_read_side(store, out)
        store.commit_log.settle_end()
        unit_filter = _filter(args.tag, args.sql)
        queue_id, offset = _physical(args, store) if args.logical else (args.queue, args.offset)
        result = get_message(store, args.topic, queue_id, offset, args.max_count, unit_filter)
        logical = find_logical_offsets(store, args.topic).get(queue_id)
        place = logical.find(offset) if logical is not None else None
        out.record(records.get_result(result) | (records.logical_offset(place) if logical is not None else {}))
        queue = f"{queue_id}: " if logical is not None else ""
        out.fields(
            (
                ("Status", result.status),
                ("Next offset", f"{result.next_begin_offset:,}"),
                ("Queue", f"{queue}{result.min_offset:,} to {result.max_offset:,}"),
                *((("Logical queue", f"{place[0]}, from offset {place[1]:,} on"),) if place is not None else ()),
                ("Messages", f"{result.count:,}"),
            )
        )
        for unit in result.units:
            print_unit(store, unit, out, decoders=decoders)
    return 0


def _physical(args: argparse.Namespace, store: StoreSnapshot) -> tuple[int, int]:
    """Return queue id and offset of a logical offset. Raises :class:`UsageError` if the store does not have it."""
    item = find_range(store, args.topic, args.queue, args.offset)
    if item is None:
        raise UsageError(
            sentence("{topic} has no logical queue {queue} in this store", topic=args.topic, queue=args.queue)
        )
    if not item.is_local:
        raise UsageError(
            sentence(
                "logical offset {offset:,} is in queue {queue} of {broker}, another broker's store",
                offset=args.offset,
                queue=item.range.queue_id,
                broker=item.range.broker,
            )
        )
    return item.range.queue_id, max(item.range.physical(args.offset), 0)


def _filter(tag: str | None, sql: str | None) -> MessageFilter | None:
    tags = None if tag is None else TagFilter(tag)
    by_tag = None if tags is None or tags.passes_all else tags
    if sql is None:
        return by_tag
    return SqlFilter(sql) if by_tag is None else BothFilters(by_tag, SqlFilter(sql))
