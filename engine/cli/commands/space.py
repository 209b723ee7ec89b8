"""``space``: where a store's bytes are, to the byte; last what retention deletes next."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from engine.cli.options import add_command, add_store, common_options, open_named_store
from engine.cli.output import Column, Output, Progress, iso_time, size_text
from engine.english import number_of
from engine.inspection.space.log import OTHERS

if TYPE_CHECKING:
    from engine.inspection.retention import FileExpiry, Retention
    from engine.inspection.space.account import NamedSpace, Space
    from engine.inspection.space.queues import PartSpace


MAX_SHOWN_FILES = 40
"""Maximum rows of tags, producers and files in a table."""
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
_OTHER_FILES = (
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
    "entryHeaders": "headers of DLedger entries",
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
RETAINED_BY = {
    "goes": "nothing: the next run takes it",
    "age": "its age",
    "hour": "the hour: it is old enough",
    "order": "an older file in front of it",
    "newest": "the newest file is never deleted",
    "off": "deleteWhen names no hour",
}


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "space",
        "space ~/store",
        "space ~/store --quick --config broker.conf",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument("--quick", action="store_true", help="use only file lists and queues; do not read the log")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    from engine.inspection.retention import retention
    from engine.inspection.space.account import quick_space, space_of

    with open_named_store(args, out) as store:
        if args.quick:
            space = quick_space(store)
        else:
            with Progress("space", store.log.sequence.total_size, out.quiet) as progress:
                space = space_of(store, progress=lambda done, _total: progress.update(done))
        forecast = retention(store)
    if not out.as_json:
        _print_space(space, out)
        _print_forecast(forecast, out)
        return 0
    for row in space.rows:
        out.record(part_record(space, row))
    for named_space in space.tags:
        out.record(named_record("spaceTag", "tag", named_space))
    for named_space in space.producers:
        out.record(named_record("spaceProducer", "host", named_space))
    out.record(total_record(space))
    out.record(retention_record(forecast))
    return 0


def _print_space(space: Space, out: Output) -> None:
    topics: dict[str, dict[str, Any]] = {}
    numbers: dict[str, set[int | None]] = defaultdict(set)
    other_totals: dict[str, dict[str, Any]] = {}
    days: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in space.rows:
        is_log = row.kind == "commitlog"
        if row.topic is not None and (not is_log or row.part in {"units", "stale", "beyondEnd"}):
            total = topics.setdefault(row.topic, {"topic": row.topic, "log": 0, "queues": 0, "messages": 0})
            total["log" if is_log else "queues"] += row.bytes
            total["messages"] += (row.messages or 0) if is_log else 0
            numbers[row.topic].add(row.queue_id)
        else:
            name = row.kind if row.part == "file" else f"{row.kind}: {_PARTS.get(row.part, row.part)}"
            total = other_totals.setdefault(
                name, {"what": name, "bytes": 0, "allocated": 0, "files": 0, "messages": None}
            )
            for field, value in (("bytes", row.bytes), ("allocated", row.allocated), ("files", row.files)):
                total[field] += value
            if row.messages is not None:
                total["messages"] = (total["messages"] or 0) + row.messages
        if is_log and row.part == "units":
            days[row.day or "no day"][0] += row.bytes
            days[row.day or "no day"][1] += row.messages or 0
    for total in sorted(topics.values(), key=lambda total: (-total["log"], total["topic"])):
        topic_bytes = total["log"] + total["queues"]
        if space.queues_in is not None:
            total["queues"] = None
        if not space.is_log_decoded:
            total["messages"] = total["messages"] or None
        total["mean"] = round(total["log"] / total["messages"]) if total["messages"] else None
        total["share"] = f"{topic_bytes / max(space.bytes, 1):.1%}"
        total["count"] = len(numbers[total["topic"]])
        total["remark"] = "deleted: dead" if total["topic"] in space.deleted_topics else ""
        out.record(_with_label(total, "topic"), _TOPICS)
    for total in other_totals.values():
        out.record(total, _OTHER_FILES)
    comparison = "equal to the files" if space.equal else f"the files have {space.bytes:,}"
    out.line(
        f"-- {number_of(space.counted, 'byte', 'bytes')} in "
        f"{number_of(space.file_count, 'file', 'files')}, {comparison}; {space.allocated:,} allocated, "
        f"{space.dead:,} dead"
    )
    if space.queues_in is not None:
        out.line(f"-- the queues are rows of one RocksDB ({space.queues_in}/): its bytes are of no single queue")
    if space.changed:
        out.line(
            f"-- {number_of(space.changed, 'file', 'files')} changed their length meanwhile: something "
            "is writing to the store"
        )
    if space.method in {"queues", "sampled"}:
        out.line(
            "-- from file lists and queues; without --quick the log is walked, for days, tags, producers and damage"
        )
        return
    out.line()
    for day, (size, messages) in sorted(days.items()):
        out.record({"day": day, "bytes": size, "messages": messages}, _DAYS)
    _print_largest("tag", space.tags, out)
    _print_largest("host", space.producers, out)


def _print_largest(field: str, rows: Iterable[NamedSpace], out: Output) -> None:
    listed = list(rows)
    if not listed:
        return
    out.line()
    for row in listed[:MAX_SHOWN_FILES]:
        record = {"name": row.name or "(none)", "topic": row.topic, "bytes": row.bytes, "messages": row.messages}
        out.record(_with_label(_with_label(record, "name"), "topic"), _NAMES[field])
    if len(listed) > MAX_SHOWN_FILES:
        out.line(f"-- {len(listed) - MAX_SHOWN_FILES:,} more; --json gives all")


def _with_label(record: dict[str, Any], field: str) -> dict[str, Any]:
    """Return the label of a row; the sum of the names that are not counted one by one has its own."""
    return record | {field: "(all others)"} if record[field] == OTHERS else record


def _print_forecast(forecast: Retention, out: Output) -> None:
    out.line()
    use = ", ".join(
        f"{disk} {used:.0%}" if used >= 0 else f"{disk} not known"
        for disk, used in (("log", forecast.log_used), ("queues", forecast.queue_used))
    )
    source = "" if forecast.configured else " (defaults: give the broker's own with --config)"
    out.fields(
        (
            ("Retention", f"fileReservedTime {forecast.reserved_hours} h, deleteWhen {forecast.delete_when}{source}"),
            ("Disk used", use),
            ("Rule", rule_words(forecast)),
            ("Next", next_words(forecast)),
        )
    )
    if not forecast.running:
        out.line("-- no broker holds this store: nothing is deleted until one is started")
    if forecast.readers_unknown is not None:
        out.line(f"-- which groups still read a file: {forecast.readers_unknown}")
    for file in forecast.files[:MAX_SHOWN_FILES]:
        out.record(
            {
                "name": file.name,
                "size": file.size,
                "modified": file.modified,
                "goesAt": file.expiry.goes_at,
                "why": RETAINED_BY[file.expiry.held_by],
                "readers": ", ".join(file.readers),
            },
            _FILES,
        )
    if len(forecast.files) > MAX_SHOWN_FILES:
        out.line(f"-- {number_of(len(forecast.files) - MAX_SHOWN_FILES, 'more file', 'more files')}; --json gives all")


def rule_words(forecast: Retention) -> str:
    """Describe the rule in force, in a sentence."""
    levels = forecast.levels
    return {
        "none": f"no disk is over {levels.full:.0%}: expired files go in the hours of deleteWhen",
        "max": f"over {levels.full:.0%}: expired files go at any hour",
        "force": f"over {levels.force:.0%}: the oldest files go at once, whatever their age",
        "warn": f"over {levels.warn:.0%}: the oldest files go at once, whatever their age, and puts are refused",
        "share": f"over {levels.full:.0%} of its share of the disk: expired files go at any hour",
        "shareForce": "over its share of the disk: the oldest files go at once, whatever their age",
        "unknown": "the disk's use is unknown: expired files go at any hour",
    }[forecast.rule.rule]


def next_words(forecast: Retention) -> str:
    """Describe the next files to be deleted, and when."""
    files = forecast.next_files
    if not files:
        return "no file will be deleted by these rules" if forecast.files else "the log has no files"
    size = size_text(sum(file.size for file in files))
    when = "with the next run" if (forecast.next_time or 0) <= forecast.at else f"at {iso_time(forecast.next_time)}"
    return f"{len(files):,} file{'s' if len(files) > 1 else ''}, {size}, {when}"


Json = dict[str, Any]


def part_record(space: Space, row: PartSpace) -> Json:
    """Return one row of the account as a record; all rows together are every byte of every file."""
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
    """Return the bytes of units by a tag, or by a producer's host; null stands for units without one."""
    is_sum = OTHERS in {row.name, row.topic}
    return {
        "type": kind,
        "topic": None if row.topic == OTHERS else row.topic,
        field: None if row.name == OTHERS else row.name,
        "bytes": row.bytes,
        "messages": row.messages,
        "others": is_sum,
    }


def total_record(space: Space) -> Json:
    """Return the sum of all rows beside the bytes of the files."""
    return {
        "type": "spaceSum",
        "bytes": space.bytes,
        "counted": space.counted,
        "equal": space.equal,
        "allocated": space.allocated,
        "files": space.file_count,
        "changed": space.changed,
        "dead": space.dead,
        "how": space.method,
        "kinds": [
            {"kind": kind.kind, "files": kind.files, "bytes": kind.bytes, "allocated": kind.allocated}
            for kind in space.kinds
        ],
        "deletedTopics": list(space.deleted_topics),
        "tookMs": space.took_ms,
    }


def retention_record(forecast: Retention) -> Json:
    """Return the forecast: the rule in force, each file of the log, and the groups that have not read everything."""
    rule = forecast.rule
    return {
        "type": "retention",
        "at": forecast.at,
        "rule": rule.rule,
        "ruleOf": rule.of,
        "deletesAnyHour": rule.needed,
        "deletesAnyAge": rule.at_once,
        "putsRefused": rule.refused,
        "diskUsage": {"commitlog": _share(forecast.log_used), "consumequeue": _share(forecast.queue_used)},
        "levels": {"max": forecast.levels.full, "force": forecast.levels.force, "warn": forecast.levels.warn},
        "fileReservedTime": forecast.reserved_hours,
        "deleteWhen": forecast.delete_when,
        "deleteFileBatchMax": forecast.batch_max,
        "configured": forecast.configured,
        "running": forecast.running,
        "nextTime": forecast.next_time,
        "nextFiles": [file.name for file in forecast.next_files],
        "nextBytes": sum(file.size for file in forecast.next_files),
        "files": [_file(file, forecast.readers_unknown) for file in forecast.files],
        "readersWhy": forecast.readers_unknown,
        "readers": None
        if forecast.readers_unknown is not None
        else [
            {
                "name": reader.name,
                "kind": reader.kind,
                "offset": reader.offset,
                "topic": reader.topic,
                "queueId": reader.queue_id,
                "below": reader.below,
            }
            for reader in forecast.readers
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
