"""The real disk that saves files before they change: every call that changes something calls BackupWriter first.

A test goes over the names of the protocol, so no new call can skip the backup.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from engine.mapped.backup import BackupWriter
from engine.mapped.disk import RealDisk
from engine.mapped.real_file import OpenFiles, RealFile

_NO_BYTES: Final = 1 << 62


class BackupDisk(RealDisk):
    """A :class:`engine.mapped.disk.Disk` that lets ``keeper`` save everything before it changes, until :meth:`rest`.

    The keeper saves the lock's file when it is created.

    """

    def __init__(self, keeper: BackupWriter) -> None:
        super().__init__()
        self.keeper = keeper
        self.keeps = True

    def rest(self) -> None:
        """Save nothing any more."""
        self.keeps = False

    def open(self, path: Path, size: int) -> RealFile:
        if self.keeps:
            try:
                length = path.stat().st_size
            except FileNotFoundError:
                self.keeper.before_make(path)
            else:
                if length < size:
                    self.keeper.before_change(path, length)
        return super().open(path, size)

    def _file(self, path: str, size: int, new_folders: tuple[str, ...] = ()) -> RealFile:
        return BackupFile(path, size, self._files, new_folders, self)

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        if self.keeps:
            self.keeper.before_change(path)
        super().write_file(path, data, sync=sync)

    def replace(self, source: Path, target: Path) -> None:
        if self.keeps:
            self.keeper.before_delete(source)
            self.keeper.before_delete(target)
            self.keeper.before_make(target)
        super().replace(source, target)

    def delete(self, path: Path) -> None:
        if self.keeps:
            self.keeper.before_delete(path)
        super().delete(path)

    def move_folder(self, source: Path, target: Path) -> None:
        if self.keeps:
            self.keeper.before_folder_moves(source, target)
        super().move_folder(source, target)

    def remove_folder(self, path: Path) -> bool:
        if self.keeps:
            self.keeper.before_folder_goes(path)
        return super().remove_folder(path)

    def set_modified(self, path: Path, ms: int) -> None:
        if self.keeps:
            self.keeper.before_change(path, _NO_BYTES)
        super().set_modified(path, ms)


class BackupFile(RealFile):
    """A :class:`engine.mapped.disk.DiskFile` that is saved before it changes.

    A view may be written anywhere, so the complete file is saved before a view is returned. A log file is the
    exception: its views are only read, and written behind its end, where zeros are.

    """

    __slots__ = ("_disk", "_log", "_safe_from")

    def __init__(self, path: str, size: int, files: OpenFiles, new_folders: tuple[str, ...], disk: BackupDisk) -> None:
        super().__init__(path, size, files, new_folders)
        self._disk = disk
        self._log = disk.keeper.is_log(path)
        self._safe_from = _NO_BYTES

    def write(self, position: int, data: bytes | memoryview) -> None:
        if position < self._safe_from and self._disk.keeps:
            self._safe_from = self._disk.keeper.before_change(Path(self.path), position)
        super().write(position, data)

    def reserve(self, start: int, stop: int, *, touch: bool = False) -> None:
        self._keep_from(start)
        super().reserve(start, stop, touch=touch)

    def delete(self) -> None:
        if self._disk.keeps:
            self._disk.keeper.before_delete(Path(self.path))
        super().delete()

    def _map(self) -> memoryview:
        if not self._log:
            self._keep_from(0)
        return super()._map()

    def _keep_from(self, position: int) -> None:
        if position < self._safe_from and self._disk.keeps and os.path.lexists(self.path):
            self._safe_from = self._disk.keeper.before_change(Path(self.path), position)
