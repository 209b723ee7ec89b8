"""The side of the Queues view: fields of the selected entry, counts of verdicts, groups, and how the minimum is
computed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.inspection.groups import GroupProgress
from viewer.look.assets import tr, tr_in, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, full_moment, moment, number, size, span
from viewer.look.theme import px
from viewer.queues.columns import VERDICTS, state_of, what_words
from viewer.queues.entry_cells import ByteField, EntryBytes
from viewer.queues.facts import QueueFacts
from viewer.queues.rows import EntryRow
from viewer.queues.verdict_work import Verdicts
from viewer.runtime import places
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Chip, ElidedLine, Hairline, Label, Link, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, empty, row
from viewer.widgets.columns import Column, RecordKind, number_column, text_column
from viewer.widgets.drawn_marks import entry_mark
from viewer.widgets.facts import Fact, Facts
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.skew_bars import SkewBars, skew_words

_ALWAYS = ("ok", "missing", "wrongSize", "wrongTag", "wrongTopic", "wrongQueue", "wrongQueueOffset", "belowMinOffset")
_MAX_GROUP_ROWS = 8
_ROW_BYTES = 28
"""Length of an entry in a RocksDB."""
_NOTES = {
    "ok": words("unit found, all fields agree"),
    "missing": words("there is no message"),
    "wrongSize": words("the message there has another size"),
    "wrongTopic": words("there is a message of another topic"),
    "wrongQueue": words("there is a message of another queue"),
    "wrongQueueOffset": words("there is a message with another queue offset"),
    "wrongTag": words("hides it from its subscribers"),
    "belowMinOffset": words("its log file is deleted"),
    "moved": words("consumers get it from there"),
    "prefilled": words("the queue began at a later offset"),
}


def group_kind() -> RecordKind:
    """The table of groups of a queue."""
    columns = (
        text_column("group", words("Group"), 96, tone=group_role, elide="middle"),
        number_column("offset", words("Next offset"), 88, jump=lambda mark: ("entry", mark.offset)),
        number_column("behind", words("Behind"), 62),
        Column(
            "oldestUnreadTimestamp",
            words("Oldest unread"),
            90,
            _age,
            lambda mark: mark.oldest_unread_timestamp,
            tone=_age_tone,
            tip=lambda mark: full_moment(mark.oldest_unread_timestamp),
        ),
    )
    return RecordKind("groupProgress", columns, verdict=_state_words)


STATES = {
    "behind": words("behind"),
    "notBegun": words("has not begun"),
    "caughtUp": words("caught up"),
    "beyondMax": words("beyond max"),
    "belowMin": words("below min"),
    "gone": words("queue is gone"),
}


def group_role(mark: GroupProgress) -> str:
    """The colour of a group's mark: trouble is red, messages left to handle amber, all handled blue."""
    if mark.state in {"beyondMax", "belowMin"}:
        return "error"
    return "posBuild" if mark.state in {"behind", "notBegun"} or mark.waiting else "posLog"


def _state_words(mark: GroupProgress) -> str:
    if mark.state == "caughtUp" and mark.waiting:
        return tr_plural("{n:,} waits", "{n:,} wait", n=mark.waiting)
    return tr(STATES[mark.state])


def _age(mark: GroupProgress) -> str:
    if mark.state in {"beyondMax", "belowMin"}:
        return tr(STATES[mark.state])
    if mark.oldest_unread_timestamp is None:
        return _state_words(mark) if mark.state == "caughtUp" else ""
    return span(max(0, round(datetime.now(UTC).timestamp() * 1000) - mark.oldest_unread_timestamp))


def _age_tone(mark: GroupProgress) -> str:
    return "error" if mark.state in {"beyondMax", "belowMin"} else "text2"


class QueueSide(QWidget):
    """The panel beside the entries: the selected entry, and the groups of the queue.

    Emits ``placeRequested(place)`` for links, ``entryRequested(queue offset)`` for a group's next entry,
    ``continueRequested()`` to go on counting.
    """

    placeRequested = Signal(object)
    entryRequested = Signal(object)
    continueRequested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._entry_head = PaneHead(tr("Entry"))
        self._bytes = EntryBytes()
        self._facts = Facts(76)
        self._facts.placeRequested.connect(self.placeRequested)
        self._verdict_head = PaneHead(tr("Verdicts"))
        self._verdicts = QVBoxLayout()
        self._verdicts.setSpacing(px(4))
        self._go_on = Link(tr("Go on"))
        self._go_on.clicked.connect(self.continueRequested)
        self._group_head = PaneHead(tr("Groups"))
        self.groups = RecordView("queue.groups", group_kind())
        self.groups.setAccessibleName(tr("Groups that read this queue"))
        self.groups.placeRequested.connect(self._follow_group)
        self._skew_topic = ""
        self._skew_session: StoreSession | None = None
        self._skew_head = PaneHead(tr("Queues of the topic"))
        self.skew = SkewBars("queue.skew", places.queue)
        self._skew_part = column(self._skew_head, column(self.skew, margins=(12, 8, 12, 8)), Hairline(), gap=0)
        self._sides = Label("", 12, "text2", wrap=True)
        self._sides.setObjectName("queue.sides")
        self._sides.setAlignment(Qt.AlignmentFlag.AlignTop)
        sides_head = PaneHead(tr("Files and RocksDB"))
        self._sides_part = column(sides_head, column(self._sides, margins=(12, 8, 12, 8)), Hairline(), gap=0)
        self._tiered = Label("", 12, "text2", wrap=True)
        self._tiered.setObjectName("queue.tiered")
        self._tiered.setAlignment(Qt.AlignmentFlag.AlignTop)
        tiered_body = column(self._tiered, margins=(12, 8, 12, 8))
        self._tiered_part = column(PaneHead(tr("Tiered storage")), tiered_body, Hairline(), gap=0)
        self._logical = Label("", 12, "text2", wrap=True)
        self._logical.setObjectName("queue.logical")
        self._logical.setAlignment(Qt.AlignmentFlag.AlignTop)
        logical_body = column(self._logical, margins=(12, 8, 12, 8))
        self._logical_part = column(PaneHead(tr("Static topic")), logical_body, Hairline(), gap=0)
        self._minimum = Label("", 12, "text2", wrap=True)
        self._minimum.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._build()

    def _build(self) -> None:
        verdicts = QWidget()
        verdicts.setLayout(self._verdicts)
        self._verdicts.setContentsMargins(px(12), px(8), px(12), px(4))
        paper = ThemedPanel()
        box = QVBoxLayout(paper)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in (
            self._entry_head,
            column(self._bytes, self._facts, gap=6, margins=(12, 10, 12, 10)),
            Hairline(),
            self._verdict_head,
            verdicts,
            row(self._go_on, None, margins=(12, 0, 12, 8)),
            Hairline(),
            self._group_head,
            self.groups,
            Hairline(),
            self._skew_part,
            self._sides_part,
            self._tiered_part,
            self._logical_part,
            PaneHead(tr("Minimum"), tr("computed as a broker does; no file has it")),
            column(self._minimum, margins=(12, 8, 12, 8)),
        ):
            box.addWidget(part)
        box.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(paper)
        self.setMinimumWidth(px(316))
        self.show_entry(None, b"", "", 0, None)
        self.show_verdicts(None)
        self.show_queue(None)

    # ---- the entry ---------------------------------------------------------------------------------------------------

    def show_entry(
        self,
        entry: EntryRow | None,
        raw: bytes,
        file: str,
        number_in_file: int,
        previous: EntryRow | None,
        own_unit: int | None = None,
    ) -> None:
        """Show the selected entry with its bytes.

        ``previous`` is the entry before it. ``own_unit`` is the offset of the unit that it should point to, if it
        points elsewhere.
        """
        self._bytes.setVisible(entry is not None)
        if entry is None:
            self._entry_head.set_note(tr("choose one in the table"))
            self._facts.show_facts(())
            return
        is_row = len(raw) == _ROW_BYTES
        position = "" if entry.batch_size is not None or is_row else tr("byte {at:,}", at=entry.queue_offset * 20)
        self._entry_head.set_note(" · ".join(part for part in (number(entry.queue_offset), position) if part))
        fields = batch_fields(entry) if entry.batch_size is not None else simple_fields(entry)
        if is_row:
            fields = [*fields, _row_time(raw)]
        unit = (entry.physical_offset, entry.size, entry.keys) if entry.state == "entry" else None
        words = f"{entry.topic}/{entry.queue_id}/{entry.queue_offset}"
        mark = entry_mark(entry.topic, entry.queue_id, entry.queue_offset, words, unit=unit)
        self._bytes.show_entry(raw, fields, mark)
        self._facts.show_facts(self._entry_facts(entry, file, number_in_file, previous, own_unit))

    def _entry_facts(
        self, entry: EntryRow, file: str, number_in_file: int, previous: EntryRow | None, own_unit: int | None
    ) -> list[Fact]:
        facts = []
        if entry.state == "entry":
            note = tr(VERDICTS[state_of(entry)][1]) + f" · {entry.size:,} B"
            facts.append(Fact(tr("Unit"), number(entry.physical_offset), note, place=places.log(entry.physical_offset)))
        else:
            facts.append(Fact(tr("State"), tr(VERDICTS[state_of(entry)][1]), "", code=False))
        if entry.logical_offset is not None:
            note = tr("in logical queue {number}", number=entry.logical_queue_id)
            facts.append(Fact(tr("Logical"), number(entry.logical_offset), note))
        if entry.tiered_file is not None and entry.tiered_position is not None:
            facts.append(Fact(tr("Tiered file"), PurePath(entry.tiered_file).name))
            facts.append(Fact(tr("Position"), number(entry.tiered_position), f"{entry.size:,} B"))
            note = tr("in the tiered log of the queue")
            facts.append(Fact(tr("Tiered offset"), number(entry.tiered_offset), note))
        if own_unit is not None:
            place = places.log(own_unit)
            facts.append(Fact(tr("Its unit"), number(own_unit), tr("is there in the log"), place=place))
        if entry.what:
            is_unread = state_of(entry) in {"unread", "moved"}
            label, role = (tr("Why"), "text") if is_unread else (tr("Differs"), "error")
            facts.append(Fact(label, what_words(entry), role=role, code=False))
        if entry.store_timestamp is not None:
            facts.append(Fact(tr("Stored"), moment(entry.store_timestamp)))
        if entry.delivery_time is not None:
            facts.append(Fact(tr("Delivery"), moment(entry.delivery_time), tr("the tag code is a time here")))
        if entry.ext_address is not None:
            facts.append(Fact(tr("Ext unit"), number(entry.ext_address + (1 << 63)), tr("byte in consumequeue_ext")))
            facts.append(Fact(tr("Ext tag"), number(entry.ext_tags_code), entry.ext_bit_map or ""))
        if file:
            facts.append(Fact(tr("In file"), file, tr("entry {n:,}", n=number_in_file)))
        if (
            previous is not None
            and previous.state == entry.state == "entry"
            and previous.physical_offset is not None
            and entry.physical_offset is not None
        ):
            apart = entry.physical_offset - previous.physical_offset
            note = tr("{n:,} B earlier in the log", n=apart) if apart >= 0 else tr("{n:,} B later in the log", n=-apart)
            place = places.queue(previous.topic, previous.queue_id, previous.queue_offset)
            facts.append(Fact(tr_in("entry", "Before it"), number(previous.queue_offset), note, place=place))
        return facts

    # ---- the queue ---------------------------------------------------------------------------------------------------

    def show_verdicts(self, verdicts: Verdicts | None, *, counting: bool = False) -> None:
        """Counts as far as they are known; the head says how far that is."""
        empty(self._verdicts)
        self._go_on.setVisible(verdicts is not None and not verdicts.complete and not counting)
        if verdicts is None:
            self._verdict_head.set_note("")
            return
        looked = sum(verdicts.counts.values())
        unread = verdicts.counts["unread"]
        if verdicts.complete and unread:
            note = tr_plural(
                "{resolved:,} of {n:,} entry resolved",
                "{resolved:,} of {n:,} entries resolved",
                n=looked,
                resolved=looked - unread,
            )
        elif verdicts.complete:
            note = tr_plural("{n:,} entry, all resolved", "{n:,} entries, all resolved", n=looked)
        else:
            note = tr_plural(
                "first {part:,} of {n:,} entry",
                "first {part:,} of {n:,} entries",
                part=looked,
                n=looked + verdicts.total - verdicts.reached,
            )
        self._verdict_head.set_note(note)
        kinds = [*_ALWAYS, *(kind for kind in VERDICTS if kind not in _ALWAYS and verdicts.counts[kind])]
        quiet = [kind for kind in kinds if not verdicts.counts[kind] and kind != "ok"]
        for kind in kinds:
            if kind not in quiet:
                self._verdicts.addWidget(self._count_row(kind, verdicts.counts[kind]))
        if quiet:
            none = ElidedLine(
                tr("none: {kinds}", kinds=", ".join(tr(VERDICTS[kind][1]) for kind in quiet)), 12, "text3"
            )
            self._verdicts.addWidget(none)

    def _count_row(self, kind: str, count: int) -> QWidget:
        shape, label = VERDICTS[kind]
        figure = Label(number(count), 12, code=True)
        figure.setFixedWidth(px(84))
        figure.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        note = ElidedLine(tr(_NOTES[kind]) if kind in _NOTES else "", 12, "text3")
        line = row(figure, Chip(shape, tr(label)), note)
        line.box.setStretch(2, 1)
        return line

    def show_queue(self, facts: QueueFacts | None, session: StoreSession | None = None) -> None:
        """The groups and the minimum of a queue, and how evenly the queues of its topic are fed."""
        if session is not None and session is not self._skew_session:
            session.surveyed.connect(self._show_skew)
        self._skew_topic, self._skew_session = facts.topic if facts is not None else "", session
        self._show_skew()
        groups = list(facts.groups) if facts is not None else []
        self._group_head.set_note(tr("consumerOffset.json") if groups else "")
        self.groups.set_rows(groups)
        self.groups.set_state(None if groups else State("empty", tr("No group has an offset in this queue.")))
        for part in (self._group_head, self.groups):  # without a queue there is no telling
            part.setVisible(facts is not None)
        shown = min(max(len(groups), 2), _MAX_GROUP_ROWS)
        self.groups.setFixedHeight(px(26 + 24 * shown + 6))
        self._minimum.setText("" if facts is None else minimum_words(facts))
        logical = "" if facts is None else logical_words(facts)
        self._logical.setText(logical)
        self._logical_part.setVisible(bool(logical))
        tiered = "" if facts is None else tiered_words(facts)
        self._tiered.setText(tiered)
        self._tiered_part.setVisible(bool(tiered))
        sides = "" if facts is None else sides_words(facts)
        self._sides.setText(sides)
        self._sides_part.setVisible(bool(sides))

    def _show_skew(self) -> None:
        topic, session = self._skew_topic, self._skew_session
        survey = session.survey if session is not None else None
        topic_facts = (
            next((facts for facts in survey.topics if facts.name == topic), None) if survey is not None else None
        )
        counts = [(str(queue.queue_id), queue.count) for queue in topic_facts.queues] if topic_facts is not None else []
        self._skew_part.setVisible(len(counts) > 1)
        self._skew_head.set_note(skew_words([count for _, count in counts]))
        self.skew.show_bars(counts, topic)

    def refresh_look(self) -> None:
        """Colours, fonts or zoom changed."""
        self.groups.refresh_look()

    def _follow_group(self, place: object) -> None:
        if isinstance(place, tuple):
            self.entryRequested.emit(place[1])


def sides_words(facts: QueueFacts) -> str:
    """The difference between the queue in files and the queue in a RocksDB, and which of them a broker uses; "" if the
    store has one kind.
    """
    queue, both = facts.on_both_sides, facts.both_sides
    if queue is None or both is None:
        return ""
    files, rocksdb = (_bounds_words(bounds) for bounds in (queue.files, queue.rocksdb))
    difference = (
        tr("Both hold the same.")
        if queue.first_difference is None
        else tr("The first difference is at entry {n:,}.", n=queue.first_difference)
    )
    counting = tr("The files count:") if both.counting == "files" else tr("The RocksDB counts:")
    return "\n".join(
        (
            tr("In files {files}, in {folder}/ (RocksDB) {rocksdb}.", files=files, folder=both.folder, rocksdb=rocksdb),
            difference,
            f"{counting} {engine_words(both.why)}",
            engine_words(both.next_start),
        )
    )


def logical_words(facts: QueueFacts) -> str:
    """Return which offsets of which logical queues are in this queue; "" if its topic is not static."""
    lines = []
    for item in facts.logical:
        bounds = item.logical_bounds
        if bounds is None:
            lines.append(tr("Logical queue {number}: it has no place yet.", number=item.queue_id))
            continue
        lines.append(
            tr(
                "Logical queue {number}: its offsets {low:,} to {high:,}.",
                number=item.queue_id,
                low=bounds[0],
                high=bounds[1],
            )
        )
        if item.is_leading:
            lines.append(tr("New messages of the logical queue come into this queue."))
        else:
            lines.append(tr("Another queue has the newer messages of the logical queue."))
    return "\n".join(lines)


def tiered_words(facts: QueueFacts) -> str:
    """Return what tiered storage has of the queue and where; "" if the store has none."""
    tiered = facts.tiered
    if tiered is None:
        return ""
    lines = [
        tr(
            "It has entries {low:,} to {high:,} of this queue, {bytes}.",
            low=tiered.minimum,
            high=tiered.maximum - 1,
            bytes=size(tiered.bytes),
        )
    ]
    if facts.moved is not None:
        low, high = facts.moved
        lines.append(tr("{low:,} to {high:,} are nowhere else: consumers get them from there.", low=low, high=high - 1))
    lines.append(
        tr("Its files are not here: name the broker's configuration, with tieredStoreFilePath in it.")
        if tiered.folder is None
        else tr("Folder: {folder}", folder=tiered.folder)
    )
    return "\n".join(lines)


def _bounds_words(bounds: tuple[int, int] | None) -> str:
    return tr("not at all") if bounds is None else tr("{low:,} to {high:,}", low=bounds[0], high=bounds[1])


def minimum_words(facts: QueueFacts) -> str:
    """Return sentences about the reason for the queue's minimum."""
    if facts.why_min == "noFiles" and facts.tiered is not None:
        return tr("The store has no files of this queue: only tiered storage has it.")
    if facts.why_min == "noFiles":
        return tr("The queue has no files, so it holds nothing.")
    if facts.why_min == "nothing":
        return tr(
            "min (computed) is {n:,}, the same as max: no entry points into the log that is here.", n=facts.minimum
        )
    physical_offset = facts.min_physical or 0
    if facts.why_min == "corrected":
        return tr(
            "min (computed) is {n:,}: its unit at {at:,} is the first one at or after the log's beginning. "
            "Entries {first:,} to {last:,} point to a deleted log file.",
            n=facts.minimum,
            at=physical_offset,
            first=facts.first,
            last=facts.minimum - 1,
        )
    if facts.why_min == "firstRow":
        return tr(
            "min (computed) is {n:,}: the first entry in the RocksDB, and its unit at {at:,} is in the log.",
            n=facts.minimum,
            at=physical_offset,
        )
    if facts.why_min == "kept":
        return tr(
            "min (computed) is {n:,}, although its unit at {at:,} is before the log's beginning.",
            n=facts.minimum,
            at=physical_offset,
        )
    return tr(
        "min (computed) is {n:,}: the first entry in the files, and its unit at {at:,} is in the log.",
        n=facts.minimum,
        at=physical_offset,
    )


def simple_fields(entry: EntryRow) -> list[ByteField]:
    """The three fields of a 20-byte entry (docs/formats/consume-queue.md#entry)."""
    note = tr("is “{tag}”", tag=entry.tags) if entry.tags else ""
    if entry.delivery_time is not None:
        note = clock(entry.delivery_time)
    if entry.ext_address is not None:
        note = tr("address in the ext file")
    offset = entry.physical_offset if entry.physical_offset is not None else entry.tiered_offset
    code = number(entry.tags_code)
    if entry.ext_address is not None:
        code = tr("ext byte {n:,}", n=entry.ext_address + (1 << 63))
    return [
        ByteField("physicalOffset", 0, 8, "id", number(offset)),
        ByteField("size", 8, 4, "frame", number(entry.size)),
        ByteField("tagsCode", 12, 8, "topic", code, note),
    ]


def _row_time(raw: bytes) -> ByteField:
    """The last field of a row in a RocksDB (docs/formats/consume-queue.md#rocksdb)."""
    stored = int.from_bytes(raw[20:_ROW_BYTES], "big", signed=True)
    return ByteField("storeTimestamp", 20, 8, "time", clock(stored))


def batch_fields(entry: EntryRow) -> list[ByteField]:
    """The fields of a 46-byte entry of a batch queue (docs/formats/consume-queue.md#batch-queues)."""
    return [
        *simple_fields(entry),
        ByteField("storeTimestamp", 20, 8, "time", clock(entry.store_timestamp)),
        ByteField("msgBaseOffset", 28, 8, "id", number(entry.queue_offset)),
        ByteField("batchSize", 36, 2, "frame", number(entry.batch_size)),
        ByteField("compactedOffset", 38, 4, "id", "", ""),
        ByteField("reserved", 42, 4, "frame", ""),
    ]
