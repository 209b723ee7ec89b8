"""Records of ``space`` and ``retention``: field names as in the other records, bytes as integers, times in ms."""

from __future__ import annotations

from typing import Any

from engine.inspection.retention import FileExpiry, Retention
from engine.inspection.space.account import NamedSpace, Space
from engine.inspection.space.log import OTHERS
from engine.inspection.space.queues import PartSpace

Json = dict[str, Any]


def part(space: Space, row: PartSpace) -> Json:
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


def named(kind: str, field: str, row: NamedSpace) -> Json:
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


def total(space: Space) -> Json:
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


def retention(found: Retention) -> Json:
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
        "files": [_file(file) for file in found.files],
        "readers": [
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


def _file(file: FileExpiry) -> Json:
    return {
        "name": file.name,
        "startOffset": file.start_offset,
        "size": file.size,
        "modified": file.modified,
        "dueAt": file.expiry.due_at,
        "goesAt": file.expiry.goes_at,
        "heldBy": file.expiry.held_by,
        "readers": list(file.readers),
    }
