"""``offset``: the queue offset for a time, as a broker answers."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import (
    add_command,
    add_queue,
    add_store,
    common_options,
    number,
    open_named_store,
    report_read_side,
)
from engine.cli.output import Output, iso_time
from engine.inspection.get_message import offset_by_time


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "offset",
        "offset ~/store Orders 0 --time 1795600000000",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    add_queue(parser)
    parser.add_argument("--time", type=number, required=True, metavar="MS", help="store time, ms since 1970")
    parser.add_argument(
        "--boundary",
        choices=("lower", "upper"),
        default="lower",
        help="of several messages with this time: the first (lower, default) or the last (upper)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        report_read_side(store, out)
        store.commit_log.settle_end()
        queue_offset = offset_by_time(store, args.topic, args.queue, args.time, args.boundary)
    record = {
        "type": "offset",
        "topic": args.topic,
        "queueId": args.queue,
        "timestamp": args.time,
        "boundary": args.boundary,
        "queueOffset": queue_offset,
    }
    out.record(record)
    out.line(f"{args.topic}/{args.queue} at {iso_time(args.time)}, {args.boundary}: {queue_offset:,}")
    return 0
