"""The queues that a broker would use, in files or in a RocksDB.

:mod:`engine.inspection.queue_folders` lists all queues with a folder. Which of them count depends on the store's mode,
on its RocksDB, and on the release.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec.lite_topics import listing_key
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.errors import CannotRead, MissingExtra
from engine.inspection.queue_reader import QueueReader
from engine.inspection.rocksdb_queue import RocksQueueReader, RocksQueues
from engine.rules.queue_sides import reads_light_from_rocksdb
from engine.rules.undecoded import Subject
from engine.system_names import LMQ_PREFIX

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.store.tiered import TieredQueue

AnyQueue = QueueReader | RocksQueueReader
"""A queue in files or in a RocksDB, for readers that need no files."""
SUBJECTS: tuple[Subject, ...] = ("log", "queues")
"""Subjects that must be decoded before a queue in files can be used."""


class StoreQueues:
    """The queues of a store as its broker would use them.

    ``…files`` and ``…file_queue`` answer for queues with a folder; the other methods for queues of both kinds.
    """

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._rocksdb: RocksQueues | None = None
        self._rocksdb_beside: RocksQueues | None = None

    def close(self) -> None:
        """Close the databases that are open."""
        for queues in filter(None, (self._rocksdb, self._rocksdb_beside)):
            queues.close()

    def refresh(self) -> bool:
        """Read the open databases again; return True if the queues that the broker uses changed."""
        has_changed = self._rocksdb is not None and self._rocksdb.refresh()
        if self._rocksdb_beside is not None:
            self._rocksdb_beside.refresh()
        return has_changed

    def forget_bounds(self) -> None:
        """Compute where each queue begins and ends again: the end of the log has changed."""
        for queue in self._store.queue_folders.readers():
            queue.forget_bounds()
        if self._rocksdb is not None:
            self._rocksdb.forget_bounds()

    # -- in files or in a RocksDB

    def by_topic(self) -> Mapping[str, Mapping[int, AnyQueue]]:
        """Topic → queue id → queue, for every queue that a broker would use.

        Empty if they are unknown (:meth:`StoreSnapshot.why_unknown`); the reading has a record then.
        """
        queues = self.rocksdb
        light = self._light_in_rocksdb
        if queues is None and light is None:
            return self.in_files()
        try:
            if queues is None and light is not None:
                return self._with_light_queues(light)
            assert queues is not None
            return queues.by_topic()
        except CannotRead as error:
            self._note_rocksdb(error)
            return {}

    def find(self, topic: str, queue_id: int) -> AnyQueue | None:
        """Return the queue; None if there is none.

        Raises :class:`CannotRead` if it may be in a part that cannot be read.
        """
        queues = self.rocksdb
        if queues is None and topic.startswith(LMQ_PREFIX):
            queues = self._light_in_rocksdb
            if queues is not None:
                return queues.by_topic().get(topic, {}).get(queue_id)
        if queues is None:
            return self.find_in_files(topic, queue_id)
        self.require()
        return queues.by_topic().get(topic, {}).get(queue_id)

    def topic_names(self) -> frozenset[str]:
        """Names of the topics with a queue that the broker uses."""
        if self.rocksdb is not None or self._light_in_rocksdb is not None:
            return frozenset(self.by_topic())
        is_undecoded = self._store.undecoded_part("queues") is not None
        return frozenset() if is_undecoded else frozenset(self._store.queue_folders.by_topic())

    def require(self) -> None:
        """Raise :class:`CannotRead` if not every queue that a broker would use is known."""
        queues = self.rocksdb
        if queues is None:
            self.require_files()
            return
        try:
            queues.by_topic()
        except CannotRead as error:
            raise self._note_rocksdb(error) from error

    # -- with those that were moved to tiered storage

    def by_topic_with_moved(self) -> Mapping[str, Mapping[int, AnyQueue]]:
        """:meth:`by_topic`, and a queue without files for each that only tiered storage has."""
        queues = self.by_topic()
        tiered = [] if self._store.tiered is None else self._store.tiered.queues
        moved = [queue for queue in tiered if queue.queue_id not in queues.get(queue.topic, {})]
        if not moved:
            return queues
        merged = {topic: dict(by_id) for topic, by_id in queues.items()}
        for queue in moved:
            reader = self._without_files(queue)
            if reader is not None:
                merged.setdefault(queue.topic, {})[queue.queue_id] = reader
        return {topic: dict(sorted(merged[topic].items())) for topic in sorted(merged, key=listing_key)}

    def find_with_moved(self, topic: str, queue_id: int) -> AnyQueue | None:
        """:meth:`find`, or a queue without files if only tiered storage has it. Raises :class:`CannotRead`."""
        queue = self.find(topic, queue_id)
        if queue is not None or self._store.tiered is None:
            return queue
        moved = self._store.tiered.queue(topic, queue_id)
        return None if moved is None else self._without_files(moved)

    def _without_files(self, moved: TieredQueue) -> QueueReader | None:
        """None if tiered storage has no message of it, or if its topic cannot be the name of a folder."""
        paths = self._store.paths
        if paths is None or not moved.max_offset or moved.topic in {".", ".."} or "/" in moved.topic:
            return None
        folder = paths.consumequeue / moved.topic / str(moved.queue_id)
        return self._store.queue_folders.reader_of("simple", moved.topic, moved.queue_id, folder)

    # -- in a RocksDB

    @property
    def rocksdb(self) -> RocksQueues | None:
        """The RocksDB whose queues a broker would use; None if it would use files."""
        store = self._store
        part = store.undecoded_part("queues")
        if part is None or part.format != "RocksDB" or store.undecoded_part("log") is not None:
            return None
        if part.may_hold_queues:
            return None
        folder = store.path / part.folder
        queues = self._rocksdb  # another thread may set it meanwhile
        if queues is None or queues.folder != folder:
            queues = self._rocksdb = self._rocks_queues(folder)
        return queues

    @property
    def begins_rocksdb(self) -> bool:
        """Return True if the next start makes a new RocksDB for all queues.

        A storage mode with one is supposed, or the configuration names it and the store has no queues.
        """
        store = self._store
        if store.queue_source is not None:
            return store.queue_source == "new rocksdb"
        config = store.config
        is_configured = config is not None and "storeType" in config.given and config.store_type == "defaultRocksDB"
        return is_configured and store.undecoded_part("queues") is None and not store.queue_folders.by_topic()

    @property
    def rocksdb_beside_files(self) -> RocksQueues | None:
        """The queues in a RocksDB next to queues in files, whichever of them a broker uses; None without both."""
        store = self._store
        parts = (part for part in store.undecoded if part.beside_files and part.holds_data)
        part = next((part for part in parts if part.format == "RocksDB" and "queues" in part.subjects), None)
        if part is None or store.undecoded_part("log") is not None:
            return None
        if self.rocksdb is not None:
            return self.rocksdb
        queues = self._rocksdb_beside  # another thread may set it meanwhile
        if queues is None or queues.folder != store.path / part.folder:
            queues = self._rocksdb_beside = self._rocks_queues(store.path / part.folder)
        return queues

    def _rocks_queues(self, folder: Path) -> RocksQueues:
        store = self._store
        levels = DEFAULT_DELAY_LEVELS if store.config is None else store.config.delay_levels()
        return RocksQueues(folder, store.reading, store.commit_log.reader, lambda: store.lock_state == "held", levels)

    @property
    def _light_in_rocksdb(self) -> RocksQueues | None:
        """The RocksDB in which the broker has its light queues, if all others that it reads are in files."""
        if not reads_light_from_rocksdb(self._store.config, self._store.release) or self.rocksdb is not None:
            return None
        return self.rocksdb_beside_files

    def _with_light_queues(self, light: RocksQueues) -> Mapping[str, Mapping[int, AnyQueue]]:
        """:meth:`in_files`, with the light queues of the RocksDB ``light``. Raises :class:`CannotRead`."""
        merged: dict[str, Mapping[int, AnyQueue]] = {
            topic: queues for topic, queues in self.in_files().items() if not topic.startswith(LMQ_PREFIX)
        }
        merged |= {topic: queues for topic, queues in light.by_topic().items() if topic.startswith(LMQ_PREFIX)}
        return {topic: merged[topic] for topic in sorted(merged, key=listing_key)}

    def _note_rocksdb(self, error: CannotRead) -> CannotRead:
        """The error to raise for queues in a RocksDB; without the extra, as for a part that is not decoded."""
        store = self._store
        part = store.undecoded_part("queues")
        if isinstance(error, MissingExtra) and part is not None:
            return store.reading.note_undecoded(store.path / part.folder, part.reason_without("queues", error.what))
        return error

    # -- in files

    def in_files(self) -> dict[str, dict[int, QueueReader]]:
        """Topic → queue id → queue, for every queue with a folder; topics by name, queues by number.

        Light queues of lite topics follow their topic. Empty if the active queues are not decoded, or if the log that
        sets their ends is not decoded; the reading has a record then.
        """
        is_undecoded = any(self._store.note_undecoded(subject) is not None for subject in SUBJECTS)
        return {} if is_undecoded else self._store.queue_folders.by_topic()

    def used_files(self, *, note_unread: bool = False) -> dict[str, dict[int, QueueReader]]:
        """:meth:`in_files`; empty if a broker reads its queues from a RocksDB.

        With ``note_unread`` the reading has a record if queues in the RocksDB cannot be read.
        """
        if self.rocksdb is None:
            return self.in_files()
        if note_unread:
            self._store.why_unknown("queues")
        return {}

    def find_in_files(self, topic: str, queue_id: int) -> QueueReader | None:
        """Return the queue; None if it has no folder.

        Raises :class:`CannotRead` if it may be in a folder that could not be listed, or if it is not decoded.
        """
        reader = self.in_files().get(topic, {}).get(queue_id)
        if reader is None:
            self.require_files()
            if topic.startswith(LMQ_PREFIX):
                self._require_light_queues()
        return reader

    def find_beside_dledger(self, topic: str, queue_id: int) -> QueueReader | None:
        """Return a queue beside a DLedger log that is not decoded and decides how many of its entries are valid.

        None if the queue has no folder, if a broker reads its queues from a RocksDB, or if the log is decoded.
        """
        store = self._store
        if store.note_undecoded("log") is None or store.undecoded_part("queues") is not None:
            return None
        queue = store.queue_folders.by_topic().get(topic, {}).get(queue_id)
        if queue is None:
            return None
        return QueueReader(topic, queue_id, queue.kind, queue.sequence, store.log, queue.ext, ends_with_log=False)

    def require_files(self) -> None:
        """Raise :class:`CannotRead` if a folder of queues could not be listed or is not decoded.

        Then no queue is known to be absent.
        """
        self._store.require(*SUBJECTS)
        self._store.queue_folders.require()

    def _require_light_queues(self) -> None:
        """Raise :class:`Undecoded` if a RocksDB exists next to the file queues: light queues may be only in it."""
        for part in self._store.undecoded:
            if "queues" in part.subjects:
                raise self._store.reading.note_undecoded(self._store.path / part.folder, part.reason("queues"))
