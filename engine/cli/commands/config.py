"""``config``: every configuration table of a store, parsed."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator
from typing import Any

from engine.cli.options import add_command, add_release, add_store, common_options, open_named_store
from engine.cli.output import Output, escape_controls, iso_time
from engine.codec import timer
from engine.errors import CannotRead, CorruptUnit
from engine.inspection import records
from engine.inspection.lite_topics import LiteGroup, LiteTopic, lite_groups, lite_topics
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.static_topics import LogicalRange, logical_ranges
from engine.inspection.tables import read_tables, thrown_filters, undecoded_tables


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "config",
        "config ~/store",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    add_release(parser, "judge the start of this RocketMQ release (default: the one that probably wrote the store)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    code = table_count = 0
    with open_named_store(args, out) as store:
        for name, reason in undecoded_tables(store):
            table_count += 1
            out.record(
                {
                    "type": "config",
                    "table": name.removesuffix(".json"),
                    "file": None,
                    "used": "undecoded",
                    "why": reason,
                    "willLoad": None,
                    "value": None,
                }
            )
            out.line(f"{name}: {escape_controls(reason)}")
        for table in read_tables(store):
            table_count += 1
            complaint = table.main.complaint if table.used not in {"main", "rocksdb"} else None
            thrown = thrown_filters(store) if table.name == "consumerFilter.json" else None
            why = f"{table.why}, but: {thrown.words}" if thrown is not None else table.why
            record = {
                "type": "config",
                "table": table.name.removesuffix(".json"),
                "file": table.file,
                "used": table.used,
                "why": why,
                "willLoad": table.will_load,
                "value": table.value,
            }
            out.record(record)
            out.line(f"{table.name}: {escape_controls(why)}")
            if complaint:
                code = 1
            if not out.as_json:
                out.line(json.dumps(table.value, ensure_ascii=False, indent=2), is_data=True)
        for item in logical_ranges(store):
            out.record(_record(item))
            out.line(escape_controls(range_text(item)))
        with contextlib.suppress(CannotRead):  # reported already
            _print_lite_topics(store, out)
        for name, value in binary_tables(store):
            table_count += 1
            out.record({"type": "config", "table": name, "file": name, "used": "main", "why": None, "value": value})
            out.line(f"{name}: {json.dumps(value)}", is_data=True)
    if not table_count:
        out.nothing("-- the store has no tables below config/")
    return code


def _print_lite_topics(store: StoreSnapshot, out: Output) -> None:
    """Print each lite topic, and the groups that may read them."""
    for lite in lite_topics(store):
        out.record(records.lite_topic(lite))
        out.line(lite_topic_text(lite))
    for group in lite_groups(store):
        out.record(records.lite_group(group))
        out.line(lite_group_text(group))


def _record(item: LogicalRange) -> dict[str, Any]:
    logical = item.logical_bounds
    return {
        "type": "logicalQueue",
        "topic": item.topic,
        "logicalQueueId": item.queue_id,
        "generation": item.range.generation,
        "broker": item.range.broker,
        "isThisBroker": item.is_local,
        "isLeader": item.is_leading,
        "queueId": item.range.queue_id,
        "firstLogicalOffset": item.range.logical_offset if item.range.is_placed else None,
        "minOffset": item.min_offset,
        "maxOffset": item.max_offset,
        "minLogicalOffset": None if logical is None else logical[0],
        "maxLogicalOffset": None if logical is None else logical[1],
    }


def range_text(item: LogicalRange) -> str:
    """Return a range of a logical queue as one line."""
    role = " (leader)" if item.is_leading else ""
    text = f"{item.topic}, logical queue {item.queue_id}: queue {item.range.queue_id} of {item.range.broker}{role}"
    if not item.range.is_placed:
        return f"{text}, not placed yet"
    logical = item.logical_bounds
    if logical is None:
        return f"{text}, from logical offset {item.range.logical_offset:,}"
    return f"{text}, offsets {item.min_offset:,} to {item.max_offset:,} are {logical[0]:,} to {logical[1]:,}"


def lite_topic_text(lite: LiteTopic) -> str:
    """Return a lite topic as one line: its light queue, when a broker deletes it, and who has not read it."""
    text = f"{lite.topic}, lite topic {lite.name}: {lite.queue}, offsets {lite.min_offset:,} to {lite.max_offset:,}"
    if lite.last_timestamp is not None:
        text += f", last message {iso_time(lite.last_timestamp)}"
    text += ", never deleted" if lite.expires_at is None else f", deleted after {iso_time(lite.expires_at)}"
    unread = ", ".join(f"{group} ({count:,})" for group, count in lite.unread)
    return f"{text}; not read by {unread}" if unread else text


def lite_group_text(group: LiteGroup) -> str:
    """Return a group that reads lite topics as one line."""
    settings = ", ".join(f"{name}={value}" for name, value in group.attributes)
    return f"{group.topic}, group {group.name}: {settings}"


def binary_tables(store: StoreSnapshot) -> Iterator[tuple[str, dict[str, int]]]:
    """The one table that is no JSON: the timer's checkpoint (docs/formats/delays.md#timer-service)."""
    raw = store.small_file(store.paths.config / "timercheck") if store.paths else None
    if raw is None:
        return
    try:
        check = timer.decode_check(raw)
    except CorruptUnit:
        return
    yield (
        "timercheck",
        {
            "lastReadTimeMs": check.last_read_time,
            "lastTimerLogFlushPos": check.flush_position,
            "lastTimerQueueOffset": check.queue_offset,
            "masterTimerQueueOffset": check.master_queue_offset,
            "stateVersion": check.state_version,
            "timestamp": check.version_timestamp,
            "counter": check.version_counter,
        },
    )
