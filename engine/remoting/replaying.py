"""A recording's requests sent again to another broker: in their order, each recorded connection as its own connection.

A request waits for the answer of the previous one, except after pulls that were held, and one-way requests. A request
may name a place that only the first store knew (of a half message, of a message that is sent back or looked for); it is
given the place that the message has now.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from engine.errors import cause_of
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.connection import Connection, connect
from engine.remoting.exchanges import HOLDING, SENDS, Exchange, Exchanges, FrameEvent
from engine.remoting.frame import Command

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
class Sent:
    """A request that was sent again. ``before`` and ``now`` are the codes of its answers; None: there was none."""

    exchange: Exchange
    before: int | None
    now: int | None
    remark: str = ""

    @property
    def same(self) -> bool:
        return self.before == self.now


@dataclass
class Replayed:
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
    answer.
    """

    def __init__(
        self,
        exchanges: Iterable[Exchange],
        address: str,
        on_sent: Callable[[Sent], None] = lambda _sent: None,
        only: Collection[str] = (),
    ) -> None:
        self._exchanges = exchanges
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._told = on_sent
        self._only = frozenset(only)
        self._connections: dict[int, Connection] = {}
        self._places: dict[int, int] = {}
        """Physical offsets of messages: where they were, and are now."""
        self._entries: dict[int, str] = {}
        """Of half messages, by where they were: the queue offsets that they have now."""
        self.result = Replayed()

    async def run(self) -> Replayed:
        """Send all requests again. Raises ``OSError`` where nothing listens."""
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
            connection = self._connections[number] = await connect(self._host, self._port, _silent)
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
            self._told(Sent(exchange, old_code, None, cause_of(error, "no answer came in time")))
            return
        sent = Sent(exchange, old_code, answer.code, answer.remark or "")
        if old_code is None:
            self.result.answered_now += 1
        else:
            self.result.same += sent.same
            self.result.differs += not sent.same
        self._remember(exchange, answer)
        self._told(sent)

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
