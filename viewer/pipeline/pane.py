"""The Pipeline view: jobs over whole stores and fleets on Spark, each in its own process, and their results.

The left column starts jobs and lists those of this session. The right side shows the selected one: head, figures,
stages, and below them its tables, bytes as areas, and rates over time. Nothing of Spark is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QStackedWidget, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.theme import follow, px
from viewer.look.topic_colours import TopicColours
from viewer.pane import Pane
from viewer.pane.exporting import ask_export
from viewer.pane.table_commands import table_commands
from viewer.pipeline.form import JobForm
from viewer.pipeline.job_rows import STATUS_MARKS, JobsView
from viewer.pipeline.rates import RatesPlot
from viewer.pipeline.request import JobRequest
from viewer.pipeline.results import ResultPanel
from viewer.pipeline.stages import StageStrip
from viewer.pipeline.state import JobState
from viewer.pipeline.stats_figures import GROUPINGS, byte_areas, rates, topics_by_bytes
from viewer.pipeline.words import card_words, figures, job_status, job_words, note, title
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.basics import Button, Chip, Glyph, Hairline, Label, Link, PaneHead, ThemedPanel, ToolButton
from viewer.widgets.boxes import column, row, scrolling, splitter, stacked
from viewer.widgets.record_view import RecordView
from viewer.widgets.treemap import Treemap
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from viewer.pipeline.jobs import PipelineRuns
    from viewer.runtime.store_session import StoreSession


LEFT, SLIM_LEFT, SLIM_BELOW = 320, 268, 1300


class PipelinePane(Pane):
    """The Pipeline view.

    Emits ``besideRequested(store, place)`` to open a store in a window of its own, ``compareRequested(store)`` to
    compare one with the open store.
    """

    besideRequested = Signal(str, str)
    compareRequested = Signal(str)
    commandsChanged = Signal()

    wants_tree = False

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("pipeline.pane")
        self.runs: PipelineRuns | None = None
        self.job: JobState | None = None
        self._dragged = False
        self._drawn: tuple[object, ...] = ()
        self._colours: TopicColours | None = None
        """Those of another store than the open one."""
        self._build()

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.form = JobForm()
        self.form.runRequested.connect(self.run)
        self.form.copyRequested.connect(self._copy)
        self.list = JobsView(job_words)
        self.list.chosen.connect(self.show_job)
        clear = ToolButton("close", tr("Take the jobs that have ended from the list"))
        clear.setObjectName("pipeline.clear")
        clear.clicked.connect(lambda: self.runs.forget_ended() if self.runs is not None else None)
        self.jobs_head = PaneHead(tr("Jobs"), "", clear)
        self._left = splitter(True, (scrolling(self.form), 330), (stacked(self.jobs_head, self.list), 300))
        self.head = JobHead()
        self.head.cancelRequested.connect(self.cancel)
        self.results, self.aside = ResultPanel("pipeline.results"), ResultPanel("pipeline.aside")
        self.aside.says_more = False
        for panel in (self.results, self.aside):
            panel.placeInStoreRequested.connect(self._follow)
            panel.exportRequested.connect(lambda panel=panel: ask_export(self, panel.table, panel.export_name()))
            panel.rerunRequested.connect(self._again)
        self.group = WordTabs("pipeline.areas.group", [(key, tr(label)) for key, label in GROUPINGS])
        self.group.chosen.connect(lambda _key: self._draw())
        self.map = Treemap("pipeline.treemap")
        self.map.areaFollowed.connect(self._area_followed)
        self._areas = stacked(PaneHead(tr("Bytes"), tr("of all units"), self.group), self.map, room=1)
        self.rates = RatesPlot()
        self.rates.measure.chosen.connect(lambda _key: self._draw())
        self.result_buttons = self._build_buttons()
        self._upper = splitter(False, (self.results, 660), (self._areas, 500), (self.aside, 500))
        parts: tuple[tuple[QWidget, int], ...] = ((self.results, 200), (self._areas, 160), (self.aside, 200))
        for part, min_width in parts:
            part.setMinimumSize(px(min_width), px(120))  # else the window could not be made small
        self._lower = splitter(True, (self._upper, 300), (self.rates, 320))
        right = stacked(self.head, self.result_buttons, self._lower, room=2)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty_page())
        self._pages.addWidget(right)
        self._whole = splitter(False, (self._left, LEFT), (self._pages, 1208))
        self._whole.splitterMoved.connect(self._hands_on)
        self._whole.setStretchFactor(0, 0)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self._whole)
        self.lead = self.form.job
        follow(self, self._fit)

    def _build_buttons(self) -> QWidget:
        """Build the buttons for a job's output; hidden while there is none."""
        self.written = Label("", 12, "text2", select=True)
        self.written.setObjectName("pipeline.written")
        self.open_new = Button(tr("Open it in a window of its own"))
        self.open_new.setObjectName("pipeline.open")
        self.open_new.clicked.connect(lambda: self._open_written(beside=False))
        self.open_beside = Button(tr("Compare with this store"))
        self.open_beside.setObjectName("pipeline.beside")
        self.open_beside.clicked.connect(lambda: self._open_written(beside=True))
        bar = ThemedPanel("raised", ("bottom",))
        box = QVBoxLayout(bar)
        box.setContentsMargins(0, 0, 0, 1)
        box.addWidget(row(self.written, None, self.open_new, self.open_beside, gap=8, margins=(14, 6, 10, 6)))
        bar.hide()
        return bar

    def _empty_page(self) -> QWidget:
        words = tr(
            "A job reads whole stores or fleets, in a process of its own: on this machine without Spark (local[*]), or "
            "on a cluster with its master. The window stays free meanwhile."
        )
        label = Label(words, 13, "text2", wrap=True)
        title = Label(tr("No job has run in this session"), 18, "text", 600, wrap=True)
        head = row(Glyph("pipeline", "accent", 28), title, gap=12)
        head.box.setStretch(1, 1)
        inner = column(head, label, gap=12)
        inner.setMaximumWidth(px(560))
        ground = ThemedPanel("pane")
        box = QVBoxLayout(ground)
        box.setContentsMargins(px(24), px(48), px(24), px(24))
        box.addWidget(inner, 0, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        return ground

    def _hands_on(self) -> None:
        self._dragged = True

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_runs(self, runs: PipelineRuns) -> None:
        """The jobs of this window; once."""
        self.runs = runs
        runs.jobsChanged.connect(self._listed)
        runs.jobChanged.connect(self._on_job_changed)
        self._listed()

    def set_session(self, session: StoreSession | None) -> None:
        """Propose the window's store for new jobs. Running jobs continue."""
        super().set_session(session)
        if self.job is not None:
            self._show_written(self.job)
        if session is None:
            return
        self.form.runner = session.jobs.read
        self.form.set_store(str(session.path))

    def show_place(self, place: Place) -> None:
        """Show the view; ``pipeline:verify`` chooses a job in the form."""
        if place.name:
            self.form.choose_job(place.name)

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        self._fit()
        for panel in (self.results, self.aside):
            panel.table.refresh_look()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Narrow windows give the form less."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        slim = self.width() < px(SLIM_BELOW)
        self._show_aside()
        self._left.setMinimumWidth(px(SLIM_LEFT))
        if not self._dragged:
            left_width = px(SLIM_LEFT if slim else LEFT)
            self._whole.setSizes([left_width, max(1, self.width() - left_width)])

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.form.job, self.list, self.results.table, self.map, self.aside.table

    def commands(self) -> dict[str, Callable[[], object]]:
        """Commands for running and stopping, and for the table in front."""
        commands: dict[str, Callable[[], object]] = {
            "pipeline.run": self.form.run_now,
            "pipeline.copy": lambda: self._copy(self.form.job_request()),
        }
        if self.job is not None:
            commands |= table_commands(self, self._table, self.results.export_name())
            if self.job.running:
                commands["pipeline.cancel"] = self.cancel
        return commands

    def _table(self) -> RecordView:
        return self.aside.table if self.aside.table.hasFocus() else self.results.table

    def status(self) -> str:
        """Return the state of the jobs."""
        running = [job for job in self.runs.jobs if job.running] if self.runs is not None else []
        if running:
            return tr("{job} runs in its own process; the window stays free.", job=running[0].request.job)
        if self.job is not None:
            return f"{self.job.request.job}: {job_status(self.job)}"
        return tr("No job runs.")

    # ---- commands ----------------------------------------------------------------------------------------------------

    def run(self, job_request: JobRequest) -> None:
        """Start a job and show it."""
        if self.runs is None:
            return
        job = self.runs.start(job_request)
        self.operationDone.emit(
            "pipeline.run", tr("Run a pipeline job"), {"job": job_request.job}, job_request.command()
        )
        self.show_job(job)

    def cancel(self) -> None:
        """Stop the chosen job; once more: end it at once."""
        if self.runs is not None and self.job is not None and self.job.running:
            self.runs.cancel(self.job)
            self._on_job_changed(self.job)

    def _again(self) -> None:
        if self.job is not None:
            self.run(self.job.request)

    def _copy(self, job_request: JobRequest) -> None:
        QGuiApplication.clipboard().setText(job_request.command())
        self.statusMessage.emit(tr("Copied: {command}", command=job_request.command()))

    def _follow(self, place: object, store: str) -> None:
        """Go to a place of the store in front, or of another one in a window of its own."""
        if not isinstance(place, Place):
            return
        shown = self.aside.job if self.sender() is self.aside else self.job
        if not store and shown is not None and len(shown.request.places) == 1 and "*" not in shown.request.places[0]:
            store = shown.request.places[0]
        if self.session is None or (store and not _same(store, self.session.path)):
            self.besideRequested.emit(store, places.text_of(place))
        else:
            self.placeRequested.emit(place)

    def _area_followed(self, path: tuple[str, ...]) -> None:
        stats = self._stats()
        if stats is None or not path or self.group.key != "statsQueue":
            return
        queue = int(path[1]) if len(path) > 1 and path[1].isdigit() else None
        self._follow(places.queue(path[0], queue), "")

    def _open_written(self, *, beside: bool) -> None:
        if self.job is None:
            return
        path = str(self.job.summary.get("out") or self.job.request.out)
        if beside:
            self.compareRequested.emit(path)
        else:
            self.besideRequested.emit(path, "log" if self.job.request.job == "import" else "queue")

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _listed(self) -> None:
        runs = self.runs
        if runs is None:
            return
        self.list.jobs.set_jobs(runs.jobs)
        running = sum(job.running for job in runs.jobs)
        parts = [tr("{n:,} running", n=running)] if running else []
        ended = len(runs.jobs) - running
        parts += [tr("{n:,} ended", n=ended)] if ended else []
        self.jobs_head.set_note(" · ".join(parts) or tr("none in this session"))
        if self.job is None or all(job is not self.job for job in runs.jobs):
            self.job = runs.jobs[0] if runs.jobs else None
        self._pages.setCurrentIndex(0 if self.job is None else 1)
        if self.job is not None:
            self.show_job(self.job)
        self.commandsChanged.emit()

    def show_job(self, job: JobState) -> None:
        """Bring a job of the list to the front."""
        self.job = job
        self.list.choose(job)
        self._pages.setCurrentIndex(1)
        self._on_job_changed(job)
        self.commandsChanged.emit()

    def _on_job_changed(self, job: JobState) -> None:
        self.list.jobs.changed(job)
        if job is not self.job:
            return
        self.head.show_job(job)
        self.results.show_job(job)
        stats = self._stats()
        counted = stats is not None and (bool(stats.version) or stats.running)
        self._areas.setVisible(stats is job and counted)
        self.rates.setVisible(counted)
        self._show_aside()
        self._show_written(job)
        self._draw()
        if self.isVisible():
            self.statusMessage.emit(self.status())

    def _show_aside(self) -> None:
        """Show the newest statistics beside the results of another job, if there is room for both."""
        stats = self._stats()
        shown = stats is not None and stats is not self.job and self.width() >= px(SLIM_BELOW)
        self.aside.setVisible(shown)
        if shown:
            self.aside.show_job(stats)

    def _show_written(self, job: JobState) -> None:
        done = job.status == "done" and job.request.kind.writes
        self.result_buttons.setVisible(done)
        if done:
            self.written.setText(tr("Written: {path}", path=str(job.summary.get("out") or job.request.out)))
        opens = job.request.job in {"rebuild", "import"}
        self.open_new.setVisible(done and opens)
        self.open_beside.setVisible(done and opens and self.session is not None)

    def _stats(self) -> JobState | None:
        """Return the selected job if it counts messages, else the newest that has; its figures are shown beside."""
        if self.job is not None and self.job.request.job == "stats":
            return self.job
        jobs = self.runs.jobs if self.runs is not None else []
        return next((job for job in jobs if job.request.job == "stats" and job.status == "done"), None)

    @property
    def topic_colours(self) -> TopicColours | None:
        """Return the colours of the store that was counted: equal topic names have equal colours in any store."""
        return self._colours or super().topic_colours

    def _show_colours(self, stats: JobState) -> None:
        session = self.session
        if session is not None and [_same(store, session.path) for store in stats.request.places] == [True]:
            self._colours = None
            session.colours.fill(topics_by_bytes(stats))
            return
        self._colours = TopicColours()
        if session is not None:
            self._colours.follow(session.colours)
        self._colours.offer(topics_by_bytes(stats))

    def _draw(self) -> None:
        stats = self._stats()
        if stats is None:
            return
        picture_key = (stats.number, stats.version, stats.status, self.group.key, self.rates.chosen)
        if picture_key == self._drawn:
            return
        self._drawn = picture_key
        self._show_colours(stats)
        waiting = tr("The results come at the end of the job.") if stats.running else tr("The log holds no message.")
        key = next(grouping for grouping, _ in GROUPINGS if grouping == self.group.key)
        self.map.show_areas(byte_areas(stats, key), waiting)
        self.rates.show_rates(rates(stats, self.rates.chosen), waiting)


def _same(text: str, path: Path) -> bool:
    """Return whether two paths name one store; a directory that holds ``store/`` names that."""
    return Path(text).absolute() in {path.absolute(), path.absolute().parent}


COLUMNS = 6


class Figures(ThemedPanel):
    """Six figures side by side."""

    def __init__(self) -> None:
        super().__init__("pane", ("bottom",))
        self.setObjectName("pipeline.figures")
        self.setAccessibleName(tr("Figures of the job"))
        self._grid = QGridLayout(self)
        self._grid.setHorizontalSpacing(px(8))
        self._grid.setVerticalSpacing(px(2))
        self._labels: list[tuple[Label, Label, Label]] = []
        for column_number in range(COLUMNS):
            labels = (Label("", 12, "text2"), Label("", 18, "text", 600), Label("", 12, "text3"))
            line = QWidget()
            inner = QGridLayout(line)
            inner.setContentsMargins(0, 0, 0, 0)
            inner.setHorizontalSpacing(px(6))
            inner.addWidget(labels[1], 0, 0)
            inner.addWidget(labels[2], 0, 1)
            inner.setColumnStretch(2, 1)
            self._grid.addWidget(labels[0], 0, column_number)
            self._grid.addWidget(line, 1, column_number)
            self._grid.setColumnStretch(column_number, 1)
            self._labels.append(labels)
        self._fit()
        follow(self, self._fit)

    def show_figures(self, figures: list[tuple[str, str, str]]) -> None:
        """Name, value and unit of each."""
        for labels, texts in zip(self._labels, figures, strict=True):
            for label, text in zip(labels, texts, strict=True):
                if label.text() != text:
                    label.setText(text)
        self.setAccessibleDescription(
            "; ".join(" ".join(part for part in texts_of_figure if part) for texts_of_figure in figures)
        )

    def texts(self) -> dict[str, str]:
        """Name → value and unit."""
        return {name.text(): f"{value.text()} {unit.text()}".strip() for name, value, unit in self._labels}

    def _fit(self) -> None:
        self._grid.setContentsMargins(px(14), px(8), px(14), px(8))


class JobHead(QWidget):
    """``cancelRequested()`` as the button is pressed."""

    cancelRequested = Signal()

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
        self.cancel.clicked.connect(self.cancelRequested)
        self.head = PaneHead("", "", self.log, 4, self.chip, self.cancel)
        self.figures = Figures()
        self.stages = StageStrip(card_words)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in (self.head, self.figures, self.stages, Hairline()):
            box.addWidget(part)

    def show_job(self, job: JobState) -> None:
        """Show the state of a job."""
        self.head.set_title(title(job))
        self.head.set_note(note(job))
        self._log = job.log_file
        self.log.setText(tr("log: {name}", name=Path(job.log_file).name) if job.log_file else "")
        self.log.setAccessibleName(self.log.text())
        self.log.setToolTip(job.log_file)
        self.log.setVisible(bool(job.log_file))
        part = job.part
        status_text = tr(job.status) if not job.running else tr("stopping") if job.stopping else tr("Spark is starting")
        if job.running and job.progress and not job.stopping and part is not None:
            status_text = f"{part:.0%}".replace("%", " %")
        self.chip.set_chip(STATUS_MARKS[job.status], status_text)
        self.cancel.setVisible(job.running)
        word = tr("End now") if job.stopping else tr("Cancel")
        if self.cancel.text() != word:
            self.cancel.setText(word)
            self.cancel.setAccessibleName(word)
        self.figures.show_figures(figures(job))
        self.stages.show_cards(job.cards, str(job.number))
