"""The commands for a row, a field or a finding: one table from which every menu is made; no Qt.

A command stands in every menu of its kind of row, in this order: go there, follow it, filter by it, keep it, copy it,
export its bytes, explain it. What cannot be done there has a reason.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from viewer.look.assets import words
from viewer.look.field_words import explained
from viewer.widgets.cell_filter import cell_term
from viewer.widgets.columns import Column, Record, RecordKind, field_of

GO, FOLLOW, FILTER, KEEP, COPY, BYTES, EXPLAIN = PARTS = (
    "go",
    "follow",
    "filter",
    "keep",
    "copy",
    "bytes",
    "explain",
)
"""The parts of a menu from top to bottom, with separators between them."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that a menu needs about a row and the cell or field under the pointer. Unknown fields are empty.

    ``link`` is where the cell leads, ``offset`` a place in the log, ``size`` the bytes there (None: those of the unit).
    ``able`` are the commands of the view in front, ``term`` the condition that the cell makes.
    """

    kind: str
    field: str = ""
    link: object | None = None
    offset: int | None = None
    size: int | None = None
    topic: str = ""
    queue_id: int | None = None
    queue_offset: int | None = None
    key: str = ""
    group: str = ""
    term: str | None = None
    finding: Any = None
    command: str | None = None
    """The storescope command that shows the same; None if there is none."""
    able: frozenset[str] = frozenset()
    column: str = ""
    """The field that can become a column; "" if it has one already or cannot have one."""


Reason = Callable[[Facts], str]
"""Returns why a command is not available, in English and marked for translation; "" if it is."""


@dataclass(frozen=True, slots=True)
class RowCommand:
    """An entry of a menu."""

    id: str
    text: str
    part: str
    without: Reason


def _needs(test: Callable[[Facts], object], reason: str) -> Reason:
    return lambda facts: "" if test(facts) else reason


def _in_view(command: str, test: Callable[[Facts], object], reason: str) -> Reason:
    """A command of the log. The row must have what the command is about. Besides, the view must offer the command or
    the row must have a place in the log.
    """

    def why(facts: Facts) -> str:
        if not test(facts):
            return reason
        return "" if command in facts.able or facts.offset is not None else NO_PLACE

    return why


def sought(facts: Facts) -> str:
    """The text that finds this message: its key, its queue entry, or its offset; "" if there is none."""
    if facts.key:
        return facts.key
    if facts.topic and facts.queue_id is not None and facts.queue_offset is not None:
        return f"{facts.topic}/{facts.queue_id}/{facts.queue_offset}"
    return str(facts.offset) if facts.offset is not None else ""


def mqadmin(facts: Facts) -> str:
    """The mqadmin command that shows the same, or "" if there is none. Values that a store does not contain are in
    capitals.
    """
    if facts.group:
        arguments = ["consumerProgress", "-g", facts.group]
    elif facts.topic and facts.queue_id is not None and facts.queue_offset is not None:
        arguments = ["queryMsgByOffset", "-b", "BROKER", "-t", facts.topic, "-i", str(facts.queue_id)]
        arguments += ["-o", str(facts.queue_offset)]
    elif facts.topic and facts.key:
        arguments = ["queryMsgByKey", "-t", facts.topic, "-k", facts.key]
    elif facts.topic:
        arguments = ["topicStatus", "-t", facts.topic]
    else:
        return ""
    return shlex.join(["mqadmin", arguments[0], "-n", "NAMESRV:9876", *arguments[1:]])


NO_LINK = words("This value is not a link.")
NO_PLACE = words("This row names no place in the log.")
NO_BYTES = words("Nothing is on the disk there.")
NO_MESSAGE = words("This row names no message in the log.")
NO_ENTRY = words("This row names no queue entry.")
NO_KEY = words("This row names no key.")
NO_ID = words("This row names no key, entry or place to look for.")
NO_STORE = words("No store is open in this window.")
NO_COMMAND = words("No command of storescope gives this row.")
NO_MQADMIN = words("mqadmin has no command for this row.")
NO_FIELD = words("The help has nothing about this column.")
NO_STEP = words("Its next step is not a command.")
NO_COLUMN = words("This column exists already, or it is not a field.")
NO_TERM = words("A filter cannot search for this value.")

ROW_COMMANDS = (
    RowCommand("go.link", words("Follow the link"), GO, _needs(lambda f: f.link is not None, NO_LINK)),
    RowCommand(
        "go.own",
        words("Open in a window of its own"),
        GO,
        _needs(lambda f: f.link is not None or f.offset is not None, NO_LINK),
    ),
    RowCommand("go.log", words("Go to its place in the log"), GO, _needs(lambda f: f.offset is not None, NO_PLACE)),
    RowCommand(
        "go.entry",
        words("Go to its queue entry"),
        GO,
        _needs(lambda f: f.topic and f.queue_id is not None and f.queue_offset is not None, NO_ENTRY),
    ),
    RowCommand("follow.trace", words("Trace this key"), FOLLOW, _needs(lambda f: f.topic and f.key, NO_KEY)),
    RowCommand("follow.where", words("Where is it?"), FOLLOW, _needs(sought, NO_ID)),
    RowCommand("follow.conversation", words("Follow the conversation"), FOLLOW, _needs(sought, NO_ID)),
    RowCommand(
        "follow.next",
        words("Next with the same key"),
        FOLLOW,
        _in_view("same.key.next", lambda f: f.key or f.kind == "unit", NO_KEY),
    ),
    RowCommand("keep.column", words("Make a column of this field"), KEEP, _needs(lambda f: f.column, NO_COLUMN)),
    RowCommand(
        "keep.bookmark",
        words("Bookmark this place…"),
        KEEP,
        _needs(lambda f: f.offset is not None or f.link is not None or f.topic, NO_PLACE),
    ),
    RowCommand(
        "keep.mark", words("Mark the row"), KEEP, _in_view("mark.toggle", lambda f: f.offset is not None, NO_PLACE)
    ),
    RowCommand(
        "keep.colour", words("Colour rows with this value…"), KEEP, _needs(lambda f: f.term is not None, NO_TERM)
    ),
    RowCommand("copy.cell", words("Copy cell"), COPY, lambda _: ""),
    RowCommand("copy.row", words("Copy row"), COPY, lambda _: ""),
    RowCommand("copy.json", words("Copy as JSON"), COPY, lambda _: ""),
    RowCommand("copy.markdown", words("Copy as Markdown"), COPY, lambda _: ""),
    RowCommand("copy.cli", words("Copy the equal command"), COPY, _needs(lambda f: f.command is not None, NO_COMMAND)),
    RowCommand(
        "copy.out",
        words("Copy the command that copies it out"),
        COPY,
        _needs(lambda f: "copy.out" in f.able and f.offset is not None, NO_PLACE),
    ),
    RowCommand("copy.mqadmin", words("Copy mqadmin's command"), COPY, _needs(mqadmin, NO_MQADMIN)),
    RowCommand(
        "copy.step",
        words("Copy the command of its step"),
        COPY,
        _needs(lambda f: f.finding is not None and f.finding.command, NO_STEP),
    ),
    RowCommand(
        "bytes.export",
        words("Export the bytes…"),
        BYTES,
        lambda f: NO_PLACE if f.offset is None else NO_BYTES if f.size == 0 else "",
    ),
    RowCommand(
        "edit.offset",
        words("Change the offset of the group…"),
        BYTES,
        _needs(lambda f: f.group and f.topic and f.queue_id is not None, NO_ENTRY),
    ),
    RowCommand(
        "edit.entry",
        words("Rewrite the entry…"),
        BYTES,
        _needs(lambda f: f.topic and f.queue_id is not None and f.queue_offset is not None, NO_ENTRY),
    ),
    RowCommand("edit.field", words("Change the value…"), BYTES, _needs(lambda f: f.offset is not None, NO_PLACE)),
    RowCommand(
        "edit.remove",
        words("Remove the message…"),
        BYTES,
        _needs(lambda f: f.offset is not None and (f.topic or f.kind != "unit"), NO_MESSAGE),
    ),
    RowCommand("edit.cut", words("Cut the log here…"), BYTES, _needs(lambda f: f.offset is not None, NO_PLACE)),
    RowCommand(
        "explain.body",
        words("Decode bodies of this topic as…"),
        EXPLAIN,
        _in_view("body.decode", lambda f: f.topic and f.offset is not None, NO_MESSAGE),
    ),
    RowCommand(
        "explain.field",
        words("Explain this field"),
        EXPLAIN,
        _needs(lambda f: f.finding is not None or explained(f.kind, f.field), NO_FIELD),
    ),
)
BY_ID = {command.id: command for command in ROW_COMMANDS}
ONLY_IN = {
    "copy.markdown": frozenset({"finding", "findingRule", "findingMark"}),
    "copy.step": frozenset({"finding", "findingRule", "findingMark"}),
    "keep.column": frozenset({"field"}),
    "copy.out": frozenset({"whereResult"}),
    "edit.offset": frozenset({"groupProgress"}),
    "edit.entry": frozenset({"cq"}),
    "edit.remove": frozenset(
        {"unit", "cq", "indexEntry", "traceStep", "tracedKey", "whereResult", "waiting", "sqlRow"}
    ),
    "edit.cut": frozenset({"unit"}),
    "explain.body": frozenset({"unit", "cq", "whereResult", "conversationStep"}),
    "edit.field": frozenset({"field"}),
}
"""Commands that only the menus of few kinds have."""
NEEDS_STORE = frozenset(
    (
        "go.log",
        "go.entry",
        "follow.trace",
        "follow.where",
        "follow.conversation",
        "follow.next",
        "keep.bookmark",
        "keep.mark",
        "keep.colour",
        "bytes.export",
        "edit.offset",
        "edit.entry",
        "edit.remove",
        "edit.cut",
        "edit.field",
        "explain.body",
        "copy.markdown",
    )
)
"""Commands that only a view of a store can run."""
MESSAGES = frozenset(
    (
        "unit",
        "cq",
        "indexEntry",
        "traceStep",
        "whereResult",
        "evidence",
        "tracedKey",
        "difference",
        "pair",
        "finding",
        "findingRule",
        "bookmark",
        "field",
        "route",
        "row",
        "sqlRow",
        "waiting",
        "timelineEvent",
        "conversationStep",
    )
)
"""Kinds of rows that are about messages. Their menus have all parts."""
PLACES = frozenset(
    (
        "indexFile",
        "position",
        "groupProgress",
        "groupSum",
        "mark",
        "space",
        "recoveryPlan",
        "file",
        "frequency",
        "rebuilt",
        "lost",
        "statsTopic",
        "statsQueue",
        "statsTag",
        "statsProducer",
        "statsHour",
        "statsFile",
        "dispatched",
        "waitingService",
        "waitingTotal",
        "differenceTotal",
    )
)
"""Kinds that are about parts of a store. They have nothing to follow."""
MARKS = frozenset(
    (
        "treeNode",
        "lineMark",
        "findingMark",
        "rulerMark",
        "queueMark",
        "indexMark",
        "area",
        "dayMark",
        "clusterMark",
    )
)
"""Kinds that are no rows: lines of the store tree, marks on the Lines, boxes of pictures."""
COPIED = {"copy.cell": words("Copy value"), "copy.row": words("Copy the text")}
"""Names of the commands where there is no cell and no row."""
VALUES = frozenset(
    (
        "config",
        "configValue",
        "configChange",
        "tried",
        "repairEffect",
        "patch",
        "fieldDifference",
        "plug",
        "twoWays",
        "reading",
        "operation",
        "clusterLine",
        "clusterRequest",
        "clusterStep",
        "clusterMove",
        "clusterList",
        "request",
        "requestField",
        "requestTalk",
        "frame",
        "conversationHit",
        "offsetMove",
        "groupLag",
        "servedCode",
        "servedClient",
    )
)
"""Kinds that are about figures and settings. They can be copied and explained."""
PARTS_OF = {
    **dict.fromkeys(MESSAGES | MARKS, PARTS),
    **dict.fromkeys(PLACES, (GO, FILTER, KEEP, COPY, BYTES, EXPLAIN)),
    **dict.fromkeys(VALUES, (GO, COPY, EXPLAIN)),
}


def name_of(command: RowCommand, kind: str) -> str:
    """The English name of the command in the menus of a kind."""
    return COPIED.get(command.id, command.text) if kind in MARKS else command.text


def parts_of(kind: str) -> tuple[str, ...]:
    """The parts of the menu of a kind of row; by default all of them."""
    return PARTS_OF.get(kind, PARTS)


def row_commands_of(kind: str) -> list[RowCommand]:
    """The complete menu of a kind of row. The filter's own entries belong where ``FILTER`` is."""
    parts = parts_of(kind)
    return [command for command in ROW_COMMANDS if command.part in parts and kind in ONLY_IN.get(command.id, {kind})]


def facts_of(
    kind: RecordKind, row: Record, column: Column | None, able: frozenset[str] = frozenset(), command: str | None = None
) -> Facts:
    """Collect the facts of a row from its fields and from the links of its cells."""
    look = kind.look(row)
    bare = look is not None and bool(look.words)
    link = column.jump(row) if column is not None and column.jump is not None and not bare else None
    places = [
        link,
        *(other_column.jump(row) for other_column in kind.columns if other_column.jump is not None and not bare),
    ]
    finding = getattr(row, "finding", None)
    offset = _number(row, "physicalOffset", "phyOffset")
    if offset is None:
        offset = next((p.offset for p in places if _is(p, "log") and p.offset is not None), None)  # type: ignore[attr-defined]
    topic, queue_id, queue_offset = _entry(row, places)
    keys = field_of("keys")(row) or field_of("key")(row)
    key_texts = keys.split() if isinstance(keys, str) else keys if isinstance(keys, list | tuple) else ()
    first_key = key_texts[0] if key_texts else ""
    size = field_of("size")(row) if kind.name == "unit" else None
    return Facts(
        kind.name,
        column.key if column is not None else "",
        link,
        offset,
        size,
        topic,
        queue_id,
        queue_offset,
        first_key,
        str(field_of("group")(row) or "") if kind.name == "groupProgress" else "",
        cell_term(kind.name, column, row) if column is not None and not bare else None,
        finding,
        command,
        able,
    )


def _entry(row: Record, places: Sequence[object]) -> tuple[str, int | None, int | None]:
    topic, queue_id = field_of("topic")(row), _number(row, "queueId")
    place = next((p for p in places if _is(p, "queue")), None)
    if isinstance(topic, str) and topic:
        queue_offset = _number(row, "queueOffset")
        return topic, queue_id, queue_offset if queue_offset is not None else getattr(place, "queue_offset", None)
    if place is None:
        return "", None, None
    return place.topic, place.queue_id, place.queue_offset  # type: ignore[attr-defined]


def _is(place: object, kind: str) -> bool:
    return getattr(place, "kind", "") == kind


def _number(row: Record, *names: str) -> int | None:
    values = (field_of(name)(row) for name in names)
    return next((n for n in values if isinstance(n, int) and not isinstance(n, bool) and n >= 0), None)
