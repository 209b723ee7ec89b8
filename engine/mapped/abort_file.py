"""The file ``abort``, which exists while a store is open: the next start learns from it whether the last exit was
normal (docs/formats/checkpoint.md).

Only this file decides. ``abort.bak`` is a by-product of how Java 5.x writes it
(docs/formats/config-tables.md#rules), and is left as there. Creating and removing the file survive a power loss:
a store that was open must never look closed.

"""

from __future__ import annotations

import os

from engine.files.layout import StorePaths
from engine.mapped.disk import Disk
from engine.releases import NEWEST, Release, rules_of


class AbortFile:
    """``abort`` of the store at ``paths``, written and removed as release ``release`` does it."""

    def __init__(self, disk: Disk, paths: StorePaths, release: Release = NEWEST) -> None:
        self._disk = disk
        self._paths = paths
        self._release = release

    @property
    def present(self) -> bool:
        """True if the last exit was not normal (or the store is open)."""
        return self._disk.exists(self._paths.abort)

    @property
    def previous(self) -> bytes | None:
        """The content of the file, a PID from 5.0 on; None if there is no file."""
        return self._disk.read_file(self._paths.abort)

    def create(self, pid: int | None = None) -> None:
        """Mark the store as open. Raises ``OSError``."""
        disk, paths = self._disk, self._paths
        old_content = disk.read_file(paths.abort)
        if old_content is None:
            disk.write_file(paths.abort, b"", sync=True)
        if rules_of(self._release).backs_up_abort:
            disk.write_file(paths.abort_bak, old_content or b"")
            disk.write_file(paths.abort, str(os.getpid() if pid is None else pid).encode(), sync=True)

    def delete(self) -> None:
        """Mark the store as closed normally. Raises ``OSError``."""
        self._disk.delete(self._paths.abort)
        self._disk.sync_folder(self._paths.abort.parent)
