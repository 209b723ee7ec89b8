"""``space``: where a store's bytes are, to the byte; last what retention deletes next."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from engine.cli.options import common, open_given
from engine.cli.output import Column, Output, Progress, iso, size_text
from engine.inspection.retention import FileExpiry, Retention
from engine.inspection.space.account import NamedSpace, Space
from engine.inspection.space.log import OTHERS
from engine.inspection.space.queues import PartSpace

if TYPE_CHECKING:
    from engine.inspection.retention import Retention
    from engine.inspection.space.account import NamedSpace, Space


MOST = 40
"""Tags, producers and files that people are shown."""
_TOPICS = (
    Column("Topic", "topic"),
    Column("Commit log", "log", "number"),
    Column("Queue files", "queues", "number"),
    Column("Messages", "messages", "number"),
    Column("Mean", "mean", "number", spare=2),
    Column("Share", "share", "plain"),
    Column("Queues", "count", "number", spare=3),
    Column("Remark", "remark", spare=4),
)
_REST = (
    Column("Everything else", "what"),
    Column("Bytes", "bytes", "number"),
    Column("Allocated", "allocated", "number"),
    Column("Files", "files", "number"),
    Column("Entries", "messages", "number", spare=1),
)
_NAMES = {
    field: (
        Column(head, "name"),
        Column("Topic", "topic"),
        Column("Bytes", "bytes", "number"),
        Column("Messages", "messages", "number"),
    )
    for field, head in (("tag", "Tag"), ("host", "Producer"))
}
_DAYS = (
    Column("Day", "day", "plain"),
    Column("Bytes", "bytes", "number"),
    Column("Messages", "messages", "number"),
)
_FILES = (
    Column("File", "name", "plain"),
    Column("Bytes", "size", "number"),
    Column("Last changed", "modified", "time", spare=1),
    Column("Goes at", "goesAt", "time"),
    Column("Held by", "why", "prose"),
    Column("Still read by", "readers", "prose", spare=2),
)
_PARTS = {
    "blank": "end-of-file units",
    "zeroTail": "zero tail, never written",
    "unreadable": "unreadable",
    "notRead": "files that are no part of it",
    "notLookedAt": "not looked at",
    "notInQueues": "units that no queue entry points at, blanks, damage",
    "stale": "stale",
    "beyondEnd": "behind the end of the log",
    "belowMin": "below the minimum",
    "unused": "room for more entries",
    "slots": "header and slots",
    "entries": "entries",
}
HELD = {
    "goes": "nothing: the next run takes it",
    "age": "its age",
    "hour": "the hour: it is old enough",
    "order": "an older file in front of it",
    "newest": "the newest file is never deleted",
    "off": "deleteWhen names no hour",
}


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "space", parents=[common()], help="bytes by topic, queue, day, tag and producer; what retention deletes next"
    )
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("--quick", action="store_true", help="ask file lists and queues only, do not walk the log")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    from engine.inspection.retention import retention
    from engine.inspection.space.account import quick_space, space_of

    with open_given(args, out) as store:
        if args.quick:
            space = quick_space(store)
        else:
            with Progress("space", store.log.sequence.total_size, out.quiet) as progress:
                space = space_of(store, progress=lambda done, _total: progress.at(done))
        forecast = retention(store)
    if not out.as_json:
        _for_people(space, out)
        _retention_for_people(forecast, out)
        return 0
    for row in space.rows:
        out.record(part_record(space, row))
    for one in space.tags:
        out.record(named_record("spaceTag", "tag", one))
    for one in space.producers:
        out.record(named_record("spaceProducer", "host", one))
    out.record(total_record(space))
    out.record(retention_record(forecast))
    return 0


def _for_people(space: Space, out: Output) -> None:
    topics: dict[str, dict[str, Any]] = {}
    numbers: dict[str, set[int | None]] = defaultdict(set)
    rest: dict[str, dict[str, Any]] = {}
    days: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in space.rows:
        of_log = row.kind == "commitlog"
        if row.topic is not None and (not of_log or row.part in {"units", "stale", "beyondEnd"}):
            one = topics.setdefault(row.topic, {"topic": row.topic, "log": 0, "queues": 0, "messages": 0})
            one["log" if of_log else "queues"] += row.bytes
            one["messages"] += (row.messages or 0) if of_log else 0
            numbers[row.topic].add(row.queue_id)
        else:
            what = row.kind if row.part == "file" else f"{row.kind}: {_PARTS.get(row.part, row.part)}"
            one = rest.setdefault(what, {"what": what, "bytes": 0, "allocated": 0, "files": 0, "messages": None})
            for field, value in (("bytes", row.bytes), ("allocated", row.allocated), ("files", row.files)):
                one[field] += value
            if row.messages is not None:
                one["messages"] = (one["messages"] or 0) + row.messages
        if of_log and row.part == "units":
            days[row.day or "no day"][0] += row.bytes
            days[row.day or "no day"][1] += row.messages or 0
    for one in sorted(topics.values(), key=lambda r: (-r["log"], r["topic"])):
        one["mean"] = round(one["log"] / one["messages"]) if one["messages"] else None
        one["share"] = f"{(one['log'] + one['queues']) / max(space.bytes, 1):.1%}"
        one["count"] = len(numbers[one["topic"]])
        one["remark"] = "deleted: dead" if one["topic"] in space.deleted_topics else ""
        out.record(_shown(one, "topic"), _TOPICS)
    for one in rest.values():
        out.record(one, _REST)
    check = "equal to the files" if space.equal else f"the files have {space.bytes:,}"
    out.line(
        f"-- {space.counted:,} bytes in {space.file_count:,} files, {check}; {space.allocated:,} allocated, "
        f"{space.dead:,} dead"
    )
    if space.changed:
        out.line(f"-- {space.changed:,} files have another length by now: the store is written to")
    if space.how in {"queues", "sampled"}:
        out.line(
            "-- from file lists and queues; without --quick the log is walked, for days, tags, producers and damage"
        )
        return
    out.line()
    for day, (size, messages) in sorted(days.items()):
        out.record({"day": day, "bytes": size, "messages": messages}, _DAYS)
    _few("tag", space.tags, out)
    _few("host", space.producers, out)


def _few(field: str, rows: Iterable[NamedSpace], out: Output) -> None:
    listed = list(rows)
    if not listed:
        return
    out.line()
    for row in listed[:MOST]:
        record = {"name": row.name or "(none)", "topic": row.topic, "bytes": row.bytes, "messages": row.messages}
        out.record(_shown(_shown(record, "name"), "topic"), _NAMES[field])
    if len(listed) > MOST:
        out.line(f"-- {len(listed) - MOST:,} more; --json gives all")


def _shown(record: dict[str, Any], field: str) -> dict[str, Any]:
    """Names beyond what is counted one by one have a name that no name has."""
    return record | {field: "(all others)"} if record[field] == "\x00others" else record


def _retention_for_people(found: Retention, out: Output) -> None:
    out.line()
    use = ", ".join(
        f"{what} {used:.0%}" if used >= 0 else f"{what} not known"
        for what, used in (("log", found.log_used), ("queues", found.queue_used))
    )
    source = "" if found.configured else " (defaults: give the broker's own with --config)"
    out.fields(
        (
            ("Retention", f"fileReservedTime {found.reserved_hours} h, deleteWhen {found.delete_when}{source}"),
            ("Disk used", use),
            ("Rule", rule_words(found)),
            ("Next", next_words(found)),
        )
    )
    if not found.running:
        out.line("-- no broker holds this store: nothing is deleted until one is started")
    if found.readers_unknown is not None:
        out.line(f"-- who still reads which file {found.readers_unknown}")
    for file in found.files[:MOST]:
        out.record(
            {
                "name": file.name,
                "size": file.size,
                "modified": file.modified,
                "goesAt": file.expiry.goes_at,
                "why": HELD[file.expiry.held_by],
                "readers": ", ".join(file.readers),
            },
            _FILES,
        )
    if len(found.files) > MOST:
        out.line(f"-- {len(found.files) - MOST:,} more files; --json gives all")


def rule_words(found: Retention) -> str:
    """The rule in force, in a sentence."""
    at = found.levels
    return {
        "none": f"no disk is over {at.full:.0%}: expired files go in the hours of deleteWhen",
        "max": f"over {at.full:.0%}: expired files go at any hour",
        "force": f"over {at.force:.0%}: the oldest files go at once, whatever their age",
        "warn": f"over {at.warn:.0%}: the oldest files go at once, whatever their age, and puts are refused",
        "share": f"over {at.full:.0%} of its share of the disk: expired files go at any hour",
        "shareForce": "over its share of the disk: the oldest files go at once, whatever their age",
        "unknown": "the disk's use cannot be told: expired files go at any hour",
    }[found.rule.rule]


def next_words(found: Retention) -> str:
    """What goes first, and when."""
    files = found.next_files
    if not files:
        return "no file goes as things stand" if found.files else "the log has no files"
    size = size_text(sum(file.size for file in files))
    when = "with the next run" if (found.next_time or 0) <= found.at else f"at {iso(found.next_time)}"
    return f"{len(files):,} file{'s' if len(files) > 1 else ''}, {size}, {when}"


Json = dict[str, Any]


def part_record(space: Space, row: PartSpace) -> Json:
    """One row of the account; all of them together are every byte of every file."""
    record: Json = {
        "type": "space",
        "topic": None if row.topic == OTHERS else row.topic,
        "queueId": row.queue_id,
        "kind": row.kind,
        "part": row.part,
        "day": row.day,
        "bytes": row.bytes,
        "allocated": row.allocated,
        "messages": row.messages,
        "dead": space.is_dead(row),
        "files": row.files or None,
    }
    if row.note:
        record["note"] = row.note
    return record


def named_record(kind: str, field: str, row: NamedSpace) -> Json:
    """Bytes of units again, under another name: a tag, or a producer's host. Null is "without"."""
    rest = OTHERS in {row.name, row.topic}
    return {
        "type": kind,
        "topic": None if row.topic == OTHERS else row.topic,
        field: None if row.name == OTHERS else row.name,
        "bytes": row.bytes,
        "messages": row.messages,
        "others": rest,
    }


def total_record(space: Space) -> Json:
    """The sum, held against the files."""
    return {
        "type": "spaceSum",
        "bytes": space.bytes,
        "counted": space.counted,
        "equal": space.equal,
        "allocated": space.allocated,
        "files": space.file_count,
        "changed": space.changed,
        "dead": space.dead,
        "how": space.how,
        "kinds": [
            {"kind": kind.kind, "files": kind.files, "bytes": kind.bytes, "allocated": kind.allocated}
            for kind in space.kinds
        ],
        "deletedTopics": list(space.deleted_topics),
        "tookMs": space.took_ms,
    }


def retention_record(found: Retention) -> Json:
    """The forecast: the rule in force, each file of the log, and who has not read everything."""
    rule = found.rule
    return {
        "type": "retention",
        "at": found.at,
        "rule": rule.rule,
        "ruleOf": rule.of,
        "deletesAnyHour": rule.needed,
        "deletesAnyAge": rule.at_once,
        "putsRefused": rule.refused,
        "diskUsage": {"commitlog": _share(found.log_used), "consumequeue": _share(found.queue_used)},
        "levels": {"max": found.levels.full, "force": found.levels.force, "warn": found.levels.warn},
        "fileReservedTime": found.reserved_hours,
        "deleteWhen": found.delete_when,
        "deleteFileBatchMax": found.batch_max,
        "configured": found.configured,
        "running": found.running,
        "nextTime": found.next_time,
        "nextFiles": [file.name for file in found.next_files],
        "nextBytes": sum(file.size for file in found.next_files),
        "files": [_file(file, found.readers_unknown) for file in found.files],
        "readersWhy": found.readers_unknown,
        "readers": None
        if found.readers_unknown is not None
        else [
            {
                "name": one.name,
                "kind": one.kind,
                "offset": one.offset,
                "topic": one.topic,
                "queueId": one.queue_id,
                "below": one.below,
            }
            for one in found.readers
        ],
    }


def _share(used: float) -> float | None:
    return used if used >= 0 else None


def _file(file: FileExpiry, readers_unknown: str | None) -> Json:
    return {
        "name": file.name,
        "startOffset": file.start_offset,
        "size": file.size,
        "modified": file.modified,
        "dueAt": file.expiry.due_at,
        "goesAt": file.expiry.goes_at,
        "heldBy": file.expiry.held_by,
        "readers": list(file.readers) if readers_unknown is None else None,
    }
