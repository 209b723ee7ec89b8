"""``offset``: the queue offset for a time, as a broker answers."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import common_options, number, open_named_store
from engine.cli.output import Output, iso_time
from engine.inspection.get_message import offset_by_time


def register(commands: Any) -> None:
    parser = commands.add_parser("offset", parents=[common_options()], help="the queue offset for a time")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("queue", metavar="QUEUE", type=number)
    parser.add_argument("--time", type=number, required=True, metavar="MS", help="ms since the epoch")
    parser.add_argument("--boundary", choices=("lower", "upper"), default="lower")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        store.settle_log_end()
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
