"""Columns and row styles of the table of queue entries. No Qt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from engine.sentences import Sentence, sentence
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import number
from viewer.queues.rows import PROBLEMS, EntryRow, QueueEdgeRow, QueueRow, shown_verdict
from viewer.widgets.columns import (
    Chip,
    Column,
    RecordKind,
    RowAppearance,
    chip_column,
    moment_column,
    number_column,
    text_column,
    topic_column,
)

VERDICTS = {  # verdict or state: shape, words
    "ok": ("ok", words("ok")),
    "missing": ("error", words("missing")),
    "wrongTopic": ("error", words("wrong topic")),
    "wrongQueue": ("error", words("wrong queue")),
    "wrongQueueOffset": ("error", words("wrong queue offset")),
    "wrongSize": ("error", words("wrong size")),
    "wrongTag": ("error", words("wrong tag")),
    "belowMinOffset": ("out", words("below min offset")),
    "moved": ("note", words("in tiered storage")),
    "prefilled": ("chat", words("pre-filled")),
    "gap": ("error", words("no file")),
    "noRow": ("error", words("no row")),
    "unread": ("unread", words("unit cannot be read")),
}
ToUnit = Callable[[int], object]
"""Function that returns the place of a unit in the log."""


def state_of(row: EntryRow) -> str:
    """Return the verdict of an entry, or its state if it has no verdict."""
    return shown_verdict(row.verdict, row.state, other_queue=row.other_queue)


def queue_kind(
    to_unit: ToUnit,
    *,
    several: bool = False,
    ext: bool = False,
    batch: bool = False,
    delay: bool = False,
    logical: bool = False,
    priority: bool = False,
) -> RecordKind:
    """Return the columns of the entries table, without those that are empty for all chosen queues."""

    def unit_of(row: QueueRow) -> object | None:
        if not isinstance(row, EntryRow) or row.state != "entry" or row.physical_offset is None:
            return None
        return to_unit(row.physical_offset)

    columns = [
        Column(
            "groups",
            words("Groups"),
            80,
            _groups,
            _group_list,
            tone=lambda _: "posBuild",
            elide="never",
            filterable=False,
        ),
        number_column("queueOffset", words("Queue offset"), 96),
        number_column("physicalOffset", words("Physical offset"), 118, jump=unit_of, elide="never"),
        number_column(
            "size",
            words("Size"),
            60,
            elide="never",
            tone=lambda row: "error" if _has_verdict(row, "wrongSize") else "text2",
        ),
        number_column(
            "tagsCode",
            words("Tag code"),
            206 if ext else 140 if delay else 112,
            elide="never",
            tone=lambda row: "error" if _has_verdict(row, "wrongTag") else "text2",
        ),
        text_column("tags", words("Tag"), 70, elide="middle"),
        chip_column("verdict", words("Verdict"), 98, _chip),
        Column(
            "keys",
            words("Key of the unit, or what is wrong"),
            64,
            _key_or_difference,
            _difference,
            tone=lambda row: "error" if isinstance(row, EntryRow) and state_of(row) in PROBLEMS else "text",
            filterable=False,
        ),
    ]
    if priority:
        columns.insert(-2, number_column("priority", words("Priority"), 66))
    if logical:
        columns.insert(2, number_column("logicalOffset", words("Logical offset"), 102))
    if several:
        columns[1:1] = [topic_column(width=150), number_column("queueId", words("Queue"), 56)]
    if batch:
        size_column = next(n for n, c in enumerate(columns) if c.key == "size")
        columns[size_column:size_column] = [number_column("batchSize", words("Batch"), 56)]
        columns.insert(-1, moment_column("storeTimestamp", words("Stored")))
    if delay:
        columns.insert(-1, moment_column("deliveryTime", words("Delivery")))
    if ext:
        columns.insert(-1, number_column("extTagsCode", words("Ext tag code"), 140, elide="never"))
        columns.insert(-1, text_column("extBitMap", words("Ext bit map"), 90, mono=True, slim=True))
    return RecordKind("cq", tuple(columns), look, verdict_words, record, command)


def look(row: QueueRow) -> RowAppearance | None:
    """Return the style of a row: a queue's end stands out, expired and pre-filled entries are dimmed."""
    if isinstance(row, QueueEdgeRow):
        queue = f"{row.topic}/{row.queue_id}"
        text = (
            tr("end of queue {queue} at {end:,}", queue=queue, end=row.queue_offset)
            if row.room is None
            else tr_plural(
                "end of queue {queue} at {end:,} · {n:,} empty slot here",
                "end of queue {queue} at {end:,} · {n:,} empty slots here",
                queue=queue,
                end=row.queue_offset,
                n=row.room,
            )
        )
        if row.stale:
            text += " · " + tr_plural(
                "the last {n:,} is after the end of the log and does not count",
                "the last {n:,} are after the end of the log and do not count",
                n=row.stale,
            )
        return RowAppearance("out", "", "text3", text, words_from=1)
    if row.state in {"prefilled", "moved"} or row.verdict == "belowMinOffset":
        return RowAppearance(tone="text3")
    return None


def verdict_words(row: QueueRow) -> str:
    """Return the words that a screen reader says first."""
    return tr("end of queue") if isinstance(row, QueueEdgeRow) else tr(VERDICTS[state_of(row)][1])


def record(row: QueueRow) -> dict[str, Any]:
    """Return the row as ``queue --resolve --json`` prints it."""
    if isinstance(row, QueueEdgeRow):
        return {"type": "end", "topic": row.topic, "queueId": row.queue_id, "queueOffset": row.queue_offset}
    ext = None
    if row.ext_address is not None:
        ext = {"address": row.ext_address, "tagsCode": row.ext_tags_code, "bitMap": row.ext_bit_map}
    document: dict[str, Any] = {
        "type": "cq",
        "queueOffset": row.queue_offset,
        "physicalOffset": row.physical_offset,
        "size": row.size,
        "tagsCode": row.tags_code,
        "ext": ext,
        "state": row.state,
        "verdict": row.verdict,
    }
    if row.state == "moved":
        document |= {
            "tieredFile": row.tiered_file,
            "tieredPosition": row.tiered_position,
            "tieredOffset": row.tiered_offset,
        }
    if row.logical_offset is not None:
        document |= {"logicalQueueId": row.logical_queue_id, "logicalOffset": row.logical_offset}
    if row.priority is not None:
        document["priority"] = row.priority
    if row.batch_size is not None:
        document |= {"batchSize": row.batch_size, "storeTimestamp": row.store_timestamp}
    return document


def command(row: QueueRow) -> list[str]:
    """Return the command that prints this row; ``STORE`` stands for the store's path."""
    queue_offset = row.queue_offset
    return [
        "storescope",
        "queue",
        "STORE",
        row.topic,
        str(row.queue_id),
        "--from",
        str(queue_offset),
        "--to",
        str(queue_offset + 1),
        "--resolve",
        "--json",
    ]


def what_words(row: EntryRow) -> str:
    """Return what is wrong with an entry in the language of the window, "" if nothing is."""
    text = row.what
    if state_of(row) in {"unread", "moved"} and isinstance(text, Sentence) and "place" in text.params:
        name = PurePath(text.params["place"]).name  # the folder is the store's; leave the space to the reason
        text = sentence("{place}: {what}", place=name, what=text.params["what"])
    return engine_words(text)


def _has_verdict(row: QueueRow, verdict: str) -> bool:
    return isinstance(row, EntryRow) and row.verdict == verdict


def _chip(row: QueueRow) -> Chip | None:
    if isinstance(row, QueueEdgeRow):
        return None
    shape, label = VERDICTS[state_of(row)]
    return Chip(shape) if shape == "ok" else Chip(shape, tr(label))


def _key_or_difference(row: QueueRow) -> str:
    if isinstance(row, QueueEdgeRow):
        return ""
    return what_words(row) or row.keys


def _difference(row: QueueRow) -> str | None:
    return _key_or_difference(row) or None


def _groups(row: QueueRow) -> str:
    names = row.groups if isinstance(row, EntryRow) else ()
    return f"▸ {' · '.join(names)}" if names else ""


def _group_list(row: QueueRow) -> list[str] | None:
    return list(row.groups) if isinstance(row, EntryRow) and row.groups else None


def count_words(counts: dict[str, int]) -> str:
    """``893,099 ok · 5 missing``: verdict counts as one sentence."""
    return " · ".join(f"{number(n)} {tr(VERDICTS[kind][1])}" for kind, n in counts.items() if n)
