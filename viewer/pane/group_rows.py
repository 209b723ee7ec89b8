"""Consumer groups as rows: progress, age of the oldest unread message, and when retention deletes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.codec.pop import normal_topic
from engine.inspection.groups import NO_WAITS, WaitingMessages, waits_of
from engine.system_names import RETRY_PREFIX, is_system_group
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import full_moment, number, shorten_middle, span
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.columns import (
    Chip,
    Column,
    RecordKind,
    chip_column,
    field_of,
    gutter,
    moment_column,
    number_column,
    text_column,
    topic_column,
)

if TYPE_CHECKING:
    from engine.inspection.groups import GroupProgress, GroupWaits
    from engine.inspection.retention import Retention
    from engine.inspection.snapshot import StoreSnapshot

SOON_MS = 24 * 3_600_000
"""A message that retention deletes within this time is a warning."""
STATES = {
    "behind": Chip("note", words("behind")),
    "notBegun": Chip("note", words("has not begun")),
    "caughtUp": Chip("ok", words("caught up")),
    "beyondMax": Chip("error", words("beyond the end")),
    "belowMin": Chip("warn", words("below the beginning")),
    "gone": Chip("out", words("queue is gone")),
}
MODES = {"cluster": words("cluster"), "broadcast": words("broadcast")}
BARRED = Chip("warn", words("may not consume"))
"""State of a group to which the broker refuses messages that wait for it."""
_JSON = ("group", "topic", "queueId", "offset", "maxOffset", "behind", "oldestUnreadTimestamp", "state", "mode")


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in a queue.

    ``unread`` is the physical offset of its next message. ``goes_at`` (ms) is the time at which retention deletes
    that message's file, or None if it never does as things stand. ``now`` is the time of reading (ms). ``waits``
    is None if retry topics or checkpoints could not be read. ``barred`` says why the broker refuses the topic to the
    group, "" if it does not.
    """

    progress: GroupProgress
    unread: int | None
    goes_at: int | None
    now: int
    waits: WaitingMessages | None = NO_WAITS
    barred: str = ""

    @property
    def is_refused(self) -> bool:
        """True if messages wait for the group and the broker refuses them."""
        return bool(self.barred) and (self.progress.behind > 0 or bool(self.waits and self.waits.messages))

    @property
    def age(self) -> int | None:
        """Ms since the oldest unread message was stored."""
        stored = self.progress.oldest_unread_timestamp
        return None if stored is None else max(0, self.now - stored)

    @property
    def left(self) -> int | None:
        """Ms until retention overtakes the group; 0 where it has, None where it will not."""
        if self.progress.state == "belowMin":
            return 0
        return None if self.goes_at is None or self.unread is None else max(0, self.goes_at - self.now)


OFFSETS = "consumerOffset.json"


@dataclass(frozen=True, slots=True)
class GroupTable:
    """All rows, and the retention rules that apply to them."""

    rows: tuple[GroupRow, ...]
    reserved_hours: int
    delete_when: str
    configured: bool
    running: bool
    waits: GroupWaits | None = None
    """None if retry topics or checkpoints could not be read."""
    unknown: str | None = None
    """Why nothing is known about groups whose queues or offsets are not decoded."""
    file: str = OFFSETS
    """The table that a broker would load: the main file or its .bak."""


def read_groups(store: StoreSnapshot) -> GroupTable:
    """Compare every group with its queues and with retention. Reads the disk."""
    from engine.errors import CannotRead
    from engine.inspection.groups import Permissions, find_group_waits, group_progress, read_permissions
    from engine.inspection.retention import retention

    retention_facts = retention(store)
    try:
        waits = find_group_waits(store)
    except CannotRead:
        waits = None
    try:
        permissions = read_permissions(store)
    except CannotRead:
        permissions = Permissions()
    rows = []
    for progress in group_progress(store):
        unread = unread_place(store, progress)
        waiting = waits_of(waits, progress) if waits is not None else None
        barred = permissions.why_barred(progress.group, progress.topic)
        rows.append(GroupRow(progress, unread, goes_at(retention_facts, unread), retention_facts.at, waiting, barred))
    return GroupTable(
        tuple(rows),
        retention_facts.reserved_hours,
        retention_facts.delete_when,
        retention_facts.configured,
        retention_facts.running,
        waits,
        retention_facts.readers_unknown,
        _offsets_file(store),
    )


def _offsets_file(store: StoreSnapshot) -> str:
    from engine.errors import CannotRead
    from engine.inspection.tables import read_table

    try:
        table = read_table(store, OFFSETS)
    except CannotRead:
        return OFFSETS
    return (table.file if table is not None else None) or OFFSETS


def unread_place(store: StoreSnapshot, progress: GroupProgress) -> int | None:
    """Return the physical offset of a group's next message. None if it has read everything or the queue cannot tell."""
    from engine.errors import StoreError

    queue = (
        store.queues.find(progress.topic, progress.queue_id)
        if progress.state in {"behind", "notBegun", "belowMin"}
        else None
    )
    if queue is None:
        return None
    try:
        next_offset = max(progress.offset, queue.min_offset, 0)
        entry = queue.entry(next_offset) if next_offset < queue.max_offset else None
    except StoreError:
        return None
    return entry.physical_offset if entry is not None else None


def goes_at(retention: Retention, offset: int | None) -> int | None:
    """Return when retention deletes the file that holds the byte at ``offset`` of the log."""
    if offset is None:
        return None
    for file in retention.files:
        if file.start_offset <= offset < file.start_offset + file.size:
            return file.expiry.goes_at
    return None


# ---- words -----------------------------------------------------------------------------------------------------------


def sentence(row: GroupRow, max_letters: int | None = None) -> str:
    """Describe the row in sentences. Names longer than ``max_letters`` lose their middle."""
    if not row.barred:
        return _progress_sentence(row, max_letters)
    refusal = tr("The broker refuses it every message: {why}.", why=engine_words(row.barred))
    return f"{_progress_sentence(row, max_letters)} {refusal}"


def _progress_sentence(row: GroupRow, max_letters: int | None) -> str:
    progress = row.progress
    if max_letters is not None:
        progress = replace(
            progress,
            group=shorten_middle(progress.group, max_letters),
            topic=shorten_middle(progress.topic, max_letters),
        )
    queue = f"{progress.topic}/{progress.queue_id}"
    match progress.state:
        case "gone":
            return tr(
                "{group} has an offset in {queue}, which does not exist any more.", group=progress.group, queue=queue
            )
        case "beyondMax":
            return tr_plural(
                "{group} will ask {queue} for {offset:,}; it ends at {end:,}: {n:,} new message will be skipped.",
                "{group} will ask {queue} for {offset:,}; it ends at {end:,}: {n:,} new messages will be skipped.",
                group=progress.group,
                queue=queue,
                offset=progress.offset,
                end=progress.max_offset,
                n=progress.offset - progress.max_offset,
            )
        case "caughtUp":
            return " ".join(
                (tr("{group} has read all of {queue}.", group=progress.group, queue=queue), *_waits_words(row))
            )
        case "notBegun":
            return tr(
                "{group} has offset {offset:,} in {queue}: below zero, it has not started there.",
                group=progress.group,
                queue=queue,
                offset=progress.offset,
            )
    text = tr_plural(
        "{group} reads {queue} from {offset:,} on, {n:,} message behind.",
        "{group} reads {queue} from {offset:,} on, {n:,} messages behind.",
        group=progress.group,
        queue=queue,
        offset=progress.offset,
        n=progress.behind,
    )
    if progress.state == "belowMin":
        text += " " + tr("What it would read next is deleted already: it continues at the beginning of the queue.")
    if row.age is not None:
        text += " " + tr("Its oldest unread message is {age} old.", age=span(row.age))
    if row.goes_at is not None and row.unread is not None:
        text += " " + tr("Retention deletes the file of that message at {time}.", time=full_moment(row.goes_at))
    elif row.unread is not None:
        text += " " + tr("That message is in the newest file, which retention never deletes.")
    return " ".join((text, *_waits_words(row)))


def _waits_words(row: GroupRow) -> Iterator[str]:
    """Describe the messages that the group must still handle besides the queue."""
    if row.waits is None:
        yield tr("It is unknown whether messages wait for it elsewhere: its retry topics cannot be read.")
        return
    if row.waits.retry:
        yield tr_plural(
            "{n:,} message of this topic waits for it in its retry topics.",
            "{n:,} messages of this topic wait for it in its retry topics.",
            n=row.waits.retry,
        )
    if row.waits.popped:
        yield tr_plural(
            "{n:,} message was popped and not acknowledged: it comes again.",
            "{n:,} messages were popped and not acknowledged: they come again.",
            n=row.waits.popped,
        )


def _queue_place(row: GroupRow) -> Place | None:
    progress = row.progress
    if progress.state == "gone":
        return None
    return places.queue(progress.topic, progress.queue_id, min(progress.offset, progress.max_offset))


def _state(row: GroupRow) -> Chip:
    if row.is_refused and row.progress.state in {"behind", "notBegun", "caughtUp"}:
        return Chip(BARRED.kind, tr(BARRED.word))
    if row.progress.state == "caughtUp" and row.waits != NO_WAITS:
        if row.waits is None:
            return Chip("chat", tr("read to the end"))
        return Chip("note", tr_plural("{n:,} waits", "{n:,} wait", n=row.waits.messages))
    chip = STATES.get(row.progress.state, Chip("chat", row.progress.state))
    return Chip(chip.kind, tr(chip.word))


def _overtaken(row: GroupRow) -> Chip | None:
    if row.left is None:
        return None
    if row.left == 0:
        return Chip("error", tr("overtaken") if row.progress.state == "belowMin" else tr("with the next deletion"))
    return Chip("warn" if row.left < SOON_MS else "chat", tr("in {time}", time=span(row.left)))


def _record(row: GroupRow) -> dict[str, object]:
    record: dict[str, object] = {"type": "groupProgress"}
    record |= {key: field_of(key)(row.progress) for key in _JSON}
    return record | {"unreadPhysicalOffset": row.unread, "deletedAt": row.goes_at, "barred": row.barred or None}


def _through(column: Column) -> Column:
    """Return the same column for a :class:`GroupRow`: it reads the row's progress."""
    read, shown, jump = column.value, column.text, column.jump
    return replace(
        column,
        value=lambda row: read(row.progress),
        text=lambda row: shown(row.progress),
        jump=None if jump is None else lambda row: jump(row.progress),
        tip=None,
    )


def _mode(row: GroupRow) -> str:
    return tr(MODES.get(row.progress.mode, row.progress.mode))


def groups_kind() -> RecordKind:
    """Return the table of groups."""
    return RecordKind(
        "groupProgress",
        (
            gutter(12),
            _through(text_column("group", words("Group"), 150, elide="middle")),
            _through(topic_column(width=180, jump=lambda progress: places.queue(progress.topic))),
            _through(number_column("queueId", words("Queue"), 64)),
            Column(
                "offset",
                words("Next offset"),
                110,
                lambda row: number(row.progress.offset),
                lambda row: row.progress.offset,
                right=True,
                mono=True,
                jump=_queue_place,
            ),
            _through(number_column("maxOffset", words("Queue's end"), 110)),
            _through(number_column("behind", words("Behind"), 90)),
            chip_column("state", words("State"), 136, _state),
            Column(
                "age",
                words("Unread for"),
                100,
                lambda row: span(row.age) if row.age is not None else "",
                lambda row: row.age,
                right=True,
                mono=True,
                filterable=False,
            ),
            chip_column("deletedAt", words("Overtaken"), 120, _overtaken),
            _through(moment_column("oldestUnreadTimestamp", words("Oldest unread"), 186, slim=True)),
            replace(_through(text_column("mode", words("Mode"), 76, slim=True)), text=_mode),
        ),
        verdict=lambda row: _state(row).word,
        record=_record,
        command=lambda _row: ["storescope", "groups", "STORE"],
    )


def order(rows: Sequence[GroupRow]) -> list[GroupRow]:
    """Sort the rows by urgency: beyond the end, overtaken, refused, soon overtaken, then the furthest behind.

    Groups of the broker itself come last, because users cannot do anything about them.
    """
    urgency = {"beyondMax": 0, "belowMin": 1, "behind": 3, "notBegun": 3, "gone": 4, "caughtUp": 5}

    def rank(row: GroupRow) -> tuple[bool, int, bool, int, int, str]:
        progress = row.progress
        time_left_ms = row.left if row.left is not None else 1 << 62
        name = f"{progress.group}\0{progress.topic}\0{progress.queue_id:09d}"
        return (
            is_system_group(progress.group),
            min(urgency.get(progress.state, 6), 2 if row.is_refused else 6),
            row.waits == WaitingMessages(),
            time_left_ms,
            -progress.behind,
            name,
        )

    return sorted(rows, key=rank)


@dataclass(frozen=True, slots=True)
class GroupSum:
    """All queues of a group and topic together, or of a group (no topic). ``worst`` is its most urgent row."""

    group: str
    topic: str
    queues: int
    behind: int
    retry: int
    popped: int
    worst: GroupRow

    def record(self) -> dict[str, object]:
        """Return the row as JSON."""
        return {
            "type": "groupSum",
            "group": self.group,
            "topic": self.topic or None,
            "queues": self.queues,
            "behind": self.behind,
            "retry": self.retry,
            "unacknowledged": self.popped,
            "oldestUnreadTimestamp": _oldest(self.worst),
        }


def _oldest(row: GroupRow) -> int | None:
    return row.progress.oldest_unread_timestamp


def sums(groups: GroupTable, *, by_topic: bool) -> list[GroupSum]:
    """Return the sum of each group, or of each group and topic, the most urgent first.

    A retry topic counts with its original topic, if its name says which that is.
    """
    parts: dict[tuple[str, str], list[GroupRow]] = {}
    for row in order(groups.rows):
        topic = _original(row.progress.topic, row.progress.group)
        parts.setdefault((row.progress.group, topic if by_topic else ""), []).append(row)
    waits = groups.waits
    sums = []
    for (group, topic), rows in parts.items():
        own_rows = [row for row in rows if not row.progress.topic.startswith(RETRY_PREFIX)]
        retry = sum(
            count
            for (counted_group, name), count in (waits.retry if waits else {}).items()
            if counted_group == group and (not topic or topic == (name or RETRY_PREFIX + group))
        )
        popped = sum(
            count
            for (counted_group, name, _queue), count in (waits.popped if waits else {}).items()
            if counted_group == group and topic in {"", _original(name, group)}
        )
        messages_behind = sum(row.progress.behind for row in own_rows)
        sums.append(GroupSum(group, topic, len(own_rows), messages_behind, retry, popped, rows[0]))
    return sums


def _original(topic: str, group: str) -> str:
    """Return the topic whose messages ``topic`` holds: another one for a retry topic that names it."""
    return normal_topic(topic, group) or topic


def sums_kind(*, by_topic: bool) -> RecordKind:
    """Return the table of sums: a row for each group, or for each group and topic."""
    topic = (topic_column(width=220, jump=lambda row: places.queue(row.topic)),) if by_topic else ()
    return RecordKind(
        "groupSum",
        (
            gutter(12),
            text_column("group", words("Group"), 220, elide="middle"),
            *topic,
            number_column("queues", words("Queues"), 80),
            number_column("behind", words("Behind"), 100),
            number_column("retry", words("In retry topics"), 130),
            number_column("popped", words("Not acknowledged"), 130),
            Column(
                "age",
                words("Unread for"),
                110,
                lambda row: "" if row.worst.age is None else span(row.worst.age),
                lambda row: row.worst.age,
                right=True,
                mono=True,
                filterable=False,
            ),
            chip_column("state", words("Worst queue"), 150, lambda row: _state(row.worst)),
        ),
        verdict=lambda row: _state(row.worst).word,
        record=GroupSum.record,
        command=lambda _row: ["storescope", "groups", "STORE"],
    )


def sum_sentence(row: GroupSum) -> str:
    """Describe a sum in sentences, with its worst queue."""
    text = tr_plural(
        "{group}: {n:,} message behind, {retry:,} to be tried again, {popped:,} not acknowledged.",
        "{group}: {n:,} messages behind, {retry:,} to be tried again, {popped:,} not acknowledged.",
        group=row.group,
        n=row.behind,
        retry=row.retry,
        popped=row.popped,
    )
    return f"{text} {sentence(row.worst)}"
