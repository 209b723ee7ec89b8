"""Before a command writes into a store that exists it asks, saying in numbers what it will do; what it changes is kept
beside the store; and where it fails, all of that is put back.

What commands that put messages into a store share: the store's place and configuration, and what opening it does.

The sizes of an existing store are worked out from its files by the door that only reads, and handed to the door that
writes; the two doors do not know each other.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.cli.output import Output, size_text
from engine.config import MessageStoreConfig, read_properties
from engine.errors import StoreError, UsageError
from engine.inspection.derived_config import derived_config, quiet
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.layout import StorePaths
from engine.mapped.disk import Disk, RealDisk
from engine.mapped.keeping import Keeper, KeepingDisk, read
from engine.mapped.kept_undo import take_back
from engine.mapped.store_lock import StoreLock
from engine.rules.unit_check import Release
from engine.services.opening import without_log
from engine.store.recovery.load_source import log_folders
from engine.store.recovery.plan import EmptyLog, RecoveryPlan


class Keeping:
    """What is kept of the store at ``root``, or nothing; ``disk`` is what the store is to be opened with (None: its
    own). ``settled`` says that what was done stays, whatever fails afterwards.
    """

    def __init__(self, root: Path, keeper: Keeper | None) -> None:
        self.root = root
        self.keeper = keeper
        self.disk: KeepingDisk | None = KeepingDisk(keeper) if keeper is not None else None
        self.settled = False
        self.record: dict[str, Any] | None = None

    @property
    def store_disk(self) -> Disk | None:
        """The disk for ``MessageStore``."""
        return self.disk

    @property
    def place(self) -> dict[str, str]:
        """The folder as a field of a record, none where nothing is kept."""
        return {"kept": str(self.keeper.folder)} if self.keeper is not None else {}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the store's lock. Raises :class:`engine.errors.StoreLocked`."""
        path = self.root / "lock"
        taken = self.disk.lock(path) if self.disk is not None else StoreLock(path)
        try:
            yield
        finally:
            taken.release()

    def say(self, out: Output) -> None:
        """Name the folder, and how it is brought back."""
        if self.record is not None and not out.as_json:
            files, size, folder = self.record["files"], self.record["bytes"], self.record["folder"]
            out.line(f"What was changed is kept in {folder} ({files:,} files, {size_text(size)}):")
            out.line(f"  storescope recover {shlex.quote(str(self.root))} --undo {shlex.quote(folder)} brings it back")


@contextmanager
def keeping(
    args: argparse.Namespace, root: Path, config: MessageStoreConfig, *, wanted: bool = True
) -> Iterator[Keeping]:
    """Keep what the block changes of the store at ``root``, but with ``--no-backup`` or where it is not ``wanted``.

    Where the block raises before it is settled everything is put back, and the folder goes. Raises
    :class:`engine.mapped.keeping.CannotKeep` before anything is changed.
    """
    if args.no_backup or not wanted:
        yield Keeping(root, None)
        return
    keeper = Keeper(root, args.command, log_folders(StorePaths(root), config))
    found = Keeping(root, keeper)
    assert found.disk is not None
    try:
        yield found
        found.disk.close()
        keeper.finish()
    except BaseException as error:
        found.disk.close()
        if not found.settled:
            take_back(keeper, error)
        else:
            with suppress(OSError):
                keeper.finish()
        raise
    files, size = read(keeper.folder).amount
    found.record = {"folder": str(keeper.folder), "files": files, "bytes": size}


_YES = ("y", "yes")


def refuse_empty(args: argparse.Namespace, found: EmptyLog | None) -> None:
    """Raise :class:`LogIsEmpty` where the log is gone and ``--empty-log`` was not given."""
    if found is not None and not args.empty_log:
        from engine.store.recovery.empty_log import LogIsEmpty

        raise LogIsEmpty(found, "--empty-log")


def add_consent(parser: argparse.ArgumentParser) -> None:
    """The options ``--yes``, ``--empty-log`` and ``--no-backup``."""
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    add_opening(parser)


def add_opening(parser: argparse.ArgumentParser) -> None:
    """The options ``--empty-log`` and ``--no-backup`` of what opens a store as a broker does."""
    text = "go on though the log is empty or gone and other files know of its messages"
    parser.add_argument("--empty-log", action="store_true", help=text)
    text = "keep nothing of what is changed; else it is kept in a folder beside the store, for recover --undo"
    parser.add_argument("--no-backup", action="store_true", help=text)


def consented(
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


_BESIDE_THE_LOG = frozenset(["abort", "abort.bak", "checkpoint", "config", "lock"])


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """Where a command writes. ``exists`` says that something of a store is there; ``recovery`` is what opening does to
    its log, None where it has none yet; ``empty_log`` tells who knows of messages that the log does not hold.
    """

    path: Path
    config: MessageStoreConfig
    exists: bool
    recovery: RecoveryPlan | None
    empty_log: EmptyLog | None = None

    def planned(self) -> Iterator[str]:
        """Opening the store, in numbers."""
        found = self.recovery
        if found is None:
            yield f"{self.path} has no commit log yet: one is begun."
            return
        before = "a crash" if found.exit == "abnormal" else "an orderly end"
        yield f"{self.path} is opened as a broker opens it after {before}:"
        yield (
            f"  its log ends at {found.end_offset:,}; {found.units_dropped:,} units and {found.bytes_dropped:,} bytes "
            f"behind it go, {found.units:,} units are dispatched again"
        )
        gone = len(found.files_deleted) + len(found.index_deleted)
        if gone:
            yield f"  {gone:,} files are deleted"


def given_config(args: argparse.Namespace, out: Output) -> MessageStoreConfig | None:
    """The configuration that ``--config`` names, or None; keys that no broker knows are named on standard error."""
    if not args.config:
        return None
    config, unknown = read_properties(args.config)
    for key in unknown:
        out.say(f"{args.config}: no broker knows {key}")
    return config


def find_target(path: str, config: MessageStoreConfig | None, like: Release = "5.3") -> WriteTarget:
    """The store at ``path``, or a new one where nothing is there; nothing is changed.

    Raises :class:`NotAStore` where something else is there, :class:`StoreLocked` naming the holder where somebody has
    the store open, :class:`StoreError` where a broker would not start.
    """
    place = Path(path)
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return WriteTarget(place, quiet(config or MessageStoreConfig()), exists=False, recovery=None)
    if place.is_dir() and _is_store_without_log(place):
        settled = quiet(config or MessageStoreConfig())
        missed = without_log(StorePaths(place), settled, RealDisk(), like)
        return WriteTarget(place, settled, exists=True, recovery=None, empty_log=missed)
    with open_store(path, config) as store:
        if store.kind != "store":
            raise UsageError("expected a store, found a part of one: it cannot be written", file=path)
        if store.lock_state == "held":
            StoreLock(store.path / "lock").release()  # raises, and names the holder
        found = plan(store, like, losses=False)
        if not found.will_start and found.empty_log is None:
            blocker = found.blockers[0]
            raise StoreError(
                f"nothing was changed: a broker would not start here: {blocker.message}", file=blocker.file
            )
        return WriteTarget(
            store.path, quiet(derived_config(store)), exists=True, recovery=found, empty_log=found.empty_log
        )


def _is_store_without_log(place: Path) -> bool:
    """Only what a store has beside its log is there: it was opened once, or a broker's tables were laid down."""
    return {path.name for path in place.iterdir()} <= _BESIDE_THE_LOG


def refuse_used(path: str, inside: Path) -> Path:
    """The place of a new store: absent or empty, and not within the store ``inside``. Raises :class:`UsageError`."""
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError("expected a directory that is absent or empty, found something there", file=path)
    if target.resolve().is_relative_to(inside.resolve()):
        raise UsageError("expected a place outside the store that is copied", file=path)
    return target
