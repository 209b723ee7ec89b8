"""Power loss panel: three lines (before, what the disk kept, after recovery) and a table that compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.lab.power_loss_words import PowerLossLine, PowerLossView, compare_kind, power_loss_view, waiting_view
from viewer.look.assets import tr
from viewer.look.theme import C, follow, px
from viewer.widgets.basics import Button, Chip, ElidedLine, Hairline, Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, row
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.recovery_line import RecoveryLine

if TYPE_CHECKING:
    from engine.lab.power_loss_report import PowerLossReport

LEGEND = (("disk", "on disk"), ("again", "dispatched again"), ("gone", "gone"), ("zero", "never written"))
LABEL_WIDTH = 176


class Swatch(QWidget):
    """A small square in the colour of a kind of range."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind
        self.setFixedSize(px(12), px(12))
        follow(self, self.update)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Fill the square, with an outline for what is lost."""
        p = QPainter(self)
        role = {"disk": "posLog3", "again": "posBuild", "gone": "errorFill", "zero": "sunken"}[self._kind]
        p.setPen(QPen(C("error" if self._kind == "gone" else role), 1))
        p.setBrush(C(role))
        p.drawRect(0, 0, self.width() - 1, self.height() - 1)


class PowerLossPanel(ThemedPanel):
    """Emits ``powerLossRequested()``, ``recoverRequested()``, ``againRequested()``; the window confirms and acts."""

    powerLossRequested = Signal()
    recoverRequested = Signal()
    againRequested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.recover = Button(tr("Recover"))
        self.recover.setObjectName("lab.recover")
        self.recover.clicked.connect(self.recoverRequested)
        self.again = Button(tr("Recover again"))
        self.again.setObjectName("lab.recoverAgain")
        self.again.setToolTip(tr("Recovers what the disk kept once more, beside the store, and compares"))
        self.again.clicked.connect(self.againRequested)
        self.again.hide()
        self.cut = Button(tr("Cut the power…"), "danger", "plug")
        self.cut.setObjectName("lab.plug")
        self.cut.clicked.connect(self.powerLossRequested)
        legend: list[QWidget | int | None] = []
        for kind, label in LEGEND:
            legend += [Swatch(kind), Label(tr(label), 12, "text2"), 6]
        self._legend = row(*legend, gap=5)
        note = tr("as a power loss would: only what was flushed is kept · not to scale")
        self.head = PaneHead(tr("Cut the power"), note, self._legend, self.recover, self.again, self.cut)
        self._names: list[Label] = []
        self._notes: list[ElidedLine] = []
        self.lines: list[RecoveryLine] = []
        parts = []
        for number, name in enumerate((tr("Before"), tr("What the disk kept"), tr("After recovery"))):
            title, about, line = (
                Label(name, 13, "text", 600),
                ElidedLine("", 12, "text2"),
                RecoveryLine(f"lab.plug.line.{number}", name, 18),
            )
            label_column = column(title, about, None, gap=0)
            label_column.setFixedWidth(px(LABEL_WIDTH))
            self._names.append(title)
            self._notes.append(about)
            self.lines.append(line)
            strip = row(label_column, line, gap=8)
            strip.box.setAlignment(line, Qt.AlignmentFlag.AlignVCenter)
            strip.box.setStretch(1, 1)
            parts.append(strip)
        self._strips = column(*parts, gap=2, margins=(14, 4, 14, 4))
        self._chip = Chip("warn", "")
        self._chip.hide()
        self.table = RecordView("lab.comparison", compare_kind())
        self.table.setAccessibleName(tr("Before, kept and after compared"))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in (self.head, self._strips, Hairline(), self.table, self.table.strip):
            box.addWidget(part)
        box.setStretch(3, 1)
        self.table.setMinimumHeight(px(26 + 24 * 3))
        self.show_view(waiting_view())

    def show_able(self, *, can_cut: bool, recover: bool, recover_again: bool = False) -> None:
        """Enable the commands that are possible now; a recovered store can be recovered again."""
        self.cut.setEnabled(can_cut)
        self.recover.setEnabled(recover)
        self.again.setEnabled(recover_again)

    def show_report(self, report: PowerLossReport | None) -> None:
        """Show the result of a power loss, None before one."""
        self.show_view(waiting_view() if report is None else power_loss_view(report))
        done = report is not None and report.state_after is not None
        self.again.setVisible(done)
        self.recover.setVisible(not done)

    def show_view(self, view: PowerLossView) -> None:
        """Show these lines and rows."""
        for number, line in enumerate(view.lines):
            self._show_line(number, line)
        self.table.set_rows(list(view.rows))
        self.table.set_state(None if view.rows else State("empty", view.empty_text))

    def _show_line(self, number: int, line: PowerLossLine) -> None:
        self._notes[number].setText(line.note)
        self.lines[number].show_parts(line.parts, line.flags)

    def set_slim(self, slim: bool) -> None:
        """Hide the legend in narrow windows."""
        self._legend.setVisible(not slim)

    def retheme(self) -> None:
        """Apply colours, fonts and zoom."""
        self.table.refresh_look()
