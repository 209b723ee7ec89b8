"""Describe what the mend of a store changes, and what undoing it restores. No Qt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.patching.patches import MoveFile, Patch, RemoveFile, ResizeFile, WriteBytes, WriteFile
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import size

if TYPE_CHECKING:
    from engine.mapped.backup import BackupJournal

_TIME_OF_FOLDER = re.compile(r"\.kept-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)")


def changes_in_words(patches: Sequence[Patch]) -> str:
    """Return how many bytes, files and names ``patches`` change."""
    changed: dict[str, int] = {}
    new_files = new_bytes = removed = moved = resized = 0
    for patch in patches:
        match patch:
            case WriteBytes():
                changed[patch.file] = changed.get(patch.file, 0) + len(patch.new)
            case WriteFile(old=None):
                new_files, new_bytes = new_files + 1, new_bytes + len(patch.new) + patch.zeros
            case WriteFile():
                changed[patch.file] = changed.get(patch.file, 0) + len(patch.new)
            case RemoveFile():
                removed += 1
            case MoveFile():
                moved += 1
            case ResizeFile():
                resized += 1
    parts = []
    if changed:
        written = size(sum(changed.values()))
        parts.append(
            tr_plural(
                "{size} in {n:,} file are changed", "{size} in {n:,} files are changed", n=len(changed), size=written
            )
        )
    if new_files:
        parts.append(
            tr_plural(
                "{n:,} file is created ({size})", "{n:,} files are created ({size})", n=new_files, size=size(new_bytes)
            )
        )
    if resized:
        parts.append(tr_plural("{n:,} file gets another length", "{n:,} files get another length", n=resized))
    if removed:
        parts.append(tr_plural("{n:,} file is removed", "{n:,} files are removed", n=removed))
    if moved:
        parts.append(tr_plural("{n:,} file gets another name", "{n:,} files get another name", n=moved))
    return " · ".join(parts)


def backup_title(backup: BackupJournal) -> str:
    """Return when and by which command a backup was written, and if it was restored already."""
    matched = _TIME_OF_FOLDER.search(backup.folder.name)
    when = "{}-{}-{} {}:{}:{}".format(*matched.groups()) if matched is not None else backup.folder.name
    state = f" · {tr('restored already')}" if backup.undone else ""
    return f"{when} · {backup.command}{state}"


def restored_in_words(backup: BackupJournal) -> str:
    """Return what undoing gives back."""
    files, count = backup.amount
    parts = [
        tr_plural(
            "{n:,} file gets its old bytes back ({size})",
            "{n:,} files get their old bytes back ({size})",
            n=files,
            size=size(count),
        )
    ]
    if backup.made:
        parts.append(
            tr_plural(
                "{n:,} file that was created is removed",
                "{n:,} files that were created are removed",
                n=len(backup.made),
            )
        )
    if backup.begun:
        parts.append(tr("an earlier undo was interrupted: this completes it"))
    elif backup.stamps_after is None:
        parts.append(tr("the command was interrupted: the store is partly changed now"))
    return " · ".join(parts)
