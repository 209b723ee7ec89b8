"""Keep ``serve`` from reaching beyond this machine unasked: keys that lead elsewhere, and registration.

A broker's file names the name servers of production, its master and its address. A user who serves a copy of that store
does not want to replace the production broker. So these keys count only with ``--register``, after a question.
"""

from __future__ import annotations

import argparse
import ipaddress
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.broker.config import BrokerConfig
from engine.broker.registration import RouteInUse, Routes, ask_routes_at, refuse_held
from engine.cli.backup import ask_consent
from engine.cli.output import Output
from engine.cli.serving import is_loopback
from engine.config import MessageStoreConfig
from engine.errors import UsageError, cause_of
from engine.remoting.tls import Tls
from engine.sentences import sentence

WILDCARD_ADDRESSES = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  compared, not bound
"""Addresses that mean every address of a machine."""


class EffectiveConfigs(NamedTuple):
    """Both halves of a configuration with only those keys that count; ``left_out`` are the others."""

    broker: BrokerConfig
    store: MessageStoreConfig | None
    left_out: tuple[str, ...]


def add_register(parser: argparse.ArgumentParser) -> None:
    """The options ``--register`` and ``--yes``."""
    text = (
        "register at the name servers in the --config file, after a question; its namesrvAddr, brokerIP1, "
        "brokerRole=SLAVE and haMasterAddress count only with this option"
    )
    parser.add_argument("--register", action="store_true", help=text)
    parser.add_argument("--yes", action="store_true", help="do not ask before registering")


def effective_configs(
    args: argparse.Namespace, broker: BrokerConfig, store: MessageStoreConfig | None
) -> EffectiveConfigs:
    """Return the parts of the configuration that count: everything with ``--register``, else what does not lead away
    from this machine.

    The role of a slave counts with ``--namesrv``, too: that name server names its master.
    """
    if args.register:
        if not args.config:
            raise UsageError(sentence("--register: expected --config FILE.conf, found none"))
        return EffectiveConfigs(broker, store, ())
    left_out = []
    if broker.namesrv_addr:
        left_out.append("namesrvAddr")
        broker = replace(broker, namesrv_addr="")
    if not is_loopback(broker.broker_ip) and not (
        args.host in WILDCARD_ADDRESSES and _is_own_address(broker.broker_ip)
    ):
        left_out.append("brokerIP1")
        broker = replace(broker, broker_ip=BrokerConfig().broker_ip)
    if store is not None and store.ha_master_address:
        left_out.append("haMasterAddress")
        store = replace(store, ha_master_address="")
    if store is not None and store.broker_role == "SLAVE" and not args.namesrv:
        left_out.append("brokerRole=SLAVE")
        store = replace(store, broker_role="ASYNC_MASTER")
    return EffectiveConfigs(broker, store, tuple(left_out))


def _is_own_address(ip: str) -> bool:
    """Return True if the address is one of this machine."""
    try:
        family = socket.AF_INET6 if isinstance(ipaddress.ip_address(ip), ipaddress.IPv6Address) else socket.AF_INET
        with socket.socket(family) as probe:
            probe.bind((ip, 0))
    except (OSError, ValueError):
        return False
    return True


def name_servers_of(args: argparse.Namespace, broker: BrokerConfig) -> list[str]:
    """Return the name servers at which the broker registers: those of ``--namesrv``, else of its configuration."""
    return args.namesrv or [address.strip() for address in broker.namesrv_addr.split(";") if address.strip()]


async def ask_name_servers(
    args: argparse.Namespace, broker: BrokerConfig, address: str, tls: Tls | None
) -> dict[str, Routes | str]:
    """Return the routes of each name server, or the reason why it gives none; nothing is registered.

    Raises :class:`UsageError` if a name server has another address for this broker; the message has both addresses.
    """
    routes_by_server: dict[str, Routes | str] = {}
    for server in name_servers_of(args, broker):
        try:
            routes = await ask_routes_at(server, tls.asking if tls is not None else None)
            refuse_held(routes, broker.broker_name, broker.broker_id, address)
        except RouteInUse as error:
            raise UsageError(
                sentence(
                    "nothing was changed: name server {server}: {error}; give the broker another brokerName, or "
                    "do not register it at that name server",
                    server=server,
                    error=error,
                )
            ) from None
        except (OSError, TimeoutError, ValueError) as error:
            routes_by_server[server] = cause_of(error, type(error).__name__)
        else:
            routes_by_server[server] = routes
    return routes_by_server


def ask_to_register(
    args: argparse.Namespace,
    broker: BrokerConfig,
    store: MessageStoreConfig | None,
    address: str,
    routes_by_server: dict[str, Routes | str],
) -> bool:
    """Return True without ``--register``, or if the user agrees to it. Raises as :func:`ask_consent`."""
    if not args.register:
        return True
    return ask_consent(
        args,
        _reach_words(broker, store, address, routes_by_server),
        "Register there?",
        empty_log=None,
        what_it_does="this registers a broker beyond this process",
    )


def _reach_words(
    broker: BrokerConfig, store: MessageStoreConfig | None, address: str, routes_by_server: dict[str, Routes | str]
) -> Iterator[str]:
    yield f"{broker.broker_name} (brokerId {broker.broker_id}, cluster {broker.cluster}) will be at {address}."
    for server, routes in routes_by_server.items():
        if isinstance(routes, str):
            yield f"  name server {server} gives no routes: {routes}"
            continue
        names = "; ".join(_addresses_text(name, routes[name]) for name in sorted(routes)) or "no broker"
        yield f"  name server {server} knows {names}; clients that ask it may be sent to this store"
    if store is not None and store.broker_role == "SLAVE":
        master = store.ha_master_address or "the master that the name servers name"
        yield f"  brokerRole=SLAVE: the log of {master} is copied into this store"


def _addresses_text(name: str, addresses: dict[int, str]) -> str:
    return f"{name} at {', '.join(f'{addresses[broker_id]} (brokerId {broker_id})' for broker_id in sorted(addresses))}"


def report_left_out(out: Output, file: str, unknown: Sequence[str], left_out: Sequence[str]) -> None:
    """Report the keys of ``file`` that have no effect."""
    names = [*unknown, *left_out]
    if names:
        word = f" ({', '.join(left_out)}: only with --register)" if left_out else ""
        out.say(f"{file}: without effect here: {', '.join(names)}{word}")


def registration_words(registered: Sequence[str], refused: dict[str, str]) -> str:
    """Describe at which name servers the broker is registered, and at which not yet."""
    words = [f"registered with {';'.join(registered)}"] if registered else []
    words += [f"not yet registered with {server}: {why}" for server, why in refused.items()]
    return ", ".join(words)
