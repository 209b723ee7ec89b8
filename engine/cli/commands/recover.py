"""``recover --plan``: what the next start of a broker would do with a store. Nothing is changed."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import common, open_given
from engine.cli.output import Column, Output, plain, size_text
from engine.errors import UsageError
from engine.inspection.recovery import plan
from engine.store.recovery_plan import RecoveryPlan

_QUEUES = (
    Column("Topic", "topic"),
    Column("Queue", "queueId", "plain"),
    Column("Min offset", "minOffset", "number"),
    Column("Max offset", "maxOffset", "number"),
)


def register(commands: Any) -> None:
    parser = commands.add_parser("recover", parents=[common()], help="what the next start of a broker would do")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("--plan", action="store_true", help="show it and change nothing")
    parser.add_argument("--like", choices=("4.9", "5.3"), default="5.3", help="the release that would start")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    if not args.plan:
        raise UsageError("recover needs --plan: this release shows what a start would do and changes nothing")
    with open_given(args) as store:
        found = plan(store, args.like)
    record = found.record()
    out.record(record)
    if not out.as_json:
        _for_people(found, record, out)
    return 0 if found.will_start else 1


def _for_people(found: RecoveryPlan, record: dict[str, Any], out: Output) -> None:
    out.fields(
        (
            ("A broker would start", "yes" if found.will_start else "no"),
            ("Exit before", found.exit),
            ("Start file", f"{found.start_file}: {found.why}"),
            ("End of the log", f"{found.end_offset:,}: {found.end_reason}"),
            ("Units kept", f"{found.units_kept:,}"),
            ("Units dropped", f"{found.units_dropped:,}, {size_text(found.bytes_dropped)}"),
            ("Dispatched again", f"{found.units:,} from {found.dispatch_from:,}"),
            ("Files deleted", f"{len(found.files_deleted)}"),
            ("Bytes to read", size_text(found.bytes_to_read)),
        )
    )
    for blocker in found.blockers:
        out.line(f"It would not start: {plain(blocker.message)}")
        out.line(f"  the broker's log: {plain(blocker.broker_log)}")
    for name in found.files_deleted:
        out.line(f"Deleted: {plain(name)}")
    for cut in found.ext_cuts:
        out.line(
            f"Cut: the ext files of {plain(cut.topic)}/{cut.queue_id} at {cut.end_offset:,}, "
            f"{size_text(cut.bytes_dropped)} dropped"
        )
    for beyond in found.groups_beyond:
        out.line(
            f"{plain(beyond.group)} reads {plain(beyond.topic)}/{beyond.queue_id} at {beyond.offset:,}, "
            f"beyond the new end {beyond.max_offset:,}: queue offsets are used again"
        )
    for note in found.notes:
        out.line(f"Note: {plain(note)}")
    out.line()
    for queue in record["queues"]:
        out.record(queue, _QUEUES)
