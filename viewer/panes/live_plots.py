"""The four live plots as frames: positions, gaps, flush latency, and group size or put rate; no Qt widgets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from viewer.assets import tr, words
from viewer.models.live_history import DISPATCH_ALARM, FLUSH_ALARM, LATE_FLUSH, LiveHistory
from viewer.models.position_look import KEYS
from viewer.models.sample_ring import PeakSeries, columns
from viewer.panes.position_facts import NAMES, ROLES
from viewer.widgets.live_plot import Line, LiveFrame, Trace

if TYPE_CHECKING:
    from viewer.models.position_look import Look

MIB = 1 << 20
DRAWN = ("index_end", "queue_max", "dispatched", "flushed", "committed", "wrote")
GAPS = (("commit", "posLog2", words("to commit")), ("flush", "posLog3", words("to flush")),
        ("dispatch", "posBuild", words("to dispatch")))  # fmt: skip
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


def nice_top(value: float) -> float:
    """A little above ``value``, on a round number, so that an axis stays as it is for a while."""
    if not np.isfinite(value) or value <= 0:
        return 1.0
    step = 10.0 ** np.floor(np.log10(value)) / 2
    return float(np.ceil(value * 1.06 / step) * step)


def positions_frame(history: LiveHistory, shown: Range, width: int) -> LiveFrame:
    """Positions in MiB above the lowest that is drawn; wrote is drawn last, equal ones once."""
    found = {key: _cut(history.positions[key], shown, width) for key in DRAWN}
    lows = [float(np.nanmin(ys)) for _, ys in found.values() if len(ys) and np.isfinite(ys).any()]
    base = min(lows, default=0.0)
    traces: list[Trace] = []
    drawn: list[np.ndarray] = []
    for key in reversed(DRAWN):
        xs, ys = found[key]
        if not np.isfinite(ys).any() or any(len(ys) == len(d) and np.array_equal(ys, d, equal_nan=True) for d in drawn):
            continue
        drawn.append(ys)
        value = _value(history.positions[key], shown)
        text = "" if value is None or key in ("index_end", "queue_max") else f"{(value - base) / MIB:,.1f}"
        traces.append(Trace(tr(NAMES[key]), ROLES[key], xs, (ys - base) / MIB, text))
    top = max((float(np.nanmax(t.ys)) for t in traces), default=1.0)
    ticks = history.took.times
    ticks = ticks[(ticks >= shown.begin) & (ticks <= shown.end)][-4000:] - shown.end
    return LiveFrame(tuple(reversed(traces)), -shown.span, 0.0, nice_top(top), ticks=ticks,
                     lines=tuple(_lines(history, shown)), cursor=_cursor(shown))  # fmt: skip


def gaps_frame(history: LiveHistory, shown: Range, width: int, *, lab: bool) -> LiveFrame:
    """The three gaps in MiB; an alarm's line stands where its gap comes near it."""
    traces, top = [], 0.0
    for key, role, name in GAPS:
        xs, ys = _cut(history.gaps[key], shown, width)
        if np.isfinite(ys).any():
            value = _value(history.gaps[key], shown)
            text = "" if value is None else f"{value / MIB:,.2f}"
            said = tr("to flush, by the checkpoint") if key == "flush" and not lab else tr(name)
            traces.append(Trace(said, role, xs, ys / MIB, text, filled=True))
            top = max(top, float(np.nanmax(ys)) / MIB)
    alarms = [(DISPATCH_ALARM, "dispatch")] + ([(FLUSH_ALARM, "flush")] if lab else [])
    lines = []
    for limit, key in alarms:
        _, ys = _cut(history.gaps[key], shown, width)
        if len(ys) and np.isfinite(ys).any() and np.nanmax(ys) > limit / 3:
            said = tr("alarm {n} MiB to flush", n=limit // MIB) if key == "flush" else tr("alarm {n} MiB to dispatch",
                                                                                      n=limit // MIB)  # fmt: skip
            lines.append(Line(limit / MIB, "warn", said, upright=False))
            top = max(top, limit / MIB)
    return LiveFrame(tuple(traces), -shown.span, 0.0, nice_top(top), lines=tuple(lines), cursor=_cursor(shown))


def latency_frame(history: LiveHistory, shown: Range, width: int) -> LiveFrame:
    """Ms of each flush, late ones marked."""
    xs, ys = _cut(history.took, shown, width)
    known = history.took.values[_inside(history.took, shown)]
    middle, most = (float(np.median(known)), float(known.max())) if len(known) else (0.0, 0.0)
    traces = (Trace(tr("median"), "posLog", xs, ys, f"{middle:,.1f}", "dots", late=LATE_FLUSH),
              Trace(tr("largest"), "warn", xs[:0], ys[:0], f"{most:,.0f}", "dots"))  # fmt: skip
    return LiveFrame(traces, -shown.span, 0.0, nice_top(most), cursor=_cursor(shown))


def group_frame(history: LiveHistory, shown: Range, width: int) -> LiveFrame:
    """MiB of each flush."""
    xs, ys = _cut(history.group, shown, width)
    known = history.group.values[_inside(history.group, shown)]
    middle = float(np.median(known)) / MIB if len(known) else 0.0
    most = float(known.max()) / MIB if len(known) else 0.0
    trace = Trace(tr("median"), "posLog", xs, ys / MIB, f"{middle:,.2f}", "bars")
    return LiveFrame((trace,), -shown.span, 0.0, nice_top(most), cursor=_cursor(shown))


def rate_frame(history: LiveHistory, shown: Range, width: int, *, messages: bool) -> LiveFrame:
    """Messages dispatched a second, or MiB written a second."""
    series, by = (history.puts, 1) if messages else (history.bytes, MIB)
    xs, ys = _cut(series, shown, width)
    value = _value(series, shown)
    text = "" if value is None else f"{value / by:,.0f}" if messages else f"{value / by:,.2f}"
    most = float(np.nanmax(ys)) / by if len(ys) and np.isfinite(ys).any() else 0.0
    name, role = (tr("messages/s"), "posBuild") if messages else (tr("MiB/s"), "posLog")
    return LiveFrame((Trace(name, role, xs, ys / by, text, filled=True),), -shown.span, 0.0, nice_top(most),
                     cursor=_cursor(shown))  # fmt: skip


def shown_look(history: LiveHistory, shown: Range, *, live: bool) -> Look | None:
    """The look that stands at the right edge, or at the cursor of a picture that stands still."""
    if live:
        return history.last
    return history.look_at(round(shown.end * 1000))


def _cut(series: PeakSeries, shown: Range, width: int) -> tuple[np.ndarray, np.ndarray]:
    xs, ys = columns(series.times, series.values, shown.begin, shown.end, width)
    return np.clip(xs - shown.end, -shown.span, 0.0), ys


def _inside(series: PeakSeries, shown: Range) -> slice:
    low, high = np.searchsorted(series.times, (shown.begin, shown.end))
    return slice(int(low), int(high))


def _value(series: PeakSeries, shown: Range) -> float | None:
    return series.at(shown.end if shown.cursor is None else shown.cursor)


def _cursor(shown: Range) -> float | None:
    return None if shown.cursor is None else shown.cursor - shown.end


def _lines(history: LiveHistory, shown: Range) -> Iterable[Line]:
    """Rolls dashed in violet, other marks as short lines; the newest of many."""
    for at in list(history.rolls)[-MOST_LINES:]:
        if shown.begin <= at <= shown.end:
            yield Line(at - shown.end, "posTime", tr("roll"))
    roles = {"warn": "warn", "live": "live", "error": "error"}
    seen = [m for m in history.marks if m.upright and m.shape in roles
            and shown.begin <= m.at / 1000 <= shown.end]  # fmt: skip
    for mark in seen[-MOST_LINES:]:
        yield Line(mark.at / 1000 - shown.end, roles[mark.shape], mark.words()[0], dashed=False)


assert set(DRAWN) <= set(KEYS)
