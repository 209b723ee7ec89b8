"""The live plots as frames: positions, gaps, flush latency, group size, write and put rate; no Qt widgets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from viewer.look.assets import tr, words
from viewer.pane.position_facts import NAMES, ROLES
from viewer.runtime.live_history import DISPATCH_ALARM, FLUSH_ALARM, LATE_FLUSH, LiveHistory
from viewer.runtime.peak_series import PeakSeries
from viewer.runtime.position_look import KEYS, Look
from viewer.widgets.live_frame import Line, LiveFrame, Trace

MIB = 1 << 20
DRAWN = ("index_end", "queue_max", "dispatched", "flushed", "committed", "wrote")
GAPS = (
    ("commit", "posLog2", words("to commit")),
    ("flush", "posLog3", words("to flush")),
    ("dispatch", "posBuild", words("to dispatch")),
)
MOST_LINES = 24


@dataclass(frozen=True, slots=True)
class Range:
    """The time that the plots show: ``end`` and ``span`` in s, the ``cursor`` in s since the epoch or None."""

    end: float
    span: float
    cursor: float | None = None

    @property
    def begin(self) -> float:
        return self.end - self.span

    def edge(self, width: int) -> float:
        """The right edge of a plot of ``width`` columns: the end of the column that ``end`` lies in. So curves move by
        whole columns, and what is drawn of the past stays as it is.
        """
        column = self.span / max(1, width)
        return float(np.floor(self.end / column) + 1) * column


def nice_top(value: float) -> float:
    """A little above ``value``, on a round number, so that an axis stays as it is for a while."""
    if not np.isfinite(value) or value <= 0:
        return 1.0
    step = 10.0 ** np.floor(np.log10(value)) / 2
    return float(np.ceil(value * 1.06 / step) * step)


def positions_frame(history: LiveHistory, shown: Range, width: int) -> LiveFrame:
    """Positions in MiB above the lowest that is drawn; wrote is drawn last, equal ones once."""
    found = {key: _cut(history, history.positions[key], shown, width) for key in DRAWN}
    lows = [float(np.nanmin(ys)) for _, ys in found.values() if len(ys) and np.isfinite(ys).any()]
    base = min(lows, default=0.0)
    traces: list[Trace] = []
    drawn: list[np.ndarray] = []
    for key in reversed(DRAWN):
        xs, ys = found[key]
        if not np.isfinite(ys).any() or any(len(ys) == len(d) and np.array_equal(ys, d, equal_nan=True) for d in drawn):
            continue
        drawn.append(ys)
        value = _value(history, history.positions[key], shown)
        text = "" if value is None or key in ("index_end", "queue_max") else f"{(value - base) / MIB:,.1f}"
        traces.append(Trace(tr(NAMES[key]), ROLES[key], xs, (ys - base) / MIB, text))
    top = max((float(np.nanmax(t.ys)) for t in traces), default=1.0)
    first, last = np.searchsorted(history.took.times, (shown.begin, shown.end))
    ticks = history.took.times[first:last] - shown.end
    return LiveFrame(
        tuple(reversed(traces)),
        *_ends(shown, width),
        nice_top(top),
        ticks=ticks,
        lines=tuple(_lines(history, shown)),
        cursor=_cursor(shown),
        at=shown.edge(width),
        breaks=_breaks(history, shown),
    )


def gaps_frame(history: LiveHistory, shown: Range, width: int, *, lab: bool) -> LiveFrame:
    """The three gaps in MiB; an alarm's line stands where its gap comes near it."""
    traces, top = [], 0.0
    for key, role, name in GAPS:
        xs, ys = _cut(history, history.gaps[key], shown, width)
        if np.isfinite(ys).any():
            value = _value(history, history.gaps[key], shown)
            text = "" if value is None else f"{value / MIB:,.2f}"
            said = tr("to flush, by the checkpoint") if key == "flush" and not lab else tr(name)
            traces.append(Trace(said, role, xs, ys / MIB, text, filled=True))
            top = max(top, float(np.nanmax(ys)) / MIB)
    alarms = [(DISPATCH_ALARM, "dispatch")] + ([(FLUSH_ALARM, "flush")] if lab else [])
    lines = []
    for limit, key in alarms:
        _, ys = _cut(history, history.gaps[key], shown, width)
        if len(ys) and np.isfinite(ys).any() and np.nanmax(ys) > limit / 3:
            said = (
                tr("alarm {n} MiB to flush", n=limit // MIB)
                if key == "flush"
                else tr("alarm {n} MiB to dispatch", n=limit // MIB)
            )
            lines.append(Line(limit / MIB, "warn", said, upright=False))
            top = max(top, limit / MIB)
    return LiveFrame(
        tuple(traces),
        *_ends(shown, width),
        nice_top(top),
        lines=tuple(lines),
        cursor=_cursor(shown),
        at=shown.edge(width),
        breaks=_breaks(history, shown),
    )


def latency_frame(history: LiveHistory, shown: Range, width: int) -> LiveFrame:
    """Ms of each flush, late ones marked."""
    xs, ys = _cut(history, history.took, shown, width)
    middle, most = history.took.middle(shown.begin, shown.end)
    traces = (
        Trace(tr("median"), "posLog", xs, ys, f"{middle:,.1f}", "dots", late=LATE_FLUSH),
        Trace(tr("largest"), "warn", xs[:0], ys[:0], f"{most:,.0f}", "dots"),
    )
    return LiveFrame(
        traces,
        *_ends(shown, width),
        nice_top(most),
        cursor=_cursor(shown),
        at=shown.edge(width),
        breaks=_breaks(history, shown),
    )


def group_frame(history: LiveHistory, shown: Range, width: int) -> LiveFrame:
    """MiB of each flush."""
    xs, ys = _cut(history, history.group, shown, width)
    middle, most = (value / MIB for value in history.group.middle(shown.begin, shown.end))
    trace = Trace(tr("median"), "posLog", xs, ys / MIB, f"{middle:,.2f}", "bars")
    return LiveFrame(
        (trace,),
        *_ends(shown, width),
        nice_top(most),
        cursor=_cursor(shown),
        at=shown.edge(width),
        breaks=_breaks(history, shown),
    )


def rate_frame(history: LiveHistory, shown: Range, width: int, *, messages: bool) -> LiveFrame:
    """Messages put a second (answered or dispatched), or MiB written a second."""
    series, by = (history.puts, 1) if messages else (history.bytes, MIB)
    xs, ys = _cut(history, series, shown, width)
    value = _value(history, series, shown)
    text = "" if value is None else f"{value / by:,.0f}" if messages else f"{value / by:,.2f}"
    most = float(np.nanmax(ys)) / by if len(ys) and np.isfinite(ys).any() else 0.0
    name, role = (tr("messages/s"), "posBuild") if messages else (tr("MiB/s"), "posLog")
    first, last = np.searchsorted(history.took.times, (shown.begin, shown.end))
    return LiveFrame(
        (Trace(name, role, xs, ys / by, text, filled=True),),
        *_ends(shown, width),
        nice_top(most),
        ticks=history.took.times[first:last] - shown.end,
        lines=tuple(_lines(history, shown)),
        cursor=_cursor(shown),
        at=shown.edge(width),
        breaks=_breaks(history, shown),
    )


def shown_look(history: LiveHistory, shown: Range, *, live: bool) -> Look | None:
    """The look that stands at the right edge, or at the cursor of a picture that stands still."""
    if live:
        return history.last
    return history.look_at(round(shown.end * 1000))


def _cut(history: LiveHistory, series: PeakSeries, shown: Range, width: int) -> tuple[np.ndarray, np.ndarray]:
    """A curve over the time shown; it breaks off where nobody sampled."""
    edge = shown.edge(width)
    xs, ys = history.torn(*series.columns(edge, shown.span, width))
    return np.clip(xs - shown.end, edge - shown.end - shown.span, edge - shown.end), ys


def _ends(shown: Range, width: int) -> tuple[float, float]:
    """Left and right edge of a plot, in s from the end of the time that is shown."""
    behind = shown.edge(width) - shown.end
    return behind - shown.span, behind


def _breaks(history: LiveHistory, shown: Range) -> tuple[tuple[float, float], ...]:
    """The times in which nobody sampled, from the end of the time shown."""
    return tuple(
        (begin - shown.end, end - shown.end) for begin, end in history.breaks if end > shown.begin and begin < shown.end
    )


def _value(history: LiveHistory, series: PeakSeries, shown: Range) -> float | None:
    at = shown.end if shown.cursor is None else shown.cursor
    return series.at(at) if history.sampled_at(at) else None


def _cursor(shown: Range) -> float | None:
    return None if shown.cursor is None else shown.cursor - shown.end


def _lines(history: LiveHistory, shown: Range) -> Iterable[Line]:
    """Rolls dashed in violet, other marks as short lines; the newest of many."""
    for at in list(history.rolls)[-MOST_LINES:]:
        if shown.begin <= at <= shown.end:
            yield Line(at - shown.end, "posTime", tr("roll"))
    roles = {"warn": "warn", "live": "live", "error": "error"}
    drawn = 0
    for mark in reversed(history.marks):
        at = mark.time_ms / 1000
        if drawn == MOST_LINES or at < shown.begin:
            break
        if mark.upright and mark.shape in roles and at <= shown.end:
            drawn += 1
            yield Line(at - shown.end, roles[mark.shape], mark.words()[0], dashed=False)


assert set(DRAWN) <= set(KEYS)
