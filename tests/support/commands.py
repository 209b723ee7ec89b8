"""Every command that reads, with arguments that exist in a given store."""

from __future__ import annotations

from pathlib import Path

from engine.codec.message import Unit
from engine.inspection import open_store

Arguments = list[object]


def reading_commands(path: Path) -> list[Arguments]:
    """Return command lines without ``--json``; a queue, a key and ids of the store are among the arguments."""
    with open_store(path) as store:
        unit = next(item for item in store.log.walk() if isinstance(item, Unit) and item.unique_key and item.keys)
        stored_at = unit.store_timestamp
    topic, queue, key, unique_key = unit.topic, unit.queue_id, unit.keys[0], unit.unique_key
    place = f"{topic}/{queue}/{unit.queue_offset}"
    return [
        ["info", path],
        ["units", path],
        ["units", path, "--where", "size > 100 and topic matches /./", "--body"],
        ["queue", path, topic, queue, "--resolve"],
        ["index", path, "--entries"],
        ["trace", path, topic, key],
        ["get", path, topic, queue, unit.queue_offset, "--tag", "*"],
        ["message", path, unit.offset_msg_id],
        ["message", path, unique_key],
        ["offset", path, topic, queue, "--time", stored_at],
        ["where", path, unique_key],
        ["where", path, place, "--group", "billing"],
        ["where", path, "nobody"],
        ["conversation", path, unique_key],
        ["conversation", path, key, "--events"],
        ["positions", path],
        ["groups", path],
        ["space", path],
        ["config", path],
        ["rows", path],
        ["waiting", path],
        ["timeline", path],
        ["histogram", path],
        ["histogram", path, "--by", "topic", "--where", "size > 100"],
        ["sql", path, "SELECT topic, count(*) FROM units GROUP BY 1"],
        ["check", path],
        ["recover", path, "--plan"],
        ["recover", path, "--plan", "--like", "4.9"],
        ["salvage", path],
        ["compat", path],
        ["compat", path, "--to", "4.9"],
        ["queryMsgByKey", "-s", path, "-t", topic, "-k", key],
        ["queryMsgById", "-s", path, "-i", unit.offset_msg_id],
        ["queryMsgByUniqueKey", "-s", path, "-t", topic, "-i", unique_key],
        ["queryMsgByOffset", "-s", path, "-t", topic, "-i", queue, "-o", unit.queue_offset],
        ["queryCq", "-s", path, "-t", topic, "-q", queue, "-i", 0, "-c", 5],
        ["printMsg", "-s", path, "-t", topic],
        ["printMsgByQueue", "-s", path, "-t", topic, "-i", queue],
        ["consumerProgress", "-s", path, "-g", "billing"],
        ["topicStatus", "-s", path, "-t", topic],
    ]
