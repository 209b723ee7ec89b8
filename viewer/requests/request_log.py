"""Requests that a view shows: stored up to a limit, counted, filtered. No Qt, no clock.

Frames come from a server in the lab or from a file (:mod:`engine.remoting.recording`). They are stored as exchanges,
with a row for each exchange or for each frame. When the limit is reached, the oldest are dropped and counted.
"""

from __future__ import annotations

import base64
from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from engine.remoting.codes import RequestCode, ResponseCode, answer_name, request_name
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
    FrameEvent,
    HeartbeatClient,
    digest,
)
from engine.remoting.frame import Command

MAX_STORED_BYTES = 64 << 20
"""Maximum bytes of stored frames, with their overhead."""
_ROW_OVERHEAD_BYTES = 1500
MINUTE = 60
OFFSETS = frozenset(
    {
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
    }
)
FAMILIES = ("pulls", "sends", "offsets", "rest")
"""Kinds of requests with their own colour in the strip."""
REQUEST, ANSWER = "request", "answer"
"""The halves of an exchange, each a frame."""
_FRAME_KINDS = frozenset({CAME, WENT, LATER, BROKEN})


def family_index(code: int) -> int:
    """Return the index in :data:`FAMILIES` of a request code."""
    return 0 if code in HOLDING else 1 if code in SENDS else 2 if code in OFFSETS else 3


class Row:
    """An exchange as a row; ``client`` is the short name of the other end.

    Whatever a response changes is read from the exchange each time. ``request_frame`` and ``response_frame`` are its
    halves.
    """

    __slots__ = ("exchange", "of", "request_frame", "response_frame")

    def __init__(self, exchange: Exchange, client: Client) -> None:
        self.exchange = exchange
        self.of = client
        self.request_frame: Frame | None = None
        self.response_frame: Frame | None = None

    @property
    def client(self) -> str:
        return self.of.name or self.of.peer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.exchange, name)

    def get(self, name: str, default: object = None) -> object:
        """Return the request's header fields for ``properties``, as a filter asks for them."""
        return self.exchange.long_fields if name == "properties" else default


class Frame:
    """A frame as a row: ``number`` counts frames in order of arrival, ``frame`` is the half of the exchange.

    Time, bytes and sender are the frame's own; all else is the exchange's, so that a condition matches both
    halves.
    """

    __slots__ = ("frame", "number", "row")

    def __init__(self, row: Row, number: int, half: str) -> None:
        self.row = row
        self.number = number
        self.frame = half

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)

    @property
    def recorded(self) -> FrameEvent:
        """Recorded frame."""
        answer = self.row.exchange.answer
        return answer if self.frame == ANSWER and answer is not None else self.row.exchange.request

    @property
    def time(self) -> int:
        """Time of the frame, ms since 1970."""
        return self.recorded.time // 1000

    @property
    def direction(self) -> str:
        """``in`` if the client sent it, ``out`` if the server did."""
        return "in" if self.recorded.from_client else "out"

    @property
    def bytes(self) -> int:
        """Length of this frame."""
        sizes = self.row.exchange.sizes
        return len(self.recorded.data) if sizes is None else sizes[self.frame == ANSWER]

    @property
    def frame_code(self) -> int | None:
        """Code of the request, or of the response."""
        exchange = self.row.exchange
        if exchange.broken:
            return None
        return exchange.code if self.frame == REQUEST else exchange.answer_code

    @property
    def counterpart(self) -> Frame | None:
        """Other half of the exchange; None if it was not recorded."""
        return self.row.request_frame if self.frame == ANSWER else self.row.response_frame

    def get(self, name: str, default: object = None) -> object:
        """Like :meth:`Row.get`."""
        return self.row.get(name, default)


class OrphanResponse(Exchange):
    """A response whose request is unknown: it came before recording began."""

    @property
    def name(self) -> str:
        """Empty: unknown."""
        return ""

    @property
    def ms(self) -> None:
        """None: unknown."""
        return None


ShownRow = Row | Frame


def frame_record(frame: Frame) -> dict[str, Any]:
    """Return a frame as the JSON record ``frame``.

    The header is unchanged, the body is given by length and digest; ``other`` is the number of the other half.
    """
    recorded, exchange, code = frame.recorded, frame.exchange, frame.frame_code
    command = recorded.command if recorded.command is not None else Command(0)
    name = request_name if frame.frame == REQUEST else answer_name
    has_body = bool(recorded.data) and not exchange.broken
    return {
        "type": "frame",
        "number": frame.number,
        "time": frame.time,
        "connection": exchange.peer,
        "server": exchange.server,
        "direction": frame.direction,
        "frame": frame.frame,
        "opaque": frame.opaque,
        "other": frame.counterpart.number if frame.counterpart is not None else None,
        "code": code,
        "name": None if code is None else name(code),
        "remark": command.remark,
        "fields": command.fields,
        "ms": frame.ms if frame.frame == ANSWER else None,
        "bytes": frame.bytes,
        "body": digest(recorded.body) if has_body else None,
        "broken": {"reason": recorded.reason, "bytes": base64.b64encode(recorded.data).decode()}
        if exchange.broken
        else None,
    }


@dataclass(slots=True)
class Client:
    """The other end of connections: ``name`` is short (``P1``, ``C2``), ``heartbeats`` what it sent
    in heartbeats.
    """

    name: str
    peer: str
    server: str
    heartbeats: HeartbeatClient = field(default_factory=HeartbeatClient)
    requests: int = 0
    not_ok: int = 0
    open: bool = True


@dataclass(slots=True)
class SecondCounts:
    """Number of requests in one second by family, and of responses that report a failure."""

    second: int
    """Seconds since 1970."""
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    not_ok: int = 0


class RequestLog:
    """Stored requests; pass frames to :meth:`take`. ``rows`` are the exchanges (or frames, if ``by_frame``) that pass
    the filter.
    """

    def __init__(self, max_bytes: int = MAX_STORED_BYTES) -> None:
        self._max_bytes = max_bytes
        self.by_frame = False
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._exchanges = Exchanges()
        self._rows: OrderedDict[int, Row] = OrderedDict()
        self._orphans: deque[Frame] = deque()
        self.rows: list[ShownRow] = []
        self.clients: dict[int, Client] = {}
        self.codes: Counter[int] = Counter()
        self.answers: Counter[int] = Counter()
        self.seconds: list[SecondCounts] = []
        self.bytes = 0
        self.frames = 0
        """Number of frames seen, stored or not."""
        self.dropped = 0
        """Number of exchanges that were dropped at the limit."""
        self.missed = 0
        """Number of frames that came too fast to be fetched."""
        self.reordered = False
        """True if the last call inserted rows between others or removed some, because their responses came."""
        self.broken = 0
        self.total = 0
        self._names: Counter[str] = Counter()
        self._test: Callable[[ShownRow], bool] | None = None

    # ---- adding -----------------------------------------------------------------------------------------------------

    def take(self, items: Iterable[FrameEvent]) -> tuple[list[ShownRow], list[ShownRow]]:
        """Add frames; return the new rows that pass the filter, and the rows whose response has come."""
        new_rows: list[ShownRow] = []
        changed: list[Row] = []
        for frame in items:
            self.frames += frame.kind in _FRAME_KINDS
            is_response = False
            for exchange in self._exchanges.take(frame):
                row = self._rows.get(exchange.number)
                if row is None and (exchange.answer is None or exchange.broken):
                    if not exchange.ended:
                        added = self._add_row(exchange)
                        new_rows.append(
                            added.request_frame if self.by_frame and added.request_frame is not None else added
                        )
                elif row is not None:
                    is_response = True
                    self._add_response(row)
                    if self.by_frame and row.response_frame is not None and exchange.answer is frame:
                        new_rows.append(row.response_frame)
                    changed.append(row)
            if not is_response and frame.kind in _FRAME_KINDS and frame.command is not None and frame.command.is_answer:
                orphan = self._add_orphan(frame)
                if self.by_frame:
                    new_rows.append(orphan)
            if frame.kind == CLOSED and frame.connection in self.clients:
                self.clients[frame.connection].open = False
        self._make_room()
        passing_rows = [
            new_row for new_row in new_rows if self._is_stored(new_row) and (self._test is None or self._test(new_row))
        ]
        self.rows += passing_rows
        return [*passing_rows, *self._refilter(changed)], self._shown_rows_of(changed)

    def take_exchanges(self, exchanges: Iterable[Exchange]) -> None:
        """Add complete exchanges from a log of requests, which has no frames."""
        new_rows = []
        for exchange in exchanges:
            row = self._add_row(exchange)
            self.frames += 1
            if exchange.answer is not None:
                self._add_response(row)
                self.frames += 1
            new_rows.append(row)
        halves = [half for row in new_rows for half in (row.request_frame, row.response_frame) if half is not None]
        halves.sort(key=lambda half: half.recorded.time)
        for number, half in enumerate(halves, self.frames - len(halves) + 1):
            half.number = number
        self._make_room()
        self.show(self._test)

    def _add_row(self, exchange: Exchange) -> Row:
        self.total += 1
        client = self._client(exchange)
        if exchange.direction == "in" and not exchange.broken:
            client.heartbeats.hear(exchange)
        if not client.name:
            client.name = self._client_name(client)
        client.requests += 1
        row = self._rows[exchange.number] = Row(exchange, client)
        row.request_frame = Frame(row, self.frames, REQUEST)
        self.bytes += exchange.bytes + _ROW_OVERHEAD_BYTES
        if exchange.broken:
            self.broken += 1
            self._second(exchange.time).not_ok += 1
        else:
            self.codes[exchange.code] += 1
            self._second(exchange.time).counts[family_index(exchange.code)] += 1
        return row

    def _client(self, exchange: Exchange) -> Client:
        key = exchange.connection or hash(exchange.peer)
        client = self.clients.get(key)
        if client is None:
            client = self.clients[key] = Client("", exchange.peer, exchange.server)
        return client

    def _client_name(self, client: Client) -> str:
        heartbeats = client.heartbeats
        letter = (
            "C" if heartbeats.consumers else "P" if heartbeats.producers else "N" if client.server == "namesrv" else "A"
        )
        self._names[letter] += 1
        return f"{letter}{self._names[letter]}"

    def _add_response(self, row: Row) -> None:
        exchange = row.exchange
        code = exchange.answer_code
        if code is None:
            return
        row.response_frame = Frame(row, self.frames, ANSWER)
        self.bytes += len(exchange.answer.data) if exchange.answer is not None else 0
        self.answers[code] += 1
        if is_trouble(exchange):
            self._second(exchange.time).not_ok += 1
            key = exchange.connection or hash(exchange.peer)
            self.clients[key].not_ok += 1

    def _add_orphan(self, frame: FrameEvent) -> Frame:
        """Store a response whose request is not stored, as a frame of its own."""
        connection = self._exchanges.connections.get(frame.connection)
        unknown_request = Command(0, opaque=frame.command.opaque if frame.command is not None else 0)
        request = FrameEvent(frame.time, frame.connection, WENT if frame.from_client else CAME, b"", unknown_request)
        peer, server = (connection.peer, connection.server) if connection is not None else ("", "broker")
        exchange = OrphanResponse(-self.frames, frame.connection, peer, server, request, frame)
        row = Row(exchange, self._client(exchange))
        row.response_frame = Frame(row, self.frames, ANSWER)
        self.bytes += exchange.bytes + _ROW_OVERHEAD_BYTES
        self._orphans.append(row.response_frame)
        return row.response_frame

    def _second(self, ms: int) -> SecondCounts:
        second_number = ms // 1000
        for second in reversed(self.seconds):
            if second.second == second_number:
                return second
            if second.second < second_number:
                break
        new_second = SecondCounts(second_number)
        self.seconds.append(new_second)
        if len(self.seconds) > 1 and self.seconds[-2].second > second_number:
            self.seconds.sort(key=lambda counted: counted.second)
        del self.seconds[: -10 * MINUTE]
        return new_second

    # ---- the limit ---------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        dropped_rows: list[Row] = []
        while self.bytes > self._max_bytes and len(self._rows) > 1:
            _, row = self._rows.popitem(last=False)
            self.bytes -= row.exchange.bytes + _ROW_OVERHEAD_BYTES
            dropped_rows.append(row)
            self._drop_orphans(self._first)
        if self.bytes > self._max_bytes and self._orphans:
            self._drop_orphans(self._orphans[-1].number)
        self.dropped += len(dropped_rows)
        if dropped_rows:
            first_number = self._first if self.by_frame else next(iter(self._rows), 0)
            del self.rows[: bisect_left(self.rows, first_number, key=_number)]
            for row in dropped_rows if self.by_frame else ():
                if row.response_frame is not None and row.response_frame.number > first_number:
                    self._remove_row(row.response_frame)

    @property
    def _first(self) -> int:
        """Number of the oldest request's frame."""
        row = next(iter(self._rows.values()), None)
        return row.request_frame.number if row is not None and row.request_frame is not None else 0

    def _drop_orphans(self, first_number: int) -> None:
        while self._orphans and self._orphans[0].number < first_number:
            orphan = self._orphans.popleft()
            self.bytes -= orphan.row.exchange.bytes + _ROW_OVERHEAD_BYTES
            if self.by_frame:
                self._remove_row(orphan)

    def _is_stored(self, row: ShownRow) -> bool:
        exchange = row.exchange
        if isinstance(exchange, OrphanResponse):
            return bool(self._orphans) and row.number >= self._orphans[0].number
        return exchange.number in self._rows

    # ---- what is shown -----------------------------------------------------------------------------------------------

    @property
    def stored_count(self) -> int:
        """Number of stored exchanges."""
        return len(self._rows)

    @property
    def showable(self) -> int:
        """Number of rows without a filter: exchanges, or frames."""
        if not self.by_frame:
            return len(self._rows)
        return len(self._orphans) + sum(1 + (row.response_frame is not None) for row in self._rows.values())

    def stored_rows(self) -> list[Row]:
        """Return every stored exchange, whatever the filter is."""
        return list(self._rows.values())

    @property
    def waiting(self) -> int:
        """Number of pulls that the server holds now."""
        return sum(row.exchange.waits and row.exchange.held for row in self._rows.values())

    def show(self, test: Callable[[ShownRow], bool] | None) -> None:
        """Set the filter; None passes everything."""
        self._test = test
        all_rows = self._frames() if self.by_frame else iter(self._rows.values())
        self.rows = [row for row in all_rows if test is None or test(row)]

    def show_by_frame(self, on: bool) -> None:
        """Show a row for each frame or for each exchange; the filter stays."""
        self.by_frame = on
        self.show(self._test)

    def _frames(self) -> Iterator[Frame]:
        halves = [
            half for row in self._rows.values() for half in (row.request_frame, row.response_frame) if half is not None
        ]
        return iter(sorted([*self._orphans, *halves], key=_number))

    def _shown_rows_of(self, changed: list[Row]) -> list[ShownRow]:
        """Return the table's rows for exchanges whose response has come."""
        if not self.by_frame:
            return list(changed)
        return [row.request_frame for row in changed if row.request_frame is not None]

    def _refilter(self, changed: list[Row]) -> list[ShownRow]:
        """Filter exchanges again after their response; return the rows that pass only now."""
        self.reordered = False
        new_rows: list[ShownRow] = []
        if self._test is None:
            return new_rows
        for row in self._shown_rows_of(changed):
            if not self._is_stored(row):
                continue
            index = bisect_left(self.rows, row.number, key=_number)
            is_shown = index < len(self.rows) and self.rows[index] is row
            if self._test(row) == is_shown:
                continue
            self.reordered = True
            if is_shown:
                del self.rows[index]
            else:
                self.rows.insert(index, row)
                new_rows.append(row)
        return new_rows

    def _remove_row(self, row: ShownRow) -> None:
        index = bisect_left(self.rows, row.number, key=_number)
        if index < len(self.rows) and self.rows[index] is row:
            del self.rows[index]

    def row(self, number: int) -> Row | None:
        """Return the row of a stored exchange."""
        return self._rows.get(number)

    def holds(self, row: ShownRow) -> bool:
        """Return True if the row passes the filter."""
        index = bisect_left(self.rows, row.number, key=_number)
        return index < len(self.rows) and self.rows[index] is row

    def next_of(self, row: ShownRow, step: int = 1) -> ShownRow | None:
        """Return the next shown row of the same connection; None after the last."""
        if not self.holds(row):
            return None
        index = bisect_left(self.rows, row.number, key=_number)
        candidates = self.rows[index + 1 :] if step > 0 else list(reversed(self.rows[:index]))
        return next(
            (
                candidate
                for candidate in candidates
                if candidate.exchange.connection == row.exchange.connection
                and candidate.exchange.peer == row.exchange.peer
            ),
            None,
        )

    def items(self) -> list[FrameEvent]:
        """Return the stored frames in the form of a recording."""
        recording: list[FrameEvent] = []
        opened_connections: set[int] = set()
        for half in self._frames():
            frame = half.recorded
            if not frame.data:
                continue
            if frame.connection not in opened_connections:
                opened_connections.add(frame.connection)
                opening = f"{half.peer} {half.server}".encode()
                recording.append(FrameEvent(frame.time, frame.connection, OPENED, opening))
            recording.append(frame)
        return recording


_number = attrgetter("number")


def is_trouble(exchange: Exchange) -> bool:
    """Return True if a response reports a failure: a code other than 0, except "nothing found"."""
    return exchange.answer_code not in {
        None,
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.QUERY_NOT_FOUND,
    }
