"""The menu facts of what is drawn: nodes of the store tree, marks on a Line, boxes of a picture; no Qt."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from viewer.look.assets import tr
from viewer.look.broken import UnreadableRange
from viewer.look.field_words import FIELDS
from viewer.widgets.log_line import LineFile, LinePin
from viewer.widgets.row_commands import Facts
from viewer.widgets.store_tree_rows import Node

Unit = tuple[int | None, int | None, str]
"""Offset, size and keys of a unit."""


def condition(field: str, value: object) -> str:
    """A condition of the filter language. The parser is imported at the first call."""
    from engine import query

    return query.condition(field, value)


@dataclass(frozen=True, slots=True)
class DrawnMark:
    """A drawn thing that has a menu: its ``facts``, and ``value`` and ``words`` for copying."""

    facts: Facts
    value: str
    words: str

    @property
    def record(self) -> dict[str, object]:
        """The mark as JSON, without the fields that are unknown."""
        facts = self.facts
        fields: dict[str, object] = {
            "value": self.value,
            "physicalOffset": facts.offset,
            "size": facts.size,
            "topic": facts.topic or None,
            "queueId": facts.queue_id,
            "queueOffset": facts.queue_offset,
            "key": facts.key or None,
            "group": facts.group or None,
            "says": self.words if self.words != self.value else None,
        }
        return {name: value for name, value in fields.items() if value is not None}


# ---- the tree --------------------------------------------------------------------------------------------------------

NODE_FIELDS = {
    "log": "commitLog",
    "topics": "topic",
    "topic": "topic",
    "system": "topic",
    "queue": "queueId",
    "index": "indexName",
    "groups": "group",
    "config": "table",
}
"""First part of a node's name → the field that explains it. Checkpoint and abort explain themselves."""


def node_mark(node: Node) -> DrawnMark:
    """The mark of a node of the store tree."""
    head, _, tail = node.name.partition("/")
    place: Any = node.place
    topic = node.topic if head == "topic" else getattr(place, "topic", "") if head == "queue" else ""
    queue_id = getattr(place, "queue_id", None) if head == "queue" else None
    term = condition("topic", topic) if topic else None
    if term is not None and queue_id is not None:
        term = f"{term} and {condition('queueId', queue_id)}"
    facts = Facts(
        "treeNode",
        NODE_FIELDS.get(head, head),
        place,
        topic=topic,
        queue_id=queue_id,
        term=term,
        command=_node_command(head, tail, topic, queue_id),
    )
    return DrawnMark(facts, topic if head == "topic" else tail or node.text, f"{node.text}  {node.badge}".strip())


def _node_command(head: str, tail: str, topic: str, queue_id: int | None) -> str | None:
    arguments = {
        "log": ["units", "STORE"],
        "index": ["index", "STORE", *(["--file", tail] if tail else [])],
        "groups": ["groups", "STORE"],
        "config": ["config", "STORE"],
        "rows": ["rows", "STORE"],
        "checkpoint": ["positions", "STORE"],
        "topics": ["info", "STORE"],
        "abort": ["info", "STORE"],
        "topic": ["units", "STORE", "--where", condition("topic", topic)],
        "queue": ["queue", "STORE", topic, str(queue_id)],
    }.get(head)
    return shlex.join(["storescope", *arguments]) if arguments is not None else None


# ---- lines over the log ----------------------------------------------------------------------------------------------


def units_from(offset: int, count: int = 1) -> str:
    """The command that prints the units from ``offset`` on."""
    return shlex.join(["storescope", "units", "STORE", "--from", str(offset), "--limit", str(count), "--json"])


def pin_mark(pin: LinePin) -> DrawnMark:
    """A finding or a bookmark on a Line."""
    kind, field = ("lineMark", "bookmark") if pin.finding is None else ("findingMark", "")
    facts = Facts(
        kind,
        field,
        pin.link,
        pin.offset,
        finding=pin.finding,
        term=condition("physicalOffset", pin.offset),
        command=units_from(pin.offset),
    )
    return DrawnMark(facts, str(pin.offset), pin.text or str(pin.offset))


def range_mark(kind: str, start: int | None, end: int | None, clicked: int | None, words: str) -> DrawnMark:
    """A part of the recovery Line, clicked at offset ``clicked``. Without offsets it is the room behind the end of
    the log.
    """
    offset = clicked if kind != "gone" else None
    size = 0 if kind in {"gone", "zero"} else None if end is None or offset is None else end - offset
    term = f"physicalOffset >= {start} and physicalOffset < {end}" if start is not None and end is not None else None
    facts = Facts(
        "lineMark",
        f"part.{kind}",
        None,
        offset,
        size,
        term=term,
        command=units_from(offset) if offset is not None else None,
    )
    value = "" if start is None else f"{start}" if end is None else f"{start}–{end}"
    return DrawnMark(facts, value, words or value or tr(FIELDS[f"part.{kind}"][0]))


def broken_mark(broken: UnreadableRange) -> DrawnMark:
    """A missing or damaged stretch of the log. Missing stretches have no bytes."""
    size = 0 if broken.kind == "missing" else broken.end - broken.start
    facts = Facts("lineMark", broken.kind, None, broken.start, size, command=units_from(broken.start))
    return DrawnMark(facts, str(broken.start), broken.words)


def file_mark(file: LineFile, offset: int) -> DrawnMark:
    """The file under ``offset``. Its menu goes to that offset and exports the bytes from there to the end of the
    file.
    """
    facts = Facts(
        "lineMark",
        "commitLogFile",
        None,
        offset,
        file.end - offset,
        term=condition("file", file.name),
        command=units_from(offset),
    )
    return DrawnMark(facts, file.name, f"{file.name}  {file.start} – {file.end}")


def place_mark(kind: str, name: str, offset: int, words: str, field: str = "offset") -> DrawnMark:
    """A position in the log: the units from there on."""
    term = f"physicalOffset >= {offset}"
    return DrawnMark(
        Facts(kind, field, None, offset, term=term, command=units_from(offset)),
        str(offset),
        words or f"{name} {offset}",
    )


# ---- queues, index and areas ----------------------------------------------------------------------------------------


def entry_mark(
    topic: str,
    queue_id: int,
    offset: int,
    words: str,
    group: str = "",
    link: object = None,
    unit: Unit | None = None,
) -> DrawnMark:
    """A queue entry, or the next offset of a group. A filter by a group shows what the group has not read. ``unit``
    is the offset, the size and the keys of the entry's unit, where they are known.
    """
    sign = ">=" if group else "="
    term = f"{condition('topic', topic)} and {condition('queueId', queue_id)} and queueOffset {sign} {offset}"
    command = ["storescope", "queue", "STORE", topic, str(queue_id), "--from", str(offset), "--to", str(offset + 1)]
    unit_offset, size, keys = unit or (None, None, "")
    facts = Facts(
        "queueMark",
        "nextOffset" if group else "cq.queueOffset",
        link,
        unit_offset,
        size,
        topic,
        queue_id,
        offset,
        keys.split()[0] if keys.split() else "",
        group,
        term,
        command=shlex.join(command),
    )
    return DrawnMark(facts, str(offset), words)


def byte_mark(entry: DrawnMark, field: str, value: str, note: str) -> DrawnMark:
    """A field in the bytes of a queue entry: the entry's mark, explained by the field."""
    name = f"cq.{field}" if f"cq.{field}" in FIELDS else field
    return DrawnMark(replace(entry.facts, field=name), value, " ".join(text for text in (field, value, note) if text))


def queue_mark(topic: str, queue_id: int, link: object, words: str) -> DrawnMark:
    """A whole queue of a topic."""
    term = f"{condition('topic', topic)} and {condition('queueId', queue_id)}"
    facts = Facts(
        "queueMark",
        "queueId",
        link,
        topic=topic,
        queue_id=queue_id,
        term=term,
        command=shlex.join(["storescope", "queue", "STORE", topic, str(queue_id)]),
    )
    return DrawnMark(facts, str(queue_id), words)


def slot_mark(file: str, slot: int | None, link: object, words: str, field: str = "slot") -> DrawnMark:
    """A slot of an index file, or slots whose chains are equally long."""
    command = ["storescope", "index", "STORE", *(["--file", file] if file else [])]
    facts = Facts("indexMark", field, link, command=shlex.join(command))
    return DrawnMark(facts, str(slot) if slot is not None else words, words)


def step_mark(field: str, topic: str, key: str, link: object, value: str, words: str) -> DrawnMark:
    """A step on the way from a key to its index slot."""
    command = shlex.join(["storescope", "trace", "STORE", "--", topic, key])
    return DrawnMark(Facts("indexMark", field, link, topic=topic, key=key, command=command), value, words)


def day_mark(day: str, link: object, words: str) -> DrawnMark:
    """A day of store times. ``≤ day`` means that day and all days before it."""
    last_day = date.fromisoformat(day[-10:])
    term = f'storeTimestamp < "{last_day + timedelta(days=1)}"'
    if last_day.isoformat() == day:
        term = f'storeTimestamp >= "{last_day}" and {term}'
    command = shlex.join(["storescope", "units", "STORE", "--where", term])
    return DrawnMark(Facts("dayMark", "storeTimestamp", link, term=term, command=command), day, words)


def area_mark(target: Any, topic: str, value: str, words: str) -> DrawnMark:
    """A box of the treemap: its topic, queue, file or day. A name that begins with NUL is a sum of several."""
    topic = "" if topic.startswith("\0") else topic
    kind = getattr(target, "kind", "")
    term = target.name if kind == "filter" else condition("topic", topic) if topic else None
    queue_id = getattr(target, "queue_id", None)
    if kind == "queue" and queue_id is not None and term is not None:
        term = f"{term} and {condition('queueId', queue_id)}"
    facts = Facts(
        "area",
        "topic" if topic else "bytes",
        target if kind else None,
        target.offset if kind == "log" else None,
        topic=topic,
        queue_id=queue_id,
        term=term,
        command=shlex.join(["storescope", "space", "STORE"]),
    )
    return DrawnMark(facts, value, words)
