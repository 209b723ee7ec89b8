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
from engine.broker.tiered_store import open_served_store
from engine.cli.backup import Backup, add_opening, backed_up, refuse_empty, remove_earlier_backups
from engine.cli.options import add_command, add_release, apply_path_choice, common_options, number, read_named_config
from engine.cli.output import Output
from engine.cli.registering import (
    WILDCARD_ADDRESSES,
    add_register,
    ask_name_servers,
    ask_to_register,
    effective_configs,
    name_servers_of,
    registration_words,
    report_left_out,
)
from engine.cli.serving import (
    add_address,
    address_list,
    allow_many_connections,
    ended_by_signals,
    is_loopback,
    print_line,
    print_record,
    read_tls_option,
    report_troubles,
    report_warnings,
)
from engine.cli.serving import port as a_port
from engine.cli.slave_role import ask_masters_release, follow_until, with_role
from engine.cli.writing import WriteTarget, find_target, report_compilation
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, UsageError
from engine.namesrv.config import PORT as NAMESRV_PORT
from engine.namesrv.routes import Change
from engine.namesrv.server import LOOPBACK, ListeningNameServer
from engine.releases import Release, rules_of
from engine.remoting.connection import bind, port_of
from engine.remoting.recording import MAX_RECORDING_BYTES, Recorder, RequestLog
from engine.remoting.tap import FrameTap, OnEvent
from engine.remoting.tls import Tls
from engine.replication.source import HaServer
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.broker.metrics import MetricsServer

HA_PORT = "the HA port (the broker's own and one, unless haListenPort is set)"


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "serve",
        "serve /tmp/new",
        "serve ~/store-copy --port 0 --namesrv-port 0 --log-requests requests.jsonl",
        parents=[common_options()],
    )
    parser.add_argument("store", metavar="STORE", help="a store, or a new or empty folder")
    add_address(parser, PORT)
    parser.add_argument(
        "--namesrv-port",
        type=a_port,
        default=NAMESRV_PORT,
        metavar="PORT",
        help="the name server's port; 0 takes a free one (default: %(default)s)",
    )
    parser.add_argument(
        "--namesrv", type=address_list, metavar="ADDR[;ADDR]", help="register at these name servers; do not start one"
    )
    parser.add_argument(
        "--acl",
        metavar="plain_acl.yml",
        help="accept only signed requests, with the accounts and permissions in this file",
    )
    parser.add_argument(
        "--without-acl", action="store_true", help="accept all requests without accounts, even from other machines"
    )
    parser.add_argument(
        "--metrics",
        type=a_port,
        metavar="PORT",
        help="serve metrics for Prometheus on this port, with RocketMQ's names; 0 takes a free one",
    )
    parser.add_argument(
        "--log-requests",
        type=Path,
        metavar="FILE",
        help="append each request and its response to this file, one JSON line each",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="record complete requests and responses into this new file, for the window and for 'replay'",
    )
    parser.add_argument(
        "--record-limit",
        type=number,
        default=MAX_RECORDING_BYTES,
        metavar="BYTES",
        help="largest size of the recording, in bytes (default: %(default)s)",
    )
    add_release(
        parser,
        "behave as this RocketMQ release (default: the one that probably wrote the store; new store: the newest)",
    )
    add_register(parser)
    add_opening(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with report_warnings(out.say):
        return _run(args, out)


def _run(args: argparse.Namespace, out: Output) -> int:
    report_compilation(out)
    broker, given_settings, unknown = read_config(args.config) if args.config else (BrokerConfig(), None, [])
    given_settings = (
        apply_path_choice(args, given_settings) if given_settings is not None else read_named_config(args)[0]
    )
    broker, given_settings, left_out = effective_configs(args, broker, given_settings)
    report_left_out(out, args.config, unknown, left_out)
    tls = read_tls_option(args, out)
    broker = with_role(broker, given_settings.broker_role if given_settings else "", str(args.config))
    broker = _check_listening(args, broker, out)
    target = find_target(args.store, given_settings, args.release)
    address = f"{broker.broker_ip}:{broker.listen_port if args.port is None else args.port}"
    routes_by_server = asyncio.run(ask_name_servers(args, broker, address, tls))
    target = _as_master(args, target, broker, routes_by_server, out)
    access = _access(args, broker, target.release, out)
    refuse_empty(args, target.empty_log)
    if not ask_to_register(args, broker, given_settings, address, routes_by_server):
        return 2
    changes = target.recovery is not None and not target.recovery.changes_nothing
    if changes:
        for line in target.planned():
            out.say(line)
    allow_many_connections()
    loses = changes and target.recovery is not None and not target.recovery.loses_nothing
    with backed_up(args, target.path, target.config, enabled=loses) as backup:
        asyncio.run(_serve(args, _Rules(broker, tls, access), target, backup, out))
    backup.say(out)
    return 0


def _as_master(
    args: argparse.Namespace,
    target: WriteTarget,
    broker: BrokerConfig,
    routes_by_server: dict[str, Routes | str],
    out: Output,
) -> WriteTarget:
    """Return the target with its master's release, if it is the new store of a slave."""
    if target.recovery is not None or args.release is not None or target.config.broker_role != "SLAVE":
        return target
    routes = [route for route in routes_by_server.values() if not isinstance(route, str)]
    release = asyncio.run(ask_masters_release(broker, target.config.ha_master_address, routes))
    if release is None:
        out.say(f"the master does not report its release: the new store uses release {target.release}")
        return target
    return replace(target, release=release)


def _check_listening(args: argparse.Namespace, broker: BrokerConfig, out: Output) -> BrokerConfig:
    """Print what other machines may do if the broker listens beyond this machine.

    Raises :class:`UsageError` if requests would be unchecked without ``--without-acl``, or if clients would get an
    address that they cannot use.
    """
    if is_loopback(args.host):
        return broker
    if args.host in WILDCARD_ADDRESSES and broker.broker_ip == BrokerConfig().broker_ip:
        raise UsageError(
            sentence(
                "--listen {host}: clients cannot use this address; give an address of this machine, or brokerIP1 "
                "in the file of --config (with --register if that is not an address of this machine)",
                host=args.host,
            )
        )
    if args.acl is None and not args.without_acl:
        raise UsageError(
            sentence(
                "--listen {host}: everyone who can reach it can send, consume, read every message and delete "
                "topics; give accounts with --acl plain_acl.yml, or allow this with --without-acl",
                host=args.host,
            )
        )
    access_words = (
        f"clients that sign with an account of {args.acl} may do what the account allows"
        if args.acl
        else "everyone who can reach it can send, consume, read every message and delete topics"
    )
    out.say(f"listening on {args.host}: {access_words}; everyone who can reach the HA port can copy the log")
    if args.tls is None:
        words = "nothing is encrypted unless the client begins with TLS, and then it cannot tell who answers"
        out.say(f"listening on {args.host}: {words}")
    return broker if args.host in WILDCARD_ADDRESSES else replace(broker, broker_ip=args.host)


def _access(args: argparse.Namespace, broker: BrokerConfig, release: Release, out: Output) -> Access | None:
    """Return the accounts of ``--acl``.

    Raises :class:`UsageError`, also if the configuration requires accounts and the command names none.
    """
    if args.acl is None:
        for key, is_set in (("aclEnable", broker.acl_enable), ("authenticationEnabled", broker.authentication)):
            if is_set:
                raise UsageError(
                    sentence("{key}=true: name the accounts with --acl plain_acl.yml", key=key), file=args.config
                )
        return None
    access = Access(Path(args.acl), release, broker.cluster)
    if access.acl.white_listed and rules_of(release).major >= 5:
        out.say(f"{args.acl}: globalWhiteRemoteAddresses has no effect with --release {release}, as in RocketMQ 5")
    return access


class _Rules(NamedTuple):
    """Options of serving: the configuration, TLS, the accounts; None: no TLS, no check."""

    config: BrokerConfig
    tls: Tls | None
    access: Access | None


async def _serve(args: argparse.Namespace, rules: _Rules, target: WriteTarget, backup: Backup, out: Output) -> None:
    """Serve until Ctrl+C or TERM."""
    config, tls, access = rules
    is_announced = asyncio.Event()
    with ended_by_signals() as ended:
        async with contextlib.AsyncExitStack() as opened:
            named = name_servers_of(args, config)
            takes = _open_recorders(args, opened)
            rpc = RpcLatency() if args.metrics is not None else None
            observers = [*takes, *([rpc.take] if rpc is not None else [])]
            tap = FrameTap("broker", *observers) if observers else None
            own_name_server = (
                None if named else await opened.enter_async_context(_name_server(args, tls, out, is_announced, takes))
            )
            port = config.listen_port if args.port is None else args.port
            bound = opened.enter_context(bind(args.host, port, "the broker's port"))
            store = await asyncio.to_thread(
                open_served_store,
                target.path,
                target.config,
                disk=backup.store_disk,
                release=target.release,
                store_host=f"{config.broker_ip}:{port_of(bound)}",
                empty_log=args.empty_log,
            )
            opened.push_async_callback(asyncio.to_thread, store.close)
            backup.settled = True
            remove_earlier_backups(backup, out)
            ha = opened.enter_context(bind(args.host, _ha_port(bound, args, target.config), HA_PORT))
            source = await opened.enter_async_context(HaServer(store, ha))
            served = await opened.enter_async_context(
                ListeningBroker(
                    store,
                    config,
                    name_servers=named or [own_name_server or ""],
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
            _print_serving(out, served, own_name_server, str(args.store), figures)
            if named:
                served.registration.on_change = partial(_print_registration, out)
            trouble_reports = asyncio.ensure_future(report_troubles(store, out.say))
            opened.callback(trouble_reports.cancel)
            is_announced.set()
            if served.broker.is_slave:
                await follow_until(ended, served.broker, out.say)
            else:
                await ended.wait()


def _open_recorders(
    args: argparse.Namespace, opened: contextlib.ExitStack | contextlib.AsyncExitStack
) -> list[OnEvent]:
    """Open the recorders of requests that the arguments ask for; they are closed after everything else."""
    recorders: list[RequestLog | Recorder] = []
    if args.log_requests:
        recorders.append(RequestLog(args.log_requests))
    if args.record:
        try:
            recorders.append(Recorder(args.record, args.record_limit))
        except FileExistsError:
            raise UsageError(
                sentence("{record} exists already: a recording needs a new file", record=args.record)
            ) from None
    for recorder in recorders:
        opened.callback(recorder.close)
    return [recorder.take for recorder in recorders]


def follow_slaves(broker: Broker, source: HaServer) -> None:
    """Let puts wait for the slaves of ``source`` if the broker's role requires it."""
    broker.slaves.acknowledged, broker.slaves.hurry = source.acknowledged, source.hurry
    source.changed = broker.slaves.answer_covered


def _vip_port(host: str, bound: socket.socket, opened: contextlib.AsyncExitStack) -> socket.socket | None:
    """Bind RocketMQ's second port (``brokerVIPChannel``), where slaves read tables. None if it is not free."""
    try:
        return opened.enter_context(bind(host, port_of(bound) - 2))
    except CannotRead:
        return None


def _ha_port(bound: socket.socket, args: argparse.Namespace, config: MessageStoreConfig) -> int:
    """Return the configured HA port, else the broker's port plus one, or 0 (any) with ``--port 0``."""
    if config.ha_listen_port != MessageStoreConfig().ha_listen_port:
        return config.ha_listen_port
    return 0 if args.port == 0 else port_of(bound) + 1


def _metrics_server(served: ListeningBroker, args: argparse.Namespace) -> MetricsServer:
    """Return the metrics server. Raises :class:`UsageError` if its library is missing."""
    try:
        from engine.broker.metrics import MetricsServer
    except ImportError as error:
        raise UsageError(
            sentence("--metrics needs the package {name}: pip install 'storescope[metrics]'", name=error.name)
        ) from error
    return MetricsServer(served.broker, args.host, args.metrics)


def _print_serving(
    out: Output, served: ListeningBroker, own_name_server: str | None, store: str, metrics: str | None
) -> None:
    config = served.broker.config
    registered, refused = sorted(served.registration.registered), served.registration.refused
    if out.as_json:
        record = {
            "type": "serving",
            "namesrv": own_name_server,
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
        print_record(out, record)
    else:
        where = f"name server {own_name_server}" if own_name_server else registration_words(registered, refused)
        where += f", metrics http://{metrics}/metrics" if metrics else ""
        print_line(out, f"serving: broker {served.address}, {where}, pid {os.getpid()}; Ctrl+C ends it")


def _print_registration(out: Output, server: str, why: str | None) -> None:
    """Print that a name server has registered the broker, or no longer has."""
    if out.as_json:
        print_record(out, {"type": "registration", "namesrv": server, "registered": why is None, "error": why})
    else:
        print_line(out, f"registered with {server}" if why is None else f"not registered with {server}: {why}")


@contextlib.asynccontextmanager
async def _name_server(
    args: argparse.Namespace, tls: Tls | None, out: Output, on_serving: asyncio.Event, takes: list[OnEvent]
) -> AsyncIterator[str]:
    """Run a name server in this process; its changes are printed after the first line."""

    def on_change(change: Change) -> None:
        if on_serving.is_set() and out.as_json:
            state = {"state": change.word, "brokerName": change.broker, "address": change.address}
            print_record(out, {"type": "broker", **state})

    tap = FrameTap("namesrv", *takes) if takes else None
    async with ListeningNameServer(None, LOOPBACK, args.namesrv_port, on_change, tls, tap) as server:
        yield server.address
