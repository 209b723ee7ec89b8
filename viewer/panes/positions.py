"""Positions of a store on disk: the ruler, the same over time, what lags behind, and what the next start would do.

A store at rest is drawn by its store times; where it grows, each look is a sample and the plots show the last
minutes. A position that files cannot tell is listed with the reason and never drawn as something else.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from viewer.assets import tr, words
from viewer.bridge import places
from viewer.bridge.places import Place
from viewer.bridge.recovery_job import RecoveryJob, recovery_of
from viewer.bridge.store_session import StoreSession
from viewer.models.columns import Column, RecordKind, number_column, text_column
from viewer.models.formats import clock, full_moment, size
from viewer.panes import Pane
from viewer.panes.copying import command_copier, table_commands
from viewer.panes.plan_words import headline, plan_rows, release_name
from viewer.panes.position_facts import Look, PositionRow, look, rows, ruler_view
from viewer.panes.position_plots import draw_gaps, draw_positions
from viewer.theme import px
from viewer.widgets.facts import Fact, Facts
from viewer.widgets.kit import Button, Chip, Hairline, Label, PaneHead, Paper, column, fill, row, splitter
from viewer.widgets.live_plot import LivePlot
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.ruler import Ruler

SAMPLES = 1800
QT_FIRST = ("PySide6.QtSvg", "PySide6.QtTest", "PySide6.QtOpenGLWidgets")
LIVE_FOR = 30.0
"""Seconds without growth after which the store counts as at rest again."""


def position_kind() -> RecordKind:
    """The list of positions."""
    columns = (
        Column("role", "", 24, lambda _: "■", lambda row: row.role, tone=lambda row: row.role, filterable=False),
        text_column("name", words("Position"), 140),
        number_column("offset", words("Offset"), 112, jump=_unit_place),
        Column("behind", words("Behind wrote"), 104, _behind, lambda row: row.behind, right=True, mono=True,
               tone=lambda row: "warn" if (row.behind or 0) < 0 else "text2",
               tip=lambda row: "" if row.behind is None else f"{row.behind:,} B"),
    )  # fmt: skip
    return RecordKind("position", columns, verdict=lambda row: row.sentence, record=_record, command=_command)


class PositionsPane(Pane):
    """The view of the positions; it needs the width, the tree steps aside."""

    view_id = "positions"
    title = "Positions"
    wants_tree = False

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._seen: Look | None = None
        self._samples: deque[Look] = deque(maxlen=SAMPLES)
        self._plan: RecoveryJob | None = None
        self._looking = False
        self._plots_ready = self._late = False
        self._build()

    def _build(self) -> None:
        self.ruler = Ruler()
        self.ruler.offset_chosen.connect(lambda offset: self.placeRequested.emit(places.log(offset)))
        self.plot = LivePlot("positions.plot", tr("Positions"))
        self.gaps = LivePlot("positions.gaps", tr("Gaps"))
        left = Paper()
        box = QVBoxLayout(left)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        fill(box, (self.ruler, splitter(True, (self.plot, 300), (self.gaps, 220))))
        box.setStretch(1, 1)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(self._build_side())
        scroll.setMinimumWidth(px(340))
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(splitter(False, (left, 900), (scroll, 372)))

    def _build_side(self) -> QWidget:
        self._live = Chip("live", tr("growing"))
        self._live.hide()
        self._now_head = PaneHead(tr("Now"), "", self._live)
        self.now = RecordView("positions.now", position_kind())
        self.now.setAccessibleName(tr("Every position"))
        self.now.placeRequested.connect(self.placeRequested)
        self.now.rowChosen.connect(self._row_chosen)
        self._how = Label("", 12, "text2", wrap=True, select=True)
        self._how.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._unknown = Facts(92)
        self._unknown_head = PaneHead(tr("Not in the files"), tr("and why"))
        self._plan_head = PaneHead(tr("If a broker started now"))
        self._plan_chips = row(gap=8)
        self._plan_facts = Facts(112, notes_below=True)
        self._plan_words = Label("", 12, "text2", wrap=True)
        self._plan_button = Button(tr("Work out the recovery plan"))
        self._plan_button.setObjectName("positions.plan")
        self._plan_button.clicked.connect(lambda: self._plan.ask() if self._plan is not None else None)
        for facts in (self._unknown, self._plan_facts):
            facts.placeRequested.connect(self.placeRequested)
        side = Paper()
        box = QVBoxLayout(side)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in (
            self._now_head, self.now, self.now.strip, column(self._how, margins=(14, 6, 14, 10)), Hairline(),
            self._unknown_head,
            column(self._unknown, margins=(14, 8, 14, 10)), Hairline(), self._plan_head,
            column(self._plan_chips, self._plan_words, row(self._plan_button, None), self._plan_facts, gap=8,
                   margins=(14, 8, 14, 12)),
        ):  # fmt: skip
            box.addWidget(part)
        box.addStretch(1)
        return side

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        super().set_session(session)
        self._seen, self._looking = None, False
        self._samples.clear()
        self.ruler.show_view(None)
        self.ruler.fit()
        self.now.set_rows([])
        self.now.set_state(None)
        self._how.setText("")
        self._unknown.show_facts(())
        self.plot.show_nothing("")
        self.gaps.show_nothing("")
        self._plan = None
        self._show_plan()
        if session is None:
            return
        self._plan = recovery_of(session)
        self._plan.changed.connect(self._plan_changed)
        self.now.copier = command_copier(self.now, str(session.path))
        self.now.set_state(State("loading", tr("Looking at the positions")))
        self._show_plan()
        self._look()

    def show_place(self, place: Place) -> None:
        """The checkpoint's fields are rows of the list."""
        if place.kind == "checkpoint":
            names = [one.key for one in (rows(self._seen) if self._seen is not None else [])]
            if "physicMsgTimestamp" in names:
                self.now.go_to(names.index("physicMsgTimestamp"))

    def refresh(self) -> None:
        """The store has grown: one more look, when somebody looks."""
        self._late = not self.isVisible()
        if not self._late:
            self._look()

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        self.now.refresh_look()

    def commands(self) -> dict[str, Callable[[], object]]:
        """Copying acts on the list; the preview is worked out anew."""
        return {
            **table_commands(self, lambda: self.now, "positions.jsonl"),
            "recovery.preview": lambda: self._plan.ask() if self._plan is not None else None,
        }

    def status(self) -> str:
        """The end of the log, and what lags behind it."""
        if self._seen is None or self._seen.positions.wrote.offset is None:
            return ""
        found = self._seen.positions
        parts = [tr("{n:,} bytes written", n=found.wrote.offset)]
        wrote, dispatched = found.wrote.offset, found.dispatched.offset
        if wrote is not None and dispatched is not None:
            lag = wrote - dispatched
            parts.append(tr("dispatched to the end") if lag <= 0 else tr("dispatch is {size} behind", size=size(lag)))
        parts.append(tr("as of {time}", time=clock(self._seen.at)[:8]))
        return " · ".join(parts)

    def showEvent(self, event: QShowEvent) -> None:
        """The plot library is loaded in a thread when the view is first looked at."""
        super().showEvent(event)
        if self._late:
            self.refresh()
        self._prepare_plots()
        if self._plan is not None and self._plan.unasked:
            self._plan.ask()

    # ---- looking -----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        session = self.session
        if session is None or self._looking:
            return
        self._looking = True

        def done(seen: Look) -> None:
            self._looking = False
            if session is self.session:
                self._show_look(seen)

        def failed(error: Exception) -> None:
            self._looking = False
            if session is self.session:
                self.now.set_state(State("error", str(error)))

        session.jobs.read(lambda: look(session.snapshot, round(time.time() * 1000)), done, failed)

    def _show_look(self, seen: Look) -> None:
        before = self._seen
        self._seen = seen
        if before is None or before.positions != seen.positions:
            self._samples.append(seen)
        chosen = self.now.current_row()
        listed = rows(seen)
        self.now.set_rows(listed)
        self.now.set_state(None if seen.files else State("empty", tr("The store has no commit log.")))
        self.now.setFixedHeight(px(26 + 24 * len(listed) + 14))
        names = [one.key for one in listed]
        self.now.go_to(names.index(chosen.key) if chosen is not None and chosen.key in names else 0)
        self._now_head.set_note(full_moment(seen.at))
        self._live.setVisible(self._growing())
        unknown = [Fact(one.name, one.why, code=False) for one in listed if one.offset is None]
        self._unknown.show_facts(unknown or [Fact("", tr("Every position can be told from the files."), code=False)])
        self._draw()
        if self.isVisible():
            self._prepare_plots()
            if self._plan is not None and self._plan.unasked:
                self._plan.ask()
            self.statusMessage.emit(self.status())

    def _growing(self) -> bool:
        return len(self._samples) > 1 and time.time() * 1000 - self._samples[-1].at < LIVE_FOR * 1000

    def _row_chosen(self, chosen: PositionRow | None) -> None:
        if chosen is None:
            self._how.setText("")
            return
        when = f" · {full_moment(chosen.timestamp)}" if chosen.timestamp else ""
        self._how.setText(f"{chosen.name}: {chosen.sentence}{when}")

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        if self._seen is None:
            return
        plan = self._plan.plan if self._plan is not None else None
        self.ruler.show_view(ruler_view(self._seen, plan) if self._seen.files else None)
        if self._plots_ready:
            samples = list(self._samples) if self._growing() else []
            draw_positions(self.plot, self._seen, samples)
            draw_gaps(self.gaps, self._seen, samples)

    def _prepare_plots(self) -> None:
        session = self.session
        if session is None or self._plots_ready or self._seen is None:
            return

        def done(_module: object) -> None:
            if not self._plots_ready:
                self._plots_ready = True
                self._draw()

        def failed(error: Exception) -> None:
            self.plot.show_nothing(tr("Plots are not available: {error}", error=str(error)))

        for name in QT_FIRST:  # Qt's own modules begin on the loop's thread, the long rest is loaded beside it
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        session.jobs.read(lambda: importlib.import_module("pyqtgraph"), done, failed)

    # ---- the plan ----------------------------------------------------------------------------------------------------

    def _plan_changed(self) -> None:
        self._show_plan()
        self._draw()

    def _show_plan(self) -> None:
        job = self._plan
        layout = self._plan_chips.layout()
        while (item := layout.takeAt(0)) is not None:
            if item.widget() is not None:
                item.widget().deleteLater()
        plan = job.plan if job is not None else None
        able = job is not None and job.possible and not job.running
        self._plan_button.setVisible(able and job is not None and (plan is None or job.stale))
        self._plan_button.setText(tr("Work out the recovery plan") if plan is None else tr("Work it out again"))
        self._plan_words.setText(_plan_state(job))
        self._plan_words.setVisible(bool(self._plan_words.text()))
        self._plan_head.set_note(release_name(plan) if plan is not None else "")
        if plan is None:
            self._plan_facts.show_facts(())
            return
        for shape, said in headline(plan):
            layout.addWidget(Chip(shape, said))
        layout.addStretch(1)
        self._plan_facts.show_facts(
            [Fact(one.what, one.value or one.why, one.why if one.value else "", place=one.place, code=bool(one.value))
             for one in plan_rows(plan)]
        )  # fmt: skip


def _plan_state(job: RecoveryJob | None) -> str:
    if job is None:
        return ""
    if not job.possible:
        return tr("Recovery needs a whole store; this is a commit log by itself.")
    if job.running:
        return tr("Reading as recovery would …")
    if job.error:
        return job.error
    if job.plan is None:
        return tr("Recovery reads the log from its start file on; nothing is changed.")
    return tr("As of {time}; the store has grown since.", time=clock(round(job.at * 1000))[:8]) if job.stale else ""


def _unit_place(one: PositionRow) -> Place | None:
    return places.log(one.offset) if one.offset is not None else None


def _behind(one: PositionRow) -> str:
    if one.offset is None:
        return tr("not known")
    if one.behind is None:
        return ""
    if one.behind < 0:
        return tr("{size} beyond", size=size(-one.behind))
    return "=" if one.behind == 0 else size(one.behind)


def _record(one: PositionRow) -> dict[str, object]:
    found: dict[str, object] = {"position": one.key, "offset": one.offset}
    return found | ({"why": one.why} if one.offset is None else {"how": one.how})


def _command(_one: PositionRow) -> list[str]:
    return ["storescope", "positions", "STORE", "--json"]
