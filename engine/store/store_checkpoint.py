"""StoreCheckpoint: the ``checkpoint`` file of a store that runs (spec 5; Java: StoreCheckpoint).

Times in ms, offsets in bytes of the commit log; they live in memory and reach the file by ``flush``.
Java writes ``logics`` as dispatch moves it, though the queues' bytes may not be on disk yet: after a power loss their
entries would be missed. Here the file gets the value of the last flush of all queues (:meth:`settle_logics`), which is
what Java's flush of the queues writes too.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from engine.codec.checkpoint import CHECKPOINT_SIZE, Checkpoint, decode, encode
from engine.errors import CorruptUnit
from engine.mapped.disk import Disk, DiskFile

_NOTHING = Checkpoint(0, 0, 0)
_log = logging.getLogger(__name__)


class StoreCheckpoint:
    """The five values. ``logics`` is the store time of the last entry put into a queue, ``physic`` the store time up to
    which the log is flushed, ``index`` the end of the newest full and flushed index file, ``confirm`` and
    ``master_flushed`` offsets that only 5.x writes.
    """

    __slots__ = ("_disk", "_file", "_lock", "_path", "_settled", "_written",
                 "confirm", "index", "logics", "master_flushed", "physic")  # fmt: skip

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._lock = threading.Lock()
        self._file: DiskFile | None = None
        self._written: Checkpoint | None = None
        self.physic = self.logics = self.index = self.master_flushed = self.confirm = self._settled = 0

    def load(self) -> Checkpoint:
        """Take the file's values, zeros where there is none or it is too short; raises ``OSError``."""
        raw = self._disk.read_file(self._path)
        try:
            found = decode(raw) if raw is not None else _NOTHING
        except CorruptUnit as error:
            _log.warning("%s: %s", self._path, error)
            found = _NOTHING
        self._written = found if raw is not None and len(raw) == CHECKPOINT_SIZE else None
        self.physic, self.logics, self.index = (
            found.physic_msg_timestamp,
            found.logics_msg_timestamp,
            (found.index_msg_timestamp),
        )
        self.master_flushed, self.confirm = found.master_flushed_offset or 0, found.confirm_phy_offset or 0
        self._settled = self.logics
        return found

    def settle_logics(self, timestamp: int) -> None:
        """Every entry put up to ``timestamp`` (a value that ``logics`` had before the flush) is on disk."""
        self._settled = max(self._settled, timestamp)

    @property
    def value(self) -> Checkpoint:
        """What :meth:`flush` would write."""
        return Checkpoint(self.physic, self._settled, self.index, self.master_flushed or None, self.confirm or None)

    def flush(self) -> bool:
        """Write the values and make them durable, where they changed; True where there was something to write.

        Raises ``OSError``.
        """
        with self._lock:
            value = self.value
            if value == self._written:
                return False
            if self._file is None:
                self._file = self._disk.open(self._path, CHECKPOINT_SIZE)
            self._file.write(0, encode(value))
            self._file.flush(0, CHECKPOINT_SIZE)
            self._written = value
        return True

    def close(self) -> None:
        """Give the file back; nothing is written."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
