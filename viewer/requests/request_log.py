"""The requests that a view shows: kept within a bound, counted, filtered; no Qt, no clock.

Frames come from a server that runs in the lab or out of a file (:mod:`engine.remoting.recording`); what is kept are
exchanges, and a row for each. The oldest go where there is no room: how many, is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from engine.remoting.exchanges import CLOSED, HOLDING, OPENED, SENDS, Exchange, Exchanges, Seen, Talker

KEPT = 64 << 20
"""Bytes of frames that are kept, with what they cost beside."""
_COST = 1500
MINUTE = 60
OFFSETS = frozenset({14, 15, 30, 31})
FAMILIES = ("pulls", "sends", "offsets", "rest")
"""Kinds of requests that the strip tells apart."""


def family(code: int) -> int:
    """Which of :data:`FAMILIES` a request belongs to."""
    return 0 if code in HOLDING else 1 if code in SENDS else 2 if code in OFFSETS else 3


class Row:
    """An exchange as a row; ``client`` is the short name of who is at the other end. What an answer changes is read
    from the exchange each time.
    """

    __slots__ = ("client", "exchange")

    def __init__(self, exchange: Exchange, client: str) -> None:
        self.exchange = exchange
        self.client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self.exchange, name)

    def get(self, name: str, default: object = None) -> object:
        """``properties``: the request's header fields, as a filter asks for them."""
        return self.exchange.long_fields if name == "properties" else default


@dataclass(slots=True)
class Client:
    """Who is at the other end of connections: ``name`` is short (``P1``, ``C2``), ``talker`` what it told."""

    name: str
    peer: str
    server: str
    talker: Talker = field(default_factory=Talker)
    requests: int = 0
    not_ok: int = 0
    open: bool = True


@dataclass(slots=True)
class Second:
    """Requests of one second by family, and whether one was answered with a code that is no 0."""

    at: int
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    not_ok: int = 0


class RequestLog:
    """See the module. ``take`` frames as they come; ``rows`` are those that the filter lets through."""

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self.clear()

    def clear(self) -> None:
        """Nothing has been seen."""
        self._exchanges = Exchanges()
        self._rows: dict[int, Row] = {}
        self.rows: list[Row] = []
        self.clients: dict[int, Client] = {}
        self.codes: Counter[int] = Counter()
        self.answers: Counter[int] = Counter()
        self.seconds: list[Second] = []
        self.bytes = 0
        self.dropped = 0
        """Exchanges that had to make room."""
        self.missed = 0
        """Frames that came too fast to be fetched."""
        self.broken = 0
        self.total = 0
        self._names: Counter[str] = Counter()
        self._test: Callable[[Row], bool] | None = None

    # ---- what comes --------------------------------------------------------------------------------------------------

    def take(self, items: Iterable[Seen]) -> tuple[list[Row], list[Row]]:
        """Rows that are new and let through, and those that have their answer now."""
        new: list[Row] = []
        changed: list[Row] = []
        for seen in items:
            for exchange in self._exchanges.take(seen):
                row = self._rows.get(exchange.number)
                if row is None and (exchange.answer is None or exchange.broken):
                    if not exchange.ended:
                        new.append(self._added(exchange))
                elif row is not None:
                    self._answered(row)
                    changed.append(row)
            if seen.kind == CLOSED and seen.connection in self.clients:
                self.clients[seen.connection].open = False
        self._make_room()
        kept = [row for row in new if row.exchange.number in self._rows]
        shown = [row for row in kept if self._test is None or self._test(row)]
        self.rows += shown
        return shown, changed

    def take_exchanges(self, exchanges: Iterable[Exchange]) -> None:
        """Exchanges that are whole: of a log of requests, which has no frames."""
        for exchange in exchanges:
            row = self._added(exchange)
            if exchange.answer is not None:
                self._answered(row)
            self.rows.append(row)
        self._make_room()

    def _added(self, exchange: Exchange) -> Row:
        self.total += 1
        key = exchange.connection or hash(exchange.peer)
        client = self.clients.get(key)
        if client is None:
            client = self.clients[key] = Client("", exchange.peer, exchange.server)
        if exchange.direction == "in" and not exchange.broken:
            client.talker.hear(exchange)
        if not client.name:
            client.name = self._named(client)
        client.requests += 1
        row = self._rows[exchange.number] = Row(exchange, client.name)
        self.bytes += exchange.bytes + _COST
        if exchange.broken:
            self.broken += 1
            self._second(exchange.time).not_ok += 1
        else:
            self.codes[exchange.code] += 1
            self._second(exchange.time).counts[family(exchange.code)] += 1
        return row

    def _named(self, client: Client) -> str:
        talker = client.talker
        letter = "C" if talker.consumers else "P" if talker.producers else "N" if client.server == "namesrv" else "A"
        self._names[letter] += 1
        return f"{letter}{self._names[letter]}"

    def _answered(self, row: Row) -> None:
        exchange = row.exchange
        code = exchange.answer_code
        if code is None:
            return
        self.bytes += len(exchange.answer.data) if exchange.answer is not None else 0
        self.answers[code] += 1
        if is_trouble(exchange):
            self._second(exchange.time).not_ok += 1
            key = exchange.connection or hash(exchange.peer)
            self.clients[key].not_ok += 1

    def _second(self, ms: int) -> Second:
        at = ms // 1000
        for found in reversed(self.seconds):
            if found.at == at:
                return found
            if found.at < at:
                break
        made = Second(at)
        self.seconds.append(made)
        if len(self.seconds) > 1 and self.seconds[-2].at > at:
            self.seconds.sort(key=lambda one: one.at)
        del self.seconds[: -10 * MINUTE]
        return made

    def _make_room(self) -> None:
        before = self.dropped
        while self.bytes > self._most and len(self._rows) > 1:
            number = next(iter(self._rows))
            row = self._rows.pop(number)
            self.bytes -= row.exchange.bytes + _COST
            self.dropped += 1
        if self.dropped != before:
            first = next(iter(self._rows), 0)
            at = next((n for n, row in enumerate(self.rows) if row.exchange.number >= first), len(self.rows))
            del self.rows[:at]

    # ---- what is shown -----------------------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Exchanges that are held."""
        return len(self._rows)

    def kept_rows(self) -> list[Row]:
        """Every row that is held, whatever the filter is."""
        return list(self._rows.values())

    @property
    def waiting(self) -> int:
        """Pulls that are held by the server now."""
        return sum(row.exchange.waits and row.exchange.held for row in self._rows.values())

    def show(self, test: Callable[[Row], bool] | None) -> None:
        """Let through what ``test`` takes; None: everything."""
        self._test = test
        self.rows = [row for row in self._rows.values() if test is None or test(row)]

    def row(self, number: int) -> Row | None:
        """The row of an exchange that is held."""
        return self._rows.get(number)

    def next_of(self, row: Row, step: int = 1) -> Row | None:
        """The next row in sight of the same connection; None behind the last."""
        try:
            at = self.rows.index(row)
        except ValueError:
            return None
        others = self.rows[at + 1 :] if step > 0 else list(reversed(self.rows[:at]))
        return next((one for one in others if one.exchange.connection == row.exchange.connection
                     and one.exchange.peer == row.exchange.peer), None)  # fmt: skip

    def items(self) -> list[Seen]:
        """The frames of what is kept, as a recording holds them."""
        found: list[Seen] = []
        greeted: set[int] = set()
        for row in self._rows.values():
            exchange = row.exchange
            if not exchange.request.data:
                continue
            if exchange.connection not in greeted:
                greeted.add(exchange.connection)
                hello = f"{exchange.peer} {exchange.server}".encode()
                found.append(Seen(exchange.request.time, exchange.connection, OPENED, hello))
            found.append(exchange.request)
            if exchange.answer is not None:
                found.append(exchange.answer)
        return sorted(found, key=lambda seen: seen.time)


def is_trouble(exchange: Exchange) -> bool:
    """Whether an answer says that something was not done: a code that is no 0, and not that nothing was found."""
    return exchange.answer_code not in {None, 0, 19, 22}
