"""Options that several commands share, and how a number is read from the command line."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from engine.config import MessageStoreConfig, read_properties
from engine.errors import UsageError
from engine.inspection.lookup import parse_number
from engine.inspection.snapshot import StoreSnapshot, open_store

if TYPE_CHECKING:
    from engine.rules.masking import Masking


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, raised as :class:`UsageError`."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see '{self.prog} --help')")


def number(text: str) -> int:
    """An offset or count: decimal, ``0x…`` or ``1_000``."""
    value = parse_number(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"expected a number (decimal, 0x… or 1_000) within 64 bits, found '{text}'")
    return value


def count(text: str) -> int:
    """A number that is at least 1."""
    value = number(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, found '{text}'")
    return value


def common(store: bool = True) -> argparse.ArgumentParser:
    """The options of every command."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--json", action="store_true", dest="as_json", help="JSON lines, one record a line")
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    parser.add_argument("--quiet", action="store_true", help="no progress, no remarks")
    parser.add_argument("--debug", action="store_true", help="a traceback with an error")
    if store:
        parser.add_argument("--config", metavar="FILE.conf", help="the broker's configuration: settles file sizes")
    return parser


def masked(parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the options ``--mask`` and ``--keep-properties``; :func:`masking` puts them together."""
    from engine.rules.masking import PARTS, Masking

    parser.add_argument(
        "--mask", type=Masking.of, metavar="PARTS", help=f"hide {', '.join(PARTS)} (any of them, with commas)"
    )
    parser.add_argument(
        "--keep-properties", metavar="NAMES", help="users' properties that '--mask properties' leaves (with commas)"
    )


def masking(args: argparse.Namespace) -> Masking | None:
    """What the command line asks to mask; None without ``--mask``."""
    mask: Masking | None = getattr(args, "mask", None)
    kept = getattr(args, "keep_properties", None)
    if not kept:
        return mask
    from engine.rules.masking import Masking

    return (mask or Masking()).keeping(name.strip() for name in kept.split(",") if name.strip())


def read_config(args: argparse.Namespace) -> MessageStoreConfig | None:
    """The configuration given by ``--config``, or None; unknown keys are said on standard error by the caller."""
    if not getattr(args, "config", None):
        return None
    config, _ = read_properties(args.config)
    return config


def open_given(args: argparse.Namespace) -> StoreSnapshot:
    """The store that the command names, opened read-only."""
    return open_store(args.store, read_config(args))


def host_and_port(text: str) -> tuple[str, int]:
    """An address as arguments give it. Raises :class:`UsageError`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise UsageError(f"expected HOST:PORT, found {text!r}")
    return host.strip("[]"), int(port)
