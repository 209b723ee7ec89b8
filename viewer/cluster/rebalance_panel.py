"""Rebalance of a group: lanes over time, steps to go back to, the impact of each, and the moved queues."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QFrame, QScrollArea, QVBoxLayout, QWidget

from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.drawing import LinkOf, no_link
from viewer.cluster.lanes_canvas import LanesCanvas
from viewer.cluster.rebalance import AllocationStep, Timeline, timeline
from viewer.cluster.rebalance_words import (
    Impact,
    ListRow,
    MoveRow,
    StepRow,
    end_of_step_ms,
    impacts,
    list_rows,
    move_rows,
    step_rows,
)
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import clock
from viewer.look.theme import follow, px
from viewer.widgets.basics import Hairline, Label, PaneHead, StatusMark, ThemedPanel, ToolButton
from viewer.widgets.boxes import column, fill, row, splitter, stacked
from viewer.widgets.choices import ChoiceField
from viewer.widgets.columns import RecordKind, number_column, text_column, time_column
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

SIDE_WIDTH = 360
LIVE_WINDOW_MS, MIN_WINDOW_MS, MAX_WINDOW_MS = 120_000, 5_000, 24 * 3_600_000
"""Width of the time window in ms: while it follows, minimum, maximum."""
BEFORE_STEP_MS, AFTER_STEP_MS = 15_000, 30_000
"""Ms shown before and after a step."""

STEPS = RecordKind(
    "clusterStep",
    (
        number_column("number", words("Step"), 44, filterable=False),
        time_column("begin", words("Time"), 96, filterable=False),
        text_column("description", words("What"), 130, filterable=False),
        number_column("moved", words("Moved"), 56, filterable=False),
        text_column("pause", words("Pause"), 80, mono=True, filterable=False),
    ),
    record=lambda row: {
        "step": row.number,
        "at": row.begin,
        "what": row.description,
        "moved": row.moved,
        "pause": row.pause,
        "burst": row.burst,
        "idle": row.idle,
    },
)
MOVES = RecordKind(
    "clusterMove",
    (
        text_column("queue", words("Queue"), 160, elide="middle", filterable=False),
        text_column("owners_before", words("Before it"), 70, filterable=False),
        text_column("owners_after", words("After it"), 70, filterable=False),
        text_column("change", words("Change"), 70, filterable=False),
    ),
    record=lambda row: {
        "queue": row.queue,
        "before": row.owners_before,
        "after": row.owners_after,
        "change": row.change,
    },
)
LISTS = RecordKind(
    "clusterList",
    (
        text_column("client", words("Client"), 60, filterable=False),
        time_column("time_ms", words("List received"), 110, filterable=False),
        text_column("ids", words("Clients in it"), 160, filterable=False),
        text_column("owns", words("Owns"), 240, mono=True, filterable=False),
        text_column("change", words("Change"), 240, mono=True, filterable=False),
        text_column("reason", words("Why"), 160, filterable=False),
    ),
    record=lambda row: {
        "client": row.client,
        "at": row.time_ms,
        "ids": row.ids,
        "owns": row.owns,
        "change": row.change,
        "reason": row.reason,
    },
)


class _ImpactLine(QWidget):
    """An impact of a step. It stays while its figures change: new widgets stay empty for one turn of the loop."""

    def __init__(self, *, is_first: bool) -> None:
        super().__init__()
        self._mark = StatusMark("")
        self._name = Label("", 13, "text", 600)
        self._figure = Label("", 15, "text", 600, code=True)
        self._note = Label("", 12, "text2", wrap=True)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(px(5))
        fill(box, (*(() if is_first else (Hairline(),)), row(self._mark, self._name, None, self._figure), self._note))

    def show_impact(self, impact: Impact | None) -> None:
        """Show another impact, or nothing."""
        self.setVisible(impact is not None)
        if impact is not None:
            self._mark.set_kind(impact.kind)
            for label, text in ((self._name, impact.name), (self._figure, impact.figure), (self._note, impact.note)):
                label.setText(text)


class RebalancePanel(QWidget):
    """Emits ``timeRequested(ms)`` when a step is selected, so that the view shows that time; None for the newest."""

    timeRequested = Signal(object)
    groupChosen = Signal(str)

    def __init__(self, link_of: LinkOf = no_link) -> None:
        super().__init__()
        self.setObjectName("cluster.rebalance")
        self.model = ClusterModel()
        self.line = Timeline()
        self.step: int | None = None
        """Number of the selected step, from 0; None: the newest time is followed."""
        self._window: tuple[int, int] | None = None
        self._shown_moments: tuple[object, ...] = ()
        self.group = ChoiceField()
        self.group.setObjectName("cluster.rebalance.group")
        self.group.setAccessibleName(tr("Consumer group"))
        self.group.setMinimumWidth(px(150))
        self.group.setMaximumWidth(px(240))
        self.group.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.group.activated.connect(lambda _at: self._group_chosen())
        self.before, self.after = ToolButton("back", tr("Step before ([)")), ToolButton("forward", tr("Next step (])"))
        self.before.setObjectName("cluster.step.owners_before")
        self.after.setObjectName("cluster.step.owners_after")
        self.before.clicked.connect(lambda _on: self.walk(-1))
        self.after.clicked.connect(lambda _on: self.walk(1))
        self.at = Label("", 12, "text2", 600)
        self.whole = ToolButton("go-to", tr("Everything that was recorded"))
        self.whole.setObjectName("cluster.rebalance.fit")
        self.whole.clicked.connect(lambda _on: self.fit())
        self.head = PaneHead(tr("Rebalance"), "", self.group, self.before, self.at, self.after, self.whole)
        self.lanes = LanesCanvas(link_of)
        self.lanes.stepRequested.connect(self.walk)
        self.lanes.stepChosen.connect(self.choose_step)
        self.lanes.zoomed.connect(self._zoom)
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(self.lanes)
        no_impact_text = tr("This is the allocation at the first reading; its impact was before that.")
        self._no_impact = Label(no_impact_text, 12, "text3", wrap=True)
        self._impacts = column(self._no_impact, gap=5, margins=(14, 6, 14, 6))
        self._impact_lines: list[_ImpactLine] = []
        ground = ThemedPanel("pane")
        box = QVBoxLayout(ground)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self._impacts)
        self.impact_head = PaneHead(tr("Impact"), tr("of this step, from the readings"))
        self.moves, self.steps = RecordView("cluster.moves", MOVES), RecordView("cluster.steps", STEPS)
        self.moves.setAccessibleName(tr("Allocation before and after"))
        self.steps.setAccessibleName(tr("Steps"))
        self.steps.rowChosen.connect(self._row_chosen)
        side = stacked(
            self.impact_head,
            ground,
            PaneHead(tr("Allocation"), tr("before and after this step")),
            self.moves,
            PaneHead(tr("Steps"), tr("click a step to go back to it")),
            self.steps,
            room=5,
        )
        side.layout().setStretch(3, 1)  # type: ignore[union-attr]
        side.setMinimumWidth(px(SIDE_WIDTH - 60))
        self.side = side
        self.lists_head = PaneHead(
            tr("What each client saw"), tr("its list of clients, and the queues that it took and gave up")
        )
        self.lists = RecordView("cluster.lists", LISTS)
        self.lists.setAccessibleName(tr("What each client saw"))
        lists = stacked(self.lists_head, self.lists, room=1)
        self._lists = lists
        lanes_column = splitter(True, (stacked(self.head, area, room=1), 620), (lists, 190))
        columns = splitter(False, (lanes_column, 900), (side, SIDE_WIDTH))
        columns.setObjectName("cluster.rebalance.split")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(columns)
        follow(self, self._show)

    # ---- what is shown -----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Rebuild the timeline of the group from the model."""
        names = sorted(self.model.moments)
        group_name = self.model.leading if self.model.leading in names else self.group.currentText()
        if [self.group.itemText(number) for number in range(self.group.count())] != names:
            self.group.clear()
            self.group.addItems(names)
        name = group_name if group_name in names else names[0] if names else ""
        self.group.setCurrentText(name)
        self.group.setToolTip(name)
        moments = self.model.moments.get(name, ())
        moments_key = (name, len(moments), moments[-1].time_ms if moments else 0)
        if name != self.line.group:
            self.step, self._window = None, None
        if moments_key != self._shown_moments:
            self._shown_moments = moments_key
            self.line = timeline(name, tuple(moments))
        self._show()

    @property
    def window_ms(self) -> tuple[int, int]:
        """Time range of the lanes, ms."""
        if self._window is not None:
            return self._window
        return max(self.line.end - LIVE_WINDOW_MS, min(self.line.begin, self.line.end - MIN_WINDOW_MS)), self.line.end

    @property
    def chosen_step(self) -> AllocationStep | None:
        """Selected step; the last one while the newest time is followed."""
        steps = self.line.steps
        if not steps:
            return None
        return steps[min(self.step, len(steps) - 1)] if self.step is not None else steps[-1]

    def _show(self) -> None:
        step = self.chosen_step
        number = step.number - 1 if step is not None else None
        self.lanes.model = self.model
        self.lanes.show_line(self.line, self.window_ms, number)
        begin, end = self.window_ms
        self.head.set_note(
            tr_plural(
                "{n:,} second from {time} · height = messages a second",
                "{n:,} seconds from {time} · height = messages a second",
                n=round((end - begin) / 1000),
                time=clock(begin)[:8],
            )
            if self.line.moments
            else tr("nothing was read yet")
        )
        self.at.setText(tr("Step {n} of {m}", n=step.number, m=len(self.line.steps)) if step is not None else "")
        self.before.setEnabled(step is not None and step.number > 1)
        self.after.setEnabled(step is not None and self.step is not None)
        self._show_impacts(step)
        self._fill(self.moves, move_rows(self.model, step) if step is not None else [])
        self._fill(self.steps, step_rows(self.model, self.line))
        lists = list_rows(self.model, self.line, step) if step is not None else []
        self._lists.setVisible(bool(lists) or self.model.deliveries.knows(self.line.group))
        self._fill(self.lists, lists)
        if number is not None and self.steps.total_rows() > number and not self.steps.hasFocus():
            self.steps.go_to_row(number)

    @staticmethod
    def _fill(table: RecordView, rows: list[StepRow] | list[MoveRow] | list[ListRow]) -> None:
        if getattr(table.source, "rows", None) != rows:
            table.set_rows(list(rows))
        table.set_state(None if rows else State("empty", tr("No group has consumed during the readings.")))

    def _show_impacts(self, step: AllocationStep | None) -> None:
        model, line = self.model, self.line
        step_impacts = []
        if step is not None and step.number > 1:
            step_impacts = impacts(
                step, model.interval_s, model.deliveries, line.group, end_of_step_ms(model, line, step)
            )
        is_counted = model.deliveries.knows(line.group)
        self.impact_head.set_note(
            tr("of this step, counted from deliveries") if is_counted else tr("of this step, from the readings")
        )
        self._no_impact.setVisible(not step_impacts)
        while len(self._impact_lines) < len(step_impacts):
            self._impact_lines.append(_ImpactLine(is_first=not self._impact_lines))
            self._impacts.box.addWidget(self._impact_lines[-1])
        for number, impact_line in enumerate(self._impact_lines):
            impact_line.show_impact(step_impacts[number] if number < len(step_impacts) else None)

    # ---- steps and time ----------------------------------------------------------------------------------------------

    def walk(self, by: int) -> None:
        """Select the next or previous step; after the last one, follow the newest time again."""
        step = self.chosen_step
        if step is None:
            return
        number = step.number - 1 + by
        if number >= len(self.line.steps):
            self.follow_now()
        elif number >= 0:
            self.choose_step(number)

    def choose_step(self, number: int) -> None:
        """Select a step and show the time of its allocation in the whole view."""
        self.step = number
        step = self.line.steps[number]
        self._window = (step.begin - BEFORE_STEP_MS, max(step.end, step.begin + BEFORE_STEP_MS) + AFTER_STEP_MS)
        self._show()
        self.timeRequested.emit(step.end)

    def follow_now(self) -> None:
        """Return to the newest time."""
        self.step, self._window = None, None
        self._show()
        self.timeRequested.emit(None)

    def fit(self) -> None:
        """Show all recorded time."""
        if self.line.moments:
            self._window = (self.line.begin, max(self.line.end, self.line.begin + MIN_WINDOW_MS))
            self._show()

    def _zoom(self, factor: float, time_ms: int) -> None:
        begin, end = self.window_ms
        width_ms = min(max((end - begin) * factor, MIN_WINDOW_MS), MAX_WINDOW_MS)
        share = (time_ms - begin) / max(end - begin, 1)
        self._window = (round(time_ms - width_ms * share), round(time_ms + width_ms * (1 - share)))
        self._show()

    def _row_chosen(self, row_of_step: StepRow | None) -> None:
        if row_of_step is not None and self.steps.hasFocus() and row_of_step.number - 1 != self.step:
            self.choose_step(row_of_step.number - 1)

    def _group_chosen(self) -> None:
        self.step, self._window = None, None
        self.groupChosen.emit(self.group.currentText())
