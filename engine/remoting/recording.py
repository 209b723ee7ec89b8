"""A recording: every frame of a server's connections whole, as a file that can be shown and sent again to another
broker.

A line that names the format, then one item after another, big-endian: µs since 1970 (8 bytes), connection (4), kind (1;
:mod:`engine.remoting.exchanges`), bytes of the reason (2), bytes of the data (4), reason, data. Kind 255 ends it: its
reason is how many items were left out once the file was full. A file that ends in the middle of an item (a process was
killed) is read up to there.

Requests are sent again in their order, each recorded connection as its own connection. A request waits for the answer
of the previous one, except after pulls that were held, and one-way requests. A request may name a place that only the
first store knew (of a half message, of a message that is sent back or looked for); it is given the place that the
message has now.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import ssl
import struct
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, TextIO

from engine.errors import CannotRead, cause_of
from engine.remoting.client_account import ClientAccount
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.connection import Connection, connect
from engine.remoting.exchanges import (
    BROKEN,
    CAME,
    HOLDING,
    LATER,
    SENDS,
    WENT,
    Exchange,
    Exchanges,
    FrameEvent,
    command_of,
    request_record,
)
from engine.remoting.frame import MAX_FRAME_BYTES, Command
from engine.remoting.signing import SECURITY_TOKEN, sign
from engine.sentences import sentence

MAGIC = b"storescope requests 1\n"
MAX_RECORDING_BYTES = 256 << 20
"""Bytes of a recording beyond which nothing more is written into it."""
_ITEM = struct.Struct(">qIBHI")
_END = 255
_FRAMES = frozenset({CAME, WENT, LATER})


def encode_events(items: Iterable[FrameEvent]) -> bytes:
    """Encode the events as a recording stores them."""
    pieces = []
    for event in items:
        reason = event.reason.encode("utf-8", "replace")[:0xFFFF]
        pieces += [
            _ITEM.pack(event.time, event.connection, event.kind, len(reason), len(event.data)),
            reason,
            event.data,
        ]
    return b"".join(pieces)


def decode_events(source: BinaryIO) -> Iterator[FrameEvent]:
    """Yield the events behind the first line. Raises :class:`CannotRead` if they are none."""
    while len(head := source.read(_ITEM.size)) == _ITEM.size:
        time_us, connection, kind, reason_size, size = _ITEM.unpack(head)
        if size > MAX_FRAME_BYTES or (kind > BROKEN and kind != _END):
            raise CannotRead(
                sentence(
                    "the recording holds no item before byte {offset:,}: kind {kind}, {size:,} bytes",
                    offset=source.tell(),
                    kind=kind,
                    size=size,
                )
            )
        reason_bytes, data = source.read(reason_size), source.read(size)
        if len(reason_bytes) < reason_size or len(data) < size:
            return
        reason = reason_bytes.decode("utf-8", "replace")
        command = command_of(data) if kind in _FRAMES else None
        yield FrameEvent(time_us, connection, kind, data, command, reason)


class Recorder:
    """Writes a recording into a new file; :meth:`take` one item after the other, :meth:`close` at the end. Raises
    ``OSError``: ``FileExistsError`` where something is there.
    """

    def __init__(self, path: Path, limit_bytes: int = MAX_RECORDING_BYTES) -> None:
        self._file = path.open("xb")
        self._file.write(MAGIC)
        self._file.flush()
        self._room = limit_bytes - len(MAGIC)
        self.left_out = 0

    def take(self, event: FrameEvent) -> None:
        """Write an event, as long as there is room."""
        item = encode_events([event])
        if self.left_out or len(item) > self._room:
            self.left_out += 1
            return
        self._room -= len(item)
        self._file.write(item)
        self._file.flush()  # readers of the file see it at once, and a killed process loses nothing

    def close(self) -> None:
        """Write the number of events that were left out, and close the file."""
        if not self._file.closed:
            left_out = str(self.left_out)
            self._file.write(encode_events([FrameEvent(time.time_ns() // 1000, 0, _END, b"", None, left_out)]))
            self._file.close()


class RequestLog:
    """Appends each exchange to a file as a line of JSON, once it is complete; bodies by length and digest. Raises
    ``OSError``.
    """

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8", buffering=1)
        self._exchanges = Exchanges()

    def take(self, event: FrameEvent) -> None:
        """Write the exchanges that an event completes."""
        for exchange in self._exchanges.take(event):
            if not exchange.waits:
                self._file.write(json.dumps(request_record(exchange), ensure_ascii=False) + "\n")

    def close(self) -> None:
        """The end: what has no answer yet gets a line without one."""
        if not self._file.closed:
            for exchange in self._exchanges.give_up():
                self._file.write(json.dumps(request_record(exchange), ensure_ascii=False) + "\n")
            self._file.close()


class Recording:
    """A file of :class:`Recorder`, item by item. ``left_out`` is known behind the last: items for which the file had no
    room; None if its end is missing. ``position`` is the byte behind the last one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_out: int | None = None
        self.position = 0

    def __iter__(self) -> Iterator[FrameEvent]:
        """Yield every event. Raises :class:`CannotRead` if the file is no recording, and ``OSError``."""
        with self.path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise CannotRead(sentence("{path} is not a recording of requests", path=self.path))
            self.position = file.tell()
            yield from self._items(file)

    def new_frames(self, limit_bytes: int = 2 * MAX_FRAME_BYTES) -> list[FrameEvent]:
        """Return the events written behind :attr:`position` since then, up to ``limit_bytes`` bytes. Raises as
        ``__iter__`` does.
        """
        with self.path.open("rb") as file:
            file.seek(self.position)
            begin, data = self.position, file.read(limit_bytes)
        return list(self._items(io.BytesIO(data), begin))

    def _items(self, file: BinaryIO, begin: int = 0) -> Iterator[FrameEvent]:
        for event in decode_events(file):
            self.position = begin + file.tell()
            if event.kind == _END:
                self.left_out = int(event.reason) if event.reason.isdecimal() else 0
            else:
                yield event


ANSWER_TIMEOUT_S = 20.0
"""Seconds that an answer is waited for: a broker holds a pull for 15."""
RETRY_S, RETRY_PAUSE_S = 2.0, 0.05
"""Seconds for which a pull that found messages then is asked until it finds some, and those between two tries."""
_NOT_YET = frozenset({ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.PULL_OFFSET_MOVED})
_PLACES: dict[int, tuple[str, ...]] = {
    RequestCode.VIEW_MESSAGE_BY_ID: ("offset",),
    RequestCode.CONSUMER_SEND_MSG_BACK: ("offset",),
    RequestCode.END_TRANSACTION: ("commitLogOffset",),
}
"""Requests that name a physical offset, and the fields in which they do."""


@dataclass(frozen=True, slots=True)
class ResentRequest:
    """A request that was sent again. ``before`` and ``now`` are the codes of its answers; None: there was none."""

    exchange: Exchange
    before: int | None
    now: int | None
    remark: str = ""

    @property
    def same(self) -> bool:
        return self.before == self.now


@dataclass
class ReplayResult:
    """Result of a replay. ``answered_now``: requests with an answer that was not recorded, such as a pull that was
    held to the end. ``left_out``: requests of the other side, to a name server, or of a kind that was not asked
    for.
    """

    sent: int = 0
    same: int = 0
    differs: int = 0
    one_way: int = 0
    unanswered: int = 0
    answered_now: int = 0
    left_out: int = 0
    by_name: Counter[str] = field(default_factory=Counter)


def exchanges_of(items: Iterable[FrameEvent]) -> list[Exchange]:
    """Return a recording's exchanges, in the order of their requests."""
    table = Exchanges()
    exchanges: dict[int, Exchange] = {}
    for event in items:
        for exchange in table.take(event):
            exchanges[exchange.number] = exchange
    return list(exchanges.values())


class Replay:
    """Sends ``exchanges`` to the broker at ``address`` (``host:port``); ``on_sent`` is called for each that has its
    answer. With ``account`` each request is signed for it, whoever signed it before.
    """

    def __init__(
        self,
        exchanges: Iterable[Exchange],
        address: str,
        on_sent: Callable[[ResentRequest], None] = lambda _sent: None,
        only: Collection[str] = (),
        account: ClientAccount | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._exchanges = exchanges
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._on_sent = on_sent
        self._only = frozenset(only)
        self._account = account
        self._tls = tls
        self._connections: dict[int, Connection] = {}
        self._places: dict[int, int] = {}
        """Physical offsets of messages: where they were, and are now."""
        self._entries: dict[int, str] = {}
        """Of half messages, by where they were: the queue offsets that they have now."""
        self.result = ReplayResult()

    async def run(self) -> ReplayResult:
        """Send all requests again. Raises ``OSError`` if nothing listens."""
        late: set[asyncio.Task[None]] = set()
        try:
            for exchange in self._exchanges:
                if not self._wanted(exchange):
                    self.result.left_out += 1
                    continue
                connection = await self._connection(exchange.connection)
                self.result.sent += 1
                self.result.by_name[exchange.name] += 1
                command = self._again(exchange)
                if exchange.one_way:
                    connection.send(command)
                    self.result.one_way += 1
                    await asyncio.sleep(0)
                elif exchange.held or exchange.answer is None:
                    late.add(asyncio.create_task(self._ask(connection, exchange, command)))
                    await asyncio.sleep(0)
                else:
                    await self._ask(connection, exchange, command)
            if late:
                await asyncio.wait(late)
        finally:
            for task in late:
                task.cancel()
            for connection in self._connections.values():
                connection.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await asyncio.gather(*(each.closed.wait() for each in self._connections.values()))
        return self.result

    def _wanted(self, exchange: Exchange) -> bool:
        if exchange.broken or exchange.direction == "out" or exchange.server != "broker":
            return False
        return not self._only or exchange.name in self._only

    async def _connection(self, number: int) -> Connection:
        connection = self._connections.get(number)
        if connection is None or connection.closed.is_set():
            connection = self._connections[number] = await connect(self._host, self._port, _silent, tls=self._tls)
        return connection

    def _again(self, exchange: Exchange) -> Command:
        command = replace(exchange.command, fields=dict(exchange.command.fields), body=exchange.request.body)
        for name in _PLACES.get(exchange.code, ()):
            old_offset = exchange.command.fields.get(name, "")
            if old_offset.isdecimal() and int(old_offset) in self._places:
                command.fields[name] = str(self._places[int(old_offset)])
                if (
                    exchange.code == RequestCode.END_TRANSACTION
                    and (now := self._entries.get(int(old_offset))) is not None
                ):
                    command.fields["tranStateTableOffset"] = now
        if self._account is not None:
            command.fields.pop(SECURITY_TOKEN, None)
            sign(command, *self._account)
        return command

    async def _ask(self, connection: Connection, exchange: Exchange, command: Command) -> None:
        old_code = exchange.answer_code
        try:
            answer = await connection.ask(command, ANSWER_TIMEOUT_S)
            loop, expects_message = (
                asyncio.get_running_loop(),
                exchange.code in HOLDING and old_code == ResponseCode.SUCCESS,
            )
            until = loop.time() + RETRY_S
            while expects_message and answer.code in _NOT_YET and loop.time() < until:
                await asyncio.sleep(RETRY_PAUSE_S)  # what was sent just now is dispatched soon
                answer = await connection.ask(command, ANSWER_TIMEOUT_S)
        except (TimeoutError, ConnectionError) as error:
            self.result.unanswered += 1
            self._on_sent(ResentRequest(exchange, old_code, None, cause_of(error, "no answer came in time")))
            return
        sent = ResentRequest(exchange, old_code, answer.code, answer.remark or "")
        if old_code is None:
            self.result.answered_now += 1
        else:
            self.result.same += sent.same
            self.result.differs += not sent.same
        self._remember(exchange, answer)
        self._on_sent(sent)

    def _remember(self, exchange: Exchange, answer: Command) -> None:
        """Remember the old and the new offset of a message that was sent."""
        if exchange.code not in SENDS or (old_offset := exchange.written_at) is None:
            return
        new_id = answer.fields.get("msgId", "").split(",")[0]
        with contextlib.suppress(ValueError):
            self._places[old_offset] = int(new_id[-16:], 16)
        if "queueOffset" in answer.fields:
            self._entries[old_offset] = answer.fields["queueOffset"]


def _silent(_request: Command, _connection: Connection) -> None:
    """Ignore the broker's own requests."""
