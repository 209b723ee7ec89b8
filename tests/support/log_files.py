"""A small commit log on a simulated disk."""

from __future__ import annotations

from pathlib import Path

from simulated_disk import SimulatedDisk

from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.store.running_flags import RunningFlags
from engine.store.store_checkpoint import StoreCheckpoint

ROOT = Path("/store")


class SmallLog:
    """Files of ``size`` bytes; :meth:`append` puts meaningless bytes."""

    def __init__(self, size: int = 1 << 16, disk: SimulatedDisk | None = None) -> None:
        self.disk = disk or SimulatedDisk()
        self.files = MappedFileQueue(self.disk, [ROOT / "commitlog"], size)
        self.checkpoint = StoreCheckpoint(ROOT / "checkpoint", self.disk)
        self.checkpoint.load()
        self.flags = RunningFlags()

    def append(self, count: int, store_timestamp: int = 0) -> int:
        """Append ``count`` bytes; return the end of the log."""
        file = self.files.last_or_create()
        assert file is not None
        count = min(count, file.size - file.wrote)
        assert file.append(b"x" * count, store_timestamp)
        return self.files.wrote_offset
