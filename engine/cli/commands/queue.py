"""``queue``: the entries of one consume queue, resolved against their units on demand."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_queue, add_store, common_options, number, open_named_store
from engine.cli.output import Column, Output
from engine.errors import CannotRead, StoreError
from engine.inspection import records
from engine.inspection.entry_verdict import resolve
from engine.inspection.undecoded import in_dledger
from engine.sentences import sentence

COLUMNS = (
    Column("Queue offset", "queueOffset", "number"),
    Column("Physical offset", "physicalOffset", "number"),
    Column("Size", "size", "number"),
    Column("Tags code", "tagsCode", "number"),
    Column("State", "state"),
    Column("Batch", "batchSize", "number"),
    Column("Verdict", "verdict"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "queue",
        "List the entries of a consume queue",
        "queue ~/store Orders 0 --from 100 --to 120 --resolve",
        parents=[common_options()],
    )
    add_store(parser)
    add_queue(parser)
    parser.add_argument("--from", dest="start", type=number, metavar="N", help="start at this queue offset")
    parser.add_argument("--to", dest="stop", type=number, metavar="N", help="stop before this queue offset")
    parser.add_argument(
        "--resolve", action="store_true", help="also read the message of each entry and compare the two"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        unbounded = store.queue_entries(args.topic, args.queue)
        queue = unbounded or store.find_queue(args.topic, args.queue)
        if queue is None:
            raise StoreError(
                sentence(
                    "expected a queue {topic}/{queue}, found no folder for it", topic=args.topic, queue=args.queue
                ),
                file=str(store.path),
            )
        for entry in queue.entries(args.start, args.stop):
            is_decoded = unbounded is None or not in_dledger(store, entry.physical_offset)
            verdict = resolve(store.log, args.topic, args.queue, entry).verdict if args.resolve and is_decoded else None
            out.record(records.cq(entry, verdict), COLUMNS)
        try:
            if unbounded is not None:
                store.require("log")
            span = f"offsets {queue.min_offset:,} to {queue.max_offset:,}"
        except CannotRead:
            span = "which of the entries count is not known"
        out.line(f"-- {args.topic}/{args.queue}: {span}")
    return 0
