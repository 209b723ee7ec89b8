"""``waiting``: messages that wait in a store, when they are due, and what the services have reached."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.cli.options import add_command, add_masking, add_store, common_options, count, open_named_store
from engine.cli.output import Column, Output, iso_time
from engine.english import number_of
from engine.inspection import records
from engine.inspection.waiting import (
    KINDS,
    WaitingMessages,
    find_waiting,
)
from engine.rules.masking import Masking

_COLUMNS = (
    Column("Kind", "kind", "plain"),
    Column("State", "state", "plain"),
    Column("Due", "due", "time"),
    Column("For topic", "forTopic"),
    Column("Group", "group", spare=1),
    Column("Since", "since", "time", spare=5),
    Column("Tries", "tries", "number", spare=3),
    Column("Waits in", "topic", spare=4),
    Column("Queue", "queueId", "number", spare=4),
    Column("Queue offset", "queueOffset", "number", spare=4),
    Column("Physical offset", "physicalOffset", "number"),
    Column("Unique key", "uniqueKey", spare=6),
    Column("Keys", "keys", spare=7),
    Column("Why", "why", "prose", spare=8),
)
_MAX_TOTALS = 10


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "waiting",
        "waiting ~/store",
        "waiting ~/store --kind retry --group warehouse",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument("--kind", choices=KINDS, help="list only these messages")
    parser.add_argument("--topic", help="list only messages that are delivered to this topic")
    parser.add_argument("--group", help="list only messages of this consumer group, or of this producer group's halves")
    parser.add_argument(
        "--limit",
        type=count,
        default=1000,
        metavar="N",
        help="list at most N messages (default: 1000); all are counted",
    )
    add_masking(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        store.commit_log.settle_end()
        kinds = KINDS if args.kind is None else (args.kind,)
        waiting = find_waiting(store, args.limit, kinds=kinds, topic=args.topic, group=args.group)
        mask = out.mask or Masking()
        for message in waiting.rows:
            out.record(_masked(records.waiting_message(message), mask), _COLUMNS)
        waiting = _masked_totals(waiting, mask)
        is_complete = not waiting.unknown and not store.unread and not store.reading.undecoded
        if out.as_json:
            out.record(_summary(waiting, is_complete))
        else:
            _print_summary(waiting, out)
    return 0


def _masked(record: dict[str, Any], mask: Masking) -> dict[str, Any]:
    """Mask the fields that have another meaning elsewhere; the output masks the others."""
    group = record["group"] or ""
    return record | {
        "forTopic": mask.topic(record["forTopic"]) if record["forTopic"] else None,
        "group": mask.group(group) or None,
        "why": mask.about(group, record["why"]) if record["why"] else None,
    }


def _masked_totals(waiting: WaitingMessages, mask: Masking) -> WaitingMessages:
    if not mask.any:
        return waiting
    topics, groups = Counter[str](), Counter[str]()
    for topic, number in waiting.topics.items():
        topics[mask.topic(topic)] += number
    for group, number in waiting.groups.items():
        groups[mask.group(group)] += number
    services = [
        replace(service, topic=mask.topic(service.topic), stalled=_masked_words(service.stalled, waiting, mask))
        for service in waiting.services
    ]
    unknown = {kind: _masked_words(why, waiting, mask) for kind, why in waiting.unknown.items()}
    return replace(waiting, topics=topics, groups=groups, services=services, unknown=unknown)


def _masked_words(text: str, waiting: WaitingMessages, mask: Masking) -> str:
    for group in sorted(waiting.groups, key=len, reverse=True):
        text = mask.about(group, text)
    return mask.words(text)


def _summary(waiting: WaitingMessages, is_complete: bool) -> dict[str, Any]:
    return {
        "type": "waitingSummary",
        "messages": waiting.total,
        "listed": len(waiting.rows),
        "complete": is_complete,
        "newestStoreTimestamp": waiting.newest or None,
        "kinds": dict(waiting.kinds),
        "states": dict(waiting.states),
        "topics": dict(waiting.topics),
        "groups": dict(waiting.groups),
        "services": [records.waiting_service(service) for service in waiting.services],
        "unknown": waiting.unknown,
    }


def _print_summary(waiting: WaitingMessages, out: Output) -> None:
    if not waiting.total:
        out.nothing("-- no message waits in this store")
    else:
        listed = len(waiting.rows)
        limit_words = f"; {listed:,} of them listed (--limit)" if listed < waiting.total else ""
        newest = f"; the newest message of the store is of {iso_time(waiting.newest)}" if waiting.newest else ""
        out.line(f"-- {number_of(waiting.total, 'message waits', 'messages wait')}{limit_words}{newest}")
        out.line(f"-- kinds: {_totals(waiting.kinds)}; {_totals(waiting.states)}")
        if waiting.topics:
            out.line(f"-- topics: {_totals(waiting.topics)}")
        if waiting.groups:
            out.line(f"-- groups: {_totals(waiting.groups)}")
    for service in waiting.services:
        if service.stalled:
            out.line(f"-- stands still: {service.stalled}")
    for kind, why in waiting.unknown.items():
        out.line(f"-- not known: {kind}: {why}")


def _totals(counts: Counter[str]) -> str:
    rows: Sequence[tuple[str, int]] = counts.most_common(_MAX_TOTALS)
    further = len(counts) - len(rows)
    return ", ".join(f"{name} {number:,}" for name, number in rows) + (f", and {further:,} more" if further else "")
