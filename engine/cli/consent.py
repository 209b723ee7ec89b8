"""The question before a command writes into a store that exists: said in numbers first, ``--yes`` answers for it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from engine.errors import UsageError

_YES = ("y", "yes")


def add_option(parser: argparse.ArgumentParser) -> None:
    """The option ``--yes``."""
    parser.add_argument("--yes", action="store_true", help="do it without asking")


def given(args: argparse.Namespace, what: Iterable[str], question: str = "Go on?") -> bool:
    """Whether the command may write; ``what`` are the lines that say what it will do, on standard error.

    False where a person said no. Raises :class:`UsageError` where nobody can be asked.
    """
    for line in what:
        print(line, file=sys.stderr)
    if args.yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("nothing was changed: this writes into a store; give --yes where nobody can be asked")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in _YES:
        return True
    print("Nothing was changed.", file=sys.stderr)
    return False
