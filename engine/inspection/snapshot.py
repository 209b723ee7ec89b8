"""A store directory opened for reading: its log, queues, index files, positions and tables.

Creates, locks and writes nothing in or next to the store; a broker may keep writing. Only the lists of files and queues
grow with the store.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from engine.capsule.recognition import LEFT_OUT, NOT_WRITTEN, CapsuleIsReadOnly, is_capsule
from engine.codec import index as index_codec
from engine.codec.checkpoint import Checkpoint
from engine.codec.checkpoint import decode as decode_checkpoint
from engine.codec.dledger import HEAD_BYTES, begins_with_unit, wraps_message
from engine.codec.lite_topics import listing_key
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.codec.unit_scan import Item, Stop
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, MissingExtra, Undecoded, UsageError
from engine.files.layout import StorePaths, parse_file_name
from engine.files.store_folders import LOG_FOLDER, StoreFolders, settle_folders
from engine.inspection import undecoded
from engine.inspection.compaction import CompactedQueue, compacted_at, list_compacted
from engine.inspection.dledger import DLedgerLog, find_folders, find_remains
from engine.inspection.index_reader import IndexReader, index_geometry, list_index, misnamed, stored_count
from engine.inspection.log_reader import LogReader
from engine.inspection.opening import Kind, LockState, Opening, lock_state, recognise, remote_lock_state
from engine.inspection.queue_reader import QueueReader
from engine.inspection.rocksdb_index import RocksIndex
from engine.inspection.rocksdb_queue import RocksQueueReader, RocksQueues
from engine.inspection.rocksdb_rows import RocksRows, is_row_subject
from engine.inspection.rocksdb_tables import RocksTables
from engine.mapped.read_only import DescriptorCache, FileSequence, LogFiles, LoneFile, ReadOnlyFile
from engine.mapped.reading import Reading, Unread, read_through
from engine.releases import Release
from engine.rules.compatibility import QueueSource
from engine.rules.queue_sides import reads_light_from_rocksdb
from engine.rules.undecoded import TABLE_SUBJECTS, Subject, UndecodedPart, part_that_forbids_writing
from engine.sentences import plural, sentence
from engine.ssh.address import NOT_WRITTEN as FAR_STORE
from engine.ssh.address import is_ssh_address, parse_address
from engine.store.tiered import TieredQueue, TieredStore, folder_without_table, open_tiered
from engine.system_names import LMQ_PREFIX

if TYPE_CHECKING:
    from engine.capsule.capsule_disk import CapsuleDisk
    from engine.inspection.key_trace import Traced
    from engine.inspection.positions import Positions
    from engine.patching.patched_disk import PatchedDisk
    from engine.patching.patches import Patch
    from engine.ssh.remote_disk import RemoteDisk
    from engine.store.written_release import WrittenRelease

AnyQueue = QueueReader | RocksQueueReader
"""A queue in files or in a RocksDB, for readers that need no files."""
_FOR_QUEUES: tuple[Subject, ...] = ("log", "queues")
"""Subjects that must be decoded before a queue can be used."""
SETTLED_BYTES = 8 << 30
"""Maximum bytes of the log that are walked to find where a recovery would end."""
MAX_GEOMETRY_FILES = 16
"""Index files that are asked for the numbers of slots and entries, fullest first: the first ones may be damaged."""
SMALL_FILE_MAX_BYTES = 64 << 20
"""Maximum bytes of a checkpoint, marker or table that are read."""
_ATTRIBUTES = {
    "mappedFileSizeCommitLog": "mapped_file_size_commit_log",
    "mappedFileSizeConsumeQueue": "consume_queue_file_size",  # as the broker rounds it
    "mapperFileSizeBatchConsumeQueue": "mapper_file_size_batch_consume_queue",
    "maxHashSlotNum": "max_hash_slot_num",
    "maxIndexNum": "max_index_num",
}


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes that RocketMQ does not store, in bytes and counts, and the source of each."""

    commit_log_file_size: int
    consume_queue_file_size: int
    index: index_codec.Geometry | None
    sources: dict[str, str]


def open_store(
    path: str | Path, config: MessageStoreConfig | None = None, patches: Iterable[Patch] = ()
) -> StoreSnapshot:
    """Open a store, a directory above one, a commitlog folder, one file of a log, or a capsule, for reading only.

    ``ssh://USER@HOST/path`` names a store on another machine.
    With ``patches``, or inside :func:`read_as_patched`, it is read as they would leave it; their files are below the
    store's own folder.

    Raises :class:`NotAStore` with what is there instead, :class:`CannotRead` without the necessary rights,
    :class:`engine.patching.patches.BadPatch` if a patch does not fit to the store,
    :class:`engine.capsule.container.BadCapsule` if a capsule is damaged.
    """
    if is_ssh_address(path):
        return _open_on_machine(path, config, tuple(patches))
    if is_capsule(path):
        return _open_capsule(path, config, tuple(patches))
    opening = recognise(path, reading := Reading())
    patches = tuple(patches) or _patches_of(opening.path)
    return _open_patched(opening, config, patches) if patches else StoreSnapshot(opening, config, reading)


_patched: ContextVar[tuple[Path, tuple[Patch, ...]] | None] = ContextVar("patched_store", default=None)


@contextlib.contextmanager
def read_as_patched(path: Path, patches: Iterable[Patch]) -> Iterator[None]:
    """Let :func:`open_store` read the store at ``path`` as ``patches`` would leave it.

    A call with patches of its own reads those; other stores are read as they are.
    """
    token = _patched.set((path, tuple(patches)))
    try:
        yield
    finally:
        _patched.reset(token)


def _patches_of(path: Path) -> tuple[Patch, ...]:
    patched = _patched.get()
    return patched[1] if patched is not None and patched[0] == path else ()


def _open_patched(opening: Opening, config: MessageStoreConfig | None, patches: Iterable[Patch]) -> StoreSnapshot:
    from engine.patching.patched_disk import PatchedDisk
    from engine.patching.patches import BadPatch

    if opening.kind != "store":
        raise BadPatch(sentence("patches need a store, not a part of one"), file=str(opening.path))
    disk = PatchedDisk(opening.path, patches)
    try:
        with read_through(disk):
            snapshot = StoreSnapshot(recognise(opening.path, reading := Reading()), config, reading)
    except BaseException:
        disk.close()
        raise
    snapshot.patched_disk = disk
    return snapshot


def _open_capsule(path: str | Path, config: MessageStoreConfig | None, patches: tuple[Patch, ...]) -> StoreSnapshot:
    from engine.capsule.capsule_disk import CapsuleDisk

    if patches:
        raise CapsuleIsReadOnly(str(path))
    disk = CapsuleDisk(path)
    try:
        with read_through(disk):
            snapshot = StoreSnapshot(Opening("store", Path(path), notes=(disk.note,)), config, Reading())
    except BaseException:
        disk.close()
        raise
    snapshot.capsule = disk
    return snapshot


def _open_on_machine(path: str | Path, config: MessageStoreConfig | None, patches: tuple[Patch, ...]) -> StoreSnapshot:
    address = parse_address(path)
    if patches:
        raise UsageError(FAR_STORE, file=str(address))
    from engine.ssh.remote_disk import RemoteDisk

    disk = RemoteDisk(address)
    try:
        with read_through(disk):
            opening = recognise(address.root, reading := Reading())
            snapshot = StoreSnapshot(replace(opening, notes=(disk.note, *opening.notes)), config, reading)
    except BaseException:
        disk.close()
        raise
    snapshot.remote_disk = disk
    return snapshot


NO_LOG_FOLDER = sentence("The store has no commitlog folder")


class StoreSnapshot:
    """The contents of a store's files. :meth:`refresh` reads them again; safe to read from several threads.

    Everything is read through :attr:`reading`. Files that it could not read are listed in :attr:`unread`; nothing may
    be concluded from them.
    """

    def __init__(
        self, opening: Opening, config: MessageStoreConfig | None = None, reading: Reading | None = None
    ) -> None:
        self.reading = reading or Reading()
        self.kind: Kind = opening.kind
        self.path = opening.path
        self.config = config
        self.release: Release | None = None
        """The requested release (--release); None: the one that probably wrote the store."""
        self.queue_source: QueueSource | None = None
        """The queues of a supposed storage mode; set it before the first question. None: those of the store's mode."""
        self.patched_disk: PatchedDisk | None = None
        """Where patches are laid over the store's files; None if the store is read as it is."""
        self.capsule: CapsuleDisk | None = None
        """The capsule that is read as a store: it has no bodies, and nothing is written into it. None for a store."""
        self.remote_disk: RemoteDisk | None = None
        """The other machine that the store is on; None for a store of this machine."""
        self.notes = list(opening.notes)
        self.paths = StorePaths(opening.path) if opening.kind == "store" else None
        self.folders = settle_folders(opening.path, config, reading=True) if opening.kind == "store" else None
        """Folders of the store, and configured folders that were not followed; None for a part of a store."""
        self._cache = DescriptorCache(reading=self.reading)
        self._topics: dict[str, dict[int, QueueReader]] | None = None
        self._undecoded: tuple[UndecodedPart, ...] | None = None
        self._answering: dict[Subject, UndecodedPart | None] = {}
        self._rocksdb_queues: RocksQueues | None = None
        self._rocksdb_beside: RocksQueues | None = None
        self._rocksdb_index: RocksIndex | None = None
        self.rocksdb_tables = RocksTables(self)
        """Tables that the broker keeps in a RocksDB."""
        self.rocksdb_rows = RocksRows(self)
        """Waiting timers, open transactions and popped messages that the broker keeps in a RocksDB."""
        self._unlisted: CannotRead | None = None
        self.topics_of_both_kinds: frozenset[str] = frozenset()
        """Topics with a queue that has a folder of each kind; :meth:`topics` returns only one of them."""
        self._any_ext = False
        self._listing = threading.Lock()
        self._index: list[IndexReader] | None = None
        self._index_trouble: CannotRead | None = None
        self._compacted: list[CompactedQueue] | None = None
        self._tiered: tuple[TieredStore | None] | None = None
        self._priority_topics: frozenset[str] | None = None
        self.guessed_release: tuple[WrittenRelease | None] | None = None
        """The release that probably wrote the store; None if it was not guessed since :meth:`refresh`."""
        self._geometry: Geometry | None = None
        self._settled = False
        self._settle_start: int | None = None
        self._dledger: DLedgerLog | None = None
        self._log = LogReader(self._log_sequence(opening), self._newest_entries)
        self._classic_folders = self._log.sequence.folders
        self._follow_dledger()
        if self.paths is not None and not self.reading.exists(self.paths.commitlog):
            has_other_log = self.dledger is not None or self.undecoded_part("log") is not None
            self.notes += [] if has_other_log else [NO_LOG_FOLDER]

    def __repr__(self) -> str:
        return f"StoreSnapshot({str(self.path)!r}, read-only)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every file that is open."""
        if self._rocksdb_queues is not None:
            self._rocksdb_queues.close()
        if self._rocksdb_beside is not None:
            self._rocksdb_beside.close()
        if self._rocksdb_index is not None:
            self._rocksdb_index.close()
        self._log.close()
        self._cache.close()
        if self.patched_disk is not None:
            self.patched_disk.close()
        if self.capsule is not None:
            self.capsule.close()
        if self.remote_disk is not None:
            self.remote_disk.close()

    @property
    def config_words(self) -> str | None:
        """The options by which a command takes the same configuration; None without a file."""
        config = self.config
        if config is None or config.file is None:
            return None
        words = f"--config {shlex.quote(config.file)}"
        if config.paths_from_config:
            return f"{words} --paths-from-config"
        if config.paths_left_out or (self.folders is not None and self.folders.outside):
            return f"{words} --ignore-config-paths"
        return words

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Files that could not be read since the last :meth:`refresh`."""
        return self.reading.unread

    @property
    def undecoded(self) -> tuple[UndecodedPart, ...]:
        """Folders that are recognised and not decoded (:mod:`engine.rules.undecoded`)."""
        parts = self._undecoded  # another thread may refresh meanwhile
        if parts is None:
            parts = () if self.paths is None else undecoded.undecoded_parts(self.reading, self.paths.root)
            self._undecoded = parts
        return parts

    def undecoded_part(self, subject: Subject) -> UndecodedPart | None:
        """The undecoded part that a question about ``subject`` needs; None if it can be answered."""
        answering = self._answering  # another thread may refresh meanwhile
        if subject not in answering:
            answering[subject] = undecoded.part_needed_for(self, subject)
        return answering[subject]

    @property
    def writing_refusal(self) -> str:
        """Why nothing is ever written into this store, nor into a copy of it: a part that is not decoded; else ""."""
        if self.capsule is not None:
            return NOT_WRITTEN
        if self.remote_disk is not None:
            return FAR_STORE
        part = part_that_forbids_writing(self.undecoded)
        return "" if part is None else part.refusal

    def note_undecoded(self, subject: Subject) -> Undecoded | None:
        """Note that a question about ``subject`` cannot be answered, and return the error; None if it can."""
        part = self.undecoded_part(subject)
        if part is None:
            return None
        return self.reading.note_undecoded(self.path / part.folder, part.reason(subject))

    def require_bodies(self) -> None:
        """Raise :class:`UsageError` if this is a capsule, which has no bodies."""
        if self.capsule is not None:
            raise UsageError(sentence("a capsule has no bodies: this question needs them"), file=str(self.path))

    def note_body_left_out(self, offset: int) -> None:
        """Note that a question needs the body of the unit at ``offset``, which the capsule does not have."""
        file = self._log.sequence.find(offset)
        self.reading.note(str(self.path) if file is None else file.path, LEFT_OUT, "read")

    def require(self, *subjects: Subject) -> None:
        """Raise :class:`Undecoded` if a question about one of ``subjects`` cannot be answered."""
        for subject in subjects:
            error = self.note_undecoded(subject)
            if error is not None:
                raise error

    def refuse_unread(self, why: str) -> None:
        """Raise :class:`CannotRead` if something could not be read; do nothing if everything was readable.

        The error names the first unreadable file, and the reason ``why`` that matters.
        """
        self.reading.refuse(why)

    def refresh_if_vanished(self) -> bool:
        """Refresh the directory if all unreadable files disappeared since they were listed; returns True then.

        These files are forgotten.

        A running broker deletes and recreates files in this way.
        """
        unread = self.unread
        if (
            not unread
            or not all(self.reading.has_vanished(entry) for entry in unread)
            or not self.reading.exists(self.path)
        ):
            return False
        self.reading.drop_unread(unread)
        self.refresh()
        return True

    def refresh(self) -> bool:
        """List the directory again. Return True if its files changed.

        That is the case if files of the log, queues or index appeared, vanished, changed their length, or were replaced
        under the same name.

        Bytes written into files that keep their length, as a broker does, do not count as a change; offsets are
        computed again when they are read after a refresh.
        """
        self.reading.forget()
        self._undecoded = None
        self._answering = {}
        self._follow_dledger()
        self.rocksdb_tables.forget()
        self.rocksdb_rows.forget()
        if self._rocksdb_index is not None:
            self._rocksdb_index.forget()
        changed = self._rocksdb_queues is not None and self._rocksdb_queues.refresh()
        if self._rocksdb_beside is not None:
            self._rocksdb_beside.refresh()
        if NO_LOG_FOLDER in self.notes and self.paths is not None and self.reading.exists(self.paths.commitlog):
            self.notes.remove(NO_LOG_FOLDER)
        changed |= self._log.refresh()
        self._settled = False
        self._settle_start = None
        self._geometry = None
        self._compacted = None
        self._tiered = None
        self._priority_topics = None
        self.guessed_release = None
        old_index, self._index = self._index, None
        if old_index is not None:
            changed |= self._forget_index(old_index)
        if self._topics is not None:
            old_readers = {q.sequence.folders[0]: q for queues in self._topics.values() for q in queues.values()}
            for reader in old_readers.values():
                changed |= reader.refresh()
            self._topics = self._list_topics(old_readers)
            changed |= old_readers.keys() != {q.sequence.folders[0] for q in self._all_queues()}
        return changed

    def _forget_index(self, old_index: list[IndexReader]) -> bool:
        now = [(i.path, i.size, i.file.identity) for i in self.index_files()]
        for path in {i.path for i in old_index} - {path for path, _, _ in now}:
            self._cache.forget(path)
        return now != [(i.path, i.size, i.file.identity) for i in old_index]

    # -- answers

    def trace(
        self, topic: str, key: str, begin: int = 0, end: int = (1 << 63) - 1, max_count: int = 32
    ) -> Iterator[Traced]:
        """A key's way through the index to its units; window in ms (see :mod:`engine.inspection.key_trace`)."""
        from engine.inspection.key_trace import trace

        return trace(self, topic, key, begin, end, max_count)

    def positions(self) -> Positions:
        """Every position that the files reveal (see :mod:`engine.inspection.positions`)."""
        from engine.inspection.positions import positions

        return positions(self)

    # -- commit log

    @property
    def dledger(self) -> DLedgerLog | None:
        """The DLedger log with the store's messages; None if the log is a commit log alone."""
        return self._dledger

    def _follow_dledger(self) -> None:
        """Let the log include the data files of a DLedger log."""
        sequence = self._log.sequence
        if self.paths is None:
            first_file = next((file for file in sequence.files if any(head_of(file))), None)
            if first_file is not None and wraps_message(head_of(first_file)):
                self._log.entry_folders = frozenset({first_file.path.rpartition(os.sep)[0]})
            return
        folders = find_folders(self)
        if folders is None:
            self._dledger = None
        elif self._dledger is None or self._dledger.folders != folders:
            self._dledger = DLedgerLog(self, folders)
        else:
            self._dledger.index.refresh()
        self._log.entry_folders = frozenset() if folders is None else frozenset({str(folders.data)})
        with_entries = () if folders is None or folders.data in self._classic_folders else (folders.data,)
        if sequence.folders != (*self._classic_folders, *with_entries):
            sequence.folders = (*self._classic_folders, *with_entries)
            sequence.last_folder = with_entries[0] if with_entries else None
            sequence.refresh()
        remains_from = None
        if self._dledger is not None:
            with contextlib.suppress(CannotRead):  # ``reading`` has noted it
                remains_from = find_remains(self._log, self._dledger)
        # Set in one step: another thread that reads the log meanwhile must not walk over the replaced entries.
        self._log.remains_from = remains_from

    @property
    def log(self) -> LogReader:
        """The commit log's files, with those of a DLedger log.

        Each access notes a DLedger log that cannot be read as undecoded.
        """
        self.note_undecoded("log")
        return self._log

    def units(self, start: int | None = None, stop: int | None = None, crc: bool = True) -> Iterator[Item | Stop]:
        """Every unit, blank and span of damage from offset ``start`` on, last a stop with the reason."""
        return self.log.walk(start, stop, crc)

    @property
    def settle_start(self) -> int:
        """Return the offset at which the recovery of the store's release begins to read.

        As :mod:`engine.releases` says: of the files less than :data:`SETTLED_BYTES` bytes before the newest one that a
        queue entry points into (docs/formats/recovery.md#log). Raises :class:`CannotRead`.
        """
        start = self._settle_start  # another thread may refresh meanwhile
        if start is None:
            offset, size = self._newest_entry()
            number = max(self.log.sequence.position_of(offset), 0)
            start = self.log.files[number].start_offset if self.log.files else 0
            if self.log.files and self.paths is not None:
                from engine.inspection.recovery import start_offset

                start = start_offset(self, offset + size, start - SETTLED_BYTES)
            self._settle_start = start
        return start

    def _newest_entry(self) -> tuple[int, int]:
        """Return offset and size (bytes) of the newest entry of all queues.

        If queues are not decoded it is the start of the last log file.

        Raises :class:`CannotRead`.
        """
        if any(self.undecoded_part(subject) is not None for subject in _FOR_QUEUES):
            return (self.log.files[-1].start_offset, 0) if self.log.files else (0, 0)
        self.require_queue_files()
        return max(filter(None, (queue.newest() for queue in self._all_queues())), default=(0, 0))

    def settle_log_end(self) -> None:
        """Set the end of the log to where a broker's recovery would end; done once.

        Bad bodies are included (docs/formats/recovery.md#log).

        Walks the log from :attr:`settle_start` on with its CRCs. A long walk runs in another thread: its read errors
        are raised to readers of the end. Offsets of queues follow from the end.
        """
        if self._settled or not self.log.files:
            return
        self._settled = True
        if self.dledger is not None:
            self.log.settle_by(self._end_of_entries)
        else:
            self.log.settle(self.settle_start)
        for queue in self._all_queues():
            queue.forget_bounds()
        if self._rocksdb_queues is not None:
            self._rocksdb_queues.forget_bounds()

    def _end_of_entries(self) -> int:
        """The end of the entries that a start keeps. Raises :class:`CannotRead`."""
        from engine.inspection.recovery import dledger_source
        from engine.store.recovery.dledger import recover_entries

        source = dledger_source(self)
        return recover_entries(source).end_offset if source is not None and source.files else 0

    @property
    def log_folders(self) -> tuple[Path, ...]:
        """Folders of the commit log: more than one in a multi-path store."""
        return self._log.sequence.folders

    def _log_sequence(self, opening: Opening) -> FileSequence:
        if opening.kind == "file":
            return LoneFile(opening.path, opening.start_offset, self._cache)
        folders = (opening.path,) if self.folders is None else self._commit_log_folders(self.folders)
        file_size = self._configured_size("mappedFileSizeCommitLog")
        return LogFiles(folders, self._cache, file_size, _may_be_of_a_log)

    def _commit_log_folders(self, folders: StoreFolders) -> tuple[Path, ...]:
        """The folders of a multi-path commit log that are there, else ``commitlog`` (docs/formats/files.md#folders)."""
        self.notes.extend(folders.words)
        listed = []
        for folder in folders.log:
            if self.reading.is_folder(folder):
                listed.append(folder)
            elif len(folders.log) > 1:
                self.notes.append(sentence("storePathCommitLog names {folder}, which is not here", folder=folder))
        return tuple(listed) if listed else (folders.root / LOG_FOLDER,)

    # -- queues in files or in a RocksDB

    def queues_by_topic(self) -> Mapping[str, Mapping[int, AnyQueue]]:
        """Topic → queue id → queue, for every queue that a broker would use, in files or in a RocksDB.

        Empty if they are unknown (:meth:`why_unknown`); the reading has a record then.
        """
        queues = self.rocksdb_queues
        light = self._light_queues_beside
        if queues is None and light is None:
            return self.topics()
        try:
            if queues is None and light is not None:
                return self._with_light_queues(light)
            assert queues is not None
            return queues.by_topic()
        except CannotRead as error:
            self._note_rocksdb(error)
            return {}

    def find_queue(self, topic: str, queue_id: int) -> AnyQueue | None:
        """The queue, in files or in a RocksDB; None if there is none.

        Raises :class:`CannotRead` if it may be in a part that cannot be read.
        """
        queues = self.rocksdb_queues
        if queues is None and topic.startswith(LMQ_PREFIX):
            queues = self._light_queues_beside
            if queues is not None:
                return queues.by_topic().get(topic, {}).get(queue_id)
        if queues is None:
            return self.queue(topic, queue_id)
        self.require_queues()
        return queues.by_topic().get(topic, {}).get(queue_id)

    def queues_with_moved(self) -> Mapping[str, Mapping[int, AnyQueue]]:
        """:meth:`queues_by_topic`, and a queue without files for each that only tiered storage has."""
        queues = self.queues_by_topic()
        tiered = [] if self.tiered is None else self.tiered.queues
        moved = [queue for queue in tiered if queue.queue_id not in queues.get(queue.topic, {})]
        if not moved:
            return queues
        merged = {topic: dict(by_id) for topic, by_id in queues.items()}
        for queue in moved:
            reader = self._queue_without_files(queue)
            if reader is not None:
                merged.setdefault(queue.topic, {})[queue.queue_id] = reader
        return {topic: dict(sorted(merged[topic].items())) for topic in sorted(merged, key=listing_key)}

    def find_queue_with_moved(self, topic: str, queue_id: int) -> AnyQueue | None:
        """:meth:`find_queue`, or a queue without files if only tiered storage has it. Raises :class:`CannotRead`."""
        queue = self.find_queue(topic, queue_id)
        if queue is not None or self.tiered is None:
            return queue
        moved = self.tiered.queue(topic, queue_id)
        return None if moved is None else self._queue_without_files(moved)

    def _queue_without_files(self, moved: TieredQueue) -> QueueReader | None:
        """None if tiered storage has no message of it, or if its topic cannot be the name of a folder."""
        if self.paths is None or not moved.max_offset or moved.topic in {".", ".."} or "/" in moved.topic:
            return None
        folder = self.paths.consumequeue / moved.topic / str(moved.queue_id)
        return self._queue_reader("simple", moved.topic, moved.queue_id, folder)

    def require_queues(self) -> None:
        """Raise :class:`CannotRead` if not every queue that a broker would use is known."""
        queues = self.rocksdb_queues
        if queues is None:
            self.require_queue_files()
            return
        try:
            queues.by_topic()
        except CannotRead as error:
            raise self._note_rocksdb(error) from error

    def why_unknown(self, subject: Subject) -> str | None:
        """The reason why questions about ``subject`` cannot be answered; None if they can, from files or a RocksDB."""
        part = self.undecoded_part(subject)
        if part is None:
            return None
        if subject in TABLE_SUBJECTS.values():
            names = (name for name, table_subject in TABLE_SUBJECTS.items() if table_subject == subject)
            return next((reason for name in names if (reason := self.rocksdb_tables.why_unknown(name))), None)
        if is_row_subject(subject):
            return self.rocksdb_rows.why_unknown(subject)
        if subject != "queues" or self.rocksdb_queues is None:
            return part.reason(subject)
        try:
            self.require_queues()
        except CannotRead as error:
            return error.what
        return None

    @property
    def rocksdb_queues(self) -> RocksQueues | None:
        """The RocksDB whose queues a broker would use; None if it would use files."""
        part = self.undecoded_part("queues")
        if part is None or part.format != "RocksDB" or self.undecoded_part("log") is not None:
            return None
        if part.may_hold_queues:
            return None
        folder = self.path / part.folder
        queues = self._rocksdb_queues  # another thread may set it meanwhile
        if queues is None or queues.folder != folder:
            queues = self._rocksdb_queues = self._rocks_queues(folder)
        return queues

    @property
    def begins_rocksdb(self) -> bool:
        """Return True if the next start makes a new RocksDB for all queues.

        A storage mode with one is supposed, or the configuration names it and the store has no queues.
        """
        if self.queue_source is not None:
            return self.queue_source == "new rocksdb"
        config = self.config
        is_configured = config is not None and "storeType" in config.given and config.store_type == "defaultRocksDB"
        return is_configured and self.undecoded_part("queues") is None and not self._file_queues()

    def _rocks_queues(self, folder: Path) -> RocksQueues:
        levels = DEFAULT_DELAY_LEVELS if self.config is None else self.config.delay_levels()
        return RocksQueues(folder, self.reading, self._log, lambda: self.lock_state == "held", levels)

    @property
    def rocksdb_beside_files(self) -> RocksQueues | None:
        """The queues in a RocksDB next to queues in files, whichever of them a broker uses; None without both."""
        parts = (part for part in self.undecoded if part.beside_files and part.holds_data)
        part = next((part for part in parts if part.format == "RocksDB" and "queues" in part.subjects), None)
        if part is None or self.undecoded_part("log") is not None:
            return None
        if self.rocksdb_queues is not None:
            return self.rocksdb_queues
        queues = self._rocksdb_beside  # another thread may set it meanwhile
        if queues is None or queues.folder != self.path / part.folder:
            queues = self._rocksdb_beside = self._rocks_queues(self.path / part.folder)
        return queues

    @property
    def _light_queues_beside(self) -> RocksQueues | None:
        """The RocksDB in which the broker has its light queues, if all others that it reads are in files."""
        if not reads_light_from_rocksdb(self.config, self.release) or self.rocksdb_queues is not None:
            return None
        return self.rocksdb_beside_files

    def _with_light_queues(self, light: RocksQueues) -> Mapping[str, Mapping[int, AnyQueue]]:
        """:meth:`topics`, with the light queues of the RocksDB ``light``. Raises :class:`CannotRead`."""
        merged: dict[str, Mapping[int, AnyQueue]] = {
            topic: queues for topic, queues in self.topics().items() if not topic.startswith(LMQ_PREFIX)
        }
        merged |= {topic: queues for topic, queues in light.by_topic().items() if topic.startswith(LMQ_PREFIX)}
        return {topic: merged[topic] for topic in sorted(merged, key=listing_key)}

    def _note_rocksdb(self, error: CannotRead) -> CannotRead:
        """The error to raise for queues in a RocksDB; without the extra, as for a part that is not decoded."""
        part = self.undecoded_part("queues")
        if isinstance(error, MissingExtra) and part is not None:
            return self.reading.note_undecoded(self.path / part.folder, part.reason_without("queues", error.what))
        return error

    # -- queues in files

    def topics(self) -> dict[str, dict[int, QueueReader]]:
        """Topic → queue id → queue, for every queue with a folder; topics by name, queues by number.

        Light queues of lite topics follow their topic. Empty if the active queues are not decoded, or if the log that
        sets their ends is not decoded; the reading has a record then.
        """
        undecoded = any(self.note_undecoded(subject) is not None for subject in _FOR_QUEUES)
        return {} if undecoded else self._file_queues()

    def topics_in_files(self) -> dict[str, dict[int, QueueReader]]:
        """:meth:`topics`; empty if a broker reads its queues from a RocksDB."""
        if self.rocksdb_queues is not None:
            self.why_unknown("queues")  # notes queues that cannot be read
            return {}
        return self.topics()

    def file_topics(self) -> dict[str, dict[int, QueueReader]]:
        """:meth:`topics`; empty, and without a record, if a broker reads its queues from a RocksDB that is decoded."""
        return {} if self.rocksdb_queues is not None else self.topics()

    def listed_topics(self) -> frozenset[str]:
        """Names of the topics with a queue that the broker uses, in a folder or in a RocksDB."""
        if self.rocksdb_queues is not None or self._light_queues_beside is not None:
            return frozenset(self.queues_by_topic())
        return frozenset() if self.undecoded_part("queues") is not None else frozenset(self._file_queues())

    def topics_in_folders(self) -> dict[str, dict[int, QueueReader]]:
        """Topic → queue id → queue, for every queue with a folder, whether a broker uses these queues or not."""
        return self._file_queues()

    def _file_queues(self) -> dict[str, dict[int, QueueReader]]:
        """The file queues, whether a broker uses them or not. Concurrent callers share one listing."""
        topics = self._topics
        if topics is None:
            with self._listing:
                topics = self._topics
                if topics is None:
                    topics = self._topics = self._list_topics({})
        return topics

    def queue(self, topic: str, queue_id: int) -> QueueReader | None:
        """The queue, or None if it has no folder.

        Raises :class:`CannotRead` if it may be in a folder that could not be listed, or if it is not decoded.
        """
        reader = self.topics().get(topic, {}).get(queue_id)
        if reader is None:
            self.require_queue_files()
            if topic.startswith(LMQ_PREFIX):
                self._require_light_queues()
        return reader

    def queue_entries(self, topic: str, queue_id: int) -> QueueReader | None:
        """The entries of a queue beside a DLedger log, which is not decoded and decides how many of them are valid.

        None if the queue has no folder, if a broker reads its queues from a RocksDB, or if the log is decoded.
        """
        if self.note_undecoded("log") is None or self.undecoded_part("queues") is not None:
            return None
        queue = self._file_queues().get(topic, {}).get(queue_id)
        if queue is None:
            return None
        return QueueReader(topic, queue_id, queue.kind, queue.sequence, self.log, queue.ext, ends_with_log=False)

    def _require_light_queues(self) -> None:
        """Raise :class:`Undecoded` if a RocksDB exists next to the file queues: light queues may be only in it."""
        for part in self.undecoded:
            if "queues" in part.subjects:
                raise self.reading.note_undecoded(self.path / part.folder, part.reason("queues"))

    def require_queue_files(self) -> None:
        """Raise :class:`CannotRead` if a folder of queues could not be listed or is not decoded.

        Then no queue is known to be absent.
        """
        self.require(*_FOR_QUEUES)
        self.require_queue_folders()

    def require_queue_folders(self) -> None:
        """Raise :class:`CannotRead` if a folder of queues could not be listed, whether a broker uses them or not."""
        self._file_queues()
        if self._unlisted is not None:
            raise self._unlisted

    def _list_topics(self, old_readers: dict[Path, QueueReader]) -> dict[str, dict[int, QueueReader]]:
        topics: dict[str, dict[int, QueueReader]] = {}
        of_both_kinds: set[str] = set()
        self._unlisted = None
        if self.paths is None:
            return topics
        self._any_ext = self._may_hold(self.paths.consumequeue_ext)
        kinds: tuple[tuple[Literal["simple", "batch"], Path], ...] = (
            ("simple", self.paths.consumequeue),
            ("batch", self.paths.batchconsumequeue),
        )
        for kind, folder in kinds:
            for topic_folder in self._subfolders(folder):
                for queue_folder in self._subfolders(topic_folder, listed=True):
                    queue_id = parse_file_name(queue_folder.name)
                    if queue_id is None or queue_folder.name != str(queue_id):
                        continue  # a broker takes the number of a folder "00" and reads the folder "0"
                    reader = old_readers.get(queue_folder)
                    if reader is None or self._ext_has_changed(reader):
                        reader = self._queue_reader(kind, topic_folder.name, queue_id, queue_folder)
                    queues = topics.setdefault(topic_folder.name, {})
                    of_both_kinds |= {topic_folder.name} if queue_id in queues else set()
                    queues[queue_id] = reader
        self.topics_of_both_kinds = frozenset(of_both_kinds)
        return {topic: dict(sorted(topics[topic].items())) for topic in sorted(topics, key=listing_key)}

    def _subfolders(self, folder: Path, *, listed: bool = False) -> list[Path]:
        try:
            return self.reading.folders(folder, listed=listed)
        except CannotRead as error:
            self._unlisted = error
            return []

    def _queue_reader(self, kind: Literal["simple", "batch"], topic: str, queue_id: int, folder: Path) -> QueueReader:
        assert self.paths is not None
        name = "mappedFileSizeConsumeQueue" if kind == "simple" else "mapperFileSizeBatchConsumeQueue"
        sequence = FileSequence((folder,), self._cache, self._configured_size(name))
        ext_folder = self.paths.ext_folder(topic, queue_id)
        ext = FileSequence((ext_folder,), self._cache) if self._has_ext(kind, ext_folder) else None
        return QueueReader(topic, queue_id, kind, sequence, self.log, ext)

    def _ext_has_changed(self, reader: QueueReader) -> bool:
        assert self.paths is not None
        folder = self.paths.ext_folder(reader.topic, reader.queue_id)
        return self._has_ext(reader.kind, folder) != (reader.ext is not None)

    def _has_ext(self, kind: str, folder: Path) -> bool:
        return kind == "simple" and self._any_ext and self._may_hold(folder)

    def _may_hold(self, folder: Path) -> bool:
        """Return True if a folder exists or could not be examined: its files then report the error."""
        try:
            return self.reading.is_folder(folder)
        except CannotRead:
            return True

    def _all_queues(self) -> Iterator[QueueReader]:
        return (queue for queues in self._file_queues().values() for queue in queues.values())

    def newest_file_entries(self) -> list[tuple[int, int]]:
        """Offset and size (bytes) of the newest entry of each file queue, also of queues that no broker uses."""
        return self._newest_entries()

    def _newest_entries(self) -> list[tuple[int, int]]:
        """Hints for the end of the log; an unreadable queue gives none."""
        entries = []
        for queue in self._all_queues():
            with contextlib.suppress(CannotRead):
                entries.append(queue.newest())
        return [entry for entry in entries if entry is not None]

    def compacted_queues(self) -> list[CompactedQueue]:
        """The queues of compacted topics, by topic and queue id. Raises :class:`CannotRead`."""
        queues = self._compacted  # another thread may refresh meanwhile
        if queues is None:
            queues = [] if self.paths is None else list_compacted(self.path, self._cache)
            self._compacted = queues
        return queues

    def compacted_files(self, topic: str, queue_id: int) -> CompactedQueue:
        """The compacted queue of this name, whether it has files or not."""
        return compacted_at(self.path, topic, queue_id, self._cache)

    def compacted_queue(self, topic: str, queue_id: int) -> CompactedQueue | None:
        """One queue of a compacted topic; None if there is none. Raises :class:`CannotRead`."""
        named = (queue for queue in self.compacted_queues() if (queue.topic, queue.queue_id) == (topic, queue_id))
        return next(named, None)

    @property
    def priority_topics(self) -> frozenset[str]:
        """Topics of type PRIORITY; empty if the table of topics cannot be read."""
        names = self._priority_topics  # another thread may refresh meanwhile
        if names is None:
            from engine.inspection.tables import priority_topics

            names = frozenset()
            if self.rocksdb_tables.why_unknown("topics.json") is None:  # else only a column is missing: no failure
                with contextlib.suppress(CannotRead):
                    names = frozenset(priority_topics(self))
            self._priority_topics = names
        return names

    @property
    def tiered(self) -> TieredStore | None:
        """What the broker has copied to tiered storage; None if there is none. Raises :class:`CannotRead`."""
        tiered = self._tiered  # another thread may refresh meanwhile
        if tiered is None:
            tiered = self._tiered = (
                open_tiered(self.paths, self.config, self._cache) if self.paths is not None else None,
            )
        return tiered[0]

    @property
    def tiered_folder_without_table(self) -> Path | None:
        """The folder of tiered storage if the table of its files is lost, else None. Raises :class:`CannotRead`."""
        return folder_without_table(self.paths, self.config, self._cache) if self.paths is not None else None

    # -- index

    def index_files(self, *, note_undecoded: bool = True) -> list[IndexReader]:
        """The index files in the order of their names, oldest first.

        If there are none because the broker keeps its index in a RocksDB, the reading records that, if
        ``note_undecoded``.
        """
        files = self._index  # another thread may refresh meanwhile
        if files is None:
            files = self._index = self._list_index()
        if not files and note_undecoded:
            self.note_undecoded("index")
        return files

    @property
    def rocksdb_index(self) -> RocksIndex | None:
        """The index in a RocksDB, if the store has no index files and it can be read."""
        part = self.undecoded_part("index")
        if (
            self.index_files(note_undecoded=False)
            or part is None
            or part.format != "RocksDB"
            or self.undecoded_part("log") is not None
        ):
            return None
        index = self._rocksdb_index  # another thread may set it meanwhile
        if index is None:
            index = self._rocksdb_index = RocksIndex(self.path / part.folder, self.reading, self._log)
        return index if index.can_be_read() else None

    def require_index_files(self) -> None:
        """Raise :class:`CannotRead` if not all index files could be examined: then none is known to be absent."""
        if not self.index_files():
            self.require("index")
        if self._index_trouble is not None:
            raise self._index_trouble

    def misnamed_index_files(self, size: int) -> list[str]:
        """Files with an index file's ``size`` (bytes) in the index folder whose name is not a number."""
        return misnamed(self.paths.index, self._cache, size) if self.paths is not None and size else []

    def _list_index(self) -> list[IndexReader]:
        if self.paths is None:
            return []
        files, self._index_trouble = list_index(self.paths.index, self._cache)
        geometry, sources = self._index_geometry(files)
        size = geometry.file_size if geometry else -1
        readers = []
        for file in files:
            if file.size == size or geometry is None:
                readers.append(IndexReader(file, geometry, sources))
            else:
                readers.append(IndexReader(file, *index_geometry(file)))
        return readers

    def _index_geometry(self, files: list[ReadOnlyFile]) -> tuple[index_codec.Geometry | None, str]:
        slots, entries = self._configured_size("maxHashSlotNum"), self._configured_size("maxIndexNum")
        if slots and entries:
            return index_codec.Geometry(slots, entries), "the configuration says so"
        slots = self.capsule.index_slots if self.capsule is not None and self.capsule.masks_units else 0
        if slots and files:  # nothing behind the headers is in a masked capsule
            return index_codec.geometry_of_slots(slots, max(files, key=stored_count).size), "the capsule says so"
        answers: dict[tuple[index_codec.Geometry | None, str], int] = {}
        for file in sorted(files, key=stored_count, reverse=True)[:MAX_GEOMETRY_FILES]:
            answer = index_geometry(file)
            if answer[0] is not None:
                return answer
            answers[answer] = answers.get(answer, 0) + 1
        return max(answers, key=lambda a: answers[a]) if answers else (None, "there are no index files")

    # -- timers

    def timer_log(self) -> FileSequence | None:
        """The files of the timer log; None for a part of a store."""
        return FileSequence((self.paths.timerlog,), self._cache) if self.paths is not None else None

    # -- state files

    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint page, or None if there is none; raises :class:`StoreError` if it is invalid."""
        data = self.small_file(self.paths.checkpoint) if self.paths else None
        return decode_checkpoint(data) if data is not None else None

    @property
    def abort(self) -> bool:
        """True if the abort file exists: the store is open, or was not closed."""
        return self.paths is not None and self.reading.exists(self.paths.abort)

    @property
    def lock_state(self) -> LockState:
        """State of the store's lock: whether a process holds it (docs/formats/checkpoint.md)."""
        if self.capsule is not None:
            return self.capsule.lock_state
        if self.paths is None:
            return "absent"
        if self.remote_disk is not None:
            return remote_lock_state(self.reading, self.remote_disk.lock_state, self.paths.lock)
        return lock_state(self.reading, self.paths.lock)

    def small_file(self, path: Path) -> bytes | None:
        """Return the bytes of a marker, checkpoint or table; None if it does not exist.

        Raises :class:`CannotRead` without rights.
        """
        return self.reading.small(path, SMALL_FILE_MAX_BYTES)

    # -- sizes

    @property
    def geometry(self) -> Geometry:
        """Sizes of files and index tables, and the source of each."""
        geometry = self._geometry  # another thread may refresh meanwhile
        if geometry is None:
            geometry = self._geometry = self._find_geometry()
        return geometry

    def _find_geometry(self) -> Geometry:
        sources: dict[str, str] = {}
        log_size = self.log.sequence.file_size
        sources["mappedFileSizeCommitLog"] = self._size_source("mappedFileSizeCommitLog", log_size, len(self.log.files))
        sizes: dict[int, int] = {}
        for queues in self._file_queues().values():
            for queue in queues.values():
                if queue.kind == "simple" and queue.files:
                    sizes[queue.sequence.file_size] = sizes.get(queue.sequence.file_size, 0) + 1
        configured = self._configured_size("mappedFileSizeConsumeQueue") or 0
        queue_size = max(sizes, key=lambda s: sizes[s]) if sizes else configured
        sources["mappedFileSizeConsumeQueue"] = self._size_source(
            "mappedFileSizeConsumeQueue", queue_size, sum(sizes.values())
        )
        index = self.index_files()
        sources["maxHashSlotNum"] = index[0].geometry_source if index else "there are no index files"
        return Geometry(log_size, queue_size, index[0].geometry if index else None, sources)

    def _size_source(self, name: str, size: int, files: int) -> str:
        if self._configured_size(name):
            return "the configuration says so"
        if not size:
            return sentence("there are no files")
        return plural("the commonest length of {n:,} file", "the commonest length of {n:,} files", n=files)

    def _configured_size(self, key: str) -> int | None:
        """The configured value of a size; None if it is not configured."""
        if self.config is None or key not in self.config.given:
            return None
        value = getattr(self.config, _ATTRIBUTES[key])
        return int(value) if value else None


def _may_be_of_a_log(head: bytes) -> bool:
    """Return True if the first bytes of a file are a unit's or were never written."""
    return begins_with_unit(head) or wraps_message(head) or not any(head)


def head_of(file: ReadOnlyFile) -> bytes:
    """The first bytes of a file of the log; none if they cannot be read."""
    with contextlib.suppress(CannotRead):
        return file.read(0, HEAD_BYTES)
    return b""
