"""Open a store for writing: tables, recovery, offsets (docs/formats/recovery.md#order), and close it again."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from engine.callbacks import OffsetProgress
from engine.config import MessageStoreConfig
from engine.errors import LinkedFile, StoreError, Undecoded
from engine.files.layout import StorePaths
from engine.files.store_folders import lock_files, refuse_links_into_another_store, settle_folders
from engine.mapped.abort_file import AbortFile
from engine.mapped.backup import NOTE, find_interrupted_change, find_unsaved_change
from engine.mapped.disk import Disk, DiskLock
from engine.mapped.folder_listing import ReadingListing
from engine.mapped.reading import Reading
from engine.releases import NEWEST, Release
from engine.rules.undecoded import find_undecoded, part_that_forbids_writing
from engine.rules.unit_check import Request
from engine.sentences import sentence
from engine.services.rebuild import Rebuild
from engine.services.store_services import StoreServices
from engine.store import written_release
from engine.store.put_message import PutMessageStatus
from engine.store.query_message import look_message_by_offset
from engine.store.recovery import apply as recovery_apply
from engine.store.recovery import load_source
from engine.store.recovery import planning as recovery
from engine.store.recovery.empty_log import LogIsEmpty
from engine.store.recovery.plan import EmptyLog, RecoveryPlan
from engine.store.store_parts import StoreParts

_log = logging.getLogger(__name__)


def refuse_undecoded(root: Path, *, in_place: bool = False) -> None:
    """Raise :class:`Undecoded` if the store at ``root`` has a part that is recognised and not decoded.

    A writer would leave that part behind, or build a second one beside it, so every writer calls this. Who changes
    files ``in_place`` and adds no message refuses only several DLedger logs: which of them counts is not known. Raises
    :class:`CannotRead` if a folder could not be examined: such a part may be in it.

    """
    reading = Reading()
    parts = find_undecoded(ReadingListing(reading, root))
    if in_place:  # whatever a RocksDB holds, and whether it is whole, it hinders nobody
        databases = [root / part.folder for part in parts if part.format == "RocksDB"]
        reading.drop_unread(
            [item for item in reading.unread if any(Path(item.file).is_relative_to(folder) for folder in databases)]
        )
        logs = [part for part in parts if "log" in part.subjects]
        is_read = len(logs) == 1 and logs[0].format == "DLedger log"
        parts = [] if is_read else logs
    part = part_that_forbids_writing(parts)
    reading.refuse("a part that is not decoded may be there")
    if part is not None:
        raise Undecoded(part.refusal, file=str(root))


def refuse_linked_files(folders: Iterable[Path], disk: Disk) -> None:
    """Raise :class:`LinkedFile` where a file in one of ``folders`` has a second name: a copy that was made with hard
    links shares its bytes with the original. Every writer goes through here. Raises ``OSError``.
    """
    for folder in folders:
        linked = disk.linked_file(folder)
        if linked is not None:
            text = sentence(
                "this file has a second name (a hard link), and what is written here would change the "
                "other one, too. Nothing was changed; make a real copy and use that: cp -a {folder} NEW",
                folder=shlex.quote(str(folder)),
            )
            raise LinkedFile(text, file=str(linked))


class _Files:
    """Files of a store that is opened for writing, for :mod:`engine.store.written_release`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def exists(self, path: Path) -> bool:
        return self._disk.exists(path)

    def read(self, path: Path) -> bytes | None:
        return self._disk.read_file(path) if self._disk.exists(path) else None

    def names(self, folder: Path) -> list[str]:
        return [name for name, _ in self._disk.names(folder)]


def written_by(paths: StorePaths, disk: Disk) -> Release:
    """Return the release that probably wrote the store at ``paths``, the newest for a new store. Raises ``OSError``."""
    if not disk.exists(paths.root):
        return NEWEST
    written = written_release.guess(paths, _Files(disk))
    return NEWEST if written is None else written.release


def take_lock(
    paths: StorePaths, config: MessageStoreConfig, disk: Disk, release: Release, *, empty_log: bool = False
) -> DiskLock:
    """Take the locks of every folder that is written.

    If that would create the store's lock file, the store is examined first, so that a store that :func:`load`
    refuses stays unchanged. Raises :class:`engine.errors.StoreLocked`, :class:`LogIsEmpty`, :class:`Undecoded`,
    ``OSError``, and :class:`engine.files.store_folders.OutsidePath` if the configuration leads out of the store.

    """
    folders = settle_folders(paths.root, config)
    folders.refuse_outside()
    refuse_undecoded(paths.root)
    refuse_linked_files(folders.written, disk)
    if not empty_log and not disk.exists(paths.lock) and disk.exists(paths.root):
        empty_log_note = without_log(paths, config, disk, release)
        if empty_log_note is not None:
            raise LogIsEmpty(empty_log_note)
    return lock_folders(paths, config, disk)


class _Locks:
    """Several locks that are released together."""

    def __init__(self, locks: list[DiskLock]) -> None:
        self._locks = locks

    def release(self) -> None:
        while self._locks:
            self._locks.pop().release()


def refuse_interrupted_change(root: Path) -> None:
    """Raise :class:`StoreError` if a command that changes the store, or its undo, was stopped before its end."""
    backup = find_interrupted_change(root)
    if backup is not None:
        message = sentence(
            "nothing was changed: {command} was interrupted before. Restore its backup first: {undo}",
            command=backup.command,
            undo=f"storescope repair {shlex.quote(str(root))} --undo {shlex.quote(str(backup.folder))}",
        )
        raise StoreError(message, file=str(backup.folder))


def refuse_unsaved_change(root: Path, command: str) -> None:
    """Raise :class:`StoreError` if another command was stopped while it changed the store without a backup. ``repair``
    goes on from what it reads, whatever is made.
    """
    unsaved = find_unsaved_change(root)
    if unsaved and command not in ("repair", unsaved):
        message = sentence(
            "nothing was changed: {command} --no-backup was interrupted, and the store is partly changed. Complete it "
            "({repair}), or remove this file to keep the store as it is",
            command=unsaved,
            repair=f"storescope repair {shlex.quote(str(root))} --apply",
        )
        raise StoreError(message, file=str(root / NOTE))


def lock_folders(paths: StorePaths, config: MessageStoreConfig, disk: Disk) -> DiskLock:
    """Take the lock of the store and of every other folder that is written, or none. Raises
    :class:`engine.errors.StoreLocked`, ``OSError``.
    """
    refuse_links_into_another_store(paths.root)
    locks: list[DiskLock] = []
    try:
        for path in lock_files(paths.root, config):
            locks.append(disk.lock(path))
    except BaseException:
        _Locks(locks).release()
        raise
    return locks[0] if len(locks) == 1 else _Locks(locks)


def without_log(paths: StorePaths, config: MessageStoreConfig, disk: Disk, release: Release) -> EmptyLog | None:
    """Return the files that know of messages that the store's log does not hold; None if nothing is missing. Nothing
    is written.
    """
    return recovery.without_log(load_source.source(paths, config, disk), release)


def note_empty_log(paths: StorePaths, config: MessageStoreConfig, disk: Disk, release: Release) -> None:
    """Record what is still missing after the user's consent was carried out, so that the next start does not ask;
    delete the record if nothing is.
    """
    source = replace(load_source.source(paths, config, disk), confirmed_note=None)
    missing = recovery.without_log(source, release)
    if missing is not None:
        disk.write_file(paths.confirmed_empty_log, missing.note, sync=True)
    elif disk.exists(paths.confirmed_empty_log):
        disk.delete(paths.confirmed_empty_log)


def load(
    parts: StoreParts,
    services: StoreServices,
    bit_map: Callable[[Request], bytes] | None,
    *,
    empty_log: bool = False,
    progress: OffsetProgress | None = None,
) -> RecoveryPlan:
    """Load and recover as a broker would; returns the plan that was carried out. The caller holds the store's lock.

    Raises :class:`engine.errors.StoreError` if a broker would not start, or if the log is missing beside files
    that know of it (unless ``empty_log``), and ``OSError``.

    """
    parts.tables.load()
    parts.checkpoint.load()
    source = load_source.source(parts.paths, parts.config, parts.disk)

    def rebuild() -> Rebuild:
        return Rebuild(parts.queues, parts.index, parts.config, bit_map=bit_map)

    plan = recovery_apply.recover(source, parts, parts.release, rebuild, empty_log=empty_log, progress=progress)
    parts.queues.remove_deleted()
    if plan.empty_log is not None or source.confirmed_note is not None:
        note_empty_log(parts.paths, parts.config, parts.disk, parts.release)
    if plan.exit == "abnormal":
        _flush_from(parts, services, plan.start_offset)
    parts.commit_log.queue_offsets.load(parts.queues.offsets())
    if parts.index is not None:
        parts.commit_log.before_first = partial(parts.index.cut, max(plan.end_offset, 0))
    newest = look_message_by_offset(parts.log, plan.confirm_offset)
    if newest is not None:
        parts.commit_log.last_time = newest.store_timestamp
    services.reput.reput_from = max(plan.end_offset, 0)
    services.reput.queue_end = parts.queues.max_physic_offset
    return plan


def _flush_from(parts: StoreParts, services: StoreServices, start: int) -> None:
    """Flush everything behind ``start``. After a crash of the process alone the log may only be in the page cache:
    what readers will see must be on disk first, whatever the positions say.
    """
    parts.queues.distrust()
    files = parts.files
    for file in files.files:
        if file.start_offset + file.size > start:
            file.flushed = 0
    files.flushed_where = max(start - start % files.file_size, files.min_offset, 0)
    services.log.flush_all()


def apply_flags(parts: StoreParts) -> None:
    """Let the flags refuse puts; a slave accepts only its master's bytes."""
    refused, log, flags = PutMessageStatus.SERVICE_NOT_AVAILABLE, parts.commit_log, parts.flags
    if parts.config.broker_role == "SLAVE" and not parts.config.duplication_enable:
        log.follow()
    flags.on_change = lambda: log.refuse(None if flags.writeable else refused)


def end(parts: StoreParts, services: StoreServices, abort: AbortFile | None) -> None:
    """Accept nothing any more, flush, dispatch the remaining units, write checkpoint and tables; delete ``abort`` if
    all of that worked.

    Without ``abort`` nothing is written. No service runs when this returns or raises ``OSError``.

    """
    parts.commit_log.close()
    try:
        if abort is not None:
            _end_normally(parts, services, abort)
    finally:
        services.abandon()


def _end_normally(parts: StoreParts, services: StoreServices, abort: AbortFile) -> None:
    services.shutdown()
    if not parts.flags.writeable:
        _log.warning("the store may be wrong, abort stays: %s", parts.flags.why)
    elif services.reput.behind:
        _log.warning("dispatch is %d bytes behind, abort stays", services.reput.behind)
    else:
        abort.delete()


def close_files(parts: StoreParts) -> None:
    """Release files, maps and buffers; nothing is written. Raises the first ``OSError``."""
    parts.files.close()
    parts.queues.close()
    if parts.index is not None:
        parts.index.close()
    parts.checkpoint.close()
