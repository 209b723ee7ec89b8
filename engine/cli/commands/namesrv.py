"""``namesrv``: a name server on the loopback, for brokers and clients of RocketMQ."""

from __future__ import annotations

import argparse
import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.cli.options import add_command, add_path_choice, check_path_choice, common_options
from engine.cli.output import Output
from engine.cli.serving import (
    add_address,
    allow_many_connections,
    ended_by_signals,
    is_loopback,
    print_line,
    print_record,
    read_tls_option,
)
from engine.files.store_folders import OutsidePath
from engine.namesrv.config import PORT, NameServerConfig, read_config
from engine.namesrv.routes import Change
from engine.namesrv.server import ListeningNameServer
from engine.remoting.tls import Tls


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "namesrv",
        "namesrv --port 9876",
        parents=[common_options(store=False)],
    )
    add_address(parser, PORT)
    parser.add_argument("--config", metavar="namesrv.conf", help="the name server's configuration file")
    add_path_choice(
        parser,
        "use the file that kvConfigPath names, even outside the configuration's folder",
        "ignore kvConfigPath; keep the key-value table in memory",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    config, unknown = read_config(args.config) if args.config else (NameServerConfig(), [])
    config = replace(config, kv_config_path=_kv_config_path(args, config))
    if unknown:
        out.say(f"{args.config}: without effect here: {', '.join(unknown)}")
    if not is_loopback(args.host):
        out.say(f"listening on {args.host}: everyone who can reach it can register brokers and change routes")
    allow_many_connections()
    asyncio.run(_serve(args, config, read_tls_option(args, out), out))
    return 0


def _kv_config_path(args: argparse.Namespace, config: NameServerConfig) -> str:
    """The file of the key-value table. Raises :class:`OutsidePath` where the configuration names one outside of its own
    folder, unless an option says that it counts: it may be that of a name server that runs on this machine.
    """
    check_path_choice(args)
    path = config.kv_config_path
    if not path or args.ignore_config_paths:
        return ""
    folder = Path(args.config).resolve().parent
    if not args.paths_from_config and not Path(path).resolve().is_relative_to(folder):
        raise OutsidePath(f"kvConfigPath={path} is not in {folder}, the folder of this configuration", file=args.config)
    return path


async def _serve(args: argparse.Namespace, config: NameServerConfig, tls: Tls | None, out: Output) -> None:
    """Until Ctrl+C or TERM."""

    def on_change(change: Change) -> None:
        if out.as_json:
            print_record(
                out, {"type": "broker", "state": change.word, "brokerName": change.broker, "address": change.address}
            )
        else:
            print_line(out, f"{change.broker} at {change.address}: {change.word}")

    with ended_by_signals() as ended:
        async with ListeningNameServer(config, args.host, args.port, on_change, tls) as server:
            if out.as_json:
                print_record(out, {"type": "serving", "namesrv": server.address, "pid": os.getpid()})
            else:
                print_line(out, f"serving: name server {server.address}, pid {os.getpid()}; Ctrl+C ends it")
            await ended.wait()
