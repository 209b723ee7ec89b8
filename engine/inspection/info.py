"""The one-page account of a store (``info``): files, topics, index headers, checkpoint, flavour. Time and memory do not
depend on the store's size, only on its numbers of files and queues; numpy is not needed.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.codec import index as index_codec
from engine.codec import unit_flavours
from engine.codec.checkpoint import Checkpoint
from engine.codec.encode import MAX_V1_TOPIC_BYTES
from engine.codec.lite_topics import split_lite_queue
from engine.codec.message import BORN_HOST_V6, STORE_HOST_V6, Unit
from engine.codec.unit_flavours import BY_VERSION, MAGICS
from engine.errors import CannotRead, StoreError
from engine.inspection import undecoded
from engine.inspection.dledger import DLedgerInfo, dledger_info
from engine.inspection.epochs import EpochTable, read_epochs
from engine.inspection.tables import topics as declared_topics
from engine.inspection.timer_wheel import WheelInfo, wheel_infos
from engine.inspection.written_release import require_release
from engine.releases import name_next_start
from engine.rules.undecoded import SUBJECT_WORDS
from engine.sentences import sentence
from engine.system_names import LMQ_PREFIX

if TYPE_CHECKING:
    from engine.inspection.opening import LockState
    from engine.inspection.snapshot import StoreSnapshot
    from engine.mapped.reading import Unread
    from engine.rules.undecoded import Subject, UndecodedPart

FLAVOURS = {
    **{flavour.word.lower(): flavour.label for flavour in unit_flavours.FLAVOURS},
    "dledger": "DLedger",
    "extCq": "ext queues",
    "batchCq": "batch queues",
    "lmq": "light queues",
    "timer": "timer",
    "ipv6": "IPv6 hosts",
    "propCrc": "property CRC",
    "multiPath": "several log folders",
    "rocksdbCq": "RocksDB queues",
}
"""Word of ``info`` → what is special about such a store; the plain form of units has nothing."""
_SAMPLED_QUEUES = 256


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """Bounds of one queue, in messages."""

    queue_id: int
    min_offset: int | None
    max_offset: int | None


@dataclass(frozen=True, slots=True)
class CompactedInfo:
    """A compacted queue: its messages, offsets in messages, and the bytes of its log files."""

    topic: str
    queue_id: int
    messages: int
    min_offset: int
    max_offset: int
    size: int


@dataclass(frozen=True, slots=True)
class TieredInfo:
    """The contents of tiered storage: ``folder`` of the cluster (None: its files are not here), ``size`` of all
    segments in bytes, and its queues as topic, queue id, first offset, offset behind the last message, bytes.
    """

    folder: str | None
    size: int
    queues: list[tuple[str, int, int, int, int]]


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Everything that ``info`` shows; sizes in bytes, times in ms, offsets of the log in bytes.

    Values that depend on unreadable bytes are None; ``unread`` is set then. ``undecoded`` are parts that are recognised
    but not decoded; ``unknown`` gives the reasons for what they hide.
    """

    path: str
    kind: str
    flavour: list[str]
    min_offset: int
    max_offset: int | None
    log_files: list[tuple[str, int]]
    consume_queue_files: int
    index_files: int
    topics: dict[str, list[QueueInfo]]
    index: list[tuple[str, index_codec.IndexHeader]]
    checkpoint: Checkpoint | None
    abort: bool | None
    lock: LockState
    bytes: dict[str, int]
    notes: list[str] = field(default_factory=list)
    sizes: dict[str, str] = field(default_factory=dict)
    """Source of each size that RocketMQ does not store."""
    file_bytes: dict[str, int] = field(default_factory=dict)
    """Sizes of the files, by the key of the configuration."""
    unread: tuple[Unread, ...] = ()
    undecoded: tuple[UndecodedPart, ...] = ()
    unknown: dict[Subject, str] = field(default_factory=dict)
    dledger: DLedgerInfo | None = None
    compacted: list[CompactedInfo] = field(default_factory=list)
    epochs: EpochTable | None = None
    timer_wheels: list[WheelInfo] = field(default_factory=list)
    tiered: TieredInfo | None = None
    lite_topics: list[LiteInfo] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LiteInfo:
    """The number of lite topics of a topic. ``expiration_minutes``: a broker of 5.5 deletes a lite topic so long after
    its last message; None: never, or it is not known.
    """

    topic: str
    count: int
    expiration_minutes: int | None


def store_info(store: StoreSnapshot) -> StoreInfo:
    """Gather the account.

    Unreadable parts become a note, never an error, as long as the directory itself can be listed.
    """
    notes = list(store.notes)
    topics = {
        topic: [
            QueueInfo(number, _known(queue, "min_offset"), _known(queue, "max_offset"))
            for number, queue in queues.items()
        ]
        for topic, queues in store.queues.by_topic().items()
    }
    sizes, counts = _sizes(store)
    about = StoreInfo(
        path=str(store.path),
        kind=store.kind,
        flavour=flavour(store),
        min_offset=store.log.min_offset,
        max_offset=_known(store.log, "max_offset"),
        log_files=[(file.name, file.size) for file in store.log.files],
        consume_queue_files=counts,
        index_files=len(store.index_files()),
        topics=topics,
        index=list(_index_headers(store, notes)),
        checkpoint=_checkpoint(store, notes),
        abort=_known(store, "abort"),
        lock=store.lock_state,
        bytes=sizes,
        notes=notes
        + list(_unflushed(store))
        + [oddity.path + ": " + oddity.description for oddity in store.log.sequence.oddities]
        + undecoded.notes(store),
        sizes=store.geometry.sources,
        file_bytes={
            "mappedFileSizeCommitLog": store.geometry.commit_log_file_size,
            "mappedFileSizeConsumeQueue": store.geometry.consume_queue_file_size,
        },
        compacted=list(_compacted(store)),
        lite_topics=list(_lite_topics(store, topics)),
    )
    unknown = {subject: reason for subject in SUBJECT_WORDS if (reason := store.why_unknown(subject)) is not None}
    parts = tuple(part for part in store.undecoded if not undecoded.is_read_log(store, part))
    dledger = _dledger(store, notes)
    epochs = _epochs(store, notes)
    with contextlib.suppress(CannotRead):
        about = replace(about, timer_wheels=wheel_infos(store))
    with contextlib.suppress(CannotRead):
        about = replace(about, tiered=_tiered(store))
    return replace(about, unread=store.unread, undecoded=parts, unknown=unknown, dledger=dledger, epochs=epochs)


def _tiered(store: StoreSnapshot) -> TieredInfo | None:
    tiered = store.tiered
    if tiered is None:
        return None
    queues = [(queue.topic, queue.queue_id, queue.min_offset, queue.max_offset, queue.size) for queue in tiered.queues]
    return TieredInfo(str(tiered.folder) if tiered.folder is not None else None, tiered.size, queues)


def _epochs(store: StoreSnapshot, notes: list[str]) -> EpochTable | None:
    try:
        return read_epochs(store)
    except StoreError as error:
        notes.append(str(error))
        return None


def _dledger(store: StoreSnapshot, notes: list[str]) -> DLedgerInfo | None:
    if store.commit_log.dledger is None:
        return None
    try:
        return dledger_info(store, store.commit_log.dledger)
    except StoreError as error:
        notes.append(str(error))
        return None


def _unflushed(store: StoreSnapshot) -> Iterator[str]:
    """A note on units whose entries are not in the RocksDB of the queues."""
    queues = store.queues.rocksdb
    if queues is None or store.why_unknown("queues") is not None:
        return
    if queues.unflushed_bytes:
        yield sentence(
            "A running broker has the queue entries of the last {n:,} bytes of the log only in its memory: they are "
            "worked out from the log",
            n=queues.unflushed_bytes,
        )
        return
    with contextlib.suppress(CannotRead):
        unit = undecoded.first_behind_dispatch(store, queues.written_offset())
        if unit is not None:
            text = sentence(
                "The queues lack the messages from offset {n:,} of the log on: the next start dispatches them",
                n=unit.offset,
            )
            yield name_next_start(text, require_release(store))


def _known(owner: object, name: str) -> Any:
    """A fact, or None if it depends on unreadable bytes."""
    try:
        return getattr(owner, name)
    except CannotRead:
        return None


def _index_headers(store: StoreSnapshot, notes: list[str]) -> Iterator[tuple[str, index_codec.IndexHeader]]:
    for reader in store.index_files():
        try:
            yield reader.name, reader.header
        except StoreError as error:
            notes.append(str(error))


def _checkpoint(store: StoreSnapshot, notes: list[str]) -> Checkpoint | None:
    try:
        return store.checkpoint()
    except StoreError as error:
        notes.append(str(error))
        return None


def _lite_topics(store: StoreSnapshot, topics: Iterable[str]) -> Iterator[LiteInfo]:
    counts = Counter(parts[0] for name in topics if (parts := split_lite_queue(name)) is not None)
    if not counts:
        return
    try:
        declared = declared_topics(store) or {}
    except CannotRead:
        declared = {}
    for topic, count in counts.items():
        minutes = declared[topic].attributes.get("lite.topic.expiration", "") if topic in declared else ""
        yield LiteInfo(topic, count, int(minutes) if minutes.isdecimal() and int(minutes) > 0 else None)


def _sizes(store: StoreSnapshot) -> tuple[dict[str, int], int]:
    """Apparent bytes by kind of file, and the number of queue files."""
    sizes = {"commitlog": store.log.sequence.total_size, "consumequeue": 0, "index": 0, "config": 0, "other": 0}
    if store.paths is None:
        return sizes, 0
    queue_files = 0
    kinds = {"consumequeue": "consumequeue", "batchconsumequeue": "consumequeue", "consumequeue_ext": "consumequeue"}
    kinds |= {"index": "index", "config": "config"}
    for entry in _scan(store, store.paths.root):
        if entry.name == "commitlog":
            continue
        kind = kinds.get(entry.name, "other")
        for size in _tree(store, entry):
            sizes[kind] += size
            queue_files += kind == "consumequeue"
    if store.commit_log.dledger is not None and store.commit_log.dledger.folders.label != "commitlog":
        sizes["other"] -= sum(file.size for file in store.log.files if store.log.has_entries(file))
    return sizes, queue_files


def _scan(store: StoreSnapshot, folder: Path | str) -> list[os.DirEntry[str]]:
    try:
        return store.reading.entries(folder, listed=True)
    except CannotRead:
        return []


def _compacted(store: StoreSnapshot) -> Iterator[CompactedInfo]:
    with contextlib.suppress(CannotRead):  # ``reading`` has noted it
        for queue in store.compacted_queues():
            count = sum(1 for _ in queue.entries())
            yield CompactedInfo(queue.topic, queue.queue_id, count, queue.min_offset, queue.max_offset, queue.size)


def _tree(store: StoreSnapshot, entry: os.DirEntry[str]) -> Iterator[int]:
    """Lengths of a file, or of every file below a folder; links are counted themselves, not followed."""
    pending = [entry]
    while pending:
        listed_entry = pending.pop()
        if listed_entry.is_dir(follow_symlinks=False):
            pending.extend(_scan(store, listed_entry.path))
            continue
        with contextlib.suppress(CannotRead):  # ``reading`` has noted it
            yield store.reading.entry_status(listed_entry, follow=False).st_size


def flavour(store: StoreSnapshot) -> list[str]:
    """The words of ``FLAVOURS`` that apply to the store, judged by its folders, the first unit of each log file and the
    newest unit of queues.
    """
    words_found: set[str] = set()
    for unit in _sample(store):
        words_found.add(BY_VERSION[unit.version].word.lower())
        if unit.sys_flag & (BORN_HOST_V6 | STORE_HOST_V6):
            words_found.add("ipv6")
        if unit.properties_raw[-20:].startswith(b"__CRC32#\x01"):
            words_found.add("propCrc")
    topics = store.queues.by_topic()
    if any(queue.kind == "batch" for queues in topics.values() for queue in queues.values()):
        words_found.add("batchCq")
    if any(queue.ext is not None for queues in topics.values() for queue in queues.values()):
        words_found.add("extCq")
    if any(topic.startswith(LMQ_PREFIX) for topic in topics):
        words_found.add("lmq")
    if len(store.commit_log.folders) - (store.commit_log.dledger is not None) > 1:
        words_found.add("multiPath")
    if store.paths is not None and any(entry.name == "timerlog" for entry in _scan(store, store.paths.root)):
        words_found.add("timer")
    if any("log" in part.subjects for part in store.undecoded):
        words_found.add("dledger")
    if any("queues" in part.subjects for part in store.undecoded):
        words_found.add("rocksdbCq")
    return [word for word in FLAVOURS if word in words_found]


def _sample(store: StoreSnapshot) -> Iterator[Unit]:
    for file in store.log.files:
        head = _magic(store, file.start_offset)
        if head:
            unit = store.log.unit_at(file.start_offset, crc=False)
            if isinstance(unit, Unit):
                yield unit
    unit_count = 0
    for topic, queues in store.queues.by_topic().items():
        for queue in queues.values():
            if unit_count >= _SAMPLED_QUEUES and len(topic.encode()) <= MAX_V1_TOPIC_BYTES:
                continue
            try:
                newest = queue.newest()
            except CannotRead:
                continue
            item = store.log.unit_at(newest[0], crc=False) if newest else None
            if isinstance(item, Unit):
                unit_count += 1
                yield item


def _magic(store: StoreSnapshot, offset: int) -> bool:
    try:
        head = store.log.sequence.read(offset, 8)
    except CannotRead:
        return False
    return int.from_bytes(head[4:8], "big") in MAGICS


def messages_in(info: StoreInfo) -> int:
    """Messages that the queues hold by their bounds, all topics."""
    bounded_queues = (q for queues in info.topics.values() for q in queues if q.max_offset is not None)
    return sum(max((q.max_offset or 0) - max(q.min_offset or 0, 0), 0) for q in bounded_queues)
