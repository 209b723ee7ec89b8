"""``timeline``: what happened to a store and when."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any

from engine.cli.options import add_command, add_release, add_store, common_options, count, moment, open_named_store
from engine.cli.output import Column, Output, Progress, iso_time
from engine.english import number_of
from engine.inspection.timeline.events import KINDS, TRACE_KINDS
from engine.system_names import TRACE_TOPIC

if TYPE_CHECKING:
    from engine.inspection.timeline.events import TimelineEvent
    from engine.inspection.timeline.timeline import Timeline

_COLUMNS = (
    Column("From", "from", "time"),
    Column("To", "to", "time", spare=2),
    Column("Event", "kind", "plain"),
    Column("Sure", "certainty", "plain", spare=3),
    Column("Physical offset", "physicalOffset", "number", spare=1),
    Column("What the files show", "message", "prose"),
)
_STATES = {
    "closed": "the last run was closed cleanly",
    "notClosed": "the last run was not closed",
    "running": "a process holds the store",
}


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "timeline",
        "timeline ~/store",
        "timeline ~/store --kind crash,outage,stall --begin '2026-11-30#08:00:00:000'",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument(
        "--kind", type=_kinds, metavar="KINDS", help=f"list only these kinds of events: {', '.join(KINDS)}"
    )
    parser.add_argument(
        "--begin",
        type=moment,
        metavar="TIME",
        help="list only events from this time on (ms or yyyy-MM-dd#HH:mm:ss:SSS)",
    )
    parser.add_argument("--end", type=moment, metavar="TIME", help="list only events before this time")
    parser.add_argument(
        "--limit", type=count, default=1000, metavar="N", help="list at most N events (default: 1000); all are counted"
    )
    parser.add_argument(
        "--traces",
        action="store_true",
        help="list message traces of clients, too (RMQ_SYS_TRACE_TOPIC): who sent and received, how long, how it ended",
    )
    parser.add_argument(
        "--message", metavar="ID", help="traces of this message only: its unique key or one of its keys"
    )
    add_release(parser, "the release of RocketMQ that wrote the store (default: what the store shows)")
    parser.set_defaults(run=run)


def _kinds(text: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = names - set(KINDS)
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"expected kinds of {', '.join(KINDS)}, found '{text}'")
    return names


def run(args: argparse.Namespace, out: Output) -> int:
    from engine.inspection.timeline.timeline import find_timeline
    from engine.inspection.timeline.traces import TraceCollector

    lists_traces = args.traces or args.message is not None
    with open_named_store(args, out) as store:
        if lists_traces:
            store.require_bodies()
        store.commit_log.settle_end()
        with Progress("timeline", store.log.sequence.total_size, out.quiet) as progress:
            traces = TraceCollector(args.limit, args.message or "", is_wanted=lists_traces)
            timeline = find_timeline(store, progress.update, traces=traces)
        chosen = [event for event in timeline.events if _is_wanted(event, args)]
        listed = chosen[: args.limit]
        if not out.as_json:
            _print_summary(timeline, chosen, len(listed), out)
        for event in listed:
            record = event.record()
            out.record(record if out.as_json else record | {"certainty": event.certainty}, _COLUMNS)
        if out.as_json:
            out.record(_summary(timeline, len(chosen), len(listed)))
    return 0


def _is_wanted(event: TimelineEvent, args: argparse.Namespace) -> bool:
    last = event.end if event.end is not None else event.time
    return (
        (args.kind is None or event.kind in args.kind)
        and (args.begin is None or last >= args.begin)
        and (args.end is None or event.time < args.end)
    )


def _summary(timeline: Timeline, chosen: int, listed: int) -> dict[str, Any]:
    return {
        "type": "timelineSummary",
        "events": chosen,
        "listed": listed,
        "complete": timeline.is_complete and not timeline.unknown,
        "units": timeline.units,
        "from": timeline.first_stored,
        "to": timeline.last_stored,
        "bornToStoredP50Ms": timeline.p50,
        "bornToStoredP99Ms": timeline.p99,
        "lastRun": timeline.state,
        "zoneMs": timeline.zone_ms,
        "kinds": dict(timeline.kinds),
        "traceMessages": timeline.trace_units,
        "tracesLeftOut": timeline.traces_left_out,
        "tracesNotDecoded": timeline.unknown_traces,
        "damagedBytes": timeline.damage,
        "unreadBytes": timeline.unread,
        "unknown": timeline.unknown,
    }


def _print_summary(timeline: Timeline, chosen: list[TimelineEvent], listed: int, out: Output) -> None:
    counts = Counter(event.kind for event in chosen)
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts.most_common())
    limit_words = f"; {listed:,} of {len(chosen):,} listed (--limit)" if listed < len(chosen) else ""
    out.line(f"-- {number_of(len(chosen), 'event', 'events')}{limit_words}: {kinds or 'none'}")
    if timeline.first_stored is not None:
        state = f"; {_STATES[timeline.state]}" if timeline.state else ""
        out.line(
            f"-- {number_of(timeline.units, 'message', 'messages')} stored from {iso_time(timeline.first_stored)} to "
            f"{iso_time(timeline.last_stored)}{state}"
        )
    if timeline.p50 is not None:
        out.line(f"-- from born to stored: half within {timeline.p50:,} ms, 99 % within {timeline.p99:,} ms")
    _print_traces(timeline, out)
    if timeline.damage or timeline.unread:
        lost = f"{timeline.damage:,} damaged and {timeline.unread:,} unread bytes of the log"
        out.line(f"-- {lost}: events in them are missing")
    for part, why in timeline.unknown.items():
        out.line(f"-- not known: {part}: {why}")


def _print_traces(timeline: Timeline, out: Output) -> None:
    if timeline.trace_units and not timeline.unknown_traces and not any(timeline.kinds[kind] for kind in TRACE_KINDS):
        traces = number_of(timeline.trace_units, "message of traces", "messages of traces")
        out.line(f"-- {traces} ({TRACE_TOPIC}): --traces lists what clients sent and received")
    if timeline.traces_left_out:
        out.line(f"-- {number_of(timeline.traces_left_out, 'trace', 'traces')} beyond the limit (--limit)")
    if timeline.unknown_traces:
        out.line(f"-- {number_of(timeline.unknown_traces, 'message', 'messages')} of traces not understood")
