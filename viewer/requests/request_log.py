"""The requests that a view shows: kept within a bound, counted, filtered; no Qt, no clock.

Frames come from a server that runs in the lab or out of a file (:mod:`engine.remoting.recording`); what is kept are
exchanges, a row for each, or a row for each of their frames. The oldest go where there is no room: how many, is said.
"""

from __future__ import annotations

import base64
from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from engine.remoting.exchanges import (
    BROKEN,
    CAME,
    CLOSED,
    HOLDING,
    LATER,
    OPENED,
    SENDS,
    WENT,
    Exchange,
    Exchanges,
    Seen,
    Talker,
    answer_name,
    digest,
    request_name,
)
from engine.remoting.frame import Command

KEPT = 64 << 20
"""Bytes of frames that are kept, with what they cost beside."""
_COST = 1500
MINUTE = 60
OFFSETS = frozenset({14, 15, 30, 31})
FAMILIES = ("pulls", "sends", "offsets", "rest")
"""Kinds of requests that the strip tells apart."""
REQUEST, ANSWER = "request", "answer"
"""The halves of an exchange, each a frame."""
_FRAMES = frozenset({CAME, WENT, LATER, BROKEN})


def family(code: int) -> int:
    """Which of :data:`FAMILIES` a request belongs to."""
    return 0 if code in HOLDING else 1 if code in SENDS else 2 if code in OFFSETS else 3


class Row:
    """An exchange as a row; ``client`` is the short name of who is at the other end (``of``). What an answer changes is
    read from the exchange each time. ``asked`` and ``answered`` are its frames.
    """

    __slots__ = ("answered", "asked", "exchange", "of")

    def __init__(self, exchange: Exchange, client: Client) -> None:
        self.exchange = exchange
        self.of = client
        self.asked: Frame | None = None
        self.answered: Frame | None = None

    @property
    def client(self) -> str:
        return self.of.name or self.of.peer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.exchange, name)

    def get(self, name: str, default: object = None) -> object:
        """``properties``: the request's header fields, as a filter asks for them."""
        return self.exchange.long_fields if name == "properties" else default


class Frame:
    """One frame as a row: ``number`` counts frames as they were seen, ``frame`` says which half of its exchange it is.

    Time, bytes and who sent it are its own; everything else is that of its exchange, so that a condition which takes
    one half takes the other.
    """

    __slots__ = ("frame", "number", "row")

    def __init__(self, row: Row, number: int, half: str) -> None:
        self.row = row
        self.number = number
        self.frame = half

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)

    @property
    def seen(self) -> Seen:
        """What was seen."""
        answer = self.row.exchange.answer
        return answer if self.frame == ANSWER and answer is not None else self.row.exchange.request

    @property
    def time(self) -> int:
        """When the frame was seen, ms since 1970."""
        return self.seen.time // 1000

    @property
    def direction(self) -> str:
        """Who sent it: ``in`` the client, ``out`` the server."""
        return "in" if self.seen.from_client else "out"

    @property
    def bytes(self) -> int:
        """Of this frame."""
        sizes = self.row.exchange.sizes
        return len(self.seen.data) if sizes is None else sizes[self.frame == ANSWER]

    @property
    def frame_code(self) -> int | None:
        """The request's code, or the answer's."""
        exchange = self.row.exchange
        if exchange.broken:
            return None
        return exchange.code if self.frame == REQUEST else exchange.answer_code

    @property
    def other(self) -> Frame | None:
        """The other half; None where it was not seen."""
        return self.row.asked if self.frame == ANSWER else self.row.answered

    def get(self, name: str, default: object = None) -> object:
        """As :meth:`Row.get`."""
        return self.row.get(name, default)


class Unasked(Exchange):
    """An answer whose request was not seen: it came before recording began."""

    @property
    def name(self) -> str:
        """Nobody knows."""
        return ""

    @property
    def ms(self) -> None:
        """Nobody knows."""
        return None


Shown = Row | Frame


def frame_record(frame: Frame) -> dict[str, Any]:
    """A frame as the record ``frame``: its header as it stands there, its body by length and digest; ``other`` is the
    number of the other half.
    """
    seen, exchange, code = frame.seen, frame.exchange, frame.frame_code
    command = seen.command if seen.command is not None else Command(0)
    name = request_name if frame.frame == REQUEST else answer_name
    whole = bool(seen.data) and not exchange.broken
    return {
        "type": "frame",
        "number": frame.number,
        "time": frame.time,
        "connection": exchange.peer,
        "server": exchange.server,
        "direction": frame.direction,
        "frame": frame.frame,
        "opaque": frame.opaque,
        "other": frame.other.number if frame.other is not None else None,
        "code": code,
        "name": None if code is None else name(code),
        "remark": command.remark,
        "fields": command.fields,
        "ms": frame.ms if frame.frame == ANSWER else None,
        "bytes": frame.bytes,
        "body": digest(seen.body) if whole else None,
        "broken": {"reason": seen.reason, "bytes": base64.b64encode(seen.data).decode()} if exchange.broken else None,
    }


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
    """See the module. ``take`` frames as they come; ``rows`` are those that the filter lets through: exchanges, or
    frames where ``by_frame`` says so.
    """

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self.by_frame = False
        self.clear()

    def clear(self) -> None:
        """Nothing has been seen."""
        self._exchanges = Exchanges()
        self._rows: OrderedDict[int, Row] = OrderedDict()
        self._strays: deque[Frame] = deque()
        self.rows: list[Shown] = []
        self.clients: dict[int, Client] = {}
        self.codes: Counter[int] = Counter()
        self.answers: Counter[int] = Counter()
        self.seconds: list[Second] = []
        self.bytes = 0
        self.frames = 0
        """Frames that were seen, kept or not."""
        self.dropped = 0
        """Exchanges that had to make room."""
        self.missed = 0
        """Frames that came too fast to be fetched."""
        self.reordered = False
        """Whether the last that was taken let rows in between others, or took some away, as answers came."""
        self.broken = 0
        self.total = 0
        self._names: Counter[str] = Counter()
        self._test: Callable[[Shown], bool] | None = None

    # ---- what comes --------------------------------------------------------------------------------------------------

    def take(self, items: Iterable[Seen]) -> tuple[list[Shown], list[Shown]]:
        """Rows that are new and let through, and those of which more is known now: their answer has come."""
        new: list[Shown] = []
        changed: list[Row] = []
        for seen in items:
            self.frames += seen.kind in _FRAMES
            tied = False
            for exchange in self._exchanges.take(seen):
                row = self._rows.get(exchange.number)
                if row is None and (exchange.answer is None or exchange.broken):
                    if not exchange.ended:
                        added = self._added(exchange)
                        new.append(added.asked if self.by_frame and added.asked is not None else added)
                elif row is not None:
                    tied = True
                    self._answered(row)
                    if self.by_frame and row.answered is not None and exchange.answer is seen:
                        new.append(row.answered)
                    changed.append(row)
            if not tied and seen.kind in _FRAMES and seen.command is not None and seen.command.is_answer:
                stray = self._stray(seen)
                if self.by_frame:
                    new.append(stray)
            if seen.kind == CLOSED and seen.connection in self.clients:
                self.clients[seen.connection].open = False
        self._make_room()
        shown = [one for one in new if self._held(one) and (self._test is None or self._test(one))]
        self.rows += shown
        return [*shown, *self._judge_again(changed)], self._seen_as(changed)

    def take_exchanges(self, exchanges: Iterable[Exchange]) -> None:
        """Exchanges that are whole: of a log of requests, which has no frames. Those that are there already go on."""
        added = []
        for exchange in exchanges:
            row = self._added(exchange)
            self.frames += 1
            if exchange.answer is not None:
                self._answered(row)
                self.frames += 1
            added.append(row)
        halves = [half for row in added for half in (row.asked, row.answered) if half is not None]
        halves.sort(key=lambda half: half.seen.time)
        for number, half in enumerate(halves, self.frames - len(halves) + 1):
            half.number = number
        self._make_room()
        self.show(self._test)

    def _added(self, exchange: Exchange) -> Row:
        self.total += 1
        client = self._client(exchange)
        if exchange.direction == "in" and not exchange.broken:
            client.talker.hear(exchange)
        if not client.name:
            client.name = self._named(client)
        client.requests += 1
        row = self._rows[exchange.number] = Row(exchange, client)
        row.asked = Frame(row, self.frames, REQUEST)
        self.bytes += exchange.bytes + _COST
        if exchange.broken:
            self.broken += 1
            self._second(exchange.time).not_ok += 1
        else:
            self.codes[exchange.code] += 1
            self._second(exchange.time).counts[family(exchange.code)] += 1
        return row

    def _client(self, exchange: Exchange) -> Client:
        key = exchange.connection or hash(exchange.peer)
        client = self.clients.get(key)
        if client is None:
            client = self.clients[key] = Client("", exchange.peer, exchange.server)
        return client

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
        row.answered = Frame(row, self.frames, ANSWER)
        self.bytes += len(exchange.answer.data) if exchange.answer is not None else 0
        self.answers[code] += 1
        if is_trouble(exchange):
            self._second(exchange.time).not_ok += 1
            key = exchange.connection or hash(exchange.peer)
            self.clients[key].not_ok += 1

    def _stray(self, seen: Seen) -> Frame:
        """An answer whose request is not held: a frame of its own."""
        told = self._exchanges.connections.get(seen.connection)
        asked = Command(0, opaque=seen.command.opaque if seen.command is not None else 0)
        request = Seen(seen.time, seen.connection, WENT if seen.from_client else CAME, b"", asked)
        peer, server = (told.peer, told.server) if told is not None else ("", "broker")
        exchange = Unasked(-self.frames, seen.connection, peer, server, request, seen)
        row = Row(exchange, self._client(exchange))
        row.answered = Frame(row, self.frames, ANSWER)
        self.bytes += exchange.bytes + _COST
        self._strays.append(row.answered)
        return row.answered

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

    # ---- the bound ---------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        gone: list[Row] = []
        while self.bytes > self._most and len(self._rows) > 1:
            _, row = self._rows.popitem(last=False)
            self.bytes -= row.exchange.bytes + _COST
            gone.append(row)
            self._drop_strays(self._first)
        if self.bytes > self._most and self._strays:
            self._drop_strays(self._strays[-1].number)
        self.dropped += len(gone)
        if gone:
            first = self._first if self.by_frame else next(iter(self._rows), 0)
            del self.rows[: bisect_left(self.rows, first, key=_number)]
            for row in gone if self.by_frame else ():
                if row.answered is not None and row.answered.number > first:
                    self._cut(row.answered)

    @property
    def _first(self) -> int:
        """Number of the oldest request's frame."""
        row = next(iter(self._rows.values()), None)
        return row.asked.number if row is not None and row.asked is not None else 0

    def _drop_strays(self, before: int) -> None:
        while self._strays and self._strays[0].number < before:
            stray = self._strays.popleft()
            self.bytes -= stray.row.exchange.bytes + _COST
            if self.by_frame:
                self._cut(stray)

    def _held(self, one: Shown) -> bool:
        exchange = one.exchange
        if isinstance(exchange, Unasked):
            return bool(self._strays) and one.number >= self._strays[0].number
        return exchange.number in self._rows

    # ---- what is shown -----------------------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Exchanges that are held."""
        return len(self._rows)

    @property
    def showable(self) -> int:
        """Rows there would be without a filter: exchanges, or frames."""
        if not self.by_frame:
            return len(self._rows)
        return len(self._strays) + sum(1 + (row.answered is not None) for row in self._rows.values())

    def kept_rows(self) -> list[Row]:
        """Every exchange that is held, whatever the filter is."""
        return list(self._rows.values())

    @property
    def waiting(self) -> int:
        """Pulls that are held by the server now."""
        return sum(row.exchange.waits and row.exchange.held for row in self._rows.values())

    def show(self, test: Callable[[Shown], bool] | None) -> None:
        """Let through what ``test`` takes; None: everything."""
        self._test = test
        every = self._frames() if self.by_frame else iter(self._rows.values())
        self.rows = [row for row in every if test is None or test(row)]

    def show_by_frame(self, on: bool) -> None:
        """A row each frame, or each exchange; the filter stays."""
        self.by_frame = on
        self.show(self._test)

    def _frames(self) -> Iterator[Frame]:
        halves = [half for row in self._rows.values() for half in (row.asked, row.answered) if half is not None]
        return iter(sorted([*self._strays, *halves], key=_number))

    def _seen_as(self, changed: list[Row]) -> list[Shown]:
        """What stands in the table for exchanges whose answer has come."""
        if not self.by_frame:
            return list(changed)
        return [row.asked for row in changed if row.asked is not None]

    def _judge_again(self, changed: list[Row]) -> list[Shown]:
        """Have the filter judge what stood there before its answer came; those that it lets through only now."""
        self.reordered = False
        found: list[Shown] = []
        if self._test is None:
            return found
        for one in self._seen_as(changed):
            if not self._held(one):
                continue
            at = bisect_left(self.rows, one.number, key=_number)
            there = at < len(self.rows) and self.rows[at] is one
            if self._test(one) == there:
                continue
            self.reordered = True
            if there:
                del self.rows[at]
            else:
                self.rows.insert(at, one)
                found.append(one)
        return found

    def _cut(self, one: Shown) -> None:
        at = bisect_left(self.rows, one.number, key=_number)
        if at < len(self.rows) and self.rows[at] is one:
            del self.rows[at]

    def row(self, number: int) -> Row | None:
        """The row of an exchange that is held."""
        return self._rows.get(number)

    def holds(self, one: Shown) -> bool:
        """Whether it is in sight."""
        at = bisect_left(self.rows, one.number, key=_number)
        return at < len(self.rows) and self.rows[at] is one

    def next_of(self, row: Shown, step: int = 1) -> Shown | None:
        """The next row in sight of the same connection; None behind the last."""
        if not self.holds(row):
            return None
        at = bisect_left(self.rows, row.number, key=_number)
        others = self.rows[at + 1 :] if step > 0 else list(reversed(self.rows[:at]))
        return next(
            (
                one
                for one in others
                if one.exchange.connection == row.exchange.connection and one.exchange.peer == row.exchange.peer
            ),
            None,
        )

    def items(self) -> list[Seen]:
        """The frames of what is kept, as a recording holds them."""
        found: list[Seen] = []
        greeted: set[int] = set()
        for one in self._frames():
            seen = one.seen
            if not seen.data:
                continue
            if seen.connection not in greeted:
                greeted.add(seen.connection)
                hello = f"{one.peer} {one.server}".encode()
                found.append(Seen(seen.time, seen.connection, OPENED, hello))
            found.append(seen)
        return found


_number = attrgetter("number")


def is_trouble(exchange: Exchange) -> bool:
    """Whether an answer says that something was not done: a code that is no 0, and not that nothing was found."""
    return exchange.answer_code not in {None, 0, 19, 22}
