"""The tasks of ``serve`` where the broker is a slave: follow the master's log, copy its tables
(docs/formats/replication.md, docs/protocol/behaviour.md#offsets). Java: ``DefaultHAClient``,
``SlaveSynchronize``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import replace

from engine.broker.admin_broker import take_request_modes
from engine.broker.broker import Broker
from engine.broker.config import BrokerConfig
from engine.broker.registration import Routes
from engine.errors import UsageError
from engine.releases import Release
from engine.remoting.answers import UnexpectedAnswer, reading
from engine.remoting.codes import RequestCode
from engine.replication.follower import Follower
from engine.replication.master import (
    Master,
    MasterTimers,
    ask_master,
    ask_request_modes,
    ask_timer_metrics,
    ask_timers,
    mirror_tables,
)
from engine.sentences import sentence

MASTER_ID = 0
_POLL_INTERVAL_S = 0.5
TABLE_DELAYS_S = {4: (3.0, 10.0), 5: (10.0, 60.0)}
"""Seconds to the first copy of the master's tables, and from each to the next."""
TIMER_INTERVAL_S = 3.0
"""Seconds from one request for the positions of the master's timers to the next."""


def with_role(config: BrokerConfig, role: str, file: str) -> BrokerConfig:
    """The broker's configuration as its role has it: a master has the id 0. Raises :class:`UsageError` for a slave
    without an id of its own.
    """
    if role != "SLAVE":
        return replace(config, broker_id=0)
    if config.broker_id <= 0:
        raise UsageError(
            sentence("brokerRole=SLAVE: expected a brokerId above 0, found {broker_id}", broker_id=config.broker_id),
            file=file,
        )
    return config


async def ask_masters_release(broker: BrokerConfig, ha_address: str, routes: Iterable[Routes]) -> Release | None:
    """The release of the master of a slave that has no store yet, as the master's broker names it; None if it does
    not. Its address is that of the name servers' ``routes``, without one the port before ``haMasterAddress``.
    """
    brokers = [route.get(broker.broker_name, {}) for route in routes]
    addresses = [by_id[MASTER_ID] for by_id in brokers if MASTER_ID in by_id]
    ha_host, _, ha_port = ha_address.rpartition(":")
    if ha_port.isdigit():
        addresses.append(f"{ha_host}:{int(ha_port) - 1}")
    for address in addresses:
        host, _, port = address.rpartition(":")
        with contextlib.suppress(UnexpectedAnswer):
            master = await ask_master(host, int(port)) if port.isdigit() else None
            if master is not None:
                return master.release
    return None


async def follow_until(ended: asyncio.Event, broker: Broker, say: Callable[[str], None]) -> None:
    """Run :func:`follow_master` until ``ended`` is set, or it raises."""
    following, ending = asyncio.ensure_future(follow_master(broker, say)), asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait({following, ending}, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            following.result()
    finally:
        ending.cancel()
        following.cancel()
        await asyncio.gather(following, ending, return_exceptions=True)


async def follow_master(broker: Broker, say: Callable[[str], None]) -> None:
    """Follow until cancelled, or until the master's bytes cannot be a copy: raises what :meth:`Follower.run` raises.
    The master is ``haMasterAddress``, or the one that the name servers name; where that changes, the new one is
    followed.
    """
    copying = [asyncio.ensure_future(copy(broker, say)) for copy in (_copy_tables_repeatedly, _copy_timers_repeatedly)]
    try:
        while True:
            address = _ha_address(broker)
            if not address:
                await asyncio.sleep(_POLL_INTERVAL_S)
                continue
            await _follow_one(broker, address, say)
            say(f"the master is at {_ha_address(broker)} now")
    finally:
        for task in copying:
            task.cancel()
        await asyncio.gather(*copying, return_exceptions=True)


def _ha_address(broker: Broker) -> str:
    return broker.store.config.ha_master_address or broker.master_ha_address


async def _follow_one(broker: Broker, address: str, say: Callable[[str], None]) -> None:
    """Follow one master for as long as it is the master."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(sentence("haMasterAddress: expected host:port, found {address}", address=repr(address)))

    async def ask() -> Master | None:
        own_host, _, own_port = broker.master_address.rpartition(":")
        return await ask_master(own_host, int(own_port)) if own_port.isdigit() else None

    follower = Follower(broker.store, host, int(port), ask_master=ask)
    follower.on_status = say
    running = asyncio.ensure_future(follower.run())
    try:
        while not running.done() and _ha_address(broker) == address:
            await asyncio.wait({running}, timeout=_POLL_INTERVAL_S)
        if running.done():
            running.result()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _copy_tables_repeatedly(broker: Broker, say: Callable[[str], None]) -> None:
    """Copy the tables again and again. A master that gives none (it is gone, asks for accounts, or its answer cannot
    be read) is reported once, until it gives them again.
    """
    delay_s, pause = TABLE_DELAYS_S[broker.store.rules.major]
    await asyncio.sleep(delay_s)
    last_problem = ""
    while True:
        address = broker.master_address
        if address:
            host, _, port = address.rpartition(":")
            problem = await _copy_tables(broker, host, int(port))
            if problem and problem != last_problem:
                say(problem)
            last_problem = problem
        await asyncio.sleep(pause)


async def _copy_tables(broker: Broker, host: str, port: int) -> str:
    """Copy the master's tables once. Returns what was wrong, empty if nothing was."""
    try:
        if not await mirror_tables(host, port, broker.store.tables):
            return f"the master at {host}:{port} gives no topics, groups and offsets; those from before hold"
        modes = await ask_request_modes(host, port) if broker.store.rules.major >= 5 else None
        if modes is not None:
            take_request_modes(broker, modes)
        if broker.timers is not None:
            text = await ask_timer_metrics(host, port)
            if text is not None:
                with reading(RequestCode.GET_TIMER_METRICS, f"{host}:{port}"):
                    broker.timers.take_metrics(text)
    except UnexpectedAnswer as error:
        return f"{error}; topics, groups and offsets from before hold"
    return ""


async def _copy_timers_repeatedly(broker: Broker, say: Callable[[str], None]) -> None:
    """Take over the positions of the master's timers, again and again: each once the log is here up to where the
    master's log ended when it reported them. Java takes them at once: a master that is gone before its last bytes have
    come leaves a slave that never delivers these messages.
    """
    waiting: MasterTimers | None = None
    waiting_address = last_problem = ""
    while broker.timers is not None:
        address = broker.master_address
        if address != waiting_address:
            waiting, waiting_address = None, address
        if address and waiting is None:
            host, _, port = address.rpartition(":")
            problem = ""
            try:
                waiting = await ask_timers(host, int(port))
            except UnexpectedAnswer as error:
                problem = f"{error}; positions of timers from before hold"
            if problem and problem != last_problem:
                say(problem)
            last_problem = problem
        if waiting is not None and broker.store.parts.files.wrote_offset >= waiting.log_end:
            broker.timers.follow(waiting.check)
            waiting = None
        await asyncio.sleep(TIMER_INTERVAL_S)
