"""The find line: the text to find and its options, buttons for the next and the previous hit, and the result.

Find goes to the next hit and leaves the rows as they are. The filter line above reduces the rows instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QSizePolicy, QWidget

from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.look.theme import C, follow, px, ui
from viewer.widgets.basics import Button, ElidedLine, Field, ToolButton
from viewer.widgets.choices import TickBox
from viewer.widgets.record_state import unread_of
from viewer.widgets.row_table import RowTable
from viewer.widgets.row_window import Bounds
from viewer.widgets.search_term import KINDS, InvalidSearch, Kind, SearchTerm
from viewer.widgets.word_tabs import WordTabs

NAMES = {"text": words("Text"), "hex": words("Bytes"), "regex": words("Regex"), "number": words("Numbers")}
HINTS = {
    "text": words("Find: any text"),
    "hex": words("Find: DA A3 20 A7, ?? for any byte"),
    "regex": words("Find: SO-[0-9]+"),
    "number": words("Find: 42, 0x2A or 10..20"),
}


class FindLine(QWidget):
    """Emits ``hitRequested(step)`` for the next hit (1) or the previous one (−1), ``stopped()`` and ``closed()``."""

    hitRequested = Signal(object)
    stopped = Signal()
    closed = Signal()

    def __init__(
        self,
        name: str = "find",
        kinds: Sequence[Kind] = KINDS,
        parent: QWidget | None = None,
        used: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """``used`` returns the texts that were looked for before, newest first."""
        super().__init__(parent)
        self.setObjectName(f"{name}.line")
        self._used = used
        self._leaf = -1
        self.field = Field(tr(HINTS[kinds[0]]), code=True, icon_name="search")
        self.field.setObjectName(f"{name}.field")
        self.field.setAccessibleName(tr("Find"))
        self.kinds = WordTabs(f"{name}.kind", [(kind, tr(NAMES[kind])) for kind in kinds])
        self.case = self._box(f"{name}.case", tr("Aa"), tr("Match the case of letters"))
        self.bodies = self._box(f"{name}.bodies", tr("unpacked bodies"), tr("Search compressed bodies too"))
        self.bodies.setChecked(True)
        self.inside = self._box(f"{name}.inside", tr("in the selection"), tr("Show only the chosen rows"))
        self.inside.hide()
        self.before = self._tool("back", f"{name}.before", tr("Find previous"), "Shift+F3")
        self.next = self._tool("forward", f"{name}.next", tr("Find next"), "F3")
        self.stop = Button(tr("Stop"), "flat")
        self.stop.setObjectName(f"{name}.stop")
        self.result = ElidedLine("", 12, "text3", middle=True)  # the number of the hit and its field stand at the ends
        self.result.setObjectName(f"{name}.result")
        self.result.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.close_tool = self._tool("close", f"{name}.close", tr("Close the find line"), "Esc")
        self._lay_out(simple="hex" not in kinds)
        self._table: RowTable | None = None
        self._bounds: Bounds | None = None
        self.inside.toggled.connect(lambda _on: self._hold())
        self.field.installEventFilter(self)
        self.field.textEdited.connect(lambda _text: self._checked())
        self.kinds.chosen.connect(self._kind_chosen)
        self.before.clicked.connect(lambda: self.hitRequested.emit(-1))
        self.next.clicked.connect(lambda: self.hitRequested.emit(1))
        self.stop.clicked.connect(self.stopped)
        self.close_tool.clicked.connect(self.closed)
        self.set_running(False)
        self._fit()
        follow(self, self._fit)

    def _lay_out(self, *, simple: bool) -> None:
        self._line = QHBoxLayout(self)
        self._line.setSpacing(10)
        self.bodies.setVisible(not simple)
        for part, room in (
            (self.field, 3),
            (self.kinds, 0),
            (self.case, 0),
            (self.bodies, 0),
            (self.inside, 0),
            (self.before, 0),
            (self.next, 0),
            (self.stop, 0),
            (self.result, 7),
            (self.close_tool, 0),
        ):
            self._line.addWidget(part, room)

    @staticmethod
    def _box(name: str, text: str, tip: str) -> QCheckBox:
        box = TickBox(text)
        box.setObjectName(name)
        box.setAccessibleName(tip)
        box.setToolTip(tip)
        return box

    @staticmethod
    def _tool(icon: str, name: str, tip: str, keys: str) -> ToolButton:
        tool = ToolButton(icon, f"{tip}   {keys}")
        tool.setObjectName(name)
        tool.setAccessibleName(tip)
        return tool

    # ---- search term and result --------------------------------------------------------------------------------------

    def sought(self) -> SearchTerm | None:
        """The search term; None if it is invalid, and then the reason is shown."""
        kind: Kind = self.kinds.key  # type: ignore[assignment]
        term = SearchTerm(kind, self.field.text(), self.case.isChecked(), self.bodies.isChecked())
        try:
            term.check()
        except InvalidSearch as error:
            self.say(str(error), "error")
            return None
        self._mark("")
        return term

    def say(self, text: str, state: str = "") -> None:
        """Show the result. ``state`` is ``error`` (a red field), ``ok`` for a hit, or ``warn`` when nothing was
        found. With ``warn`` the text also says how much of the store could not be read.
        """
        text = engine_words(text)
        if state == "warn" and (unread := unread_of(self)):
            text = f"{text} · " + tr("Not for certain: {unread}", unread=unread)
        self.result.setText(text)
        self.result.setAccessibleName(text)
        self.result.set_role({"error": "error", "warn": "warn", "ok": "text2"}.get(state, "text3"))
        self._mark("error" if state == "error" else "")

    def use_span(self, table: RowTable) -> None:
        """Offer to search only the chosen rows of ``table`` if more than one is chosen. A new selection is used at
        once.
        """
        self._table, bounds = table, table.chosen_span()
        if bounds == self._bounds or (bounds is None and not self.inside.isChecked()):
            return
        self._bounds = bounds
        self.inside.setVisible(bounds is not None)
        self.inside.setChecked(bounds is not None)
        self._hold()

    def leave_span(self) -> None:
        """Search all rows again."""
        self._bounds = None
        self.inside.setChecked(False)
        self.inside.hide()

    def span(self) -> Bounds | None:
        """Positions of the first and the last row to search; None for all rows."""
        return self._bounds if self.inside.isChecked() else None

    def _hold(self) -> None:
        """Keep the selected rows while the box is ticked, even when a hit moves the selection."""
        if self._table is not None:
            self._table.span.hold(self.span())
            self._table.viewport().update()

    def set_running(self, on: bool) -> None:
        """Show the Stop button while a search runs."""
        self.stop.setVisible(on)

    def focus(self) -> None:
        """Show the line and select its text."""
        self.show()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    # ---- parts -------------------------------------------------------------------------------------------------------

    def _checked(self) -> None:
        self._leaf = -1
        if self.field.text():
            self.result.setText("")
            self.sought()
        else:
            self.say("")

    def _kind_chosen(self, kind: str) -> None:
        self.field.setPlaceholderText(tr(HINTS[kind]))
        self.case.setEnabled(kind in {"text", "regex"})
        self.bodies.setEnabled(kind != "number")
        self._checked()

    def _mark(self, state: str) -> None:
        if self.field.property("state") != state:
            self.field.setProperty("state", state)
            self.field.style().unpolish(self.field)
            self.field.style().polish(self.field)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the field's keys: Enter finds the next hit, Shift+Enter the previous one, Escape closes, arrows go
        through earlier terms.
        """
        if watched is self.field and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            key = event.key()
            if key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                self.hitRequested.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
                return True
            if key == Qt.Key.Key_Escape:
                self.closed.emit()
                return True
            if key in {Qt.Key.Key_Up, Qt.Key.Key_Down}:
                used = list(self._used())
                self._leaf = max(-1, min(len(used) - 1, self._leaf + (1 if key == Qt.Key.Key_Up else -1)))
                self.field.setText(used[self._leaf] if self._leaf >= 0 else "")
                return True
        return bool(super().eventFilter(watched, event))

    def _fit(self) -> None:
        self.setFixedHeight(px(40))
        self.field.setFixedHeight(px(28))
        self.field.setMinimumWidth(px(180))
        for box in (self.case, self.bodies, self.inside):
            box.setFont(ui(12))
        self._line.setContentsMargins(px(12), px(6), px(10), px(6))

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(self.rect(), C("pane"))
        p.fillRect(0, self.height() - 1, self.width(), 1, C("hair"))
