"""Make the changes of patches in the store itself: what it changes is saved beside the store first, and taken back if
it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.files.layout import StorePaths
from engine.files.store_folders import settle_folders
from engine.inspection.derived_config import derived_config
from engine.inspection.recovery import dledger_source, without_log
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.mapped.backup import BackupDisk, BackupWriter, end_unsaved_change, read
from engine.mapped.disk import RealDisk
from engine.mapped.store_lock import StoreLock
from engine.mapped.undo import take_back
from engine.patching.apply import apply_patches, check_patches
from engine.patching.patches import Patch, PatchList
from engine.sentences import sentence
from engine.services.opening import (
    lock_folders,
    refuse_interrupted_change,
    refuse_linked_files,
    refuse_undecoded,
)
from engine.store.recovery.empty_log import LogIsEmpty
from engine.store.recovery.load_source import log_folders
from engine.store.recovery.plan import EmptyLog

COMMAND = "repair"


@dataclass(frozen=True, slots=True)
class MendedStore:
    """The change of a store: ``folder`` holds the backup, ``files`` and ``bytes`` are its size."""

    path: Path
    folder: Path
    patches: int
    files: int
    bytes: int


def refuse_to_write(store: StoreSnapshot) -> None:
    """Raise why the files of this store may not be changed: a broker has it open, or a part of it is not written here.

    Raises :class:`engine.errors.StoreError` and its subclasses, ``OSError``.
    """
    path, config = store.path, store.config
    folders = settle_folders(path, config)
    folders.refuse_outside()
    if store.lock_state == "held":
        StoreLock(path / "lock").release()  # raises, and names the holder
    source = dledger_source(store) if store.commit_log.dledger is not None else None
    if source is not None and source.has_other_members:
        text = sentence(
            "nothing was changed: the other members of the DLedger group have the right entries. Move this member's "
            "store away and start it empty while another one leads: it gets all entries. --to mends a copy"
        )
        raise StoreError(text, file=str(path))
    refuse_undecoded(path, in_place=True)
    refuse_interrupted_change(path)
    refuse_linked_files(folders.written, RealDisk())


def empty_log_behind(path: Path, config: MessageStoreConfig | None, patches: Iterable[Patch]) -> EmptyLog | None:
    """Return what :func:`engine.inspection.recovery.without_log` says of the store at ``path`` as ``patches`` would
    leave it. Raises :class:`engine.errors.CannotRead`.
    """
    with open_store(path, config, patches) as store:
        return without_log(store)


def mend_in_place(
    path: Path,
    config: MessageStoreConfig | None,
    patches: Iterable[Patch],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> MendedStore:
    """Change the store at ``path`` as ``patches`` say. Every byte that changes is saved beside the store before.

    ``progress`` is called with the patches done and all; what it raises takes everything back. Raises
    :class:`engine.patching.patches.BadPatch`, :class:`engine.mapped.backup.CannotBackUp` and what
    :func:`refuse_to_write` raises before anything is changed; ``OSError``: then everything is as it was.
    """
    wanted = PatchList(patches)
    with open_store(path, config) as store:
        refuse_to_write(store)
    check_patches(path, wanted)
    with open_store(path, config, wanted) as patched:  # a damaged part that they mend hinders nothing
        writing_config = derived_config(patched)
        empty_log = without_log(patched)
    if empty_log is not None:
        raise LogIsEmpty(empty_log)
    paths = StorePaths(path)
    writer = BackupWriter(path, COMMAND, log_folders(paths, writing_config), rewrites_log=True)
    disk = BackupDisk(writer)
    try:
        locks = lock_folders(paths, writing_config, disk)
        try:
            apply_patches(path, wanted, disk, progress)
        finally:
            locks.release()
        disk.close()
        writer.finish()
        end_unsaved_change(path)
    except BaseException as error:
        disk.close()
        take_back(writer, error)
        raise
    files, size = read(writer.folder).amount
    return MendedStore(path, writer.folder, len(wanted), files, size)
