"""CleanFiles: delete old files of the log, by age, for lack of room, or on request; queues and index follow
(docs/formats/cleaning.md).

Java: CleanCommitLogService, CleanConsumeQueueService. Nothing sleeps here: a run is cut into steps at its pauses,
and each step returns the wait until the next.

"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol

from engine.callbacks import Clock
from engine.config import MessageStoreConfig
from engine.mapped.disk import Disk
from engine.mapped.mapped_file import MappedFile
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.rules.retention_rules import delete_hours, grade_of, is_due, is_hour, levels, pressure
from engine.sentences import sentence
from engine.store.running_flags import DISK_FULL, RunningFlags

FIRST_PAUSE_MS: Final = 60_000.0
FIRST_CHECK_MS: Final = 1_000.0
CHECK_MS: Final = 10_000.0
MANUAL_RUNS: Final = 20
_log = logging.getLogger(__name__)


class Expiring(Protocol):
    """A queue or the index: parts before the log's minimum can be deleted."""

    def delete_expired(self, log_min: int) -> object:
        """Delete files that hold nothing at or behind ``log_min``; returns a true value if any was deleted. Raises
        ``OSError``.
        """


class CleanFiles:
    """Runs once per ``cleanResourceInterval``. ``queue_folder`` is the folder whose disk all queues share."""

    name = "CleanCommitLogService"

    def __init__(
        self,
        files: MappedFileQueue,
        queues: Iterable[Expiring],
        index: Expiring | None,
        flags: RunningFlags,
        config: MessageStoreConfig,
        disk: Disk,
        clock: Clock,
        queue_folder: Path,
    ) -> None:
        self.deleted_files = 0
        self.failure: str | None = None
        self._files = files
        self._queues = queues
        self._index = index
        self._flags = flags
        self._config = config
        self._disk = disk
        self._clock = clock
        self._queue_folder = queue_folder
        self._hours = delete_hours(config.delete_when)
        self._levels = levels(config)
        self._manual = 0
        self._followed = -1  # the log's minimum up to which the queues are cleaned
        self._last_retry = 0
        self._run: Iterator[float] | None = None

    def delete_by_hand(self) -> None:
        """Delete expired files in the next twenty runs, whatever the hour."""
        self._manual = MANUAL_RUNS

    def check_disk_space(self) -> None:
        """Refuse puts if the disk is too full for them, or accept them again; nothing is deleted."""
        self._space()

    def step(self) -> float:
        """Do the next part of the present run, or begin a new one."""
        try:
            if self._run is None:
                self._run = self._pieces()
            pause = next(self._run, None)
            if pause is None:
                self.failure = None
        except OSError as error:
            if self.failure is None:
                _log.warning("cleaning stops for now: %s", error)
            self.failure = str(error)
            pause = None
        if pause is None:
            self._run = None
            return self._config.clean_resource_interval
        return pause

    def _pieces(self) -> Iterator[float]:
        yield from self._delete_log_files()
        now = self._clock()
        if now - self._last_retry > self._config.redelete_hanged_file_interval:
            self._last_retry = now
            if self._files.retry_hanged(self._config.destroy_maped_file_interval_forcibly, now):
                self.deleted_files += 1
        log_min = self._files.readable_min
        if log_min <= self._followed:
            return
        for queue in list(self._queues):
            if queue.delete_expired(log_min):
                yield self._config.delete_consume_queue_files_interval
        if self._index is not None:
            self._index.delete_expired(log_min)
        self._followed = log_min

    def _delete_log_files(self) -> Iterator[float]:
        needs_room, at_once = self._space()
        by_hand = self._manual > 0
        if by_hand:
            self._manual -= 1
        if not (needs_room or by_hand or is_hour(self._clock(), self._hours)):
            return
        config = self._config
        at_once = at_once and config.clean_file_forcibly_enable

        def may_go(file: MappedFile) -> bool:
            return at_once or is_due(self._files.modified(file), self._clock(), config.file_reserved_time)

        for number in range(config.delete_file_batch_max):
            if number:
                yield config.delete_commit_log_files_interval
            deleted = self._files.delete_oldest(
                may_go, force_after_ms=config.destroy_maped_file_interval_forcibly, now=self._clock(), max_count=1
            )
            if not deleted:
                if needs_room and not number:
                    _log.warning("the disk is nearly full and no file of the log can be deleted")
                return
            self.deleted_files += 1
            _log.info("%s deleted", deleted[0].path)

    def _space(self) -> tuple[bool, bool]:
        """Return (is room needed, must files be deleted whatever their age), and raise or clear the disk-full flag
        (docs/formats/cleaning.md).
        """
        log_usage = min((self._disk.usage(folder) for folder in self._files.folders), default=-1.0)
        queue_usage = self._disk.usage(self._queue_folder)
        for usage, disk_name in ((log_usage, "log"), (queue_usage, "queues")):
            grade = grade_of(usage, self._levels)
            if grade == "warn" and self._flags.raise_flag(
                DISK_FULL, sentence("the disk of the {disk_name} is {usage:.0%} full", disk_name=disk_name, usage=usage)
            ):
                _log.error("the disk of the %s is %.0f %% full: puts are refused", disk_name, usage * 100)
            if grade:
                return True, True
            if self._flags.clear(DISK_FULL):
                _log.warning("the disk of the %s is %.0f %% full: puts are taken again", disk_name, usage * 100)
        threshold = self._config.logical_disk_space_clean_forcibly_threshold
        rule = pressure(log_usage, queue_usage, self._levels, self._share_of_partition(), threshold)
        return rule.needed, rule.at_once

    def _share_of_partition(self) -> float | None:
        """Return the used share of this store's part of the partition; None if the store has the partition alone."""
        stores = self._config.replicas_per_disk_partition
        if stores <= 1:
            return None
        total = self._disk.total(self._files.folders[0])
        if total <= 0:
            return 0.0
        used = self._files.total_size
        for item in (*self._queues, *([self._index] if self._index is not None else [])):
            used += getattr(item, "total_size", 0)
        return used / (total / stores)


class DiskCheck:
    """Checks the disk as 4.9 does: a second after its start, then every ten seconds. 5.x checks it only with each
    run of the cleaning, which begins after a minute (Java: ``DefaultMessageStore.addScheduleTask``).
    """

    name = "DiskCheckScheduledThread"

    def __init__(self, clean: CleanFiles) -> None:
        self._clean = clean

    def step(self) -> float:
        """Check the disk once."""
        self._clean.check_disk_space()
        return CHECK_MS
