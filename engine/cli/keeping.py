"""What a command changes in a store that exists is kept beside it; where the command fails, all of it is put back."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from engine.cli.output import Output, size_text
from engine.config import MessageStoreConfig
from engine.layout import StorePaths
from engine.mapped.disk import Disk
from engine.mapped.keeping import Keeper, KeepingDisk
from engine.mapped.kept_folder import read
from engine.mapped.kept_undo import take_back
from engine.mapped.store_lock import StoreLock
from engine.store.recovery.load_source import log_folders


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
