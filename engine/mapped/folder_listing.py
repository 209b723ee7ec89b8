"""The folders of a store for :mod:`engine.rules.undecoded`, read through :mod:`engine.mapped.reading`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from engine.errors import CannotRead, CorruptUnit
from engine.mapped.reading import Reading


class ReadingListing:
    """The folders of a store, read through a :class:`Reading` (implements
    :class:`engine.rules.undecoded.FolderListing`).
    """

    def __init__(self, reading: Reading, root: Path) -> None:
        self._reading, self._root = reading, root

    def entries(self, folder: str) -> list[tuple[str, int, bool]]:
        """Implement the protocol; the reading records everything that could not be listed."""
        listed: list[tuple[str, int, bool]] = []
        with contextlib.suppress(CannotRead):
            for entry in self._reading.entries(self._root / folder):
                with contextlib.suppress(CannotRead):
                    if entry.is_dir(follow_symlinks=False):
                        listed.append((entry.name, 0, True))
                    elif entry.is_file(follow_symlinks=False):
                        listed.append((entry.name, self._reading.entry_status(entry, follow=False).st_size, False))
                    elif entry.is_symlink():
                        listed.append((entry.name, 0, self._reading.is_folder(entry.path)))
        return listed

    def head(self, file: str, size: int) -> bytes:
        """Implement the protocol."""
        path = self._root / file
        with contextlib.suppress(CannotRead, CorruptUnit):
            descriptor = self._reading.open(path)
            try:
                length = os.fstat(descriptor).st_size
                return self._reading.read(str(path), descriptor, min(size, length), 0, length) if length else b""
            finally:
                os.close(descriptor)
        return b""
