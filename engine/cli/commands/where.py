"""``where``: where is this message, or why is it not there: a verdict with its evidence."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import common, open_given
from engine.cli.output import Output, Progress
from engine.inspection.where import WhereResult, where

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
            for result in where(store, args.id, args.topic, args.group, progress.at):
                missing &= result.verdict in _NOT_FOUND
                _show(result, out)
    return 1 if missing else 0


def _show(result: WhereResult, out: Output) -> None:
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
    place = f" at {result.physical_offset:,}" if result.physical_offset is not None else ""
    if result.topic is not None:
        place += f", {result.topic}/{result.queue_id}/{result.queue_offset}"
    out.line(f"{result.verdict}{place}")
    for one in result.evidence:
        pieces = [one.file or "", f"{one.offset:,}" if one.offset is not None else ""]
        seen_at = " @ ".join(piece for piece in pieces if piece)
        out.line(f"  {one.what}: {one.holds}" + (f" [{seen_at}]" if seen_at else ""))
    out.line(f"  next: {result.next_step}")
