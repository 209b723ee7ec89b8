"""``trace``: the way of a key or of tags through the index, step by step, to the units."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_store, common_options, count, number, open_named_store
from engine.cli.output import Column, Output, iso_time
from engine.codec.index_keys import INDEX_TYPES, TAG, IndexType, key_text
from engine.codec.java import index_key_hash
from engine.english import number_of
from engine.inspection import records
from engine.inspection.key_trace import DEFAULT_MAX, MAX_TIME_MS, Match, TraceEnd, TraceFile, TraceStep, trace

_STEPS = (
    Column("File", "file", "plain"),
    Column("Kind", "kind"),
    Column("Slot", "slot", "number"),
    Column("Entry", "entry", "number"),
    Column("Key hash", "keyHash", "number", spare=3),
    Column("Physical offset", "phyOffset", "number"),
    Column("Stored", "storeTimestamp", "time", spare=4),
    Column("Previous", "prev", "number", spare=1),
    Column("Verdict", "verdict"),
    Column("Other key", "key", spare=2),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "trace",
        "trace ~/store Orders O-1042",
        "trace ~/store Orders OrderPaid --tag --max 5",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("key", metavar="KEY", help="a key or unique key; with --tag a tag (also T#TAG)")
    parser.add_argument(
        "--tag",
        dest="index_type",
        action="store_const",
        const=TAG,
        help="KEY is a tag (RocketMQ 5.4 and later index tags); same as --keyType T",
    )
    parser.add_argument(
        "-p",
        "--keyType",
        dest="index_type",
        choices=INDEX_TYPES,
        metavar="TYPE",
        help="kind of KEY: K key, U unique key, T tag (default: any kind)",
    )
    parser.add_argument(
        "--begin", type=number, default=0, metavar="MS", help="earliest store time, ms since 1970 (default: 0)"
    )
    parser.add_argument(
        "--end", type=number, default=MAX_TIME_MS, metavar="MS", help="latest store time, ms since 1970 (default: none)"
    )
    parser.add_argument(
        "--max",
        dest="max_count",
        type=count,
        default=DEFAULT_MAX,
        metavar="N",
        help="stop after N messages (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    index_type: IndexType | None = args.index_type
    text = key_text(args.key, index_type)
    with open_named_store(args, out) as store:
        out.line(f"{args.topic}#{text}: hash {index_key_hash(args.topic, text):,}")
        for item in trace(store, args.topic, args.key, args.begin, args.end, args.max_count, index_type):
            match item:
                case TraceFile():
                    out.record(records.trace_file(item))
                    span = f"{iso_time(item.begin_timestamp)} to {iso_time(item.end_timestamp)}"
                    out.line(f"{item.file}  {span}  {'walked' if item.chosen else 'passed over'}: {item.why}")
                case TraceStep():
                    record = records.trace_step(item)
                    if item.kind == "slot" and item.verdict == "match" and not out.as_json:
                        record["verdict"] = "leads on"
                    out.record(record, _STEPS)
                    if item.why is not None:
                        out.line(f"-- {item.why}")
                case Match():
                    out.record(records.unit(item.unit, store.log.file_name(item.unit.offset), "match"))
                case TraceEnd():
                    out.record(records.trace_end(item))
                    cut = "" if item.complete else " (cut off: there may be more)"
                    out.line(
                        f"-- {number_of(item.matches, 'match', 'matches')} in "
                        f"{number_of(item.steps, 'step', 'steps')}{cut}"
                    )
                    return 0 if item.matches else 1
    return 0
