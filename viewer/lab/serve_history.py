"""What a served store was asked over time, for the plots of Serve: requests a second by code, pulls that were held,
answers that were not 0; no Qt.

Filled from one state of serving after the other; memory is bounded however long that goes on. Times are seconds since
the epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from viewer.look.assets import tr
from viewer.pane.live_plots import Range, nice_top
from viewer.runtime.peak_series import PeakSeries
from viewer.widgets.live_frame import LiveFrame, Trace

if TYPE_CHECKING:
    from engine.lab.serving import ServingState

SECONDS = 60.0
"""What the plots show."""
CAPACITY = 1200
"""Points of a series; older ones become coarser."""
MOST_CODES = 32
"""Codes that have a series of their own; all count in the sum."""
ROLES = ("posLog", "posBuild", "posTime", "posLog3", "posBuild2")
"""Colours of the codes that are drawn: those with most requests in the time shown."""
LONG_PAUSE = 2.5
"""Seconds between two states from which on nobody sampled."""
MOST_BREAKS = 100


class ServeHistory:
    """See the module; :meth:`take` each state as it comes."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Nothing was served yet."""
        self._before: ServingState | None = None
        self._ahead = 0.0
        self.codes: dict[int, PeakSeries] = {}
        self.names: dict[int, str] = {}
        self.roles: dict[int, str] = {}
        """Colours of the codes that are drawn; one keeps its own as long as it is."""
        self.every = PeakSeries(CAPACITY)
        self.held = PeakSeries(CAPACITY)
        self.not_ok = PeakSeries(CAPACITY)
        self.breaks: list[tuple[float, float]] = []

    def take(self, state: ServingState, now: float) -> None:
        """One more state; ``now`` is the time at which it came. One that was taken already, counts no more."""
        before = self._before
        if before is not None and before.started_ms != state.started_ms:
            self.clear()
            before = None
        if before is not None and state.at <= before.at:
            return
        self._before = state
        if before is None:
            self._ahead = now - state.at
            return
        span, at, since = state.at - before.at, self._ahead + state.at, self._ahead + before.at
        if span > LONG_PAUSE:
            self.breaks.append((since, at))
            del self.breaks[:-MOST_BREAKS]
            for series in (self.every, self.held, self.not_ok, *self.codes.values()):
                series.append(since, None)
        known = {one.code: one for one in before.codes}
        asked = failed = 0
        for one in state.codes:
            was = known.get(one.code)
            came = one.count - (was.count if was is not None else 0)
            asked += came
            failed += one.not_ok - (was.not_ok if was is not None else 0)
            series_of_code = self._series_of(one.code, one.name, since)
            if series_of_code is not None:
                series_of_code.append(at, came / span)
        self.every.append(at, asked / span)
        self.not_ok.append(at, failed / span)
        self.held.append(at, state.held)
        self._colour()

    def _series_of(self, code: int, name: str, since: float) -> PeakSeries | None:
        found = self.codes.get(code)
        if found is None and len(self.codes) < MOST_CODES:
            found = self.codes[code] = PeakSeries(CAPACITY)
            self.names[code] = name
            if len(self.every):
                found.append(since, 0.0)
        return found

    def _colour(self) -> None:
        """Colours for those with most requests in the time shown; whoever has one keeps it."""
        begin = self._end - SECONDS
        sums = {code: _sum(series, begin) for code, series in self.codes.items()}
        drawn = [code for code in sorted(sums, key=lambda code: (-sums[code], code)) if sums[code] > 0][: len(ROLES)]
        self.roles = {code: role for code, role in self.roles.items() if code in drawn}
        free = [role for role in ROLES if role not in self.roles.values()]
        for code in drawn:
            if code not in self.roles:
                self.roles[code] = free.pop(0)

    @property
    def _end(self) -> float:
        return float(self.every.times[-1]) if len(self.every) else 0.0

    def rates(self, width: int, names: int) -> LiveFrame | None:
        """Requests a second, all and by code, the last minute in ``width`` columns; ``names`` codes have theirs in the
        legend. None as long as nothing is known.
        """
        if not len(self.every):
            return None
        xs, ys = self._cut(self.every, width)
        now = self.every.at(self._end)
        traces = [Trace(tr("all"), "posMin", xs, ys, "" if now is None else f"{now:,.0f}", filled=True)]
        for number, code in enumerate(sorted(self.roles, key=lambda code: -(self.codes[code].at(self._end) or 0.0))):
            series = self.codes[code]
            value = series.at(self._end)
            said = f"{value:,.0f}" if value is not None and number < names else ""
            traces.append(Trace(self.names[code], self.roles[code], *self._cut(series, width), said))
        return self._frame(traces, width)

    def waits(self, width: int) -> LiveFrame | None:
        """Pulls that are held, and answers a second that were not 0."""
        if not len(self.held):
            return None
        traces = []
        for series, role, name in ((self.held, "posLog", tr("held pulls")), (self.not_ok, "warn", tr("not 0 /s"))):
            value = series.at(self._end)
            traces.append(Trace(name, role, *self._cut(series, width), "" if value is None else f"{value:,.0f}"))
        return self._frame(traces, width)

    def _cut(self, series: PeakSeries, width: int) -> tuple[np.ndarray, np.ndarray]:
        shown = Range(self._end, SECONDS)
        edge = shown.edge(width)
        xs, ys = series.columns(edge, SECONDS, width)
        return np.clip(xs - shown.end, edge - shown.end - SECONDS, edge - shown.end), ys

    def _frame(self, traces: list[Trace], width: int) -> LiveFrame:
        end = self._end
        edge = Range(end, SECONDS).edge(width)
        tops = [float(np.nanmax(one.ys)) for one in traces if len(one.ys) and np.isfinite(one.ys).any()]
        breaks = tuple((a - end, b - end) for a, b in self.breaks if b > end - SECONDS)
        return LiveFrame(
            tuple(traces), edge - end - SECONDS, edge - end, nice_top(max(tops, default=0.0)), at=edge, breaks=breaks
        )


def _sum(series: PeakSeries, begin: float) -> float:
    first = int(np.searchsorted(series.times, begin))
    values = series.values[first:]
    return float(np.nansum(values)) if len(values) else 0.0
