"""The chosen row of the log, decoded and as bytes: both show the same row and the same field, or say that it is
loading.

Reading and decoding happen off the loop; an answer for a row that is not chosen any more is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import (
    QBoxLayout,
    QStackedWidget,
    QWidget,
)

from engine.codec.batch import Member
from engine.codec.dledger import HEADER_FIELDS, HEADER_SIZE
from engine.codec.flipped_bits import explain
from engine.codec.message import COMPRESSED, INNER_BATCH, Unit, list_fields
from engine.codec.properties import CRC32, verify_crc
from engine.codec.unit_scan import Stop
from engine.inspection.lost_units import LostUnit, lost_units, was
from engine.inspection.snapshot import StoreSnapshot
from engine.system_names import TRACE_TOPIC
from viewer.log.body_view import BodyView
from viewer.log.columns import BODY_FIELDS, look
from viewer.log.data_inspector import BYTES_FROM_CURSOR, DataInspector
from viewer.log.decoded_body import read_decoded
from viewer.log.rows import LogRow, NonUnitRow, UnitRow
from viewer.log.unit_detail import UnitDetail
from viewer.log.unit_fields import MEMBER, DecodedUnit, Group, Line, describe
from viewer.log.unit_traces import read_traces
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import number, plain
from viewer.look.theme import px
from viewer.pane.body_text import Body, looks_like_json, open_body
from viewer.pane.edit_box import ask_edit
from viewer.pane.patched_bytes import log_changes
from viewer.runtime import places
from viewer.runtime.settings import Settings
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Button, PaneHead
from viewer.widgets.boxes import beside, splitter, stacked
from viewer.widgets.hex_pages import HexField, hex_fields
from viewer.widgets.hex_view import HexView
from viewer.widgets.word_tabs import WordTabs

MAX_LOST = 16
"""Messages of one damaged stretch that are listed."""
GRACE_MS = 80
"""How long the old picture may stand while the next row is read; what is in the widgets is gone at once."""
MIN_DETAIL_WIDTH = 280
"""Px at 100 % that the tree of fields keeps beside the bytes and the inspector."""


@dataclass(frozen=True, slots=True)
class LoadedRow:
    """A row with all that was read of it."""

    row: LogRow
    decoded: DecodedUnit | None
    fields: Sequence[HexField]
    problem: str = ""
    lost: Sequence[LostUnit] = ()
    traces: Group | None = None
    """What clients traced about the unit; read after everything else is shown."""
    body: Group | None = None
    """The decoded body; read as late."""


class UnitPanes(QObject):
    """Wires detail, bytes and body to the chosen row. ``placeRequested``, ``termRequested`` as in their widgets."""

    placeRequested = Signal(object)
    termRequested = Signal(str, str)
    columnRequested = Signal(str)
    loaded = Signal(object)
    statusText = Signal(str)

    def __init__(self, parent: QWidget, shown_columns: Callable[[], frozenset[str]] = frozenset) -> None:
        """``shown_columns`` returns the fields that the table above shows already."""
        super().__init__(parent)
        self.session: StoreSession | None = None
        self.detail = UnitDetail("unit.detail", shown_columns)
        self.hex = HexView("unit.hex", fill_menu=self.detail.fill_menu)
        self.body = BodyView()
        self.current: LoadedRow | None = None
        self._row: LogRow | None = None
        self._generation = 0
        self._decoding_asked_for = -1
        """The generation of the row for which the box is opened once it is read."""
        self._settings: Settings | None = None
        self._wanted_field = ""
        self._body_generation = -1
        self._member = -1
        """Number of the batch's message whose line is chosen; -1 for the whole body."""
        decode = Button(tr("Decode…"), "ghost")
        decode.setObjectName("unit.decode")
        decode.setToolTip(tr("Decode bodies of this topic as…"))
        decode.clicked.connect(self.ask_decoding)
        self.detail_head = PaneHead(tr("Message"), "", decode)
        self.tabs = WordTabs(
            "unit.tabs",
            (("bytes", tr("Bytes")), ("json", tr("Body as JSON")), ("text", tr("Text")), ("hex", tr("Unpacked"))),
        )
        self.bytes_head = PaneHead(tr("Bytes"), "", self.tabs)
        self._pages = QStackedWidget()
        self.inspector = DataInspector()
        self.inspector.hide()
        self._pages.addWidget(self.hex)
        self._pages.addWidget(self.body)
        self._thaw = QTimer(self, interval=GRACE_MS, singleShot=True)
        self._thaw.timeout.connect(self._unfreeze)
        self._connect()

    def _connect(self) -> None:
        self.detail.fieldChosen.connect(self._field_chosen)
        self.detail.groupChosen.connect(self._group_chosen)
        self.detail.placeRequested.connect(self.placeRequested)
        self.detail.termRequested.connect(self.termRequested)
        self.detail.columnRequested.connect(self.columnRequested)
        self.detail.changeRequested.connect(self._ask_field)
        self.hex.fieldChosen.connect(self._byte_field_chosen)
        self.hex.byteChosen.connect(lambda _offset: (self._say_field(), self._inspect()))
        self.hex.changeRequested.connect(self._ask_change)
        self.tabs.chosen.connect(self._tab_chosen)

    def build(self) -> QWidget:
        """Both panes side by side."""
        self._left, self._right = stacked(self.detail_head, self.detail), beside(self._pages, self.inspector)
        self._split = splitter(False, (self._left, 436), (stacked(self.bytes_head, self._right), 824))
        self._split.installEventFilter(self)
        return self._split

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move the inspector when the size changes, so that it covers nothing."""
        if event.type() == QEvent.Type.Resize and not self.inspector.isHidden():
            self._place_inspector()
        return super().eventFilter(watched, event)

    def _place_inspector(self) -> None:
        """Place the inspector right of the bytes if both fit completely, else below the tree."""
        shown, bytes_width = not self.inspector.isHidden(), self.hex.full_width()
        aside = self._split.width() - bytes_width - self.inspector.full_width() >= px(MIN_DETAIL_WIDTH)
        host = self._right if aside else self._left
        if self.inspector.parentWidget() is not host:
            box = host.layout()
            assert isinstance(box, QBoxLayout)
            box.addWidget(self.inspector, 0 if aside else 1)
            self.inspector.setVisible(shown)
        self.inspector.set_beside_bytes(aside)
        self.hex.setMinimumWidth(bytes_width if aside and shown else 0)

    @property
    def detail_in_focus(self) -> bool:
        """True if the tree of fields has the focus of its window."""
        return self.detail.window().focusWidget() is self.detail

    def commands(self) -> dict[str, Callable[[], object]]:
        """Copies of the chosen bytes, and the inspector beside them."""
        commands: dict[str, Callable[[], object]] = {
            f"copy.{form}": partial(self.hex.copy, form) for form in ("hex", "c", "python", "base64")
        }
        return commands | {"view.inspector": self.toggle_inspector, "body.decode": self.ask_decoding}

    def ask_decoding(self) -> None:
        """Ask how bodies of the shown message's topic are decoded."""
        from viewer.log.decode_box import ask_decoding

        if self.current is None and self._row is not None:
            self._decoding_asked_for = self._generation
            return
        decoded = self.current.decoded if self.current is not None else None
        if self.session is None or decoded is None:
            self.statusText.emit(tr("Choose a message first."))
        elif self.session.snapshot.capsule is not None:
            self.statusText.emit(tr("The bodies of messages are not in a capsule."))
        else:
            ask_decoding(self.detail.window(), self.session, decoded.unit.topic, decoded.unit)

    def decode_again(self) -> None:
        """Decode the shown message by other rules."""
        if self.current is not None:
            self.current = replace(self.current, body=None)
            self._show_words(self.current)
            self._read_decoded(self._generation)

    def use(self, settings: Settings) -> None:
        """Show the inspector where it stood at the end."""
        self._settings = settings
        self.inspector.setVisible(settings.inspector_shown)
        self._place_inspector()

    def toggle_inspector(self) -> None:
        """Show the bytes under the cursor as every type, or no more."""
        shown = self.inspector.isHidden()
        self.inspector.setVisible(shown)
        self._place_inspector()
        if self._settings is not None:
            self._settings.inspector_shown = shown
        self._inspect()

    def _inspect(self) -> None:
        if not self.inspector.isHidden():
            self.hex.read_at_cursor(BYTES_FROM_CURSOR, self.inspector.show_bytes)

    def set_session(self, session: StoreSession | None) -> None:
        """Show units of another store."""
        self.session = session
        self.hex.runner = session.jobs.read if session is not None else self.hex.runner
        self.hex.offers_changes = session is not None and session.snapshot.kind == "store"
        self.show_row(None)

    def replace_row(self, row: LogRow) -> None:
        """Show ``row`` if it is of another kind than the shown row at its offset: a unit where nothing was written."""
        shown_row = self._row
        if shown_row is not None and shown_row.offset == row.offset and type(shown_row) is not type(row):
            self.show_row(row)

    def show_row(self, row: LogRow | None, field: str = "") -> None:
        """Show ``row`` (None: nothing); ``field`` is chosen once it is there."""
        self._generation += 1
        self._row = row
        self.current = None
        self._wanted_field = field
        self._member = -1
        if row is None or self.session is None:
            self._clear("")
            self._unfreeze()
            return
        self._freeze()
        self._clear(tr("loading {offset:,}…", offset=row.offset))
        generation = self._generation
        self.session.later(lambda: self._read(generation, row))

    def _read(self, generation: int, row: LogRow) -> None:
        if generation != self._generation or self.session is None:
            return
        snapshot = self.session.snapshot
        self.session.jobs.read(
            lambda: self.load_row(snapshot, row),
            lambda loaded: self._show(generation, loaded),
            lambda error: self._show(generation, LoadedRow(row, None, (), str(error))),
        )

    def load_row(self, snapshot: StoreSnapshot, row: LogRow) -> LoadedRow:
        """Read and decode a row; in a thread."""
        return load(snapshot, row)

    def choose_field(self, name: str) -> None:
        """Choose a field in both panes."""
        self._wanted_field = name
        self.detail.choose_field(name)
        self.hex.choose_field(name)
        self._say_field()
        self._inspect()

    def _ask_field(self, name: str) -> None:
        """Ask for another value of a field."""
        self.choose_field(name)
        if self.hex.chosen_field == name and self.hex.offers_changes:
            self.hex.ask_change()
        else:
            self.statusText.emit(tr("This line has no bytes of its own that could be changed."))

    def _ask_change(self, start: int, end: int, digit: str) -> None:
        """Ask for other bytes in place of [start, end); ``digit`` was typed over the first one."""
        session, row = self.session, self._row
        if session is None:
            return
        log = session.snapshot.log

        def read(data: bytes) -> None:
            if session is not self.session or not data:
                return
            text = data.hex(" ").upper()
            unit = (
                number(row.offset) if isinstance(row, UnitRow) and row.offset <= start < row.offset + row.size else ""
            )
            values = {"offset": number(start), "bytes": digit.upper() + text[len(digit) :], "unit": unit}
            box = ask_edit(self.hex.window(), session, "logBytes", values, self.statusText.emit)
            if box is not None and digit:
                box.fields["bytes"].setFocus()
                box.fields["bytes"].setCursorPosition(1)

        session.jobs.read(lambda: log.read(start, end - start), read, lambda error: self.statusText.emit(str(error)))

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        if self.current is not None:
            self._show_words(self.current)

    # ---- below -------------------------------------------------------------------------------------------------------

    def _clear(self, note: str) -> None:
        self._kept_field = self._wanted_field or self.hex.chosen_field or self.detail.chosen_field
        self.detail.clear()
        self.hex.clear()
        self.inspector.clear()
        self.body.show_body(None)
        self.detail_head.set_note(note)
        self.bytes_head.set_note("")

    def _freeze(self) -> None:
        for widget in (self.detail.viewport(), self.hex.viewport(), self.detail_head, self.bytes_head):
            widget.setUpdatesEnabled(False)
        self._thaw.start()

    def _unfreeze(self) -> None:
        self._thaw.stop()
        for widget in (self.detail.viewport(), self.hex.viewport(), self.detail_head, self.bytes_head):
            widget.setUpdatesEnabled(True)

    def _show(self, generation: int, loaded: LoadedRow) -> None:
        if generation != self._generation or self.session is None:
            return
        self.current = loaded
        if self._decoding_asked_for == generation:
            self.ask_decoding()
        field = self._kept_field
        self._show_words(loaded)
        row, log = loaded.row, self.session.snapshot.log
        damage: list[tuple[int, int]] = []
        if isinstance(row, NonUnitRow) and row.kind == "damage":
            damage = _damaged(loaded, row)
        size = row.size if isinstance(row, UnitRow) or row.kind == "damage" else min(row.size, 1 << 16)
        lead_bytes = HEADER_SIZE if loaded.decoded is not None and loaded.decoded.entry is not None else 0
        start, size = row.offset - lead_bytes, size + lead_bytes
        self.hex.show_bytes(
            log.read, start, loaded.fields, size, max(log.min_offset, 0), log.end_offset, damage, _frames(loaded)
        )
        self.hex.set_changes(log_changes(self.session.patches, *self.hex.limits))
        if field:
            self.detail.choose_field(field)
            self.hex.choose_field(field)
        self._say_field()
        self._inspect()
        self._unfreeze()
        if self.tabs.key != "bytes":
            self._load_body()
        self.read_traces(generation, loaded)
        self._read_decoded(generation)
        self.loaded.emit(loaded)

    def read_traces(self, generation: int, loaded: LoadedRow) -> None:
        """Add what clients traced about the unit, once it is found."""
        session, decoded = self.session, loaded.decoded
        if session is None or decoded is None or isinstance(loaded.row, NonUnitRow):
            return
        snapshot, unit = session.snapshot, decoded.unit

        def done(traces: Group | None) -> None:
            current = self.current
            if traces is not None and generation == self._generation and self.session is session and current:
                self.current = replace(current, traces=traces)
                self._show_words(self.current)

        session.jobs.read(lambda: read_traces(snapshot, unit), done, lambda _error: None)

    def _read_decoded(self, generation: int) -> None:
        """Add the decoded body of the unit, once it is decoded."""
        session, loaded = self.session, self.current
        decoded = loaded.decoded if loaded is not None else None
        if session is None or decoded is None or session.snapshot.capsule is not None:
            return
        unit, rules = decoded.unit, session.decoding_rules

        def done(result: tuple[Group | None, tuple[str, ...]]) -> None:
            group, names = result
            current = self.current
            if generation != self._generation or self.session is not session or current is None:
                return
            session.body_fields.update(dict.fromkeys(names))
            if group is not None and rules == session.decoding_rules:
                self.current = replace(current, body=group)
                self._show_words(self.current)

        session.jobs.read(lambda: read_decoded(rules, unit), done, lambda _error: None)

    def _show_words(self, loaded: LoadedRow) -> None:
        row = loaded.row
        if loaded.decoded is not None and isinstance(row, NonUnitRow):
            self._show_lost(loaded, loaded.decoded, row)
            return
        if loaded.decoded is not None:
            unit = self.detail.unit = loaded.decoded.unit
            groups = describe(loaded.decoded)
            if loaded.traces is not None:
                groups.insert(0 if unit.topic == TRACE_TOPIC else 1, loaded.traces)
            if loaded.body is not None:
                groups.insert(0 if loaded.body.opened else 1, loaded.body)
            self.detail.show_groups(groups)
            self.detail_head.set_note(f"{plain(unit.topic)} / {unit.queue_id} / {number(unit.queue_offset)}")
            return
        style = look(row)
        sentence = style.words if style is not None else ""
        self.detail_head.set_note(sentence)
        self.detail.unit = None
        self.detail.show_groups(_edge_groups(row, sentence, loaded.problem, loaded.lost))

    def _show_lost(self, loaded: LoadedRow, decoded: DecodedUnit, row: NonUnitRow) -> None:
        """A unit that cannot be read, as far as it holds."""
        style = look(row)
        sentence = style.words if style is not None else ""
        self.detail.unit = decoded.unit
        self.detail.show_groups([*_edge_groups(row, sentence, "", loaded.lost), *describe(decoded)])
        self.detail_head.set_note(sentence)

    def _field_chosen(self, name: str) -> None:
        """Highlight the bytes of the chosen line only; a field of the decoded body has those of the body."""
        if name.startswith(BODY_FIELDS):
            name = "body"
        self._wanted_field = name
        span = self._span_of(name)
        if span is not None:
            self.hex.choose_span(*span)
        else:
            self.hex.choose_field(name)
        self._say_field()
        self._inspect()
        self._choose_member(name)

    def _group_chosen(self, group: Group) -> None:
        """Light the bytes of every field of a group; a batch's messages are its body."""
        self._wanted_field = ""
        names = {"body" if line.name.startswith(MEMBER) else line.name for line in group.lines if line.name}
        count, length = self.hex.choose_fields(names)
        count_text = tr_plural("{n:,} field", "{n:,} fields", n=count)
        if self.tabs.key == "bytes":
            title = tr(group.title)
            self.bytes_head.set_note(f"{title} · {count_text} · {number(length)} B" if count else title)
        self._inspect()
        self._choose_member("")

    def _span_of(self, name: str) -> tuple[int, int] | None:
        """Offsets [low, high) of bytes that are no field: of a lost message, a batch's message, or a flipped byte."""
        decoded = self.current.decoded if self.current is not None else None
        kind, _, digits = name.partition(".")
        if self.current is not None and kind == "lost" and digits.isdigit():
            lost = self.current.lost[int(digits)]
            return lost.offset, lost.offset + lost.size
        if decoded is None or not digits.isdigit() or kind not in {"member", "flip"}:
            return None
        body = next((position for field, position, _ in decoded.parts if field == "body"), None)
        if body is None:
            return None
        start = decoded.unit.offset + body
        if kind == "flip":
            return start + int(digits), start + int(digits) + 1
        if decoded.unit.sys_flag & COMPRESSED:
            return None
        member = decoded.members[int(digits)]
        return start + member.position, start + member.position + member.size

    def _choose_member(self, name: str) -> None:
        """The tabs of the body show one message of a batch while its line is chosen."""
        number_ = int(name.removeprefix(MEMBER)) if name.startswith(MEMBER) else -1
        if number_ != self._member:
            self._member = number_
            self._body_generation = -1
            if self.tabs.key != "bytes":
                self._load_body()

    def _byte_field_chosen(self, name: str) -> None:
        self._wanted_field = name
        self.detail.choose_field(name)
        self._say_field()

    def _say_field(self) -> None:
        """The head of the bytes: ``bodyCRC · 4 B @ 81,604,377,370``."""
        if self.current is None or self.tabs.key != "bytes":
            return
        start, end = self.hex.selection()
        if self._wanted_field.startswith(MEMBER):
            message_text = tr("message {n:,} of the batch", n=int(self._wanted_field.removeprefix(MEMBER)) + 1)
            is_range = end - start > 1
            self.bytes_head.set_note(
                f"{message_text} · {number(end - start)} B @ {number(start)}" if is_range else message_text
            )
        elif self.hex.chosen_field or end - start > 1:
            name = self.hex.chosen_field.removeprefix("properties.") if self.hex.chosen_field else tr("selected")
            self.bytes_head.set_note(f"{plain(name)} · {number(end - start)} B @ {number(start)}")
        else:
            self.bytes_head.set_note(number(start))

    def _tab_chosen(self, key: str) -> None:
        self._pages.setCurrentWidget(self.hex if key == "bytes" else self.body)
        if key == "bytes":
            self._say_field()
        else:
            self.bytes_head.set_note("")
            self.body.set_form(key)
            self._load_body()

    def _load_body(self) -> None:
        """Unpack the body off the loop, once for each row."""
        decoded = self.current.decoded if self.current is not None else None
        if decoded is None or self.session is None:
            self.body.show_body(None, reason=tr("There is no body here that can be read.") if self.current else "")
            return
        if self.session.snapshot.capsule is not None:
            self.body.show_body(None, reason=tr("The bodies of messages are not in a capsule."))
            return
        if self._body_generation == self._generation:
            return
        self._body_generation = generation = self._generation
        unit, member = decoded.unit, self._member

        def opened_body() -> Body:
            body = open_body(unit.body, unit.sys_flag)
            return body.of_member(member) if member >= 0 else body

        def done(opened: Any) -> None:
            if generation == self._generation:
                self.body.show_body(opened)

        self.session.jobs.read(opened_body, done, lambda _error: None)

    def body_form(self) -> str:
        """The tab that suits the body: JSON where it looks like it."""
        decoded = self.current.decoded if self.current is not None else None
        if decoded is None:
            return "text"
        first_body = next((member.body for member in decoded.members if isinstance(member, Member)), decoded.unit.body)
        return "json" if looks_like_json(first_body) else "text"


def load(store: StoreSnapshot, row: LogRow) -> LoadedRow:
    """Read and decode the row; in a thread."""
    log = store.log
    if not isinstance(row, UnitRow):
        return _load_lost(store, row) if row.was else LoadedRow(row, None, ())
    item = log.unit_at(row.offset)
    if isinstance(item, Stop):
        return LoadedRow(row, None, (), item.reason)
    if not isinstance(item, Unit):
        return LoadedRow(row, None, ())
    raw = log.read(item.offset, item.size)
    fields = list_fields(raw)
    explanation = explain(item.body, item.body_crc) if item.crc == "bad" else None
    property_crc = verify_crc(raw) if CRC32 in item.properties else None
    members = open_body(item.body, item.sys_flag).members if item.sys_flag & INNER_BATCH else ()
    from engine.codec.words import words

    unit_words = words(item, property_crc=property_crc)
    entry = log.entry_header(item.offset)
    painted = hex_fields(fields)
    if entry is not None:
        shifted = [replace(field, position=field.position + HEADER_SIZE) for field in painted]
        painted = [*(HexField(*field) for field in HEADER_FIELDS), *shifted]
    return LoadedRow(
        row, DecodedUnit(item, fields, explanation, property_crc, members, words=unit_words, entry=entry), painted
    )


def _load_lost(store: StoreSnapshot, row: NonUnitRow) -> LoadedRow:
    """Return the first unit that the damaged bytes held, as it would be with its wrong fields mended."""
    lost = lost_units(store, row.offset, row.size)
    salvage = lost[0].salvage if lost else None
    if salvage is None:
        return LoadedRow(row, None, (), lost=lost)
    lead_bytes = lost[0].offset - row.offset
    fields = [replace(field, position=field.position + lead_bytes) for field in hex_fields(salvage.parts)]
    unit = salvage.unit
    members = open_body(unit.body, unit.sys_flag).members if unit.sys_flag & INNER_BATCH else ()
    from engine.codec.words import words

    decoded = DecodedUnit(unit, salvage.parts, None, None, members, words=words(unit), wrong=lost[0].wrong)
    return LoadedRow(row, decoded, fields, lost=lost)


def _damaged(loaded: LoadedRow, row: NonUnitRow) -> list[tuple[int, int]]:
    """Return the spans [from, to) of a damaged row that are wrong: its wrong fields and the bytes of no unit; all of
    it if nothing is known.
    """
    if loaded.decoded is None:
        return [(row.offset, row.end)]
    unit = loaded.decoded.unit
    wrong = {wrong_field.field for wrong_field in loaded.decoded.wrong}
    spans = [(row.offset, unit.offset), (unit.end, row.end)]
    for name, position, length in loaded.decoded.parts:
        if name in wrong:
            spans.append((unit.offset + position, unit.offset + position + length))
    return [span for span in spans if span[1] > span[0]]


def _frames(loaded: LoadedRow) -> list[tuple[int, int, str]]:
    """The bytes whose flip would explain a wrong CRC."""
    decoded = loaded.decoded
    if decoded is None or decoded.explanation is None:
        return []
    body = next((position for name, position, _ in decoded.parts if name == "body"), None)
    if body is None:
        return []
    return [(decoded.unit.offset + body + flip.position, 1, "error") for flip in decoded.explanation.flips[:8]]


def _edge_groups(row: LogRow, sentence: str, problem: str, lost: Sequence[LostUnit] = ()) -> list[Group]:
    lines = [
        Line("", number(row.offset), label=tr("offset")),
        Line("", number(row.size), tr("bytes"), label=tr("length")),
    ]
    if isinstance(row, NonUnitRow):
        if row.reason:
            lines.append(Line("", plain(engine_words(row.reason))))
        if row.next_file:
            lines.append(Line("", row.next_file, "", places.log(row.end), label=tr("continues in")))
        elif row.kind in {"damage", "hole"}:
            lines.append(Line("", number(row.end), tr("→ next unit"), places.log(row.end), label=tr("continues at")))
    for index, lost_unit in enumerate(lost[:MAX_LOST]):
        place = places.queue(lost_unit.topic, lost_unit.queue_id, lost_unit.queue_offset)
        lines.append(Line(f"lost.{index}", plain(was(lost_unit)), tr("→ queue entry"), place, label=tr("was")))
    if problem:
        lines.append(Line("", plain(problem), label=tr("problem"), tone="error"))
    return [Group(tr("What is here"), sentence, tuple(lines))]
