"""The question before a command writes into a store that exists: said in numbers first, ``--yes`` answers for it.

A store whose log is gone beside files that know it is refused before anybody is asked; ``--empty-log`` is the word for
it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.store.recovery.plan import EmptyLog

_YES = ("y", "yes")


def refuse_empty(args: argparse.Namespace, found: EmptyLog | None) -> None:
    """Raise :class:`LogIsEmpty` where the log is gone and ``--empty-log`` was not given."""
    if found is not None and not args.empty_log:
        from engine.store.recovery.empty_log import LogIsEmpty

        raise LogIsEmpty(found, "--empty-log")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options ``--yes``, ``--empty-log`` and ``--no-backup``."""
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    add_opening(parser)


def add_opening(parser: argparse.ArgumentParser) -> None:
    """The options ``--empty-log`` and ``--no-backup`` of what opens a store as a broker does."""
    text = "go on though the log is empty or gone and other files know of its messages"
    parser.add_argument("--empty-log", action="store_true", help=text)
    text = "keep nothing of what is changed; else it is kept in a folder beside the store, for recover --undo"
    parser.add_argument("--no-backup", action="store_true", help=text)


def given(
    args: argparse.Namespace, what: Iterable[str], question: str = "Go on?", *, empty_log: EmptyLog | None
) -> bool:
    """Whether the command may write; ``what`` are the lines that say what it will do, on standard error, and
    ``empty_log`` who knows of messages that the log does not hold.

    False where a person said no. Raises :class:`LogIsEmpty` without the word for it, :class:`UsageError` where nobody
    can be asked.
    """
    refuse_empty(args, empty_log)
    if empty_log is not None:
        print(f"{empty_log.folder}: {empty_log.message}", file=sys.stderr)
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
