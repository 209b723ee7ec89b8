"""The commit log of a store: its files, with those of a DLedger log, and where a recovery would end it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec.dledger import HEAD_BYTES, begins_with_unit, wraps_message
from engine.errors import CannotRead
from engine.files.store_folders import LOG_FOLDER, StoreFolders
from engine.inspection.dledger import DLedgerLog, find_folders, find_remains
from engine.inspection.log_reader import LogReader
from engine.inspection.opening import Opening
from engine.inspection.store_queues import SUBJECTS
from engine.mapped.read_only import FileSequence, LogFiles, LoneFile, ReadOnlyFile
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

MAX_SETTLED_BYTES = 8 << 30
"""Maximum bytes of the log that are walked to find where a recovery would end."""


class StoreLog:
    """The commit log's files. Call :meth:`follow_dledger` before the first question."""

    def __init__(self, store: StoreSnapshot, opening: Opening) -> None:
        self._store = store
        self._settled = False
        self._settle_start: int | None = None
        self.dledger: DLedgerLog | None = None
        """The DLedger log with the store's messages; None if the log is a commit log alone."""
        self.reader = LogReader(self._sequence_of(opening), store.queue_folders.newest_entries)
        """Reads the files without noting a DLedger log that cannot be read; :attr:`StoreSnapshot.log` notes it."""
        self._classic_folders = self.folders

    def close(self) -> None:
        """Close every file that is open."""
        self.reader.close()

    def refresh(self) -> bool:
        """List the files again; return True if they changed."""
        self._settled = False
        self._settle_start = None
        return self.reader.refresh()

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders of the commit log: more than one in a multi-path store."""
        return self.reader.sequence.folders

    def follow_dledger(self) -> None:
        """Let the log include the data files of a DLedger log."""
        store, reader, sequence = self._store, self.reader, self.reader.sequence
        if store.paths is None:
            first_file = next((file for file in sequence.files if any(_head_of(file))), None)
            if first_file is not None and wraps_message(_head_of(first_file)):
                reader.entry_folders = frozenset({first_file.path.rpartition(os.sep)[0]})
            return
        folders = find_folders(store)
        if folders is None:
            self.dledger = None
        elif self.dledger is None or self.dledger.folders != folders:
            self.dledger = DLedgerLog(store, folders)
        else:
            self.dledger.index.refresh()
        reader.entry_folders = frozenset() if folders is None else frozenset({str(folders.data)})
        with_entries = () if folders is None or folders.data in self._classic_folders else (folders.data,)
        if sequence.folders != (*self._classic_folders, *with_entries):
            sequence.folders = (*self._classic_folders, *with_entries)
            sequence.last_folder = with_entries[0] if with_entries else None
            sequence.refresh()
        remains_from = None
        if self.dledger is not None:
            with contextlib.suppress(CannotRead):  # ``reading`` has noted it
                remains_from = find_remains(reader, self.dledger)
        # Set in one step: another thread that reads the log meanwhile must not walk over the replaced entries.
        reader.remains_from = remains_from

    @property
    def settle_start(self) -> int:
        """Return the offset at which the recovery of the store's release begins to read.

        As :mod:`engine.releases` says: of the files less than :data:`MAX_SETTLED_BYTES` bytes before the newest one
        that a queue entry points into (docs/formats/recovery.md#log). Raises :class:`CannotRead`.
        """
        start = self._settle_start  # another thread may refresh meanwhile
        if start is None:
            store, log = self._store, self._store.log
            offset, size = self._newest_entry()
            number = max(log.sequence.position_of(offset), 0)
            start = log.files[number].start_offset if log.files else 0
            if log.files and store.paths is not None:
                from engine.inspection.recovery import start_offset

                start = start_offset(store, offset + size, start - MAX_SETTLED_BYTES)
            self._settle_start = start
        return start

    def settle_end(self) -> None:
        """Set the end of the log to where a broker's recovery would end; done once.

        Bad bodies are included (docs/formats/recovery.md#log).

        Walks the log from :attr:`settle_start` on with its CRCs. A long walk runs in another thread: its read errors
        are raised to readers of the end. Offsets of queues follow from the end.
        """
        log = self._store.log
        if self._settled or not log.files:
            return
        self._settled = True
        if self.dledger is not None:
            log.settle_by(self._end_of_entries)
        else:
            log.settle(self.settle_start)
        self._store.queues.forget_bounds()

    def _newest_entry(self) -> tuple[int, int]:
        """Return offset and size (bytes) of the newest entry of all queues.

        If queues are not decoded it is the start of the last log file.

        Raises :class:`CannotRead`.
        """
        store = self._store
        if any(store.undecoded_part(subject) is not None for subject in SUBJECTS):
            return (store.log.files[-1].start_offset, 0) if store.log.files else (0, 0)
        store.queues.require_files()
        return max(filter(None, (queue.newest() for queue in store.queue_folders.readers())), default=(0, 0))

    def _end_of_entries(self) -> int:
        """The end of the entries that a start keeps. Raises :class:`CannotRead`."""
        from engine.inspection.recovery import dledger_source
        from engine.store.recovery.dledger import recover_entries

        source = dledger_source(self._store)
        return recover_entries(source).end_offset if source is not None and source.files else 0

    def _sequence_of(self, opening: Opening) -> FileSequence:
        store = self._store
        if opening.kind == "file":
            return LoneFile(opening.path, opening.start_offset, store.descriptors)
        folders = (opening.path,) if store.folders is None else self._existing_folders(store.folders)
        return LogFiles(folders, store.descriptors, store.configured_size("mappedFileSizeCommitLog"), _may_be_of_a_log)

    def _existing_folders(self, folders: StoreFolders) -> tuple[Path, ...]:
        """The folders of a multi-path commit log that are there, else ``commitlog`` (docs/formats/files.md#folders)."""
        store = self._store
        store.notes.extend(folders.words)
        listed = []
        for folder in folders.log:
            if store.reading.is_folder(folder):
                listed.append(folder)
            elif len(folders.log) > 1:
                store.notes.append(sentence("storePathCommitLog names {folder}, which is not here", folder=folder))
        return tuple(listed) if listed else (folders.root / LOG_FOLDER,)


def _may_be_of_a_log(head: bytes) -> bool:
    """Return True if the first bytes of a file are a unit's or were never written."""
    return begins_with_unit(head) or wraps_message(head) or not any(head)


def _head_of(file: ReadOnlyFile) -> bytes:
    """The first bytes of a file of the log; none if they cannot be read."""
    with contextlib.suppress(CannotRead):
        return file.read(0, HEAD_BYTES)
    return b""
