"""Input of recovery: the files of a store, as the code that opened them hands them over.

Recovery lies below the readers of a store and knows only files; :mod:`engine.inspection.recovery` fills this in.

It includes what a start reads of the configuration tables: which can be read, batch topics, the groups' offsets
(docs/formats/config-tables.md#rules).
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from engine.codec import json_dialect
from engine.codec.checkpoint import Checkpoint
from engine.codec.index import IndexHeader
from engine.codec.rocksdb_queue_rows import Bound, BoundRow, QueueRow
from engine.codec.table_types import find_misfit, to_number
from engine.config import MessageStoreConfig
from engine.errors import CorruptUnit
from engine.mapped.read_only import FileSequence
from engine.mapped.reading import Reading
from engine.releases import NEWEST, Release, rules_of
from engine.store.recovery.dledger import DLedgerSource

if TYPE_CHECKING:
    import numpy as np

QueueKind = Literal["simple", "batch"]
TableState = Literal["missing", "empty", "ok", "bad"]
NO_CHECKPOINT = Checkpoint(0, 0, 0)
"""A missing checkpoint reads like this."""


class Entry(NamedTuple):
    """Something in a folder; ``size`` in bytes."""

    path: str
    name: str
    size: int
    folder: bool


def list_folder(folder: Path, reading: Reading | None = None) -> Iterator[Entry]:
    """Return the entries of ``folder`` by name; none where there is no such folder. Raises :class:`CannotRead`."""
    reading = reading or Reading()
    for entry in reading.entries(folder):
        info = reading.entry_status(entry)
        yield Entry(entry.path, entry.name, info.st_size, stat.S_ISDIR(info.st_mode))


@dataclass(frozen=True, slots=True)
class QueueFiles:
    """The files of one consume queue; ``ext`` those beside it in consumequeue_ext."""

    topic: str
    queue_id: int
    kind: QueueKind
    sequence: FileSequence
    ext: FileSequence | None = None


class QueueRows(Protocol):
    """The rows of one queue, as the database has them before the start."""

    topic: str
    queue_id: int

    def bound(self, bound: Bound) -> BoundRow | None:
        """Return the row ``min`` or ``max``; None without one."""

    def row(self, queue_offset: int) -> QueueRow | None:
        """Return the row of one entry; None without one."""

    def numbered_rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Queue offsets and rows of all entries of [start, stop)."""


@dataclass(frozen=True, slots=True)
class RocksdbQueues:
    """The queues of a RocksDB; ``dispatched`` is the end of dispatch in it (bytes of the log)."""

    dispatched: int
    queues: tuple[QueueRows, ...]


@dataclass(frozen=True, slots=True)
class IndexHead:
    """An index file by its header, as a broker maps it: what a short file lacks reads as zero."""

    name: str
    path: str
    header: IndexHeader


Watch = Callable[[int, int, int], None]
"""Called with offsets in the log: where reading began, how far it is, and where it will end."""


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """The next queue offset that a consumer group will ask for."""

    group: str
    topic: str
    queue_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class Table:
    """A configuration table's file and its ``.bak``: whether they can be parsed, and what their texts gave."""

    path: str
    main: TableState
    backup: TableState
    parsed: json_dialect.Parsed | None = None
    backup_parsed: json_dialect.Parsed | None = None

    def why_not(self, release: Release) -> str | None:
        """Return why a broker of ``release`` does not start with the table; None if it does: it loads the file or
        the ``.bak``, or begins with defaults because the ``.bak`` is missing or empty.
        """
        name = self.path.rpartition("/")[2]
        misfit = find_refusal(name, self.parsed, release) if self.main == "ok" else None
        if self.main == "ok" and misfit is None:
            return None
        if self.backup == "bad" or (self.backup == "ok" and find_refusal(name, self.backup_parsed, release)):
            return misfit or self.main
        return None


def find_refusal(table: str, parsed: json_dialect.Parsed | None, release: Release) -> str | None:
    """Return why a broker of ``release`` does not load the text of a table: by its form or its values; None if it
    does, and for no text.
    """
    if parsed is None:
        return None
    return parsed.complaint_of(rules_of(release).json_parser) or find_misfit(table, parsed.value, release)


@dataclass(frozen=True, slots=True)
class RecoverySource:
    """A store as recovery sees it. Sizes in bytes; ``batch_topics`` is None without a table of topics."""

    root: Path
    log: FileSequence
    log_file_size: int
    queues: tuple[QueueFiles, ...]
    queue_file_size: int
    batch_queue_file_size: int
    rocksdb: RocksdbQueues | None = None
    """The queues, if consumers get those of a RocksDB; ``queues`` is empty then, unless the broker ``writes_both``."""
    writes_both: bool = False
    """The broker also writes ``queues`` in files (:mod:`.both_sides`)."""
    index: tuple[IndexHead, ...] = ()
    checkpoint: Checkpoint = NO_CHECKPOINT
    checkpoint_note: str = ""
    abort: bool = False
    lock_held: bool = False
    config: MessageStoreConfig = field(default_factory=MessageStoreConfig)
    batch_topics: frozenset[str] | None = None
    both_kinds: frozenset[str] = frozenset()
    """Topics of which a queue has a folder of either kind; one of the two is in ``queues``."""
    group_offsets: Iterable[GroupOffset] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()  # things that recovery would do and this plan cannot know
    listing: Callable[[Path], Iterable[Entry]] = list_folder
    light: bool = True  # units that name further queues get entries there
    missing: tuple[Path, ...] = ()  # folders of a log in several that the configuration names and that are not there
    confirmed_note: bytes | None = None  # the store's note of the evidence that empty_log overruled
    heal: bool = False  # repairs what a broker dies of while it recovers
    watch: Watch | None = None  # called with the progress of reading the log
    dledger: DLedgerSource | None = None  # the log is a DLedger log; ``log`` has its files and older ones beside it


TIMER_METRICS = "timermetrics"
NAMES = (
    "topics.json",
    "topicQueueMapping.json",
    "consumerOffset.json",
    "subscriptionGroup.json",
    "consumerFilter.json",
    "consumerOrderInfo.json",
    "delayOffset.json",
    "lmqConsumerOffset.json",
    TIMER_METRICS,
)
"""Tables without which a broker does not start where neither the file nor its .bak can be parsed."""
_GROUP_SEPARATOR = "@"


class Tables:
    """The tables below ``folder``; ``read`` gives a file's bytes by its name, None without one, and raises
    :class:`CorruptUnit` for what is no file. What else it raises comes through: a table that could not be read is
    neither missing nor bad.
    """

    def __init__(self, read: Callable[[str], bytes | None], folder: str, release: Release = NEWEST) -> None:
        self._release = release
        self._read = read
        self._folder = folder
        self._parsed: dict[str, tuple[TableState, json_dialect.Parsed | None]] = {}

    def states(self) -> tuple[Table, ...]:
        """State of each table and its ``.bak``: if it can be read."""
        return tuple(
            Table(f"{self._folder}/{name}", main, backup, parsed, backup_parsed)
            for name in NAMES
            for (main, parsed), (backup, backup_parsed) in [(self._json(name), self._json(f"{name}.bak"))]
        )

    def batch_topics(self) -> frozenset[str] | None:
        """Topics with queue.type=BatchCQ, None if there is no topics table."""
        table = self._loaded("topics.json")
        topics = table.get("topicConfigTable") if isinstance(table, dict) else None
        if not isinstance(topics, dict) or self._json("topics.json")[0] == "missing":
            return None
        batch_names = set()
        for name, topic in topics.items():
            attributes = topic.get("attributes") if isinstance(topic, dict) else None
            if isinstance(attributes, dict) and attributes.get("queue.type") == "BatchCQ":
                batch_names.add(str(name))
        return frozenset(batch_names)

    def group_offsets(self) -> Iterator[GroupOffset]:
        """The next offset of every group in every queue; a light queue has the number 0."""
        for name in ("consumerOffset.json", "lmqConsumerOffset.json"):
            table = self._loaded(name)
            offsets = table.get("offsetTable") if isinstance(table, dict) else None
            for key, queues in offsets.items() if isinstance(offsets, dict) else ():
                topic, separator, group = str(key).rpartition(_GROUP_SEPARATOR)
                if not separator or not isinstance(queues, dict):
                    continue
                for queue_id, value in queues.items():
                    number, offset = to_number(queue_id), to_number(value)
                    if number is not None and offset is not None:
                        yield GroupOffset(group, topic, number, offset)
        light = self._loaded("lmqConsumerOffset.json")
        offsets = light.get("lmqOffsetTable") if isinstance(light, dict) else None
        for key, value in offsets.items() if isinstance(offsets, dict) else ():
            topic, separator, group = str(key).partition(_GROUP_SEPARATOR)
            offset = to_number(value)
            if separator and offset is not None:
                yield GroupOffset(group, topic, 0, offset)

    def _loaded(self, name: str) -> Any:
        """A table as a broker loads it: the file, else its ``.bak``, else None."""
        state, parsed = self._json(name)
        if state != "ok" or find_refusal(name, parsed, self._release) is not None:
            parsed = self._json(f"{name}.bak")[1]
        return parsed.value if parsed is not None else None

    def _json(self, name: str) -> tuple[TableState, json_dialect.Parsed | None]:
        parsed = self._parsed.get(name)
        if parsed is None:
            parsed = self._parsed[name] = self._parse(name)
        return parsed

    def _parse(self, name: str) -> tuple[TableState, json_dialect.Parsed | None]:
        try:
            data = self._read(name)
        except CorruptUnit:
            return "bad", None
        if data is None:
            return "missing", None
        if not data:
            return "empty", None
        parsed = json_dialect.parse(data)
        return ("ok", parsed) if parsed.accepted else ("bad", None)
