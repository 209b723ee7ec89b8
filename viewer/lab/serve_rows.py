"""What is shown of a lab store that is served: addresses, requests by code with their rates, clients. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, number
from viewer.runtime import places
from viewer.runtime.places import REQUESTS_LIVE, Place
from viewer.widgets.columns import Column, RecordKind, RowLook, gutter, number_column, text_column
from viewer.widgets.facts import Fact

if TYPE_CHECKING:
    from engine.lab.serving import LastEntry, ServingState


@dataclass(frozen=True, slots=True)
class CodeRow:
    """Requests of one code: ``rate`` a second between the last two looks, None as long as there was one."""

    name: str
    code: int
    count: int
    rate: float | None
    p50: float | None
    p99: float | None
    held: int
    not_ok: int
    last: LastEntry | None = None
    role: str = ""
    """The colour of its curve; none where it has none."""

    @property
    def entry(self) -> Place | None:
        """The queue entry that its last send wrote, or its last pull was answered first."""
        last = self.last
        return None if last is None else places.queue(last.topic, last.queue_id, last.queue_offset)

    @property
    def unit(self) -> Place | None:
        """The unit behind that entry."""
        return None if self.last is None else places.log(self.last.physical_offset)


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A client as its heartbeats tell it."""

    client_id: str
    peer: str
    groups: str
    language: str
    role: str
    held: int


def code_rows(
    state: ServingState, before: ServingState | None, roles: Mapping[int, str] | None = None
) -> list[CodeRow]:
    """By code, the most asked for first; rates since ``before``; ``roles`` are the colours of curves."""
    known = {one.code: one.count for one in before.codes} if before is not None else {}
    span = state.at - before.at if before is not None else 0.0
    found = [
        CodeRow(
            one.name,
            one.code,
            one.count,
            (one.count - known.get(one.code, 0)) / span if span > 0 else None,
            one.p50,
            one.p99,
            one.held,
            one.not_ok,
            one.last,
            (roles or {}).get(one.code, ""),
        )
        for one in state.codes
    ]
    return sorted(found, key=lambda row: (-row.count, row.code))


def client_rows(state: ServingState) -> list[ClientRow]:
    """Who is connected, as heartbeats tell it."""
    found = []
    for one in state.clients:
        role = (
            tr("producer and consumer")
            if one.producers and one.consumers
            else (tr("producer") if one.producers else tr("consumer"))
        )
        groups = ", ".join(dict.fromkeys((*one.producers, *one.consumers)))
        found.append(ClientRow(one.client_id, one.peer, groups, f"{one.language} {one.release}", role, one.held))
    return found


def address_facts(state: ServingState) -> list[Fact]:
    """Where clients find it, and how it stands."""
    not_ok = sum(one.not_ok for one in state.codes)
    found = [
        Fact(tr("Name server"), state.namesrv),
        Fact(tr("Broker"), state.broker, state.name),
    ]
    if state.ha:
        found.append(Fact(tr("HA"), state.ha, tr("{n:,} slaves", n=state.slaves)))
    if state.vip:
        found.append(Fact(tr("VIP"), state.vip, tr("for old clients")))
    elif state.no_vip:
        found.append(Fact(tr("VIP"), tr("not served"), engine_words(state.no_vip), "warn", code=False))
    if state.config:
        name = PurePath(state.config).name
        ignored = ", ".join(state.without_effect)
        note = tr("without effect here: {keys}", keys=ignored) if ignored else ""
        found.append(Fact(tr("Config"), name, note, "warn" if ignored else "text"))
    return [
        *found,
        Fact(tr("Held pulls"), f"{state.held:,}", place=_requests("held and waits") if state.held else None),
        Fact(tr("Not 0"), f"{not_ok:,}", place=_requests(NOT_OK) if not_ok else None),
        Fact(tr("Connections"), f"{state.connections:,}"),
        Fact(tr("Started"), f"{state.took_s:.2f} s", tr("at {time}", time=clock(state.started_ms))),
        Fact(tr("Open to"), tr("this machine"), code=False),
    ]


NOT_OK = 'answerCode != 0 and answer != "PULL_NOT_FOUND"'
"""As a filter of requests: answers that say that something was not done."""


def _requests(term: str) -> Place:
    return Place("requests", name=REQUESTS_LIVE, part=term)


def rate_of(rows: list[CodeRow]) -> float | None:
    """Requests a second in all; None as long as nobody knows."""
    rates = [row.rate for row in rows if row.rate is not None]
    return sum(rates) if rates else None


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def _entry_text(row: CodeRow) -> str:
    last = row.last
    return "" if last is None else f"{last.topic}/{last.queue_id}/{last.queue_offset:,}"


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
            words("Last unit"),
            112,
            lambda row: number(row.last and row.last.physical_offset),
            lambda row: row.last and row.last.physical_offset,
            right=True,
            mono=True,
            jump=lambda row: row.unit,
            hides=True,
            filterable=False,
        ),
    ),
    look=lambda row: RowLook("warn") if row.not_ok else None,
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
