"""Options of the commands that are clients of a running cluster: TLS, and the account that signs the requests.

Both name files, so that no secret is on a command line, in a shell's history or in a list of processes.
"""

from __future__ import annotations

import argparse
import ssl
from collections.abc import Iterable
from typing import NamedTuple

from engine.cli.output import Output
from engine.client.instance import ClientInstance
from engine.remoting.client_account import ClientAccount, read_client_account
from engine.remoting.tls import read_client_tls


class Credentials(NamedTuple):
    """The connection settings of a command: without TLS and signatures where both are None."""

    account: ClientAccount | None
    tls: ssl.SSLContext | None


def add_credentials(parser: argparse.ArgumentParser) -> None:
    """Add ``--tls`` and ``--account``."""
    text = "connect with TLS, as RocketMQ's settings in this file say (tls.client.…; it may be empty)"
    parser.add_argument("--tls", metavar="tls.properties", help=text)
    text = (
        "sign all requests with the accessKey, secretKey and securityToken in this file, as mqadmin with its tools.yml"
    )
    parser.add_argument("--account", metavar="tools.yml", help=text)


def read_credentials(args: argparse.Namespace, out: Output) -> Credentials:
    """Read the files of both options; keys that have no effect are reported. Raises :class:`CannotRead` and
    :class:`UsageError`.
    """
    account = None if args.account is None else read_client_account(args.account)
    if args.tls is None:
        return Credentials(account, None)
    tls, unknown = read_client_tls(args.tls)
    if unknown:
        out.say(f"{args.tls}: without effect here: {', '.join(unknown)}")
    return Credentials(account, tls)


def new_client(args: argparse.Namespace, out: Output, name_servers: Iterable[str]) -> ClientInstance:
    """Return a client of a cluster that uses both options. Raises as :func:`read_credentials`."""
    credentials = read_credentials(args, out)
    return ClientInstance(";".join(name_servers), account=credentials.account, tls=credentials.tls)
