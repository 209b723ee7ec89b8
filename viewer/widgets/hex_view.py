"""The hex view: bytes around a unit with its fields in colour, read in pages, with 64-bit offsets.

Bytes come from a reader that may be slow. A row whose bytes have not been read yet says so. A click on a byte
chooses its field. A drag, or Shift with the arrow keys, selects bytes. Screen readers get both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from string import hexdigits

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QMenu, QToolTip, QWidget

from viewer.look.assets import tr, tr_plural
from viewer.look.theme import C, follow, px
from viewer.widgets.byte_values import COPIES
from viewer.widgets.hex_pages import MARGIN_BYTES, PAGE, ROW_BYTES, FieldMap, HexField, Pages
from viewer.widgets.hex_painter import HexPainter, Metrics, Painted, measure
from viewer.widgets.long_scroll_bar import LongScrollBar
from viewer.widgets.stepwise import Runner, run_here

Reader = Callable[[int, int], bytes]
MAX_COPY_BYTES = 4 << 20
MAX_CHANGE_BYTES = 4096
BAR_WIDTH = 12
HIT_ROLE = "live"
"""Colour role of the frame around a search hit."""


class HexView(QAbstractScrollArea):
    """Emits ``fieldChosen(name)`` when a byte of a field is chosen, and ``byteChosen(offset)`` as the cursor moves."""

    fieldChosen = Signal(str)
    byteChosen = Signal(object)
    copied = Signal(str)
    changeRequested = Signal(object, object, str)
    """Start and end of the bytes to change, and the hexadecimal digit that was typed over the first one, or ""."""

    def __init__(
        self,
        name: str = "unit.hex",
        parent: QWidget | None = None,
        runner: Runner = run_here,
        fill_menu: Callable[[QMenu, str], object] | None = None,
    ) -> None:
        """``fill_menu`` adds the commands of the field with that name to the menu."""
        super().__init__(parent)
        self._fill_menu = fill_menu
        self.offers_changes = False
        """True if a typed digit, or the menu, asks for other bytes (:attr:`changeRequested`)."""
        self.setObjectName(name)
        self.setAccessibleName(tr("Bytes"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        self.runner = runner
        self._reader: Reader | None = None
        self._pages = Pages(0, 0)
        self._requested_pages: set[int] = set()
        self._generation = 0
        self._shown = Painted(0, 0, FieldMap(()))
        self._top = 0
        self._cursor = 0
        self._anchor: int | None = None
        self._dragging = False
        self.bar = LongScrollBar(self)
        self.bar.positionChosen.connect(lambda position: self._scroll_to(position // ROW_BYTES))
        self.bar.stepped.connect(self._bar_stepped)
        self.bar.hide()
        follow(self, self._place_bar)
        follow(self, self.viewport().update)

    # ---- content -----------------------------------------------------------------------------------------------------

    def show_bytes(
        self,
        reader: Reader,
        start: int,
        fields: Sequence[HexField],
        size: int | None = None,
        start_limit: int | None = None,
        end_limit: int | None = None,
        damage: Sequence[tuple[int, int]] = (),
        frames: Sequence[tuple[int, int, str]] = (),
    ) -> None:
        """Show ``size`` bytes from ``start`` on (default: up to the end of ``fields``) with some bytes around them.

        ``reader(offset, size)`` returns bytes, fewer at the end of a file; the runner calls it. Scrolling stays
        between ``start_limit`` and ``end_limit``. ``damage`` are spans, ``frames`` are single framed bytes with a
        colour role. All offsets are absolute.
        """
        extent = size if size is not None else max((f.end for f in fields), default=0)
        end = start + extent
        start_limit = max(0, start - MARGIN_BYTES) if start_limit is None else max(start_limit, start - MARGIN_BYTES)
        end_limit = end + MARGIN_BYTES if end_limit is None else min(end_limit, end + MARGIN_BYTES)
        self._generation += 1
        self._requested_pages.clear()
        self._reader = reader
        self._pages = Pages(start_limit, max(end_limit, start_limit))
        self._shown = Painted(start, end, FieldMap(fields), damage=tuple(damage), frames=tuple(frames))
        self._cursor, self._anchor = start, None
        self._scroll_to(max(self._first_row(), -1))
        self._refresh()

    def clear(self) -> None:
        """Show nothing."""
        self._generation += 1
        self._reader = None
        self._pages = Pages(0, 0)
        self._shown = Painted(0, 0, FieldMap(()))
        self._cursor, self._anchor, self._top = 0, None, 0
        self.bar.hide()
        self.viewport().update()

    @property
    def limits(self) -> tuple[int, int]:
        """The offsets [low, high) that can be scrolled to."""
        return self._pages.low, self._pages.high

    @property
    def origin(self) -> int:
        """Absolute offset of the first byte of row 0."""
        return self._shown.origin

    @property
    def chosen_field(self) -> str:
        """Name of the chosen field; "" for none."""
        return self._shown.chosen

    @property
    def cursor_offset(self) -> int:
        """Absolute offset of the byte under the cursor."""
        return self._cursor

    def selection(self) -> tuple[int, int]:
        """The selected bytes [start, end): the dragged ones, else the chosen field, else the byte under the cursor."""
        if self._anchor is not None and self._anchor != self._cursor:
            return min(self._anchor, self._cursor), max(self._anchor, self._cursor) + 1
        field = self._shown.fields.named(self._shown.chosen)
        if field is not None:
            return self.origin + field.position, self.origin + field.end
        return self._cursor, self._cursor + 1

    def choose_field(self, name: str) -> None:
        """Mark the field ``name`` as chosen and bring it into view; "" for none. Emits nothing."""
        field = self._shown.fields.named(name)
        self._shown.chosen, self._shown.also_chosen = name if field is not None else "", frozenset()
        self._anchor = None
        if field is not None:
            self._cursor = self.origin + field.position
            self._show_offset(self._cursor)
        self._refresh()

    def choose_fields(self, names: Collection[str]) -> tuple[int, int]:
        """Mark these fields as chosen. Returns their number and bytes. Emits nothing."""
        fields = [field for field in self._shown.fields.fields if field.name in names]
        self._shown.chosen, self._shown.also_chosen = "", frozenset(names)
        self._anchor = None
        if fields:
            self._cursor = self.origin + fields[0].position
            self._show_offset(self._cursor)
        self._refresh()
        return len(fields), sum(field.length for field in fields)

    def choose_span(self, start: int, end: int) -> None:
        """Select the bytes [start, end), absolute offsets, and no field. Emits nothing."""
        self._shown.chosen, self._shown.also_chosen = "", frozenset()
        self._anchor, self._cursor = start, max(start, end - 1)
        self._show_offset(start)
        self._refresh()

    def set_hits(self, spans: Sequence[tuple[int, int]], role: str = HIT_ROLE) -> None:
        """Frame these spans, [start, end) in absolute offsets, as search hits. Frames of other roles stay."""
        other_frames = tuple(frame for frame in self._shown.frames if frame[2] != role)
        self._shown.frames = (*other_frames, *((start, end - start, role) for start, end in spans))
        self.viewport().update()

    def set_changes(self, changes: Mapping[int, int | None]) -> None:
        """Let the bytes at these offsets glow: patches change them. The value is the old byte, None if there was none;
        the pointer and a screen reader get it.
        """
        self._shown.changes = changes
        self._refresh()

    def _old_value(self, offset: int) -> str:
        """Return the words for a changed byte's old value; "" for a byte that is not changed."""
        if offset not in self._shown.changes:
            return ""
        old = self._shown.changes[offset]
        return tr("added by a patch") if old is None else tr("0x{byte} without the patches", byte=f"{old:02X}")

    def viewportEvent(self, event: QEvent) -> bool:
        """Show the old value of the changed byte under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            offset = self.offset_at(QPointF(event.pos()))
            text = "" if offset is None else self._old_value(offset)
            if text:
                QToolTip.showText(event.globalPos(), text, self.viewport())
                return True
            QToolTip.hideText()
        return super().viewportEvent(event)

    def show_span(self, start: int, end: int) -> None:
        """Move the cursor to ``start``, choose its field, and select [start, end) if that is more than one byte."""
        self._anchor, self._cursor = None, start
        self._choose_field_at_cursor()
        if end - start > 1:
            self._anchor, self._cursor = start, end - 1
        self._show_offset(start)
        self._cursor_moved()

    def set_hex_offsets(self, on: bool) -> None:
        """Show the offsets in hexadecimal if ``on``, else in decimal."""
        self._shown.hex_offsets = on
        self.viewport().update()

    def copy(self, form: str = "hex") -> None:
        """Copy the selected bytes as ``hex``, ``text``, ``c``, ``python`` or ``base64``, then emit ``copied(text)``."""
        start, end = self.selection()
        reader = self._reader
        if reader is None:
            return
        end = min(end, start + MAX_COPY_BYTES)

        def done(data: bytes) -> None:
            text = COPIES[form](data)
            QGuiApplication.clipboard().setText(text)
            self.copied.emit(text)

        self.runner(lambda: reader(start, end - start), done, lambda _error: None)

    def read_at_cursor(self, count: int, done: Callable[[int, bytes, bytes], None]) -> None:
        """Call ``done(offset, bytes, selected)`` with ``count`` bytes from the cursor on and the selected bytes.

        It is not called if the cursor has moved or other bytes are shown by then.
        """
        reader, generation = self._reader, self._generation
        if reader is None:
            return
        offset, (start, end) = self._cursor, self.selection()
        end = min(end, start + MAX_COPY_BYTES)

        def on_read(data: tuple[bytes, bytes]) -> None:
            if generation == self._generation and offset == self._cursor:
                done(offset, *data)

        self.runner(lambda: (reader(offset, count), reader(start, end - start)), on_read, lambda _error: None)

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _metrics(self) -> Metrics:
        return measure(self.viewport().width() - (BAR_WIDTH if self.bar.isVisible() else 0), self._pages.high)

    def _first_row(self) -> int:
        return -((self.origin - self._pages.low) // ROW_BYTES)

    def _last_row(self) -> int:
        return max(0, (self._pages.high - self.origin - 1) // ROW_BYTES)

    def height_of(self, rows: int) -> int:
        """Height in px of ``rows`` rows and the head."""
        m = self._metrics()
        return m.head + rows * m.row

    def rows_in(self, height: int) -> int:
        """Number of complete rows that fit under the head into ``height`` px."""
        m = self._metrics()
        return max(0, (height - m.head) // m.row)

    def full_width(self) -> int:
        """Width in px at which offsets, bytes and text fit side by side."""
        m = self._metrics()
        return round(m.text_x(ROW_BYTES)) + px(8) + BAR_WIDTH

    def _rows_on_screen(self) -> int:
        m = self._metrics()
        return max(1, (self.viewport().height() - m.head) // m.row)

    def _scroll_to(self, row: int) -> None:
        highest = max(self._first_row(), self._last_row() - self._rows_on_screen() + 1)
        self._top = max(self._first_row(), min(row, highest))
        self._place_bar()
        self._fetch()
        self.viewport().update()

    def _place_bar(self) -> None:
        rows = self._rows_on_screen()
        first_row, last_row = self._first_row(), self._last_row()
        m = self._metrics()
        self.bar.setVisible(self._reader is not None and last_row - first_row + 1 > rows)
        self.bar.setGeometry(self.width() - BAR_WIDTH, m.head, BAR_WIDTH, self.height() - m.head)
        self.bar.show_place(
            first_row * ROW_BYTES,
            (last_row + 1) * ROW_BYTES,
            self._top * ROW_BYTES,
            rows * ROW_BYTES,
            self._top + rows > last_row,
        )

    def _show_offset(self, offset: int) -> None:
        row = (offset - self.origin) // ROW_BYTES
        rows = self._rows_on_screen()
        if not self._top <= row < self._top + rows:
            self._scroll_to(row - rows // 3)

    def _fetch(self) -> None:
        """Request the missing pages of this screen, each once."""
        reader, pages, generation = self._reader, self._pages, self._generation
        if reader is None:
            return
        screen_start = self.origin + self._top * ROW_BYTES
        for page in pages.missing(screen_start, screen_start + (self._rows_on_screen() + 1) * ROW_BYTES):
            if page in self._requested_pages:
                continue
            self._requested_pages.add(page)
            start, size = pages.span(page)

            def done(data: bytes, page: int = page) -> None:
                if generation == self._generation:
                    self._requested_pages.discard(page)
                    pages.put(page, data)
                    self._refresh()

            self.runner(partial(reader, start, size), done, lambda _error: None)

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self.viewport())
        p.fillRect(event.rect(), C("pane"))
        if self._reader is None:
            if self.hasFocus():  # without bytes no cursor shows the focus, so draw a frame
                p.setPen(QPen(C("accent"), 2))
                p.drawRect(self.viewport().rect().adjusted(1, 1, -1, -1))
            return
        m = self._metrics()
        self._shown.selection = (
            self.selection() if self._anchor is not None and self._anchor != self._cursor else (0, 0)
        )
        self._shown.cursor = self._cursor if self.hasFocus() else None
        painter = HexPainter(p, m, self._shown)
        painter.rules(self.viewport().height())
        y = m.head
        for row in range(self._top, min(self._last_row(), self._top + self._rows_on_screen() + 1) + 1):
            base = self.origin + row * ROW_BYTES
            data = self._within_limits(self._pages.get(base, ROW_BYTES), base)
            if all(byte is None for byte in data) and base // PAGE in self._requested_pages:
                painter.waiting(y, base)
            else:
                painter.row(y, base, data)
            y += m.row
        p.fillRect(QRect(0, 0, m.right, m.head - 1), C("pane"))
        painter.rules(m.head)
        painter.head()

    def _within_limits(self, data: list[int | None], base: int) -> list[int | None]:
        start, end = self._pages.low, self._pages.high
        if start <= base and base + ROW_BYTES <= end:
            return data
        return [byte if start <= base + n < end else None for n, byte in enumerate(data)]

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._scroll_to(self._top)

    # ---- pointer and keys --------------------------------------------------------------------------------------------

    def offset_at(self, point: QPointF) -> int | None:
        """Absolute offset of the byte under ``point``."""
        m = self._metrics()
        column_hit = m.column_at(point.x())
        if column_hit is None or point.y() < m.head:
            return None
        offset = self.origin + (self._top + int((point.y() - m.head) // m.row)) * ROW_BYTES + column_hit[0]
        return offset if self._pages.low <= offset < self._pages.high else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        offset = self.offset_at(event.position())
        if event.button() != Qt.MouseButton.LeftButton or offset is None:
            return
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._anchor = self._cursor if self._anchor is None else self._anchor
        else:
            self._anchor = offset
        self._dragging = True
        self._cursor = offset
        if self._anchor == offset:
            self._choose_field_at_cursor()
        self._cursor_moved()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self._dragging:
            return
        offset = self.offset_at(event.position())
        m = self._metrics()
        if event.position().y() > self.viewport().height():
            self._scroll_to(self._top + 1)
        elif event.position().y() < m.head:
            self._scroll_to(self._top - 1)
        if offset is not None and offset != self._cursor:
            self._cursor = offset
            self._cursor_moved()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._dragging = False
        super().mouseReleaseEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._scroll_to(self._top - round(event.angleDelta().y() / 40))
        event.accept()

    def _bar_stepped(self, kind: str, sign: int) -> None:
        rows = self._rows_on_screen()
        step = {"line": 3, "page": rows - 1}.get(kind)
        self._scroll_to(self._top + sign * step if step else (self._last_row() if sign > 0 else self._first_row()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._reader is None:
            super().keyPressEvent(event)
            return
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy("hex")
            return
        if event.matches(QKeySequence.StandardKey.SelectAll):
            self._anchor, self._cursor = self.origin, max(self.origin, self._shown.unit_end - 1)
            self._cursor_moved()
            return
        if event.key() == Qt.Key.Key_F10 and event.modifiers() == Qt.KeyboardModifier.ShiftModifier:
            self._open_menu(self.viewport().mapToGlobal(QPoint(px(40), px(40))))
            return
        if self._is_typed_over(event):
            self.ask_change(event.text())
            return
        target = self._cursor_target(event)
        if target is None:
            super().keyPressEvent(event)
            return
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._anchor = self._cursor if self._anchor is None else self._anchor
        else:
            self._anchor = None
        self._cursor = max(self._pages.low, min(self._pages.high - 1, target))
        if self._anchor is None:
            self._choose_field_at_cursor()
        self._show_offset(self._cursor)
        self._cursor_moved()

    def _is_typed_over(self, event: QKeyEvent) -> bool:
        """Return True if the key is a hexadecimal digit that shall stand in place of the byte under the cursor."""
        modifiers = event.modifiers() & ~(Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier)
        return self.offers_changes and not modifiers and len(event.text()) == 1 and event.text() in hexdigits

    def ask_change(self, digit: str = "") -> None:
        """Ask for other bytes in place of the selected ones."""
        start, end = self.selection()
        if digit and self._anchor is None:  # typed over the byte under the cursor, not over its whole field
            start, end = self._cursor, self._cursor + 1
        self.changeRequested.emit(start, min(end, start + MAX_CHANGE_BYTES), digit)

    def _cursor_target(self, event: QKeyEvent) -> int | None:
        """The offset that a key moves the cursor to."""
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        column = (self._cursor - self.origin) % ROW_BYTES
        page = self._rows_on_screen() * ROW_BYTES
        if control:
            ends = {Qt.Key.Key_Home: self.origin, Qt.Key.Key_End: self._shown.unit_end - 1}
            return ends.get(Qt.Key(event.key()))
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -ROW_BYTES,
            Qt.Key.Key_Down: ROW_BYTES,
            Qt.Key.Key_PageUp: -page,
            Qt.Key.Key_PageDown: page,
            Qt.Key.Key_Home: -column,
            Qt.Key.Key_End: ROW_BYTES - 1 - column,
        }
        step = steps.get(Qt.Key(event.key()))
        return None if step is None else self._cursor + step

    def _choose_field_at_cursor(self) -> None:
        field = self._shown.fields.at(self._cursor - self.origin)
        name = field.name if field is not None else ""
        if name != self._shown.chosen or self._shown.also_chosen:
            self._shown.chosen, self._shown.also_chosen = name, frozenset()
            self.fieldChosen.emit(name)

    def _cursor_moved(self) -> None:
        self.byteChosen.emit(self._cursor)
        self._refresh()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._open_menu(event.globalPos())

    def _open_menu(self, position: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Copy as hex"), lambda: self.copy("hex"))
        menu.addAction(tr("Copy as text"), lambda: self.copy("text"))
        menu.addAction(tr("Copy as C array"), lambda: self.copy("c"))
        menu.addAction(tr("Copy as Python bytes"), lambda: self.copy("python"))
        menu.addAction(tr("Copy as Base64"), lambda: self.copy("base64"))
        menu.addSeparator()
        if self.offers_changes:
            menu.addAction(tr("Change the bytes…"), self.ask_change)
            menu.addSeparator()
        toggle = menu.addAction(tr("Offsets in hex"), lambda: self.set_hex_offsets(not self._shown.hex_offsets))
        toggle.setCheckable(True)
        toggle.setChecked(self._shown.hex_offsets)
        field = self._shown.fields.at(self._cursor - self.origin)
        if self._fill_menu is not None and field is not None:
            menu.addSeparator()
            self._fill_menu(menu, self._shown.chosen or field.name)
        menu.popup(position)

    # ---- accessibility -----------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Redraw, and describe the byte under the cursor for screen readers."""
        self.setAccessibleDescription(self.spoken())
        self.viewport().update()

    def spoken(self) -> str:
        """Describe the cursor, ``byte 4 of bodyCRC, 0x41, offset 81,604,377,373``, and the length of a selection."""
        if self._reader is None:
            return ""
        byte = self._pages.get(self._cursor, 1)[0]
        field = self._shown.fields.at(self._cursor - self.origin)
        value = "…" if byte is None else f"0x{byte:02X}"
        if field is not None:
            number = self._cursor - self.origin - field.position + 1
            text = tr(
                "byte {number} of {field}, {value}, offset {offset:,}",
                number=number,
                field=field.label,
                value=value,
                offset=self._cursor,
            )
        else:
            text = tr("byte {value}, offset {offset:,}", value=value, offset=self._cursor)
        old_value = self._old_value(self._cursor)
        if old_value:
            text += f", {old_value}"
        start, end = self.selection()
        if self._anchor is not None and self._anchor != self._cursor:
            text += ", " + tr_plural("{n:,} byte selected", "{n:,} bytes selected", n=end - start)
        return text
