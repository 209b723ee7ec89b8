"""The queues that have a folder in a store, whether a broker uses them or not (docs/formats/consume-queue.md)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.codec.lite_topics import listing_key
from engine.errors import CannotRead
from engine.files.layout import parse_file_name
from engine.inspection.queue_reader import QueueReader
from engine.mapped.read_only import FileSequence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


class QueueFolders:
    """The folders below ``consumequeue`` and ``batchconsumequeue``. They are listed at the first question."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._topics: dict[str, dict[int, QueueReader]] | None = None
        self._unlisted: CannotRead | None = None
        self._any_ext = False
        self._listing = threading.Lock()
        self.topics_of_both_kinds: frozenset[str] = frozenset()
        """Topics with a queue that has a folder of each kind; :meth:`by_topic` returns only one of them."""

    def by_topic(self) -> dict[str, dict[int, QueueReader]]:
        """Topic → queue id → queue; topics by name, queues by number. Concurrent callers share one listing."""
        topics = self._topics
        if topics is None:
            with self._listing:
                topics = self._topics
                if topics is None:
                    topics = self._topics = self._list({})
        return topics

    def readers(self) -> Iterator[QueueReader]:
        """Yield every queue."""
        return (queue for queues in self.by_topic().values() for queue in queues.values())

    def require(self) -> None:
        """Raise :class:`CannotRead` if a folder could not be listed: then no queue is known to be absent."""
        self.by_topic()
        if self._unlisted is not None:
            raise self._unlisted

    def newest_entries(self) -> list[tuple[int, int]]:
        """Return physical offset and size (bytes) of the newest entry of each queue; an unreadable queue has none."""
        entries = []
        for queue in self.readers():
            with contextlib.suppress(CannotRead):
                entries.append(queue.newest())
        return [entry for entry in entries if entry is not None]

    def refresh(self) -> bool:
        """List the folders again if they were listed; return True if files appeared, vanished or were replaced."""
        if self._topics is None:
            return False
        old_readers = {queue.sequence.folders[0]: queue for queue in self.readers()}
        has_changed = False
        for reader in old_readers.values():
            has_changed |= reader.refresh()
        self._topics = self._list(old_readers)
        return has_changed or old_readers.keys() != {queue.sequence.folders[0] for queue in self.readers()}

    def reader_of(self, kind: Literal["simple", "batch"], topic: str, queue_id: int, folder: Path) -> QueueReader:
        """Return the queue whose files are in ``folder``, which need not exist."""
        store = self._store
        assert store.paths is not None
        name = "mappedFileSizeConsumeQueue" if kind == "simple" else "mapperFileSizeBatchConsumeQueue"
        sequence = FileSequence((folder,), store.descriptors, store.configured_size(name))
        ext_folder = store.paths.ext_folder(topic, queue_id)
        ext = FileSequence((ext_folder,), store.descriptors) if self._has_ext(kind, ext_folder) else None
        return QueueReader(topic, queue_id, kind, sequence, store.log, ext)

    def _list(self, old_readers: dict[Path, QueueReader]) -> dict[str, dict[int, QueueReader]]:
        topics: dict[str, dict[int, QueueReader]] = {}
        of_both_kinds: set[str] = set()
        self._unlisted = None
        paths = self._store.paths
        if paths is None:
            return topics
        self._any_ext = self._may_hold(paths.consumequeue_ext)
        kinds: tuple[tuple[Literal["simple", "batch"], Path], ...] = (
            ("simple", paths.consumequeue),
            ("batch", paths.batchconsumequeue),
        )
        for kind, folder in kinds:
            for topic_folder in self._subfolders(folder):
                for queue_folder in self._subfolders(topic_folder, listed=True):
                    queue_id = parse_file_name(queue_folder.name)
                    if queue_id is None or queue_folder.name != str(queue_id):
                        continue  # a broker takes the number of a folder "00" and reads the folder "0"
                    reader = old_readers.get(queue_folder)
                    if reader is None or self._ext_has_changed(reader):
                        reader = self.reader_of(kind, topic_folder.name, queue_id, queue_folder)
                    queues = topics.setdefault(topic_folder.name, {})
                    of_both_kinds |= {topic_folder.name} if queue_id in queues else set()
                    queues[queue_id] = reader
        self.topics_of_both_kinds = frozenset(of_both_kinds)
        return {topic: dict(sorted(topics[topic].items())) for topic in sorted(topics, key=listing_key)}

    def _subfolders(self, folder: Path, *, listed: bool = False) -> list[Path]:
        try:
            return self._store.reading.folders(folder, listed=listed)
        except CannotRead as error:
            self._unlisted = error
            return []

    def _ext_has_changed(self, reader: QueueReader) -> bool:
        assert self._store.paths is not None
        folder = self._store.paths.ext_folder(reader.topic, reader.queue_id)
        return self._has_ext(reader.kind, folder) != (reader.ext is not None)

    def _has_ext(self, kind: str, folder: Path) -> bool:
        return kind == "simple" and self._any_ext and self._may_hold(folder)

    def _may_hold(self, folder: Path) -> bool:
        """Return True if a folder exists or could not be examined: its files then report the error."""
        try:
            return self._store.reading.is_folder(folder)
        except CannotRead:
            return True
