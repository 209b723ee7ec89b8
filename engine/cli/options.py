"""Options that several commands share, and how a number is read from the command line."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from engine.cli.command_table import SUMMARIES
from engine.config import MessageStoreConfig, read_properties
from engine.errors import StoreError, UsageError
from engine.releases import NAMES, Release, parse
from engine.sentences import sentence
from engine.ssh.address import UPLOAD_HELP, refuse_ssh_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from engine.cli.output import Output
    from engine.inspection.snapshot import StoreSnapshot
    from engine.patching.patches import Patch
    from engine.rules.masking import Masking

COMMON_OPTIONS = "common options"
"""Title of the group of options that every command has."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, raised as :class:`UsageError`."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(sentence("{message} (see '{prog} --help')", message=message, prog=self.prog))


def add_command(commands: Any, name: str, *examples: str, parents: Sequence[Any] = ()) -> Parser:
    """Add the command ``name`` of :mod:`engine.cli.command_table` to ``commands``; its help ends with the ``examples``,
    which are command lines without ``storescope``.
    """
    return add_job(commands, name, SUMMARIES[name], *examples, parents=parents)


def add_job(commands: Any, name: str, summary: str, *examples: str, parents: Sequence[Any] = ()) -> Parser:
    """Add ``name`` to ``commands`` as :func:`add_command` does, with a ``summary`` that begins its help."""
    title = "Example" if len(examples) == 1 else "Examples"
    parser: Parser = commands.add_parser(
        name,
        parents=parents,
        help=summary,
        description=f"{summary}.",
        epilog="\n".join([f"{title}:", *(f"  storescope {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_store(parser: argparse.ArgumentParser, name: str = "STORE", *, can_be_patched: bool = False) -> None:
    """Add the argument that names the store to read; for a command that only reads, ``--patched`` as well."""
    parser.add_argument("store", metavar=name, help="the store: the folder that contains commitlog/, or one above it")
    if can_be_patched:
        text = f"read {name} as the patches in this file would leave it (written by repair --save); nothing is changed"
        parser.add_argument("--patched", metavar="FILE", help=text)
        parser.add_argument("--upload", metavar="ARCHIVE", type=Path, help=UPLOAD_HELP)


def add_queue(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a queue."""
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("queue", metavar="QUEUE", type=number, help="queue id, from 0")


def number(text: str) -> int:
    """An offset or count: decimal, ``0x…`` or ``1_000``."""
    from engine.inspection.lookup import parse_number

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


def moment(text: str) -> int:
    """A time as mqadmin takes it: ms since the epoch, or ``yyyy-MM-dd#HH:mm:ss:SSS`` in local time."""
    try:
        return int(datetime.strptime(text, "%Y-%m-%d#%H:%M:%S:%f").astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return number(text)


def common_options(store: bool = True) -> argparse.ArgumentParser:
    """The options of every command."""
    parser = argparse.ArgumentParser(add_help=False)
    common = parser.add_argument_group(COMMON_OPTIONS)
    common.add_argument("--json", action="store_true", dest="as_json", help="print JSON, one record per line")
    common.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    common.add_argument("--quiet", action="store_true", help="print no progress and no remarks")
    common.add_argument("--debug", action="store_true", help="print a traceback with an error")
    if store:
        add_config(common)
    return parser


def add_config(
    parser: argparse._ActionsContainer, words: str = "the broker's configuration file; it gives the file sizes"
) -> None:
    """``--config``, and what becomes of the paths in that file."""
    parser.add_argument("--config", metavar="FILE.conf", help=words)
    add_path_choice(
        parser,
        "read the log from the folders that the configuration names, even outside the store's folder",
        "ignore all paths in the configuration; use only the folder given on the command line",
    )


def add_path_choice(parser: argparse._ActionsContainer, follow: str, ignore: str) -> None:
    """``--paths-from-config`` and ``--ignore-config-paths``, with their help.

    :func:`check_path_choice` refuses both together: argparse lists the options of an exclusive group that comes from a
    parent parser apart from the group that they were added to.
    """
    parser.add_argument("--paths-from-config", action="store_true", help=follow)
    parser.add_argument("--ignore-config-paths", action="store_true", help=ignore)


def add_masking(parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the options ``--mask`` and ``--keep-properties``; :func:`masking` puts them together."""
    from engine.rules.masking import PARTS, Masking

    parser.add_argument(
        "--mask", type=Masking.of, metavar="PARTS", help=f"hide any of: {', '.join(PARTS)} (separated by commas)"
    )
    parser.add_argument(
        "--keep-properties",
        metavar="NAMES",
        help="user properties that '--mask properties' does not hide (separated by commas)",
    )


def masking(args: argparse.Namespace) -> Masking | None:
    """Return the masking that the command line asks for; None without ``--mask``."""
    mask: Masking | None = getattr(args, "mask", None)
    kept_names = getattr(args, "keep_properties", None)
    if not kept_names:
        return mask
    from engine.rules.masking import Masking

    return (mask or Masking()).except_for(name.strip() for name in kept_names.split(",") if name.strip())


def read_config(args: argparse.Namespace) -> MessageStoreConfig | None:
    """The configuration given by ``--config``, or None; the caller reports unknown keys on standard error."""
    return read_named_config(args)[0]


def read_named_config(args: argparse.Namespace) -> tuple[MessageStoreConfig | None, list[str]]:
    """The configuration given by ``--config`` with its paths as the arguments want them, or None, and its unknown keys.

    Raises :class:`CannotRead`, :class:`UsageError`.
    """
    if not getattr(args, "config", None):
        for name in ("paths_from_config", "ignore_config_paths"):
            if getattr(args, name, False):
                raise UsageError(
                    sentence("--{replace}: expected --config FILE.conf, found none", replace=name.replace("_", "-"))
                )
        return None, []
    config, unknown = read_properties(args.config)
    return apply_path_choice(args, config), unknown


def check_path_choice(args: argparse.Namespace) -> None:
    """Raise :class:`UsageError` for ``--paths-from-config`` together with ``--ignore-config-paths``."""
    if args.paths_from_config and args.ignore_config_paths:
        raise UsageError(sentence("--ignore-config-paths: not allowed with --paths-from-config"))


def apply_path_choice(args: argparse.Namespace, config: MessageStoreConfig) -> MessageStoreConfig:
    """``config`` with its paths as ``--paths-from-config`` or ``--ignore-config-paths`` wants them.

    Raises :class:`UsageError` for both.
    """
    check_path_choice(args)
    if args.ignore_config_paths:
        return config.without_paths()
    return replace(config, paths_from_config=args.paths_from_config)


def open_named_store(args: argparse.Namespace, out: Output) -> StoreSnapshot:
    """The store that the command names, opened read-only. Where the configuration has paths of its own, standard error
    tells which folders are read.
    """
    from engine.inspection.snapshot import open_store

    store = open_store(args.store, read_config(args), patches_of(args))
    store.release = getattr(args, "release", None)
    out.has_bodies = store.capsule is None
    _report_folders(store, args, out)
    return store


def report_read_side(store: StoreSnapshot, out: Output) -> None:
    """Say on standard error which queues are read of a store that has queues in files and in a RocksDB."""
    from engine.inspection.queue_sides import read_side_words

    words = read_side_words(store)
    if words:
        out.say(words)


def patches_of(args: argparse.Namespace) -> Iterable[Patch]:
    """Return the patches that ``--patched`` names. Raises :class:`engine.patching.patches.BadPatch`."""
    name = getattr(args, "patched", None)
    if name is None:
        return ()
    from engine.patching.patches import loads

    try:
        return loads(Path(name).read_bytes())
    except OSError as error:
        raise StoreError(error.strerror or str(error), file=name) from error


def _report_folders(store: StoreSnapshot, args: argparse.Namespace, out: Output) -> None:
    for words in store.folders.words if store.folders is not None else ():
        out.say(f"{args.config}: {words}")


def open_to_write(args: argparse.Namespace, out: Output) -> StoreSnapshot:
    """:func:`open_named_store` for a command that writes. Raises :class:`engine.files.store_folders.OutsidePath` where
    the configuration leads out of the store, :class:`engine.capsule.recognition.CapsuleIsReadOnly` for a capsule.
    """
    from engine.capsule.recognition import refuse_capsule

    refuse_capsule(args.store)
    refuse_ssh_address(args.store)
    return open_whole(args, out)


def open_whole(args: argparse.Namespace, out: Output) -> StoreSnapshot:
    """:func:`open_named_store` for a command that needs all of a store in its own folder. Raises
    :class:`engine.files.store_folders.OutsidePath` where the configuration leads out of it.
    """
    from engine.files.store_folders import settle_folders
    from engine.inspection.snapshot import open_store

    store = open_store(args.store, read_config(args))
    store.release = getattr(args, "release", None)
    try:
        settle_folders(store.path, store.config).refuse_outside()
    except BaseException:
        store.close()
        raise
    _report_folders(store, args, out)
    return store


def add_release(parser: argparse.ArgumentParser, text: str) -> None:
    """Give ``parser`` the option ``--release``, with the older name ``--like``; None: the release of the store."""
    parser.add_argument("--release", "--like", choices=NAMES, dest="release", help=text)


def stated_release(args: argparse.Namespace, store: StoreSnapshot) -> Release:
    """The release of ``--release``; without it the one that seems to have written ``store``."""
    if args.release is not None:
        return parse(args.release)
    from engine.inspection.written_release import require_release

    return require_release(store)


def host_and_port(text: str) -> tuple[str, int]:
    """An address as arguments give it. Raises :class:`UsageError`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise UsageError(sentence("expected HOST:PORT, found {text}", text=repr(text)))
    return host.strip("[]"), int(port)
