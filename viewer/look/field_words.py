"""Meaning of each field of the store's files, the documentation page that describes it, and the meaning of verdicts
on a message; no Qt.

One table for units (whose words stand with their fields, :mod:`engine.codec.unit_fields`), queue entries and
index files. A field that means something else in one table is also there as ``kind.name``.
"""

from __future__ import annotations

from engine.codec import unit_fields
from viewer.look.assets import words

FIELDS: dict[str, tuple[str, str]] = {
    # a unit of the commit log
    **{field.name: (field.meaning, field.page) for field in unit_fields.FIELDS if field.meaning},
    "marks": (
        words("T transaction, Z compressed, B batch, D delayed, R retried, M dispatched to several queues."),
        "docs/formats/commit-log.md#sysflag",
    ),
    # an entry of a consume queue
    "cq.queueOffset": (
        words("The number of this entry: a queue's entries are 20 bytes each and counted from 0."),
        "docs/formats/consume-queue.md#entry",
    ),
    "cq.physicalOffset": (
        words("CommitLog offset: 8 bytes that say where the unit of this entry begins."),
        "docs/formats/consume-queue.md#entry",
    ),
    "cq.size": (
        words("Size: 4 bytes that say how long the unit is, so that it is read at once."),
        "docs/formats/consume-queue.md#entry",
    ),
    "batchSize": (
        words("How many messages the unit of this entry holds; batch queues have entries of 46 bytes."),
        "docs/formats/consume-queue.md#batch-queues",
    ),
    "deliveryTime": (
        words("When a delayed message is due: a delay queue keeps it in the place of the tag's hash."),
        "docs/formats/delays.md",
    ),
    "extTagsCode": (
        words("The hash of the tag as the ext file keeps it; the entry has an address in its place."),
        "docs/formats/consume-queue.md#ext",
    ),
    "extBitMap": (
        words("Which filters of consumer groups the message passes, one bit each."),
        "docs/formats/consume-queue.md#ext",
    ),
    "verdict": (
        words("Whether the entry and the message that it points to agree: topic, queue, offset, size and tag."),
        "docs/formats/consume-queue.md#entry",
    ),
    # an index file
    "beginTimestamp": (
        words("beginTimestamp: store time of the first message in this file."),
        "docs/formats/index-file.md#layout",
    ),
    "endTimestamp": (
        words("endTimestamp: store time of the last one. Queries by time use both times to skip files."),
        "docs/formats/index-file.md#layout",
    ),
    "beginPhyOffset": (
        words("beginPhyOffset: where the first message in this file lies in the log."),
        "docs/formats/index-file.md#layout",
    ),
    "endPhyOffset": (words("endPhyOffset: where the last one lies."), "docs/formats/index-file.md#layout"),
    "hashSlotCount": (
        words("hashSlotCount: how many slots have been used so far."),
        "docs/formats/index-file.md#layout",
    ),
    "indexCount": (
        words("indexCount: the number of the next entry; an empty file has 1."),
        "docs/formats/index-file.md#layout",
    ),
    "keyHash": (
        words("keyHash: 4 bytes with the hash of topic#key. Different keys can have the same one."),
        "docs/formats/index-file.md#insert",
    ),
    "phyOffset": (
        words("phyOffset: where the message with this key lies in the log."),
        "docs/formats/index-file.md#insert",
    ),
    "timeDiff": (
        words("timeDiff: store time in seconds after the file's first message."),
        "docs/formats/index-file.md#insert",
    ),
    "prev": (
        words("slotValue: the entry that was the slot's newest before; the chain goes on there, 0 ends it."),
        "docs/formats/index-file.md#insert",
    ),
    "entry": (
        words("The number of a 20-byte entry after the slots, counted from 1."),
        "docs/formats/index-file.md#insert",
    ),
    # groups and positions
    "offset": (
        words("An offset: bytes of the log, or the number of an entry in a queue."),
        "docs/formats/files.md#mapped-files",
    ),
    "group": (
        words("A consumer group: its members share the queues of a topic and one progress."),
        "docs/formats/config-tables.md",
    ),
    "nextOffset": (
        words("The next offset that the group reads, as config/consumerOffset.json keeps it."),
        "docs/formats/config-tables.md",
    ),
    "behind": (words("How many entries the queue has that the group has not read."), "docs/formats/config-tables.md"),
    # what is no field: parts of a store, positions, stretches of a Line
    "commitLog": (
        words("CommitLog: all messages of all topics one after another, in files of one size."),
        "docs/formats/commit-log.md",
    ),
    "commitLogFile": (
        words("A file of the log: its name is the offset of its first byte; it is written from front to back."),
        "docs/formats/files.md#mapped-files",
    ),
    "indexName": (
        words("An index file: entries of keys by their hash. Its name is the time when it was made."),
        "docs/formats/index-file.md#layout",
    ),
    "table": (
        words("A table of the broker, written as JSON: topics, groups, progress and what else it must remember."),
        "docs/formats/config-tables.md",
    ),
    "checkpoint": (
        words(
            "checkpoint: store times up to which log, queues and index are on the disk. A start after a crash "
            "uses it to find where recovery begins."
        ),
        "docs/formats/checkpoint.md",
    ),
    "abort": (
        words("abort: an empty file, there while a broker runs and gone after a normal exit."),
        "docs/formats/checkpoint.md",
    ),
    "position": (
        words("A position: how far the log was written, flushed or dispatched, as an offset of the log."),
        "docs/formats/writing.md#flush",
    ),
    "damaged": (
        words("Bytes that are not a complete unit: recovery stops or skips there, depending on the release."),
        "docs/formats/commit-log.md#unit-check",
    ),
    "missing": (
        words("A missing log file: the files before and after it exist."),
        "docs/formats/files.md#sequences",
    ),
    "unread": (
        words("Bytes that could not be read: their contents are unknown."),
        "docs/formats/files.md#mapped-files",
    ),
    "bookmark": (
        words(
            "A bookmark: a place that the user marked. It is kept outside the store; the offset counts bytes of "
            "the log."
        ),
        "docs/formats/commit-log.md",
    ),
    "bytes": (words("Bytes that files hold, as the space is counted."), "docs/formats/files.md#folders"),
    # the way from a key to its slot
    "keyText": (words("The text that is hashed: the topic, a #, and the key."), "docs/formats/index-file.md#keys"),
    "javaHash": (
        words("The hash of that text as Java makes it for strings, without its sign."),
        "docs/formats/index-file.md#keys",
    ),
    "slot": (
        words(
            "A slot of 4 bytes: the number of the newest entry whose key fell on it. A chain of entries begins here."
        ),
        "docs/formats/index-file.md#insert",
    ),
    "slotPosition": (
        words("Where the slot begins in an index file: 40 bytes of header, then 4 bytes a slot."),
        "docs/formats/index-file.md#insert",
    ),
    "window": (
        words("The store times between which the query looks; files outside of them are left out."),
        "docs/formats/index-file.md#query",
    ),
    "matches": (
        words("Entries of the chain with the same hash, and how many steps it took to find them."),
        "docs/formats/index-file.md#query",
    ),
    "chainLength": (
        words("How many entries hang on a slot: a query by key walks all of them."),
        "docs/formats/index-file.md#insert",
    ),
    # parts of the line that recovery draws, and of a store that is alive
    "part.keep": (words("Unchanged: recovery begins after it and does not read it."), "docs/formats/recovery.md"),
    "part.again": (
        words("Recovery reads it again; units that queues and index do not have are dispatched."),
        "docs/formats/recovery.md",
    ),
    "part.drop": (
        words("After the end that recovery finds: it no longer counts and will be overwritten."),
        "docs/formats/recovery.md",
    ),
    "part.gone": (words("Was not on the disk when the power failed: it is lost."), "docs/formats/recovery.md"),
    "part.zero": (words("Room in the last file that was never written."), "docs/formats/files.md#mapped-files"),
    "part.disk": (words("Flushed: it is on the disk and survives a power loss."), "docs/formats/writing.md#flush"),
    "part.cache": (
        words("In the page cache: it survives the end of the process, not a power loss."),
        "docs/formats/writing.md#flush",
    ),
    "part.pool": (words("In the transient pool: it is lost when the process ends."), "docs/formats/writing.md#flush"),
    "part.unread": (words("On disk; recovery does not look at it."), "docs/formats/recovery.md"),
}
SAME = {
    **{record_name: name for name, record_name in unit_fields.INSTEAD.items()},
    "magic": "magicCode",
    "key": "keys",
    "UNIQ_KEY": "uniqueKey",
    "KEYS": "keys",
    "TAGS": "tags",
    "physicalOffsetField": "physicalOffset",
    "totalsize": "totalSize",
}
"""Names in tables and properties for fields that stand above under another."""


def explained(kind: str, name: str) -> tuple[str, str] | None:
    """Return the meaning of the field ``name`` of a row of ``kind`` and its page, or None if nothing is written."""
    if not name:
        return None
    for field_key in (f"{kind}.{name}", name, SAME.get(name, "")):
        if field_key in FIELDS:
            return FIELDS[field_key]
    if name.startswith("properties."):
        bare = name.removeprefix("properties.")
        return FIELDS.get(SAME.get(bare, ""), FIELDS["properties"])
    return None


MASKS = {
    "bodies": words("bodies"),
    "keys": words("keys and unique ids"),
    "hosts": words("hosts"),
    "groups": words("groups"),
    "lmq": words("light queues"),
    "properties": words("users' properties"),
}


VERDICTS = {
    "found": ("ok", words("Found"), words("The message is intact, and its queue leads to it.")),
    "expired": ("warn", words("Deleted by retention"), words("Retention deleted its file; the log starts after it.")),
    "truncated": (
        "error",
        words("Cut off"),
        words("It is after the end of the log: a start cuts it off, or has cut it off."),
    ),
    "damaged": (
        "error",
        words("Damaged"),
        words("Its bytes cannot be read as a message, or its body differs from what was stored."),
    ),
    "notInQueue": (
        "error",
        words("Not in its queue"),
        words("The log has it, but no queue entry leads to it: nobody can consume it."),
    ),
    "notInIndex": (
        "warn",
        words("Not reachable by key"),
        words("It can be consumed, but a query by this key does not find it."),
    ),
    "half": (
        "warn",
        words("Half message"),
        words("Its transaction is open: consumers do not see it until the producer commits."),
    ),
    "rolledBack": ("note", words("Rolled back"), words("Its transaction was rolled back: it must not be delivered.")),
    "delayed": ("note", words("Delayed"), words("It waits for its delivery time.")),
    "passedOver": (
        "error",
        words("Passed over"),
        words("It was due, and the timer has read on without delivering it."),
    ),
    "replaced": (
        "warn",
        words("Replaced"),
        words("A later message with the same key has replaced it for the consumers of this compacted topic."),
    ),
    "retried": ("warn", words("Retried"), words("A delivery failed; the message was put back for the group.")),
    "deadLetter": ("error", words("Dead letter"), words("The group gave it up after its last delivery.")),
    "hiddenByTag": ("error", words("Hidden by its tag"), words("The group's filter skips it.")),
    "notYetDispatched": (
        "warn",
        words("Not dispatched yet"),
        words("The log has it, but dispatch has not reached it yet."),
    ),
    "consumed": ("ok", words("Consumed"), words("The group has read past it.")),
    "notConsumed": ("note", words("Not consumed yet"), words("The group has not reached it yet.")),
    "beyondQueue": (
        "error",
        words("Beyond its queue"),
        words("The group's offset is beyond the end of the queue, so the group has not read it."),
    ),
    "neverSeen": ("note", words("Never seen"), words("This store has no trace of it.")),
    "unknown": ("warn", words("Unknown"), words("The files do not show it.")),
}
