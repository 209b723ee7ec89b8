"""Consent and backup of a command that changes an existing store: it says in numbers what it will do and asks; what it
changes is kept beside the store; and if it fails, everything is put back.
"""

from __future__ import annotations

import argparse
import glob
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.output import Output, size_text
from engine.config import MessageStoreConfig
from engine.english import number_of
from engine.errors import StoreError, UsageError
from engine.files.layout import StorePaths
from engine.files.store_folders import settle_folders
from engine.inspection.undecoded import refuse_undecoded_modes
from engine.mapped.backup import BackupDisk, BackupWriter, begin_unsaved_change, end_unsaved_change, read
from engine.mapped.disk import Disk, RealDisk
from engine.mapped.undo import take_back
from engine.patching.apply import apply_patches, check_patches
from engine.patching.patches import PatchList
from engine.sentences import sentence
from engine.services.opening import (
    lock_folders,
    refuse_interrupted_change,
    refuse_linked_files,
    refuse_undecoded,
    refuse_unsaved_change,
)
from engine.store.recovery.load_source import log_folders
from engine.times import with_local_times

if TYPE_CHECKING:
    from engine.store.recovery.plan import EmptyLog


class Backup:
    """A backup of what a command changes in the store at ``root``, or none; the store must be opened with ``disk``
    (None: its own). ``settled`` says that the changes stay, whatever fails afterwards.
    """

    def __init__(self, root: Path, command: str, writer: BackupWriter | None, config: MessageStoreConfig) -> None:
        self.root = root
        self.command = command
        self.config = config
        self.writer = writer
        self.disk: BackupDisk | None = BackupDisk(writer) if writer is not None else None
        self.settled = False
        self.record: dict[str, Any] | None = None

    @property
    def store_disk(self) -> Disk | None:
        """The disk for ``MessageStore``."""
        return self.disk

    @property
    def place(self) -> dict[str, str]:
        """The folder as a field of a record, none where nothing is kept."""
        return {"kept": str(self.writer.folder)} if self.writer is not None else {}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the locks of every folder that is written. Raises :class:`engine.errors.StoreLocked`."""
        own_disk = RealDisk()
        locks = lock_folders(StorePaths(self.root), self.config, self.disk or own_disk)
        try:
            yield
        finally:
            locks.release()
            own_disk.close()

    def apply(self, patches: PatchList) -> None:
        """Hold the locks and change the store as ``patches`` say. Without a backup a note in the store says meanwhile
        that it is partly changed; it stays if this is stopped.

        Raises :class:`engine.patching.patches.BadPatch` before anything is changed, ``OSError``.
        """
        with self.lock():
            if self.disk is None:
                check_patches(self.root, patches)
                begin_unsaved_change(self.root, self.command)
            apply_patches(self.root, patches, self.disk or RealDisk())
            end_unsaved_change(self.root)

    def say(self, out: Output) -> None:
        """Name the folder, and how it is brought back."""
        if self.record is not None and not out.as_json:
            files, size, folder = self.record["files"], self.record["bytes"], self.record["folder"]
            out.line(
                f"Backup of what was changed: {folder} ({number_of(files, 'file', 'files')}, "
                f"{size_text(size)}). To restore it:"
            )
            out.line(f"  storescope recover {shlex.quote(str(self.root))} --undo {shlex.quote(folder)}")


@contextmanager
def backed_up(
    args: argparse.Namespace,
    root: Path,
    config: MessageStoreConfig,
    *,
    enabled: bool = True,
    rewrites_log: bool = False,
    in_place: bool = False,
) -> Iterator[Backup]:
    """Back up what the block changes of the store at ``root``, except with ``--no-backup`` or where it is not
    ``enabled``. ``rewrites_log`` says that it writes other bytes than zeros into the log, ``in_place`` that it adds no
    message: then it may also change a store whose broker has queues or tables in a RocksDB.

    Where the block raises before it is settled everything is put back, and the folder goes. Raises
    :class:`engine.mapped.backup.CannotBackUp` before anything is changed.
    """
    refuse_undecoded(root, in_place=in_place)
    refuse_interrupted_change(root)
    refuse_unsaved_change(root, args.command)
    refuse_linked_files(settle_folders(root, config).written, RealDisk())
    if not in_place:
        refuse_undecoded_modes(getattr(args, "config", None))
    if args.no_backup or not enabled:
        yield Backup(root, args.command, None, config)
        return
    logs = log_folders(StorePaths(root), config)
    writer = BackupWriter(root, args.command, logs, rewrites_log=rewrites_log)
    backup = Backup(root, args.command, writer, config)
    assert backup.disk is not None
    try:
        yield backup
        backup.disk.close()
        writer.finish()
    except BaseException as error:
        backup.disk.close()
        if not backup.settled:
            take_back(writer, error)
        else:
            with suppress(OSError):
                writer.finish()
        raise
    files, size = read(writer.folder).amount
    backup.record = {"folder": str(writer.folder), "files": files, "bytes": size}


def remove_earlier_backups(backup: Backup, out: Output) -> None:
    """Remove the backups of earlier runs of the same command on the same store: of a command that a supervisor
    starts again and again only the last start's changes are kept. Backups of another command or another store
    stay.
    """
    if backup.writer is None:
        return
    newest_folder = backup.writer.folder
    newest_backup = read(newest_folder)
    store_name = newest_folder.name.rpartition(".kept-")[0]
    for folder in sorted(newest_folder.parent.glob(f"{glob.escape(store_name)}.kept-*")):
        with suppress(OSError, StoreError):
            earlier = read(folder)
            same = (earlier.store, earlier.inode, earlier.command) == (
                newest_backup.store,
                newest_backup.inode,
                newest_backup.command,
            )
            if folder != newest_folder and same:
                shutil.rmtree(folder)
                out.say(f"{folder} was removed: {newest_backup.command} keeps only the backup of its last start")


_YES = ("y", "yes")


def refuse_empty(args: argparse.Namespace, empty_log: EmptyLog | None) -> None:
    """Raise :class:`LogIsEmpty` where the log is gone and ``--empty-log`` was not given."""
    if empty_log is not None and not args.empty_log:
        from engine.store.recovery.empty_log import LogIsEmpty

        raise LogIsEmpty(empty_log, "--empty-log")


def add_consent(parser: argparse.ArgumentParser) -> None:
    """The options ``--yes``, ``--empty-log`` and ``--no-backup``."""
    parser.add_argument("--yes", action="store_true", help="do not ask before writing")
    add_opening(parser)


def add_opening(parser: argparse.ArgumentParser) -> None:
    """The options ``--empty-log`` and ``--no-backup`` of what opens a store as a broker does."""
    text = "go on even if the commit log is empty or missing while other files refer to its messages"
    parser.add_argument("--empty-log", action="store_true", help=text)
    text = "do not back up what is changed (default: a folder beside the store, for 'recover --undo')"
    parser.add_argument("--no-backup", action="store_true", help=text)


def ask_consent(
    args: argparse.Namespace,
    plan_lines: Iterable[str],
    question: str = "Go on?",
    *,
    empty_log: EmptyLog | None,
    what_it_does: str = "this writes into a store",
) -> bool:
    """Return True if the command may write; ``plan_lines`` say what it will do, on standard error, and ``empty_log``
    names tables that know of messages which the log does not hold.

    False if a person said no. Raises :class:`LogIsEmpty` without the word for it, :class:`UsageError` where nobody
    can be asked.
    """
    refuse_empty(args, empty_log)
    if empty_log is not None:
        print(f"{empty_log.folder}: {empty_log.message}", file=sys.stderr)
    for line in plan_lines:
        print(with_local_times(line), file=sys.stderr)
    if args.yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            sentence(
                "nothing was changed: {what_it_does}; use --yes if there is no terminal to ask on",
                what_it_does=what_it_does,
            )
        )
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in _YES:
        return True
    print("Nothing was changed.", file=sys.stderr)
    return False
