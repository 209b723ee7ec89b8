"""The file ``abort``: there while a store is open, so that the next start knows whether the last one ended
(docs/formats/checkpoint.md).

Only this file decides; ``abort.bak`` is a by-product of how Java 5.x writes it (docs/formats/config-tables.md#rules),
and is left as there. Making and removing it survive a power loss: a store that was open must never look closed.
"""

from __future__ import annotations

import os

from engine.layout import StorePaths
from engine.mapped.disk import Disk
from engine.releases import NEWEST, Release, of


class AbortFile:
    """``abort`` of the store at ``paths``, with the life that release ``like`` gives it."""

    def __init__(self, disk: Disk, paths: StorePaths, like: Release = NEWEST) -> None:
        self._disk = disk
        self._paths = paths
        self._like = like

    @property
    def present(self) -> bool:
        """Whether the last exit was not normal (or the store is open)."""
        return self._disk.exists(self._paths.abort)

    @property
    def previous(self) -> bytes | None:
        """What stands in the file, a PID from 5.0 on; None without a file."""
        return self._disk.read_file(self._paths.abort)

    def create(self, pid: int | None = None) -> None:
        """Say that the store is open. Raises ``OSError``."""
        disk, paths = self._disk, self._paths
        before = disk.read_file(paths.abort)
        if before is None:
            disk.write_file(paths.abort, b"", sync=True)
        if of(self._like).backs_up_abort:
            disk.write_file(paths.abort_bak, before or b"")
            disk.write_file(paths.abort, str(os.getpid() if pid is None else pid).encode(), sync=True)

    def delete(self) -> None:
        """Say that the store was closed in order. Raises ``OSError``."""
        self._disk.delete(self._paths.abort)
        self._disk.sync_folder(self._paths.abort.parent)
