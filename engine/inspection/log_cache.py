"""A file in the user's cache with what was read of a log, outside of the store, and the stamp of a log file.

The file's name comes from the folders of the log. What it holds counts for a log file only while the stamp of that
file is the same. All files of one suffix share a limit; the least recently used are deleted first.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import CannotRead
from engine.files.atomic_file import PRIVATE, write_atomically

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from engine.mapped.read_only import ReadOnlyFile

_HEAD_BYTES = 4096


def stamp_of(file: ReadOnlyFile) -> tuple[int, str]:
    """Return the time of the last change (ns), and the identity of the file: its inode and a hash of its first bytes.

    The identity is "" if the file cannot be read.
    """
    try:
        head = hashlib.sha256(file.read(0, _HEAD_BYTES)).hexdigest()[:24]
        status = file.status()
    except CannotRead:
        return 0, ""
    return status.st_mtime_ns, f"{status.st_ino:x} {head}"


@dataclass(frozen=True, slots=True)
class LogCacheFile:
    """The cache file of one log. ``max_bytes`` is the limit for all files with its suffix in its folder."""

    path: Path
    max_bytes: int

    @classmethod
    def of(cls, log: LogReader, folder: Path, suffix: str, max_bytes: int, *context: str) -> LogCacheFile:
        """Return the file for ``log`` in ``folder``; another one for another ``context``."""
        places = [str(log_folder.absolute()) for log_folder in log.sequence.folders]
        first_name = log.files[0].name if len(log.sequence.folders) == 1 and log.files else ""
        key = "\n".join((*places, first_name, *context))
        return cls(folder / (hashlib.sha256(key.encode()).hexdigest()[:32] + suffix), max_bytes)

    def read(self) -> bytes:
        """Return the content. Raises ``OSError`` if there is none."""
        return self.path.read_bytes()

    def write(self, data: bytes) -> None:
        """Replace the content and delete old files beyond the limit; raises nothing: the log can be read again."""
        try:
            write_atomically(self.path, data, PRIVATE)
            files = sorted(self.path.parent.glob(f"*{self.path.suffix}"), key=lambda file: file.stat().st_mtime)
            total = sum(file.stat().st_size for file in files)
            for file in files[:-1]:
                if total <= self.max_bytes:
                    return
                total -= file.stat().st_size
                file.unlink(missing_ok=True)
        except OSError:
            return
