"""A served lab store as rows and as time series: addresses, requests by code with their rates, clients, held pulls,
answers other than 0. No Qt.

The series are filled from successive serving states; memory is bounded. Times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, number
from viewer.pane.live_plots import Range, nice_top
from viewer.runtime import places
from viewer.runtime.peak_series import PeakSeries
from viewer.runtime.places import REQUESTS_LIVE, Place
from viewer.widgets.columns import Column, RecordKind, RowAppearance, gutter, number_column, text_column
from viewer.widgets.facts import Fact
from viewer.widgets.live_frame import LiveFrame, Trace

if TYPE_CHECKING:
    from engine.lab.serving import LastEntry, ServingState


@dataclass(frozen=True, slots=True)
class CodeRow:
    """Requests of one code; ``rate`` is per second between the last two states, None before the second one."""

    name: str
    code: int
    count: int
    rate: float | None
    p50: float | None
    p99: float | None
    held: int
    not_ok: int
    last_entry: LastEntry | None = None
    role: str = ""
    """Colour of its curve; "" if it is not drawn."""

    @property
    def entry(self) -> Place | None:
        """Queue entry that its last send wrote, or the first one that its last pull returned."""
        last_entry = self.last_entry
        return (
            None if last_entry is None else places.queue(last_entry.topic, last_entry.queue_id, last_entry.queue_offset)
        )

    @property
    def unit(self) -> Place | None:
        """Unit of that entry."""
        return None if self.last_entry is None else places.log(self.last_entry.physical_offset)


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A client as its heartbeats describe it."""

    client_id: str
    peer: str
    groups: str
    language: str
    role: str
    held: int


def code_rows(
    state: ServingState, previous: ServingState | None, roles: Mapping[int, str] | None = None
) -> list[CodeRow]:
    """Return the rows by code, most requested first; rates since ``previous``; ``roles`` are curve colours."""
    previous_counts = (
        {code_counts.code: code_counts.count for code_counts in previous.codes} if previous is not None else {}
    )
    span = state.clock_s - previous.clock_s if previous is not None else 0.0
    code_table = [
        CodeRow(
            code_counts.name,
            code_counts.code,
            code_counts.count,
            (code_counts.count - previous_counts.get(code_counts.code, 0)) / span if span > 0 else None,
            code_counts.p50,
            code_counts.p99,
            code_counts.held_count,
            code_counts.not_ok,
            code_counts.last_entry,
            (roles or {}).get(code_counts.code, ""),
        )
        for code_counts in state.codes
    ]
    return sorted(code_table, key=lambda row: (-row.count, row.code))


def client_rows(state: ServingState) -> list[ClientRow]:
    """Return the connected clients, as their heartbeats describe them."""
    client_table = []
    for client in state.clients:
        role = (
            tr("producer and consumer")
            if client.producers and client.consumers
            else (tr("producer") if client.producers else tr("consumer"))
        )
        groups = ", ".join(dict.fromkeys((*client.producers, *client.consumers)))
        client_table.append(
            ClientRow(
                client.client_id, client.peer, groups, f"{client.language} {client.release}", role, client.held_pulls
            )
        )
    return client_table


def address_facts(state: ServingState) -> list[Fact]:
    """Return the addresses for clients, and the status of the server."""
    not_ok = sum(code_counts.not_ok for code_counts in state.codes)
    facts = [
        Fact(tr("Name server"), state.namesrv),
        Fact(tr("Broker"), state.broker, state.name),
    ]
    if state.ha:
        facts.append(Fact(tr("HA"), state.ha, tr_plural("{n:,} slave", "{n:,} slaves", n=state.slaves)))
    if state.vip:
        facts.append(Fact(tr("VIP"), state.vip, tr("for old clients")))
    elif state.no_vip:
        facts.append(Fact(tr("VIP"), tr("not served"), engine_words(state.no_vip), "warn", code=False))
    if state.config:
        name = PurePath(state.config).name
        ignored = ", ".join(state.without_effect)
        note = tr("no effect here: {keys}", keys=ignored) if ignored else ""
        facts.append(Fact(tr("Config"), name, note, "warn" if ignored else "text"))
    return [
        *facts,
        Fact(
            tr("Held pulls"), f"{state.held_pulls:,}", place=_requests("held and waits") if state.held_pulls else None
        ),
        Fact(tr("Not 0"), f"{not_ok:,}", place=_requests(NOT_OK) if not_ok else None),
        Fact(tr("Connections"), f"{state.connections:,}"),
        Fact(tr("Started"), f"{state.took_s:.2f} s", tr("at {time}", time=clock(state.started_ms))),
        Fact(tr("Open to"), tr("this machine"), code=False),
    ]


NOT_OK = 'answerCode != 0 and answer != "PULL_NOT_FOUND"'
"""Filter of requests: responses that report a failure."""


def _requests(term: str) -> Place:
    return Place("requests", name=REQUESTS_LIVE, part=term)


def rate_of(rows: list[CodeRow]) -> float | None:
    """Return the requests a second in all; None while it is unknown."""
    rates = [row.rate for row in rows if row.rate is not None]
    return sum(rates) if rates else None


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def _entry_text(row: CodeRow) -> str:
    last_entry = row.last_entry
    return "" if last_entry is None else f"{last_entry.topic}/{last_entry.queue_id}/{last_entry.queue_offset:,}"


CODES = RecordKind(
    "servedCode",
    (
        gutter(22),
        Column(
            "curve",
            "",
            18,
            lambda row: "■" if row.role else "",
            lambda row: row.role,
            filterable=False,
            tone=lambda row: row.role or "text3",
        ),
        text_column("name", words("Request"), 210, mono=True, elide="middle", filterable=False),
        Column(
            "code",
            words("Code"),
            60,
            lambda row: f"{row.code}",
            lambda row: row.code,
            right=True,
            mono=True,
            filterable=False,
        ),
        number_column("count", words("Count"), 76, slim=True, filterable=False),
        Column(
            "rate",
            words("Rate /s"),
            72,
            lambda row: "" if row.rate is None else f"{row.rate:,.0f}",
            lambda row: row.rate,
            right=True,
            mono=True,
            filterable=False,
        ),
        Column(
            "p50",
            words("p50 ms"),
            64,
            lambda row: _ms(row.p50),
            lambda row: row.p50,
            right=True,
            mono=True,
            slim=True,
            filterable=False,
        ),
        Column(
            "p99",
            words("p99 ms"),
            64,
            lambda row: _ms(row.p99),
            lambda row: row.p99,
            right=True,
            mono=True,
            filterable=False,
        ),
        number_column("held", words("Held"), 56, slim=True, filterable=False),
        number_column(
            "notOk", words("Not 0"), 56, tone=lambda row: "warn" if row.not_ok else "text3", filterable=False
        ),
        Column(
            "entry",
            words("Last entry"),
            150,
            _entry_text,
            _entry_text,
            mono=True,
            jump=lambda row: row.entry,
            elide="middle",
            hides=True,
            filterable=False,
        ),
        Column(
            "physicalOffset",
            words("Newest unit"),
            112,
            lambda row: number(row.last_entry and row.last_entry.physical_offset),
            lambda row: row.last_entry and row.last_entry.physical_offset,
            right=True,
            mono=True,
            jump=lambda row: row.unit,
            hides=True,
            filterable=False,
        ),
    ),
    look=lambda row: RowAppearance("warn") if row.not_ok else None,
)
CLIENTS = RecordKind(
    "servedClient",
    (
        gutter(22),
        text_column("groups", words("Groups"), 150, elide="middle", filterable=False),
        text_column("language", words("Language"), 100, filterable=False),
        text_column("role", words("Is"), 80, filterable=False),
        number_column("held", words("Held"), 56, filterable=False),
        text_column("peer", words("Address"), 140, mono=True, filterable=False),
        text_column("clientId", words("Client"), 180, mono=True, elide="middle", filterable=False),
    ),
)
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
        if previous is not None and state.clock_s <= previous.clock_s:
            return
        self._previous = state
        if previous is None:
            self._clock_offset_s = now - state.clock_s
            return
        span, end_s, start_s = (
            state.clock_s - previous.clock_s,
            self._clock_offset_s + state.clock_s,
            self._clock_offset_s + previous.clock_s,
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
        self.held.append(end_s, state.held_pulls)
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
        for rank, code in enumerate(sorted(self.roles, key=lambda code: -(self.codes[code].at(self._end) or 0.0))):
            series = self.codes[code]
            value = series.at(self._end)
            legend_value = f"{value:,.0f}" if value is not None and rank < names else ""
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
            right_edge_s=edge,
            breaks=breaks,
        )


def _sum(series: PeakSeries, begin: float) -> float:
    first_index = int(np.searchsorted(series.times, begin))
    values = series.values[first_index:]
    return float(np.nansum(values)) if len(values) else 0.0
