"""Make the changes of patches in the store itself.

The caller holds the store's lock and passes a disk that saves what is about to change
(:class:`engine.mapped.backup.BackupDisk`), so the store can be restored as it was after a stop at any point. Every
patch is checked against the store before the first byte is written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from engine import system
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
        path = root.joinpath(*patch.file.split("/"))
        changed_path = root.joinpath(*patch.target.split("/")) if isinstance(patch, MoveFile) else path
        ownership = _Ownership(changed_path)
        _apply(patch, path, root, disk)
        ownership.restore()


class _Ownership:
    """Owner and mode of a file that is about to be written, and which of its folders there are.

    What root writes belongs to root, and a broker that runs as another user cannot open it for writing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before: os.stat_result | None = None
        self._new: list[Path] = []
        if system.user_id() != 0:
            return
        for place in (path, *path.parents):
            with suppress(FileNotFoundError, NotADirectoryError):
                info = place.lstat()
                if place == path:
                    self._before = info
                break
            self._new.append(place)

    def restore(self) -> None:
        """Give a file back to its owner, and what is new to the owner of its folder."""
        if self._before is not None and os.path.lexists(self._path):
            info = self._path.lstat()
            if (info.st_uid, info.st_gid, info.st_mode) != (
                self._before.st_uid,
                self._before.st_gid,
                self._before.st_mode,
            ):
                system.change_owner(self._path, self._before.st_uid, self._before.st_gid)
                self._path.chmod(stat.S_IMODE(self._before.st_mode))
        for place in reversed(self._new):
            with suppress(FileNotFoundError):
                owner = place.parent.stat()
                if place.lstat().st_uid != owner.st_uid:
                    system.change_owner(place, owner.st_uid, owner.st_gid)


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
