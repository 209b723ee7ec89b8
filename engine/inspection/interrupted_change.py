"""A command, or its undo, that was stopped while it changed a store."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import StoreError
from engine.mapped.backup import (
    JOURNAL,
    NOTE,
    command_of_note,
    find_interrupted_change,
    find_unsaved_change,
    is_interrupted_change,
    parse,
)

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

JOURNAL_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class InterruptedChange:
    """``command`` was stopped, or with ``is_undo`` its undo. ``folder`` has the backup; "" for a command that made
    none.
    """

    command: str
    is_undo: bool = False
    folder: str = ""


def find_interruption(store: StoreSnapshot) -> InterruptedChange | None:
    """Return the command that was stopped while it changed ``store``; None if there is none, or somebody holds the
    store.
    """
    if store.kind != "store" or store.lock_state == "held":
        return None
    if store.capsule is not None:  # it was looked for when the capsule was made
        directory = store.capsule.directory
        folder = str(store.path.parent / directory.interrupted_backup) if directory.interrupted_backup else ""
        command = directory.interrupted_command
        return InterruptedChange(command, directory.was_undone, folder) if command else None
    if store.remote_disk is not None:
        return _find_there(store)
    backup = find_interrupted_change(store.path)
    if backup is not None:
        return InterruptedChange(backup.command, backup.begun, str(backup.folder))
    command = find_unsaved_change(store.path)
    return InterruptedChange(command) if command else None


def _find_there(store: StoreSnapshot) -> InterruptedChange | None:
    """Return the same for a store on another machine. Its path may go through links there: the inode tells it."""
    info = store.reading.status(store.path)
    inode = None if info is None else info.st_ino
    for folder in reversed(store.reading.folders(store.path.parent)):
        if not folder.name.startswith(f"{store.path.name}.kept-"):
            continue
        with suppress(StoreError, KeyError, ValueError, TypeError):
            journal = parse(store.reading.small(folder / JOURNAL, JOURNAL_MAX_BYTES) or b"", folder)
            if journal.inode == inode and not journal.is_empty and is_interrupted_change(journal):
                return InterruptedChange(journal.command, journal.begun, str(folder))
    note = store.small_file(store.path / NOTE)
    command = "" if note is None else command_of_note(note)
    return InterruptedChange(command) if command else None
