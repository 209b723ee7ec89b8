"""``get`` and ``offset``: what a broker's getMessage and getOffsetInQueueByTime answer from these files."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.commands.units import print_unit
from engine.cli.options import (
    add_command,
    add_masking,
    add_queue,
    add_store,
    common_options,
    count,
    number,
    open_named_store,
)
from engine.cli.output import Output
from engine.inspection import records
from engine.inspection.get_message import get_message
from engine.store.message_filter import BothFilters, MessageFilter, SqlFilter, TagFilter


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "get",
        "Read messages from a queue as a broker's getMessage returns them",
        "get ~/store Orders 0 100 --max 10",
        "get ~/store Orders 0 100 --tag 'OrderPaid || OrderSent'",
        parents=[common_options()],
    )
    add_store(parser)
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
    add_masking(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        store.settle_log_end()
        unit_filter = _filter(args.tag, args.sql)
        result = get_message(store, args.topic, args.queue, args.offset, args.max_count, unit_filter)
        out.record(records.get_result(result))
        out.fields(
            (
                ("Status", result.status),
                ("Next offset", f"{result.next_begin_offset:,}"),
                ("Queue", f"{result.min_offset:,} to {result.max_offset:,}"),
                ("Messages", f"{result.count:,}"),
            )
        )
        for unit in result.units:
            print_unit(store, unit, out)
    return 0


def _filter(tag: str | None, sql: str | None) -> MessageFilter | None:
    tags = None if tag is None else TagFilter(tag)
    by_tag = None if tags is None or tags.passes_all else tags
    if sql is None:
        return by_tag
    return SqlFilter(sql) if by_tag is None else BothFilters(by_tag, SqlFilter(sql))
