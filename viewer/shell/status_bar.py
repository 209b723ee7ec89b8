"""The status bar: findings by severity, a sentence, running jobs with bar and cancel, the zone, the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QStatusBar, QWidget

from viewer.look.assets import tr
from viewer.look.theme import C, follow, px, ui
from viewer.widgets.basics import Chip, ElidedLine, Label, Progress, ToolButton
from viewer.widgets.boxes import row
from viewer.widgets.paint import mark

SHOWN_JOBS, SHOWN_JOBS_FOLDED = 2, 1


class Counters(QWidget):
    """The number of findings by severity, if above zero. A click leads to them."""

    clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("status.findings")
        self._counts: dict[str, int] = {}
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        follow(self, self._fit)
        self._fit()

    def set_counts(self, counts: Mapping[str, int]) -> None:
        """Set the number of errors, warnings and notes."""
        self._counts = {kind: counts.get(kind, 0) for kind in ("error", "warn", "note") if counts.get(kind, 0)}
        titles = {"error": tr("errors"), "warn": tr("warnings"), "note": tr("notes")}
        self.setAccessibleName(
            ", ".join(f"{n} {titles[kind]}" for kind, n in self._counts.items()) or tr("no findings")
        )
        self._fit()

    def _widths(self) -> list[int]:
        metrics = QFontMetrics(ui(12, 600))
        return [px(17) + metrics.horizontalAdvance(f"{n:,}") + px(10) for n in self._counts.values()]

    def _fit(self) -> None:
        self.setFixedSize(sum(self._widths()), px(20))
        self.setVisible(bool(self._counts))
        self.update()

    def sizeHint(self) -> QSize:
        """Return a width that fits the numbers."""
        return QSize(sum(self._widths()), px(20))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint marks and numbers side by side."""
        p = QPainter(self)
        x = 0
        for (kind, count), width in zip(self._counts.items(), self._widths(), strict=True):
            mark(p, kind, QPointF(x + px(7), self.height() / 2 + 0.5), 4.5 * px(100) / 100)
            p.setFont(ui(12, 600))
            p.setPen(C(kind))
            p.drawText(QRect(x + px(17), 0, width, self.height()), int(Qt.AlignmentFlag.AlignVCenter), f"{count:,}")
            x += width

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        """Go to the findings."""
        self.clicked.emit()


class JobLine(QWidget):
    """A job in the bar: title, progress, cancel button."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        super().__init__()
        self.words = Label("", 12, "text2")
        self.bar = Progress(120)
        self.stop = ToolButton("close", tr("Stop this work"))
        self.stop.setFixedSize(px(22), px(22))
        self.stop.clicked.connect(lambda _on: cancel())
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(px(6))
        for part in (self.words, self.bar, self.stop):
            layout.addWidget(part)

    def show_job(self, title: str, note: str, part: float | None) -> None:
        """Show the state of the job."""
        text = f"{title}: {note}" if note else title
        self.words.setText(text)
        self.bar.set_part(part)
        percent = "" if part is None else f", {part:.0%}"
        self.setAccessibleName(f"{text}{percent}")


class JobList(QWidget):
    """The running jobs: the newest two in full, the others as a number. Half a screen has room for one."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("jobs.list")
        self.setAccessibleName(tr("Work under way"))
        self._lines: dict[int, JobLine] = {}
        self._jobs: Sequence[Any] = ()
        self._folded = False
        self._more = Label("", 12, "text3")
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(px(14))
        self._layout.addWidget(self._more)
        self._more.hide()
        self.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)

    def show_jobs(self, jobs: Sequence[Any]) -> None:
        """``jobs``: number, title, note, part, cancel."""
        self._jobs = jobs
        shown = {job.number: job for job in jobs[-(SHOWN_JOBS_FOLDED if self._folded else SHOWN_JOBS) :]}
        for number in [number for number in self._lines if number not in shown]:
            line = self._lines.pop(number)
            self._layout.removeWidget(line)
            line.hide()
            line.deleteLater()
        for number, job in shown.items():
            if number not in self._lines:
                line = self._lines[number] = JobLine(job.cancel)
                self._layout.addWidget(line)
            self._lines[number].show_job(job.title, job.note, job.part)
        left_out = len(jobs) - len(shown)
        self._more.setText(tr("and {n} more", n=left_out) if left_out else "")
        self._more.setVisible(left_out > 0)

    def set_folded(self, on: bool) -> None:
        """Show the newest job only, in half a screen."""
        if on != self._folded:
            self._folded = on
            self.show_jobs(self._jobs)


class StatusStrip(QStatusBar):
    """The whole bar, 28 px high."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("status")
        self.setSizeGripEnabled(False)
        self.counters = Counters()
        self.message = ElidedLine("", 12, "text2")
        self._grown = ""
        self.message.setObjectName("status.message")
        self.message.setAccessibleName(tr("Status"))
        self.message.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.jobs = JobList()
        self.zone = Label("", 12, "text3")
        self.zone.setObjectName("status.zone")
        self.format = Label("", 12, "text3")
        self.format.setObjectName("status.format")
        self.unread = Chip("unread", "")
        self.unread.setObjectName("status.unread")
        self.unread.hide()
        self.config = Chip("note", "")
        self.config.setObjectName("status.config")
        self.config.setCursor(Qt.CursorShape.PointingHandCursor)
        self.config.hide()
        self.addWidget(row(self.counters, self.unread, self.config, self.message, gap=6, margins=(14, 0, 0, 0)), 1)
        self.addPermanentWidget(self.jobs)
        self._store = row(self.zone, self.format, gap=14, margins=(8, 0, 14, 0))
        self.addPermanentWidget(self._store)
        self._fit()
        follow(self, self._fit)

    def set_folded(self, on: bool) -> None:
        """Leave out the zone and the format in half a screen: the sentence and the jobs need the width."""
        self._store.setVisible(not on)
        self.jobs.set_folded(on)

    def say(self, words: str) -> None:
        """Show a sentence."""
        self.message.setText(words)
        self.message.setAccessibleDescription(words)

    def set_unread(self, words: str) -> None:
        """Show how much of the store could not be read, beside every sentence. Hidden if all could be read."""
        self.unread.set_chip("unread", words)
        self.unread.setVisible(bool(words))

    def set_config(self, words: str, file: str = "") -> None:
        """Show the broker's configuration that the store is read with, or nothing if there is none."""
        self.config.set_chip("note", words)
        self.config.setToolTip(tr("{file}: click to read the store without it", file=file) if words else "")
        self.config.setVisible(bool(words))

    def say_anew(self, words: str) -> None:
        """Update the figures of the shown sentence. Another sentence is left alone."""
        head = self.message.text().partition(" · ")[0]
        if head in {"", words.partition(" · ")[0], self._grown.partition(" · ")[0]}:
            self._grown = words
            self.say(words)

    def _fit(self) -> None:
        self.setFixedHeight(px(28))
