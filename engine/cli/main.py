"""Root of the ``storescope`` command: options, exit codes, errors in one line, quiet ends.

Exit codes: 0 fine; 1 findings, or "not found" for a question with one answer; 2 wrong usage; 3 the store cannot be
read or written at all, or something in it could not be read; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

try:
    from engine import __version__
    from engine.cli.command_table import COMMANDS, MODULES, SUMMARIES
except KeyboardInterrupt:  # Ctrl+C before the command begins; the exit code is INTERRUPTED
    raise SystemExit(130) from None

# Every other module is imported where it is needed: `--version`, the first page and `--help` load none of a store.
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from importlib.metadata import EntryPoint

    from engine.cli.options import Parser
    from engine.cli.output import Output
    from engine.mapped.reading import Gathered

    Run = Callable[..., int]

MAX_UNREAD_LINES = 20
"""Unread files that are named for people; ``--json`` has a record for each."""
OK, FINDINGS, USAGE, CANNOT, INTERRUPTED = 0, 1, 2, 3, 130

FIRST_PAGE = """usage: storescope COMMAND STORE

The five commands that most people need:
  storescope view STORE            the window
  storescope check STORE           what is wrong with this store, and what to do first
  storescope where STORE ID        where the message with this id or key is, or why it is missing
  storescope recover STORE --plan  what the next start of a broker would keep and lose
  storescope snapshot STORE DST    a byte-exact copy, before anybody touches anything

STORE is the directory that holds commitlog/, the one above it, or a file of a log. Commands that change it ask first.

storescope --help           all commands
storescope COMMAND --help   options and examples of one
storescope doctor           what this installation has and lacks"""
"""What ``storescope`` alone prints."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; never raises for what a user can cause."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if not arguments or arguments == ["--version"]:
            print(_version(verbose=False) if arguments else FIRST_PAGE)
            sys.stdout.flush()
            return OK if arguments else USAGE
        return _run_to_the_end(arguments, is_process=argv is None)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _closed_pipe()


def _run_to_the_end(arguments: list[str], *, is_process: bool) -> int:
    from engine.mapped.reading import gather_unread

    end = _EndOfProcess() if is_process else None
    with gather_unread() as unread:
        code = _run_guarded(arguments, unread)
        if end is not None:
            end.begin()
    return CANNOT if unread and code != INTERRUPTED else code


class _EndOfProcess:
    """SIGINT between the end of the command and that of the process: Spark's Java ends then, which takes a second.

    Python would print a stack and end with the command's exit code. Here everything ends as it would have, without a
    word, and the exit code is :data:`INTERRUPTED`. A second SIGINT ends the process at once.
    """

    def __init__(self) -> None:
        import atexit

        self._is_interrupted = False
        atexit.register(self._leave)  # registered first, called last

    def begin(self) -> None:
        """From now on SIGINT is noted."""
        import signal
        import threading

        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        ):
            signal.signal(signal.SIGINT, self._hear)

    def _hear(self, *_: object) -> None:
        if self._is_interrupted:
            os._exit(INTERRUPTED)
        self._is_interrupted = True

    def _leave(self) -> None:
        if self._is_interrupted:
            from contextlib import suppress

            with suppress(OSError):
                sys.stdout.flush()
            os._exit(INTERRUPTED)


def _run_guarded(arguments: list[str], unread: Gathered) -> int:
    from engine.errors import StoreError, UsageError

    debug = "--debug" in arguments
    try:
        try:
            return _run(arguments, unread)
        finally:
            sys.stdout.flush()  # a pipe that was closed is noticed here, not when the interpreter ends
    except UsageError as error:
        return _report_failure(error, USAGE, debug)
    except (StoreError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            return _closed_pipe()
        return _report_failure(error, CANNOT, debug)
    except KeyboardInterrupt:
        return INTERRUPTED


def build_parser(only: str | None = None) -> Parser:
    """Return the whole command line; with ``only`` just the part of that command's module, which starts faster."""
    import importlib

    parser, commands = _empty_parser()
    above = _commands_above() if only not in MODULES else {}
    modules = [MODULES[only]] if only in MODULES else [] if only in above else list(COMMANDS)
    for module in modules:
        importlib.import_module(f"engine.cli.commands.{module}").register(commands)
    for name, entry in above.items():
        if only == name or only not in above:
            entry.load()(commands)
    return parser


def outline_parser() -> Parser:
    """Return a command line that knows the names and summaries of the commands, for ``--help`` and wrong words."""
    parser, commands = _empty_parser()
    for name, summary in SUMMARIES.items():
        commands.add_parser(name, help=summary)
    for entry in _commands_above().values():
        entry.load()(commands)
    return parser


def _empty_parser() -> tuple[Parser, Any]:
    import argparse

    from engine.cli.options import Parser

    parser = Parser(
        prog="storescope",
        description="Inspect and repair Apache RocketMQ message stores. Commands that write are marked (writes).",
        epilog="""Examples:
  storescope check ~/store                  what is wrong with this store, and what to do first
  storescope where ~/store O-1042           where the message with this key is, or why it is missing
  storescope conversation ~/store O-1042    all its units in order: sent, retried, delivered, given up
  storescope recover ~/store --plan         what the next start of a broker would keep and lose
  storescope units ~/store --help           options and examples of one command""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument(
        "--verbose", action="store_true", help="with --version: print the Python version and the system too"
    )
    return parser, parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)


def _commands_above() -> dict[str, EntryPoint]:
    """Return the commands of other packages by name: the window's ``view``."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group="storescope.commands")}


def _run(arguments: list[str], unread: Gathered) -> int:
    from engine.cli.options import masking
    from engine.cli.output import Output
    from engine.errors import UsageError
    from engine.sentences import sentence

    command = next((word for word in arguments if not word.startswith("-")), None)
    is_known = command in MODULES or command in _commands_above()
    parser = build_parser(command) if is_known else outline_parser()
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        page = f"storescope {args.command} --help" if args.command else "storescope --help"
        raise UsageError(
            sentence("unrecognized arguments: {unknown} (see '{page}')", unknown=" ".join(unknown), page=page)
        )
    if args.version:
        print(_version(args.verbose))
        return OK
    if args.command is None:
        parser.print_help()
        return USAGE
    out = Output(
        as_json=getattr(args, "as_json", False),
        markdown=getattr(args, "markdown", False),
        quiet=getattr(args, "quiet", False),
        mask=masking(args),
        unread=unread,
    )
    args.arguments = arguments
    if getattr(args, "upload", None) is not None:
        from engine.cli.uploading import offer_upload

        offer_upload(args)
    return run_parsed(args, out, unread)


def run_parsed(args: argparse.Namespace, out: Output, unread: Gathered) -> int:
    """Run the command of ``args``, and report to ``out`` what it could not read; gives its exit code."""
    run: Run = args.run
    failed = True
    try:
        code = run(args, out)
        failed = False
        return code
    finally:
        if getattr(args, "tells_unread", False):
            unread.clear()
        if getattr(args, "tells_undecoded", False):
            for unread_item in [unread_item for unread_item in unread if unread_item.action == "decode"]:
                del unread[unread_item]
        _report_unread(unread, out, failed=failed)
        out.flush()


def _report_unread(unread: Gathered, out: Output, *, failed: bool) -> None:
    """Report what the command could not read, whatever its result: nobody may take it for absent.

    One line goes to standard error; where the command ``failed`` its own error is that line.
    """
    from engine.cli.output import escape_controls

    listed = list(unread)
    for number, unread_item in enumerate(listed):
        out.record(dict(unread_item.record()))
        if number < MAX_UNREAD_LINES and (len(listed) > 1 or not failed):
            out.line(f"-- {unread_item.words}")
    if len(listed) > MAX_UNREAD_LINES:
        out.line(f"-- {len(listed) - MAX_UNREAD_LINES:,} more could not be read")
    if listed and not failed:
        further = f"; nor could {len(listed) - 1:,} more" if len(listed) > 1 else ""
        sys.stderr.write(f"storescope: {escape_controls(listed[0].words)}{further}\n")


def _version(verbose: bool) -> str:
    if not verbose:
        return f"storescope {__version__}"
    import platform

    return f"storescope {__version__} · Python {platform.python_version()} · {platform.platform()}"


def _report_failure(error: Exception, code: int, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exc()
    sys.stderr.write(f"storescope: {failure_text(error)}\n")
    return code


def failure_text(error: Exception) -> str:
    """Return an error of the store, the caller or the system as one line."""
    from engine.cli.output import escape_controls
    from engine.files.store_folders import OutsidePath

    text = str(error)
    if isinstance(error, OutsidePath):
        text += " (--ignore-config-paths leaves the paths out, --paths-from-config follows them)"
    if isinstance(error, OSError) and error.filename:
        text = f"{error.filename}: {error.strerror}"
    return escape_controls(" ".join(text.split()))


def _closed_pipe() -> int:
    """The reader of standard output is gone: end silently, also at interpreter exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


if __name__ == "__main__":
    sys.exit(main())
