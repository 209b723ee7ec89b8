"""``histogram``: messages and bytes over store time, with the time from born to stored."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.cli.commands.units import unit_filter_of
from engine.cli.decoding import add_rules, decoding
from engine.cli.options import add_command, add_store, common_options, count, moment, number, open_named_store
from engine.cli.output import Column, Output, Progress, iso_time, shorten
from engine.english import number_of
from engine.errors import UsageError
from engine.inspection.histogram.time_bins import MAX_BINS, MAX_TOPICS
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.histogram.time_bins import BinTable
    from engine.inspection.histogram.unit_bins import LogHistogram

_TIME = Column("From", "from", "time")
_AMOUNT = (Column("Messages", "messages", "number"), Column("Bytes", "bytes", "number", spare=3))
_DELAYS = (
    Column("p50 ms", "bornToStoredP50Ms", "number", spare=1),
    Column("p99 ms", "bornToStoredP99Ms", "number", spare=2),
)
_BAR = Column("Messages over time", "bar")
_BAR_CELLS = 24
_TOPIC_COLUMNS = 5
_TOPIC_CELLS = 24
_FIRST_SPARE_TOPIC = 4
"""Topics are left out of a narrow table before anything else, the smallest first."""
_DEFAULT_BINS = 40
_EIGHTHS = " ▏▎▍▌▋▊▉"


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "histogram",
        "histogram ~/store --by topic",
        """histogram ~/store --where 'keys = "O-1042"' --begin '2026-11-30#08:00:00:000' --bins 100 --json""",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument("--topic", metavar="T", help="only messages of this topic")
    parser.add_argument("--queue", type=number, metavar="Q", help="only messages of this queue id")
    parser.add_argument(
        "--where", metavar="FILTER", help="only units that match this filter, for example 'size > 4KiB'"
    )
    parser.add_argument(
        "--begin", type=moment, metavar="TIME", help="stored at this time or later (ms or yyyy-MM-dd#HH:mm:ss:SSS)"
    )
    parser.add_argument("--end", type=moment, metavar="TIME", help="stored before this time")
    parser.add_argument(
        "--bins",
        type=count,
        default=_DEFAULT_BINS,
        metavar="N",
        help=f"at most N bins, 1 to {MAX_BINS} (default: {_DEFAULT_BINS}); those without messages are left out",
    )
    parser.add_argument(
        "--by",
        choices=["topic"],
        help=f"a column for each of the {_TOPIC_COLUMNS} largest topics; --json has all topics in any case",
    )
    add_rules(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    unit_filter = unit_filter_of(args)  # a mistake in the filter is reported before anything is opened
    if args.bins > MAX_BINS:
        raise UsageError(sentence("--bins: expected at most {most:,}, found {n:,}", most=MAX_BINS, n=args.bins))
    from engine.inspection.histogram.log_histogram import ALL, TimeRange, read_histogram, shown_bins

    with open_named_store(args, out) as store, decoding(args, store, out, unit_filter):
        if unit_filter is not None and unit_filter.reads_bodies:
            store.require_bodies()
        time_range = ALL if args.begin is None and args.end is None else TimeRange(args.begin, args.end)
        with Progress("histogram", store.log.sequence.total_size, out.quiet) as progress:
            histogram = read_histogram(
                store.log, unit_filter, time_range, progress=lambda done_bytes, _: progress.update(done_bytes)
            )
        table, far_count = shown_bins(histogram, args.bins, MAX_TOPICS if out.as_json else _TOPIC_COLUMNS)
        is_complete = histogram.is_complete and not store.unread and store.undecoded_part("log") is None
        summary = _summary(histogram, table, far_count, is_complete)
        if out.as_json:
            for record in _bins(table):
                out.record(record)
            out.record(summary)
        else:
            _print_summary(summary, out)
            _print_bins(table, args.by == "topic", out)
    return 0


def _bins(table: BinTable) -> Iterator[dict[str, Any]]:
    """Yield a record for each bin. The topic of all topics that are not listed is null."""
    for place, start in enumerate(table.starts):
        topics = [
            {"topic": topic or None, "messages": messages[place], "bytes": sizes[place]}
            for topic, messages, sizes in zip(table.topics, table.messages, table.bytes, strict=True)
            if messages[place]
        ]
        yield {
            "type": "timeBin",
            "from": start,
            "to": start + table.width,
            "messages": sum(topic["messages"] for topic in topics),
            "bytes": sum(topic["bytes"] for topic in topics),
            "topics": topics,
            "bornToStoredP50Ms": _delay(table.p50[place]),
            "bornToStoredP99Ms": _delay(table.p99[place]),
            "physicalOffset": table.first[place],
            "endOffset": table.end[place],
        }


def _delay(ms: int) -> int | None:
    return ms if ms >= 0 else None


def _summary(histogram: LogHistogram, table: BinTable, far_count: int, is_complete: bool) -> dict[str, Any]:
    p50, p99 = histogram.bins.delays_of_all()
    return {
        "type": "histogramSummary",
        "units": histogram.units,
        "unitsFarAway": far_count,
        "bins": len(table.starts),
        "widthMs": table.width,
        "from": table.starts[0] if table.starts else None,
        "to": table.starts[-1] + table.width if table.starts else None,
        "bornToStoredP50Ms": _delay(p50),
        "bornToStoredP99Ms": _delay(p99),
        "damagedBytes": histogram.damaged,
        "unreadBytes": histogram.unread,
        "stepsBack": histogram.steps_back,
        "largestStepBackMs": histogram.largest_step_ms,
        "complete": is_complete,
    }


def _print_summary(summary: dict[str, Any], out: Output) -> None:
    units = number_of(summary["units"], "message", "messages")
    if summary["bins"]:
        times = f" from {iso_time(summary['from'])} to {iso_time(summary['to'])}, bins of {summary['widthMs']:,} ms"
        out.line(f"-- {units}{times}")
    else:
        out.line(f"-- {units}")
    if summary["bornToStoredP50Ms"] is not None:
        p50, p99 = summary["bornToStoredP50Ms"], summary["bornToStoredP99Ms"]
        out.line(f"-- from born to stored: half within {p50:,} ms, 99 % within {p99:,} ms")
    if summary["unitsFarAway"]:
        out.line(
            f"-- {number_of(summary['unitsFarAway'], 'message', 'messages')} far from this time: see --begin, --end"
        )
    if summary["stepsBack"]:
        step_count = number_of(summary["stepsBack"], "time", "times")
        out.line(f"-- store time goes back {step_count}, by up to {summary['largestStepBackMs']:,} ms")
    if summary["damagedBytes"] or summary["unreadBytes"]:
        lost = f"{summary['damagedBytes']:,} damaged and {summary['unreadBytes']:,} unread bytes of the log"
        out.line(f"-- {lost}: messages in them are not counted")


def _print_bins(table: BinTable, by_topic: bool, out: Output) -> None:
    """Print a row for each bin, with its messages of each topic or a bar for all."""
    topics = [
        Column(shorten(topic or "other topics", _TOPIC_CELLS), f"topic {topic}", "number", spare=number)
        for number, topic in enumerate(table.topics if by_topic else (), _FIRST_SPARE_TOPIC)
    ]
    columns = (_TIME, *_AMOUNT, *topics, *_DELAYS) if by_topic else (_TIME, *_AMOUNT, *_DELAYS, _BAR)
    records = list(_bins(table))
    highest = max((record["messages"] for record in records), default=1)
    for record in records:
        by_name = {f"topic {topic['topic'] or ''}": topic["messages"] for topic in record["topics"]}
        out.record(record | by_name | {"bar": _bar(record["messages"], highest)}, columns)


def _bar(messages: int, highest: int) -> str:
    """Return a bar of blocks; a bin with few messages has the thinnest one."""
    eighths = max(round(messages / highest * _BAR_CELLS * 8), 1)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
