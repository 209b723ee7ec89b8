"""Rates over time, topics stacked on each other.

pyqtgraph is loaded when the plot is first shown. An existing plot is never deleted: its items are cleared and drawn
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from viewer.look.assets import tr, words
from viewer.look.formats import clock, day, size
from viewer.look.theme import C, follow, over, px, scale, ui
from viewer.look.topic_colours import TopicColours, colours_of
from viewer.pane.plot_library import plot_library
from viewer.pipeline.stats_figures import HOUR, MEASURES, Measure, Rates
from viewer.widgets.basics import Label, PaneHead, ThemedPanel
from viewer.widgets.topic_lead import NAME_INDENT, draw_lead
from viewer.widgets.word_tabs import WordTabs


def series_colors(topics: Sequence[str], colours: TopicColours) -> dict[str, QColor]:
    """Topic → colour: its own; system topics and rests are grey."""
    return {topic: colours.color(topic) or C("text3") for topic in topics}


SHORT_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)
STEPS = tuple(3600 * hours for hours in (1, 2, 3, 6, 12, 24, 48, 24 * 7, 24 * 14, 24 * 30, 24 * 91))
"""Seconds between two ticks: within an hour, and multiples of an hour."""
TICK_ROOM = 120
"""Px that a tick and its words take at least."""


def tick_places(begin: float, end: float, wide: float) -> list[tuple[float, list[float]]]:
    """Return the positions of ticks between two times (s since the epoch): on round seconds and minutes, from an hour
    on on whole hours of the zone in force, days at 0:00.
    """
    seconds = max(end - begin, 1e-6)
    max_ticks = max(1, int(wide // px(TICK_ROOM)))
    step = next((step for step in (*SHORT_STEPS, *STEPS) if seconds / step <= max_ticks), STEPS[-1])
    if step < 3600:
        first = -(-int(begin) // step) * step
        return [(float(step), [float(place) for place in range(first, int(end) + 1, step)])]
    hours, first = step // 3600, -(-int(begin) // 3600) * 3600
    places = []
    for place in range(first, int(end) + 1, 3600):
        hour = int(clock(place * 1000)[:2])
        if hour % min(hours, 24) == 0 and (hours <= 24 or (place // 86_400) % (hours // 24) == 0):
            places.append(float(place))
    return [(float(step), places)]


def tick_words(values: Sequence[float], _scale: float, spacing: float) -> list[str]:
    """The time of day, with seconds where ticks stand closer than a minute; the day where one begins, and first."""
    labels = []
    for number, value in enumerate(values):
        time, date = clock(round(value * 1000))[: 8 if spacing < 60 else 5], day(round(value * 1000))[5:]
        labels.append(f"{date} {time}" if number == 0 or time in ("00:00", "00:00:00") else time)
    return labels


SPAN_WORDS = {
    1_000: words("by second, stacked"),
    10_000: words("by 10 seconds, stacked"),
    60_000: words("by minute, stacked"),
    600_000: words("by 10 minutes, stacked"),
    HOUR: words("by hour, stacked"),
}


class Legend(QWidget):
    """Colours and names in a line; those that do not fit are left out at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._names: tuple[str, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        follow(self, self.update)

    def show_names(self, names: tuple[str, ...]) -> None:
        """Show these topics; the empty one is all others."""
        self._names = names
        self.setAccessibleName(", ".join(_name(name) for name in names))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        metrics = QFontMetrics(ui(12))
        wide = sum(metrics.horizontalAdvance(_name(name)) + px(NAME_INDENT + 13) for name in self._names)
        return QSize(wide, px(20))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, px(20))

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setFont(ui(12))
        metrics, x = QFontMetrics(p.font()), 0
        colors = series_colors(self._names, colours_of(self))
        for name in self._names:
            wide = metrics.horizontalAdvance(_name(name)) + px(NAME_INDENT + 13)
            if x + wide > self.width() + px(14):
                return
            draw_lead(p, name, colors[name], x, px(10), scale())
            p.setPen(C("text2"))
            p.drawText(QRectF(x + px(NAME_INDENT), 0, wide, px(20)), int(Qt.AlignmentFlag.AlignVCenter), _name(name))
            x += wide


def _name(topic: str) -> str:
    return topic or tr("(all others)")


class RatesPlot(ThemedPanel):
    """A head with the measure and the legend, and the plot."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("pipeline.rates")
        self.measure = WordTabs("pipeline.rates.measure", [(key, tr(label)) for key, label in MEASURES])
        self.legend = Legend()
        self._empty = Label("", 12, "text3", wrap=True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.head = PaneHead(tr("Rates"), tr("by hour, stacked"), self.measure, 16, self.legend)
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(0)
        self._box.addWidget(self.head)
        self._box.addWidget(self._empty, 1)
        self.setMinimumHeight(px(120))
        self._rates: Rates | None = None
        self._plot: Any = None
        self._loading = self._loaded = False
        self._drawn: object = None
        follow(self, self._retheme)

    @property
    def chosen(self) -> Measure:
        """The measure that is shown."""
        return "bytes" if self.measure.key == "bytes" else "messages"

    def show_rates(self, rates: Rates | None, words: str = "") -> None:
        """Draw these; ``words`` where there are none."""
        self._rates = rates
        self._empty.setText(words)
        self._empty.setVisible(rates is None)
        self.head.set_note(tr(SPAN_WORDS[rates.span_ms if rates is not None else HOUR]))
        self.legend.show_names(tuple(series.topic for series in rates.series) if rates is not None else ())
        if self._plot is not None:
            self._plot.setVisible(rates is not None)
        self.setAccessibleName(tr("Rates over time"))
        self.setAccessibleDescription(self.spoken() if rates is not None else words)
        if self.isVisible():
            self._draw()

    def spoken(self) -> str:
        """The picture in words: the span, and each topic's highest rate."""
        rates = self._rates
        if rates is None:
            return ""
        tops = [f"{_name(series.topic)} {self._tell(max(series.rates))}" for series in rates.series]
        begin, end = rates.first, rates.first + (rates.spans - 1) * rates.span_ms
        cut = len("12:34") if rates.span_ms >= 60_000 else len("12:34:56")
        return f"{day(begin)} {clock(begin)[:cut]} – {day(end)} {clock(end)[:cut]}; " + "; ".join(tops)

    def _tell(self, value: float) -> str:
        return f"{size(value)}/s" if self.chosen == "bytes" else f"{value:,.3g} /s"

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._draw()

    def _retheme(self) -> None:
        self._drawn = None
        if self.isVisible():
            self._draw()

    def _draw(self) -> None:
        if self._rates is None or self._drawn == (self._rates, self.chosen, colours_of(self).order):
            return
        if not self._loaded:
            self._load()
            return
        import pyqtgraph as pg

        from viewer.widgets.live_plot import _apply_theme, _make_plot

        self._drawn = (self._rates, self.chosen, colours_of(self).order)
        if self._plot is None:
            self._plot = _make_plot(times=True)
            self._plot.setObjectName("pipeline.rates.plot")
            self._plot.setMouseEnabled(y=False)
            axis = self._plot.getPlotItem().getAxis("bottom")
            axis.tickValues, axis.tickStrings = tick_places, tick_words
            self._box.addWidget(self._plot, 1)
        _apply_theme(self._plot)
        item = self._plot.getPlotItem()
        item.clear()
        rates = self._rates
        edges = [(rates.first + n * rates.span_ms) / 1000 for n in range(rates.spans + 1)]
        sums = [0.0] * rates.spans
        layers = []
        for series in rates.series:
            sums = [a + b for a, b in zip(sums, series.rates, strict=True)]
            layers.append((series.topic, list(sums)))
        ground, colors = C("pane"), series_colors([topic for topic, _ in layers], colours_of(self))
        for topic, tops in reversed(layers):  # the highest first: each next one covers what lies below it
            color = colors[topic]
            tint = QColor(color)
            tint.setAlphaF(0.55)
            curve = pg.PlotDataItem(
                pen=pg.mkPen(color, width=1.4), fillLevel=0.0, brush=pg.mkBrush(over(tint, ground)), stepMode="center"
            )
            item.addItem(curve)
            curve.setData(edges, tops)
        item.setYRange(0, max(rates.highest * 1.08, 1e-6), padding=0)
        item.setXRange(edges[0], edges[-1], padding=0.01)

    def _load(self) -> None:
        if self._loading:
            return
        self._loading = True

        def done() -> None:
            self._loading, self._loaded = False, True
            if self.isVisible():
                self._draw()

        def failed(_error: Exception) -> None:
            self._loading = False

        plot_library.load(self, done, failed)
