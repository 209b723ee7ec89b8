"""What is shown of a lab store that is served: addresses, requests by code with their rates, clients. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewer.look.assets import tr, words
from viewer.look.formats import clock
from viewer.widgets.columns import Column, RecordKind, RowLook, gutter, number_column, text_column
from viewer.widgets.facts import Fact

if TYPE_CHECKING:
    from engine.lab.serving import ServingState


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


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A client as its heartbeats tell it."""

    client_id: str
    peer: str
    groups: str
    language: str
    role: str
    held: int


def code_rows(state: ServingState, before: ServingState | None) -> list[CodeRow]:
    """By code, the most asked for first; rates since ``before``."""
    known = {one.code: one.count for one in before.codes} if before is not None else {}
    span = state.at - before.at if before is not None else 0.0
    found = [
        CodeRow(one.name, one.code, one.count, (one.count - known.get(one.code, 0)) / span if span > 0 else None,
                one.p50, one.p99, one.held, one.not_ok)
        for one in state.codes
    ]  # fmt: skip
    return sorted(found, key=lambda row: (-row.count, row.code))


def client_rows(state: ServingState) -> list[ClientRow]:
    """Who is connected, as heartbeats tell it."""
    found = []
    for one in state.clients:
        role = tr("producer and consumer") if one.producers and one.consumers else (
            tr("producer") if one.producers else tr("consumer"))  # fmt: skip
        groups = ", ".join(dict.fromkeys((*one.producers, *one.consumers)))
        found.append(ClientRow(one.client_id, one.peer, groups, f"{one.language} {one.release}", role, one.held))
    return found


def address_facts(state: ServingState) -> list[Fact]:
    """Where clients find it, and how it stands."""
    return [
        Fact(tr("Name server"), state.namesrv),
        Fact(tr("Broker"), state.broker, state.name),
        Fact(tr("Started"), f"{state.took_s:.2f} s", tr("at {time}", time=clock(state.started_ms))),
        Fact(tr("Connections"), f"{state.connections:,}"),
        Fact(tr("Held pulls"), f"{state.held:,}"),
        Fact(tr("Open to"), tr("this machine"), code=False),
    ]


def rate_of(rows: list[CodeRow]) -> float | None:
    """Requests a second in all; None as long as nobody knows."""
    rates = [row.rate for row in rows if row.rate is not None]
    return sum(rates) if rates else None


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


CODES = RecordKind(
    "servedCode",
    (
        gutter(22),
        text_column("name", words("Request"), 210, mono=True, elide="middle", filterable=False),
        Column("code", words("Code"), 60, lambda row: f"{row.code}", lambda row: row.code, right=True, mono=True,
               filterable=False),
        number_column("count", words("Count"), 76, filterable=False),
        Column("rate", words("Rate /s"), 72, lambda row: "" if row.rate is None else f"{row.rate:,.0f}",
               lambda row: row.rate, right=True, mono=True, filterable=False),
        Column("p50", words("p50 ms"), 64, lambda row: _ms(row.p50), lambda row: row.p50, right=True, mono=True,
               filterable=False),
        Column("p99", words("p99 ms"), 64, lambda row: _ms(row.p99), lambda row: row.p99, right=True, mono=True,
               filterable=False),
        number_column("held", words("Held"), 56, filterable=False),
        number_column("notOk", words("Not 0"), 56, tone=lambda row: "warn" if row.not_ok else "text3",
                      filterable=False),
    ),
    look=lambda row: RowLook("warn") if row.not_ok else None,
)  # fmt: skip
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
)  # fmt: skip
