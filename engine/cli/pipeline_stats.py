"""``pipeline stats``: messages and bytes by topic, queue, tag, producer and hour, sizes, keys, every file's parts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from engine.cli.options import add_job
from engine.cli.output import Column, Output, iso_time
from engine.cli.pipeline_jobs import add_split_option, job_options, run_job
from engine.english import number_of
from engine.errors import UsageError
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.pipeline.stats_report import Report

GROUPINGS = ("topic", "queue", "tag", "producer", "hour", "size", "key")
_NEEDS = {"topic": ("queue",), "hour": ("hour", "time")}
MAX_ROWS = 20

_SUMS = (Column("Messages", "messages", "number"), Column("Bytes", "bytes", "number"))
TOPICS = (
    Column("Topic", "topic"),
    *_SUMS,
    Column("Smallest", "smallest", "number", spare=2),
    Column("Mean", "mean", "number", spare=2),
    Column("p50", "p50", "number", spare=1),
    Column("p99", "p99", "number", spare=1),
    Column("Largest", "largest", "number", spare=2),
    Column("Keys about", "keys", "number", spare=3),
    Column("Unique keys about", "uniqueKeys", "number", spare=4),
    Column("Wrong CRC", "badCrc", "number", spare=3),
)
TABLES: dict[str, tuple[Column, ...]] = {
    "statsTopic": TOPICS,
    "statsQueue": (Column("Topic", "topic"), Column("Queue", "queueId", "plain"), *_SUMS),
    "statsTag": (Column("Topic", "topic"), Column("Tag", "tag"), *_SUMS),
    "statsProducer": (Column("Producer", "host"), Column("Topic", "topic"), *_SUMS),
    "statsHour": (
        Column("Hour", "hour", "time"),
        Column("Topic", "topic"),
        *_SUMS,
        Column("Messages/s", "perSecond"),
        Column("Bytes/s", "bytesPerSecond", "number", spare=1),
    ),
    "statsTime": (),
    "statsFile": (
        Column("File", "path", "path"),
        Column("Size", "size", "number"),
        Column("Units", "units", "number"),
        Column("Stale", "stale", "number", spare=1),
        Column("Blank", "blank", "number", spare=1),
        Column("Damage", "damage", "number"),
        Column("Zeros", "zeros", "number"),
    ),
}


def register(jobs: Any) -> None:
    """Add the parser of the job."""
    parser = add_job(
        jobs,
        "stats",
        "Count messages and bytes by topic, queue, tag, producer, hour, size or key",
        "pipeline stats ~/store --by topic,tag",
        "pipeline stats 'fleet/*/store' --by-store --spark",
        parents=[job_options("+")],
    )
    parser.add_argument(
        "--by",
        metavar="WORDS",
        default=",".join(GROUPINGS),
        help=f"count by these, separated by commas: {', '.join(GROUPINGS)} (default: all)",
    )
    parser.add_argument("--by-store", action="store_true", help="count each store by itself")
    add_split_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Count, then tell."""
    groups = _groups(args.by)
    with run_job(args, out, "stats") as job:
        from engine.pipeline.stats import stats
        from engine.pipeline.stats_report import report

        splits = job.plan(args.stores, args.split_bytes)
        job.watch.step("counting", job.bytes)
        sums = stats(job.spark, splits, groups, job.counter)
        job.watch.check()
        statistics = report(sums, job.files, by_store=args.by_store)
        _show(statistics, out)
        job.summary(units=statistics.total["messages"])
    return 0


def _groups(text: str) -> tuple[str, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in GROUPINGS:
            raise UsageError(
                sentence(
                    "expected --by with any of {groupings}, found '{word}'", groupings=", ".join(GROUPINGS), word=word
                )
            )
    groups = {group for word in words for group in _NEEDS.get(word, (word,))}
    return tuple(sorted(groups))


def _show(statistics: Report, out: Output) -> None:
    total = statistics.total
    out.record(total)
    headers = f"headers of DLedger entries {total['headers']:,}, " if total["headers"] else ""
    out.fields(
        [
            ("stores", f"{total['stores']:,}"),
            ("files", f"{total['files']:,}, {number_of(total['bytes'], 'byte', 'bytes')}"),
            ("messages", f"{total['messages']:,}, {number_of(total['unitBytes'], 'byte', 'bytes')}"),
            ("sizes", _sizes(total)),
            ("stored", f"{iso_time(total['firstHour'])} to {iso_time(total['lastHour'])} (whole hours)"),
            (
                "keys",
                (
                    f"about {number_of(total['keys'] or 0, 'different key', 'different keys')}, "
                    f"{number_of(total['uniqueKeys'] or 0, 'unique key', 'unique keys')}"
                ),
            ),
            (
                "no messages",
                (
                    f"{headers}stale units {total['stale']:,}, blanks {total['blank']:,}, zeros "
                    f"{number_of(total['zeros'], 'byte', 'bytes')}"
                ),
            ),
            (
                "damage",
                (
                    f"{number_of(total['damage'], 'byte', 'bytes')} in "
                    f"{number_of(total['damaged'], 'place', 'places')}; {total['badCrc']:,} wrong body CRCs"
                ),
            ),
        ]
    )
    for kind, columns in TABLES.items():
        rows = statistics.rows.get(kind, []) if columns or out.as_json else []
        shown = rows if out.as_json or kind == "statsFile" else rows[:MAX_ROWS]
        if shown:
            out.line()
        for row in shown:
            out.record(row, columns)
        if len(shown) < len(rows):
            out.flush()
            out.line(f"-- {len(rows) - len(shown):,} more with --json")


def _sizes(total: dict[str, Any]) -> str:
    if not total["messages"]:
        return ""
    quantiles = "" if total["p50"] is None else f", p50 {total['p50']:,}, p99 {total['p99']:,}"
    return f"{total['smallest']:,} to {number_of(total['largest'], 'byte', 'bytes')}, mean {total['mean']:,}{quantiles}"
