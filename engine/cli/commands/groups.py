"""``groups``: show the progress of each consumer group in each queue, from the offset tables."""

from __future__ import annotations

import argparse
import contextlib
from collections import defaultdict
from typing import Any

from engine.cli.options import add_command, add_release, add_store, common_options, open_named_store, report_read_side
from engine.cli.output import Column, Output
from engine.codec.lite_topics import split_lite_queue
from engine.errors import CannotRead
from engine.inspection import records
from engine.inspection.groups import (
    GroupWaits,
    Permissions,
    UnknownProgress,
    find_group_waits,
    group_progress,
    read_permissions,
    unknown_progress,
    waits_of,
)
from engine.inspection.lite_topics import LiteGroup, LiteTopic, lite_groups, lite_topics
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import read_table

_COLUMNS = (
    Column("Group", "group"),
    Column("Topic", "topic"),
    Column("Queue", "queueId", "plain"),
    Column("Next offset", "offset", "number"),
    Column("Max offset", "maxOffset", "number"),
    Column("Behind", "behind", "number"),
    Column("Waiting", "waiting", "number", spare=2),
    Column("Oldest unread", "oldestUnreadTimestamp", "time", spare=3),
    Column("State", "state"),
    Column("Mode", "mode", spare=1),
)
_LITE_COLUMNS = (*_COLUMNS[:2], Column("Lite topic", "liteTopic"), *_COLUMNS[2:])
"""Columns of a store with lite topics; their topic is the one that they belong to."""

_MAX_LISTED = 20


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "groups",
        "groups ~/store",
        "groups ~/store --offsets ~/.rocketmq_offsets/CLIENT/GROUP/offsets.json",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument("--offsets", metavar="FILE", help="also read a broadcasting client's offsets.json")
    add_release(parser, "judge the start of this RocketMQ release (default: the one that probably wrote the store)")
    parser.set_defaults(run=run)


def _has_offset_table(store: StoreSnapshot) -> bool:
    """Return False if the store certainly has no table of offsets."""
    try:
        return read_table(store, "consumerOffset.json") is not None
    except CannotRead:
        return True


def run(args: argparse.Namespace, out: Output) -> int:
    return progress(args, out, None)


def progress(args: argparse.Namespace, out: Output, group: str | None) -> int:
    """Print the progress of all groups, or of ``group``. Return 1 if ``group`` is unknown."""
    with open_named_store(args, out) as store:
        report_read_side(store, out)
        store.commit_log.settle_end()
        waits = _read_waiting(store)
        permissions = _read_permissions(store)
        barred: dict[str, None] = {}
        lite_queues = [name for name in store.queues.topic_names() if split_lite_queue(name) is not None]
        columns = _LITE_COLUMNS if lite_queues else _COLUMNS
        shown = 0
        for item in group_progress(store, getattr(args, "offsets", None)):
            if group is not None and item.group != group:
                continue
            shown += 1
            why_barred = permissions.why_barred(item.group, item.topic)
            record = {
                "type": "groupProgress",
                "group": item.group,
                "topic": item.topic,
                "queueId": item.queue_id,
                "offset": item.offset,
                "maxOffset": item.max_offset,
                "behind": item.behind,
                "oldestUnreadTimestamp": item.oldest_unread_timestamp,
                "state": item.state,
                "mode": item.mode,
                "waiting": waits_of(waits, item).messages if waits is not None else None,
                "barred": why_barred or None,
                "liteTopic": _lite_topic(item.topic),
            }
            if why_barred and (record["behind"] or record["waiting"]):
                barred[why_barred] = None
            out.record(record if out.as_json else _with_lite_topic(record), columns)
        for unknown in unknown_progress(store) if getattr(args, "offsets", None) is None else ():
            if group is not None and unknown.group != group:
                continue
            shown += 1
            out.record(_unknown(unknown), columns)
        if lite_queues:
            _print_lite_groups(store, out, group)
        has_offsets = bool(shown) or _has_offset_table(store)
        undecoded = bool(store.reading.undecoded)
    for words in barred:
        out.nothing(f"-- {words}")
    if not shown and not undecoded:
        nothing = "no group has an offset in this store" if group is None else f"no offsets of group {group}"
        out.nothing(f"-- {nothing}{'' if has_offsets else ': it has no consumerOffset.json and no .bak of it'}")
    return 1 if group is not None and not shown and not undecoded else 0


def _lite_topic(queue: str) -> str | None:
    """Return the lite topic of a light queue; None for any other queue."""
    parts = split_lite_queue(queue)
    return None if parts is None else parts[1]


def _with_lite_topic(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record as the table shows it: with the topic that a lite topic belongs to."""
    parts = split_lite_queue(record["topic"])
    return record if parts is None else record | {"topic": parts[0]}


def _print_lite_groups(store: StoreSnapshot, out: Output, name: str | None) -> None:
    """Print the groups that read lite topics, their settings, and the lite topics of which they have no offset."""
    with contextlib.suppress(CannotRead):
        without_offset: dict[str, list[str]] = defaultdict(list)
        lite_of_topic: dict[str, list[LiteTopic]] = defaultdict(list)
        for lite in lite_topics(store):
            lite_of_topic[lite.topic].append(lite)
        for group in lite_groups(store):
            if name not in {None, group.name}:
                continue
            for lite in lite_of_topic[group.topic]:
                if group.name not in dict(lite.behind):
                    without_offset[group.name].append(lite.name)
            out.record(records.lite_group(group) | {"withoutOffset": without_offset[group.name]})
            out.line(_lite_group_text(group, without_offset[group.name]))


def _lite_group_text(group: LiteGroup, without_offset: list[str]) -> str:
    settings = ", ".join(f"{key}={value}" for key, value in group.attributes)
    text = f"-- {group.name} reads lite topics of {group.topic} ({settings})"
    if not without_offset:
        return text
    listed = ", ".join(without_offset[:_MAX_LISTED]) + (", …" if len(without_offset) > _MAX_LISTED else "")
    return f"{text}; it has no offset of {listed}"


def _read_waiting(store: StoreSnapshot) -> GroupWaits | None:
    """Read which messages wait in retry topics or are not acknowledged; None if that cannot be read."""
    try:
        return find_group_waits(store)
    except CannotRead:
        return None


def _read_permissions(store: StoreSnapshot) -> Permissions:
    """Read which groups and topics are barred; none if the tables cannot be read."""
    try:
        return read_permissions(store)
    except CannotRead:
        return Permissions()


def _unknown(item: UnknownProgress) -> dict[str, Any]:
    """The record of an offset in a queue that is not decoded: fields that need the queue are null, with the reason."""
    return {
        "type": "groupProgress",
        "group": item.group,
        "topic": item.topic,
        "queueId": item.queue_id,
        "offset": item.offset,
        "maxOffset": None,
        "behind": None,
        "oldestUnreadTimestamp": None,
        "state": "unknown",
        "mode": item.mode,
        "waiting": None,
        "barred": None,
        "liteTopic": _lite_topic(item.topic),
        "why": item.why,
    }
