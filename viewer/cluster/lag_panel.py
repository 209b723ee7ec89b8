"""The tab Lag: sums of each group and topic with a small line of this session, a chart of the chosen one, and their
export.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.files.atomic_file import atomic_text
from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.lag_history import TOTAL, Key, LagHistory, LagSums
from viewer.cluster.words import UNKNOWN
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import moment, number
from viewer.widgets.basics import Button, PaneHead
from viewer.widgets.boxes import splitter, stacked
from viewer.widgets.columns import Column, RecordKind, gutter, number_column, text_column, topic_column
from viewer.widgets.live_plot import Curve, LivePlot
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import ListSource

if TYPE_CHECKING:
    from collections.abc import Sequence

LINE_POINTS = 60
"""Points of the small line in a row."""


@dataclass(frozen=True, slots=True)
class LagRow:
    """The sums of a group and topic with its history: the newest lags, NaN where they are not known."""

    group: str
    topic: str
    queues: str
    clients: int | None
    next_offsets: int
    max_offsets: int
    lag: int | None
    largest: int | None
    line: tuple[float, ...]

    @property
    def key(self) -> Key:
        """Key in the history."""
        return self.group, self.topic


def lag_rows(history: LagHistory) -> list[LagRow]:
    """Return the rows, with the sum of all at the top."""
    rows = [_row(history, key, sums) for key, sums in history.sums.items()]
    if not rows:
        return []
    lags = [row.lag for row in rows]
    known = [lag for lag in lags if lag is not None]
    total = LagRow(
        tr("All groups"),
        "",
        "",
        None,
        sum(row.next_offsets for row in rows),
        sum(row.max_offsets for row in rows),
        sum(known) if len(known) == len(lags) else None,
        history.largest(TOTAL),
        _line(history, TOTAL),
    )
    return [total, *rows]


def _row(history: LagHistory, key: Key, sums: LagSums) -> LagRow:
    queues = number(sums.queues) if sums.queues == sums.queue_count else f"{sums.queues} / {sums.queue_count}"
    return LagRow(
        sums.group,
        sums.topic,
        queues,
        sums.clients,
        sums.next_offsets,
        sums.max_offsets,
        sums.lag,
        history.largest(key),
        _line(history, key),
    )


def _line(history: LagHistory, key: Key) -> tuple[float, ...]:
    return tuple(history.points(key)[1][-LINE_POINTS:])


def _figure(key: str, title: str, width: int) -> Column:
    def text(row: LagRow) -> str:
        value = getattr(row, key)
        return UNKNOWN if value is None else number(value)

    return Column(key, title, width, text, lambda row: getattr(row, key), right=True, mono=True, filterable=False)


def _line_words(row: LagRow) -> str:
    known = [value for value in row.line if not math.isnan(value)]
    return f"{number(int(known[0]))} → {number(int(known[-1]))}" if known else ""


LAG = RecordKind(
    "groupLag",
    (
        gutter(12),
        text_column("group", words("Group"), 180, elide="middle", filterable=False),
        topic_column("topic", words("Topic"), 190, filterable=False),
        Column(
            "queues",
            words("Queues"),
            70,
            lambda row: row.queues,
            lambda row: row.queues,
            right=True,
            mono=True,
            filterable=False,
        ),
        Column(
            "clients",
            words("Clients"),
            66,
            lambda row: "" if row.clients is None else number(row.clients),
            lambda row: row.clients,
            right=True,
            mono=True,
            filterable=False,
        ),
        number_column("next_offsets", words("Sum of next offsets"), 140, filterable=False),
        number_column("max_offsets", words("Sum of max offsets"), 140, filterable=False),
        _figure("lag", words("Behind"), 90),
        _figure("largest", words("Largest lag"), 96),
        Column(
            "line",
            words("This session"),
            170,
            _line_words,
            lambda row: row.line,
            paint="line",
            filterable=False,
        ),
    ),
)


class LagPanel(QWidget):
    """Table and chart. ``exportRequested()`` when the button is pressed, ``groupChosen(name)`` for the picture."""

    exportRequested = Signal()
    groupChosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.model = ClusterModel()
        self._key: Key = TOTAL
        self.export = Button(tr("Export as CSV…"), "ghost")
        self.export.setObjectName("cluster.lag.export")
        self.export.clicked.connect(lambda _on: self.exportRequested.emit())
        self.head = PaneHead(tr("Lag"), "", self.export)
        self.table = RecordView("cluster.lag", LAG)
        self.table.setAccessibleName(tr("Lag of groups and topics"))
        self.table.rowChosen.connect(self._row_chosen)
        self.chart = LivePlot("cluster.lag.chart", tr("Lag in this session"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        table = stacked(self.head, self.table, self.table.strip, room=1)
        layout.addWidget(splitter(True, (table, 420), (self.chart, 240)))

    def refresh(self) -> None:
        """Show the present readings."""
        history = self.model.lag
        rows = lag_rows(history)
        _update_rows(self.table, rows)
        self.table.set_state(None if rows else State("empty", tr("No group has an offset at a broker.")))
        self.export.setEnabled(bool(rows))
        self.head.set_note(sampling_words(self.model))
        self._draw()

    def _row_chosen(self, row: LagRow | None) -> None:
        if row is None:
            return
        self._key = row.key if row.topic else TOTAL
        if row.topic:
            self.groupChosen.emit(row.group)
        self._draw()

    def _draw(self) -> None:
        history, key = self.model.lag, self._key
        times, lags = history.points(key)
        title = " · ".join(key) if key != TOTAL else tr("All groups")
        self.chart.set_title(title, tr("messages behind; a gap: a broker did not answer, or nothing was read"))
        if not any(not math.isnan(lag) for lag in lags):
            self.chart.show_nothing(tr("Nothing was read yet."))
            return
        last = next(lag for lag in reversed(lags) if not math.isnan(lag))
        curve = Curve(tr("Behind"), "posLog", [time / 1000 for time in times], lags, number(int(last)), filled=False)
        self.chart.show_curves([curve], times=True)


def sampling_words(model: ClusterModel) -> str:
    """Say how often it is read, and since when."""
    history = model.lag
    if not history.times_ms:
        return ""
    seconds = model.interval_s * history.readings_a_point
    return tr(
        "a point each {n} s since {time}, while the view is connected",
        n=f"{seconds:g}",
        time=moment(history.times_ms[0]),
    )


def write_csv(points: Sequence[tuple[object, ...]], target: Path) -> int:
    """Write points as CSV and return their number: time (ms), group, topic, lag; a lag that is not known is empty."""
    with atomic_text(target, newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("time", "group", "topic", "lag"))
        writer.writerows(["" if value is None else value for value in point] for point in points)
    return len(points)


def _update_rows(table: RecordView, rows: Sequence[LagRow]) -> None:
    """Show these rows; the same groups are updated in place: order, scroll position and selection stay."""
    source = table.source
    shown = source.rows if isinstance(source, ListSource) else []
    fresh = {row.key: row for row in rows}
    if rows and len(shown) == len(rows) and {row.key for row in shown} == fresh.keys():
        for index, row in enumerate(list(shown)):
            if row != fresh[row.key]:
                table.replace_row(index, fresh[row.key])
    else:
        table.set_rows(list(rows))


def written_words(count: int, target: Path) -> str:
    """Return the sentence after an export."""
    return tr_plural("{n:,} row written to {path}", "{n:,} rows written to {path}", n=count, path=str(target))
