"""The live plots as frames: positions, gaps, flush latency, group size, write and put rate; no Qt widgets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from viewer.look.assets import tr, words
from viewer.pane.position_facts import NAMES, ROLES
from viewer.runtime.live_history import DISPATCH_ALARM, FLUSH_ALARM, LATE_FLUSH, LiveHistory
from viewer.runtime.peak_series import PeakSeries
from viewer.runtime.position_reading import KEYS, PositionReading
from viewer.widgets.live_frame import Line, LiveFrame, Trace

MIB = 1 << 20
DRAWN = ("index_end", "queue_max", "dispatched", "flushed", "committed", "wrote")
GAPS = (
    ("commit", "posLog2", words("to commit")),
    ("flush", "posLog3", words("to flush")),
    ("dispatch", "posBuild", words("to dispatch")),
)
MAX_LINES = 24


@dataclass(frozen=True, slots=True)
class Range:
    """The shown time: ``end`` and ``span`` in s, the ``cursor`` in s since the epoch or None."""

    end: float
    span: float
    cursor: float | None = None

    @property
    def begin(self) -> float:
        return self.end - self.span

    def edge(self, width: int) -> float:
        """Return the right edge of a plot of ``width`` columns: the end of the column that contains ``end``.

        So curves move by whole columns, and the drawn past stays unchanged.
        """
        column = self.span / max(1, width)
        return float(np.floor(self.end / column) + 1) * column


def nice_top(value: float) -> float:
    """Return a round number a little above ``value``, so that an axis stays the same for a while."""
    if not np.isfinite(value) or value <= 0:
        return 1.0
    step = 10.0 ** np.floor(np.log10(value)) / 2
    return float(np.ceil(value * 1.06 / step) * step)


def positions_frame(history: LiveHistory, shown: Range, width: int) -> LiveFrame:
    """Plot positions in MiB above the lowest drawn one. "wrote" is drawn last, equal curves once."""
    curves = {key: _cut(history, history.positions[key], shown, width) for key in DRAWN}
    minima = [float(np.nanmin(ys)) for _, ys in curves.values() if len(ys) and np.isfinite(ys).any()]
    base = min(minima, default=0.0)
    traces: list[Trace] = []
    drawn: list[np.ndarray] = []
    for key in reversed(DRAWN):
        xs, ys = curves[key]
        if not np.isfinite(ys).any() or any(len(ys) == len(d) and np.array_equal(ys, d, equal_nan=True) for d in drawn):
            continue
        drawn.append(ys)
        value = _value(history, history.positions[key], shown)
        text = "" if value is None or key in ("index_end", "queue_max") else f"{(value - base) / MIB:,.1f}"
        traces.append(Trace(tr(NAMES[key]), ROLES[key], xs, (ys - base) / MIB, text))
    top = max((float(np.nanmax(t.ys)) for t in traces), default=1.0)
    first_tick, end_tick = np.searchsorted(history.flush_ms.times, (shown.begin, shown.end))
    ticks = history.flush_ms.times[first_tick:end_tick] - shown.end
    return LiveFrame(
        tuple(reversed(traces)),
        *_ends(shown, width),
        nice_top(top),
        ticks=ticks,
        lines=tuple(_lines(history, shown)),
        cursor=_cursor(shown),
        right_edge_s=shown.edge(width),
        breaks=_breaks(history, shown),
    )


def gaps_frame(history: LiveHistory, shown: Range, width: int, *, lab: bool) -> LiveFrame:
    """Plot the three gaps in MiB. An alarm's line is drawn if its gap comes near it."""
    traces, top = [], 0.0
    for key, role, name in GAPS:
        xs, ys = _cut(history, history.gaps[key], shown, width)
        if np.isfinite(ys).any():
            value = _value(history, history.gaps[key], shown)
            text = "" if value is None else f"{value / MIB:,.2f}"
            label = tr("to flush, by the checkpoint") if key == "flush" and not lab else tr(name)
            traces.append(Trace(label, role, xs, ys / MIB, text, filled=True))
            top = max(top, float(np.nanmax(ys)) / MIB)
    alarms = [(DISPATCH_ALARM, "dispatch")] + ([(FLUSH_ALARM, "flush")] if lab else [])
    lines = []
    for limit, key in alarms:
        _, ys = _cut(history, history.gaps[key], shown, width)
        if len(ys) and np.isfinite(ys).any() and np.nanmax(ys) > limit / 3:
            label = (
                tr("alarm {n} MiB to flush", n=limit // MIB)
                if key == "flush"
                else tr("alarm {n} MiB to dispatch", n=limit // MIB)
            )
            lines.append(Line(limit / MIB, "warn", label, upright=False))
            top = max(top, limit / MIB)
    return LiveFrame(
        tuple(traces),
        *_ends(shown, width),
        nice_top(top),
        lines=tuple(lines),
        cursor=_cursor(shown),
        right_edge_s=shown.edge(width),
        breaks=_breaks(history, shown),
    )


def latency_frame(history: LiveHistory, shown: Range, width: int) -> LiveFrame:
    """Plot the ms of each flush and mark late ones."""
    xs, ys = _cut(history, history.flush_ms, shown, width)
    middle, largest = history.flush_ms.median_and_max(shown.begin, shown.end)
    traces = (
        Trace(tr("median"), "posLog", xs, ys, f"{middle:,.1f}", "dots", late=LATE_FLUSH),
        Trace(tr("largest"), "warn", xs[:0], ys[:0], f"{largest:,.0f}", "dots"),
    )
    return LiveFrame(
        traces,
        *_ends(shown, width),
        nice_top(largest),
        cursor=_cursor(shown),
        right_edge_s=shown.edge(width),
        breaks=_breaks(history, shown),
    )


def group_frame(history: LiveHistory, shown: Range, width: int) -> LiveFrame:
    """Plot the MiB of each flush."""
    xs, ys = _cut(history, history.flush_bytes, shown, width)
    middle, largest = (value / MIB for value in history.flush_bytes.median_and_max(shown.begin, shown.end))
    trace = Trace(tr("median"), "posLog", xs, ys / MIB, f"{middle:,.2f}", "bars")
    return LiveFrame(
        (trace,),
        *_ends(shown, width),
        nice_top(largest),
        cursor=_cursor(shown),
        right_edge_s=shown.edge(width),
        breaks=_breaks(history, shown),
    )


def rate_frame(history: LiveHistory, shown: Range, width: int, *, messages: bool) -> LiveFrame:
    """Plot messages put per second (answered or dispatched), or MiB written per second."""
    series, unit_size = (history.put_rate, 1) if messages else (history.write_rate, MIB)
    xs, ys = _cut(history, series, shown, width)
    value = _value(history, series, shown)
    text = "" if value is None else f"{value / unit_size:,.0f}" if messages else f"{value / unit_size:,.2f}"
    largest = float(np.nanmax(ys)) / unit_size if len(ys) and np.isfinite(ys).any() else 0.0
    name, role = (tr("messages/s"), "posBuild") if messages else (tr("MiB/s"), "posLog")
    first_tick, end_tick = np.searchsorted(history.flush_ms.times, (shown.begin, shown.end))
    return LiveFrame(
        (Trace(name, role, xs, ys / unit_size, text, filled=True),),
        *_ends(shown, width),
        nice_top(largest),
        ticks=history.flush_ms.times[first_tick:end_tick] - shown.end,
        lines=tuple(_lines(history, shown)),
        cursor=_cursor(shown),
        right_edge_s=shown.edge(width),
        breaks=_breaks(history, shown),
    )


def shown_reading(history: LiveHistory, shown: Range, *, live: bool) -> PositionReading | None:
    """Return the reading at the right edge, or at the cursor of a stopped plot."""
    if live:
        return history.last
    return history.reading_at(round(shown.end * 1000))


def _cut(history: LiveHistory, series: PeakSeries, shown: Range, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a curve over the shown time, with a break where nothing was sampled."""
    edge = shown.edge(width)
    xs, ys = history.with_gaps(*series.columns(edge, shown.span, width))
    return np.clip(xs - shown.end, edge - shown.end - shown.span, edge - shown.end), ys


def _ends(shown: Range, width: int) -> tuple[float, float]:
    """Return the left and right edge of a plot, in s from the end of the shown time."""
    right_edge = shown.edge(width) - shown.end
    return right_edge - shown.span, right_edge


def _breaks(history: LiveHistory, shown: Range) -> tuple[tuple[float, float], ...]:
    """Return the times without samples, from the end of the shown time."""
    return tuple(
        (begin - shown.end, end - shown.end) for begin, end in history.breaks if end > shown.begin and begin < shown.end
    )


def _value(history: LiveHistory, series: PeakSeries, shown: Range) -> float | None:
    time_s = shown.end if shown.cursor is None else shown.cursor
    return series.at(time_s) if history.sampled_at(time_s) else None


def _cursor(shown: Range) -> float | None:
    return None if shown.cursor is None else shown.cursor - shown.end


def _lines(history: LiveHistory, shown: Range) -> Iterable[Line]:
    """Return file rolls as dashed violet lines and other marks as short lines, the newest if there are many."""
    for time_s in list(history.rolls)[-MAX_LINES:]:
        if shown.begin <= time_s <= shown.end:
            yield Line(time_s - shown.end, "posTime", tr("roll"))
    roles = {"warn": "warn", "live": "live", "error": "error"}
    drawn = 0
    for mark in reversed(history.marks):
        time_s = mark.time_ms / 1000
        if drawn == MAX_LINES or time_s < shown.begin:
            break
        if mark.upright and mark.shape in roles and time_s <= shown.end:
            drawn += 1
            yield Line(time_s - shown.end, roles[mark.shape], mark.words()[0], dashed=False)


assert set(DRAWN) <= set(KEYS)
