"""StoreCheckpoint: the ``checkpoint`` file of a store that runs (docs/formats/checkpoint.md; Java: StoreCheckpoint).

Times in ms, offsets in bytes of the commit log; they live in memory and reach the file by ``flush``.
Java writes ``logics`` as dispatch moves it, though the queues' bytes may not be on disk yet: after a power loss their
entries would be missed. Here the file gets the value of the last flush of all queues (:meth:`settle_logics`), which is
what Java's flush of the queues writes too.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from engine.codec.checkpoint import CHECKPOINT_SIZE, PARTS, Checkpoint, decode, encode
from engine.errors import CorruptUnit
from engine.mapped.disk import Disk, DiskFile

_NOTHING = Checkpoint(0, 0, 0)
_log = logging.getLogger(__name__)


class StoreCheckpoint:
    """The values of a checkpoint. ``logics`` is the store time of the last entry put into a queue, ``logics_offset``
    that unit's offset into the log, ``physic`` the store time up to which the log is flushed, ``index`` the end of the
    newest full and flushed index file, ``confirm`` and ``master_flushed`` offsets that only 5.x writes.

    ``count`` is how many numbers the release writes (3, 5 or 6); what stands behind them in the file stays there.
    """

    __slots__ = (
        "_before",
        "_count",
        "_disk",
        "_file",
        "_lock",
        "_path",
        "_settled",
        "_settled_offset",
        "_written",
        "confirm",
        "index",
        "logics",
        "logics_offset",
        "master_flushed",
        "physic",
    )

    def __init__(self, path: Path, disk: Disk, count: int = len(PARTS)) -> None:
        self._path = path
        self._disk = disk
        self._count = count
        self._lock = threading.Lock()
        self._file: DiskFile | None = None
        self._written: bytes | None = None
        self._before = b""
        self.physic = self.logics = self.index = self.master_flushed = self.confirm = self._settled = 0
        self.logics_offset = self._settled_offset = 0

    def load(self) -> Checkpoint:
        """Load the file's values, zeros where there is none or it is too short; raises ``OSError``."""
        raw = self._disk.read_file(self._path)
        try:
            checkpoint = decode(raw) if raw is not None else _NOTHING
        except CorruptUnit as error:
            _log.warning("%s: %s", self._path, error)
            checkpoint = _NOTHING
        self._written = raw if raw is not None and len(raw) == CHECKPOINT_SIZE else None
        self._before = raw or b""
        self.physic, self.logics, self.index = (
            checkpoint.physic_msg_timestamp,
            checkpoint.logics_msg_timestamp,
            (checkpoint.index_msg_timestamp),
        )
        self.master_flushed, self.confirm = checkpoint.master_flushed_offset or 0, checkpoint.confirm_phy_offset or 0
        self.logics_offset = self._settled_offset = checkpoint.logics_physical_offset or 0
        self._settled = self.logics
        return checkpoint

    def settle_logics(self, timestamp: int, offset: int = 0) -> None:
        """Note that every entry up to ``timestamp`` and the unit at ``offset`` is on disk (values that ``logics``
        and ``logics_offset`` had before the flush).
        """
        self._settled = max(self._settled, timestamp)
        self._settled_offset = max(self._settled_offset, offset)

    def cut_logics_offset(self, last_unit: int) -> None:
        """The log was cut: its last unit begins at ``last_unit``."""
        self.logics_offset = min(self.logics_offset, last_unit)
        self._settled_offset = min(self._settled_offset, last_unit)

    @property
    def value(self) -> Checkpoint:
        """The checkpoint that :meth:`flush` would write."""
        return Checkpoint(
            self.physic,
            self._settled,
            self.index,
            self.master_flushed or None,
            self.confirm or None,
            self._settled_offset or None,
        )

    def flush(self) -> bool:
        """Write the values and make them durable, where they changed; True if there was something to write.

        Raises ``OSError``.
        """
        with self._lock:
            data = encode(self.value, self._count, self._before)
            if data == self._written:
                return False
            if self._file is None:
                self._file = self._disk.open(self._path, CHECKPOINT_SIZE)
            self._file.write(0, data)
            self._file.flush(0, CHECKPOINT_SIZE)
            self._written = data
        return True

    def close(self) -> None:
        """Close the file; nothing is written."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
