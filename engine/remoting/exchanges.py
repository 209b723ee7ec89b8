"""Frames on connections as values: each frame as it was seen, and a request with its answer as one exchange.

Pure: frames and times come in, records go out. ``tap.py`` observes the frames; ``codes.py`` has the names of requests.
The window, the log of requests and the replay all use these values.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import struct
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from engine.codec.json_dialect import parse
from engine.remoting.codes import SHORT_NAMES, RequestCode, ResponseCode, answer_name, request_name
from engine.remoting.frame import ANSWER, ONE_WAY, Command, Fault, FrameReader

OPENED, CLOSED, CAME, WENT, LATER, BROKEN = range(6)
"""Kinds of :class:`FrameEvent`: the connection was opened, was closed; a frame came, went; went later than in the turn
that its request came in (a pull that was held); bytes are no frame.
"""
HOLDING = frozenset(
    {RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE, RequestCode.NOTIFICATION}
)
"""Requests that a broker may hold until a message comes."""
SENDS = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
    }
)
SHORT_FIELD_SENDS = frozenset(
    {RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2}
)
"""Sends whose header fields are letters (docs/protocol/broker.md#send)."""
MAX_OPEN_REQUESTS = 100_000
"""Requests without an answer that are waited for; the oldest of more are given up."""


@dataclass(slots=True)
class FrameEvent:
    """Something that was seen on a connection. ``time`` is µs since 1970; ``connection`` counts from 1.

    ``data`` is the frame whole; of :data:`OPENED` what :func:`greeting` reads; of :data:`BROKEN` the bytes as far as
    they came, and ``reason`` why they are no frame. ``command`` has the header; the body stays in ``data``.
    """

    time: int
    connection: int
    kind: int
    data: bytes = b""
    command: Command | None = None
    reason: str = ""

    @property
    def from_client(self) -> bool:
        return self.kind in {CAME, BROKEN}

    @property
    def body(self) -> bytes:
        """The frame's body, as it went."""
        return self.data[8 + int.from_bytes(self.data[5:8], "big") :]


def command_of(frame: bytes) -> Command | None:
    """Return the header of a whole frame as a command, without its body; None if it is no frame."""
    reader = FrameReader()
    reader.feed(frame)
    command = next(reader.commands(), None)
    if command is None or isinstance(command, Fault):
        return None
    command.body = b""
    return command


Server = Literal["broker", "namesrv"]


@dataclass(frozen=True, slots=True)
class Greeting:
    """A connection as it was opened: whose it is, and which server has it."""

    peer: str
    server: str


def greeting(data: bytes) -> Greeting:
    """Decode the data of an :data:`OPENED` item."""
    peer, _, server = data.decode("utf-8", "replace").partition(" ")
    return Greeting(peer, server or "broker")


@dataclass(eq=False)
class Exchange:
    """A request with its answer, if one has come; ``number`` counts the exchanges. A broken frame is an exchange of its
    own.
    """

    number: int
    connection: int
    peer: str
    server: str
    request: FrameEvent
    answer: FrameEvent | None = None
    ended: bool = False
    """The connection has ended, or nobody waits any more: no answer comes."""
    sizes: tuple[int, int] | None = None
    """Bytes of both frames, where the frames themselves are not kept (a log of requests)."""

    @property
    def broken(self) -> bool:
        """Return True if the request is bytes that are no frame."""
        return self.request.kind == BROKEN

    @property
    def time(self) -> int:
        """When the request was seen, ms since 1970."""
        return self.request.time // 1000

    @property
    def direction(self) -> str:
        """Return ``in`` where a client asks, ``out`` where the server asks."""
        return "in" if self.request.from_client else "out"

    @property
    def command(self) -> Command:
        """The request's header."""
        return self.request.command or _EMPTY_COMMAND

    @property
    def code(self) -> int:
        return self.command.code

    @property
    def name(self) -> str:
        """RocketMQ's name of the request."""
        return "" if self.broken else request_name(self.code)

    @property
    def opaque(self) -> int:
        return self.command.opaque

    @property
    def one_way(self) -> bool:
        return self.command.is_one_way

    @property
    def waits(self) -> bool:
        """Return True if an answer is still missing."""
        return not (self.broken or self.one_way or self.ended or self.answer is not None)

    @property
    def held(self) -> bool:
        """Return True if the server holds, or held, a pull until a message arrived."""
        if self.code not in HOLDING:
            return False
        return self.waits if self.answer is None else self.answer.kind == LATER

    @property
    def ms(self) -> float | None:
        """From the request to its answer; None as long as there is none."""
        return None if self.answer is None else (self.answer.time - self.request.time) / 1000

    @property
    def answer_code(self) -> int | None:
        return None if self.answer is None or self.answer.command is None else self.answer.command.code

    @property
    def bytes(self) -> int:
        """Return the size of the request's frame and its answer's, in bytes."""
        if self.sizes is not None:
            return sum(self.sizes)
        return len(self.request.data) + (len(self.answer.data) if self.answer is not None else 0)

    def field(self, *names: str) -> str | None:
        """The first of the request's header fields that is there; letters stand for their long names."""
        fields = self.long_fields
        return next((fields[name] for name in names if name in fields), None)

    @cached_property
    def long_fields(self) -> dict[str, str]:
        """The request's header fields under their long names."""
        fields = self.command.fields
        if self.code not in SHORT_FIELD_SENDS:
            return fields
        return {SHORT_NAMES.get(name, name): value for name, value in fields.items()}

    @property
    def answer_fields(self) -> dict[str, str]:
        return self.answer.command.fields if self.answer is not None and self.answer.command is not None else {}

    @property
    def topic(self) -> str:
        return self.field("topic", "originTopic") or ""

    @property
    def group(self) -> str:
        return self.field("consumerGroup", "producerGroup", "group", "groupName") or ""

    @property
    def queue_id(self) -> int | None:
        """The queue that is asked for; of a send the one that was written."""
        written = self.answer_fields.get("queueId") if self.code in SENDS else None
        return parse_integer(written or self.field("queueId"))

    @property
    def offset(self) -> int | None:
        """Return the queue offset: the one a pull reads at, a send wrote at, or a group has consumed up to."""
        if self.code in SENDS:
            return parse_integer(self.answer_fields.get("queueOffset"))
        offset_text = self.field("queueOffset", "commitOffset")
        if offset_text is None and self.answer_code == ResponseCode.SUCCESS:
            offset_text = self.answer_fields.get("offset")
        return parse_integer(offset_text)

    @property
    def written_at(self) -> int | None:
        """Return the physical offset of the unit that a send wrote: the end of its answer's ``msgId``."""
        message_id = self.answer_fields.get("msgId", "") if self.code in SENDS else ""
        with contextlib.suppress(ValueError):
            return int(message_id.split(",")[0][-16:], 16) if len(message_id.split(",")[0]) >= 32 else None
        return None

    @property
    def first_unit(self) -> tuple[int, int] | None:
        """Return queue offset and physical offset of the first message in a pull's answer
        (docs/formats/commit-log.md#unit); None if there is none, or its bytes are not kept.
        """
        answer = self.answer
        if self.code not in HOLDING or self.answer_code != ResponseCode.SUCCESS or answer is None or not answer.data:
            return None
        body_start = 8 + int.from_bytes(answer.data[5:8], "big")
        if len(answer.data) < body_start + _AHEAD:
            return None
        queue_offset, physical_offset = _PLACES.unpack_from(answer.data, body_start + _BEFORE)
        return queue_offset, physical_offset


_PLACES = struct.Struct(">qq")
_BEFORE, _AHEAD = 20, 36
"""Bytes of a unit in front of its two offsets, and with them."""
_EMPTY_COMMAND = Command(0)


def parse_integer(text: str | None) -> int | None:
    """A number's text; None for what is none."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


class Exchanges:
    """Ties answers to requests as frames are seen: :meth:`take` one after the other."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[int, bool, int], Exchange] = OrderedDict()
        self.connections: dict[int, Greeting] = {}
        self.taken = 0

    def take(self, event: FrameEvent) -> Iterator[Exchange]:
        """Yield the exchanges that begin with an event, or are complete with it."""
        if event.kind == OPENED:
            self.connections[event.connection] = greeting(event.data)
        elif event.kind == CLOSED:
            yield from self._ended(event.connection)
        elif event.kind == BROKEN:
            yield self._new(event)
        elif event.command is not None and event.command.is_answer:
            key = event.connection, not event.from_client, event.command.opaque
            exchange = self._open.pop(key, None)
            if exchange is not None:
                exchange.answer = event
                yield exchange
        elif event.command is not None:
            new_exchange = self._new(event)
            if new_exchange.waits:
                self._open[event.connection, event.from_client, event.command.opaque] = new_exchange
            yield new_exchange
            if len(self._open) > MAX_OPEN_REQUESTS:
                _, oldest = self._open.popitem(last=False)
                oldest.ended = True
                yield oldest

    def give_up(self) -> Iterator[Exchange]:
        """Nothing more comes: those without an answer."""
        for connection in {key[0] for key in self._open}:
            yield from self._ended(connection)

    def _new(self, event: FrameEvent) -> Exchange:
        self.taken += 1
        opening = self.connections.get(event.connection, _UNKNOWN)
        return Exchange(self.taken, event.connection, opening.peer, opening.server, event)

    def _ended(self, connection: int) -> Iterator[Exchange]:
        for key in [key for key in self._open if key[0] == connection]:
            exchange = self._open.pop(key)
            exchange.ended = True
            yield exchange


_UNKNOWN = Greeting("", "broker")


def request_record(exchange: Exchange) -> dict[str, Any]:
    """Return an exchange as the record ``request``: bodies by length and digest."""
    answer, command = exchange.answer, exchange.command
    answer_command = answer.command if answer is not None else None
    code = exchange.answer_code
    return {
        "type": "request",
        "time": exchange.time,
        "connection": exchange.peer,
        "server": exchange.server,
        "direction": exchange.direction,
        "opaque": exchange.opaque,
        "code": exchange.code,
        "name": exchange.name,
        "oneWay": exchange.one_way,
        "held": exchange.held,
        "topic": exchange.topic or None,
        "queueId": exchange.queue_id,
        "offset": exchange.offset,
        "answer": code,
        "answerName": None if code is None else answer_name(code),
        "remark": answer_command.remark if answer_command is not None else None,
        "ms": exchange.ms,
        "language": command.language,
        "version": command.version,
        "fields": command.fields,
        "answerFields": exchange.answer_fields,
        "bytes": len(exchange.request.data),
        "answerBytes": len(answer.data) if answer is not None else 0,
        "body": None if exchange.broken else digest(exchange.request.body),
        "answerBody": digest(answer.body) if answer is not None else None,
        "broken": {"reason": exchange.request.reason, "bytes": base64.b64encode(exchange.request.data).decode()}
        if exchange.broken
        else None,
    }


def exchange_of(record: Mapping[str, Any], number: int) -> Exchange:
    """Rebuild the exchange from a record of :func:`request_record`: header fields without frames. Raises
    ``ValueError``.
    """
    if record.get("type") != "request":
        raise ValueError(f"a record of the type request is expected, not {record.get('type')!r}")
    try:
        broken = record.get("broken")
        inward = record["direction"] == "in"
        time_us = int(record["time"]) * 1000
        if broken is not None:
            data, reason = base64.b64decode(broken["bytes"]), str(broken["reason"])
            request = FrameEvent(time_us, 0, BROKEN, data, None, reason)
            return Exchange(number, 0, str(record["connection"]), str(record["server"]), request)
        command = Command(
            int(record["code"]),
            dict(record["fields"]),
            b"",
            int(record["opaque"]),
            ONE_WAY if record["oneWay"] else 0,
            None,
            str(record["language"]),
            int(record["version"]),
        )
        request = FrameEvent(time_us, 0, CAME if inward else WENT, b"", command)
        answer = None
        if record["answer"] is not None:
            answer_command = Command(
                int(record["answer"]), dict(record["answerFields"]), b"", command.opaque, ANSWER, record["remark"]
            )
            kind = (LATER if record["held"] else WENT) if inward else CAME
            answer = FrameEvent(time_us + round(float(record["ms"]) * 1000), 0, kind, b"", answer_command)
        sizes = int(record["bytes"]), int(record["answerBytes"])
        return Exchange(
            number, 0, str(record["connection"]), str(record["server"]), request, answer, answer is None, sizes
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the record lacks what a request has: {error}") from error


def digest(body: bytes) -> dict[str, Any] | None:
    """Length and SHA-256 of a body; None if there is none."""
    return {"length": len(body), "sha256": hashlib.sha256(body).hexdigest()} if body else None


@dataclass(slots=True)
class HeartbeatClient:
    """A client by its heartbeats: ``groups`` are those it sends and consumes for."""

    client_id: str = ""
    language: str = ""
    version: int = 0
    producers: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()

    def hear(self, exchange: Exchange) -> None:
        """Note the facts of the client that its request contains."""
        command = exchange.command
        if not self.language:
            self.language, self.version = command.language, command.version
        if exchange.code == RequestCode.HEART_BEAT:
            self.language, self.version = command.language, command.version
            self._beat(exchange.request.body)
        elif (group := exchange.group) and exchange.code in SENDS and group not in self.producers:
            self.producers += (group,)
        elif group and exchange.code in HOLDING and group not in self.consumers:
            self.consumers += (group,)

    def _beat(self, body: bytes) -> None:
        heartbeat = parse(body).value
        if not isinstance(heartbeat, dict):
            return
        self.client_id = str(heartbeat.get("clientID") or self.client_id)
        self.producers = _groups(heartbeat.get("producerDataSet")) or self.producers
        self.consumers = _groups(heartbeat.get("consumerDataSet")) or self.consumers


def _groups(value: object) -> tuple[str, ...]:
    rows = value if isinstance(value, list) else []
    names = [str(row.get("groupName") or "") for row in rows if isinstance(row, dict)]
    return tuple(sorted(name for name in names if name and name != "CLIENT_INNER_PRODUCER"))
