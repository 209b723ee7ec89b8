"""A store directory opened for reading: its log, queues, index files, positions and tables.

Creates, locks and writes nothing in or next to the store; a broker may keep writing. Only the lists of files and queues
grow with the store.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from engine.capsule.recognition import LEFT_OUT, NOT_WRITTEN, CapsuleIsReadOnly, is_capsule
from engine.codec.checkpoint import Checkpoint
from engine.codec.checkpoint import decode as decode_checkpoint
from engine.codec.unit_scan import Item, Stop
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, Undecoded, UsageError
from engine.files.layout import StorePaths
from engine.files.store_folders import settle_folders
from engine.inspection import undecoded
from engine.inspection.compaction import CompactedQueue, compacted_at, list_compacted
from engine.inspection.index_reader import IndexReader
from engine.inspection.log_reader import LogReader
from engine.inspection.opening import Kind, LockState, Opening, lock_state, recognise, remote_lock_state
from engine.inspection.queue_folders import QueueFolders
from engine.inspection.queue_reader import QueueReader
from engine.inspection.rocksdb_rows import RocksRows, is_row_subject
from engine.inspection.rocksdb_tables import RocksTables
from engine.inspection.store_geometry import Geometry, configured_size, find_geometry
from engine.inspection.store_index import StoreIndex
from engine.inspection.store_log import StoreLog
from engine.inspection.store_queues import StoreQueues
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.mapped.reading import Reading, Unread, read_through
from engine.releases import Release
from engine.rules.compatibility import QueueSource
from engine.rules.undecoded import TABLE_SUBJECTS, Subject, UndecodedPart, part_that_forbids_writing
from engine.sentences import sentence
from engine.ssh.address import NOT_WRITTEN as FAR_STORE
from engine.ssh.address import is_ssh_address, parse_address
from engine.store.tiered import TieredStore, folder_without_table, open_tiered

if TYPE_CHECKING:
    from engine.capsule.capsule_disk import CapsuleDisk
    from engine.inspection.key_trace import Traced
    from engine.inspection.positions import Positions
    from engine.patching.patched_disk import PatchedDisk
    from engine.patching.patches import Patch
    from engine.ssh.remote_disk import RemoteDisk
    from engine.store.written_release import WrittenRelease

SMALL_FILE_MAX_BYTES = 64 << 20
"""Maximum bytes of a checkpoint, marker or table that are read."""


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
        self.descriptors = DescriptorCache(reading=self.reading)
        """Files that are open, shared by all readers of this store."""
        self._undecoded: tuple[UndecodedPart, ...] | None = None
        self._answering: dict[Subject, UndecodedPart | None] = {}
        self.rocksdb_tables = RocksTables(self)
        """Tables that the broker keeps in a RocksDB."""
        self.rocksdb_rows = RocksRows(self)
        """Waiting timers, open transactions and popped messages that the broker keeps in a RocksDB."""
        self._compacted: list[CompactedQueue] | None = None
        self._tiered: tuple[TieredStore | None] | None = None
        self._priority_topics: frozenset[str] | None = None
        self.guessed_release: tuple[WrittenRelease | None] | None = None
        """The release that probably wrote the store; None if it was not guessed since :meth:`refresh`."""
        self._geometry: Geometry | None = None
        self.queue_folders = QueueFolders(self)
        """The queues with a folder, whether a broker uses them or not."""
        self.queues = StoreQueues(self)
        """The queues that a broker would use."""
        self.index = StoreIndex(self)
        """The index, in files or in a RocksDB."""
        self.commit_log = StoreLog(self, opening)
        """Files and end of the commit log; :attr:`log` reads them."""
        self.commit_log.follow_dledger()
        if self.paths is not None and not self.reading.exists(self.paths.commitlog):
            has_other_log = self.commit_log.dledger is not None or self.undecoded_part("log") is not None
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
        self.queues.close()
        self.index.close()
        self.commit_log.close()
        self.descriptors.close()
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
        file = self.commit_log.reader.sequence.find(offset)
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
        self.commit_log.follow_dledger()
        self.rocksdb_tables.forget()
        self.rocksdb_rows.forget()
        if NO_LOG_FOLDER in self.notes and self.paths is not None and self.reading.exists(self.paths.commitlog):
            self.notes.remove(NO_LOG_FOLDER)
        self._geometry = None
        self._compacted = None
        self._tiered = None
        self._priority_topics = None
        self.guessed_release = None
        changed = self.queues.refresh()
        changed |= self.commit_log.refresh()
        changed |= self.index.refresh()
        changed |= self.queue_folders.refresh()
        return changed

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
        if subject != "queues" or self.queues.rocksdb is None:
            return part.reason(subject)
        try:
            self.queues.require()
        except CannotRead as error:
            return error.what
        return None

    # -- what scripts ask

    def units(self, start: int | None = None, stop: int | None = None, crc: bool = True) -> Iterator[Item | Stop]:
        """Every unit, blank and span of damage from offset ``start`` on, last a stop with the reason."""
        return self.log.walk(start, stop, crc)

    def topics(self) -> dict[str, dict[int, QueueReader]]:
        """Topic → queue id → queue, for every queue in files (:meth:`StoreQueues.in_files`)."""
        return self.queues.in_files()

    def queue(self, topic: str, queue_id: int) -> QueueReader | None:
        """Return the queue in files; None if it has no folder (:meth:`StoreQueues.find_in_files`)."""
        return self.queues.find_in_files(topic, queue_id)

    def index_files(self) -> list[IndexReader]:
        """The index files, oldest first (:meth:`StoreIndex.files`)."""
        return self.index.files()

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

    # -- parts

    @property
    def log(self) -> LogReader:
        """The commit log's files, with those of a DLedger log.

        Each access notes a DLedger log that cannot be read as undecoded.
        """
        self.note_undecoded("log")
        return self.commit_log.reader

    def compacted_queues(self) -> list[CompactedQueue]:
        """The queues of compacted topics, by topic and queue id. Raises :class:`CannotRead`."""
        queues = self._compacted  # another thread may refresh meanwhile
        if queues is None:
            queues = [] if self.paths is None else list_compacted(self.path, self.descriptors)
            self._compacted = queues
        return queues

    def compacted_files(self, topic: str, queue_id: int) -> CompactedQueue:
        """The compacted queue of this name, whether it has files or not."""
        return compacted_at(self.path, topic, queue_id, self.descriptors)

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
                open_tiered(self.paths, self.config, self.descriptors) if self.paths is not None else None,
            )
        return tiered[0]

    @property
    def tiered_folder_without_table(self) -> Path | None:
        """The folder of tiered storage if the table of its files is lost, else None. Raises :class:`CannotRead`."""
        return folder_without_table(self.paths, self.config, self.descriptors) if self.paths is not None else None

    def timer_log(self) -> FileSequence | None:
        """The files of the timer log; None for a part of a store."""
        return FileSequence((self.paths.timerlog,), self.descriptors) if self.paths is not None else None

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

    @property
    def geometry(self) -> Geometry:
        """Sizes of files and index tables, and the source of each."""
        geometry = self._geometry  # another thread may refresh meanwhile
        if geometry is None:
            geometry = self._geometry = find_geometry(self)
        return geometry

    def configured_size(self, key: str) -> int | None:
        """Return the configured value of a size; None if it is not configured."""
        return configured_size(self.config, key)
