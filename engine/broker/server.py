"""A listening broker: answers requests, wakes held pulls, and runs the background services
(docs/protocol/behaviour.md).

Java: ``BrokerController.start``, ``shutdown``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from engine.broker import processors
from engine.broker.access import Access
from engine.broker.broker import Broker
from engine.broker.compiled_loading import loading_beside
from engine.broker.config import BrokerConfig
from engine.broker.pop_message import wake_orderly, wake_pops
from engine.broker.pull_message import wake_held
from engine.broker.registration import Registration
from engine.broker.send_message import finish_sends
from engine.broker.services import Service, services_of
from engine.message_store import MessageStore
from engine.remoting.connection import BusyPolling, Connection, Limits, Server, Tap, port_of
from engine.remoting.frame import Command
from engine.remoting.tls import Tls

LOOPBACK = "127.0.0.1"
_LAST_ANSWERS_S = 5.0
"""Seconds to wait for pending answers at the end."""
_log = logging.getLogger(__name__)


class ListeningBroker:
    """A broker that accepts connections within an ``async with`` block; the store stays its owner's.

    ``listening_socket`` is a socket of :func:`engine.remoting.connection.bind`: the store was opened with its port.
    ``vip`` is a second socket with the same answers: the port that slaves and old clients use, two below the first.
    ``tap`` gets each frame. ``access`` checks requests; None: every request is allowed. ``ha`` is the address
    (``ip:port``) where slaves follow the log, if anywhere. ``polls``: the loop does not sleep
    between requests that follow each other closely; for a process of its own.
    """

    def __init__(
        self,
        store: MessageStore,
        config: BrokerConfig | None = None,
        *,
        name_servers: Sequence[str] = (),
        listening_socket: socket.socket,
        ha: str = "",
        vip: socket.socket | None = None,
        tls: Tls | None = None,
        access: Access | None = None,
        tap: Tap | None = None,
        polls: bool = False,
    ) -> None:
        self.broker = Broker(store, config)
        self.broker.access = access
        self.broker.ha_address = ha
        limits = Limits(idle=float(self.broker.config.client_idle_s), tap=tap, polling=BusyPolling() if polls else None)
        self._server = Server(self._answer, limits, tls)
        self._server.on_close = self.broker.disconnected
        self._server.on_relief = lambda _: self._wake_all()
        self._sockets = [listening_socket] if vip is None else [listening_socket, vip]
        self.registration = Registration(self.broker, name_servers, tls.asking if tls is not None else None)
        self._services: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_wake_scheduled = False
        self._free_timers: dict[tuple[str, str, int], asyncio.TimerHandle] = {}
        self._loading = loading_beside()

    @property
    def address(self) -> str:
        """``ip:port``, set as soon as the broker accepts."""
        return self.broker.address

    async def __aenter__(self) -> Self:
        """Accept connections. If this is cancelled, nothing stays open: a name server may take long to answer."""
        self._loading.__enter__()
        try:
            await self._begin()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _begin(self) -> None:
        broker = self.broker
        self._loop = asyncio.get_running_loop()
        broker.address = f"{broker.config.broker_ip}:{port_of(self._sockets[0])}"
        await self._server.listen(*self._sockets)
        broker.topics.create_at_start()
        self._connect_parts(self._loop)
        await self.registration.step()
        for service in services_of(broker):
            self._services.append(asyncio.create_task(self._run_service(service)))
        self._services.append(asyncio.create_task(self.registration.run()))

    def _connect_parts(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set what each event calls. The constructor has set what the connections call.

        ::

            a connection is closed ────────────► broker.disconnected: its groups are notified
            a connection has room again ────────► held pulls and pops are retried
            a put (send, timer, delay) ────────► dispatch at once ──► held pulls and pops are retried
            the dispatch thread took units in ─► held pulls and pops are retried, once a turn of the loop
            an orderly queue becomes free ─────► pops of this queue are retried at that time
            a topic is declared or changed ─────► registration with the name servers
            a topic was declared by a send ─────► it is saved at the end of this turn of the loop
            queues are assigned (pop) ──────────► registration.route_of: the route of a name server
            a range of a static topic lies elsewhere ► registration.ask_broker: that broker is asked
        """
        broker = self.broker
        broker.topics.changed = self.registration.ask
        broker.topics.soon = loop.call_soon
        if self.registration.names_servers:
            broker.route_of = self.registration.route_of
            broker.ask_broker = self.registration.ask_broker
            broker.leaders_of = self.registration.leaders_of
        broker.orders.freed = broker.lite.orders.freed = self._queue_is_free_at
        broker.orders.notify_all()
        broker.dispatched = self._dispatch_for_held
        if broker.store.config.flush_disk_type == "SYNC_FLUSH":
            broker.sends.putter = ThreadPoolExecutor(1, "storescope-put")
        broker.store.services.reput.on_dispatched = self._dispatched_elsewhere

    async def __aexit__(self, *_: object) -> None:
        """Stop accepting; requests that came are answered, then connections end."""
        for service in self._services:
            service.cancel()
        await asyncio.gather(*self._services, return_exceptions=True)
        for timer in self._free_timers.values():
            timer.cancel()
        self.broker.pops.end()
        self.broker.notices.end()
        self.broker.slaves.end()
        await self.registration.end()
        if self.broker.tasks:
            await asyncio.wait(self.broker.tasks, timeout=_LAST_ANSWERS_S)
        self.broker.store.services.reput.on_dispatched = None
        self.broker.topics.soon = None
        self.broker.topics.save_created()
        self.broker.store.tables.complete()
        await self._server.close()
        try:
            await finish_sends(self.broker)
            self._end_services()
        finally:
            await asyncio.to_thread(self._loading.__exit__, None, None, None)

    def _end_services(self) -> None:
        """End every service, even if one raises: the others must save their work."""
        with contextlib.ExitStack() as stack:
            if self.broker.sends.putter is not None:
                stack.callback(self.broker.sends.putter.shutdown)
            for service in reversed(services_of(self.broker)):
                if service.end is not None:
                    stack.callback(service.end, self.broker)

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._server.connections)

    def cut(self) -> None:
        """Close every connection; the broker goes on accepting."""
        for connection in list(self._server.connections):
            connection.close()

    def _answer(self, request: Command, connection: Connection) -> Command | None:
        answer = processors.answer(self.broker, request, connection)
        if answer is None or request.code not in processors.DECLARES_TOPICS or not self.registration.is_due:
            return answer
        task = asyncio.create_task(self._answer_registered(answer, request, connection))
        self.broker.tasks.add(task)
        task.add_done_callback(self.broker.tasks.discard)
        return None

    async def _answer_registered(self, answer: Command, request: Command, connection: Connection) -> None:
        """Answer the declaration of a topic after it is registered with the name servers, as in Java."""
        await self.registration.register_changed()
        if not request.is_one_way:
            connection.send(answer)

    async def _run_service(self, service: Service) -> None:
        while True:
            await asyncio.sleep(service.seconds(self.broker))
            try:
                service.step(self.broker)
            except Exception:  # noqa: BLE001  the next round may succeed
                _log.exception("a round of the broker: %s", service.name)

    def _dispatch_for_held(self) -> None:
        """After a put: if requests wait for its messages, dispatch them at once, on this thread."""
        if self.broker.has_waiting_requests:
            self.broker.store.services.dispatch_now()
            self._wake_all()

    def _wake_all(self) -> None:
        wake_held(self.broker)
        wake_pops(self.broker)

    def _queue_is_free_at(self, topic: str, group: str, queue_id: int, free_ms: int) -> None:
        """Retry waiting pops of an orderly group's queue at ``free_ms``, when no client holds its messages any more."""
        if not self.broker.config.reports_free_queues or self._loop is None:
            return
        key = topic, group, queue_id
        old_timer = self._free_timers.pop(key, None)
        if old_timer is not None:
            old_timer.cancel()
        delay_s = max(free_ms - self.broker.now(), 0) / 1000
        self._free_timers[key] = self._loop.call_later(delay_s, self._queue_is_free, *key)

    def _queue_is_free(self, topic: str, group: str, queue_id: int) -> None:
        del self._free_timers[topic, group, queue_id]
        wake_orderly(self.broker, topic, group, queue_id)

    def _dispatched_elsewhere(self) -> None:
        """Wake waiting requests after the dispatch thread took units in, at most once per turn of the loop."""
        if self._loop is not None and not self._is_wake_scheduled and self.broker.has_waiting_requests:
            self._is_wake_scheduled = True
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake_scheduled)

    def _wake_scheduled(self) -> None:
        self._is_wake_scheduled = False
        self._wake_all()
