"""``serve``: a broker over a store, and a name server, for RocketMQ's own clients."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.broker.access import Access
from engine.broker.broker import Broker
from engine.broker.config import PORT, BrokerConfig, read_config
from engine.broker.registration import Routes
from engine.broker.server import ListeningBroker
from engine.broker.stats import RpcLatency
from engine.cli.keeping import Keeping, add_opening, forget_earlier, keeping, refuse_empty
from engine.cli.options import add_release, common, number, paths_as_asked, read_given
from engine.cli.output import Output
from engine.cli.registering import (
    EVERYWHERE,
    add_register,
    ask_to_register,
    look_around,
    name_servers_of,
    registration_words,
    say_left_out,
    within_reach,
)
from engine.cli.serving import (
    add_address,
    address_list,
    allow_many_connections,
    ended_by_signals,
    is_loopback,
    say_line,
    say_record,
    tell_troubles,
    tls_of,
)
from engine.cli.serving import port as a_port
from engine.cli.slave_role import ask_masters_release, follow_until, with_role
from engine.cli.writing import WriteTarget, find_target, say_compilation
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, UsageError
from engine.message_store import MessageStore
from engine.namesrv.routes import Change
from engine.namesrv.server import LOOPBACK, ListeningNameServer
from engine.namesrv.server import PORT as NAMESRV_PORT
from engine.releases import Release, of
from engine.remoting.connection import bind, port_of
from engine.remoting.recording import MOST, Recorder, RequestLog
from engine.remoting.tap import FrameTap, Take
from engine.remoting.tls import Tls
from engine.replication.source import HaServer

if TYPE_CHECKING:
    from engine.broker.metrics import MetricsServer

HA_PORT = "the HA port (the broker's own and one, unless haListenPort is set)"


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "serve", parents=[common()], help="writes: a broker over a store, and a name server, for RocketMQ's own clients"
    )
    parser.add_argument("store", metavar="STORE", help="a store, or a directory that is absent or empty")
    add_address(parser, PORT)
    parser.add_argument("--namesrv-port", type=a_port, default=NAMESRV_PORT, help="of the name server; 0: a free one")
    parser.add_argument("--namesrv", type=address_list, metavar="ADDR[;ADDR]", help="register there, serve none here")
    parser.add_argument("--acl", metavar="plain_acl.yml", help="accounts: requests are signed, and may do what it says")
    parser.add_argument("--without-acl", action="store_true", help="beyond the loopback, too, everybody may everything")
    parser.add_argument("--metrics", type=a_port, metavar="PORT", help="figures for Prometheus, as RocketMQ names them")
    parser.add_argument(
        "--log-requests", type=Path, metavar="FILE", help="append each request with its answer as a line of JSON"
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="a new file with every frame whole, for the window and for replay"
    )
    parser.add_argument(
        "--record-limit", type=number, default=MOST, metavar="BYTES", help=f"how large that file gets ({MOST:,})"
    )
    add_release(parser, "the release whose rules apply (default: that of the store, a new one is of the newest)")
    add_register(parser)
    add_opening(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    say_compilation(out)
    broker, given, unknown = read_config(args.config) if args.config else (BrokerConfig(), None, [])
    given = paths_as_asked(args, given) if given is not None else read_given(args)[0]
    broker, given, left_out = within_reach(args, broker, given)
    say_left_out(out, args.config, unknown, left_out)
    tls = tls_of(args, out)
    broker = with_role(broker, given.broker_role if given else "", str(args.config))
    broker = _opened(args, broker, out)
    target = find_target(args.store, given, args.release)
    address = f"{broker.broker_ip}:{broker.listen_port if args.port is None else args.port}"
    around = asyncio.run(look_around(args, broker, address, tls))
    target = _as_master(args, target, broker, around, out)
    access = _access(args, broker, target.release, out)
    refuse_empty(args, target.empty_log)
    if not ask_to_register(args, broker, given, address, around):
        return 2
    changes = target.recovery is not None and not target.recovery.changes_nothing
    if changes:
        for line in target.planned():
            out.say(line)
    allow_many_connections()
    loses = changes and target.recovery is not None and not target.recovery.loses_nothing
    with keeping(args, target.path, target.config, wanted=loses) as kept:
        asyncio.run(_serve(args, _Rules(broker, tls, access), target, kept, out))
    kept.say(out)
    return 0


def _as_master(
    args: argparse.Namespace, target: WriteTarget, broker: BrokerConfig, around: dict[str, Routes | str], out: Output
) -> WriteTarget:
    """A slave's new store is written as the release of its master."""
    if target.recovery is not None or args.release is not None or target.config.broker_role != "SLAVE":
        return target
    routes = [route for route in around.values() if not isinstance(route, str)]
    release = asyncio.run(ask_masters_release(broker, target.config.ha_master_address, routes))
    if release is None:
        out.say(f"the master does not name its release: the new store is written as that of {target.release}")
        return target
    return replace(target, release=release)


def _opened(args: argparse.Namespace, broker: BrokerConfig, out: Output) -> BrokerConfig:
    """Say what listening beyond this machine opens. Raises :class:`UsageError` where nobody's requests would be looked
    at and that is not wanted, and where clients cannot be told where the broker is.
    """
    if is_loopback(args.host):
        return broker
    if args.host in EVERYWHERE and broker.broker_ip == BrokerConfig().broker_ip:
        raise UsageError(
            f"--listen {args.host}: no address that clients can be told; name one of this machine, or brokerIP1 in "
            "the file of --config (with --register where that is no address of this machine)"
        )
    if args.acl is None and not args.without_acl:
        raise UsageError(
            f"--listen {args.host}: whoever reaches it may send, consume, read every message and delete topics; "
            "name accounts with --acl plain_acl.yml, or say --without-acl"
        )
    who = (
        f"who signs as an account of {args.acl} may do what it allows"
        if args.acl
        else ("whoever reaches it may send, consume, read every message and delete topics")
    )
    out.say(f"listening on {args.host}: {who}; whoever reaches the HA port may copy the log")
    if args.tls is None:
        out.say(f"listening on {args.host}: nothing is encrypted")
    return broker if args.host in EVERYWHERE else replace(broker, broker_ip=args.host)


def _access(args: argparse.Namespace, broker: BrokerConfig, release: Release, out: Output) -> Access | None:
    """The accounts of ``--acl``. Raises :class:`UsageError`, also where the configuration asks for accounts and the
    command names none.
    """
    if args.acl is None:
        for key, asked in (("aclEnable", broker.acl_enable), ("authenticationEnabled", broker.authentication)):
            if asked:
                raise UsageError(f"{key}=true: name the accounts with --acl plain_acl.yml", file=args.config)
        return None
    found = Access(Path(args.acl), release, broker.cluster)
    if found.acl.white_listed and of(release).major >= 5:
        out.say(f"{args.acl}: globalWhiteRemoteAddresses has no effect with --release {release}, as in RocketMQ 5")
    return found


class _Rules(NamedTuple):
    """What is served how: the configuration, TLS, whose requests are done; None: plainly, and everybody's."""

    config: BrokerConfig
    tls: Tls | None
    access: Access | None


async def _serve(args: argparse.Namespace, rules: _Rules, target: WriteTarget, kept: Keeping, out: Output) -> None:
    """Until Ctrl+C or TERM."""
    config, tls, access = rules
    said = asyncio.Event()
    with ended_by_signals() as ended:
        async with contextlib.AsyncExitStack() as opened:
            named = name_servers_of(args, config)
            takes = _kept_requests(args, opened)
            rpc = RpcLatency() if args.metrics is not None else None
            looking = [*takes, *([rpc.take] if rpc is not None else [])]
            tap = FrameTap("broker", *looking) if looking else None
            own = None if named else await opened.enter_async_context(_name_server(args, tls, out, said, takes))
            port = config.listen_port if args.port is None else args.port
            bound = opened.enter_context(bind(args.host, port, "the broker's port"))
            store = await asyncio.to_thread(
                MessageStore,
                target.path,
                target.config,
                disk=kept.store_disk,
                release=target.release,
                store_host=f"{config.broker_ip}:{port_of(bound)}",
                empty_log=args.empty_log,
            )
            opened.push_async_callback(asyncio.to_thread, store.close)
            kept.settled = True
            forget_earlier(kept, out)
            ha = opened.enter_context(bind(args.host, _ha_port(bound, args, target.config), HA_PORT))
            source = await opened.enter_async_context(HaServer(store, ha))
            served = await opened.enter_async_context(
                ListeningBroker(
                    store,
                    config,
                    name_servers=named or [own or ""],
                    listening_socket=bound,
                    ha=f"{config.broker_ip}:{port_of(ha)}",
                    vip=_vip_port(args.host, bound, opened),
                    tls=tls,
                    access=access,
                    tap=tap,
                    polls=True,
                )
            )
            served.broker.followers = lambda: source.slaves
            served.broker.stats.rpc = rpc
            follow_slaves(served.broker, source)
            figures = None
            if args.metrics is not None:
                figures = opened.enter_context(_metrics_server(served, args)).address
            _say_serving(out, served, own, str(args.store), figures)
            if named:
                served.registration.on_change = partial(_say_registration, out)
            telling = asyncio.ensure_future(tell_troubles(store, out.say))
            opened.callback(telling.cancel)
            said.set()
            if served.broker.is_slave:
                await follow_until(ended, served.broker, out.say)
            else:
                await ended.wait()


def _kept_requests(args: argparse.Namespace, opened: contextlib.ExitStack | contextlib.AsyncExitStack) -> list[Take]:
    """Who keeps what goes over the connections, as the arguments say; closed behind everything else."""
    kept: list[RequestLog | Recorder] = []
    if args.log_requests:
        kept.append(RequestLog(args.log_requests))
    if args.record:
        try:
            kept.append(Recorder(args.record, args.record_limit))
        except FileExistsError:
            raise UsageError(f"{args.record} is there already: a recording begins a new file") from None
    for one in kept:
        opened.callback(one.close)
    return [one.take for one in kept]


def follow_slaves(broker: Broker, source: HaServer) -> None:
    """Sends wait for the slaves of ``source``, where the broker's role asks for it."""
    broker.slaves.acknowledged, broker.slaves.hurry = source.acknowledged, source.hurry
    source.changed = broker.slaves.look


def _vip_port(host: str, bound: socket.socket, opened: contextlib.AsyncExitStack) -> socket.socket | None:
    """RocketMQ's second port (``brokerVIPChannel``), where it is free: slaves ask for tables there."""
    try:
        return opened.enter_context(bind(host, port_of(bound) - 2))
    except CannotRead:
        return None


def _ha_port(bound: socket.socket, args: argparse.Namespace, config: MessageStoreConfig) -> int:
    """The configured one; without it the broker's own and one, or with ``--port 0`` a free one."""
    if config.ha_listen_port != MessageStoreConfig().ha_listen_port:
        return config.ha_listen_port
    return 0 if args.port == 0 else port_of(bound) + 1


def _metrics_server(served: ListeningBroker, args: argparse.Namespace) -> MetricsServer:
    """Raises :class:`UsageError` where the library is missing."""
    try:
        from engine.broker.metrics import MetricsServer
    except ImportError as error:
        raise UsageError(f"--metrics needs the package {error.name}: pip install 'storescope[metrics]'") from error
    return MetricsServer(served.broker, args.host, args.metrics)


def _say_serving(out: Output, served: ListeningBroker, own: str | None, store: str, metrics: str | None) -> None:
    config = served.broker.config
    registered, refused = sorted(served.registration.registered), served.registration.refused
    if out.as_json:
        record = {
            "type": "serving",
            "namesrv": own,
            "broker": served.address,
            "ha": served.broker.ha_address,
            "brokerName": config.broker_name,
            "cluster": config.cluster,
            "store": store,
            "pid": os.getpid(),
            "metrics": metrics,
            "registered": registered,
            "notRegistered": refused,
        }
        say_record(out, record)
    else:
        where = f"name server {own}" if own else registration_words(registered, refused)
        where += f", metrics http://{metrics}/metrics" if metrics else ""
        say_line(out, f"serving: broker {served.address}, {where}, pid {os.getpid()}; Ctrl+C ends it")


def _say_registration(out: Output, server: str, why: str | None) -> None:
    """A name server has taken the broker, or does so no longer."""
    if out.as_json:
        say_record(out, {"type": "registration", "namesrv": server, "registered": why is None, "error": why})
    else:
        say_line(out, f"registered with {server}" if why is None else f"not registered with {server}: {why}")


@contextlib.asynccontextmanager
async def _name_server(
    args: argparse.Namespace, tls: Tls | None, out: Output, told_serving: asyncio.Event, takes: list[Take]
) -> AsyncIterator[str]:
    """A name server of its own; what changes there is said behind the first line."""

    def told(change: Change) -> None:
        if told_serving.is_set() and out.as_json:
            state = {"state": change.word, "brokerName": change.broker, "address": change.address}
            say_record(out, {"type": "broker", **state})

    tap = FrameTap("namesrv", *takes) if takes else None
    async with ListeningNameServer(None, LOOPBACK, args.namesrv_port, told, tls, tap) as server:
        yield server.address
