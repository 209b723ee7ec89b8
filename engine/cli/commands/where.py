"""``where``: where is this message, or why is it not there: a verdict with its evidence."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import common, open_given
from engine.cli.output import Output, Progress, plain
from engine.inspection.where import where

_NOT_FOUND = ("neverSeen", "unknown", "expired", "truncated")


def register(commands: Any) -> None:
    parser = commands.add_parser("where", parents=[common()], help="where a message is, or why it is not")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("id", metavar="ID", help="offset id, unique key, key, or topic/queue/offset")
    parser.add_argument("--topic", metavar="T")
    parser.add_argument("--group", metavar="G", help="the consumer group that misses it")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    missing = True
    with open_given(args) as store:
        store.settle_log_end()
        with Progress("where", store.log.sequence.total_size, out.quiet) as progress:
            results = list(where(store, args.id, args.topic, args.group, progress.at))
    for result in results:
        missing &= result.verdict in _NOT_FOUND
        out.record(
            {
                "type": "whereResult",
                "verdict": result.verdict,
                "physicalOffset": result.physical_offset,
                "topic": result.topic,
                "queueId": result.queue_id,
                "queueOffset": result.queue_offset,
                "evidence": [
                    {"what": e.what, "file": e.file, "offset": e.offset, "holds": e.holds} for e in result.evidence
                ],
                "nextStep": result.next_step,
            }
        )
        out.line(
            f"{result.verdict}" + (f" at {result.physical_offset:,}" if result.physical_offset is not None else "")
        )
        for one in result.evidence:
            place = (
                f" [{one.file or ''}{' @ ' if one.file and one.offset is not None else ''}"
                if one.file or one.offset is not None
                else ""
            )
            place += (f"{one.offset:,}" if one.offset is not None else "") + "]" if place else ""
            out.line(f"  {one.what}: {plain(one.holds)}{plain(place)}")
        out.line(f"  next: {result.next_step}")
    return 1 if missing else 0
