"""Time series of a served store for the plots of Serve: requests by code, held pulls, answers other than 0. No Qt.

It is filled from successive serving states; memory is bounded. Times are seconds since the epoch.
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

SHOWN_SECONDS = 60.0
"""Seconds that the plots show."""
CAPACITY = 1200
"""Points of a series; older ones become coarser."""
MAX_CODES = 32
"""Maximum number of codes with a series of their own; the sum counts all."""
ROLES = ("posLog", "posBuild", "posTime", "posLog3", "posBuild2")
"""Colours of the drawn codes: those with most requests in the shown time."""
LONG_PAUSE_S = 2.5
"""Seconds between two states from which on they count as a pause."""
MAX_BREAKS = 100


class ServeHistory:
    """Series of a served store; pass each state to :meth:`take`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._previous: ServingState | None = None
        self._clock_offset_s = 0.0
        self.codes: dict[int, PeakSeries] = {}
        self.names: dict[int, str] = {}
        self.roles: dict[int, str] = {}
        """Colours of the drawn codes; a code keeps its colour while it is drawn."""
        self.all_requests = PeakSeries(CAPACITY)
        self.held = PeakSeries(CAPACITY)
        self.not_ok = PeakSeries(CAPACITY)
        self.breaks: list[tuple[float, float]] = []

    def take(self, state: ServingState, now: float) -> None:
        """Add a state that came at the time ``now``; one that was taken already is ignored."""
        previous = self._previous
        if previous is not None and previous.started_ms != state.started_ms:
            self.clear()
            previous = None
        if previous is not None and state.at <= previous.at:
            return
        self._previous = state
        if previous is None:
            self._clock_offset_s = now - state.at
            return
        span, end_s, start_s = (
            state.at - previous.at,
            self._clock_offset_s + state.at,
            self._clock_offset_s + previous.at,
        )
        if span > LONG_PAUSE_S:
            self.breaks.append((start_s, end_s))
            del self.breaks[:-MAX_BREAKS]
            for series in (self.all_requests, self.held, self.not_ok, *self.codes.values()):
                series.append(start_s, None)
        previous_codes = {code_counts.code: code_counts for code_counts in previous.codes}
        request_count = failed_count = 0
        for code_counts in state.codes:
            previous_counts = previous_codes.get(code_counts.code)
            new_requests = code_counts.count - (previous_counts.count if previous_counts is not None else 0)
            request_count += new_requests
            failed_count += code_counts.not_ok - (previous_counts.not_ok if previous_counts is not None else 0)
            series_of_code = self._series_of(code_counts.code, code_counts.name, start_s)
            if series_of_code is not None:
                series_of_code.append(end_s, new_requests / span)
        self.all_requests.append(end_s, request_count / span)
        self.not_ok.append(end_s, failed_count / span)
        self.held.append(end_s, state.held)
        self._colour()

    def _series_of(self, code: int, name: str, since: float) -> PeakSeries | None:
        series = self.codes.get(code)
        if series is None and len(self.codes) < MAX_CODES:
            series = self.codes[code] = PeakSeries(CAPACITY)
            self.names[code] = name
            if len(self.all_requests):
                series.append(since, 0.0)
        return series

    def _colour(self) -> None:
        """Give colours to the codes with most requests in the time shown; a code keeps its colour."""
        begin = self._end - SHOWN_SECONDS
        sums = {code: _sum(series, begin) for code, series in self.codes.items()}
        drawn = [code for code in sorted(sums, key=lambda code: (-sums[code], code)) if sums[code] > 0][: len(ROLES)]
        self.roles = {code: role for code, role in self.roles.items() if code in drawn}
        free = [role for role in ROLES if role not in self.roles.values()]
        for code in drawn:
            if code not in self.roles:
                self.roles[code] = free.pop(0)

    @property
    def _end(self) -> float:
        return float(self.all_requests.times[-1]) if len(self.all_requests) else 0.0

    def rates(self, width: int, names: int) -> LiveFrame | None:
        """Return the requests a second, all and by code, of the last minute in ``width`` columns.

        ``names`` codes have their rate in the legend. None while nothing is known.
        """
        if not len(self.all_requests):
            return None
        xs, ys = self._cut(self.all_requests, width)
        now = self.all_requests.at(self._end)
        traces = [Trace(tr("all"), "posMin", xs, ys, "" if now is None else f"{now:,.0f}", filled=True)]
        for number, code in enumerate(sorted(self.roles, key=lambda code: -(self.codes[code].at(self._end) or 0.0))):
            series = self.codes[code]
            value = series.at(self._end)
            legend_value = f"{value:,.0f}" if value is not None and number < names else ""
            traces.append(Trace(self.names[code], self.roles[code], *self._cut(series, width), legend_value))
        return self._frame(traces, width)

    def waits(self, width: int) -> LiveFrame | None:
        """Return the held pulls, and answers a second other than 0."""
        if not len(self.held):
            return None
        traces = []
        for series, role, name in ((self.held, "posLog", tr("held pulls")), (self.not_ok, "warn", tr("not 0 /s"))):
            value = series.at(self._end)
            traces.append(Trace(name, role, *self._cut(series, width), "" if value is None else f"{value:,.0f}"))
        return self._frame(traces, width)

    def _cut(self, series: PeakSeries, width: int) -> tuple[np.ndarray, np.ndarray]:
        shown = Range(self._end, SHOWN_SECONDS)
        edge = shown.edge(width)
        xs, ys = series.columns(edge, SHOWN_SECONDS, width)
        return np.clip(xs - shown.end, edge - shown.end - SHOWN_SECONDS, edge - shown.end), ys

    def _frame(self, traces: list[Trace], width: int) -> LiveFrame:
        end = self._end
        edge = Range(end, SHOWN_SECONDS).edge(width)
        tops = [float(np.nanmax(trace.ys)) for trace in traces if len(trace.ys) and np.isfinite(trace.ys).any()]
        breaks = tuple((begin - end, stop - end) for begin, stop in self.breaks if stop > end - SHOWN_SECONDS)
        return LiveFrame(
            tuple(traces),
            edge - end - SHOWN_SECONDS,
            edge - end,
            nice_top(max(tops, default=0.0)),
            at=edge,
            breaks=breaks,
        )


def _sum(series: PeakSeries, begin: float) -> float:
    first_index = int(np.searchsorted(series.times, begin))
    values = series.values[first_index:]
    return float(np.nansum(values)) if len(values) else 0.0
