"""Positions of a store on disk: the ruler, the same over time, what lags behind, and what the next start would do.

A store at rest is drawn by its store times; where somebody writes it, ten readings a second are drawn over time, with
what would be lost, marks, a slider, recording and replay.
A position that files cannot tell is listed with the reason and never drawn as something else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from engine.replication.master import SlavePosition
from viewer.look.assets import tr, words
from viewer.look.broken import UnreadableRange
from viewer.look.formats import clock, size
from viewer.look.theme import px
from viewer.pane import Pane
from viewer.pane.plan_words import headline, headline_tip, release_name, without_own_lock
from viewer.pane.plot_library import plot_library
from viewer.pane.position_facts import (
    NAMES,
    ROLES,
    TIME_FLAGS,
    PositionRow,
    gap_list,
    read_positions,
    ruler_view,
    slaves_of,
)
from viewer.pane.table_commands import command_copier, table_commands
from viewer.positions.live import LivePositions
from viewer.positions.live_side import LiveSide, live_commands
from viewer.positions.positions_model import PositionsModel, row_words
from viewer.runtime import places
from viewer.runtime.lab_session import lab_of
from viewer.runtime.places import Place
from viewer.runtime.position_reading import PositionReading
from viewer.runtime.recovery_plan import RecoveryJob, recovery_of
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Chip, Hairline, Label, Link, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, empty, fill, row, splitter, wrapped_row
from viewer.widgets.columns import Column, Record, RecordKind, number_column, text_column
from viewer.widgets.facts import Facts
from viewer.widgets.live_frame import Line
from viewer.widgets.live_plot import Bar, Curve, LivePlot
from viewer.widgets.record_state import State, state_of
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_table import changed_cells
from viewer.widgets.row_window import ListSource
from viewer.widgets.ruler import Ruler

SIDE, NARROW_SIDE = 404, 290
"""Width of the list of positions, and the width of the view below which it is narrower; px at 100 %."""
NARROW = 800


def position_kind(*, live: bool = False) -> RecordKind:
    """Return the table of positions. While a broker writes (``live``), it shows movement in place of lag."""
    behind_column = Column(
        "behind",
        words("Behind wrote"),
        112,
        _behind,
        lambda row: row.behind,
        right=True,
        mono=True,
        tone=lambda row: "warn" if (row.behind or 0) < 0 else "text2",
        tip=lambda row: "" if row.behind is None else f"{row.behind:,} B",
    )
    moves = Column(
        "moves",
        words("Moves"),
        112,
        lambda row: row.moves,
        lambda row: row.moves,
        filterable=False,
        tone=lambda row: "warn" if row.stands else "text2",
        tip=lambda row: row.sentence,
    )
    columns = (
        Column("role", "", 24, lambda _: "■", lambda row: row.role, tone=lambda row: row.role, filterable=False),
        text_column("name", words("Position"), 140),
        number_column("offset", words("Offset"), 112, jump=_unit_place),
        moves if live else behind_column,
    )
    return RecordKind("position", columns, verdict=lambda row: row.sentence, record=_record, command=_command)


class PositionsPane(Pane):
    """The view of the positions. It needs the full width, so the tree is hidden."""

    wants_tree = False

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = PositionsModel()
        self._plan: RecoveryJob | None = None
        self._build()

    def _build(self) -> None:
        self.ruler = Ruler()
        self.ruler.offset_chosen.connect(lambda offset: self.placeRequested.emit(places.log(offset)))
        self.plot = LivePlot("positions.plot", tr("Positions"))
        self.gaps = LivePlot("positions.gaps", tr("Gaps"))
        self.over_time = LivePositions(self.plot, self.gaps, self)
        self.over_time.changed.connect(self._show_live)
        self.over_time.loaded.connect(self._draw_all)
        self.over_time.statusText.connect(self.statusMessage)
        self._live_parts = (self.over_time.below, self.over_time.bar)
        plots_paper = ThemedPanel()
        box = QVBoxLayout(plots_paper)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        plots = splitter(True, (self.plot, 300), (self.gaps, 220), (self.over_time.below, 210))
        fill(box, (self.ruler, plots, self.over_time.bar))
        box.setStretch(1, 1)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(self._build_side())
        self._side_scroll = scroll
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(splitter(False, (plots_paper, 900), (scroll, SIDE)))
        self._show_parts()

    def _build_side(self) -> QWidget:
        self._live = Chip("live", tr("growing"))
        self._live.hide()
        self._now_head = PaneHead(tr("Now"), "", self._live)
        self.now = RecordView("positions.now", position_kind())
        self.now.setAccessibleName(tr("Every position"))
        self.now.placeRequested.connect(self.placeRequested)
        self.now.rowChosen.connect(self._row_chosen)
        self._row_text = Label("", 12, "text2", wrap=True, select=True)
        self._row_text.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.beside = LiveSide(self)
        self._unknown = Facts(92)
        self._unknown_head = PaneHead(tr("Not in the files"), tr("and why"))
        self._plan_head = PaneHead(tr("If a broker started now"))
        self._plan_chips = wrapped_row(gap=8)
        self._plan_words = Label("", 12, "text2", wrap=True)
        self._plan_link = Link(tr("The recovery plan, in Findings"))
        self._plan_link.setObjectName("positions.plan")
        self._plan_link.clicked.connect(lambda: self.placeRequested.emit(places.recovery()))
        self._unknown.placeRequested.connect(self.placeRequested)
        side = ThemedPanel()
        box = QVBoxLayout(side)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in (
            self._now_head,
            self.now,
            self.now.strip,
            column(self._row_text, margins=(14, 6, 14, 10)),
            Hairline(),
            self.beside,
            self._unknown_head,
            column(self._unknown, margins=(14, 8, 14, 10)),
            Hairline(),
            self._plan_head,
            column(self._plan_chips, self._plan_words, row(self._plan_link, None), gap=8, margins=(14, 8, 14, 12)),
        ):
            box.addWidget(part)
        box.addStretch(1)
        return side

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        if self.session is not None:
            self.session.tail.sampled.disconnect(self._on_reading)
        super().set_session(session)
        self.over_time.set_session(session)
        if self.model.live:
            self.now.set_kind(position_kind())
        self.model.forget_store()
        self._show_parts()
        self.ruler.show_view(None)
        self.ruler.fit()
        self.now.set_rows([])
        self.now.set_state(None)
        self._row_text.setText("")
        self._unknown.show_facts(())
        waits = "" if plot_library.loaded else tr("The plots are being loaded …")
        self.plot.show_nothing(waits)
        self.gaps.show_nothing(waits)
        self._plan = None
        self._show_plan()
        if session is None:
            return
        session.tail.sampled.connect(self._on_reading)
        session.findingsChanged.connect(self._show_findings)
        self._plan = recovery_of(session)
        self._plan.changed.connect(self._plan_changed)
        self.now.copier = command_copier(self.now, session.command_line)
        self.now.set_state(State("loading", tr("Looking at the positions")))
        self._show_plan()
        self._read()

    def show_place(self, place: Place) -> None:
        """The checkpoint's fields are rows of the list."""
        if place.kind == "checkpoint":
            index = self.model.index_of("physicMsgTimestamp")
            if index is not None:
                self.now.go_to(index)

    def refresh(self) -> None:
        """The store has grown: take one more reading if the view is visible."""
        if self.model.grow(visible=self.isVisible()):
            self._read()

    def retheme(self) -> None:
        """Apply new colours, fonts or zoom."""
        self.now.refresh_look()
        self.beside.marks.refresh_look()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.ruler, self.now, self.beside.marks

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands: copying acts on the visible list, and the preview is computed again."""
        return {
            **table_commands(
                self, lambda: self.beside.marks if self.beside.marks.hasFocus() else self.now, "positions.jsonl"
            ),
            **live_commands(self, self.over_time, self._fit),
        }

    def _fit(self) -> None:
        """Show the complete range in the ruler and the plots."""
        self.ruler.fit()
        self.over_time.fit()

    def status(self) -> str:
        """Return the words for the status bar: the end of the log, and the largest lag."""
        return self.model.status()

    def showEvent(self, event: QShowEvent) -> None:
        """Load the plot library in a thread when the view is first shown."""
        super().showEvent(event)
        if self.model.is_stale:
            self.refresh()
        self.over_time.prepare()
        if self.model.live:
            self.over_time.show(spread=True)
        if self._plan is not None and self._plan.plans_automatically:
            self._plan.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Make the list of positions narrower beside the plots if the window is narrow."""
        super().resizeEvent(event)
        self._side_scroll.setMinimumWidth(px(SIDE if self.width() >= px(NARROW) else NARROW_SIDE))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space pauses the picture, F shows all of it; a focused button keeps its own Space."""
        if self.model.live and event.key() == Qt.Key.Key_Space:
            self.over_time.pause()
        elif event.key() == Qt.Key.Key_F and not event.modifiers():
            self._fit()
        else:
            super().keyPressEvent(event)

    # ---- looking -----------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        session = self.session
        if session is None or not self.model.begin_reading():
            return

        def done(latest: PositionReading) -> None:
            if session is self.session:
                self.model.end_reading()
                self._show_reading(latest)

        def failed(error: Exception) -> None:
            if session is self.session:
                self.model.end_reading()
                self.now.set_state(State("error", str(error)))

        session.jobs.read(lambda: read_positions(session.snapshot, round(time.time() * 1000)), done, failed)

    def _on_reading(self, latest: PositionReading) -> None:
        """Keep a reading that came, and draw it if the view is visible."""
        session = self.session
        if session is None:
            return
        self.over_time.add(latest)
        if session.tail.live or latest.lab:
            self._go_live()
        if self.model.live and self.over_time.at_end and self.isVisible():
            self.over_time.show(spread=True)
            self._ask_slaves(session, latest)

    def _ask_slaves(self, session: StoreSession, latest: PositionReading) -> None:
        """Ask the broker that writes the log which slaves follow it, once a second."""
        wrote = self.model.begin_slaves(latest, time.monotonic())
        if wrote is None:
            return

        def done(slaves: tuple[SlavePosition, ...]) -> None:
            if session is self.session:
                self.model.take_slaves(slaves)

        def failed(_error: Exception) -> None:
            done(())

        session.jobs.read(lambda: slaves_of(session.snapshot, wrote), done, failed)

    def _show_live(self, latest: PositionReading) -> None:
        """Show the facts beside the plots for the time that these show."""
        self._go_live()
        if self.isVisible():
            self._show_reading(latest)
            self.beside.show_reading(latest, self.over_time)

    def _go_live(self) -> None:
        """Show the live parts from now on: the plots of flushes or rates, the slider, the marks."""
        if not self.model.live:
            self.model.live = True
            self.now.set_kind(position_kind(live=True))
            self._show_parts()

    def _show_parts(self) -> None:
        """Show the plots of flushes or rates, the slider and the marks while a broker writes, else hide them."""
        for part in (*self._live_parts, self.beside):
            part.setVisible(self.model.live)

    def _show_reading(self, latest: PositionReading) -> None:
        is_first = self.model.take(latest, self.over_time.shown)
        listed = self.model.rows
        if not renew_rows(self.now, listed, lambda row: row.key, ("offset",)):
            chosen = self.now.current_row()
            self.now.set_rows(listed)
            self.now.setFixedHeight(px(26 + 24 * len(listed) + 14))
            self.now.go_to((self.model.index_of(chosen.key) if chosen is not None else None) or 0)
        undecoded = self.session is not None and self.session.undecoded_log
        self.now.set_state(None if undecoded else state_of(self.model.table_state()))
        title, note = self.model.head(at_end=self.over_time.at_end)
        self._now_head.set_title(title)
        self._now_head.set_note(note)
        self._live.setVisible(self.model.live)
        self._live.set_chip("live", tr("10 Hz") if self.over_time.at_end else tr("does not move"))
        self._show_unknown()
        self._draw()
        if not self.isVisible():
            return
        self.over_time.prepare()
        if self._plan is not None and self._plan.plans_automatically and (is_first or not self.model.live):
            self._plan.start()
        self.statusMessage.emit(self.status())

    def _show_unknown(self) -> None:
        """Show the positions that no file has, and the missing parts of the log."""
        self._unknown.show_facts(self.model.missing_facts(self._broken()))

    def _broken(self) -> tuple[UnreadableRange, ...]:
        return self.session.broken if self.session is not None else ()

    def _row_chosen(self, chosen: PositionRow | None) -> None:
        self._row_text.setText(row_words(chosen))

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def _draw_all(self) -> None:
        """Draw all plots once the library is loaded: over store time for a store at rest, else of the last minute."""
        if self.model.live:
            self.over_time.show()
        else:
            self._draw()

    def _draw(self) -> None:
        latest = self.model.reading
        if latest is None:
            return
        plan = self._plan.plan if self._plan is not None and not self.model.live else None
        slaves = self.model.slaves if self.model.live and self.over_time.at_end else ()
        self.ruler.show_view(ruler_view(latest, plan, self._broken(), slaves) if latest.files else None)
        if self.over_time.ready and not self.model.live:
            draw_positions(self.plot, latest)
            draw_gaps(self.gaps, latest)

    # ---- the plan ----------------------------------------------------------------------------------------------------

    def _plan_changed(self) -> None:
        self._show_plan()
        self._draw()

    def _show_findings(self) -> None:
        """Hatch the ranges of new findings; a damaged store is not called healthy."""
        self._show_unknown()
        self._plan_changed()

    @property
    def _harmed(self) -> bool:
        return self.session is not None and self.session.harmed

    def _show_plan(self) -> None:
        job = self._plan
        layout = self._plan_chips.box
        empty(layout)
        plan = job.plan if job is not None else None
        lab = self.session is not None and lab_of(self.session.path) is not None
        plan = without_own_lock(plan) if plan is not None and lab else plan
        self._plan_link.setVisible(job is not None and job.possible)
        self._plan_words.setText(_plan_state(job))
        self._plan_words.setVisible(bool(self._plan_words.text()))
        self._plan_head.set_note(release_name(plan) if plan is not None else "")
        if plan is not None:
            for number, (shape, label) in enumerate(headline(plan, harmed=self._harmed)):
                chip = Chip(shape, label)
                chip.setToolTip(headline_tip(plan) if number == 0 else "")
                layout.addWidget(chip)
            layout.addStretch(1)


def _plan_state(job: RecoveryJob | None) -> str:
    if job is None:
        return ""
    if not job.possible:
        return job.why_impossible
    if job.running:
        return tr("Reading as recovery would …")
    if job.error:
        return job.error
    if job.plan is None:
        return tr("Recovery reads the log from its start file on; nothing is changed.")
    return (
        tr("As of {time}; the store has grown since.", time=clock(round(job.planned_at * 1000))[:8])
        if job.stale
        else ""
    )


def _unit_place(row: PositionRow) -> Place | None:
    return places.log(row.offset) if row.offset is not None else None


def _behind(row: PositionRow) -> str:
    if row.offset is None:
        return tr("not known")
    if row.behind is None:
        return ""
    return "=" if row.behind == 0 else _gap_words(row.behind)


def _record(row: PositionRow) -> dict[str, object]:
    document: dict[str, object] = {"position": row.key, "offset": row.offset}
    return document | ({"why": row.why} if row.offset is None else {"how": row.source})


def _command(_one: PositionRow) -> list[str]:
    return ["storescope", "positions", "STORE", "--json"]


def renew_rows(
    view: RecordView, rows: Sequence[Record], key: Callable[[Record], object], glowing: Sequence[str] = ()
) -> bool:
    """Replace the rows of ``view`` by ``rows`` if these are the same ones by ``key``: choice and scroll position
    stay, changed cells of the columns ``glowing`` glow. Returns False if other rows are there, which must be set.
    """
    source = view.source
    if not isinstance(source, ListSource) or view.loading:
        return False
    shown = view.table.rows
    if len(shown) != len(rows) or len(source.rows) != len(rows) or not rows:
        return False
    rows_by_key = {key(row): row for row in rows}
    if {key(row) for row in shown} != rows_by_key.keys():
        return False
    changed = False
    for number, old_row in enumerate(list(shown)):
        new_row = rows_by_key[key(old_row)]
        if new_row == old_row:
            continue
        changed = True
        cells = changed_cells(view.kind, old_row, new_row, glowing)
        view.replace_row(number, new_row)
        if cells:
            view.glow.add(view.row_key(number), cells)
    if changed:
        view.viewport().update()
    return True


MIB = 1 << 20


def draw_positions(plot: LivePlot, latest: PositionReading) -> None:
    """Draw the end of the log over store time."""
    minimum = latest.positions.min.offset or 0
    if len(latest.heads) < 2:
        plot.set_title(tr("Positions"))
        if latest.positions.wrote.offset is None:
            plot.show_nothing(tr("Not all of the log can be read: there is nothing to draw over time."))
            return
        plot.show_nothing(tr("Fewer than two units have a store time: there is nothing to draw over time."))
        return
    plot.set_title(tr("Positions"), tr("MiB from min on, over store time; one dot the first unit of a file"))
    points = with_breaks(latest)
    heads = Curve(
        tr("end of the log"),
        "posLog2",
        [ms / 1000 for ms, _ in points],
        [(offset - minimum) / MIB for _, offset in points],
        size(latest.heads[-1][1] - minimum),
        dots=True,
    )
    plot.show_curves([heads], _marks(latest, minimum), times=True)


def with_breaks(latest: PositionReading) -> list[tuple[float, float]]:
    """Return the heads of the files as (ms, offset), with a NaN point where a file between two of them has none."""
    head_offsets = [offset for _, offset in latest.heads]
    points: list[tuple[float, float]] = []
    for number, (ms, offset) in enumerate(latest.heads):
        if number and any(
            head_offsets[number - 1] < start and end <= offset and not any(start <= head < end for head in head_offsets)
            for start, end, _ in latest.files
        ):
            points.append((ms, math.nan))
        points.append((ms, offset))
    return points


def _marks(latest: PositionReading, minimum: int) -> list[Line]:
    """Return the marks: checkpoint times as vertical lines, positions behind the end as horizontal ones."""
    positions = latest.positions
    lines = []
    first_ms, last_ms = latest.heads[0][0], latest.heads[-1][0]
    for name in TIME_FLAGS:
        position = positions.checkpoint.get(name)
        if position is not None and position.timestamp and first_ms <= position.timestamp <= last_ms:
            lines.append(Line(position.timestamp / 1000, "posTime", tr(NAMES[name])))
    wrote = positions.wrote.offset or 0
    for name in ("dispatched", "index_end"):
        offset = getattr(positions, name).offset
        if offset is not None and wrote - offset > max(1, (wrote - minimum) // 200):
            lines.append(Line((offset - minimum) / MIB, ROLES[name], tr(NAMES[name]), upright=False))
    return lines


def draw_gaps(plot: LivePlot, latest: PositionReading) -> None:
    """Draw one bar for each position that lags behind the end of the log."""
    gaps = gap_list(latest)
    if not gaps:
        plot.set_title(tr("Gaps"))
        plot.show_nothing(tr("The files show no position that follows the log."))
        return
    if not any(gap for _, _, gap in gaps):
        plot.set_title(tr("Gaps"))
        names = ", ".join(name for name, _, _ in gaps)
        plot.show_nothing(tr("No known position lags: {names} are at the end of the log.", names=names))
        return
    plot.set_title(tr("Gaps"), tr("MiB behind wrote, now"))
    plot.show_bars([Bar(name, role, max(gap, 0) / MIB, _gap_words(gap)) for name, role, gap in gaps])


def _gap_words(gap: int) -> str:
    if gap < 0:
        return tr("{size} beyond", size=size(-gap))
    return size(gap) if gap else tr("at the end")
