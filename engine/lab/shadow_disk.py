"""The real disk, and beside it what would survive a power loss: what each flush makes durable is copied, so that the
plug can be pulled of a store in a real directory.

Of a log file only the flushed length is kept: it is written in order and never again. Of every other file a copy is
made below ``durable/`` when it is first changed, and brought up to date by each flush.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from pathlib import Path
from typing import Final

from engine.lab.shadow_file import Shadow, ShadowFile, copy_data
from engine.mapped.disk import RealDisk
from engine.mapped.power_loss import NameChange, PowerLoss
from engine.mapped.real_file import OPEN_FILES, RealFile
from engine.mapped.store_lock import StoreLock

LEAST_FREE: Final = 512 << 20
"""Bytes of room on the real disk below which a lab's disk counts as full."""


class ShadowDisk(RealDisk):
    """The files below ``root``; the durable ones go to ``durable``, which is emptied first (None: nothing is kept
    apart). What is there already counts as durable.

    ``capacity`` is how large the store's disk shall seem, in bytes (0: as large as it is). After
    :meth:`pull_the_plug` every call that would change the disk raises :class:`PowerLoss`.
    """

    def __init__(self, root: Path, durable: Path | None, capacity: int = 0, open_files: int = OPEN_FILES) -> None:
        super().__init__(open_files)
        self.root = root
        self.durable = durable
        self.capacity = capacity
        self.guard = threading.RLock()
        self.dead = False
        self.names_now: dict[str, Shadow] = {}
        self.durable_names: dict[str, Shadow] = {}
        self.pending: list[NameChange[Shadow]] = []
        self._graves: list[Shadow] = []  # of files that were deleted, until the disk knows it
        self._number = 0
        if durable is not None:
            if durable.is_symlink():
                durable.unlink()
            elif durable.exists():
                shutil.rmtree(durable)
            durable.mkdir(parents=True)
            for path in root.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    shadow = self._shadow(path)
                    shadow.flushed = path.stat().st_size
                    self.names_now[str(path)] = self.durable_names[str(path)] = shadow

    def linked_file(self, folder: Path) -> Path | None:  # noqa: ARG002 - as its protocol asks
        """None: what is durable is linked into the picture of the disk, and is never written again."""
        return None

    # The plug

    def pull_the_plug(self) -> None:
        """From now on nothing reaches the disk any more."""
        with self.guard:
            self.dead = True

    def log_stands_at(self, offset: int) -> None:
        """The log has been recovered: its durable bytes end at the absolute ``offset``, what follows is new."""
        with self.guard:
            for shadow in self.names_now.values():
                if shadow.log_start is not None:
                    shadow.flushed = max(0, offset - shadow.log_start)

    def check_alive(self) -> None:
        """Raise :class:`PowerLoss` after the plug was pulled."""
        if self.dead:
            raise PowerLoss

    def commit_names(self) -> None:
        """All changes of names so far are on the disk; what they left behind is gone. Raises ``OSError``."""
        with self.guard:
            if not self.pending:
                return
            for change in self.pending:
                change.apply(self.durable_names)
            deleted_paths = [change.path for change in self.pending if change.node is None]
            self.pending.clear()
            if deleted_paths:
                referenced = {id(shadow) for names in (self.durable_names, self.names_now) for shadow in names.values()}
                for shadow in list(self._graves):
                    if id(shadow) not in referenced:
                        self._graves.remove(shadow)
                        shadow.forget()

    # The protocol

    def open(self, path: Path, size: int) -> RealFile:
        if self.durable is not None and str(path) not in self.names_now:
            self.check_alive()
            with self.guard:
                is_new = str(path) not in self.names_now and not path.exists()
                if is_new:
                    self._change({str(path): self._shadow(path)})
            try:
                return super().open(path, size)
            except OSError:
                with self.guard:
                    if is_new and not path.exists():
                        self._change({str(path): None})
                raise
        return super().open(path, size)

    def _file(self, path: str, size: int, new_folders: tuple[str, ...] = ()) -> RealFile:
        if self.durable is None:
            return super()._file(path, size, new_folders)
        with self.guard:
            shadow = self.names_now.get(path)
            if shadow is None:
                shadow = self.names_now[path] = self.durable_names[path] = self._shadow(Path(path))
        return ShadowFile(path, size, self._files, new_folders, self, shadow)

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self.check_alive()
        if self.durable is None:
            super().write_file(path, data, sync=sync)
            return
        with self.guard:
            shadow = self.names_now.get(str(path))
            if shadow is None:
                shadow = self._shadow(path)
                shadow.begin_empty()
                self._change({str(path): shadow})
            else:
                shadow.part()
            super().write_file(path, data, sync=sync)
            if sync:
                shadow.take_all(data)
                self.commit_names()

    def replace(self, source: Path, target: Path) -> None:
        self.check_alive()
        with self.guard:
            shadow = self.names_now.get(str(source))
            old = self.names_now.get(str(target))
            if self.durable is not None and old is not None:
                self._bury(old)
            super().replace(source, target)
            if self.durable is not None and shadow is not None:
                shadow.live = target
                self._change({str(target): shadow, str(source): None})

    def move_folder(self, source: Path, target: Path) -> None:
        self.check_alive()
        with self.guard:
            super().move_folder(source, target)
            changes: dict[str, Shadow | None] = {}
            for path, shadow in self.names_now.items():
                if path.startswith(f"{source}/"):
                    shadow.live = target / path[len(str(source)) + 1 :]
                    changes[str(shadow.live)] = shadow
                    changes[path] = None
            self._change(changes)

    def delete(self, path: Path) -> None:
        self.check_alive()
        with self.guard:
            shadow = self.names_now.get(str(path))
            if shadow is not None and self.durable is not None:
                self._bury(shadow)
                self._change({str(path): None})
        super().delete(path)

    def sync_folder(self, path: Path) -> None:
        self.check_alive()
        super().sync_folder(path)
        self.commit_names()

    def usage(self, path: Path) -> float:
        """Return the usage of the disk that the store seems to have; full if the real disk has hardly any room left."""
        if not self.capacity:
            return super().usage(path)
        try:
            free = shutil.disk_usage(self.root).free
        except OSError:
            return -1.0
        if free < LEAST_FREE:
            return 1.0
        return min(1.0, -(-self._used() * 100 // self.capacity) / 100)

    def total(self, path: Path) -> int:
        return self.capacity or super().total(path)

    def lock(self, path: Path) -> StoreLock:
        store_lock = super().lock(path)
        if self.durable is not None:
            with self.guard:
                if str(path) not in self.names_now:
                    self.names_now[str(path)] = self.durable_names[str(path)] = self._shadow(path)
        return store_lock

    # Inside

    def _used(self) -> int:
        """Bytes that the files of the store take on the disk."""
        with self.guard:
            paths = list(self.names_now)
        used = 0
        for path in paths:
            with contextlib.suppress(OSError):
                used += os.stat(path).st_blocks * 512  # noqa: PTH116 (no Path for each of many)
        return used

    def _shadow(self, path: Path) -> Shadow:
        assert self.durable is not None
        self._number += 1
        inside = path.relative_to(self.root).as_posix().replace("/", "~")
        return Shadow(path, self.durable / f"{self._number:06d}~{inside}"[:200], log_start=self._log_start(path))

    def _log_start(self, path: Path) -> int | None:
        inside = path.relative_to(self.root).parts
        return int(path.name) if len(inside) == 2 and inside[0] == "commitlog" and path.name.isdigit() else None

    def _bury(self, shadow: Shadow) -> None:
        """Keep the bytes of a file whose name is about to go: the disk may still have them."""
        assert self.durable is not None
        self._number += 1
        grave = self.durable / f"{self._number:06d}~deleted"
        try:
            os.link(shadow.live, grave)
        except FileNotFoundError:
            return
        except OSError:  # no links here
            copy_data(shadow.live, grave)
        shadow.live = grave
        self._graves.append(shadow)

    def _change(self, changes: dict[str, Shadow | None]) -> None:
        group = self.pending[-1].group + 1 if self.pending else 0
        for path, shadow in changes.items():
            change = NameChange(path, shadow, group)
            self.pending.append(change)
            change.apply(self.names_now)
