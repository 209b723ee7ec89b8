"""The chosen pair: the bytes of both sides with what differs in a frame, and the fields that differ.

Reading and decoding happen off the loop; an answer for a pair that is not chosen any more is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QWidget

from viewer.compare.pair_columns import OTHER, OWN, SIGN_WORDS, side_of
from viewer.compare.pair_rows import PairRow
from viewer.log.rows import LogRow, UnitRow
from viewer.log.unit_fields import DecodedUnit, describe
from viewer.log.unit_panes import LoadedRow, load
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import number, plain
from viewer.look.theme import px
from viewer.widgets.basics import Label, PaneHead
from viewer.widgets.boxes import splitter, stacked
from viewer.widgets.columns import Chip, RecordKind, chip_column, text_column
from viewer.widgets.hex_view import HexView
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.runtime.store_session import StoreSession

MAX_SPANS = 4096
"""Ranges of bytes that are framed."""
WIDE_PX = 1500
"""Width at 100 % from which the bytes of both sides stand beside each other."""
MIN_FIELDS_PX = 260
MAX_RAW_BYTES = 12
MAX_COMMON_LETTERS = 12
BLOCK = 64
"""Bytes that are skipped at once while they are equal."""
PHYSICAL_OFFSET = "physicalOffset"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field of a unit that differs, as text on each side; "" where that side does not have it."""

    name: str
    own: str
    other: str
    is_expected: bool = False
    """True for the physical offset of a message that has another place in the other log."""


FIELD = RecordKind(
    "fieldDifference",
    (
        chip_column("", "", 28, lambda row: Chip("chat" if row.is_expected else "error"), filterable=False),
        text_column("name", words("Field"), 120, mono=True, filterable=False),
        text_column("own", words("A"), 120, mono=True, filterable=False),
        text_column("other", words("B"), 120, mono=True, filterable=False),
    ),
)


@dataclass(frozen=True, slots=True)
class LoadedPair:
    """The units read for a pair."""

    row: PairRow
    own: LoadedRow | None
    other: LoadedRow | None
    own_spans: Sequence[tuple[int, int]] = ()
    """Bytes that differ, as offsets in this log."""
    other_spans: Sequence[tuple[int, int]] = ()
    fields: Sequence[FieldDifference] = ()
    same_count: int = 0
    """Number of fields that are the same."""


def load_pair(store: StoreSnapshot, other_store: StoreSnapshot, row: PairRow) -> LoadedPair:
    """Read and decode both sides; in a thread."""
    own = load(store, row.own) if row.own is not None else None
    other = load(other_store, row.other) if row.other is not None else None
    if row.sign not in {"same", "differs"} or row.own is None or row.other is None or own is None or other is None:
        return LoadedPair(row, own, other)
    data, other_data = _bytes_of(store, row.own), _bytes_of(other_store, row.other)
    own_spans, other_spans = [], []
    for start, stop in differing_spans(data, other_data):
        own_spans.append((row.own.offset + start, row.own.offset + min(stop, len(data))))
        other_spans.append((row.other.offset + start, row.other.offset + min(stop, len(other_data))))
    fields, same_count = _field_differences(own.decoded, data, other.decoded, other_data)
    return LoadedPair(
        row,
        own,
        other,
        [span for span in own_spans if span[1] > span[0]],
        [span for span in other_spans if span[1] > span[0]],
        fields,
        same_count,
    )


def _bytes_of(store: StoreSnapshot, row: LogRow) -> bytes:
    return store.log.read(row.offset, row.size) if isinstance(row, UnitRow) or row.kind == "damage" else b""


def differing_spans(data: bytes, other_data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the ranges of positions at which two units have other bytes, at most :data:`MAX_SPANS`."""
    start, count = None, 0
    longest = max(len(data), len(other_data))
    if data == other_data:
        return
    position = -1
    while position < longest:
        position += 1
        if start is None and data[position : position + BLOCK] == other_data[position : position + BLOCK]:
            position += BLOCK - 1
            continue
        is_other = position < longest and data[position : position + 1] != other_data[position : position + 1]
        if is_other and start is None:
            start = position
        elif not is_other and start is not None:
            yield start, position
            start, count = None, count + 1
            if count == MAX_SPANS:
                return


def _field_differences(
    own: DecodedUnit | None, data: bytes, other: DecodedUnit | None, other_data: bytes
) -> tuple[list[FieldDifference], int]:
    if own is None or other is None:
        return [], 0
    sides = []
    for decoded, raw in ((own, data), (other, other_data)):
        texts = {line.name: line.value for group in describe(decoded) for line in group.lines if line.name}
        parts = {name: raw[position : position + length] for name, position, length in decoded.parts}
        sides.append((parts, texts))
    (parts, texts), (other_parts, other_texts) = sides
    names = [*parts, *(name for name in other_parts if name not in parts)]
    differing = [name for name in names if parts.get(name) != other_parts.get(name)]
    rows = [
        FieldDifference(
            plain(name.removeprefix("properties.")),
            *from_difference(_value(name, parts, texts), _value(name, other_parts, other_texts)),
            name == PHYSICAL_OFFSET and own.unit.offset != other.unit.offset,
        )
        for name in differing
    ]
    return rows, len(names) - len(differing)


def from_difference(text: str, other_text: str) -> tuple[str, str]:
    """Cut what two long texts have in common in front of the first difference, but for a few letters."""
    start = next((n for n, pair in enumerate(zip(text, other_text, strict=False)) if pair[0] != pair[1]), 0)
    if start <= MAX_COMMON_LETTERS:
        return text, other_text
    cut = start - MAX_COMMON_LETTERS // 2
    return f"…{text[cut:]}", f"…{other_text[cut:]}"


def _value(name: str, parts: dict[str, bytes], texts: dict[str, str]) -> str:
    raw = parts.get(name)
    if raw is None:
        return ""
    text = texts.get(name, "")
    return text or raw[:MAX_RAW_BYTES].hex(" ").upper() + (" …" if len(raw) > MAX_RAW_BYTES else "")


class PairDetail(QWidget):
    """Both bytes and the fields that differ."""

    def __init__(self) -> None:
        super().__init__()
        self._generation = 0
        self._is_placed = False
        self.hex = {OWN: HexView("pair.hexA"), OTHER: HexView("pair.hexB")}
        for view in self.hex.values():
            view.setMinimumHeight(px(40))
        self.hex[OWN].setAccessibleName(tr("Bytes in A"))
        self.hex[OTHER].setAccessibleName(tr("Bytes in B"))
        self.heads = {OWN: PaneHead(tr("Bytes in A")), OTHER: PaneHead(tr("Bytes in B"))}
        self.fields_head = PaneHead(tr("Fields that differ"))
        self.fields = RecordView("pair.fields", FIELD)
        self.fields.setAccessibleName(tr("Fields that differ"))
        self.verdict = Label("", 12, "text2", wrap=True, select=True)
        self.verdict.setObjectName("pair.verdict")
        self.verdict.setContentsMargins(px(12), px(4), px(12), px(6))
        halves = (stacked(self.heads[side], self.hex[side]) for side in (OWN, OTHER))
        self._bytes = splitter(False, *((half, 520) for half in halves))
        right = stacked(self.fields_head, self.fields, self.fields.strip, self.verdict)
        self._all: QSplitter = splitter(False, (self._bytes, 1210), (right, 318))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._all)
        self.clear()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put both bytes one over the other where the window is narrow."""
        super().resizeEvent(event)
        wide = self.width() >= px(WIDE_PX)
        orientation = Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        if self._bytes.orientation() != orientation or not self._is_placed:
            self._is_placed = True
            self._bytes.setOrientation(orientation)
            bytes_width = self.hex[OWN].full_width() * (2 if wide else 1)
            self._all.setSizes([bytes_width, max(px(MIN_FIELDS_PX), self.width() - bytes_width)])

    def clear(self) -> None:
        """Show nothing."""
        self._generation += 1
        for side in (OWN, OTHER):
            self.hex[side].clear()
            self.heads[side].set_note("")
        self.fields.set_rows([])
        self.fields.set_state(State("hint", tr("Choose a message: fields that differ are shown here.")))
        self.fields_head.set_note("")
        self.verdict.setText("")

    def show_pair(self, session: StoreSession, other_store: StoreSnapshot, row: PairRow) -> None:
        """Show a pair once it is read."""
        self._generation += 1
        generation = self._generation
        snapshot = session.snapshot
        for view in self.hex.values():
            view.runner = session.jobs.read

        def done(loaded: LoadedPair) -> None:
            if generation == self._generation:
                self._show(snapshot, other_store, loaded)

        def failed(error: Exception) -> None:
            if generation == self._generation:
                self.clear()
                self.fields.set_state(State("error", str(error)))

        session.jobs.read(lambda: load_pair(snapshot, other_store, row), done, failed)

    def _show(self, store: StoreSnapshot, other_store: StoreSnapshot, loaded: LoadedPair) -> None:
        sides = ((OWN, store, loaded.own, loaded.own_spans), (OTHER, other_store, loaded.other, loaded.other_spans))
        for side, snapshot, loaded_row, spans in sides:
            log_row, view = side_of(loaded.row, side), self.hex[side]
            if log_row is None or loaded_row is None:
                view.clear()
                self.heads[side].set_note(tr("nothing here"))
                continue
            log = snapshot.log
            size = log_row.size if isinstance(log_row, UnitRow) or log_row.kind == "damage" else min(log_row.size, 256)
            view.show_bytes(log.read, log_row.offset, loaded_row.fields, size, max(log.min_offset, 0), log.end_offset)
            view.set_hits(spans, "error")
            if spans:
                view.choose_span(*spans[0])
            self.heads[side].set_note(f"{number(log_row.offset)} · {number(log_row.size)} B")
        self.fields.set_rows(list(loaded.fields))
        self.fields.set_state(None if loaded.fields else State("empty", self._no_fields(loaded)))
        self.fields_head.set_note(
            tr_plural("{n:,} other field is the same", "{n:,} other fields are the same", n=loaded.same_count)
            if loaded.same_count
            else ""
        )
        self.verdict.setText(verdict_words(loaded))
        self.verdict.setVisible(bool(self.verdict.text()))

    def _no_fields(self, loaded: LoadedPair) -> str:
        if loaded.row.sign == "same":
            return tr("Every byte is the same.")
        text = tr(SIGN_WORDS[loaded.row.sign])
        return text[:1].upper() + text[1:]


def verdict_words(loaded: LoadedPair) -> str:
    """Say which side is right, where a checksum or the place of the message tells."""
    own, other = loaded.row.own, loaded.row.other
    if loaded.row.sign != "differs" or own is None or other is None:
        return ""
    if not isinstance(own, UnitRow) or not isinstance(other, UnitRow):
        good = "A" if isinstance(own, UnitRow) else "B" if isinstance(other, UnitRow) else ""
        return tr("{side} can be read as a message here, the other side cannot.", side=good) if good else ""
    if {own.crc, other.crc} == {"ok", "bad"}:
        good = "A" if own.crc == "ok" else "B"
        return tr("The body CRC is right in {side} only: {side} has the message as it was sent.", side=good)
    if own.crc == other.crc == "ok":
        return tr("The body CRC is right on both sides: the bodies tell nothing about who is right.")
    if own.crc == other.crc == "bad":
        return tr("The body CRC is wrong on both sides.")
    return ""
