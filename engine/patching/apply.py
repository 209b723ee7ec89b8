"""Make the changes of patches in the store itself.

The caller holds the store's lock and passes a disk that saves what is about to change
(:class:`engine.mapped.backup.BackupDisk`), so the store can be restored as it was after a stop at any point. Every
patch is checked against the store before the first byte is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from engine.mapped.disk import Disk, put_file
from engine.patching.patched_disk import MAX_IN_MEMORY_BYTES, PatchedDisk
from engine.patching.patches import BadPatch, MoveFile, Patch, PatchList, RemoveFile, ResizeFile, WriteBytes, WriteFile
from engine.sentences import sentence


def check_patches(root: Path, patches: PatchList) -> None:
    """Raise :class:`BadPatch` if a patch does not fit to the store at ``root``; nothing is written."""
    PatchedDisk(root, patches).close()


def apply_patches(
    root: Path,
    patches: PatchList,
    disk: Disk,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Change the store at ``root`` as ``patches`` say; everything is on the disk when this returns.

    ``progress`` is called before each patch with the number of patches done and of all. Raises :class:`BadPatch`
    before anything is written, ``OSError`` if the disk refuses.
    """
    check_patches(root, patches)
    for done, patch in enumerate(patches):
        progress(done, len(patches))
        _apply(patch, root.joinpath(*patch.file.split("/")), root, disk)


def _apply(patch: Patch, path: Path, root: Path, disk: Disk) -> None:
    match patch:
        case WriteFile() if patch.zeros:
            file = disk.open(path, len(patch.new) + patch.zeros)
            try:
                file.write(0, patch.new)
                file.flush(0, len(patch.new))
            finally:
                file.close()
            disk.sync_folder(path.parent)
        case WriteFile():
            put_file(disk, path, patch.new)
        case WriteBytes():
            size = path.stat().st_size
            if size <= MAX_IN_MEMORY_BYTES:
                content = disk.read_file(path) or b""
                put_file(disk, path, content[: patch.offset] + patch.new + content[patch.offset + len(patch.new) :])
                return
            file = disk.open(path, size)
            try:
                file.overwrite(patch.offset, patch.new)
                file.flush(patch.offset, patch.offset + len(patch.new))
            finally:
                file.close()
        case ResizeFile():
            disk.set_size(path, patch.new_size)
        case RemoveFile():
            disk.delete(path)
            disk.sync_folder(path.parent)
        case MoveFile():
            target = root.joinpath(*patch.target.split("/"))
            if os.path.lexists(target):
                raise BadPatch(sentence("expected no such file, found one"), file=patch.target)
            disk.replace(path, target)
            disk.sync_folder(path.parent)
            disk.sync_folder(target.parent)
