"""What recovery reads: the files of a store, as whoever opened them hands them over.

Recovery stands below the readers of a store and knows only files; :mod:`engine.inspection.recovery` fills this in.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from engine.codec.checkpoint import Checkpoint
from engine.codec.index import IndexHeader
from engine.config import MessageStoreConfig
from engine.mapped.read_only import FileSequence
from engine.mapped.reading import Reading

QueueKind = Literal["simple", "batch"]
TableState = Literal["missing", "empty", "ok", "bad"]
NO_CHECKPOINT = Checkpoint(0, 0, 0)
"""What a missing checkpoint reads as."""


class Entry(NamedTuple):
    """Something in a folder; ``size`` in bytes."""

    path: str
    name: str
    size: int
    folder: bool


def list_folder(folder: Path, reading: Reading | None = None) -> Iterator[Entry]:
    """What is in ``folder``, by name; nothing where there is no such folder. Raises :class:`CannotRead`."""
    reading = reading or Reading()
    for entry in reading.entries(folder):
        info = reading.look_at(entry)
        yield Entry(entry.path, entry.name, info.st_size, stat.S_ISDIR(info.st_mode))


@dataclass(frozen=True, slots=True)
class QueueFiles:
    """The files of one consume queue; ``ext`` those beside it in consumequeue_ext."""

    topic: str
    queue_id: int
    kind: QueueKind
    sequence: FileSequence
    ext: FileSequence | None = None


@dataclass(frozen=True, slots=True)
class IndexHead:
    """One index file by its header, as a broker maps it: what a short file lacks reads as zero."""

    name: str
    path: str
    header: IndexHeader


Watch = Callable[[int, int, int], None]
"""Told from where the log is read, how far that is, and where it will end: offsets in the log."""


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """The next queue offset that a consumer group will ask for."""

    group: str
    topic: str
    queue_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class Table:
    """A configuration table's file and its ``.bak``: whether a broker could read them."""

    path: str
    main: TableState
    backup: TableState


@dataclass(frozen=True, slots=True)
class RecoverySource:
    """A store as recovery sees it. Sizes in bytes; ``batch_topics`` is None where no topics table tells."""

    root: Path
    log: FileSequence
    log_file_size: int
    queues: tuple[QueueFiles, ...]
    queue_file_size: int
    batch_queue_file_size: int
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
    notes: tuple[str, ...] = ()  # what recovery would do and this plan cannot know
    listing: Callable[[Path], Iterable[Entry]] = list_folder
    light: bool = True  # units that name further queues get entries there
    missing: tuple[Path, ...] = ()  # folders of a log in several that the configuration names and that are not there
    said: bytes | None = None  # the store's note of what the word for an empty log was given for
    heal: bool = False  # what a broker dies of while it recovers, and the engine does not, is mended
    watch: Watch | None = None  # told how far the log has been read
