"""Plots behind one class: a head with the legend, curves, marked lines and bars. pyqtgraph is imported when first
shown.

Values may be 64-bit offsets: the caller subtracts a base first, because a float is exact only up to 2^53.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.formats import clock, day
from viewer.look.theme import C, follow, mono, px, tokens, ui
from viewer.widgets.basics import ElidedLine, Label, ThemedPanel
from viewer.widgets.boxes import empty
from viewer.widgets.line_labels import joined, place_labels
from viewer.widgets.live_axes import value_words
from viewer.widgets.live_frame import Line, LiveFrame


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve in the colour of a role. ``last`` is its newest value in words, for the legend. ``filled`` fills it
    down to zero.
    """

    name: str
    role: str
    xs: Sequence[float]
    ys: Sequence[float]
    last: str = ""
    filled: bool = False
    dots: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from the left edge with the length of its value; ``words`` stand after it."""

    name: str
    role: str
    value: float
    words: str


class LivePlot(ThemedPanel):
    """A plot with a head and a legend. pyqtgraph is imported when the plot is first on the screen.

    The owner of a live plot decides which time it shows. The signals ``pointed(seconds or None)``,
    ``picked(seconds)``, ``zoomed(factor, seconds)``, ``dragged(seconds)`` and ``fitted()`` tell the owner what
    the user did.
    """

    pointed = Signal(object)
    picked = Signal(float)
    zoomed = Signal(float, float)
    dragged = Signal(float)
    fitted = Signal()

    def __init__(self, name: str, title: str, note: str = "") -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(title)
        self._title = Label(title, 13, "text", 600)
        self._note = ElidedLine(note, 12, "text3")
        self._note.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._legend = QHBoxLayout()
        self._legend.setSpacing(px(12))
        head = QHBoxLayout()
        head.setContentsMargins(px(14), px(5), px(14), 0)
        head.setSpacing(px(10))
        head.addWidget(self._title)
        head.addWidget(self._note, 1)
        head.addLayout(self._legend)
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(0)
        self._box.addLayout(head)
        self._empty = Label("", 12, "text3", wrap=True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._box.addWidget(self._empty, 1)
        self._plot: Any = None
        self._live: Any = None
        self._keys: list[tuple[str, str]] = []
        self._values: list[Label] = []
        self._plots: dict[bool, Any] = {}  # with a time axis, without: plots are reused, not rebuilt
        self._content: tuple[Any, ...] | None = None
        self._drawn: tuple[Any, ...] | None = None
        self.setMinimumHeight(px(96))
        follow(self, self.retheme)

    def set_title(self, title: str, note: str = "") -> None:
        """Change the name and the note."""
        self._title.setText(title)
        self._note.setText(note)

    def show_nothing(self, words: str) -> None:
        """Show the reason why there is nothing to draw."""
        self._content = self._drawn = None
        self._empty.setText(words)
        self._empty.show()
        for plot in (self._plot, self._live):
            if plot is not None:
                plot.hide()
        self._fill_legend([])
        self.setAccessibleDescription(words)

    def show_curves(self, curves: Sequence[Curve], lines: Sequence[Line] = (), *, times: bool = False) -> None:
        """Draw curves, the last one on top. With ``times`` x is seconds since the epoch, else plain numbers."""
        self._fill_legend([(c.name, c.role, c.last) for c in curves if c.last])
        spoken = [f"{c.name} {c.last}" for c in curves] + [line.words for line in lines]
        self.setAccessibleDescription("; ".join(spoken))
        self._show(("curves", tuple(curves), tuple(lines), times))

    def show_live(self, frame: LiveFrame) -> None:
        """Draw a live frame; called ten times a second."""
        self._fill_legend([(t.name, t.role, t.value) for t in frame.traces if t.value])
        self.setAccessibleDescription("; ".join(f"{t.name} {t.value}" for t in frame.traces if t.value))
        self._content = ("live", frame)
        if self._empty.isVisibleTo(self):
            self._empty.hide()
        if self.isVisible():
            self._draw()

    def live_width(self) -> int:
        """Number of columns that a live frame has for its curves, two px each."""
        from viewer.widgets.live_items import columns_of

        return columns_of(self.width())

    def show_bars(self, bars: Sequence[Bar]) -> None:
        """Draw bars, the first one at the top."""
        self._fill_legend([])
        self.setAccessibleDescription("; ".join(f"{bar.name}: {bar.words}" for bar in bars))
        self._show(("bars", tuple(bars)))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._content is not None and self._content != self._drawn:
            self._draw()

    def retheme(self) -> None:
        """Apply the current colours."""
        self._drawn = None
        for plot in self._plots.values():
            _apply_theme(plot)
        if self._live is not None:
            self._live.retheme()
        if self._content is not None and self.isVisible():
            self._draw()

    def _show(self, content: tuple[Any, ...]) -> None:
        self._content = content
        self._empty.hide()
        if self.isVisible() and self._content != self._drawn:
            self._draw()

    # ---- drawing: the only code that uses pyqtgraph ------------------------------------------------------------------

    def _draw(self) -> None:
        assert self._content is not None
        self._drawn = self._content
        kind = self._content[0]
        if kind == "live":
            self._draw_live(self._content[1])
            return
        if self._live is not None:
            self._live.hide()
        times = kind == "curves" and self._content[3]
        if times not in self._plots:
            self._plots[times] = _make_plot(times=times)
            self._box.addWidget(self._plots[times], 1)
        self._plot = self._plots[times]
        for plot in self._plots.values():
            plot.setVisible(plot is self._plot)
        item = self._plot.getPlotItem()
        item.clear()
        if kind == "curves":
            _, curves, lines, _ = self._content
            item.getAxis("left").setTicks(None)
            item.invertY(False)
            for curve in curves:
                _add_curve(item, curve)
            item.getAxis("left").setWidth(px(56))
            item.enableAutoRange()
            top = max((max(curve.ys, default=0.0) for curve in curves), default=0.0)
            if any(curve.filled for curve in curves):
                item.setYRange(0, max(top * 1.1, 1e-3), padding=0)
            for upright in (True, False):
                values = [value for curve in curves for value in (curve.xs if upright else curve.ys)]
                self._add_lines(item, [line for line in lines if line.upright == upright], values)
        else:
            _add_bars(item, self._content[1])

    def _add_lines(self, item: Any, lines: Sequence[Line], values: Sequence[float]) -> None:
        """Add the lines of one direction, and the words that have room, to an axis that also shows ``values``.
        Vertical lines have their words at the bottom, because curves of positions rise.
        """
        if not lines:
            return
        upright, metrics, label_height = lines[0].upright, QFontMetrics(ui(11, 600)), px(16)
        plot_width, plot_height = (self.width() - px(66), self.height() - px(60))
        shown = [*values, *(line.position for line in lines)]
        start, end = min(shown), max(shown)
        room = max(1, plot_width if upright else plot_height)
        share = [(line.position - start) / max(end - start, 1e-9) for line in lines]
        places = [part * room if upright else (1 - part) * room for part in share]
        words = joined([line.words for line in lines], places, [line.role for line in lines])
        text_widths = [metrics.horizontalAdvance(text) + TEXT_MARGIN if text else 0 for text in words]
        extents = [float(width if upright else label_height) if width else 0.0 for width in text_widths]
        rows = max(1, plot_height // (2 * label_height)) if upright else 3
        labels = place_labels(places, extents, 0.0, float(room), rows)
        for line, text, place, label in zip(lines, words, places, labels, strict=True):
            after_line = label is not None and label.begin > place
            if upright:
                position = min(
                    0.95, 0.03 + (label.row if label is not None else 0) * label_height / max(1, plot_height)
                )
                anchor = (0, 1) if after_line else (1, 1)
            else:
                position, anchor = 0.02 + (label.row if label is not None else 0) / 3, (0, 0) if after_line else (0, 1)
            _add_line(item, line, text if label is not None else "", position, anchor)

    def _draw_live(self, frame: LiveFrame) -> None:
        if self._live is None:
            from viewer.widgets.live_items import LivePlotWidget

            self._live = LivePlotWidget()
            self._live.setAccessibleName(tr("Plot"))
            for name in ("pointed", "picked", "zoomed", "dragged", "fitted"):
                getattr(self._live, name).connect(getattr(self, name))
            self._box.addWidget(self._live, 1)
        if self._live.isHidden() or self._plot is not None:
            for plot in self._plots.values():
                plot.hide()
            self._plot = None
            self._live.show()
        self._live.show_frame(frame)

    def _fill_legend(self, entries: list[tuple[str, str, str]]) -> None:
        """Show the legend. If only values differ, only their labels change: this runs ten times a second."""
        keys = [(name, role) for name, role, _ in entries]
        if keys == self._keys and len(self._values) == len(entries):
            for label, (_, _, value) in zip(self._values, entries, strict=True):
                if label.text() != value:
                    label.setText(value)
            return
        self._keys, self._values = keys, []
        empty(self._legend)
        for name, role, value in entries:
            swatch = ThemedPanel(role)
            swatch.setFixedSize(px(12), px(3))
            box = QWidget()
            line = QHBoxLayout(box)
            line.setContentsMargins(0, 0, 0, 0)
            line.setSpacing(px(6))
            value_label = Label(value, 12, code=True)
            for part in (swatch, Label(name, 12, "text2"), value_label):
                line.addWidget(part)
            self._values.append(value_label)
            self._legend.addWidget(box)


TEXT_MARGIN = 10
"""Margin in px that pyqtgraph puts around words."""


def _make_plot(*, times: bool) -> Any:
    import pyqtgraph as pg

    axes = {"left": _number_axis()} | ({"bottom": _clock_axis()} if times else {})
    plot = pg.PlotWidget(axisItems=axes)
    item = plot.getPlotItem()
    item.hideButtons()
    item.setMenuEnabled(False)
    item.setContentsMargins(0, 0, 10, 2)
    item.showGrid(x=True, y=True, alpha=0.16)
    plot.setAccessibleName(tr("Plot"))
    for part in (plot, plot.viewport()):  # it has no keyboard commands: Tab skips it
        part.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    _apply_theme(plot)
    return plot


def _apply_theme(plot: Any) -> None:
    """Apply background, axes and fonts in the current colours and zoom."""
    import pyqtgraph as pg

    plot.setBackground(C("pane"))
    item = plot.getPlotItem()
    for name in ("left", "bottom"):
        axis = item.getAxis(name)
        axis.setPen(pg.mkPen(C("line")))
        axis.setTextPen(pg.mkPen(C("text3")))
        axis.setStyle(tickFont=mono(11), tickLength=-4)
        axis.enableAutoSIPrefix(False)
    item.getAxis("left").setWidth(px(56))


def _number_axis() -> Any:
    """An axis of values with digit separators, as in the rest of the window."""
    import pyqtgraph as pg

    class NumberAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
        def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
            return [value_words(value * scale, max(spacing * scale, 1e-9)) for value in values]

    return NumberAxis("left")


def _clock_axis() -> Any:
    """An axis of seconds since the epoch, with times as in the rest of the window."""
    import pyqtgraph as pg

    class ClockAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
        def tickStrings(self, values: Sequence[float], _scale: float, spacing: float) -> list[str]:
            if spacing >= 86_400:
                return [day(round(value * 1000)) for value in values]
            keep = 5 if spacing >= 60 else 8 if spacing >= 1 else 12
            return [clock(round(value * 1000))[:keep] for value in values]

    return ClockAxis("bottom")


def _add_curve(item: Any, curve: Curve) -> None:
    """Add an empty curve, set its options, then its data: the other order fails under PySide6."""
    import pyqtgraph as pg

    extra: dict[str, Any] = {}
    if curve.dots:
        extra = {"symbol": "o", "symbolSize": 5, "symbolBrush": pg.mkBrush(C(curve.role)), "symbolPen": None}
    if curve.filled:
        extra |= {"fillLevel": 0.0, "brush": pg.mkBrush(C(curve.role, 0.08))}
    plot_item = pg.PlotDataItem(pen=pg.mkPen(C(curve.role), width=2), **extra)
    item.addItem(plot_item)
    if not curve.dots:
        plot_item.setDownsampling(auto=True, method="peak")
        plot_item.setClipToView(True)
    plot_item.setData(list(curve.xs), list(curve.ys))


ABOVE_LINES = 10


def _add_line(item: Any, line: Line, words: str, position: float, anchor: tuple[int, int]) -> None:
    """Add a line with its words, on the plot's background, at ``position`` of its length; without words only the
    line.
    """
    import pyqtgraph as pg

    pen = pg.mkPen(C(line.role), width=1.4, style=Qt.PenStyle.DashLine)
    label = {
        "color": tokens()[line.role],
        "position": position,
        "anchors": [anchor, anchor],
        "fill": pg.mkBrush(C("pane")),
    }
    angle = 90 if line.upright else 0
    item.addItem(pg.InfiniteLine(line.position, angle=angle, pen=pen))
    if words:  # on a line of their own that is not drawn, above all lines: another one would cross them
        words_line = pg.InfiniteLine(line.position, angle=angle, pen=pg.mkPen(None), label=words, labelOpts=label)
        words_line.label.setFont(ui(11, 600))
        words_line.setZValue(ABOVE_LINES)
        item.addItem(words_line)


def _add_bars(item: Any, bars: Sequence[Bar]) -> None:
    import pyqtgraph as pg

    longest = max([bar.value for bar in bars], default=0.0)
    for index, bar in enumerate(bars):
        width, brush = max(bar.value, longest / 400), pg.mkBrush(C(bar.role))
        item.addItem(pg.BarGraphItem(x0=[0.0], y=[index], height=0.56, width=[width], brush=brush, pen=pg.mkPen(None)))
        words = pg.TextItem(bar.words, color=C("text2"), anchor=(0, 0.5))
        words.setFont(mono(11))
        words.setPos(bar.value + longest / 80, index)
        item.addItem(words)
    item.getAxis("left").setTicks([[(index, bar.name) for index, bar in enumerate(bars)]])
    item.getAxis("left").setWidth(px(148))
    item.setXRange(0, max(longest * 1.18, 1e-9), padding=0)
    item.setYRange(-0.6, len(bars) - 0.4, padding=0)
    item.invertY(True)
