"""A connection with asyncio on which both sides may send requests: requests are answered as they come, answers are
matched by opaque.

The answers to all requests of one read go out in one write. While the other side does not read its answers, no further
request is answered, even in the middle of one read, and nothing more is read: requests wait in the peer's own buffers.
So the memory of this side is bounded for each connection, and for all connections of a server
(:mod:`engine.remoting.connection_memory`). Java: ``NettyRemotingServer``, ``NettyRemotingClient``.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from engine import system
from engine.errors import CannotRead, cause_of
from engine.remoting.codes import Refused, ResponseCode
from engine.remoting.connection_memory import LIMIT_BYTES, SMALL_BYTES, ConnectionMemory
from engine.remoting.frame import MAX_FRAME_BYTES, TLS_HELLO, Command, Fault, FrameReader, answer_to, encode
from engine.remoting.port_holder import busy_words
from engine.remoting.tls import HANDSHAKE_TIMEOUT_S, Tls, first_byte
from engine.sentences import sentence

IDLE_TIMEOUT_S = 120.0
"""Seconds without a read or a write after which a connection is closed."""
MAX_CONNECTIONS = 10_000
BACKLOG = 1024
"""Connections that wait to be accepted (``serverSocketBacklog``): one more waits a second before its end asks again."""
MAX_PORT = 65_535
ACCEPT_RETRY_S = 0.1
"""Seconds of rest where a connection could not be accepted: descriptors may have run out."""
MAX_GATHERED_BYTES = 32 << 10
"""Bytes that are written before the end of a turn: the other side begins with them while more is made."""
ANSWER_TIMEOUT_S = 3.0
"""Seconds that an answer is waited for."""
LINGER_S = 10.0
"""Seconds that a connection which is closed has for what was written and is not read yet."""
TLS_END_TIMEOUT_S = 0.3
"""Seconds that a server has to acknowledge the end of TLS. RocketMQ's brokers never do it: the JDK's TLS 1.3 leaves
their half of the connection open.
"""
_POLL_AFTER_ARRIVALS = 16
"""Number of arrivals close to each other after which :class:`BusyPolling` begins."""
_ACCEPT_ITERATIONS = 3
"""Turns of the loop until an accepted connection is ready: its task starts, it is created, it is reported."""

Handler = Callable[[Command, "Connection"], Command | None]
"""Gives the answer to a request; None if there is none (yet)."""
_log = logging.getLogger(__name__)


class Tap(Protocol):
    """An observer of the frames of connections (:class:`engine.remoting.tap.FrameTap`); it changes nothing."""

    def opened(self, connection: Connection) -> None:
        """The connection was opened."""

    def received(self, connection: Connection, command: Command, frame: bytes) -> None:
        """Handle a frame that the other side sent."""

    def sent(self, connection: Connection, command: Command, frame: bytes, *, later: bool) -> None:
        """Handle a frame that this side wrote; ``later``: in a later turn of the loop than its request."""

    def broke(self, connection: Connection, reason: str, data: bytes) -> None:
        """Handle bytes that are no frame; the connection is closed because of them."""

    def closed(self, connection: Connection) -> None:
        """Handle the end of the connection."""


class BusyPolling:
    """Polls for bytes without sleeping, for ``poll_s`` seconds after the last arrival, while arrivals are that close.

    A client that sends one message after another sends again within 0.3 ms, and waking a sleeping processor takes a
    third of that: without sleep its throughput is half again as high. If arrivals are farther apart, or more than one
    in five is, the loop sleeps as usual. On a single processor polling would only slow the client down.
    """

    def __init__(self, poll_s: float = 400e-6, processors: int | None = None) -> None:
        self.poll_s = poll_s
        self._has_one_processor = (processors or system.processor_count()) < 2
        self._close_arrivals = 0
        self._is_wanted = False
        self._last_arrival = 0.0
        self.is_polling = False

    def note_arrival(self, now: float) -> None:
        """Note that bytes came at ``now`` (seconds, ``time.monotonic``)."""
        self._close_arrivals = (
            min(self._close_arrivals + 1, _POLL_AFTER_ARRIVALS)
            if now - self._last_arrival < self.poll_s
            else max(self._close_arrivals - 4, 0)
        )
        self._last_arrival = now
        self._is_wanted = self._close_arrivals == _POLL_AFTER_ARRIVALS or (
            self._is_wanted and self._close_arrivals >= _POLL_AFTER_ARRIVALS // 2
        )
        if self._is_wanted and not self.is_polling and not self._has_one_processor:
            self.is_polling = True
            asyncio.get_running_loop().call_soon(self._poll)

    def _poll(self) -> None:
        if time.monotonic() - self._last_arrival < self.poll_s:
            asyncio.get_running_loop().call_soon(self._poll)
        else:
            self.is_polling = False


@dataclass(slots=True)
class Limits:
    """Limits for the other side; ``polling`` is shared by all connections of a server, None for no polling."""

    largest_frame: int = MAX_FRAME_BYTES
    idle: float = IDLE_TIMEOUT_S
    connections: int = MAX_CONNECTIONS
    tap: Tap | None = None
    polling: BusyPolling | None = None
    memory_bytes: int = LIMIT_BYTES
    """Of all connections of a server: parts of frames, and answers that are not read yet."""


class _Awaited(asyncio.Future[Command]):
    """An answer that is awaited until ``due`` (seconds of the loop's clock).

    The waiting task continues in the turn of the loop that brings the answer, not in the next one. Each turn costs a
    look at all sockets, and new requests of that task go out in one write with everything else of this turn.
    """

    due = 0.0
    _waiter: tuple[Callable[[Any], object], contextvars.Context | None] | None = None

    def add_done_callback(
        self, callback: Callable[[Any], object], /, *, context: contextvars.Context | None = None
    ) -> None:
        """asyncio: a task waits."""
        self._waiter = callback, context
        super().add_done_callback(callback, context=context)

    def come(self, answer: Command) -> None:
        """Set the answer, and run the waiting task at once where that is possible."""
        if self._waiter is None or asyncio.current_task(self.get_loop()) is not None:
            self.set_result(answer)  # nobody waits yet, or a task cannot go on within another one
            return
        callback, context = self._waiter
        self.remove_done_callback(callback)
        self.set_result(answer)
        if context is None:
            callback(self)
        else:
            context.run(callback, self)


class Connection(asyncio.Protocol):
    """A side of a connection. ``handler`` answers the other side's requests."""

    def __init__(
        self,
        handler: Handler,
        limits: Limits | None = None,
        opened: set[Connection] | None = None,
        memory: ConnectionMemory | None = None,
    ) -> None:
        self._handler = handler
        self._limits = limits or Limits()
        self._opened = opened
        self._memory = memory
        self._tap = self._limits.tap
        self._polling = self._limits.polling
        self._reader = FrameReader(self._limits.largest_frame)
        self._waiting: dict[int, _Awaited] = {}
        self._late: asyncio.TimerHandle | None = None
        self._gathered: list[bytes | memoryview] | None = None
        """What goes out at the end of this turn."""
        self._gathered_size = 0
        self._opaques = itertools.count(1)
        self._heard = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._ending = False
        """This side closes it."""
        self._noted = False
        """Bytes of it are counted in ``memory``."""
        self._unsent = 0
        """Bytes that were written and not read, at the last look for idle connections."""
        self.is_congested = False
        """The other side has not read its answers: it gets no more of them until it does."""
        self._writers: asyncio.Lock | None = None
        """Who waits in line to write; None while nobody had to."""
        self._relief: asyncio.Future[None] | None = None
        self.peer = ""
        """``ip:port`` of the other side."""
        self.closed = asyncio.Event()
        self.on_close: list[Callable[[Connection], None]] = []
        self.on_relief: Callable[[Connection], None] | None = None
        """Called when the other side has read what it had not (see :attr:`is_congested`)."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection stands."""
        transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self._transport = transport
        self.peer = _address_text(transport.get_extra_info("peername"))
        if self._opened is not None:
            if len(self._opened) >= self._limits.connections:
                _log.warning("%s is sent away: %d connections stand", self.peer, len(self._opened))
                transport.abort()
                return
            self._opened.add(self)
        self._heard = time.monotonic()
        if self._tap is not None:
            self._tap.opened(self)
        self._check_idle()

    def _check_idle(self) -> None:
        unsent = self._unsent_bytes()
        if self.is_congested and unsent < self._unsent:
            self._heard = time.monotonic()
        self._unsent = unsent
        remaining_s = self._heard + self._limits.idle - time.monotonic()
        if remaining_s <= 0 and self.is_congested:
            self.abort()  # what it does not read would keep a connection that is only closed
        elif remaining_s <= 0:
            self.close()
        else:
            self._watch = asyncio.get_running_loop().call_later(remaining_s, self._check_idle)

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes came."""
        self._heard = time.monotonic()
        if self._polling is not None:
            self._polling.note_arrival(self._heard)
        self._reader.feed(data)
        if not self._has_enough:
            self._take_in()
        if self._noted or self._reader.held >= SMALL_BYTES:
            self._note_memory()

    def _take_in(self) -> None:
        """Handle the frames that are complete, until the other side has enough to read."""
        self._gathered = []
        fault: Fault | None = None
        commands = self._reader.commands()
        try:
            for command in commands:
                if self._tap is not None:
                    self._tell_came(self._tap, command)
                if isinstance(command, Fault):
                    fault = command
                elif command.is_answer:
                    waiting = self._waiting.pop(command.opaque, None)
                    if waiting is not None and not waiting.done():
                        waiting.come(command)
                elif (answer := self._answer(command)) is not None:
                    self._write(self._encoded(command, answer))
                    if self._has_enough:
                        break
        finally:
            commands.close()
            self._write_gathered()
        if fault is not None:
            _log.warning("%s: %s (offset %d)", self.peer, fault.reason, fault.offset)
            self.close()

    def _do_one_way_rest(self) -> None:
        """Run the complete one-way requests of a side that has left; other requests wanted an answer."""
        for command in self._reader.commands():
            if isinstance(command, Command) and command.is_one_way and not command.is_answer:
                if self._tap is not None:
                    self._tell_came(self._tap, command)
                self._answer(command)

    @property
    def _has_enough(self) -> bool:
        """Return True if answering the other side is paused. A client goes on reading what a server says, whatever it
        has written itself: if both sides waited for the other to read, neither would go on.
        """
        return self.is_congested and self._memory is not None

    @property
    def held_bytes(self) -> int:
        """Bytes of this connection in memory: incomplete or waiting frames, and answers that were not read yet."""
        return self._reader.held + (self._unsent_bytes() if self.is_congested else 0)

    def _unsent_bytes(self) -> int:
        transport = self._transport
        return 0 if transport is None or transport.is_closing() else transport.get_write_buffer_size()

    def _note_memory(self) -> None:
        if self._memory is not None:
            size = self.held_bytes
            self._noted = size >= SMALL_BYTES
            self._memory.note(self, size)
        self.resume_reading()

    def resume_reading(self) -> None:
        """Read on, unless the other side does not read, or there is no memory for what it sends."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        may_read = self._memory is None or (not self.is_congested and self._memory.may_read(self))
        if may_read != transport.is_reading():
            with contextlib.suppress(RuntimeError):  # it closes
                transport.resume_reading() if may_read else transport.pause_reading()

    def _tell_came(self, tap: Tap, command: Command | Fault) -> None:
        if isinstance(command, Fault):
            tap.broke(self, command.reason, self._reader.frame)
        else:
            tap.received(self, command, self._reader.frame)

    def _answer(self, request: Command) -> Command | None:
        """Return the handler's answer; a one-way request gets none, not even an error."""
        try:
            answer = self._handler(request, self)
        except Refused as error:
            answer = answer_to(request, error.code, fields=error.fields, remark=str(error))
        except Exception as error:  # noqa: BLE001  RocketMQ answers with its text, and goes on
            _log.exception("request %d of %s", request.code, self.peer)
            answer = answer_to(request, ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")
        return None if request.is_one_way else answer

    def _encoded(self, request: Command, answer: Command) -> list[bytes | memoryview]:
        try:
            pieces = encode(answer)
        except ValueError as error:
            answer = answer_to(request, ResponseCode.SYSTEM_ERROR, remark=str(error))
            pieces = encode(answer)
        if self._tap is not None:
            self._tap.sent(self, answer, b"".join(pieces), later=False)
        return pieces

    def _write_gathered(self) -> None:
        pieces, self._gathered, self._gathered_size = self._gathered, None, 0
        if pieces:
            self._write(pieces)

    def _write(self, pieces: list[bytes | memoryview]) -> None:
        if self._gathered is not None:
            self._gathered += pieces
            self._gathered_size += sum(map(len, pieces))
            if self._gathered_size >= MAX_GATHERED_BYTES:
                pieces, self._gathered, self._gathered_size = self._gathered, [], 0
            else:
                return
        transport = self._transport
        if pieces and transport is not None and not transport.is_closing():
            transport.writelines(pieces)
            self._heard = time.monotonic()
            if self._has_enough:
                self._note_memory()

    def send(self, command: Command) -> None:
        """Write ``command``: an answer that was held, or a one-way request."""
        self._write(self._later(command))

    def _later(self, command: Command) -> list[bytes | memoryview]:
        pieces = encode(command)
        if self._tap is not None:
            self._tap.sent(self, command, b"".join(pieces), later=True)
        return pieces

    def send_many(self, commands: Iterable[Command]) -> None:
        """:meth:`send` for several, in one write."""
        self._write([piece for command in commands for piece in self._later(command)])

    async def ask(self, request: Command, timeout_s: float = ANSWER_TIMEOUT_S) -> Command:
        """Send a request and return the answer. Raises ``TimeoutError``, and ``ConnectionError`` if the connection ends
        first.
        """
        if self.closed.is_set():
            raise ConnectionError(sentence("the connection to {peer} is closed", peer=self.peer))
        request.opaque = opaque = next(self._opaques)
        loop = asyncio.get_running_loop()
        self._waiting[opaque] = waiting = _Awaited(loop=loop)
        waiting.due = due = loop.time() + timeout_s
        if self._late is None or due < self._late.when():
            self._schedule_timeout_check(due)
        try:
            self.send(request)
            return await waiting
        finally:
            self._waiting.pop(opaque, None)

    @property
    def must_wait_to_write(self) -> bool:
        """Return True if :meth:`room_to_write` has to wait."""
        return self.is_congested or (self._writers is not None and self._writers.locked())

    async def room_to_write(self, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        """Wait in line until the other side has read what was written; the caller may then write.

        Raises ``ConnectionError`` if the connection ends, or if the other side reads nothing for ``timeout_s`` seconds:
        then the connection is ended for everybody.
        """
        if self._writers is None:
            self._writers = asyncio.Lock()
        async with self._writers:
            if not self.is_congested or self.closed.is_set():
                return
            self._relief = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._relief
            except TimeoutError:
                self.abort()
                raise ConnectionError(
                    sentence("{peer} has taken nothing for {seconds:g} s", peer=self.peer, seconds=timeout_s)
                ) from None
            finally:
                self._relief = None

    def _relieve(self) -> None:
        if self._relief is not None and not self._relief.done():
            self._relief.set_result(None)

    def _schedule_timeout_check(self, due: float) -> None:
        """Start one timer for all waiting requests: mostly answers come, and nothing is late."""
        if self._late is not None:
            self._late.cancel()
        self._late = asyncio.get_running_loop().call_at(due, self._check_timeouts)

    def _check_timeouts(self) -> None:
        self._late = None
        now = asyncio.get_running_loop().time()
        for opaque, waiting in list(self._waiting.items()):
            if waiting.due <= now:
                del self._waiting[opaque]
                if not waiting.done():
                    waiting.set_exception(TimeoutError())
        if self._waiting:
            self._schedule_timeout_check(min(waiting.due for waiting in self._waiting.values()))

    def pause_writing(self) -> None:
        """asyncio: the other side does not read; nothing more is taken from it."""
        self.is_congested = True
        self._note_memory()

    def resume_writing(self) -> None:
        """asyncio: it reads again."""
        self.is_congested = False
        self._relieve()
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """Answer what came before the other side stopped reading, then what waited for it."""
        if self.closed.is_set() or self._ending:
            return
        if not self._has_enough:
            self._take_in()
        if not self.is_congested and self.on_relief is not None:
            self.on_relief(self)
        self._note_memory()

    def close(self) -> None:
        """End the connection when what was written is sent; after :data:`LINGER_S` in any case."""
        self._write_gathered()
        self._ending = True
        if self._transport is not None:
            unsent = self._unsent_bytes()
            self._transport.close()
            if unsent:
                asyncio.get_running_loop().call_later(LINGER_S, self.abort)

    def abort(self) -> None:
        """End the connection at once."""
        self._ending = True
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, _exc: Exception | None) -> None:
        """asyncio: the connection has ended."""
        for timer in (self._watch, self._late):
            if timer is not None:
                timer.cancel()
        if not self._ending:
            self._do_one_way_rest()
        if self._memory is not None:
            self._memory.forget(self)
        if self._opened is not None:
            self._opened.discard(self)
        if self._tap is not None:
            self._tap.closed(self)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError(sentence("the connection to {peer} has ended", peer=self.peer)))
        self._waiting.clear()
        self.closed.set()
        self._relieve()
        for on_close in self.on_close:
            on_close(self)


def _address_text(address: tuple[str, int] | None) -> str:
    return f"{address[0]}:{address[1]}" if address else ""


async def connect(
    host: str,
    port: int,
    handler: Handler | None = None,
    limits: Limits | None = None,
    tls: ssl.SSLContext | None = None,
) -> Connection:
    """Connect to a server; ``handler`` answers its requests. Raises ``OSError``."""
    connecting = asyncio.get_running_loop().create_connection(
        lambda: Connection(handler or _refuse_requests, limits),
        host,
        port,
        ssl=tls,
        ssl_shutdown_timeout=None if tls is None else TLS_END_TIMEOUT_S,
    )
    async with asyncio.timeout(ANSWER_TIMEOUT_S):
        _, connection = await connecting
    return connection


def not_supported(request: Command) -> Command:
    """Answer as RocketMQ does to a request that it does not know (1.7)."""
    return answer_to(
        request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=f" request type {request.code} not supported"
    )


def _refuse_requests(request: Command, _connection: Connection) -> Command:
    return not_supported(request)


def bind(host: str, port: int, use: str = "") -> socket.socket:
    """Return a socket at an address that nobody else has, 0 for a free port; it does not accept yet. Raises
    :class:`CannotRead` if the address is taken, or belongs to another machine; ``use`` names the purpose in that error.
    """
    bound = None
    if not 0 <= port <= MAX_PORT:  # the system would take another one
        raise CannotRead(_cannot_listen(host, port, use, sentence("ports end at {n}", n=MAX_PORT)))
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        if port:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise CannotRead(_cannot_listen(host, port, use, busy_words(error, port))) from error
    return bound


def allow_restart(listening: socket.socket) -> None:
    """Let a later process bind the port while connections of this one wait for their end (TIME_WAIT).

    A free port gets this only once it listens: before, another process could bind the same port and listen first.
    """
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def _cannot_listen(host: str, port: int, use: str, why: str) -> str:
    place = f"{host}:{port}"
    if not use:
        return sentence("cannot listen on {place}: {why}", place=place, why=why)
    return sentence("cannot listen on {place}, {use}: {why}", place=place, use=sentence(use), why=why)


def port_of(bound: socket.socket) -> int:
    """The port that a socket of :func:`bind` has."""
    return int(bound.getsockname()[1])


async def stop_accepting(*servers: asyncio.Server) -> None:
    """Close servers of asyncio, and wait until all accepted clients are connected. Python 3.11 neither reads nor closes
    a connection that it accepts in the turn in which its server is closed; the client would wait forever.
    """
    loop = asyncio.get_running_loop()
    for server in servers:
        for listening in server.sockets:
            with contextlib.suppress(RuntimeError):  # another loop than asyncio's own
                loop.remove_reader(listening.fileno())
    for _ in range(_ACCEPT_ITERATIONS):
        await asyncio.sleep(0)
    for server in servers:
        server.close()


class Server:
    """A listening address: every connection's requests go to one handler."""

    def __init__(self, handler: Handler, limits: Limits | None = None, tls: Tls | None = None) -> None:
        self._handler = handler
        self._limits = limits or Limits()
        self._tls = tls
        self._servers: list[asyncio.Server] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._bound: list[socket.socket] = []
        """Sockets on which the tasks of ``_accepting`` accept."""
        self._beginning: set[asyncio.Task[None]] = set()
        """Connections whose first byte has not shown yet whether they use TLS."""
        self.connections: set[Connection] = set()
        self.memory = ConnectionMemory(self._limits.memory_bytes)
        self.on_relief: Callable[[Connection], None] | None = None
        self.on_close: Callable[[Connection], None] | None = None

    async def listen(self, *bound: socket.socket) -> None:
        """Accept on sockets of :func:`bind`."""
        loop = asyncio.get_running_loop()
        if self._tls is None:
            self._servers = [await loop.create_server(self._made, sock=listener, backlog=BACKLOG) for listener in bound]
            for listener in bound:
                allow_restart(listener)
            return
        for listener in bound:
            listener.listen(BACKLOG)
            allow_restart(listener)
            listener.setblocking(False)
            self._bound.append(listener)
            self._accepting.append(asyncio.create_task(self._accept(listener, self._tls)))

    async def _accept(self, bound: socket.socket, tls: Tls) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(bound)
            except OSError as error:
                _log.warning("a connection is not accepted: %s", error)
                await asyncio.sleep(ACCEPT_RETRY_S)
                continue
            if len(self._beginning) + len(self.connections) >= self._limits.connections:
                _log.warning("a connection is sent away: %d stand", len(self.connections))
                accepted.close()
                continue
            task = asyncio.create_task(self._begin(accepted, tls))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _begin(self, accepted: socket.socket, tls: Tls) -> None:
        """Begin a plain or a TLS connection, as its first byte says and the mode allows."""
        peer = _address_text(accepted.getpeername())
        is_handed_over = False
        try:
            initial_byte = await first_byte(accepted, self._limits.idle)
            reason = tls.why_not(initial_byte) if initial_byte else ""
            if reason:
                _log.warning("%s: %s", peer, reason)
            if initial_byte and not reason:
                secret = initial_byte == TLS_HELLO
                await asyncio.get_running_loop().connect_accepted_socket(
                    self._made,
                    accepted,
                    ssl=tls.server_context() if secret else None,
                    ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if secret else None,
                )
                is_handed_over = True
        except (OSError, TimeoutError) as error:  # the handshake failed, or nothing came
            _log.warning("%s: %s", peer, cause_of(error, "nothing came"))
        finally:
            if not is_handed_over:
                accepted.close()

    def _made(self) -> Connection:
        connection = Connection(self._handler, self._limits, self.connections, self.memory)
        connection.on_relief = self.on_relief
        if self.on_close is not None:
            connection.on_close.append(self.on_close)
        return connection

    async def close(self) -> None:
        """Stop accepting, and end the open connections."""
        await stop_accepting(*self._servers)
        going = [*self._accepting, *self._beginning]
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        for listener in self._bound:
            listener.close()
        ending = list(self.connections)
        for connection in ending:
            connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.gather(*(each.closed.wait() for each in ending))
        for server in self._servers:
            await server.wait_closed()
