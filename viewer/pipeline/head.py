"""The chosen job: its name, when and where it runs, its figures, and its stages."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.theme import follow, px
from viewer.pipeline.job_rows import STANDINGS
from viewer.pipeline.stages import StageStrip
from viewer.pipeline.state import JobState
from viewer.pipeline.words import card_words, figures, note, title
from viewer.widgets.basics import Button, Chip, Hairline, Label, Link, PaneHead, Paper

COLUMNS = 6


class Figures(Paper):
    """Six figures side by side."""

    def __init__(self) -> None:
        super().__init__("pane", ("bottom",))
        self.setObjectName("pipeline.figures")
        self.setAccessibleName(tr("Figures of the job"))
        self._grid = QGridLayout(self)
        self._grid.setHorizontalSpacing(px(8))
        self._grid.setVerticalSpacing(px(2))
        self._labels: list[tuple[Label, Label, Label]] = []
        for at in range(COLUMNS):
            labels = (Label("", 12, "text2"), Label("", 18, "text", 600), Label("", 12, "text3"))
            line = QWidget()
            inner = QGridLayout(line)
            inner.setContentsMargins(0, 0, 0, 0)
            inner.setHorizontalSpacing(px(6))
            inner.addWidget(labels[1], 0, 0)
            inner.addWidget(labels[2], 0, 1)
            inner.setColumnStretch(2, 1)
            self._grid.addWidget(labels[0], 0, at)
            self._grid.addWidget(line, 1, at)
            self._grid.setColumnStretch(at, 1)
            self._labels.append(labels)
        self._fit()
        follow(self, self._fit)

    def show_figures(self, found: list[tuple[str, str, str]]) -> None:
        """Name, value and unit of each."""
        for labels, texts in zip(self._labels, found, strict=True):
            for label, text in zip(labels, texts, strict=True):
                if label.text() != text:
                    label.setText(text)
        self.setAccessibleDescription("; ".join(" ".join(part for part in one if part) for one in found))

    def texts(self) -> dict[str, str]:
        """Name → value and unit."""
        return {name.text(): f"{value.text()} {unit.text()}".strip() for name, value, unit in self._labels}

    def _fit(self) -> None:
        self._grid.setContentsMargins(px(14), px(8), px(14), px(8))


class JobHead(QWidget):
    """``cancelAsked()`` as the button is pressed."""

    cancelAsked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("pipeline.head")
        self._log = ""
        self.chip = Chip("live", "")
        self.log = Link("")
        self.log.setObjectName("pipeline.log")
        self.log.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(self._log)))
        self.cancel = Button(tr("Cancel"), "pill")
        self.cancel.setObjectName("pipeline.cancel.button")
        self.cancel.clicked.connect(self.cancelAsked)
        self.head = PaneHead("", "", self.log, 4, self.chip, self.cancel)
        self.figures = Figures()
        self.stages = StageStrip(card_words)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in (self.head, self.figures, self.stages, Hairline()):
            box.addWidget(part)

    def show_job(self, job: JobState) -> None:
        """How the job stands."""
        self.head.set_title(title(job))
        self.head.set_note(note(job))
        self._log = job.log_file
        self.log.setText(tr("log: {name}", name=Path(job.log_file).name) if job.log_file else "")
        self.log.setAccessibleName(self.log.text())
        self.log.setToolTip(job.log_file)
        self.log.setVisible(bool(job.log_file))
        part = job.part
        said = tr(job.standing) if not job.running else tr("stopping") if job.stopping else tr("Spark is starting")
        if job.running and job.progress and not job.stopping and part is not None:
            said = f"{part:.0%}".replace("%", " %")
        self.chip.set_chip(STANDINGS[job.standing], said)
        self.cancel.setVisible(job.running)
        word = tr("End now") if job.stopping else tr("Cancel")
        if self.cancel.text() != word:
            self.cancel.setText(word)
            self.cancel.setAccessibleName(word)
        self.figures.show_figures(figures(job))
        self.stages.show_cards(job.cards, str(job.number))
