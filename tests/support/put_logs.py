"""Commit logs for tests of puts: small files in a temporary folder, and a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.codec.message import Unit, decode
from engine.codec.unit_scan import Blank, Stop, walk
from engine.config import MessageStoreConfig
from engine.mapped.disk import RealDisk
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.releases import NEWEST, Release
from engine.store.commit_log import CommitLog
from engine.store.put_message import PutMessageResult
from engine.store.queue_offsets import QueueOffsetTable

NOW = 1_700_000_000_123


class PutLog:
    """A commit log in ``folder`` with files of ``file_size`` bytes; ``now`` is its clock, in ms."""

    def __init__(
        self,
        folder: Path,
        file_size: int = 1 << 16,
        release: Release = NEWEST,
        is_batch_topic: Callable[[str], bool] = lambda topic: topic.startswith("Batch"),
        **config: Any,
    ) -> None:
        self.now = NOW
        self.folder = folder / "commitlog"
        self.files = MappedFileQueue(RealDisk(), [self.folder], file_size)
        self.offsets = QueueOffsetTable()
        self.log = CommitLog(
            replace(MessageStoreConfig(), **config),
            self.files,
            self.offsets,
            lambda: self.now,
            release=release,
            is_batch_topic=is_batch_topic,
        )

    def bytes(self) -> list[bytes]:
        """Return the written bytes, file by file."""
        return [file.read(0, file.wrote) for file in self.files.files]

    def unit(self, result: PutMessageResult) -> Unit:
        """Return the unit that a put wrote."""
        assert result.append is not None, result
        assert result.ok, result
        return decode(
            self.files.read(result.append.physical_offset, result.append.size), 0, result.append.physical_offset
        )

    def seen(self) -> Iterator[Unit | Blank | Stop]:
        """Return the results of a walk, file by file."""
        for file, data in zip(self.files.files, self.bytes(), strict=True):
            yield from walk(data, file.start_offset)

    def units(self) -> list[Unit]:
        """Return every unit of the log."""
        return [unit for unit in self.seen() if isinstance(unit, Unit)]
