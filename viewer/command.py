"""The ``view`` command: opens the viewer, or renders a picture of it without a display. Qt is imported when it runs."""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import system
from engine.sentences import sentence
from engine.ssh.address import UPLOAD_HELP
from viewer.shell import system_libraries


def register(commands: Any) -> None:
    """Add ``view`` to the command line."""
    parser = commands.add_parser(
        "view",
        help="Open the window",
        description="Open a store in the window, read-only. Works without a display if it renders a picture.",
        epilog="""Examples:
  storescope view ~/store
  storescope view ~/store --at queue:Orders/0/100
  storescope view ~/broker-a/store ~/broker-b/store
  storescope view ~/store --at findings --screenshot findings.png""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    # Not of ``python -m viewer``: the command line asks before the window opens (engine/cli/uploading.py).
    parser.add_argument("--upload", metavar="ARCHIVE", type=Path, help=UPLOAD_HELP)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the viewer."""
    parser.add_argument(
        "store",
        metavar="STORE",
        nargs="*",
        help="a store, a commitlog folder, or one file of a commit log; each further one opens in a tab",
    )
    parser.add_argument(
        "--at",
        metavar="PLACE",
        help="show this place first: log:8193, queue:Orders/0/42, trace:Orders/O-1042, findings …",
    )
    parser.add_argument("--screenshot", metavar="OUT.png", type=Path, help="save a picture of the window and exit")
    parser.add_argument(
        "--drive", metavar="FILE.py", type=Path, help="run this file's 'async def drive(window)' and exit"
    )
    parser.add_argument("--theme", choices=("light", "dark", "system"), help="colours (default: as set in the window)")
    parser.add_argument("--lang", choices=("en", "zh_CN"), help="language (default: as set in the window)")
    parser.add_argument("--size", metavar="WxH", type=_size, help="size of the window in pixels, for example 1600x1000")
    parser.add_argument(
        "--config", metavar="FILE.conf", help="the broker's configuration file; it gives the file sizes"
    )
    outside = parser.add_mutually_exclusive_group()
    text = "read the log from the folders that the configuration names, even outside the store's folder"
    outside.add_argument("--paths-from-config", action="store_true", help=text)
    text = "ignore all paths in the configuration; use only the folder given on the command line"
    outside.add_argument("--ignore-config-paths", action="store_true", help=text)
    parser.add_argument("--config-dir", metavar="DIR", type=Path, help="keep the window's settings in this folder")
    parser.add_argument(
        "--new-window", action="store_true", help="start a new process even if a window is open already"
    )
    parser.add_argument("--debug", action="store_true", help="print a traceback with an error")
    parser.set_defaults(run=run, tells_unread=True)  # the window says what it could not read


def run(args: argparse.Namespace, _out: object = None) -> int:
    """Start the viewer with these options; gives the exit code."""
    from engine.config import read_properties
    from engine.errors import UsageError

    if args.drive is not None and not args.drive.is_file():
        raise UsageError(sentence("--drive: {drive} is no file", drive=args.drive))
    if args.screenshot is not None:
        _refuse_no_recording(args.at)
    if args.screenshot is None and args.drive is None and not _has_display():
        sys.stderr.write(f"storescope: {system_libraries.without_display()}\n")
        return system_libraries.EXIT_CODE
    if args.config is None and (args.paths_from_config or args.ignore_config_paths):
        raise UsageError(
            sentence("--paths-from-config and --ignore-config-paths: expected --config FILE.conf, found none")
        )
    if args.config is not None and len(args.store) != 1:
        found = str(len(args.store)) if args.store else "none"
        raise UsageError(sentence("--config belongs to one store: expected STORE, found {found}", found=found))
    config = read_properties(args.config)[0] if args.config else None
    if config is not None:
        config = config.without_paths() if args.ignore_config_paths else config
        config = replace(config, paths_from_config=args.paths_from_config)
    try:
        from viewer.shell.app import Start, main
    except ImportError as error:
        words = _missing_package(error) or system_libraries.instead_of_traceback(
            error, picture=args.screenshot is not None
        )
        if words is None:
            raise
        sys.stderr.write(f"storescope: {words}\n")
        return system_libraries.EXIT_CODE
    start = Start(
        store=Path(args.store[0]) if args.store else None,
        further=tuple(Path(store) for store in args.store[1:]),
        at=args.at,
        screenshot=args.screenshot,
        drive=args.drive,
        theme=args.theme,
        language=args.lang,
        size=args.size,
        config_dir=args.config_dir,
        config=config,
        new_window=args.new_window,
    )
    return main(start)


def _missing_package(error: ImportError) -> str | None:
    """Return the line for a package of the window that is not installed, None for another reason."""
    from engine.extras import PACKAGES, install_line

    module = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or module not in {package.module for package in PACKAGES}:
        return None
    return f"the window needs the package {module}: {install_line(module)}"


def _refuse_no_recording(place: str | None) -> None:
    """Raise :class:`CannotRead` where a picture of a recording is wanted that is not there, or is none. A window says
    so itself; nobody looks at it here.
    """
    from engine.errors import CannotRead, cause_of
    from engine.remoting.recording import Recording

    kind, _, file = (place or "").partition(":")
    if kind != "requests" or not file:
        return
    try:
        next(iter(Recording(Path(file))), None)
    except OSError as error:
        raise CannotRead(cause_of(error)) from error


def _has_display() -> bool:
    """Return True if there is a display, or if the caller has chosen where Qt draws."""
    display_variables = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return not system.IS_LINUX or any(os.environ.get(name) for name in display_variables)


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{2,5})[xX×](\d{2,5})", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected WIDTHxHEIGHT in pixels, found '{text}'")
    return int(match[1]), int(match[2])


def main() -> int:
    """``python -m viewer``: the same as ``storescope view``, also where the program is not installed."""
    from engine.errors import StoreError, UsageError

    parser = argparse.ArgumentParser(prog="python -m viewer", description="Open a store in the viewer, read-only.")
    add_arguments(parser)
    try:
        return run(parser.parse_args())
    except (UsageError, StoreError, OSError) as error:
        sys.stderr.write(f"storescope: {error}\n")
        return 2 if isinstance(error, UsageError) else 3
